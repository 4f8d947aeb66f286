//! Starts the recorded program so that nothing of it runs before it is recorded, and hands it its
//! own standard streams, terminal, signals and, where asked for, user.

use std::ffi::{CString, OsString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use crate::error::Error;

/// A user to run as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: CString,
    id: libc::uid_t,
    group: libc::gid_t,
}

impl User {
    /// Looks a user up by name.
    ///
    /// # Errors
    /// When there is none.
    pub fn named(name: &str) -> Result<Self, Error> {
        let missing = || Error::Kernel {
            attempt: format!("run the program as {name}"),
            source: io::Error::new(io::ErrorKind::NotFound, "no such user"),
        };
        let users = std::fs::read_to_string("/etc/passwd").map_err(|_| missing())?;
        let line = users.lines().find(|line| line.split(':').next() == Some(name));
        let mut numbers = line.ok_or_else(missing)?.split(':').skip(2).map(str::parse);
        let (Some(Ok(user)), Some(Ok(group))) = (numbers.next(), numbers.next()) else {
            return Err(missing());
        };
        let name = CString::new(name).map_err(|_| missing())?;
        Ok(Self { name, id: user, group })
    }
}

/// What the child does between its birth and the program.
pub(crate) enum Before {
    /// Nothing.
    Nothing,
    /// Has the kernel stop it at the calls that this filter picks.
    Filter(Vec<libc::sock_filter>),
}

/// A program that waits to be let go. Dropped before that, it never runs.
#[derive(Debug)]
pub(crate) struct Held {
    /// It goes on when there is something to read here, and ends when this is closed before.
    gate: OwnedFd,
    /// `None` once it was let go.
    released: Option<Released>,
}

/// Both ends of a pipe, reading one first; closed in programs that are started. Reading does not
/// wait: copies of the writing end may live on in children of other threads.
fn pipe() -> Result<(OwnedFd, OwnedFd), Error> {
    let mut ends = [0; 2];
    // SAFETY: the kernel writes two numbers where there is room for two.
    if unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) } != 0 {
        return Err(Error::last("make a pipe"));
    }
    // SAFETY: both were just made for us.
    let [reading, writing] = ends.map(|end| unsafe { OwnedFd::from_raw_fd(end) });
    Ok((reading, writing))
}

/// What the child needs, made before it is born: between birth and program it may not allocate.
struct Prepared<'a> {
    arguments: Vec<*const libc::c_char>,
    gate: i32,
    failure: i32,
    user: Option<&'a User>,
    filter: Option<libc::sock_fprog>,
}

/// Makes a child that waits before it becomes the program.
pub(crate) fn hold(
    command: &[OsString],
    user: Option<&User>,
    before: &Before,
) -> Result<Held, Error> {
    let name = command.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let texts: Result<Vec<CString>, _> =
        command.iter().map(|text| CString::new(text.as_bytes())).collect();
    let texts = texts.map_err(|_| Error::NotFound(name.clone()))?;
    let mut arguments: Vec<*const libc::c_char> = texts.iter().map(|text| text.as_ptr()).collect();
    arguments.push(std::ptr::null());
    let (gate_reading, gate) = pipe()?;
    let (failure, failure_writing) = pipe()?;
    let filter = match before {
        Before::Nothing => None,
        Before::Filter(code) => {
            Some(libc::sock_fprog { len: code.len() as u16, filter: code.as_ptr().cast_mut() })
        }
    };
    let prepared = Prepared {
        arguments,
        gate: gate_reading.as_raw_fd(),
        failure: failure_writing.as_raw_fd(),
        user,
        filter,
    };
    let gate_writing = gate.as_raw_fd();
    // SAFETY: the child calls only functions that may be called after a fork, on memory that was
    // prepared before, and never returns from `become_program`.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(Error::last("start a process"));
    }
    if child == 0 {
        // SAFETY: this is the child; it closes its copy of the writing end, so that it is told when
        // the recorder dies, and goes on to the program.
        unsafe {
            libc::close(gate_writing);
            become_program(&prepared);
        }
    }
    Ok(Held { gate, released: Some(Released { child, failure, command: name }) })
}

/// # Safety
/// Only in a child just born; the pointers in `prepared` are valid.
unsafe fn become_program(prepared: &Prepared) -> ! {
    // SAFETY: all of these may be called between fork and exec, with pointers that the caller
    // vouches for.
    unsafe {
        // The byte is waited for and left there: a read would be counted. Hanging up is no sign to
        // go, for children born of other threads meanwhile hold copies of the other end.
        let mut polled = libc::pollfd { fd: prepared.gate, events: libc::POLLIN, revents: 0 };
        while libc::poll(&raw mut polled, 1, -1) < 0 {}
        if polled.revents & libc::POLLIN == 0 {
            libc::_exit(127);
        }
        for signal in [libc::SIGPIPE, libc::SIGXFSZ] {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        let is_user = prepared.user.is_none_or(|user| {
            libc::initgroups(user.name.as_ptr(), user.group) == 0
                && libc::setgid(user.group) == 0
                && libc::setuid(user.id) == 0
        });
        let is_filtered = is_user
            && prepared.filter.as_ref().is_none_or(|filter| {
                libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                    && libc::prctl(
                        libc::PR_SET_SECCOMP,
                        libc::SECCOMP_MODE_FILTER,
                        std::ptr::from_ref(filter),
                        0,
                        0,
                    ) == 0
            });
        if is_filtered {
            libc::execvp(prepared.arguments[0], prepared.arguments.as_ptr());
        }
        let error = *libc::__errno_location();
        libc::write(prepared.failure, std::ptr::from_ref(&error).cast(), size_of_val(&error));
        libc::_exit(127)
    }
}

impl Held {
    /// The child's number.
    pub(crate) fn process(&self) -> u32 {
        self.released.as_ref().map_or(0, |released| released.child.cast_unsigned())
    }

    /// Lets it become the program.
    pub(crate) fn release(mut self) -> Released {
        let sign = 0_u8;
        // SAFETY: the kernel reads the one byte that is there. It fails if the child has died, which
        // whoever waits for the child learns.
        unsafe { libc::write(self.gate.as_raw_fd(), (&raw const sign).cast(), 1) };
        self.released.take().expect("it is let go once")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let Some(released) = &self.released else { return };
        let mut status = 0;
        // SAFETY: we have not waited for our child, so no other process can have its number. A traced
        // child stops before it ends; we let it go on.
        unsafe {
            libc::kill(released.child, libc::SIGKILL);
            while libc::waitpid(released.child, &raw mut status, 0) == released.child
                && libc::WIFSTOPPED(status)
            {
                libc::ptrace(libc::PTRACE_CONT, released.child, 0_usize, 0_usize);
            }
        }
    }
}

/// A program that runs, or that could not be started.
#[derive(Debug)]
pub(crate) struct Released {
    child: libc::pid_t,
    failure: OwnedFd,
    command: String,
}

impl Released {
    /// Why it could not be started, after it has ended; `None` where it could.
    pub(crate) fn failure(&self) -> Option<Error> {
        let mut error = 0_i32;
        // SAFETY: the kernel writes at most the four bytes that are there.
        let read = unsafe {
            libc::read(self.failure.as_raw_fd(), (&raw mut error).cast(), size_of_val(&error))
        };
        if read != size_of_val(&error).cast_signed() {
            return None;
        }
        let command = self.command.clone();
        Some(match error {
            libc::ENOENT => Error::NotFound(command),
            _ => Error::NotExecutable { command, source: io::Error::from_raw_os_error(error) },
        })
    }

    /// The child's number.
    pub(crate) fn child(&self) -> libc::pid_t {
        self.child
    }

    /// Whether it has ended. It stays to be asked about until `ended` tells so.
    pub(crate) fn has_ended(&self) -> bool {
        // SAFETY: an all-zero structure of numbers is a valid one.
        let mut told: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOWAIT | libc::WNOHANG;
        // SAFETY: the kernel writes one structure where there is room for it.
        let asked = unsafe {
            libc::waitid(libc::P_PID, self.child.cast_unsigned(), &raw mut told, options)
        };
        // SAFETY: the field is valid in every answer of `waitid`.
        asked == 0 && unsafe { told.si_pid() } == self.child
    }

    /// How it ended, as `wait` tells it; `None` while it runs.
    pub(crate) fn ended(&self) -> Result<Option<i32>, Error> {
        let mut status = 0;
        // SAFETY: the kernel writes one number where there is room for it.
        let waited = unsafe { libc::waitpid(self.child, &raw mut status, libc::WNOHANG) };
        match waited {
            0 => Ok(None),
            waited if waited == self.child => Ok(Some(status)),
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => Ok(None),
            _ => Err(Error::last("wait for the program")),
        }
    }
}

/// The exit code that a shell would see for what `wait` told.
pub(crate) fn exit_code(status: i32) -> i32 {
    if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Children that wait at the same time hold copies of each other's pipes.
    #[test]
    fn programs_held_by_many_threads_do_not_wait_for_each_other() {
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        let dropped = hold(&["true".into()], None, &Before::Nothing).unwrap();
                        let held = hold(&["true".into()], None, &Before::Nothing).unwrap();
                        drop(dropped);
                        let released = held.release();
                        let status = loop {
                            if let Some(status) = released.ended().unwrap() {
                                break status;
                            }
                            crate::time::wait_ms(1);
                        };
                        assert_eq!(exit_code(status), 0);
                        assert!(released.failure().is_none());
                    }
                });
            }
        });
    }
}
