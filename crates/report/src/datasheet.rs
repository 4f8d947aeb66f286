//! The data sheet in words: the same rows on the page and in the terminal, a line as soon as it is
//! measured, and the depth beside them.

use ioscape_model::graph::Axis;
use ioscape_model::units::{show_iops, show_rate, show_seconds};
use ioscape_model::{
    Access, Estimate, Figure, Interval, Point, Record, SheetFigures, SheetLine, Workload,
};

use crate::{figures, sample};

/// More requests in flight than the best depth bring at most a twentieth more.
const BEST_FRACTION: f64 = 0.95;
/// Fewer depths are no sweep.
const DEPTHS_MIN: usize = 3;

/// A line as it is shown.
pub(crate) struct SheetRow {
    /// `read_4k_32`, which `measure -w` takes.
    pub(crate) name: String,
    /// `rand read 4 KiB, QD 32`.
    pub(crate) words: String,
    /// All its keys.
    pub(crate) literal: String,
    /// `187k`.
    pub(crate) ops: String,
    /// `±4.1 %`, the half-width of its 95 % interval.
    pub(crate) spread: String,
    /// `481 MB/s`.
    pub(crate) rate: String,
    pub(crate) mean: String,
    pub(crate) p50: String,
    pub(crate) p99: String,
    pub(crate) p999: String,
    pub(crate) visits: u32,
}

/// The lines that were measured.
pub(crate) fn rows(record: &Record) -> Vec<SheetRow> {
    let lines = record.map.iter().flat_map(|map| &map.datasheet);
    lines.map(row).collect()
}

fn row(line: &SheetFigures) -> SheetRow {
    let times = &line.response_time_s;
    let time = |figure: &Figure| show_seconds(figure.value);
    SheetRow {
        name: line.name.clone(),
        words: words(&line.workload),
        literal: line.workload.literal(),
        ops: show_iops(line.ops_per_s.value),
        spread: format!(
            "±{}",
            figures::percent(Interval::from(line.ops_per_s).relative_half_width())
        ),
        rate: show_rate(line.throughput_bytes_per_s.value),
        mean: time(&times.mean),
        p50: time(&times.p50),
        p99: time(&times.p99),
        p999: time(&times.p999),
        visits: line.visits,
    }
}

/// `rand read 4 KiB, QD 32`: QD is the queue depth, the requests in flight.
pub(crate) fn words(work: &Workload) -> String {
    let size = figures::size(work.size_mean as f64);
    let order = if work.seq_frac >= 1.0 { "seq" } else { "rand" };
    match work.read_frac {
        _ if work.access == Access::Buffered => format!("cached read {size}"),
        _ if work.fsync_every > 0 => format!("commit {size} (fdatasync)"),
        reads if reads >= 1.0 => format!("{order} read {size}, QD {}", work.depth),
        reads if reads <= 0.0 => format!("{order} write {size}, QD {}", work.depth),
        reads => {
            let (reads, writes) = (100.0 * reads, 100.0 * (1.0 - reads));
            format!("mix {reads:.0}/{writes:.0} {size}, QD {}", work.depth)
        }
    }
}

/// What holds for all of them: the span, what the intervals rest on, the best depth.
pub(crate) fn notes(record: &Record) -> Vec<String> {
    let Some(map) = record.map.as_ref().filter(|map| !map.datasheet.is_empty()) else {
        return Vec::new();
    };
    let direct = map.datasheet.iter().find(|line| line.workload.access == Access::Direct);
    let span = direct.map(|line| {
        let span = figures::size(line.workload.unique_bytes as f64);
        format!("Direct I/O on {span}; cached reads: from memory. ±: 95 %, within this run.")
    });
    let visits = || map.datasheet.iter().map(|line| line.visits);
    let is_once = visits().any(|visits| visits < 2);
    let is_repeated = visits().any(|visits| visits > 1);
    let rest_on = match (is_once, is_repeated) {
        (false, _) => "The ± comes from the spread between measurements.".to_owned(),
        (true, true) => "Lines measured once are taken to repeat as well as the others.".to_owned(),
        (true, false) => {
            let assumed = sample::spread_assumed();
            format!(
                "No line was measured twice: a spread of {assumed} between repeats is assumed in the ±."
            )
        }
    };
    let depth = best_depth(record).map(|estimate| {
        let work = &estimate.workload;
        format!(
            "{} requests, {} of them reads: {} with {} in flight; more in flight bring hardly more.",
            figures::size(work.size_mean as f64),
            figures::percent(work.read_frac),
            show_rate(estimate.throughput_bytes_per_s.mean),
            work.depth,
        )
    });
    span.into_iter().chain([rest_on]).chain(depth).collect()
}

/// The estimate of the device layer's graph of depth from which on more in flight bring little.
fn best_depth(record: &Record) -> Option<&Estimate> {
    let mut regions = record.regions.iter();
    let region = regions.find(|region| region.focal.access == Access::Direct)?;
    let on_graph = || {
        let estimates = record.estimates.iter();
        estimates.filter(|estimate| Axis::Depth.is_on_graph(&estimate.workload, &region.focal))
    };
    let rate = |estimate: &Estimate| estimate.throughput_bytes_per_s.mean;
    let most = on_graph().map(rate).reduce(f64::max)?;
    let best = on_graph().filter(|estimate| rate(estimate) >= BEST_FRACTION * most);
    best.min_by_key(|estimate| estimate.workload.depth).filter(|_| on_graph().count() >= DEPTHS_MIN)
}

/// A visit to a line of the data sheet, in a line, for whoever waits for it.
pub fn datasheet_line(lines: &[SheetLine], point: &Point) -> Option<String> {
    let line = lines.iter().find(|line| line.workload == point.workload)?;
    let times = &point.response_time_s;
    Some(format!(
        "{:25} {:>6} IOPS {:>12}   p50 {}, p99 {}, p99.9 {}",
        words(&line.workload),
        show_iops(point.ops_per_s),
        show_rate(point.throughput()),
        show_seconds(times.p50),
        show_seconds(times.p99),
        show_seconds(times.p999)
    ))
}
