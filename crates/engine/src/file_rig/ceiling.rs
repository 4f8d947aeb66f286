//! The most that may reach storage (`--max-written`), kept within a visit as well.
//!
//! What counts is what storage will have taken in the end: what its device has counted, what lies
//! dirty in the page cache and is still to come, and what a filesystem writes for itself once its
//! files are synced and removed. Where no device is known, what was written counts by itself.
//!
//! Each worker is allowed a part of what is left and waits by itself when that is used up, so the
//! ceiling holds however late somebody looks again. A look says what is really left, for writing to
//! pages that are dirty already costs storage nothing more, and when to look next.

use ioscape_model::{Access, Workload};

use super::{FileRig, Reading, Running};
use crate::device_counter::DeviceCounter;
use crate::engine::threads::TAKEN_PER_THREAD;
use crate::error::{Error, Result};
use crate::target::{Directory, Ground};
use crate::worker::Published;

/// What a filesystem writes for itself after the last data, for its journal and the removal of the
/// files: a share of the ceiling, and so much beyond it.
const CLOSING_SHARE: f64 = 0.01;
const CLOSING_BYTES: u64 = 2 << 20;
/// A filesystem that never writes in place keeps an account of every piece. Where random writes of
/// single blocks broke its files up, the accounts have this share of their size.
const PIECES_SHARE: f64 = 0.125;
/// The kernel's count of dirty pages may lag behind by so much for each processor.
const DIRTY_LAG_BYTES_PER_CPU: u64 = 512 << 10;
/// What all workers together may have written without having said so yet.
const UNSAID_BYTES: u64 = 4 << 20;
/// Less than this says nothing of what a byte costs.
const TELLS_COST_BYTES: u64 = 4 << 20;
/// Bytes may come to cost so many times what they did …
const COST_FACTOR: f64 = 2.0;
/// … and a cache that takes all may take less.
const COST_MIN: f64 = 0.25;
/// It is looked again before this share of what is left can be used up …
const LOOK_SHARE: f64 = 0.25;
/// … but not sooner than after this, and not after more than so many times as long as last time.
const LOOK_MIN_NS: u64 = 2_000_000;
const LOOK_GROWTH: u64 = 2;
/// Where workers have to wait in more windows than this, too little is left to measure with.
const WAITS_MAX: u32 = 20;

/// What is known of the ceiling whatever runs.
#[derive(Debug)]
pub(super) struct Ceiling {
    device: Option<DeviceCounter>,
    /// All since the rig was made.
    pub(super) most_bytes: Option<u64>,
    /// Of visits that are over, what may still be dirty.
    pub(super) unsynced_bytes: u64,
    dirty_lag_bytes: u64,
    pieces_share: f64,
}

impl Ceiling {
    /// None yet.
    pub(super) fn over(ground: &Ground, cpus: u32) -> Self {
        let copies_on_write = ground.directory().is_some_and(Directory::copies_on_write);
        Self {
            device: DeviceCounter::open(ground),
            most_bytes: None,
            unsynced_bytes: 0,
            dirty_lag_bytes: u64::from(cpus) * DIRTY_LAG_BYTES_PER_CPU,
            pieces_share: if copies_on_write { PIECES_SHARE } else { 0.0 },
        }
    }

    /// The devices behind the target, where they are known.
    pub(super) fn device(&self) -> Option<&DeviceCounter> {
        self.device.as_ref()
    }

    pub(super) fn device_bytes(&self) -> Option<u64> {
        self.device()?.written_bytes()
    }
}

/// What looks at a running workload have found.
#[derive(Clone, Debug, Default)]
pub(super) struct Spending {
    /// When the workers began.
    first: Option<Look>,
    latest: Option<Look>,
    /// When to look again.
    next_ns: u64,
    /// Windows in which a worker had to wait.
    waits: u32,
}

#[derive(Clone, Debug)]
struct Look {
    at_ns: u64,
    /// What storage has taken and will take.
    spent_bytes: u64,
    /// Written by each worker since it began.
    by_worker_bytes: Vec<u64>,
}

impl Spending {
    /// What each worker may write from now on, with `left_bytes` for all of them. Says when to look
    /// again, too.
    fn next_part_bytes(&mut self, now: Look, left_bytes: u64) -> u64 {
        let first = self.first.get_or_insert_with(|| now.clone());
        let written_bytes = now.by_worker_bytes.iter().sum();
        let spent_bytes = now.spent_bytes.saturating_sub(first.spent_bytes);
        let cost = cost(written_bytes, spent_bytes);
        let part_bytes = left_bytes as f64 / cost / now.by_worker_bytes.len() as f64;
        let wait_ns = self.latest.as_ref().map_or(LOOK_MIN_NS, |latest| {
            let grown = now.by_worker_bytes.iter().zip(&latest.by_worker_bytes).map(|(n, l)| n - l);
            let by_fastest = grown.max().unwrap_or(0) as f64 / part_bytes;
            let by_all = now.spent_bytes.saturating_sub(latest.spent_bytes) as f64;
            let used_share = by_fastest.max(by_all / left_bytes as f64);
            let elapsed_ns = now.at_ns.saturating_sub(latest.at_ns);
            // What was slow for a moment may be fast in the next.
            let longest_ns = (LOOK_GROWTH * elapsed_ns).max(LOOK_MIN_NS);
            ((elapsed_ns as f64 * LOOK_SHARE / used_share) as u64).clamp(LOOK_MIN_NS, longest_ns)
        });
        self.next_ns = now.at_ns + wait_ns;
        self.latest = Some(now);
        part_bytes as u64
    }
}

/// What a byte that is written from now on may cost storage, from what a visit has shown: several
/// where each is synced or none is written in place, less than one where the page cache takes most.
fn cost(written_bytes: u64, spent_bytes: u64) -> f64 {
    if written_bytes < TELLS_COST_BYTES {
        return 1.0;
    }
    (COST_FACTOR * spent_bytes as f64 / written_bytes as f64).max(COST_MIN)
}

impl FileRig {
    /// What storage has taken and will take. The workers that run have written `written_bytes`
    /// that no window has counted yet, and made at most `dirtied_bytes` dirty.
    fn spent_bytes(&self, written_bytes: u64, dirtied_bytes: u64) -> u64 {
        // Dirty pages come first: what is written back between the two readings counts twice.
        let dirty_bytes = self.dirty_bytes(dirtied_bytes);
        match self.ceiling.device_bytes() {
            Some(taken_bytes) => taken_bytes + dirty_bytes,
            None => self.files.written_bytes() + self.workload_written_bytes + written_bytes,
        }
    }

    /// What may be dirty of the test files: not more than visits left, than they are long, and than
    /// the machine has.
    fn dirty_bytes(&self, dirtied_bytes: u64) -> u64 {
        let of_machine = self.counters.dirty().map_or(u64::MAX, |dirty| {
            dirty.dirty_bytes + dirty.writeback_bytes + self.ceiling.dirty_lag_bytes
        });
        let of_visits = self.ceiling.unsynced_bytes + dirtied_bytes;
        of_visits.min(self.files.total_bytes()).min(of_machine)
    }

    /// What may be written after `spent_bytes`, with files of `files_bytes`.
    fn left_bytes(&self, spent_bytes: u64, files_bytes: u64) -> u64 {
        let Some(most_bytes) = self.ceiling.most_bytes else { return u64::MAX };
        let shares =
            CLOSING_SHARE * most_bytes as f64 + self.ceiling.pieces_share * files_bytes as f64;
        most_bytes.saturating_sub(spent_bytes).saturating_sub(CLOSING_BYTES + shares as u64)
    }

    /// What may be written while nothing runs.
    pub(super) fn left_at_rest_bytes(&self) -> u64 {
        self.left_bytes(self.spent_bytes(0, 0), self.files.total_bytes())
    }

    /// Refuses to write `bytes` of test files where that is more than what is left.
    pub(super) fn check_ceiling(&self, bytes: u64) -> Result<()> {
        let files_bytes = self.files.total_bytes() + bytes;
        let is_left = bytes == 0 || bytes <= self.left_bytes(self.spent_bytes(0, 0), files_bytes);
        if is_left { Ok(()) } else { Err(Error::MaxWritten) }
    }

    /// Counts what was written between two readings. Pages count once for every time they were made
    /// dirty, however often they were written in between.
    pub(super) fn account(&mut self, before: &Reading, now: &Reading) {
        let written_bytes = now.written_bytes().saturating_sub(before.written_bytes());
        let io = before.io.zip(now.io).filter(|_| self.hints.counters);
        // The kernel counts whole folios: no more was dirtied than was written.
        let dirtied_bytes = io.map_or(u64::MAX, |(before, now)| {
            now.dirtied_bytes.saturating_sub(before.dirtied_bytes)
        });
        self.workload_written_bytes += dirtied_bytes.min(written_bytes);
    }

    /// Brings all that is dirty here to storage.
    pub(super) fn write_back(&mut self) -> Result<()> {
        self.ground.write_back()?;
        self.ceiling.unsynced_bytes = 0;
        Ok(())
    }

    /// Lets a window pass; one in which a worker had to wait begins anew. Says whether the workers
    /// may go on.
    pub(super) fn sleep_below_ceiling(&mut self, running: &mut Running, length_ns: u64) -> bool {
        while self.clock.now_ns() < running.before.at_ns + length_ns || running.has_waiting() {
            let until_ns = running.before.at_ns + length_ns;
            self.clock.sleep_until(until_ns.min(running.spending.next_ns));
            let has_waited = running.has_waiting();
            let is_due = self.clock.now_ns() >= running.spending.next_ns;
            if (is_due || has_waited) && !self.allow_writing(running) {
                return false;
            }
            if has_waited {
                running.spending.waits += 1;
                if running.spending.waits > WAITS_MAX {
                    return false;
                }
                let now = self.reading(&running.workers);
                self.account(&running.before, &now);
                running.before = now;
            }
        }
        true
    }

    /// Looks what is left and allows each worker its part of it. Says whether that is anything.
    pub(super) fn allow_writing(&self, running: &mut Running) -> bool {
        if self.ceiling.most_bytes.is_none() || running.work.read_frac >= 1.0 {
            running.spending.next_ns = u64::MAX;
            return true;
        }
        let workers = || running.workers.iter().map(|worker| &*worker.published);
        let by_worker_bytes: Vec<u64> = workers().map(Published::written_bytes).collect();
        let written_bytes: u64 = by_worker_bytes.iter().sum();
        let uncounted_bytes = written_bytes - running.before.written_bytes();
        let dirtied_bytes = dirtied_bytes(&running.work, written_bytes);
        let spent_bytes = self.spent_bytes(uncounted_bytes, dirtied_bytes);
        let left_bytes = self
            .left_bytes(spent_bytes, self.files.total_bytes())
            .saturating_sub(unsaid_bytes(&running.work));
        // What a device counts is of all ranks beside this one, and so is what is left.
        let ranks = if self.ceiling.device.is_some() { self.part.ranks } else { 1 };
        let left_bytes = left_bytes / u64::from(ranks);
        let at_ns = self.clock.now_ns();
        let look = Look { at_ns, spent_bytes, by_worker_bytes: by_worker_bytes.clone() };
        let part_bytes = running.spending.next_part_bytes(look, left_bytes);
        for (worker, bytes) in workers().zip(by_worker_bytes) {
            worker.allow_writing(bytes + part_bytes);
        }
        part_bytes > 0
    }
}

impl Running {
    /// Whether a worker has written what it was allowed.
    fn has_waiting(&self) -> bool {
        let mut workers = self.workers.iter().map(|worker| &worker.published);
        workers.any(|worker| worker.written_bytes() >= worker.write_max_bytes())
    }
}

/// In flight, or drawn for a thread that will go on by itself, or done and not counted yet.
fn unsaid_bytes(work: &Workload) -> u64 {
    let in_flight = u64::from(work.process_num) * u64::from(work.depth);
    in_flight * TAKEN_PER_THREAD as u64 * work.size_mean + UNSAID_BYTES
}

/// What a workload that has written so much may have left dirty.
pub(super) fn dirtied_bytes(work: &Workload, written_bytes: u64) -> u64 {
    match work.access {
        Access::Buffered => written_bytes.min(work.unique_bytes),
        Access::Direct => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    const LEFT_BYTES: u64 = 600 << 20;

    /// Workers that write as fast as they may, and somebody who looks up to `late_ns` too late.
    /// What storage has taken when they may write no more, and how often that was looked at.
    fn spent(bytes_per_s: &[f64], cost: f64, late_ns: u64, seed: u64) -> (u64, usize) {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut spending = Spending::default();
        let (mut at_ns, mut looks) = (0, 0);
        let mut written = vec![0_u64; bytes_per_s.len()];
        let spent_bytes = |written: &[u64]| (written.iter().sum::<u64>() as f64 * cost) as u64;
        loop {
            let by_worker_bytes = written.clone();
            let look = Look { at_ns, spent_bytes: spent_bytes(&written), by_worker_bytes };
            let left_bytes = LEFT_BYTES.saturating_sub(look.spent_bytes);
            let part_bytes = spending.next_part_bytes(look, left_bytes);
            looks += 1;
            // A cache that takes nearly all is not at its end in a minute.
            if part_bytes == 0 || at_ns > 60_000_000_000 {
                return (spent_bytes(&written), looks);
            }
            let until_ns = spending.next_ns + rng.random_range(0..=late_ns);
            let elapsed_s = (until_ns - at_ns) as f64 * 1e-9;
            for (written, bytes_per_s) in written.iter_mut().zip(bytes_per_s) {
                *written += part_bytes.min((bytes_per_s * elapsed_s) as u64);
            }
            at_ns = until_ns;
        }
    }

    #[test]
    fn no_worker_exceeds_what_is_left_however_fast_it_is_and_however_late_it_is_looked_at() {
        for seed in 0..100 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let workers = rng.random_range(1..9);
            let rates: Vec<f64> =
                (0..workers).map(|_| 10_f64.powf(rng.random_range(6.0..10.0))).collect();
            let cost = 10_f64.powf(rng.random_range(-2.0..0.0));
            let late_ns = rng.random_range(0..3_000_000_000);
            let (spent_bytes, _) = spent(&rates, cost, late_ns, seed);
            assert!(spent_bytes <= LEFT_BYTES, "{rates:?}, {cost}, {late_ns} ns: {spent_bytes}");
        }
    }

    #[test]
    fn nearly_all_that_is_left_can_be_used_and_looking_costs_little() {
        let (spent_bytes, looks) = spent(&[1e9, 5e8], 1.0, 100_000, 1);
        assert!(spent_bytes > LEFT_BYTES / 20 * 19, "{spent_bytes}");
        assert!(looks < 100, "{looks}");
        let (spent_bytes, looks) = spent(&[5e9], 0.001, 100_000, 1);
        assert!(spent_bytes < LEFT_BYTES && looks < 2000, "{spent_bytes}, {looks} looks");
    }

    #[test]
    fn what_each_byte_costs_storage_is_learned() {
        let part_bytes = |spent_bytes| {
            let look = |written, spent_bytes| Look {
                at_ns: written,
                spent_bytes,
                by_worker_bytes: vec![written, written],
            };
            let mut spending = Spending::default();
            assert_eq!(spending.next_part_bytes(look(0, 0), LEFT_BYTES), LEFT_BYTES / 2);
            spending.next_part_bytes(look(50 << 20, spent_bytes), LEFT_BYTES)
        };
        // A hundred mebibytes were written.
        assert_eq!(part_bytes(300 << 20), LEFT_BYTES / 2 / 6, "each byte three times");
        assert_eq!(part_bytes(100 << 20), LEFT_BYTES / 2 / 2);
        assert_eq!(part_bytes(1 << 20), LEFT_BYTES / 2 * 4, "a cache takes nearly all");
    }
}
