//! The parameters of the law: a row each with name, unit, prior, why it is there and what it brings on real systems,
//! measured with `--each` of the example `laws`. `docs/experiments.md` has the intervals, and simulated systems.
//!
//! Standard deviations of the priors are choices, wide enough (a factor of 1.6 to 7) that a few samples decide.
//! Better known are the sizes of caches, from the search for their borders, and what other measurements say
//! ([`known_elsewhere`]).

use ioscape_model::{Access, State, Workload};
use ioscape_stats::least_squares::Prior;
use ioscape_stats::median;

use super::caches::{
    CLEARLY_BEYOND, Caches, READ, Shape, WRITE, is_mostly, quickest_s, request_s, tells_of_writes,
};
use crate::model::training::FIXED_SD;
use crate::model::{Sample, Training};

/// A parameter that every system has: its place in [`TABLE`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Common {
    WriteCopyFixed,
    ReadCopyRate,
    WriteCopyRate,
    ProcessorCache,
    MemoryCost,
    Processors,
    ReadParallel,
    WriteParallel,
    RequestLimit,
    ReadLimit,
    WriteLimit,
    LimitShared,
    DepthCopy,
    DepthOverlap,
    Sync,
    SyncParallel,
}

/// Parameters that only workloads with several requests in flight or with fdatasyncs depend on: these and only these stand
/// at the table's end.
pub(super) const EXTRAS: std::ops::Range<usize> = Common::DepthCopy as usize..TABLE.len();

/// Limits of storage, and how far reads and writes share them.
pub(super) const LIMITS: std::ops::Range<usize> =
    Common::RequestLimit as usize..Common::LimitShared as usize + 1;

/// A parameter of each cache: its size, and what a request costs that misses it and is served by the
/// next level, which is storage after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfCache {
    Size,
    MissFixed,
    SequentialOverRandom,
    MissRate,
}

/// How a parameter is fitted: so that every real number is a possible value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// As its natural logarithm: it is positive.
    Ln,
    /// As ln(x/(1 − x)): it is a share, from 0 to 1.
    Logit,
}

/// What is known of a parameter before it is fitted.
#[derive(Clone, Copy)]
pub(super) struct Parameter {
    /// Its name in records; for a cache `read_NAME_1`, `write_NAME_1` and so on.
    pub(super) name: &'static str,
    /// Its symbol in the formulas of `law`.
    pub(super) symbol: &'static str,
    /// Its unit; 1 for a ratio or a share.
    pub(super) unit: &'static str,
    /// How it is fitted.
    pub(super) scale: Scale,
    /// Standard deviation, on its scale, of the value around the expected one.
    pub(super) sd: f64,
    /// By how much the mean |ln error| of the corpus' workloads that are looked at grows where it is held at what is
    /// expected of it; each counts 1.5 at most. For a cache those of reads and of writes.
    pub(super) brings: &'static [f64],
    /// What it is.
    pub(super) about: &'static str,
    /// Mean of its prior, in words.
    pub(super) expected: &'static str,
    /// Mean of its prior, on its scale, worked out from the samples; for a cache from its direction and index, too.
    mean: fn(&FirstLook<'_>, [usize; 2]) -> f64,
    /// Why the law has it.
    pub(super) why: &'static str,
}

/// The parameters that every system has, in the order of [`Common`].
#[rustfmt::skip]
pub(super) const TABLE: [Parameter; 16] = [
    Parameter { name: "write_fixed_s", symbol: "a_w", unit: "s", scale: Scale::Ln, sd: 1.5, brings: &[0.002],
        about: "processor time of a write that the page cache takes, whatever its size",
        expected: "half of the quickest write seen",
        mean: |seen, _| (quickest_s(seen.training, WRITE) / 2.0).ln(),
        why: "a system call takes time whatever its size, and writes take another way through the kernel than reads" },
    Parameter { name: "read_bytes_per_s", symbol: "b_r", unit: "B/s", scale: Scale::Ln, sd: 1.5, brings: &[0.017],
        about: "rate at which one process copies data it reads",
        expected: "the highest throughput seen",
        mean: |seen, _| seen.highest_bytes_per_s().ln(),
        why: "copying grows with the size" },
    Parameter { name: "write_bytes_per_s", symbol: "b_w", unit: "B/s", scale: Scale::Ln, sd: 1.5, brings: &[0.038],
        about: "rate at which one process copies data it writes",
        expected: "half of the highest throughput seen",
        mean: |seen, _| (seen.highest_bytes_per_s() / 2.0).ln(),
        why: "copying grows with the size" },
    Parameter { name: "processor_cache_bytes", symbol: "L", unit: "B", scale: Scale::Ln, sd: 1.5, brings: &[0.018],
        about: "data below this is copied from the processor's cache",
        expected: "the border found to be the processor's, else 1/e of the last-level cache, which other programs share, else 1 MB",
        mean: |seen, _| seen.processor_cache_bytes().ln(),
        why: "a step at the processor's cache is not one of storage" },
    Parameter { name: "memory_cost", symbol: "κ", unit: "1", scale: Scale::Ln, sd: 1.0, brings: &[0.015],
        about: "extra time of copying from memory, as a share of the time from the processor's cache",
        expected: "0.5",
        mean: |_, _| 0.5_f64.ln(),
        why: "the height of that step" },
    Parameter { name: "processors", symbol: "P", unit: "1", scale: Scale::Ln, sd: 0.5, brings: &[0.003],
        about: "processes that copy at a time",
        expected: "the processors of the host, else 2",
        mean: |seen, _| seen.processors().ln(),
        why: "cached requests of many processes share them; a quota or hyperthreads make them fewer than the host's" },
    Parameter { name: "read_parallel", symbol: "m_r", unit: "1", scale: Scale::Ln, sd: 1.2, brings: &[0.004],
        about: "reads that storage serves at a time",
        expected: "1.5: fits of the law to depth 1 on simulated devices found 1 to 4",
        mean: |_, _| 1.5_f64.ln(),
        why: "a drive reads for several processes at a time, each of which waits for its own read" },
    Parameter { name: "write_parallel", symbol: "m_w", unit: "1", scale: Scale::Ln, sd: 1.0, brings: &[0.002],
        about: "writes that storage serves at a time",
        expected: "1, and held there if direct writes tell what write-back costs: theirs is the time of many at once",
        mean: |_, _| 0.0,
        why: "a drive takes writes of several processes at a time, as many as its cache and its queue let it" },
    Parameter { name: "storage_requests_per_s", symbol: "R", unit: "1/s", scale: Scale::Ln, sd: 1.0, brings: &[0.018],
        about: "requests per second that storage serves at most; of each kind where σ is 0",
        expected: "3 times the most reads or writes seen to get there, out of reach if none was",
        mean: |seen, _| seen.limit(Limit::Requests).ln(),
        why: "volumes are sold with it, and no request's time shows it before it is reached" },
    Parameter { name: "storage_read_bytes_per_s", symbol: "B_r", unit: "B/s", scale: Scale::Ln, sd: 1.0, brings: &[0.045],
        about: "bytes per second that storage reads at most",
        expected: "3 times the most seen to get there, and at least 1.2 times the most that direct requests moved, 8 or more in flight; out of reach if nothing was read there",
        mean: |seen, _| seen.limit(Limit::Read).ln(),
        why: "the bandwidth of a device or volume" },
    Parameter { name: "storage_write_bytes_per_s", symbol: "B_w", unit: "B/s", scale: Scale::Ln, sd: 1.0, brings: &[0.001],
        about: "bytes per second that storage writes at most",
        expected: "3 times the most seen to get there, and at least 1.2 times the most that direct requests moved, 8 or more in flight; out of reach if nothing was written there",
        mean: |seen, _| seen.limit(Limit::Written).ln(),
        why: "the bandwidth of a device or volume" },
    Parameter { name: "storage_shared", symbol: "σ", unit: "1", scale: Scale::Logit, sd: 2.0, brings: &[0.014],
        about: "how far reads and writes use up the same limits: 1 entirely, 0 where each has its own",
        expected: "0.73: shared limits are somewhat likelier, a choice",
        mean: |_, _| 1.0,
        why: "some volumes count reads and writes together, others apart" },
    Parameter { name: "depth_copy_cost", symbol: "ξ", unit: "1", scale: Scale::Ln, sd: 0.7, brings: &[0.0],
        about: "processor time of a request among many in flight, divided by that of one alone",
        expected: "1, no cost",
        mean: |_, _| 0.0,
        why: "requests in flight are handed over in batches, by another engine than one alone" },
    Parameter { name: "depth_overlap", symbol: "μ", unit: "1", scale: Scale::Ln, sd: 1.5, brings: &[0.005],
        about: "requests that storage serves at a time with many in flight, divided by those with one",
        expected: "1, nothing gained",
        mean: |_, _| 0.0,
        why: "queues of a device serve more requests in flight than processes" },
    Parameter { name: "sync_s", symbol: "Y", unit: "s", scale: Scale::Ln, sd: 2.0, brings: &[0.001],
        about: "an fdatasync with nothing left to write",
        expected: "half of what a synced write took, else 0.5 ms",
        mean: |seen, _| seen.sync_s().ln(),
        why: "the flush itself, shared by the writes since the one before" },
    Parameter { name: "sync_parallel", symbol: "m_f", unit: "1", scale: Scale::Ln, sd: 1.0, brings: &[0.0],
        about: "writes that one fdatasync sends to storage side by side",
        expected: "1",
        mean: |_, _| 0.0,
        why: "without it a flush of F writes would cost as much as F writes alone" },
];

/// The parameters of each cache, in the order of [`OfCache`].
#[rustfmt::skip]
pub(super) const PER_CACHE: [Parameter; 4] = [
    Parameter { name: "cache_bytes", symbol: "C", unit: "B", scale: Scale::Ln, sd: 0.05, brings: &[0.002, 0.001],
        about: "size of the cache",
        expected: "the border found, to 5 %; the kernel's limit on dirty data; where no visit passed the page cache what the machine says, to 10 %; 4 KiB with direct access",
        mean: |seen, cache| seen.sizes(cache)[cache[1]].ln(),
        why: "data beyond it are not found there" },
    Parameter { name: "beyond_fixed_s", symbol: "A", unit: "s", scale: Scale::Ln, sd: 2.0, brings: &[0.016, 0.012],
        about: "fixed time of a random request that misses the cache and is served by the next level",
        expected: "half of the median request seen there, else ten times the quickest; if direct writes tell what write-back costs, the time of the quickest small one less that of its bytes, to 30 %",
        mean: |seen, cache| seen.miss_fixed_s(cache).ln(),
        why: "a seek, or the latency of the next level" },
    Parameter { name: "beyond_sequential_over_random", symbol: "ρ", unit: "1", scale: Scale::Ln, sd: 1.0, brings: &[0.0, 0.0],
        about: "fixed time of a sequential one, divided by that of a random one",
        expected: "0.2 for buffered reads, which are read ahead (0.02 by the kernel's rules), and for writes told by the device layer; else 1",
        mean: |seen, cache| seen.sequential_over_random(cache).ln(),
        why: "read-ahead and merging save the fixed part" },
    Parameter { name: "beyond_bytes_per_s", symbol: "B", unit: "B/s", scale: Scale::Ln, sd: 2.0, brings: &[0.043, 0.01],
        about: "rate at which the next level serves it",
        expected: "twice the median rate seen there, else a tenth of the highest; if direct writes tell what write-back costs, their highest rate, to 30 %",
        mean: |seen, cache| seen.miss_bytes_per_s(cache).ln(),
        why: "how fast the bytes of one request move; those of all together are limited by B_r and B_w" },
];

/// The place of a parameter of a cache, which is given by its direction and its index.
pub(super) fn cache_at(shape: Shape, [direction, index]: [usize; 2], which: OfCache) -> usize {
    let first = if direction == READ { 0 } else { shape.counts[READ] };
    TABLE.len() + PER_CACHE.len() * (first + index) + which as usize
}

/// All parameters of a law of this shape, in their order, with their names in full.
pub(super) fn all(shape: Shape) -> Vec<(String, Parameter)> {
    let common = TABLE.iter().map(|parameter| (parameter.name.to_owned(), *parameter));
    let of_caches =
        ["read", "write"].into_iter().zip(shape.counts).flat_map(|(direction, count)| {
            (1..=count).flat_map(move |index| {
                let full = move |p: &Parameter| (format!("{direction}_{}_{index}", p.name), *p);
                PER_CACHE.iter().map(full)
            })
        });
    common.chain(of_caches).collect()
}

/// The scales of all parameters of a law of this shape.
pub(super) fn scales(shape: Shape) -> impl Iterator<Item = Scale> {
    let of_caches =
        PER_CACHE.iter().cycle().take(PER_CACHE.len() * shape.counts.iter().sum::<usize>());
    TABLE.iter().chain(of_caches).map(|parameter| parameter.scale)
}

impl Scale {
    /// A value from how it is fitted.
    pub(super) fn value(self, at: f64) -> f64 {
        match self {
            Self::Ln => at.exp(),
            Self::Logit => 1.0 / (1.0 + (-at).exp()),
        }
    }

    /// The derivative of a value by how it is fitted.
    pub(super) fn slope(self, value: f64) -> f64 {
        match self {
            Self::Ln => value,
            Self::Logit => value * (1.0 - value),
        }
    }
}

/// A limit that was not reached is expected at so many times the most that was seen.
pub(super) const LIMIT_OVER_SEEN: f64 = 3.0;
/// The factor where what was seen is close to the limit itself: direct requests with many in flight. A choice.
const LIMIT_OVER_SEEN_IF_CLOSE: f64 = 1.2;
/// Direct visits with this many requests in flight or more come close to the limits on bytes. A choice.
const MANY_IN_FLIGHT: u32 = 8;
/// A limit that nothing came near is so far above everything that it changes nothing: so many times the highest throughput,
/// in bytes per second for the limit on requests, too, where it is all the farther.
const OUT_OF_REACH: f64 = 1e3;
/// Other programs share the last-level cache: one is expected to have 1/e of it, one unit of the logarithm. A choice.
const SHARED_BY: f64 = std::f64::consts::E;
/// What a machine says of the size of a cache that no visit passed may be off by this, as a logarithm:
/// other programs' memory, and what the kernel keeps free. A choice.
const UNPASSED_SD: f64 = 0.1;
/// What direct writes with requests in flight say of write-back may be off by this, as a logarithm: the
/// kernel merges and orders what it writes back. A choice.
const WRITE_COST_SD: f64 = 0.3;

/// Where the parameters are expected, on their scales, in the order of [`all`].
pub(super) fn priors(training: &Training, caches: &Caches) -> Vec<Prior> {
    let shape = caches.shape();
    let seen = FirstLook { training, caches };
    let prior = |it: &Parameter, cache| Prior { mean: (it.mean)(&seen, cache), sd: it.sd };
    let mut priors: Vec<Prior> = TABLE.iter().map(|it| prior(it, [0, 0])).collect();
    for direction in [READ, WRITE] {
        for index in 0..shape.counts[direction] {
            priors.extend(PER_CACHE.iter().map(|it| prior(it, [direction, index])));
        }
    }
    for (index, sd) in known_elsewhere(caches) {
        priors[index].sd = sd;
    }
    if caches.has_device_writes {
        // The rate comes from direct writes with many in flight, so how many are served at a time is in it.
        priors[Common::WriteParallel as usize].sd = FIXED_SD;
    }
    let names: Vec<String> = all(shape).into_iter().map(|(name, _)| name).collect();
    training.hold(&names, &mut priors);
    priors
}

/// Parameters that other measurements than visits of a warm cache tell, by their places, with how far they may be
/// off: the sizes of caches that were not passed, and what write-back costs.
pub(super) fn known_elsewhere(caches: &Caches) -> Vec<(usize, f64)> {
    let shape = caches.shape();
    let mut known = Vec::new();
    if caches.is_unpassed {
        known.push((cache_at(shape, [READ, 0], OfCache::Size), UNPASSED_SD));
    }
    if caches.is_write_size_assumed {
        known.push((cache_at(shape, [WRITE, 0], OfCache::Size), UNPASSED_SD));
    }
    if let Some(last) = shape.counts[WRITE].checked_sub(1).filter(|_| caches.has_device_writes) {
        let costs = [OfCache::MissFixed, OfCache::MissRate];
        let place = |which| (cache_at(shape, [WRITE, last], which), WRITE_COST_SD);
        known.extend(costs.map(place));
    }
    known
}

/// The limits of storage, by what they count per second.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    Requests,
    Read,
    Written,
}

/// What a first look at the samples says.
struct FirstLook<'a> {
    training: &'a Training,
    caches: &'a Caches,
}

impl FirstLook<'_> {
    fn samples(&self) -> impl Iterator<Item = &Sample> {
        let Training { samples, cold, extras, .. } = self.training;
        samples.iter().chain(cold).chain(extras)
    }

    fn highest_bytes_per_s(&self) -> f64 {
        self.samples().map(|sample| sample.ln_throughput.exp()).fold(1.0, f64::max)
    }

    fn processor_cache_bytes(&self) -> f64 {
        let of_host = self.training.host.llc_bytes.map(|bytes| bytes as f64 / SHARED_BY);
        self.caches.processor_bytes.or(of_host).unwrap_or(1e6)
    }

    fn processors(&self) -> f64 {
        let cpus = self.training.host.cpus;
        f64::from(if cpus > 0 { cpus } else { 2 })
    }

    /// A limit of storage, per second: a factor above the most seen to get there. Direct requests of the device
    /// layer raise the limits on bytes alone: the page cache merges writes, so that their requests say nothing here.
    fn limit(&self, limit: Limit) -> f64 {
        let got_there = |sample: &Sample, [read, written]: [f64; 2]| {
            let bytes_per_s = sample.ln_throughput.exp();
            // Reads and writes may have a limit each.
            let requests = read.max(written) * bytes_per_s / sample.workload.size_mean as f64;
            [requests, read * bytes_per_s, written * bytes_per_s][limit as usize]
        };
        let here =
            self.samples().map(|sample| got_there(sample, self.at_storage(&sample.workload)));
        let most = here.fold(0.0, f64::max);
        let in_flight = |work: &Workload| work.depth.saturating_mul(work.process_num);
        let is_deep =
            |work: &Workload| limit != Limit::Requests && in_flight(work) >= MANY_IN_FLIGHT;
        let direct = self.training.device.iter().filter(|sample| is_deep(&sample.workload));
        let moved = direct.map(|sample| {
            let read = sample.workload.read_frac;
            got_there(sample, [read, 1.0 - read])
        });
        let limit = moved
            .map(|most| LIMIT_OVER_SEEN_IF_CLOSE * most)
            .fold(LIMIT_OVER_SEEN * most, f64::max);
        if limit > 0.0 { limit } else { OUT_OF_REACH * self.highest_bytes_per_s() }
    }

    /// First guess of the time of an fdatasync: half of the median time of a synced write, seconds, however
    /// many writes share the fdatasync.
    fn sync_s(&self) -> f64 {
        let synced = self.samples().filter(|sample| sample.workload.fsync_every > 0);
        let write_s = synced.map(|sample| {
            let writes = (1.0 - sample.workload.read_frac).max(0.1);
            request_s(sample) * f64::from(sample.workload.depth) / writes
        });
        median(write_s).unwrap_or(1e-3) / 2.0
    }

    /// Shares of all requests that are reads, and writes, and surely got to storage: none where the
    /// data is within a factor of [`CLEARLY_BEYOND`] of the cache.
    fn at_storage(&self, work: &Workload) -> [f64; 2] {
        let share = |sizes: &[f64], cache: usize| {
            let held = sizes.get(cache).map_or(1.0, |bytes| bytes / work.unique_bytes as f64);
            if CLEARLY_BEYOND * held < 1.0 { 1.0 - held } else { 0.0 }
        };
        let [read_from, write_from] = self.caches.shape().first_to_storage;
        let is_synced = work.fsync_every > 0;
        let written = if is_synced { 1.0 } else { share(&self.caches.write, write_from) };
        let is_cold = work.state == State::Cold;
        let read = if is_cold { 1.0 } else { share(&self.caches.read, read_from) };
        [work.read_frac * read, (1.0 - work.read_frac) * written]
    }

    /// Sizes of the caches of a cache's direction, bytes.
    fn sizes(&self, [direction, _]: [usize; 2]) -> &[f64] {
        if direction == READ { &self.caches.read } else { &self.caches.write }
    }

    /// True of the last cache for writes where the device layer has direct writes: these tell what its misses cost.
    fn is_told_by_device(&self, [direction, index]: [usize; 2]) -> bool {
        let is_last = direction == WRITE && index + 1 == self.caches.write.len();
        is_last && self.caches.has_device_writes
    }

    /// Median of a figure of the samples that missed a cache and were served by the next level.
    fn median_there(&self, cache: [usize; 2], figure: impl Fn(&Sample) -> f64) -> Option<f64> {
        let [direction, index] = cache;
        let sizes = self.sizes(cache);
        let until = sizes.get(index + 1).map_or(f64::INFINITY, |next| *next);
        let is_there = |sample: &&Sample| {
            let unique = sample.workload.unique_bytes as f64;
            // From clearly beyond this cache to clearly beyond the next.
            is_mostly(&sample.workload, direction)
                && (sizes[index] * CLEARLY_BEYOND..until * CLEARLY_BEYOND).contains(&unique)
        };
        median(self.training.samples.iter().filter(is_there).map(figure))
    }

    fn miss_fixed_s(&self, cache: [usize; 2]) -> f64 {
        if self.is_told_by_device(cache) {
            return self.direct_write_costs().0;
        }
        let there = self.median_there(cache, request_s).map(|request_s| request_s / 2.0);
        there.unwrap_or(10.0 * quickest_s(self.training, cache[0]))
    }

    fn miss_bytes_per_s(&self, cache: [usize; 2]) -> f64 {
        if self.is_told_by_device(cache) {
            return self.direct_write_costs().1;
        }
        let rate = |sample: &Sample| sample.workload.size_mean as f64 / request_s(sample);
        let there = self.median_there(cache, rate).map(|rate| 2.0 * rate);
        there.unwrap_or(self.highest_bytes_per_s() / 10.0)
    }

    fn sequential_over_random(&self, cache: [usize; 2]) -> f64 {
        let is_buffered = self.training.ranges.access == Access::Buffered;
        match cache[0] {
            // What a stream fetches while it copies is counted apart there.
            READ if self.caches.shape().read_ahead_pages.is_some() => 0.02,
            READ if is_buffered => 0.2,
            WRITE if self.is_told_by_device(cache) => 0.2,
            _ => 1.0,
        }
    }

    /// Fixed time of a write to storage, seconds, and the rate at which its bytes move, bytes per second: by the direct
    /// writes of the device layer, many of them in flight.
    fn direct_write_costs(&self) -> (f64, f64) {
        let writes = self.training.device.iter().filter(|sample| tells_of_writes(sample));
        let seen: Vec<(f64, f64)> = writes
            .map(|sample| (sample.workload.size_mean as f64, sample.ln_throughput.exp()))
            .collect();
        let rate = seen.iter().map(|(_, bytes_per_s)| *bytes_per_s).fold(1.0, f64::max);
        let smallest = seen.iter().map(|(size, _)| *size).fold(f64::INFINITY, f64::min);
        let quickest_s = seen
            .iter()
            .filter(|(size, _)| *size <= 2.0 * smallest)
            .map(|(size, bytes_per_s)| size / bytes_per_s - size / rate)
            .fold(f64::INFINITY, f64::min);
        (quickest_s.clamp(1e-9, 10.0), rate)
    }
}
