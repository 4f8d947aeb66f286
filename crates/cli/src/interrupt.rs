//! Ctrl-C and SIGTERM: remembered, looked at between requests, never fatal by themselves. A write
//! beyond the limit on file sizes is an error like others, not the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::Context;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::flag;

use crate::exit::{Exit, line_of};
use crate::output::say;

/// Has a write beyond the limit on file sizes (`ulimit -f`) fail, where the signal would end the
/// program before it could clean up.
pub(crate) fn outlast_file_limits() -> anyhow::Result<()> {
    // A handler, not to ignore it: programs that are started from here inherit what is ignored.
    flag::register(SIGXFSZ, Arc::default()).map(drop).context("cannot catch signals")
}

fn is_lost_rank(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<ioscape_engine::Error>();
    matches!(error, Some(ioscape_engine::Error::Rank { .. }))
}

/// Whether and by what the program was asked to stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interrupt {
    raised: Arc<AtomicBool>,
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Catches the signals from now on.
    pub(crate) fn catch() -> anyhow::Result<Self> {
        let caught = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            flag::register_usize(signal, Arc::clone(&caught.signal), signal as usize)
                .and_then(|_| flag::register(signal, Arc::clone(&caught.raised)))
                .context("cannot catch signals")?;
        }
        Ok(caught)
    }

    /// What the engine looks at.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.raised)
    }

    /// An error that a signal brought about is no error: the signal's exit code.
    pub(crate) fn settle(&self, outcome: anyhow::Result<Exit>) -> anyhow::Result<Exit> {
        match (outcome, self.signal()) {
            // A launcher that has lost a rank ends the others by a signal.
            (Err(error), _) if is_lost_rank(&error) => Err(error),
            (Err(error), Some(signal)) if error.is::<ioscape_engine::Error>() => {
                say(&format!("ioscape: {}", line_of(&error)));
                Ok(Exit::Signal(signal))
            }
            (outcome, _) => outcome,
        }
    }

    /// The exit code of a run that ended by itself or by a signal.
    pub(crate) fn signal_or(&self, otherwise: Exit) -> Exit {
        self.signal().map_or(otherwise, Exit::Signal)
    }

    /// The signal, where one came.
    pub(crate) fn signal(&self) -> Option<usize> {
        self.raised.load(Ordering::Relaxed).then(|| self.signal.load(Ordering::Relaxed))
    }
}
