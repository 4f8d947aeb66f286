//! The page of a comparison: one file that loads nothing, with the overlay of all systems (Chen
//! and Patterson 1994, Fig. 10) and the predicted ratios (Fig. 17).

use std::collections::BTreeSet;

use askama::Template;
use ioscape_model::{Comparison, Estimate, Interval, Verdict, Workload};

use super::{
    CACHES_NOTE, ComparedSystem, ComparisonPage, REGIONS_NOTE, caches, confounded, dropped,
    elements, elements_note, intolerable, is_live, legend, letter, listed, of_system, prices,
    regions, sentence, two_digits_at_least, unresolved, workloads, workloads_note, worth,
};
use crate::chart::{
    Axis, Chart, Drawn, Ink, Mark, Rule, RuleKind, Scale, Series, Table, Unit, throughput_axis,
    unique_bytes_axis,
};
use crate::doubts::Doubt;
use crate::facts::{self, Fact};
use crate::figures::{self, UNKNOWN};
use crate::mark::page_mark;
use crate::page::{Figure, PLOT, PLOT_LICENSES, SCRIPT, STYLE, script_json};
use crate::sample::Samples;

/// The colours of systems, in their order.
const INKS: [Ink; 6] = [Ink::Read, Ink::Write, Ink::Mixed, Ink::Fill, Ink::Canary, Ink::Plain];
/// Room between the marks of two systems on one workload.
const BESIDE: f64 = 0.14;

/// Renders the page.
pub fn comparison_html(page: &ComparisonPage<'_>) -> String {
    // What was measured in alternation is a few workloads and no map: it has no lines to overlay.
    // System vectors alone have no workloads either.
    let is_overlaid = !is_live(page) && page.systems.iter().any(|s| !s.predicted.is_empty());
    let overlay = is_overlaid.then(|| overlay(page));
    let ratios = (!page.document.comparisons.is_empty()).then(|| ratios(page));
    let charts: Vec<&Chart> = overlay.iter().chain(&ratios).collect();
    let data = script_json(&charts);
    let sections = (1..page.systems.len()).map(|place| section(page, place)).collect();
    let template = ComparisonTemplate {
        mark: page_mark(page.systems.iter().map(|system| system.record)),
        style: STYLE,
        script: SCRIPT,
        plot: PLOT,
        plot_licenses: PLOT_LICENSES,
        data,
        systems: letters(page.systems.len()),
        legend: legend(page),
        dropped: dropped(page),
        overlay: overlay.map(|chart| Figure::new(chart, "landscape")),
        ratios: ratios.map(|chart| Figure::new(chart, "landscape")),
        sections,
        differences: differences(page),
        prices: (!page.document.prices.is_empty()).then(|| prices(page)),
        doubted: doubted(page),
    };
    template.render().expect("the template writes into a string")
}

#[derive(Template)]
#[template(path = "comparison.html")]
struct ComparisonTemplate {
    mark: String,
    style: &'static str,
    script: &'static str,
    plot: &'static str,
    plot_licenses: &'static str,
    data: String,
    /// `A, B and C`.
    systems: String,
    legend: Vec<(String, String)>,
    dropped: Option<String>,
    overlay: Option<Figure>,
    ratios: Option<Figure>,
    sections: Vec<Section>,
    differences: Table,
    prices: Option<Table>,
    /// Letters of records with their doubts.
    doubted: Vec<(String, Vec<Doubt>)>,
}

/// One system against the baseline.
struct Section {
    letter: String,
    sentences: Vec<String>,
    /// Titles, tables, and what their figures are.
    tables: [(&'static str, Table, String); 4],
}

/// `A, B and C`.
fn letters(systems: usize) -> String {
    let letters: Vec<String> = (0..systems).map(letter).collect();
    listed(&letters.iter().map(String::as_str).collect::<Vec<_>>())
}

fn section(page: &ComparisonPage<'_>, place: usize) -> Section {
    let (system, letter) = (&page.document.systems[place - 1], letter(place));
    let comparisons = of_system(page, place);
    let sentences = [
        Some(sentence(system, comparisons, &letter)),
        confounded(page, place),
        worth(system, &letter),
        intolerable(system, &letter),
        unresolved(page, comparisons, &letter),
    ];
    Section {
        sentences: sentences.into_iter().flatten().collect(),
        tables: [
            ("Workloads", workloads(system, comparisons, &letter), workloads_note(page, place)),
            ("Regions", regions(system, &letter), REGIONS_NOTE.to_owned()),
            ("Caches", caches(system, &letter), CACHES_NOTE.to_owned()),
            ("System vectors", elements(system, &letter), elements_note(system)),
        ],
        letter,
    }
}

/// The doubts of each record that has any.
fn doubted(page: &ComparisonPage<'_>) -> Vec<(String, Vec<Doubt>)> {
    let row = |(place, record): (usize, &ioscape_model::RecordWarnings)| {
        (letter(place), record.warnings.iter().map(Doubt::about).collect::<Vec<_>>())
    };
    let all = page.document.warnings.iter().enumerate().map(row);
    all.filter(|(_, doubts)| !doubts.is_empty()).collect()
}

/// What the environments of the systems do not have in common; what differs from run to run
/// anyway is left out.
fn differences(page: &ComparisonPage<'_>) -> Table {
    const OF_THE_RUN: [&str; 6] = [
        "started",
        "seed",
        "command line",
        "free at the start",
        "memory available at the start",
        "load average at the start",
    ];
    let all: Vec<Vec<Fact>> =
        page.systems.iter().map(|s| facts::environment(&s.record.header)).collect();
    let mut names: Vec<&str> = all.iter().flatten().map(|(name, _)| *name).collect();
    let mut seen = BTreeSet::new();
    names.retain(|name| !OF_THE_RUN.contains(name) && seen.insert(*name));
    let value = |facts: &Vec<Fact>, name: &str| {
        let fact = facts.iter().find(|(of, _)| *of == name);
        fact.map_or_else(|| UNKNOWN.to_owned(), |(_, value)| value.clone())
    };
    let row = |name: &&str| -> Vec<String> {
        [(*name).to_owned()].into_iter().chain(all.iter().map(|f| value(f, name))).collect()
    };
    let differs = |row: &Vec<String>| row[1..].iter().any(|value| *value != row[1]);
    let letters = (0..page.systems.len()).map(letter);
    Table {
        head: [String::new()].into_iter().chain(letters).collect(),
        rows: names.iter().map(row).filter(differs).collect(),
    }
}

fn ink(place: usize) -> Ink {
    INKS[place % INKS.len()]
}

/// Throughput over `unique_bytes`, one line for each system.
fn overlay(page: &ComparisonPage<'_>) -> Chart {
    let mut series = Vec::new();
    for (place, system) in page.systems.iter().enumerate() {
        let (ink, letter) = (ink(place), letter(place));
        let mark = |&(x, y): &(f64, f64)| Mark { x, y: Interval::exact(y), note: String::new() };
        series.push(Series {
            name: format!("{letter}, predicted"),
            ink,
            drawn: Drawn::Line,
            marks: system.predicted.iter().map(mark).collect(),
        });
        let marks = measured(system, &page.overlay);
        if !marks.is_empty() {
            let name = format!("{letter}, measured");
            series.push(Series { name, ink, drawn: Drawn::Dots, marks });
        }
    }
    Chart {
        id: "overlay".to_owned(),
        title: "Throughput over the amount of data touched".to_owned(),
        caption: format!(
            "Lines: predicted for {}, the same for all systems. Dots: what each record measured \
             of that, with 95 % intervals. Both axes are logarithmic.",
            mix(&page.overlay)
        ),
        x: unique_bytes_axis(),
        y: throughput_axis(Scale::Log10),
        series,
        bands: vec![],
        rules: vec![],
    }
}

/// What was measured on the line.
fn measured(system: &ComparedSystem<'_>, overlay: &Workload) -> Vec<Mark> {
    let samples = Samples::from_record(system.record);
    let is_on_line = |estimate: &&Estimate| {
        let unique_bytes = estimate.workload.unique_bytes;
        estimate.workload == Workload { unique_bytes, ..overlay.clone() }
    };
    let mark = |estimate: &Estimate| Mark {
        x: estimate.workload.unique_bytes as f64,
        y: estimate.throughput_bytes_per_s,
        note: figures::count(estimate.visits as usize, "visit"),
    };
    let mut marks: Vec<Mark> = samples.estimates.iter().filter(is_on_line).map(mark).collect();
    marks.sort_by(|a, b| a.x.total_cmp(&b.x));
    marks
}

fn mix(work: &Workload) -> String {
    format!(
        "requests of {}, {} reads, {} sequential, {}",
        figures::size(work.size_mean as f64),
        figures::percent(work.read_frac),
        figures::percent(work.seq_frac),
        if work.process_num == 1 {
            "1 process".to_owned()
        } else {
            format!("{} processes", work.process_num)
        }
    )
}

/// `oltp × 0.15`.
fn name_and_ratio(comparison: &Comparison) -> String {
    match comparison.verdict {
        Verdict::OutOfRange => comparison.name.clone(),
        _ => format!("{} × {}", comparison.name, two_digits_at_least(comparison.ratio.value)),
    }
}

/// Predicted ratio of each workload.
fn ratios(page: &ComparisonPage<'_>) -> Chart {
    let others = page.systems.len().saturating_sub(1);
    let names: Vec<String> = match others {
        0 => vec![],
        1 => of_system(page, 1).iter().map(name_and_ratio).collect(),
        _ => of_system(page, 1).iter().map(|comparison| comparison.name.clone()).collect(),
    };
    let compared = |place| {
        let all = of_system(page, place).iter().enumerate();
        all.filter(|(_, comparison)| comparison.verdict != Verdict::OutOfRange)
    };
    let series = (1..=others).map(|place| {
        let aside = (place as f64 - f64::midpoint(others as f64, 1.0)) * BESIDE;
        let mark = |(i, comparison): (usize, &Comparison)| Mark {
            x: i as f64 + 1.0 + aside,
            y: comparison.ratio.into(),
            note: match comparison.verdict {
                Verdict::Faster => "faster",
                Verdict::Slower => "slower",
                Verdict::NoDifferenceShown => "unclear: the two may be alike or differ",
                Verdict::Inconclusive => "too coarse for a difference as small as asked for",
                Verdict::OutOfRange => "not compared: a record holds no measurements like it",
            }
            .to_owned(),
        };
        Series {
            name: format!("{} / A", letter(place)),
            ink: ink(place),
            drawn: Drawn::Dots,
            marks: compared(place).map(mark).collect(),
        }
    });
    Chart {
        id: "ratios".to_owned(),
        title: if is_live(page) {
            "Throughput over that of A, measured in alternation".to_owned()
        } else {
            "Throughput over that of A, predicted".to_owned()
        },
        caption: "Above 1 a system is faster than A. Bars: 95 % intervals, corrected for \
                  the number of tests. A bar across 1: unclear. The vertical \
                  axis is logarithmic."
            .to_owned(),
        x: Axis::of_names("workload", names),
        y: Axis::new("ratio", Scale::Log10, Unit::Ratio),
        series: series.collect(),
        bands: vec![],
        rules: vec![Rule { at: 1.0, name: String::new(), kind: RuleKind::Level, ink: Ink::Plain }],
    }
}
