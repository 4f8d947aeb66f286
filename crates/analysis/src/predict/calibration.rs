//! Calibrated intervals: normalised cross-conformal prediction (Barber et al. 2021) on workloads that
//! were left out of the fit.
//!
//! An error is measured in units of the root of the model's own variance, that of what was measured and one
//! common to all workloads. The model's own doubt hardly tells good predictions from bad ones: a factor on it alone
//! had to be so large (3.5 to 7.1) that most intervals became too wide (`docs/experiments.md`). What is
//! common is known for workloads that memory serves and for those that wait for storage.
//! `half = hypot(factor √(own + noise + shared), 1.645 elsewhere, 1.645 caches)`, no less than [`HALF_WIDTH_MIN`].

use ioscape_model::Workload;
use ioscape_stats::{NORMAL_90, conformal_quantile, median, robust_sd};
use serde::{Deserialize, Serialize};

use crate::model::blend::{Blend, HeldOut};
use crate::model::{Sample, Training};

/// The quantile of the errors that 90 % intervals rest on. Beyond it errors are taken to be normal: the
/// largest are those of workloads in corners of the box (all reads, all in sequence, smallest size), which
/// are extrapolated when they are left out. On twelve maps of simulated devices intervals from the 90 %
/// quantile itself held 94 % and spanned a factor of 2.3; these hold 93 % and span 2.0.
const QUANTILE: f64 = 0.8;
/// The normal law's, two-sided.
const NORMAL_80: f64 = 1.281_551_6;
/// Cross-validation overstates the error of a measurement of a few seconds by this factor: single visits
/// scatter more, and a fit without a tenth of the samples is worse. A choice: with 1, 1.25 and 1.43 intervals
/// held 97, 95 and 93 % of the corpus workloads that were looked at (`docs/experiments.md`). The percentages
/// at the other constants of this file were measured before this factor existed.
const LEFT_OUT_OVER_MEASURED: f64 = 1.25;
/// What the page cache's state adds to another measurement, standard deviation of a logarithm: in
/// which pieces the data is held depends on all that ran before (`docs/method.md`, section 2).
const STATE_SD: f64 = 0.08;
/// The largest cache for reads, and those for writes, are found larger or smaller by this factor another time, one
/// standard deviation. Of 104 workloads of the corpus
/// that hang on it intervals held 77 % without it and 91 % with it (`docs/experiments.md`).
const CACHE_FACTOR: f64 = 1.1;
/// Samples on a graph keep their neighbours on that graph when they are left out, so they are missed by
/// less than any other workload is. Half-widths are multiplied by `1 + OFF_GRAPH/(1 + n/OFF_GRAPH_HALVED)`
/// with `n` workloads off the graphs. On twelve simulated devices drawn by seed intervals of maps of
/// two, three and ten minutes held 76, 82 and 96 % without it, and 82, 86 and 97 % with it.
const OFF_GRAPH: f64 = 0.8;
const OFF_GRAPH_HALVED: f64 = 6.0;
/// Intervals are never narrower than this half-width, as a logarithm.
const HALF_WIDTH_MIN: f64 = 0.02;

/// A workload of which storage takes more of the time than this is not one that memory serves. The two
/// are missed by different amounts: from a map of ext4 by 8 and by 21 % (medians), of a simulated disk by
/// 4 and by 8 %.
const STORAGE_SHARE: f64 = 0.1;
/// Workloads of one kind that were left out, at least, for a variance of their own.
const KIND_MIN: usize = 12;

/// How intervals follow from the model's variance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Calibration {
    /// Half-widths over the root of own and shared variance.
    factor: f64,
    /// Variance that errors share beyond what the model knew of: of workloads that memory serves, and
    /// of those that wait for storage.
    shared_variance: [f64; 2],
    /// Median of |ln(measured/predicted)| of samples that were left out.
    error_median: f64,
    /// Drift and another state of the page cache add this everywhere: standard deviation of a logarithm.
    elsewhere_sd: f64,
}

impl Calibration {
    /// From the errors of samples that were left out of the fit. Part of an error is the scatter of the visit
    /// itself: [`Blend::noise`], or the sample's own standard error if that is larger, as it is for visits
    /// cut short to spare writes. That excess is taken out here, because a measurement of a few seconds does
    /// not have it.
    pub(super) fn from_held_out(blend: &Blend, training: &Training, held_out: &[HeldOut]) -> Self {
        let samples = training.all();
        let own_variance = |held: &HeldOut| {
            let Sample { workload, visits, sd, .. } = samples[held.index];
            let between_visits = blend.noise(workload) / f64::from((*visits).max(1));
            held.guess.sd.powi(2) + f64::max(between_visits, sd * sd)
        };
        let kind = |held: &HeldOut| kind(blend, &samples[held.index].workload);
        let shared_of = |which: &dyn Fn(&HeldOut) -> bool| {
            let of: Vec<&HeldOut> = held_out.iter().filter(|held| which(held)).collect();
            let errors = of.iter().map(|held| held.ln_error);
            let shared = shared_variance(errors, of.iter().map(|held| own_variance(held)));
            Some(shared).filter(|_| of.len() >= KIND_MIN)
        };
        let all = shared_of(&|_| true).unwrap_or(0.0);
        let shared_variance =
            [MEMORY, STORAGE].map(|wanted| shared_of(&|held| kind(held) == wanted).unwrap_or(all));
        let score = |held: &HeldOut| {
            held.ln_error.abs() / (own_variance(held) + shared_variance[kind(held)]).sqrt()
        };
        let mut scores: Vec<f64> = held_out.iter().map(score).collect();
        scores.sort_by(f64::total_cmp);
        let factor = conformal_quantile(&scores, QUANTILE)
            .map_or(NORMAL_90, |score| score / NORMAL_80 * NORMAL_90 / LEFT_OUT_OVER_MEASURED);
        let state_sd = if training.hints.in_memory { 0.0 } else { STATE_SD };
        Self {
            factor: factor * off_graph(training.off_graph_count),
            shared_variance,
            error_median: median(held_out.iter().map(|held| held.ln_error.abs())).unwrap_or(0.0),
            elsewhere_sd: training.drift_sd.hypot(state_sd),
        }
    }

    /// Half-widths over the root of own and shared variance, before drift and cache state are added.
    pub(super) fn factor(&self) -> f64 {
        self.factor
    }

    /// Median of |ln(measured/predicted)| over all workloads, each left out of the fit once.
    pub(super) fn error_median(&self) -> f64 {
        self.error_median
    }

    /// Half of the interval's width, as a logarithm.
    pub(super) fn half_width(&self, blend: &Blend, work: &Workload) -> f64 {
        let caches_sd = blend.change_with_caches(work, CACHE_FACTOR);
        let elsewhere = NORMAL_90 * self.elsewhere_sd.hypot(caches_sd);
        self.half_width_here(blend, work).hypot(elsewhere).max(HALF_WIDTH_MIN)
    }

    /// Half of the width for another measurement within the run itself.
    pub(super) fn half_width_here(&self, blend: &Blend, work: &Workload) -> f64 {
        let own_variance = blend.guess(work).sd.powi(2) + blend.noise(work);
        self.factor * (own_variance + self.shared_variance[kind(blend, work)]).sqrt()
    }
}

/// Kinds of workloads, as places in pairs.
const MEMORY: usize = 0;
const STORAGE: usize = 1;

fn kind(blend: &Blend, work: &Workload) -> usize {
    let share: f64 = blend.storage_shares(work).iter().sum();
    if share > STORAGE_SHARE { STORAGE } else { MEMORY }
}

/// How much wider intervals are for a map with so many workloads that lie on no graph.
fn off_graph(off_graph_count: usize) -> f64 {
    1.0 + OFF_GRAPH / (1.0 + off_graph_count as f64 / OFF_GRAPH_HALVED)
}

/// Robust variance of the errors less the median of the variances that the model knew of; at least 0.
fn shared_variance(
    ln_errors: impl IntoIterator<Item = f64>,
    own: impl IntoIterator<Item = f64>,
) -> f64 {
    let all = robust_sd(ln_errors).unwrap_or(0.0).powi(2);
    (all - median(own).unwrap_or(0.0)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_errors_share_is_what_the_model_does_not_know_of() {
        // Half of a normal law's errors are beyond 0.6745 standard deviations.
        let errors = |sd: f64| [0.3, -0.6745, 0.6745, 0.1, -1.6].map(|error| error * sd);
        let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-5, "{found}");
        near(shared_variance(errors(0.2), [0.01; 5]), 0.03);
        near(shared_variance(errors(0.2), [0.0, 0.01, 0.01, 0.02, 9.0]), 0.03);
        near(shared_variance(errors(0.2), [0.05; 5]), 0.0);
        near(shared_variance([], []), 0.0);
    }
}
