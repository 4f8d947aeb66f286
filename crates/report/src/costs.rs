//! What a request costs, by class and by where its data are: the parameters of the model as a
//! picture. Reads and writes, at random and in sequence, each alone in one process; the curve of
//! a class starts at its fixed cost and bends where moving the bytes begins to weigh.

use ioscape_model::{Record, Region, Workload};

use crate::answers::Answers;
use crate::chart::{Axis, Chart, Drawn, Ink, Mark, Scale, Series, Unit};
use crate::figures;

/// Reads and writes, at random and in sequence.
const CLASSES: [(&str, Ink, f64, f64); 4] = [
    ("random reads", Ink::Read, 1.0, 0.0),
    ("sequential reads", Ink::Mixed, 1.0, 1.0),
    ("random writes", Ink::Write, 0.0, 0.0),
    ("sequential writes", Ink::Canary, 0.0, 1.0),
];

/// The request that figures are told for.
const TOLD_BYTES: f64 = 16_384.0;

/// One graph for each region; empty without a model.
pub(crate) fn charts(record: &Record, answers: Answers<'_>) -> Vec<Chart> {
    let chart = |(index, region): (usize, &Region)| chart(record, region, index, answers);
    let mut charts: Vec<Chart> = record.regions.iter().enumerate().map(chart).collect();
    charts.retain(|chart| !chart.is_empty());
    share_axis(&mut charts);
    charts
}

/// All reach equally far, so that regions can be held against each other.
pub(crate) fn share_axis(charts: &mut [Chart]) {
    let marks = || charts.iter().flat_map(|chart| &chart.series).flat_map(|series| &series.marks);
    let ends = || marks().flat_map(|mark| [mark.y.low, mark.y.mean, mark.y.high]);
    let shown = || ends().filter(|end| *end > 0.0 && end.is_finite());
    let (foot, reach) = (shown().reduce(f64::min), shown().reduce(f64::max));
    for chart in charts {
        (chart.y.foot, chart.y.reach) = (foot, reach);
    }
}

fn chart(record: &Record, region: &Region, index: usize, answers: Answers<'_>) -> Chart {
    let range = record.header.ranges.size_mean;
    let sizes: Vec<u64> = std::iter::successors(Some(range.min.max(1)), |size| size.checked_mul(2))
        .take_while(|size| *size <= range.max)
        .collect();
    let series = CLASSES.into_iter().map(|(name, ink, read_frac, seq_frac)| {
        let mark = |size_mean: &u64| {
            let work = Workload {
                size_mean: *size_mean,
                read_frac,
                seq_frac,
                process_num: 1,
                ..region.focal.clone()
            };
            let y = answers.response_s(&work)?;
            Some(Mark { x: *size_mean as f64, y, note: String::new() })
        };
        let marks = sizes.iter().filter_map(mark).collect();
        Series { name: name.to_owned(), ink, drawn: Drawn::Curve, marks }
    });
    let series: Vec<Series> = series.filter(|series| !series.marks.is_empty()).collect();
    Chart {
        id: format!("costs-{}", index + 1),
        title: region.name.to_string(),
        caption: caption(&series, region),
        x: Axis::new("request size", Scale::Log2, Unit::Bytes),
        y: Axis::new("time per request", Scale::Log10, Unit::Seconds),
        series,
        bands: vec![],
        rules: vec![],
    }
}

/// `Over 14.6 MiB, a request of 16 KiB: random reads 1.49 µs, …`.
fn caption(series: &[Series], region: &Region) -> String {
    let told = |series: &Series| {
        let mark = series.marks.iter().find(|mark| mark.x >= TOLD_BYTES)?;
        Some(format!("{} {}", series.name, figures::seconds(&mark.y)))
    };
    let told: Vec<String> = series.iter().filter_map(told).collect();
    let over = figures::size(region.focal.unique_bytes as f64);
    format!("Over {over}, a request of {}: {}.", figures::size(TOLD_BYTES), told.join(", "))
}
