//! What makes requests happen, one per worker. An engine draws or is given requests, makes them, and
//! enters them into the worker's tally with their times.

use std::io;

use crate::error::Result;
pub use crate::request::Done;
use crate::request::Op;
use crate::tally::Tally;

mod buffers;
pub mod null;
pub mod psync;
pub mod threads;
mod transfer;
pub mod uring;

/// One worker's way to make requests happen.
pub enum Engine {
    /// Each request is done before the next one begins.
    OneByOne(Box<dyn OneByOne>),
    /// Many at a time.
    InFlight(Box<dyn InFlight>),
}

/// Makes requests one after the other. Engines have the loop themselves, and what is drawn before
/// it and entered after it stays out of it: a request leaves little in the processor's caches.
pub trait OneByOne: Send {
    /// Makes these requests. How long each took, nanoseconds, goes into `times_ns`, which is as long
    /// as `ops`: [`FAILED_NS`](crate::tally::FAILED_NS) for one that failed and is a result.
    ///
    /// # Errors
    /// The first request that failed in a way that is no result.
    fn make(&mut self, ops: &[Op], times_ns: &mut [u64], tally: &mut Tally) -> Result<()>;

    /// Makes one request that was to begin at its `due_ns`.
    ///
    /// # Errors
    /// When it failed in a way that is no result.
    fn make_one(&mut self, op: &Op, tally: &mut Tally) -> Result<()>;
}

/// How long [`InFlight::reap`] may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Until a request is done.
    ForOne,
    /// Until a request is done, but not longer than to this time by the worker's stopwatch.
    Until(u64),
}

/// Keeps many requests in flight.
pub trait InFlight: Send {
    /// Most of them.
    fn slots(&self) -> usize;

    /// Takes as many of `ops` as slots are free and says how many that were.
    ///
    /// # Errors
    /// The first request that failed in a way that is no result.
    fn submit(&mut self, ops: &[Op]) -> Result<usize>;

    /// Enters what is done, or failed, and says how many that were.
    ///
    /// # Errors
    /// The first request that failed in a way that is no result.
    fn reap(&mut self, wait: Wait, tally: &mut Tally) -> Result<usize>;
}

/// What an engine does apart from the requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Duties {
    /// Writes between two fdatasyncs; 0 is never.
    pub fsync_every: u32,
}

/// Counts writes, to say when an fdatasync is due. The write that it follows lasts until that is
/// done, as it does for an application that waits for its data to be safe.
#[derive(Clone, Copy, Debug)]
struct SyncDue {
    every: u32,
    left: u32,
}

impl SyncDue {
    fn new(duties: Duties) -> Self {
        Self { every: duties.fsync_every, left: duties.fsync_every }
    }

    /// After every write.
    #[inline]
    fn after_write(&mut self) -> bool {
        if self.every == 0 {
            return false;
        }
        self.left -= 1;
        let due = self.left == 0;
        if due {
            self.left = self.every;
        }
        due
    }
}

#[cold]
fn short(moved: u64) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("only {moved} bytes were moved"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_fdatasync_is_due_after_every_so_many_writes() {
        let due = |every: u32| -> Vec<bool> {
            let mut due = SyncDue::new(Duties { fsync_every: every });
            (0..6).map(|_| due.after_write()).collect()
        };
        assert_eq!(due(0), [false; 6]);
        assert_eq!(due(1), [true; 6]);
        assert_eq!(due(3), [false, false, true, false, false, true]);
    }
}
