//! Where a benchmark's time goes: its own reads, writes, waits for storage and calls about names,
//! each timed where the trial is metered and simply made where it is not.
//!
//! What the kernel does later on its own account is not in here: these are the times for which
//! the benchmark waited.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ioscape_engine::error::{Error, Result};
use ioscape_engine::{Clock, primitives::Usage};
use ioscape_model::IoShare;

/// What a call was for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Data from a file.
    Read,
    /// Data to a file.
    Write,
    /// Waiting for storage.
    Sync,
    /// Open, close, create, remove, stat, list.
    Name,
}

/// One call of a metered trial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// What it was for.
    pub call: Call,
    /// Which file, as the benchmark counts them.
    pub file: u32,
    /// Where, bytes; 0 where there is no place.
    pub offset: u64,
    /// How much, bytes.
    pub length: u64,
    /// How long it took.
    pub nanoseconds: u64,
}

/// Counts and times the calls of one process of a benchmark.
#[derive(Debug)]
pub struct Meter {
    clock: Clock,
    interrupt: Arc<AtomicBool>,
    metered: bool,
    running_since_ns: Option<u64>,
    busy_ns: u64,
    at_most_ns: Option<u64>,
    log: Vec<Access>,
}

impl Meter {
    /// One that times calls if `metered`, and fails with [`Error::Interrupted`] once `interrupt`
    /// is raised.
    pub fn new(clock: Clock, interrupt: Arc<AtomicBool>, metered: bool) -> Self {
        Self {
            clock,
            interrupt,
            metered,
            running_since_ns: None,
            busy_ns: 0,
            at_most_ns: None,
            log: Vec::new(),
        }
    }

    /// Another one for another process of the same trial; see [`Self::join`].
    #[must_use]
    pub fn fork(&self) -> Self {
        Self::new(self.clock, Arc::clone(&self.interrupt), self.metered)
    }

    /// Adds what a process of its own did.
    pub fn join(&mut self, other: Self) {
        self.busy_ns += other.busy_ns;
        self.log.extend(other.log);
        if let Some(ns) = other.at_most_ns {
            *self.at_most_ns.get_or_insert(0) += ns;
        }
    }

    /// Whether calls are timed.
    pub fn is_metered(&self) -> bool {
        self.metered
    }

    /// The timed part begins or goes on.
    pub fn begin(&mut self) {
        self.running_since_ns = Some(self.clock.now_ns());
    }

    /// The timed part pauses or ends; gives the seconds since it began.
    pub fn end(&mut self) -> f64 {
        let Some(since_ns) = self.running_since_ns.take() else { return 0.0 };
        let ns = self.clock.now_ns() - since_ns;
        self.busy_ns += ns;
        ns as f64 * 1e-9
    }

    /// Fails where the run was interrupted.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.interrupt.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Seconds since the run's start.
    pub fn now_s(&self) -> f64 {
        self.clock.now_s()
    }

    /// The clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Makes a call about data at a place.
    ///
    /// # Errors
    /// What the call said.
    #[inline]
    pub fn at<T>(
        &mut self,
        call: Call,
        file: u32,
        place: (u64, usize),
        make: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        if !self.metered || self.running_since_ns.is_none() {
            return make();
        }
        let start_ns = self.clock.now_ns();
        let made = make();
        let nanoseconds = self.clock.now_ns() - start_ns;
        let (offset, length) = (place.0, place.1 as u64);
        self.log.push(Access { call, file, offset, length, nanoseconds });
        made
    }

    /// The read that was just made gave less than was asked for.
    #[inline]
    pub(crate) fn came(&mut self, count: usize) {
        if self.metered
            && self.running_since_ns.is_some()
            && let Some(access) = self.log.last_mut()
        {
            access.length = count as u64;
        }
    }

    /// Makes a call about a name.
    ///
    /// # Errors
    /// What the call said, with the name.
    pub fn name<T>(
        &mut self,
        operation: &'static str,
        path: &Path,
        make: impl FnOnce() -> io::Result<T>,
    ) -> Result<T> {
        self.check()?;
        self.at(Call::Name, 0, (0, 0), make).map_err(|error| Error::path(operation, path, error))
    }

    /// Counts time that commands of their own took, `elapsed_s` each of `processes` of them at a
    /// time: what was not user code may have been I/O.
    pub fn commands(&mut self, elapsed_s: f64, processes: u32, usage: &Usage) {
        let busy_s = elapsed_s * f64::from(processes);
        let at_most_s = (busy_s - usage.user_s).max(0.0);
        *self.at_most_ns.get_or_insert(0) += (at_most_s * 1e9) as u64;
        // The waiting process itself is counted by `end`.
        self.busy_ns += ((busy_s - elapsed_s).max(0.0) * 1e9) as u64;
    }

    /// All calls of the trial so far.
    pub fn log(&self) -> &[Access] {
        &self.log
    }

    /// Where the time went; none where nothing was metered.
    pub fn share(&self) -> Option<IoShare> {
        if !self.metered || (self.log.is_empty() && self.at_most_ns.is_none()) {
            return None;
        }
        let mut share = IoShare { busy_s: self.busy_ns as f64 * 1e-9, ..IoShare::default() };
        for access in &self.log {
            let seconds = access.nanoseconds as f64 * 1e-9;
            match access.call {
                Call::Read => {
                    share.read_s += seconds;
                    share.reads += u64::from(access.length > 0);
                    share.read_bytes += access.length;
                }
                Call::Write => {
                    share.write_s += seconds;
                    share.writes += 1;
                    share.written_bytes += access.length;
                }
                Call::Sync => {
                    share.sync_s += seconds;
                    share.syncs += 1;
                }
                Call::Name => share.name_s += seconds,
            }
        }
        let seen_s = share.read_s + share.write_s + share.sync_s;
        share.at_most_s = self.at_most_ns.map(|ns| ns as f64 * 1e-9 + seen_s);
        share.unique_bytes = self.at_most_ns.is_none().then(|| unique_bytes(&self.log));
        share.sequential = sequential(&self.log);
        share.size_variation = size_variation(&self.log);
        Some(share)
    }
}

/// Bytes touched by reads and writes, each counted once.
pub fn unique_bytes(log: &[Access]) -> u64 {
    let mut by_file: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for access in log {
        if matches!(access.call, Call::Read | Call::Write) {
            let stretch = (access.offset, access.offset + access.length);
            by_file.entry(access.file).or_default().push(stretch);
        }
    }
    let of_file = |mut stretches: Vec<(u64, u64)>| {
        stretches.sort_unstable();
        let (mut bytes, mut reached) = (0, 0);
        for (from, to) in stretches {
            bytes += to.saturating_sub(from.max(reached));
            reached = reached.max(to);
        }
        bytes
    };
    by_file.into_values().map(of_file).sum()
}

/// Reads and writes, those at the end of a file that gave nothing left out.
fn transfers(log: &[Access]) -> impl Iterator<Item = &Access> {
    log.iter().filter(|a| matches!(a.call, Call::Read | Call::Write) && a.length > 0)
}

/// Transfers that start where the one before in the same file ended.
fn sequential(log: &[Access]) -> u64 {
    let mut ends: BTreeMap<u32, u64> = BTreeMap::new();
    let mut count = 0;
    for access in transfers(log) {
        let before = ends.insert(access.file, access.offset + access.length);
        count += u64::from(before == Some(access.offset));
    }
    count
}

/// Standard deviation over mean of the sizes of transfers.
fn size_variation(log: &[Access]) -> f64 {
    let count = transfers(log).count() as f64;
    let mean = transfers(log).map(|access| access.length as f64).sum::<f64>() / count;
    let squares: f64 = transfers(log).map(|access| (access.length as f64 - mean).powi(2)).sum();
    if count > 0.0 { (squares / count).sqrt() / mean } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::handle::Handle;

    fn access(call: Call, file: u32, offset: u64, length: u64) -> Access {
        Access { call, file, offset, length, nanoseconds: 500_000_000 }
    }

    #[test]
    fn bytes_touched_twice_count_once() {
        let log = [
            access(Call::Read, 1, 0, 100),
            access(Call::Write, 1, 50, 100),
            access(Call::Read, 1, 1000, 10),
            access(Call::Read, 1, 1002, 3),
            access(Call::Read, 2, 0, 7),
            access(Call::Sync, 2, 0, 999),
        ];
        assert_eq!(unique_bytes(&log), 150 + 10 + 7);
    }

    #[test]
    fn transfers_are_sequential_by_file() {
        let log = [
            access(Call::Read, 1, 0, 100),
            access(Call::Read, 2, 0, 100),
            access(Call::Read, 1, 100, 100),
            access(Call::Write, 1, 200, 50),
            access(Call::Write, 1, 200, 50),
            access(Call::Read, 2, 100, 0),
        ];
        assert_eq!(sequential(&log), 2);
        let variation = size_variation(&log);
        // 100, 100, 100, 50, 50: mean 80, standard deviation 24.49.
        assert!((variation - 24.4949 / 80.0).abs() < 1e-5, "{variation}");
    }

    #[test]
    fn only_what_is_metered_and_inside_the_timed_part_counts() {
        let directory = tempfile::tempdir().unwrap();
        for metered in [false, true] {
            let mut meter = Meter::new(Clock::start(), Arc::default(), metered);
            let path = directory.path().join("file");
            let mut file = Handle::create(&mut meter, &path, 3).unwrap();
            file.write(&mut meter, &[1; 997]).unwrap();
            meter.begin();
            file.seek(13).unwrap();
            file.write(&mut meter, &[2; 101]).unwrap();
            file.close(&mut meter).unwrap();
            let elapsed_s = meter.end();
            assert!(elapsed_s > 0.0);
            let share = meter.share();
            assert_eq!(share.is_some(), metered);
            let Some(share) = share else { continue };
            assert_eq!((share.writes, share.written_bytes, share.reads), (1, 101, 0));
            assert_eq!(share.unique_bytes, Some(101));
            assert!(share.write_s > 0.0 && share.name_s > 0.0);
            assert!(share.write_s + share.name_s < share.busy_s);
            assert!((share.busy_s - elapsed_s).abs() < 1e-12);
        }
    }

    #[test]
    fn an_interrupt_ends_it_at_the_next_call() {
        let raised = Arc::new(AtomicBool::new(false));
        let meter = Meter::new(Clock::start(), Arc::clone(&raised), false);
        meter.check().unwrap();
        raised.store(true, Ordering::Relaxed);
        assert!(matches!(meter.check(), Err(Error::Interrupted)));
    }
}
