//! Workloads with several requests in flight per process or with fdatasyncs: graphs of both
//! through the focal vectors, and points anywhere between. A small share of the visits.

use ioscape_model::{Host, Ranges, Workload};

use super::filling::log_between;
use super::halton;

/// One visit in so many, of the others, is one of these.
pub(super) const ONE_IN: usize = 10;
/// And no more than so many in each round after the first.
pub(super) const PER_ROUND: usize = 6;
/// Values on the graphs, those that say most first: how far it goes, where it bends, the rest.
const DEPTHS: [u32; 5] = [32, 8, 2, 16, 4];
const INTERVALS: [u32; 5] = [1, 16, 64, 4, 2];
/// So many of each come before anything else.
const FIRST_VALUES: usize = 2;
/// Buffers of all requests in flight may take this part of the memory: requests may be eight times
/// as long as their mean, and an engine refuses more than a quarter.
const MEMORY_PARTS: u64 = 64;
/// Where the space-filling points lie among those of the five parameters: far along, so that no
/// workload without these keys is one of a calibration at the same time.
const FILLING_FROM: u64 = 1 << 20;

/// What they are made of.
pub(super) struct Wanted<'a> {
    /// Of the families, smallest data first.
    pub(super) focals: &'a [&'a Workload],
    pub(super) ranges: &'a Ranges,
    pub(super) host: &'a Host,
    pub(super) seed: u64,
}

impl Wanted<'_> {
    /// One of a sequence without end: the first values of a graph of either, then graphs
    /// and points in between in turn, then points.
    pub(super) fn workload(
        &self,
        index: usize,
        filling: &dyn Fn(u64) -> Option<Workload>,
    ) -> Option<Workload> {
        let first = 2 * FIRST_VALUES;
        let graphs = self.graphs();
        let past = index.saturating_sub(first);
        // Of the graphs so many were taken before, and none are left at some time.
        let taken = (index.min(first) + past / 2).min(graphs.len());
        let graph = graphs.get(taken).filter(|_| index < first || past % 2 == 1);
        let work = match graph {
            Some(work) => work.clone(),
            None => self.anywhere((index - taken) as u64, filling)?,
        };
        self.within(work)
    }

    /// Depth where storage is reached and fdatasyncs where nothing else is, first; then the other
    /// families.
    fn graphs(&self) -> Vec<Workload> {
        let mut graphs = Vec::new();
        let count = self.focals.len();
        for family in 0..count {
            let (deep, synced) = (self.focals[count - 1 - family], self.focals[family]);
            for (depth, fsync_every) in DEPTHS.into_iter().zip(INTERVALS) {
                graphs.push(Workload { depth, ..deep.clone() });
                graphs.push(Workload { fsync_every, ..synced.clone() });
            }
        }
        graphs
    }

    /// A point of the space-filling sequence with both, a depth, or an interval. Both come first:
    /// a graph at one place cannot tell an fdatasync's own time from writes that storage takes
    /// several at a time.
    fn anywhere(&self, index: u64, filling: &dyn Fn(u64) -> Option<Workload>) -> Option<Workload> {
        let work = filling(FILLING_FROM + index)?;
        let between = |max: u64, dimension: usize| {
            log_between(1.0, max.max(1) as f64, halton::coordinate(index, dimension, self.seed))
                .round() as u32
        };
        let depth = between(self.ranges.depth.max, 5).max(2);
        let fsync_every = between(self.ranges.fsync_every.max, 6).max(1);
        // What does not write has nothing to sync.
        let read_frac = if work.read_frac >= 1.0 { 0.5 } else { work.read_frac };
        Some(match index % 3 {
            0 => Workload { depth, fsync_every, read_frac, ..work },
            1 => Workload { depth, ..work },
            _ => Workload { fsync_every, read_frac, ..work },
        })
    }

    /// The same as far as the ranges and the memory for buffers allow.
    fn within(&self, mut work: Workload) -> Option<Workload> {
        work.depth = work.depth.min(self.ranges.depth.max as u32);
        work.fsync_every = work.fsync_every.min(self.ranges.fsync_every.max as u32);
        let memory = self.host.memory_limit_bytes.unwrap_or(self.host.memory_available_bytes);
        if memory > 0 {
            let request_bytes = u64::from(work.process_num) * work.size_mean;
            let most = memory / MEMORY_PARTS / request_bytes.max(1);
            work.depth = work.depth.min(most.max(1) as u32);
        }
        work.has_extras().then_some(work)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ioscape_engine::SimSpec;

    use super::super::filling::Filling;
    use super::*;

    #[test]
    fn graphs_come_in_turn_with_points_between_and_nothing_comes_twice() {
        let ranges = SimSpec::preset("nvme").unwrap().ranges();
        let max = ranges.unique_bytes.max as f64;
        let points = Filling { ranges: &ranges, largest_bytes: |_| max, seed: 3 };
        let filling = |index| Some(points.workload(index));
        let host = Host::default();
        let small = Workload { unique_bytes: 32 << 20, ..Workload::default() };
        let large = Workload { unique_bytes: 8 << 30, ..Workload::default() };
        for focals in [&[&small, &large][..], &[]] {
            let wanted = Wanted { focals, ranges: &ranges, host: &host, seed: 3 };
            let all: Vec<Workload> =
                (0..120).filter_map(|index| wanted.workload(index, &filling)).collect();
            assert!(all.len() > 110, "{}", all.len());
            let names: BTreeSet<String> = all.iter().map(Workload::to_string).collect();
            assert_eq!(names.len(), all.len());
            let is_graph = |work: &Workload| work.size_mean == small.size_mean;
            let early = if focals.is_empty() { 0 } else { 2 * FIRST_VALUES };
            assert!(all[..early].iter().all(is_graph));
        }
    }
}
