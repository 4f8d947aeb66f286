//! The law of the blend: seconds per request, added up over kinds of request.
//!
//! The mean time of a request is the sum over kinds of request (reads and writes, hits and misses) of
//! share times time. A product of curves cannot say that. `s` is the mean request size, `U` the data
//! touched, `N` the processes, `r` and `q` the shares of reads and of sequential requests; the
//! parameters' symbols are those of the table in `parameters`, with `d` for the direction; `a_r` is half of the
//! quickest read seen:
//!
//! ```text
//! norm₈(x, y)   = (x⁸ + y⁸)^(1/8)                            a soft maximum
//! shared(x, y)  = σ (x + y) + (1 − σ) norm₈(x, y)            one limit for both, or one for each
//! softmax(W, S) = W + W/10 · ln(1 + exp(10 (S − W)/W))       likewise, W to 5 in a million where S is much smaller
//! hᵢ     = min(1, C_i₊₁/U) − min(1, C_i/U); the last 1 − min(1, C_n/U)
//!                                                            share that misses cache i and hits the next
//! L'     = L (1 + 0.3 (min(N, P) − 1))                       data that processors' caches hold
//! copy   = Σ_d share_d (a_d + s/b_d · (1 + κ (1 − min(1, L'/U*))))    processor, always paid
//! reads  = r Σᵢ hᵢ ((1 − q⁷ (1 − ρ)) A + s/B)                storage, beyond the read caches
//! writes = (1 − r) Σᵢ hᵢ ((1 − q (1 − ρ)) A + s/B)           storage, beyond the write caches
//! limits = norm₈(shared(n_r, n_w)/R, shared(v_r/B_r, v_w/B_w))
//!                                                            n, v: requests and bytes that get to storage, per request
//! W = copy + reads + ω writes                                a process waits for this
//! S = norm₈(reads/m_r + writes/m_w, limits)                  storage is busy for this
//! Z = (softmax(W, S)² + (N² − 1) S²)^½                       N processes queue for storage
//! T = Z₁ norm₈(Z, N (copy + K)/P) / norm₈(Z₁, copy/P)        and share P processors; Z₁ is Z of N = 1, K below
//! X = N / T                                                  requests per second
//! Q > 1:
//! copy'  = ξ^(1 − 1/Q) copy                                   a process copies what it has in flight one by one
//! T'     = Q norm₈(T(N Q)/Q, copy') · T(N)/norm₈(T(N), copy')   X = N Q/T'; T(N) is T as above, T(N Q) that of
//!                                                            N Q requests at a time with the changes below
//! ```
//!
//! Uniform access to `U` bytes finds its data in a cache of `C` bytes with probability `min(1, C/U)`,
//! whatever the replacement policy. A sequential read (share `q`) is read ahead only in a long run: the
//! share `q⁶` of them, a choice, where nothing is known of read-ahead; in a short run it costs as much as a random
//! one. Write-back runs beside the writer, so a writer waits for the share `ω` of it, a half (all with direct access,
//! where there is none), until storage falls behind. `Z` lies between the asymptotes `max(W, N S)` and the
//! balanced-job bound of a closed network (Zahorjan et al. 1982).
//! Storage may have limits on requests and on bytes per second, as cloud volumes have: one that reads and writes
//! share (σ = 1), or one for each.
//! `U* = U + N (Q − 1) s`: the buffers of further requests in flight fill the processor's cache, too.
//!
//! With `Q` requests in flight per process, `N Q` of them queue for storage, which then serves
//! `μ^(1 − 1/Q)` times as many at a time (`reads/m_r + writes/m_w` is divided by it, limits are not), and processors
//! are shared by `copy' + K`. With an fdatasync after every `F` writes no write is absorbed: storage spends
//! `A' + s/B + Y/F` on it, `A' = (1 − q (1 − ρ)) A`, and the writer waits for `(A' + s/B)/softmin(F, m_f) + Y/F` of
//! that; `softmin(F, m_f) = max(1, (F⁻⁴ + m_f⁻⁴)^(−¼))`.
//!
//! Where a kernel reads ahead what misses its page cache (`Shape::read_ahead_pages`), these take the place of `reads`; here
//! with one cache for reads (with more, `A + s/B` and `1/B` are sums over `hᵢ`):
//!
//! ```text
//! n, w   pages of a request, and that the kernel reads ahead at most, at least min(n, 320)
//! q'     = q r^min(1, (n/100)^½) with seq_scope=any, else q   a write between two reads moves on in the file
//! h      = min(1, C/U); 0 for cold reads
//! V      = 4096 q' x y/(x + y)                               bytes read in vain, by cold reads, too;
//!          x = min(8 n, 2 n + 28), y = 1.5 w (1 − q')         pages after short runs and after long ones
//! reads  = r (1 − h) ((1 − q'² (1 − ρ)) A + s/B (1 − q'²/2) + V/B
//!              + h (1 − 1/n) (1 − q'²) (A + s/B))             v_r has r (1 − h) V, too
//! W      is less by q'² min(reads, (1 − h) copy_r)            the next window comes in while one is copied;
//!                                                            copy_r: the part of copy that is of reads
//! ```
//!
//! By the kernel's rules the first two requests of a run are waited for, hence `q'²`. Further pieces of a random read
//! take time, but are not counted in `n_r`. Where no visit touched more data than the page cache holds, cold reads
//! say what a miss costs.
//!
//! Where a kernel writes back all the time from `D` bytes of dirty data on, its threads spend `K` seconds of processor time on
//! each request, whatever is in flight; elsewhere `K = 0`:
//!
//! ```text
//! K      = min((1 − r)(1 − min(1, D/U)) 2 s/b_w, copy z/(1 − z)), z = 2 s/b_w · m_w/(P ((1 − q (1 − ρ)) A + s/B))
//!                                                            without fdatasyncs
//! ```
//!
//! `z` is the share of the processors that these threads take where storage is busy with writes all the time: they
//! cannot take more, `K/(copy + K) ≤ z`.
//!
//! Several processes with files of their own do not share a full page cache evenly for long: who finds less asks less
//! often, and its pages are the first to go. With `g` of `N` processes ahead, whose files of `U/N` bytes are all cached, the
//! others find `h_g = (C N/U − g)/(N − g)` and miss `m = 1 − h_g`. One more gets ahead while `(N − g) h_g > 1` and
//! `−e ln m > 0.8`, `e = m M/(copy + m M)`, `M` the storage time of a read
//! that misses, times `r`; waits for writes are left out. Then
//!
//! ```text
//! X      = √(X_even · (X(g, g U/N) + X(N − g, C/h_g)))         X(N, U) for so many processes and data
//! ```

use ioscape_model::{Layout, SeqScope, State, Workload};
use serde::{Deserialize, Serialize};

use super::caches::{PAGE_BYTES, READ, Shape, WRITE};
use super::parameters::{Common, OfCache, cache_at, scales};

#[cfg(test)]
mod tests;

/// A sequential read (`q`) is read ahead where the six before it were sequential, too (`q⁶`): with 9 in 10
/// sequential, half of all are. Six is a choice; an exponent that was fitted moved the mean error by
/// 0.0002 (`docs/experiments.md`).
const STREAMED_EXPONENT: i32 = 1 + 6;
/// From this many pages per request on, every write breaks a stream of reads; with fewer pages the share of reads
/// to the power of √(pages/100) goes on. A fit to the example `read_ahead` of `ioscape-trace`, which finds powers
/// of 0.1 to 0.3, 0.2 to 0.3, 0.4 to 0.6 and 0.75 for 2, 8, 19 and 100 pages with windows of 32 pages, but 0.1 to
/// 0.3 for all of them with windows of 640: there the law breaks more streams than the kernel does.
const BROKEN_BY_WRITES_PAGES: f64 = 100.0;
/// Part of the time of their bytes that requests of a stream save: one window is on its way while another is copied. A
/// choice; with none, half and three quarters predictions for an ext4 were off by 27, 16 and 19 % (median), for an xfs by
/// 20, 20 and 21 %. Worked out from cold reads it is no better (`docs/experiments.md`).
const STREAM_SAVES: f64 = 0.5;
/// The kernel asks storage for at most so many pages at once: 1280 KiB, the usual `max_sectors_kb`.
const PIECE_PAGES: f64 = 320.0;
/// Width of the corner from waiting for oneself to waiting for a busy storage, as a share of the wait: where both
/// are equal 7 % (0.1 ln 2) above. Measured curves have round corners; how round each of these is, is a choice.
const SOFTNESS: f64 = 0.1;
/// Exponent of the corner between waiting and queueing: where both are equal 41 % (2^½) above. Its reciprocal
/// lies half way from that of the balanced-job bound (exponent 1) to that of the asymptotes (infinity).
const QUEUEING: f64 = 2.0;
/// Exponent of the corner where several resources are needed: 9 % (2^⅛) above. Slices of a processor's time are hardly a
/// queue, so that this goes for processors that are shared, too (with 6 for these errors are alike: `docs/experiments.md`).
/// As [`FLUSHING_LOG2`] a power of two, given by its logarithm.
const RESOURCES_LOG2: u32 = 3;
/// Exponent of the corner between the writes of an fdatasync and what storage takes at a time, 4: 16 % (2^−¼) below,
/// for the smaller counts.
const FLUSHING_LOG2: u32 = 2;

/// Cache that each further processor adds, as a share of what one processor alone has. Of 90 MiB one process on
/// 16 processors read 6.8 GB/s, 16 read 189 GB/s: more than 16 times as much, for each had 6 MiB to itself. Without
/// it maps of two such machines were off by 32 and 59 % (median), with it by 16 and 10 %; on two
/// processors by 19.0 and 18.3 %, no more than chance (`docs/experiments.md`).
const CACHE_PER_FURTHER_PROCESSOR: f64 = 0.3;

/// Processor time to write a byte back, over that of copying one: kernel threads take it from processes that share the
/// processors, from the amount of dirty data on at which the kernel writes back all the time. A choice: 2, 3 and 4 are
/// alike; without it two to four processes that write 60 to 150 MiB were predicted 10 to 20 % too fast
/// (`docs/experiments.md`).
const WRITE_BACK_COST: f64 = 2.0;

/// Processes that find less in a full cache than others ask less often for their pages, and lose more of them. Under
/// least-recently-used replacement (Che et al. 2002) the difference grows by itself where `−e ln m` exceeds 1, with the
/// share `m` that misses and the share `e` of the time that is waited for misses; where processes fall behind, 0.8
/// fits what they were seen to do best (`docs/experiments.md`, its table of thresholds).
const UNEVEN_FEEDBACK_MIN: f64 = 0.8;
/// Weight of the most uneven sharing in ln rate; the rest is even sharing. The kernel keeps pages on two
/// lists, and visits end before sharing is as uneven as it can get. With 0.3 to 0.6 errors are alike
/// (`docs/experiments.md`).
const UNEVEN_WEIGHT: f64 = 0.5;

/// The parameters as numbers with a unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Law {
    shape: Shape,
    values: Vec<f64>,
}

/// The mean time of a workload's requests, by where it goes. Pairs hold reads, then writes, each multiplied by its
/// share of the requests: without writes their entries are 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Times {
    /// Processor time, seconds.
    copy: [f64; 2],
    /// Seconds beyond the nearest level, in farther caches or in storage.
    storage: [f64; 2],
    /// Share of the storage time of writes that the writer waits for.
    waited: f64,
    /// Share of a stream's saving that the mean read gets, 0 to 1; 0 if the kernel is not known to read
    /// ahead. A stream's next window is read while the process copies this one.
    streamed: f64,
    /// Share of the reads that miss.
    read_misses: f64,
    /// Requests and bytes that get to storage, per request of the workload.
    requests: [f64; 2],
    bytes: [f64; 2],
    /// Processor time of the kernel's threads that write back, seconds.
    write_back_s: f64,
}

/// The parts that a request's time consists of: copying and storage, for reads and for writes.
pub(super) const PARTS: usize = 4;

impl Times {
    /// These times with one part multiplied by `by`. Storage limits count as storage time, so that all four
    /// parts twice as long make the request twice as long.
    fn scaled(mut self, part: usize, by: f64) -> Self {
        let direction = part % 2;
        if part < 2 {
            self.copy[direction] *= by;
            self.write_back_s *= if direction == WRITE { by } else { 1.0 };
        } else {
            self.storage[direction] *= by;
            self.requests[direction] *= by;
            self.bytes[direction] *= by;
        }
        self
    }
}

impl Law {
    /// From parameters as they are fitted, on their scales.
    pub(super) fn from_scaled(shape: Shape, scaled: &[f64]) -> Self {
        let values = scales(shape).zip(scaled).map(|(scale, at)| scale.value(*at)).collect();
        Self { shape, values }
    }

    /// A parameter that every system has.
    pub(super) fn get(&self, which: Common) -> f64 {
        self.values[which as usize]
    }

    /// A parameter of a cache.
    pub(super) fn cache(&self, direction: usize, index: usize, which: OfCache) -> f64 {
        self.values[cache_at(self.shape, [direction, index], which)]
    }

    /// Time of a request that misses a cache and finds its data in the next, or in storage after the last,
    /// beside copying, seconds. `streamed`: share of a fully sequential request's saving, 0 (random) to 1.
    pub(super) fn miss_s(&self, direction: usize, index: usize, size: f64, streamed: f64) -> f64 {
        let fixed_s = self.cache(direction, index, OfCache::MissFixed);
        let ratio = self.cache(direction, index, OfCache::SequentialOverRandom);
        let rate = self.cache(direction, index, OfCache::MissRate);
        let is_read_ahead = direction == READ && self.shape.read_ahead_pages.is_some();
        let saved = if is_read_ahead { streamed * STREAM_SAVES } else { 0.0 };
        fixed_s * (1.0 - streamed * (1.0 - ratio)) + size / rate * (1.0 - saved)
    }

    /// How much of a stream's saving the mean read has, 0 to 1.
    fn streamed_reads(&self, work: &Workload) -> f64 {
        if self.shape.read_ahead_pages.is_none() {
            return work.seq_frac.powi(STREAMED_EXPONENT);
        }
        // The first request of a run is waited for, and so is the second, which begins the first window.
        reads_in_sequence(work).powi(2)
    }

    /// Bytes that the kernel reads in vain for each read that misses a full cache, where a run of requests ends. Fitted, in
    /// pages, to a simulation of the kernel's rules page by page (example `read_ahead` of `ioscape-trace`): 42 % too low
    /// to 23 % too high. What the kernel reads beside random requests is left out: it made predictions no better.
    fn vain_bytes(work: &Workload, read_ahead_pages: f64) -> f64 {
        let (pages, in_sequence) = (pages(work), reads_in_sequence(work));
        let window = read_ahead_pages.max(pages.min(PIECE_PAGES));
        // Pages of the window that a short run has begun, of small and of large requests.
        let first = (8.0 * pages).min(2.0 * pages + 28.0);
        // A long run ends once in 1/(1 − in_sequence) requests, with the largest window and half of another begun.
        let last = 1.5 * window * (1.0 - in_sequence);
        in_sequence * first * last / (first + last) * PAGE_BYTES
    }

    /// Share of requests that miss each cache and find their data in the next, or in storage after the
    /// last; cold reads miss all of them. What-if sizes may be out of order: a cache no larger than one before it serves
    /// nothing.
    fn miss_shares(&self, direction: usize, work: &Workload) -> impl Iterator<Item = f64> {
        let count = self.shape.counts[direction];
        let is_cold = direction == READ && work.state == State::Cold;
        let held = move |index| {
            let bytes = if is_cold { 0.0 } else { self.cache(direction, index, OfCache::Size) };
            (bytes / work.unique_bytes as f64).min(1.0)
        };
        let mut so_far = 0.0_f64;
        (0..count).map(move |index| {
            so_far = so_far.max(held(index));
            let until = if index + 1 < count { so_far.max(held(index + 1)) } else { 1.0 };
            until - so_far
        })
    }

    /// Where the time of a request goes.
    pub(super) fn times(&self, work: &Workload) -> Times {
        use Common::{MemoryCost, ProcessorCache, Processors};
        use Common::{ReadCopyRate, WriteCopyFixed, WriteCopyRate};
        let size = work.size_mean as f64;
        let share = [work.read_frac, 1.0 - work.read_frac];
        // Reads are read ahead in long runs; writes are merged in any.
        let streamed = [self.streamed_reads(work), work.seq_frac];
        // Each further processor brings a cache of its own besides the one that all share.
        let further = f64::from(work.process_num).min(self.get(Processors)).max(1.0) - 1.0;
        let cached = self.get(ProcessorCache) * (1.0 + CACHE_PER_FURTHER_PROCESSOR * further);
        let in_memory = 1.0 - (cached / copied_over_bytes(work)).min(1.0);
        let slower = 1.0 + self.get(MemoryCost) * in_memory;
        let copy = |fixed_s, rate| fixed_s + size / self.get(rate) * slower;
        let copy = [
            copy(self.shape.read_copy_fixed_s, ReadCopyRate),
            copy(self.get(WriteCopyFixed), WriteCopyRate),
        ];
        let [mut storage, mut asked] = [[0.0; 2]; 2];
        // Of reads: the share that misses, and for each such read its time were it random, and a byte's.
        let [mut read_misses, mut alone_s, mut byte_s] = [0.0; 3];
        for direction in [READ, WRITE] {
            for (index, share) in self.miss_shares(direction, work).enumerate() {
                storage[direction] +=
                    share * self.miss_s(direction, index, size, streamed[direction]);
                let is_asked = index >= self.shape.first_to_storage[direction];
                asked[direction] += if is_asked { share } else { 0.0 };
                if direction == READ {
                    read_misses += share;
                    alone_s += share * self.miss_s(READ, index, size, 0.0);
                    byte_s += share / self.cache(READ, index, OfCache::MissRate);
                }
            }
        }
        let mut in_vain_bytes = 0.0;
        if let Some(window) = self.shape.read_ahead_pages {
            in_vain_bytes = Self::vain_bytes(work, window);
            // A random read of several pages finds some of them and waits for the rest in pieces, each of which
            // costs as much as a whole read: one more where a block of cached pages ends within the request.
            let pieces = (1.0 - read_misses) * (1.0 - 1.0 / pages(work)) * (1.0 - streamed[READ]);
            storage[READ] += byte_s * in_vain_bytes + alone_s * pieces;
        }
        let mut waited = self.shape.write_waited;
        if work.fsync_every > 0 {
            // Every write gets to storage: none stays dirty for long enough to be overwritten.
            (storage[WRITE], waited) = self.synced(work);
            asked[WRITE] = 1.0;
        }
        let weighed = |values: [f64; 2]| [share[READ] * values[READ], share[WRITE] * values[WRITE]];
        let copy = weighed(copy);
        Times {
            copy,
            storage: weighed(storage),
            waited,
            streamed: self.shape.read_ahead_pages.map_or(0.0, |_| streamed[READ]),
            read_misses,
            requests: weighed(asked),
            bytes: weighed([asked[READ] * (size + in_vain_bytes), asked[WRITE] * size]),
            write_back_s: self.write_back_s(work, copy[READ] + copy[WRITE]).unwrap_or(0.0),
        }
    }

    /// Processor time that the kernel's threads take to write back what a request wrote, seconds: at most what they need
    /// while storage takes it, beside processes that copy for `copied_s` a request. `None` where the kernel does not write
    /// back all the time, the law has no cache for writes, or fdatasyncs write.
    fn write_back_s(&self, work: &Workload, copied_s: f64) -> Option<f64> {
        let from = self.shape.written_back_from_bytes.filter(|_| work.fsync_every == 0)?;
        let written_s = self.written_s(work)?;
        let write_s = WRITE_BACK_COST * work.size_mean as f64 / self.get(Common::WriteCopyRate);
        let written_back = (1.0 - from / work.unique_bytes as f64).max(0.0);
        let rate = self.get(Common::WriteParallel) / written_s / self.get(Common::Processors);
        let busy = write_s * rate;
        let most = if busy < 1.0 { busy / (1.0 - busy) } else { f64::INFINITY };
        Some(((1.0 - work.read_frac) * written_back * write_s).min(most * copied_s))
    }

    /// Storage time of a write that gets there, seconds; `None` where the law has no cache for writes.
    fn written_s(&self, work: &Workload) -> Option<f64> {
        let last = self.shape.counts[WRITE].checked_sub(1)?;
        Some(self.miss_s(WRITE, last, work.size_mean as f64, work.seq_frac))
    }

    /// Storage time of a write that an fdatasync sends there, with its part of the fdatasync, seconds,
    /// and the share of it that the writer waits for: several writes are on their way at a time.
    fn synced(&self, work: &Workload) -> (f64, f64) {
        let every = f64::from(work.fsync_every);
        let written_s = self.written_s(work).unwrap_or(0.0);
        let parallel = self.get(Common::SyncParallel);
        let at_a_time = norm(FLUSHING_LOG2, every.recip(), parallel.recip()).recip().max(1.0);
        let sync_s = self.get(Common::Sync) / every;
        let spent_s = written_s + sync_s;
        (spent_s, (written_s / at_a_time + sync_s) / spent_s)
    }

    /// Storage is busy for this long per request: its work or its limits, the larger, seconds.
    fn busy_s(&self, times: &Times, depth: f64) -> f64 {
        let at_a_time = self.get(Common::DepthOverlap).powf(1.0 - 1.0 / depth);
        let working = times.storage[READ] / self.get(Common::ReadParallel)
            + times.storage[WRITE] / self.get(Common::WriteParallel);
        // Reads and writes add up where they share a limit; where each has its own, the larger counts.
        let shared = self.get(Common::LimitShared);
        let limited = |of: [f64; 2], reads, writes| {
            let (reads, writes) = (of[READ] / self.get(reads), of[WRITE] / self.get(writes));
            shared * (reads + writes) + (1.0 - shared) * norm(RESOURCES_LOG2, reads, writes)
        };
        let requests = limited(times.requests, Common::RequestLimit, Common::RequestLimit);
        let moving = limited(times.bytes, Common::ReadLimit, Common::WriteLimit);
        norm(RESOURCES_LOG2, working / at_a_time, norm(RESOURCES_LOG2, requests, moving))
    }

    /// Mean response time of a request, seconds.
    fn response_s(&self, times: &Times, process_num: f64, depth: f64) -> f64 {
        let queued = self.queued_s(times, process_num, depth);
        if depth <= 1.0 {
            return queued;
        }
        // A process copies what it has in flight one after the other. The rounded corner is divided
        // out at depth 1, which is to come out as it does without.
        let copied = self.copied_s(times, depth);
        let at_depth_1 = self.queued_s(times, process_num, 1.0);
        let corner = at_depth_1 / norm(RESOURCES_LOG2, at_depth_1, copied);
        depth * norm(RESOURCES_LOG2, queued / depth, copied) * corner
    }

    /// Processor time of a request with so many in flight, seconds.
    fn copied_s(&self, times: &Times, depth: f64) -> f64 {
        let cost = self.get(Common::DepthCopy).powf(1.0 - 1.0 / depth);
        cost * (times.copy[READ] + times.copy[WRITE])
    }

    /// Response time if each of the `process_num × depth` requests were of a process of its own, seconds.
    fn queued_s(&self, times: &Times, process_num: f64, depth: f64) -> f64 {
        let meanwhile =
            times.streamed * times.storage[READ].min(times.read_misses * times.copy[READ]);
        let wait = times.copy[READ] + times.copy[WRITE] + times.storage[READ] - meanwhile
            + times.waited * times.storage[WRITE];
        let busy = self.busy_s(times, depth);
        let alone = soft_max(wait, busy);
        let at_a_time = process_num * depth;
        let queue = (at_a_time.powf(QUEUEING) - 1.0) * (busy / alone).powf(QUEUEING);
        let queued = alone * (1.0 + queue).powf(1.0 / QUEUEING);
        // A single request never waits for another's copy: the rounded corner is divided out at one.
        let processors = self.get(Common::Processors);
        let copied_s = self.copied_s(times, depth);
        let shared_s = at_a_time * (copied_s + times.write_back_s) / processors;
        norm(RESOURCES_LOG2, queued, shared_s) * alone
            / norm(RESOURCES_LOG2, alone, copied_s / processors)
    }

    fn ln_requests_per_s(&self, times: &Times, work: &Workload) -> f64 {
        let (process_num, depth) = (f64::from(work.process_num), f64::from(work.depth));
        (process_num * depth / self.response_s(times, process_num, depth)).ln()
    }

    /// Natural logarithm of the throughput in bytes per second.
    pub(super) fn ln_throughput(&self, work: &Workload) -> f64 {
        let times = self.times(work);
        let even = self.ln_requests_per_s(&times, work);
        let rate = |part: &Workload| self.ln_requests_per_s(&self.times(part), part).exp();
        let uneven = self
            .shared_unevenly(work, &times)
            .map_or(even, |[ahead, others]| (rate(&ahead) + rate(&others)).ln());
        UNEVEN_WEIGHT * uneven + (1.0 - UNEVEN_WEIGHT) * even + (work.size_mean as f64).ln()
    }

    /// Where several processes with files of their own do not share a full page cache evenly: those that keep all of
    /// theirs cached, and the others as a workload that finds as much. Both are taken to have all processors, all of storage
    /// and all of what may be dirty to themselves: the former hardly use storage, the latter hardly the processors.
    fn shared_unevenly(&self, work: &Workload, times: &Times) -> Option<[Workload; 2]> {
        // Only a page cache is read ahead into, and it is the first cache then.
        self.shape.read_ahead_pages?;
        let cache = self.cache(READ, 0, OfCache::Size);
        let (count, unique) = (work.process_num, work.unique_bytes as f64);
        if work.layout != Layout::Private || work.state == State::Cold || unique <= cache {
            return None;
        }
        let copied_s = self.copied_s(times, 1.0);
        let each = unique / f64::from(count);
        let held = |ahead| (cache / each - f64::from(ahead)) / f64::from(count - ahead);
        // One process more gets ahead if the cache has room for its file and those who find less fall behind. Where no read
        // misses, or none waits for storage, the feedback is NaN or 0, and no process gets ahead.
        let gets_ahead = |ahead| {
            let missed = 1.0 - held(ahead);
            let waited_s = missed * times.storage[READ] / times.read_misses;
            let feedback = -missed.ln() * waited_s / (copied_s + waited_s);
            held(ahead) * f64::from(count - ahead) > 1.0 && feedback > UNEVEN_FEEDBACK_MIN
        };
        let ahead = (0..count - 1).find(|ahead| !gets_ahead(*ahead)).unwrap_or(count - 1);
        let part = |process_num, bytes: f64| Workload {
            process_num,
            unique_bytes: bytes as u64,
            ..work.clone()
        };
        let both =
            || [part(ahead, f64::from(ahead) * each), part(count - ahead, cache / held(ahead))];
        (ahead > 0).then(both)
    }

    /// By how much the throughput falls with each part of the time: minus d ln X / d ln part, of an even share of the caches.
    pub(super) fn elasticities(&self, work: &Workload) -> [f64; PARTS] {
        const STEP: f64 = 1e-4;
        let times = self.times(work);
        let base = self.ln_requests_per_s(&times, work);
        std::array::from_fn(|part| {
            (base - self.ln_requests_per_s(&times.scaled(part, 1.0 + STEP), work)) / STEP
        })
    }

    /// Processor time of a request, seconds.
    pub(super) fn copy_time_s(&self, work: &Workload) -> f64 {
        self.times(work).copy.iter().sum()
    }
}

/// The larger of both with a rounded corner; `wait` itself where `busy` is much smaller.
fn soft_max(wait: f64, busy: f64) -> f64 {
    let scale = SOFTNESS * wait;
    let over = (busy - wait) / scale;
    // ln(1 + e^x), without overflow.
    wait + scale * if over > 30.0 { over } else { over.exp().ln_1p() }
}

/// The larger of both with a rounded corner, symmetric: `(oneᵏ + otherᵏ)^(1/k)` with `k` the `doublings`-th power of two.
/// Squares and square roots take less time than other powers.
fn norm(doublings: u32, one: f64, other: f64) -> f64 {
    let (smaller, larger) = if one < other { (one, other) } else { (other, one) };
    if larger <= 0.0 {
        return 0.0;
    }
    let power = (0..doublings).fold(smaller / larger, |power, _| power * power);
    larger * (0..doublings).fold(1.0 + power, |root, _| root.sqrt())
}

/// Pages of a request.
fn pages(work: &Workload) -> f64 {
    (work.size_mean as f64 / PAGE_BYTES).max(1.0)
}

/// Share of reads that the kernel takes for parts of a stream. With [`SeqScope::Any`] a write between two reads moves
/// the position on, so the next read skips what was written; where that is little, the kernel goes on with the stream.
fn reads_in_sequence(work: &Workload) -> f64 {
    let is_broken = work.seq_scope == SeqScope::Any;
    let exponent =
        if is_broken { (pages(work) / BROKEN_BY_WRITES_PAGES).sqrt().min(1.0) } else { 0.0 };
    work.seq_frac * work.read_frac.powf(exponent)
}

/// Memory that copying goes over again and again, bytes: the data touched, and the buffers of requests
/// in flight but for one of each process.
fn copied_over_bytes(work: &Workload) -> f64 {
    let others = f64::from(work.process_num) * (f64::from(work.depth) - 1.0);
    work.unique_bytes as f64 + others * work.size_mean as f64
}
