//! The clock of a rank: `CLOCK_MONOTONIC` as a number, which two ranks can hold against each other.

/// A clock of one rank.
pub trait Clock {
    /// Nanoseconds since some moment of its own.
    fn now_ns(&self) -> i64;

    /// Waits until then, to some microseconds; returns at once where that has passed.
    fn sleep_until_ns(&self, at_ns: i64);

    /// Two clocks with one identity show the same.
    fn identity(&self) -> String;
}

/// The last of a wait is spun. Longer, and ranks that share processors would keep each other from them
/// at the very instant that they agreed on.
const SPUN_NS: i64 = 10_000;

/// The kernel's `CLOCK_MONOTONIC`, by the C library's call. Never set, slewed at most.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

impl Clock for Monotonic {
    fn now_ns(&self) -> i64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the kernel writes one structure where there is room for it.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    }

    fn sleep_until_ns(&self, at_ns: i64) {
        let keen = Keen::begin();
        if self.now_ns() < at_ns - SPUN_NS {
            sleep_ns(at_ns - SPUN_NS - self.now_ns());
        }
        while self.now_ns() < at_ns {
            std::hint::spin_loop();
        }
        drop(keen);
    }

    /// One kernel that runs, and one time namespace of it.
    fn identity(&self) -> String {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let space = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
        format!("{} {}", boot.trim(), space.display())
    }
}

/// Gives a thread the finest timers: by default the kernel may add 50 µs to any sleep. Put back when
/// dropped.
struct Keen {
    slack_ns: u64,
}

impl Keen {
    fn begin() -> Self {
        // SAFETY: the call gives a number, about the calling thread alone.
        let slack_ns = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
        set_slack(1);
        Self { slack_ns: u64::from(slack_ns.max(1).cast_unsigned()) }
    }
}

impl Drop for Keen {
    fn drop(&mut self) {
        set_slack(self.slack_ns);
    }
}

/// Sets how late the calling thread's timers may be.
fn set_slack(slack_ns: u64) {
    // SAFETY: the call takes numbers and changes the calling thread alone.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns) };
}

/// Sleeps so long, or until a signal comes.
pub(crate) fn sleep_ns(length_ns: i64) {
    let length_ns = length_ns.max(0);
    let time =
        libc::timespec { tv_sec: length_ns / 1_000_000_000, tv_nsec: length_ns % 1_000_000_000 };
    // SAFETY: the kernel reads one structure and is given no place to write to.
    unsafe { libc::nanosleep(&raw const time, std::ptr::null_mut()) };
}

/// A clock that is ahead of the kernel's by a fixed time and runs faster or slower: that of another
/// host, for tests.
#[derive(Clone, Copy, Debug)]
pub struct Skewed {
    zero_ns: i64,
    offset_ns: i64,
    parts_per_million: f64,
}

impl Skewed {
    /// One that is ahead by `offset_ns` now and gains so many millionths.
    pub fn new(offset_ns: i64, parts_per_million: f64) -> Self {
        Self { zero_ns: Monotonic.now_ns(), offset_ns, parts_per_million }
    }

    fn rate(&self) -> f64 {
        1.0 + self.parts_per_million * 1e-6
    }
}

impl Clock for Skewed {
    fn now_ns(&self) -> i64 {
        let passed_ns = (Monotonic.now_ns() - self.zero_ns) as f64;
        self.zero_ns + self.offset_ns + (passed_ns * self.rate()) as i64
    }

    fn sleep_until_ns(&self, at_ns: i64) {
        let passed_ns = (at_ns - self.zero_ns - self.offset_ns) as f64;
        Monotonic.sleep_until_ns(self.zero_ns + (passed_ns / self.rate()) as i64);
    }

    fn identity(&self) -> String {
        format!("{} {} {}", self.zero_ns, self.offset_ns, self.parts_per_million)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skewed_clock_is_off_by_what_it_was_told_and_sleeps_by_its_own_time() {
        let hour_ns = 3_600_000_000_000;
        let clock = Skewed::new(hour_ns, 100_000.0);
        let (own_from, true_from) = (clock.now_ns(), Monotonic.now_ns());
        assert!((own_from - true_from - hour_ns).abs() < 10_000_000);
        clock.sleep_until_ns(own_from + 11_000_000);
        let (own_ns, true_ns) = (clock.now_ns() - own_from, Monotonic.now_ns() - true_from);
        assert!(own_ns >= 11_000_000 && true_ns >= 9_900_000, "{own_ns} {true_ns}");
        assert!(own_ns > true_ns);
    }
}
