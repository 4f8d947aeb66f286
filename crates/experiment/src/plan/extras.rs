//! Workloads with several requests in flight per process or with fdatasyncs: mostly points
//! anywhere, some steps on graphs of both through the focal vectors, and a few places that neither
//! gets to. A share of the visits that leaves most to the five parameters.

use ioscape_model::workload::SHARE_REQUESTS_MIN;
use ioscape_model::{Access, Host, Ranges, Workload};

use super::filling::{log_between, whole_blocks};
use super::halton;

/// How many visits have several requests in flight, or fdatasyncs.
pub(super) struct Share {
    /// Other visits for each such visit.
    pub(super) others_each: usize,
    /// The most such visits in each round after the first.
    pub(super) per_round: usize,
}

impl Share {
    /// With direct I/O no cache hides storage: requests in flight decide most, and the five
    /// parameters need fewer points.
    pub(super) fn new(ranges: &Ranges) -> Self {
        if ranges.access == Access::Direct && ranges.depth.max > 1 {
            Self { others_each: 2, per_round: 30 }
        } else {
            Self { others_each: 6, per_round: 10 }
        }
    }
}

/// Values on the graphs, those that say most first: how far it goes, where it bends, the rest.
const DEPTHS: [u32; 5] = [32, 8, 2, 16, 4];
const INTERVALS: [u32; 5] = [1, 16, 64, 4, 2];
/// This many values of depth, and of `fsync_every`, come before anything else.
const FIRST_VALUES: usize = 2;
/// Visits after which a map has enough values of both keys to predict between them.
pub(super) const FIRST: usize = 2 * FIRST_VALUES;
/// Then so many in flight within the caches, reads and writes apart: kernels may hand writes in
/// flight to threads of their own, and on a graph of both no one could tell which of them it is.
/// And beyond them, where storage serves reads and writes in flight each in its own way.
const DEEP: u32 = 16;
/// Then large writes by all processes, with an fdatasync after so many: how many bytes storage takes
/// per second while someone waits for them. No graph through a focal vector gets there.
const FLOOD_SIZE_BYTES: u64 = 256 << 10;
const FLOOD_INTERVAL: u32 = 16;
/// Each process has data for so many of them, where there is room.
const FLOOD_REQUESTS: u64 = 64;
/// After that one in so many is on a graph. The others tell more: with one in two, samples were
/// fitted to 4 % and other workloads 10 to 16 % off.
const GRAPH_ONE_IN: usize = 8;
/// At least this part of the space-filling points with an interval syncs after every write, as
/// databases do.
const EVERY_WRITE: f64 = 0.3;
/// Buffers of all requests in flight may take this part of the memory: requests may be eight times
/// as long as their mean, and an engine refuses more than a quarter.
const MEMORY_PARTS: u64 = 64;
/// Index in the space-filling sequence that these points start from: far along, so that none shares its
/// five parameters with a point of the map's own filling.
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
    /// One of a sequence without end: the first values of a graph of either, reads and writes
    /// within the caches and beyond, a flood of writes, then points in between with a graph's from time to
    /// time.
    pub(super) fn workload(
        &self,
        index: usize,
        filling: &dyn Fn(u64) -> Option<Workload>,
    ) -> Option<Workload> {
        let mut chosen = self.graphs();
        let later = chosen.split_off(chosen.len().min(FIRST));
        chosen.extend(self.apart());
        chosen.push(self.flood());
        let first = chosen.len();
        chosen.extend(later);
        let past = index.saturating_sub(first);
        // So many of them came before this index; from some index on all did.
        let taken = (index.min(first) + past / GRAPH_ONE_IN).min(chosen.len());
        let is_chosen = index < first || past % GRAPH_ONE_IN == GRAPH_ONE_IN - 1;
        let work = match chosen.get(taken).filter(|_| is_chosen) {
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

    /// Only writes, and only reads: of the data that most likely is cached, and of the most.
    fn apart(&self) -> Vec<Workload> {
        let (first, last) = (self.focals.first(), self.focals.last());
        let focals = first.into_iter().chain(last.filter(|_| self.focals.len() > 1));
        let apart = |focal: &&Workload| {
            [0.0, 1.0].map(|read_frac| Workload { depth: DEEP, read_frac, ..(*focal).clone() })
        };
        focals.flat_map(apart).collect()
    }

    /// Writes that have storage write as much as it can.
    fn flood(&self) -> Workload {
        let Ranges { unique_bytes, size_mean, process_num, .. } = self.ranges;
        let data_bytes = FLOOD_REQUESTS * FLOOD_SIZE_BYTES * process_num.max;
        let unique_bytes = data_bytes.clamp(unique_bytes.min, unique_bytes.max);
        let most = unique_bytes / process_num.max / SHARE_REQUESTS_MIN;
        let size_bytes = FLOOD_SIZE_BYTES.min(most).clamp(size_mean.min, size_mean.max);
        Workload {
            unique_bytes,
            size_mean: whole_blocks(size_bytes as f64),
            read_frac: 0.0,
            seq_frac: 0.5,
            process_num: process_num.max as u32,
            fsync_every: FLOOD_INTERVAL,
            access: self.ranges.access,
            ..Workload::default()
        }
    }

    /// A point of the space-filling sequence with both, a depth, or an interval. Both come first:
    /// a graph at one place cannot tell an fdatasync's own time from writes that storage takes
    /// several at a time.
    fn anywhere(&self, index: u64, filling: &dyn Fn(u64) -> Option<Workload>) -> Option<Workload> {
        let work = filling(FILLING_FROM + index)?;
        let between =
            |max: u64, share: f64| log_between(1.0, max.max(1) as f64, share).round() as u32;
        let share = |dimension: usize| halton::coordinate(index, dimension, self.seed);
        let depth = between(self.ranges.depth.max, share(5)).max(2);
        let beyond_every_write = (share(6) - EVERY_WRITE).max(0.0) / (1.0 - EVERY_WRITE);
        let fsync_every = between(self.ranges.fsync_every.max, beyond_every_write).max(1);
        // What does not write has nothing to sync.
        let read_frac = if work.read_frac >= 1.0 { 0.5 } else { work.read_frac };
        // Request sizes follow the Halton sequence in base 3: `index % 3` alone would give each kind a
        // third of the sizes.
        Some(match (index + index / 3) % 3 {
            0 => Workload { depth, fsync_every, read_frac, ..work },
            1 => Workload { depth, ..work },
            _ => Workload { fsync_every, read_frac, ..work },
        })
    }

    /// The key's workload as far as the ranges and the memory for buffers allow.
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
    fn first_steps_come_first_then_points_with_a_graph_at_times_and_nothing_comes_twice() {
        let ranges = SimSpec::preset("nvme").unwrap().ranges();
        let max = ranges.unique_bytes.max as f64;
        let points = Filling { ranges: &ranges, largest_bytes: |_| max, seed: 3 };
        let filling = |index| Some(points.workload(index));
        let host = Host::default();
        let small = Workload { unique_bytes: 32 << 20, ..Workload::default() };
        let large = Workload { unique_bytes: 8 << 30, ..Workload::default() };
        for focals in [&[&small, &large][..], &[]] {
            let wanted = Wanted { focals, ranges: &ranges, host: &host, seed: 3 };
            let all: Vec<Option<Workload>> =
                (0..120).map(|index| wanted.workload(index, &filling)).collect();
            let names: BTreeSet<String> = all.iter().flatten().map(Workload::to_string).collect();
            assert_eq!(names.len(), all.iter().flatten().count());
            assert!(names.len() > 110, "{}", names.len());
            if focals.is_empty() {
                continue;
            }
            let is_graph = |index: usize| {
                let five = all[index].as_ref().map(Workload::without_extras);
                five.as_ref() == Some(&small) || five.as_ref() == Some(&large)
            };
            let first = 2 * FIRST_VALUES;
            assert!((0..first).all(is_graph));
            for (place, (focal, read_frac)) in
                [(&small, 0.0), (&small, 1.0), (&large, 0.0), (&large, 1.0)].into_iter().enumerate()
            {
                let apart = Workload { depth: DEEP, read_frac, ..focal.clone() };
                assert_eq!(all[first + place], Some(apart));
            }
            assert_eq!(all[first + 4], Some(wanted.flood()));
            let later = (first + 5..120).step_by(GRAPH_ONE_IN);
            assert!(later.clone().take(5).all(|index| is_graph(index + GRAPH_ONE_IN - 1)));
            assert!(later.clone().all(|index| !is_graph(index)));
        }
    }

    #[test]
    fn a_flood_of_writes_shrinks_its_requests_until_they_fit() {
        let usual = SimSpec::preset("nvme").unwrap().ranges();
        for (most_bytes, processes, size_mean) in
            [(16 << 20, 16, 128 << 10), (1 << 30, 512, 256 << 10), (1 << 34, 4, 256 << 10)]
        {
            let mut ranges = usual;
            ranges.unique_bytes.max = most_bytes;
            ranges.process_num.max = processes;
            let wanted = Wanted { focals: &[], ranges: &ranges, host: &Host::default(), seed: 3 };
            let flood = wanted.flood();
            assert_eq!(flood.check(), Ok(()), "{flood}");
            assert!(flood.unique_bytes <= most_bytes && flood.size_mean == size_mean, "{flood}");
        }
    }

    #[test]
    fn each_kind_has_requests_of_all_sizes() {
        let ranges = SimSpec::preset("nvme").unwrap().ranges();
        let max = ranges.unique_bytes.max as f64;
        let points = Filling { ranges: &ranges, largest_bytes: |_| max, seed: 3 };
        let filling = |index| Some(points.workload(index));
        let wanted = Wanted { focals: &[], ranges: &ranges, host: &Host::default(), seed: 3 };
        let (min, max) = (ranges.size_mean.min as f64, ranges.size_mean.max as f64);
        let kinds: BTreeSet<(bool, bool, u64)> = (0..60)
            .filter_map(|index| wanted.workload(index, &filling))
            .map(|work| {
                let share = (work.size_mean as f64 / min).ln() / (max / min).ln();
                (work.depth > 1, work.fsync_every > 0, (2.99 * share) as u64)
            })
            .collect();
        assert_eq!(kinds.len(), 9, "{kinds:?}");
    }
}
