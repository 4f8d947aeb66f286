//! What the recording adds up to, to be held against what the kernel counted.

use std::collections::HashMap;

use super::files::Inode;
use crate::observed::Counts;

/// Bytes that the kernel itself reads for each program that is started: the headers of program and
/// loader, which stand in `rchar` without any call. At most these.
const PROGRAM_HEADER_BYTES: u64 = 4096;

/// Sums over a recording.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    /// Events that are calls or requests.
    pub(crate) calls: u64,
    /// Calls that read bytes, and those that write some.
    pub(crate) reads: u64,
    pub(crate) writes: u64,
    /// Bytes of calls that the kernel adds to `rchar`.
    pub(crate) read: u64,
    /// Bytes of calls that the kernel adds to `wchar`.
    pub(crate) written: u64,
    /// Syncs.
    pub(crate) syncs: u64,
    /// Programs that were started.
    pub(crate) programs: u64,
    /// Processor time of threads that ended.
    pub(crate) cpu_ns: u64,
    /// True where the tracer sees pages enter the page cache.
    pub(crate) sees_pages: bool,
    /// By the kernel.
    pub(crate) counted: Counts,
    /// What threads had been counted for when the recording reached them.
    before: HashMap<u32, Counts>,
    inserted: HashMap<Inode, u64>,
}

impl Totals {
    /// A thread had been counted for this when the recording reached it.
    pub(crate) fn begin(&mut self, thread: u32, counts: Counts) {
        self.before.insert(thread, counts);
    }

    /// What the kernel has counted for a thread all its life.
    pub(crate) fn count(&mut self, thread: u32, counts: Counts) {
        let before = self.before.remove(&thread).unwrap_or_default();
        self.counted = self.counted.plus(counts.since(before));
    }

    /// Pages of a file entered the page cache.
    pub(crate) fn inserted(&mut self, inode: Inode, pages: u64) {
        *self.inserted.entry(inode).or_default() += pages;
    }

    /// True where pages of a file had to come in; `None` where the tracer does not see that.
    pub(crate) fn was_inserted(&self, inode: &Inode) -> Option<bool> {
        self.sees_pages.then(|| self.inserted.contains_key(inode))
    }

    /// Pages that entered the page cache, and those of them that nothing explains.
    pub(crate) fn pages(&self, explains: impl Fn(&Inode) -> bool) -> (u64, u64) {
        let all = self.inserted.values().sum();
        let unexplained = self.inserted.iter().filter(|(inode, _)| !explains(inode));
        (all, unexplained.map(|(_, pages)| pages).sum())
    }

    /// Bytes by which the kernel's count and that of the recorded calls differ.
    pub(crate) fn bytes_unexplained(&self) -> u64 {
        let headers = self.programs * PROGRAM_HEADER_BYTES;
        let counted = self.counted;
        let of_programs = counted.read.saturating_sub(self.read).min(headers);
        counted.read.abs_diff(self.read + of_programs) + counted.written.abs_diff(self.written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_reads_for_programs_is_explained() {
        let mut totals = Totals { read: 100, written: 50, programs: 2, ..Totals::default() };
        totals.counted = Counts { read: 100 + 1500, written: 50, ..Counts::default() };
        assert_eq!(totals.bytes_unexplained(), 0);
        totals.counted.read = 100 + 8192 + 7;
        assert_eq!(totals.bytes_unexplained(), 7);
        totals.counted = Counts { read: 90, written: 53, ..Counts::default() };
        assert_eq!(totals.bytes_unexplained(), 13);
    }

    #[test]
    fn pages_of_files_that_nothing_touched_are_unexplained() {
        let mut totals = Totals::default();
        totals.inserted((1, (8, 1)), 10);
        totals.inserted((2, (8, 1)), 3);
        assert_eq!(totals.pages(|inode| inode.0 == 1), (13, 3));
    }
}
