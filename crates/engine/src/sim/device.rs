//! The device with a known law as a rig: simulated time for layout and warm-up, windows of a noisy law,
//! counters as a kernel would show them, histograms whose counts are the windows' requests.

use std::io;

use hdrhistogram::Histogram;
use ioscape_model::units::MIB;
use ioscape_model::{Access, Hints, Spent, State, Workload};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::arrivals::Queue;
use super::files::{Files, histogram, stretch_s};
use super::law::{Performance, Share};
use super::noise::{NoiseStream, lognormal, visit_seed};
use super::reserve::Used;
use super::spec::SimSpec;
use super::trouble::Troubled;
use crate::error::{Error, Result};
use crate::rig::{Finished, Prepared, Rig, Window};

/// Response times are recorded in at most this many different values per class, level and window.
const DRAWS_MAX: u64 = 24;
/// `EIO` of Linux.
const EIO: i32 = 5;

/// A device that exists as a law only.
#[derive(Clone, Debug)]
pub(super) struct LawRig {
    spec: SimSpec,
    seed: u64,
    now_s: f64,
    files: Files,
    /// What of them the page cache holds.
    resident_bytes: u64,
    /// What of them is dirty.
    dirty_bytes: f64,
    requests: u64,
    response_ns: [Histogram<u64>; 4],
    /// Of the latest open loop.
    latency_ns: Option<Histogram<u64>>,
    running: Option<Running>,
    troubled: Troubled,
    /// Of its reserve.
    used: Used,
}

#[derive(Clone, Debug)]
struct Running {
    work: Workload,
    performance: Performance,
    /// In an open loop.
    queue: Option<Queue>,
    noise: NoiseStream,
    rng: Xoshiro256PlusPlus,
    /// Parts of requests that did not make a whole one yet, for each of the law's shares.
    rests: Vec<f64>,
}

impl LawRig {
    /// A device of this description. The seed and a visit's own seed fix all chance.
    pub(super) fn new(spec: SimSpec, seed: u64) -> Self {
        let files = Files::new(&spec);
        Self {
            spec,
            seed,
            now_s: 0.0,
            files,
            resident_bytes: 0,
            dirty_bytes: 0.0,
            requests: 0,
            response_ns: std::array::from_fn(|_| histogram()),
            latency_ns: None,
            running: None,
            troubled: Troubled::default(),
            used: Used::default(),
        }
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
        stretch_s(storage.cost(read, true), bytes)
    }

    /// As the storage is now.
    fn performance(&self, work: &Workload) -> Performance {
        let spec = self.spec.with_used(self.used, work);
        let trouble = &self.spec.trouble;
        if trouble.is_none() {
            return spec.performance(work);
        }
        spec.at_speed(self.troubled.speed(trouble, self.now_s)).performance(work)
    }

    /// Whether it stays as it is while it runs.
    fn is_constant(&self) -> bool {
        self.spec.trouble.is_none() && self.spec.reserve.is_none()
    }

    /// Getting ready writes what is missing and what was dirty; the rest of that time is rest.
    fn use_reserve(&mut self, spent_s: &Spent, written_bytes: f64) {
        let Some(reserve) = self.spec.reserve else { return };
        self.used.work(&reserve, spent_s.layout + spent_s.quiesce, written_bytes);
        self.used.rest(&reserve, spent_s.warm_up);
    }

    /// One request failed: the workers stop, as on a real device.
    fn fail(&mut self, work: &Workload) -> Error {
        self.running = None;
        Error::Request {
            direction: if work.read_frac > 0.0 { "read" } else { "write" },
            offset: 0,
            length: work.size_mean,
            path: self.files.path(),
            source: io::Error::from_raw_os_error(EIO),
        }
    }

    /// Processor time: what requests cost that never leave the fastest level.
    fn cpu_s(&self, performance: &Performance, ops: u64) -> Option<f64> {
        if !self.spec.counters {
            return None;
        }
        let fastest =
            performance.shares.iter().map(|share| share.response_s).fold(f64::INFINITY, f64::min);
        Some(fastest * ops as f64)
    }

    fn closed_window(&mut self, length_s: f64, running: &mut Running) -> Window {
        let trouble = self.spec.trouble;
        let slots = f64::from(running.work.process_num) * f64::from(running.work.depth);
        let pace = trouble.pace(running.performance.ops_per_s, slots);
        let worked_s = pace * running.noise.advance(length_s, &mut running.rng, &mut |_| {});
        let speed = worked_s / length_s;
        let mut window = Window { length_s, ..Window::default() };
        for (share, rest) in running.performance.shares.iter().zip(&mut running.rests) {
            let made = running.performance.ops_per_s * share.probability * worked_s;
            *rest += made;
            let ops = rest.floor();
            *rest -= ops;
            let drawn = ops as u64;
            let done = self.troubled.done(&trouble, share.class, drawn, running.work.size_mean);
            let failed_bytes = (drawn - done) * running.work.size_mean;
            let ops = done as f64;
            // In a closed loop requests take as much longer as fewer are made.
            let response_s = if speed > 0.0 { share.response_s / speed } else { 0.0 };
            let count = &mut window.classes[share.class as usize];
            count.ops += done;
            // Bytes count as they move, not when their request is complete: a request of a slow
            // machine may be longer than a visit.
            let bytes = (made * running.work.size_mean as f64).round() as u64;
            count.bytes += bytes.saturating_sub(failed_bytes);
            count.time_s += ops * response_s;
            let slowed = Share { response_s, ..*share };
            let histogram = &mut self.response_ns[share.class as usize];
            let cv = self.spec.noise.response_cv;
            record(histogram, &slowed, done, cv, &mut running.rng);
        }
        window
    }

    /// The queue goes back to where it came from.
    fn open_window(&mut self, length_s: f64, mut queue: Queue, running: &mut Running) -> Window {
        let mut begun = Vec::new();
        running.noise.advance(length_s, &mut running.rng, &mut |stretch| {
            queue.pass(stretch, &mut |some| begun.push(some));
        });
        running.queue = Some(queue);
        let mut window = Window { length_s, ..Window::default() };
        let trouble = self.spec.trouble;
        for mut some in begun {
            let share = pick(&running.performance.shares, running.rng.random());
            let response_s =
                share.response_s * lognormal(self.spec.noise.response_cv, &mut running.rng);
            let size = running.work.size_mean;
            some.count = self.troubled.done(&trouble, share.class, some.count, size);
            let count = &mut window.classes[share.class as usize];
            count.ops += some.count;
            count.bytes += some.count * running.work.size_mean;
            count.time_s += some.count as f64 * response_s;
            let ns = |seconds: f64| ((seconds * 1e9).round() as u64).max(1);
            let response = &mut self.response_ns[share.class as usize];
            response.saturating_record_n(ns(response_s), some.count);
            if let Some(latency) = &mut self.latency_ns {
                latency.saturating_record_n(ns(some.waited_s + response_s), some.count);
            }
        }
        window
    }

    /// Workers stop in the middle of a window when no more may be written.
    fn stop_at_ceiling(&mut self) -> Result<()> {
        let Some(most_bytes) = self.files.written_max_bytes else { return Ok(()) };
        let dirty_bytes = self.dirty_bytes as u64;
        if self.files.written_bytes + dirty_bytes <= most_bytes {
            return Ok(());
        }
        self.files.written_bytes = self.files.written_bytes.min(most_bytes);
        self.dirty_bytes = dirty_bytes.min(most_bytes - self.files.written_bytes) as f64;
        Err(Error::MaxWritten)
    }

    fn fill_counters(&mut self, window: &mut Window, work: &Workload, performance: &Performance) {
        let (cache_bytes, dirty_limit_bytes) = self.cache_bytes();
        let [read_seq, read_rand, write_seq, write_rand] = window.classes.map(|class| class.bytes);
        let (read_bytes, write_bytes) = (read_seq + read_rand, write_seq + write_rand);
        let storage = self.spec.levels.len() - 1;
        let flushed_bytes = write_bytes as f64 * performance.level_fraction(false, storage);
        self.files.written_bytes += flushed_bytes as u64;
        let dirty_max_bytes = match (work.access, work.fsync_every) {
            (Access::Direct, _) => 0.0,
            (Access::Buffered, 0) => dirty_limit_bytes.min(work.unique_bytes) as f64,
            (Access::Buffered, every) => {
                f64::from(every) * f64::from(work.process_num) * work.size_mean as f64
            }
        };
        self.dirty_bytes = (self.dirty_bytes + write_bytes as f64).min(dirty_max_bytes);
        let is_cached = work.access == Access::Buffered && work.state == State::Warm;
        self.resident_bytes = if is_cached { cache_bytes.min(work.unique_bytes) } else { 0 };
        if !self.spec.counters {
            return;
        }
        let read_missed = read_bytes as f64 * performance.level_fraction(true, storage);
        window.device_read_bytes = Some(read_missed as u64);
        window.dirtied_bytes = Some(flushed_bytes as u64);
        window.hit_fraction = Some(self.resident_bytes as f64 / work.unique_bytes as f64);
        window.resident_bytes = Some(self.resident_bytes);
        window.dirty_bytes = Some(self.dirty_bytes as u64);
        window.writeback_bytes = Some(flushed_bytes.min(self.dirty_bytes) as u64);
        window.stolen_fraction = Some(0.0);
    }
}

impl Rig for LawRig {
    fn engine(&self) -> &'static str {
        "sim"
    }

    fn hints(&self) -> Hints {
        let layout_bytes_per_s = Some(MIB as f64 / self.storage_s(false, MIB as f64));
        Hints { layout_bytes_per_s, ..Hints::default() }
    }

    fn now_s(&self) -> f64 {
        self.now_s
    }

    fn prepare(&mut self, work: &Workload) -> Result<Prepared> {
        let dirty_bytes = std::mem::take(&mut self.dirty_bytes);
        let quiesce = self.storage_s(false, dirty_bytes);
        self.files.written_bytes += dirty_bytes as u64;
        let added_bytes = self.files.lay_out(work)?;
        let layout = self.storage_s(false, added_bytes as f64);
        // What was written last is what the cache holds after a layout.
        let cache_bytes = match (work.access, work.state) {
            (Access::Buffered, State::Warm) => self.cache_bytes().0,
            _ => 0,
        };
        let held_bytes = (self.resident_bytes + added_bytes).min(cache_bytes);
        let missing_bytes = work.unique_bytes.min(cache_bytes).saturating_sub(held_bytes);
        let warm_up = self.storage_s(true, missing_bytes as f64);
        self.resident_bytes = held_bytes + missing_bytes;
        let spent_s = Spent { layout, quiesce, warm_up, ..Spent::default() };
        self.use_reserve(&spent_s, dirty_bytes + added_bytes as f64);
        self.now_s += spent_s.total();
        Ok(Prepared { spent_s, warnings: Vec::new() })
    }

    fn start(&mut self, work: &Workload, seed: u64) -> Result<()> {
        let visit_seed = visit_seed(self.seed, seed);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(visit_seed);
        self.troubled.begin(&self.spec.trouble, &mut rng);
        let performance = self.performance(work);
        let noise = NoiseStream::new(self.spec.noise, &mut rng);
        let rests = performance.shares.iter().map(|_| rng.random()).collect();
        let queue = Queue::new(work, &performance, visit_seed);
        // What queues in an open loop waits outside: inside, requests take as long as one alone.
        let performance = match queue {
            Some(_) => self.performance(&Workload { process_num: 1, depth: 1, ..work.clone() }),
            None => performance,
        };
        self.latency_ns = queue.as_ref().map(|_| histogram());
        self.running = Some(Running { work: work.clone(), performance, queue, noise, rng, rests });
        self.mark();
        Ok(())
    }

    fn window(&mut self, length_s: f64) -> Result<Window> {
        let mut running = self.running.take().expect("a window is taken while workers run");
        self.now_s += length_s;
        if running.queue.is_none() && !self.is_constant() {
            running.performance = self.performance(&running.work);
        }
        let mut window = match running.queue.take() {
            Some(queue) => self.open_window(length_s, queue, &mut running),
            None => self.closed_window(length_s, &mut running),
        };
        self.requests += window.ops();
        let storage = self.spec.levels.len() - 1;
        let of_storage = running.performance.shares.iter().filter(|share| share.level == storage);
        let fraction: f64 = of_storage.map(|share| share.probability).sum();
        self.troubled.moved_bytes += window.bytes() as f64 * fraction;
        if let Some(reserve) = &self.spec.reserve {
            let [.., write_seq, write_rand] = window.classes;
            let written_bytes = (write_seq.bytes + write_rand.bytes) as f64;
            let flushed_bytes = written_bytes * running.performance.level_fraction(false, storage);
            self.used.pass(reserve, (length_s, fraction), flushed_bytes);
        }
        if self.spec.error_after_requests.is_some_and(|limit| self.requests > limit) {
            return Err(self.fail(&running.work));
        }
        window.cpu_s = self.cpu_s(&running.performance, window.ops());
        self.fill_counters(&mut window, &running.work, &running.performance);
        self.running = Some(running);
        self.stop_at_ceiling()?;
        Ok(window)
    }

    fn mark(&mut self) {
        self.response_ns.iter_mut().chain(&mut self.latency_ns).for_each(Histogram::reset);
    }

    fn finish(&mut self, sync: bool) -> Result<Finished> {
        self.running = None;
        let sync_s = sync.then(|| self.storage_s(false, self.dirty_bytes));
        if let Some(sync_s) = sync_s {
            self.now_s += sync_s;
            self.files.written_bytes += self.dirty_bytes as u64;
            self.dirty_bytes = 0.0;
        }
        Ok(Finished {
            response_ns: self.response_ns.clone(),
            latency_ns: self.latency_ns.clone(),
            warnings: vec![],
            sync_s,
            failed: self.troubled.take(),
            verified_bytes: None,
            began_ns: None,
            ranks: None,
        })
    }

    fn written_bytes(&self) -> u64 {
        self.files.written_bytes
    }

    fn limit_written(&mut self, most_bytes: u64) {
        self.files.written_max_bytes = Some(most_bytes);
    }

    fn may_write_bytes(&self) -> u64 {
        self.files.may_write_bytes(self.dirty_bytes as u64)
    }
}

/// The share that a number from 0 to 1 falls into.
fn pick(shares: &[Share], mut at: f64) -> Share {
    let found = shares.iter().find(|share| {
        at -= share.probability;
        at < 0.0
    });
    *found.or(shares.last()).expect("a workload has requests")
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
