//! Replays a trace, or load made from an application's model: every stream of it is a thread, calls
//! are made on files of our own, and the time between them is kept, scaled or dropped.
//!
//! Events are read as they are needed, a bounded number ahead, so that a trace may be larger than
//! memory. What must have ended before a call begins is in `order`; after Weiss et al., ROOT (SOSP
//! 2013), and Mesnier et al., //TRACE (FAST 2007), as far as a trace of calls alone tells it.

mod action;
mod lane;
mod order;
mod outcome;
mod queue;
mod step;
mod survey;
mod tally;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ioscape_engine::error::{Error, Result};
use ioscape_engine::target::Directory;
use ioscape_engine::{RunId, Stopwatch, replay::Stage};
use ioscape_model::{Point, Replay, Spacing, Start, Workload};
use ioscape_trace::{Event, FileEntry, StreamEntry, TraceInfo};

pub use survey::Surveyed;

/// Source of a replay: events and the tables that they point into. Events can be asked for again.
pub trait Load {
    /// `trace` or `model`.
    fn source(&self) -> &'static str;
    /// The table that `file` of an event points into.
    fn files(&self) -> &[FileEntry];
    /// The table that `stream` of an event points into.
    fn streams(&self) -> &[StreamEntry];
    /// Facts about the load as a whole.
    fn info(&self) -> &TraceInfo;
    /// How many events there are, about.
    fn events_count(&self) -> u64;
    /// The events, in about the order of their starts.
    fn events(&self) -> Box<dyn Iterator<Item = io::Result<Event>> + '_>;
}

/// How a load is replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The time between calls.
    pub spacing: Spacing,
    /// Times between calls are divided by this.
    pub speed: f64,
    /// The page cache at the start.
    pub start: Start,
}

/// Where it is replayed.
pub struct ReplaySite<'a> {
    /// Below this one files are made.
    pub directory: Arc<Directory>,
    /// The run that the files belong to.
    pub run: &'a RunId,
    /// Raised when it is to end.
    pub interrupt: &'a AtomicBool,
    /// Times calls.
    pub watch: Stopwatch,
}

/// How far a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// So many events were looked at beforehand.
    Surveyed(u64),
    /// So many bytes were laid out.
    LaidOut(u64),
    /// So many events were taken up.
    Replayed(u64),
}

/// Result of a replay.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// The line of the record.
    pub replay: Replay,
    /// The measurement, as of any workload.
    pub point: Point,
}

/// Looks at all events once: which files there are at the start, and which workload it is.
///
/// # Errors
/// When the events cannot be read, or cannot be replayed.
pub fn survey(
    load: &dyn Load,
    start: Start,
    interrupt: &AtomicBool,
    on_step: &mut dyn FnMut(Step),
) -> Result<Surveyed> {
    survey::survey(load, start, interrupt, on_step)
}

/// Replays a load once.
///
/// # Errors
/// When its files cannot be laid out or its events not be read; [`Error::Interrupted`].
pub fn replay(
    load: &dyn Load,
    surveyed: &Surveyed,
    (settings, round): (&Settings, u32),
    ground: &ReplaySite<'_>,
    on_step: &mut dyn FnMut(Step),
) -> Result<Replayed> {
    let before_ns = ground.watch.now_ns();
    let stage = Stage::new(
        &ground.directory,
        (ground.run, round as usize),
        surveyed.stage_files(),
        ground.interrupt,
        &mut |bytes| on_step(Step::LaidOut(bytes)),
    )?;
    let layout_ns = ground.watch.now_ns() - before_ns;
    let course = queue::Course { load, surveyed, settings, ground, stage: &stage };
    let made = queue::make(&course, on_step)?;
    let facts = outcome::Facts {
        load,
        surveyed,
        settings,
        round,
        stage: &stage,
        layout_s: layout_ns as f64 / 1e9,
        started_s: before_ns as f64 / 1e9,
    };
    if made.tally.calls() == 0 {
        return Err(Error::Refused(
            "there is nothing to replay: no event is about a file".to_owned(),
        ));
    }
    Ok(outcome::replayed(&facts, &made))
}

/// The workload that a load is like.
#[must_use]
pub fn workload(surveyed: &Surveyed) -> &Workload {
    surveyed.workload()
}

#[cfg(test)]
mod tests;
