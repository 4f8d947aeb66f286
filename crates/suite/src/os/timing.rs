//! How long one call takes: so many of them that the clock does not matter.

use ioscape_engine::Clock;
use ioscape_engine::error::Result;

use crate::meter::Meter;

/// Times calls for about a slice of time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timer {
    pub(super) clock: Clock,
    pub(super) slice_s: f64,
}

/// What timing gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Timed {
    /// Mean time of a call in the last batch, seconds.
    pub(super) per_call_s: f64,
    /// Calls of all batches.
    pub(super) calls: u64,
}

impl Timer {
    /// A timer for a part of the slice.
    pub(super) fn shortened(self, part: f64) -> Self {
        Self { slice_s: self.slice_s * part, ..self }
    }

    /// Makes batches of calls, each longer than the last, until one fills the slice; that one
    /// counts. The first call is not timed.
    pub(super) fn time(self, meter: &Meter, mut call: impl FnMut() -> Result<()>) -> Result<Timed> {
        call()?;
        let (mut batch, mut calls) = (1_u64, 1);
        loop {
            meter.check()?;
            let start_ns = self.clock.now_ns();
            for _ in 0..batch {
                call()?;
            }
            let elapsed_s = (self.clock.now_ns() - start_ns) as f64 * 1e-9;
            calls += batch;
            if elapsed_s >= self.slice_s {
                return Ok(Timed { per_call_s: elapsed_s / batch as f64, calls });
            }
            let factor = (self.slice_s / elapsed_s.max(1e-9) * 1.1).clamp(1.5, 10.0);
            batch = (batch as f64 * factor).ceil() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn calls_are_counted_and_fill_the_slice() {
        let clock = Clock::start();
        let meter = Meter::new(clock, Arc::default(), false);
        let mut made = 0_u64;
        let timer = Timer { clock, slice_s: 0.003 };
        let start_s = clock.now_s();
        let timed = timer
            .time(&meter, || {
                made = std::hint::black_box(made + 1);
                Ok(())
            })
            .unwrap();
        let took_s = clock.now_s() - start_s;
        assert_eq!(timed.calls, made);
        assert!(took_s >= 0.003);
        // The last batch is a third of all calls at least, for each is half as long again.
        let all_s = timed.per_call_s * timed.calls as f64;
        assert!((0.003..=4.0 * took_s).contains(&all_s), "{timed:?} in {took_s}");
    }
}
