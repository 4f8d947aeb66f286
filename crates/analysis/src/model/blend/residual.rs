//! What the law leaves unexplained, learnt by a Gaussian process.
//!
//! Each part of a request's time (copying for reads and for writes, reading from storage, writing
//! back) is off by a smooth factor of its own. By how much a part's factor moves the throughput is
//! its elasticity `e_c`, which the law knows; so the covariance of two workloads is
//! `Σ_c e_c(x) e_c(y) a_c² k(x, y)`, and what is learnt about storage from one workload does not
//! spoil another that is all in the cache. Noise between visits is blended in the same way.

use ioscape_model::Workload;
use ioscape_stats::gaussian_process::{GaussianProcess, matern52};
use ioscape_stats::maximise::maximise;
use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};

use super::law::{Law, PARTS};
use crate::model::Sample;

/// Coordinates in which all factors are smooth.
const FEATURES: usize = 4;
/// Evaluations of the likelihood in search of the best lengths and amplitudes.
const EVALUATIONS: usize = 250;
/// Most samples that the hyperparameters are chosen by.
const CHOSEN_BY_MAX: usize = 200;
/// What the hyperparameters are expected to be, as logarithms: mean and standard deviation.
const EXPECTED: [(f64, f64); HYPERPARAMETERS] = [
    // Amplitudes of the four parts.
    (-2.5, 0.7),
    (-2.0, 0.7),
    (-2.0, 0.7),
    (-1.5, 0.7),
    // Lengths: request size, read and sequential fractions, processes ...
    (1.0, 0.7),
    (0.0, 0.7),
    (0.0, 0.7),
    (0.5, 0.7),
    // ... and data touched, for copying, reading, writing back.
    (0.5, 0.7),
    (0.0, 0.7),
    (-0.5, 0.7),
    // Noise between visits: copying, reading, writing back.
    (-3.3, 0.7),
    (-3.0, 0.7),
    (-2.3, 0.7),
];
/// A sample further than this many standard deviations from what the others say of it counts as
/// less certain than it seemed.
const SCORE_MAX: f64 = 2.0;
/// Rounds in which that is found out.
const TAMINGS: usize = 2;
const HYPERPARAMETERS: usize = PARTS + FEATURES + 2 * KINDS;
/// Copying, reading, writing back.
const KINDS: usize = 3;
/// Which of these the parts of a request's time are.
const KIND_OF: [usize; PARTS] = [0, 0, 1, 2];
/// Caches of the size that they had when the samples were measured.
const AS_THEY_ARE: [f64; KINDS] = [1.0; KINDS];

/// Amplitudes, lengths and noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Hyperparameters {
    amplitudes: [f64; PARTS],
    lengths: [f64; FEATURES],
    unique_lengths: [f64; KINDS],
    noise: [f64; KINDS],
}

impl Hyperparameters {
    fn of(at: &[f64]) -> Self {
        Self {
            amplitudes: std::array::from_fn(|part| at[part].exp()),
            lengths: std::array::from_fn(|feature| at[PARTS + feature].exp()),
            unique_lengths: std::array::from_fn(|kind| at[PARTS + FEATURES + kind].exp()),
            noise: std::array::from_fn(|kind| at[PARTS + FEATURES + KINDS + kind].exp()),
        }
    }
}

/// A workload as the process sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Place {
    features: [f64; FEATURES],
    /// Data touched, as a logarithm: as much as meets a cache in the same way as the samples did
    /// theirs, where the one that matters is supposed to be of another size.
    unique: [f64; KINDS],
    elasticities: [f64; PARTS],
}

impl Place {
    fn of(law: &Law, work: &Workload) -> Self {
        Self::supposing(law, work, &AS_THEY_ARE)
    }

    /// The same with caches so many times as large.
    fn supposing(law: &Law, work: &Workload, factors: &[f64; KINDS]) -> Self {
        Self {
            unique: factors.map(|factor| (work.unique_bytes as f64 / factor).ln()),
            features: [
                (work.size_mean as f64).ln(),
                work.read_frac,
                work.seq_frac,
                f64::from(work.process_num).ln(),
            ],
            elasticities: law.elasticities(work),
        }
    }

    fn covariance(&self, other: &Self, hyper: &Hyperparameters) -> f64 {
        let square = |feature: usize| {
            let apart = self.features[feature] - other.features[feature];
            (apart / hyper.lengths[feature]).powi(2)
        };
        let common: f64 = (0..FEATURES).map(square).sum();
        let correlation: [f64; KINDS] = std::array::from_fn(|kind| {
            let apart = (self.unique[kind] - other.unique[kind]) / hyper.unique_lengths[kind];
            matern52((common + apart * apart).sqrt())
        });
        let of = |part: usize| {
            let amplitude = hyper.amplitudes[part].powi(2);
            self.elasticities[part]
                * other.elasticities[part]
                * amplitude
                * correlation[KIND_OF[part]]
        };
        (0..PARTS).map(of).sum()
    }

    /// Variance between two visits.
    fn noise(&self, hyper: &Hyperparameters) -> f64 {
        let of = |part: usize| (self.elasticities[part] * hyper.noise[KIND_OF[part]]).powi(2);
        (0..PARTS).map(of).sum()
    }
}

/// The learnt corrections.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "Learnt", try_from = "Learnt")]
pub(super) struct Residual {
    learnt: Learnt,
    /// Follows from the rest, and is as large as the square of the samples' number: not stored.
    process: GaussianProcess,
}

/// What the corrections are computed from.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Learnt {
    hyper: Hyperparameters,
    places: Vec<Place>,
    /// What the law missed the samples by, and the variances of that.
    missed: Vec<f64>,
    noise: Vec<f64>,
    /// How many times as large the cache that matters to each kind is supposed to be.
    factors: [f64; KINDS],
}

impl From<Residual> for Learnt {
    fn from(residual: Residual) -> Self {
        residual.learnt
    }
}

impl TryFrom<Learnt> for Residual {
    type Error = &'static str;

    fn try_from(learnt: Learnt) -> Result<Self, Self::Error> {
        let Learnt { hyper, places, missed, noise, .. } = &learnt;
        if places.len() != missed.len() || places.len() != noise.len() {
            return Err("a sample lacks what was learnt from it");
        }
        let process = process(places, noise, missed, hyper).ok_or("nothing fits the samples")?;
        Ok(Self { learnt, process })
    }
}

impl Residual {
    /// Learns from what the law misses the samples by; chooses the hyperparameters.
    pub(super) fn learn(law: &Law, samples: &[Sample]) -> Option<Self> {
        // Of many samples some are enough to choose by: the time goes with the cube of their number.
        let stride = samples.len().div_ceil(CHOSEN_BY_MAX);
        let chosen_by: Vec<Sample> = samples.iter().step_by(stride.max(1)).cloned().collect();
        let places: Vec<Place> = chosen_by.iter().map(|s| Place::of(law, &s.workload)).collect();
        let missed = missed(law, &chosen_by);
        let start: Vec<f64> = EXPECTED.iter().map(|(mean, _)| *mean).collect();
        let extra = extra_noise(&places, &chosen_by, &missed, &Hyperparameters::of(&start))?;
        let likelihood = |at: &[f64]| {
            let known: f64 =
                at.iter().zip(EXPECTED).map(|(x, (mean, sd))| ((x - mean) / sd).powi(2)).sum();
            let hyper = Hyperparameters::of(at);
            let noise = noise(&places, &chosen_by, &hyper, &extra);
            process(&places, &noise, &missed, &hyper)
                .map_or(f64::NEG_INFINITY, |process| process.ln_marginal_likelihood())
                - 0.5 * known
        };
        let best = maximise(likelihood, &start, 0.5, EVALUATIONS);
        Self::with(law, samples, Hyperparameters::of(&best))
    }

    /// Learns from other samples, or under another law, with the hyperparameters kept.
    pub(super) fn learn_again(&self, law: &Law, samples: &[Sample]) -> Option<Self> {
        Self::with(law, samples, self.learnt.hyper.clone())
    }

    fn with(law: &Law, samples: &[Sample], hyper: Hyperparameters) -> Option<Self> {
        let places: Vec<Place> = samples.iter().map(|s| Place::of(law, &s.workload)).collect();
        let missed = missed(law, samples);
        let extra = extra_noise(&places, samples, &missed, &hyper)?;
        let noise = noise(&places, samples, &hyper, &extra);
        Self::try_from(Learnt { hyper, places, missed, noise, factors: AS_THEY_ARE }).ok()
    }

    /// The same where the caches for reads and for writes are so many times as large.
    pub(super) fn with_caches(&self, read_factor: f64, write_factor: f64) -> Self {
        let mut changed = self.clone();
        let [_, reading, writing] = &mut changed.learnt.factors;
        *reading *= read_factor;
        *writing *= write_factor;
        changed
    }

    /// What to add to the law's logarithm, and the variance of that.
    pub(super) fn correction(&self, law: &Law, work: &Workload) -> (f64, f64) {
        let Learnt { hyper, places, factors, .. } = &self.learnt;
        let here = Place::supposing(law, work, factors);
        let cross: Vec<f64> = places.iter().map(|place| place.covariance(&here, hyper)).collect();
        self.process.predict(&cross, here.covariance(&here, hyper))
    }

    /// Variance between two visits to a workload.
    pub(super) fn noise(&self, law: &Law, work: &Workload) -> f64 {
        Place::of(law, work).noise(&self.learnt.hyper)
    }
}

fn missed(law: &Law, samples: &[Sample]) -> Vec<f64> {
    samples
        .iter()
        .map(|sample| sample.ln_throughput - law.ln_throughput(&sample.workload))
        .collect()
}

/// What to add to the noise of samples that the others contradict, so that one odd visit does not
/// bend what is said of its neighbours (a scale mixture of normals, as in iterated reweighting).
fn extra_noise(
    places: &[Place],
    samples: &[Sample],
    missed: &[f64],
    hyper: &Hyperparameters,
) -> Option<Vec<f64>> {
    let mut extra = vec![0.0; places.len()];
    for _ in 0..TAMINGS {
        let noise = noise(places, samples, hyper, &extra);
        let said = process(places, &noise, missed, hyper)?.leave_one_out();
        for ((extra, missed), (mean, variance)) in extra.iter_mut().zip(missed).zip(said) {
            // Its own noise is part of the variance: what was added before is found anew.
            let plain = variance - *extra;
            *extra = ((missed - mean).powi(2) / SCORE_MAX.powi(2) - plain).max(0.0);
        }
    }
    Some(extra)
}

fn process(
    places: &[Place],
    noise: &[f64],
    missed: &[f64],
    hyper: &Hyperparameters,
) -> Option<GaussianProcess> {
    let mut kernel = DMatrix::zeros(places.len(), places.len());
    for row in 0..places.len() {
        for column in 0..=row {
            kernel[(row, column)] = places[row].covariance(&places[column], hyper);
        }
    }
    GaussianProcess::fit(&kernel, noise, missed)
}

/// Variances of what was measured at the places.
fn noise(places: &[Place], samples: &[Sample], hyper: &Hyperparameters, extra: &[f64]) -> Vec<f64> {
    let of = |((place, sample), extra): ((&Place, &Sample), &f64)| {
        place.noise(hyper) / f64::from(sample.visits.max(1)) + extra
    };
    places.iter().zip(samples).zip(extra).map(of).collect()
}
