//! Where one benchmark works on one target: a directory of its own, a meter, chance.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ioscape_engine::error::Result;
use ioscape_engine::{Clock, RunId, Scratch, target::Directory};
use ioscape_model::{Host, SuiteSettings, Warning};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::meter::Meter;

/// The place of one benchmark. Dropping it removes the directory.
#[derive(Debug)]
pub struct Site {
    scratch: Scratch,
    directory: Arc<Directory>,
    /// What was set by hand.
    pub settings: SuiteSettings,
    /// The machine.
    pub host: Arc<Host>,
    /// Times the calls of the trial under way.
    pub meter: Meter,
    /// What is doubtful about the trial under way.
    pub warnings: Vec<Warning>,
    clock: Clock,
    interrupt: Arc<AtomicBool>,
}

impl Site {
    /// Directory `number` of a run.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn new(
        directory: &Arc<Directory>,
        run: (&RunId, usize),
        settings: &SuiteSettings,
        host: &Arc<Host>,
        time: (Clock, &Arc<AtomicBool>),
    ) -> Result<Self> {
        let (clock, interrupt) = time;
        Ok(Self {
            scratch: Scratch::new(Arc::clone(directory), run.0, run.1)?,
            directory: Arc::clone(directory),
            settings: settings.clone(),
            host: Arc::clone(host),
            meter: Meter::new(clock, Arc::clone(interrupt), false),
            warnings: Vec::new(),
            clock,
            interrupt: Arc::clone(interrupt),
        })
    }

    /// Where files may be made.
    pub fn path(&self) -> &Path {
        self.scratch.path()
    }

    /// A name there.
    pub fn at(&self, name: &str) -> PathBuf {
        self.scratch.path().join(name)
    }

    /// The target.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Begins a trial: a new meter, no doubts.
    pub(crate) fn renew(&mut self, metered: bool) {
        self.meter = Meter::new(self.clock, Arc::clone(&self.interrupt), metered);
        self.warnings.clear();
    }
}

/// Chance for one purpose of one trial: the same trial draws the same on every target.
pub fn chance(seed: u64, repeat: u32, purpose: u64) -> Xoshiro256PlusPlus {
    let mixed = seed ^ (u64::from(repeat) << 32) ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    Xoshiro256PlusPlus::seed_from_u64(mixed)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A site in a directory that goes with the test.
    pub(crate) fn site() -> (tempfile::TempDir, Site) {
        site_with(&SuiteSettings::default())
    }

    pub(crate) fn site_with(settings: &SuiteSettings) -> (tempfile::TempDir, Site) {
        let parent = tempfile::tempdir().unwrap();
        let directory = ioscape_engine::target::open_directory(parent.path()).unwrap();
        let run = RunId::random().unwrap();
        let host = Arc::new(ioscape_engine::host::describe(&Clock::start()));
        let time = (Clock::start(), &Arc::default());
        let site = Site::new(&Arc::new(directory), (&run, 0), settings, &host, time).unwrap();
        (parent, site)
    }

    #[test]
    fn the_same_trial_draws_the_same_and_another_one_others() {
        use rand::Rng;
        let first = |seed, repeat, purpose| chance(seed, repeat, purpose).next_u64();
        assert_eq!(first(1, 2, 3), first(1, 2, 3));
        let others = [first(2, 2, 3), first(1, 3, 3), first(1, 2, 4)];
        assert!(others.iter().all(|&other| other != first(1, 2, 3)));
    }
}
