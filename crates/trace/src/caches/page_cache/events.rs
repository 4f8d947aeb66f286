//! What each event of a trace does to the cache.

use super::super::advised::{advice, key_of, maps_around};
use super::super::{PAGE_BYTES, pages_of};
use super::PageCache;
use super::folios::flag;
use super::reading::{PIPE_BYTES, Touch};
use crate::event::{Event, Flags, Op};

impl PageCache {
    /// Does what an event did. Events that failed or touch no page change nothing.
    pub fn event(&mut self, event: &Event) {
        if event.error == 0 && matches!(event.op, Op::Exit | Op::Exec) {
            self.unmap(event.stream, 0, (0, u64::MAX));
        }
        if event.error != 0 || event.file == 0 || self.outside.contains(&event.file) {
            return;
        }
        self.memory.tick(event.start_ns);
        match event.op {
            Op::Read | Op::Write if event.flags.has(Flags::DIRECT) => self.direct(event),
            Op::Read => self.read_event(event, Touch::Call),
            Op::Sendfile => self.read_event(event, Touch::Splice),
            Op::Copy => self.copy(event),
            Op::Write => self.write_event(event),
            Op::FaultR | Op::FaultW => self.fault_event(event),
            Op::Sync | Op::Dsync | Op::Rsync | Op::Msync => self.memory.write_back_file(event.file),
            Op::Open | Op::Create => self.open(event),
            Op::Close => {
                self.windows.remove(&key_of(event));
                if self.files.close(event.file, event.handle) {
                    self.memory.drop_range(event.file, 0..u64::MAX);
                }
            }
            Op::Unlink => self.unlink(event.file),
            Op::Rename if event.other != 0 && event.other != u64::from(event.file) => {
                self.unlink(event.other as u32);
            }
            // The new length stands in `offset`.
            Op::Trunc => self.truncate(event.file, event.offset.max(event.length)),
            Op::Punch => {
                let end = event.offset.saturating_add(event.length) / PAGE_BYTES;
                self.memory.drop_range(event.file, event.offset.div_ceil(PAGE_BYTES)..end);
            }
            Op::Advise => self.advise(event),
            Op::Munmap => {
                self.unmap(event.stream, event.file, pages_of(event.offset, event.length));
            }
            _ => {}
        }
    }

    /// A mapping goes, or with no file and all pages, all mappings of a thread: what was touched through
    /// it counts as touched by a call (mm/memory.c, `zap_present_folio_ptes`). Of a process with several
    /// threads each takes what it touched along.
    fn unmap(&mut self, stream: u32, file: u32, (first, pages): (u64, u64)) {
        let Some(touched) = self.mapped.get_mut(&stream) else { return };
        let is_gone = |&mut (of, page): &mut (u32, u64)| {
            file == 0 || of == file && (first..first.saturating_add(pages)).contains(&page)
        };
        for (file, page) in touched.extract_if(.., is_gone) {
            if let Some(id) = self.memory.folio_at(file, page)
                && self.memory.folios.get(id).has(flag::YOUNG)
            {
                self.memory.folios.clear(id, flag::YOUNG);
                self.memory.mark_accessed(id);
            }
        }
    }

    fn read_event(&mut self, event: &Event, touch: Touch) {
        // A file that was never seen to grow is at least as long as what was read.
        self.files.reach(event.file, event.offset.saturating_add(event.length));
        let asked = event.asked.unwrap_or(event.length).max(event.length);
        self.read(event.file, key_of(event), (event.offset, asked), touch);
    }

    fn write_event(&mut self, event: &Event) {
        self.write(event.file, event.offset, event.length);
        if event.flags.has(Flags::SYNC) {
            self.memory.write_back_file(event.file);
        }
    }

    /// Past the cache: what was dirty is written before, and a write drops the pages
    /// (mm/filemap.c, `kiocb_write_and_wait` and `kiocb_invalidate_pages`).
    fn direct(&mut self, event: &Event) {
        let (first, pages) = pages_of(event.offset, event.length);
        if pages == 0 {
            return;
        }
        for page in first..first + pages {
            if let Some(id) = self.memory.folio_at(event.file, page) {
                self.memory.write_back_if_dirty(id);
            }
        }
        if event.op == Op::Write {
            self.memory.drop_range(event.file, first..first + pages);
            self.files.reach(event.file, event.offset.saturating_add(event.length));
            self.totals.direct_written_bytes += event.length;
        } else {
            self.totals.direct_read_bytes += event.length;
        }
    }

    /// From file to file through a pipe inside the kernel (fs/splice.c, `splice_copy_file_range`): as
    /// much as the pipe holds is read, then written, and so on. Where in the other file is not
    /// recorded: taken for the same place, as when a whole file is copied.
    fn copy(&mut self, event: &Event) {
        let to = event.other as u32;
        if to == 0 || self.outside.contains(&to) {
            self.read_event(event, Touch::Splice);
            return;
        }
        let end = event.offset.saturating_add(event.length);
        self.files.reach(event.file, end);
        let mut at = event.offset;
        while at < end {
            let piece = (end - at).min(PIPE_BYTES);
            // One call may copy a whole file: time goes by meanwhile.
            let done = (at - event.offset) as f64 / event.length as f64;
            let since_ns = event.duration_ns.unwrap_or(0) as f64 * done;
            self.memory.tick(event.start_ns + since_ns as u64);
            self.read(event.file, key_of(event), (at, piece), Touch::Splice);
            self.write(to, at, piece);
            at += piece;
        }
    }

    fn fault_event(&mut self, event: &Event) {
        let (first, pages) = pages_of(event.offset, event.length.max(1));
        if !maps_around(event) || !self.window(event.file, key_of(event)).is_random {
            for page in first..first + pages {
                self.touch_mapped(event, page);
            }
            return;
        }
        // Nothing is read around: of the pages mapped around the touched one, those can have been touched that
        // are here.
        let here = |page: &u64| self.memory.folio_at(event.file, *page).is_some();
        let mut touched: Vec<u64> = (first..first + pages).filter(here).collect();
        if touched.is_empty() {
            touched.push(first);
        }
        for page in touched {
            self.touch_mapped(event, page);
        }
    }

    fn touch_mapped(&mut self, event: &Event, page: u64) {
        self.files.reach(event.file, page * PAGE_BYTES + 1);
        self.fault(event.file, key_of(event), page);
        if self.settings.policy.is_kernels() {
            self.mapped.entry(event.stream).or_default().push((event.file, page));
        }
        if event.op == Op::FaultW
            && let Some(id) = self.memory.folio_at(event.file, page)
        {
            self.memory.mark_dirty(id);
        }
    }

    fn open(&mut self, event: &Event) {
        self.windows.remove(&key_of(event));
        if event.op == Op::Create || event.flags.has(Flags::TRUNC) {
            self.truncate(event.file, 0);
        }
        if event.handle != 0 {
            self.files.open(event.file, event.handle);
        }
    }

    fn unlink(&mut self, file: u32) {
        if self.files.unlink(file) {
            self.memory.drop_range(file, 0..u64::MAX);
        }
    }

    fn truncate(&mut self, file: u32, bytes: u64) {
        if bytes < self.files.length(file) {
            self.memory.drop_range(file, bytes.div_ceil(PAGE_BYTES)..u64::MAX);
        }
        self.files.set_length(file, bytes);
    }

    /// mm/fadvise.c, `generic_fadvise`; a length of 0 means to the end.
    fn advise(&mut self, event: &Event) {
        let key = key_of(event);
        let mut window = self.window(event.file, key);
        let file_end = self.files.length(event.file).div_ceil(PAGE_BYTES);
        let end = match event.length {
            0 => u64::MAX,
            length => event.offset.saturating_add(length),
        };
        let normal = self.read_ahead_of(event.file);
        match event.other {
            advice::NORMAL => (window.is_random, window.pages) = (false, normal),
            advice::RANDOM => window.is_random = true,
            advice::SEQUENTIAL => (window.is_random, window.pages) = (false, 2 * normal),
            advice::WILLNEED => {
                let first = event.offset / PAGE_BYTES;
                let end = end.div_ceil(PAGE_BYTES).min(file_end);
                self.will_need(event.file, first, end.saturating_sub(first));
            }
            advice::DONTNEED => {
                self.memory.write_back_file(event.file);
                let end =
                    if end >= self.files.length(event.file) { file_end } else { end / PAGE_BYTES };
                self.memory.invalidate(event.file, event.offset.div_ceil(PAGE_BYTES)..end);
            }
            _ => {}
        }
        self.windows.insert(key, window);
    }
}
