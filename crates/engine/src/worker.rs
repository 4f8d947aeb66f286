//! A process of the workload: a thread with its own stream and engine, and what it tells the
//! thread that watches.
//!
//! Counts are published through atomics after every batch; the watcher's readings, window by
//! window, cost the workers nothing.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockWriteGuard};
use std::thread::JoinHandle;

use hdrhistogram::Histogram;

use crate::engine::{Done, Engine};
use crate::error::Result;
use crate::request::{Op, Stream};
use crate::rig::{Class, ClassCount};

/// Longest response time told from longer ones.
const RESPONSE_MAX_NS: u64 = 3600 * 1_000_000_000;
/// Two digits: at most 1 % error, and four of them fit beside the data in a second-level cache.
const RESPONSE_DIGITS: u8 = 2;
const BATCH_MAX: usize = 64;
/// Batches are grown and shrunk towards this length, so that counts are fresh in every window
/// and the loop's own work is spread over many requests.
const BATCH_NS: u64 = 200_000;

/// An empty histogram of response times in nanoseconds.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, RESPONSE_MAX_NS, RESPONSE_DIGITS)
        .expect("the bounds and digits are constants that the library accepts")
}

/// What all workers of a run share.
#[derive(Debug)]
pub(crate) struct Shared {
    stop: AtomicBool,
    /// Counts up whenever the response times are to be forgotten.
    marks: AtomicU32,
    failed: AtomicBool,
    /// Held for writing until all workers are there; each passes it for reading.
    gate: RwLock<()>,
}

impl Shared {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            stop: AtomicBool::new(false),
            marks: AtomicU32::new(0),
            failed: AtomicBool::new(false),
            gate: RwLock::new(()),
        })
    }

    /// Workers wait until what this gives is dropped: they start together.
    pub(crate) fn hold(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
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

/// A worker's counts since its start, on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Published {
    classes: [PublishedClass; 4],
    position: AtomicU64,
}

#[derive(Debug, Default)]
struct PublishedClass {
    ops: AtomicU64,
    bytes: AtomicU64,
    time_ns: AtomicU64,
}

impl Published {
    /// The counts now.
    pub(crate) fn counts(&self) -> [ClassCount; 4] {
        self.classes.each_ref().map(|class| ClassCount {
            ops: class.ops.load(Ordering::Relaxed),
            bytes: class.bytes.load(Ordering::Relaxed),
            time_s: class.time_ns.load(Ordering::Relaxed) as f64 * 1e-9,
        })
    }

    /// Where in its file the worker's latest request ended, bytes.
    pub(crate) fn position(&self) -> u64 {
        self.position.load(Ordering::Relaxed)
    }
}

/// Response times by class, as a worker hands them over when it stops.
pub(crate) type Responses = [Histogram<u64>; 4];

/// A worker as the watcher holds it.
pub(crate) struct Worker {
    pub(crate) published: Arc<Published>,
    thread: JoinHandle<Result<Responses>>,
}

impl Worker {
    /// A thread that waits for the common start.
    pub(crate) fn spawn(
        shared: Arc<Shared>,
        stream: Stream,
        engine: Box<dyn Engine>,
    ) -> std::io::Result<Self> {
        let published = Arc::new(Published::default());
        let mut run = Loop {
            shared,
            published: Arc::clone(&published),
            stream,
            engine,
            responses: std::array::from_fn(|_| histogram()),
            totals: [(0, 0, 0); 4],
            marks_seen: 0,
        };
        let thread =
            std::thread::Builder::new().name("ioscape-worker".into()).spawn(move || {
                drop(run.shared.gate.read());
                let mut failing = Failing { shared: Arc::clone(&run.shared), armed: true };
                let outcome = run.work();
                failing.armed = outcome.is_err();
                outcome.map(|()| run.responses)
            })?;
        Ok(Self { published, thread })
    }

    /// Waits for the thread.
    pub(crate) fn join(self) -> Result<Responses> {
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
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
    engine: Box<dyn Engine>,
    responses: Responses,
    /// Requests, bytes and nanoseconds by class.
    totals: [(u64, u64, u64); 4],
    marks_seen: u32,
}

impl Loop {
    /// Until told to stop. Nothing in here allocates.
    fn work(&mut self) -> Result<()> {
        let mut ops = [Op { offset: 0, length: 0, class: Class::ReadSeq }; BATCH_MAX];
        let mut done: Vec<Done> = Vec::with_capacity(2 * BATCH_MAX);
        let mut batch = 1;
        while !self.shared.stop.load(Ordering::Relaxed) {
            for op in &mut ops[..batch] {
                *op = self.stream.next_op();
            }
            let mut taken = 0;
            while taken < batch {
                taken += self.engine.submit(&ops[taken..batch])?;
                self.engine.reap(1, &mut done)?;
            }
            let batch_ns = self.count(&mut done);
            self.published
                .position
                .store(ops[batch - 1].offset + ops[batch - 1].length, Ordering::Relaxed);
            if batch_ns < BATCH_NS / 2 {
                batch = (batch * 2).min(BATCH_MAX);
            } else if batch_ns > BATCH_NS {
                batch = (batch / 2).max(1);
            }
        }
        Ok(())
    }

    /// Enters what is done into histograms and counts; gives the time it took, nanoseconds.
    fn count(&mut self, done: &mut Vec<Done>) -> u64 {
        let marks = self.shared.marks.load(Ordering::Relaxed);
        if marks != self.marks_seen {
            self.marks_seen = marks;
            self.responses.iter_mut().for_each(Histogram::reset);
        }
        let mut batch_ns = 0;
        for request in done.drain(..) {
            let class = request.class as usize;
            self.responses[class].saturating_record(request.time_ns);
            let (ops, bytes, time_ns) = &mut self.totals[class];
            *ops += 1;
            *bytes += request.length;
            *time_ns += request.time_ns;
            batch_ns += request.time_ns;
        }
        for (class, (ops, bytes, time_ns)) in self.published.classes.iter().zip(&self.totals) {
            class.ops.store(*ops, Ordering::Relaxed);
            class.bytes.store(*bytes, Ordering::Relaxed);
            class.time_ns.store(*time_ns, Ordering::Relaxed);
        }
        batch_ns
    }
}
