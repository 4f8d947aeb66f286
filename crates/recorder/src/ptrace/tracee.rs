//! One traced thread: why it stopped, what it asks for, what stands in its memory.

use std::fs;
use std::io;

use crate::call::{Argument, Call, Calls};
use crate::error::Error;
use crate::observed::{Ended, Identity};
use crate::proc;
use crate::time::now_ns;

const PATH_BYTES_MAX: usize = 4096;
/// A part of memory that is there or not as a whole.
const PAGE_BYTES: u64 = 4096;
/// `PTRACE_SYSCALL_INFO_EXIT` and `_SECCOMP`.
const INFO_EXIT: u64 = 2;
const INFO_SECCOMP: u64 = 3;
/// How glibc and musl declare the number of a request, and one that musl's headers lack.
#[cfg(not(target_env = "musl"))]
type RequestNumber = libc::c_uint;
#[cfg(target_env = "musl")]
type RequestNumber = libc::c_int;
const GET_SYSCALL_INFO: RequestNumber = 0x420e;
/// Marks the stop at the end of a call.
const CALL_STOP: i32 = libc::SIGTRAP | 0x80;

/// A thread that is traced; all that is done with it needs it to be stopped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracee(pub(super) u32);

/// Why a tracee stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It has ended, as `wait` tells it.
    Ended(i32),
    /// It is about to do a call that concerns files.
    Entry,
    /// It has done it.
    Exit,
    /// It has started a thread or process.
    Forked,
    /// It became another program.
    Executed,
    /// It is about to end.
    Exiting,
    /// It was started by a tracee.
    Born,
    /// It was stopped as a shell stops its jobs.
    Group,
    /// It is to get a signal.
    Signal(i32),
}

/// A call in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entered {
    call: Call,
    arguments: [u64; 6],
    start_ns: u64,
    /// The path was not there before.
    is_new: bool,
}

/// Room for the paths of a call.
#[derive(Debug, Default)]
pub(super) struct Paths {
    first: Vec<u8>,
    second: Vec<u8>,
}

/// Begins to trace a process.
pub(super) fn seize(process: u32, options: libc::c_int) -> Result<(), Error> {
    let options = options.cast_unsigned() as usize;
    // SAFETY: the request takes numbers alone.
    let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, process, 0_usize, options) };
    if seized < 0 { Err(Error::last("trace the program by ptrace")) } else { Ok(()) }
}

/// Looks for a stop before it sleeps until one: most calls end within so many looks of some tenths of a
/// microsecond, and a processor that sleeps takes some ten to wake, more in a virtual machine.
const LOOKS: u32 = 64;

/// Waits for a tracee to stop; `None` after a signal of our own.
pub(super) fn wait() -> Result<Option<(u32, Stop)>, Error> {
    let mut status = 0;
    let mut look = |how: libc::c_int| {
        let how = how | libc::__WALL | libc::__WNOTHREAD;
        // SAFETY: the kernel writes one number where there is room for it.
        unsafe { libc::waitpid(-1, &raw mut status, how) }
    };
    let mut thread = look(libc::WNOHANG);
    for _ in 0..LOOKS {
        if thread != 0 {
            break;
        }
        // Where there is one processor, the tracee needs it.
        std::thread::yield_now();
        thread = look(libc::WNOHANG);
    }
    if thread == 0 {
        thread = look(0);
    }
    if thread < 0 {
        let error = io::Error::last_os_error();
        return match error.kind() {
            io::ErrorKind::Interrupted => Ok(None),
            _ => Err(Error::last("wait for the program")),
        };
    }
    Ok(Some((thread.cast_unsigned(), stop_of(status))))
}

fn stop_of(status: i32) -> Stop {
    if !libc::WIFSTOPPED(status) {
        return Stop::Ended(status);
    }
    let signal = libc::WSTOPSIG(status);
    match status >> 16 {
        libc::PTRACE_EVENT_SECCOMP => Stop::Entry,
        libc::PTRACE_EVENT_FORK | libc::PTRACE_EVENT_VFORK | libc::PTRACE_EVENT_CLONE => {
            Stop::Forked
        }
        libc::PTRACE_EVENT_EXEC => Stop::Executed,
        libc::PTRACE_EVENT_EXIT => Stop::Exiting,
        libc::PTRACE_EVENT_STOP if signal == libc::SIGTRAP => Stop::Born,
        libc::PTRACE_EVENT_STOP => Stop::Group,
        _ if signal == CALL_STOP => Stop::Exit,
        _ => Stop::Signal(signal),
    }
}

impl Tracee {
    fn request(self, request: RequestNumber, data: usize) {
        // SAFETY: these requests take numbers alone. One that fails means that the tracee has died,
        // which the next wait tells.
        unsafe { libc::ptrace(request, self.0, 0_usize, data) };
    }

    /// Lets it go on, with a signal or none.
    pub(super) fn resume(self, signal: i32) {
        self.request(libc::PTRACE_CONT, signal.unsigned_abs() as usize);
    }

    /// Lets it go on to the end of its call.
    pub(super) fn resume_to_exit(self) {
        self.request(libc::PTRACE_SYSCALL, 0);
    }

    /// Leaves it stopped until somebody continues it.
    pub(super) fn listen(self) {
        self.request(libc::PTRACE_LISTEN, 0);
    }

    /// The number that the kernel left with an event.
    pub(super) fn message(self) -> Option<u64> {
        let mut message = 0_u64;
        // SAFETY: the kernel writes one number where there is room for it.
        let told =
            unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, self.0, 0_usize, &raw mut message) };
        (told == 0).then_some(message)
    }

    /// What the kernel tells of the call: which stop, then numbers whose meaning depends on it.
    fn call_information(self) -> Option<(u64, [u64; 8])> {
        let mut words = [0_u64; 11];
        let bytes = size_of_val(&words);
        // SAFETY: the kernel writes at most as many bytes as are said, and they are there.
        let told = unsafe {
            let to = words.as_mut_ptr();
            libc::ptrace(GET_SYSCALL_INFO, self.0, bytes, to)
        };
        let kind = words[0] & 0xff;
        (told > 0).then(|| (kind, std::array::from_fn(|index| words[3 + index])))
    }

    /// The call it is about to do.
    pub(super) fn entered(self, calls: &Calls) -> Option<Entered> {
        let (kind, words) = self.call_information()?;
        let call = calls.get(words[0] as usize).filter(|_| kind == INFO_SECCOMP)?;
        let arguments = std::array::from_fn(|index| words[1 + index]);
        let is_new = self.makes_file(call, arguments);
        Some(Entered { call, arguments, start_ns: now_ns(), is_new })
    }

    /// What the call gave.
    pub(super) fn result(self) -> Option<i64> {
        let (kind, words) = self.call_information()?;
        (kind == INFO_EXIT).then(|| words[0].cast_signed())
    }

    /// Whether a call is going to make a file: it may, and its path is not there.
    fn makes_file(self, call: Call, arguments: [u64; 6]) -> bool {
        let Call::Open { directory, flags } = call else { return false };
        let argument = |index: Argument| arguments[usize::from(index)];
        let flags = flags.map_or(libc::O_CREAT, |flags| argument(flags) as i32);
        if flags & libc::O_CREAT == 0 {
            return false;
        }
        let mut path = Vec::new();
        self.read_text(argument(directory.map_or(0, |directory| directory + 1)), &mut path);
        let path = String::from_utf8_lossy(&path);
        let thread = self.0;
        let start = match directory.map(|directory| argument(directory) as i32) {
            _ if path.starts_with('/') => format!("/proc/{thread}/root"),
            None | Some(libc::AT_FDCWD) => format!("/proc/{thread}/cwd"),
            Some(descriptor) => format!("/proc/{thread}/fd/{descriptor}"),
        };
        fs::symlink_metadata(format!("{start}/{path}")).is_err()
    }

    /// Copies out of its memory as much as is there; how many bytes that were.
    fn read(self, address: u64, to: &mut [u8]) -> usize {
        let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
        let remote = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: to.len() };
        // SAFETY: the kernel writes at most as many bytes as `to` has, and reads from the tracee's
        // memory, which it checks.
        let read = unsafe {
            libc::process_vm_readv(
                self.0.cast_signed(),
                &raw const local,
                1,
                &raw const remote,
                1,
                0,
            )
        };
        usize::try_from(read).unwrap_or(0)
    }

    /// Copies a text that ends with a zero, without it.
    fn read_text(self, address: u64, to: &mut Vec<u8>) {
        to.clear();
        let mut address = address;
        while to.len() < PATH_BYTES_MAX && address != 0 {
            let length = (PAGE_BYTES - address % PAGE_BYTES).min(256) as usize;
            let start = to.len();
            to.resize(start + length, 0);
            let read = self.read(address, &mut to[start..]);
            if let Some(end) = to[start..start + read].iter().position(|byte| *byte == 0) {
                to.truncate(start + end);
                return;
            }
            to.truncate(start + read);
            if read < length {
                return;
            }
            address += length as u64;
        }
    }
}

impl Entered {
    /// The call, when it has ended.
    pub(super) fn ended(
        self,
        tracee: Tracee,
        result: i64,
        end_ns: u64,
        paths: &mut Paths,
    ) -> Ended<'_> {
        let wanted = self.call.wanted();
        let argument = |index: Argument| self.arguments[usize::from(index)];
        paths.first.clear();
        paths.second.clear();
        if let Some(path) = wanted.path {
            tracee.read_text(argument(path), &mut paths.first);
        }
        if let Some(path) = wanted.second_path {
            tracee.read_text(argument(path), &mut paths.second);
        }
        let pointed = wanted.pointed.and_then(|index| {
            let mut bytes = [0; 8];
            let read = tracee.read(argument(index), &mut bytes);
            (read == bytes.len()).then(|| u64::from_ne_bytes(bytes))
        });
        let made = (wanted.made && result >= 0).then(|| self.made(tracee, result)).flatten();
        Ended {
            thread: tracee.0,
            call: self.call,
            start_ns: self.start_ns,
            end_ns,
            cpu_gap_ns: None,
            result,
            arguments: self.arguments,
            path: &paths.first,
            second_path: &paths.second,
            made,
            pointed,
        }
    }

    /// The file behind the descriptor that the call made.
    fn made(self, tracee: Tracee, descriptor: i64) -> Option<Identity> {
        let identity = proc::identity(&format!("/proc/{}/fd/{descriptor}", tracee.0))?;
        Some(Identity { created: self.is_new, ..identity })
    }
}

/// Interrupts a wait again and again until it is dropped.
pub(super) struct Alarm(());

extern "C" fn nothing(_: libc::c_int) {}

impl Alarm {
    pub(super) fn every_ns(ns: u64) -> Self {
        let handler: extern "C" fn(libc::c_int) = nothing;
        // SAFETY: the handler does nothing, and without SA_RESTART it ends a wait; all structures
        // are plain numbers for which zero is valid.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = handler as libc::sighandler_t;
            libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
        }
        Self::set((ns / 1000).cast_signed());
        Self(())
    }

    fn set(microseconds: i64) {
        let time = libc::timeval { tv_sec: 0, tv_usec: microseconds };
        let timer = libc::itimerval { it_interval: time, it_value: time };
        // SAFETY: the kernel reads one structure and is given none to write.
        unsafe { libc::setitimer(libc::ITIMER_REAL, &raw const timer, std::ptr::null_mut()) };
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        Self::set(0);
    }
}
