//! What the law leaves unexplained, learnt by a Gaussian process.
//!
//! Each part of a request's time (copying and storage, for reads and for writes) is off by a smooth
//! factor of its own. By how much a part's factor moves the throughput is its elasticity `e_c`, which
//! the law knows; so the covariance of two workloads is `Σ_c e_c(x) e_c(y) a_c² k_c(x, y)`, and what
//! is learnt about storage from one workload does not spoil another that is all in the cache. Noise
//! between visits is blended in the same way.

use ioscape_model::Workload;
use ioscape_stats::gaussian_process::{GaussianProcess, matern52};
use ioscape_stats::maximise::maximise;
use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};

use super::law::{Law, PARTS};
use crate::model::Sample;

/// Coordinates in which all factors are smooth, beside the data touched.
const FEATURES: usize = 6;
/// By how much each part's factor is off, standard deviation of its logarithm: reads' copies, writes'
/// copies, reads' storage, writes' storage. Choices, as the lengths and the noise below: copying is
/// known best, write-back least. Each map finds a factor on all of these, and one on all noise.
const AMPLITUDES: [f64; PARTS] = [0.08, 0.14, 0.14, 0.22];
/// Length scales of request size and processes (logarithms), shares of reads and of sequential
/// requests, depth (logarithm), 1/`fsync_every`: so far apart, two workloads are off half alike.
const LENGTHS: [f64; FEATURES] = [2.7, 1.6, 1.0, 1.0, 6.0, 2.0];
/// Length scale of the logarithm of the data touched, for each part.
const UNIQUE_LENGTHS: [f64; PARTS] = [1.6, 1.6, 1.0, 0.6];
/// Standard deviation of the logarithm of each part's time between two visits.
const NOISE: [f64; PARTS] = [0.04, 0.04, 0.05, 0.1];
/// How far both multipliers may be off 1, standard deviation of a logarithm.
const MULTIPLIER_SD: f64 = 0.7;
/// Evaluations of the likelihood in search of the multipliers.
const EVALUATIONS: usize = 40;
/// Samples that the multipliers are found from at most: time goes with the cube of their number.
const CHOSEN_BY_MAX: usize = 150;
/// A sample further than this many standard deviations from what the others say of it gets more noise.
/// With it the median error of the law of commit f0dba86 fell from 12.5 to 9.9 % (`docs/experiments.md`).
const SCORE_MAX: f64 = 2.0;
/// Rounds of that: a sample that is doubted changes what the others say.
const ROUNDS: usize = 2;

/// A workload as the process sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Coordinates {
    features: [f64; FEATURES],
    /// Logarithm of the data touched, for each part; for storage divided by the factor by which
    /// [`Correction::with_caches`] changed its cache.
    unique: [f64; PARTS],
    elasticities: [f64; PARTS],
}

impl Coordinates {
    fn new(law: &Law, work: &Workload, cache_factors: [f64; 2]) -> Self {
        let unique = work.unique_bytes as f64;
        let [read, write] = cache_factors.map(|factor| (unique / factor).ln());
        let synced = work.syncs_per_write();
        Self {
            features: [
                (work.size_mean as f64).ln(),
                f64::from(work.process_num).ln(),
                work.read_frac,
                work.seq_frac,
                f64::from(work.depth).ln(),
                synced,
            ],
            unique: [unique.ln(), unique.ln(), read, write],
            elasticities: law.elasticities(work),
        }
    }

    /// Covariance of two workloads' misses before the factor on amplitudes.
    fn covariance(&self, other: &Self) -> f64 {
        let square = |feature: usize| {
            ((self.features[feature] - other.features[feature]) / LENGTHS[feature]).powi(2)
        };
        let common: f64 = (0..FEATURES).map(square).sum();
        let by_part = |part: usize| {
            let apart = (self.unique[part] - other.unique[part]) / UNIQUE_LENGTHS[part];
            let both = self.elasticities[part] * other.elasticities[part];
            both * AMPLITUDES[part].powi(2) * matern52((common + apart * apart).sqrt())
        };
        (0..PARTS).map(by_part).sum()
    }

    /// Variance between two visits before the factor on noise.
    fn noise(&self) -> f64 {
        (0..PARTS).map(|part| (self.elasticities[part] * NOISE[part]).powi(2)).sum()
    }
}

/// The learnt corrections.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(into = "Learnt", try_from = "Learnt")]
pub(super) struct Correction {
    learnt: Learnt,
    /// Follows from the rest, and is as large as the square of the samples' number: not stored.
    process: GaussianProcess,
}

/// Places, errors and noise that the corrections are computed from.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Learnt {
    /// Factors on all amplitudes and on all noise.
    multipliers: [f64; 2],
    places: Vec<Coordinates>,
    /// Measured over the law's throughput, as a logarithm, and the variance of it, for each sample.
    residuals: Vec<f64>,
    noise: Vec<f64>,
    /// How many times as large the caches for reads and for writes are supposed to be.
    cache_factors: [f64; 2],
}

impl From<Correction> for Learnt {
    fn from(correction: Correction) -> Self {
        correction.learnt
    }
}

impl TryFrom<Learnt> for Correction {
    type Error = &'static str;

    fn try_from(learnt: Learnt) -> Result<Self, Self::Error> {
        let Learnt { multipliers, places, residuals, noise, .. } = &learnt;
        if places.len() != residuals.len() || places.len() != noise.len() {
            return Err("a sample lacks what was learnt from it");
        }
        let process = GaussianProcess::fit(
            &(multipliers[0].powi(2) * kernel(&places.iter().collect::<Vec<&Coordinates>>())),
            noise,
            residuals,
        );
        Ok(Self { learnt, process: process.ok_or("nothing fits the samples")? })
    }
}

impl Correction {
    /// Learns from what the law misses the samples by, with multipliers of amplitudes and noise that
    /// are given, or else found.
    pub(super) fn learn(law: &Law, samples: &[&Sample], given: Option<[f64; 2]>) -> Option<Self> {
        let places: Vec<Coordinates> = samples
            .iter()
            .map(|sample| Coordinates::new(law, &sample.workload, [1.0; 2]))
            .collect();
        let data = Data::new(law, samples, &places, 1);
        let multipliers = given.unwrap_or_else(|| {
            // Of many samples some are enough: the time goes with the cube of their number.
            let stride = samples.len().div_ceil(CHOSEN_BY_MAX).max(1);
            if stride == 1 {
                data.likeliest()
            } else {
                Data::new(law, samples, &places, stride).likeliest()
            }
        });
        let noise = data.with_outliers_doubted(multipliers)?;
        let residuals = data.residuals;
        Self::try_from(Learnt { multipliers, places, residuals, noise, cache_factors: [1.0; 2] })
            .ok()
    }

    /// Learns from other samples, or under another law, with the multipliers kept.
    pub(super) fn learn_again(&self, law: &Law, samples: &[&Sample]) -> Option<Self> {
        Self::learn(law, samples, Some(self.learnt.multipliers))
    }

    /// The corrections where the caches for reads and for writes are so many times as large.
    pub(super) fn with_caches(&self, factors: [f64; 2]) -> Self {
        let mut changed = self.clone();
        for (factor, by) in changed.learnt.cache_factors.iter_mut().zip(factors) {
            *factor *= by;
        }
        changed
    }

    /// The correction to the law's logarithm, and its variance.
    pub(super) fn at(&self, law: &Law, work: &Workload) -> (f64, f64) {
        let Learnt { multipliers, places, cache_factors, .. } = &self.learnt;
        let here = Coordinates::new(law, work, *cache_factors);
        let scale = multipliers[0].powi(2);
        let cross: Vec<f64> = places.iter().map(|place| scale * place.covariance(&here)).collect();
        self.process.predict(&cross, scale * here.covariance(&here))
    }

    /// Variance between two visits to a workload.
    pub(super) fn noise(&self, law: &Law, work: &Workload) -> f64 {
        self.learnt.multipliers[1].powi(2) * Coordinates::new(law, work, [1.0; 2]).noise()
    }
}

/// Samples as the process sees them, all multipliers 1.
struct Data {
    kernel: DMatrix<f64>,
    noise: Vec<f64>,
    residuals: Vec<f64>,
}

impl Data {
    /// Every sample that is `stride` places after the one before.
    fn new(law: &Law, samples: &[&Sample], places: &[Coordinates], stride: usize) -> Self {
        let chosen = || samples.iter().zip(places).step_by(stride);
        let kept: Vec<&Coordinates> = chosen().map(|(_, place)| place).collect();
        Self {
            kernel: kernel(&kept),
            noise: chosen()
                .map(|(sample, place)| place.noise() / f64::from(sample.visits.max(1)))
                .collect(),
            residuals: chosen().map(|(sample, _)| super::fit::residual(sample, law)).collect(),
        }
    }

    fn process(&self, amplitude: f64, noise: &[f64]) -> Option<GaussianProcess> {
        GaussianProcess::fit(&(amplitude.powi(2) * &self.kernel), noise, &self.residuals)
    }

    /// Factors on amplitudes and noise that make the samples likeliest.
    fn likeliest(&self) -> [f64; 2] {
        let likelihood = |at: &[f64]| {
            let penalty: f64 = at.iter().map(|x| (x / MULTIPLIER_SD).powi(2)).sum();
            let multipliers = [at[0].exp(), at[1].exp()];
            let process = self
                .with_outliers_doubted(multipliers)
                .and_then(|noise| self.process(multipliers[0], &noise));
            process.map_or(f64::NEG_INFINITY, |it| it.ln_marginal_likelihood()) - 0.5 * penalty
        };
        let best = maximise(likelihood, &[0.0, 0.0], 0.5, EVALUATIONS);
        [best[0].exp(), best[1].exp()]
    }

    /// The noise, more of it for samples that the others contradict, so that one odd visit does not
    /// bend what is said of its neighbours (a scale mixture of normals, as in iterated reweighting).
    fn with_outliers_doubted(&self, multipliers: [f64; 2]) -> Option<Vec<f64>> {
        let plain: Vec<f64> = self.noise.iter().map(|it| multipliers[1].powi(2) * it).collect();
        let mut noise = plain.clone();
        for _ in 0..ROUNDS {
            let said = self.process(multipliers[0], &noise)?.leave_one_out();
            for (index, (mean, variance)) in said.into_iter().enumerate() {
                // Its own noise is part of the variance.
                let others = variance - noise[index];
                let needed = ((self.residuals[index] - mean) / SCORE_MAX).powi(2) - others;
                noise[index] = needed.max(plain[index]);
            }
        }
        Some(noise)
    }
}

fn kernel(places: &[&Coordinates]) -> DMatrix<f64> {
    DMatrix::from_fn(places.len(), places.len(), |row, column| {
        places[row.max(column)].covariance(places[row.min(column)])
    })
}
