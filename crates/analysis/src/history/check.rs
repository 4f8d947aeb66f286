//! A new record against the baseline that the history holds: for each line the runs since its last
//! change.
//!
//! The interval is that of one new run (Student's t, with the spread between runs and the
//! uncertainty of the baseline's mean). All lines together are called worse by chance with
//! [`HISTORY_LEVEL`] at most.

use ioscape_model::{Better, CheckedLine, Figure, HistoryCheck, Reading, Standing};
use ioscape_stats::change::law::NullLaw;
use ioscape_stats::change::{self, steps};
use ioscape_stats::t_two_sided;

use super::{
    HISTORY_LEVEL, LINE_LEVEL, Run, figure, is_same, sort, track, variance_within, with_half_width,
};

/// Fewer runs are no baseline.
const BASELINE_RUNS_MIN: usize = 2;

/// Demands on a new record.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Demand {
    /// Worse by less than this fraction is tolerated.
    pub tolerance: f64,
    /// A difference of this fraction has to be one that would have been shown.
    pub resolution: Option<f64>,
}

/// Holds the figures of a record against runs kept under a label, in any order.
pub fn check(
    label: &str,
    mut runs: Vec<Run>,
    (record, readings): (&str, &[Reading]),
    demand: Demand,
) -> HistoryCheck {
    sort(&mut runs);
    let mut law = NullLaw::default();
    let confidence = 1.0 - HISTORY_LEVEL / readings.len().max(1) as f64;
    let lines: Vec<CheckedLine> = readings
        .iter()
        .map(|reading| {
            let before = baseline(&runs, reading, &mut law);
            checked(reading, before.as_ref(), confidence, demand)
        })
        .collect();
    let standing = overall(&lines);
    HistoryCheck {
        label: label.to_owned(),
        record: record.to_owned(),
        runs: runs.len() as u64,
        lines,
        standing,
    }
}

/// Logarithms of a line since its last change, and their least variance; none where they are too
/// few.
fn baseline(runs: &[Run], reading: &Reading, law: &mut NullLaw) -> Option<(Vec<f64>, f64)> {
    let known = |run: &Run| run.readings.iter().any(|other| is_same(other, reading));
    if !runs.iter().any(known) {
        return None;
    }
    let track = track(runs, reading)?;
    let since = steps(&track.series(), law, LINE_LEVEL).last().map_or(0, |step| step.at);
    let values = track.logarithms[since..].to_vec();
    (values.len() >= BASELINE_RUNS_MIN).then_some((values, track.variance_within))
}

fn checked(
    reading: &Reading,
    before: Option<&(Vec<f64>, f64)>,
    confidence: f64,
    demand: Demand,
) -> CheckedLine {
    let mut line = CheckedLine {
        name: reading.name.clone(),
        unit: reading.unit.clone(),
        better: reading.better,
        baseline_runs: before.map_or(0, |(values, _)| values.len() as u64),
        baseline: None,
        value: reading.value,
        ratio: None,
        resolution: None,
        standing: Standing::NoBaseline,
    };
    let level = before.and_then(|(values, least)| {
        change::level(values, least.max(variance_within(&reading.value)))
    });
    if let Some((mean, sd)) = level
        && reading.value.mean > 0.0
    {
        let error = (sd * sd + mean.standard_error.powi(2)).sqrt();
        let half_width = t_two_sided(confidence, mean.degrees_of_freedom) * error;
        let ratio = with_half_width(reading.value.mean.ln() - mean.value, half_width);
        line.baseline = Some(figure(&mean));
        line.ratio = Some(ratio);
        line.resolution = Some(1.0 - (-half_width).exp());
        line.standing = standing(reading.better, &ratio, half_width, demand);
    }
    line
}

fn standing(better: Better, ratio: &Figure, half_width: f64, demand: Demand) -> Standing {
    let tolerated = 1.0 - demand.tolerance;
    let (is_better, is_worse) = match better {
        Better::Higher => (ratio.low > 1.0, ratio.high < tolerated),
        Better::Lower => (ratio.high < 1.0, ratio.low > 1.0 / tolerated),
        Better::Neither => (false, false),
    };
    let is_coarse =
        demand.resolution.is_some_and(|resolution| 1.0 - (-half_width).exp() > resolution);
    match (is_better, is_worse) {
        (true, _) => Standing::Better,
        (_, true) => Standing::Worse,
        _ if is_coarse && better != Better::Neither => Standing::Inconclusive,
        _ => Standing::NoDifferenceShown,
    }
}

/// The worst that any line says. Lines without a baseline say nothing where others have one.
fn overall(lines: &[CheckedLine]) -> Standing {
    const WORST_FIRST: [Standing; 4] =
        [Standing::Worse, Standing::Inconclusive, Standing::Better, Standing::NoDifferenceShown];
    let says = |standing: &Standing| lines.iter().any(|line| line.standing == *standing);
    WORST_FIRST.into_iter().find(says).unwrap_or(Standing::NoBaseline)
}
