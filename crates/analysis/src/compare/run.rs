//! By how much two runs differ as wholes, though nothing changed: where their files lie, what the
//! processor's caches and clocks did, who else was on the machine.
//!
//! Two records alone cannot tell such a shift from a difference of the systems. But what moves
//! from run to run also moves within one, and every run repeats one little workload, the canary,
//! once a minute. If its minutes scatter by `c`, beyond what is seen inside each visit, the mean of
//! a run with `k` of them is off by about `c / √k`. The scatter is pooled over both runs with what
//! visits usually scatter by.

use ioscape_stats::LogMeasurement;
use ioscape_stats::pool::{USUAL_DEGREES_OF_FREEDOM, USUAL_SD};

/// Variance of the difference between two runs as wholes, in logarithms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) variance: f64,
    /// Degrees of freedom behind it.
    pub(super) degrees_of_freedom: f64,
}

/// From the canaries of both.
pub(super) fn spread(one: &[LogMeasurement], other: &[LogMeasurement]) -> Spread {
    let usual = USUAL_DEGREES_OF_FREEDOM * USUAL_SD.powi(2);
    let seen = (squares(one) + squares(other)).max(0.0) + usual;
    let degrees_of_freedom = free(one) + free(other) + USUAL_DEGREES_OF_FREEDOM;
    let minutes = |canaries: &[LogMeasurement]| 1.0 / canaries.len().max(1) as f64;
    let variance = seen / degrees_of_freedom * (minutes(one) + minutes(other));
    Spread { variance, degrees_of_freedom }
}

fn free(canaries: &[LogMeasurement]) -> f64 {
    canaries.len().saturating_sub(1) as f64
}

/// Squares about the mean, less those that the visits' own errors explain.
fn squares(canaries: &[LogMeasurement]) -> f64 {
    let count = canaries.len().max(1) as f64;
    let mean = canaries.iter().map(|canary| canary.ln_value).sum::<f64>() / count;
    let all: f64 = canaries.iter().map(|canary| (canary.ln_value - mean).powi(2)).sum();
    let within: f64 = canaries.iter().map(|canary| canary.within_sd.powi(2)).sum();
    all - within * free(canaries) / count
}
