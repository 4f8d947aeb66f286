//! Reads events a bounded number ahead and hands their steps to the lanes.
//!
//! Whoever hands steps out waits when enough are out. What a step waits for was handed out before it,
//! and everything is handed out before that waiting begins: so the first step that is not done can
//! always be made.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, Scope};

use ioscape_engine::error::{Error, Result};
use ioscape_engine::replay::Stage;

use super::lane::{Gate, Shared, Waiter, run};
use super::order::{Planner, Said};
use super::step::Step;
use super::survey::Surveyed;
use super::tally::Tally;
use super::{Load, ReplaySite, Settings};

/// Steps that are out at a time, of some 200 bytes each, 50 MB in all: most traces of some seconds are
/// planned before their replay begins, and take no processor from it.
const OUT_MAX: u64 = 1 << 18;
/// Steps that go to a lane together.
const CHUNK: usize = 128;
/// A lane's stack: it lists directories there.
const STACK_BYTES: usize = 256 << 10;
/// Events between two looks at the progress.
const LOOK_EVENTS: u64 = 1 << 14;

/// The load, how and where it is replayed.
pub(super) struct Course<'a> {
    pub(super) load: &'a dyn Load,
    pub(super) surveyed: &'a Surveyed,
    pub(super) settings: &'a Settings,
    pub(super) ground: &'a ReplaySite<'a>,
    pub(super) stage: &'a Stage,
}

/// All that was done.
pub(super) struct Made {
    pub(super) tally: Tally,
    pub(super) elapsed_s: f64,
    pub(super) passed_over: u64,
    pub(super) streams: u64,
}

/// A lane that has a thread.
struct Open {
    sender: Sender<Vec<Step>>,
    chunk: Vec<Step>,
}

/// The lanes that have a thread.
struct Lanes<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    shared: &'env Shared<'env>,
    open: HashMap<u32, Open>,
    /// Lanes with steps that are not handed out yet.
    partial: Vec<u32>,
    failed: Option<io::Error>,
}

impl<'env> Lanes<'_, 'env> {
    fn push(&mut self, planner: &Planner<'_>, lane: u32, step: Step) {
        let Self { scope, shared, open, failed, .. } = self;
        let lane_of = open.entry(lane).or_insert_with(|| {
            let (sender, receiver) = channel();
            let progress = planner.progress(lane);
            let shared: &'env Shared<'env> = shared;
            let thread = Builder::new().stack_size(STACK_BYTES);
            let begun = thread.spawn_scoped(scope, move || run(shared, &receiver, &progress));
            *failed = begun.err().or(failed.take());
            Open { sender, chunk: Vec::new() }
        });
        if lane_of.chunk.is_empty() {
            self.partial.push(lane);
        }
        lane_of.chunk.push(step);
        if lane_of.chunk.len() >= CHUNK {
            self.flush(lane);
        }
    }

    fn flush(&mut self, lane: u32) {
        let Some(lane) = self.open.get_mut(&lane).filter(|lane| !lane.chunk.is_empty()) else {
            return;
        };
        let chunk = std::mem::take(&mut lane.chunk);
        self.shared.outstanding.fetch_add(chunk.len() as u64, Ordering::SeqCst);
        // A lane that is gone has ended before its time: all is to end.
        lane.sender.send(chunk).ok();
    }

    fn flush_all(&mut self) {
        for lane in std::mem::take(&mut self.partial) {
            self.flush(lane);
        }
    }

    fn close(&mut self, lane: u32) {
        self.flush(lane);
        self.open.remove(&lane);
    }
}

/// Makes all steps of a load.
pub(super) fn make(course: &Course<'_>, on_step: &mut dyn FnMut(super::Step)) -> Result<Made> {
    let Course { load, surveyed, settings, ground, stage } = course;
    let shared = Shared {
        stage,
        watch: ground.watch,
        spacing: settings.spacing,
        start: Gate::default(),
        interrupt: ground.interrupt,
        give_up: AtomicBool::new(false),
        tally: Mutex::new(Tally::new()),
        outstanding: AtomicU64::new(0),
        low: OUT_MAX / 2,
        dispatcher: Waiter::default(),
        end_ns: AtomicU64::new(0),
    };
    let mut planner = Planner::new(*load, surveyed, settings);
    let mut start_ns = 0;
    std::thread::scope(|scope| -> Result<()> {
        let (open, partial) = (HashMap::new(), Vec::new());
        let mut lanes = Lanes { scope, shared: &shared, open, partial, failed: None };
        let handed_out = hand_out(*load, &mut planner, &mut lanes, on_step);
        lanes.flush_all();
        if handed_out.is_ok() {
            shared.start.open(shared.watch.now_ns());
        }
        if let Err(error) = handed_out {
            stop(&shared);
            return Err(error);
        }
        start_ns = shared.start.opened_ns();
        drop(lanes);
        Ok(())
    })?;
    if ground.interrupt.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    let end_ns = shared.end_ns.load(Ordering::Relaxed);
    let tally = shared.tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Made {
        tally,
        elapsed_s: end_ns.saturating_sub(start_ns) as f64 / 1e9,
        passed_over: planner.passed_over(),
        streams: planner.streams(),
    })
}

/// Lanes that wait for others would wait for ever.
fn stop(shared: &Shared<'_>) {
    shared.give_up.store(true, Ordering::SeqCst);
    shared.start.open(shared.watch.now_ns());
}

fn hand_out(
    load: &dyn Load,
    planner: &mut Planner<'_>,
    lanes: &mut Lanes<'_, '_>,
    on_step: &mut dyn FnMut(super::Step),
) -> Result<()> {
    let shared = lanes.shared;
    let mut said = Vec::new();
    let mut events = 0;
    for event in load.events() {
        let event = event.map_err(|error| Error::path("read", load.source(), error))?;
        planner.take(&event, &mut |what| said.push(what));
        for what in said.drain(..) {
            match what {
                Said::Step(lane, step) => lanes.push(planner, lane, step),
                Said::Ended(lane) => lanes.close(lane),
            }
        }
        events += 1;
        if events % LOOK_EVENTS == 0 {
            on_step(super::Step::Replayed(events));
        }
        if let Some(error) = lanes.failed.take() {
            return Err(Error::path("start", "a thread for each stream", error));
        }
        if shared.outstanding.load(Ordering::Relaxed) < OUT_MAX {
            continue;
        }
        lanes.flush_all();
        shared.start.open(shared.watch.now_ns());
        while shared.outstanding.load(Ordering::SeqCst) >= shared.low {
            if shared.interrupt.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            shared.dispatcher.wait(|| shared.outstanding.load(Ordering::SeqCst) >= shared.low);
            on_step(super::Step::Replayed(events));
        }
    }
    Ok(())
}
