//! What each system call does to descriptors, positions and files, and which event it becomes.

use std::cell::RefCell;
use std::rc::Rc;

use ioscape_trace::{FileKind, Flags, Op};

use super::descriptors::{Description, Shared};
use super::paths::absolute;
use super::process::Mapping;
use super::{Converter, RESTARTED, Target, Written, flags_of};
use crate::call::{Argument, Call, Copy, PathArgument, Transfer};
use crate::observed::Ended;

/// Bytes that an entry of a directory takes in what `getdents` gives, about.
const ENTRY_BYTES: u64 = 32;
const RWF_SYNC: u64 = 2 | 4;
const RWF_NOWAIT: u64 = 8;
const RWF_APPEND: u64 = 16;
const CLOSE_RANGE_UNSHARE: u64 = 2;
const CLOSE_RANGE_CLOEXEC: u64 = 4;
/// The kinds of `futex` that wait: to wait, to lock, to wait for bits, to wait and requeue.
const FUTEX_WAITS: [u64; 4] = [0, 6, 9, 11];
const FUTEX_COMMAND: u64 = 0x7f;

impl Ended<'_> {
    fn argument(&self, index: Argument) -> u64 {
        self.arguments[usize::from(index)]
    }

    /// Descriptors are 32 bits wide; the rest of the register may hold anything.
    fn descriptor(&self, index: Argument) -> i32 {
        self.argument(index) as i32
    }

    /// What it returned, 0 where it failed.
    fn done(&self) -> u64 {
        self.result.max(0).cast_unsigned()
    }
}

impl Converter<'_> {
    pub(super) fn call(&mut self, ended: &Ended) -> Written {
        if ended.result <= -RESTARTED && ended.result > -RESTARTED - 8 {
            return Ok(());
        }
        self.know(ended.thread, ended.start_ns);
        match ended.call {
            Call::Transfer(transfer) => self.transfer(ended, transfer),
            Call::Open { directory, flags } => self.open(ended, directory, flags),
            Call::Close => self.close(ended),
            Call::Path(op, place) => self.path(ended, op, place),
            Call::TwoPaths(op, from, to) => self.two_paths(ended, op, (from, to)),
            Call::Descriptor(op) => self.on_descriptor(ended, op),
            Call::Copy(copy) => self.copy(ended, copy),
            Call::Map => self.map(ended),
            Call::Unmap => self.unmap(ended),
            Call::SyncMap => self.sync_map(ended),
            Call::AdviseMap => self.advise_map(ended),
            Call::Control => self.control(ended),
            Call::Wait => self.call_event(ended, Op::Wait, Target::default()),
            Call::Futex if FUTEX_WAITS.contains(&(ended.argument(1) & FUTEX_COMMAND)) => {
                self.call_event(ended, Op::Wait, Target::default())
            }
            Call::SyncAll => self.call_event(ended, Op::Sync, Target::default()),
            _ => {
                self.change_process(ended);
                self.without_event(ended);
                Ok(())
            }
        }
    }

    /// Calls that change what the process has, and are no events.
    fn change_process(&mut self, ended: &Ended) {
        match ended.call {
            Call::CloseRange => self.close_range(ended),
            Call::Duplicate(flags) => {
                let flags = flags.map_or(0, |flags| ended.argument(flags) as i32);
                self.duplicate(ended, flags & libc::O_CLOEXEC != 0);
            }
            Call::Seek => {
                let found = self.description(ended.thread, ended.descriptor(0));
                if let Some(found) = found.filter(|_| ended.result >= 0) {
                    found.borrow_mut().position = ended.done();
                }
            }
            Call::ChangeDirectory if ended.result == 0 => {
                let path = String::from_utf8_lossy(ended.path);
                self.set_directory(ended.thread, &path);
            }
            Call::ChangeDirectoryTo if ended.result == 0 => {
                let path = self.path_of_descriptor(ended.thread, ended.descriptor(0));
                self.set_directory(ended.thread, &path.unwrap_or_default());
            }
            Call::MakeOther => self.make_other(ended, ended.result as i32),
            Call::MakePair(_) if ended.result == 0 => {
                let pair = ended.pointed.unwrap_or(u64::MAX);
                self.make_other(ended, pair as i32);
                self.make_other(ended, (pair >> 32) as i32);
            }
            _ => {}
        }
    }

    /// The processor time of a call that made no event belongs to the gap before the next.
    fn without_event(&mut self, ended: &Ended) {
        let Some(known) = self.processes.threads.get_mut(&ended.thread) else { return };
        let in_call_ns = ended.end_ns.saturating_sub(ended.start_ns);
        known.pending_cpu_ns += ended.cpu_gap_ns.map_or(0, |gap_ns| gap_ns + in_call_ns);
    }

    fn set_directory(&mut self, thread: u32, path: &str) {
        if let Some(process) = self.processes.of_thread(thread) {
            process.directory = absolute(&process.directory, path);
        }
    }

    fn make_other(&mut self, ended: &Ended, descriptor: i32) {
        if descriptor < 0 {
            return;
        }
        let file = self.files.other();
        let made = self.describe(file, 0);
        self.install(ended, descriptor, made, false);
    }

    fn install(&mut self, ended: &Ended, descriptor: i32, made: Shared, closes_on_exec: bool) {
        if let Some(process) = self.processes.of_thread(ended.thread) {
            let mut descriptors = process.descriptors.borrow_mut();
            descriptors.install(descriptor, made, closes_on_exec, ended.end_ns);
        }
    }

    fn path_of_descriptor(&mut self, thread: u32, descriptor: i32) -> Option<String> {
        let file = self.description(thread, descriptor)?.borrow().file;
        Some(self.files.path(file)?.as_ref().to_owned())
    }

    /// A path of a call, made whole; `None` where it is not known.
    fn whole_path(
        &mut self,
        ended: &Ended,
        directory: Option<Argument>,
        path: &[u8],
    ) -> Option<String> {
        let path = String::from_utf8_lossy(path);
        let start = match directory.map(|directory| ended.descriptor(directory)) {
            _ if path.starts_with('/') => String::new(),
            None | Some(libc::AT_FDCWD) => {
                self.processes.of_thread(ended.thread)?.directory.clone()
            }
            Some(descriptor) => self.path_of_descriptor(ended.thread, descriptor)?,
        };
        (!path.is_empty() || directory.is_some()).then(|| absolute(&start, &path))
    }

    fn transfer(&mut self, ended: &Ended, transfer: Transfer) -> Written {
        let length = ended.done();
        let totals = &mut self.totals;
        let (count, total) = match transfer.op {
            Op::Write => (&mut totals.writes, &mut totals.written),
            _ => (&mut totals.reads, &mut totals.read),
        };
        *count += 1;
        *total += length;
        let asked = transfer.asked.map(|asked| ended.argument(asked));
        let Some(found) = self.description(ended.thread, ended.descriptor(0)) else {
            let at = Target { length, asked, ..Target::default() };
            return self.call_event(ended, transfer.op, at);
        };
        let own = transfer.flags.map_or(0, |flags| ended.argument(flags));
        let explicit = transfer.offset.map(|offset| ended.argument(offset));
        // `preadv2` takes the position where the offset is -1.
        let explicit = explicit.filter(|offset| transfer.flags.is_none() || *offset != u64::MAX);
        let (offset, implicit) = self.place(&found, (transfer.op, length), explicit, own);
        let found = found.borrow();
        let mut flags = flags_of(found.flags).with(implicit);
        for (bits, flag) in [(RWF_SYNC, Flags::SYNC), (RWF_NOWAIT, Flags::NOWAIT)] {
            flags = if own & bits != 0 { flags.with(flag) } else { flags };
        }
        let at = Target {
            handle: found.handle,
            file: found.file,
            offset,
            length,
            asked,
            flags,
            other: 0,
        };
        self.call_event(ended, transfer.op, at)
    }

    /// Where bytes went or came from: at an offset, or at the position where there is none. Moves
    /// the position and the end of the file.
    fn place(
        &mut self,
        found: &RefCell<Description>,
        (op, length): (Op, u64),
        explicit: Option<u64>,
        own_flags: u64,
    ) -> (u64, Flags) {
        let mut found = found.borrow_mut();
        let known = self.files.get(found.file);
        known.is_touched = true;
        if found.kind == FileKind::Other {
            return (0, Flags::IMPLICIT_OFFSET);
        }
        let appends = found.flags & libc::O_APPEND != 0 || own_flags & RWF_APPEND != 0;
        let offset = match explicit {
            _ if op == Op::Write && appends => known.bytes,
            Some(offset) => offset,
            None => found.position,
        };
        if explicit.is_none() {
            found.position = offset + length;
        }
        if op == Op::Write {
            known.bytes = known.bytes.max(offset + length);
        }
        let implicit = if explicit.is_none() { Flags::IMPLICIT_OFFSET } else { Flags::default() };
        (offset, implicit)
    }

    fn open(
        &mut self,
        ended: &Ended,
        directory: Option<Argument>,
        flags: Option<Argument>,
    ) -> Written {
        let path = self.whole_path(ended, directory, ended.path);
        let open_flags = flags.map_or_else(
            || ended.made.map_or(0, |made| made.flags.cast_signed()),
            |flags| ended.argument(flags) as i32,
        );
        if ended.result < 0 {
            let is_missing = ended.result == -i64::from(libc::ENOENT);
            let op = if is_missing { Op::LookupNeg } else { Op::Open };
            let file = path.map_or(0, |path| self.files.named(&path));
            return self.call_event(ended, op, Target { file, ..Target::default() });
        }
        let file = match (&ended.made, path.as_deref()) {
            (Some(made), path) => self.files.opened(path, made),
            (None, Some(path)) => self.files.named(path),
            (None, None) => self.files.other(),
        };
        if open_flags & libc::O_TRUNC != 0 {
            self.files.get(file).bytes = 0;
        }
        let made = self.describe(file, open_flags);
        let handle = made.borrow().handle;
        self.install(ended, ended.result as i32, made, open_flags & libc::O_CLOEXEC != 0);
        let is_new = ended.made.is_some_and(|made| made.created);
        let op = if is_new { Op::Create } else { Op::Open };
        let flags = flags_of(open_flags);
        self.call_event(ended, op, Target { handle, file, flags, ..Target::default() })
    }

    fn close(&mut self, ended: &Ended) -> Written {
        let Some(process) = self.processes.of_thread(ended.thread) else { return Ok(()) };
        let closed = process.descriptors.borrow_mut().close(ended.descriptor(0), ended.start_ns);
        let at = closed.map_or_else(Target::default, |closed| {
            let closed = closed.borrow();
            Target { handle: closed.handle, file: closed.file, ..Target::default() }
        });
        self.call_event(ended, Op::Close, at)
    }

    fn close_range(&mut self, ended: &Ended) {
        let (first, last) = (ended.argument(0) & 0xffff_ffff, ended.argument(1) & 0xffff_ffff);
        let flags = ended.argument(2);
        let Some(process) = self.processes.of_thread(ended.thread) else { return };
        if flags & CLOSE_RANGE_UNSHARE != 0 {
            let own = process.descriptors.borrow().clone();
            process.descriptors = Rc::new(RefCell::new(own));
        }
        let mut descriptors = process.descriptors.borrow_mut();
        if flags & CLOSE_RANGE_CLOEXEC != 0 {
            descriptors.range_closes_on_exec(first, last);
        } else {
            descriptors.close_range(first, last, ended.start_ns);
        }
    }

    fn duplicate(&mut self, ended: &Ended, closes_on_exec: bool) {
        if ended.result < 0 {
            return;
        }
        if let Some(found) = self.description(ended.thread, ended.descriptor(0)) {
            self.install(ended, ended.result as i32, found, closes_on_exec);
        }
    }

    fn control(&mut self, ended: &Ended) -> Written {
        let (descriptor, argument) = (ended.descriptor(0), ended.argument(2) as i32);
        match ended.argument(1) as i32 {
            libc::F_DUPFD => self.duplicate(ended, false),
            libc::F_DUPFD_CLOEXEC => self.duplicate(ended, true),
            libc::F_SETFD => {
                if let Some(process) = self.processes.of_thread(ended.thread) {
                    let closes = argument & libc::FD_CLOEXEC != 0;
                    process.descriptors.borrow_mut().set_closes_on_exec(descriptor, closes);
                }
            }
            libc::F_SETFL => {
                if let Some(found) = self.description(ended.thread, descriptor) {
                    const CHANGED: i32 = libc::O_APPEND | libc::O_DIRECT;
                    let mut found = found.borrow_mut();
                    found.flags = found.flags & !CHANGED | argument & CHANGED;
                }
            }
            libc::F_SETLK | libc::F_SETLKW | libc::F_OFD_SETLK | libc::F_OFD_SETLKW => {
                return self.on_descriptor(ended, Op::Lock);
            }
            _ => {}
        }
        self.without_event(ended);
        Ok(())
    }

    fn on_descriptor(&mut self, ended: &Ended, op: Op) -> Written {
        let found = self.description(ended.thread, ended.descriptor(0));
        let mut at = found.map_or_else(Target::default, |found| {
            let found = found.borrow();
            let flags = flags_of(found.flags);
            Target { handle: found.handle, file: found.file, flags, ..Target::default() }
        });
        let mut op = op;
        match op {
            Op::Sync | Op::Dsync => self.totals.syncs += 1,
            Op::Readdir => at.length = ended.done() / ENTRY_BYTES,
            Op::Trunc => {
                at.length = ended.argument(1);
                if at.file != 0 && ended.result == 0 {
                    self.files.get(at.file).bytes = at.length;
                }
            }
            Op::Rsync => (at.offset, at.length) = (ended.argument(1), ended.argument(2)),
            Op::Advise => {
                (at.offset, at.length) = (ended.argument(1), ended.argument(2));
                at.other = ended.argument(3);
            }
            Op::Falloc => {
                let mode = ended.argument(1) as i32;
                (at.offset, at.length) = (ended.argument(2), ended.argument(3));
                if mode & libc::FALLOC_FL_PUNCH_HOLE != 0 {
                    op = Op::Punch;
                }
                if at.file != 0 && ended.result == 0 && mode & libc::FALLOC_FL_KEEP_SIZE == 0 {
                    let known = self.files.get(at.file);
                    known.bytes = known.bytes.max(at.offset + at.length);
                }
            }
            _ => {}
        }
        self.call_event(ended, op, at)
    }

    fn path(&mut self, ended: &Ended, op: Op, place: PathArgument) -> Written {
        // Without a path, `fstatat` and its kin are about the descriptor itself.
        if ended.path.is_empty() && place.directory == Some(0) && ended.result >= 0 {
            return self.on_descriptor(ended, op);
        }
        let path = self.whole_path(ended, place.directory, ended.path);
        if ended.result == -i64::from(libc::ENOENT) {
            let file = path.map_or(0, |path| self.files.named(&path));
            return self.call_event(ended, Op::LookupNeg, Target { file, ..Target::default() });
        }
        let removes_directory = op == Op::Unlink
            && place.directory.is_some()
            && ended.argument(2) as i32 & libc::AT_REMOVEDIR != 0;
        let op = if removes_directory { Op::Rmdir } else { op };
        let is_done = ended.result >= 0;
        let file = match path {
            None => 0,
            Some(path) if is_done && matches!(op, Op::Unlink | Op::Rmdir) => {
                self.files.removed(&path)
            }
            Some(path) => self.files.named(&path),
        };
        let mut at = Target { file, ..Target::default() };
        if file != 0 && is_done {
            let known = self.files.get(file);
            match op {
                Op::Mkdir | Op::Rmdir => known.kind = FileKind::Directory,
                Op::Symlink | Op::Readlink if known.kind == FileKind::Regular => {
                    known.kind = FileKind::Symlink;
                }
                Op::Trunc => {
                    known.bytes = ended.argument(1);
                    at.length = known.bytes;
                }
                _ => {}
            }
        }
        self.call_event(ended, op, at)
    }

    fn two_paths(
        &mut self,
        ended: &Ended,
        op: Op,
        places: (PathArgument, PathArgument),
    ) -> Written {
        let from = self.whole_path(ended, places.0.directory, ended.path);
        let to = self.whole_path(ended, places.1.directory, ended.second_path);
        let (Some(from), Some(to)) = (from, to) else {
            return self.call_event(ended, op, Target::default());
        };
        let (file, other) = if op == Op::Rename && ended.result == 0 {
            self.files.renamed(&from, &to)
        } else {
            (self.files.named(&from), self.files.named(&to))
        };
        self.call_event(ended, op, Target { file, other: u64::from(other), ..Target::default() })
    }

    fn copy(&mut self, ended: &Ended, copy: Copy) -> Written {
        let length = ended.done();
        if copy.is_counted {
            self.totals.read += length;
            self.totals.written += length;
        }
        let from = self.description(ended.thread, ended.descriptor(copy.from));
        let to = self.description(ended.thread, ended.descriptor(copy.to));
        let (Some(from), Some(to)) = (from, to) else {
            return self.call_event(ended, Op::Sendfile, Target { length, ..Target::default() });
        };
        let has_offset = ended.argument(copy.offset) != 0;
        // The kernel has moved the offset on by what was copied.
        let offset = ended.pointed.filter(|_| has_offset).map(|after| after.wrapping_sub(length));
        let (offset, implicit) = self.place(&from, (Op::Read, length), offset, 0);
        self.place(&to, (Op::Write, length), None, 0);
        let (from, to) = (from.borrow(), to.borrow());
        let op = if to.kind == FileKind::Other { Op::Sendfile } else { Op::Copy };
        let at = Target {
            handle: from.handle,
            file: from.file,
            offset,
            length,
            flags: flags_of(from.flags).with(implicit),
            other: u64::from(to.file),
            ..Target::default()
        };
        self.call_event(ended, op, at)
    }

    fn map(&mut self, ended: &Ended) -> Written {
        let Some(found) = self.description(ended.thread, ended.descriptor(4)) else {
            self.without_event(ended);
            return Ok(());
        };
        let found = found.borrow();
        let (file, handle) = (found.file, found.handle);
        let (bytes, offset) = (ended.argument(1), ended.argument(5));
        if ended.argument(2) as i32 & libc::PROT_EXEC != 0 {
            self.mark_program(file);
        }
        self.files.get(file).is_touched = true;
        let mapping = Mapping { file, handle, offset, bytes };
        if let Some(process) = self.processes.of_thread(ended.thread).filter(|_| ended.result > 0) {
            process.mappings.insert(ended.done(), mapping);
        }
        // What may be done with the pages: programs are mapped to be run.
        let other = ended.argument(2);
        let at = Target { handle, file, offset, length: bytes, other, ..Target::default() };
        self.call_event(ended, Op::Mmap, at)
    }

    fn unmap(&mut self, ended: &Ended) -> Written {
        let (start, bytes) = (ended.argument(0), ended.argument(1));
        let gone = self.processes.of_thread(ended.thread).and_then(|process| {
            let within = process.mappings.range(start..start.saturating_add(bytes));
            let addresses: Vec<u64> = within.map(|(address, _)| *address).collect();
            addresses.into_iter().find_map(|address| process.mappings.remove(&address))
        });
        let Some(gone) = gone else {
            self.without_event(ended);
            return Ok(());
        };
        let Mapping { file, handle, offset, bytes } = gone;
        let at = Target { handle, file, offset, length: bytes, ..Target::default() };
        self.call_event(ended, Op::Munmap, at)
    }

    fn sync_map(&mut self, ended: &Ended) -> Written {
        let at = self.mapped(ended).unwrap_or_default();
        self.call_event(ended, Op::Msync, at)
    }

    /// Advice about a mapping decides what is read ahead of its faults. The read-ahead state of faults
    /// is that of stream and file: no handle. `MADV_DONTNEED` gives memory back, and no cached data.
    fn advise_map(&mut self, ended: &Ended) -> Written {
        let advice = ended.argument(2);
        let found = self.mapped(ended).filter(|_| advice <= libc::MADV_WILLNEED as u64);
        let Some(at) = found else {
            self.without_event(ended);
            return Ok(());
        };
        self.call_event(ended, Op::Advise, Target { handle: 0, other: advice, ..at })
    }

    /// The part of a mapping that a call names by its address.
    fn mapped(&mut self, ended: &Ended) -> Option<Target> {
        let (start, bytes) = (ended.argument(0), ended.argument(1));
        let process = self.processes.of_thread(ended.thread)?;
        let (address, mapping) = process.mappings.range(..=start).next_back()?;
        let (within, mapping) = (start - address, *mapping);
        (within < mapping.bytes.max(1)).then_some(Target {
            handle: mapping.handle,
            file: mapping.file,
            offset: mapping.offset + within,
            length: bytes.min(mapping.bytes),
            ..Target::default()
        })
    }
}
