//! Records kept over time, as answers: how each line of a system went, its changes, how blocks
//! differ, and how a new record stands against its baseline. Plain documents, as `--json` prints
//! them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Better, Figure, Interval, point::finite};

/// A figure that every record of a system has, under one name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reading {
    /// A named workload, `read border`, `region storage`, `andrew: total`.
    pub name: String,
    /// `bytes/s`, `bytes`, `s`, …
    pub unit: String,
    /// The direction that is better.
    pub better: Better,
    /// The figure with its 95 % interval within that run.
    pub value: Interval,
}

/// A run that is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptRun {
    /// Its name in file names and groups.
    pub run_id: String,
    /// The block it belongs to (`--block`); null outside blocks.
    pub block: Option<String>,
    /// Its record, from the history's directory.
    pub record: String,
    /// Wall-clock time at its start, UTC.
    pub start_time: String,
    /// The kernel that it ran under.
    pub kernel: String,
    /// The version of the program that measured.
    pub version: String,
}

/// The direction of a change, as a judgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// For the better.
    Better,
    /// For the worse.
    Worse,
    /// Neither: the figure is no merit.
    Different,
}

/// A lasting step in a line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// The first run behind it, counted from 1.
    pub run: u64,
    /// When that run began, UTC.
    pub time: String,
    /// The earliest run that it may have been, 95 %.
    pub earliest_run: u64,
    /// The latest.
    pub latest_run: u64,
    /// Level behind it over level before, 95 %.
    pub ratio: Figure,
    /// Chance of a step like this somewhere in a line without any.
    #[serde(serialize_with = "finite")]
    pub p_value: f64,
    /// False while one run alone shows it.
    pub is_confirmed: bool,
    /// Its direction, as a judgement.
    pub turn: Turn,
}

/// One figure of a system over its runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryLine {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The direction that is better.
    pub better: Better,
    /// By run, with the 95 % interval within it; null where a run does not have it.
    pub values: Vec<Option<Interval>>,
    /// Level since the last change, 95 %.
    pub level: Figure,
    /// The first run at that level, counted from 1.
    pub level_since_run: u64,
    /// By what runs at one level differ: standard deviation, as a fraction.
    #[serde(serialize_with = "finite")]
    pub noise: f64,
    /// Factor from one run to the next since the last change, 95 %; null where there are too few
    /// runs.
    pub trend_per_run: Option<Figure>,
    /// The smallest lasting step that would have been found in nine of ten cases, as a fraction;
    /// null where there are too few runs for any.
    pub smallest_change: Option<f64>,
    /// Lasting steps, earliest first.
    pub changes: Vec<Change>,
}

/// A line in two blocks: runs under one condition, then under another, and back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BlockContrast {
    /// The line.
    pub line: String,
    /// The block that is compared with.
    pub baseline: String,
    /// The other one.
    pub block: String,
    /// Level in it over level in the baseline, 95 %, corrected for all lines and blocks.
    pub ratio: Figure,
    /// How often each was turned to, the baseline first: `A B A B` is 2 and 2.
    pub visits: (u64, u64),
    /// True if both were turned to more than once; otherwise an effect of the block and one of time
    /// cannot be told apart.
    pub is_told_from_time: bool,
    /// True if the interval leaves 1 out.
    pub shown: bool,
    /// Direction of the difference, as a judgement, where the interval leaves 1 out.
    pub turn: Option<Turn>,
}

/// The document of `history show --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct History {
    /// The label that the records are kept under.
    pub label: String,
    /// All runs, earliest first.
    pub runs: Vec<KeptRun>,
    /// All lines.
    pub lines: Vec<HistoryLine>,
    /// Blocks against the first one, where runs belong to blocks. Changes are looked for in what is
    /// left when each block's mean is taken out.
    pub blocks: Vec<BlockContrast>,
}

/// A line of a new record against its baseline, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Better than the baseline, beyond doubt.
    Better,
    /// Worse than the baseline by more than is tolerated, beyond doubt.
    Worse,
    /// The interval holds 1, or lies within what is tolerated.
    NoDifferenceShown,
    /// The interval holds 1, and a difference as small as was asked for could not have been shown.
    Inconclusive,
    /// The baseline has too few runs with that line.
    NoBaseline,
}

/// One line of a new record against its baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CheckedLine {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// The direction that is better.
    pub better: Better,
    /// How many runs the baseline rests on: those since the last change.
    pub baseline_runs: u64,
    /// The baseline, 95 %; null without one.
    pub baseline: Option<Figure>,
    /// The new record's.
    pub value: Interval,
    /// The new one over the baseline, corrected for all lines; null without a baseline.
    pub ratio: Option<Figure>,
    /// The smallest difference that would have been shown, as a fraction; null without a baseline.
    pub resolution: Option<f64>,
    /// The verdict.
    pub standing: Standing,
}

/// The document of `history check --json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HistoryCheck {
    /// The label that it was held against.
    pub label: String,
    /// The new record.
    pub record: String,
    /// How many runs are kept under that label.
    pub runs: u64,
    /// All lines of the new record.
    pub lines: Vec<CheckedLine>,
    /// All of it together: the worst of what the lines say.
    pub standing: Standing,
}
