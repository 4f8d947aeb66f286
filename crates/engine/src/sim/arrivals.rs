//! The open loop of a simulated device: requests come by a schedule and begin in their order, as
//! fast as the device takes them. One that comes while the device stalls waits like all others.
//!
//! Work is counted in seconds of undisturbed running. A device that gives `X` requests per second
//! begins one every `1/X` of these, and the `k`-th begins at work `S(k) = max(C(a), S(k−1) + 1/X)`
//! where `C(a)` is the work that was possible until it came.

use std::collections::VecDeque;

use ioscape_model::Workload;

use super::law::Performance;
use super::noise::Stretch;
use crate::schedule::Schedule;

/// More requests per second than this are taken several at a time.
const SINGLY_MAX_PER_S: f64 = 20_000.0;

/// Requests that begin together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Begun {
    pub(super) count: u64,
    /// How long they had been waiting, seconds.
    pub(super) waited_s: f64,
}

/// Who has come and not begun.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    schedule: Schedule,
    /// Requests that are taken together.
    together: u64,
    /// Work between two beginnings, seconds.
    step_s: f64,
    waiting: VecDeque<Waiting>,
    now_s: f64,
    /// Work that was possible so far.
    worked_s: f64,
    /// Where the latest to come begins, in work.
    last_s: f64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    came_s: f64,
    begins_s: f64,
}

impl Queue {
    /// None in a closed loop.
    pub(super) fn new(work: &Workload, performance: &Performance, seed: u64) -> Option<Self> {
        let together = (work.rate / SINGLY_MAX_PER_S).ceil().max(1.0);
        let all = Workload { process_num: 1, rate: work.rate / together, ..work.clone() };
        Some(Self {
            schedule: Schedule::new(&all, 0, seed)?,
            together: together as u64,
            step_s: together / performance.ops_per_s,
            waiting: VecDeque::new(),
            now_s: 0.0,
            worked_s: 0.0,
            last_s: f64::NEG_INFINITY,
        })
    }

    /// Lets a stretch pass and hands over what begins in it.
    pub(super) fn pass(&mut self, stretch: Stretch, begun: &mut dyn FnMut(Begun)) {
        let until_s = self.now_s + stretch.length_s;
        loop {
            let came_s = self.schedule.next_ns() as f64 * 1e-9;
            if came_s >= until_s {
                break;
            }
            let possible_s = self.worked_s + (came_s - self.now_s).max(0.0) * stretch.speed;
            let begins_s = possible_s.max(self.last_s + self.step_s);
            self.last_s = begins_s;
            self.waiting.push_back(Waiting { came_s, begins_s });
            self.schedule.advance();
        }
        let worked_s = self.worked_s + stretch.length_s * stretch.speed;
        while let Some(first) = self.waiting.front().filter(|_| stretch.speed > 0.0) {
            if first.begins_s > worked_s {
                break;
            }
            let began_s = self.now_s + (first.begins_s - self.worked_s).max(0.0) / stretch.speed;
            let waited_s = (began_s - first.came_s).max(0.0);
            begun(Begun { count: self.together, waited_s });
            self.waiting.pop_front();
        }
        (self.now_s, self.worked_s) = (until_s, worked_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The waits on a device of 1000 requests per second, shortest first.
    fn waits(text: &str, stretches: &[(f64, f64)]) -> Vec<f64> {
        let performance = Performance { shares: vec![], ops_per_s: 1000.0 };
        let mut queue = Queue::new(&Workload::parse(text).unwrap(), &performance, 1).unwrap();
        let mut waits = Vec::new();
        for (length_s, speed) in stretches {
            let stretch = Stretch { length_s: *length_s, speed: *speed };
            queue.pass(stretch, &mut |begun| {
                waits.extend(std::iter::repeat_n(begun.waited_s, begun.count as usize));
            });
        }
        waits.sort_by(f64::total_cmp);
        waits
    }

    #[test]
    fn a_device_that_keeps_up_makes_nobody_wait() {
        let waits = waits("rate=500", &[(10.0, 1.0)]);
        assert_eq!(waits.len(), 5000);
        assert!(waits[4999] < 1e-9);
    }

    #[test]
    fn all_who_come_in_a_stall_wait_for_its_end_and_for_those_before_them() {
        let waits = waits("rate=500", &[(5.0, 1.0), (1.0, 0.0), (14.0, 1.0)]);
        assert_eq!(waits.len(), 10_000);
        // The wait falls from 1 s by the idle half of the rate: w(a) = 1 - a/2 until it is zero.
        let at = |quantile: f64| waits[(quantile * 10_000.0) as usize - 1];
        assert!((at(0.99) / (1.0 - 0.2 * 0.5) - 1.0).abs() < 0.01, "{}", at(0.99));
        assert!((at(0.999) / (1.0 - 0.02 * 0.5) - 1.0).abs() < 0.01, "{}", at(0.999));
        assert!(at(0.89) < 1e-9 && at(0.91) > 0.0);
    }

    #[test]
    fn a_schedule_beyond_the_device_makes_waits_grow_without_end() {
        let waits = waits("rate=2000", &[(10.0, 1.0)]);
        assert!((waits.len() as f64 / 10_000.0 - 1.0).abs() < 0.01);
        assert!((waits[waits.len() - 1] - 5.0).abs() < 0.05);
    }

    #[test]
    fn very_many_requests_are_taken_together() {
        let waits = waits("rate=100000", &[(1.0, 1.0)]);
        assert!((waits.len() as f64 - 1000.0).abs() <= 5.0, "{}", waits.len());
    }
}
