//! What programs have said about how they read, and with that what faults of mapped files tell.

use std::collections::HashSet;

use super::{hash_of, pages_of};
use crate::character::pages::PageSet;
use crate::event::{Event, Op};

/// `POSIX_FADV_*` of <linux/fadvise.h>.
pub(super) mod advice {
    pub(in super::super) const NORMAL: u64 = 0;
    pub(in super::super) const RANDOM: u64 = 1;
    pub(in super::super) const SEQUENTIAL: u64 = 2;
    pub(in super::super) const WILLNEED: u64 = 3;
    pub(in super::super) const DONTNEED: u64 = 4;
}

/// Keys that belong to open files; others are of files.
const IS_HANDLE: u64 = 1 << 63;

/// So many pages are mapped by one fault (mm/memory.c, `fault_around_pages`).
const FAULT_AROUND_PAGES: u64 = 16;

/// The key under which the kernel keeps read-ahead and advice: the open file, or, for faults, the file that
/// is mapped. All threads of a process share a mapping and its advice.
pub(super) fn key_of(event: &Event) -> u64 {
    match event.handle {
        0 => u64::from(event.file),
        handle => u64::from(handle) | IS_HANDLE,
    }
}

/// Tells whether a fault also mapped pages around the touched one. The kernel maps those that are cached and
/// reads none (mm/filemap.c, `filemap_map_pages`). With read-around nearly all are cached, and later
/// uses leave no trace: all count as touched. With random advice most may never have been touched.
pub(super) fn maps_around(event: &Event) -> bool {
    let (_, pages) = pages_of(event.offset, event.length);
    event.op == Op::FaultR && (2..=FAULT_AROUND_PAGES).contains(&pages)
}

/// Pages of files that are mapped to be read here and there, as far as the trace shows which were touched.
#[derive(Clone, Debug, Default)]
pub(super) struct Scattered {
    keys: HashSet<u64>,
    files: HashSet<u32>,
    touched: PageSet,
}

impl Scattered {
    /// Learns from an event, before `touched_by` is asked about it.
    pub(super) fn see(&mut self, event: &Event) {
        if event.op == Op::Advise && event.error == 0 {
            match event.other {
                advice::RANDOM => {
                    self.keys.insert(key_of(event));
                    self.files.insert(event.file);
                }
                advice::NORMAL | advice::SEQUENTIAL => {
                    self.keys.remove(&key_of(event));
                }
                _ => {}
            }
        }
        let moves = matches!(event.op, Op::Read | Op::Write | Op::FaultR | Op::FaultW);
        if !moves || event.error != 0 || !self.files.contains(&event.file) {
            return;
        }
        if !self.is_sparse(event) {
            self.touched.insert_bytes(event.file, event.offset, event.length.max(1));
        } else if self.known_of(event).next().is_none() {
            // Cached by something that the trace does not show: one of them was touched, which is unknown.
            self.touched.insert_bytes(event.file, event.offset, 1);
        }
    }

    /// Pages that a fault touched: the first, and how many. Where reads are scattered, it is one; which of
    /// those that are known to be there is drawn.
    pub(super) fn touched_by(&self, fault: &Event) -> (u64, u64) {
        let all = pages_of(fault.offset, fault.length.max(1));
        if !self.is_sparse(fault) {
            return all;
        }
        let known: Vec<u64> = self.known_of(fault).collect();
        let drawn = hash_of(fault.file, fault.start_ns) % known.len().max(1) as u64;
        (known.get(drawn as usize).copied().unwrap_or(all.0), 1)
    }

    fn is_sparse(&self, event: &Event) -> bool {
        maps_around(event) && self.keys.contains(&key_of(event))
    }

    fn known_of(&self, fault: &Event) -> impl Iterator<Item = u64> {
        let (first, pages) = pages_of(fault.offset, fault.length);
        (first..first + pages).filter(|page| self.touched.contains(fault.file, *page))
    }
}

#[cfg(test)]
mod tests {
    use super::super::PAGE_BYTES;
    use super::*;

    fn fault(page: u64, pages: u64) -> Event {
        let (offset, length) = (page * PAGE_BYTES, pages * PAGE_BYTES);
        Event { file: 1, offset, length, ..Event::new(0, Op::FaultR) }
    }

    fn touched(advice: &[u64], faults: &[Event]) -> u64 {
        let mut scattered = Scattered::default();
        for &other in advice {
            scattered.see(&Event { file: 1, other, ..Event::new(0, Op::Advise) });
        }
        let mut touched = 0;
        for fault in faults {
            scattered.see(fault);
            touched += scattered.touched_by(fault).1;
        }
        touched
    }

    #[test]
    fn pages_mapped_around_a_fault_count_unless_reads_are_scattered() {
        let missed = [fault(5, 1), fault(0, 16), fault(9, 1), fault(0, 16)];
        assert_eq!(touched(&[], &missed), 1 + 16 + 1 + 16);
        assert_eq!(touched(&[advice::RANDOM, advice::SEQUENTIAL], &missed), 34);
        assert_eq!(touched(&[advice::RANDOM], &missed), 4);
        // Advice of one thread holds for another's faults.
        let others = missed.map(|fault| Event { stream: 7, ..fault });
        assert_eq!(touched(&[advice::RANDOM], &others), 4);
        // All were cached before the trace begins.
        assert_eq!(touched(&[advice::RANDOM], &[fault(0, 16), fault(16, 16)]), 2);
    }

    /// Pages 3, 5 and 9 of a window were read one by one. A hundred faults that map the window draw each of
    /// them, and no other page.
    #[test]
    fn a_page_is_drawn_of_those_that_are_known() {
        let mut scattered = Scattered::default();
        scattered.see(&Event { file: 1, other: advice::RANDOM, ..Event::new(0, Op::Advise) });
        for page in [3, 5, 9] {
            scattered.see(&fault(page, 1));
        }
        let drawn = |start_ns| scattered.touched_by(&Event { start_ns, ..fault(0, 16) }).0;
        let all: HashSet<u64> = (0..100).map(drawn).collect();
        assert_eq!(all, HashSet::from([3, 5, 9]));
    }
}
