//! The page of a history: one file that loads nothing, with a graph for each line.

use askama::Template;
use ioscape_model::{Change, History, HistoryLine, Interval};

use super::{BLOCKS_NOTE, LINES_NOTE, blocks, extent, lines, percent_change, sentences, turn_word};
use crate::chart::{
    Axis, Band, BandKind, Chart, Drawn, Ink, Mark, Rule, RuleKind, Scale, Series, Table, Unit,
};
use crate::page::{Figure, PLOT, PLOT_LICENSES, SCRIPT, STYLE, script_json};

/// Renders the page.
pub fn history_html(history: &History) -> String {
    let charts: Vec<Chart> = history
        .lines
        .iter()
        .enumerate()
        .map(|(number, line)| chart(history, number, line))
        .collect();
    let data = script_json(&charts);
    let page = Page {
        mark: history_mark(&history.label),
        style: STYLE,
        script: SCRIPT,
        plot: PLOT,
        plot_licenses: PLOT_LICENSES,
        data,
        label: &history.label,
        extent: extent(history),
        sentences: sentences(history),
        figures: charts.into_iter().map(|chart| Figure::new(chart, "landscape")).collect(),
        lines: lines(history),
        lines_note: LINES_NOTE,
        blocks: blocks(history),
        blocks_note: BLOCKS_NOTE,
        runs: runs(history),
    };
    page.render().expect("the template writes into a string")
}

/// The element in the head of a page that says whose history it is: a page that holds it may be
/// written anew.
pub fn history_mark(label: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
    let label: String = label.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    format!("<meta name=\"ioscape-history\" content=\"{label}\">")
}

#[derive(Template)]
#[template(path = "history.html")]
struct Page<'a> {
    mark: String,
    style: &'static str,
    script: &'static str,
    plot: &'static str,
    plot_licenses: &'static str,
    data: String,
    label: &'a str,
    extent: String,
    sentences: Vec<String>,
    figures: Vec<Figure>,
    lines: Table,
    lines_note: &'static str,
    blocks: Table,
    blocks_note: &'static str,
    runs: Table,
}

fn chart(history: &History, number: usize, line: &HistoryLine) -> Chart {
    let mark = |(place, value): (usize, &Option<Interval>)| {
        let run = &history.runs[place];
        let block = run.block.as_ref().map_or_else(String::new, |block| format!(", {block}"));
        Some(Mark {
            x: place as f64 + 1.0,
            y: (*value)?,
            note: format!("{}{block}", run.start_time),
        })
    };
    let dots = line.values.iter().enumerate().filter_map(mark).collect();
    let mut series =
        vec![Series { name: "a run".to_owned(), ink: Ink::Mixed, drawn: Drawn::Dots, marks: dots }];
    series.push(levels(line));
    Chart {
        id: format!("line-{number}"),
        title: line.name.clone(),
        caption: caption(line),
        x: Axis::new("run", Scale::Linear, Unit::Count),
        y: Axis::new(&line.unit, Scale::Linear, unit(&line.unit)),
        series,
        bands: bands(history),
        rules: line.changes.iter().map(rule).collect(),
    }
}

fn unit(unit: &str) -> Unit {
    match unit {
        "bytes/s" => Unit::Rate,
        "bytes" => Unit::Bytes,
        "s" => Unit::Seconds,
        _ => Unit::Count,
    }
}

fn caption(line: &HistoryLine) -> String {
    if line.changes.is_empty() {
        return "No lasting change shown.".to_owned();
    }
    let said = |change: &Change| {
        format!(
            "{} at run {} ({})",
            turn_word(change.turn),
            change.run,
            percent_change(&change.ratio)
        )
    };
    format!("{}.", line.changes.iter().map(said).collect::<Vec<_>>().join("; "))
}

/// The level between changes, worked back from the last one by the sizes of the steps.
fn levels(line: &HistoryLine) -> Series {
    let last = line.values.len() as f64;
    let mut marks = Vec::new();
    let (mut end, mut level) = (last, line.level.value);
    for change in line.changes.iter().rev() {
        let start = change.run as f64;
        marks.extend(flat(start, end, level));
        (end, level) = (start, level / change.ratio.value);
    }
    marks.extend(flat(1.0, end, level));
    marks.reverse();
    Series { name: "level".to_owned(), ink: Ink::Plain, drawn: Drawn::Line, marks }
}

/// Both ends of a level, the later one first.
fn flat(start: f64, end: f64, level: f64) -> [Mark; 2] {
    [end, start].map(|x| Mark { x, y: Interval::exact(level), note: String::new() })
}

fn rule(change: &Change) -> Rule {
    Rule {
        at: change.run as f64 - 0.5,
        name: format!("{:+.1} %", (change.ratio.value - 1.0) * 100.0),
        kind: RuleKind::Capacity,
        ink: Ink::Write,
    }
}

/// A shaded stretch for each turn to a block.
fn bands(history: &History) -> Vec<Band> {
    let mut bands: Vec<Band> = Vec::new();
    for (place, run) in history.runs.iter().enumerate() {
        let Some(block) = &run.block else { continue };
        let (from, to) = (place as f64 + 0.5, place as f64 + 1.5);
        match bands.last_mut() {
            Some(band) if band.name == *block && band.to >= from => band.to = to,
            _ => bands.push(Band { from, to, name: block.clone(), kind: BandKind::Region }),
        }
    }
    bands
}

fn runs(history: &History) -> Table {
    let head = ["run", "began", "block", "kernel", "ioscape", "record"];
    let row = |(place, run): (usize, &ioscape_model::KeptRun)| {
        vec![
            (place + 1).to_string(),
            run.start_time.clone(),
            run.block.clone().unwrap_or_default(),
            run.kernel.clone(),
            run.version.clone(),
            run.record.clone(),
        ]
    };
    Table {
        head: head.map(str::to_owned).to_vec(),
        rows: history.runs.iter().enumerate().map(row).collect(),
    }
}
