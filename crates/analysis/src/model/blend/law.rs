//! The law of the blend: what a request takes in the mean, as a mixture of class times *in time*.
//!
//! A mean over requests is an expectation, so it is linear in the shares of reads, of sequential
//! requests and of hits; a product of curves is not. With `s` the request size, `U` the data
//! touched, `N` the processes:
//!
//! ```text
//! copy   = Σ_class P(class) (a + s/b · (1 + κ (1 − min(1, L/U*))))    processor, always paid
//! reads  = r Σ_p P(p) Σ_level P(level | p) (pieces · A + s/B)         beyond the cache C
//! writes = (1 − r) Σ_p P(p) Σ_level P(level | p) (A + s/B)            beyond the dirty limit D
//! W = copy + reads + ω writes                                         what a process waits for
//! S = norm₈((reads/m_r + writes/m_w) (1 + 4φρ(1 − ρ)), limits)         what storage spends
//! Z = (softmax(W, S)ᵏ + (Nᵏ − 1) Sᵏ)^(1/k)                            storage is waited for
//! T = Z₁ normⱼ(Z, N copy/P) / normⱼ(Z₁, copy/P)                       the processors are shared
//! X = N / T                                                           requests per second
//! ```
//!
//! Uniform access to `U` bytes finds a cache of `C` bytes holding the right ones with probability
//! `min(1, C/U)`, whatever the replacement policy; a sequential read does so with that to the
//! power `γ`, where its run is long (`q` to a high power); in a short run it costs almost what one
//! somewhere else does, for read-ahead has not found its stride. Write-back runs beside the
//! writer, so only the part `ω` of it is waited for as long as the storage keeps up. With `k = 1`,
//! `Z` is the balanced-job bound of a closed network (Zahorjan et al. 1982); with a large `k`, its
//! asymptotes: `max(W, N S)`. `Z₁` is `Z` with one process. The limits are on requests and on bytes
//! per second, as volumes are sold (see `limits`): storage that does many small requests at a time
//! moves few large ones, and a kernel that reads ahead moves more than is asked of it (see
//! `asked`). Processors are shared in slices of time, which is no queue: the larger of
//! both counts, with a corner of its own. `U*` is `U` and the buffers of further requests in flight.
//!
//! With `Q` requests in flight per process `N Q` of them queue for the storage, while each process
//! still copies its own one by one, reads and writes each at a cost σ of their own (of which the
//! processors spend no more than 1: `spent`, which takes the place of `copy` in `T(N Q)`):
//!
//! ```text
//! T' = Q norm₈(T(N Q)/Q, Σ σ^(1 − 1/Q) copy) · T(N)/norm₈(T(N), spent)
//! ```
//!
//! and with an fdatasync after every `F` writes none is absorbed (see `extras`). Where most reads
//! hit, some of several processes end with all of their data cached and the others with little of
//! it: `X` is then a sum over both (see `uneven`).

use ioscape_model::Workload;
use serde::{Deserialize, Serialize};

use super::extras::Extras;
use super::limits::{Asked, Limits, RESOURCE_NORM, norm, norm_of};

mod asked;
#[cfg(test)]
pub(super) mod tests;
mod uneven;

/// Requests are cut and cached in pages.
const PAGE_BYTES: f64 = 4096.0;
/// Parameters of the law that do not belong to a cache.
pub(super) const COMMON: usize = 29;
/// Where some of them stand.
pub(super) const PROCESSOR_CACHE: usize = 8;
pub(super) const WRITE_WAITED: usize = 14;
pub(super) const READ_PARALLEL: usize = 16;
pub(super) const LIMITS: std::ops::Range<usize> = 24..27;
const UNEVENNESS: usize = 27;
const READ_AHEAD: usize = 28;
/// Parameters of each cache.
pub(super) const PER_CACHE: usize = 5;

/// How many caches the law knows: parameters come in that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shape {
    /// Caches that reads find data in.
    pub(super) read_caches: usize,
    /// Amounts of data that can be overwritten before storage is waited for.
    pub(super) write_caches: usize,
}

impl Shape {
    /// Where the parameters of a read cache begin.
    pub(super) fn read_cache(self, index: usize) -> usize {
        debug_assert!(index < self.read_caches);
        COMMON + PER_CACHE * index
    }

    /// Where the parameters of a write cache begin.
    pub(super) fn write_cache(self, index: usize) -> usize {
        debug_assert!(index < self.write_caches);
        COMMON + PER_CACHE * (self.read_caches + index)
    }
}

/// A value for requests at random and one for sequential ones.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Pair {
    random: f64,
    sequential: f64,
}

impl Pair {
    /// From the logarithm of the first and that of the second over the first.
    fn of(ln_random: f64, ln_ratio: f64) -> Self {
        Self { random: ln_random.exp(), sequential: (ln_random + ln_ratio).exp() }
    }

    fn of_class(self, is_sequential: bool) -> f64 {
        if is_sequential { self.sequential } else { self.random }
    }
}

/// A cache and what lies behind it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
struct Cache {
    bytes: f64,
    fixed_s: Pair,
    bytes_per_s: Pair,
}

impl Cache {
    fn of(at: &[f64]) -> Self {
        Self {
            bytes: at[0].exp(),
            fixed_s: Pair::of(at[1], at[2]),
            bytes_per_s: Pair::of(at[3], at[4]),
        }
    }

    fn cost_s(&self, size_bytes: u64, is_sequential: bool) -> f64 {
        self.fixed_s.of_class(is_sequential)
            + size_bytes as f64 / self.bytes_per_s.of_class(is_sequential)
    }
}

/// The parameters of the law, as numbers with a meaning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Law {
    read_fixed_s: Pair,
    write_fixed_s: Pair,
    read_bytes_per_s: Pair,
    write_bytes_per_s: Pair,
    processor_cache_bytes: f64,
    read_memory_cost: f64,
    write_memory_cost: f64,
    processors: f64,
    sequential_exponent: f64,
    pieces: f64,
    waited: f64,
    softness: f64,
    read_parallel: f64,
    write_parallel: f64,
    interference: f64,
    queueing: f64,
    short_run_cost: f64,
    run_exponent: f64,
    overwrite_exponent: f64,
    sharing: f64,
    limits: Limits,
    /// How far processes that could miss unevenly do, 0 to 1.
    unevenness: f64,
    /// How eagerly storage is read from beyond what was asked for.
    read_ahead: f64,
    read_caches: Vec<Cache>,
    write_caches: Vec<Cache>,
    /// What requests in flight and fdatasyncs change.
    extras: Extras,
}

/// Classes of requests: reads and writes, each sequential and at random.
pub(super) const CLASSES: usize = 4;

/// What a request of a class takes in the mean, seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ClassTime {
    is_read: bool,
    /// How many of all requests are of this class.
    share: f64,
    copy: f64,
    beyond: f64,
}

/// What requests take, seconds, by where they take it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Times {
    pub(super) copy_reads: f64,
    pub(super) copy_writes: f64,
    pub(super) reads: f64,
    pub(super) writes: f64,
    /// Writes that an fdatasync waits for, and it.
    synced: f64,
    /// What storage is asked for in a request's place, as reads and as writes.
    asked: Asked,
}

/// The parts that a request's time consists of.
pub(super) const PARTS: usize = 4;

impl Times {
    fn of(classes: &[ClassTime; CLASSES]) -> Self {
        let mut times = Self::default();
        for class in classes {
            let (copy, beyond) = (class.share * class.copy, class.share * class.beyond);
            if class.is_read {
                times.copy_reads += copy;
                times.reads += beyond;
            } else {
                times.copy_writes += copy;
                times.writes += beyond;
            }
        }
        times
    }

    fn scaled(self, part: usize, factor: f64) -> Self {
        let by = |index: usize| if index == part { factor } else { 1.0 };
        Self {
            copy_reads: self.copy_reads * by(0),
            copy_writes: self.copy_writes * by(1),
            reads: self.reads * by(2),
            writes: self.writes * by(3),
            // Storage that takes longer for the same takes as much longer by its limits.
            asked: self.asked.scaled([by(2), if self.synced > 0.0 { 1.0 } else { by(3) }]),
            ..self
        }
    }
}

/// How many requests there are at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Load {
    process_num: f64,
    /// In flight, per process.
    depth: f64,
}

impl Load {
    fn of(work: &Workload) -> Self {
        Self { process_num: f64::from(work.process_num), depth: f64::from(work.depth) }
    }
}

impl Law {
    /// From the fitted parameters, in the order of [`super::start::names`].
    pub(super) fn of(shape: Shape, at: &[f64]) -> Self {
        Self {
            read_fixed_s: Pair::of(at[0], at[2]),
            write_fixed_s: Pair::of(at[1], at[3]),
            read_bytes_per_s: Pair::of(at[4], at[6]),
            write_bytes_per_s: Pair::of(at[5], at[7]),
            processor_cache_bytes: at[PROCESSOR_CACHE].exp(),
            read_memory_cost: at[9].exp(),
            write_memory_cost: at[10].exp(),
            processors: at[11].exp(),
            sequential_exponent: at[12].exp(),
            pieces: at[13].exp(),
            waited: logistic(at[WRITE_WAITED]),
            softness: at[15].exp(),
            read_parallel: at[READ_PARALLEL].exp(),
            write_parallel: at[17].exp(),
            interference: at[18].exp(),
            queueing: at[19].exp(),
            short_run_cost: at[20].exp(),
            run_exponent: at[21].exp(),
            overwrite_exponent: at[22].exp(),
            sharing: at[23].exp(),
            limits: Limits::of(&at[LIMITS]),
            unevenness: logistic(at[UNEVENNESS]),
            read_ahead: at[READ_AHEAD].exp(),
            read_caches: (0..shape.read_caches)
                .map(|index| Cache::of(&at[shape.read_cache(index)..]))
                .collect(),
            write_caches: (0..shape.write_caches)
                .map(|index| Cache::of(&at[shape.write_cache(index)..]))
                .collect(),
            extras: Extras::default(),
        }
    }

    /// The same with these costs of requests in flight and of fdatasyncs.
    pub(super) fn with_extras(self, extras: Extras) -> Self {
        Self { extras, ..self }
    }

    /// Writes that storage takes at a time.
    pub(super) fn writes_at_a_time(&self) -> f64 {
        self.write_parallel
    }

    /// What storage takes for a write far beyond all caches: the fixed time at random and in
    /// sequence, and the rate. None where no write got there.
    pub(super) fn write_costs(&self) -> Option<[f64; 3]> {
        let last = self.write_caches.last()?;
        Some([last.fixed_s.random, last.fixed_s.sequential, last.bytes_per_s.random])
    }

    /// What a request of each class takes in the mean, and how many of all are of it.
    fn classes(&self, work: &Workload) -> [ClassTime; CLASSES] {
        let (read, sequential) = (work.read_frac, work.seq_frac);
        let streaming = self.streaming(work);
        let share = |is_read: bool, is_sequential: bool| {
            let direction = if is_read { read } else { 1.0 - read };
            direction * if is_sequential { sequential } else { 1.0 - sequential }
        };
        [(true, true), (true, false), (false, true), (false, false)].map(|(is_read, is_seq)| {
            ClassTime {
                is_read,
                share: share(is_read, is_seq),
                copy: self.copy_s(work, is_read, is_seq),
                beyond: if is_read {
                    self.read_beyond_s(work, is_seq.then_some(streaming))
                } else {
                    self.write_beyond_s(work, is_seq.then_some(streaming))
                },
            }
        })
    }

    /// The processor's part of a request.
    fn copy_s(&self, work: &Workload, is_read: bool, is_sequential: bool) -> f64 {
        let (fixed_s, bytes_per_s, memory_cost) = if is_read {
            (self.read_fixed_s, self.read_bytes_per_s, self.read_memory_cost)
        } else {
            (self.write_fixed_s, self.write_bytes_per_s, self.write_memory_cost)
        };
        let in_memory = 1.0 - (self.processor_cache_bytes / copied_over_bytes(work)).min(1.0);
        let copy_s = work.size_mean as f64 / bytes_per_s.of_class(is_sequential);
        fixed_s.of_class(is_sequential) + copy_s * (1.0 + memory_cost * in_memory)
    }

    /// Which part of the sequential requests is in runs long enough to be taken for a stream.
    fn streaming(&self, work: &Workload) -> f64 {
        to_the(self.run_exponent, work.seq_frac)
    }

    /// What a read waits for storage, in the mean over hits and misses: of a sequential one, with
    /// which part of them is streaming, or of one at random.
    fn read_beyond_s(&self, work: &Workload, streaming: Option<f64>) -> f64 {
        let Some(streaming) = streaming else {
            return self
                .miss_mix_s(work, 1.0, |cache| (cache.fixed_s.random, cache.bytes_per_s.random));
        };
        // Read-ahead finds its stride in long runs only: requests of a short run are read almost
        // as if they were somewhere else.
        let stream_s = self.miss_mix_s(work, self.sequential_exponent, |cache| {
            (cache.fixed_s.sequential, cache.bytes_per_s.sequential)
        });
        let short_s = self.miss_mix_s(work, 1.0, |cache| {
            (self.short_run_cost * cache.fixed_s.random, cache.bytes_per_s.random)
        });
        streaming * stream_s + (1.0 - streaming) * short_s
    }

    /// The mean cost of reads beyond the caches, each with a fixed time and a rate; `power` is
    /// that of the hit share.
    fn miss_mix_s(&self, work: &Workload, power: f64, cost: impl Fn(&Cache) -> (f64, f64)) -> f64 {
        let size = work.size_mean as f64;
        let pages = (size / PAGE_BYTES).max(1.0);
        let part = |(cache, here): (&Cache, f64)| {
            // What is cached was cached in pieces: a request finds some of its pages.
            let pieces = 1.0 + self.pieces * (1.0 - 1.0 / pages) * (1.0 - here);
            let (fixed_s, bytes_per_s) = cost(cache);
            here * (pieces * fixed_s + size / bytes_per_s)
        };
        shares_beyond(&self.read_caches, work, power).map(part).sum()
    }

    /// What a write costs storage, in the mean over those that find their pages dirty already and
    /// those that do not; as [`Self::read_beyond_s`].
    fn write_beyond_s(&self, work: &Workload, streaming: Option<f64>) -> f64 {
        let Some(streaming) = streaming else {
            return self.write_mix_s(work, false, 1.0);
        };
        // A stream comes back to a page only when it has gone round: it is clean again by then.
        let stream_s = self.write_mix_s(work, true, self.overwrite_exponent);
        streaming * stream_s + (1.0 - streaming) * self.write_mix_s(work, true, 1.0)
    }

    /// The mean cost of writes beyond the caches; `power` is that of the share that is absorbed.
    fn write_mix_s(&self, work: &Workload, is_sequential: bool, power: f64) -> f64 {
        shares_beyond(&self.write_caches, work, power)
            .map(|(cache, here)| here * cache.cost_s(work.size_mean, is_sequential))
            .sum()
    }

    /// Where the time of a request goes.
    fn times(&self, work: &Workload) -> Times {
        self.times_of(&self.classes(work), work)
    }

    fn times_of(&self, classes: &[ClassTime; CLASSES], work: &Workload) -> Times {
        let mut times = Times::of(classes);
        if work.fsync_every > 0 {
            // Nothing stays dirty for long enough to be overwritten or written back beside.
            times.writes = 0.0;
            times.synced = (1.0 - work.read_frac) * self.extras.synced_s(work);
        }
        times.asked = self.asked(work);
        times
    }

    /// Seconds per request of one process, queueing included.
    fn response_s(&self, times: &Times, load: Load) -> f64 {
        let queued = self.queued_s(times, load);
        if load.depth <= 1.0 {
            return queued;
        }
        // A process copies what it has in flight one by one. The corner of the norm makes either a
        // little longer: that is not a cost of depth, and one request at a time has it not.
        let copies = [times.copy_reads, times.copy_writes];
        let copied = self.extras.copied_s(copies, load.depth);
        let processed = self.extras.processed_s(copies, load.depth);
        let one = self.queued_s(times, Load { depth: 1.0, ..load });
        let softness = one / norm(one, processed);
        load.depth * norm(queued / load.depth, copied) * softness
    }

    /// The same as if a process copied all that it has in flight at the same time.
    fn queued_s(&self, times: &Times, load: Load) -> f64 {
        let Load { process_num, depth } = load;
        let copy = times.copy_reads + times.copy_writes;
        let wait = copy + times.reads + self.waited * times.writes + times.synced;
        let busiest = self.busiest_s(times, load);
        let alone = self.soft_max(wait, busiest);
        let power = self.queueing;
        let at_a_time = process_num * depth;
        if at_a_time <= 1.0 {
            return alone;
        }
        let queue = (at_a_time.powf(power) - 1.0) * (busiest / alone).powf(power);
        let queued = alone * (1.0 + queue).powf(1.0 / power);
        // Processors are shared in slices of time: nobody waits for one as long as there is one.
        // Over the same for one, which has them to itself.
        let processed = self.extras.processed_s([times.copy_reads, times.copy_writes], depth);
        let share_s = processed / self.processors;
        let shared = |time_s: f64, count: f64| norm_of(self.sharing, time_s, count * share_s);
        shared(queued, at_a_time) * alone / shared(alone, 1.0)
    }

    /// What storage spends on a request, by its work or by its limits, seconds.
    fn busiest_s(&self, times: &Times, load: Load) -> f64 {
        let least_s = self.limits_at(times, load).least_s(times.asked);
        norm(self.working_s(times, load.depth), least_s)
    }

    /// The same as long as it keeps to its limits.
    fn working_s(&self, times: &Times, depth: f64) -> f64 {
        let [reads_at_once, writes_at_once] = self.extras.overlaps(depth);
        let working = times.reads / (self.read_parallel * reads_at_once)
            + times.writes / (self.write_parallel * writes_at_once)
            + times.synced / self.extras.flush_parallel;
        let storage = times.reads + times.writes + times.synced;
        let reads = times.reads / storage.max(f64::MIN_POSITIVE);
        working * (1.0 + 4.0 * self.interference * reads * (1.0 - reads))
    }

    /// The most that storage serves with one request at a time per process.
    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// What storage can do with so many in flight.
    fn limits_at(&self, times: &Times, load: Load) -> Limits {
        let share = 1.0 - 1.0 / load.depth;
        let written = if times.synced > 0.0 { 1.0 } else { share };
        self.limits.towards(self.extras.limits, share, written)
    }

    /// The larger of what is waited for and what the busiest resource needs, with a soft corner.
    fn soft_max(&self, wait: f64, busiest: f64) -> f64 {
        let scale = self.softness * wait;
        let over = (busiest - wait) / scale;
        // ln(1 + e^x), without overflow.
        wait + scale * if over > 30.0 { over } else { over.exp().ln_1p() }
    }

    /// Natural logarithm of the throughput in bytes per second.
    pub(super) fn ln_throughput(&self, work: &Workload) -> f64 {
        let requests_per_s = self.ln_requests_per_s(&self.ways(work), Load::of(work), None);
        requests_per_s + (work.size_mean as f64).ln()
    }

    /// The same of a workload with one process and one request in flight, and its mean response
    /// times by class, seconds. What the storage's slowness adds beyond the wait of the requests
    /// themselves holds up writers; where it is a limit, all reads and all writes alike.
    pub(super) fn alone(&self, work: &Workload) -> (f64, [f64; CLASSES]) {
        debug_assert_eq!((work.process_num, work.depth), (1, 1));
        let classes = self.classes(work);
        let times = self.times_of(&classes, work);
        let load = Load { process_num: 1.0, depth: 1.0 };
        let response_s = self.response_s(&times, load);
        let wait = times.copy_reads + times.copy_writes + times.reads + self.waited * times.writes;
        let held_up = response_s - wait;
        let working_s = self.working_s(&times, load.depth);
        let busiest_s = self.busiest_s(&times, load).max(f64::MIN_POSITIVE);
        // How far the limits, and not the work, are what storage is busy with.
        let limited = 1.0 - (working_s / busiest_s).powi(RESOURCE_NORM);
        let reads_held_up = held_up * limited * self.limits.share_of_reads(times.asked);
        let writes_held_up = held_up - reads_held_up;
        let per_read = reads_held_up / work.read_frac.max(f64::MIN_POSITIVE);
        let per_write = writes_held_up / (1.0 - work.read_frac).max(f64::MIN_POSITIVE);
        let times_s = classes.map(|class| {
            let beyond = if class.is_read {
                class.beyond + per_read
            } else {
                self.waited * class.beyond + per_write
            };
            class.copy + beyond
        });
        ((work.size_mean as f64 / response_s).ln(), times_s)
    }

    /// What copying takes, requests of all classes together.
    pub(super) fn copy_time_s(&self, work: &Workload) -> f64 {
        let times = self.times(work);
        times.copy_reads + times.copy_writes
    }

    /// Size of a cache that reads find data in.
    pub(super) fn read_cache_bytes(&self, index: usize) -> f64 {
        self.read_caches[index].bytes
    }

    /// Data that can be overwritten before storage is waited for.
    pub(super) fn write_cache_bytes(&self, index: usize) -> f64 {
        self.write_caches[index].bytes
    }

    /// What a read that misses a cache costs more than one that does not.
    pub(super) fn miss_s(&self, index: usize, size_bytes: u64, is_sequential: bool) -> f64 {
        self.read_caches[index].cost_s(size_bytes, is_sequential)
    }

    /// What storage takes for a write at random that finds no room in a cache.
    pub(super) fn write_back_s(&self, index: usize, size_bytes: u64) -> f64 {
        self.write_caches[index].cost_s(size_bytes, false)
    }

    /// How the throughput depends on each part of the time: minus d ln X / d ln part.
    pub(super) fn elasticities(&self, work: &Workload) -> [f64; PARTS] {
        const STEP: f64 = 1e-4;
        let ways = self.ways(work);
        let load = Load::of(work);
        let base = self.ln_requests_per_s(&ways, load, None);
        std::array::from_fn(|part| {
            (base - self.ln_requests_per_s(&ways, load, Some((part, 1.0 + STEP)))) / STEP
        })
    }
}

/// Which part of the requests is served just beyond each cache, where there are any; `power` is
/// that of the share that a cache holds. Sizes that were set may be out of order: a cache that is
/// no larger than one before it holds nothing that the other does not.
fn shares_beyond<'a>(
    caches: &'a [Cache],
    work: &'a Workload,
    power: f64,
) -> impl Iterator<Item = (&'a Cache, f64)> {
    let held_by = move |index: usize| {
        caches.get(index).map_or(1.0, |cache| to_the(power, held(cache.bytes, work)))
    };
    let (mut held_so_far, mut next) = (0.0_f64, held_by(0));
    caches.iter().enumerate().filter_map(move |(index, cache)| {
        held_so_far = held_so_far.max(next);
        next = held_by(index + 1);
        let here = next.max(held_so_far) - held_so_far;
        (here > 0.0).then_some((cache, here))
    })
}

/// What copying goes over again and again: the data touched, and the buffers of requests in flight
/// but the one of each process that is always there.
fn copied_over_bytes(work: &Workload) -> f64 {
    let others = f64::from(work.process_num) * (f64::from(work.depth) - 1.0);
    work.unique_bytes as f64 + others * work.size_mean as f64
}

/// From 0 to 1.
fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// Which part of the data touched a cache of this size holds.
fn held(bytes: f64, work: &Workload) -> f64 {
    (bytes / work.unique_bytes as f64).min(1.0)
}

/// A share to a positive power, without the work where that is plain: a fit asks for millions, and
/// most are of a share of 0 or 1 or to the power 1.
fn to_the(power: f64, share: f64) -> f64 {
    let is_plain = share <= 0.0 || share >= 1.0 || (power - 1.0).abs() <= 0.0;
    if is_plain { share } else { share.powf(power) }
}
