//! What two systems have in common: by how much one is faster anywhere, and how much that depends
//! on the workload.
//!
//! Two systems of one kind differ by about the same factor everywhere, two of different kinds do
//! not, and the records say which it is. The logarithms of all ratios, those of measured pairs and
//! those of predicted workloads, are taken as drawn around a common mean with a spread of their
//! own on top of their errors (a random-effects model; `DerSimonian` and Laird 1986). The spread is
//! the largest that their scatter does not speak against, by one standard deviation of Cochran's
//! Q. What is predicted for a workload is then drawn towards the common mean, the more the less is
//! known about it and the smaller the spread is: for two runs on one system nearly all of the way,
//! for a disk and a flash drive hardly at all.

use super::Doubt;
use super::pairs::{LogRatio, PAIRS_MIN};

/// No two workloads have ratios that agree better than this, one standard deviation.
const SPREAD_SD_MIN: f64 = 0.02;

/// The common ratio, as a logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Common {
    mean: f64,
    mean_variance: f64,
    /// Variance of the workloads' own ratios around it.
    spread_variance: f64,
}

/// One ratio and the variance of its error.
type Unit = (f64, f64);

impl Common {
    /// From pairs and predicted workloads; `None` where too few pairs were measured to say.
    pub(super) fn from_pairs(pairs: &[LogRatio], predicted: &[Doubt]) -> Option<Self> {
        if pairs.len() < PAIRS_MIN {
            return None;
        }
        let mut units: Vec<Unit> =
            pairs.iter().map(|pair| (pair.ln_ratio, pair.variance)).collect();
        units.extend(predicted.iter().map(|doubt| (doubt.ln_ratio, doubt.variance)));
        let spread_variance = spread(&units);
        // The mean rests on what was measured.
        let (mean, mean_variance) = mean(&units[..pairs.len()], spread_variance);
        Some(Self { mean, mean_variance, spread_variance })
    }

    /// What is to be believed of a workload.
    pub(super) fn draw(&self, doubt: &Doubt) -> Drawn {
        let all = (self.spread_variance + doubt.variance).max(f64::MIN_POSITIVE);
        let towards = doubt.variance / all;
        Drawn {
            ln_ratio: doubt.ln_ratio + towards * (self.mean - doubt.ln_ratio),
            own_variance: towards * self.spread_variance,
            common_variance: towards.powi(2) * self.mean_variance,
        }
    }
}

/// A workload's ratio once it is drawn towards the common one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Drawn {
    pub(super) ln_ratio: f64,
    /// Variance of this workload's own error.
    pub(super) own_variance: f64,
    /// Shared with all others.
    pub(super) common_variance: f64,
}

impl Drawn {
    /// Left where it is.
    pub(super) fn alone(doubt: &Doubt) -> Self {
        Self { ln_ratio: doubt.ln_ratio, own_variance: doubt.variance, common_variance: 0.0 }
    }
}

fn mean(units: &[Unit], spread_variance: f64) -> (f64, f64) {
    let weight = |unit: &Unit| 1.0 / (unit.1 + spread_variance);
    let sum: f64 = units.iter().map(weight).sum();
    (units.iter().map(|unit| weight(unit) * unit.0).sum::<f64>() / sum, 1.0 / sum)
}

fn spread(units: &[Unit]) -> f64 {
    let (mean, _) = mean(units, 0.0);
    let weights = || units.iter().map(|unit| 1.0 / unit.1);
    let sum: f64 = weights().sum();
    let free = units.len() as f64 - 1.0;
    let scatter: f64 = units.iter().map(|unit| (unit.0 - mean).powi(2) / unit.1).sum();
    let scale = sum - weights().map(|weight| weight * weight).sum::<f64>() / sum;
    ((scatter - free + (2.0 * free).sqrt()) / scale).max(SPREAD_SD_MIN.powi(2))
}
