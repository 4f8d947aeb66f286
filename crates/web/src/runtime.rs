//! Event loops: one thread with sockets, a timer and tasks that never leave it.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::error::Error;
use crate::timer::Timer;

/// Time between two looks of a thread that waits for the loops.
const LOOK: Duration = Duration::from_millis(40);
/// Time between two looks of a loop whether it is to halt.
const LOOK_NS: u64 = 20_000_000;

/// So many loops, not yet running.
pub(crate) fn runtimes(n_loops: usize) -> Result<Vec<Runtime>, Error> {
    let one = |_| Builder::new_current_thread().enable_io().enable_time().build();
    (0..n_loops.max(1))
        .map(one)
        .collect::<io::Result<_>>()
        .map_err(|source| Error::EventLoop { source })
}

/// Waits until all loops have ended, which is when nobody can send any more. Meanwhile `halt` becomes
/// true where `interrupt` does.
pub(crate) fn oversee(
    ended: &Receiver<()>,
    interrupt: &AtomicBool,
    halt: &AtomicBool,
    mut on_look: impl FnMut(),
) {
    while ended.recv_timeout(LOOK) != Err(RecvTimeoutError::Disconnected) {
        if interrupt.load(Ordering::Relaxed) {
            halt.store(true, Ordering::Relaxed);
        }
        on_look();
    }
}

/// Ends when the loop is to halt, and then halts its timer.
pub(crate) async fn halted(timer: Rc<Timer>, halt: Arc<AtomicBool>) {
    while !halt.load(Ordering::Relaxed) {
        timer.sleep_until(timer.now_ns() + LOOK_NS).await;
    }
    timer.halt();
}
