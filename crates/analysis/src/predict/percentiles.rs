//! Percentiles of response times, beside the mean that the law predicts.
//!
//! How far a percentile lies above or below the mean depends on the mixture of requests: a few
//! misses among hits, a few stalled writes among absorbed ones. The ratio of each percentile to the
//! mean, as a logarithm, is learnt from the visits by a Gaussian process (Rasmussen and Williams
//! 2006, chapter 2) over what makes the mixture: the data touched, sizes, shares, requests in flight,
//! and which share of the time the law puts down to storage.

use ioscape_model::{Figure, PredictedTime, Workload};
use ioscape_stats::conformal_quantile;
use ioscape_stats::gaussian_process::{GaussianProcess, matern52};
use ioscape_stats::maximise::maximise;
use nalgebra::DMatrix;
use serde::{Deserialize, Serialize};

use crate::model::blend::Blend;
use crate::model::{Sample, TAIL};

/// Fewer workloads say nothing of others' percentiles.
const SAMPLES_MIN: usize = 12;
/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.9;
/// Coordinates of a workload.
const FEATURES: usize = 9;
/// Length scales: two workloads this far apart have ratios with a correlation of one half. Coordinates:
/// logarithms of data touched, size, processes, depth; shares of reads and of sequential requests;
/// 1/`fsync_every`; shares of the time in reads and in writes of storage.
const LENGTHS: [f64; FEATURES] = [2.0, 3.0, 2.0, 2.5, 1.0, 1.5, 1.0, 0.7, 0.7];
/// Standard deviation of a ratio's logarithm over all workloads, and between two visits, before
/// anything was measured; both are found from the samples.
const SPREAD_EXPECTED: f64 = 0.5;
const NOISE_EXPECTED: f64 = 0.2;
/// How far both may be off, standard deviation of a logarithm.
const EXPECTED_SD: f64 = 1.0;
/// Evaluations of the likelihood, by so many samples at most: its time goes with the cube of them.
const EVALUATIONS: usize = 40;
const SEARCHED_MAX: usize = 120;

type FeatureVector = [f64; FEATURES];

/// Ratios of percentiles to the mean, learnt from the visits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Percentiles {
    places: Vec<FeatureVector>,
    ratios: [Ratio; TAIL],
}

/// One percentile over the mean, as a logarithm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Ratio {
    /// Over all samples.
    mean: f64,
    variance: f64,
    /// What each sample adds to places near it.
    weights: Vec<f64>,
    /// Half of the 90 % interval.
    half_width: f64,
}

impl Percentiles {
    /// From all samples whose response times are known; `None` where they are too few.
    pub(super) fn learn(blend: &Blend, samples: &[&Sample]) -> Option<Self> {
        let known = samples.iter().filter_map(|sample| Some((*sample, sample.ln_tail?)));
        let (kept, tails): (Vec<&Sample>, Vec<[f64; TAIL]>) = known.unzip();
        if kept.len() < SAMPLES_MIN {
            return None;
        }
        let places: Vec<FeatureVector> =
            kept.iter().map(|sample| place(blend, &sample.workload)).collect();
        let mut ratios = Vec::new();
        for which in 0..TAIL {
            let values: Vec<f64> = tails.iter().map(|tail| tail[which]).collect();
            ratios.push(Ratio::learn(&places, &values, &kept)?);
        }
        Some(Self { places, ratios: ratios.try_into().ok()? })
    }

    /// Mean and percentiles of a workload whose mean is predicted.
    pub(super) fn beside(&self, blend: &Blend, work: &Workload, mean: Figure) -> PredictedTime {
        let here = place(blend, work);
        let near: Vec<f64> = self.places.iter().map(|there| alike(&here, there)).collect();
        let mean_half_width = (mean.high / mean.low).ln() / 2.0;
        let mut least = 0.0_f64;
        let [p50, p99, p999] = self.ratios.each_ref().map(|ratio| {
            // A higher percentile is never below a lower one.
            least = least.max(mean.value * ratio.at(&near).exp());
            let factor = ratio.half_width.hypot(mean_half_width).exp();
            Some(Figure { value: least, low: least / factor, high: least * factor })
        });
        PredictedTime { mean, p50, p99, p999 }
    }
}

impl Ratio {
    fn learn(places: &[FeatureVector], values: &[f64], samples: &[&Sample]) -> Option<Self> {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let missed: Vec<f64> = values.iter().map(|value| value - mean).collect();
        let visits: Vec<f64> = samples.iter().map(|s| f64::from(s.visits.max(1))).collect();
        let [variance, noise] = likeliest(places, &missed, &visits);
        let process = process(places, &missed, &visits, [variance, noise], 1)?;
        let left_out = process.leave_one_out();
        let errors = left_out.iter().zip(&missed).map(|((said, _), found)| (found - said).abs());
        let mut errors: Vec<f64> = errors.collect();
        errors.sort_by(f64::total_cmp);
        let half_width = conformal_quantile(&errors, CONFIDENCE)?;
        Some(Self { mean, variance, weights: process.weights().to_vec(), half_width })
    }

    fn at(&self, near: &[f64]) -> f64 {
        let sum: f64 = near.iter().zip(&self.weights).map(|(alike, weight)| alike * weight).sum();
        self.mean + self.variance * sum
    }
}

fn place(blend: &Blend, work: &Workload) -> FeatureVector {
    let synced = work.syncs_per_write();
    let [read, written] = blend.storage_shares(work);
    [
        (work.unique_bytes as f64).ln(),
        (work.size_mean as f64).ln(),
        f64::from(work.process_num).ln(),
        f64::from(work.depth).ln(),
        work.read_frac,
        work.seq_frac,
        synced,
        read,
        written,
    ]
}

/// Correlation of two workloads' ratios.
fn alike(here: &FeatureVector, there: &FeatureVector) -> f64 {
    let squares = (0..FEATURES).map(|i| ((here[i] - there[i]) / LENGTHS[i]).powi(2));
    matern52(squares.sum::<f64>().sqrt())
}

/// The process over every `stride`th sample.
fn process(
    places: &[FeatureVector],
    missed: &[f64],
    visits: &[f64],
    [variance, noise]: [f64; 2],
    stride: usize,
) -> Option<GaussianProcess> {
    let kept: Vec<usize> = (0..places.len()).step_by(stride).collect();
    let kernel = DMatrix::from_fn(kept.len(), kept.len(), |row, column| {
        variance * alike(&places[kept[row]], &places[kept[column]])
    });
    let noise: Vec<f64> = kept.iter().map(|i| noise / visits[*i]).collect();
    let missed: Vec<f64> = kept.iter().map(|i| missed[*i]).collect();
    GaussianProcess::fit(&kernel, &noise, &missed)
}

/// Variances over all workloads and between two visits under which the samples are likeliest.
fn likeliest(places: &[FeatureVector], missed: &[f64], visits: &[f64]) -> [f64; 2] {
    let stride = places.len().div_ceil(SEARCHED_MAX).max(1);
    let expected = [SPREAD_EXPECTED, NOISE_EXPECTED].map(|sd| 2.0 * sd.ln());
    let ln_posterior = |at: &[f64]| {
        let away = at.iter().zip(&expected).map(|(x, from)| ((x - from) / EXPECTED_SD).powi(2));
        let prior = -0.5 * away.sum::<f64>();
        let process = process(places, missed, visits, [at[0].exp(), at[1].exp()], stride);
        process.map_or(f64::NEG_INFINITY, |it| it.ln_marginal_likelihood() + prior)
    };
    let best = maximise(ln_posterior, &expected, 0.5, EVALUATIONS);
    [best[0].exp(), best[1].exp()]
}
