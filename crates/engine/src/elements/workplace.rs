//! Where elements are measured: a scratch directory, the watch, what may be written, what was
//! measured so far and what could not be.

use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ioscape_model::{ElementName, Warning};
use rand::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::cycles::Cycles;
use super::sample::{Sample, Shape};
use crate::aligned::Aligned;
use crate::clock::Stopwatch;
use crate::error::{Error, Result};
use crate::run_id::RunId;
use crate::scratch::Scratch;
use crate::target::Directory;

/// What the kernel calls a page nearly everywhere, and what the elements are about.
pub(super) const PAGE: usize = 4096;
/// Cheap operations are done this often between two looks at the watch.
const BATCH_MAX: u64 = 64;
/// A batch this long needs no longer one, nanoseconds.
const BATCH_NS: u64 = 20_000;
/// Of what is free, so much is used at most.
const ROOM_SHARE: u64 = 4;

/// How long one part of a round takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Operations that wait for nothing: microseconds each, seconds for all of a kind.
    pub cheap_s: f64,
    /// Operations that wait for storage, seconds for all of a kind.
    pub costly_s: f64,
    /// Storage is kept busy for so long before it is timed: throttles let a burst through, seconds.
    pub ramp_s: f64,
    /// Most that making what is measured may take, for each part, seconds.
    pub prepare_s: f64,
}

impl Pace {
    /// For a vector that may take so long, seconds.
    pub fn within(budget_s: f64) -> Self {
        Self {
            cheap_s: (budget_s / 12_000.0).clamp(0.001, 0.005),
            costly_s: (budget_s / 500.0).clamp(0.01, 0.12),
            ramp_s: (budget_s / 400.0).clamp(0.05, 0.15),
            prepare_s: budget_s / 12.0,
        }
    }
}

/// When operations of one kind have been done often enough.
#[derive(Clone, Copy, Debug)]
pub(super) struct Enough {
    pub(super) seconds: f64,
    pub(super) calls: u64,
}

/// Limits of a workplace.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Seconds for each part of a round.
    pub pace: Pace,
    /// Most bytes that may be written.
    pub written_max_bytes: u64,
    /// Where all chance comes from.
    pub seed: u64,
}

/// An element that was not measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Which.
    pub name: ElementName,
    /// Why.
    pub why: String,
}

/// The workplace. Dropping it removes all that was made in it.
#[derive(Debug)]
pub(super) struct Workplace {
    scratch: Scratch,
    root: Arc<OwnedFd>,
    directory: Arc<Directory>,
    watch: Stopwatch,
    queue: RunQueue,
    interrupt: Arc<AtomicBool>,
    limits: Limits,
    chance: Xoshiro256PlusPlus,
    room_bytes: u64,
    written_bytes: u64,
    samples: Vec<Sample>,
    refusals: Vec<Refusal>,
    warnings: Vec<(ElementName, Warning)>,
}

impl Workplace {
    /// Directory `number` of a run.
    pub(super) fn new(
        directory: Arc<Directory>,
        (run, number): (&RunId, usize),
        limits: Limits,
        interrupt: Arc<AtomicBool>,
    ) -> Result<Self> {
        // In whole mebibytes: pieces of files are as long as that, and begin where a page does.
        let room_bytes = directory.free_bytes()? / ROOM_SHARE;
        let room_bytes = room_bytes - room_bytes % (1 << 20);
        let scratch = Scratch::new(Arc::clone(&directory), run, number)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::open(scratch.path(), flags, Mode::empty())
            .map_err(|error| Error::path("open", scratch.path(), error))?;
        Ok(Self {
            scratch,
            root: Arc::new(root),
            directory,
            watch: Stopwatch::calibrated(),
            queue: RunQueue::open(),
            interrupt,
            limits,
            chance: Xoshiro256PlusPlus::seed_from_u64(limits.seed),
            room_bytes,
            written_bytes: 0,
            samples: vec![],
            refusals: vec![],
            warnings: vec![],
        })
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        self.scratch.path()
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    pub(super) fn root(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.root)
    }

    pub(super) fn pace(&self) -> Pace {
        self.limits.pace
    }

    /// Cheap operations: some thousands at most.
    pub(super) fn cheap(&self) -> Enough {
        Enough { seconds: self.limits.pace.cheap_s, calls: 20_000 }
    }

    /// Costly ones, so many at most.
    pub(super) fn costly(&self, calls: u64) -> Enough {
        Enough { seconds: self.limits.pace.costly_s, calls }
    }

    pub(super) fn now_s(&self) -> f64 {
        self.watch.now_ns() as f64 * 1e-9
    }

    /// A moment to count from.
    pub(super) fn lap(&self) -> Lap {
        let waited_ns = self.queue.waited_ns();
        Lap { waited_ns, at_ns: self.watch.now_ns() }
    }

    /// Seconds since then, without those in which this thread could have gone on and others had the
    /// processor: they are no part of what an operation takes.
    pub(super) fn since(&self, lap: &Lap) -> f64 {
        let passed_ns = self.watch.now_ns() - lap.at_ns;
        let waited_ns = self.queue.waited_ns().saturating_sub(lap.waited_ns);
        passed_ns.saturating_sub(waited_ns).max(1) as f64 * 1e-9
    }

    /// Bytes that files may take here, at most.
    pub(super) fn room_bytes(&self, wanted_bytes: u64) -> u64 {
        wanted_bytes.min(self.room_bytes)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.chance.next_u64() % bound.max(1)
    }

    /// `0..count` in random order.
    pub(super) fn shuffled(&mut self, count: u64) -> Vec<u64> {
        let mut order: Vec<u64> = (0..count).collect();
        for last in (1..order.len()).rev() {
            order.swap(last, self.below(last as u64 + 1) as usize);
        }
        order
    }

    /// Bytes that nothing compresses, at an address that direct access takes.
    pub(super) fn buffer(&mut self, length: usize) -> Buffer {
        let mut memory = Aligned::new(length);
        self.chance.fill_bytes(memory.bytes_mut());
        Buffer(memory)
    }

    /// Counts what is written.
    ///
    /// # Errors
    /// When that is more than may be, or the run was interrupted.
    pub(super) fn note_written(&mut self, bytes: u64) -> Result<()> {
        self.written_bytes += bytes;
        if self.written_bytes > self.limits.written_max_bytes {
            return Err(Error::MaxWritten);
        }
        self.go_on()
    }

    /// Bytes written so far.
    pub(super) fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// # Errors
    /// When the run was interrupted.
    pub(super) fn go_on(&self) -> Result<()> {
        if self.interrupt.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Notes that an element is not to be had here, once.
    pub(super) fn refuse(&mut self, name: ElementName, why: impl Into<String>) {
        if !self.is_refused(name) {
            self.refusals.push(Refusal { name, why: why.into() });
        }
    }

    pub(super) fn is_refused(&self, name: ElementName) -> bool {
        self.refusals.iter().any(|refusal| refusal.name == name)
    }

    pub(super) fn refusals(&self) -> &[Refusal] {
        &self.refusals
    }

    /// Notes a doubt about an element, once for each code.
    pub(super) fn doubt(&mut self, name: ElementName, warning: Warning) {
        let is_known =
            |(of, known): &(ElementName, Warning)| *of == name && known.code == warning.code;
        if !self.warnings.iter().any(is_known) {
            self.warnings.push((name, warning));
        }
    }

    pub(super) fn warnings(&self) -> &[(ElementName, Warning)] {
        &self.warnings
    }

    /// What was measured since it was last asked for.
    pub(super) fn take_samples(&mut self) -> Vec<Sample> {
        std::mem::take(&mut self.samples)
    }

    /// Enters what was timed by other means.
    pub(super) fn push(&mut self, name: ElementName, shape: Shape, (calls, time_s): (u64, f64)) {
        if calls > 0 && time_s > 0.0 {
            self.samples.push(Sample { name, shape, calls, time_s });
        }
    }

    /// Does an operation over and over and times all of it; answers how often.
    ///
    /// # Errors
    /// What the kernel said, unless it is that there is no such thing here.
    pub(super) fn time(
        &mut self,
        (name, shape): (ElementName, Shape),
        enough: Enough,
        mut operation: impl FnMut(u64) -> rustix::io::Result<()>,
    ) -> Result<u64> {
        self.go_on()?;
        if self.is_refused(name) {
            return Ok(0);
        }
        let most_ns = (enough.seconds * 1e9) as u64;
        let lap = self.lap();
        let began_ns = self.watch.now_ns();
        let (mut calls, mut batch, mut passed_ns) = (0, 1, 0);
        while calls < enough.calls && (calls == 0 || passed_ns < most_ns) {
            for _ in 0..batch.min(enough.calls - calls) {
                if let Err(error) = operation(calls) {
                    return self.failed(name, error).map(|()| calls);
                }
                calls += 1;
            }
            let before_ns = passed_ns;
            passed_ns = self.watch.now_ns() - began_ns;
            if passed_ns - before_ns < BATCH_NS {
                batch = (batch * 2).min(BATCH_MAX);
            }
        }
        let time_s = self.since(&lap);
        self.push(name, shape, (calls, time_s));
        Ok(calls)
    }

    /// Repeats an operation that waits for storage and times each call, so that bursts of a request
    /// limit can be told from waits; answers how often.
    ///
    /// # Errors
    /// The kernel's error, unless it says that the operation does not exist here.
    pub(super) fn time_waits(
        &mut self,
        of: (ElementName, Shape),
        enough: Enough,
        mut operation: impl FnMut(u64) -> rustix::io::Result<()>,
    ) -> Result<u64> {
        self.time_each(of, enough, Ok, |call| operation(*call))
    }

    /// Does an operation over and over and times only it, not what is done before and after; answers
    /// how often.
    ///
    /// # Errors
    /// What the kernel said, unless it is that there is no such thing here.
    pub(super) fn time_each<T>(
        &mut self,
        (name, shape): (ElementName, Shape),
        enough: Enough,
        mut before: impl FnMut(u64) -> rustix::io::Result<T>,
        mut operation: impl FnMut(&mut T) -> rustix::io::Result<()>,
    ) -> Result<u64> {
        self.go_on()?;
        if self.is_refused(name) {
            return Ok(0);
        }
        let began_s = self.now_s();
        let mut cycles = Cycles::begun(began_s);
        let mut calls = 0;
        while calls < enough.calls
            && (calls == 0
                || !cycles.are_enough(self.now_s(), (enough.seconds, self.pace().ramp_s)))
        {
            let mut prepared = match before(calls) {
                Ok(prepared) => prepared,
                Err(error) => return self.failed(name, error).map(|()| calls),
            };
            let lap = self.lap();
            let done = operation(&mut prepared);
            let time_s = self.since(&lap);
            if let Err(error) = done {
                return self.failed(name, error).map(|()| calls);
            }
            calls += 1;
            cycles.add(time_s, self.now_s());
        }
        self.push(name, shape, cycles.timed());
        Ok(calls)
    }

    /// Keeps storage busy for the ramp.
    ///
    /// # Errors
    /// What the kernel said.
    pub(super) fn ramp(
        &mut self,
        mut operation: impl FnMut(u64) -> rustix::io::Result<()>,
    ) -> Result<u64> {
        let until_s = self.now_s() + self.pace().ramp_s;
        let mut calls = 0;
        while self.now_s() < until_s {
            self.go_on()?;
            operation(calls).map_err(|error| self.error("measure in", error))?;
            calls += 1;
        }
        Ok(calls)
    }

    /// An operation that does not exist here leaves its element out; any other failure is one.
    fn failed(&mut self, name: ElementName, error: Errno) -> Result<()> {
        const ABSENT: [Errno; 7] = [
            Errno::OPNOTSUPP,
            Errno::NOSYS,
            Errno::INVAL,
            Errno::PERM,
            Errno::ACCESS,
            Errno::XDEV,
            Errno::NOLCK,
        ];
        if ABSENT.contains(&error) {
            self.refuse(name, format!("it is not to be had here ({error})"));
            return Ok(());
        }
        Err(self.error("measure in", error))
    }

    pub(super) fn error(&self, operation: &'static str, error: Errno) -> Error {
        Error::path(operation, self.path(), error)
    }
}

/// A moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lap {
    at_ns: u64,
    /// For how long this thread had waited for a processor by then.
    waited_ns: u64,
}

/// How long this thread has waited for a processor while it could run, as the kernel counts it.
#[derive(Debug)]
struct RunQueue {
    /// The thread's `schedstat`, where the kernel keeps one.
    counter: Option<std::fs::File>,
}

impl RunQueue {
    /// Of the thread that asks.
    fn open() -> Self {
        Self { counter: std::fs::File::open("/proc/thread-self/schedstat").ok() }
    }

    /// The second number: nanoseconds (Documentation/scheduler/sched-stats in the kernel). It is 0
    /// where nobody counts.
    fn waited_ns(&self) -> u64 {
        let mut text = [0; 64];
        let length = self
            .counter
            .as_ref()
            .and_then(|counter| std::os::unix::fs::FileExt::read_at(counter, &mut text, 0).ok());
        let numbers = std::str::from_utf8(&text[..length.unwrap_or(0)]).ok();
        let waited = numbers.and_then(|text| text.split_whitespace().nth(1)?.parse().ok());
        waited.unwrap_or(0)
    }
}

/// Bytes that nothing compresses.
#[derive(Debug)]
pub(super) struct Buffer(Aligned);

impl Buffer {
    pub(super) fn get(&self, length: usize) -> &[u8] {
        let bytes = self.0.bytes();
        &bytes[..length.min(bytes.len())]
    }

    pub(super) fn get_mut(&mut self, length: usize) -> &mut [u8] {
        let bytes = self.0.bytes_mut();
        let length = length.min(bytes.len());
        &mut bytes[..length]
    }
}

/// `count` names that begin alike.
pub(super) fn names(prefix: &str, count: usize) -> Vec<CString> {
    let name = |number: usize| CString::new(format!("{prefix}{number:06}"));
    (0..count).map(|number| name(number).expect("a name of letters and digits")).collect()
}

/// Creates or opens a file for reading and writing.
pub(super) fn open_at(
    directory: impl AsFd,
    name: &str,
    extra: OFlags,
) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | extra;
    rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR)
}

/// Writes all of it at once.
pub(super) fn write_at(file: impl AsFd, bytes: &[u8], offset: u64) -> rustix::io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pwrite(&file, &bytes[done..], offset + done as u64)? {
            0 => return Err(Errno::IO),
            moved => done += moved,
        }
    }
    Ok(())
}

/// Reads all of it at once.
pub(super) fn read_at(file: impl AsFd, bytes: &mut [u8], offset: u64) -> rustix::io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match rustix::io::pread(&file, &mut bytes[done..], offset + done as u64)? {
            0 => return Err(Errno::IO),
            moved => done += moved,
        }
    }
    Ok(())
}
