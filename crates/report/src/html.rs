//! The page: one file, nothing is loaded, opens from disk. Everything in words and tables is in
//! the markup itself; the script only draws the graphs, from the data in the page.

use std::fmt::Write as _;
use std::io::Write as _;

use askama::Template;
use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::Compression;
use flate2::write::GzEncoder;
use ioscape_model::{Conclusion, Finding, Record, Severity};

use crate::answers::Answers;
use crate::chart::{Chart, Table};
use crate::costs;
use crate::course::{self, Part};
use crate::datasheet::{self, SheetRow};
use crate::doubts::{self, Doubt};
use crate::facts::{self, Fact};
use crate::family::Family;
use crate::figures;
use crate::glossary;
use crate::hosts;
use crate::html::predictor::PredictorSection;
use crate::html::reproduce::{ReproduceRow, jobs, reproduce};
use crate::landscape;
use crate::mark::page_mark;
use crate::page::{Figure, PLOT, PLOT_LICENSES, SCRIPT, STYLE, script_json};
use crate::rates;
use crate::replays;
use crate::responses;
use crate::sample::Samples;
use crate::sayings;
use crate::summary::{self, RegionRow};
use crate::validation::ValidationPage;
use crate::validation::page::Check;
use crate::vector::{self, VectorGroup};

mod predictor;
mod reproduce;

pub use predictor::PagePredictor;

/// What stands on the page.
#[derive(Clone, Copy)]
pub struct ReportPage<'a> {
    /// The record.
    pub record: &'a Record,
    /// What to conclude from it, where it holds a map.
    pub conclusion: Option<&'a Conclusion>,
    /// What its models say of workloads.
    pub answers: Answers<'a>,
    /// The models as the page asks them.
    pub predictor: Option<PagePredictor<'a>>,
    /// How far off that was, where somebody tried.
    pub check: Option<ValidationPage<'a>>,
}

impl<'a> ReportPage<'a> {
    /// The page of a record alone, without models.
    pub fn from_record(record: &'a Record) -> Self {
        Self { record, conclusion: None, answers: Answers::default(), predictor: None, check: None }
    }
}

/// Renders the report.
pub fn html(page: &ReportPage<'_>) -> String {
    let record = page.record;
    if record.suite.suite.is_some() {
        return crate::suite::page::suite_html(record);
    }
    let samples = Samples::from_record(record);
    let mut page = Page {
        mark: page_mark([record]),
        style: STYLE,
        script: SCRIPT,
        plot: PLOT,
        plot_licenses: PLOT_LICENSES,
        path: &record.header.target.path,
        storage: facts::storage(&record.header),
        conclusion: page.conclusion,
        glossary: glossary::WORDS,
        facts: facts::first_facts(&record.header),
        gaps: doubts::gaps(record, &samples),
        findings: sayings::overall(record),
        doubts: doubts::doubts(record, &samples),
        sheet: datasheet::rows(record),
        sheet_notes: datasheet::notes(record),
        vector: vector::groups(record),
        vector_notes: vector::notes(record),
        replays: replays::sentences(record),
        replay_headings: replays::HEADINGS,
        replay_rows: replays::rows(record),
        replay_examples: replays::examples(record),
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
        landscape: Figure::new(landscape::chart(record, &samples, page.answers), "landscape"),
        slope: Figure::new(landscape::slope_chart(&samples), "wide"),
        order: Figure::new(course::order_chart(record), "wide"),
        stability: Figure::new(course::stability_chart(record), "wide"),
        costs: small(costs::charts(record, page.answers)),
        responses: small(responses::charts(record, &samples)),
        alone: alone([hosts::chart(record), rates::chart(record)]),
        check: page.check.as_ref().map(Check::from_page),
        predictor: page.predictor.as_ref().map(PredictorSection::new),
        has_model: page.answers.are_there(),
        regions: region_sections(record, &samples, page.answers),
        jobs: jobs(record, &samples),
        data: String::new(),
    };
    page.data = script_json(&page.charts());
    page.render().expect("the template writes into a string")
}

/// Draws these graphs and leaves out the empty ones.
fn alone<const N: usize>(charts: [Chart; N]) -> Vec<Figure> {
    let drawn = charts.into_iter().filter(|chart| !chart.is_empty());
    drawn.map(|chart| Figure::new(chart, "wide")).collect()
}

fn small(charts: Vec<Chart>) -> Vec<Figure> {
    charts.into_iter().map(|chart| Figure::new(chart, "small")).collect()
}

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    mark: String,
    style: &'static str,
    script: &'static str,
    plot: &'static str,
    plot_licenses: &'static str,
    data: String,
    jobs: String,
    path: &'a str,
    storage: String,
    conclusion: Option<&'a Conclusion>,
    glossary: &'static [glossary::Word],
    facts: Vec<Fact>,
    gaps: Vec<String>,
    landscape: Figure,
    findings: Vec<&'a Finding>,
    doubts: Vec<Doubt>,
    sheet: Vec<SheetRow>,
    sheet_notes: Vec<String>,
    vector: Vec<VectorGroup>,
    vector_notes: Vec<String>,
    replays: Vec<String>,
    replay_headings: [&'static str; 7],
    replay_rows: Vec<[String; 7]>,
    replay_examples: &'a [String],
    rows: Vec<RegionRow>,
    borders: Vec<String>,
    regions: Vec<RegionSection>,
    /// Whether the graphs have the curves of a model.
    has_model: bool,
    predictor: Option<PredictorSection>,
    slope: Figure,
    costs: Vec<Figure>,
    responses: Vec<Figure>,
    /// Graphs with a section of their own.
    alone: Vec<Figure>,
    check: Option<Check>,
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

impl Page<'_> {
    /// Whether any region has findings of its own.
    fn has_regional_findings(&self) -> bool {
        self.regions.iter().any(|region| !region.findings.is_empty())
    }

    /// The grade's letter.
    fn grade(&self) -> String {
        self.conclusion.map_or_else(String::new, |said| format!("{:?}", said.trust.grade))
    }

    /// The gravest doubts, for the head of the page.
    fn serious_count(&self) -> usize {
        self.doubts.iter().filter(|doubt| doubt.severity == Severity::Serious).count()
    }

    /// All graphs, in their order on the page.
    fn charts(&self) -> Vec<&Chart> {
        let families = self.regions.iter().flat_map(|region| &region.figures);
        let check = self.check.iter().flat_map(Check::figures);
        let figures = [&self.landscape]
            .into_iter()
            .chain(families)
            .chain(&self.costs)
            .chain(&self.responses)
            .chain(check)
            .chain(&self.alone)
            .chain([&self.slope, &self.order, &self.stability]);
        figures.map(|figure| &figure.chart).collect()
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

fn region_sections(
    record: &Record,
    samples: &Samples<'_>,
    answers: Answers<'_>,
) -> Vec<RegionSection> {
    let section = |(index, region): (usize, &ioscape_model::Region)| {
        let family = Family::new(region, samples);
        RegionSection {
            name: region.name.to_string(),
            extent: crate::chart::stretch(region.unique_bytes.from, region.unique_bytes.to),
            focal: focal_words(region),
            findings: sayings::in_region(record, index).into_iter().map(|(_, said)| said).collect(),
            steps: family.steps(),
            figures: small(family.charts(index, answers, &record.header.ranges)),
        }
    };
    record.regions.iter().enumerate().map(section).collect()
}

fn focal_words(region: &ioscape_model::Region) -> String {
    let work = &region.focal;
    let mut text = format!(
        "{} of data, requests of {}, {} reads, {} sequential, {}",
        figures::size(work.unique_bytes as f64),
        figures::size(work.size_mean as f64),
        figures::percent(work.read_frac),
        figures::percent(work.seq_frac),
        match work.process_num {
            1 => "1 process".to_owned(),
            n => format!("{n} processes"),
        },
    );
    for (key, value) in work.unusual_pairs() {
        let _ = write!(text, ", {key} = {value}");
    }
    text
}

/// Anything, deflated with gzip, in base64: a script element's text that `unpacked` of the page's
/// script reads.
pub(crate) fn script_gzip(data: &[u8]) -> String {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(data).expect("memory takes any write");
    BASE64_STANDARD.encode(packed.finish().expect("memory takes any write"))
}
