//! Intervals that hold what they promise: normalised cross-conformal prediction (Barber et al.
//! 2021) on workloads that were chosen before anything was known and left out of the fit.

use crate::model::Guess;
use crate::model::Sample;
use crate::model::blend::{Blend, HeldOut};

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.9;
/// Fewest space-filling samples that intervals are calibrated on by themselves.
const SCORES_MIN: usize = 15;
/// What a normal law says, where nothing can be counted.
const SCORE_USUAL: f64 = 1.645;
/// Intervals are never narrower than this half-width, as a logarithm.
const HALF_WIDTH_MIN: f64 = 0.02;

/// How much wider than their own standard deviation errors turned out to be.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Calibration {
    factor: f64,
}

impl Calibration {
    /// From samples that were left out of the fit.
    pub(super) fn of(blend: &Blend, samples: &[Sample], held_out: &[HeldOut]) -> Self {
        let score = |held: &HeldOut| {
            let noise = blend.noise(&samples[held.index].workload);
            held.ln_error.abs() / sd(&held.guess, noise)
        };
        let fair = |held: &&HeldOut| samples[held.index].is_space_filling;
        let mut scores: Vec<f64> = held_out.iter().filter(fair).map(score).collect();
        if scores.len() < SCORES_MIN {
            scores = held_out.iter().map(score).collect();
        }
        scores.sort_by(f64::total_cmp);
        let rank = (CONFIDENCE * (scores.len() + 1) as f64).ceil() as usize;
        let factor = scores.get(rank.saturating_sub(1)).or(scores.last());
        Self { factor: factor.copied().unwrap_or(SCORE_USUAL) }
    }

    /// Half of the interval's width, as a logarithm.
    pub(super) fn half_width(&self, guess: &Guess, noise: f64) -> f64 {
        (self.factor * sd(guess, noise)).max(HALF_WIDTH_MIN)
    }
}

fn sd(guess: &Guess, noise: f64) -> f64 {
    (guess.sd.powi(2) + noise).sqrt()
}
