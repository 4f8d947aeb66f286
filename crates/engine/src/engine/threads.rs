//! A thread for each request in flight, by pread and pwrite: where the kernel gives a process no
//! io_uring, as in most containers.
//!
//! Offsets, sizes, fdatasyncs and checks are those of the ring, and so is what the page cache
//! answers: it is copied by the worker itself, one request at a time, before a thread is troubled.
//! All others go to the threads in the order in which it was drawn. As many requests again as
//! there are threads lie ready, so that a thread that is done goes on by itself; a request's time
//! begins when a thread takes it up. What is left of the difference is what handing over costs
//! ([`cost_s`]).

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use ioscape_model::Access;
use rustix::fs::MemfdFlags;

use super::psync::Parts;
use super::transfer::Transfer;
use super::{Done, Duties, InFlight, Wait};
use crate::clock::Stopwatch;
use crate::error::{Error, Result};
use crate::placement;
use crate::request::Op;
use crate::rig::Class;
use crate::tally::Tally;

/// Requests that the engine takes for each that is in flight.
pub const TAKEN_PER_THREAD: usize = 2;
/// Requests that are done are entered at least so often, for whoever watches.
const ENTER_NS: u64 = 10_000_000;
/// A sleeping worker wakes up this much before a request is due, and spins from there.
const WAKE_EARLY_NS: u64 = 80_000;
/// A thread calls the system and little else.
const STACK_BYTES: usize = 64 << 10;

/// A worker's threads, and what they share with it.
pub struct Threads {
    desk: Arc<Desk>,
    parts: Parts,
    depth: usize,
    crew: Vec<JoinHandle<()>>,
    /// For what the page cache answers; none where it is not to be asked.
    at_once: Option<Transfer>,
    /// Answered by it and not entered yet.
    answered: Vec<Ended>,
    /// On their way to the desk.
    handing: Vec<Op>,
    /// Taken and not entered yet.
    taken: usize,
}

/// A request that came to its end.
#[derive(Debug)]
struct Ended {
    done: Done,
    /// Bytes that were checked.
    outcome: io::Result<u64>,
}

/// Where requests are handed over, there and back.
#[derive(Debug)]
struct Desk {
    papers: Mutex<Papers>,
    /// Requests came, or all is over.
    work: Condvar,
    /// As many requests are done as the worker waits for.
    done: Condvar,
    /// Writes so far, and between how many of them an fdatasync is due; 0 is never.
    writes: AtomicU64,
    fsync_every: u64,
    watch: Stopwatch,
}

#[derive(Debug)]
struct Papers {
    ready: VecDeque<Op>,
    ended: Vec<Ended>,
    /// Threads that wait for requests.
    idle: usize,
    /// The worker is to be woken when so many are done.
    wake_at: usize,
    is_over: bool,
}

impl Threads {
    /// For `depth` requests in flight. The threads begin with the first request, from the worker's
    /// own thread: they run where it may run.
    pub fn new(parts: Parts, depth: u32, access: Access) -> Self {
        let depth = depth as usize;
        let most = TAKEN_PER_THREAD * depth;
        let papers = Papers {
            ready: VecDeque::with_capacity(most),
            ended: Vec::with_capacity(most),
            idle: 0,
            wake_at: usize::MAX,
            is_over: false,
        };
        let desk = Arc::new(Desk {
            papers: Mutex::new(papers),
            work: Condvar::new(),
            done: Condvar::new(),
            writes: AtomicU64::new(0),
            fsync_every: u64::from(parts.duties.fsync_every),
            watch: parts.watch,
        });
        let is_cached = access == Access::Buffered;
        Self {
            desk,
            depth,
            crew: Vec::with_capacity(depth),
            at_once: is_cached.then(|| parts.clone().into_transfer(0)),
            parts,
            answered: Vec::with_capacity(most),
            handing: Vec::with_capacity(most),
            taken: 0,
        }
    }

    /// Starts the threads, where that was not done yet.
    fn begin(&mut self) -> Result<()> {
        for index in self.crew.len()..self.depth {
            let transfer = self.parts.clone().into_transfer(index as u64 + 1);
            let desk = Arc::clone(&self.desk);
            let builder = std::thread::Builder::new().name("ioscape-request".into());
            let thread = builder.stack_size(STACK_BYTES).spawn(move || {
                placement::own_descriptors();
                let leaving = Leaving { desk: &desk };
                desk.serve(transfer);
                drop(leaving);
            });
            let thread = thread.map_err(|error| self.too_many(&error))?;
            self.crew.push(thread);
        }
        Ok(())
    }

    #[cold]
    fn too_many(&self, error: &io::Error) -> Error {
        Error::Refused(format!(
            "no {} threads for requests in flight can be had ({error}): lower depth or \
             process_num, or raise the limit on tasks (ulimit -u, pids.max of the control group)",
            self.depth
        ))
    }

    /// A read that the page cache answers, done.
    fn answer(&mut self, op: &Op) -> Option<Ended> {
        let transfer = self.at_once.as_mut().filter(|_| op.class.is_read())?;
        let began_ns = self.desk.watch.now_ns();
        let reading = transfer.reading(op);
        match transfer.read_cached(op) {
            Ok(true) => {}
            Ok(false) => return None,
            Err(_) => {
                self.at_once = None;
                return None;
            }
        }
        let done = Done { op: *op, began_ns, ended_ns: self.desk.watch.now_ns() };
        Some(Ended { done, outcome: transfer.settle(op, reading, Ok(())) })
    }

    /// Enters requests that came to their ends.
    fn enter(&mut self, mut ended: Vec<Ended>, tally: &mut Tally) -> Result<Vec<Ended>> {
        for Ended { done, outcome } in ended.drain(..) {
            self.taken -= 1;
            match outcome {
                Ok(verified_bytes) => {
                    tally.verified_bytes += verified_bytes;
                    tally.enter(&done);
                }
                Err(error) => tally.fail(&done.op, &self.parts.path, error)?,
            }
        }
        Ok(ended)
    }
}

impl InFlight for Threads {
    fn slots(&self) -> usize {
        TAKEN_PER_THREAD * self.depth
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize> {
        self.begin()?;
        let count = ops.len().min(self.slots() - self.taken);
        for op in &ops[..count] {
            match self.answer(op) {
                Some(ended) => self.answered.push(ended),
                None => self.handing.push(*op),
            }
        }
        let mut papers = self.desk.lock();
        let woken = self.handing.len().min(papers.idle);
        papers.ready.extend(self.handing.drain(..));
        drop(papers);
        (0..woken).for_each(|_| self.desk.work.notify_one());
        self.taken += count;
        Ok(count)
    }

    fn reap(&mut self, wait: Wait, tally: &mut Tally) -> Result<usize> {
        let before = self.taken;
        let answered = std::mem::take(&mut self.answered);
        let is_enough = !answered.is_empty();
        self.answered = self.enter(answered, tally)?;
        let desk = Arc::clone(&self.desk);
        let mut papers = desk.lock();
        if !is_enough {
            papers = match wait {
                Wait::ForOne => desk.wait_for_work(papers, self.depth),
                Wait::Until(until_ns) => {
                    let is_full = self.taken == self.slots();
                    desk.wait_until(papers, until_ns, if is_full { 1 } else { usize::MAX })
                }
            };
        }
        // The lock is held no longer than it takes to swap two lists.
        let ended = std::mem::replace(&mut papers.ended, std::mem::take(&mut self.answered));
        drop(papers);
        self.answered = self.enter(ended, tally)?;
        Ok(before - self.taken)
    }
}

impl Drop for Threads {
    /// Requests that no thread has taken up are not made any more.
    fn drop(&mut self) {
        self.desk.end();
        for thread in self.crew.drain(..) {
            thread.join().ok(); // a panic has been told by `Leaving`
        }
    }
}

impl Desk {
    fn lock(&self) -> MutexGuard<'_, Papers> {
        self.papers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        let mut papers = self.lock();
        papers.is_over = true;
        papers.ready.clear();
        drop(papers);
        self.work.notify_all();
        self.done.notify_all();
    }

    /// The life of a thread: a request after the other.
    fn serve(&self, mut transfer: Transfer) {
        let mut ended = None;
        while let Some(op) = self.next(ended.take()) {
            let began_ns = self.watch.now_ns();
            let reading = transfer.reading(&op);
            let mut outcome = transfer.make(&op);
            if outcome.is_ok() && !op.class.is_read() && self.is_sync_due() {
                outcome = transfer.sync();
            }
            let done = Done { op, began_ns, ended_ns: self.watch.now_ns() };
            ended = Some(Ended { done, outcome: transfer.settle(&op, reading, outcome) });
        }
    }

    fn is_sync_due(&self) -> bool {
        if self.fsync_every == 0 {
            return false;
        }
        let writes = self.writes.fetch_add(1, Ordering::Relaxed) + 1;
        writes.is_multiple_of(self.fsync_every)
    }

    /// Hands the previous request back and waits for another; none when all is over.
    fn next(&self, ended: Option<Ended>) -> Option<Op> {
        let mut papers = self.lock();
        if let Some(ended) = ended {
            papers.ended.push(ended);
            if papers.ended.len() == papers.wake_at {
                self.done.notify_one();
            }
        }
        loop {
            if papers.is_over {
                return None;
            }
            if let Some(op) = papers.ready.pop_front() {
                return Some(op);
            }
            papers.idle += 1;
            papers = self.work.wait(papers).unwrap_or_else(PoisonError::into_inner);
            papers.idle -= 1;
        }
    }

    /// In a closed loop: until few requests lie ready for `depth` threads, or something was done and
    /// a while has passed.
    fn wait_for_work<'a>(
        &'a self,
        mut papers: MutexGuard<'a, Papers>,
        depth: usize,
    ) -> MutexGuard<'a, Papers> {
        loop {
            let enough = papers.ready.len().saturating_sub(depth / 2).max(1);
            if papers.ended.len() >= enough {
                return papers;
            }
            let until_ns = self.watch.now_ns() + ENTER_NS;
            papers = self.wait_until(papers, until_ns, enough);
            if !papers.ended.is_empty() {
                return papers;
            }
        }
    }

    /// Until `enough` are done, but not longer than to this time.
    fn wait_until<'a>(
        &'a self,
        mut papers: MutexGuard<'a, Papers>,
        until_ns: u64,
        enough: usize,
    ) -> MutexGuard<'a, Papers> {
        papers.wake_at = enough;
        loop {
            assert!(!papers.is_over, "a thread that makes requests panicked");
            let now_ns = self.watch.now_ns();
            let sleep_ns = until_ns.saturating_sub(now_ns.saturating_add(WAKE_EARLY_NS));
            if papers.ended.len() >= enough || sleep_ns == 0 {
                break;
            }
            let longest = Duration::from_nanos(sleep_ns);
            let woken = self.done.wait_timeout(papers, longest);
            papers = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        papers.wake_at = usize::MAX;
        if papers.ended.len() >= enough {
            return papers;
        }
        drop(papers);
        self.watch.wait_until(until_ns, WAKE_EARLY_NS);
        self.lock()
    }
}

/// Tells the worker where a thread panics: it would wait for ever.
struct Leaving<'a> {
    desk: &'a Desk,
}

impl Drop for Leaving<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.desk.end();
        }
    }
}

/// The price of having a request made by another thread, seconds: the time of a short read by one
/// thread of these, with the next one lying ready, above that of a plain call. The least of a few
/// slices, since whatever else runs here only adds. `None` where it cannot be measured.
pub fn cost_s(watch: Stopwatch) -> Option<f64> {
    const SLICES: usize = 5;
    const REQUESTS: usize = 300;
    let op = Op { offset: 0, length: 4096, class: Class::ReadRand, due_ns: 0 };
    let memory = rustix::fs::memfd_create(c"ioscape-threads", MemfdFlags::CLOEXEC).ok()?;
    let file = File::from(memory);
    file.set_len(op.length).ok()?;
    let parts = Parts {
        file: Arc::new(file),
        path: PathBuf::from("memory"),
        length_max: op.length,
        seed: 1,
        duties: Duties::default(),
        ledger: None,
        watch,
    };
    let least_s = |mut slice: Box<dyn FnMut() -> Option<()>>| {
        let mut least_s = f64::INFINITY;
        for _ in 0..SLICES {
            let began_ns = watch.now_ns();
            slice()?;
            let took_ns = watch.now_ns() - began_ns;
            least_s = least_s.min(took_ns as f64 * 1e-9 / REQUESTS as f64);
        }
        Some(least_s)
    };
    let mut transfer = parts.clone().into_transfer(0);
    let plain = move || (0..REQUESTS).try_for_each(|_| transfer.make(&op).ok());
    let mut threads = Threads::new(parts, 1, Access::Direct);
    let mut tally = Tally::new(false);
    let handed = move || {
        let mut left = REQUESTS;
        while left > 0 {
            threads.submit(&[op; TAKEN_PER_THREAD]).ok()?;
            left = left.saturating_sub(threads.reap(Wait::ForOne, &mut tally).ok()?);
        }
        Some(())
    };
    Some((least_s(Box::new(handed))? - least_s(Box::new(plain))?).max(0.0))
}

#[cfg(test)]
mod tests;
