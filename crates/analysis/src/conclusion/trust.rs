//! The grade: each criterion has one of its own, the worst is the record's.
//!
//! Two visits to one workload whose relative standard deviation is `s` differ by chance by up to `1.96 · √2 ·
//! s` in 19 of 20 cases: 14 % at `s` = 5 %, 28 % at 10 %, 69 % at 25 %. That is where the grades' limits and
//! meanings come from.

use ioscape_model::{
    Code, EndReason, Grade, Point, Record, Role, Severity, SheetFigures, Trust, Warning,
    units::show_percent,
};

use super::half_width;

/// Spread of repeated measurements (standard deviation over mean) that a grade allows.
const SPREAD: [f64; 3] = [0.05, 0.10, 0.25];
/// How far the control measurement may move from its median.
const CONTROL: [f64; 3] = [0.10, 0.25, 0.50];
/// Share of workloads that may be unsteady or imprecise. What a visit is unsure of is part of what
/// repeats differ by, so that this alone never makes a D.
const UNSURE: [f64; 3] = [0.25, 0.75, 1.0];
/// Half-width of the data sheet's intervals, the median over its lines.
const SHEET: [f64; 3] = [0.10, 0.25, 0.50];
/// From this share of workloads on, serious doubts about them are about the whole record.
const SERIOUS_SHARE: f64 = 0.25;
/// Fewer control measurements say little.
const CONTROLS_MIN: usize = 3;

/// What one criterion says.
struct Reason {
    grade: Grade,
    text: String,
}

/// The slowest and the fastest control measurement, over their median; `None` where there is no median above 0.
pub fn control_range(points: &[Point]) -> Option<[f64; 2]> {
    let controls = points.iter().filter(|point| point.role == Role::Canary);
    let mut rates: Vec<f64> = controls.map(Point::throughput).collect();
    rates.retain(|rate| rate.is_finite());
    rates.sort_by(f64::total_cmp);
    let median = ioscape_stats::median(rates.iter().copied()).filter(|median| *median > 0.0)?;
    Some([rates.first()? / median, rates.last()? / median])
}

/// How far to trust a record.
pub(super) fn trust(record: &Record) -> Trust {
    let criteria = [
        ended(record),
        grave(record),
        reach(record),
        spread(record),
        control(record),
        unsure(record),
        sheet(record),
        environment(record),
    ];
    let mut reasons: Vec<Reason> = criteria.into_iter().flatten().collect();
    // Stable: among equals the order above decides.
    reasons.sort_by_key(|reason| std::cmp::Reverse(reason.grade));
    let grade = reasons.first().map_or(Grade::D, |reason| reason.grade);
    // What earns an A is no reason for another grade; where all do, the first two say why.
    let is_told = |reason: &Reason| reason.grade > Grade::A || grade == Grade::A;
    let texts = reasons.into_iter().filter(is_told).take(2).map(|reason| reason.text);
    Trust { grade, meaning: meaning(grade).to_owned(), reasons: texts.collect() }
}

fn meaning(grade: Grade) -> &'static str {
    match grade {
        Grade::A => {
            "± covers this run only; in another, speeds and times (not sizes) may be 15 % higher or lower"
        }
        Grade::B => {
            "± covers this run only; in another, speeds and times (not sizes) may be 30 % higher or lower"
        }
        Grade::C => {
            "± covers this run only; in another, speeds and times (not sizes) may be half to twice these"
        }
        Grade::D => "measure again before you decide",
    }
}

fn graded(value: f64, limits: [f64; 3], text: String) -> Reason {
    let grade = match value {
        v if v <= limits[0] => Grade::A,
        v if v <= limits[1] => Grade::B,
        v if v <= limits[2] => Grade::C,
        _ => Grade::D,
    };
    Reason { grade, text }
}

/// Whether the run came to its end.
fn ended(record: &Record) -> Option<Reason> {
    let why = match record.end.as_ref().map(|end| end.reason) {
        None => "the run was killed, or is still going",
        Some(EndReason::Interrupted) => "the run was interrupted",
        Some(EndReason::Failed) => "the run ended early, because measuring failed",
        Some(EndReason::Written) => "the run ended early, at its limit on bytes written",
        _ if record.map.as_ref().is_some_and(|map| map.provisional) => {
            "the map is provisional: more was to be measured"
        }
        _ => return None,
    };
    Some(Reason { grade: Grade::C, text: why.to_owned() })
}

/// Doubts that say not to use a figure.
fn grave(record: &Record) -> Option<Reason> {
    let is_serious = |warning: &Warning| warning.severity == Severity::Serious;
    // A limit is what is measured there, as on any rented volume: no reason to measure again.
    let is_limit = |warning: &&Warning| warning.code == Code::Throttled;
    let (limits, others): (Vec<&Warning>, Vec<&Warning>) =
        record.warnings.iter().filter(|warning| is_serious(warning)).partition(is_limit);
    if let Some(warning) = others.first() {
        return Some(Reason { grade: Grade::D, text: warning.in_short() });
    }
    let first = |warnings: &[Warning]| warnings.iter().find(|warning| is_serious(warning)).cloned();
    let doubted: Vec<Warning> =
        record.estimates.iter().filter_map(|estimate| first(&estimate.warnings)).collect();
    let Some(warning) = doubted.first() else {
        let limit = limits.first();
        return limit.map(|limit| Reason { grade: Grade::C, text: limit.in_short() });
    };
    let share = doubted.len() as f64 / record.estimates.len() as f64;
    let grade = if share >= SERIOUS_SHARE { Grade::D } else { Grade::C };
    let count = doubted.len();
    let text = format!(
        "{count} of {} workloads carry a serious doubt ({})",
        record.estimates.len(),
        warning.code.title()
    );
    Some(Reason { grade, text })
}

/// Whether the map reaches beyond the page cache.
fn reach(record: &Record) -> Option<Reason> {
    let is_short = |warning: &&Warning| warning.code == Code::BorderNotReached;
    let warning = record.warnings.iter().find(is_short)?;
    Some(Reason { grade: Grade::C, text: warning.text.clone() })
}

fn spread(record: &Record) -> Option<Reason> {
    let is_short = |warning: &Warning| warning.code == Code::Incomplete;
    let map = record.map.as_ref()?;
    if let Some(spread) = map.repeatability {
        let text = format!("repeats differ by {}", show_percent(spread));
        return Some(graded(spread, SPREAD, text));
    }
    let known = record.estimates.iter().any(|estimate| estimate.visits > 1)
        || map.datasheet.iter().any(|line| line.visits > 1);
    let text = "hardly any workload was measured twice".to_owned();
    (!known || record.warnings.iter().any(is_short)).then_some(Reason { grade: Grade::C, text })
}

/// Whether the machine stayed as it was: the control measurement is repeated all the while.
fn control(record: &Record) -> Option<Reason> {
    let controls = record.points.iter().filter(|point| point.role == Role::Canary);
    let [low, high] = control_range(&record.points).filter(|_| controls.count() >= CONTROLS_MIN)?;
    let moved = (1.0 - low).max(high - 1.0);
    let text = format!(
        "the control measurement varied from {:.0} to {:.0} % of its median",
        low * 100.0,
        high * 100.0
    );
    Some(graded(moved, CONTROL, text))
}

fn unsure(record: &Record) -> Option<Reason> {
    let is_unsure = |warning: &Warning| {
        matches!(warning.code, Code::NotSteady | Code::NotPrecise | Code::Bistable)
            && warning.severity >= Severity::Warning
    };
    let count = record.estimates.iter().filter(|e| e.warnings.iter().any(is_unsure)).count();
    let total = record.estimates.len();
    let share = count as f64 / total as f64;
    let text = format!("{count} of {total} measurements are unsteady or imprecise");
    (total > 0).then(|| graded(share, UNSURE, text))
}

fn sheet(record: &Record) -> Option<Reason> {
    let width = |line: &SheetFigures| {
        let ops = line.ops_per_s;
        half_width(ops.low, ops.value, ops.high)
    };
    let mut widths: Vec<f64> = record.map.as_ref()?.datasheet.iter().map(width).collect();
    widths.sort_by(f64::total_cmp);
    let typical = *widths.get(widths.len() / 2)?;
    let text = format!("the data sheet is known to ±{}", show_percent(typical));
    Some(graded(typical, SHEET, text))
}

/// What else is doubtful about the run as a whole.
fn environment(record: &Record) -> Option<Reason> {
    let counted =
        [Code::BorderNotReached, Code::Drift, Code::Incomplete, Code::MaxWritten, Code::NoCounters];
    let counts = |warning: &&Warning| {
        warning.severity == Severity::Warning && !counted.contains(&warning.code)
    };
    let warning = record.warnings.iter().find(counts)?;
    Some(Reason { grade: Grade::B, text: warning.in_short() })
}
