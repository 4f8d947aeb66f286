//! The data sheet in words: the same rows on the page and in the terminal, a line as soon as it is
//! measured, and the depth beside them.

use ioscape_model::graph::Axis;
use ioscape_model::units::{show_rate, show_seconds, three_digits};
use ioscape_model::{Access, Estimate, Figure, Interval, Point, Record, SheetFigures, SheetLine};

use crate::figures;

/// More requests in flight than the best depth bring at most a twentieth more.
const BEST_FRACTION: f64 = 0.95;
/// Fewer depths are no sweep.
const DEPTHS_MIN: usize = 3;

/// A line as it is shown.
pub(crate) struct SheetRow {
    pub(crate) name: String,
    /// What `measure -w` takes.
    pub(crate) literal: String,
    /// `12300 (12100–12600)`.
    pub(crate) ops: String,
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
        literal: line.workload.literal(),
        ops: figures::per_second(&interval(&line.ops_per_s)).replacen(" /s", "", 1),
        rate: show_rate(line.throughput_bytes_per_s.value),
        mean: time(&times.mean),
        p50: time(&times.p50),
        p99: time(&times.p99),
        p999: time(&times.p999),
        visits: line.visits,
    }
}

fn interval(figure: &Figure) -> Interval {
    Interval { mean: figure.value, low: figure.low, high: figure.high }
}

/// What holds for all of them: the span, what the intervals rest on, the best depth.
pub(crate) fn notes(record: &Record) -> Vec<String> {
    let Some(map) = record.map.as_ref().filter(|map| !map.datasheet.is_empty()) else {
        return Vec::new();
    };
    let direct = map.datasheet.iter().find(|line| line.workload.access == Access::Direct);
    let span = direct.map(|line| {
        let span = figures::size(line.workload.unique_bytes as f64);
        format!("Past the page cache, over {span}; cached lines from memory.")
    });
    let visits = || map.datasheet.iter().map(|line| line.visits);
    let is_once = visits().any(|visits| visits < 2);
    let is_repeated = visits().any(|visits| visits > 1);
    let rest_on = match (is_once, is_repeated) {
        (false, _) => " from the spread between visits.",
        (true, true) => "; lines visited once are taken to repeat as well as the others.",
        (true, false) => "; no line was visited twice: they assume that visits differ by 4 %.",
    };
    let intervals = format!("In brackets: 95 % intervals{rest_on}");
    let depth = best_depth(record).map(|estimate| {
        let work = &estimate.workload;
        format!(
            "More than {} in flight bring little: {} of {} requests, {} reads.",
            work.depth,
            show_rate(estimate.throughput_bytes_per_s.mean),
            figures::size(work.size_mean as f64),
            figures::percent(work.read_frac)
        )
    });
    span.into_iter().chain([intervals]).chain(depth).collect()
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
        "{:14} {:>8} per second {:>12}   mean {}, p99 {}, p99.9 {}",
        line.name,
        three_digits(point.ops_per_s),
        show_rate(point.throughput()),
        show_seconds(times.mean),
        show_seconds(times.p99),
        show_seconds(times.p999)
    ))
}
