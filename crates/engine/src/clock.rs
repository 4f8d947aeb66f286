//! The one place that reads the monotonic clock or sleeps.

use std::time::{Duration, Instant};

/// Seconds since it was made. Copies share their zero.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    zero: Instant,
}

#[expect(clippy::disallowed_methods, reason = "this is the clock that everything else is handed")]
impl Clock {
    /// A clock that starts now.
    pub fn start() -> Self {
        Self { zero: Instant::now() }
    }

    /// Nanoseconds since the start.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        Instant::now().duration_since(self.zero).as_nanos() as u64
    }

    /// Seconds since the start.
    #[inline]
    pub fn now_s(&self) -> f64 {
        self.now_ns() as f64 * 1e-9
    }

    /// Waits until `at_ns` after the start; returns at once where that has passed.
    pub fn sleep_until(&self, at_ns: u64) {
        let now_ns = self.now_ns();
        if at_ns > now_ns {
            std::thread::sleep(Duration::from_nanos(at_ns - now_ns));
        }
    }

    /// What one reading costs, seconds: the shortest mean over several batches.
    pub fn read_cost_s(&self) -> f64 {
        const READINGS: u32 = 2000;
        let batch = |_| {
            let start = self.now_ns();
            for _ in 0..READINGS {
                std::hint::black_box(Instant::now());
            }
            (self.now_ns() - start) as f64 * 1e-9 / f64::from(READINGS)
        };
        (0..5).map(batch).fold(f64::INFINITY, f64::min)
    }
}

/// A stop-watch whose reading ends one request and begins the next: one clock reading each.
#[derive(Debug)]
pub(crate) struct Lap(Instant);

#[expect(clippy::disallowed_methods, reason = "the clock of the timed loop")]
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
