//! What the law is extended by: several requests in flight per process, and fdatasyncs.
//!
//! The five parameters are fitted first, without these samples, and stay as they are: a map that
//! sweeps depth and `fsync_every` answers for the five as one that does not. With `Q` requests in
//! flight storage may serve more at a time than the processes alone ever asked of it:
//!
//! ```text
//! m' = m · μ^(1 − 1/Q)                                      one μ for reads, one for writes
//! ```
//!
//! within limits on requests and bytes per second: `L^(1/Q) · L'^(1 − 1/Q)`, those of one at a time
//! towards those of many (the bytes of writes that an fdatasync waits for at `L'`). With an
//! fdatasync after every `F` writes each write waits for its own way to storage, as many at a time
//! as storage takes, and for its part of the fdatasync:
//!
//! ```text
//! synced = (A + s/B) / softmin(F, m_f) + Y/F                 seconds per write
//! ```

use std::collections::BTreeMap;

use ioscape_model::line::ParameterValue;
use ioscape_model::{Access, Range, Workload};
use ioscape_stats::least_squares::{self, Fit, Prior, Settings};
use ioscape_stats::{NORMAL_90, conformal_quantile, median, robust_sd};
use nalgebra::DVector;
use serde::{Deserialize, Serialize};

use super::law::Law;
use super::limits::{Asked, Limits};
use super::residual::Residual;
use super::start::OUT_OF_REACH;
use super::{FOLDS, HUBER};
use crate::model::{Sample, Training};

#[cfg(test)]
mod tests;

/// Fewest different values of depth, or of `fsync_every`, that say something about others.
const VALUES_MIN: usize = 2;
/// What the extension is expected to miss by before it is fitted, and the least it ever does.
const MISFIT_START: f64 = 0.1;
const MISFIT_MIN: f64 = 0.05;
/// And the most that it is taken to miss by.
const MISFIT_MAX: f64 = 0.5;
const STEPS: usize = 40;
/// Exponent of the soft minimum of `F` and what storage takes at a time.
const FLUSH_NORM: i32 = 4;

/// Names of the parameters, in their order; all are fitted as logarithms.
const NAMES: [&str; 12] = [
    "depth_read_copy_cost",
    "depth_write_copy_cost",
    "depth_read_overlap",
    "depth_write_overlap",
    "depth_requests_per_s",
    "depth_read_bytes_per_s",
    "depth_write_bytes_per_s",
    "sync_s",
    "sync_write_fixed_s",
    "sync_write_fixed_sequential_s",
    "sync_write_bytes_per_s",
    "sync_write_parallel",
];
/// Where those of the fdatasync begin.
const SYNC: usize = 7;

/// The parameters as numbers with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Extras {
    /// What copying costs a process that keeps several requests in flight, over what it costs one
    /// that waits for each: for reads, and for writes, which kernels hand to threads of their own
    /// where the filesystem might wait.
    copy_costs: [f64; 2],
    read_overlap: f64,
    write_overlap: f64,
    /// With many in flight, and for the bytes of writes that an fdatasync waits for.
    pub(super) limits: Limits,
    sync_s: f64,
    fixed_s: f64,
    fixed_sequential_s: f64,
    bytes_per_s: f64,
    /// Writes that storage takes at a time on their way to an fdatasync.
    pub(super) flush_parallel: f64,
}

impl Default for Extras {
    fn default() -> Self {
        Self::of(&[0.0; NAMES.len()])
    }
}

impl Extras {
    fn of(at: &[f64]) -> Self {
        Self {
            copy_costs: [at[0].exp(), at[1].exp()],
            read_overlap: at[2].exp(),
            write_overlap: at[3].exp(),
            limits: Limits::of(&at[4..SYNC]),
            sync_s: at[7].exp(),
            fixed_s: at[8].exp(),
            fixed_sequential_s: at[9].exp(),
            bytes_per_s: at[10].exp(),
            flush_parallel: at[11].exp(),
        }
    }

    /// Storage that takes whatever comes.
    #[cfg(test)]
    pub(super) fn limitless() -> Self {
        let limits = Limits { requests_per_s: 1e15, bytes_per_s: [1e18; 2] };
        Self { limits, ..Self::default() }
    }

    /// The same where copying in flight costs so many times as much, for reads and for writes.
    #[cfg(test)]
    pub(super) fn copying_at(self, copy_costs: [f64; 2]) -> Self {
        Self { copy_costs, ..self }
    }

    /// What a process spends on copying, reads and writes, with so many in flight.
    pub(super) fn copied_s(&self, copies_s: [f64; 2], depth: f64) -> f64 {
        self.copied_at_most_s(f64::INFINITY, copies_s, depth)
    }

    /// What of that the processors spend: what copying costs more in flight is handing over, what it
    /// costs less is work saved.
    pub(super) fn processed_s(&self, copies_s: [f64; 2], depth: f64) -> f64 {
        self.copied_at_most_s(1.0, copies_s, depth)
    }

    /// With costs up to a bound.
    fn copied_at_most_s(&self, most: f64, [reads_s, writes_s]: [f64; 2], depth: f64) -> f64 {
        let share = 1.0 - 1.0 / depth;
        let [read_cost, write_cost] = raised(self.copy_costs, share).map(|cost| cost.min(most));
        read_cost * reads_s + write_cost * writes_s
    }

    /// By how much more reads and writes storage serves at a time.
    pub(super) fn overlaps(&self, depth: f64) -> [f64; 2] {
        raised([self.read_overlap, self.write_overlap], 1.0 - 1.0 / depth)
    }

    /// What a write waits for, its part of the fdatasync included, copying apart, seconds.
    pub(super) fn synced_s(&self, work: &Workload) -> f64 {
        let every = f64::from(work.fsync_every.max(1));
        let fixed_s =
            work.seq_frac * self.fixed_sequential_s + (1.0 - work.seq_frac) * self.fixed_s;
        let written_s = fixed_s + work.size_mean as f64 / self.bytes_per_s;
        let inverse = |count: f64| count.powi(-FLUSH_NORM);
        let at_a_time =
            (inverse(every) + inverse(self.flush_parallel)).powf(-1.0 / f64::from(FLUSH_NORM));
        written_s / at_a_time.max(1.0) + self.sync_s / every
    }
}

/// To the power of the share that is not one request's: with one in flight there is nothing to do,
/// as for nearly all workloads of a fit.
fn raised(factors: [f64; 2], share: f64) -> [f64; 2] {
    if share <= 0.0 { [1.0; 2] } else { factors.map(|factor| factor.powf(share)) }
}

/// How far depth and `fsync_every` were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Requests in flight per process; from 1.
    pub depth: Range,
    /// Writes between two fdatasyncs, apart from never; both ends 0 where none were measured.
    pub fsync_every: Range,
}

impl Default for Coverage {
    fn default() -> Self {
        Self { depth: Range::one(), fsync_every: Range::none() }
    }
}

impl Coverage {
    fn of(samples: &[Sample]) -> Self {
        let values = |of: &dyn Fn(&Workload) -> u32| {
            let mut values: Vec<u32> = samples.iter().map(|sample| of(&sample.workload)).collect();
            values.sort_unstable();
            values.dedup();
            values
        };
        let depths = values(&|work| if work.depth > 1 { work.depth } else { 0 });
        let intervals = values(&|work| if work.read_frac < 1.0 { work.fsync_every } else { 0 });
        let range = |values: Vec<u32>, none: Range| {
            let measured: Vec<u64> = values.into_iter().filter(|v| *v > 0).map(u64::from).collect();
            match (measured.first(), measured.last()) {
                (Some(min), Some(max)) if measured.len() >= VALUES_MIN => {
                    Range { min: *min, max: *max }
                }
                _ => none,
            }
        };
        Self {
            depth: Range { min: 1, ..range(depths, Range::one()) },
            fsync_every: range(intervals, Range::none()),
        }
    }
}

/// The extension, fitted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Extension {
    fit: Fit,
    misfit: f64,
    pub(super) coverage: Coverage,
}

impl Extension {
    /// Fits it to samples with several requests in flight or fdatasyncs. The law and what was
    /// learnt beside it are taken as they are.
    pub(super) fn learn(
        law: &Law,
        residual: Option<&Residual>,
        training: &Training,
    ) -> Option<Self> {
        let samples = &training.extras;
        let coverage = Coverage::of(samples);
        if coverage.depth == Range::one() && coverage.fsync_every == Range::none() {
            return None;
        }
        let priors = priors(law, training);
        let corrections = vec![0.0; samples.len()];
        let mut data =
            Data { law, priors: &priors, samples: samples.iter().collect(), corrections };
        let mut at: Vec<f64> = priors.iter().map(|prior| prior.mean).collect();
        let mut misfit = MISFIT_START;
        for _ in 0..2 {
            at = data.fit(&at, misfit).parameters;
            // What a correction weighs depends on what the extension says: it is held meanwhile.
            if let Some(residual) = residual {
                let extended = law.clone().with_extras(Extras::of(&at));
                let correct = |sample: &Sample| residual.correction(&extended, &sample.workload).0;
                data.corrections = samples.iter().map(correct).collect();
            }
            misfit = misfit_of(data.misses(&at));
        }
        let fit = data.fit(&at, misfit);
        let misfit = usual_tail(data.held_out(&at, misfit));
        Some(Self { fit, misfit, coverage })
    }

    /// The parameters.
    pub(super) fn extras(&self) -> Extras {
        Extras::of(&self.fit.parameters)
    }

    /// What it is unsure of, beyond what the law without it is: variance of the logarithm.
    pub(super) fn variance(&self, law: &Law, work: &Workload) -> f64 {
        self.misfit.powi(2)
            + self.variance_of(&|extras| law.clone().with_extras(extras).ln_throughput(work))
    }

    fn variance_of(&self, figure: &dyn Fn(Extras) -> f64) -> f64 {
        const STEP: f64 = 1e-4;
        let base = figure(self.extras());
        let mut at = self.fit.parameters.clone();
        let slopes = DVector::from_fn(at.len(), |index, _| {
            at[index] += STEP;
            let moved = figure(Extras::of(&at));
            at[index] = self.fit.parameters[index];
            (moved - base) / STEP
        });
        (slopes.transpose() * &self.fit.covariance * &slopes)[(0, 0)].max(0.0)
    }

    /// A figure drawn from the parameters, with its relative standard error.
    pub(super) fn told(&self, figure: &dyn Fn(Extras) -> f64) -> (f64, f64) {
        (figure(self.extras()), self.variance_of(&|extras| figure(extras).ln()).sqrt())
    }

    /// Parameters that were measured, with standard errors.
    pub(super) fn parameters(&self) -> BTreeMap<String, ParameterValue> {
        let has_depth = self.coverage.depth != Range::one();
        let has_sync = self.coverage.fsync_every != Range::none();
        let is_known = |index: &usize| if *index < SYNC { has_depth } else { has_sync };
        let value = |index: usize| {
            let value = self.fit.parameters[index].exp();
            let sd = self.fit.covariance[(index, index)].max(0.0).sqrt();
            (NAMES[index].to_owned(), ParameterValue { value, standard_error: value * sd })
        };
        (0..NAMES.len()).filter(is_known).map(value).collect()
    }
}

/// An fdatasync with nothing left to write, seconds.
pub(super) fn sync_s(extras: Extras) -> f64 {
    extras.sync_s
}

/// What the parameters are fitted to.
struct Data<'a> {
    law: &'a Law,
    priors: &'a [Prior],
    samples: Vec<&'a Sample>,
    /// What was learnt beside the law about each sample.
    corrections: Vec<f64>,
}

impl Data<'_> {
    /// What the samples are missed by with these parameters, as logarithms.
    fn misses(&self, at: &[f64]) -> Vec<f64> {
        let law = self.law.clone().with_extras(Extras::of(at));
        let missed = |(sample, correction): (&&Sample, &f64)| {
            sample.ln_throughput - law.ln_throughput(&sample.workload) - correction
        };
        self.samples.iter().zip(&self.corrections).map(missed).collect()
    }

    fn fit(&self, start: &[f64], misfit: f64) -> Fit {
        let residuals = |at: &[f64], out: &mut Vec<f64>| {
            let misses = self.misses(at).into_iter().zip(&self.samples);
            out.extend(misses.map(|(missed, sample)| missed / sample.sd.hypot(misfit)));
        };
        let settings = Settings { huber: HUBER, steps_max: STEPS };
        least_squares::fit(residuals, self.priors, start, settings)
    }

    /// What each sample is missed by in a fit without it and the others of its fold: a dozen
    /// parameters fit themselves to much of what a few dozen samples are off by.
    fn held_out(&self, start: &[f64], misfit: f64) -> Vec<f64> {
        let mut misses = Vec::new();
        for fold in 0..FOLDS.min(self.samples.len()) {
            let at = self.keeping(|index| index % FOLDS != fold).fit(start, misfit).parameters;
            misses.extend(self.keeping(|index| index % FOLDS == fold).misses(&at));
        }
        misses
    }

    fn keeping(&self, is_kept: impl Fn(usize) -> bool) -> Self {
        let kept = || (0..self.samples.len()).filter(|index| is_kept(*index));
        Self {
            samples: kept().map(|index| self.samples[index]).collect(),
            corrections: kept().map(|index| self.corrections[index]).collect(),
            ..*self
        }
    }
}

fn misfit_of(misses: Vec<f64>) -> f64 {
    robust_sd(misses).unwrap_or(0.0).clamp(MISFIT_MIN, MISFIT_MAX)
}

/// Standard deviation of a normal law with a tenth as far out as these have it, for intervals.
/// Counts twice what the parameters are unsure of, for samples left out are missed by that, too:
/// rather too wide than too narrow from so few.
fn usual_tail(misses: Vec<f64>) -> f64 {
    let mut off: Vec<f64> = misses.into_iter().map(f64::abs).collect();
    off.sort_by(f64::total_cmp);
    (conformal_quantile(&off, 0.9).unwrap_or(0.0) / NORMAL_90).clamp(MISFIT_MIN, MISFIT_MAX)
}

/// Where the parameters are expected, in the order of [`NAMES`].
fn priors(law: &Law, training: &Training) -> Vec<Prior> {
    let samples = &training.extras;
    let known = |mean: f64, sd: f64| Prior { mean, sd };
    let per_write = |sample: &Sample| {
        let work = &sample.workload;
        let in_flight = f64::from(work.process_num) * f64::from(work.depth);
        let request_s = in_flight * work.size_mean as f64 / sample.ln_throughput.exp();
        request_s / (1.0 - work.read_frac)
    };
    let synced =
        samples.iter().filter(|s| s.workload.fsync_every > 0 && s.workload.read_frac < 1.0);
    let usual_s = median(synced.map(per_write)).unwrap_or(1e-3);
    // Of all that was seen, requests of whatever kind, the most is near a limit if there is one.
    let all = || training.samples.iter().chain(samples);
    let most = |of: &dyn Fn(Asked) -> f64| {
        let reached = |sample: &Sample| {
            let work = &sample.workload;
            let requests_per_s = sample.ln_throughput.exp() / work.size_mean as f64;
            let surely = law.surely_asked(work);
            of(law.asked(work).scaled(surely.map(|share| share * requests_per_s)))
        };
        all().map(reached).fold(0.0, f64::max)
    };
    let highest = all().map(|sample| sample.ln_throughput.exp()).fold(1.0, f64::max);
    let or_out_of_reach = |most: f64| if most > 0.0 { most } else { OUT_OF_REACH * highest };
    let asked = or_out_of_reach(most(&|asked| asked.requests.iter().sum()));
    let moved = [0, 1].map(|direction: usize| most(&|asked| asked.bytes[direction]));
    // What did not get there either way may be as much as the other.
    let either = or_out_of_reach(moved[0].max(moved[1]));
    let [read, written] = moved.map(|most| if most > 0.0 { most } else { either });
    let sizes = samples.iter().map(|sample| sample.workload.size_mean as f64);
    let size = sizes.fold(0.0, f64::max).max(1.0);
    let (fixed, rate) = match law.write_costs() {
        Some([random, sequential, bytes_per_s]) => {
            ([known(random.ln(), 1.5), known(sequential.ln(), 1.5)], known(bytes_per_s.ln(), 1.0))
        }
        None => ([known((usual_s / 2.0).ln(), 2.0); 2], known((2.0 * size / usual_s).ln(), 2.0)),
    };
    // Threads of the kernel may cost buffered writes several times as much. With direct I/O storage
    // works on whole batches, and a batch costs little more than a request.
    let (copy_sd, overlap_sd) = match training.ranges.access {
        Access::Buffered => ([0.5, 0.7], 0.35),
        Access::Direct => ([1.0, 1.0], 1.0),
    };
    vec![
        // A little below 1: what the processors spend has a corner there, and a fit that began in
        // it would not see it fall.
        known(-0.05, copy_sd[0]),
        known(-0.05, copy_sd[1]),
        known(0.0, overlap_sd),
        known(0.0, overlap_sd),
        known(asked.ln(), 0.5),
        known(read.ln(), 0.5),
        known(written.ln(), 0.5),
        known((usual_s / 2.0).ln(), 2.0),
        fixed[0],
        fixed[1],
        rate,
        known(law.writes_at_a_time().max(1.0).ln(), 1.0),
    ]
}
