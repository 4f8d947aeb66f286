//! A Gaussian process over coordinates of workloads. Over the five parameters, as the library fits it, it knows nothing
//! of storage: what can be learnt from the points alone. It is here to be beaten, and to show what physics adds.
//!
//! ln throughput = a constant + a slope times what was expected + a smooth function (Matérn 5/2, one length scale per
//! coordinate) + noise: each sample's own variance and an extra one that is fitted. Length scales, amplitude and extra
//! noise are those that make the samples likeliest, under priors so wide that they only keep what the samples do not
//! tell from running away.

use ioscape_model::{ModelName, Workload};
use ioscape_stats::gaussian_process::{GaussianProcess, matern52};
use ioscape_stats::maximise::maximise;
use nalgebra::DMatrix;

use super::{Guess, Model, Sample, Training};
use crate::axis::Axis;

/// Fewer samples say nothing about the hyperparameters, seven over the five parameters.
const SAMPLES_MIN: usize = 12;
/// Hyperparameters are sought on so many samples at most: time grows with the cube.
const SAMPLES_SEARCHED_MAX: usize = 200;
/// Evaluations of the likelihood for each hyperparameter.
const EVALUATIONS: usize = 50;
/// How far the search's first steps go, in logarithms: a factor of two.
const SEARCH_STEP: f64 = 0.7;
/// Standard deviation of the hyperparameters' priors, in logarithms.
const PRIOR_SD: f64 = 2.0;
/// The extra noise expected beforehand, as a standard deviation.
const EXTRA_SD: f64 = 0.05;
/// How far the constant may be from the samples' mean: a factor of e³.
const CONSTANT_SD: f64 = 3.0;
/// How far the slope may be from 0; it is 1 where what was expected is right.
const SLOPE_SD: f64 = 1.0;
/// A sample with less certainty says nothing, and only strains the arithmetic.
const SD_MAX: f64 = 10.0;

/// Coordinates in which ln throughput is taken to be smooth.
pub trait SmoothOver {
    /// Where a workload lies, in any units: the same count of numbers for every workload.
    fn coordinates(&self, work: &Workload) -> Vec<f64>;

    /// ln throughput as expected beforehand, if anything was.
    fn expected(&self, _work: &Workload) -> Option<f64> {
        None
    }
}

/// The five parameters; nothing is expected.
#[derive(Clone, Copy, Debug)]
pub struct FiveParameters;

impl SmoothOver for FiveParameters {
    fn coordinates(&self, work: &Workload) -> Vec<f64> {
        Axis::ALL.map(|axis| axis.coordinate(work)).to_vec()
    }
}

/// The model.
#[derive(Clone, Debug)]
pub struct Gaussian<C = FiveParameters> {
    space: Space<C>,
    hyper: Hyper,
    places: Vec<Place>,
    process: GaussianProcess,
}

/// How workloads become places.
#[derive(Clone, Debug)]
struct Space<C> {
    axes: C,
    /// The samples' mean of ln throughput.
    mean: f64,
    /// Least coordinates of the samples, and how far the others reach.
    from: Vec<f64>,
    width: Vec<f64>,
}

/// A workload as the process sees it.
#[derive(Clone, Debug)]
struct Place {
    /// From 0 to 1 over what was measured.
    coordinates: Vec<f64>,
    /// ln throughput as expected, less the samples' mean; 0 where nothing was.
    expected: f64,
}

/// What is fitted.
#[derive(Clone, Debug)]
struct Hyper {
    /// Length scales, in parts of the space's width.
    lengths: Vec<f64>,
    /// Variance of the smooth function.
    amplitude: f64,
    /// Variance of the noise beyond what is known of each sample.
    extra: f64,
}

impl Gaussian {
    /// From all samples. `None` where they are too few or nothing fits them.
    pub fn fit(training: &Training) -> Option<Self> {
        Self::over(FiveParameters, &training.samples.iter().collect::<Vec<&Sample>>())
    }
}

impl<C: SmoothOver> Gaussian<C> {
    /// From samples, over these coordinates. `None` where they are too few or nothing fits them.
    pub fn over(coordinates: C, samples: &[&Sample]) -> Option<Self> {
        if samples.len() < SAMPLES_MIN {
            return None;
        }
        let space = Space::from_samples(coordinates, samples);
        let stride = samples.len().div_ceil(SAMPLES_SEARCHED_MAX);
        let searched: Vec<&Sample> = samples.iter().copied().step_by(stride).collect();
        let hyper = likeliest(&Data::new(&space, &searched));
        let data = Data::new(&space, samples);
        let process = data.process(&hyper)?;
        Some(Self { space, hyper, places: data.places, process })
    }

    /// ln throughput of a workload by the process, with its standard deviation.
    pub fn guess(&self, work: &Workload) -> Guess {
        let place = self.space.place(work);
        let cross: Vec<f64> =
            self.places.iter().map(|other| self.hyper.covariance(&place, other)).collect();
        let (offset, variance) =
            self.process.predict(&cross, self.hyper.covariance(&place, &place));
        Guess { ln_throughput: self.space.mean + offset, sd: (variance + self.hyper.extra).sqrt() }
    }
}

impl Model for Gaussian {
    fn name(&self) -> ModelName {
        ModelName::Gaussian
    }

    fn predict(&self, work: &Workload) -> Option<Guess> {
        Some(self.guess(work))
    }
}

impl<C: SmoothOver> Space<C> {
    fn from_samples(axes: C, samples: &[&Sample]) -> Self {
        let all: Vec<Vec<f64>> =
            samples.iter().map(|sample| axes.coordinates(&sample.workload)).collect();
        let mean = samples.iter().map(|s| s.ln_throughput).sum::<f64>() / samples.len() as f64;
        let mut space = Self { axes, mean, from: Vec::new(), width: Vec::new() };
        for axis in 0..all[0].len() {
            let along = || all.iter().map(|place| place[axis]);
            let from = along().fold(f64::INFINITY, f64::min);
            let width = along().fold(f64::NEG_INFINITY, f64::max) - from;
            space.from.push(from);
            space.width.push(if width > 0.0 { width } else { 1.0 });
        }
        space
    }

    /// Outside what was measured a place stays at the edge: a process that has left its samples
    /// falls back to the mean of them all, which is further from the truth.
    fn place(&self, work: &Workload) -> Place {
        let own = self.axes.coordinates(work);
        let scaled = own.iter().zip(self.from.iter().zip(&self.width));
        Place {
            coordinates: scaled
                .map(|(at, (from, width))| ((at - from) / width).clamp(0.0, 1.0))
                .collect(),
            expected: self.axes.expected(work).map_or(0.0, |expected| expected - self.mean),
        }
    }
}

impl Hyper {
    /// From logarithms: lengths, amplitude, extra noise.
    fn from_logarithms(logarithms: &[f64]) -> Self {
        let values: Vec<f64> = logarithms.iter().map(|ln| ln.exp()).collect();
        let (lengths, rest) = values.split_at(values.len() - 2);
        Self { lengths: lengths.to_vec(), amplitude: rest[0], extra: rest[1] }
    }

    fn covariance(&self, one: &Place, other: &Place) -> f64 {
        let pairs = one.coordinates.iter().zip(&other.coordinates).zip(&self.lengths);
        let distance = pairs.map(|((a, b), length)| ((a - b) / length).powi(2)).sum::<f64>().sqrt();
        let slope = SLOPE_SD * SLOPE_SD * one.expected * other.expected;
        self.amplitude * matern52(distance) + slope + CONSTANT_SD * CONSTANT_SD
    }
}

/// Samples as a process sees them.
struct Data {
    places: Vec<Place>,
    /// Without their mean.
    values: Vec<f64>,
    variances: Vec<f64>,
}

impl Data {
    fn new<C: SmoothOver>(space: &Space<C>, samples: &[&Sample]) -> Self {
        Self {
            places: samples.iter().map(|sample| space.place(&sample.workload)).collect(),
            values: samples.iter().map(|sample| sample.ln_throughput - space.mean).collect(),
            variances: samples.iter().map(|sample| sample.sd.min(SD_MAX).powi(2)).collect(),
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
    let mut expected = vec![0.0; data.places[0].coordinates.len()];
    expected.push(data.variance().max(EXTRA_SD * EXTRA_SD).ln());
    expected.push(2.0 * EXTRA_SD.ln());
    let ln_posterior = |logarithms: &[f64]| {
        let away = logarithms.iter().zip(&expected).map(|(at, from)| (at - from) / PRIOR_SD);
        let prior = -0.5 * away.map(|sigmas| sigmas * sigmas).sum::<f64>();
        let process = data.process(&Hyper::from_logarithms(logarithms));
        process.map_or(f64::NEG_INFINITY, |fitted| fitted.ln_marginal_likelihood() + prior)
    };
    let evaluations = EVALUATIONS * expected.len();
    Hyper::from_logarithms(&maximise(ln_posterior, &expected, SEARCH_STEP, evaluations))
}

#[cfg(test)]
mod tests;
