//! Sleeping to some microseconds in an event loop: tokio's own timers have a grain of a millisecond.
//!
//! One timer descriptor of the kernel is armed for whoever is to wake first; a heap holds the rest.

use std::cell::{Cell, RefCell};
use std::collections::BinaryHeap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use ioscape_engine::Stopwatch;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::net::unix::pipe::Receiver;

/// The timer of one event loop. Times are those of its stopwatch.
pub(crate) struct Timer {
    watch: Stopwatch,
    descriptor: Receiver,
    sleepers: RefCell<BinaryHeap<Sleeper>>,
    /// When the descriptor fires; `u64::MAX` where it is not armed.
    armed_ns: Cell<u64>,
    is_halted: Cell<bool>,
}

impl Timer {
    /// A timer of the loop that this is called in, and a task of it that wakes sleepers.
    pub(crate) fn start(watch: Stopwatch) -> io::Result<Rc<Self>> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // As a pipe is it read: eight bytes, or it would block. `AsyncFd` takes any descriptor, but
        // may only be made by unsafe code, for it cannot know who else closes that.
        let descriptor = Receiver::from_owned_fd_unchecked(descriptor)?;
        let timer = Rc::new(Self {
            watch,
            descriptor,
            sleepers: RefCell::default(),
            armed_ns: Cell::new(u64::MAX),
            is_halted: Cell::new(false),
        });
        tokio::task::spawn_local(run(timer.clone()));
        Ok(timer)
    }

    /// The time.
    pub(crate) fn now_ns(&self) -> u64 {
        self.watch.now_ns()
    }

    /// Ends at that time, at once where it has passed, or when the timer is halted.
    pub(crate) fn sleep_until(&self, until_ns: u64) -> Sleep<'_> {
        Sleep { timer: self, until_ns, waker: None }
    }

    /// Wakes whoever is to wake by now. Cheap where there is nobody: a busy loop calls it often,
    /// for it hears of its descriptors only now and then.
    pub(crate) fn wake_due(&self) {
        if self.armed_ns.get() <= self.now_ns() {
            self.fire();
        }
    }

    /// Wakes all sleepers, now and from now on.
    pub(crate) fn halt(&self) {
        self.is_halted.set(true);
        for sleeper in self.sleepers.borrow_mut().drain() {
            sleeper.waker.wake();
        }
    }

    pub(crate) fn is_halted(&self) -> bool {
        self.is_halted.get()
    }

    fn fire(&self) {
        let now_ns = self.now_ns();
        let mut sleepers = self.sleepers.borrow_mut();
        while sleepers.peek().is_some_and(|first| first.due_ns <= now_ns) {
            if let Some(sleeper) = sleepers.pop() {
                sleeper.waker.wake();
            }
        }
        self.armed_ns.set(u64::MAX);
        if let Some(first) = sleepers.peek() {
            self.arm(first.due_ns);
        }
    }

    fn enter(&self, due_ns: u64, waker: Waker) {
        self.sleepers.borrow_mut().push(Sleeper { due_ns, waker });
        if due_ns < self.armed_ns.get() {
            self.arm(due_ns);
        }
    }

    fn arm(&self, due_ns: u64) {
        // A time of zero would disarm it.
        let wait_ns = due_ns.saturating_sub(self.now_ns()).max(1);
        let time = |ns: u64| Timespec {
            tv_sec: (ns / 1_000_000_000).cast_signed(),
            tv_nsec: (ns % 1_000_000_000).cast_signed(),
        };
        let when = Itimerspec { it_interval: time(0), it_value: time(wait_ns) };
        timerfd_settime(&self.descriptor, TimerfdTimerFlags::empty(), &when)
            .expect("the descriptor is a timer's and the time is positive");
        self.armed_ns.set(due_ns);
    }
}

/// Wakes sleepers for as long as the loop runs. The kernel's clock may be a little ahead of the
/// stopwatch: then nobody is due yet, and the descriptor is armed again.
async fn run(timer: Rc<Timer>) {
    while timer.descriptor.readable().await.is_ok() {
        // How often it fired since tells nothing; where it did not, there is nothing to read.
        let _ = timer.descriptor.try_read(&mut [0_u8; 8]);
        timer.fire();
    }
}

struct Sleeper {
    due_ns: u64,
    waker: Waker,
}

/// The earliest is the greatest, for the heap gives back the greatest.
impl Ord for Sleeper {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.due_ns.cmp(&self.due_ns)
    }
}

impl PartialOrd for Sleeper {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Sleeper {
    fn eq(&self, other: &Self) -> bool {
        self.due_ns == other.due_ns
    }
}

impl Eq for Sleeper {}

/// Waits for a time of a [`Timer`].
pub(crate) struct Sleep<'a> {
    timer: &'a Timer,
    until_ns: u64,
    waker: Option<Waker>,
}

impl Future for Sleep<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.timer.is_halted() || self.timer.now_ns() >= self.until_ns {
            return Poll::Ready(());
        }
        let waker = context.waker();
        if !self.waker.as_ref().is_some_and(|known| known.will_wake(waker)) {
            self.waker = Some(waker.clone());
            self.timer.enter(self.until_ns, waker.clone());
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::runtime::Builder;
    use tokio::task::LocalSet;

    use super::*;

    fn in_a_loop(body: impl AsyncFnOnce(Rc<Timer>)) {
        let runtime = Builder::new_current_thread().enable_io().build().unwrap();
        let watch = Stopwatch::calibrated();
        LocalSet::new().block_on(&runtime, async { body(Timer::start(watch).unwrap()).await });
    }

    #[test]
    fn sleepers_wake_in_the_order_of_their_times_and_never_early() {
        in_a_loop(async |timer| {
            let from_ns = timer.now_ns();
            let woken = Rc::new(RefCell::new(Vec::new()));
            let sleeper = |wait_ns: u64| {
                let (timer, woken) = (timer.clone(), woken.clone());
                tokio::task::spawn_local(async move {
                    timer.sleep_until(from_ns + wait_ns).await;
                    assert!(timer.now_ns() >= from_ns + wait_ns);
                    woken.borrow_mut().push(wait_ns);
                })
            };
            let waits_ns = [30_000_000, 10_000_000, 0, 50_000_000, 20_000_000];
            for task in waits_ns.map(sleeper) {
                task.await.unwrap();
            }
            assert_eq!(*woken.borrow(), [0, 10_000_000, 20_000_000, 30_000_000, 50_000_000]);
        });
    }

    #[test]
    fn a_halted_timer_lets_nobody_sleep() {
        in_a_loop(async |timer| {
            let sleeping = timer.clone();
            let task = tokio::task::spawn_local(async move {
                sleeping.sleep_until(u64::MAX / 2).await;
            });
            tokio::task::yield_now().await;
            timer.halt();
            task.await.unwrap();
            timer.sleep_until(u64::MAX / 2).await;
            assert!(timer.is_halted());
        });
    }

    #[test]
    fn a_busy_loop_wakes_sleepers_without_its_descriptor() {
        in_a_loop(async |timer| {
            let mut sleep = timer.sleep_until(timer.now_ns() + 1_000_000);
            let first = poll_fn(|context| Poll::Ready(Pin::new(&mut sleep).poll(context))).await;
            assert!(first.is_pending());
            while !timer.sleepers.borrow().is_empty() {
                timer.wake_due();
            }
            sleep.await;
        });
    }
}
