//! The other ranks, as the commands that measure see them: none most of the time.

use std::cell::Cell;
use std::path::Path;

use ioscape_engine::file_rig::Part;
use ioscape_engine::{EngineKind, RunId};
use ioscape_experiment::bench::{Bench, Restraint, RunMode};
use ioscape_experiment::ranks::{Party, Setup, assemble};

use crate::interrupt::Interrupt;

/// The ranks that a command may measure with.
#[derive(Default)]
pub(crate) struct Company(Cell<Option<Party>>);

/// All that the others have to know beside the target.
pub(crate) struct Told<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) engine: EngineKind,
    pub(crate) restraint: Restraint,
    pub(crate) mode: RunMode,
    pub(crate) interrupt: &'a Interrupt,
}

impl Company {
    /// That of rank 0.
    pub(crate) fn led(party: Party) -> Self {
        Self(Cell::new(Some(party)))
    }

    /// The part of each workload that this rank runs.
    pub(crate) fn part(&self) -> Part {
        let party = self.0.take();
        let part = party.as_ref().map_or(Part::ALL, Party::part);
        self.0.set(party);
        part
    }

    /// Whether there are other ranks.
    pub(crate) fn is_any(&self) -> bool {
        self.part().ranks > 1
    }

    /// Has the other ranks open the target as well, where there are any.
    pub(crate) fn joined(&self, bench: Bench, told: &Told<'_>) -> anyhow::Result<Bench> {
        if told.mode == RunMode::DryRun {
            return Ok(bench);
        }
        let Some(party) = self.0.take() else { return Ok(bench) };
        let setup = Setup {
            target: Path::new(&bench.target.path).to_owned(),
            run: told.run.to_string(),
            engine: told.engine,
            restraint: told.restraint,
        };
        Ok(assemble(party, bench, &setup, told.interrupt.flag())?)
    }
}
