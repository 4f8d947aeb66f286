use ioscape_model::{Interval, Verdict};
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::visit::visit;

fn work(index: u64) -> Workload {
    Workload { unique_bytes: (index + 1) << 26, ..Workload::default() }
}

fn point(work: Workload, round: u32, ln_throughput: f64) -> Point {
    let mean = ln_throughput.exp();
    let throughput_bytes_per_s = Interval { mean, low: 0.98 * mean, high: 1.02 * mean };
    Point { round, throughput_bytes_per_s, ..visit(work, mean) }
}

/// What one session may look like.
#[derive(Clone, Copy, Debug)]
struct Session {
    works: u64,
    rounds: u32,
    /// The other side's advantage, in logarithms.
    shift: f64,
    /// Scatter of a visit of the first workload; of each further one this many times more.
    visit_sd: f64,
    noisier: f64,
    /// What both sides go through, from round to round.
    drift: f64,
    /// One visit in twenty is slow by this.
    slow: f64,
}

const USUAL: Session = Session {
    works: 12,
    rounds: 5,
    shift: 0.0,
    visit_sd: 0.02,
    noisier: 1.0,
    drift: 0.0,
    slow: 0.0,
};

impl Session {
    fn compared(&self, seed: u64) -> Live {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
        let works: Vec<Workload> = (0..self.works).map(work).collect();
        let (mut baseline, mut other) = (vec![], vec![]);
        let mut drift = 0.0;
        for round in 0..self.rounds {
            for (index, work) in works.iter().enumerate() {
                drift += self.drift * chance.sample::<f64, _>(StandardNormal);
                let sd = self.visit_sd * self.noisier.powf(index as f64);
                let mut visit = |shift: f64| {
                    let slow = if chance.random_bool(0.05) { self.slow } else { 0.0 };
                    let noise = sd * chance.sample::<f64, _>(StandardNormal);
                    point(work.clone(), round, 20.0 + drift + shift - slow + noise)
                };
                baseline.push(visit(0.0));
                other.push(visit(self.shift));
            }
        }
        compare(&baseline, &other, &works)
    }

    /// In which share of so many sessions some difference is shown.
    fn shown(&self, sessions: u64) -> f64 {
        let is_shown = |seed: &u64| self.compared(*seed).verdict != Overall::NoDifferenceShown;
        (0..sessions).filter(is_shown).count() as f64 / sessions as f64
    }
}

#[test]
fn a_target_does_not_differ_from_itself_whatever_the_noise_is_like() {
    for session in [
        USUAL,
        Session { works: 1, rounds: 3, ..USUAL },
        Session { works: 3, rounds: 2, ..USUAL },
        Session { noisier: 1.5, ..USUAL },
        Session { drift: 0.05, ..USUAL },
        Session { slow: 0.7, ..USUAL },
        Session { slow: 0.7, works: 1, rounds: 20, ..USUAL },
    ] {
        let shown = session.shown(1000);
        assert!(shown <= 0.065, "{session:?}: {shown}");
    }
}

#[test]
fn a_twentieth_is_found_in_ten_minutes_of_usual_visits() {
    // Twelve workloads, two sides, four seconds each: six rounds. One workload: seventy.
    let ladder = Session { shift: -0.05, rounds: 6, ..USUAL };
    let alone = Session { shift: -0.05, works: 1, rounds: 70, visit_sd: 0.05, ..USUAL };
    for session in [ladder, alone] {
        let shown = session.shown(300);
        assert!(shown >= 0.9, "{session:?}: {shown}");
    }
    let live = ladder.compared(1);
    assert_eq!(live.verdict, Overall::Slower);
    let sum = live.geometric_mean.unwrap();
    assert!((sum.ratio.value.ln() + 0.05).abs() < 0.02 && sum.workloads == 12, "{sum:?}");
}

#[test]
fn intervals_hold_the_truth_as_often_as_they_claim() {
    let session = Session { shift: 0.3, works: 1, rounds: 4, ..USUAL };
    let holds = |seed: &u64| {
        let ratio = session.compared(*seed).workloads[0].tested.ratio;
        (ratio.low..=ratio.high).contains(&0.3f64.exp())
    };
    let share = (0..1000).filter(holds).count() as f64 / 1000.0;
    assert!((0.93..=0.97).contains(&share), "{share}");
}

#[test]
fn only_visits_that_have_a_partner_count() {
    let works = [work(0), work(1), work(2)];
    let at = |index: u64, round: u32, ln: f64| point(work(index), round, ln);
    let baseline = [at(0, 0, 20.0), at(0, 1, 20.1), at(1, 0, 19.0), at(0, 2, 5.0)];
    let other = [at(0, 0, 20.5), at(0, 1, 20.6), at(1, 1, 19.0), at(2, 0, 18.0)];
    let live = compare(&baseline, &other, &works);
    assert_eq!(live.workloads.len(), 1);
    let only = live.workloads[0];
    assert_eq!((only.index, only.pairs), (0, 2));
    assert!((only.tested.ratio.value.ln() - 0.5).abs() < 1e-9, "{only:?}");
    assert_eq!(only.tested.verdict, Verdict::Faster);
    assert_eq!((live.geometric_mean, live.verdict), (None, Overall::Faster));
    let nothing = compare(&baseline[..1], &other[..1], &works);
    assert_eq!((nothing.workloads.len(), nothing.verdict), (0, Overall::OutOfRange));
}

#[test]
fn fewer_pairs_see_only_larger_differences_and_may_be_inconclusive() {
    let coarsest = |rounds: u32| {
        let live = Session { rounds, ..USUAL }.compared(3);
        live.workloads.iter().map(|live| live.tested.resolution).fold(0.0, f64::max)
    };
    assert!(coarsest(3) > 3.0 * coarsest(12), "{} and {}", coarsest(3), coarsest(12));
    let live = Session { rounds: 3, ..USUAL }.compared(3);
    assert_eq!(live.verdict, Overall::NoDifferenceShown);
    let asked = live.requiring(0.01);
    assert_eq!(asked.verdict, Overall::Inconclusive);
    assert!(asked.workloads.iter().all(|live| live.tested.verdict == Verdict::Inconclusive));
}

#[test]
fn a_visit_in_which_nothing_was_done_shows_no_difference() {
    let works = [work(0)];
    let visits = |last: f64| -> Vec<Point> {
        [20.0, 20.01, 20.02, last]
            .into_iter()
            .zip(0..)
            .map(|(ln, i)| point(work(0), i, ln))
            .collect()
    };
    let dead = compare(&visits(20.0), &visits(f64::NEG_INFINITY), &works);
    assert_eq!(dead.verdict, Overall::NoDifferenceShown);
    assert!(dead.workloads[0].tested.ratio.value.is_finite());
}
