//! No I/O at all: what is measured is the harness.

use super::{Done, OneByOne};
use crate::clock::Stopwatch;
use crate::error::Result;
use crate::request::Op;
use crate::tally::Tally;

/// Every request is done at once.
#[derive(Clone, Copy, Debug)]
pub struct Null {
    watch: Stopwatch,
}

impl Null {
    /// Times requests by `watch`.
    pub fn new(watch: Stopwatch) -> Self {
        Self { watch }
    }
}

impl OneByOne for Null {
    fn make(&mut self, _ops: &[Op], times_ns: &mut [u64], _tally: &mut Tally) -> Result<()> {
        let mut began_ns = self.watch.now_ns();
        for time_ns in times_ns {
            let ended_ns = self.watch.now_ns();
            *time_ns = ended_ns.saturating_sub(began_ns);
            began_ns = ended_ns;
        }
        Ok(())
    }

    fn make_one(&mut self, op: &Op, tally: &mut Tally) -> Result<()> {
        let began_ns = self.watch.now_ns();
        tally.enter(&Done { op: *op, began_ns, ended_ns: self.watch.now_ns() });
        Ok(())
    }
}
