//! The summary at the end of a run, in characters: the answer with the data sheet, the landscape,
//! what each parameter does, what it says, what to doubt, how it was measured, where to look next.
//! Short enough for a ticket; the page says more.

mod application;
mod application_time;
mod caches;
mod checkup;
mod comparison;
mod conclusion;
mod datasheet;
mod estimate;
mod families;
mod history;
mod next;
mod paint;
mod plot;
mod predictions;
mod replay;
mod suite;
mod validation;
mod vector;

pub use application::application_text;
pub use application_time::{
    ApplicationPrediction, TimePart, application_ranking_text, application_time_text,
};
pub use caches::caches_text;
pub use checkup::checkup_text;
pub use comparison::comparison_text;
pub use estimate::estimate_text;
pub use history::{history_check_text, history_text};
pub use predictions::{PredictionBasis, WhatIf, predictions_text};
pub use suite::suite_text;
pub use validation::validation_text;

use comfy_table::{ContentArrangement, Table, presets};
use ioscape_model::units::{show_bytes, show_seconds};
use ioscape_model::{Conclusion, Header, Record, Severity};

use crate::answers::Answers;
use crate::chart::Ink;
use crate::course;
use crate::doubts::{self, Doubt};
use crate::facts;
use crate::figures;
use crate::landscape;
use crate::sample::Samples;
use crate::sayings;
use crate::summary::{self, Pace};
use crate::text::paint::{Paint, Style};

/// Narrower than this nothing can be aligned.
const WIDTH_MIN: usize = 60;
/// Wider than this lines are hard to read.
const WIDTH_MAX: usize = 120;
/// Workloads listed where there is no region to sum them up.
const LISTED_MAX: usize = 12;

/// What a summary is about.
#[derive(Clone, Copy, Debug)]
pub struct Summary<'a> {
    /// The record.
    pub record: &'a Record,
    /// What to conclude from it, where it holds a map.
    pub conclusion: Option<&'a Conclusion>,
    /// Its file, as it can be typed.
    pub file: &'a str,
}

/// Renders the summary of a record, `width` columns wide.
pub fn text(summary: &Summary<'_>, width: usize, color: bool) -> String {
    let Summary { record, conclusion, file } = *summary;
    if record.suite.suite.is_some() {
        return suite::suite_text(record, width, color);
    }
    let samples = Samples::from_record(record);
    let width = width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut page = Page { lines: Vec::new(), width, paint: Paint::new(color) };
    match conclusion {
        Some(conclusion) => conclusion::conclusion(&mut page, record, (conclusion, file)),
        None => title(&mut page, record),
    }
    for gap in doubts::gaps(record, &samples) {
        page.wrapped("! ", &gap, Style::Warning);
    }
    if conclusion.is_none() {
        provenance(&mut page, record);
    }
    vector::vector(&mut page, record);
    replay::replays(&mut page, record);
    picture(&mut page, record, &samples);
    if record.header.is_quick {
        // The data sheet is all there is.
    } else if record.regions.is_empty() {
        listed(&mut page, &samples);
    } else {
        regions(&mut page, record, &samples);
        families::families(&mut page, record, &samples);
    }
    findings(&mut page, record);
    doubted(&mut page, record, &samples);
    if conclusion.is_some() {
        page.heading("How it was measured");
        for note in crate::datasheet::notes(record).iter().skip(1) {
            page.wrapped("", note, Style::Dim);
        }
        provenance(&mut page, record);
    }
    time(&mut page, record);
    next::next(&mut page, record, &samples, file);
    page.finish()
}

/// Lines so far. What comes out of the record is stripped of control characters, so that a path
/// cannot move the cursor.
struct Page {
    lines: Vec<String>,
    width: usize,
    paint: Paint,
}

impl Page {
    fn heading(&mut self, text: &str) {
        self.lines.push(String::new());
        self.lines.push(self.paint.styled(text, Style::Bold));
    }

    fn raw(&mut self, line: String) {
        self.lines.push(line);
    }

    /// Wrapped, with a first line that begins with `lead` and others that stand under its text.
    fn wrapped(&mut self, lead: &str, text: &str, style: Style) {
        let indent = lead.chars().count();
        for (i, line) in wrap(&clean(text), self.width - indent).iter().enumerate() {
            let before = if i == 0 { lead.to_owned() } else { " ".repeat(indent) };
            self.lines.push(format!("{before}{}", self.paint.styled(line, style)));
        }
    }

    fn doubt(&mut self, doubt: &Doubt) {
        let (lead, style) = match doubt.severity {
            Severity::Note => ("  - ", Style::Plain),
            Severity::Warning => ("  ! ", Style::Warning),
            Severity::Serious => (" !! ", Style::Serious),
        };
        self.wrapped(lead, &format!("{}: {}", doubt.title, doubt.text), style);
    }

    fn finish(self) -> String {
        let mut text = String::new();
        for line in self.lines {
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

fn title(page: &mut Page, record: &Record) {
    page.wrapped("", &record.header.target.path, Style::Bold);
    page.wrapped("", &facts::storage(&record.header), Style::Plain);
}

/// On what machine, for how long, how well it repeats.
fn provenance(page: &mut Page, record: &Record) {
    for line in origin(&record.header) {
        page.wrapped("", &line, Style::Dim);
    }
    if let Some(extent) = course::sentences(record).first() {
        page.wrapped("", extent, Style::Dim);
    }
    if let Some(spread) = course::repeatability_words(record) {
        page.wrapped("", &spread, Style::Dim);
    }
    let left_out = record.end.as_ref().and_then(|end| course::left_out_words(&end.left_out));
    if let Some(text) = left_out {
        page.wrapped("", &text, Style::Dim);
    }
}

/// On what machine, by what, when. A simulated device has no machine.
fn origin(header: &Header) -> Vec<String> {
    let host = &header.host;
    let given = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let parts = [
        given(&host.cpu_model),
        (host.cpus > 0).then(|| figures::count(host.cpus as usize, "processor")),
        (host.memory_bytes > 0)
            .then(|| format!("{} of memory", show_bytes(host.memory_bytes as f64))),
        given(&host.kernel).map(|kernel| format!("kernel {kernel}")),
        host.virtualisation.clone(),
    ];
    let known: Vec<String> = parts.into_iter().flatten().collect();
    let machine = (!header.target.is_simulated() && !known.is_empty()).then(|| known.join(", "));
    let tool = &header.tool;
    let run =
        format!("{} {}, {}, seed {}", tool.name, tool.version, header.start_time, header.seed);
    machine.into_iter().chain([run]).collect()
}

fn picture(page: &mut Page, record: &Record, samples: &Samples<'_>) {
    let chart = landscape::chart(record, samples, Answers::default());
    if chart.is_empty() {
        return;
    }
    page.heading("Throughput over the data touched (working set)");
    for line in plot::plot(&chart, page.width, page.paint) {
        page.raw(line);
    }
    for border in &record.borders {
        let name = landscape::border_name(border);
        let text = format!(
            "{name}: begins to fall at {}, cache of {}, {}",
            figures::size(border.unique_bytes.onset),
            figures::bytes(&landscape::capacity(border)),
            landscape::found_from(border),
        );
        page.wrapped("  ", &text, Style::Plain);
    }
}

fn regions(page: &mut Page, record: &Record, samples: &Samples<'_>) {
    page.heading("Regions");
    let mut table = plain_table(page.width);
    table.set_header([
        "region",
        "data touched",
        "cached",
        "reads only",
        "writes only",
        "good sizes",
    ]);
    for row in summary::region_rows(record, samples) {
        let cells = [
            row.name,
            row.extent.replace(" to ", "\nto "),
            row.cached,
            cell(row.read),
            cell(row.write),
            row.good_sizes.replace(", the ", ",\nthe "),
        ];
        table.add_row(cells.map(|cell| clean(&cell)));
    }
    add_table(page, &table);
    let note = format!("In brackets: {}.", samples.interval_words());
    page.wrapped("  ", &note, Style::Dim);
}

/// `4.8 GB/s (4.5–5.2)` above `293k IOPS` above `p99 5.12 µs`.
fn cell(pace: Pace) -> String {
    [pace.rate, pace.ops, pace.p99].join("\n").trim_end().to_owned()
}

/// Workloads one by one, where no region sums them up.
fn listed(page: &mut Page, samples: &Samples<'_>) {
    if samples.estimates.is_empty() {
        return;
    }
    page.heading("Measured");
    let mut above = None;
    for estimate in samples.estimates.iter().take(LISTED_MAX) {
        let figures = format!(
            "{}, {}, mean response {}, p99 {}, cached {}",
            figures::rate(&estimate.throughput_bytes_per_s),
            figures::per_second(&estimate.ops_per_s),
            show_seconds(estimate.response_time_s.mean),
            show_seconds(estimate.response_time_s.p99),
            figures::percent_or_unknown(estimate.hit_fraction),
        );
        if above.replace(&estimate.workload) != Some(&estimate.workload) {
            page.wrapped("  ", &estimate.workload.literal().replace(',', ", "), Style::Dim);
        }
        page.wrapped("    ", &figures, Style::Plain);
    }
    if let Some(more) = samples.estimates.len().checked_sub(LISTED_MAX + 1) {
        page.wrapped("  ", &format!("and {} more.", more + 1), Style::Dim);
    }
    let note = format!("In brackets: {}.", samples.interval_words());
    page.wrapped("  ", &note, Style::Dim);
}

fn findings(page: &mut Page, record: &Record) {
    if record.findings.is_empty() {
        return;
    }
    page.heading("What was found");
    for finding in sayings::overall(record) {
        page.wrapped("  - ", &finding.text, Style::Plain);
    }
}

fn doubted(page: &mut Page, record: &Record, samples: &Samples<'_>) {
    let all = doubts::doubts(record, samples);
    if all.is_empty() {
        return;
    }
    page.heading("What to doubt");
    for doubt in &all {
        page.doubt(doubt);
        if !doubt.remedy.is_empty() {
            page.wrapped("    > ", &doubt.remedy, Style::Plain);
        }
    }
}

fn time(page: &mut Page, record: &Record) {
    let parts = course::parts(record);
    if parts.is_empty() {
        return;
    }
    page.heading("Where the time went");
    let shares: Vec<String> = parts
        .iter()
        .map(|part| format!("{} {} ({})", part.name, part.duration(), part.share()))
        .collect();
    page.wrapped("  ", &shares.join(", "), Style::Plain);
}

fn plain_table(width: usize) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    table
}

fn add_table(page: &mut Page, table: &Table) {
    for (i, line) in table.lines().enumerate() {
        let style = if i == 0 { Style::Dim } else { Style::Plain };
        page.raw(format!(" {}", page.paint.styled(line.trim_end(), style)));
    }
}

/// Breaks at spaces, but not between a figure and its unit; a word longer than the line is cut.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(last) if last.ends_with(|c: char| c.is_ascii_digit()) && is_unit(word) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in words {
        let word: Vec<char> = word.chars().collect();
        let mut rest = &word[..];
        while !rest.is_empty() {
            let space = usize::from(used > 0);
            if used > 0 && used + space + rest.len() > width {
                lines.push(String::new());
                used = 0;
                continue;
            }
            let (taken, left) = rest.split_at(rest.len().min(width));
            let line = lines.last_mut().expect("there is always a line");
            line.push_str(&" ".repeat(space));
            line.extend(taken);
            used += space + taken.len();
            rest = left;
        }
    }
    lines
}

fn is_unit(word: &str) -> bool {
    let units = [
        "%", "B", "KiB", "MiB", "GiB", "TiB", "/s", "B/s", "kB/s", "MB/s", "GB/s", "TB/s", "ns",
        "µs", "ms", "s", "min", "h",
    ];
    units.contains(&word.trim_end_matches(['.', ',', ';', ':', ')']))
}

fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { '?' } else { c }).collect()
}

/// The letter of a curve: colour alone tells nothing on paper or in a pipe.
fn letter(ink: Ink) -> char {
    match ink {
        Ink::Read => 'r',
        Ink::Write => 'w',
        Ink::Mixed => 'm',
        _ => 'o',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_broken_at_spaces_and_long_words_are_cut() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a 1234567890 b", 4), ["a", "1234", "5678", "90 b"]);
        assert_eq!(wrap("", 7), [""]);
        assert_eq!(wrap("up to 64 MiB.", 11), ["up to", "64 MiB."]);
    }

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\r"), "a?[31mb?");
    }
}
