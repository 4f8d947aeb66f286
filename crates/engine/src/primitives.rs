//! What the operating-system benchmarks time: system calls, pipes, processes, their switches.
//!
//! Each is the bare call, so that what is measured is the kernel's part: `getpid` goes past any
//! cache of the C library, and a child is forked, not spawned.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::error::{Error, Result};

/// Most descriptors that select(2) can look at.
const SELECT_MAX: usize = libc::FD_SETSIZE;

/// Asks the kernel for this process's number, by the bare system call.
#[inline]
pub fn getpid() -> i64 {
    // SAFETY: getpid takes no arguments and cannot fail.
    unsafe { libc::syscall(libc::SYS_getpid) }
}

fn failed(operation: &'static str, path: &str) -> Error {
    Error::path(operation, path, io::Error::last_os_error())
}

/// Reading end, writing end.
fn pipe() -> Result<[OwnedFd; 2]> {
    let mut ends: [RawFd; 2] = [-1; 2];
    // SAFETY: `ends` has room for the two descriptors that pipe2 writes.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(failed("make", "a pipe"));
    }
    // SAFETY: both were just made and belong to nobody else.
    Ok(ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) }))
}

/// One byte, read or written; whether it went through.
#[inline]
fn move_byte(descriptor: RawFd, byte: &mut u8, write: bool) -> bool {
    let at = std::ptr::from_mut(byte).cast();
    // SAFETY: `at` points to one byte that lives through the call.
    let moved = unsafe {
        if write { libc::write(descriptor, at, 1) } else { libc::read(descriptor, at, 1) }
    };
    moved == 1
}

/// Which processors the two processes of a [`PingPong`] run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pinning {
    /// As the scheduler likes.
    Free,
    /// Both on the same one: each byte costs a switch.
    Same,
    /// Each on one of its own.
    Apart,
}

/// A child that sends back each byte it gets: one byte to and fro over two pipes.
#[derive(Debug)]
pub struct PingPong {
    to_child: Option<OwnedFd>,
    from_child: OwnedFd,
    child: Pid,
    /// Where this thread was allowed to run before.
    affinity: Option<CpuSet>,
}

impl PingPong {
    /// Forks the child.
    ///
    /// # Errors
    /// When there is no process, pipe, or second processor to be had.
    pub fn start(pinning: Pinning) -> Result<Self> {
        let [child_reads, to_child] = pipe()?;
        let [from_child, child_writes] = pipe()?;
        let pinned = pinned_to(pinning)?;
        let raw = |end: &OwnedFd| end.as_raw_fd();
        let (reads, writes) = (raw(&child_reads), raw(&child_writes));
        let foreign = [raw(&to_child), raw(&from_child)];
        // SAFETY: the child calls nothing but close, sched_setaffinity, read, write and _exit, all
        // of which are safe after a fork from a process with several threads.
        let forked = unsafe { libc::fork() };
        if forked == 0 {
            if let Some((_, [_, theirs])) = &pinned {
                sched_setaffinity(None, theirs).ok();
            }
            echo(reads, writes, foreign);
        }
        let child = Pid::from_raw(forked).filter(|_| forked > 0);
        let child = child.ok_or_else(|| failed("fork", "a process"))?;
        let mut made = Self { to_child: Some(to_child), from_child, child, affinity: None };
        if let Some((before, [ours, _])) = pinned {
            sched_setaffinity(None, &ours)
                .map_err(|error| Error::path("bind to a processor", "this thread", error))?;
            made.affinity = Some(before);
        }
        Ok(made)
    }

    /// One byte there and back.
    ///
    /// # Errors
    /// When the child is gone.
    #[inline]
    pub fn round_trip(&mut self) -> Result<()> {
        let mut byte = 1;
        let to_child = self.to_child.as_ref().map_or(-1, AsRawFd::as_raw_fd);
        if move_byte(to_child, &mut byte, true)
            && move_byte(self.from_child.as_raw_fd(), &mut byte, false)
        {
            return Ok(());
        }
        Err(failed("pass a byte through", "a pipe"))
    }
}

impl Drop for PingPong {
    fn drop(&mut self) {
        drop(self.to_child.take()); // the child reads the end and goes
        rustix::process::waitpid(Some(self.child), rustix::process::WaitOptions::empty()).ok();
        if let Some(affinity) = &self.affinity {
            sched_setaffinity(None, affinity).ok();
        }
    }
}

/// The child of a [`PingPong`].
fn echo(reads: RawFd, writes: RawFd, foreign: [RawFd; 2]) -> ! {
    for descriptor in foreign {
        // SAFETY: in the child these are copies that nobody uses.
        unsafe { libc::close(descriptor) };
    }
    let mut byte = 0;
    while move_byte(reads, &mut byte, false) && move_byte(writes, &mut byte, true) {}
    // SAFETY: ends the child at once, without running what the parent registered for its end.
    unsafe { libc::_exit(0) }
}

/// Where this thread may run now, and where the two sides are to run.
fn pinned_to(pinning: Pinning) -> Result<Option<(CpuSet, [CpuSet; 2])>> {
    if pinning == Pinning::Free {
        return Ok(None);
    }
    let before = sched_getaffinity(None)
        .map_err(|error| Error::path("ask for the processors of", "this thread", error))?;
    let mut allowed = (0..CpuSet::MAX_CPU).filter(|&cpu| before.is_set(cpu));
    let only = |cpu: usize| {
        let mut set = CpuSet::new();
        set.set(cpu);
        set
    };
    let first = allowed.next().unwrap_or(0);
    let second = if pinning == Pinning::Same { Some(first) } else { allowed.next() };
    let second = second.ok_or_else(|| {
        Error::Refused("two processors are needed, and this process may use one".to_owned())
    })?;
    Ok(Some((before, [only(first), only(second)])))
}

/// Pipes to look at, each with or without a byte in it.
#[derive(Debug)]
pub struct Pipes {
    ends: Vec<[OwnedFd; 2]>,
    polled: Vec<libc::pollfd>,
    epoll: OwnedFd,
}

impl Pipes {
    /// `count` pipes; `full` puts a byte into each.
    ///
    /// # Errors
    /// When they cannot be made, or select could not look at them.
    pub fn new(count: usize, full: bool) -> Result<Self> {
        let mut ends = Vec::new();
        for _ in 0..count {
            let made = pipe()?;
            if full && !move_byte(made[1].as_raw_fd(), &mut 1, true) {
                return Err(failed("write to", "a pipe"));
            }
            ends.push(made);
        }
        let descriptors: Vec<RawFd> = ends.iter().map(|[read, _]| read.as_raw_fd()).collect();
        if descriptors.iter().any(|&descriptor| descriptor as usize >= SELECT_MAX) {
            return Err(Error::Refused(format!(
                "select looks at descriptors below {SELECT_MAX}: close some files"
            )));
        }
        let polled = descriptors
            .iter()
            .map(|&fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 })
            .collect();
        Ok(Self { epoll: epoll_over(&descriptors)?, ends, polled })
    }

    /// How many are readable, by select(2) with no waiting.
    #[inline]
    pub fn select(&mut self) -> i32 {
        // SAFETY: an fd_set is plain bits, and no bit set is a valid one; each descriptor is below
        // FD_SETSIZE (checked when they were made) and the sets outlive the call.
        unsafe {
            let mut set: libc::fd_set = std::mem::zeroed();
            let mut highest = 0;
            for [read, _] in &self.ends {
                libc::FD_SET(read.as_raw_fd(), &raw mut set);
                highest = highest.max(read.as_raw_fd());
            }
            let mut no_wait = libc::timeval { tv_sec: 0, tv_usec: 0 };
            let none = std::ptr::null_mut();
            libc::select(highest + 1, &raw mut set, none, none, &raw mut no_wait)
        }
    }

    /// How many are readable, by poll(2) with no waiting.
    #[inline]
    pub fn poll(&mut self) -> i32 {
        let count = self.polled.len() as libc::nfds_t;
        // SAFETY: `polled` holds `count` entries and outlives the call.
        unsafe { libc::poll(self.polled.as_mut_ptr(), count, 0) }
    }

    /// How many are readable, by `epoll_wait`(2) with no waiting, up to 64.
    #[inline]
    pub fn epoll(&mut self) -> i32 {
        const EVENTS: i32 = 64;
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS as usize];
        // SAFETY: `events` has room for as many entries as are asked for.
        unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), events.as_mut_ptr(), EVENTS, 0) }
    }
}

fn epoll_over(descriptors: &[RawFd]) -> Result<OwnedFd> {
    // SAFETY: takes a flag and gives a new descriptor or an error.
    let raw = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
    if raw < 0 {
        return Err(failed("make", "an epoll set"));
    }
    // SAFETY: it was just made and belongs to nobody else.
    let epoll = unsafe { OwnedFd::from_raw_fd(raw) };
    for &descriptor in descriptors {
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 0 };
        // SAFETY: `event` lives through the call; the kernel copies it.
        let added = unsafe {
            libc::epoll_ctl(epoll.as_raw_fd(), libc::EPOLL_CTL_ADD, descriptor, &raw mut event)
        };
        if added != 0 {
            return Err(failed("add a pipe to", "an epoll set"));
        }
    }
    Ok(epoll)
}

/// What processes have used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Processor time in user code, seconds.
    pub user_s: f64,
    /// Processor time in the kernel, seconds.
    pub system_s: f64,
    /// Switches away because there was nothing to do.
    pub voluntary_switches: u64,
    /// Switches away because another was to run.
    pub involuntary_switches: u64,
}

impl Usage {
    /// Of this process, all threads.
    pub fn of_self() -> Self {
        Self::read(libc::RUSAGE_SELF)
    }

    /// Of all children that have ended and been waited for, and of theirs.
    pub fn of_children() -> Self {
        Self::read(libc::RUSAGE_CHILDREN)
    }

    fn read(who: i32) -> Self {
        // SAFETY: all zeros is a valid rusage.
        let mut found: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `found` has room for what getrusage writes.
        if unsafe { libc::getrusage(who, &raw mut found) } != 0 {
            return Self::default();
        }
        let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
        Self {
            user_s: seconds(found.ru_utime),
            system_s: seconds(found.ru_stime),
            voluntary_switches: found.ru_nvcsw as u64,
            involuntary_switches: found.ru_nivcsw as u64,
        }
    }

    /// What was used since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user_s: self.user_s - earlier.user_s,
            system_s: self.system_s - earlier.system_s,
            voluntary_switches: self.voluntary_switches - earlier.voluntary_switches,
            involuntary_switches: self.involuntary_switches - earlier.involuntary_switches,
        }
    }

    /// All switches.
    pub fn switches(&self) -> u64 {
        self.voluntary_switches + self.involuntary_switches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn getpid_is_what_the_library_says() {
        assert_eq!(getpid(), i64::from(std::process::id()));
    }

    /// Voluntary switches of a thread or process, and all of them.
    fn switches(status: &str) -> [u64; 2] {
        let text = std::fs::read_to_string(status).unwrap();
        let count = |key: &str| -> u64 {
            let line = text.lines().find(|line| line.starts_with(key)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse().unwrap()
        };
        let voluntary = count("voluntary_ctxt_switches:");
        [voluntary, voluntary + count("nonvoluntary_ctxt_switches:")]
    }

    /// A process that shares the processor with its partner goes to sleep at most once a trip, and
    /// is switched to and from as often at least. Whoever else runs there only adds switches that
    /// nobody asked for.
    #[test]
    fn a_round_trip_on_one_processor_costs_two_switches() {
        const TRIPS: u64 = 3000;
        let mut pair = PingPong::start(Pinning::Same).unwrap();
        let child = format!("/proc/{}/status", pair.child.as_raw_nonzero());
        // Of this thread alone: other tests of this process run meanwhile.
        let both =
            |index: usize| switches("/proc/thread-self/status")[index] + switches(&child)[index];
        pair.round_trip().unwrap();
        let before = [both(0), both(1)];
        for _ in 0..TRIPS {
            pair.round_trip().unwrap();
        }
        let per_trip = [0, 1].map(|index| (both(index) - before[index]) as f64 / TRIPS as f64);
        assert!(per_trip[0] < 2.01 && per_trip[1] > 1.99, "{per_trip:?}, voluntary and all");
    }

    #[test]
    fn processes_go_where_they_are_told_and_come_back() {
        let before = sched_getaffinity(None).unwrap();
        let mut free = PingPong::start(Pinning::Free).unwrap();
        free.round_trip().unwrap();
        drop(free);
        if before.count() >= 2 {
            let mut apart = PingPong::start(Pinning::Apart).unwrap();
            assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
            apart.round_trip().unwrap();
        } else {
            assert!(PingPong::start(Pinning::Apart).is_err());
        }
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }

    #[test]
    fn pipes_with_something_in_them_are_readable_and_others_are_not() {
        for (count, full) in [(1_u8, false), (10, false), (10, true)] {
            let mut pipes = Pipes::new(count.into(), full).unwrap();
            let expected = if full { i32::from(count) } else { 0 };
            let found = [pipes.select(), pipes.poll(), pipes.epoll()];
            assert_eq!(found, [expected; 3], "{count} {full}");
        }
    }

    #[test]
    fn usage_grows() {
        let before = Usage::of_self();
        let mut sum = 0_u64;
        while Usage::of_self().since(&before).user_s < 0.005 {
            for value in 0..10_000_u64 {
                sum = std::hint::black_box(sum.wrapping_add(value));
            }
        }
        assert!(Usage::of_self().user_s > before.user_s);
    }
}
