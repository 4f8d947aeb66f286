//! The next step of a stream: a call, and the steps it waits for.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use ioscape_engine::replay::Action;
use ioscape_model::RequestClass;
use ioscape_trace::Op;

/// How often whoever waits looks whether all is to end.
const LOOK: Duration = Duration::from_millis(100);
/// Mostly what is waited for is about to end: looks before going to sleep.
const SPINS: u32 = 200;

/// Something that a lane does.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) doing: Doing,
    /// From the end of the step before to the start of this one.
    pub(super) gap_ns: u64,
    /// Of it on a processor.
    pub(super) busy_ns: u64,
    /// Since the start of all, where the spacing is open.
    pub(super) due_ns: u64,
    /// Steps that must have ended before it begins.
    pub(super) after: [Option<After>; 2],
}

/// Content of a step.
#[derive(Clone, Copy, Debug)]
pub(super) enum Doing {
    /// A call.
    Call(Call),
    /// Nothing: something was waited for, and this long went by after it.
    Pause(u64),
    /// A handle that the process never closed goes with the process.
    Release(u32),
}

/// A call, with what came of it when it was recorded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) action: Action,
    pub(super) op: Op,
    /// Of reads and writes.
    pub(super) class: Option<RequestClass>,
    pub(super) error: i16,
    /// Bytes moved.
    pub(super) bytes: u64,
}

/// A step of another lane.
#[derive(Clone, Debug)]
pub(super) struct After {
    pub(super) lane: Arc<Progress>,
    pub(super) step: u64,
}

/// How far a lane is.
#[derive(Debug, Default)]
pub(super) struct Progress {
    done: AtomicU64,
    /// When the last of them ended.
    ended_ns: AtomicU64,
    waiting: AtomicU32,
    turn: Mutex<()>,
    moved: Condvar,
}

impl Progress {
    /// So many steps are done, the last of them at this moment.
    pub(super) fn set(&self, done: u64, ended_ns: u64) {
        self.ended_ns.store(ended_ns, Ordering::SeqCst);
        self.done.store(done, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            drop(self.turn.lock().unwrap_or_else(PoisonError::into_inner));
            self.moved.notify_all();
        }
    }

    fn has(&self, step: u64) -> bool {
        self.done.load(Ordering::SeqCst) >= step
    }
}

impl After {
    /// Waits until the step is done, or all is to end. Returns when the lane's latest step ended, at or after
    /// the one waited for; 0 if it had ended before. To notice takes its time, as it did when the program
    /// waited, and is not to count twice.
    pub(super) fn wait(&self, is_over: &dyn Fn() -> bool) -> u64 {
        if self.lane.has(self.step) {
            return 0;
        }
        let ended_ns = || self.lane.ended_ns.load(Ordering::SeqCst);
        for _ in 0..SPINS {
            if self.lane.has(self.step) {
                return ended_ns();
            }
            std::hint::spin_loop();
        }
        self.lane.waiting.fetch_add(1, Ordering::SeqCst);
        let mut turn = self.lane.turn.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.lane.has(self.step) && !is_over() {
            let woken = self.lane.moved.wait_timeout(turn, LOOK);
            turn = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(turn);
        self.lane.waiting.fetch_sub(1, Ordering::SeqCst);
        ended_ns()
    }
}
