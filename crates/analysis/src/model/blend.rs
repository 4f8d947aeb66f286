//! The blend predicts a workload's throughput: the law adds up what each kind of request costs (see
//! `law`), and a Gaussian process learns what the law misses (see `correction`).
//!
//! Words: a *level* is a cache of the law, or storage after the last; the *misfit* is what the law
//! misses samples by; *extras* are samples with several requests in flight or with fdatasyncs, beside
//! the plain ones of the five keys that every workload has.

use std::collections::BTreeMap;

use ioscape_model::line::ParameterValue;
use ioscape_model::{Access, ModelName, Range, State, Workload};
use ioscape_stats::least_squares::{Fit, Prior};
use nalgebra::DVector;
use serde::{Deserialize, Serialize};

mod caches;
mod correction;
mod fit;
mod law;
mod parallel_map;
mod parameters;
mod words;

pub use self::words::table;

use self::caches::{Caches, READ, WRITE};
use self::correction::Correction;
use self::fit::{STEPS_AGAIN, fit_law};
use self::law::Law;
use self::parallel_map::parallel_map;
use self::parameters::{OfCache, all, cache_at};
use super::{Guess, Model, Sample, Training};

/// Fewest samples that a fit is worth, and how many of them have one request in flight, no
/// `fdatasync` and a warm cache: the device layer of a run of three minutes on a volume limited to
/// 3000 requests per second has 19 and 11.
pub const SAMPLES_MIN: usize = 12;
const PLAIN_MIN: usize = SAMPLES_MIN / 2;
/// Fewest different values of depth, or of `fsync_every`, from which those in between are predicted.
const VALUES_MIN: usize = 2;
/// What lies beyond a page cache that was not passed is answered for up to this many times its size:
/// three quarters of the reads miss it there, and more data brings little else.
const PUT_TOGETHER_TO: f64 = 4.0;
/// Parts that the samples are divided into for cross-validation.
const FOLDS: usize = 10;

/// The fitted blend.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Blend {
    caches: Caches,
    /// The smallest and the largest data touched by any sample.
    unique_bytes: Range,
    access: Access,
    coverage: Coverage,
    priors: Vec<Prior>,
    fit: Fit,
    law: Law,
    /// The inflated misfit that the last fit assumed: standard deviation of ln throughput.
    inflated: f64,
    correction: Option<Correction>,
}

/// Values of depth and of `fsync_every` that are predicted: those measured, if they were two or more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Requests in flight per process; from 1.
    pub depth: Range,
    /// Writes between two fdatasyncs, apart from never; both ends 0 where none were measured.
    pub fsync_every: Range,
}

impl Coverage {
    fn of_samples(samples: &[Sample]) -> Self {
        let range = |value: &dyn Fn(&Workload) -> u32, none: Range| {
            let values = samples.iter().map(|sample| value(&sample.workload)).filter(|v| *v > 0);
            let mut values: Vec<u64> = values.map(u64::from).collect();
            values.sort_unstable();
            values.dedup();
            match (values.first(), values.last()) {
                (Some(&min), Some(&max)) if values.len() >= VALUES_MIN => Range { min, max },
                _ => none,
            }
        };
        let depth = range(&|work| if work.depth > 1 { work.depth } else { 0 }, Range::one());
        let synced = |work: &Workload| if work.read_frac < 1.0 { work.fsync_every } else { 0 };
        let fsync_every = range(&synced, Range::none());
        Self { depth: Range { min: 1, ..depth }, fsync_every }
    }
}

/// A sample, and what the model says of it when it was not fitted to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOut {
    /// Its index in `Training::all`.
    pub index: usize,
    /// What was said.
    pub guess: Guess,
    /// Measured over predicted, as a logarithm.
    pub ln_error: f64,
}

impl Blend {
    /// Fits the law to the samples and learns what it misses; `None` where there are too few.
    pub fn fit(training: &Training) -> Option<(Self, Vec<HeldOut>)> {
        let samples = training.all();
        if samples.len() < SAMPLES_MIN || training.samples.len() < PLAIN_MIN {
            return None;
        }
        let caches = Caches::of_samples(training);
        let priors = parameters::priors(training, &caches);
        let (fit, inflated) = fit::best_fit(training, &samples, &caches, &priors)?;
        let law = Law::from_scaled(caches.shape(), &fit.parameters);
        let given = training.is_fixed("multipliers").then_some([1.0; 2]);
        let correction = Correction::learn(&law, &samples, given);
        let touched = || training.samples.iter().map(|sample| sample.workload.unique_bytes);
        let blend = Self {
            unique_bytes: Range { min: touched().min()?, max: touched().max()? },
            access: training.ranges.access,
            coverage: Coverage::of_samples(&training.extras),
            caches,
            priors,
            fit,
            law,
            inflated,
            correction: correction.filter(|_| !training.is_fixed("correction")),
        };
        let held_out = blend.held_out(&samples);
        Some((blend, held_out))
    }

    /// Fits the model to other samples of this system, beginning where this fit ended.
    fn refit_to(&self, samples: &[&Sample]) -> Self {
        let Self { caches, priors, inflated, .. } = self;
        let start = &self.fit.parameters;
        let fit = fit_law(samples, caches, priors, start, (*inflated, STEPS_AGAIN));
        let law = Law::from_scaled(caches.shape(), &fit.parameters);
        let again = |correction: &Correction| correction.learn_again(&law, samples);
        let correction = self.correction.as_ref().and_then(again);
        Self { fit, law, correction, ..self.clone() }
    }

    /// The prediction for every sample by a fit without it and the others of its fold.
    fn held_out(&self, samples: &[&Sample]) -> Vec<HeldOut> {
        let folds: [usize; FOLDS] = std::array::from_fn(|fold| fold);
        let models = parallel_map(&folds, |fold| {
            let kept = samples.iter().enumerate().filter(|(index, _)| index % FOLDS != *fold);
            self.refit_to(&kept.map(|(_, sample)| *sample).collect::<Vec<&Sample>>())
        });
        let held_out = samples.iter().enumerate().map(|(index, sample)| {
            let guess = models[index % FOLDS].guess(&sample.workload);
            HeldOut { index, guess, ln_error: sample.ln_throughput - guess.ln_throughput }
        });
        held_out.collect()
    }

    /// How far several requests in flight and fdatasyncs were measured.
    pub fn coverage(&self) -> Coverage {
        self.coverage
    }

    /// The cache that reads find data in, and the amount of dirty data from which on writers wait,
    /// bytes: those that [`Self::with_caches`] changes.
    pub fn caches_bytes(&self) -> (Option<f64>, Option<f64>) {
        let bytes =
            |direction: usize, index: usize| self.law.cache(direction, index, OfCache::Size);
        (
            self.caches.main_read().map(|index| bytes(READ, index)),
            self.caches.main_write().map(|index| bytes(WRITE, index)),
        )
    }

    /// This system with its caches scaled by these factors, for reads and for writes.
    #[must_use]
    pub fn with_caches(&self, factors: [f64; 2]) -> Self {
        let fit = Fit { parameters: self.scaled(factors), ..self.fit.clone() };
        let law = Law::from_scaled(self.caches.shape(), &fit.parameters);
        let with_caches = |it: &Correction| it.with_caches(factors);
        let correction = self.correction.as_ref().map(with_caches);
        Self { fit, law, correction, ..self.clone() }
    }

    /// The law's parameters where its caches are scaled by these factors, for reads and for writes.
    fn scaled(&self, [read_factor, write_factor]: [f64; 2]) -> Vec<f64> {
        let mut at = self.fit.parameters.clone();
        let shape = self.caches.shape();
        if let Some(last) = self.caches.main_read() {
            at[cache_at(shape, [READ, last], OfCache::Size)] += read_factor.ln();
        }
        for index in self.caches.first_real..shape.counts[WRITE] {
            let factor = if self.caches.is_page_cache[index] { read_factor } else { write_factor };
            at[cache_at(shape, [WRITE, index], OfCache::Size)] += factor.ln();
        }
        at
    }

    /// How much the law's ln throughput changes if the largest cache for reads, or the caches for writes, are
    /// `factor` times as large or as small as found: the larger change of each, the two added in squares. 0
    /// where answers are put together: there [`Self::guess`] already contains the doubt about the sizes.
    pub fn change_with_caches(&self, work: &Workload, factor: f64) -> f64 {
        if self.is_put_together(work) {
            return 0.0;
        }
        let base = self.law.ln_throughput(work);
        let change = |factors: [f64; 2]| {
            let law = Law::from_scaled(self.caches.shape(), &self.scaled(factors));
            (law.ln_throughput(work) - base).abs()
        };
        let reads = f64::max(change([factor, 1.0]), change([factor.recip(), 1.0]));
        let writes = f64::max(change([1.0, factor]), change([1.0, factor.recip()]));
        reads.hypot(writes)
    }

    /// What the model says, as [`Model::predict`] does.
    pub fn guess(&self, work: &Workload) -> Guess {
        let ln_throughput = self.law.ln_throughput(work);
        let (correction, variance) = match &self.correction {
            // The parameters' own doubt is not added to the correction's: it is in what the correction has seen the law miss.
            Some(correction) => correction.at(&self.law, work),
            None => (0.0, self.variance_of(&|law| law.ln_throughput(work))),
        };
        let elsewhere =
            if self.is_put_together(work) { self.variance_elsewhere(work) } else { 0.0 };
        let variance = variance + elsewhere;
        Guess { ln_throughput: ln_throughput + correction, sd: variance.max(0.0).sqrt() }
    }

    /// Whether a workload touches more data than any visit of a warm cache did, and what lies there is
    /// put together from cold reads and direct writes.
    pub fn is_put_together(&self, work: &Workload) -> bool {
        let [reads, _] = self.caches.is_put_together();
        reads && work.state == State::Warm && work.unique_bytes > self.unique_bytes.max
    }

    /// How far reads and writes are put together, bytes; 0 where they are not.
    pub fn put_together_to(&self) -> [f64; 2] {
        let cache_bytes = self.caches.read.last().copied().unwrap_or(0.0);
        let to = |is: bool| if is { PUT_TOGETHER_TO * cache_bytes } else { 0.0 };
        self.caches.is_put_together().map(to)
    }

    /// Shares of a workload's time that the law puts down to storage, for reads and for writes.
    pub fn storage_shares(&self, work: &Workload) -> [f64; 2] {
        let [.., read, written] = self.law.elasticities(work);
        [read, written]
    }

    /// Variance of the logarithm between two visits to a workload.
    pub fn noise(&self, work: &Workload) -> f64 {
        self.correction.as_ref().map_or(0.0, |correction| correction.noise(&self.law, work))
    }

    /// Variance of the logarithm of throughput from parameters that no visit of a warm cache showed.
    fn variance_elsewhere(&self, work: &Workload) -> f64 {
        let base = self.law.ln_throughput(work);
        let moved = |(index, sd): (usize, f64)| {
            let mut at = self.fit.parameters.clone();
            at[index] += sd;
            (Law::from_scaled(self.caches.shape(), &at).ln_throughput(work) - base).powi(2)
        };
        parameters::known_elsewhere(&self.caches).into_iter().map(moved).sum()
    }

    /// Variance of a figure of the law by the linearised fit.
    fn variance_of(&self, figure: &dyn Fn(&Law) -> f64) -> f64 {
        const STEP: f64 = 1e-4;
        let base = figure(&self.law);
        let mut at = self.fit.parameters.clone();
        let slopes = DVector::from_fn(at.len(), |index, _| {
            at[index] += STEP;
            let moved = figure(&Law::from_scaled(self.caches.shape(), &at));
            at[index] = self.fit.parameters[index];
            (moved - base) / STEP
        });
        (slopes.transpose() * &self.fit.covariance * &slopes)[(0, 0)].max(0.0)
    }
}

impl Model for Blend {
    fn name(&self) -> ModelName {
        ModelName::Blend
    }

    fn predict(&self, work: &Workload) -> Option<Guess> {
        Some(self.guess(work))
    }

    fn parameters(&self) -> BTreeMap<String, ParameterValue> {
        let values = all(self.caches.shape()).into_iter().enumerate();
        let fitted = values.map(|(index, (name, parameter))| {
            let at = self.fit.parameters[index];
            let sd = self.fit.covariance[(index, index)].max(0.0).sqrt();
            let value = parameter.scale.value(at);
            (name, ParameterValue { value, standard_error: parameter.scale.slope(value) * sd })
        });
        fitted.collect()
    }
}
