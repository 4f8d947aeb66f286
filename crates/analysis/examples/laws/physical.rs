//! A Gaussian process over physical coordinates in place of the five parameters: expected times of request
//! classes, the share of them spent on storage, hit fractions of each cache. Its search for hyperparameters
//! is that of `model/gaussian.rs`, whose coordinates are fixed at five.
//!
//! ln throughput = a constant + a slope times the ln throughput that the expected times make + a smooth function
//! (Matérn 5/2, one length scale per coordinate) + noise. Hyperparameters are found as those of the library's process
//! over the five parameters are: the likeliest, under wide priors.

use ioscape_analysis::model::{Sample, Training};
use ioscape_model::Workload;
use ioscape_stats::gaussian_process::{GaussianProcess, matern52};
use ioscape_stats::maximise::maximise;
use nalgebra::DMatrix;

use crate::classes::Classes;

/// Hyperparameters are sought on so many samples at most: time grows with the cube.
const SAMPLES_SEARCHED_MAX: usize = 150;
const EVALUATIONS: usize = 600;
/// How far the search's first steps go, in logarithms: a factor of two.
const SEARCH_STEP: f64 = 0.7;
/// Standard deviation of the hyperparameters' priors, in logarithms.
const PRIOR_SD: f64 = 2.0;
/// The extra noise expected beforehand, as a standard deviation.
const EXTRA_SD: f64 = 0.05;
/// How far the constant may be from the samples' mean: a factor of e³.
const CONSTANT_SD: f64 = 3.0;
/// How far the slope may be from 0; it is 1 where the expected times are right.
const SLOPE_SD: f64 = 1.0;
/// A sample with less certainty says nothing, and only strains the arithmetic.
const SD_MAX: f64 = 10.0;

/// The model.
#[derive(Clone, Debug)]
pub(crate) struct Physical {
    space: Space,
    hyper: Hyper,
    places: Vec<Place>,
    process: GaussianProcess,
}

/// How workloads become places.
#[derive(Clone, Debug)]
struct Space {
    classes: Classes,
    /// The last-level cache, bytes; 0 where it is not known.
    processor_cache_bytes: f64,
    /// The samples' mean of ln throughput.
    mean: f64,
    /// Least coordinates of the samples, and how far the others reach.
    from: Vec<f64>,
    width: Vec<f64>,
}

/// A workload as the process sees it.
#[derive(Clone, Debug)]
struct Place {
    /// Over what was measured from 0 to 1, beyond it at the edge.
    coordinates: Vec<f64>,
    /// ln throughput by the expected times, less the samples' mean.
    expected: f64,
}

#[derive(Clone, Debug)]
struct Hyper {
    /// Length scales, in parts of what was measured.
    lengths: Vec<f64>,
    /// Variance of the smooth function.
    amplitude: f64,
    /// Variance of the noise beyond what is known of each sample.
    extra: f64,
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

impl Physical {
    /// From the samples that the blend learns from. `None` where there is no process that fits them.
    pub(crate) fn fit(training: &Training, classes: &Classes) -> Option<Self> {
        let samples = classes.levels().samples(training);
        let space = Space::from_samples(training, classes, &samples);
        let stride = samples.len().div_ceil(SAMPLES_SEARCHED_MAX);
        let searched: Vec<&Sample> = samples.iter().copied().step_by(stride).collect();
        let hyper = likeliest(&Data::new(&space, &searched));
        let data = Data::new(&space, &samples);
        let process = data.process(&hyper)?;
        Some(Self { space, hyper, places: data.places, process })
    }

    pub(crate) fn ln_throughput(&self, work: &Workload) -> f64 {
        let place = self.space.place(work);
        let cross: Vec<f64> =
            self.places.iter().map(|other| self.hyper.covariance(&place, other)).collect();
        let (offset, _) = self.process.predict(&cross, self.hyper.covariance(&place, &place));
        self.space.mean + offset
    }
}

impl Space {
    fn from_samples(training: &Training, classes: &Classes, samples: &[&Sample]) -> Self {
        let processors = training.processor_borders.first();
        let found = processors.map(|place| training.borders[*place].unique_bytes.capacity);
        let of_host = training.host.llc_bytes.map(|bytes| bytes as f64);
        let values = samples.iter().map(|sample| sample.ln_throughput);
        let mut space = Self {
            classes: classes.clone(),
            processor_cache_bytes: found.or(of_host).unwrap_or(0.0),
            mean: values.sum::<f64>() / samples.len() as f64,
            from: Vec::new(),
            width: Vec::new(),
        };
        let all: Vec<Vec<f64>> =
            samples.iter().map(|sample| space.coordinates(&sample.workload)).collect();
        for axis in 0..all[0].len() {
            let along = || all.iter().map(|place| place[axis]);
            let from = along().fold(f64::INFINITY, f64::min);
            let width = along().fold(f64::NEG_INFINITY, f64::max) - from;
            space.from.push(from);
            space.width.push(if width > 0.0 { width } else { 1.0 });
        }
        space
    }

    /// Coordinates in their own units.
    fn coordinates(&self, work: &Workload) -> Vec<f64> {
        let times = self.classes.times(work);
        let fsyncs_per_write = match work.fsync_every {
            0 => 0.0,
            every => f64::from(every).recip(),
        };
        let mut coordinates = vec![
            times.all_s().ln(),
            times.beyond_s[0] / times.all_s(),
            times.beyond_s[1] / times.all_s(),
            (self.processor_cache_bytes / work.unique_bytes as f64).min(1.0),
            (work.size_mean as f64).ln(),
            work.read_frac,
            work.seq_frac,
            f64::from(work.process_num).ln(),
            f64::from(work.depth).ln(),
            fsyncs_per_write,
        ];
        // Shares of all requests that each cache lets through, the last of them to storage.
        let of_requests = [work.read_frac, 1.0 - work.read_frac];
        for (shares, of_requests) in self.classes.levels().shares(work).iter().zip(of_requests) {
            let mut held = 0.0;
            for share in &shares[..shares.len() - 1] {
                held += share;
                coordinates.push(of_requests * (1.0 - held));
            }
        }
        coordinates
    }

    /// Outside what was measured a coordinate stays at the edge: there the slope alone says more.
    fn place(&self, work: &Workload) -> Place {
        let own = self.coordinates(work);
        let scaled = own.iter().zip(self.from.iter().zip(&self.width));
        Place {
            coordinates: scaled
                .map(|(at, (from, width))| ((at - from) / width).clamp(0.0, 1.0))
                .collect(),
            expected: self.classes.ln_throughput(work) - self.mean,
        }
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
    fn new(space: &Space, samples: &[&Sample]) -> Self {
        Self {
            places: samples.iter().map(|sample| space.place(&sample.workload)).collect(),
            values: samples.iter().map(|sample| sample.ln_throughput - space.mean).collect(),
            variances: samples.iter().map(|sample| sample.sd.min(SD_MAX).powi(2)).collect(),
        }
    }

    fn process(&self, hyper: &Hyper) -> Option<GaussianProcess> {
        let n = self.places.len();
        let kernel = DMatrix::from_fn(n, n, |row, column| {
            // Only the lower half is read.
            if row < column {
                0.0
            } else {
                hyper.covariance(&self.places[row], &self.places[column])
            }
        });
        let noise: Vec<f64> = self.variances.iter().map(|own| own + hyper.extra).collect();
        GaussianProcess::fit(&kernel, &noise, &self.values)
    }
}

/// The hyperparameters under which the data are likeliest, priors included.
fn likeliest(data: &Data) -> Hyper {
    let squares = data.values.iter().map(|value| value * value);
    let variance = squares.sum::<f64>() / data.values.len() as f64;
    // A function over the whole width, all of the samples' spread, little noise.
    let mut expected = vec![0.0; data.places[0].coordinates.len()];
    expected.push(variance.max(EXTRA_SD * EXTRA_SD).ln());
    expected.push(2.0 * EXTRA_SD.ln());
    let ln_posterior = |logarithms: &[f64]| {
        let away = logarithms.iter().zip(&expected).map(|(at, from)| (at - from) / PRIOR_SD);
        let prior = -0.5 * away.map(|sigmas| sigmas * sigmas).sum::<f64>();
        let process = data.process(&Hyper::from_logarithms(logarithms));
        process.map_or(f64::NEG_INFINITY, |fitted| fitted.ln_marginal_likelihood() + prior)
    };
    Hyper::from_logarithms(&maximise(ln_posterior, &expected, SEARCH_STEP, EVALUATIONS))
}
