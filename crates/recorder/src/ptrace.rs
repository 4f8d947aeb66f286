//! Recording by stopping the program at every call that concerns files. A filter in the program
//! itself (seccomp) picks these calls, so that others cost nothing; no rights are needed.
//!
//! A program with such a filter cannot go on without its tracer: it ends with the recorder.

mod filter;
mod tracee;

use std::collections::{HashMap, HashSet};
use std::io;

use ioscape_trace::Sink;

use crate::call::Calls;
use crate::convert::Converter;
use crate::error::Error;
use crate::observed::{Executed, Exited, Forked, Observed};
use crate::proc;
use crate::recording::{
    Ending, Flow, Means, Options, Program, Progress, Recorded, Subject, conclude, progress,
};
use crate::spawn::{Before, Released, hold};
use crate::time::{now_ns, page_bytes};
use tracee::{Entered, Paths, Stop, Tracee};

const TICK_NS: u64 = 100_000_000;
const OPTIONS: libc::c_int = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_TRACEEXIT
    | libc::PTRACE_O_TRACESECCOMP
    | libc::PTRACE_O_EXITKILL;
/// What calls can be recorded to cost is known from the tracer's own stops alone.
const LIMITS: [&str; 3] = [
    "recorded by ptrace: every recorded call was slower by ten microseconds or more, so think times \
     and durations are upper bounds",
    "pages touched through mappings, requests of io_uring and the page cache are not seen by ptrace",
    "processor time between calls is not known",
];

/// Why programs cannot be traced here; `None` where they can.
pub(crate) fn refusal() -> Option<Error> {
    let held = hold(&["true".into()], None, &Before::Nothing);
    held.and_then(|held| tracee::seize(held.process(), OPTIONS)).err()
}

pub(crate) fn record(
    subject: &Subject,
    options: &Options,
    sink: &mut dyn Sink,
    tick: &mut dyn FnMut(&Progress) -> Flow,
) -> Result<Recorded, Error> {
    let Subject::Command(command) = subject else {
        return Err(refusal_of_running());
    };
    let calls = Calls::native();
    let held = hold(command, options.user.as_ref(), &Before::Filter(filter::of_calls(&calls)))?;
    tracee::seize(held.process(), OPTIONS)?;
    let start_ns = now_ns();
    let mut converter = Converter::new(sink, start_ns, page_bytes());
    converter.adopt(held.process(), start_ns);
    let _alarm = tracee::Alarm::every_ns(TICK_NS);
    let mut session = Session {
        calls,
        converter,
        start_ns,
        end_ns: None,
        entered: HashMap::new(),
        early: HashSet::new(),
        tracees: HashSet::from([held.process()]),
        paths: Paths::default(),
        cut: None,
        status: None,
        program: held.release(),
    };
    session.run(tick)?;
    let status = session.status.unwrap_or(0);
    if let Some(failure) = session.program.failure() {
        return Err(failure);
    }
    let ending = Ending {
        means: Means::Ptrace,
        start_ns,
        end_ns: session.end_ns.unwrap_or_else(now_ns),
        overhead_s: 0.0,
        lost: 0,
        limits: LIMITS.map(str::to_owned).to_vec(),
        cut: session.cut,
        program: Program::Ended(status),
    };
    Ok(conclude(session.converter, options, ending))
}

/// A process that runs has no filter, and every one of its calls would stop it twice.
pub(crate) fn refusal_of_running() -> Error {
    Error::Kernel {
        attempt: "record a process that runs by ptrace".to_owned(),
        source: io::Error::new(io::ErrorKind::Unsupported, "it needs a command to start"),
    }
}

struct Session<'a> {
    calls: Calls,
    converter: Converter<'a>,
    start_ns: u64,
    /// When the recording ended, where the program goes on.
    end_ns: Option<u64>,
    /// Calls in progress, by thread.
    entered: HashMap<u32, Entered>,
    /// Threads that stopped before their parents told of them.
    early: HashSet<u32>,
    tracees: HashSet<u32>,
    paths: Paths,
    cut: Option<io::Error>,
    status: Option<i32>,
    program: Released,
}

impl Session<'_> {
    /// Goes on until the last tracee has ended.
    fn run(&mut self, tick: &mut dyn FnMut(&Progress) -> Flow) -> Result<(), Error> {
        let mut ticked_ns = self.start_ns;
        while !self.tracees.is_empty() {
            if let Some((thread, stop)) = tracee::wait()? {
                self.stopped(thread, stop);
            }
            let now = now_ns();
            if now - ticked_ns < TICK_NS {
                continue;
            }
            ticked_ns = now;
            match tick(&progress(&self.converter, self.start_ns, 0)) {
                Flow::GoOn => {}
                Flow::Finish => self.end_ns = self.end_ns.or(Some(now)),
                // SAFETY: the call takes two numbers; the child is a tracee, so its number is
                // nobody else's.
                Flow::Pass(signal) => unsafe {
                    libc::kill(self.program.child(), signal);
                },
            }
        }
        Ok(())
    }

    fn take(&mut self, observed: &Observed) {
        if self.cut.is_none() && self.end_ns.is_none() {
            self.cut = self.converter.take(observed).err();
        }
    }

    fn stopped(&mut self, thread: u32, stop: Stop) {
        let tracee = Tracee(thread);
        match stop {
            Stop::Ended(status) => {
                if thread == self.program.child().cast_unsigned() {
                    self.status = Some(status);
                }
                self.tracees.remove(&thread);
                self.entered.remove(&thread);
            }
            Stop::Entry => match tracee.entered(&self.calls) {
                Some(entered) => {
                    self.entered.insert(thread, entered);
                    tracee.resume_to_exit();
                }
                None => tracee.resume(0),
            },
            Stop::Exit => {
                let end_ns = now_ns();
                if let Some(entered) = self.entered.remove(&thread)
                    && let Some(result) = tracee.result()
                {
                    let mut paths = std::mem::take(&mut self.paths);
                    let ended = entered.ended(tracee, result, end_ns, &mut paths);
                    self.take(&Observed::Call(ended));
                    self.paths = paths;
                }
                tracee.resume(0);
            }
            Stop::Forked => self.forked(thread, tracee),
            Stop::Executed => {
                self.executed(thread, tracee);
                tracee.resume(0);
            }
            Stop::Exiting => {
                self.exiting(thread, tracee);
                tracee.resume(0);
            }
            Stop::Born if self.tracees.contains(&thread) => tracee.resume(0),
            Stop::Born => {
                self.early.insert(thread);
            }
            Stop::Group => tracee.listen(),
            Stop::Signal(signal) => tracee.resume(signal),
        }
    }

    fn forked(&mut self, thread: u32, tracee: Tracee) {
        if let Some(child) = tracee.message() {
            let child = child as u32;
            let process = proc::process_of(child).unwrap_or(child);
            self.take(&Observed::Fork(Forked {
                parent: thread,
                child,
                process,
                at_ns: now_ns(),
                shares_descriptors: false,
            }));
            self.tracees.insert(child);
            if self.early.remove(&child) {
                Tracee(child).resume(0);
            }
        }
        tracee.resume(0);
    }

    fn executed(&mut self, thread: u32, tracee: Tracee) {
        let before = tracee.message().map_or(thread, |before| before as u32);
        self.entered.remove(&thread);
        if before != thread {
            self.entered.remove(&before);
            self.tracees.remove(&before);
        }
        let program = proc::identity(&format!("/proc/{thread}/exe"));
        self.take(&Observed::Exec(Executed { thread, before, at_ns: now_ns(), program }));
    }

    fn exiting(&mut self, thread: u32, tracee: Tracee) {
        let process = proc::process_of(thread).unwrap_or(thread);
        self.take(&Observed::Exit(Exited {
            thread,
            at_ns: now_ns(),
            status: tracee.message().unwrap_or(0) as u32,
            cpu_ns: proc::processor_time_ns(process, thread),
            counted: proc::counts(process, thread),
        }));
    }
}
