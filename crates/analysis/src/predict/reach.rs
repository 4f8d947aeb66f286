//! How far the visits of a record reach: what lies beyond them is out of range.

use ioscape_model::{Range, Region, Workload};
use serde::{Deserialize, Serialize};

use super::RANGE_SLACK;
use crate::model::Training;

/// A direction that makes up less of a workload than this decides nothing.
const SHARE_TRIFLING: f64 = 0.05;
/// A visit shows what reads (or writes) do if at least this share of its requests are such.
const SHARE_SHOWN: f64 = 0.25;
/// Requests so many times as large still show how many are served at a time: graphs are taken at
/// 16 KiB, and 4 KiB is the smallest size.
const LARGER_REQUESTS: u64 = 8;

/// All visits, as far as ranges depend on them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Reach {
    visits: Vec<Visited>,
    /// Where each region begins, bytes, smallest first.
    regions_from: Vec<f64>,
    /// How far reads and writes are answered for beyond the visits, bytes: what is put together.
    put_together_to: [f64; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Visited {
    unique_bytes: u64,
    size_mean: u64,
    read_frac: f64,
    process_num: u32,
}

impl Reach {
    /// The reach of the samples that models are fitted from.
    pub(super) fn from_training(training: &Training, put_together_to: [f64; 2]) -> Self {
        let visited = |work: &Workload| Visited {
            unique_bytes: work.unique_bytes,
            size_mean: work.size_mean,
            read_frac: work.read_frac,
            process_num: work.process_num,
        };
        let from = |region: &Region| region.unique_bytes.from;
        Self {
            visits: training.samples.iter().map(|sample| visited(&sample.workload)).collect(),
            regions_from: training.regions.iter().map(from).collect(),
            put_together_to,
        }
    }

    /// Data up to which reads are answered for beyond the visits, bytes.
    pub(super) fn put_together_bytes(&self) -> Option<f64> {
        Some(self.put_together_to[0]).filter(|to| *to > 0.0)
    }

    /// How far a workload lies outside what was visited, key by key: the factor, at least 1, and the
    /// smallest and largest value visited. Reads say nothing of writes: each direction that a
    /// workload asks for has to have been visited as far as it goes.
    pub(super) fn beyond(&self, work: &Workload) -> [(&'static str, f64, Range); 3] {
        let visits = || self.visits.iter();
        let of_reads = |shown: &&Visited, least: f64| shown.read_frac >= least;
        let of_writes = |shown: &&Visited, least: f64| 1.0 - shown.read_frac >= least;
        let data = |share: f64, further: f64, is_shown: &dyn Fn(&&Visited, f64) -> bool| {
            let least = SHARE_SHOWN.min(share);
            let shown = visits().filter(|visit| share <= SHARE_TRIFLING || is_shown(visit, least));
            let visited = range(shown.map(|visit| visit.unique_bytes));
            let visited = Range { max: visited.max.max(further as u64), ..visited };
            (factor(work.unique_bytes, visited), visited)
        };
        let [reads_to, writes_to] = self.put_together_to;
        let (read, written) = (
            data(work.read_frac, reads_to, &of_reads),
            data(1.0 - work.read_frac, writes_to, &of_writes),
        );
        // The direction that was visited less far decides.
        let (unique_factor, unique) = if read.0 >= written.0 { read } else { written };
        let sizes = range(visits().map(|visit| visit.size_mean));
        let concurrent = visits().filter(|visit| self.shows_concurrency(visit, work));
        let processes = range(concurrent.map(|visit| u64::from(visit.process_num)));
        [
            ("unique_bytes", unique_factor, unique),
            ("size_mean", factor(work.size_mean, sizes), sizes),
            ("process_num", factor(u64::from(work.process_num), processes), processes),
        ]
    }

    /// Whether a visit tells how many requests of a workload are served at a time: it reached as
    /// far into the hierarchy, and its requests were not so large that their bytes alone kept the
    /// storage busy.
    fn shows_concurrency(&self, visit: &Visited, work: &Workload) -> bool {
        let mut begun =
            self.regions_from.iter().rev().filter(|from| work.unique_bytes as f64 >= **from);
        let from = begun.next().map_or(0.0, |from| from / RANGE_SLACK);
        let is_small = visit.size_mean <= LARGER_REQUESTS * work.size_mean;
        visit.unique_bytes as f64 >= from && is_small
    }
}

/// By how much a value lies outside; 1 inside.
fn factor(value: u64, Range { min, max }: Range) -> f64 {
    let value = value as f64;
    (value / max.max(1) as f64).max(min as f64 / value).max(1.0)
}

/// The smallest and the largest; nothing where there is none.
fn range(values: impl Iterator<Item = u64> + Clone) -> Range {
    Range { min: values.clone().min().unwrap_or(0), max: values.max().unwrap_or(0) }
}
