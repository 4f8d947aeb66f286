//! Two targets measured in alternation: what drifts while they are measured meets both alike.
//!
//! A round visits every workload once on either target, one visit right after the other. Workloads
//! are shuffled in each round but the first, which takes in as many as the budget has time for
//! (`costs`). Which side goes first is drawn by chance for one round and turned over in the next,
//! A B B A or B A A B, so that neither a drift nor the second place in a pair favours a side (Abedi
//! and Brecht, ICPE 2017: usual orders show two identical systems to differ). What to measure and
//! when to stop depends on the time alone, never on what was seen: looking for a difference until
//! there is one finds one.

use std::sync::atomic::{AtomicBool, Ordering};

use ioscape_analysis::compare::live::PAIRS_MIN;
use ioscape_engine::{Error, Rig};
use ioscape_model::{EndReason, Point, Role, Rules, Workload};
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::explore::JournalError;
use crate::measure::{self, Subject, measure};

mod costs;

use costs::Costs;
pub use costs::{Forecast, PAIRS_ENOUGH, forecast, laid_out_bytes};

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
    /// Workloads without pairs enough to be compared, by their places.
    pub dropped: Vec<usize>,
}

/// Measures until the budget has no room for another pair, a side fails, or Ctrl-C. The first round
/// takes in workloads, the cheapest first, as long as there is time for [`PAIRS_ENOUGH`] pairs of
/// each; the others are dropped.
///
/// # Errors
/// Only when a record cannot be written; everything else ends it with a reason.
pub fn alternate(run: Alternation<'_>) -> Result<Outcome, JournalError> {
    let hints = [0, 1].map(|side: usize| run.sides[side].rig.hints());
    let mut session = Session {
        schedule: Schedule::new(run.works.len(), run.seed),
        costs: Costs::new(run.works, &run.rules, [&hints[0], &hints[1]]),
        points: 0,
        run,
    };
    let (reason, failure) = session.rounds()?;
    let works = 0..session.run.works.len();
    Ok(Outcome {
        reason,
        failure,
        elapsed_s: session.run.elapsed_s(),
        dropped: works.filter(|work| session.costs.pairs(*work) < PAIRS_MIN).collect(),
    })
}

/// Why it ended, and what failed, where something did.
type Ending = (EndReason, Option<String>);

/// An alternation on its way.
struct Session<'a> {
    run: Alternation<'a>,
    schedule: Schedule,
    costs: Costs<'a>,
    /// Visits so far, on both sides.
    points: usize,
}

impl Session<'_> {
    fn rounds(&mut self) -> Result<Ending, JournalError> {
        let mut chosen: Vec<usize> = Vec::new();
        for work in self.costs.cheapest_first() {
            let is_first = chosen.is_empty();
            if is_first || self.costs.has_room(&chosen, work, self.run.left_s()) {
                match self.pair(work, 0)? {
                    Made::Pair => chosen.push(work),
                    Made::NoRoom => {}
                    Made::End(ending) => return Ok(ending),
                }
            }
        }
        for round in 1.. {
            let mut has_room = false;
            for work in self.order(&chosen) {
                match self.pair(work, round)? {
                    Made::Pair => has_room = true,
                    Made::NoRoom => {}
                    Made::End(ending) => return Ok(ending),
                }
            }
            if !has_room {
                return Ok((EndReason::Budget, None));
            }
        }
        unreachable!("a budget ends")
    }

    /// By chance, where there is time for all; else those first that have fewest pairs, and of these
    /// the cheapest: so as many as possible get what they need.
    fn order(&mut self, chosen: &[usize]) -> Vec<usize> {
        let mut order = chosen.to_vec();
        let all_s: f64 = chosen.iter().map(|work| self.costs.pair_s(*work)).sum();
        if all_s <= self.run.left_s() {
            order.shuffle(&mut self.schedule.chance);
            return order;
        }
        let needs = |work: &usize| self.costs.pairs(*work).min(PAIRS_ENOUGH);
        let takes = |work: &usize| self.costs.pair_s(*work);
        order.sort_by(|a, b| needs(a).cmp(&needs(b)).then(takes(a).total_cmp(&takes(b))));
        order
    }

    /// Visits a workload once on either side, where there is time.
    fn pair(&mut self, work: usize, round: u32) -> Result<Made, JournalError> {
        let started_s = self.run.elapsed_s();
        if self.run.interrupt.load(Ordering::Relaxed) {
            return Ok(Made::End((EndReason::Interrupted, None)));
        }
        if self.costs.layout_s(work) + self.costs.pair_s(work) > self.run.left_s() {
            return Ok(Made::NoRoom);
        }
        let pair = self.schedule.pair(work);
        let mut layout_s = [0.0; 2];
        for side in [pair.first, 1 - pair.first] {
            match self.run.visit(side, &pair, round, self.points) {
                Ok(point) => {
                    (self.run.journal)(side, &point)?;
                    layout_s[side] = point.spent_s.layout;
                }
                Err(Error::Interrupted) => return Ok(Made::End((EndReason::Interrupted, None))),
                Err(error) => {
                    let failure = format!("{}: {error}", ["A", "B"][side]);
                    return Ok(Made::End((EndReason::Failed, Some(failure))));
                }
            }
            self.points += 1;
        }
        self.costs.enter(work, self.run.elapsed_s() - started_s, layout_s);
        Ok(Made::Pair)
    }
}

/// What came of a pair.
enum Made {
    Pair,
    NoRoom,
    End(Ending),
}

impl Alternation<'_> {
    fn elapsed_s(&self) -> f64 {
        let of = |time: Time| {
            let sides = self.sides.iter().filter(move |side| side.time == time);
            sides.map(|side| side.rig.now_s())
        };
        of(Time::Real).fold(0.0, f64::max) + of(Time::Simulated).sum::<f64>()
    }

    fn left_s(&self) -> f64 {
        self.budget_s - self.elapsed_s()
    }

    fn visit(
        &mut self,
        side: usize,
        pair: &PlannedPair,
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
struct PlannedPair {
    work: usize,
    /// The side that goes first.
    first: usize,
    /// Seed of the requests.
    seed: u64,
}

/// Which side goes first, and with what seed.
struct Schedule {
    chance: Xoshiro256PlusPlus,
    /// By workload: the side that went first in a round whose counterpart is still to come.
    drawn: Vec<Option<usize>>,
}

impl Schedule {
    fn new(works: usize, seed: u64) -> Self {
        Self { chance: Xoshiro256PlusPlus::seed_from_u64(seed), drawn: vec![None; works] }
    }

    fn pair(&mut self, work: usize) -> PlannedPair {
        let first = if let Some(before) = self.drawn[work].take() {
            1 - before
        } else {
            let first = usize::from(self.chance.random_bool(0.5));
            self.drawn[work] = Some(first);
            first
        };
        // 53 bits survive every JSON reader.
        PlannedPair { work, first, seed: self.chance.random::<u64>() >> 11 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_pair_of_a_workload_turns_the_sides_over() {
        let mut schedule = Schedule::new(5, 7);
        let mut begins = 0;
        for _ in 0..20 {
            let pairs: Vec<Vec<PlannedPair>> =
                (0..2).map(|_| (0..5).map(|work| schedule.pair(work)).collect()).collect();
            for (one, other) in pairs[0].iter().zip(&pairs[1]) {
                assert_eq!(one.first, 1 - other.first, "A B B A or B A A B");
            }
            begins += pairs[0][0].first;
        }
        assert!((1..20).contains(&begins), "chance decides who begins: {begins} of 20");
    }
}
