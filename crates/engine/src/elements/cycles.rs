//! What counts of calls that wait for a limit.

/// An operation this slow waits for storage, and perhaps for a limit, seconds.
const SLOW_S: f64 = 0.001;
/// A call ends a cycle if it takes at least this share of the longest call's time. Shorter waits are not for
/// the limit: a call that waits for read-ahead takes a hundredth of that time.
const SLOW_OF_LONGEST: f64 = 0.25;

/// Calls and what they took. A limit of requests or bytes lets a burst of quick calls through and then has
/// one wait, over and over (the kernel's throttle does so every 100 ms): what counts is whole cycles, each
/// from the end of one slow call to the end of another.
#[derive(Clone, Debug)]
pub(super) struct Cycles {
    /// When timing began in earnest, seconds.
    began_s: f64,
    /// How long each call took, seconds.
    calls: Vec<f64>,
    /// How long the longest call took, seconds.
    longest: f64,
}

impl Cycles {
    pub(super) fn begun(now_s: f64) -> Self {
        Self { began_s: now_s, calls: Vec::new(), longest: 0.0 }
    }

    pub(super) fn add(&mut self, time_s: f64, now_s: f64) {
        self.calls.push(time_s);
        if time_s > SLOW_S && time_s * SLOW_OF_LONGEST > self.longest {
            self.began_s = now_s; // what came before was no whole cycle of these
        }
        self.longest = self.longest.max(time_s);
    }

    fn is_slow(&self, time_s: f64) -> bool {
        time_s > SLOW_S.max(self.longest * SLOW_OF_LONGEST)
    }

    /// True if timing may stop: the time asked for has passed, and either the last call was a slow
    /// one or none came within two ramps.
    pub(super) fn are_enough(&self, now_s: f64, (seconds, ramp_s): (f64, f64)) -> bool {
        let is_open = self.is_slow(self.longest)
            && self.calls.last().is_none_or(|last_s| !self.is_slow(*last_s));
        let cycle_s = if is_open { 2.0 * ramp_s } else { 0.0 };
        now_s - self.began_s >= seconds + cycle_s
    }

    /// The whole cycles, unless slow calls came by chance: then more time lies beside them. Without
    /// cycles all calls count, but for a first one that pays what the shape before still owed.
    pub(super) fn timed(&self) -> (u64, f64) {
        let slow = |time_s: &f64| self.is_slow(*time_s);
        let sum = |times_s: &[f64]| (times_s.len() as u64, times_s.iter().sum::<f64>());
        let ends = self.calls.iter().position(slow).zip(self.calls.iter().rposition(slow));
        if let Some((first, last)) = ends.filter(|(first, last)| first < last) {
            let (whole, open) = (&self.calls[first + 1..=last], &self.calls[last + 1..]);
            if sum(open).1 <= sum(whole).1 {
                return sum(whole);
            }
        } else if self.calls.len() > 1 && self.calls[0] > SLOW_S {
            return sum(&self.calls[1..]);
        }
        sum(&self.calls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls and seconds that count, of calls with these durations in seconds.
    fn timed(calls_s: impl Iterator<Item = f64>) -> (u64, f64) {
        let mut now_s = 0.0;
        let mut cycles = Cycles::begun(now_s);
        for time_s in calls_s {
            now_s += time_s;
            cycles.add(time_s, now_s);
            if cycles.are_enough(now_s, (0.12, 0.15)) || cycles.calls.len() == 4000 {
                break;
            }
        }
        cycles.timed()
    }

    #[test]
    fn bursts_of_a_limit_count_with_the_wait_that_follows_wherever_they_begin() {
        let call = |number: usize| if number.is_multiple_of(40) { 0.0961 } else { 0.0001 };
        for first in 1..80 {
            let (calls, time_s) = timed((first..).map(call));
            let mean_s = time_s / calls as f64;
            assert!((mean_s / 0.0025 - 1.0).abs() < 0.001, "from {first}: {mean_s}");
        }
    }

    /// Every fifth call of a burst waits 2 ms for read-ahead; every sixtieth 90 ms for a limit of bytes.
    #[test]
    fn short_waits_within_a_burst_end_no_cycle() {
        let call = |number: usize| match number {
            n if n.is_multiple_of(60) => 0.09,
            n if n.is_multiple_of(5) => 0.002,
            _ => 1e-5,
        };
        for first in 1..60 {
            let (calls, time_s) = timed((first..).map(call));
            let mean_s = time_s / calls as f64;
            let expected_s = (0.09 + 11.0 * 0.002 + 48.0 * 1e-5) / 60.0;
            assert!((mean_s / expected_s - 1.0).abs() < 0.001, "from {first}: {mean_s}");
        }
    }

    #[test]
    fn calls_that_are_all_quick_or_all_slow_count_as_they_are() {
        for each_s in [1e-5, 5e-4, 5e-3, 0.2] {
            let (calls, time_s) = timed(std::iter::repeat(each_s));
            assert!((time_s / calls as f64 / each_s - 1.0).abs() < 1e-9);
        }
    }

    #[test]
    fn slow_calls_that_come_by_chance_are_some_of_many() {
        let is_slow = |number: u64| [300, 310].contains(&number);
        let call = |number: u64| if is_slow(number) { 0.005 } else { 1e-4 };
        let (calls, time_s) = timed((0..).map(call));
        assert!(calls > 1000 && time_s / (calls as f64) < 1.2e-4, "{time_s} s of {calls}");
    }

    #[test]
    fn one_slow_call_among_many_is_one_of_them() {
        let (calls, time_s) = timed((0..).map(|number| if number == 700 { 0.002 } else { 1e-4 }));
        assert!(calls > 1000 && (time_s - 0.002 - (calls - 1) as f64 * 1e-4).abs() < 1e-9);
    }
}
