//! The simulated device as a rig: simulated time for layout and warm-up, windows of a noisy law,
//! counters as a kernel would show them, histograms whose counts are the windows' requests.

use std::io;
use std::path::PathBuf;

use hdrhistogram::Histogram;
use ioscape_model::units::MIB;
use ioscape_model::{Hints, Spent, State, Workload};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::law::{Law, Share};
use super::noise::{NoiseStream, lognormal};
use super::spec::SimSpec;
use crate::error::{Error, Result};
use crate::rig::{Finished, Prepared, Rig, Window};

/// Response times are recorded in at most this many different values per class, level and window.
const DRAWS_MAX: u64 = 24;
/// Longest response time that is told apart, nanoseconds.
const RESPONSE_NS_MAX: u64 = 3_600_000_000_000;
/// `EIO` of Linux.
const EIO: i32 = 5;
const ROOM_FACTOR: u64 = 4;

/// A device that exists as a law only.
#[derive(Clone, Debug)]
pub struct SimRig {
    spec: SimSpec,
    seed: u64,
    now_s: f64,
    /// Length of each process's file.
    files_bytes: Vec<u64>,
    /// What of them the page cache holds.
    resident_bytes: u64,
    /// What of them is dirty.
    dirty_bytes: f64,
    written_bytes: u64,
    requests: u64,
    response_ns: [Histogram<u64>; 4],
    running: Option<Running>,
}

#[derive(Clone, Debug)]
struct Running {
    work: Workload,
    law: Law,
    noise: NoiseStream,
    rng: Xoshiro256PlusPlus,
    /// Parts of requests that did not make a whole one yet, for each of the law's shares.
    rests: Vec<f64>,
}

impl SimRig {
    /// A device of this description. The seed and a visit's own seed fix all chance.
    pub fn new(spec: SimSpec, seed: u64) -> Self {
        let empty =
            || Histogram::new_with_bounds(1, RESPONSE_NS_MAX, 3).expect("the bounds are in order");
        Self {
            spec,
            seed,
            now_s: 0.0,
            files_bytes: Vec::new(),
            resident_bytes: 0,
            dirty_bytes: 0.0,
            written_bytes: 0,
            requests: 0,
            response_ns: [empty(), empty(), empty(), empty()],
            running: None,
        }
    }
    /// The description.
    pub fn spec(&self) -> &SimSpec {
        &self.spec
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(format!("sim:{}", self.spec.name))
    }

    /// Size of the page cache and the dirty limit; both zero where there is no cache.
    fn cache_bytes(&self) -> (u64, u64) {
        let Some(cache) = self.spec.levels.iter().rev().nth(1) else { return (0, 0) };
        let read_bytes = cache.read_bytes.unwrap_or(0);
        (read_bytes, cache.write_bytes.unwrap_or(read_bytes))
    }

    /// Seconds that the storage takes for a stretch in requests of 1 MiB.
    fn storage_s(&self, read: bool, bytes: f64) -> f64 {
        let storage = self.spec.levels.last().expect("a checked device has a level");
        let request = MIB as f64;
        storage.cost(read, true).time_s(request) * bytes / request
    }

    fn room_bytes(&self) -> u64 {
        let largest = self.spec.ranges.unique_bytes.max;
        self.spec.room_bytes.unwrap_or(largest.saturating_mul(ROOM_FACTOR))
    }

    /// Makes the files as long as the workload needs; returns the bytes that were added.
    fn lay_out(&mut self, work: &Workload) -> Result<u64> {
        let processes = work.process_num as usize;
        let mut lengths = self.files_bytes.clone();
        lengths.resize(lengths.len().max(processes), 0);
        for length in &mut lengths[..processes] {
            *length = (*length).max(work.share_bytes());
        }
        let wanted_bytes: u64 = lengths.iter().sum();
        if wanted_bytes > self.room_bytes() {
            let free_bytes = self.room_bytes().saturating_mul(2);
            return Err(Error::NoRoom { path: self.path(), free_bytes, wanted_bytes });
        }
        let added_bytes = wanted_bytes - self.files_bytes.iter().sum::<u64>();
        self.files_bytes = lengths;
        self.written_bytes += added_bytes;
        Ok(added_bytes)
    }

    /// One request failed: the workers stop, as on a real device.
    fn fail(&mut self, work: &Workload) -> Error {
        self.running = None;
        Error::Request {
            direction: if work.read_frac > 0.0 { "read" } else { "write" },
            offset: 0,
            length: work.size_mean,
            path: self.path(),
            source: io::Error::from_raw_os_error(EIO),
        }
    }

    /// Processor time: what requests cost that never leave the fastest level.
    fn cpu_s(&self, law: &Law, ops: u64) -> Option<f64> {
        if !self.spec.counters {
            return None;
        }
        let fastest = law.shares.iter().map(|share| share.response_s).fold(f64::INFINITY, f64::min);
        Some(fastest * ops as f64)
    }

    fn fill_counters(&mut self, window: &mut Window, work: &Workload, law: &Law) {
        let (cache_bytes, dirty_limit_bytes) = self.cache_bytes();
        let [read_seq, read_rand, write_seq, write_rand] = window.classes.map(|class| class.bytes);
        let (read_bytes, write_bytes) = (read_seq + read_rand, write_seq + write_rand);
        let storage = self.spec.levels.len() - 1;
        let flushed_bytes = write_bytes as f64 * law.level_fraction(false, storage);
        self.written_bytes += flushed_bytes as u64;
        let dirty_max_bytes = dirty_limit_bytes.min(work.unique_bytes) as f64;
        self.dirty_bytes = (self.dirty_bytes + write_bytes as f64).min(dirty_max_bytes);
        self.resident_bytes = cache_bytes.min(work.unique_bytes);
        if !self.spec.counters {
            return;
        }
        let read_missed = read_bytes as f64 * law.level_fraction(true, storage);
        window.device_read_bytes = Some(read_missed as u64);
        window.dirtied_bytes = Some(flushed_bytes as u64);
        window.hit_fraction = Some((cache_bytes as f64 / work.unique_bytes as f64).min(1.0));
        window.resident_bytes = Some(self.resident_bytes);
        window.dirty_bytes = Some(self.dirty_bytes as u64);
        window.writeback_bytes = Some(flushed_bytes.min(self.dirty_bytes) as u64);
        window.stolen_fraction = Some(0.0);
    }
}

impl Rig for SimRig {
    fn engine(&self) -> &'static str {
        "sim"
    }

    fn hints(&self) -> Hints {
        Hints {
            read_cache_bytes: self.spec.hints.read_cache_bytes.map(|bytes| bytes as f64),
            write_cache_bytes: self.spec.hints.write_cache_bytes.map(|bytes| bytes as f64),
            counters: self.spec.counters,
            in_memory: self.spec.hints.in_memory,
            room_bytes: self.room_bytes(),
            layout_bytes_per_s: Some(MIB as f64 / self.storage_s(false, MIB as f64)),
        }
    }

    fn now_s(&self) -> f64 {
        self.now_s
    }

    fn prepare(&mut self, work: &Workload) -> Result<Prepared> {
        if work.rate > 0.0 || work.fsync_every > 0 || work.state == State::Cold {
            return Err(Error::Refused(
                "a simulated device knows closed loops on a warm cache only; leave out rate, \
                 fsync_every and state"
                    .to_owned(),
            ));
        }
        let quiesce = self.storage_s(false, self.dirty_bytes);
        self.dirty_bytes = 0.0;
        let added_bytes = self.lay_out(work)?;
        let layout = self.storage_s(false, added_bytes as f64);
        // What was written last is what the cache holds after a layout.
        let cache_bytes = self.cache_bytes().0;
        let held_bytes = (self.resident_bytes + added_bytes).min(cache_bytes);
        let missing_bytes = work.unique_bytes.min(cache_bytes).saturating_sub(held_bytes);
        let warm_up = self.storage_s(true, missing_bytes as f64);
        self.resident_bytes = held_bytes + missing_bytes;
        let spent_s = Spent { layout, quiesce, warm_up, ..Spent::default() };
        self.now_s += spent_s.total();
        Ok(Prepared { spent_s, warnings: Vec::new() })
    }

    fn start(&mut self, work: &Workload, seed: u64) -> Result<()> {
        // An odd factor keeps visits with small neighbouring seeds apart.
        let visit_seed = self.seed ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(visit_seed);
        let law = self.spec.law(work);
        let noise = NoiseStream::new(self.spec.noise, &mut rng);
        let rests = law.shares.iter().map(|_| rng.random()).collect();
        self.running = Some(Running { work: work.clone(), law, noise, rng, rests });
        self.mark();
        Ok(())
    }

    fn window(&mut self, length_s: f64) -> Result<Window> {
        let mut running = self.running.take().expect("a window is taken while workers run");
        self.now_s += length_s;
        let worked_s = running.noise.advance(length_s, &mut running.rng);
        let speed = worked_s / length_s;
        let mut window = Window { length_s, ..Window::default() };
        for (share, rest) in running.law.shares.iter().zip(&mut running.rests) {
            let made = running.law.ops_per_s * share.probability * worked_s;
            *rest += made;
            let ops = rest.floor();
            *rest -= ops;
            // In a closed loop requests take as much longer as fewer are made.
            let response_s = if speed > 0.0 { share.response_s / speed } else { 0.0 };
            let count = &mut window.classes[share.class as usize];
            count.ops += ops as u64;
            // Bytes count as they move, not when their request is complete: a request of a slow
            // machine may be longer than a visit.
            count.bytes += (made * running.work.size_mean as f64).round() as u64;
            count.time_s += ops * response_s;
            let slowed = Share { response_s, ..*share };
            let histogram = &mut self.response_ns[share.class as usize];
            let cv = self.spec.noise.response_cv;
            record(histogram, &slowed, ops as u64, cv, &mut running.rng);
        }
        self.requests += window.ops();
        if self.spec.error_after_requests.is_some_and(|limit| self.requests > limit) {
            return Err(self.fail(&running.work));
        }
        window.cpu_s = self.cpu_s(&running.law, window.ops());
        self.fill_counters(&mut window, &running.work, &running.law);
        self.running = Some(running);
        Ok(window)
    }

    fn mark(&mut self) {
        for histogram in &mut self.response_ns {
            histogram.reset();
        }
    }

    fn finish(&mut self, sync: bool) -> Result<Finished> {
        self.running = None;
        let sync_s = sync.then(|| self.storage_s(false, self.dirty_bytes));
        if let Some(sync_s) = sync_s {
            self.now_s += sync_s;
            self.written_bytes += self.dirty_bytes as u64;
            self.dirty_bytes = 0.0;
        }
        Ok(Finished { response_ns: self.response_ns.clone(), sync_s })
    }

    fn written_bytes(&self) -> u64 {
        self.written_bytes
    }
}

/// Records `ops` response times around the share's mean. Many requests share a draw, so that a
/// window of a million costs no more than one of twenty.
fn record(
    histogram: &mut Histogram<u64>,
    share: &Share,
    ops: u64,
    cv: f64,
    rng: &mut Xoshiro256PlusPlus,
) {
    let draws = ops.min(DRAWS_MAX);
    for draw in 0..draws {
        let count = ops / draws + u64::from(draw < ops % draws);
        let nanoseconds = share.response_s * 1e9 * lognormal(cv, rng);
        histogram.saturating_record_n((nanoseconds.round() as u64).max(1), count);
    }
}
