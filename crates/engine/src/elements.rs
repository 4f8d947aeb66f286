//! The system vector's elements, one kind of operation after the other (Seltzer et al. 1999,
//! section 3). Gives timings as they were taken; how often and in which order is decided in
//! `ioscape-experiment`.
//!
//! All is made in a directory of the run's own below the target, which goes with everything in it
//! when the [`Elements`] are dropped, and which `ioscape clean` finds otherwise.

mod cached;
mod calls;
mod cycles;
mod forgotten;
mod mapping;
mod memory;
mod missed;
mod names;
mod processes;
mod sample;
mod syncs;
mod workplace;
mod write_back;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ioscape_model::{ElementName, Warning};

pub use sample::{Sample, Shape};
pub use workplace::{Limits, Pace, Refusal};

use crate::error::{Error, Result};
use crate::run_id::RunId;
use crate::target::Directory;
use workplace::Workplace;

/// Number of the directory among the run's files: no test file has one as high.
const SCRATCH_NUMBER: usize = 1_000_000;
/// Less room than this is none, bytes.
const ROOM_MIN_BYTES: u64 = 64 << 20;

/// Elements that are measured together.
trait Probe {
    /// Which.
    fn names(&self) -> &'static [ElementName];

    /// Makes what is measured.
    fn prepare(&mut self, at: &mut Workplace) -> Result<()>;

    /// Measures each once, as long as the pace says.
    fn round(&mut self, at: &mut Workplace) -> Result<()>;
}

/// All elements on one target. Fields are dropped in order: what probes hold open goes before the
/// directory.
pub struct Elements {
    parts: Vec<Part>,
    at: Workplace,
}

struct Part {
    probe: Box<dyn Probe>,
    is_prepared: bool,
}

impl Elements {
    /// Opens a workplace in a directory; nothing is measured yet.
    ///
    /// # Errors
    /// Where there is no room, or no directory can be made.
    pub fn open(
        directory: Arc<Directory>,
        run: &RunId,
        limits: Limits,
        interrupt: Arc<AtomicBool>,
    ) -> Result<Self> {
        let free_bytes = directory.free_bytes()?;
        if free_bytes < ROOM_MIN_BYTES {
            return Err(Error::Refused(format!(
                "{}: {free_bytes} bytes are free, and a system vector needs 64 MiB: free some room \
                 there",
                directory.path().display()
            )));
        }
        let at = Workplace::new(directory, (run, SCRATCH_NUMBER), limits, interrupt)?;
        let part = |probe| Part { probe, is_prepared: false };
        Ok(Self { parts: probes(run).into_iter().map(part).collect(), at })
    }

    /// How many parts there are, the most important first.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// What a part measures.
    pub fn names(&self, part: usize) -> &'static [ElementName] {
        self.parts[part].probe.names()
    }

    /// Measures a part once; the first time, what it needs is made before.
    ///
    /// # Errors
    /// [`Error::Interrupted`], [`Error::MaxWritten`], or what the kernel said.
    pub fn visit(&mut self, part: usize) -> Result<Vec<Sample>> {
        let Part { probe, is_prepared } = &mut self.parts[part];
        let done = if *is_prepared { Ok(()) } else { probe.prepare(&mut self.at) };
        *is_prepared = true;
        let done = done.and_then(|()| probe.round(&mut self.at));
        // Of a round that fails nothing is kept; earlier ones stand.
        let samples = self.at.take_samples();
        done.map(|()| samples)
    }

    /// Elements that are not to be had here, and why.
    pub fn refusals(&self) -> &[Refusal] {
        self.at.refusals()
    }

    /// Doubts about elements.
    pub fn warnings(&self) -> &[(ElementName, Warning)] {
        self.at.warnings()
    }

    /// Bytes written so far, by files that were removed since as well.
    pub fn written_bytes(&self) -> u64 {
        self.at.written_bytes()
    }
}

/// What decides the run times of most programs comes first: syncs, names, misses, write-back.
fn probes(run: &RunId) -> Vec<Box<dyn Probe>> {
    vec![
        Box::new(syncs::Syncs::default()),
        Box::new(names::Names::default()),
        Box::new(missed::Missed::default()),
        Box::new(write_back::WrittenBack::default()),
        Box::new(cached::Cached::default()),
        Box::new(cached::Growing::default()),
        Box::new(processes::Processes::default()),
        Box::new(memory::Faults::default()),
        Box::new(calls::Calls::default()),
        Box::new(memory::Copies::default()),
        Box::new(missed::Direct::default()),
        Box::new(calls::Ring::default()),
        Box::new(names::LargeDirectory::default()),
        // Its files are forgotten last: others would find theirs forgotten, too.
        Box::new(forgotten::Forgotten::new(run)),
    ]
}

#[cfg(test)]
mod tests;
