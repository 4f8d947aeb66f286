//! What a benchmark is: prepared once on a target, then tried again and again.

use ioscape_engine::error::Result;
use ioscape_model::{Better, TrialFigure};

use crate::site::Site;

/// Which trial this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Counted from 0.
    pub repeat: u32,
    /// Where all chance comes from.
    pub seed: u64,
}

/// A classic benchmark.
pub trait Benchmark {
    /// Room it needs at most, bytes.
    fn room_bytes(&self, site: &Site) -> u64;

    /// Makes what all trials share. Not timed.
    ///
    /// # Errors
    /// What went wrong with the files, or that something it needs is not there.
    fn prepare(&mut self, site: &mut Site) -> Result<()>;

    /// One repetition. What is timed stands between the meter's `begin` and `end`.
    ///
    /// # Errors
    /// What went wrong with the files.
    fn trial(&mut self, site: &mut Site, turn: Turn) -> Result<Vec<TrialFigure>>;
}

/// A time: the shorter the better.
pub fn seconds(name: &str, value: f64) -> TrialFigure {
    figure(name, value, "s", Better::Lower)
}

/// A rate of data: the higher the better.
pub fn bytes_per_s(name: &str, value: f64) -> TrialFigure {
    figure(name, value, "bytes/s", Better::Higher)
}

/// A rate or a score in a unit of its own.
pub fn rate(name: &str, value: f64, unit: &str) -> TrialFigure {
    figure(name, value, unit, Better::Higher)
}

/// A count or share that is neither good nor bad.
pub fn count(name: &str, value: f64, unit: &str) -> TrialFigure {
    figure(name, value, unit, Better::Neither)
}

fn figure(name: &str, value: f64, unit: &str, better: Better) -> TrialFigure {
    TrialFigure { name: name.to_owned(), value, unit: unit.to_owned(), better }
}
