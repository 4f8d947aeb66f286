//! io_uring: many requests in flight for one worker.
//!
//! Each request is handed over by itself, so that storage has it while the next one is made ready,
//! and waiting takes a system call of its own, where anything is to be waited for. Handed over
//! together with the wait, a virtual disk was 11 % slower at depths 8 and 32. The file is
//! registered, and the buffers are where the limit on locked memory allows. The ring belongs to the
//! worker's thread: it is made disabled elsewhere, and enabled there. What the kernel has to do for a
//! completion it does when the worker next enters it, and not by interrupting what the worker does; a
//! flag in the queue says that there is something to enter for, which an open loop looks at without a
//! system call.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use io_uring::types::{Fixed, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode, squeue};

use super::buffers::Buffers;
use super::psync::Parts;
use super::{Done, InFlight, SyncDue, Wait, short};
use crate::clock::Stopwatch;
use crate::error::{Error, Result, advice, is_denial};
use crate::request::Op;
use crate::tally::Tally;
use crate::verify::{Ledger, Reading};

/// Most requests in flight for one worker.
pub const DEPTH_MAX: u32 = 4096;
/// Larger buffers than this, all together, are not registered: the kernel would hold every page
/// of them in memory, and what that saves is nothing beside copying as much.
const REGISTERED_MAX_BYTES: usize = 64 << 20;
/// A sleeping waiter wakes up this much before a request is due, and spins from there.
const WAKE_EARLY_NS: u64 = 80_000;
/// The kernel's submission thread goes to sleep after so long without work, milliseconds.
const SUBMITTER_IDLE_MS: u32 = 1000;

/// What a ring may be asked to do beyond the usual.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct UringOptions {
    /// Completions are polled for instead of waiting for interrupts: direct access only, on
    /// devices whose driver has queues for it.
    pub polled: bool,
    /// A thread of the kernel fetches requests: no system call to submit, a processor for it.
    pub kernel_submission: bool,
}

/// A worker's ring, file, buffers and requests in flight.
pub struct Uring {
    ring: IoUring,
    /// Whether the ring is enabled: by the worker, at its first request.
    is_on: bool,
    /// Registered: the ring refers to it.
    _file: Arc<File>,
    path: PathBuf,
    buffers: Buffers,
    buffers_registered: bool,
    options: UringOptions,
    slots: Vec<Slot>,
    /// The slot used last is used first: its buffer is warm.
    free: Vec<u16>,
    sync_due: SyncDue,
    ledger: Option<Arc<Ledger>>,
    watch: Stopwatch,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    op: Op,
    began_ns: u64,
    /// Bytes so far: the kernel may move a part and leave the rest to be asked for.
    moved: u64,
    /// Its bytes are moved, and the fdatasync after them is under way.
    is_syncing: bool,
    /// With a ledger, of a read.
    reading: Reading,
}

impl Uring {
    /// A ring for `depth` requests in flight.
    ///
    /// # Errors
    /// When io_uring cannot be used here; the message says what would do instead.
    pub fn new(parts: Parts, depth: u32, options: UringOptions) -> Result<Self> {
        let ring = build(depth, options).map_err(|error| forbidden(&error))?;
        ring.submitter()
            .register_files(&[parts.file.as_raw_fd()])
            .map_err(|error| forbidden(&error))?;
        let mut buffers = Buffers::new(depth as usize, parts.length_max, parts.seed);
        let buffers_registered = register(&ring, &mut buffers);
        let op = Op { offset: 0, length: 0, class: crate::rig::Class::ReadSeq, due_ns: 0 };
        let reading = Reading::default();
        let slot = Slot { op, began_ns: 0, moved: 0, is_syncing: false, reading };
        Ok(Self {
            ring,
            is_on: false,
            _file: parts.file,
            path: parts.path,
            buffers,
            buffers_registered,
            options,
            slots: vec![slot; depth as usize],
            free: (0..depth as u16).rev().collect(),
            sync_due: SyncDue::new(parts.duties),
            ledger: parts.ledger,
            watch: parts.watch,
        })
    }

    /// Whether the kernel holds the buffers, so that it need not look them up for every request.
    pub fn buffers_registered(&self) -> bool {
        self.buffers_registered
    }

    fn in_flight(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Puts the rest of a slot's request into the queue.
    fn push(&mut self, index: u16) {
        let Slot { op, moved, is_syncing, .. } = self.slots[usize::from(index)];
        let (offset, length) = (op.offset + moved, (op.length - moved) as u32);
        let fresh = moved == 0 && !is_syncing;
        let bytes = if fresh && !op.class.is_read() {
            let bytes = self.buffers.stamped(usize::from(index), op.length);
            if let Some(ledger) = &self.ledger {
                ledger.begin_write(bytes, op.offset);
            }
            bytes
        } else {
            self.buffers.get(usize::from(index), op.length)
        };
        let pointer = bytes[moved as usize..].as_mut_ptr();
        let file = Fixed(0);
        let entry = match (is_syncing, op.class.is_read(), self.buffers_registered) {
            (true, _, _) => opcode::Fsync::new(file).flags(FsyncFlags::DATASYNC).build(),
            (_, true, true) => {
                opcode::ReadFixed::new(file, pointer, length, index).offset(offset).build()
            }
            (_, true, false) => opcode::Read::new(file, pointer, length).offset(offset).build(),
            (_, false, true) => {
                opcode::WriteFixed::new(file, pointer, length, index).offset(offset).build()
            }
            (_, false, false) => opcode::Write::new(file, pointer, length).offset(offset).build(),
        };
        self.push_entry(&entry.user_data(u64::from(index)));
    }

    fn push_entry(&mut self, entry: &squeue::Entry) {
        // SAFETY: the entry's buffer is the part of `buffers` that belongs to its slot. It is not
        // touched again before the slot's completion, and `drop` waits for all completions before
        // the memory goes.
        let pushed = unsafe { self.ring.submission().push(entry) };
        pushed.expect("the queue has an entry for every slot, and a slot has one request");
    }

    /// Hands over what is queued and waits as long as asked for.
    fn enter(&mut self, wait: Wait) -> io::Result<()> {
        match wait {
            Wait::ForOne => {
                let is_all_over = self.ring.submission().is_empty();
                if is_all_over && !self.ring.completion().is_empty() {
                    return Ok(());
                }
                retried(|| self.ring.submit_and_wait(1))
            }
            Wait::Until(until_ns) => {
                let sleep_ns = until_ns.saturating_sub(self.watch.now_ns() + WAKE_EARLY_NS);
                if sleep_ns > 0 {
                    let timeout = Timespec::from(Duration::from_nanos(sleep_ns));
                    let until = SubmitArgs::new().timespec(&timeout);
                    retried(|| self.ring.submitter().submit_with_args(1, &until))?;
                }
                if !self.ring.submission().is_empty() {
                    retried(|| self.ring.submit())?;
                }
                loop {
                    if self.options.polled || self.ring.submission().taskrun() {
                        retried(|| self.ring.submit_and_wait(0))?;
                    }
                    let is_done = !self.ring.completion().is_empty();
                    if is_done || self.watch.now_ns() >= until_ns {
                        return Ok(());
                    }
                    std::hint::spin_loop();
                }
            }
        }
    }

    /// One completion: the request is done, or has to go on.
    fn complete(&mut self, index: u16, result: i32, ended_ns: u64) -> io::Result<Option<Done>> {
        let slot = &mut self.slots[usize::from(index)];
        if result < 0 {
            let error = io::Error::from_raw_os_error(-result);
            return match error.kind() {
                io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock => {
                    self.push(index);
                    Ok(None)
                }
                io::ErrorKind::Unsupported if self.options.polled => Err(io::Error::other(
                    "this device has no queues for polled completion: leave it out",
                )),
                _ => Err(error),
            };
        }
        if !slot.is_syncing {
            slot.moved += u64::from(result.unsigned_abs());
            if slot.moved < slot.op.length {
                if result == 0 {
                    return Err(short(slot.moved));
                }
                self.push(index);
                return Ok(None);
            }
            if !slot.op.class.is_read() && self.sync_due.after_write() {
                slot.is_syncing = true;
                self.push(index);
                return Ok(None);
            }
        }
        Ok(Some(Done { op: slot.op, began_ns: slot.began_ns, ended_ns }))
    }

    /// With `--verify`: keeps the ledger of writes, and checks reads against it.
    #[cold]
    fn settle(
        &mut self,
        index: u16,
        completed: io::Result<Option<Done>>,
        tally: &mut Tally,
    ) -> io::Result<Option<Done>> {
        let Some(ledger) = &self.ledger else { return completed };
        let Slot { op, reading, .. } = self.slots[usize::from(index)];
        match &completed {
            Ok(None) => {}
            ended if !op.class.is_read() => ledger.end_write(op.offset, op.length, ended.is_ok()),
            Err(_) => {}
            Ok(Some(_)) => {
                let bytes = self.buffers.get(usize::from(index), op.length);
                tally.verified_bytes += ledger.check(reading, bytes, op.offset)?;
            }
        }
        completed
    }

    fn next_completion(&mut self) -> Option<(u16, i32)> {
        let entry = self.ring.completion().next()?;
        Some((entry.user_data() as u16, entry.result()))
    }

    fn failed_as_a_whole(&self, source: io::Error) -> Error {
        Error::path("enter the io_uring for", &self.path, source)
    }
}

impl InFlight for Uring {
    fn slots(&self) -> usize {
        self.slots.len()
    }

    fn submit(&mut self, ops: &[Op]) -> Result<usize> {
        if !self.is_on {
            let enabled = self.ring.submitter().register_enable_rings();
            enabled.map_err(|error| self.failed_as_a_whole(error))?;
            self.is_on = true;
        }
        let taken = ops.len().min(self.free.len());
        for op in &ops[..taken] {
            let began_ns = self.watch.now_ns();
            let index = self.free.pop().expect("no more is taken than slots are free");
            self.slots[usize::from(index)] = Slot {
                op: *op,
                began_ns,
                moved: 0,
                is_syncing: false,
                reading: Reading::default(),
            };
            if let Some(ledger) = self.ledger.as_ref().filter(|_| op.class.is_read()) {
                self.slots[usize::from(index)].reading = ledger.begin_read(op.offset, op.length);
            }
            self.push(index);
            // A single one goes with the wait for it: one system call less.
            if self.slots.len() > 1 {
                let handed_over = retried(|| self.ring.submit());
                handed_over.map_err(|error| self.failed_as_a_whole(error))?;
            }
        }
        Ok(taken)
    }

    fn reap(&mut self, wait: Wait, tally: &mut Tally) -> Result<usize> {
        self.enter(wait).map_err(|error| self.failed_as_a_whole(error))?;
        let ended_ns = self.watch.now_ns();
        let mut count = 0;
        while let Some((index, result)) = self.next_completion() {
            let mut completed = self.complete(index, result, ended_ns);
            if self.ledger.is_some() {
                completed = self.settle(index, completed, tally);
            }
            match completed {
                Ok(None) => {}
                Ok(Some(done)) => {
                    self.free.push(index);
                    tally.enter(&done);
                    count += 1;
                }
                Err(error) => {
                    // Its completion has been seen: nothing of this slot is left to wait for.
                    self.free.push(index);
                    let op = self.slots[usize::from(index)].op;
                    tally.fail(&op, &self.path, error)?;
                    count += 1;
                }
            }
        }
        Ok(count)
    }
}

impl Drop for Uring {
    /// The kernel writes into the buffers until the last request is done.
    fn drop(&mut self) {
        while self.is_on && self.in_flight() > 0 {
            if retried(|| self.ring.submit_and_wait(1)).is_err() {
                // Better lost than written to by the kernel after somebody else has it.
                self.buffers.leak();
                return;
            }
            while let Some((index, _)) = self.next_completion() {
                self.free.push(index);
            }
        }
    }
}

/// Why this process may have no rings; `None` where it may.
pub fn denied() -> Option<io::Error> {
    build(2, UringOptions::default()).err().filter(is_denial)
}

/// The newest way that this kernel knows, disabled until the worker's thread enables it.
fn build(depth: u32, options: UringOptions) -> io::Result<IoUring> {
    let configured = |way: Way| {
        let mut builder = IoUring::builder();
        builder.setup_r_disabled();
        if options.polled {
            builder.setup_iopoll();
        }
        if options.kernel_submission {
            builder.setup_sqpoll(SUBMITTER_IDLE_MS);
        }
        if way != Way::Old {
            builder.setup_single_issuer();
        }
        // The kernel's own thread hands over and has nothing to defer.
        if way == Way::Deferring && !options.kernel_submission {
            builder.setup_defer_taskrun();
            builder.setup_taskrun_flag();
        }
        builder.build(depth.next_power_of_two())
    };
    let older = |way| {
        move |error: io::Error| match error.raw_os_error() {
            Some(libc::EINVAL) => configured(way),
            _ => Err(error),
        }
    };
    configured(Way::Deferring).or_else(older(Way::Single)).or_else(older(Way::Old))
}

/// Flags that a kernel may know for rings that belong to one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Linux 6.1: work for completions waits for that thread.
    Deferring,
    /// Linux 6.0: nobody else hands requests over.
    Single,
    /// Any thread may do anything.
    Old,
}

/// Gives the buffers to the kernel for good; says whether it took them.
fn register(ring: &IoUring, buffers: &mut Buffers) -> bool {
    let length = buffers.length();
    if length * buffers.count() > REGISTERED_MAX_BYTES {
        return false;
    }
    let vectors: Vec<libc::iovec> = (0..buffers.count())
        .map(|index| libc::iovec {
            iov_base: buffers.get(index, length as u64).as_mut_ptr().cast(),
            iov_len: length,
        })
        .collect();
    // SAFETY: the memory lives in `buffers`, on the heap, as long as the engine does; the engine
    // waits for all requests before it gives either up.
    unsafe { ring.submitter().register_buffers(&vectors) }.is_ok()
}

fn retried(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<()> {
    loop {
        match call() {
            Ok(_) => return Ok(()),
            Err(error) => match error.raw_os_error() {
                Some(libc::ETIME | libc::EBUSY | libc::EAGAIN) => return Ok(()),
                Some(libc::EINTR) => {}
                _ => return Err(error),
            },
        }
    }
}

fn forbidden(error: &io::Error) -> Error {
    let why = match error.raw_os_error() {
        Some(libc::ENOSYS) => "this kernel has none, or a container's seccomp profile hides it",
        Some(libc::EPERM | libc::EACCES) => {
            "a container's seccomp profile or the sysctl kernel.io_uring_disabled forbids it"
        }
        Some(libc::ENOMEM) => "the limit on locked memory (ulimit -l) is too small",
        _ => advice(error).unwrap_or("the kernel refused"),
    };
    Error::Refused(format!(
        "no io_uring ({error}): {why}; allow it, or leave --engine out: a thread for each request \
         in flight takes its place"
    ))
}

#[cfg(test)]
mod tests;
