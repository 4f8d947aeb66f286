//! Writes through the cache: pages that become dirty, writers that wait, write-back, fdatasyncs.

use std::ops::Range;

use super::{Run, Slot};
use crate::sim::machine::pages::{Found, PAGE};
use crate::sim::machine::storage::{Purpose, Request};

/// The longest request that cleans pages, pages.
const WRITE_BACK_MAX: u32 = 256;
/// Requests of write-back that storage is given at a time, for each of its channels: enough to
/// leave none idle, few enough that reads do not wait behind all that is dirty.
const WRITE_BACK_PER_CHANNEL: u32 = 2;

/// An fdatasync: the write-backs before this number matter, so many of them are under way, and so
/// many rounds of them are left.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sync {
    pub(super) before: u64,
    pub(super) left: u32,
    pub(super) rounds: u32,
}

impl Run {
    /// Overwrites a write's pages one after the other, until too many are dirty.
    pub(super) fn make_dirty(&mut self, slot: usize) {
        let limit = (self.spec.cache.dirty_bytes / PAGE) as u32;
        let Slot { cursor, end, .. } = self.slots[slot];
        for page in cursor..end {
            if !self.pages.is_unclean(page) && self.pages.unclean() >= limit {
                self.throttled.push_back(slot);
                return self.write_back();
            }
            if self.coming_bytes() + PAGE > self.written_max_bytes {
                self.is_full = true;
                return;
            }
            let is_hit = match self.pages.look(page) {
                Found::Missing => {
                    self.pages.insert(page);
                    self.pages.access(page);
                    false
                }
                Found::Resident | Found::Reading => self.pages.access(page),
            };
            self.seen.asked_pages += 1;
            self.seen.hit_pages += u64::from(is_hit);
            self.seen.dirtied_pages += u64::from(self.pages.dirty_page(page));
            self.slots[slot].cursor = page + 1;
        }
        self.write_back();
        self.written(slot);
    }

    /// Cleans pages in file order while there are more than may stay, or writers wait.
    fn write_back(&mut self) {
        let background = (self.spec.cache.dirty_background_bytes / PAGE) as u32;
        let most = self.spec.storage.channels * WRITE_BACK_PER_CHANNEL;
        let all = self.share_pages * self.processes.len() as u32;
        while self.writing_back < most
            && (self.pages.dirty() > background || !self.throttled.is_empty())
        {
            let swept = self.swept;
            let Some(end) = self.write_run(swept..all).or_else(|| self.write_run(0..swept)) else {
                return;
            };
            self.swept = end;
        }
    }

    /// Writes the first run of dirty pages in a range; its end.
    pub(super) fn write_run(&mut self, range: Range<u32>) -> Option<u32> {
        let (first, count) = self.pages.run(range, WRITE_BACK_MAX)?;
        let process = &mut self.processes[(first / self.share_pages) as usize];
        let count = count.min(process.pages.end - first);
        process.writing_back += 1;
        self.writing_back += 1;
        self.write_backs += 1;
        self.pages.begin_write(first, count);
        self.submit(first, count, Purpose::WriteBack { first, count, number: self.write_backs });
        Some(first + count)
    }

    pub(super) fn has_written(&mut self, first: u32, count: u32, number: u64) {
        self.pages.end_write(first, count);
        let process = (first / self.share_pages) as usize;
        self.processes[process].writing_back -= 1;
        self.writing_back -= 1;
        if self.is_stopped {
            return;
        }
        for slot in std::mem::take(&mut self.syncing) {
            let at = &mut self.slots[slot];
            let sync = at.sync.as_mut().expect("it is in an fdatasync");
            if at.process != process || number >= sync.before {
                self.syncing.push(slot);
                continue;
            }
            sync.left -= 1;
            if sync.left > 0 {
                self.syncing.push(slot);
            } else {
                self.sync(slot);
            }
        }
        let limit = (self.spec.cache.dirty_bytes / PAGE) as u32;
        while self.pages.unclean() < limit && !self.is_full {
            let Some(slot) = self.throttled.pop_front() else { break };
            self.make_dirty(slot);
        }
        self.write_back();
    }

    /// A write is done but for the fdatasync that may be due.
    pub(super) fn written(&mut self, slot: usize) {
        let process = &mut self.processes[self.slots[slot].process];
        process.writes += 1;
        if self.fsync_every == 0 || !process.writes.is_multiple_of(self.fsync_every) {
            return self.complete(slot);
        }
        // Pages that were overwritten while they were being written need a second round.
        self.slots[slot].sync = Some(Sync { before: 0, left: 0, rounds: 2 });
        self.sync(slot);
    }

    /// A round of write-back of a slot's file; after the last one a barrier.
    fn sync(&mut self, slot: usize) {
        let process = self.slots[slot].process;
        let mut sync = self.slots[slot].sync.expect("it is in an fdatasync");
        while sync.rounds > 0 {
            sync.rounds -= 1;
            while self.write_run(self.processes[process].pages.clone()).is_some() {}
            sync.before = self.write_backs + 1;
            sync.left = self.processes[process].writing_back;
            self.slots[slot].sync = Some(sync);
            if sync.left > 0 {
                return self.syncing.push(slot);
            }
        }
        self.slots[slot].sync = None;
        let purpose = Purpose::Barrier { slot };
        self.storage.submit(Request { position: 0, bytes: 0, purpose });
        self.serve();
    }
}
