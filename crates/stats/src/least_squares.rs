//! Non-linear least squares with priors: Levenberg and Marquardt's method (Marquardt 1963), a
//! Huber loss against outliers (Huber 1964), derivatives by differences.
//!
//! Minimises `Σ ρ(r_i(θ)) + Σ ((θ_j − mean_j) / sd_j)²`, residuals in units of their own standard
//! deviation. The covariance at the minimum is that of the linearised problem.

use nalgebra::{DMatrix, DVector};
use serde::{Deserialize, Serialize};

/// What is known of a parameter beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prior {
    /// Its mean.
    pub mean: f64,
    /// Its standard deviation. Below 1e-5 the observations have no say.
    pub sd: f64,
}

/// When to stop, and what is an outlier.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Residuals beyond this many standard deviations count linearly.
    pub huber: f64,
    /// Most steps taken.
    pub steps_max: usize,
}

/// The minimum that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// The parameters.
    pub parameters: Vec<f64>,
    /// Their covariance, the residuals' standard deviations taken at their word.
    pub covariance: DMatrix<f64>,
    /// The sum that was minimised.
    pub cost: f64,
}

/// Step of the differences: parameters are logarithms, of order one.
const DIFFERENCE: f64 = 1e-5;
/// A step that gains less than this part of the cost is the last.
const GAIN_MIN: f64 = 1e-5;
/// No parameter moves further than this in one step.
const STEP_MAX: f64 = 1.5;
const DAMPING_START: f64 = 1e-2;
const DAMPING_MAX: f64 = 1e8;

/// Fits the parameters, beginning at `start`.
///
/// `residuals` appends one value per observation, always as many.
pub fn fit(
    residuals: impl Fn(&[f64], &mut Vec<f64>),
    priors: &[Prior],
    start: &[f64],
    settings: Settings,
) -> Fit {
    let problem = Problem { residuals, priors, huber: settings.huber };
    let mut at = start.to_vec();
    let mut damping = DAMPING_START;
    let mut values = problem.residuals_at(&at);
    let mut cost = problem.cost(&at, &values);
    let mut normal = problem.normal(&at, &values);
    for _ in 0..settings.steps_max {
        let Some((next, next_values, next_cost)) = problem.step(&at, &normal, cost, &mut damping)
        else {
            break;
        };
        let gain = (cost - next_cost) / cost.max(f64::MIN_POSITIVE);
        (at, values, cost) = (next, next_values, next_cost);
        normal = problem.normal(&at, &values);
        if gain < GAIN_MIN {
            break;
        }
    }
    let covariance = inverse(&normal.matrix);
    Fit { parameters: at, covariance, cost }
}

struct Problem<'a, F> {
    residuals: F,
    priors: &'a [Prior],
    huber: f64,
}

/// The normal equations: `JᵀWJ` and `JᵀWr`, priors included.
struct Normal {
    matrix: DMatrix<f64>,
    gradient: DVector<f64>,
}

impl<F: Fn(&[f64], &mut Vec<f64>)> Problem<'_, F> {
    fn residuals_at(&self, at: &[f64]) -> Vec<f64> {
        let mut values = Vec::new();
        (self.residuals)(at, &mut values);
        values
    }

    fn cost(&self, at: &[f64], values: &[f64]) -> f64 {
        let loss = |r: &f64| {
            let r = r.abs();
            if r <= self.huber { r * r } else { self.huber * (2.0 * r - self.huber) }
        };
        let data: f64 = values.iter().map(loss).sum();
        let known: f64 =
            at.iter().zip(self.priors).map(|(x, p)| ((x - p.mean) / p.sd).powi(2)).sum();
        let cost = data + known;
        if cost.is_finite() { cost } else { f64::INFINITY }
    }

    fn normal(&self, at: &[f64], values: &[f64]) -> Normal {
        let mut jacobian = DMatrix::zeros(values.len(), at.len());
        let mut moved = at.to_vec();
        let mut there = Vec::with_capacity(values.len());
        // The prior alone decides where a parameter is that it knows to less than the step of the differences.
        let is_open = |column: &usize| self.priors[*column].sd > DIFFERENCE;
        for column in (0..at.len()).filter(is_open) {
            moved[column] = at[column] + DIFFERENCE;
            there.clear();
            (self.residuals)(&moved, &mut there);
            moved[column] = at[column];
            for (row, (a, b)) in there.iter().zip(values).enumerate() {
                let slope = (a - b) / DIFFERENCE;
                jacobian[(row, column)] = if slope.is_finite() { slope } else { 0.0 };
            }
        }
        let weight = |r: f64| if r.abs() <= self.huber { 1.0 } else { self.huber / r.abs() };
        let mut weighted = jacobian.clone();
        for (row, value) in values.iter().enumerate() {
            weighted.row_mut(row).scale_mut(weight(*value));
        }
        let mut matrix = weighted.tr_mul(&jacobian);
        let mut gradient = weighted.tr_mul(&DVector::from_column_slice(values));
        for (index, (x, prior)) in at.iter().zip(self.priors).enumerate() {
            matrix[(index, index)] += prior.sd.powi(-2);
            gradient[index] += (x - prior.mean) / prior.sd.powi(2);
        }
        Normal { matrix, gradient }
    }

    /// The next place, if there is a better one; the damping grows until there is.
    fn step(
        &self,
        at: &[f64],
        normal: &Normal,
        cost: f64,
        damping: &mut f64,
    ) -> Option<(Vec<f64>, Vec<f64>, f64)> {
        while *damping < DAMPING_MAX {
            let mut matrix = normal.matrix.clone();
            for index in 0..at.len() {
                matrix[(index, index)] *= 1.0 + *damping;
            }
            if let Some(factor) = matrix.cholesky() {
                let step = factor.solve(&normal.gradient);
                let next: Vec<f64> = at
                    .iter()
                    .zip(step.iter())
                    .map(|(x, d)| x - d.clamp(-STEP_MAX, STEP_MAX))
                    .collect();
                let values = self.residuals_at(&next);
                let next_cost = self.cost(&next, &values);
                if next_cost < cost {
                    *damping = (*damping / 5.0).max(1e-9);
                    return Some((next, values, next_cost));
                }
            }
            *damping *= 4.0;
        }
        None
    }
}

fn inverse(matrix: &DMatrix<f64>) -> DMatrix<f64> {
    match matrix.clone().cholesky() {
        Some(factor) => factor.inverse(),
        None => DMatrix::identity(matrix.nrows(), matrix.ncols()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings = Settings { huber: 3.0, steps_max: 100 };

    fn unknown(count: usize) -> Vec<Prior> {
        vec![Prior { mean: 0.0, sd: 100.0 }; count]
    }

    #[test]
    fn a_line_is_found_with_the_errors_of_linear_regression() {
        let (xs, sd) = ([0.0, 1.0, 2.0, 3.0], 0.5);
        let residuals = |at: &[f64], out: &mut Vec<f64>| {
            out.extend(xs.iter().map(|x| (at[0] + at[1] * x - (1.0 + 2.0 * x)) / sd));
        };
        let fit = fit(residuals, &unknown(2), &[0.0, 0.0], SETTINGS);
        assert!((fit.parameters[0] - 1.0).abs() < 1e-3 && (fit.parameters[1] - 2.0).abs() < 1e-3);
        // The slope's variance is sd² / Σ(x − mean)² = 0.25 / 5.
        assert!((fit.covariance[(1, 1)] - 0.05).abs() < 1e-3, "{}", fit.covariance);
    }

    #[test]
    fn a_curved_valley_is_followed_to_its_end() {
        // Rosenbrock's function as residuals: 10 (y − x²) and 1 − x.
        let residuals = |at: &[f64], out: &mut Vec<f64>| {
            out.extend([10.0 * (at[1] - at[0] * at[0]), 1.0 - at[0]]);
        };
        let fit = fit(residuals, &unknown(2), &[-1.2, 1.0], Settings { huber: 1e9, ..SETTINGS });
        assert!((fit.parameters[0] - 1.0).abs() < 1e-2, "{:?}", fit.parameters);
    }

    #[test]
    fn an_outlier_hardly_moves_the_fit() {
        let values = [1.0, 1.1, 0.9, 1.0, 1.05, 0.95, 50.0];
        let residuals = |at: &[f64], out: &mut Vec<f64>| {
            out.extend(values.iter().map(|value| (at[0] - value) / 0.1));
        };
        let fit = fit(residuals, &unknown(1), &[5.0], SETTINGS);
        assert!((fit.parameters[0] - 1.0).abs() < 0.1, "{:?}", fit.parameters);
    }

    #[test]
    fn what_the_data_do_not_say_the_prior_does() {
        let residuals = |at: &[f64], out: &mut Vec<f64>| out.push((at[0] - 2.0) / 0.01);
        let priors = [Prior { mean: 0.0, sd: 10.0 }, Prior { mean: 7.0, sd: 0.5 }];
        let fit = fit(residuals, &priors, &[0.0, 0.0], SETTINGS);
        assert!((fit.parameters[1] - 7.0).abs() < 1e-6);
        assert!((fit.covariance[(1, 1)] - 0.25).abs() < 1e-6);
    }
}
