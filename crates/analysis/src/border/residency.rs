//! The capacity of the page cache, counted instead of timed: where a share h of uniformly
//! spread requests to U bytes finds its page resident, h·U bytes are cached.

use super::{Sample, Search};

/// From this hit fraction on, everything counts as resident.
const RESIDENT: f64 = 0.985;
/// Error of a hit fraction, absolute: what cannot be told apart near none.
const HIT_SE: f64 = 0.005;
/// Run-to-run scatter of what is resident, relative: the least one is believed to know.
const SCATTER_MIN: f64 = 0.01;
/// Visits on both sides of the capacity within this factor of each other are enough.
const BRACKET_MAX: f64 = 1.12;
/// Where the capacity is verified, in terms of itself.
const VERIFY: [f64; 2] = [0.95, 1.05];

/// What the counters say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Residency {
    pub(super) capacity_bytes: f64,
    /// Standard error of the capacity's logarithm.
    pub(super) ln_se: f64,
    /// The largest visit that was all resident; 0 where none was.
    resident_bytes_max: f64,
    /// The smallest visit that was not.
    missing_bytes_min: f64,
}

impl Residency {
    /// None where nothing is counted, or where all that is counted is resident.
    pub(super) fn from_samples(samples: &[Sample]) -> Option<Self> {
        let counted: Vec<(f64, f64)> = samples
            .iter()
            .filter_map(|sample| hit_fraction(sample).map(|hit| (sample.unique_bytes, hit)))
            .collect();
        let missing = || counted.iter().filter(|(_, hit)| *hit < RESIDENT);
        let missing_bytes_min = missing().map(|(bytes, _)| *bytes).reduce(f64::min)?;
        let resident_bytes_max = counted
            .iter()
            .filter(|(bytes, hit)| *hit >= RESIDENT && *bytes < missing_bytes_min)
            .map(|(bytes, _)| *bytes)
            .fold(0.0, f64::max);
        let (mut weights, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for (bytes, hit) in missing() {
            let relative = (HIT_SE / hit.max(HIT_SE)).powi(2) + SCATTER_MIN.powi(2);
            let ln_capacity = (hit.max(HIT_SE) * bytes).ln();
            weights += 1.0 / relative;
            sum += ln_capacity / relative;
            squares += ln_capacity * ln_capacity / relative;
        }
        let mean = sum / weights;
        // The scatter that the weights promise, or what is seen where that is more.
        let visits = missing().count() as f64;
        let excess = ((squares - sum * mean) / (visits - 1.0).max(1.0)).max(1.0);
        let ln_se = (excess / weights).sqrt();
        let capacity_bytes = mean.exp();
        Some(Self { capacity_bytes, ln_se, resident_bytes_max, missing_bytes_min })
    }

    /// What to visit to verify the capacity from both sides.
    pub(super) fn next(&self, search: &Search) -> Option<f64> {
        let low = self.resident_bytes_max.max(search.min_bytes);
        let high = self.missing_bytes_min;
        if high / low <= BRACKET_MAX {
            return None;
        }
        let inside = |bytes: &f64| *bytes > low * 1.02 && *bytes < high / 1.02;
        VERIFY
            .map(|factor| factor * self.capacity_bytes)
            .into_iter()
            .find(inside)
            .or_else(|| Some((low * high).sqrt()))
    }
}

fn hit_fraction(sample: &Sample) -> Option<f64> {
    sample
        .resident_bytes
        .map(|bytes| bytes / sample.unique_bytes)
        .or(sample.hit_fraction)
        .filter(|hit| hit.is_finite() && *hit >= 0.0)
}
