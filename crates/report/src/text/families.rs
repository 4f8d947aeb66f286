//! Each region's family, a line for each graph: its shape, its rates, and how the two ends compare.
//! What the lines show is not said again in words; the page has the sentences.

use ioscape_model::graph::Effect;
use ioscape_model::{Estimate, FindingCode, Record};

use super::paint::Style;
use super::{Page, Samples};
use crate::family::{Family, Graph, Spark};
use crate::figures;
use crate::sayings;

/// Findings that the lines show.
const SHOWN: [FindingCode; 5] = [
    FindingCode::ReadWriteRatio,
    FindingCode::Sequentiality,
    FindingCode::Concurrency,
    FindingCode::Saturation,
    FindingCode::GoodSizes,
];

/// A graph's line in parts.
struct Row {
    spark: Spark,
    /// What the right end is to the left one.
    ends: String,
}

/// All regions, in the order of the map.
pub(super) fn families(page: &mut Page, record: &Record, samples: &Samples<'_>) {
    let mut began = false;
    for (index, region) in record.regions.iter().enumerate() {
        let family = Family::new(region, samples);
        let rows: Vec<Row> = family.graphs.iter().filter_map(row).collect();
        let told = sayings::in_region(record, index);
        let rest = told.iter().filter(|(code, _)| !SHOWN.contains(code));
        let sentences: Vec<&String> = rest.map(|(_, sentence)| sentence).collect();
        if rows.is_empty() && sentences.is_empty() {
            continue;
        }
        if !began {
            page.heading("Throughput over each parameter");
            began = true;
        }
        page.wrapped("  ", &region.noun(), Style::Bold);
        for sentence in sentences {
            page.wrapped("    ", sentence, Style::Plain);
        }
        for line in lines(&rows, page.width) {
            page.raw(line);
        }
    }
    if began {
        let note = "Bars begin at zero. ×: the right end over the left, with its 95 % interval.";
        page.wrapped("  ", note, Style::Dim);
    }
}

fn row(graph: &Graph<'_>) -> Option<Row> {
    let spark = graph.spark()?;
    let (left, right) = (graph.estimates.first()?, graph.estimates.last()?);
    Some(Row { spark, ends: ends(left, right) })
}

/// `× 2.47 (2.20–2.77)`, or that no effect is shown.
fn ends(left: &Estimate, right: &Estimate) -> String {
    let ratio = right.throughput_bytes_per_s.over(&left.throughput_bytes_per_s);
    match ratio.effect() {
        Effect::NotShown => "no effect shown".to_owned(),
        Effect::Gain | Effect::Loss => figures::ratio(&ratio),
    }
}

/// `size_mean    4 KiB ▁▂▅▇█ 1 MiB   300 MB/s–12.0 GB/s  × 40.0 (38.1–42.0)`, aligned. On a narrow
/// page the end of the line is what can be missed.
fn lines(rows: &[Row], width: usize) -> Vec<String> {
    let widest = |part: fn(&Row) -> &str| {
        rows.iter().map(|row| part(row).chars().count()).max().unwrap_or(0)
    };
    let (key, from) = (widest(|row| row.spark.key), widest(|row| &row.spark.from));
    let (bars, to) = (widest(|row| &row.spark.bars), widest(|row| &row.spark.to));
    let rates = rows.iter().map(|row| rates(&row.spark).chars().count()).max().unwrap_or(0);
    let line = |row: &Row| {
        let spark = &row.spark;
        let shape = format!("{} {}", spark.bars, spark.to);
        let both = bars + 1 + to;
        let start = format!("    {:key$}  {:>from$} {shape:both$}", spark.key, spark.from);
        let with_rates = format!("{start}  {:>rates$}", self::rates(spark));
        let whole = format!("{with_rates}  {}", row.ends);
        let fits = |line: &String| line.chars().count() <= width;
        [whole, with_rates].into_iter().find(fits).unwrap_or(start)
    };
    rows.iter().map(line).map(|line| line.chars().take(width).collect()).collect()
}

/// `6.22–10.3 GB/s`; both units where they differ.
fn rates(spark: &Spark) -> String {
    match (spark.lowest.split_once(' '), spark.highest.split_once(' ')) {
        (Some((low, unit)), Some((high, same))) if unit == same => format!("{low}–{high} {unit}"),
        _ => format!("{}–{}", spark.lowest, spark.highest),
    }
}

#[cfg(test)]
mod tests {
    use ioscape_model::Interval;

    use super::*;

    fn estimate(mean: f64, half_width: f64) -> Estimate {
        let rate = Interval { mean, low: mean - half_width, high: mean + half_width };
        let known = serde_json::json!({
            "workload": {}, "visits": 3, "throughput_bytes_per_s": rate,
            "durable_bytes_per_s": null, "ops_per_s": Interval::exact(1.0),
            "response_time_s": ioscape_model::ResponseTime::default(), "hit_fraction": null,
            "steady": true, "warnings": [],
        });
        serde_json::from_value(known).unwrap()
    }

    #[test]
    fn an_effect_is_shown_where_the_interval_leaves_out_one() {
        for (left, right, shown) in [
            ((100.0, 5.0), (250.0, 10.0), "× 2.50 (2.34–2.67)"),
            ((100.0, 5.0), (50.0, 2.0), "× 0.50 (0.47–0.53)"),
            ((100.0, 5.0), (105.0, 5.0), "no effect shown"),
            ((100.0, 0.1), (102.0, 0.1), "no effect shown"),
            ((100.0, 200.0), (300.0, 1.0), "no effect shown"),
        ] {
            assert_eq!(ends(&estimate(left.0, left.1), &estimate(right.0, right.1)), shown);
        }
    }
}
