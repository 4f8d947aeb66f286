//! What is known of the law's parameters before it is fitted: names, where to start, how far they
//! may go. Times, rates and sizes come from the samples themselves, the borders and the description
//! of the machine, nothing from what storage usually is; exponents and ratios begin at constants.

use ioscape_model::{Access, Curve, Host, Workload};
use ioscape_stats::least_squares::Prior;
use ioscape_stats::median;
use serde::{Deserialize, Serialize};

use super::law::Shape;
use super::limits::{Asked, CLEAR};
use super::read_ahead::read_for_one;
use crate::model::{Sample, Training, is_simulated};

/// What direct requests find cached is nothing: a page.
const NOTHING_BYTES: f64 = 4096.0;
/// Two sizes closer than this factor are one cache.
const SAME_CACHE: f64 = 1.4;
/// Reads or writes count as such from this share on.
const MOSTLY: f64 = 0.9;
/// A limit that was not reached is expected at so many times the most that was seen; one that
/// nothing came near, at so many times the highest throughput.
pub(super) const BEYOND_SEEN: f64 = 3.0;
pub(super) const OUT_OF_REACH: f64 = 1e3;

const COMMON_NAMES: [&str; super::law::COMMON] = [
    "read_fixed_s",
    "write_fixed_s",
    "read_fixed_sequential_over_random_ln",
    "write_fixed_sequential_over_random_ln",
    "read_bytes_per_s",
    "write_bytes_per_s",
    "read_rate_sequential_over_random_ln",
    "write_rate_sequential_over_random_ln",
    "processor_cache_bytes",
    "read_memory_cost",
    "write_memory_cost",
    "processors",
    "sequential_hit_exponent",
    "pieces",
    "write_waited_logit",
    "softness",
    "read_parallel",
    "write_parallel",
    "interference",
    "queueing_exponent",
    "short_run_over_random",
    "run_exponent",
    "overwrite_exponent",
    "sharing_exponent",
    "storage_requests_per_s",
    "storage_read_bytes_per_s",
    "storage_write_bytes_per_s",
    "unevenness_logit",
    "read_ahead",
];

const CACHE_NAMES: [&str; super::law::PER_CACHE] = [
    "cache_bytes",
    "beyond_fixed_s",
    "beyond_fixed_sequential_over_random_ln",
    "beyond_bytes_per_s",
    "beyond_rate_sequential_over_random_ln",
];

/// Names of the parameters, in their order. Those that end in `_ln` or `_logit` are what they say;
/// all others are fitted as logarithms and published as themselves.
pub(super) fn names(shape: Shape) -> Vec<String> {
    let mut names: Vec<String> = COMMON_NAMES.iter().map(|name| (*name).to_owned()).collect();
    for (direction, count) in [("read", shape.read_caches), ("write", shape.write_caches)] {
        for index in 1..=count {
            names.extend(CACHE_NAMES.iter().map(|name| format!("{direction}_{name}_{index}")));
        }
    }
    names
}

/// What takes written data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum WriteCache {
    /// The processor's last-level cache: storage is not waited for.
    Processor,
    /// What may be overwritten before storage is waited for.
    Dirty,
    /// The page cache itself, where room has to be made for new pages.
    Room,
}

/// Sizes of the caches that the samples can tell something about, smallest first.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Caches {
    pub(super) read: Vec<f64>,
    /// Which of them are the processor's last-level cache: storage is not waited for beyond.
    pub(super) read_is_processors: Vec<bool>,
    pub(super) write: Vec<f64>,
    /// What each of the latter is.
    pub(super) write_kinds: Vec<WriteCache>,
}

impl Caches {
    /// The borders found; for writes also where the kernel begins to hold writers up, and where
    /// pages have to be made room for.
    pub(super) fn of(training: &Training) -> Self {
        let on = |curve: Curve| {
            let borders = training.borders.iter().enumerate();
            let matching =
                borders.filter(move |(_, it)| it.curve == curve || it.curve == Curve::Mixed);
            matching.map(|(place, border)| {
                (border.unique_bytes.capacity, training.processor_borders.contains(&place))
            })
        };
        let taken_by = |kind: WriteCache| {
            move |(bytes, is_processors)| {
                (bytes, if is_processors { WriteCache::Processor } else { kind })
            }
        };
        let reach = training.samples.iter().map(|s| s.workload.unique_bytes as f64);
        let reach = reach.fold(0.0, f64::max);
        if training.ranges.access == Access::Direct {
            let with_none = |curve| std::iter::once((NOTHING_BYTES, false)).chain(on(curve));
            let write = with_none(Curve::Write).map(taken_by(WriteCache::Dirty));
            return Self::joined(with_none(Curve::Read), write);
        }
        let mut write: Vec<(f64, WriteCache)> =
            on(Curve::Write).map(taken_by(WriteCache::Dirty)).collect();
        if !write.is_empty() {
            let dirty_limit = (training.host.dirty_limit_bytes as f64, WriteCache::Dirty);
            let room = on(Curve::Read).map(taken_by(WriteCache::Room));
            for (bytes, kind) in std::iter::once(dirty_limit).chain(room) {
                let apart = |known: &(f64, WriteCache)| {
                    !(1.0 / SAME_CACHE..SAME_CACHE).contains(&(bytes / known.0))
                };
                let inside = bytes > 0.0 && bytes * CLEAR < reach;
                if inside && write.iter().all(apart) {
                    write.push((bytes, kind));
                }
            }
            write.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        Self::joined(on(Curve::Read), write.into_iter())
    }

    fn joined(
        read: impl Iterator<Item = (f64, bool)>,
        write: impl Iterator<Item = (f64, WriteCache)>,
    ) -> Self {
        let (read, read_is_processors) = read.unzip();
        let (write, write_kinds) = write.unzip();
        Self { read, read_is_processors, write, write_kinds }
    }

    pub(super) fn shape(&self) -> Shape {
        Shape { read_caches: self.read.len(), write_caches: self.write.len() }
    }
}

/// Seconds per request of one process.
fn seconds(sample: &Sample) -> f64 {
    let work = &sample.workload;
    f64::from(work.process_num) * work.size_mean as f64 / sample.ln_throughput.exp()
}

/// Fixed seconds and bytes per second of the requests of some samples: a rough guess.
fn rough_cost(training: &Training, chosen: impl Fn(&Workload) -> bool) -> Option<(f64, f64)> {
    let chosen = || training.samples.iter().filter(|sample| chosen(&sample.workload));
    let fixed_s = median(chosen().map(|sample| seconds(sample) / 2.0))?;
    let rate = |sample: &Sample| 2.0 * sample.workload.size_mean as f64 / seconds(sample);
    Some((fixed_s, median(chosen().map(rate))?))
}

/// How many processors copy, of so many that the machine has; 0 where that is not known.
fn processors(count: u32) -> Prior {
    match count {
        0 => Prior { mean: 2.0_f64.ln(), sd: 1.5 },
        _ => Prior { mean: f64::from(count).ln(), sd: 0.5 },
    }
}

/// A kernel keeps what was used last. In a simulated cache all miss alike.
fn unevenness(host: &Host) -> Prior {
    if is_simulated(host) { Prior { mean: -7.0, sd: 0.5 } } else { Prior { mean: 1.0, sd: 1.5 } }
}

/// What storage reads beyond what was asked for is as elsewhere with a kernel between them (see
/// `read_ahead`), or nothing: for direct requests, and where storage is simulated.
fn read_ahead(training: &Training) -> Prior {
    if training.ranges.access == Access::Direct || is_simulated(&training.host) {
        Prior { mean: -7.0, sd: 0.1 }
    } else {
        Prior { mean: 0.0, sd: 0.3 }
    }
}

/// Storage's limits on requests, bytes read and bytes written: above the most that was seen of each,
/// where a limit changes nothing; out of reach where nothing got there (so many requests, too).
fn limits(training: &Training, caches: &Caches, highest: f64) -> [Prior; 3] {
    let eagerness = read_ahead(training).mean.exp();
    let asked = |sample: &Sample| {
        let work = &sample.workload;
        let held =
            |cache: Option<&f64>| cache.map_or(1.0, |bytes| bytes / work.unique_bytes as f64);
        let beyond = |held: f64| if CLEAR * held < 1.0 { 1.0 - held } else { 0.0 };
        let [read_held, write_held] = [caches.read.last(), caches.write.first()].map(held);
        let shares =
            [work.read_frac * beyond(read_held), (1.0 - work.read_frac) * beyond(write_held)];
        // How much of it is streams is not known yet: at least the less of both.
        let [for_one, for_streamed] = read_for_one(work, read_held.min(1.0), eagerness);
        let bytes_per_s = sample.ln_throughput.exp();
        Asked {
            requests: shares.map(|share| share * bytes_per_s / work.size_mean as f64),
            bytes: [shares[0] * for_one.min(for_streamed) * bytes_per_s, shares[1] * bytes_per_s],
        }
    };
    let most = |of: &dyn Fn(Asked) -> f64| {
        training.samples.iter().map(|sample| of(asked(sample))).fold(0.0, f64::max)
    };
    let most_requests = most(&|asked| asked.requests.iter().sum());
    let [most_read, most_written] =
        [0, 1].map(|direction: usize| most(&|asked| asked.bytes[direction]));
    [most_requests, most_read, most_written].map(|most| {
        let beyond = if most > 0.0 { BEYOND_SEEN * most } else { OUT_OF_REACH * highest };
        Prior { mean: beyond.ln(), sd: 1.0 }
    })
}

/// Where the parameters are expected, in the order of [`names`].
pub(super) fn priors(training: &Training, caches: &Caches) -> Vec<Prior> {
    let known = |mean: f64, sd: f64| Prior { mean, sd };
    let is_read = |work: &Workload| work.read_frac >= MOSTLY;
    let is_write = |work: &Workload| work.read_frac <= 1.0 - MOSTLY;
    let fastest = training.samples.iter().map(seconds).fold(f64::INFINITY, f64::min);
    let highest = training.samples.iter().map(|s| s.ln_throughput.exp()).fold(1.0, f64::max);
    let fixed_s = |is: &dyn Fn(&Workload) -> bool| {
        let of = training.samples.iter().filter(|sample| is(&sample.workload));
        of.map(seconds).fold(f64::INFINITY, f64::min)
    };
    let finite = |x: f64, instead: f64| if x.is_finite() { x } else { instead };
    let (read_s, write_s) =
        (finite(fixed_s(&is_read), fastest), finite(fixed_s(&is_write), fastest));
    let host = &training.host;
    let (processor_cache, memory_cost) = match host.llc_bytes {
        Some(bytes) => (known((bytes as f64).ln() - 1.0, 1.5), known(0.5_f64.ln(), 1.0)),
        None => (known((1e6_f64).ln(), 0.1), known(1e-3_f64.ln(), 0.5)),
    };
    let is_direct = training.ranges.access == Access::Direct;
    // Direct writes are waited for, and nothing reads ahead.
    let waited = if is_direct { known(4.0, 1.0) } else { known(0.0, 1.5) };
    let read_on = if is_direct { 0.0 } else { -1.5 };
    let mut priors = vec![
        known((read_s / 2.0).ln(), 1.5),
        known((write_s / 2.0).ln(), 1.5),
        known(0.0, 0.5),
        known(0.0, 0.5),
        known(highest.ln(), 1.5),
        known((highest / 2.0).ln(), 1.5),
        known(0.0, 0.3),
        known(0.0, 0.3),
        processor_cache,
        memory_cost,
        memory_cost,
        processors(host.cpus),
        known(0.1, 0.5),
        known(0.5_f64.ln(), 1.5),
        waited,
        known(0.1_f64.ln(), 0.5),
        known(1.5_f64.ln(), 1.2),
        known(0.0, 1.0),
        known(0.05_f64.ln(), 1.0),
        known(2.0_f64.ln(), 0.6),
        known(-0.3, 0.5),
        known(6.0_f64.ln(), 0.7),
        known(0.0, 1.0),
        known(6.0_f64.ln(), 1.5),
    ];
    priors.extend(limits(training, caches, highest));
    priors.extend([unevenness(host), read_ahead(training)]);
    for (read, sizes) in [(true, &caches.read), (false, &caches.write)] {
        for (index, size) in sizes.iter().enumerate() {
            let until = sizes.get(index + 1).map_or(f64::INFINITY, |next| *next);
            let beyond = |work: &Workload| {
                let unique = work.unique_bytes as f64;
                let direction = if read { is_read(work) } else { is_write(work) };
                direction && unique > size * CLEAR && unique < until * CLEAR
            };
            let (fixed_s, rate) =
                rough_cost(training, beyond).unwrap_or((10.0 * fastest, highest / 10.0));
            priors.extend([
                known(size.ln(), 0.05),
                known(fixed_s.ln(), 2.0),
                known(if read { read_on } else { 0.0 }, 1.0),
                known(rate.ln(), 2.0),
                known(0.0, 0.7),
            ]);
        }
    }
    priors
}
