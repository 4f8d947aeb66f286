//! Throughput from the times of request classes, the simplest law of storage: a request is a read or a write and is
//! served by a cache or by storage, and each of these classes takes a time of its own.
//!
//! Of the requests in `U` bytes a cache of `C` bytes serves `min(1, C/U)`. A class takes `a + s/B` seconds for `s` bytes;
//! beyond the first cache a sequential request takes `ρ a` in place of `a`. Processors divide the time of
//! what the first cache serves by `min(processes, cpus)`, and `a` of the others is divided by
//! `min(requests in flight, m)`. `a`, `B`, `ρ` and `m` are fitted by least squares in ln throughput.

use ioscape_analysis::model::{Sample, Training};
use ioscape_model::{Access, Curve, State, Workload};
use ioscape_stats::least_squares::{self, Prior, Settings};

/// Reads and writes, as places in pairs.
const READ: usize = 0;
const WRITE: usize = 1;
/// Expected error of the law on a sample, standard deviation of ln throughput. A choice: samples whose own
/// standard error is smaller weigh alike.
const MISFIT: f64 = 0.2;
/// Residuals beyond this many standard deviations count linearly.
const HUBER: f64 = 2.0;
const STEPS_MAX: usize = 100;
/// Standard deviation of the priors, in logarithms: a factor of 20, so that the samples decide.
const PRIOR_SD: f64 = 3.0;
/// Standard deviation of the priors of `ρ` and `m`, in logarithms.
const RATIO_SD: f64 = 1.5;
/// Parameters that are common to all classes: `m` for reads and for writes, and the time of an fdatasync.
const COMMON: usize = 3;
/// Parameters of a class: `a`, `B` and `ρ`, which the first does not use.
const PER_CLASS: usize = 3;

/// Sizes of the caches for reads and for writes, bytes, smallest first: the borders of the record, without the
/// processor's cache.
#[derive(Clone, Debug)]
pub(crate) struct Levels {
    caches_bytes: [Vec<f64>; 2],
    /// No visit passed the page cache: its size is what the machine says.
    is_unpassed: bool,
}

impl Levels {
    pub(crate) fn from_training(training: &Training) -> Self {
        if training.ranges.access == Access::Direct {
            return Self { caches_bytes: [Vec::new(), Vec::new()], is_unpassed: false };
        }
        let is_processors = |place: usize| training.processor_borders.contains(&place);
        let found_on = |curve: Curve| {
            let borders = training.borders.iter().enumerate();
            let there = borders.filter(|(place, border)| {
                !is_processors(*place) && (border.curve == curve || border.curve == Curve::Mixed)
            });
            let mut sizes: Vec<f64> =
                there.map(|(_, border)| border.unique_bytes.capacity).collect();
            sizes.sort_by(f64::total_cmp);
            sizes
        };
        let mut caches_bytes = [found_on(Curve::Read), found_on(Curve::Write)];
        let unpassed = training.unpassed_bytes().filter(|_| caches_bytes[READ].is_empty());
        if let Some(bytes) = unpassed {
            caches_bytes[READ].push(bytes);
            if caches_bytes[WRITE].is_empty() {
                let dirty = training.host.dirty_limit_bytes as f64;
                caches_bytes[WRITE].push(if dirty > 0.0 { dirty.min(bytes) } else { bytes });
            }
        }
        Self { caches_bytes, is_unpassed: unpassed.is_some() }
    }

    /// All samples that the blend learns from; direct requests, which tell it what lies beyond a page cache that no visit
    /// passed, only there.
    pub(crate) fn samples<'a>(&self, training: &'a Training) -> Vec<&'a Sample> {
        let device: &[Sample] = if self.is_unpassed { &training.device } else { &[] };
        let Training { samples, cold, extras, .. } = training;
        samples.iter().chain(cold).chain(extras).chain(device).collect()
    }

    /// Shares of a workload's reads, and of its writes, that each cache serves, and storage at the end.
    pub(crate) fn shares(&self, work: &Workload) -> [Vec<f64>; 2] {
        let is_missed = [work.state == State::Cold, work.fsync_every > 0]
            .map(|it| it || work.access == Access::Direct);
        [READ, WRITE].map(|direction| {
            let sizes = self.caches_bytes[direction].iter();
            let held = sizes.map(|bytes| {
                if is_missed[direction] { 0.0 } else { (bytes / work.unique_bytes as f64).min(1.0) }
            });
            let mut before = 0.0;
            let shares = held.chain([1.0]).map(|held| {
                let share = held - before;
                before = held;
                share
            });
            shares.collect()
        })
    }

    fn classes(&self) -> [usize; 2] {
        [READ, WRITE].map(|direction| self.caches_bytes[direction].len() + 1)
    }
}

/// The fitted law.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    levels: Levels,
    cpus: f64,
    /// Logarithms: the common ones, then those of each class of reads and of writes.
    parameters: Vec<f64>,
}

/// Seconds of all processes together that a request takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    /// In the first cache.
    pub copied_s: f64,
    /// Beyond it, for reads and for writes.
    pub beyond_s: [f64; 2],
}

impl Times {
    pub(crate) fn all_s(&self) -> f64 {
        self.copied_s + self.beyond_s[READ] + self.beyond_s[WRITE]
    }
}

impl Classes {
    pub(crate) fn fit(training: &Training) -> Self {
        let levels = Levels::from_training(training);
        let samples = levels.samples(training);
        let cpus = f64::from(training.host.cpus.max(1));
        let priors = priors(&levels, &samples);
        let start: Vec<f64> = priors.iter().map(|prior| prior.mean).collect();
        let law = |parameters: &[f64]| Self {
            levels: levels.clone(),
            cpus,
            parameters: parameters.to_vec(),
        };
        let residuals = |at: &[f64], out: &mut Vec<f64>| {
            let law = law(at);
            let residual = |sample: &&Sample| {
                (sample.ln_throughput - law.ln_throughput(&sample.workload))
                    / sample.sd.hypot(MISFIT)
            };
            out.extend(samples.iter().map(residual));
        };
        let settings = Settings { huber: HUBER, steps_max: STEPS_MAX };
        law(&least_squares::fit(residuals, &priors, &start, settings).parameters)
    }

    pub(crate) fn levels(&self) -> &Levels {
        &self.levels
    }

    pub(crate) fn ln_throughput(&self, work: &Workload) -> f64 {
        (work.size_mean as f64 / self.times(work).all_s()).ln()
    }

    /// Expected seconds of each part of a request.
    pub(crate) fn times(&self, work: &Workload) -> Times {
        let shares = self.levels.shares(work);
        let in_flight = work.in_flight();
        let size = work.size_mean as f64;
        let of_requests = [work.read_frac, 1.0 - work.read_frac];
        let mut times = Times { copied_s: 0.0, beyond_s: [0.0; 2] };
        let mut classes = self.parameters[COMMON..].chunks_exact(PER_CLASS);
        for direction in [READ, WRITE] {
            let at_a_time = in_flight.min(self.parameters[direction].exp());
            for (class, share) in shares[direction].iter().enumerate() {
                let Some([fixed, rate, ratio]) = classes.next() else { break };
                let share = share * of_requests[direction];
                // With direct access there is no cache: the only class is storage.
                if class == 0 && shares[direction].len() > 1 {
                    let processes = f64::from(work.process_num).min(self.cpus);
                    times.copied_s += share * (fixed.exp() + size / rate.exp()) / processes;
                } else {
                    let sequential = 1.0 - work.seq_frac + work.seq_frac * ratio.exp();
                    let waited = fixed.exp() * sequential / at_a_time;
                    times.beyond_s[direction] += share * (waited + size / rate.exp());
                }
            }
        }
        if work.fsync_every > 0 {
            let synced = of_requests[WRITE] / f64::from(work.fsync_every);
            times.beyond_s[WRITE] += synced * self.parameters[2].exp();
        }
        times
    }
}

/// The first cache at the best that was seen, each further class a tenth as fast.
fn priors(levels: &Levels, samples: &[&Sample]) -> Vec<Prior> {
    let rates = samples.iter().map(|sample| sample.ln_throughput);
    let highest = rates.fold(0.0, f64::max);
    let request_s =
        |sample: &&Sample| sample.workload.size_mean as f64 / sample.ln_throughput.exp();
    let quickest = samples.iter().map(request_s).fold(f64::INFINITY, f64::min).ln();
    let prior = |mean: f64, sd: f64| Prior { mean, sd };
    let ln_2 = std::f64::consts::LN_2;
    let mut priors =
        vec![prior(ln_2, RATIO_SD), prior(ln_2, RATIO_SD), prior(5e-4_f64.ln(), PRIOR_SD)];
    for classes in levels.classes() {
        for class in 0..classes {
            let slower = class as f64 * std::f64::consts::LN_10;
            priors.push(prior(quickest + slower, PRIOR_SD));
            priors.push(prior(highest - slower, PRIOR_SD));
            priors.push(prior(0.2_f64.ln(), RATIO_SD));
        }
    }
    priors
}
