//! A run under way: what it is made with, what of it is known, and what it tells.

use std::sync::atomic::AtomicBool;

use ioscape_analysis::predict::Predictor;
use ioscape_engine::{Error, Rig};
use ioscape_model::{Code, End, Header, LeftOut, Line, Point, Sustained, Warning};

use crate::measure;
use crate::plan::{Landscape, Plan, Visit};
use crate::sustain::Sustaining;
use crate::vector::{self, SystemVector};
use crate::written::{self, Written};

/// Laying out much takes longer, byte by byte, than the little that was tried; then it is read in.
const LAYOUT_SLOWER: f64 = 3.0;
/// What a visit is expected to take before one was made, seconds.
const VISIT_S: f64 = 2.5;
/// Of so many visits the longest says how long the next one may take.
const VISITS_RECENT: usize = 8;
/// And what a visit takes on average is that of so many.
const VISITS_AVERAGED: usize = 16;

/// What happens, for whoever shows progress.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A visit begins.
    Visit {
        /// What is measured.
        visit: &'a Visit,
        /// Visits made so far.
        points: usize,
        /// Seconds of the budget used.
        elapsed_s: f64,
    },
    /// Something happens within the visit.
    Measuring(measure::Event),
    /// Writing for long goes on.
    Sustaining(Sustaining),
    /// The system vector is measured.
    Vector(vector::Step),
    /// A visit is over.
    Point(&'a Point),
    /// A revision of the map was written.
    Map {
        /// Which.
        revision: u32,
        /// Borders and regions in it.
        landscape: &'a Landscape,
    },
}

/// Where lines go, one at a time, flushed.
pub type Journal<'a> = dyn FnMut(&Line) -> std::io::Result<()> + 'a;

/// What earlier parts of a run left.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Earlier {
    /// Their points.
    pub points: Vec<Point>,
    /// Seconds of the budget they used.
    pub elapsed_s: f64,
    /// The last revision they closed.
    pub revision: u32,
    /// Bytes they wrote, as far as the record says.
    pub written_bytes: u64,
    /// What the device took meanwhile, as far as the record says.
    pub device_written_bytes: u64,
    /// Doubts already in the record.
    pub warnings: Vec<Warning>,
    /// Writing for long, where that was looked at.
    pub sustained: Vec<Sustained>,
}

/// A run.
pub struct Run<'a> {
    /// Where the workloads run.
    pub rig: &'a mut dyn Rig,
    /// What chooses them.
    pub plan: &'a mut dyn Plan,
    /// The first line of the record, already written.
    pub header: &'a Header,
    /// The budget, seconds of the rig's clock, all parts of a resumed run together. The header's
    /// is the one it began with.
    pub budget_s: f64,
    /// Raised by Ctrl-C and SIGTERM.
    pub interrupt: &'a AtomicBool,
    /// Where lines go.
    pub journal: &'a mut Journal<'a>,
    /// Who watches.
    pub on_event: &'a mut dyn FnMut(Event<'_>),
    /// Measures the system vector, once; `None` where it is not to be, or was before.
    pub vector: Option<Box<MeasureVector>>,
}

/// Measures a system vector, given how long it may take (seconds), how much it may write (bytes) and
/// who watches.
pub type MeasureVector =
    dyn FnMut((f64, u64), &mut dyn FnMut(vector::Step)) -> Result<SystemVector, Error>;

/// What a run gave.
#[derive(Debug)]
pub struct Outcome {
    /// The last line of the record.
    pub end: End,
    /// Why it failed, where it did.
    pub failure: Option<String>,
    /// The models of the last map, where the points allow any.
    pub models: Option<Predictor>,
}

/// A record could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the record: {0}")]
pub struct JournalError(#[from] pub std::io::Error);

/// How far a run has come.
pub(crate) struct Progress {
    pub(crate) points: Vec<Point>,
    pub(crate) revision: u32,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) sustained: Vec<Sustained>,
    elapsed_before_s: f64,
    written_before_bytes: u64,
    device_written_before_bytes: u64,
    pub(crate) written: Written,
    pub(crate) points_at_map: usize,
    /// True once `--max-written` is used up: visits write no more, but for those that the next field allows.
    pub(crate) reads_only: bool,
    /// Buffered workloads that touch no more than this, bytes, write all the same.
    pub(crate) absorbed_up_to_bytes: u64,
    /// Buffered workloads that write may touch no more than this, bytes.
    pub(crate) writes_up_to_bytes: u64,
    /// Workloads may need no more new files than this, bytes.
    pub(crate) lays_out_up_to_bytes: u64,
    /// True once a visit found no room beside what is kept for graphs of the device layer.
    pub(crate) device_is_due: bool,
    /// Bytes that this part of the run might write when its first visit began.
    pub(crate) may_write_at_start_bytes: u64,
    /// Bytes of test files that earlier parts of the run had laid out.
    pub(crate) laid_out_before_bytes: u64,
    /// Elements of the system vector that were not measured, once it was.
    pub(crate) vector_left_out: Vec<LeftOut>,
    /// On the budget's clock.
    pub(crate) last_canary_s: f64,
}

impl Progress {
    pub(crate) fn after(earlier: Earlier) -> Self {
        Self {
            written: Written::after(earlier.points.len()),
            points: earlier.points,
            revision: earlier.revision,
            warnings: earlier.warnings,
            sustained: earlier.sustained,
            elapsed_before_s: earlier.elapsed_s,
            written_before_bytes: earlier.written_bytes,
            device_written_before_bytes: earlier.device_written_bytes,
            points_at_map: 0,
            reads_only: false,
            absorbed_up_to_bytes: 0,
            writes_up_to_bytes: u64::MAX,
            lays_out_up_to_bytes: u64::MAX,
            device_is_due: false,
            may_write_at_start_bytes: u64::MAX,
            laid_out_before_bytes: 0,
            vector_left_out: vec![],
            last_canary_s: f64::NEG_INFINITY,
        }
    }

    /// Seconds of the budget used, all parts of the run together.
    pub(crate) fn elapsed_s(&self, rig: &dyn Rig) -> f64 {
        self.elapsed_before_s + rig.now_s()
    }

    pub(crate) fn written_bytes(&self, rig: &dyn Rig) -> u64 {
        self.written_before_bytes + rig.written_bytes()
    }

    /// Counts what was written past the rig.
    pub(crate) fn note_written(&mut self, bytes: u64) {
        self.written_before_bytes += bytes;
    }

    pub(crate) fn device_written_bytes(&self, rig: &dyn Rig) -> Option<u64> {
        Some(self.device_written_before_bytes + rig.device_written_bytes()?)
    }

    /// What counts against `--max-written` before this part begins.
    pub(crate) fn spent_before_bytes(&self) -> u64 {
        self.written_before_bytes.max(self.device_written_before_bytes)
    }

    /// What this visit may take, laying out what is missing and reading it in included, seconds.
    pub(crate) fn next_visit_s(&self, header: &Header, visit: &Visit) -> f64 {
        let of_point = |point: &Point| point.workload.unique_bytes;
        let laid_out = self.points.iter().map(of_point).max().unwrap_or(0);
        let missing = visit.workload.unique_bytes.saturating_sub(laid_out) as f64;
        let rate = header.hints.layout_bytes_per_s.unwrap_or(f64::INFINITY);
        self.visit_s() + LAYOUT_SLOWER * missing / rate
    }

    /// Lets fewer workloads write, after a visit that found no room to: first only those whose writes the page cache
    /// takes, then those of half as much data, at last none. False if none was left before: the run has to end.
    pub(crate) fn write_less(&mut self, header: &Header) -> bool {
        if !self.reads_only {
            self.reads_only = true;
            self.absorbed_up_to_bytes = written::absorbed_up_to_bytes(header);
            return true;
        }
        let before_bytes = self.absorbed_up_to_bytes;
        let is_of_use = before_bytes / 2 >= header.ranges.unique_bytes.min;
        self.absorbed_up_to_bytes = if is_of_use { before_bytes / 2 } else { 0 };
        before_bytes > 0
    }

    /// What the next visit may take beside layout, seconds. A visit during which we stood still says
    /// nothing of it.
    pub(crate) fn visit_s(&self) -> f64 {
        let recent = &self.points[self.points.len().saturating_sub(VISITS_RECENT)..];
        let ours = recent.iter().filter(|point| !stood_still(point));
        ours.map(|point| point.elapsed_s - point.spent_s.layout).reduce(f64::max).unwrap_or(VISIT_S)
    }

    /// Mean time that recent visits spent on anything but measuring and layout, seconds.
    pub(crate) fn beside_measuring_s(&self) -> f64 {
        let recent = &self.points[self.points.len().saturating_sub(VISITS_AVERAGED)..];
        let beside_s =
            |point: &Point| point.elapsed_s - point.spent_s.layout - point.spent_s.measuring;
        let ours: Vec<f64> = recent.iter().filter(|p| !stood_still(p)).map(beside_s).collect();
        if ours.is_empty() { 0.0 } else { ours.iter().sum::<f64>() / ours.len() as f64 }
    }
}

/// Whether this process, or the whole machine, stood still during the visit.
pub(crate) fn stood_still(point: &Point) -> bool {
    point.warnings.iter().any(|warning| warning.code == Code::ClockJump)
}
