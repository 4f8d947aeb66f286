//! What a workload asks of storage, for the limits.

use ioscape_model::Workload;

use super::{Cache, Law, held, shares_beyond, to_the};
use crate::model::blend::limits::{Asked, CLEAR};
use crate::model::blend::read_ahead::read_for_one;

impl Law {
    /// What storage is asked for: by those requests that it takes time for. Writes get there from
    /// beyond the first cache, reads from beyond the last, with what is read ahead of them.
    pub(in super::super) fn asked(&self, work: &Workload) -> Asked {
        let found = |power: f64| {
            let held = self.read_caches.iter().map(|cache| to_the(power, held(cache.bytes, work)));
            held.fold(0.0, f64::max)
        };
        let missed =
            |power: f64| if self.read_caches.is_empty() { 0.0 } else { 1.0 - found(power) };
        let written = |power: f64| -> f64 {
            let beyond = shares_beyond(&self.write_caches, work, power);
            if work.fsync_every > 0 { 1.0 } else { beyond.map(|(_, share)| share).sum() }
        };
        let streaming = work.seq_frac * self.streaming(work);
        let mixed = |one: f64, streamed: f64| streaming * streamed + (1.0 - streaming) * one;
        let (one, streamed) = (missed(1.0), missed(self.sequential_exponent));
        let [for_one, for_streamed] = read_for_one(work, found(1.0), self.read_ahead);
        let read = mixed(for_one * one, for_streamed * streamed);
        let write = mixed(written(1.0), written(self.overwrite_exponent));
        let (of_reads, of_writes) = (work.read_frac, 1.0 - work.read_frac);
        let size = work.size_mean as f64;
        Asked {
            requests: [of_reads * mixed(one, streamed), of_writes * write],
            bytes: [of_reads * read * size, of_writes * write * size],
        }
    }

    /// For reads and for writes, 1 where they surely get to storage, 0 elsewhere: the data is clearly
    /// larger than the caches, or writes are synced.
    pub(in super::super) fn surely_asked(&self, work: &Workload) -> [f64; 2] {
        let is_clear = |cache: &Cache| CLEAR * held(cache.bytes, work) < 1.0;
        let read = self.read_caches.last().is_some_and(is_clear);
        let written = work.fsync_every > 0 || self.write_caches.first().is_some_and(is_clear);
        [read, written].map(|is_sure| f64::from(u8::from(is_sure)))
    }
}
