//! A directory on a real kernel, as a rig: lays out test files, brings the page cache into the
//! state a workload asks for, runs one worker thread per process and reads the kernel's counters
//! window by window.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ioscape_model::units::MIB;
use ioscape_model::{Hints, Host, Layout, Spent, Workload};

use crate::cachestat::resident;
use crate::clock::Clock;
use crate::counters::{Counters, ProcessIo, ProcessorTicks, Swapped};
use crate::engine::{Engine, null::Null, psync::Psync};
use crate::error::{Error, Result};
use crate::files::{OpenAccess, TestFiles};
use crate::request::Stream;
use crate::rig::{ClassCount, Finished, Prepared, Rig, Window};
use crate::run_id::RunId;
use crate::target::Directory;
use crate::worker::{Responses, Shared, Worker, histogram};

mod prepare;

/// Laid out first, to learn how fast that is.
const PROBE_BYTES: u64 = 64 * MIB;
/// Of a memory limit, what the page cache gets: the rest is the tool's own.
const CACHE_OF_LIMIT: f64 = 0.97;
/// How far ahead of a sequential stream residency is looked at, in read-aheads: past what the
/// kernel has just brought in for it.
const AHEAD_SKIP_READ_AHEADS: u64 = 2;
const AHEAD_SKIP_MIN_BYTES: u64 = MIB;
const AHEAD_BYTES: u64 = 4 * MIB;
/// Looking at the page cache may cost this share of the time.
const LOOK_SHARE: f64 = 0.01;

/// What makes the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// pread and pwrite.
    #[default]
    Psync,
    /// Nothing: the harness alone.
    Null,
}

/// A directory to run workloads in.
pub struct FileRig {
    clock: Clock,
    directory: Arc<Directory>,
    files: TestFiles,
    engine: EngineKind,
    interrupt: Arc<AtomicBool>,
    counters: Counters,
    hints: Hints,
    dirty_limit_bytes: u64,
    ahead_skip_bytes: u64,
    /// As it was when the previous point was prepared.
    swapped: Option<Swapped>,
    /// Of every file, the share that the cache was filled with and has kept; 0 where unknown.
    filled_bytes: Vec<u64>,
    /// How fast files are read in, where that was seen.
    read_in_bytes_per_s: Option<f64>,
    workload_written_bytes: u64,
    /// Of that, what was not dirty already, window by window.
    dirtied_bytes: u64,
    running: Option<Running>,
}

/// The workload that is running.
struct Running {
    work: Workload,
    shared: Arc<Shared>,
    workers: Vec<Worker>,
    /// One descriptor per file in use, for looking at the page cache.
    files: Vec<File>,
    before: Reading,
    next_ns: u64,
    looked: Looked,
}

/// Everything that is read at the end of a window.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    at_ns: u64,
    classes: [ClassCount; 4],
    io: Option<ProcessIo>,
    ticks: Option<ProcessorTicks>,
    cpu_s: f64,
}

/// What the page cache looked like lately.
#[derive(Clone, Copy, Debug, Default)]
struct Looked {
    hit_fraction: Option<f64>,
    resident_bytes: Option<u64>,
    next_ns: u64,
}

impl FileRig {
    /// A rig in `directory`. Nothing is written yet.
    ///
    /// # Errors
    /// When the filesystem does not say how much room it has.
    pub fn new(
        directory: Directory,
        run: RunId,
        host: &Host,
        clock: Clock,
        interrupt: Arc<AtomicBool>,
    ) -> Result<Self> {
        let directory = Arc::new(directory);
        raise_descriptor_limit();
        let files = TestFiles::new(Arc::clone(&directory), run, Arc::clone(&interrupt))?;
        let read_ahead_bytes = directory.describe().read_ahead_bytes.unwrap_or(0);
        let ahead_skip_bytes =
            (read_ahead_bytes * AHEAD_SKIP_READ_AHEADS).max(AHEAD_SKIP_MIN_BYTES);
        let memory_bytes = match host.memory_limit_bytes {
            Some(limit) => limit.min(host.memory_available_bytes) as f64 * CACHE_OF_LIMIT,
            None => host.memory_available_bytes as f64,
        };
        // Beyond the background limit write-back runs all the time and pages are dirtied anew for
        // every write; throttling begins halfway to the limit.
        let dirty_bytes = host.dirty_background_bytes;
        let hints = Hints {
            read_cache_bytes: Some(memory_bytes),
            write_cache_bytes: Some((dirty_bytes as f64).min(memory_bytes)),
            counters: directory.counters_trusted(),
            in_memory: directory.is_memory(),
            room_bytes: files.room_bytes(),
            layout_bytes_per_s: None,
        };
        Ok(Self {
            clock,
            directory,
            files,
            engine: EngineKind::default(),
            interrupt,
            counters: Counters::open(),
            hints,
            dirty_limit_bytes: host.dirty_limit_bytes,
            ahead_skip_bytes,
            swapped: None,
            filled_bytes: Vec::new(),
            read_in_bytes_per_s: None,
            workload_written_bytes: 0,
            dirtied_bytes: 0,
            running: None,
        })
    }

    /// Lays out a first stretch of at most `most_bytes`, to learn how fast that is.
    ///
    /// # Errors
    /// When the first file cannot be made.
    pub fn probe_layout(&mut self, most_bytes: u64) -> Result<()> {
        let probe_bytes = PROBE_BYTES.min(self.files.room_bytes() / 4).min(most_bytes) / MIB * MIB;
        if probe_bytes == 0 {
            return Ok(());
        }
        let began_s = self.clock.now_s();
        self.lay_out(0, probe_bytes)?;
        let took_s = self.clock.now_s() - began_s;
        self.hints.layout_bytes_per_s = Some(probe_bytes as f64 / took_s.max(1e-6));
        Ok(())
    }

    /// The same with another engine.
    #[must_use]
    pub fn with_engine(mut self, engine: EngineKind) -> Self {
        self.engine = engine;
        self
    }

    fn check(&self) -> Result<()> {
        if self.interrupt.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    fn cache_bytes(&self) -> u64 {
        self.hints.read_cache_bytes.map_or(u64::MAX, |bytes| bytes as u64)
    }

    fn engine_for(&self, stream: &Stream, number: usize, seed: u64) -> Result<Box<dyn Engine>> {
        match self.engine {
            EngineKind::Null => Ok(Box::new(Null::default())),
            EngineKind::Psync => {
                let file = self.files.open_again(number, OpenAccess::Buffered)?;
                let path = self.files.path(number);
                Ok(Box::new(Psync::new(file, path, stream.length_max(), seed)))
            }
        }
    }

    fn reading(&self, workers: &[Worker]) -> Reading {
        let mut classes = [ClassCount::default(); 4];
        for worker in workers {
            for (sum, class) in classes.iter_mut().zip(worker.published.counts()) {
                sum.ops += class.ops;
                sum.bytes += class.bytes;
                sum.time_s += class.time_s;
            }
        }
        Reading {
            at_ns: self.clock.now_ns(),
            classes,
            io: self.counters.process_io(),
            ticks: self.counters.processor_ticks(),
            cpu_s: self.counters.cpu_s(),
        }
    }

    /// How much of the data is resident, and what share of the requests will find theirs.
    ///
    /// Random requests are spread evenly: the resident share is their hit fraction. A sequential
    /// stream meets what lies ahead of it, beyond what read-ahead has just brought in.
    fn look(&self, running: &Running) -> Looked {
        // On an overlay or a network filesystem the file we hold may have no pages of its own.
        if !self.hints.counters && !self.hints.in_memory {
            return Looked { next_ns: u64::MAX, ..Looked::default() };
        }
        let began_ns = self.clock.now_ns();
        let share = running.work.share_bytes();
        let (mut resident_bytes, mut ahead_sum) = (0, 0.0);
        for (index, worker) in running.workers.iter().enumerate() {
            let (file, base) = running.place(index);
            let Some(cached) = resident(file, base..base + share) else {
                return Looked { next_ns: u64::MAX, ..Looked::default() };
            };
            resident_bytes += cached.resident_bytes;
            let from = worker.published.position() + self.ahead_skip_bytes;
            ahead_sum += ahead(file, from, base + share)
                .unwrap_or(cached.resident_bytes as f64 / share as f64);
        }
        let workers = running.workers.len() as f64;
        let even = resident_bytes as f64 / (share as f64 * workers);
        // Runs of requests begin at random places: only a stream that is nearly all sequential
        // stays long enough in one place to meet what lies ahead.
        let stream = running.work.seq_frac.powi(8);
        let hit = even * (1.0 - stream) + ahead_sum / workers * stream;
        let cost_ns = self.clock.now_ns() - began_ns;
        Looked {
            hit_fraction: Some(hit.min(1.0)),
            resident_bytes: Some(resident_bytes),
            next_ns: began_ns + (cost_ns as f64 / LOOK_SHARE) as u64,
        }
    }

    fn stop(&mut self) -> Result<Option<(Running, Responses)>> {
        let Some(mut running) = self.running.take() else { return Ok(None) };
        running.shared.stop();
        let mut responses: Responses = std::array::from_fn(|_| histogram());
        let mut failed = None;
        for worker in running.workers.drain(..) {
            let written = worker.published.counts()[2..].iter().map(|c| c.bytes).sum::<u64>();
            self.workload_written_bytes += written;
            match worker.join() {
                Ok(theirs) => {
                    for (sum, one) in responses.iter_mut().zip(theirs) {
                        sum.add(one).expect("all histograms have the same bounds");
                    }
                }
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(Some((running, responses))), Err)
    }
}

impl Running {
    /// Which file a worker's share lies in, and from where.
    fn place(&self, worker: usize) -> (&File, u64) {
        let (number, base) = place(&self.work, worker as u32);
        (&self.files[number], base)
    }
}

/// Number of the file that a worker's share lies in, and where in it the share begins.
fn place(work: &Workload, worker: u32) -> (usize, u64) {
    match work.layout {
        Layout::Private => (worker as usize, 0),
        Layout::Shared => (0, u64::from(worker) * work.share_bytes()),
    }
}

/// A worker needs a few descriptors: as many as the system allows anyway.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    setrlimit(Resource::Nofile, raised).ok(); // small workloads do without
}

/// The files of a workload and how much of each it touches, bytes.
fn shares(work: &Workload) -> Vec<(usize, u64)> {
    let share = work.share_bytes();
    let processes = work.process_num as usize;
    match work.layout {
        Layout::Private => (0..processes).map(|number| (number, share)).collect(),
        Layout::Shared => vec![(0, share * processes as u64)],
    }
}

/// Resident share of what a stream is about to reach from `from` on; its share ends at `end`.
fn ahead(file: &File, from: u64, end: u64) -> Option<f64> {
    let to = (from + AHEAD_BYTES).min(end);
    if to < from + AHEAD_BYTES / 4 {
        return None;
    }
    let cached = resident(file, from..to)?;
    Some(cached.resident_bytes as f64 / (to - from) as f64)
}

impl Rig for FileRig {
    fn engine(&self) -> &'static str {
        match self.engine {
            EngineKind::Psync => "psync",
            EngineKind::Null => "null",
        }
    }

    fn hints(&self) -> Hints {
        self.hints.clone()
    }

    fn now_s(&self) -> f64 {
        self.clock.now_s()
    }

    fn prepare(&mut self, work: &Workload) -> Result<Prepared> {
        let shares = shares(work);
        let mut prepared = Prepared::default();
        let mut since_s = self.clock.now_s();
        let mut lap = |clock: &Clock| {
            let now_s = clock.now_s();
            let lap_s = now_s - since_s;
            since_s = now_s;
            lap_s
        };
        let mut spent_s = Spent::default();
        for (number, length) in &shares {
            self.lay_out(*number, *length)?;
        }
        spent_s.layout = lap(&self.clock);
        prepared.warnings.extend(self.swapping());
        prepared.warnings.extend(self.quiesce()?);
        spent_s.quiesce = lap(&self.clock);
        self.check()?;
        self.clear_others(&shares)?;
        self.bring_into_state(work, &shares)?;
        spent_s.warm_up = lap(&self.clock);
        self.check()?;
        prepared.spent_s = spent_s;
        Ok(prepared)
    }

    fn start(&mut self, work: &Workload, seed: u64) -> Result<()> {
        let shared = Shared::new();
        let mut files = Vec::new();
        for (number, _) in shares(work) {
            files.push(self.files.open_again(number, OpenAccess::Buffered)?);
        }
        let mut ready = Vec::new();
        for worker in 0..work.process_num {
            let (number, base) = place(work, worker);
            let stream = Stream::new(work, worker, base, seed);
            let engine = self.engine_for(&stream, number, seed ^ u64::from(worker))?;
            ready.push((stream, engine));
        }
        let gate = shared.hold();
        let mut workers = Vec::new();
        for (stream, engine) in ready {
            let spawned = Worker::spawn(Arc::clone(&shared), stream, engine);
            workers.push(spawned.map_err(|error| {
                shared.stop();
                Error::path("start a thread for", self.directory.path(), error)
            })?);
        }
        drop(gate);
        let before = self.reading(&workers);
        let work = work.clone();
        let looked = Looked::default();
        let next_ns = before.at_ns;
        self.running = Some(Running { work, shared, workers, files, before, next_ns, looked });
        Ok(())
    }

    fn window(&mut self, length_s: f64) -> Result<Window> {
        let mut running = self.running.take().expect("a window follows a start");
        running.next_ns = running.before.at_ns + (length_s * 1e9) as u64;
        self.clock.sleep_until(running.next_ns);
        let now = self.reading(&running.workers);
        if now.at_ns >= running.looked.next_ns {
            running.looked = self.look(&running);
        }
        let before = std::mem::replace(&mut running.before, now);
        let looked = running.looked;
        let failed = running.shared.has_failed();
        self.running = Some(running);
        if self.check().is_err() {
            self.stop().ok(); // a request that a signal cut short is no error of the storage
            return Err(Error::Interrupted);
        }
        if failed {
            self.stop()?; // brings the worker's error out
        }
        let dirty = self.counters.dirty();
        let io = before.io.zip(now.io).filter(|_| self.hints.counters);
        if let Some((then, now_io)) = io {
            // The kernel counts whole folios: no more was dirtied than was written.
            let written = |reading: &Reading| reading.classes[2].bytes + reading.classes[3].bytes;
            let dirtied = now_io.dirtied_bytes.saturating_sub(then.dirtied_bytes);
            self.dirtied_bytes += dirtied.min(written(&now).saturating_sub(written(&before)));
        }
        Ok(Window {
            length_s: (now.at_ns - before.at_ns) as f64 * 1e-9,
            classes: std::array::from_fn(|class| {
                let (then, now) = (before.classes[class], now.classes[class]);
                ClassCount {
                    ops: now.ops.saturating_sub(then.ops),
                    bytes: now.bytes.saturating_sub(then.bytes),
                    time_s: now.time_s - then.time_s,
                }
            }),
            device_read_bytes: io
                .map(|(then, now)| now.device_read_bytes.saturating_sub(then.device_read_bytes)),
            dirtied_bytes: io
                .map(|(then, now)| now.dirtied_bytes.saturating_sub(then.dirtied_bytes)),
            hit_fraction: looked.hit_fraction,
            resident_bytes: looked.resident_bytes,
            dirty_bytes: dirty.map(|dirty| dirty.dirty_bytes),
            writeback_bytes: dirty.map(|dirty| dirty.writeback_bytes),
            cpu_s: Some(now.cpu_s - before.cpu_s),
            stolen_fraction: before
                .ticks
                .zip(now.ticks)
                .and_then(|(then, now)| now.stolen_fraction_since(then)),
        })
    }

    fn mark(&mut self) {
        if let Some(running) = &self.running {
            running.shared.mark();
        }
    }

    fn finish(&mut self, sync: bool) -> Result<Finished> {
        let Some((running, response_ns)) = self.stop()? else {
            return Ok(Finished {
                response_ns: std::array::from_fn(|_| histogram()),
                sync_s: None,
            });
        };
        let mut sync_s = None;
        if sync && !self.directory.is_memory() && self.engine != EngineKind::Null {
            let began_s = self.clock.now_s();
            for file in &running.files {
                rustix::fs::fdatasync(file)
                    .map_err(|error| Error::path("fdatasync", self.directory.path(), error))?;
            }
            sync_s = Some(self.clock.now_s() - began_s);
        }
        Ok(Finished { response_ns, sync_s })
    }

    /// What reaches storage: pages count once for every time they were made dirty, however often
    /// they were written in between.
    fn written_bytes(&self) -> u64 {
        let of_workloads =
            if self.hints.counters { self.dirtied_bytes } else { self.workload_written_bytes };
        self.files.written_bytes() + of_workloads
    }
}

impl Drop for FileRig {
    fn drop(&mut self) {
        self.stop().ok();
    }
}
