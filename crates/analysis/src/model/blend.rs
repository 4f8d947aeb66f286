//! The blend: class times mixed in time (see `law`), what they leave unexplained learnt by a
//! Gaussian process where that helps.

use std::collections::BTreeMap;
use std::panic::resume_unwind;

use ioscape_model::line::ParameterValue;
use ioscape_model::{Access, Classes, Workload};
use ioscape_stats::least_squares::{self, Fit, Prior, Settings};
use ioscape_stats::{median, robust_sd};
use nalgebra::DVector;
use serde::{Deserialize, Serialize};

mod extras;
mod law;
mod limits;
mod read_ahead;
mod residual;
mod start;
mod words;

pub use self::extras::Coverage;
use self::extras::Extension;
use self::law::{CLASSES, LIMITS, Law, PROCESSOR_CACHE, READ_PARALLEL, Shape, WRITE_WAITED};
use self::residual::Residual;
use self::start::WriteCache;
use super::{Guess, Model, Sample, Training};

/// Fewest samples that a fit is worth.
pub const SAMPLES_MIN: usize = 12;
/// Residuals beyond this many standard deviations, as the fit counts these, count linearly: where
/// the law misses much that is only samples far out.
const HUBER: f64 = 2.0;
/// What the law is supposed to miss by in the first fits, already as the fit counts it.
const MISFIT_START: f64 = 0.08;
/// The least and the most that it is taken to miss by.
const MISFIT_MIN: f64 = 0.01;
const MISFIT_MAX: f64 = 0.3;
/// Neighbouring samples are missed in the same direction: 36 of them say no more of the law's
/// parameters than one that is missed by chance. This is the root of 36, a factor on what the law
/// misses by.
const MISSED_ALIKE: f64 = 6.0;

/// Classes of fewer requests say nothing about their mean time.
const CLASS_OPS_MIN: u64 = 300;
/// What the law is allowed to miss the time of a class by, beside what it misses the total by as the
/// fit counts that.
const CLASS_SD: f64 = 0.3;
/// Steps of the search from each start, from the best end of these, and when a few samples are
/// left out.
const STEPS_FIRST: usize = 15;
const STEPS_LAST: usize = 60;
const STEPS_AGAIN: usize = 8;
/// Parts that the samples are divided into for cross-validation.
const FOLDS: usize = 10;
/// Which processes win, and how soon, is chance: standard deviation over what they win together.
const UNEVEN_SCATTER: f64 = 0.3;
/// The correction is kept where it lowers the typical error on workloads held out by this factor.
const WORTH_KEEPING: f64 = 0.99;

/// The fitted blend.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Blend {
    shape: Shape,
    /// Which of the law's read caches are the processor's.
    read_is_processors: Vec<bool>,
    /// What each of the law's write caches is.
    write_kinds: Vec<WriteCache>,
    /// The smallest and the largest data touched by any sample.
    least_unique_bytes: u64,
    most_unique_bytes: u64,
    access: Access,
    priors: Vec<Prior>,
    fit: Fit,
    law: Law,
    /// What the law misses by, beyond what measuring does, as the first fits have it, which follow
    /// the samples closely.
    misfit: f64,
    residual: Option<Residual>,
    /// What several requests in flight and fdatasyncs change, where they were measured.
    extension: Option<Extension>,
    /// Whether the residual corrects the law, or only says how visits scatter.
    is_corrected: bool,
}

/// A sample, and what the model says of it when it was not fitted to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldOut {
    /// Its place among the samples.
    pub index: usize,
    /// What was said.
    pub guess: Guess,
    /// Measured over predicted, as a logarithm.
    pub ln_error: f64,
}

impl Blend {
    /// Fits the law to the samples and learns what it misses; `None` where there are too few.
    pub fn fit(training: &Training) -> Option<(Self, Vec<HeldOut>)> {
        let mut blend = Self::fit_once(training)?;
        let [plain, corrected] = blend.held_out(training);
        blend.is_corrected =
            blend.residual.is_some() && typical(&corrected) < WORTH_KEEPING * typical(&plain);
        let held_out = if blend.is_corrected { corrected } else { plain };
        blend.extend(training);
        Some((blend, held_out))
    }

    /// Extends the law by what samples with several requests in flight or fdatasyncs say.
    fn extend(&mut self, training: &Training) {
        let residual = self.residual.as_ref().filter(|_| self.is_corrected);
        self.extension = Extension::learn(&self.law, residual, training);
        self.law = self.law_of(&self.fit.parameters);
    }

    /// The law with these parameters, extended.
    fn law_of(&self, parameters: &[f64]) -> Law {
        let law = Law::of(self.shape, parameters);
        match &self.extension {
            Some(extension) => law.with_extras(extension.extras()),
            None => law,
        }
    }

    /// How far several requests in flight and fdatasyncs were measured.
    pub fn coverage(&self) -> Coverage {
        self.extension.as_ref().map_or_else(Coverage::default, |extension| extension.coverage)
    }

    /// The fit alone.
    fn fit_once(training: &Training) -> Option<Self> {
        if training.samples.len() < SAMPLES_MIN {
            return None;
        }
        let caches = start::Caches::of(training);
        let shape = caches.shape();
        let priors = start::priors(training, &caches);
        let how = (MISFIT_START, STEPS_FIRST);
        let fits =
            side_by_side(&starts(&priors), |start| fit_from(training, shape, &priors, start, how));
        let first = fits.into_iter().min_by(|one, other| one.cost.total_cmp(&other.cost))?;
        let misfit = misfit(&training.samples, &Law::of(shape, &first.parameters));
        let how = (misfit_counted(misfit), STEPS_LAST);
        let fit = fit_from(training, shape, &priors, &first.parameters, how);
        let law = Law::of(shape, &fit.parameters);
        let residual = Residual::learn(&law, &training.samples);
        let unique = training.samples.iter().map(|sample| sample.workload.unique_bytes);
        let least_unique_bytes = unique.clone().min().unwrap_or(0);
        let most_unique_bytes = unique.max().unwrap_or(0);
        Some(Self {
            shape,
            read_is_processors: caches.read_is_processors,
            write_kinds: caches.write_kinds,
            least_unique_bytes,
            most_unique_bytes,
            access: training.ranges.access,
            priors,
            fit,
            law,
            misfit,
            residual,
            extension: None,
            is_corrected: false,
        })
    }

    /// The same model for other samples of the same system, beginning where this one ended.
    #[must_use]
    pub fn refit(&self, training: &Training) -> Self {
        let start = &self.fit.parameters;
        let how = (misfit_counted(self.misfit), STEPS_AGAIN);
        let fit = fit_from(training, self.shape, &self.priors, start, how);
        let law = self.law_of(&fit.parameters);
        let again = |residual: &Residual| residual.learn_again(&law, &training.samples);
        let residual = self.residual.as_ref().and_then(again);
        Self { fit, law, residual, ..self.clone() }
    }

    /// The cache that reads find data in, and the data that can be overwritten before storage is
    /// waited for, bytes: those that [`Self::with_caches`] changes.
    pub fn caches_bytes(&self) -> (Option<f64>, Option<f64>) {
        let mut own = self.write_kinds.iter().enumerate().skip(self.no_caches());
        let write = own.find(|(_, kind)| **kind == WriteCache::Dirty);
        (
            self.own_read_caches().last().map(|index| self.law.read_cache_bytes(index)),
            write.map(|(index, _)| self.law.write_cache_bytes(index)),
        )
    }

    /// The caches of the storage that reads find data in.
    fn own_read_caches(&self) -> impl Iterator<Item = usize> {
        let own = self.no_caches()..self.shape.read_caches;
        own.filter(|index| !self.read_is_processors[*index])
    }

    /// How many of the law's caches are none: direct requests have one that holds nothing.
    fn no_caches(&self) -> usize {
        usize::from(self.access == Access::Direct)
    }

    /// The same system with caches of other sizes: by these factors for reads and for writes.
    #[must_use]
    pub fn with_caches(&self, read_factor: f64, write_factor: f64) -> Self {
        let mut fit = self.fit.clone();
        if let Some(last) = self.own_read_caches().last() {
            fit.parameters[self.shape.read_cache(last)] += read_factor.ln();
        }
        for (index, kind) in self.write_kinds.iter().enumerate().skip(self.no_caches()) {
            let factor = match kind {
                WriteCache::Processor => 1.0,
                WriteCache::Dirty => write_factor,
                WriteCache::Room => read_factor,
            };
            fit.parameters[self.shape.write_cache(index)] += factor.ln();
        }
        let law = self.law_of(&fit.parameters);
        let with_caches = |of: &Residual| of.with_caches(read_factor, write_factor);
        let residual = self.residual.as_ref().map(with_caches);
        Self { fit, law, residual, ..self.clone() }
    }

    /// What the model says of every sample when it is left out of the fit, with others: without
    /// the correction, and with it.
    fn held_out(&self, training: &Training) -> [Vec<HeldOut>; 2] {
        let folds: [usize; FOLDS] = std::array::from_fn(|fold| fold);
        let models = side_by_side(&folds, |fold| {
            self.refit(&training.keeping(|index| index % FOLDS != *fold))
        });
        let mut held_out = [Vec::new(), Vec::new()];
        for (fold, model) in models.iter().enumerate() {
            for (index, sample) in training.samples.iter().enumerate().skip(fold).step_by(FOLDS) {
                for (is_corrected, held_out) in [false, true].into_iter().zip(&mut held_out) {
                    let guess = model.guess_as(&sample.workload, is_corrected);
                    let ln_error = sample.ln_throughput - guess.ln_throughput;
                    held_out.push(HeldOut { index, guess, ln_error });
                }
            }
        }
        held_out
    }

    /// What the model says, as [`Model::predict`] does.
    pub fn guess(&self, work: &Workload) -> Guess {
        self.guess_as(work, self.is_corrected)
    }

    fn guess_as(&self, work: &Workload, is_corrected: bool) -> Guess {
        let ln_throughput = self.law.ln_throughput(work);
        let extension = self.extension.as_ref().filter(|_| work.has_extras());
        let extended = extension.map_or(0.0, |extension| extension.variance(&self.law, work));
        if let Some(residual) = self.residual.as_ref().filter(|_| is_corrected) {
            let (correction, variance) = residual.correction(&self.law, work);
            let sd = (variance + extended).sqrt();
            return Guess { ln_throughput: ln_throughput + correction, sd };
        }
        let variance = self.parameter_variance(work) + self.misfit.powi(2) + extended;
        Guess { ln_throughput, sd: variance.sqrt() }
    }

    /// Variance of the logarithm between two visits to a workload.
    pub fn noise(&self, work: &Workload) -> f64 {
        let usual = self.residual.as_ref().map_or(0.0, |residual| residual.noise(&self.law, work));
        usual + (UNEVEN_SCATTER * self.law.apart(work)).powi(2)
    }
}

/// What comes of each, in their order, by as many threads as there are processors: nothing may be
/// measured while a model is fitted.
fn side_by_side<T: Sync, R: Send>(items: &[T], of: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let of_all = |part: &[T]| part.iter().map(&of).collect::<Vec<R>>();
    let of_all = &of_all;
    std::thread::scope(|scope| {
        let begun: Vec<_> = items
            .chunks(items.len().div_ceil(threads).max(1))
            .map(|part| {
                let thread = std::thread::Builder::new().name("fit".into());
                thread.spawn_scoped(scope, move || of_all(part)).map_err(|_| part)
            })
            .collect();
        let ended = begun.into_iter().flat_map(|thread| match thread {
            Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
            // Where no thread can be had, this one is enough.
            Err(part) => of_all(part),
        });
        ended.collect()
    })
}

/// Mean absolute error, errors beyond a factor of two counted as such.
fn typical(held_out: &[HeldOut]) -> f64 {
    let error = |held: &HeldOut| held.ln_error.abs().min(std::f64::consts::LN_2);
    held_out.iter().map(error).sum::<f64>() / held_out.len() as f64
}

fn fit_from(
    training: &Training,
    shape: Shape,
    priors: &[Prior],
    start: &[f64],
    (counted, steps_max): (f64, usize),
) -> Fit {
    let samples = &training.samples;
    let residuals = |at: &[f64], out: &mut Vec<f64>| {
        let law = Law::of(shape, at);
        for sample in samples {
            let work = &sample.workload;
            // Class times only where one process has the system to itself: queues hold up all
            // classes in ways that the law does not tell apart.
            let alone = (work.process_num == 1).then(|| law.alone(work));
            let ln_throughput = alone.map_or_else(|| law.ln_throughput(work), |(ln, _)| ln);
            out.push((sample.ln_throughput - ln_throughput) / sample.sd.hypot(counted));
            if let Some((_, times_s)) = alone {
                class_residuals(times_s, sample, counted, out);
            }
        }
    };
    let settings = Settings { huber: HUBER, steps_max };
    least_squares::fit(residuals, priors, start, settings)
}

/// How far the mean times of the classes are off.
fn class_residuals(times_s: [f64; CLASSES], sample: &Sample, counted: f64, out: &mut Vec<f64>) {
    let Classes { read_seq, read_rand, write_seq, write_rand } = &sample.classes;
    for (class, time_s) in [read_seq, read_rand, write_seq, write_rand].into_iter().zip(times_s) {
        if class.ops >= CLASS_OPS_MIN && class.mean_s > 0.0 {
            out.push((class.mean_s / time_s).ln() / CLASS_SD.hypot(counted));
        }
    }
}

/// Where the search begins: the expected values, and others for what the search may get stuck in.
fn starts(priors: &[Prior]) -> Vec<Vec<f64>> {
    let mean: Vec<f64> = priors.iter().map(|prior| prior.mean).collect();
    let mut starts = vec![mean.clone()];
    let others =
        [(PROCESSOR_CACHE, -1.5), (WRITE_WAITED, 2.0), (WRITE_WAITED, -2.0), (READ_PARALLEL, 1.0)];
    for (index, by) in others {
        let mut start = mean.clone();
        start[index] += by;
        starts.push(start);
    }
    // From far above a limit nobody sees it.
    let mut limited = mean;
    limited[LIMITS].iter_mut().for_each(|ln| *ln -= start::BEYOND_SEEN.ln());
    starts.push(limited);
    starts
}

/// The law's own scatter around the samples, beyond that of the samples: robust.
fn misfit(samples: &[Sample], law: &Law) -> f64 {
    let off =
        samples.iter().map(|sample| sample.ln_throughput - law.ln_throughput(&sample.workload));
    let usual = robust_sd(off).unwrap_or(0.0);
    let sd = median(samples.iter().map(|sample| sample.sd)).unwrap_or(0.0);
    (usual.powi(2) - sd.powi(2)).max(0.0).sqrt().clamp(MISFIT_MIN, MISFIT_MAX)
}

/// What the law misses a sample by, as the fit of its parameters counts it: [`MISSED_ALIKE`] times
/// what is beyond [`MISFIT_MIN`]. That least part is taken for chance and counts once.
fn misfit_counted(misfit: f64) -> f64 {
    let alike = (misfit.powi(2) - MISFIT_MIN.powi(2)).sqrt();
    (MISSED_ALIKE * alike).hypot(MISFIT_MIN)
}

impl Blend {
    /// Variance of the logarithm from what the parameters are unsure of.
    fn parameter_variance(&self, work: &Workload) -> f64 {
        self.variance_of(&|law| law.ln_throughput(work))
    }

    /// Variance of a figure by the linearised fit.
    fn variance_of(&self, figure: &dyn Fn(&Law) -> f64) -> f64 {
        const STEP: f64 = 1e-4;
        let base = figure(&self.law);
        let mut at = self.fit.parameters.clone();
        let slopes = DVector::from_fn(at.len(), |index, _| {
            at[index] += STEP;
            let moved = figure(&self.law_of(&at));
            at[index] = self.fit.parameters[index];
            (moved - base) / STEP
        });
        (slopes.transpose() * &self.fit.covariance * &slopes)[(0, 0)].max(0.0)
    }
}

impl Model for Blend {
    fn name(&self) -> &'static str {
        "blend"
    }

    fn predict(&self, work: &Workload) -> Option<Guess> {
        Some(self.guess(work))
    }

    fn parameters(&self) -> BTreeMap<String, ParameterValue> {
        let names = start::names(self.shape);
        let values = self.fit.parameters.iter().enumerate().map(|(index, &at)| {
            let sd = self.fit.covariance[(index, index)].max(0.0).sqrt();
            let is_plain = names[index].ends_with("_ln") || names[index].ends_with("_logit");
            let (value, error) = if is_plain { (at, sd) } else { (at.exp(), at.exp() * sd) };
            ParameterValue { value, standard_error: error }
        });
        let extended = self.extension.iter().flat_map(Extension::parameters);
        names.iter().cloned().zip(values).chain(extended).collect()
    }
}
