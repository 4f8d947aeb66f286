//! A directory or block device on a real kernel, as a rig: lays out test files, brings the page
//! cache into the state a workload asks for, runs one worker thread per process and reads the
//! kernel's counters window by window.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ioscape_model::units::MIB;
use ioscape_model::{Access, Hints, Host, Spent, Warning, Workload};

use crate::clock::{Clock, Stopwatch};
use crate::counters::{Counters, Swapped};
use crate::error::{Error, Result};
use crate::failures;
use crate::files::{BLOCK_BYTES, OpenAccess, TestFiles};
use crate::harness;
use crate::memory;
use crate::placement::{Ahead, Placement};
use crate::request::Stream;
use crate::rig::{ClassCount, Finished, Prepared, Rig, Window};
use crate::run_id::RunId;
use crate::schedule::Schedule;
use crate::tally::Together;
use crate::target::Ground;
use crate::worker::{Shared, Task, Worker};
use ceiling::{Ceiling, Spending, dirtied_bytes};
use cold::Cold;
use engines::{Equipment, Rings, Seat};
use look::{Looked, resident_bytes};
use places::{place, place_of_file, raise_descriptor_limit, shares};
use reading::Reading;
use verified::Ledgers;
use watch::Watch;

mod ceiling;
mod cold;
mod direct;
mod engines;
mod look;
mod places;
mod prepare;
mod reading;
mod served;
mod verified;
mod watch;

pub use engines::EngineKind;
pub use places::Part;

/// Laid out first, to learn how fast that is.
const PROBE_BYTES: u64 = 64 * MIB;
const PROBE_MAX_BYTES: u64 = 512 * MIB;
/// A stretch that takes so long tells the rate, seconds.
const PROBE_S: f64 = 0.3;
/// Of a memory limit, what the hint takes for the page cache. Borders lay lower, at 0.84 to 0.87 of limits:
/// see `SHARE_OF_LIMIT` in ioscape-analysis.
const CACHE_OF_LIMIT: f64 = 0.97;
/// How far ahead of a sequential stream residency is looked at, in read-aheads: past what the
/// kernel has just brought in for it.
const AHEAD_SKIP_READ_AHEADS: u64 = 2;
const AHEAD_SKIP_MIN_BYTES: u64 = MIB;

/// A directory or block device to run workloads on.
pub struct FileRig {
    clock: Clock,
    /// Calibrated once; each workload has one of its own that keeps this rate.
    stopwatch: Stopwatch,
    ground: Ground,
    files: TestFiles,
    /// The processes that run here.
    part: Part,
    engine: EngineKind,
    /// What that came to for the latest workload.
    engine_name: &'static str,
    rings: Rings,
    placement: Placement,
    harness_s_per_op: Option<f64>,
    /// Of the device's sectors.
    sector_bytes: Option<u64>,
    interrupt: Arc<AtomicBool>,
    counters: Counters,
    hints: Hints,
    dirty_limit_bytes: u64,
    /// Checked while it is relied on.
    memory_limit_set_bytes: Option<u64>,
    ahead_skip_bytes: u64,
    /// As it was when the previous point was prepared.
    swapped: Option<Swapped>,
    /// Of every file, the share that the cache was filled with and has kept; 0 where unknown.
    filled_bytes: Vec<u64>,
    /// Shares of files that a server read in last, for the latest visit that reached it.
    served: Vec<(usize, u64)>,
    /// How fast files are laid out, and read in, where that was seen.
    laid_out_bytes_per_s: Option<f64>,
    read_in_bytes_per_s: Option<f64>,
    /// By the workloads; what was dirty already is left out where that is known.
    workload_written_bytes: u64,
    ceiling: Ceiling,
    running: Option<Running>,
    ledgers: Option<Ledgers>,
}

/// The workload that is running.
struct Running {
    work: Workload,
    part: Part,
    shared: Arc<Shared>,
    workers: Vec<Worker>,
    /// One descriptor per file in use, for looking at the page cache.
    files: Vec<File>,
    /// Those of the workers, until they are done.
    _held: Vec<Arc<File>>,
    before: Reading,
    /// As it was when the workers began.
    at_start: Reading,
    /// As it was when a request had last succeeded.
    succeeded: Reading,
    /// Resident then, where that tells whether access is direct.
    resident_at_start_bytes: Option<u64>,
    warnings: Vec<Warning>,
    watch: Watch,
    looked: Looked,
    spending: Spending,
    cold: Option<Cold>,
}

/// The workers, before they begin.
struct ReadyWorkers {
    watch: Stopwatch,
    members: Vec<Task>,
    files: Vec<Arc<File>>,
    warnings: Vec<Warning>,
}

impl FileRig {
    /// A rig on `ground`. Nothing is written yet.
    ///
    /// # Errors
    /// When the filesystem does not say how much room it has.
    pub fn new(
        ground: impl Into<Ground>,
        run: RunId,
        host: &Host,
        clock: Clock,
        interrupt: Arc<AtomicBool>,
    ) -> Result<Self> {
        let ground = ground.into();
        raise_descriptor_limit();
        let files = TestFiles::new(ground.clone(), run, Arc::clone(&interrupt))?;
        let described = ground.describe();
        let read_ahead_bytes = described.read_ahead_bytes.unwrap_or(0);
        let sector_bytes = described.sector_bytes;
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
            counters: ground.counters_trusted(),
            in_memory: ground.is_memory(),
            room_bytes: files.room_bytes(),
            layout_bytes_per_s: None,
        };
        Ok(Self {
            clock,
            stopwatch: Stopwatch::calibrated(),
            ceiling: Ceiling::over(&ground, host.cpus),
            ground,
            files,
            part: Part::ALL,
            engine: EngineKind::default(),
            engine_name: EngineKind::default().name(),
            rings: Rings::probed(),
            placement: Placement::default(),
            harness_s_per_op: host.harness_s_per_op,
            sector_bytes,
            interrupt,
            counters: Counters::open(),
            hints,
            dirty_limit_bytes: memory::machine_dirty_limit_bytes(host),
            memory_limit_set_bytes: host.memory_limit_set_bytes,
            ahead_skip_bytes,
            swapped: None,
            filled_bytes: Vec::new(),
            served: Vec::new(),
            laid_out_bytes_per_s: None,
            read_in_bytes_per_s: None,
            workload_written_bytes: 0,
            running: None,
            ledgers: None,
        })
    }

    /// Lays out a first stretch of at most `most_bytes`, to learn how fast that is: as much as takes
    /// `PROBE_S`, for a cache in the device takes the first of it much faster than the rest.
    ///
    /// # Errors
    /// When the first file cannot be made.
    pub fn probe_layout(&mut self, most_bytes: u64) -> Result<()> {
        if self.ground.is_read_only() {
            // Only whether direct access is there.
            return self.lay_out(0, BLOCK_BYTES);
        }
        let most_bytes = most_bytes.min(PROBE_MAX_BYTES).min(self.files.room_bytes() / 4);
        let most_bytes = most_bytes / MIB * MIB;
        let mut laid_out_bytes = 0;
        while laid_out_bytes < most_bytes {
            let end_bytes = (2 * laid_out_bytes).max(PROBE_BYTES).min(most_bytes);
            let began_s = self.clock.now_s();
            self.lay_out(0, end_bytes)?;
            let took_s = (self.clock.now_s() - began_s).max(1e-6);
            let added_bytes = (end_bytes - laid_out_bytes) as f64;
            self.hints.layout_bytes_per_s = Some(added_bytes / took_s);
            laid_out_bytes = end_bytes;
            if took_s >= PROBE_S {
                break;
            }
        }
        Ok(())
    }

    /// Sets the engine that makes the requests.
    #[must_use]
    pub fn with_engine(mut self, engine: EngineKind) -> Self {
        self.engine = engine;
        self.engine_name = engine.name();
        self
    }

    /// Sets the processors that workers run on.
    #[must_use]
    pub fn with_placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// A rig that runs only these processes of each workload, on files that all ranks have together.
    #[must_use]
    pub fn with_part(mut self, part: Part) -> Self {
        self.part = part;
        self.files.be_part(part.rank, part.ranks);
        self
    }

    fn check(&self) -> Result<()> {
        if self.interrupt.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    fn cache_bytes(&self) -> u64 {
        self.hints.read_cache_bytes.map_or(u64::MAX, |bytes| bytes as u64)
    }

    /// What each process of the workload has to do, and with what.
    fn crew(&self, work: &Workload, seed: u64) -> Result<ReadyWorkers> {
        let watch = self.stopwatch.restarted();
        let cpus = self.placement.cpus();
        let mut crew =
            ReadyWorkers { watch, members: Vec::new(), files: Vec::new(), warnings: Vec::new() };
        for worker in self.part.workers(work) {
            let (file, base) = place(work, worker);
            let stream = Stream::new(work, worker, base, seed);
            let seat = Seat { file, seed: seed ^ u64::from(worker), watch };
            let Equipment { engine, file, warning } = self.engine_for(&stream, work, &seat)?;
            let schedule = Schedule::new(work, worker, seed);
            let cpu = cpus.get(worker as usize % cpus.len().max(1)).copied();
            crew.members.push(Task { stream, engine, schedule, watch, cpu });
            crew.files.extend(file);
            if worker == self.part.rank {
                crew.warnings.extend(warning);
            }
        }
        Ok(crew)
    }

    /// What was seen of the page cache and storage since the workers began, where that tells
    /// whether their access was direct.
    fn seen(&self, running: &Running, now: &Reading) -> direct::VisitTraffic {
        let resident_before = running.resident_at_start_bytes;
        let resident_now = resident_before.and_then(|_| running.resident_bytes());
        let io_known = self.hints.counters;
        direct::VisitTraffic {
            read_bytes: now.read_bytes() - running.at_start.read_bytes(),
            written_bytes: now.written_bytes() - running.at_start.written_bytes(),
            resident_grown_bytes: resident_before
                .zip(resident_now)
                .map(|(before, now)| now.saturating_sub(before)),
            delivered_bytes: io_known
                .then(|| direct::VisitTraffic::delivered(running.at_start.io, now.io))
                .flatten(),
        }
    }

    fn stop(&mut self) -> Result<Option<(Running, Together)>> {
        let Some(mut running) = self.running.take() else { return Ok(None) };
        running.shared.stop();
        let mut times = Together::new();
        let mut failed = None;
        for worker in &mut running.workers {
            match worker.join() {
                Ok(theirs) => times.add(&theirs),
                Err(error) => failed = Some(error),
            }
        }
        let now = self.reading(&running.workers);
        self.account(&running.before, &now);
        self.ceiling.unsynced_bytes += dirtied_bytes(&running.work, now.written_bytes());
        failed.map_or(Ok(Some((running, times))), Err)
    }
}

impl Running {
    /// Which file a worker's share lies in, and from where.
    fn place(&self, worker: usize) -> (&File, u64) {
        let number = self.part.rank + worker as u32 * self.part.ranks;
        (&self.files[place_of_file(&self.work, worker)], place(&self.work, number).1)
    }

    /// Of all files in use; `None` where the kernel cannot say.
    fn resident_bytes(&self) -> Option<u64> {
        resident_bytes(&shares(&self.work, self.part), &self.files)
    }
}

impl Rig for FileRig {
    fn engine(&self) -> &'static str {
        self.engine_name
    }

    fn hints(&self) -> Hints {
        self.hints.clone()
    }

    fn now_s(&self) -> f64 {
        self.clock.now_s()
    }

    fn refuses_direct(&self) -> Option<String> {
        direct::refusal(&self.files, self.sector_bytes)
    }

    fn prepare(&mut self, work: &Workload) -> Result<Prepared> {
        let work = &self.on_ground(work)?;
        self.resolve_engine(work)?;
        if work.access == Access::Direct && self.ground.is_memory() {
            let text = "access=direct: files live in memory here, there is nothing to go to \
                        directly; leave the key out or name a directory on a disk";
            return Err(Error::Refused(text.to_owned()));
        }
        self.check_verifiable(work)?;
        let shares = shares(work, self.part);
        let mut prepared = Prepared::default();
        let mut since_s = self.clock.now_s();
        let mut lap = |clock: &Clock| {
            let now_s = clock.now_s();
            let lap_s = now_s - since_s;
            since_s = now_s;
            lap_s
        };
        let mut spent_s = Spent::default();
        self.check_ceiling(self.missing_bytes(&shares))?;
        for (number, length) in &shares {
            self.lay_out(*number, *length)?;
        }
        if let Some((number, _)) = shares.first().filter(|_| work.access == Access::Direct) {
            let file = self.files.open_again(*number, OpenAccess::Buffered)?;
            direct::check(work, &file, self.sector_bytes)?;
        }
        spent_s.layout = lap(&self.clock);
        prepared.warnings.extend(self.neighbours());
        prepared.warnings.extend(self.swapping());
        prepared.warnings.extend(self.quiesce()?);
        if self.needs_whole_files(work) {
            prepared.warnings.extend(self.mend(&shares)?);
        }
        spent_s.quiesce = lap(&self.clock);
        self.check()?;
        self.clear_others(&shares)?;
        self.read_at_server(work, &shares)?;
        self.bring_into_state(work, &shares)?;
        spent_s.warm_up = lap(&self.clock);
        self.check()?;
        prepared.spent_s = spent_s;
        Ok(prepared)
    }

    fn start(&mut self, work: &Workload, seed: u64) -> Result<()> {
        self.start_when(work, seed, &mut || Ok(Ahead::begin()))
    }

    fn start_when(
        &mut self,
        work: &Workload,
        seed: u64,
        wait: &mut dyn FnMut() -> Result<Ahead>,
    ) -> Result<()> {
        let work = &self.on_ground(work)?;
        let shared = Shared::new();
        let mut files = Vec::new();
        for (number, _) in shares(work, self.part) {
            files.push(self.files.open_again(number, OpenAccess::Buffered)?);
        }
        self.open_ledgers();
        let ReadyWorkers { watch, members, files: held, warnings } = self.crew(work, seed)?;
        self.fill_again(work, &files)?;
        let held_back = Arc::clone(&shared);
        let gate = held_back.hold();
        let mut workers = Vec::new();
        for task in members {
            let spawned = Worker::spawn(Arc::clone(&shared), task);
            workers.push(spawned.map_err(|error| {
                shared.stop();
                Error::path("start a thread for", self.ground.path(), error)
            })?);
        }
        let watched = Watch::begin(&files, self.ground.directory().is_some());
        let known = (self.clock, self.ceiling.device());
        let used = (&files[..], &workers[..], self.part);
        let cold = Cold::begin(work, used, self.ahead_skip_bytes, known)
            .map_err(|error| Error::path("keep cold", self.ground.path(), error))?;
        let at_start = self.reading(&workers);
        let resident_at_start_bytes = match work.access {
            _ if self.ground.is_in_use() => None, // others read it, too
            Access::Direct => resident_bytes(&shares(work, self.part), &files),
            Access::Buffered => None,
        };
        let mut running = Running {
            work: work.clone(),
            part: self.part,
            shared,
            workers,
            files,
            _held: held,
            before: at_start,
            at_start,
            succeeded: at_start,
            resident_at_start_bytes,
            warnings,
            watch: watched,
            looked: Looked::default(),
            spending: Spending::default(),
            cold,
        };
        self.allow_writing(&mut running);
        let ahead = match wait() {
            Ok(ahead) => ahead,
            Err(error) => {
                running.shared.stop();
                drop(gate); // the workers wait there, and see that they are to stop
                return Err(error);
            }
        };
        running.shared.begin_schedules(&watch);
        drop(gate);
        drop(ahead);
        running.before = self.reading(&running.workers);
        self.running = Some(running);
        Ok(())
    }

    fn window(&mut self, length_s: f64) -> Result<Window> {
        let mut running = self.running.take().expect("a window follows a start");
        if !self.sleep_below_ceiling(&mut running, (length_s * 1e9) as u64) {
            running.shared.stop();
            self.running = Some(running);
            return Err(Error::MaxWritten);
        }
        let now = self.reading(&running.workers);
        if now.at_ns >= running.looked.next_ns {
            running.looked = self.look(&running);
        }
        let before = std::mem::replace(&mut running.before, now);
        let looked = running.looked;
        let dropping_s = running.cold.as_mut().map_or(0.0, Cold::cpu_s);
        self.account(&before, &now);
        if now.ops() != before.ops() {
            running.succeeded = now;
        }
        let gone = now.gone_since(&running.succeeded);
        let failed = running.shared.has_failed();
        self.running = Some(running);
        if self.check().is_err() {
            self.stop().ok(); // a request that a signal cut short is no error of the storage
            return Err(Error::Interrupted);
        }
        if failed {
            self.stop()?; // brings the worker's error out
        }
        if let Some(count) = gone {
            self.give_up(count)?;
        }
        let dirty = self.counters.dirty();
        let io = before.io.zip(now.io).filter(|_| self.hints.counters);
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
            cpu_s: Some((now.cpu_s - before.cpu_s - dropping_s).max(0.0)),
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
        let now = self.running.as_ref().map(|running| self.reading(&running.workers));
        let unsynced_before_bytes = self.ceiling.unsynced_bytes;
        let Some((mut running, times)) = self.stop()? else {
            return Ok(self.finished(Together::new(), vec![], None));
        };
        let mut warnings = std::mem::take(&mut running.warnings);
        if let Some(now) = now {
            if let Some(count) = now.failed_since(&running.at_start) {
                return Err(self.failing(&times, count));
            }
            if running.work.access == Access::Direct && self.engine != EngineKind::Null {
                warnings.extend(self.seen(&running, &now).doubt());
            }
            warnings.extend(match self.engine {
                EngineKind::Null => Some(harness::all_there_is()),
                _ => harness::doubt(self.harness_s_per_op, now.mean_s()),
            });
            let read_bytes = now.read_bytes() - running.at_start.read_bytes();
            let cold = running.cold.take();
            warnings.extend(cold.and_then(|cold| cold.doubt(read_bytes, self.ceiling.device())));
            let length_s = (now.at_ns - running.at_start.at_ns) as f64 * 1e-9;
            warnings.extend(running.watch.doubts(&running.files, &running.work, length_s));
            warnings.extend(self.limit_lost());
        }
        let mut sync_s = None;
        if sync && !self.ground.is_memory() && self.engine != EngineKind::Null {
            let began_s = self.clock.now_s();
            match running.files.iter().try_for_each(rustix::fs::fdatasync) {
                Ok(()) => {
                    sync_s = Some(self.clock.now_s() - began_s);
                    self.ceiling.unsynced_bytes = unsynced_before_bytes;
                }
                Err(error) if failures::kind(&error.into()).is_some() => {
                    warnings.push(verified::not_durable(error));
                }
                Err(error) => {
                    return Err(Error::path("fdatasync", self.ground.path(), error));
                }
            }
        }
        Ok(self.finished(times, warnings, sync_s))
    }

    fn written_bytes(&self) -> u64 {
        self.files.written_bytes() + self.workload_written_bytes
    }

    fn device_written_bytes(&self) -> Option<u64> {
        self.ceiling.device_bytes()
    }

    fn limit_written(&mut self, most_bytes: u64) {
        self.ceiling.most_bytes = Some(most_bytes);
    }

    fn may_write_bytes(&self) -> u64 {
        self.left_at_rest_bytes()
    }
}

impl Drop for FileRig {
    fn drop(&mut self) {
        self.stop().ok();
    }
}
