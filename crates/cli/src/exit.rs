//! How the program ends, as scripts see it.

use std::process::ExitCode;

/// Exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Fine.
    Fine,
    /// The answer is not within the tolerance or precision asked for; of `doctor`, a serious doubt.
    NotWithin,
    /// Wrong usage or a refused target.
    Usage,
    /// The measurement could not be done, or what came of it not be written.
    Failed,
    /// As the command ended that was run, or why it was not: 125 it could not be recorded, 126 it
    /// cannot be run, 127 it was not found.
    Command(u8),
    /// Stopped by this signal; what was there is saved, reported and cleaned up.
    Signal(usize),
}

impl Exit {
    /// The number that the system is told; zero is success.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::NotWithin => 1,
            Self::Usage => 2,
            Self::Failed => 3,
            Self::Command(code) => code,
            Self::Signal(signal) => 128_u8.saturating_add(signal as u8),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
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

/// An error, what caused it and what to try, in one line. Some errors say their cause themselves:
/// what has been said is not said again.
pub(crate) fn line_of(error: &anyhow::Error) -> String {
    let line = error.chain().skip(1).fold(error.to_string(), |line, cause| {
        let cause = cause.to_string();
        if line.contains(&cause) { line } else { format!("{line}: {cause}") }
    });
    let of_kernel = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    match of_kernel.and_then(ioscape_engine::error::advice) {
        Some(advice) if !line.contains(advice) => format!("{line}; {advice}"),
        _ => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;
    use std::io::{Error, ErrorKind};

    #[test]
    fn a_cause_is_said_once() {
        let gone = || Error::from(ErrorKind::NotFound);
        let says_it = ioscape_engine::Error::path("read", "large", gone());
        let line = line_of(&anyhow::Error::from(says_it));
        assert_eq!(line, format!("cannot read large: {}", gone()));
        let adds_it = Err::<(), _>(gone()).context("cannot read large").unwrap_err();
        assert_eq!(line_of(&adds_it), line);
    }

    #[test]
    fn a_limit_that_was_reached_is_named_once_with_what_raises_it() {
        const TOO_MANY_OPEN_FILES: i32 = 24;
        let reached = || Error::from_raw_os_error(TOO_MANY_OPEN_FILES);
        let says_it = ioscape_engine::Error::path("open", "record", reached());
        let line = line_of(&anyhow::Error::from(says_it));
        assert_eq!(line.matches("ulimit -n").count(), 1, "{line}");
        let adds_it = Err::<(), _>(reached()).context("cannot open record").unwrap_err();
        assert_eq!(line_of(&adds_it), line);
    }
}
