//! A Gaussian process over the five parameters that knows nothing of storage: what can be learnt
//! from the points alone. It is here to be beaten, and to show what physics adds.
//!
//! ln throughput = a constant + a smooth function (Matérn 5/2, one length scale per parameter) +
//! noise: each sample's own variance and an extra one that is fitted. Length scales, amplitude and
//! extra noise are those that make the samples likeliest, under priors so wide that they only keep
//! what the samples do not tell from running away.

use ioscape_model::{ModelName, Workload};
use ioscape_stats::gaussian_process::{GaussianProcess, matern52};
use ioscape_stats::maximise::maximise;
use nalgebra::DMatrix;

use super::{Guess, Model, Sample, Training};
use crate::axis::Axis;

const AXES: usize = Axis::ALL.len();
/// Fewer samples say nothing about seven hyperparameters.
const SAMPLES_MIN: usize = 12;
/// Hyperparameters are sought on so many samples at most: time grows with the cube.
const SAMPLES_SEARCHED_MAX: usize = 200;
const EVALUATIONS: usize = 350;
/// How far the search's first steps go, in logarithms: a factor of two.
const SEARCH_STEP: f64 = 0.7;
/// Standard deviation of the hyperparameters' priors, in logarithms.
const PRIOR_SD: f64 = 2.0;
/// The extra noise expected beforehand, as a standard deviation.
const EXTRA_SD: f64 = 0.05;
/// How far the constant may be from the samples' mean: a factor of e³.
const CONSTANT_SD: f64 = 3.0;
/// A sample with less certainty says nothing, and only strains the arithmetic.
const SD_MAX: f64 = 10.0;

/// The model.
#[derive(Clone, Debug)]
pub struct Gaussian {
    space: Space,
    hyper: Hyper,
    places: Vec<[f64; AXES]>,
    /// The samples' mean of ln throughput.
    mean: f64,
    process: GaussianProcess,
}

/// Coordinates from 0 to 1 over what was measured.
#[derive(Clone, Debug)]
struct Space {
    from: [f64; AXES],
    width: [f64; AXES],
}

/// What is fitted.
#[derive(Clone, Debug)]
struct Hyper {
    /// Length scales, in parts of the space's width.
    lengths: [f64; AXES],
    /// Variance of the smooth function.
    amplitude: f64,
    /// Variance of the noise beyond what is known of each sample.
    extra: f64,
}

impl Gaussian {
    /// From all samples. `None` where they are too few.
    pub fn fit(training: &Training) -> Option<Self> {
        let samples = &training.samples;
        if samples.len() < SAMPLES_MIN {
            return None;
        }
        let space = Space::from_samples(samples);
        let stride = samples.len().div_ceil(SAMPLES_SEARCHED_MAX);
        let searched: Vec<&Sample> = samples.iter().step_by(stride).collect();
        let hyper = likeliest(&Data::new(&space, &searched));
        let data = Data::new(&space, &samples.iter().collect::<Vec<_>>());
        let process = data.process(&hyper)?;
        Some(Self { space, hyper, places: data.places, mean: data.mean, process })
    }
}

impl Model for Gaussian {
    fn name(&self) -> ModelName {
        ModelName::Gaussian
    }

    fn predict(&self, work: &Workload) -> Option<Guess> {
        let place = self.space.place(work);
        let cross: Vec<f64> =
            self.places.iter().map(|other| self.hyper.covariance(&place, other)).collect();
        let (offset, variance) =
            self.process.predict(&cross, self.hyper.covariance(&place, &place));
        Some(Guess { ln_throughput: self.mean + offset, sd: (variance + self.hyper.extra).sqrt() })
    }
}

impl Space {
    fn from_samples(samples: &[Sample]) -> Self {
        let along = |axis: Axis| samples.iter().map(move |s| axis.coordinate(&s.workload));
        let from = Axis::ALL.map(|axis| along(axis).fold(f64::INFINITY, f64::min));
        let to = Axis::ALL.map(|axis| along(axis).fold(f64::NEG_INFINITY, f64::max));
        let width = std::array::from_fn(|i| if to[i] > from[i] { to[i] - from[i] } else { 1.0 });
        Self { from, width }
    }

    /// Outside what was measured a place stays at the edge: a process that has left its samples
    /// falls back to the mean of them all, which is further from the truth.
    fn place(&self, work: &Workload) -> [f64; AXES] {
        std::array::from_fn(|i| {
            ((Axis::ALL[i].coordinate(work) - self.from[i]) / self.width[i]).clamp(0.0, 1.0)
        })
    }
}

impl Hyper {
    /// From logarithms: lengths, amplitude, extra noise.
    fn from_logarithms(logarithms: &[f64]) -> Self {
        Self {
            lengths: std::array::from_fn(|i| logarithms[i].exp()),
            amplitude: logarithms[AXES].exp(),
            extra: logarithms[AXES + 1].exp(),
        }
    }

    fn covariance(&self, a: &[f64; AXES], b: &[f64; AXES]) -> f64 {
        let squares = (0..AXES).map(|i| ((a[i] - b[i]) / self.lengths[i]).powi(2));
        let distance = squares.sum::<f64>().sqrt();
        self.amplitude * matern52(distance) + CONSTANT_SD * CONSTANT_SD
    }
}

/// Samples as a process sees them.
struct Data {
    places: Vec<[f64; AXES]>,
    /// Without their mean.
    values: Vec<f64>,
    mean: f64,
    variances: Vec<f64>,
}

impl Data {
    fn new(space: &Space, samples: &[&Sample]) -> Self {
        let mean = samples.iter().map(|s| s.ln_throughput).sum::<f64>() / samples.len() as f64;
        Self {
            places: samples.iter().map(|s| space.place(&s.workload)).collect(),
            values: samples.iter().map(|s| s.ln_throughput - mean).collect(),
            mean,
            variances: samples.iter().map(|s| s.sd.min(SD_MAX).powi(2)).collect(),
        }
    }

    fn process(&self, hyper: &Hyper) -> Option<GaussianProcess> {
        let n = self.places.len();
        let mut kernel = DMatrix::zeros(n, n);
        for (column, place) in self.places.iter().enumerate() {
            for row in column..n {
                kernel[(row, column)] = hyper.covariance(&self.places[row], place);
            }
        }
        let noise: Vec<f64> = self.variances.iter().map(|own| own + hyper.extra).collect();
        GaussianProcess::fit(&kernel, &noise, &self.values)
    }

    fn variance(&self) -> f64 {
        self.values.iter().map(|value| value * value).sum::<f64>() / self.values.len() as f64
    }
}

/// The hyperparameters under which the data are likeliest, priors included.
fn likeliest(data: &Data) -> Hyper {
    // A function over the whole width, all of the samples' spread, little noise.
    let mut expected = vec![0.0; AXES];
    expected.push(data.variance().max(EXTRA_SD * EXTRA_SD).ln());
    expected.push(2.0 * EXTRA_SD.ln());
    let ln_posterior = |logarithms: &[f64]| {
        let away = logarithms.iter().zip(&expected).map(|(at, from)| (at - from) / PRIOR_SD);
        let prior = -0.5 * away.map(|sigmas| sigmas * sigmas).sum::<f64>();
        let process = data.process(&Hyper::from_logarithms(logarithms));
        process.map_or(f64::NEG_INFINITY, |fitted| fitted.ln_marginal_likelihood() + prior)
    };
    Hyper::from_logarithms(&maximise(ln_posterior, &expected, SEARCH_STEP, EVALUATIONS))
}

#[cfg(test)]
mod tests;
