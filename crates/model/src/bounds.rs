//! What the numbers and texts of a line may be. A file may hold anything, and whatever is made of
//! a record (axes, curves, grids, a plan to go on with) goes by its numbers: what no run can have
//! written is refused where the record is opened, so that nobody later has to ask.

use serde_json::Value;

use crate::rules::RulesError;
use crate::units::DURATION_S_MAX;
use crate::workload::WorkloadError;
use crate::{Header, Line, Region, Suite, Workload};

/// Nothing that is counted or measured comes to 2^63.
const AMOUNT_END: f64 = 9_223_372_036_854_775_808.0;
/// Each revision takes a line at least, and a record holds no more lines.
const REVISION_END: f64 = 100_000.0;
/// Longer texts are none that a run writes, bytes; tables repeat some of them in each row.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// What can be asked for.
const REPEATS_MAX: u32 = 1000;
const SCALE_MAX: f64 = 10_000.0;

/// Fields, with all that is in them, that may hold anything: seeds, sizes as some filesystem states
/// them, ends of intervals and what else a fit may put far out, figures under free names, and what
/// was typed.
const FREE: [&str; 20] = [
    "seed",
    "first_offset",
    "size_bytes",
    "free_bytes",
    "room_bytes",
    "low",
    "high",
    "onset",
    "capacity",
    "step",
    "figures",
    "parameters",
    "ratio",
    "cross_validated_error",
    "interval_factor",
    "command_line",
    "sim",
    "start_offset_s",
    "finish_offset_s",
    "clock_drift_ppm",
];

impl Line {
    /// Whether a run can have written it: readers refuse it otherwise.
    ///
    /// # Errors
    /// The first number that no run writes.
    pub fn check(&self) -> Result<(), RulesError> {
        check(self)
    }
}

fn check(line: &Line) -> Result<(), RulesError> {
    match line {
        Line::Header(header) => check_header(header)?,
        Line::Point(point) => check_workload("workload", &point.workload)?,
        Line::Estimate(estimate) => check_workload("workload", &estimate.workload)?,
        Line::Region(region) => check_region(region)?,
        Line::Sustained(sustained) => check_workload("workload", &sustained.workload)?,
        Line::Suite(suite) => check_suite(suite)?,
        Line::Resumed(resumed) => check_budget(resumed.budget_s.unwrap_or(0.0))?,
        // Figures of benchmarks, which may be anything, and of nothing else.
        Line::Score(_) | Line::Contrast(_) => return Ok(()),
        _ => {}
    }
    let value = serde_json::to_value(line).unwrap_or_default();
    check_amounts(&value, "")
}

fn check_header(header: &Header) -> Result<(), RulesError> {
    let within = |name: &str| {
        let name = name.to_owned();
        move |error: RulesError| RulesError { field: format!("{name}.{}", error.field), ..error }
    };
    header.ranges.check().map_err(within("ranges"))?;
    header.rules.check().map_err(within("rules"))?;
    if let Some(device) = &header.device {
        device.ranges.check().map_err(within("device.ranges"))?;
    }
    header.asked.iter().try_for_each(|work| check_workload("asked", work))?;
    let mut sheet = header.datasheet.iter();
    sheet.try_for_each(|line| check_workload("datasheet.workload", &line.workload))?;
    check_budget(header.budget_s)
}

fn check_budget(budget_s: f64) -> Result<(), RulesError> {
    check_within("budget_s", budget_s, (0.0, DURATION_S_MAX))
}

fn check_workload(field: &str, work: &Workload) -> Result<(), RulesError> {
    work.check().map_err(|error| {
        let WorkloadError::Value { key, value, expected } = error else {
            let expected = "eight times size_mean for each process, or more";
            return RulesError::new(format!("{field}.unique_bytes"), work.unique_bytes, expected);
        };
        RulesError::new(format!("{field}.{key}"), value, expected)
    })
}

/// A focal vector may have so little data that nobody could measure it there.
fn check_region(region: &Region) -> Result<(), RulesError> {
    match region.focal.check() {
        Err(WorkloadError::ShareTooSmall { .. }) => Ok(()),
        _ => check_workload("focal", &region.focal),
    }
}

fn check_suite(suite: &Suite) -> Result<(), RulesError> {
    let settings = &suite.settings;
    check_within("repeats", f64::from(suite.repeats), (1.0, f64::from(REPEATS_MAX)))?;
    check_within("settings.scale", settings.scale, (0.0, SCALE_MAX))?;
    check_within("settings.slice_s", settings.slice_s, (0.0, DURATION_S_MAX))
}

fn check_within(field: &str, value: f64, (least, most): (f64, f64)) -> Result<(), RulesError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(RulesError::new(field, value, format!("{least} to {most}")))
}

/// All other numbers and texts, by the names that they stand under.
fn check_amounts(value: &Value, field: &str) -> Result<(), RulesError> {
    match value {
        Value::Object(fields) => fields.iter().try_for_each(|(name, value)| match &**name {
            name if FREE.contains(&name) => Ok(()),
            name if field.is_empty() => check_amounts(value, name),
            name => check_amounts(value, &format!("{field}.{name}")),
        }),
        Value::Array(values) => values.iter().try_for_each(|value| check_amounts(value, field)),
        Value::Number(number) => {
            let (end, expected) = match field {
                "revision" => (REVISION_END, "0 to 99999"),
                _ => (AMOUNT_END, "0 or more, below 2^63"),
            };
            let fits = number.as_f64().is_some_and(|amount| (0.0..end).contains(&amount));
            if fits { Ok(()) } else { Err(RulesError::new(field, number, expected)) }
        }
        Value::String(text) if text.len() > TEXT_BYTES_MAX => {
            let given = format!("{} bytes long", text.len());
            Err(RulesError::new(field, given, format!("up to {TEXT_BYTES_MAX} bytes")))
        }
        _ => Ok(()),
    }
}
