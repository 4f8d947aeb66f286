//! Intervals that hold what they promise: normalised cross-conformal prediction (Barber et al.
//! 2021) on workloads that were left out of the fit.
//!
//! What an error is held against is the model's own standard deviation and what it is off by
//! everywhere: where the model thinks itself sure it is hardly better than elsewhere, and intervals
//! that took its word for it were too wide for most in order to hold for these (`docs/method.md`,
//! section 9).
//!
//! `crates/report/assets/predictor.js` has a port of the half-width: change both.

use ioscape_model::portable::PortableCalibration;
use ioscape_stats::{median, robust_sd};

use crate::model::blend::{Blend, HeldOut};
use crate::model::{Guess, Training};

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.9;
/// What a normal law says, where nothing can be counted: half of a 90 % interval over the standard
/// deviation behind it.
pub(super) const SCORE_USUAL: f64 = 1.645;
/// What the page cache's state adds to another measurement, standard deviation of a logarithm: in
/// which pieces the data is held depends on all that ran before (`docs/method.md`, section 2).
const STATE_SD: f64 = 0.08;
/// Intervals are never narrower than this half-width, as a logarithm.
const HALF_WIDTH_MIN: f64 = 0.02;

/// How much wider than their own standard deviation errors turned out to be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Calibration {
    factor: f64,
    /// Variance that errors have everywhere, beyond what the model knows of.
    common_variance: f64,
    error_median: f64,
    /// What another hour and another state of the cache add: standard deviation of a logarithm.
    elsewhere_sd: f64,
}

impl Calibration {
    /// From samples that were left out of the fit.
    pub(super) fn of(blend: &Blend, training: &Training, held_out: &[HeldOut]) -> Self {
        let samples = &training.samples;
        let errors = || held_out.iter().map(|held| held.ln_error.abs());
        let known =
            |held: &HeldOut| held.guess.sd.powi(2) + blend.noise(&samples[held.index].workload);
        let error_median = median(errors()).unwrap_or(0.0);
        let usual_variance = robust_sd(errors()).unwrap_or(0.0).powi(2);
        let known_variance = median(held_out.iter().map(known)).unwrap_or(0.0);
        let common_variance = (usual_variance - known_variance).max(0.0);
        let score = |held: &HeldOut| held.ln_error.abs() / (known(held) + common_variance).sqrt();
        let mut scores: Vec<f64> = held_out.iter().map(score).collect();
        scores.sort_by(f64::total_cmp);
        let rank = (CONFIDENCE * (scores.len() + 1) as f64).ceil() as usize;
        let factor = scores.get(rank.saturating_sub(1)).or(scores.last());
        // A simulated device has no kernel, and its cache no states.
        let has_states = !training.hints.in_memory && !training.host.kernel.is_empty();
        let state_sd = if has_states { STATE_SD } else { 0.0 };
        Self {
            factor: factor.copied().unwrap_or(SCORE_USUAL),
            common_variance,
            error_median,
            elsewhere_sd: training.drift_sd.hypot(state_sd),
        }
    }

    /// All that a port of it needs.
    pub(super) fn portable(&self) -> PortableCalibration {
        PortableCalibration {
            factor: self.factor,
            common_variance: self.common_variance,
            score_usual: SCORE_USUAL,
            elsewhere_sd: self.elsewhere_sd,
            half_width_min: HALF_WIDTH_MIN,
            range_slack: super::RANGE_SLACK,
            wider_outside: super::WIDER_OUTSIDE,
        }
    }

    /// Half-width of the intervals in standard deviations of the model's own.
    pub(super) fn factor(&self) -> f64 {
        self.factor
    }

    /// Median of |ln(measured/predicted)| over all workloads, each left out of the fit once.
    pub(super) fn error_median(&self) -> f64 {
        self.error_median
    }

    /// Half of the interval's width, as a logarithm.
    pub(super) fn half_width(&self, guess: &Guess, noise: f64) -> f64 {
        let here = self.factor * (guess.sd.powi(2) + noise + self.common_variance).sqrt();
        here.hypot(SCORE_USUAL * self.elsewhere_sd).max(HALF_WIDTH_MIN)
    }
}
