//! What makes requests happen, one per worker. An engine is given requests and hands them back
//! done, with their response times.

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
