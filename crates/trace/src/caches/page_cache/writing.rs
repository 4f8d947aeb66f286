//! Writes through the cache: mm/filemap.c, `generic_perform_write`, on a filesystem with blocks of a
//! page.

use super::super::PAGE_BYTES;
use super::PageCache;
use super::folios::FolioId;
use super::memory::Why;
use super::reading::ORDER_MAX;

/// Bytes that are written to one folio at most (`mapping_max_folio_size`).
const PIECE_BYTES: u64 = PAGE_BYTES << ORDER_MAX;

impl PageCache {
    /// Writes bytes of a file. Pages that are not there and are written in part are read first; those
    /// beyond the end of the file are new.
    pub(super) fn write(&mut self, file: u32, offset: u64, length: u64) {
        let end = offset.saturating_add(length);
        let old_end = self.files.length(file);
        let mut at = offset;
        while at < end {
            let piece = (PIECE_BYTES - at % PIECE_BYTES).min(end - at);
            let page = at / PAGE_BYTES;
            let (id, is_new) = match self.memory.folio_at(file, page) {
                Some(id) => (id, false),
                None => (self.make_folio(file, page, piece), true),
            };
            let stop = end.min(self.memory.folios.get(id).end() * PAGE_BYTES);
            if is_new {
                self.totals.read += pages_in_part(at, stop, old_end);
            }
            self.memory.mark_written(id);
            self.memory.mark_dirty(id);
            at = stop;
        }
        self.files.reach(file, end);
    }

    /// A folio as large as the write, where it is aligned and nothing is in the way
    /// (include/linux/pagemap.h, `fgf_set_order`; mm/filemap.c, `__filemap_get_folio`).
    fn make_folio(&mut self, file: u32, page: u64, bytes: u64) -> FolioId {
        let mut order = (bytes / PAGE_BYTES).max(1).ilog2() as u8;
        order = order.min(ORDER_MAX).min(page.trailing_zeros() as u8);
        if !self.settings.large_folios || !self.settings.policy.is_kernels() {
            order = 0;
        }
        while (page..page + (1 << order)).any(|page| self.holds(file, page)) {
            order -= 1;
        }
        self.memory.insert(file, page, order, Why::Write)
    }
}

/// Pages of a new folio that a write covers only in part and that hold data.
fn pages_in_part(start: u64, stop: u64, old_end: u64) -> u64 {
    let first = start / PAGE_BYTES;
    let last = (stop - 1) / PAGE_BYTES;
    let holds_data = |page: u64| page * PAGE_BYTES < old_end;
    let head = !start.is_multiple_of(PAGE_BYTES) && holds_data(first);
    let tail = !stop.is_multiple_of(PAGE_BYTES) && holds_data(last);
    if first == last { u64::from(head || tail) } else { u64::from(head) + u64::from(tail) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_with_data_that_are_written_in_part_are_read() {
        for (start, stop, old_end, pages) in [
            (0, 4096, 8192, 0),
            (500, 600, 8192, 1),
            (500, 600, 400, 1),
            (4096, 4100, 4096, 0),
            (4120, 8240, 4120, 1),
            (100, 8292, 100_000, 2),
            (0, 100, 0, 0),
        ] {
            assert_eq!(pages_in_part(start, stop, old_end), pages, "{start}..{stop} of {old_end}");
        }
    }
}
