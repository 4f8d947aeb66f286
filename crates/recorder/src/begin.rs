//! Which means are allowed, and a recording by one of them.

use ioscape_trace::Sink;

use crate::error::Error;
use crate::recording::{Flow, Means, Options, Progress, Recorded, Subject};
use crate::{counters, ebpf, ptrace};

/// Why a subject cannot be recorded by some means here; `None` where it can.
pub fn refusal(means: Means, subject: &Subject) -> Option<Error> {
    match (means, subject) {
        (Means::Ebpf, _) => ebpf::refusal(),
        (Means::Ptrace, Subject::Command(_)) => ptrace::refusal(),
        (Means::Ptrace, _) => Some(ptrace::refusal_of_running()),
        (Means::Counters, _) => None,
    }
}

/// Records until the subject ends or `tick`, which is asked about ten times a second, says so. The
/// sink is finished in any case.
///
/// # Errors
/// When it cannot be recorded, or the command not be started. A sink that takes no more cuts the
/// trace and is told in what is given back.
pub fn record(
    means: Means,
    subject: &Subject,
    options: &Options,
    sink: &mut dyn Sink,
    tick: &mut dyn FnMut(&Progress) -> Flow,
) -> Result<Recorded, Error> {
    match means {
        Means::Ebpf => ebpf::record(subject, options, sink, tick),
        Means::Ptrace => ptrace::record(subject, options, sink, tick),
        Means::Counters => counters::record(subject, options, sink, tick),
    }
}
