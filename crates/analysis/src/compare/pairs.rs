//! Workloads that both records measured: evidence on the ratio that rests on no model.
//!
//! Plans of one kind measure many workloads alike, but a region's graphs stand where its borders
//! were found, and those are never found in exactly the same place. So two workloads that agree in
//! everything but a few percent of `unique_bytes` count as one; the models carry the throughput
//! over that small step.

use ioscape_model::Workload;
use ioscape_stats::{median, robust_sd};

use super::{Difference, System};
use crate::model::Sample;

/// Largest step in `unique_bytes`, in logarithms.
const STEP_MAX: f64 = 0.05;
/// Fewer pairs say little about how much pairs scatter.
pub(super) const PAIRS_MIN: usize = 8;
/// By this part of what was carried it may be wrong: one standard deviation.
const CARRIED_ERROR: f64 = 0.5;
/// For a normal law: the standard error of a median over that of a mean, and how many of the degrees
/// of freedom the median deviation uses.
const MEDIAN_OVER_MEAN: f64 = 1.2533;
const EFFICIENCY: f64 = 0.37;

/// A workload that both measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LogRatio {
    /// Logarithm of the ratio.
    pub(super) ln_ratio: f64,
    /// Variance of its error.
    pub(super) variance: f64,
}

/// All pairs. Each workload is used once.
pub(super) fn measured_pairs(baseline: &System<'_>, other: &System<'_>) -> Vec<LogRatio> {
    let mut taken = vec![false; other.samples.len()];
    let mut found = Vec::new();
    for sample in baseline.samples {
        let candidates = other.samples.iter().enumerate().filter(|(index, _)| !taken[*index]);
        let near = candidates.filter_map(|(index, candidate)| {
            let step = step(&sample.workload, &candidate.workload)?;
            (step <= STEP_MAX).then_some((step, index))
        });
        let Some((_, index)) = near.min_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
        taken[index] = true;
        found.push(pair(baseline, other, sample, &other.samples[index]));
    }
    found
}

/// How far apart two workloads are that differ in nothing but `unique_bytes`.
fn step(one: &Workload, other: &Workload) -> Option<f64> {
    let moved = Workload { unique_bytes: other.unique_bytes, ..one.clone() };
    let (from, to) = (one.unique_bytes as f64, other.unique_bytes as f64);
    (moved == *other).then(|| (to / from).ln().abs())
}

fn pair(baseline: &System<'_>, other: &System<'_>, from: &Sample, to: &Sample) -> LogRatio {
    let carried = |system: &System<'_>| {
        let ln = |sample: &Sample| system.answers.guess(&sample.workload).ln_throughput;
        if from.workload == to.workload { 0.0 } else { ln(to) - ln(from) }
    };
    let step = f64::midpoint(carried(baseline), carried(other));
    LogRatio {
        ln_ratio: to.ln_throughput - from.ln_throughput - step,
        variance: from.sd.powi(2) + to.sd.powi(2) + (CARRIED_ERROR * step).powi(2),
    }
}

/// The median of the pairs and its error, from their scatter, which is robust against the few
/// workloads that are in another state in one of the runs; and how many pairs there are.
pub(super) fn typical(pairs: &[LogRatio]) -> Option<(Difference, usize)> {
    let count = pairs.len();
    if count < PAIRS_MIN {
        return None;
    }
    let ratios = || pairs.iter().map(|pair| pair.ln_ratio);
    let middle = median(ratios())?;
    let sd = robust_sd(ratios().map(|value| value - middle))?;
    let standard_error = MEDIAN_OVER_MEAN * sd / (count as f64).sqrt();
    let degrees_of_freedom = EFFICIENCY * (count as f64 - 1.0);
    Some((Difference { value: middle, sd: standard_error, degrees_of_freedom }, count))
}
