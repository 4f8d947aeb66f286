//! Two targets measured in alternation: what drifts while they are measured meets both alike.
//!
//! A round visits every workload once on either target, one visit right after the other. Workloads
//! are shuffled in each round. Which side goes first is drawn by chance for one round and turned
//! over in the next, A B B A or B A A B, so that neither a drift nor the second place in a pair
//! favours a side (Abedi and Brecht, ICPE 2017: usual orders show two identical systems to differ).
//! When to stop depends on the time alone, never on what was seen: looking for a difference until
//! there is one finds one.

use std::sync::atomic::{AtomicBool, Ordering};

use ioscape_engine::{Error, Rig};
use ioscape_model::{EndReason, Point, Role, Rules, Workload};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::explore::JournalError;
use crate::measure::{self, Subject, measure};

/// What a pair of visits is expected to take before one was made, seconds.
const PAIR_S: f64 = 6.0;

/// Whose time counts how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// It passes for both sides alike.
    Real,
    /// A number of its own, which stands still while the other side is measured.
    Simulated,
}

/// One of the two.
pub struct Side<'a> {
    /// Where its workloads run.
    pub rig: &'a mut dyn Rig,
    /// What its clock shows.
    pub time: Time,
}

/// What happens, for whoever shows progress.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A visit begins.
    Visit {
        /// 0 or 1.
        side: usize,
        /// What is measured.
        work: &'a Workload,
        /// Visits made so far, on both sides.
        points: usize,
        /// Seconds of the budget used.
        elapsed_s: f64,
    },
    /// Something happens within it.
    Measuring(measure::Event),
}

/// Where points go: the side and the point, flushed before the next visit begins.
pub type Journal<'a> = dyn FnMut(usize, &Point) -> std::io::Result<()> + 'a;

/// What is to be measured.
pub struct Alternation<'a> {
    /// The baseline first.
    pub sides: [Side<'a>; 2],
    /// The workloads.
    pub works: &'a [Workload],
    /// How a visit is made.
    pub rules: Rules,
    /// Seconds for all of it.
    pub budget_s: f64,
    /// Where the orders and the visits' seeds come from.
    pub seed: u64,
    /// Raised by Ctrl-C and SIGTERM.
    pub interrupt: &'a AtomicBool,
    /// Where points go.
    pub journal: &'a mut Journal<'a>,
    /// Who watches.
    pub on_event: &'a mut dyn FnMut(Event<'_>),
}

/// How it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Why.
    pub reason: EndReason,
    /// What failed, where something did.
    pub failure: Option<String>,
    /// Seconds of the budget used.
    pub elapsed_s: f64,
}

/// Measures until the budget has no room for another pair, a side fails, or Ctrl-C.
///
/// # Errors
/// Only when a record cannot be written; everything else ends it with a reason.
pub fn alternate(mut run: Alternation<'_>) -> Result<Outcome, JournalError> {
    let mut schedule = Schedule::new(run.works.len(), run.seed);
    let mut pair_s: Vec<Option<f64>> = vec![None; run.works.len()];
    let mut points = 0;
    for round in 0.. {
        for pair in schedule.round() {
            let started_s = run.elapsed_s();
            if run.interrupt.load(Ordering::Relaxed) {
                return Ok(run.outcome(EndReason::Interrupted, None));
            }
            if started_s + pair_s[pair.work].unwrap_or(PAIR_S) > run.budget_s {
                return Ok(run.outcome(EndReason::Budget, None));
            }
            for side in [pair.first, 1 - pair.first] {
                match run.visit(side, &pair, round, points) {
                    Ok(point) => (run.journal)(side, &point)?,
                    Err(Error::Interrupted) => {
                        return Ok(run.outcome(EndReason::Interrupted, None));
                    }
                    Err(error) => {
                        let failure = format!("{}: {error}", ["A", "B"][side]);
                        return Ok(run.outcome(EndReason::Failed, Some(failure)));
                    }
                }
                points += 1;
            }
            pair_s[pair.work] = Some(run.elapsed_s() - started_s);
        }
    }
    unreachable!("a budget ends")
}

impl Alternation<'_> {
    fn elapsed_s(&self) -> f64 {
        let of = |time: Time| {
            let sides = self.sides.iter().filter(move |side| side.time == time);
            sides.map(|side| side.rig.now_s())
        };
        of(Time::Real).fold(0.0, f64::max) + of(Time::Simulated).sum::<f64>()
    }

    fn outcome(&self, reason: EndReason, failure: Option<String>) -> Outcome {
        Outcome { reason, failure, elapsed_s: self.elapsed_s() }
    }

    fn visit(
        &mut self,
        side: usize,
        pair: &Pair,
        round: u32,
        points: usize,
    ) -> Result<Point, Error> {
        let work = &self.works[pair.work];
        let elapsed_s = self.elapsed_s();
        (self.on_event)(Event::Visit { side, work, points, elapsed_s });
        let rig = &mut *self.sides[side].rig;
        let started_s = rig.now_s();
        // The same requests in the same order on both sides; others in each pair.
        let subject = Subject { work, role: Role::Measure, round, seed: pair.seed };
        let on_event = &mut *self.on_event;
        let mut point =
            measure(&subject, &self.rules, rig, &mut |event| on_event(Event::Measuring(event)))?;
        point.started_s = started_s;
        Ok(point)
    }
}

/// Two visits to one workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pair {
    work: usize,
    /// The side that goes first.
    first: usize,
    /// Seed of the requests.
    seed: u64,
}

/// In which order what is visited.
struct Schedule {
    chance: Xoshiro256PlusPlus,
    /// By workload: the side that went first in a round whose counterpart is still to come.
    drawn: Vec<Option<usize>>,
}

impl Schedule {
    fn new(works: usize, seed: u64) -> Self {
        Self { chance: Xoshiro256PlusPlus::seed_from_u64(seed), drawn: vec![None; works] }
    }

    fn round(&mut self) -> Vec<Pair> {
        let mut order: Vec<usize> = (0..self.drawn.len()).collect();
        order.shuffle(&mut self.chance);
        order.into_iter().map(|work| self.pair(work)).collect()
    }

    fn pair(&mut self, work: usize) -> Pair {
        let first = if let Some(before) = self.drawn[work].take() {
            1 - before
        } else {
            let first = usize::from(self.chance.random_bool(0.5));
            self.drawn[work] = Some(first);
            first
        };
        // 53 bits survive every JSON reader.
        Pair { work, first, seed: self.chance.random::<u64>() >> 11 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_every_workload_and_every_second_one_turns_the_sides_over() {
        let mut schedule = Schedule::new(5, 7);
        let rounds: Vec<Vec<Pair>> = (0..40).map(|_| schedule.round()).collect();
        let first = |round: &[Pair], work: usize| {
            round.iter().find(|pair| pair.work == work).map(|pair| pair.first)
        };
        for two in rounds.chunks(2) {
            for work in 0..5 {
                assert_eq!(
                    first(&two[0], work).map(|side| 1 - side),
                    first(&two[1], work),
                    "A B B A or B A A B"
                );
            }
        }
        let begins = rounds.iter().step_by(2).filter_map(|round| first(round, 0)).sum::<usize>();
        assert!((1..20).contains(&begins), "chance decides who begins: {begins} of 20");
        let orders: std::collections::BTreeSet<Vec<usize>> =
            rounds.iter().map(|round| round.iter().map(|pair| pair.work).collect()).collect();
        assert!(orders.len() > 20, "workloads are shuffled");
    }
}
