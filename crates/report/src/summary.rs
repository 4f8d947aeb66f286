//! The table of regions, the same on the page and in the terminal.

use ioscape_model::graph::Axis as Parameter;
use ioscape_model::units::{show_iops, show_seconds};
use ioscape_model::{Estimate, Record};

use crate::chart::{Ink, stretch};
use crate::family::{Family, Graph};
use crate::figures::{self, UNKNOWN};
use crate::landscape;
use crate::sample::Samples;

/// A row of the table of regions.
pub(crate) struct RegionRow {
    pub(crate) name: String,
    /// `8 MiB to 61.2 MiB`.
    pub(crate) extent: String,
    /// Share of requested pages found in memory, reads only.
    pub(crate) cached: String,
    /// Reads only.
    pub(crate) read: Pace,
    /// Writes only.
    pub(crate) write: Pace,
    /// At the focal vector.
    pub(crate) focal: Pace,
    /// Request sizes that reach three quarters of the best.
    pub(crate) good_sizes: String,
    /// Process counts that reach three quarters of the best.
    pub(crate) good_processes: String,
}

impl RegionRow {
    /// Reads only, writes only, and the focal vector.
    pub(crate) fn paces(&self) -> [&Pace; 3] {
        [&self.read, &self.write, &self.focal]
    }
}

/// How fast one workload runs; empty but for the rate where it was not measured.
pub(crate) struct Pace {
    /// `4.8 GB/s (4.5–5.2)`.
    pub(crate) rate: String,
    /// `293k IOPS`.
    pub(crate) ops: String,
    /// `p99 5.12 µs`.
    pub(crate) p99: String,
}

impl Pace {
    fn new(estimate: Option<&Estimate>) -> Self {
        let Some(estimate) = estimate else {
            return Self { rate: UNKNOWN.to_owned(), ops: String::new(), p99: String::new() };
        };
        Self {
            rate: figures::rate(&estimate.throughput_bytes_per_s),
            ops: format!("{} IOPS", show_iops(estimate.ops_per_s.mean)),
            p99: format!("p99 {}", show_seconds(estimate.response_time_s.p99)),
        }
    }
}

/// The table of regions.
pub(crate) fn region_rows(record: &Record, samples: &Samples<'_>) -> Vec<RegionRow> {
    record.regions.iter().map(|region| region_row(&Family::new(region, samples), samples)).collect()
}

fn region_row(family: &Family<'_>, samples: &Samples<'_>) -> RegionRow {
    let extent = family.region.unique_bytes;
    let read = end_of(family, samples, Ink::Read);
    let write = end_of(family, samples, Ink::Write);
    let good = |parameter| {
        let words = family.graph(parameter).and_then(Graph::good_words);
        words.unwrap_or_else(|| UNKNOWN.to_owned())
    };
    let focal = family.focal();
    let cached = read.or(focal).and_then(|estimate| estimate.hit_fraction);
    RegionRow {
        name: family.region.name.to_string(),
        extent: stretch(extent.from, extent.to),
        cached: figures::percent_or_unknown(cached),
        read: Pace::new(read),
        write: Pace::new(write),
        focal: Pace::new(focal),
        good_sizes: good(Parameter::SizeMean),
        good_processes: good(Parameter::ProcessNum),
    }
}

/// What stands for reads only, or for writes only, in a region.
pub(crate) fn end_of<'a>(
    family: &Family<'a>,
    samples: &'a Samples<'_>,
    ink: Ink,
) -> Option<&'a ioscape_model::Estimate> {
    family_end(family, ink).or_else(|| on_curve(family, samples, ink))
}

/// The family's own read-only or write-only point.
fn family_end<'a>(family: &Family<'a>, ink: Ink) -> Option<&'a ioscape_model::Estimate> {
    let graph = family.graph(Parameter::ReadFrac)?;
    let wanted = if ink == Ink::Read { 1.0 } else { 0.0 };
    let mut all = graph.estimates.iter().copied();
    all.find(|estimate| (estimate.workload.read_frac - wanted).abs() < 1e-9)
}

/// Where a provisional map has no family yet: the point of the landscape's curve that is nearest
/// to the focal point and inside the region.
fn on_curve<'a>(
    family: &Family<'_>,
    samples: &'a Samples<'_>,
    ink: Ink,
) -> Option<&'a ioscape_model::Estimate> {
    let extent = family.region.unique_bytes;
    let curve = landscape::curves(samples).into_iter().find(|curve| curve.ink == ink)?;
    let inside = curve.estimates.into_iter().filter(|estimate| {
        let work = &estimate.workload;
        (extent.from..=extent.to).contains(&(work.unique_bytes as f64))
            && work.access == family.region.focal.access
    });
    let distance = |estimate: &ioscape_model::Estimate| {
        (estimate.workload.unique_bytes as f64 / extent.focal).ln().abs()
    };
    inside.min_by(|a, b| distance(a).total_cmp(&distance(b)))
}
