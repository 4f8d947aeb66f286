//! Which engine makes the requests of a workload, and whether it can.

use std::fs::File;
use std::sync::Arc;

use ioscape_model::units::show_bytes;
use ioscape_model::{Access, Code, Severity, Warning, Workload};

use super::{FileRig, direct};
use crate::clock::Stopwatch;
use crate::engine::psync::{Parts, Psync};
use crate::engine::uring::{Uring, UringOptions};
use crate::engine::{Duties, Engine, null::Null};
use crate::error::{Error, Result};
use crate::request::Stream;

/// Buffers may take this share of the memory that could be had.
const BUFFERS_OF_MEMORY: f64 = 0.25;

/// What makes the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// pread and pwrite for one request in flight, io_uring for more.
    #[default]
    Auto,
    /// pread and pwrite.
    Psync,
    /// io_uring, whatever the depth.
    Uring(UringOptions),
    /// Nothing: the harness alone.
    Null,
}

impl EngineKind {
    /// What it comes to for a workload, or why it cannot be.
    pub(super) fn resolved(self, work: &Workload) -> Result<Self> {
        let refused = |text: &str| Err(Error::Refused(text.to_owned()));
        match self {
            Self::Auto if work.depth == 1 => Ok(Self::Psync),
            Self::Auto => Ok(Self::Uring(UringOptions::default())),
            Self::Psync if work.depth > 1 => refused(
                "the psync engine has one request in flight per process: leave --engine out or \
                 take depth=1",
            ),
            Self::Uring(options) if options.polled && work.access == Access::Buffered => {
                refused("completions can be polled for with access=direct only")
            }
            Self::Uring(options) if options.polled && work.fsync_every > 0 => {
                refused("a ring that polls for completions cannot fdatasync: leave fsync_every out")
            }
            kind => Ok(kind),
        }
    }

    /// As records name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Auto | Self::Psync => "psync",
            Self::Uring(_) => "uring",
            Self::Null => "null",
        }
    }
}

impl FileRig {
    /// The engine of one worker.
    pub(super) fn engine_for(
        &self,
        stream: &Stream,
        work: &Workload,
        seat: &Seat,
    ) -> Result<Equipment> {
        let kind = self.engine.resolved(work)?;
        if kind == EngineKind::Null {
            let engine = Engine::OneByOne(Box::new(Null::new(seat.watch)));
            return Ok(Equipment { engine, file: None, warning: None });
        }
        let file = Arc::new(self.files.open_again(seat.file, direct::open_access(work))?);
        let parts = Parts {
            file: Arc::clone(&file),
            path: self.files.path(seat.file),
            length_max: stream.length_max(),
            seed: seat.seed,
            duties: Duties { fsync_every: work.fsync_every },
            ledger: self.ledgers.as_ref().map(|ledgers| Arc::clone(&ledgers.files[seat.file])),
            watch: seat.watch,
        };
        let EngineKind::Uring(options) = kind else {
            let engine = Engine::OneByOne(Box::new(Psync::new(parts)));
            return Ok(Equipment { engine, file: Some(file), warning: None });
        };
        self.check_buffers(work, stream.length_max())?;
        let engine = Uring::new(parts, work.depth, options)?;
        let warning = (!engine.buffers_registered()).then(not_registered);
        let engine = Engine::InFlight(Box::new(engine));
        Ok(Equipment { engine, file: Some(file), warning })
    }

    fn check_buffers(&self, work: &Workload, length_max: u64) -> Result<()> {
        let in_flight = u64::from(work.process_num) * u64::from(work.depth);
        let wanted_bytes = in_flight * length_max;
        let allowed_bytes = self.cache_bytes() as f64 * BUFFERS_OF_MEMORY;
        if wanted_bytes as f64 <= allowed_bytes {
            return Ok(());
        }
        Err(Error::Refused(format!(
            "{in_flight} requests in flight of up to {} need {} of buffers, more than a quarter \
             of the memory: lower depth, process_num or size_mean",
            show_bytes(length_max as f64),
            show_bytes(wanted_bytes as f64)
        )))
    }
}

/// What a worker works with.
pub(super) struct Equipment {
    pub(super) engine: Engine,
    /// To be held until the worker is done: it has a table of descriptors of its own, and what it
    /// closed there would stay open here.
    pub(super) file: Option<Arc<File>>,
    /// What is to be said about the engine.
    pub(super) warning: Option<Warning>,
}

/// Where a worker sits: its file, its chance, its clock.
pub(super) struct Seat {
    pub(super) file: usize,
    pub(super) seed: u64,
    pub(super) watch: Stopwatch,
}

fn not_registered() -> Warning {
    let text = "the request buffers are too large, or the limit on locked memory too small, for \
                the kernel to hold them: each request looks its own up";
    Warning::new(Code::NotRegistered, text, "raise `ulimit -l`, or lower depth or size_mean")
        .with_severity(Severity::Note)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(kind: EngineKind, text: &str) -> std::result::Result<&'static str, String> {
        let work = Workload::parse(text).unwrap();
        kind.resolved(&work).map(EngineKind::name).map_err(|error| error.to_string())
    }

    #[test]
    fn more_than_one_request_in_flight_takes_io_uring_and_is_never_ignored() {
        assert_eq!(resolved(EngineKind::Auto, "depth=1"), Ok("psync"));
        assert_eq!(resolved(EngineKind::Auto, "depth=2"), Ok("uring"));
        let usual = EngineKind::Uring(UringOptions::default());
        assert_eq!(resolved(usual, "depth=1"), Ok("uring"));
        let message = resolved(EngineKind::Psync, "depth=2").unwrap_err();
        assert!(message.contains("one request in flight"), "{message}");
    }

    #[test]
    fn polling_for_completions_needs_direct_access_without_fdatasync() {
        let options = UringOptions { polled: true, ..UringOptions::default() };
        let polled = |text: &str| resolved(EngineKind::Uring(options), text);
        assert_eq!(polled("access=direct"), Ok("uring"));
        assert!(polled("access=buffered").unwrap_err().contains("access=direct"));
        assert!(polled("access=direct,fsync_every=1").unwrap_err().contains("fsync_every"));
    }
}
