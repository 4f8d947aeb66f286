//! A thread that makes the calls of a stream, one after another.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use ioscape_engine::Stopwatch;
use ioscape_engine::replay::{Performer, Stage, ThreadIo};
use ioscape_model::Spacing;

use super::step::{Call, Doing, Progress, Step};
use super::tally::{Made, Tally};

/// Whoever waits for its time looks so often whether all is to end, ns.
const LOOK_NS: u64 = 100_000_000;

/// State that all lanes share.
pub(super) struct Shared<'a> {
    pub(super) stage: &'a Stage,
    pub(super) watch: Stopwatch,
    pub(super) spacing: Spacing,
    /// When all began; nobody begins before.
    pub(super) start: Gate,
    pub(super) interrupt: &'a AtomicBool,
    /// Steps that others wait for will not come.
    pub(super) give_up: AtomicBool,
    pub(super) tally: Mutex<Tally>,
    /// Steps that were handed out and are not done.
    pub(super) outstanding: AtomicU64,
    /// Below this many, whoever hands them out goes on.
    pub(super) low: u64,
    pub(super) dispatcher: Waiter,
    /// When the last call ended.
    pub(super) end_ns: AtomicU64,
}

impl Shared<'_> {
    /// Whether all is to end before its end.
    fn is_over(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed) || self.give_up.load(Ordering::Relaxed)
    }
}

/// Lets whoever hands steps out wait until fewer are out.
#[derive(Debug, Default)]
pub(super) struct Waiter {
    turn: Mutex<()>,
    woken: Condvar,
}

impl Waiter {
    fn wake(&self) {
        drop(self.turn.lock().unwrap_or_else(PoisonError::into_inner));
        self.woken.notify_all();
    }

    /// Waits until it is woken, as long as `goes_on`, and for a moment at most.
    pub(super) fn wait(&self, goes_on: impl Fn() -> bool) {
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if goes_on() {
            drop(self.woken.wait_timeout(turn, Duration::from_nanos(LOOK_NS)));
        }
    }
}

/// Holds the lanes back until all may begin.
#[derive(Debug, Default)]
pub(super) struct Gate {
    open_ns: Mutex<Option<u64>>,
    opened: Condvar,
}

impl Gate {
    /// Opens it, once.
    pub(super) fn open(&self, now_ns: u64) {
        let mut open_ns = self.open_ns.lock().unwrap_or_else(PoisonError::into_inner);
        open_ns.get_or_insert(now_ns);
        drop(open_ns);
        self.opened.notify_all();
    }

    /// When it was opened, 0 before.
    pub(super) fn opened_ns(&self) -> u64 {
        self.open_ns.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or(0)
    }

    /// When it was opened; `None` where all is to end before.
    fn wait(&self, interrupt: &AtomicBool) -> Option<u64> {
        let mut open_ns = self.open_ns.lock().unwrap_or_else(PoisonError::into_inner);
        while open_ns.is_none() && !interrupt.load(Ordering::Relaxed) {
            let woken = self.opened.wait_timeout(open_ns, Duration::from_nanos(LOOK_NS));
            open_ns = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        *open_ns
    }
}

/// Where a lane is.
struct Lane<'a> {
    shared: &'a Shared<'a>,
    performer: Performer<'a>,
    start_ns: u64,
    /// When its last step ended.
    ended_ns: u64,
    /// How much later than it should it began its steps so far: later gaps are shorter by that.
    debt_ns: u64,
}

/// Makes the steps that come, until no more will.
pub(super) fn run(shared: &Shared<'_>, steps: &Receiver<Vec<Step>>, progress: &Arc<Progress>) {
    let Some(start_ns) = shared.start.wait(shared.interrupt) else { return };
    let before = ThreadIo::look();
    let performer = Performer::new(shared.stage);
    let mut lane = Lane { shared, performer, start_ns, ended_ns: start_ns, debt_ns: 0 };
    let mut done = 0;
    let mut made = Vec::new();
    for chunk in steps {
        let count = chunk.len() as u64;
        for step in chunk {
            if shared.is_over() {
                return;
            }
            if let Some(call) = lane.take(&step) {
                made.push(call);
            }
            done += 1;
            progress.set(done, lane.ended_ns);
        }
        let mut tally = shared.tally.lock().unwrap_or_else(PoisonError::into_inner);
        for made in &made {
            tally.enter(made);
        }
        drop(tally);
        made.clear();
        let left = shared.outstanding.fetch_sub(count, Ordering::SeqCst) - count;
        if left < shared.low && left + count >= shared.low {
            shared.dispatcher.wake();
        }
    }
    shared.end_ns.fetch_max(lane.ended_ns, Ordering::Relaxed);
    drop(lane);
    if let Some((before, after)) = before.zip(ThreadIo::look()) {
        let mut tally = shared.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.count(&after.since(&before));
    }
}

impl Lane<'_> {
    fn take(&mut self, step: &Step) -> Option<Made> {
        let shared = self.shared;
        let came_ns = shared.watch.now_ns();
        let others = step.after.iter().flatten().map(|after| after.wait(&|| shared.is_over()));
        let others_ns = others.fold(0, u64::max);
        match step.doing {
            Doing::Call(call) => {
                let due_ns = self.due_ns(step).max(others_ns);
                Some(self.call(&call, step.busy_ns, due_ns))
            }
            Doing::Pause(after_ns) => {
                let has_others = step.after.iter().any(Option::is_some);
                let waited_ns = if has_others { others_ns.max(came_ns) + after_ns } else { 0 };
                let due_ns = self.due_ns(step).max(waited_ns);
                self.wait_until(due_ns, 0);
                self.ended_ns = shared.watch.now_ns();
                self.owe(self.ended_ns.saturating_sub(due_ns));
                None
            }
            Doing::Release(handle) => {
                self.performer.release(handle);
                None
            }
        }
    }

    /// When a step is to begin, others left out.
    fn due_ns(&mut self, step: &Step) -> u64 {
        match self.shared.spacing {
            Spacing::None => 0,
            Spacing::Open => self.start_ns + step.due_ns,
            Spacing::Closed => {
                let repaid_ns = self.debt_ns.min(step.gap_ns);
                self.debt_ns -= repaid_ns;
                self.ended_ns + step.gap_ns - repaid_ns
            }
        }
    }

    /// Waits, at work for the last `busy_ns`.
    fn wait_until(&self, due_ns: u64, busy_ns: u64) {
        let Shared { watch, .. } = self.shared;
        let idle_until_ns = due_ns.saturating_sub(busy_ns);
        while watch.now_ns() < idle_until_ns && !self.shared.is_over() {
            watch.wait_until(idle_until_ns, LOOK_NS);
        }
        while watch.now_ns() < due_ns && !self.shared.is_over() {
            watch.spin_until(due_ns, LOOK_NS);
        }
    }

    /// Adds to the debt that later gaps repay.
    fn owe(&mut self, late_ns: u64) {
        if self.shared.spacing == Spacing::Closed {
            self.debt_ns += late_ns;
        }
    }

    fn call(&mut self, call: &Call, busy_ns: u64, due_ns: u64) -> Made {
        if due_ns > 0 {
            self.wait_until(due_ns, busy_ns);
        }
        let began_ns = self.shared.watch.now_ns();
        let outcome = self.performer.perform(&call.action);
        self.ended_ns = self.shared.watch.now_ns();
        let late_ns = if due_ns == 0 { 0 } else { began_ns.saturating_sub(due_ns) };
        self.owe(late_ns);
        Made {
            call: *call,
            outcome,
            time_ns: self.ended_ns - began_ns,
            late_ns,
            latency_ns: self.ended_ns.saturating_sub(due_ns.min(began_ns)),
        }
    }
}
