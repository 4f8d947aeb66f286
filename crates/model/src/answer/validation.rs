//! What the figures of a validation say: which workloads count, how far a model was off on each, and
//! what of that is more than chance.

use super::{Validation, ValidationPoint};
use crate::ModelName;

/// Visits that a workload needs to be scored.
const VISITS_SCORED: usize = 2;
/// A visit in which nothing was completed has no logarithm: bytes per second.
const THROUGHPUT_MIN: f64 = 1.0;
/// A rank correlation this many standard errors from zero is shown: one time in a hundred by
/// chance, for five parameters are looked at.
const SHOWN_SIGMAS: f64 = 2.58;

impl ValidationPoint {
    /// Whether the workload was visited often enough to be scored.
    pub fn is_scored(&self) -> bool {
        self.measured_bytes_per_s.len() >= VISITS_SCORED
    }

    /// The geometric mean of the workload's visits, bytes per second.
    pub fn mean_bytes_per_s(&self) -> f64 {
        let visits = &self.measured_bytes_per_s;
        let sum: f64 = visits.iter().map(|value| value.max(THROUGHPUT_MIN).ln()).sum();
        (sum / visits.len() as f64).exp()
    }

    /// |predicted/measured − 1| of a model, where it had an answer.
    pub fn error(&self, model: ModelName) -> Option<f64> {
        let figure = self.predicted_bytes_per_s.get(&model)?;
        Some((figure.value / self.mean_bytes_per_s() - 1.0).abs())
    }

    /// |first/second − 1| of the two visits of a scored workload.
    pub fn visits_apart(&self) -> Option<f64> {
        let [first, second, ..] = &self.measured_bytes_per_s[..] else { return None };
        Some((first.max(THROUGHPUT_MIN) / second.max(THROUGHPUT_MIN) - 1.0).abs())
    }

    /// The density of even sizes over that of the log-even ones that were drawn, up to a constant.
    pub fn weight_of_even_sizes(&self) -> f64 {
        self.workload.unique_bytes as f64 * self.workload.size_mean as f64
    }
}

/// How a model's error goes with a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dependence<'a> {
    /// The parameter's key.
    pub parameter: &'a str,
    /// Rank correlation (Spearman) of the error with it.
    pub rank_correlation: f64,
    /// Whether it is more than chance alone can well bring about.
    pub is_shown: bool,
}

impl Validation {
    /// The workloads that count, in the order of their first visit.
    pub fn scored(&self) -> impl Iterator<Item = &ValidationPoint> {
        self.points.iter().filter(|point| point.is_scored())
    }

    /// How many workloads of equal weight tell as much as those scored do where sizes weigh as if
    /// drawn evenly (Kish 1965).
    pub fn even_sizes_effective_count(&self) -> usize {
        let sum: f64 = self.scored().map(ValidationPoint::weight_of_even_sizes).sum();
        let squares: f64 = self.scored().map(|point| point.weight_of_even_sizes().powi(2)).sum();
        (sum * sum / squares.max(f64::MIN_POSITIVE)).round() as usize
    }

    /// The parameter that a model's error depends on most; `None` where no rank correlation is
    /// known. A rank correlation of n independent pairs scatters about zero by 1/√(n − 1).
    pub fn strongest_dependence(&self, model: ModelName) -> Option<Dependence<'_>> {
        let by_parameter = self.rank_correlation.get(&model)?;
        let (parameter, correlation) =
            by_parameter.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))?;
        let answered = self.models.get(&model).map_or(0, |errors| errors.workloads);
        let sigmas = correlation.abs() * (answered as f64 - 1.0).max(0.0).sqrt();
        Some(Dependence {
            parameter,
            rank_correlation: *correlation,
            is_shown: sigmas >= SHOWN_SIGMAS,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{Errors, Figure, Repeatability, Workload};

    fn point(unique_bytes: u64, measured_bytes_per_s: &[f64]) -> ValidationPoint {
        let figure = Figure { value: 150.0, low: 100.0, high: 200.0 };
        ValidationPoint {
            workload: Workload { unique_bytes, size_mean: 4096, ..Workload::default() },
            measured_bytes_per_s: measured_bytes_per_s.to_vec(),
            predicted_bytes_per_s: BTreeMap::from([(ModelName::Blend, figure)]),
            in_border_band: false,
        }
    }

    fn validation(points: Vec<ValidationPoint>, workloads: u64, rho: f64) -> Validation {
        let with = |name: &str, rho: f64| (name.to_owned(), rho);
        let by_parameter = BTreeMap::from([with("read_frac", 0.1), with("size_mean", rho)]);
        let errors = Errors { workloads, ..Errors::default() };
        Validation {
            record: String::new(),
            seed: 1,
            workloads: points.len() as u64,
            models: BTreeMap::from([(ModelName::Blend, errors)]),
            rank_correlation: BTreeMap::from([(ModelName::Blend, by_parameter)]),
            repeatability: Repeatability::default(),
            single_point_errors: BTreeMap::new(),
            points,
        }
    }

    #[test]
    fn an_error_is_held_against_the_mean_of_the_visits() {
        let twice = point(1 << 20, &[50.0, 200.0]);
        assert!((twice.mean_bytes_per_s() - 100.0).abs() < 1e-9);
        assert!((twice.error(ModelName::Blend).unwrap() - 0.5).abs() < 1e-9);
        assert!(twice.error(ModelName::Product).is_none());
        assert!((twice.visits_apart().unwrap() - 0.75).abs() < 1e-9);
        let once = point(1 << 20, &[50.0]);
        assert!(twice.is_scored() && !once.is_scored() && once.visits_apart().is_none());
    }

    #[test]
    fn one_heavy_workload_leaves_little_of_the_number() {
        let twice = |unique_bytes| point(unique_bytes, &[1.0, 1.0]);
        let even = validation(vec![twice(8 << 20); 10], 10, 0.0);
        assert_eq!(even.even_sizes_effective_count(), 10);
        let mut points = vec![twice(1 << 20); 9];
        points.push(twice(1 << 40));
        points.extend(vec![point(1 << 40, &[1.0]); 5]);
        let heavy = validation(points, 10, 0.0);
        assert_eq!((heavy.scored().count(), heavy.even_sizes_effective_count()), (10, 1));
    }

    #[test]
    fn a_correlation_is_shown_where_enough_workloads_carry_it() {
        for (workloads, rho, is_shown) in [(100, -0.3, true), (50, -0.3, false), (0, -0.9, false)] {
            let found = validation(vec![], workloads, rho);
            let strongest = found.strongest_dependence(ModelName::Blend).unwrap();
            assert_eq!(strongest.parameter, "size_mean");
            assert_eq!(strongest.is_shown, is_shown, "{strongest:?} of {workloads}");
        }
        assert!(validation(vec![], 9, 0.5).strongest_dependence(ModelName::Product).is_none());
    }
}
