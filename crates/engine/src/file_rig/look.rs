//! Looking at the page cache: how much of the data is in it, and what share of the requests will find
//! theirs there.

use std::fs::File;

use ioscape_model::Access;

use super::{FileRig, Running};
use crate::cachestat::resident;

/// How far ahead of a sequential stream its residency is looked at.
const AHEAD_BYTES: u64 = 4 << 20;
/// Looking at the page cache may cost this share of the time.
const LOOK_SHARE: f64 = 0.01;

/// What the page cache looked like lately.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Looked {
    pub(super) hit_fraction: Option<f64>,
    pub(super) resident_bytes: Option<u64>,
    pub(super) next_ns: u64,
}

impl FileRig {
    /// How much of the data is resident, and what share of the requests will find theirs.
    ///
    /// Random requests are spread evenly: the resident share is their hit fraction. A sequential
    /// stream meets what lies ahead of it, beyond the request that is on its way and what read-ahead
    /// has just brought in.
    pub(super) fn look(&self, running: &Running) -> Looked {
        // On an overlay or a network filesystem the file we hold may have no pages of its own.
        if !self.hints.counters && !self.hints.in_memory {
            return Looked { next_ns: u64::MAX, ..Looked::default() };
        }
        if running.work.access == Access::Direct {
            // What the page cache holds is not what these requests meet.
            let resident_bytes = running.resident_bytes();
            return Looked { hit_fraction: Some(0.0), resident_bytes, next_ns: u64::MAX };
        }
        if running.workers.is_empty() {
            return Looked { next_ns: u64::MAX, ..Looked::default() };
        }
        let began_ns = self.clock.now_ns();
        let share = running.work.share_bytes();
        // Sizes vary up to about twice the mean.
        let skip_bytes = 2 * running.work.size_mean + self.ahead_skip_bytes;
        let (mut resident_bytes, mut ahead_sum) = (0, 0.0);
        for (index, worker) in running.workers.iter().enumerate() {
            let (file, base) = running.place(index);
            let Some(cached) = resident(file, base..base + share) else {
                return Looked { next_ns: u64::MAX, ..Looked::default() };
            };
            resident_bytes += cached.resident_bytes;
            let from = worker.published.position() + skip_bytes;
            ahead_sum += ahead(file, from, base + share)
                .unwrap_or(cached.resident_bytes as f64 / share as f64);
        }
        let workers = running.workers.len() as f64;
        let even = resident_bytes as f64 / (share as f64 * workers);
        // Runs of requests begin at random places: only a stream that is nearly all sequential
        // stays long enough in one place to meet what lies ahead.
        let stream = running.work.seq_frac.powi(8);
        let hit = even * (1.0 - stream) + ahead_sum / workers * stream;
        let cost_ns = self.clock.now_ns() - began_ns;
        Looked {
            hit_fraction: Some(hit.min(1.0)),
            resident_bytes: Some(resident_bytes),
            next_ns: began_ns + (cost_ns as f64 / LOOK_SHARE) as u64,
        }
    }
}

/// Of files and how much of each is used; `None` where the kernel cannot say.
pub(super) fn resident_bytes(shares: &[(usize, u64)], files: &[File]) -> Option<u64> {
    let of_file = |(file, (_, length)): (&File, &(usize, u64))| {
        Some(resident(file, 0..*length)?.resident_bytes)
    };
    files.iter().zip(shares).map(of_file).sum()
}

/// Resident share of what a stream is about to reach from `from` on; its share ends at `end`.
fn ahead(file: &File, from: u64, end: u64) -> Option<f64> {
    let to = (from + AHEAD_BYTES).min(end);
    if to < from + AHEAD_BYTES / 4 {
        return None;
    }
    let cached = resident(file, from..to)?;
    Some(cached.resident_bytes as f64 / (to - from) as f64)
}
