//! The clock of one rank by the clock of another, found by messages there and back.
//!
//! Rank 0 sends at x, the other answers its own y, that is back at z. Of many trips the one with the
//! least z − x counts: θ = y − (x + z) / 2, and the error is at most (z − x) / 2, however the two ways
//! differ (D. L. Mills, RFC 5905, section 8; the bound is F. Cristian's, 1989).

use crate::error::Result;
use crate::group::{Group, Wait};

/// Trips that are made …
const TRIPS_MAX: u32 = 100;
/// … or as many as fit this, over a slow network …
const TRIPS_NS: i64 = 50_000_000;
/// … and never fewer.
const TRIPS_MIN: u32 = 5;
/// A trip that takes less leaves nothing to be gained by more of them.
const CLOSE_NS: i64 = 500;

/// How far a clock is ahead of rank 0's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offset {
    /// By so much.
    pub theta_ns: i64,
    /// The error is at most so much.
    pub bound_ns: i64,
    /// When that was, by rank 0's clock.
    pub at_ns: i64,
}

/// Measures how far the clock of `rank` is ahead; that rank calls [`answer_pings`] meanwhile.
///
/// # Errors
/// When it is gone.
pub fn measure(group: &dyn Group, rank: u32) -> Result<Offset> {
    let clock = group.clock();
    let began_ns = clock.now_ns();
    let mut best = Offset { bound_ns: i64::MAX, ..Offset::default() };
    for trip in 1.. {
        let sent_ns = clock.now_ns();
        let is_time_over = sent_ns - began_ns > TRIPS_NS || best.bound_ns < CLOSE_NS;
        let is_last = trip >= TRIPS_MAX || trip >= TRIPS_MIN && is_time_over;
        group.send(rank, &[u8::from(is_last)])?;
        let answer = group.receive(rank, Wait::Spinning)?;
        let back_ns = clock.now_ns();
        let theirs_ns = i64::from_le_bytes(answer.try_into().expect("an answer is a clock's"));
        // Rounded up: half a nanosecond must not break the bound.
        let bound_ns = (back_ns - sent_ns + 1) / 2;
        if bound_ns < best.bound_ns {
            let at_ns = i64::midpoint(sent_ns, back_ns);
            best = Offset { theta_ns: theirs_ns - at_ns, bound_ns, at_ns };
        }
        if is_last {
            break;
        }
    }
    Ok(best)
}

/// Answers rank 0 until it has enough.
///
/// # Errors
/// When it is gone.
pub fn answer_pings(group: &dyn Group) -> Result<()> {
    loop {
        let ping = group.receive(0, Wait::Spinning)?;
        group.send(0, &group.clock().now_ns().to_le_bytes())?;
        if ping == [1] {
            return Ok(());
        }
    }
}

/// The course of a rank's clock: where it was last, and how it drifts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Track {
    last: Option<Offset>,
    drift: f64,
    /// Whether the drift is more than the bounds leave open.
    is_drifting: bool,
}

impl Track {
    /// Takes another measurement in.
    pub fn note(&mut self, now: Offset) {
        if let Some(last) = self.last {
            let passed_ns = (now.at_ns - last.at_ns) as f64;
            if passed_ns > 0.0 {
                let drift = (now.theta_ns - last.theta_ns) as f64 / passed_ns;
                let open = (now.bound_ns + last.bound_ns) as f64 / passed_ns;
                self.is_drifting = drift.abs() > open;
                self.drift = if self.is_drifting { drift } else { 0.0 };
            }
        }
        self.last = Some(now);
    }

    /// The rank's time when rank 0's clock shows this.
    pub fn theirs_ns(&self, ours_ns: i64) -> i64 {
        let Some(last) = self.last else { return ours_ns };
        ours_ns + last.theta_ns + (self.drift * (ours_ns - last.at_ns) as f64) as i64
    }

    /// Rank 0's time when the rank's clock shows this.
    pub fn ours_ns(&self, theirs_ns: i64) -> i64 {
        let Some(last) = self.last else { return theirs_ns };
        let since_ns = (theirs_ns - last.theta_ns - last.at_ns) as f64;
        last.at_ns + (since_ns / (1.0 + self.drift)) as i64
    }

    /// How well the last offset is known, nanoseconds.
    pub fn bound_ns(&self) -> i64 {
        self.last.map_or(0, |last| last.bound_ns)
    }

    /// The last offset.
    pub fn offset(&self) -> Option<Offset> {
        self.last
    }

    /// Millionths that the clock gains, where that is more than the bounds leave open.
    pub fn drift_ppm(&self) -> Option<f64> {
        self.is_drifting.then_some(self.drift * 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, Monotonic, Skewed};
    use crate::local::local;

    const HOUR_NS: i64 = 3_600_000_000_000;

    /// A clock as rank 0 finds it, twice, 50 ms apart; and the truth at its last measurement.
    fn tracked(skewed: Skewed) -> (Track, i64) {
        let clocks: Vec<Box<dyn Clock + Send>> = vec![Box::new(Monotonic), Box::new(skewed)];
        let mut members = local(clocks);
        let (other, first) = (members.pop().unwrap(), members.pop().unwrap());
        std::thread::scope(|scope| {
            scope.spawn(move || (0..2).try_for_each(|_| answer_pings(&other)).unwrap());
            let mut track = Track::default();
            for _ in 0..2 {
                track.note(measure(&first, 1).unwrap());
                Monotonic.sleep_until_ns(Monotonic.now_ns() + 50_000_000);
            }
            let offset = track.offset().unwrap();
            let truth_ns = skewed.now_ns() - Monotonic.now_ns();
            (track, truth_ns - offset.theta_ns)
        })
    }

    #[test]
    fn an_offset_of_an_hour_is_found_within_its_bound() {
        for offset_ns in [HOUR_NS, -HOUR_NS] {
            let (track, error_ns) = tracked(Skewed::new(offset_ns, 0.0));
            assert!(error_ns.abs() <= track.bound_ns() + 1000, "{error_ns} {}", track.bound_ns());
        }
    }

    #[test]
    fn a_drift_is_found_and_followed() {
        for parts_per_million in [500.0, -500.0] {
            let (track, _) = tracked(Skewed::new(HOUR_NS, parts_per_million));
            let open = 2e6 * track.bound_ns() as f64 / 50_000_000.0 * 2.0;
            // Trips of a busy machine may leave the drift open; what is said must hold.
            if let Some(found) = track.drift_ppm() {
                assert!((found - parts_per_million).abs() <= open.max(20.0), "{found} ± {open}");
            }
            let ours_ns = Monotonic.now_ns();
            assert!((track.ours_ns(track.theirs_ns(ours_ns)) - ours_ns).abs() <= 2);
        }
    }

    #[test]
    fn a_drift_within_the_bounds_is_none() {
        let offset = |theta_ns, at_ns| Offset { theta_ns, bound_ns: 100, at_ns };
        let mut track = Track::default();
        track.note(offset(5000, 0));
        track.note(offset(5150, 1_000_000_000));
        assert_eq!(track.drift_ppm(), None);
        assert_eq!(track.theirs_ns(2_000_000_000), 2_000_005_150);
        track.note(offset(505_150, 2_000_000_000));
        assert_eq!(track.drift_ppm(), Some(500.0));
        assert_eq!(track.theirs_ns(3_000_000_000), 3_001_005_150);
    }
}
