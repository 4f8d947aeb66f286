//! Batch means: the mean of a series whose neighbours resemble each other, with an honest error.
//!
//! Pieces are joined into batches until batches no longer resemble their neighbours, as Pilot
//! does (Li et al., MASCOTS 2016); what resemblance is left widens the error.

use crate::interval::Mean;
use crate::series::{Piece, total};

/// Fewest batches: with fewer, neither scatter nor resemblance can be seen.
const BATCHES_MIN: usize = 10;
/// Resemblance of neighbours (lag-1 autocorrelation) that needs no widening.
const AUTOCORRELATION_MAX: f64 = 0.1;
/// Past this the widening, which grows like 1/(1−ρ), says more about chance than about the series.
const AUTOCORRELATION_CLAMP: f64 = 0.9;

/// The rate of a steady series, amount over length, as the ratio of totals. Pieces without any
/// amount count like all others.
pub fn mean(pieces: &[Piece]) -> Mean {
    let whole = total(pieces);
    let rate = whole.rate();
    if pieces.len() < 2 || whole.length <= 0.0 {
        return Mean { value: rate, standard_error: 0.0, degrees_of_freedom: 0.0 };
    }
    // A ratio of totals is linear in the residuals amount − rate·length, whatever the lengths.
    let mut residuals: Vec<f64> =
        pieces.iter().map(|piece| piece.amount - rate * piece.length).collect();
    let mut likeness = autocorrelation(&residuals);
    while likeness.abs() > AUTOCORRELATION_MAX && residuals.len() >= 2 * BATCHES_MIN {
        residuals = joined_in_pairs(&residuals);
        likeness = autocorrelation(&residuals);
    }
    // n resembling batches are worth n·(1−ρ)/(1+ρ) independent ones.
    let likeness = likeness.clamp(0.0, AUTOCORRELATION_CLAMP);
    let count = residuals.len() as f64;
    let independent = count * (1.0 - likeness) / (1.0 + likeness);
    let sum_of_squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    let variance = sum_of_squares / (count - 1.0);
    Mean {
        value: rate,
        standard_error: (variance / independent).sqrt() * count / whole.length,
        degrees_of_freedom: count - 1.0,
    }
}

/// Sums of neighbours; an odd one out is dropped at the start, where the series is oldest.
fn joined_in_pairs(residuals: &[f64]) -> Vec<f64> {
    residuals[residuals.len() % 2..].chunks_exact(2).map(|pair| pair[0] + pair[1]).collect()
}

/// Lag-1 autocorrelation, with the bias of short series taken out: on average the plain estimate
/// is (1 + 3ρ)/n too low (Marriott and Pope 1954; Kendall 1954).
fn autocorrelation(residuals: &[f64]) -> f64 {
    let count = residuals.len() as f64;
    let mean = residuals.iter().sum::<f64>() / count;
    let variance: f64 = residuals.iter().map(|residual| (residual - mean).powi(2)).sum();
    if variance <= 0.0 {
        return 0.0;
    }
    let covariance: f64 =
        residuals.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let plain = covariance / variance;
    plain + (1.0 + 3.0 * plain) / count
}
