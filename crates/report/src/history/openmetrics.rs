//! A history as gauges: the latest value of each line, its level, and its last change.

use ioscape_model::{History, HistoryLine};

use crate::export::openmetrics::MetricFamily;

/// Units by the end of their metrics' names.
const UNITS: [(&str, &str); 3] =
    [("bytes/s", "bytes_per_second"), ("bytes", "bytes"), ("s", "seconds")];

/// Name, help, and where the figure stands.
type Gauge = (&'static str, &'static str, fn(&HistoryLine) -> Option<f64>);

/// Gauges in the unit of the line.
const FIGURES: [Gauge; 4] = [
    ("history_latest", "The latest run's value.", |line| {
        line.values.iter().rev().flatten().next().map(|value| value.mean)
    }),
    ("history_level", "Mean of the runs since the last change.", |line| Some(line.level.value)),
    ("history_level_low", "Lower end of its 95 % interval.", |line| Some(line.level.low)),
    ("history_level_high", "Upper end of its 95 % interval.", |line| Some(line.level.high)),
];

/// Gauges without a unit.
const SHARES: [Gauge; 4] = [
    ("history_noise", "Standard deviation of a run about its level, as a fraction.", |line| {
        Some(line.noise)
    }),
    (
        "history_smallest_change",
        "The smallest lasting step that would have been found in nine of ten cases, as a fraction.",
        |line| line.smallest_change,
    ),
    ("history_last_change", "Level behind the last change over level before.", |line| {
        line.changes.last().map(|change| change.ratio.value)
    }),
    ("history_last_change_run", "The run of the last change, counted from 1.", |line| {
        line.changes.last().map(|change| change.run as f64)
    }),
];

/// Renders it.
pub fn history_openmetrics(history: &History) -> String {
    let mut text = String::new();
    let label = history.label.as_str();
    let mut runs = MetricFamily::gauge(&mut text, "history_runs", "", "Runs that are kept.");
    runs.sample(&[("label", label)], Some(history.runs.len() as f64));
    for (name, help, value) in FIGURES {
        for (unit, end) in UNITS {
            let lines = || history.lines.iter().filter(|line| line.unit == unit);
            family(&mut text, label, (name, end, help), lines().map(|line| (line, value(line))));
        }
    }
    for (name, help, value) in SHARES {
        let lines = history.lines.iter().map(|line| (line, value(line)));
        family(&mut text, label, (name, "", help), lines);
    }
    let help = "Lasting steps found.";
    let lines = history.lines.iter().map(|line| (line, Some(line.changes.len() as f64)));
    family(&mut text, label, ("history_changes", "", help), lines);
    text.push_str("# EOF\n");
    text
}

/// A family, where any line has a figure for it.
fn family<'a>(
    text: &mut String,
    label: &str,
    (name, unit, help): (&str, &str, &str),
    lines: impl Iterator<Item = (&'a HistoryLine, Option<f64>)>,
) {
    let known: Vec<_> = lines.filter(|(_, value)| value.is_some()).collect();
    if known.is_empty() {
        return;
    }
    let mut family = MetricFamily::gauge(text, name, unit, help);
    for (line, value) in known {
        family.sample(&[("label", label), ("line", &line.name)], value);
    }
}
