//! A process of the workload: a thread with its own stream and engine, and what it tells the
//! thread that watches.
//!
//! Counts are published through atomics after every batch; the watcher's readings, window by
//! window, cost the workers nothing.
//!
//! Four loops: closed ones and open ones, which keep to a schedule, for engines that finish each
//! request before the next begins and for those that keep many in flight.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::thread::JoinHandle;

use crate::clock::{Stopwatch, fine_timers, monotonic_ns};
use crate::engine::{Engine, InFlight, OneByOne, Wait};
use crate::error::Result;
use crate::placement::{self, Ahead};
use crate::request::{Op, Stream};
use crate::rig::{Class, ClassCount};
use crate::schedule::Schedule;
use crate::tally::Tally;

const BATCH_MAX: usize = 64;
/// Batches are grown and shrunk towards this length, so that counts are fresh in every window
/// and the loop's own work is spread over many requests.
const BATCH_NS: u64 = 200_000;
/// A worker that waits looks this often whether it is to stop.
const WAIT_MAX_NS: u64 = 50_000_000;
/// One that may write no more looks this often whether it may.
const ALLOWED_AGAIN_NS: u64 = 200_000;
const NO_OP: Op = Op { offset: 0, length: 0, class: Class::ReadSeq, due_ns: 0 };

/// What all workers of a run share.
#[derive(Debug)]
pub(crate) struct Shared {
    stop: AtomicBool,
    /// Counts up whenever the response times are to be forgotten.
    marks: AtomicU32,
    failed: AtomicBool,
    /// When schedules begin, by the stopwatch.
    start_ns: AtomicU64,
    /// Held for writing until all workers are there; each passes it for reading.
    gate: RwLock<()>,
}

impl Shared {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            stop: AtomicBool::new(false),
            marks: AtomicU32::new(0),
            failed: AtomicBool::new(false),
            start_ns: AtomicU64::new(0),
            gate: RwLock::new(()),
        })
    }

    /// Workers wait until what this gives is dropped: they start together.
    pub(crate) fn hold(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Schedules begin now. To be said before the workers are let go.
    pub(crate) fn begin_schedules(&self, watch: &Stopwatch) {
        self.start_ns.store(watch.now_ns().max(1), Ordering::Relaxed);
    }

    pub(crate) fn mark(&self) {
        self.marks.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

/// A worker's counts since its start and what it may write, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Published {
    classes: [PublishedClass; 4],
    position: AtomicU64,
    failed_ops: AtomicU64,
    /// Having written so much since its start, the worker waits to be allowed more.
    write_max_bytes: AtomicU64,
}

#[derive(Debug, Default)]
struct PublishedClass {
    ops: AtomicU64,
    bytes: AtomicU64,
    time_ns: AtomicU64,
}

impl Published {
    fn new() -> Self {
        Self {
            classes: Default::default(),
            position: AtomicU64::new(0),
            failed_ops: AtomicU64::new(0),
            write_max_bytes: AtomicU64::new(u64::MAX),
        }
    }

    /// Bytes written so far.
    pub(crate) fn written_bytes(&self) -> u64 {
        let [_, _, sequential, random] = &self.classes;
        sequential.bytes.load(Ordering::Relaxed) + random.bytes.load(Ordering::Relaxed)
    }

    /// What the worker may write before it has to wait, from its start.
    pub(crate) fn write_max_bytes(&self) -> u64 {
        self.write_max_bytes.load(Ordering::Relaxed)
    }

    /// Lets it write so much, from its start.
    pub(crate) fn allow_writing(&self, most_bytes: u64) {
        self.write_max_bytes.store(most_bytes, Ordering::Relaxed);
    }

    /// The counts now.
    pub(crate) fn counts(&self) -> [ClassCount; 4] {
        self.classes.each_ref().map(|class| ClassCount {
            ops: class.ops.load(Ordering::Relaxed),
            bytes: class.bytes.load(Ordering::Relaxed),
            time_s: class.time_ns.load(Ordering::Relaxed) as f64 * 1e-9,
        })
    }

    /// Requests that failed.
    pub(crate) fn failed_ops(&self) -> u64 {
        self.failed_ops.load(Ordering::Relaxed)
    }

    /// Where in its file the worker's latest request ended, bytes.
    pub(crate) fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }
}

/// What a worker is to do.
pub(crate) struct Task {
    pub(crate) stream: Stream,
    pub(crate) engine: Engine,
    /// In an open loop.
    pub(crate) schedule: Option<Schedule>,
    /// The one that the engine times requests by.
    pub(crate) watch: Stopwatch,
    /// The processor it is to stay on.
    pub(crate) cpu: Option<usize>,
}

/// A worker as the watcher holds it.
pub(crate) struct Worker {
    pub(crate) published: Arc<Published>,
    /// Until it is joined.
    thread: Option<JoinHandle<Result<Tally>>>,
}

impl Worker {
    /// A thread that waits for the common start.
    pub(crate) fn spawn(shared: Arc<Shared>, task: Task) -> std::io::Result<Self> {
        let published = Arc::new(Published::new());
        let Task { stream, engine, schedule, watch, cpu } = task;
        let mut run = Loop {
            shared,
            published: Arc::clone(&published),
            stream,
            watch,
            tally: Tally::new(schedule.is_some()),
            marks_seen: 0,
            ahead: None,
        };
        let thread =
            std::thread::Builder::new().name("ioscape-worker".into()).spawn(move || {
                if let Some(cpu) = cpu {
                    placement::pin_to(cpu);
                }
                // A ring is closed by this thread, and must be closed for all of them then.
                if matches!(engine, Engine::OneByOne(_)) {
                    placement::own_descriptors();
                }
                run.ahead = schedule.is_none().then(Ahead::begin);
                drop(run.shared.gate.read());
                run.tally.began_ns = monotonic_ns();
                let mut failing = Failing { shared: Arc::clone(&run.shared), armed: true };
                let outcome = run.work(engine, schedule);
                failing.armed = outcome.is_err();
                outcome.map(|()| run.tally)
            })?;
        Ok(Self { published, thread: Some(thread) })
    }

    /// Waits for the thread. What it published stays.
    pub(crate) fn join(&mut self) -> Result<Tally> {
        let thread = self.thread.take().expect("a worker is waited for once");
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Tells the watcher when it is dropped: on an error, and on a panic too.
struct Failing {
    shared: Arc<Shared>,
    armed: bool,
}

impl Drop for Failing {
    fn drop(&mut self) {
        if self.armed {
            self.shared.failed.store(true, Ordering::Relaxed);
        }
    }
}

struct Loop {
    shared: Arc<Shared>,
    published: Arc<Published>,
    stream: Stream,
    watch: Stopwatch,
    tally: Tally,
    marks_seen: u32,
    /// Keeps it a real-time thread until its first request is done, so that all begin together.
    ahead: Option<Ahead>,
}

impl Loop {
    /// Until told to stop. Nothing in the loops allocates.
    fn work(&mut self, engine: Engine, schedule: Option<Schedule>) -> Result<()> {
        if schedule.is_some() {
            fine_timers();
        }
        match (engine, schedule) {
            (Engine::OneByOne(mut engine), None) => self.closed(&mut *engine),
            (Engine::OneByOne(mut engine), Some(schedule)) => self.open(&mut *engine, schedule),
            (Engine::InFlight(mut engine), None) => self.closed_in_flight(&mut *engine),
            (Engine::InFlight(mut engine), Some(schedule)) => {
                self.open_in_flight(&mut *engine, schedule)
            }
        }
    }

    /// Looked at before every batch. Waits where no more may be written.
    fn is_on(&mut self) -> bool {
        let is_stopped = || self.shared.stop.load(Ordering::Relaxed);
        while self.tally.written_bytes() >= self.published.write_max_bytes() && !is_stopped() {
            self.ahead = None; // whoever may let it write needs a processor
            self.watch.wait_until(self.watch.now_ns() + ALLOWED_AGAIN_NS, WAIT_MAX_NS);
        }
        !is_stopped()
    }

    /// One request after the other, a batch at a time.
    fn closed(&mut self, engine: &mut dyn OneByOne) -> Result<()> {
        let (mut ops, mut times_ns) = ([NO_OP; BATCH_MAX], [0; BATCH_MAX]);
        let mut batch = 1;
        while self.is_on() {
            self.obey_marks();
            let before_ns = self.tally.time_ns();
            let (ops, times_ns) = (&mut ops[..batch], &mut times_ns[..batch]);
            self.stream.fill(ops);
            engine.make(ops, times_ns, &mut self.tally)?;
            self.tally.enter_all(ops, times_ns);
            self.publish();
            let batch_ns = self.tally.time_ns() - before_ns;
            if batch_ns < BATCH_NS / 2 {
                batch = (batch * 2).min(BATCH_MAX);
            } else if batch_ns > BATCH_NS {
                batch = (batch / 2).max(1);
            }
        }
        Ok(())
    }

    /// One request after the other, each when it is due; a late one as soon as can be.
    fn open(&mut self, engine: &mut dyn OneByOne, mut schedule: Schedule) -> Result<()> {
        let start_ns = self.shared.start_ns.load(Ordering::Relaxed);
        while self.is_on() {
            let due_ns = start_ns + schedule.next_ns();
            if due_ns > self.watch.now_ns() {
                self.watch.wait_until(due_ns, WAIT_MAX_NS);
                continue;
            }
            schedule.advance();
            self.obey_marks();
            let op = Op { due_ns, ..self.stream.next_op() };
            engine.make_one(&op, &mut self.tally)?;
            self.publish();
        }
        Ok(())
    }

    /// As many in flight as the engine takes: what is done is replaced at once.
    fn closed_in_flight(&mut self, engine: &mut dyn InFlight) -> Result<()> {
        let slots = engine.slots();
        let mut ops = [NO_OP; BATCH_MAX];
        let mut in_flight = 0;
        while self.is_on() {
            while in_flight < slots {
                let batch = (slots - in_flight).min(BATCH_MAX);
                self.stream.fill(&mut ops[..batch]);
                in_flight += submit(engine, &ops[..batch])?;
            }
            self.obey_marks();
            in_flight -= engine.reap(Wait::ForOne, &mut self.tally)?;
            self.publish();
        }
        Ok(())
    }

    /// Requests begin when they are due; where no slot is free, as soon as one is.
    fn open_in_flight(&mut self, engine: &mut dyn InFlight, mut schedule: Schedule) -> Result<()> {
        let start_ns = self.shared.start_ns.load(Ordering::Relaxed);
        let slots = engine.slots();
        let mut ops = [NO_OP; BATCH_MAX];
        let mut in_flight = 0;
        while self.is_on() {
            let now_ns = self.watch.now_ns();
            let mut ready = 0;
            let mut due_ns = start_ns + schedule.next_ns();
            while due_ns <= now_ns && ready < BATCH_MAX.min(slots - in_flight) {
                ops[ready] = Op { due_ns, ..self.stream.next_op() };
                ready += 1;
                schedule.advance();
                due_ns = start_ns + schedule.next_ns();
            }
            in_flight += submit(engine, &ops[..ready])?;
            if in_flight == 0 {
                self.watch.wait_until(due_ns, WAIT_MAX_NS);
                continue;
            }
            // With no slot free the next request waits for one, however late it is.
            let until_ns = if in_flight == slots { u64::MAX } else { due_ns };
            self.obey_marks();
            let wait = Wait::Until(until_ns.min(now_ns + WAIT_MAX_NS));
            in_flight -= engine.reap(wait, &mut self.tally)?;
            self.publish();
        }
        Ok(())
    }

    /// Forgets times where that was asked for.
    fn obey_marks(&mut self) {
        let marks = self.shared.marks.load(Ordering::Relaxed);
        if marks != self.marks_seen {
            self.marks_seen = marks;
            self.tally.times.reset();
        }
    }

    fn publish(&mut self) {
        self.ahead = None; // its first request is done
        for (class, sum) in self.published.classes.iter().zip(&self.tally.sums) {
            class.ops.store(sum.ops, Ordering::Relaxed);
            class.bytes.store(sum.bytes, Ordering::Relaxed);
            class.time_ns.store(sum.time_ns, Ordering::Relaxed);
        }
        self.published.position.store(self.tally.position, Ordering::Relaxed);
        self.published.failed_ops.store(self.tally.failed_ops, Ordering::Relaxed);
    }
}

fn submit(engine: &mut dyn InFlight, ops: &[Op]) -> Result<usize> {
    let taken = engine.submit(ops)?;
    assert_eq!(taken, ops.len(), "no more is submitted than slots are free");
    Ok(taken)
}

#[cfg(test)]
mod tests;
