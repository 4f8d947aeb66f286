//! What makes requests happen, one per worker. An engine is given requests and hands them back
//! done, with their response times.

use std::time::Instant;

use crate::error::Result;
use crate::request::Op;
use crate::rig::Class;

pub mod null;
pub mod psync;

/// A request that is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Direction and kind.
    pub class: Class,
    /// Bytes.
    pub length: u64,
    /// Response time, nanoseconds.
    pub time_ns: u64,
}

/// One worker's way to make requests happen.
pub trait Engine: Send {
    /// Takes as many of `ops` as it can have in flight and says how many that were.
    ///
    /// # Errors
    /// The first request that failed.
    fn submit(&mut self, ops: &[Op]) -> Result<usize>;

    /// Hands over what is done, at least `min` requests where so many are in flight.
    ///
    /// # Errors
    /// The first request that failed.
    fn reap(&mut self, min: usize, done: &mut Vec<Done>) -> Result<()>;
}

/// A stop-watch whose reading ends one request and begins the next: one clock reading each.
#[derive(Debug)]
pub(crate) struct Lap(Instant);

#[expect(clippy::disallowed_methods, reason = "the timed loop reads the clock itself")]
impl Lap {
    #[inline]
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Nanoseconds since the previous call.
    #[inline]
    pub(crate) fn lap_ns(&mut self) -> u64 {
        let now = Instant::now();
        let lap = now.duration_since(self.0);
        self.0 = now;
        lap.as_nanos() as u64
    }
}
