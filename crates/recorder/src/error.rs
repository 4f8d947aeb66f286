//! Why something could not be recorded.

use std::io;

/// What recording can fail of. Each says what was attempted and, where there is one, a way out.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A request that the kernel refused.
    #[error("cannot {attempt}: {source}")]
    Kernel {
        /// What was attempted, in words that follow "cannot".
        attempt: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A program of ours that the kernel's verifier refused.
    #[error("the kernel refused the program for {tracepoint} ({source}): {log}")]
    Verifier {
        /// The tracepoint it was for.
        tracepoint: String,
        /// The kernel's answer.
        source: io::Error,
        /// The end of the verifier's log.
        log: String,
    },
    /// The kernel's description of its own types lacks something.
    #[error("the kernel's types (/sys/kernel/btf/vmlinux) {0}; try --by ptrace")]
    Types(String),
    /// There is no such process.
    #[error("there is no process {0}")]
    NoProcess(u32),
    /// There is no such command.
    #[error("{0}: command not found")]
    NotFound(String),
    /// The command is there and cannot be run.
    #[error("{command}: cannot be run: {source}")]
    NotExecutable {
        /// What was typed.
        command: String,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The trace could not be written.
    #[error("cannot write the trace: {0}")]
    Sink(#[from] io::Error),
}

impl Error {
    /// The error that the kernel left in `errno` just now.
    pub(crate) fn last(attempt: impl Into<String>) -> Self {
        Self::Kernel { attempt: attempt.into(), source: io::Error::last_os_error() }
    }
}
