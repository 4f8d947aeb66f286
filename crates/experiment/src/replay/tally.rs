//! All calls made so far, by any stream.

use std::collections::BTreeMap;
use std::io;

use ioscape_engine::replay::{Outcome, ThreadIo, Times};
use ioscape_model::{ErrorsCompared, RequestClass};
use ioscape_trace::Op;

use super::action;
use super::step::Call;

/// Errors that are told in words.
const EXAMPLES: usize = 5;

/// Calls of a kind.
#[derive(Clone, Debug)]
pub(super) struct Sum {
    pub(super) times: Times,
    pub(super) bytes: u64,
}

impl Sum {
    fn new() -> Self {
        Self { times: Times::default(), bytes: 0 }
    }
}

/// A call that was made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) call: Call,
    pub(super) outcome: Outcome,
    pub(super) time_ns: u64,
    /// After it was to begin.
    pub(super) late_ns: u64,
    /// From when it was to begin to its end.
    pub(super) latency_ns: u64,
}

/// All that was made.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    pub(super) operations: BTreeMap<Op, Sum>,
    pub(super) classes: [Sum; 4],
    /// Of reads and writes.
    pub(super) transfers: Times,
    pub(super) late: Times,
    pub(super) latency: Times,
    pub(super) errors: ErrorsCompared,
    pub(super) counted: Option<ThreadIo>,
}

impl Tally {
    pub(super) fn new() -> Self {
        Self {
            operations: BTreeMap::new(),
            classes: std::array::from_fn(|_| Sum::new()),
            transfers: Times::default(),
            late: Times::default(),
            latency: Times::default(),
            errors: ErrorsCompared::default(),
            counted: None,
        }
    }

    pub(super) fn calls(&self) -> u64 {
        self.operations.values().map(|sum| sum.times.count()).sum()
    }

    pub(super) fn enter(&mut self, made: &Made) {
        let Made { call, outcome, time_ns, .. } = made;
        let is_transfer = action::moves_bytes(call.action.kind);
        let bytes = if is_transfer { outcome.bytes } else { 0 };
        let sum = self.operations.entry(call.op).or_insert_with(Sum::new);
        sum.times.enter(*time_ns);
        sum.bytes += bytes;
        self.late.enter(made.late_ns);
        if let Some(class) = call.class.filter(|_| outcome.error == 0) {
            let sum = &mut self.classes[index(class)];
            sum.times.enter(*time_ns);
            sum.bytes += outcome.bytes;
            self.transfers.enter(*time_ns);
            self.latency.enter(made.latency_ns);
        }
        self.compare(made);
    }

    /// Holds a call against what came of it when it was recorded.
    fn compare(&mut self, made: &Made) {
        let Made { call, outcome, .. } = made;
        let (here, recorded) = (outcome.error, i32::from(call.error));
        let errors = &mut self.errors;
        let count = match (here, recorded) {
            (0, 0) if action::moves_bytes(call.action.kind) && outcome.bytes < call.bytes => {
                &mut errors.shorter
            }
            (0, 0) => return,
            (here, recorded) if here == recorded => {
                errors.alike += 1;
                return;
            }
            (0, _) => &mut errors.only_recorded,
            (_, 0) => &mut errors.only_here,
            _ => &mut errors.different,
        };
        *count += 1;
        if errors.examples.len() < EXAMPLES {
            let said = |error: i32, bytes: u64| match error {
                0 => format!("{bytes} bytes"),
                error => io::Error::from_raw_os_error(error).to_string(),
            };
            errors.examples.push(format!(
                "{} of file {} at {}, {} bytes: {}, recorded {}",
                call.op.name(),
                call.action.file,
                call.action.offset,
                call.action.length,
                said(here, outcome.bytes),
                said(recorded, call.bytes)
            ));
        }
    }

    /// Adds the kernel's counts for a thread that has ended.
    pub(super) fn count(&mut self, counted: &ThreadIo) {
        self.counted = Some(self.counted.unwrap_or_default().plus(counted));
    }
}

/// Where a class stands in a tally.
pub(super) fn index(class: RequestClass) -> usize {
    match class {
        RequestClass::ReadSeq => 0,
        RequestClass::ReadRand => 1,
        RequestClass::WriteSeq => 2,
        RequestClass::WriteRand => 3,
    }
}
