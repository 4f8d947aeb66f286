//! Refinement: of many possible workloads those whose measuring makes the model surest, per second.
//!
//! What a measurement at `x` teaches about a workload `z` is taken to fade with their distance:
//! `cov(x, z) = sd(x)·sd(z)·exp(−d²/2ℓ²)`, with the model's own standard deviations. Measuring `x`
//! with noise `σ` lowers the variance at `z` by `cov²/(var(x) + σ²)` (Cohn 1996: expected
//! reduction of variance). The candidate with the largest sum of that over a reference set, per
//! second it is expected to take, is chosen; the variances are lowered; and again. So points that
//! were chosen do not bunch.

use ioscape_analysis::model::Training;
use ioscape_analysis::predict::Predictor;
use ioscape_model::{Point, Range, Ranges, Role, Workload};

/// How many workloads a round chooses from.
pub(crate) const CANDIDATES: u64 = 128;
/// How many workloads a choice is judged on.
pub(crate) const REFERENCE: u64 = 64;
/// How far a measurement reaches, the box being 1 wide in every direction.
const REACH: f64 = 0.3;
/// A visit is expected to take what the visits nearest to it took.
const NEIGHBOURS: usize = 4;
/// Another visit to the same workload differs by this, logarithm.
const NOISE_SD: f64 = 0.05;

/// A workload in the box: every direction from 0 to 1.
type BoxPoint = [f64; 5];

/// What was known when a round began. Canaries do not count: when they are made depends on the
/// clock, and a run that is continued has to decide as it did before.
pub(crate) fn before(points: &[Point], round: u32) -> Vec<Point> {
    let is_earlier = |point: &&Point| point.round < round && point.role != Role::Canary;
    points.iter().filter(is_earlier).cloned().collect()
}

/// What is chosen from, and by what it is judged.
pub(crate) struct Choice<'a> {
    /// The box, as far as the plan reaches.
    pub(crate) ranges: &'a Ranges,
    /// All visits so far: what a visit takes.
    pub(crate) points: &'a [Point],
    /// What may be measured.
    pub(crate) candidates: &'a [Workload],
    /// What is to be known.
    pub(crate) reference: &'a [Workload],
}

impl Choice<'_> {
    /// The best so many candidates by what a model fitted now is unsure of; none where no model
    /// can be fitted yet.
    pub(crate) fn where_unsure(&self, training: Training, count: usize) -> Vec<Workload> {
        let Ok(predictor) = Predictor::fit(training) else { return Vec::new() };
        self.best(count, &|work| predictor.guess(work).sd)
    }

    /// The best so many candidates, best first. `sd` says how unsure the model is of the logarithm
    /// of a workload's throughput.
    pub(crate) fn best(&self, count: usize, sd: &dyn Fn(&Workload) -> f64) -> Vec<Workload> {
        let unsure =
            |work: &Workload| Unsure { place: self.place(work), variance: sd(work).powi(2) };
        let mut candidates: Vec<Unsure> = self.candidates.iter().map(unsure).collect();
        let mut reference: Vec<Unsure> = self.reference.iter().map(unsure).collect();
        let visits_s: Vec<f64> = candidates.iter().map(|c| self.visit_s(&c.place)).collect();
        let mut chosen: Vec<usize> = Vec::new();
        while chosen.len() < count.min(candidates.len()) {
            let gain_per_s =
                |index: &usize| candidates[*index].teaches(&reference) / visits_s[*index];
            let rest = (0..candidates.len()).filter(|index| !chosen.contains(index));
            let best = rest.max_by(|a, b| gain_per_s(a).total_cmp(&gain_per_s(b)));
            let Some(best) = best else { break };
            chosen.push(best);
            let measured = candidates[best];
            for unsure in reference.iter_mut().chain(&mut candidates) {
                unsure.learn_from(&measured);
            }
        }
        chosen.into_iter().map(|index| self.candidates[index].clone()).collect()
    }

    fn place(&self, work: &Workload) -> BoxPoint {
        let Ranges { unique_bytes, size_mean, process_num, .. } = self.ranges;
        [
            share(work.unique_bytes, *unique_bytes),
            share(work.size_mean, *size_mean),
            work.read_frac,
            work.seq_frac,
            share(u64::from(work.process_num), *process_num),
        ]
    }

    /// What a visit there is expected to take, layout apart, seconds.
    fn visit_s(&self, place: &BoxPoint) -> f64 {
        let took = |point: &Point| {
            (distance2(place, &self.place(&point.workload)), point.elapsed_s - point.spent_s.layout)
        };
        let mut nearest: Vec<(f64, f64)> = self.points.iter().map(took).collect();
        nearest.sort_by(|a, b| a.0.total_cmp(&b.0));
        nearest.truncate(NEIGHBOURS);
        let sum_s: f64 = nearest.iter().map(|(_, seconds)| seconds).sum();
        if nearest.is_empty() { 1.0 } else { (sum_s / nearest.len() as f64).max(0.1) }
    }
}

/// A workload whose throughput is not known well.
#[derive(Clone, Copy, Debug)]
struct Unsure {
    place: BoxPoint,
    variance: f64,
}

impl Unsure {
    /// By how much measuring this would lower the sum of the others' variances.
    fn teaches(&self, others: &[Self]) -> f64 {
        others.iter().map(|other| other.lowered_by(self)).sum()
    }

    fn learn_from(&mut self, measured: &Self) {
        self.variance -= self.lowered_by(measured);
    }

    /// cov² / (var + σ²)
    fn lowered_by(&self, measured: &Self) -> f64 {
        let correlation = (-distance2(&self.place, &measured.place) / (2.0 * REACH * REACH)).exp();
        let known_share = measured.variance / (measured.variance + NOISE_SD * NOISE_SD);
        self.variance * correlation * correlation * known_share
    }
}

/// Where a value lies in its range, by logarithms.
fn share(value: u64, range: Range) -> f64 {
    let min = range.min.max(1) as f64;
    let width = (range.max as f64 / min).ln();
    if width > 0.0 { (value as f64 / min).ln() / width } else { 0.0 }
}

fn distance2(a: &BoxPoint, b: &BoxPoint) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Visit;
    use crate::plan::filling::Filling;
    use crate::plan::formula::point;

    fn works(seed: u64, count: u64) -> Vec<Workload> {
        let ranges = Ranges::usual(4);
        let filling = Filling { ranges: &ranges, largest_bytes: |_| 1e9, seed };
        (0..count).map(|index| filling.workload(index)).collect()
    }

    fn visits_of(works: &[Workload], seconds: impl Fn(&Workload) -> f64) -> Vec<Point> {
        let made = works.iter().map(|work| {
            let visit = Visit { workload: work.clone(), role: Role::Calibration, round: 1 };
            Point { elapsed_s: seconds(work), ..point(&visit, 1e8) }
        });
        made.collect()
    }

    fn best(points: &[Point], count: usize, sd: impl Fn(&Workload) -> f64) -> Vec<Workload> {
        let (candidates, reference) = (works(3, 128), works(4, 64));
        let ranges = Ranges::usual(4);
        let choice =
            Choice { ranges: &ranges, points, candidates: &candidates, reference: &reference };
        choice.best(count, &sd)
    }

    #[test]
    fn points_go_where_the_model_is_unsure() {
        let chosen = best(&[], 12, |work| if work.read_frac < 0.3 { 0.5 } else { 0.05 });
        let there = chosen.iter().filter(|work| work.read_frac < 0.3).count();
        assert_eq!(chosen.len(), 12);
        assert!(there >= 10, "{there}");
    }

    #[test]
    fn points_do_not_bunch_where_the_model_is_equally_unsure() {
        let chosen = best(&[], 12, |_| 0.2);
        let low = chosen.iter().filter(|work| work.read_frac < 0.5).count();
        let sequential = chosen.iter().filter(|work| work.seq_frac > 0.5).count();
        assert!((3..=9).contains(&low) && (3..=9).contains(&sequential), "{low} {sequential}");
    }

    #[test]
    fn what_takes_long_is_chosen_less_often() {
        let is_large = |work: &Workload| work.unique_bytes > 100_000_000;
        let count =
            |points: &[Point]| best(points, 12, |_| 0.2).iter().filter(|w| is_large(w)).count();
        let alike = visits_of(&works(9, 60), |_| 3.0);
        let dear = visits_of(&works(9, 60), |work| if is_large(work) { 30.0 } else { 3.0 });
        assert!(count(&dear) + 3 <= count(&alike), "{} {}", count(&dear), count(&alike));
    }
}
