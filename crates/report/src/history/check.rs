//! A new record against its baseline: a table, a sentence, and both with a picture in Markdown.

use std::fmt::Write as _;

use ioscape_model::units::show_percent;
use ioscape_model::{CheckedLine, HistoryCheck, Interval, Standing};

use super::{figure, standing_word};
use crate::chart::Table;
use crate::figures::{self, UNKNOWN};
use crate::suite::show;

/// Line by line.
pub(crate) fn check_table(check: &HistoryCheck) -> Table {
    let head = ["line", "baseline", "now", "ratio", "would be shown", "says"];
    let row = |line: &CheckedLine| {
        let ratio = line.ratio.map(Interval::from);
        let or_unknown = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
        vec![
            line.name.clone(),
            or_unknown(line.baseline.as_ref().map(|baseline| figure(baseline, &line.unit))),
            show(line.value.mean, &line.unit),
            or_unknown(ratio.as_ref().map(figures::ratio)),
            or_unknown(line.resolution.map(show_percent)),
            standing_word(line.standing).to_owned(),
        ]
    };
    Table { head: head.map(str::to_owned).to_vec(), rows: check.lines.iter().map(row).collect() }
}

/// All of it in a sentence.
pub(crate) fn check_sentence(check: &HistoryCheck) -> String {
    let named = |standing: Standing| -> String {
        let of_it = check.lines.iter().filter(|line| line.standing == standing);
        of_it.map(|line| line.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let runs = figures::count(check.runs as usize, "run");
    let against = format!("against {runs} of {}", check.label);
    match check.standing {
        Standing::Worse => format!("Worse {against}: {}.", named(Standing::Worse)),
        Standing::Inconclusive => format!(
            "Inconclusive {against}: a difference as small as asked for would not have been shown \
             in {}.",
            named(Standing::Inconclusive)
        ),
        Standing::Better => format!("Better {against}: {}.", named(Standing::Better)),
        Standing::NoDifferenceShown => format!("No difference shown {against}."),
        Standing::NoBaseline => {
            format!("No baseline yet: {} has {runs}, two are needed.", check.label)
        }
    }
}

/// The sentence, the table and a picture of the ratios (a Mermaid chart, which GitHub and GitLab
/// draw), for a comment on a merge request.
pub fn history_check_markdown(check: &HistoryCheck) -> String {
    let mut text = format!("### ioscape: {}\n\n", standing_word(check.standing));
    let _ = writeln!(text, "{}\n", cell(&check_sentence(check))); // a String takes everything
    let table = check_table(check);
    let row = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|text| cell(text)).collect();
        format!("| {} |", cells.join(" | "))
    };
    let _ = writeln!(text, "{}\n|{}", row(&table.head), "---|".repeat(table.head.len()));
    for cells in &table.rows {
        let _ = writeln!(text, "{}", row(cells));
    }
    text.push_str(&picture(check));
    text.push_str(
        "\nRatios are the new run over the runs since the last change, with intervals that hold \
         for all lines together (95 %).\n",
    );
    text
}

/// Bars of the ratios in percent, for lines that have a baseline.
fn picture(check: &HistoryCheck) -> String {
    let shown: Vec<(&str, f64)> = check
        .lines
        .iter()
        .filter_map(|line| Some((line.name.as_str(), line.ratio?.value)))
        .filter(|(_, ratio)| ratio.is_finite())
        .collect();
    if shown.is_empty() {
        return String::new();
    }
    let names: Vec<String> = shown.iter().map(|(name, _)| format!("\"{}\"", plain(name))).collect();
    let bars: Vec<String> =
        shown.iter().map(|(_, ratio)| format!("{:.1}", ratio * 100.0)).collect();
    let most = shown.iter().map(|(_, ratio)| ratio * 100.0).fold(100.0, f64::max);
    format!(
        "\n```mermaid\nxychart-beta\n    title \"% of the baseline\"\n    x-axis [{}]\n    y-axis 0 \
         --> {:.0}\n    bar [{}]\n```\n",
        names.join(", "),
        (most * 1.1).ceil(),
        bars.join(", ")
    )
}

/// A record may come from anywhere: its names must not end a cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace(['\n', '\r', '<', '>', '`'], " ")
}

/// A name in a picture.
fn plain(name: &str) -> String {
    name.chars().filter(|c| c.is_ascii_alphanumeric() || " -_.=:".contains(*c)).collect()
}
