//! What can go wrong between us and the world, named by what was attempted.

use std::io;
use std::path::{Path, PathBuf};

use ioscape_model::EndReason;

/// True of an error that says: the kernel lacks this system call, or never lets this process make it.
pub(crate) fn is_denial(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES | libc::ENOSYS))
}

/// An error of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The target is not one we measure on; the text says why and what to try.
    #[error("{0}")]
    Refused(String),
    /// A system call on a path failed.
    #[error("cannot {operation} {path}: {source}{}", clause(.source))]
    Path {
        /// What was attempted, as a verb: `create`, `open`, `write`.
        operation: &'static str,
        /// What it was done to.
        path: PathBuf,
        /// What the kernel said.
        source: io::Error,
    },
    /// A request of the workload failed.
    #[error(
        "a {direction} of {length} bytes at offset {offset} of {path} failed: {source}{}",
        clause(.source)
    )]
    Request {
        /// `read` or `write`.
        direction: &'static str,
        /// Where, bytes.
        offset: u64,
        /// How much was asked for, bytes.
        length: u64,
        /// What it was done to.
        path: PathBuf,
        /// What the kernel said, or that the transfer was short.
        source: io::Error,
    },
    /// Nothing succeeds any more.
    #[error(
        "no request to {path} succeeds any more: {count} failed in a row, the first at offset \
         {offset}: {text}; look at the kernel's log (dmesg)"
    )]
    Failing {
        /// The target.
        path: PathBuf,
        /// Requests that failed since one succeeded.
        count: u64,
        /// Where the first of them was, bytes.
        offset: u64,
        /// What was said about it.
        text: String,
    },
    /// There is not enough room for what the workload touches.
    #[error(
        "{path} has {free_bytes} bytes free and at most half of that is used; {wanted_bytes} are \
         needed: lower unique_bytes or --unique-max"
    )]
    NoRoom {
        /// The target.
        path: PathBuf,
        /// Free at the start of the run.
        free_bytes: u64,
        /// What all test files together would take.
        wanted_bytes: u64,
    },
    /// No more may be written.
    #[error("as much was written as --max-written allows: allow more, or lower --unique-max")]
    MaxWritten,
    /// Ctrl-C or SIGTERM.
    #[error("interrupted")]
    Interrupted,
    /// Something went wrong on another rank, or with it.
    #[error("rank {rank}: {text}")]
    Rank {
        /// Its number.
        rank: u32,
        /// The text that it sent, or all that is known of it.
        text: String,
    },
    /// A simulated device's description is wrong.
    #[error("{0}")]
    Sim(String),
}

impl Error {
    /// A failed system call on a path.
    pub fn path(
        operation: &'static str,
        path: impl AsRef<Path>,
        source: impl Into<io::Error>,
    ) -> Self {
        Self::Path { operation, path: path.as_ref().to_owned(), source: source.into() }
    }

    /// Why a measurement ended, with the error that ended it, if any.
    pub fn ending(error: Option<&Self>) -> EndReason {
        match error {
            None => EndReason::Complete,
            Some(Self::Interrupted) => EndReason::Interrupted,
            Some(_) => EndReason::Failed,
        }
    }
}

/// What to try where a limit of this process or of the machine was reached.
pub fn advice(error: &io::Error) -> Option<&'static str> {
    match error.raw_os_error()? {
        libc::EMFILE => Some("raise the limit on open files (`ulimit -n`), or lower process_num"),
        libc::ENFILE => Some("the machine has too many files open: close some"),
        libc::EFBIG => Some("raise the limit on file sizes (`ulimit -f`)"),
        libc::ENOSPC | libc::EDQUOT => Some("free some room there"),
        _ => None,
    }
}

fn clause(error: &io::Error) -> String {
    advice(error).map_or_else(String::new, |advice| format!("; {advice}"))
}

/// Short for results of this crate.
pub type Result<T> = std::result::Result<T, Error>;
