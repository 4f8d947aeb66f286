//! How the program ends, as scripts see it.

use std::process::ExitCode;

/// Exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Fine.
    Fine,
    /// The answer is not within the tolerance asked for.
    NotWithin,
    /// Wrong usage or a refused target.
    Usage,
    /// The measurement could not be done.
    Failed,
    /// Stopped by this signal; what was there is saved, reported and cleaned up.
    Signal(usize),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Fine => Self::SUCCESS,
            Exit::NotWithin => Self::from(1),
            Exit::Usage => Self::from(2),
            Exit::Failed => Self::from(3),
            Exit::Signal(signal) => Self::from(128_u8.saturating_add(signal as u8)),
        }
    }
}

/// An error that says what was wrong with the request, not with the measurement: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// Wrong usage, in one line.
pub(crate) fn usage(message: impl Into<String>) -> anyhow::Error {
    UsageError(message.into()).into()
}

/// Which exit code an error stands for.
pub(crate) fn code_of(error: &anyhow::Error) -> Exit {
    use ioscape_engine::Error;
    if error.is::<UsageError>() {
        return Exit::Usage;
    }
    match error.downcast_ref::<Error>() {
        Some(Error::Refused(_) | Error::NoRoom { .. } | Error::Sim(_)) => Exit::Usage,
        _ => Exit::Failed,
    }
}
