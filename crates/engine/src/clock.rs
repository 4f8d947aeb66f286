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

/// Seconds that the machine has slept since it started: one clock goes on then, the other does not.
pub(crate) fn asleep_s() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let seconds = |id| {
        let time = clock_gettime(id);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    };
    // This order never makes a pause between the readings look like sleep.
    let awake_s = seconds(ClockId::Boottime);
    awake_s - seconds(ClockId::Monotonic)
}

/// `CLOCK_MONOTONIC`, nanoseconds: what other processes of this machine can hold against theirs. Read by
/// the C library, as ranks' clocks are, so that a test's clock in its place changes both.
pub(crate) fn monotonic_ns() -> i64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one structure where there is room for it.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Lets this thread sleep to the microsecond: by default the kernel may add 50 to any sleep.
pub(crate) fn fine_timers() {
    // SAFETY: the call takes two numbers and changes the calling thread's timers alone.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64) };
}

/// The clock of the timed loop. Where the kernel itself keeps time by the processor's counter, so
/// does this, for a third of what asking the kernel costs. Copies share their zero.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch {
    zero: Instant,
    counter: Option<Counter>,
}

/// The processor's counter and how it turns into nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Counter {
    zero: u64,
    /// Nanoseconds per tick, times 2^32.
    scale: u64,
}

impl Counter {
    /// How long the counter is compared with the kernel's clock: two readings that are 40 ns apart
    /// then make an error of a few millionths.
    const CALIBRATION: Duration = Duration::from_millis(20);

    /// Whether the kernel trusts the counter: it has checked that it runs evenly, and alike on all
    /// processors. It may think otherwise later.
    fn is_trusted() -> bool {
        const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        cfg!(target_arch = "x86_64")
            && std::fs::read_to_string(SOURCE).is_ok_and(|source| source.trim() == "tsc")
    }

    /// Where the kernel trusts the counter, the counter and its rate. It runs evenly while the processor sleeps.
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn calibrated() -> Option<Self> {
        if !Self::is_trusted() {
            return None;
        }
        let (began, zero) = (Instant::now(), ticks());
        std::thread::sleep(Self::CALIBRATION);
        let (ended, last) = (Instant::now(), ticks());
        let ns = ended.duration_since(began).as_nanos();
        let scale = u64::try_from((ns << 32) / u128::from(last.checked_sub(zero)?).max(1)).ok()?;
        (scale > 0).then_some(Self { zero, scale })
    }

    /// The rate that was measured, counted from now on, where the kernel still trusts the counter.
    fn restarted(self) -> Option<Self> {
        Self::is_trusted().then(|| Self { zero: ticks(), ..self })
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn ticks() -> u64 {
    // SAFETY: every x86-64 processor has the instruction, and the kernel's use of it as the clock
    // source says that user space may read it.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn ticks() -> u64 {
    0
}

#[expect(clippy::disallowed_methods, reason = "the clock of the timed loop")]
impl Stopwatch {
    /// Takes 20 ms where the processor's counter can be used.
    pub fn calibrated() -> Self {
        Self { counter: Counter::calibrated(), zero: Instant::now() }
    }

    /// One that starts now and keeps the rate that was measured before, without the 20 ms.
    #[must_use]
    pub fn restarted(&self) -> Self {
        let counter = self.counter.and_then(Counter::restarted);
        Self { counter, zero: Instant::now() }
    }

    /// Nanoseconds since its zero.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        match self.counter {
            Some(counter) => {
                let passed = u128::from(ticks().saturating_sub(counter.zero));
                ((passed * u128::from(counter.scale)) >> 32) as u64
            }
            None => self.zero.elapsed().as_nanos() as u64,
        }
    }

    /// Waits until `at_ns`, to the microsecond: sleeps, and spins over what a sleeper may
    /// oversleep. At most `most_ns` at a time, so that whoever waits hears of other things.
    pub fn wait_until(&self, at_ns: u64, most_ns: u64) {
        /// What a sleeper with the finest timers oversleeps, nearly always.
        const OVERSLEEP_NS: u64 = 80_000;
        let from_ns = self.now_ns();
        let until_ns = at_ns.min(from_ns.saturating_add(most_ns));
        if until_ns > from_ns + OVERSLEEP_NS {
            std::thread::sleep(Duration::from_nanos(until_ns - from_ns - OVERSLEEP_NS));
        }
        while self.now_ns() < until_ns {
            std::hint::spin_loop();
        }
    }

    /// Waits until `at_ns` at work: the processor is taken all the time. At most `most_ns`.
    pub fn spin_until(&self, at_ns: u64, most_ns: u64) {
        let until_ns = at_ns.min(self.now_ns().saturating_add(most_ns));
        while self.now_ns() < until_ns {
            std::hint::spin_loop();
        }
    }

    /// What one reading costs, seconds: the shortest mean over several batches.
    pub fn read_cost_s(&self) -> f64 {
        const READINGS: u32 = 2000;
        let batch = |_| {
            let start = Instant::now();
            for _ in 0..READINGS {
                std::hint::black_box(self.now_ns());
            }
            start.elapsed().as_secs_f64() / f64::from(READINGS)
        };
        (0..5).map(batch).fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reading of the watch, between two of the kernel's clock: however long the thread is put
    /// aside, it was made between them.
    fn reading(clock: &Clock, watch: &Stopwatch) -> [u64; 3] {
        [clock.now_ns(), watch.now_ns(), clock.now_ns()]
    }

    /// A tenth of a second of this watch is as much of the kernel's clock, to two hundredths.
    #[track_caller]
    fn keeps_time(watch: &Stopwatch) {
        let clock = Clock::start();
        let [from_least_ns, from_ns, from_most_ns] = reading(&clock, watch);
        watch.wait_until(from_ns + 100_000_000, u64::MAX);
        let [least_ns, ns, most_ns] = reading(&clock, watch);
        let passed_ns = ns - from_ns;
        assert!(passed_ns >= 100_000_000);
        let (least_ns, most_ns) = (least_ns - from_most_ns, most_ns - from_least_ns);
        assert!(passed_ns * 100 >= least_ns * 98, "{passed_ns} of {least_ns} at least");
        assert!(passed_ns * 100 <= most_ns * 102, "{passed_ns} of {most_ns} at most");
    }

    #[test]
    fn a_stopwatch_keeps_the_kernels_time() {
        keeps_time(&Stopwatch::calibrated());
    }

    #[test]
    fn a_stopwatch_starts_again_from_zero_and_keeps_its_rate() {
        let first = Stopwatch::calibrated();
        first.wait_until(50_000_000, u64::MAX);
        let watch = first.restarted();
        assert!(watch.now_ns() < first.now_ns() - 40_000_000);
        assert_eq!(watch.counter.map(|c| c.scale), first.counter.map(|c| c.scale));
        keeps_time(&watch);
    }

    #[test]
    fn a_wait_ends_when_it_may_last_no_longer() {
        let watch = Stopwatch::calibrated();
        let from_ns = watch.now_ns();
        watch.wait_until(from_ns + 3_600_000_000_000, 1_000_000);
        assert!(watch.now_ns() - from_ns >= 1_000_000);
        watch.wait_until(0, u64::MAX);
    }
}
