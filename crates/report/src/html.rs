//! The page: one file, nothing is loaded, opens from disk. Everything in words and tables is in
//! the markup itself; the script only draws the graphs, from the data in the page.

use std::fmt::Write as _;

use askama::Template;
use ioscape_model::units::show_seconds;
use ioscape_model::{Estimate, Finding, Record};

use crate::chart::{Chart, Table};
use crate::course::{self, Part};
use crate::doubts::{self, Doubt};
use crate::facts::{self, Fact};
use crate::family::Family;
use crate::figures;
use crate::landscape;
use crate::sample::Samples;
use crate::sayings;
use crate::summary::{self, RegionRow};

pub(crate) const STYLE: &str = include_str!("../assets/report.css");
pub(crate) const SCRIPT: &str = include_str!("../assets/report.js");
pub(crate) const PLOT: &str = include_str!("../assets/plot.min.js");
pub(crate) const PLOT_LICENSES: &str = include_str!("../assets/plot.LICENSES.txt");

/// Renders the report.
pub fn html(record: &Record) -> String {
    let samples = Samples::of(record);
    let landscape = landscape::chart(record, &samples);
    let slope = landscape::slope_chart(&samples);
    let regions = region_sections(record, &samples);
    let order = course::order_chart(record);
    let stability = course::stability_chart(record);
    let families = regions.iter().flat_map(|region| region.figures.iter().map(|f| &f.chart));
    let all: Vec<&Chart> =
        [&landscape, &slope].into_iter().chain(families).chain([&order, &stability]).collect();
    let data = script_json(&all);
    let page = Page {
        style: STYLE,
        script: SCRIPT,
        plot: PLOT,
        plot_licenses: PLOT_LICENSES,
        path: &record.header.target.path,
        storage: facts::storage(&record.header),
        method: facts::method_name(record.header.method),
        facts: facts::first_facts(&record.header),
        gaps: doubts::gaps(record, &samples),
        findings: sayings::overall(record),
        doubts: doubts::doubts(record, &samples),
        rows: summary::region_rows(record, &samples),
        borders: record.borders.iter().map(landscape::border_words).collect(),
        parts: course::parts(record),
        course: course::sentences(record),
        environment: facts::environment(&record.header),
        reproduce: reproduce(record, &samples),
        interval_words: samples.interval_words(),
        pooled: samples.pooled,
        start_time: &record.header.start_time,
        tool: format!("{} {}", record.header.tool.name, record.header.tool.version),
        landscape: Figure::new(landscape, "landscape"),
        slope: Figure::new(slope, "wide"),
        order: Figure::new(order, "wide"),
        stability: Figure::new(stability, "wide"),
        data,
        regional_findings: regions.iter().any(|region| !region.findings.is_empty()),
        regions,
    };
    page.render().expect("the template writes into a string")
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    style: &'static str,
    script: &'static str,
    plot: &'static str,
    plot_licenses: &'static str,
    data: String,
    path: &'a str,
    storage: String,
    method: &'static str,
    facts: Vec<Fact>,
    gaps: Vec<String>,
    landscape: Figure,
    findings: Vec<&'a Finding>,
    doubts: Vec<Doubt>,
    rows: Vec<RegionRow>,
    borders: Vec<String>,
    regions: Vec<RegionSection>,
    /// Whether any region has findings of its own.
    regional_findings: bool,
    slope: Figure,
    parts: Vec<Part>,
    course: Vec<String>,
    order: Figure,
    stability: Figure,
    environment: Vec<Fact>,
    reproduce: Vec<ReproduceRow>,
    interval_words: String,
    pooled: bool,
    start_time: &'a str,
    tool: String,
}

/// A graph with its words and its table.
#[derive(Template)]
#[template(path = "figure.html")]
pub(crate) struct Figure {
    pub(crate) chart: Chart,
    table: Table,
    /// Class of the style sheet: how much room it gets.
    shape: &'static str,
}

impl Figure {
    pub(crate) fn new(chart: Chart, shape: &'static str) -> Self {
        Self { table: chart.table(), chart, shape }
    }
}

struct RegionSection {
    name: String,
    extent: String,
    focal: String,
    findings: Vec<String>,
    steps: Table,
    figures: Vec<Figure>,
}

fn region_sections(record: &Record, samples: &Samples<'_>) -> Vec<RegionSection> {
    let section = |(index, region): (usize, &ioscape_model::Region)| {
        let family = Family::of(region, samples);
        let charts = family.charts(index).into_iter();
        RegionSection {
            name: region.name.clone(),
            extent: crate::chart::stretch(region.unique_bytes.from, region.unique_bytes.to),
            focal: focal_words(region),
            findings: sayings::in_region(record, region),
            steps: family.steps(),
            figures: charts.map(|chart| Figure::new(chart, "small")).collect(),
        }
    };
    record.regions.iter().enumerate().map(section).collect()
}

fn focal_words(region: &ioscape_model::Region) -> String {
    let work = &region.focal;
    let mut text = format!(
        "unique_bytes = {}, size_mean = {}, read_frac = {}, seq_frac = {}, process_num = {}",
        figures::size(work.unique_bytes as f64),
        figures::size(work.size_mean as f64),
        work.read_frac,
        work.seq_frac,
        work.process_num,
    );
    // Keys beyond the five follow the fifth comma of the literal.
    for extra in work.literal().split(',').skip(5) {
        let _ = write!(text, ", {}", extra.replace('=', " = "));
    }
    text
}

struct ReproduceRow {
    workload: String,
    command: String,
    throughput: String,
    response: String,
    p99: String,
    cached: String,
    durable: String,
    visits: u32,
    steady: &'static str,
}

/// Every workload, with the command that measures it again.
fn reproduce(record: &Record, samples: &Samples<'_>) -> Vec<ReproduceRow> {
    let target = shell_word(&record.header.target.path);
    let row = |estimate: &Estimate| ReproduceRow {
        workload: estimate.workload.literal(),
        command: format!("ioscape measure {target} -w {}", estimate.workload.literal()),
        throughput: figures::rate(&estimate.throughput_bytes_per_s),
        response: show_seconds(estimate.response_time_s.mean),
        p99: show_seconds(estimate.response_time_s.p99),
        cached: figures::percent_or_unknown(estimate.hit_fraction),
        durable: estimate
            .durable_bytes_per_s
            .map_or_else(|| figures::UNKNOWN.to_owned(), ioscape_model::units::show_rate),
        visits: estimate.visits,
        steady: if estimate.steady { "yes" } else { "no" },
    };
    samples.estimates.iter().map(row).collect()
}

/// A path as a shell takes it: in single quotes unless it is plain.
fn shell_word(path: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !path.is_empty() && path.chars().all(plain) {
        return path.to_owned();
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}

/// JSON that may stand inside a script element: a `<` in a string could end the element.
pub(crate) fn script_json(charts: &[&Chart]) -> String {
    let json = serde_json::to_string(charts).expect("charts are plain data");
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_the_shell_where_they_must_be() {
        assert_eq!(shell_word("/mnt/data"), "/mnt/data");
        assert_eq!(shell_word("/mnt/my data"), "'/mnt/my data'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
