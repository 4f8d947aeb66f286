//! When the requests of an open loop are to begin: told by a clock, whatever became of earlier
//! ones. Latency counts from here, so that a stall is felt by all who would have come in it.

use ioscape_model::{Arrivals, Workload};
use rand::SeedableRng;
use rand_distr::{Distribution, Exp1};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Keeps the arrivals' chance apart from that of the requests, which have the same seed.
const ARRIVALS_SALT: u64 = 0x9e6c_63d0_876a_68de;

/// The arrivals at one worker, in order.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    law: Arrivals,
    rng: Xoshiro256PlusPlus,
    step_ns: f64,
    /// Arrivals so far.
    count: u64,
    /// When the next one is, from the common start, nanoseconds.
    next_ns: f64,
    /// When the first one is, from the common start, nanoseconds.
    first_ns: f64,
}

impl Schedule {
    /// The arrivals at worker `worker` (from 0); none in a closed loop.
    ///
    /// Each worker has its part of the rate. On a fixed schedule they take turns, and all together
    /// keep the same distance; Poisson arrivals stay Poisson when they are divided.
    pub(crate) fn new(work: &Workload, worker: u32, seed: u64) -> Option<Self> {
        if work.rate <= 0.0 {
            return None;
        }
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed ^ ARRIVALS_SALT);
        for _ in 0..worker {
            rng.jump();
        }
        let step_ns = 1e9 * f64::from(work.process_num) / work.rate;
        let first_ns = match work.arrivals {
            Arrivals::Fixed => 1e9 * f64::from(worker) / work.rate,
            Arrivals::Poisson => draw_ns(step_ns, &mut rng),
        };
        Some(Self { law: work.arrivals, rng, step_ns, count: 0, next_ns: first_ns, first_ns })
    }

    /// When the next request is to begin, nanoseconds from the common start.
    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        self.next_ns as u64
    }

    /// Goes on to the one after it.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.count += 1;
        self.next_ns = match self.law {
            // Multiplied anew, or rounding would add up.
            Arrivals::Fixed => self.first_ns + self.count as f64 * self.step_ns,
            Arrivals::Poisson => self.next_ns + draw_ns(self.step_ns, &mut self.rng),
        };
    }
}

fn draw_ns(mean_ns: f64, rng: &mut Xoshiro256PlusPlus) -> f64 {
    mean_ns * Distribution::<f64>::sample(&Exp1, rng)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(text: &str, worker: u32, count: usize) -> Vec<u64> {
        let mut schedule = Schedule::new(&Workload::parse(text).unwrap(), worker, 7).unwrap();
        let mut next = || {
            let next_ns = schedule.next_ns();
            schedule.advance();
            next_ns
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn workers_on_a_fixed_schedule_take_turns() {
        let text = "rate=1000,process_num=2";
        assert_eq!(arrivals(text, 0, 3), [0, 2_000_000, 4_000_000]);
        assert_eq!(arrivals(text, 1, 3), [1_000_000, 3_000_000, 5_000_000]);
    }

    #[test]
    fn a_fixed_schedule_does_not_drift() {
        let last = arrivals("rate=3", 0, 3_000_001)[3_000_000];
        assert_eq!(last, 1_000_000_000_000_000);
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_spread_of_their_law() {
        let times = arrivals("rate=1000,arrivals=poisson", 0, 100_001);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        assert!((mean / 1e6 - 1.0).abs() < 0.01, "{mean}");
        assert!((variance.sqrt() / mean - 1.0).abs() < 0.02);
    }

    #[test]
    fn a_closed_loop_has_no_schedule() {
        assert!(Schedule::new(&Workload::default(), 0, 1).is_none());
    }
}
