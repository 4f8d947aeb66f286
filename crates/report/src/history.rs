//! Records kept over time, in words and cells. The page, the terminal and what a gate writes into
//! a merge request arrange these.

mod check;
mod openmetrics;
pub(crate) mod page;

use ioscape_model::units::show_percent;
use ioscape_model::{Change, Figure, History, HistoryLine, Interval, Standing, Turn};

pub use check::history_check_markdown;
pub(crate) use check::{check_sentence, check_table};
pub use openmetrics::history_openmetrics;

use crate::chart::Table;
use crate::figures;
use crate::suite::show;

/// Says of the table of lines what its intervals are.
pub(crate) const LINES_NOTE: &str = "Level: mean of the runs since the last change, 95 % interval. \
    Noise: standard deviation of a run about its level. Would have been found: the smallest lasting \
    step in the middle of all runs that is found in nine of ten cases.";
/// Says of the table of blocks what its intervals are.
pub(crate) const BLOCKS_NOTE: &str = "95 % intervals, corrected for all lines and blocks; a turn to \
    a block counts once, however many runs it has. Changes are looked for in what is left when each \
    block's mean is taken out.";

/// `24 runs of main, 2026-10-01T02:00:00Z to 2026-11-20T02:00:00Z`.
pub(crate) fn extent(history: &History) -> String {
    let runs = figures::count(history.runs.len(), "run");
    let when = match (history.runs.first(), history.runs.last()) {
        (Some(first), Some(last)) if history.runs.len() > 1 => {
            format!(", {} to {}", first.start_time, last.start_time)
        }
        (Some(only), _) => format!(", {}", only.start_time),
        _ => String::new(),
    };
    format!("{runs} of {}{when}", history.label)
}

/// Changes, the latest first; or that there are none, and the smallest that would have been seen.
pub(crate) fn sentences(history: &History) -> Vec<String> {
    let with_line =
        history.lines.iter().flat_map(|line| line.changes.iter().map(move |c| (line, c)));
    let mut changes: Vec<(&HistoryLine, &Change)> = with_line.collect();
    changes.sort_by_key(|(_, change)| std::cmp::Reverse(change.run));
    let mut sentences: Vec<String> =
        changes.into_iter().map(|(line, change)| changed(history, line, change)).collect();
    let still: Vec<&HistoryLine> =
        history.lines.iter().filter(|line| line.changes.is_empty()).collect();
    if !still.is_empty() {
        sentences.push(unchanged(&still, sentences.is_empty()));
    }
    sentences.extend(unconfounded(history));
    sentences
}

fn changed(history: &History, line: &HistoryLine, change: &Change) -> String {
    let between = if change.earliest_run == change.latest_run {
        String::new()
    } else {
        format!(", 95 % between runs {} and {}", change.earliest_run, change.latest_run)
    };
    let doubt = if change.is_confirmed { "" } else { "; one run shows it so far" };
    let version = versions(history, change);
    format!(
        "{}: {} ({}) since run {} of {}{between}{doubt}{version}",
        line.name,
        turn_word(change.turn),
        percent_change(&change.ratio),
        change.run,
        change.time,
    )
}

/// Other things that are new with the run at which a line changed.
fn versions(history: &History, change: &Change) -> String {
    let place = change.run as usize - 1;
    let (Some(run), Some(before)) =
        (history.runs.get(place), history.runs.get(place.wrapping_sub(1)))
    else {
        return String::new();
    };
    let mut new = Vec::new();
    if run.kernel != before.kernel {
        new.push(format!("kernel {} after {}", run.kernel, before.kernel));
    }
    if run.version != before.version {
        new.push(format!("ioscape {} after {}", run.version, before.version));
    }
    if new.is_empty() { String::new() } else { format!("; new with that run: {}", new.join(", ")) }
}

fn unchanged(still: &[&HistoryLine], is_all: bool) -> String {
    let lines = figures::count(still.len(), if is_all { "line" } else { "other line" });
    let sizes = || still.iter().filter_map(|line| line.smallest_change);
    let (least, most) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    let seen = match sizes().count() {
        0 => "three runs are needed to see any".to_owned(),
        1 => format!("a lasting step of {} would have been found", show_percent(most)),
        _ => format!(
            "lasting steps of {} to {}, by line, would have been found",
            show_percent(least),
            show_percent(most)
        ),
    };
    format!("no change shown in {lines}; {seen}")
}

/// Blocks that were turned to once say nothing by themselves.
fn unconfounded(history: &History) -> Option<String> {
    let once = history.blocks.iter().find(|contrast| !contrast.is_told_from_time)?;
    Some(format!(
        "what {} does cannot be told from what time does: turn to {} and {} once more each",
        once.block, once.baseline, once.block
    ))
}

/// `better`, `worse`, `different`.
pub(crate) fn turn_word(turn: Turn) -> &'static str {
    match turn {
        Turn::Better => "better",
        Turn::Worse => "worse",
        Turn::Different => "different",
    }
}

/// `better`, `worse`, `no difference shown`, …
pub(crate) fn standing_word(standing: Standing) -> &'static str {
    match standing {
        Standing::Better => "better",
        Standing::Worse => "worse",
        Standing::NoDifferenceShown => "no difference shown",
        Standing::Inconclusive => "inconclusive",
        Standing::NoBaseline => "no baseline yet",
    }
}

/// `-18 %, -21 to -15`.
pub(crate) fn percent_change(ratio: &Figure) -> String {
    let percent = |value: f64| format!("{:+.1}", (value - 1.0) * 100.0);
    format!("{} %, {} to {}", percent(ratio.value), percent(ratio.low), percent(ratio.high))
}

/// `412 MB/s (400 to 424)` in any unit.
pub(crate) fn figure(figure: &Figure, unit: &str) -> String {
    let interval = Interval::from(*figure);
    match unit {
        "bytes/s" => figures::rate(&interval),
        "bytes" => figures::bytes(&interval),
        "s" => figures::seconds(&interval),
        _ => format!(
            "{} ({}–{})",
            show(figure.value, unit),
            show(figure.low, unit),
            show(figure.high, unit)
        ),
    }
}

/// All lines: level, noise, what would have been found, trend.
pub(crate) fn lines(history: &History) -> Table {
    let head = ["line", "level", "since run", "noise", "would be found", "per run", "course"];
    let row = |line: &HistoryLine| {
        vec![
            line.name.clone(),
            figure(&line.level, &line.unit),
            line.level_since_run.to_string(),
            show_percent(line.noise),
            line.smallest_change.map_or_else(|| figures::UNKNOWN.to_owned(), show_percent),
            line.trend_per_run.as_ref().map_or_else(|| figures::UNKNOWN.to_owned(), trend),
            course(line),
        ]
    };
    Table { head: head.map(str::to_owned).to_vec(), rows: history.lines.iter().map(row).collect() }
}

/// A slope that could be none is none.
fn trend(trend: &Figure) -> String {
    if trend.low <= 1.0 && trend.high >= 1.0 {
        return "level".to_owned();
    }
    format!("{:+.2} %", (trend.value - 1.0) * 100.0)
}

/// The last runs as a row of blocks, from the line's least to its most.
fn course(line: &HistoryLine) -> String {
    const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const RUNS: usize = 20;
    let values = &line.values[line.values.len().saturating_sub(RUNS)..];
    let known = || values.iter().flatten().map(|value| value.mean);
    let (least, most) = (known().fold(f64::INFINITY, f64::min), known().fold(0.0, f64::max));
    // A line that hardly moves is drawn flat: noise is not to look like cliffs.
    let reach = (most - least).max(0.2 * most);
    let height = |value: f64| ((value - (most - reach)) / reach * 7.0).round().clamp(0.0, 7.0);
    let sign =
        |value: &Option<Interval>| value.map_or(' ', |value| HEIGHTS[height(value.mean) as usize]);
    values.iter().map(sign).collect()
}

/// Blocks against the first one.
pub(crate) fn blocks(history: &History) -> Table {
    let head = ["line", "block", "against", "ratio", "turns", "says"];
    let rows = history.blocks.iter().map(|contrast| {
        let ratio = Interval {
            mean: contrast.ratio.value,
            low: contrast.ratio.low,
            high: contrast.ratio.high,
        };
        let says = match contrast.turn {
            Some(turn) if contrast.is_told_from_time => turn_word(turn).to_owned(),
            Some(turn) => format!("{}, or time did it", turn_word(turn)),
            None => "no difference shown".to_owned(),
        };
        vec![
            contrast.line.clone(),
            contrast.block.clone(),
            contrast.baseline.clone(),
            figures::ratio(&ratio),
            format!("{} and {}", contrast.visits.1, contrast.visits.0),
            says,
        ]
    });
    Table { head: head.map(str::to_owned).to_vec(), rows: rows.collect() }
}
