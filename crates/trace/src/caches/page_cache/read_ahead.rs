//! How far to read ahead: the arithmetic of mm/readahead.c (Linux 6.18), without pages.

/// Read-ahead where the device says nothing else, pages: 128 KiB (`VM_READAHEAD_PAGES` in
/// include/linux/mm.h).
pub(super) const PAGES: u64 = 32;

/// The largest request of a device that says nothing else, pages: 4 MiB (`BLK_DEF_MAX_SECTORS_CAP` in
/// block/blk.h).
pub(super) const REQUEST_PAGES: u64 = 1024;

/// Each read-ahead that follows another takes folios larger by so much, as a power of two
/// (`page_cache_async_ra`).
const ORDER_STEP: u8 = 2;

/// The read-ahead state of an open file (`struct file_ra_state`), in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    /// Where the window of the read-ahead before began, and how long it was.
    pub(super) start: u64,
    pub(super) size: u64,
    /// So many pages from its end, the next one is started.
    pub(super) async_size: u64,
    /// Folios have 2^`order` pages at most.
    pub(super) order: u8,
    /// The longest window.
    pub(super) pages: u64,
    /// Byte after the read before; `None` before the first.
    pub(super) previous_end: Option<u64>,
    /// `POSIX_FADV_RANDOM`.
    pub(super) is_random: bool,
    /// Faults that found nothing, less those that did (`mmap_miss`).
    pub(super) mapped_misses: u64,
}

/// What a read that found nothing asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// The window that it now has, with a mark in it.
    Window,
    /// These pages and no more, and no mark.
    Plain(u64),
}

impl Window {
    /// The longest window for a request (`ractl_max_pages`).
    fn longest(&self, request: u64, request_pages: u64) -> u64 {
        if request > self.pages && request_pages > self.pages {
            request.min(request_pages)
        } else {
            self.pages
        }
    }

    /// Nothing is there at `index`, of `request` pages (`page_cache_sync_ra`). `cached_before` says how
    /// many pages before `index` are there without a gap, counting so far as it is told, and whether
    /// the file's first page is among them.
    pub(super) fn miss(
        &mut self,
        index: u64,
        request: u64,
        request_pages: u64,
        cached_before: impl FnOnce(u64) -> (u64, bool),
    ) -> Ask {
        if self.pages == 0 {
            return Ask::Plain(1);
        }
        if self.is_random {
            // `force_page_cache_ra`.
            return Ask::Plain(request.min(self.pages.max(request_pages)));
        }
        let longest = self.longest(request, request_pages);
        let follows = self
            .previous_end
            .is_some_and(|end| index.wrapping_sub(end / super::super::PAGE_BYTES) <= 1);
        self.order = 0;
        if index == 0 || request > longest || follows {
            self.start = index;
            self.size = first_size(request, longest);
            self.async_size =
                if self.size > request { self.size - request } else { self.size >> 1 };
            return Ask::Window;
        }
        let (mut cached, from_start) = cached_before(longest);
        if cached <= request {
            return Ask::Plain(request);
        }
        if from_start {
            cached *= 2;
        }
        self.start = index;
        self.size = (cached + request).min(longest);
        self.async_size = 1;
        Ask::Window
    }

    /// A marked folio was reached (`page_cache_async_ra`): the next window, if any. `next_gap` finds the
    /// first page from one on that is not there, looking so far as it is told.
    pub(super) fn mark(
        &mut self,
        folio: (u64, u64),
        request: u64,
        request_pages: u64,
        next_gap: impl FnOnce(u64, u64) -> u64,
    ) -> Option<Ask> {
        let (index, folio_pages) = folio;
        if self.pages == 0 {
            return None;
        }
        let longest = self.longest(request, request_pages);
        let mark = (self.start + self.size).saturating_sub(self.async_size);
        if index == mark & !(folio_pages - 1) {
            self.start += self.size;
            self.size = self.size.max(next_size(self.size, longest));
        } else {
            let gap = next_gap(index + 1, longest);
            if gap - index > longest {
                return None;
            }
            self.start = gap;
            self.size = next_size(gap - index + request, longest);
        }
        self.order += ORDER_STEP;
        let align = 1_u64 << self.order.min(longest.trailing_zeros() as u8);
        let end = self.start + self.size;
        let aligned = end & !(align - 1);
        if aligned > self.start {
            self.size -= end - aligned;
        }
        self.async_size = self.size;
        Some(Ask::Window)
    }

    /// Folios no larger than the window or the filesystem's largest (`page_cache_ra_order`).
    pub(super) fn cap_order(&mut self, order_max: u8) {
        self.order = self.order.min(order_max).min(self.size.max(1).ilog2() as u8);
    }

    /// A mapped page is not there (mm/filemap.c, `do_sync_mmap_readahead`): the window around it, or
    /// that page alone where mappings are touched here and there.
    pub(super) fn fault(&mut self, index: u64) -> Ask {
        /// `MMAP_LOTSAMISS`.
        const MANY: u64 = 100;
        self.mapped_misses = (self.mapped_misses + 1).min(10 * MANY);
        // `VM_RAND_READ` reads nothing around.
        if self.pages == 0 || self.is_random || self.mapped_misses > MANY {
            return Ask::Plain(1);
        }
        self.start = index.saturating_sub(self.pages / 2);
        self.size = self.pages;
        self.async_size = self.pages / 4;
        self.order = 0;
        Ask::Window
    }
}

/// The first window (`get_init_ra_size`): the request's size, rounded up, four times or twice that.
fn first_size(request: u64, longest: u64) -> u64 {
    let size = request.max(1).next_power_of_two();
    if size <= longest / 32 {
        size * 4
    } else if size <= longest / 4 {
        size * 2
    } else {
        longest
    }
}

/// The window after one of this size (`get_next_ra_size`): four times or twice that.
fn next_size(size: u64, longest: u64) -> u64 {
    if size < longest / 16 {
        size * 4
    } else if size <= longest / 2 {
        size * 2
    } else {
        longest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window() -> Window {
        Window { pages: 32, ..Window::default() }
    }

    #[test]
    fn a_sequential_reader_gets_windows_that_grow_and_end_where_large_folios_do() {
        let mut window = window();
        assert_eq!(window.miss(0, 1, 1024, |_| (0, false)), Ask::Window);
        assert_eq!((window.start, window.size, window.async_size), (0, 4, 3));
        for (start, size) in
            [(4, 8), (12, 4), (16, 8), (24, 8), (32, 16), (48, 16), (64, 32), (96, 32)]
        {
            let mark = window.start + window.size - window.async_size;
            assert_eq!(window.mark((mark, 1), 1, 1024, |_, _| 0), Some(Ask::Window));
            assert_eq!((window.start, window.size, window.async_size), (start, size, size));
            window.cap_order(9);
        }
    }

    #[test]
    fn a_lone_read_takes_what_it_asked_for_and_one_beside_cached_pages_takes_more() {
        let mut window = Window { previous_end: Some(4096), ..window() };
        assert_eq!(window.miss(100, 2, 1024, |_| (2, false)), Ask::Plain(2));
        assert_eq!(window.miss(100, 2, 1024, |_| (5, false)), Ask::Window);
        assert_eq!((window.start, window.size, window.async_size), (100, 7, 1));
        assert_eq!(window.miss(3, 1, 1024, |_| (3, true)), Ask::Window);
        assert_eq!(window.size, 7);
    }

    #[test]
    fn random_advice_reads_the_request_and_no_more() {
        let mut window = Window { is_random: true, ..window() };
        assert_eq!(window.miss(0, 4, 1024, |_| (31, true)), Ask::Plain(4));
        assert_eq!(window.miss(0, 4000, 1024, |_| (31, true)), Ask::Plain(1024));
    }
}
