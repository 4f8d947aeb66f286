//! Reads through the cache: mm/filemap.c, `filemap_read` and `filemap_fault`, with read-ahead.

use super::super::PAGE_BYTES;
use super::PageCache;
use super::folios::{FolioId, flag};
use super::memory::Why;
use super::read_ahead::{Ask, Window};

/// Folios that a read takes at a time (include/linux/pagevec.h, `PAGEVEC_SIZE`).
const BATCH: usize = 31;

/// The largest folio of the page cache, as a power of two of pages (`MAX_PAGECACHE_ORDER`: 2 MiB).
pub(super) const ORDER_MAX: u8 = 9;

/// How a call touches the pages it reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    /// `read` and its kin: a folio that the read before ended in is not touched again.
    Call,
    /// `sendfile`, `copy_file_range` and their kin (`filemap_splice_read`): by pieces of a pipe's
    /// length, and each piece touches.
    Splice,
}

/// Bytes that a pipe holds by default (fs/pipe.c, `PIPE_DEF_BUFFERS`: 16 pages).
pub(super) const PIPE_BYTES: u64 = 16 * PAGE_BYTES;

impl PageCache {
    /// Reads bytes of a file; `key` names the open file that has the read-ahead state.
    pub(super) fn read(&mut self, file: u32, key: u64, range: (u64, u64), touch: Touch) {
        let (offset, asked) = range;
        let end = offset.saturating_add(asked).min(self.files.length(file));
        if offset >= end {
            return;
        }
        let mut window = self.window(file, key);
        self.tally(file, &window, offset, end);
        if !self.settings.policy.is_kernels() {
            self.read_plainly(file, offset, end);
            window.previous_end = Some(end);
        } else if touch == Touch::Call {
            self.read_call(file, &mut window, range, touch);
        } else {
            let mut at = offset;
            while at < end {
                let piece = (end - at).min(PIPE_BYTES);
                self.read_call(file, &mut window, (at, piece), touch);
                at += piece;
            }
        }
        self.windows.insert(key, window);
    }

    /// The read-ahead state of an open file, new where it has none yet.
    pub(super) fn window(&self, file: u32, key: u64) -> Window {
        let known = self.windows.get(&key).copied();
        known.unwrap_or_else(|| Window { pages: self.read_ahead_of(file), ..Window::default() })
    }

    pub(super) fn read_ahead_of(&self, file: u32) -> u64 {
        self.files.read_ahead(file).unwrap_or(self.settings.read_ahead_pages)
    }

    /// Counts what is there before the read.
    fn tally(&mut self, file: u32, window: &Window, offset: u64, end: u64) {
        let (mut hits, mut misses) = (0, 0);
        for page in offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES) {
            if self.holds(file, page) { hits += 1 } else { misses += 1 }
        }
        let is_sequential = window.previous_end == Some(offset);
        let totals = &mut self.totals;
        if is_sequential {
            totals.sequential_hits += hits;
            totals.sequential_misses += misses;
        } else {
            totals.random_hits += hits;
            totals.random_misses += misses;
        }
    }

    /// Page by page, without read-ahead: LRU and FIFO.
    fn read_plainly(&mut self, file: u32, offset: u64, end: u64) {
        for page in offset / PAGE_BYTES..end.div_ceil(PAGE_BYTES) {
            let id = match self.memory.folio_at(file, page) {
                Some(id) => id,
                None => self.read_page(file, page, 0),
            };
            self.memory.mark_accessed(id);
        }
    }

    /// `filemap_read`.
    fn read_call(&mut self, file: u32, window: &mut Window, range: (u64, u64), touch: Touch) {
        let (mut at, asked) = range;
        let end = at.saturating_add(asked).min(self.files.length(file));
        let last_index = at.saturating_add(asked).div_ceil(PAGE_BYTES);
        let mut previous_end = window.previous_end;
        while at < end {
            let batch = self.get_pages(file, window, at / PAGE_BYTES, last_index);
            for (i, id) in batch.iter().enumerate() {
                let folio = *self.memory.folios.get(*id);
                if folio.first * PAGE_BYTES >= end {
                    break;
                }
                let is_in = |byte: u64| (folio.first..folio.end()).contains(&(byte / PAGE_BYTES));
                let is_same = previous_end.is_some_and(|end| end > 0 && is_in(end - 1));
                if i > 0 || !is_same || touch == Touch::Splice {
                    self.memory.mark_accessed(*id);
                }
                at = (folio.end() * PAGE_BYTES).min(end);
                previous_end = Some(at);
            }
            for id in batch {
                self.memory.folios.clear(id, flag::PINNED);
            }
        }
        window.previous_end = previous_end;
    }

    /// `filemap_get_pages`: folios from `index` on that are there, after a read where none was; in use
    /// from now on.
    fn get_pages(
        &mut self,
        file: u32,
        window: &mut Window,
        index: u64,
        last_index: u64,
    ) -> Vec<FolioId> {
        if self.memory.folio_at(file, index).is_none() {
            self.read_missing(file, window, index, last_index - index);
        }
        let mut batch = Vec::with_capacity(1);
        let mut page = index;
        while batch.len() < BATCH && page < last_index {
            let Some(id) = self.memory.folio_at(file, page) else { break };
            batch.push(id);
            self.memory.folios.set(id, flag::PINNED);
            let folio = *self.memory.folios.get(id);
            page = folio.end();
            if folio.has(flag::READAHEAD) {
                self.reach_mark(id, window, last_index - folio.first);
                break;
            }
        }
        batch
    }

    /// `page_cache_sync_ra`; where that brings nothing (`filemap_create_folio`), the page alone.
    fn read_missing(&mut self, file: u32, window: &mut Window, index: u64, request: u64) {
        let request_pages = self.settings.request_pages;
        let ask = window
            .miss(index, request, request_pages, |most| self.cached_before(file, index, most));
        self.carry_out(file, window, index, ask);
        if self.memory.folio_at(file, index).is_none() {
            self.read_page(file, index, 0);
        }
    }

    /// `filemap_readahead`.
    fn reach_mark(&mut self, id: FolioId, window: &mut Window, request: u64) {
        self.memory.folios.clear(id, flag::READAHEAD);
        let folio = *self.memory.folios.get(id);
        let request_pages = self.settings.request_pages;
        let place = (folio.first, folio.pages());
        let ask = window.mark(place, request, request_pages, |from, most| {
            (from..from + most).find(|page| !self.holds(folio.file, *page)).unwrap_or(from + most)
        });
        if let Some(ask) = ask {
            self.carry_out(folio.file, window, folio.first, ask);
        }
    }

    /// Pages before `index` that are there without a gap, `most` places being looked at
    /// (`page_cache_prev_miss`), and whether they begin with the file.
    fn cached_before(&self, file: u32, index: u64, most: u64) -> (u64, bool) {
        let looked = index.saturating_sub(most)..index;
        let gap = looked.clone().rev().find(|page| !self.holds(file, *page));
        match gap {
            Some(gap) => (index - gap - 1, false),
            None if index < most => (index, true),
            // The last place that was looked at counts as the gap.
            None => (most - 1, false),
        }
    }

    fn carry_out(&mut self, file: u32, window: &mut Window, index: u64, ask: Ask) {
        match ask {
            Ask::Plain(pages) => self.read_range(file, index, pages, 0),
            Ask::Window if self.settings.large_folios => self.read_window(file, window),
            Ask::Window => {
                window.order = 0;
                self.read_range(file, window.start, window.size, window.async_size);
            }
        }
    }

    /// `page_cache_ra_order`: the window in folios as large as may be, down to the first page that is
    /// there already; the rest page by page.
    fn read_window(&mut self, file: u32, window: &mut Window) {
        let Some(last) = self.files.length(file).checked_sub(1).map(|byte| byte / PAGE_BYTES)
        else {
            return;
        };
        window.cap_order(ORDER_MAX);
        let limit = last.min(window.start + window.size - 1);
        let mark = window.start + window.size - window.async_size.min(window.size);
        let mut index = window.start;
        while index <= limit {
            let mut order = window.order.min(index.trailing_zeros() as u8);
            while order > 0 && index + (1 << order) - 1 > limit {
                order -= 1;
            }
            if (index..index + (1 << order)).any(|page| self.holds(file, page)) {
                let done = index - window.start;
                self.read_range(file, index, window.size - done, window.async_size);
                return;
            }
            let id = self.read_page(file, index, order);
            if index == mark & !((1 << order) - 1) {
                self.memory.folios.set(id, flag::READAHEAD);
            }
            index += 1 << order;
        }
    }

    /// `do_page_cache_ra`: single pages that are not there yet, the mark so many from the end.
    fn read_range(&mut self, file: u32, index: u64, pages: u64, from_end: u64) {
        let left = self.files.length(file).div_ceil(PAGE_BYTES).saturating_sub(index);
        let pages = pages.min(left);
        let mark = if from_end <= pages { index + pages - from_end } else { u64::MAX };
        for page in index..index + pages {
            if self.holds(file, page) {
                continue;
            }
            let id = self.read_page(file, page, 0);
            if page == mark {
                self.memory.folios.set(id, flag::READAHEAD);
            }
        }
    }

    /// Reads a folio from storage.
    fn read_page(&mut self, file: u32, first: u64, order: u8) -> FolioId {
        self.totals.read += 1 << order;
        self.memory.insert(file, first, order, Why::Read)
    }

    /// Touches a page through a mapping.
    pub(super) fn fault(&mut self, file: u32, key: u64, page: u64) {
        if !self.settings.policy.is_kernels() {
            let read = self.totals.read;
            self.read_plainly(file, page * PAGE_BYTES, (page + 1) * PAGE_BYTES);
            self.totals.read_mapped += self.totals.read - read;
            return;
        }
        let mut window = self.window(file, key);
        let read = self.totals.read;
        self.memory.in_fault = true;
        if let Some(id) = self.memory.folio_at(file, page) {
            // `do_async_mmap_readahead`.
            window.mapped_misses = window.mapped_misses.saturating_sub(1);
            if self.memory.folios.get(id).has(flag::READAHEAD) {
                let request = window.pages;
                self.reach_mark(id, &mut window, request);
            }
        } else {
            let ask = window.fault(page);
            self.carry_out(file, &mut window, page, ask);
        }
        let id = match self.memory.folio_at(file, page) {
            Some(id) => id,
            None => self.read_page(file, page, 0),
        };
        self.memory.in_fault = false;
        self.memory.folios.set(id, flag::YOUNG);
        self.totals.read_mapped += self.totals.read - read;
        self.windows.insert(key, window);
    }

    /// Reads pages because somebody said that they will be needed (mm/readahead.c,
    /// `force_page_cache_ra`).
    pub(super) fn will_need(&mut self, file: u32, first: u64, pages: u64) {
        let most = self.read_ahead_of(file).max(self.settings.request_pages);
        self.read_range(file, first, pages.min(most), 0);
    }
}
