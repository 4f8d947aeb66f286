//! Two targets that were measured in alternation, compared visit by visit.
//!
//! A pair is two visits to one workload, one right after the other. What moves more slowly than
//! that moves both and drops out of their ratio. Pairs, not the thousands of windows inside them,
//! are what an interval rests on: a visit's own interval says nothing about the next visit. Each
//! workload's scatter is its own, because those that write differ far more from visit to visit than
//! those that read; and what all have in common is tested on the rounds' means, which needs no
//! assumption about how workloads hang together.

use ioscape_model::{Overall, OverallRatio, Point, Verdict, Workload};

use super::{Difference, Tested, overall, required, test};
use crate::estimate;

/// One pair says nothing about how pairs scatter.
pub const PAIRS_MIN: usize = 2;
/// Shares of the error rate: the mean over all workloads, and all workloads together.
const SUM_WEIGHT: f64 = 0.5;
const WORKLOADS_WEIGHT: f64 = 0.5;

/// A workload on both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveRatio {
    /// Its place among the workloads asked for.
    pub index: usize,
    /// How many pairs it rests on.
    pub pairs: usize,
    /// The baseline's throughput in them, geometric mean.
    pub baseline_bytes_per_s: f64,
    /// The other's.
    pub throughput_bytes_per_s: f64,
    /// The other's over the baseline's.
    pub tested: Tested,
}

/// The other target against the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Live {
    /// Workloads with [`PAIRS_MIN`] pairs at least, in the order asked.
    pub workloads: Vec<LiveRatio>,
    /// Over all of them; `None` where there is but one, or too few rounds hold all.
    pub geometric_mean: Option<OverallRatio>,
    /// All of it together.
    pub verdict: Overall,
}

/// A pair of visits: the round it was made in, and the logarithms of both throughputs.
#[derive(Clone, Copy, Debug)]
struct VisitPair {
    round: u32,
    baseline: f64,
    other: f64,
}

impl VisitPair {
    fn difference(&self) -> f64 {
        self.other - self.baseline
    }
}

/// Holds the points of one target against those of the other.
pub fn compare(baseline: &[Point], other: &[Point], works: &[Workload]) -> Live {
    let all = works.iter().map(|work| pairs(baseline, other, work));
    let known: Vec<(usize, Vec<VisitPair>)> =
        all.enumerate().filter(|(_, pairs)| pairs.len() >= PAIRS_MIN).collect();
    let weight = WORKLOADS_WEIGHT / known.len().max(1) as f64;
    let differences = known.iter().map(|(_, pairs)| {
        let values: Vec<f64> = pairs.iter().map(VisitPair::difference).collect();
        (mean(&values), weight)
    });
    let mut family: Vec<(Difference, f64)> = differences.collect();
    let sum = round_means(&known);
    family.extend(sum.as_deref().map(|values| (mean(values), SUM_WEIGHT)));
    let mut tested = test(&family).into_iter();
    let workloads: Vec<LiveRatio> = known
        .iter()
        .zip(&mut tested)
        .map(|((index, pairs), tested)| {
            let rate = |of: fn(&VisitPair) -> f64| {
                (pairs.iter().map(of).sum::<f64>() / pairs.len() as f64).exp()
            };
            LiveRatio {
                index: *index,
                pairs: pairs.len(),
                baseline_bytes_per_s: rate(|pair| pair.baseline),
                throughput_bytes_per_s: rate(|pair| pair.other),
                tested,
            }
        })
        .collect();
    let geometric_mean = tested.next().map(|sum| sum.over(known.len()));
    let verdict = Live::overall(&workloads, geometric_mean);
    Live { workloads, geometric_mean, verdict }
}

impl Live {
    /// Holds the answer to a resolution: where no difference was shown and one as small as this could
    /// not have been, the verdict is inconclusive.
    #[must_use]
    pub fn requiring(mut self, resolution: f64) -> Self {
        for LiveRatio { tested, .. } in &mut self.workloads {
            tested.verdict = required(tested.verdict, tested.resolution, resolution);
        }
        if let Some(sum) = &mut self.geometric_mean {
            sum.verdict = required(sum.verdict, sum.resolution, resolution);
        }
        self.verdict = Self::overall(&self.workloads, self.geometric_mean);
        self
    }

    fn overall(workloads: &[LiveRatio], sum: Option<OverallRatio>) -> Overall {
        let workloads: Vec<Verdict> = workloads.iter().map(|live| live.tested.verdict).collect();
        overall(&workloads, sum.map(|sum| sum.verdict).as_slice())
    }
}

fn pairs(baseline: &[Point], other: &[Point], work: &Workload) -> Vec<VisitPair> {
    let of = |points: &'_ [Point], round: u32| {
        let found = points.iter().find(|point| point.round == round && point.workload == *work);
        found.map(|point| estimate::visit(point).ln_value)
    };
    let rounds = baseline.iter().filter(|point| point.workload == *work).map(|point| point.round);
    let pair = |round: u32| {
        Some(VisitPair { round, baseline: of(baseline, round)?, other: of(other, round)? })
    };
    rounds.filter_map(pair).collect()
}

/// The mean over all workloads, for each round that holds all.
fn round_means(known: &[(usize, Vec<VisitPair>)]) -> Option<Vec<f64>> {
    if known.len() < 2 {
        return None;
    }
    let of = |round: u32| -> Option<f64> {
        let values = known.iter().map(|(_, pairs)| {
            pairs.iter().find(|pair| pair.round == round).map(VisitPair::difference)
        });
        let values: Option<Vec<f64>> = values.collect();
        Some(values?.iter().sum::<f64>() / known.len() as f64)
    };
    let means: Vec<f64> = known[0].1.iter().filter_map(|pair| of(pair.round)).collect();
    (means.len() >= PAIRS_MIN).then_some(means)
}

fn mean(values: &[f64]) -> Difference {
    let count = values.len() as f64;
    let value = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|one| (one - value).powi(2)).sum();
    let degrees_of_freedom = count - 1.0;
    let sd = (squares / degrees_of_freedom / count).sqrt();
    Difference { value, sd, degrees_of_freedom }
}

#[cfg(test)]
mod tests;
