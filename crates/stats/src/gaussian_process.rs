//! Gaussian process regression with a known variance for every observation (Rasmussen and
//! Williams 2006, chapters 2 and 5).
//!
//! The prior mean is zero: whoever wants another subtracts it beforehand. What the kernel is made
//! of is the caller's business; [`matern52`] is the one that is used here.

use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

/// Where rounding has made a kernel matrix indefinite, this part of its mean diagonal is added,
/// and ten times as much until it works …
const JITTER_MIN: f64 = 1e-12;
/// … or until this would be passed.
const JITTER_MAX: f64 = 1e-6;

/// Correlation over a distance in length scales, of functions that can be differentiated twice:
/// Matérn with ν = 5/2.
pub fn matern52(distance: f64) -> f64 {
    let scaled = 5.0_f64.sqrt() * distance.abs();
    (1.0 + scaled + scaled * scaled / 3.0) * (-scaled).exp()
}

/// A fitted Gaussian process.
#[derive(Clone, Debug)]
pub struct GaussianProcess {
    /// Of the kernel matrix with the noise on its diagonal.
    root: Cholesky<f64, Dyn>,
    /// That matrix's inverse times the observations.
    weights: DVector<f64>,
    observed: DVector<f64>,
}

impl GaussianProcess {
    /// Fits observations `y` with noise of these variances. Only the lower half of the kernel
    /// matrix is read. `None` where it is not positive definite or not made of numbers.
    pub fn fit(kernel: &DMatrix<f64>, noise: &[f64], y: &[f64]) -> Option<Self> {
        assert!(
            kernel.is_square() && kernel.nrows() == y.len() && noise.len() == y.len(),
            "one row, one column and one variance per observation"
        );
        let observed = DVector::from_column_slice(y);
        let root = root_of(kernel, noise)?;
        let weights = root.solve(&observed);
        weights.iter().all(|w| w.is_finite()).then_some(Self { root, weights, observed })
    }

    /// The inverse of the kernel matrix with its noise, times the observations: their sum, each times
    /// the covariance of its observation with another place, is the mean there.
    pub fn weights(&self) -> &[f64] {
        self.weights.as_slice()
    }

    /// How likely the observations were, as a natural logarithm: what hyperparameters are chosen
    /// by.
    pub fn ln_marginal_likelihood(&self) -> f64 {
        // −½ yᵀK⁻¹y − ½ ln det K − n/2 ln 2π; the root's diagonal multiplies to √det K.
        let n = self.observed.len() as f64;
        let ln_root: f64 = self.root.l_dirty().diagonal().iter().map(|d| d.ln()).sum();
        let misfit = self.observed.dot(&self.weights);
        -0.5 * misfit - ln_root - 0.5 * n * std::f64::consts::TAU.ln()
    }

    /// Mean and variance of the function at another place, without the noise of an observation
    /// there. `cross`: covariance of that place with every observation's; `own`: its variance
    /// before anything was observed.
    pub fn predict(&self, cross: &[f64], own: f64) -> (f64, f64) {
        let mut cross = DVector::from_column_slice(cross);
        let mean = cross.dot(&self.weights);
        self.root.l_dirty().solve_lower_triangular_unchecked_mut(&mut cross);
        (mean, (own - cross.norm_squared()).max(0.0))
    }

    /// For every observation, mean and variance of what the others say about it, its own noise
    /// included: as if it had been left out and the rest fitted again with the same kernel.
    pub fn leave_one_out(&self) -> Vec<(f64, f64)> {
        // y_i − (K⁻¹y)_i / (K⁻¹)_ii and 1 / (K⁻¹)_ii: section 5.4.2.
        let parts = self.observed.iter().zip(&self.weights).zip(self.precisions());
        parts.map(|((y, weight), precision)| (y - weight / precision, precision.recip())).collect()
    }

    /// The diagonal of K⁻¹ = L⁻ᵀL⁻¹: the squares in each column of L⁻¹ added up, which takes a sixth of the
    /// multiplications of the whole inverse.
    fn precisions(&self) -> Vec<f64> {
        let (count, root) = (self.observed.len(), self.root.l_dirty());
        // Column `first` of L⁻¹ is zero above its diagonal.
        let squares = |first: usize| {
            let mut column = DVector::zeros(count - first);
            column[0] = 1.0;
            root.view_range(first.., first..).solve_lower_triangular_unchecked_mut(&mut column);
            column.norm_squared()
        };
        (0..count).map(squares).collect()
    }
}

/// Cholesky's root of kernel plus noise, with as little jitter as it takes.
fn root_of(kernel: &DMatrix<f64>, noise: &[f64]) -> Option<Cholesky<f64, Dyn>> {
    let scale = kernel.diagonal().iter().sum::<f64>() / noise.len().max(1) as f64;
    let mut jitter = 0.0;
    while jitter <= JITTER_MAX {
        let mut whole = kernel.clone();
        for (i, variance) in noise.iter().enumerate() {
            whole[(i, i)] += variance + jitter * scale;
        }
        if let Some(root) = Cholesky::new(whole) {
            return Some(root);
        }
        jitter = (jitter * 10.0).max(JITTER_MIN);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(places: &[f64], amplitude: f64) -> DMatrix<f64> {
        DMatrix::from_fn(places.len(), places.len(), |i, j| {
            amplitude * matern52(places[i] - places[j])
        })
    }

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-9 * (1.0 + b.abs()), "{a} is not {b}");
    }

    #[test]
    fn the_correlation_is_one_here_and_nothing_far_away() {
        near(matern52(0.0), 1.0);
        // (1 + √5 + 5/3)·e^(−√5)
        near(matern52(1.0), 0.523_994_108_831_820_3);
        near(matern52(-1.0), matern52(1.0));
        assert!(matern52(20.0) < 1e-15);
    }

    #[test]
    fn one_observation_is_what_can_be_done_by_hand() {
        // Prior variance 2, noise 0.5, observed 1: total variance 2.5.
        let one = GaussianProcess::fit(&DMatrix::from_element(1, 1, 2.0), &[0.5], &[1.0]).unwrap();
        let ln_density = -0.5 * (1.0 / 2.5 + 2.5_f64.ln() + std::f64::consts::TAU.ln());
        near(one.ln_marginal_likelihood(), ln_density);
        let (mean, variance) = one.predict(&[2.0], 2.0);
        near(mean, 2.0 / 2.5);
        near(variance, 2.0 - 4.0 / 2.5);
        // Without its only observation it says what it said before: nothing.
        let (mean, variance) = one.leave_one_out()[0];
        near(mean, 0.0);
        near(variance, 2.5);
    }

    #[test]
    fn two_observations_are_what_can_be_done_by_hand() {
        // K = [[1, ½], [½, 1]] with noise 0.25 and 1: [[1.25, 0.5], [0.5, 2]], determinant 2.25.
        let kernel = DMatrix::from_row_slice(2, 2, &[1.0, 0.5, 0.5, 1.0]);
        let two = GaussianProcess::fit(&kernel, &[0.25, 1.0], &[3.0, -1.0]).unwrap();
        // Inverse times y: [2·3 + 0.5, −0.5·3 − 1.25]/2.25 = [6.5, −2.75]/2.25.
        let misfit = (3.0 * 6.5 + 2.75) / 2.25;
        near(
            two.ln_marginal_likelihood(),
            -0.5 * misfit - 0.5 * 2.25_f64.ln() - std::f64::consts::TAU.ln(),
        );
        let (mean, variance) = two.predict(&[0.6, 0.2], 1.0);
        near(mean, (0.6 * 6.5 - 0.2 * 2.75) / 2.25);
        near(variance, 1.0 - (0.6 * (2.0 * 0.6 - 0.5 * 0.2) + 0.2 * (1.25 * 0.2 - 0.3)) / 2.25);
    }

    #[test]
    fn leaving_one_out_is_fitting_without_it() {
        let places: Vec<f64> = (0..12).map(|i| f64::from(i * i % 17) / 4.0).collect();
        let noise: Vec<f64> = (0..12).map(|i| 0.01 + 0.02 * f64::from(i % 3)).collect();
        let y: Vec<f64> = places.iter().map(|x| (2.0 * x).sin() + 0.1 * x).collect();
        let all = GaussianProcess::fit(&kernel(&places, 1.5), &noise, &y).unwrap();
        for (left_out, (mean, variance)) in all.leave_one_out().into_iter().enumerate() {
            let without = |values: &[f64]| -> Vec<f64> {
                let kept = values.iter().enumerate().filter(|(i, _)| *i != left_out);
                kept.map(|(_, value)| *value).collect()
            };
            let rest = without(&places);
            let refitted =
                GaussianProcess::fit(&kernel(&rest, 1.5), &without(&noise), &without(&y)).unwrap();
            let cross: Vec<f64> =
                rest.iter().map(|x| 1.5 * matern52(x - places[left_out])).collect();
            let (expected, latent) = refitted.predict(&cross, 1.5);
            near(mean, expected);
            near(variance, latent + noise[left_out]);
        }
    }

    #[test]
    fn exact_observations_are_met_and_known_exactly() {
        let places = [0.0, 0.7, 1.1, 3.0];
        let y = [1.0, -2.0, 0.5, 4.0];
        let exact = GaussianProcess::fit(&kernel(&places, 9.0), &[0.0; 4], &y).unwrap();
        for (place, value) in places.iter().zip(y) {
            let cross: Vec<f64> = places.iter().map(|x| 9.0 * matern52(x - place)).collect();
            let (mean, variance) = exact.predict(&cross, 9.0);
            near(mean, value);
            assert!(variance < 1e-9, "{variance}");
        }
    }

    #[test]
    fn the_same_place_twice_without_noise_needs_jitter_and_nonsense_is_refused() {
        let twice = GaussianProcess::fit(&kernel(&[1.0, 1.0], 1.0), &[0.0; 2], &[2.0, 2.0]);
        let (mean, _) = twice.unwrap().predict(&[1.0, 1.0], 1.0);
        assert!((mean - 2.0).abs() < 1e-5, "{mean}");
        let indefinite = DMatrix::from_row_slice(2, 2, &[1.0, 2.0, 2.0, 1.0]);
        assert!(GaussianProcess::fit(&indefinite, &[0.0; 2], &[0.0; 2]).is_none());
        let unknown = DMatrix::from_element(1, 1, f64::NAN);
        assert!(GaussianProcess::fit(&unknown, &[0.1], &[0.0]).is_none());
        let fine = DMatrix::from_element(1, 1, 1.0);
        assert!(GaussianProcess::fit(&fine, &[0.1], &[f64::NAN]).is_none());
    }
}
