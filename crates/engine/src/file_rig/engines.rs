//! Which engine makes the requests of a workload, and whether it can.

use std::fs::File;
use std::sync::Arc;

use ioscape_model::units::show_bytes;
use ioscape_model::{Access, Code, Severity, Warning, Words, Workload};
use serde::{Deserialize, Serialize};

use super::{FileRig, direct};
use crate::clock::Stopwatch;
use crate::engine::psync::{Parts, Psync};
use crate::engine::threads::{self, Threads};
use crate::engine::uring::{self, Uring, UringOptions};
use crate::engine::{Duties, Engine, null::Null};
use crate::error::{Error, Result};
use crate::request::Stream;

/// Buffers may take this share of the memory that could be had.
const BUFFERS_OF_MEMORY: f64 = 0.25;

/// The engine that makes the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum EngineKind {
    /// pread and pwrite for one request in flight, io_uring for more; threads where that is denied.
    #[default]
    Auto,
    /// pread and pwrite.
    Psync,
    /// io_uring, whatever the depth.
    Uring(UringOptions),
    /// pread and pwrite by a thread for each request in flight.
    Threads,
    /// Nothing: the harness alone.
    Null,
}

impl EngineKind {
    /// What it comes to for a workload, or why it cannot be.
    fn resolved(self, work: &Workload, rings: &Rings) -> Result<Self> {
        let refused = |text: &str| Err(Error::Refused(text.to_owned()));
        match self {
            Self::Auto if work.depth == 1 => Ok(Self::Psync),
            Self::Auto if rings.denied.is_some() => Ok(Self::Threads),
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
            Self::Threads => "threads",
            Self::Null => "null",
        }
    }
}

/// Whether this process may have rings, and what takes their place.
#[derive(Debug)]
pub(super) struct Rings {
    /// Why it may not, in the kernel's words.
    denied: Option<String>,
    /// Handing a request to a thread adds so much to it, seconds, once that was measured.
    handing_s: Option<f64>,
}

impl Rings {
    /// Asks the kernel for one.
    pub(super) fn probed() -> Self {
        Self { denied: uring::denied().map(|error| error.to_string()), handing_s: None }
    }

    /// The cost of threads in place of a ring, in words.
    fn cost_of_threads(&self) -> Warning {
        let reason = match self.denied {
            None => "a thread for each request in flight was asked for",
            Some(_) => {
                "io_uring is denied here ({why}): a thread for each request in flight takes its \
                 place"
            }
        };
        let cost = match self.handing_s {
            None => "what that adds to a request could not be measured",
            Some(_) => "that adds about {handing_s} to a request",
        };
        let mut text = Words::new(format!("{reason}; {cost}"));
        if let Some(why) = &self.denied {
            text = text.name("why", why);
        }
        if let Some(handing_s) = self.handing_s {
            text = text.figure("handing_s", handing_s);
        }
        let remedy = "allow io_uring_setup, io_uring_enter and io_uring_register in the \
                      container's seccomp profile; response times far above this are what they \
                      would be";
        Warning::new(Code::ThreadPerRequest, text, remedy).with_severity(Severity::Note)
    }
}

impl FileRig {
    /// Settles the engine that the next workload takes.
    ///
    /// # Errors
    /// When it cannot take the engine that was asked for.
    pub(super) fn resolve_engine(&mut self, work: &Workload) -> Result<()> {
        let kind = self.engine.resolved(work, &self.rings)?;
        if kind == EngineKind::Threads && self.rings.handing_s.is_none() {
            self.rings.handing_s = threads::cost_s(self.stopwatch);
        }
        self.engine_name = kind.name();
        Ok(())
    }

    /// The engine of one worker.
    pub(super) fn engine_for(
        &self,
        stream: &Stream,
        work: &Workload,
        seat: &Seat,
    ) -> Result<Equipment> {
        let kind = self.engine.resolved(work, &self.rings)?;
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
        let (engine, warning) = match kind {
            EngineKind::Uring(options) => {
                self.check_buffers(work, stream.length_max())?;
                let ring = Uring::new(parts, work.depth, options)?;
                let warning = (!ring.buffers_registered()).then(not_registered);
                (Engine::InFlight(Box::new(ring)), warning)
            }
            EngineKind::Threads => {
                self.check_buffers(work, stream.length_max())?;
                let threads = Threads::new(parts, work.depth, work.access);
                (Engine::InFlight(Box::new(threads)), Some(self.rings.cost_of_threads()))
            }
            _ => (Engine::OneByOne(Box::new(Psync::new(parts))), None),
        };
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
    use std::collections::BTreeMap;

    use super::*;

    fn resolved(kind: EngineKind, text: &str) -> std::result::Result<&'static str, String> {
        resolved_with(None, kind, text)
    }

    fn resolved_with(
        denied: Option<&str>,
        kind: EngineKind,
        text: &str,
    ) -> std::result::Result<&'static str, String> {
        let work = Workload::parse(text).unwrap();
        let rings = Rings { denied: denied.map(str::to_owned), handing_s: None };
        kind.resolved(&work, &rings).map(EngineKind::name).map_err(|error| error.to_string())
    }

    #[test]
    fn where_io_uring_is_denied_threads_take_its_place_and_only_its() {
        let denied = |kind, text| resolved_with(Some("Operation not permitted"), kind, text);
        assert_eq!(denied(EngineKind::Auto, "depth=1"), Ok("psync"));
        assert_eq!(denied(EngineKind::Auto, "depth=8"), Ok("threads"));
        assert_eq!(resolved(EngineKind::Threads, "depth=1"), Ok("threads"));
        let rings = Rings { denied: Some("no".to_owned()), handing_s: Some(5e-6) };
        let warning = rings.cost_of_threads();
        let text = &warning.text;
        assert!(text.contains("denied here (no)") && text.contains("5.00 µs"), "{text}");
        assert_eq!(warning.figures, BTreeMap::from([("handing_s".to_owned(), 5e-6)]));
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
