//! The law of the blend: what a request takes in the mean, as a mixture of class times *in time*.
//!
//! A mean over requests is an expectation, so it is linear in the shares of reads, of sequential
//! requests and of hits; a product of curves is not. With `s` the request size, `U` the data
//! touched, `N` the processes, and parameters as in `parameters`:
//!
//! ```text
//! copy   = Σ_class P(class) (a + s/b · (1 + κ (1 − min(1, L/U*))))    processor, always paid
//! reads  = r Σ_level P(level) ((1 − q σ (1 − ρ)) A + s/B)              beyond the read caches
//! writes = (1 − r) Σ_level P(level) ((1 − q (1 − ρ)) A + s/B)          beyond the write caches
//! W = copy + reads + ω writes                                          what a process waits for
//! S = norm₈(reads/m_r + writes/m_w, limits)                            what storage spends
//! Z = (softmax(W, S)² + (N² − 1) S²)^½                                 storage is waited for
//! T = Z₁ norm₆(Z, N copy/P) / norm₆(Z₁, copy/P)                        the processors are shared
//! X = N / T                                                            requests per second
//! ```
//!
//! Uniform access to `U` bytes finds a cache of `C` bytes holding the right ones with probability
//! `min(1, C/U)`, whatever the replacement policy. A sequential read (share `q`) is read ahead where
//! its run is long (`σ = q⁶`); in a short run it costs what one at random does. Write-back runs beside
//! the writer, so only the part `ω` of it is waited for as long as the storage keeps up. `Z` lies
//! between the asymptotes `max(W, N S)` and the balanced-job bound of a closed network (Zahorjan et
//! al. 1982). Limits are on requests and on bytes per second, as volumes are sold. `U*` is `U` and
//! the buffers of further requests in flight.
//!
//! With `Q` requests in flight per process `N Q` of them queue for the storage, which may serve
//! `μ^(1 − 1/Q)` times as many at a time, while each process copies its own one by one at a cost of
//! `σ^(1 − 1/Q)`. With an fdatasync after every `F` writes each write waits for its own way to storage,
//! `softmin(F, m_f)` at a time, and for its part of the fdatasync: `(A + s/B)/softmin(F, m_f) + Y/F`.

use ioscape_model::Workload;
use serde::{Deserialize, Serialize};

use super::caches::Shape;
use super::parameters::{Common, OfCache, cache_at, scales};

#[cfg(test)]
mod tests;

/// Directions, as places in pairs.
const READ: usize = 0;
const WRITE: usize = 1;
/// How sharply runs must be long to be read ahead: with 9 in 10 sequential, half of them are. Fitted it
/// brought nothing (`docs/experiments.md`).
const RUN_EXPONENT: i32 = 6;
/// How softly waiting for one's own requests turns into waiting for a busy storage.
const SOFTNESS: f64 = 0.1;
/// Between the balanced-job bound (1) and the asymptotes (infinity).
const QUEUEING: f64 = 2.0;
/// Processors are shared in slices of time, which is hardly a queue: nearly the larger of both.
const SHARING: f64 = 6.0;
/// Nearly the largest of what several resources need.
const RESOURCES: f64 = 8.0;
/// Nearly the smaller of the writes before an fdatasync and what storage takes at a time.
const FLUSHING: f64 = 4.0;

/// The parameters as numbers with a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Law {
    shape: Shape,
    values: Vec<f64>,
}

/// What a request takes in the mean, by where it takes it; reads, then writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Times {
    /// Of the processor, seconds.
    copy: [f64; 2],
    /// Of storage, seconds.
    storage: [f64; 2],
    /// Share of the storage's time for writes that the writer waits for.
    waited: f64,
    /// Requests and bytes that storage is asked for.
    requests: [f64; 2],
    bytes: [f64; 2],
}

/// The parts that a request's time consists of: copying and storage, for reads and for writes.
pub(super) const PARTS: usize = 4;

impl Times {
    /// With one part so many times as long: storage that takes longer for the same takes as much
    /// longer by its limits.
    fn scaled(mut self, part: usize, by: f64) -> Self {
        let direction = part % 2;
        if part < 2 {
            self.copy[direction] *= by;
        } else {
            self.storage[direction] *= by;
            self.requests[direction] *= by;
            self.bytes[direction] *= by;
        }
        self
    }
}

impl Law {
    /// From the fitted parameters.
    pub(super) fn fitted(shape: Shape, at: &[f64]) -> Self {
        Self { shape, values: scales(shape).zip(at).map(|(scale, at)| scale.value(*at)).collect() }
    }

    fn get(&self, which: Common) -> f64 {
        self.values[which as usize]
    }

    /// A parameter of a cache.
    pub(super) fn cache(&self, direction: usize, index: usize, which: OfCache) -> f64 {
        self.values[cache_at(self.shape, direction, index) + which as usize]
    }

    /// Time of a request beyond a cache; of a sequential one as far as `streamed`.
    pub(super) fn beyond_s(&self, direction: usize, index: usize, size: f64, streamed: f64) -> f64 {
        let fixed_s = self.cache(direction, index, OfCache::Fixed);
        let ratio = self.cache(direction, index, OfCache::Sequential);
        let rate = self.cache(direction, index, OfCache::Rate);
        fixed_s * (1.0 - streamed * (1.0 - ratio)) + size / rate
    }

    /// Share of random requests served just beyond each cache. Sizes that were set may be out of order:
    /// a cache no larger than one before it holds nothing that the other does not.
    fn shares(&self, direction: usize, work: &Workload) -> impl Iterator<Item = (usize, f64)> {
        let count = self.shape.caches[direction];
        let unique = work.unique_bytes as f64;
        let mut so_far = 0.0_f64;
        (0..count).map(move |index| {
            let held = |index| (self.cache(direction, index, OfCache::Bytes) / unique).min(1.0);
            so_far = so_far.max(held(index));
            let until = if index + 1 < count { so_far.max(held(index + 1)) } else { 1.0 };
            (index, until - so_far)
        })
    }

    /// Where the time of a request goes.
    pub(super) fn times(&self, work: &Workload) -> Times {
        use Common::{MemoryCost, ProcessorCache, ReadFixed, ReadRate, WriteFixed, WriteRate};
        let size = work.size_mean as f64;
        let share = [work.read_frac, 1.0 - work.read_frac];
        let streamed = [work.seq_frac * work.seq_frac.powi(RUN_EXPONENT), work.seq_frac];
        let in_memory = 1.0 - (self.get(ProcessorCache) / copied_over_bytes(work)).min(1.0);
        let slower = 1.0 + self.get(MemoryCost) * in_memory;
        let copy = |fixed, rate| self.get(fixed) + size / self.get(rate) * slower;
        let copy = [copy(ReadFixed, ReadRate), copy(WriteFixed, WriteRate)];
        let [mut storage, mut asked] = [[0.0; 2]; 2];
        for direction in [READ, WRITE] {
            for (index, here) in self.shares(direction, work) {
                storage[direction] +=
                    here * self.beyond_s(direction, index, size, streamed[direction]);
                let is_asked = index >= self.shape.asked_from[direction];
                asked[direction] += if is_asked { here } else { 0.0 };
            }
        }
        let mut waited = self.get(Common::Waited);
        if work.fsync_every > 0 {
            // Nothing stays dirty for long enough to be overwritten.
            (storage[WRITE], waited) = self.synced(work);
            asked[WRITE] = 1.0;
        }
        let of = |values: [f64; 2]| [share[READ] * values[READ], share[WRITE] * values[WRITE]];
        Times {
            copy: of(copy),
            storage: of(storage),
            waited,
            requests: of(asked),
            bytes: of(asked).map(|share| share * size),
        }
    }

    /// Storage's time for a write that an fdatasync sends there, with its part of the fdatasync, and
    /// the share of it that is waited for: several writes are on their way at a time.
    fn synced(&self, work: &Workload) -> (f64, f64) {
        let every = f64::from(work.fsync_every);
        let beyond_s = |last| self.beyond_s(WRITE, last, work.size_mean as f64, work.seq_frac);
        let written_s = self.shape.caches[WRITE].checked_sub(1).map_or(0.0, beyond_s);
        let parallel = self.get(Common::SyncParallel);
        let at_a_time = norm(FLUSHING, every.recip(), parallel.recip()).recip().max(1.0);
        let sync_s = self.get(Common::Sync) / every;
        let spent_s = written_s + sync_s;
        (spent_s, (written_s / at_a_time + sync_s) / spent_s)
    }

    /// What storage spends on a request, by its work or by its limits, seconds.
    fn busy_s(&self, times: &Times, depth: f64) -> f64 {
        let overlap = self.get(Common::DepthOverlap).powf(1.0 - 1.0 / depth);
        let working = times.storage[READ] / self.get(Common::ReadParallel)
            + times.storage[WRITE] / self.get(Common::WriteParallel);
        let requests = (times.requests[READ] + times.requests[WRITE]) / self.get(Common::Requests);
        let moving = times.bytes[READ] / self.get(Common::ReadBytes)
            + times.bytes[WRITE] / self.get(Common::WriteBytes);
        norm(RESOURCES, working / overlap, norm(RESOURCES, requests, moving))
    }

    /// Seconds per request of one process, queueing included.
    fn response_s(&self, times: &Times, process_num: f64, depth: f64) -> f64 {
        let queued = self.queued_s(times, process_num, depth);
        if depth <= 1.0 {
            return queued;
        }
        // A process copies what it has in flight one by one. The corner of the norm makes either a
        // little longer: that is not a cost of depth, and one request at a time has it not.
        let copied = self.copied_s(times, depth);
        let one = self.queued_s(times, process_num, 1.0);
        let corner = one / norm(RESOURCES, one, copied);
        depth * norm(RESOURCES, queued / depth, copied) * corner
    }

    /// Copying of a request with so many in flight, seconds.
    fn copied_s(&self, times: &Times, depth: f64) -> f64 {
        let cost = self.get(Common::DepthCopy).powf(1.0 - 1.0 / depth);
        cost * (times.copy[READ] + times.copy[WRITE])
    }

    /// Seconds per request if a process copied all that it has in flight at the same time.
    fn queued_s(&self, times: &Times, process_num: f64, depth: f64) -> f64 {
        let wait = times.copy[READ]
            + times.copy[WRITE]
            + times.storage[READ]
            + times.waited * times.storage[WRITE];
        let busy = self.busy_s(times, depth);
        let alone = soft_max(wait, busy);
        let at_a_time = process_num * depth;
        if at_a_time <= 1.0 {
            return alone;
        }
        let queue = (at_a_time.powf(QUEUEING) - 1.0) * (busy / alone).powf(QUEUEING);
        let queued = alone * (1.0 + queue).powf(1.0 / QUEUEING);
        // Nobody waits for a processor as long as there is one.
        let share_s = self.copied_s(times, depth) / self.get(Common::Processors);
        norm(SHARING, queued, at_a_time * share_s) * alone / norm(SHARING, alone, share_s)
    }

    fn ln_requests_per_s(&self, times: &Times, work: &Workload) -> f64 {
        let (process_num, depth) = (f64::from(work.process_num), f64::from(work.depth));
        (process_num * depth / self.response_s(times, process_num, depth)).ln()
    }

    /// Natural logarithm of the throughput in bytes per second.
    pub(super) fn ln_throughput(&self, work: &Workload) -> f64 {
        self.ln_requests_per_s(&self.times(work), work) + (work.size_mean as f64).ln()
    }

    /// How the throughput depends on each part of the time: minus d ln X / d ln part.
    pub(super) fn elasticities(&self, work: &Workload) -> [f64; PARTS] {
        const STEP: f64 = 1e-4;
        let times = self.times(work);
        let base = self.ln_requests_per_s(&times, work);
        std::array::from_fn(|part| {
            (base - self.ln_requests_per_s(&times.scaled(part, 1.0 + STEP), work)) / STEP
        })
    }

    /// What copying takes, requests of all classes together, seconds.
    pub(super) fn copy_time_s(&self, work: &Workload) -> f64 {
        let [read, written] = self.times(work).copy;
        read + written
    }

    /// An fdatasync with nothing left to write, seconds.
    pub(super) fn sync_s(&self) -> f64 {
        self.get(Common::Sync)
    }

    /// The most that storage serves: requests, bytes read and bytes written per second.
    pub(super) fn limits(&self) -> [f64; 3] {
        [Common::Requests, Common::ReadBytes, Common::WriteBytes].map(|which| self.get(which))
    }
}

/// The larger of what is waited for and what the busiest resource needs, with a soft corner.
fn soft_max(wait: f64, busy: f64) -> f64 {
    let scale = SOFTNESS * wait;
    let over = (busy - wait) / scale;
    // ln(1 + e^x), without overflow.
    wait + scale * if over > 30.0 { over } else { over.exp().ln_1p() }
}

/// The root of the sum of both, each to the power `exponent`; the larger is the unit.
fn norm(exponent: f64, one: f64, other: f64) -> f64 {
    let (smaller, larger) = if one < other { (one, other) } else { (other, one) };
    if larger <= 0.0 {
        return 0.0;
    }
    larger * (1.0 + (smaller / larger).powf(exponent)).powf(1.0 / exponent)
}

/// What copying goes over again and again: the data touched, and the buffers of requests in flight
/// but the one of each process that is always there.
fn copied_over_bytes(work: &Workload) -> f64 {
    let others = f64::from(work.process_num) * (f64::from(work.depth) - 1.0);
    work.unique_bytes as f64 + others * work.size_mean as f64
}
