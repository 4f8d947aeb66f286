//! Two systems compared, each known by its record: by how much is one faster, and
//! could that be chance?
//!
//! Three kinds of evidence go into it: what the models of either record predict, the workloads that
//! both records measured (`pairs`), and the little workload that both repeat every minute, which
//! tells by how much two runs may differ as wholes (`run`). Predicted ratios are drawn towards
//! what all of them have in common, as far as they have anything in common (`random_effects`).
//!
//! Each workload is a hypothesis, "no difference". So are two sums over many: the geometric mean of
//! the predicted ratios, and the median of the measured pairs, which needs no model. Holm's
//! procedure keeps the chance of any false difference to one record below [`ERROR_RATE`]. Every
//! interval is shown at the level at which its hypothesis was tested: it holds 1 exactly where no
//! difference was shown.

use ioscape_model::{Figure, Overall, OverallRatio, Record, Role, Verdict, Workload};
use ioscape_stats::holm::{Adjusted, Hypothesis, holm, p_two_sided};
use ioscape_stats::pool::USUAL_SD;
use ioscape_stats::{LogMeasurement, t_two_sided};

use crate::estimate;
use crate::model::{Guess, Sample};
use crate::predict::Predictor;

pub mod document;
mod elements;
pub mod live;
mod pairs;
mod random_effects;
mod run;
mod side;
#[cfg(test)]
mod tests;

pub use elements::elements;
use random_effects::{Common, Drawn};
pub use side::{caches, regions};

/// The chance of saying that there is a difference between two records where there is none.
pub const ERROR_RATE: f64 = 0.05;
/// Shares of the error rate: each of the sums, and all workloads together.
const SUM_WEIGHT: f64 = 0.25;
const WORKLOADS_WEIGHT: f64 = 0.5;
/// Errors of two predictions for one system: their correlation. Many workloads rest on the same
/// points and the same law.
const ERRORS_CORRELATION: f64 = 0.3;
const DEGREES_OF_FREEDOM_MAX: f64 = 1e4;

/// What is asked of a system: [`Predictor`] answers.
pub trait Answers {
    /// Logarithm of the throughput, and how unsure the models are of it.
    fn guess(&self, work: &Workload) -> Guess;

    /// Standard deviation of the logarithm of one new measurement about the prediction: misfit and
    /// the visit's own chance included.
    fn prediction_sd(&self, work: &Workload) -> f64;

    /// Whether it lies inside what was measured.
    fn is_in_range(&self, work: &Workload) -> bool;
}

impl Answers for Predictor {
    fn guess(&self, work: &Workload) -> Guess {
        self.guess(work)
    }

    fn prediction_sd(&self, work: &Workload) -> f64 {
        self.prediction_sd(work)
    }

    fn is_in_range(&self, work: &Workload) -> bool {
        self.is_in_range(work)
    }
}

/// A system, as its record shows it.
#[derive(Clone)]
pub struct System<'a> {
    /// What answers for it.
    pub answers: &'a dyn Answers,
    /// What was measured.
    pub samples: &'a [Sample],
    /// Its canaries.
    pub canaries: Vec<LogMeasurement>,
    /// Standard deviation of the logarithm of one visit.
    pub visit_sd: f64,
}

impl<'a> System<'a> {
    /// The system of a record, whose samples and models these are.
    pub fn new(record: &Record, samples: &'a [Sample], answers: &'a dyn Answers) -> Self {
        let canaries = record.points.iter().filter(|point| point.role == Role::Canary);
        let alive = canaries.filter(|point| point.throughput() > 0.0);
        let repeatability = record.map.as_ref().and_then(|map| map.repeatability);
        Self {
            answers,
            samples,
            canaries: alive.map(estimate::visit).collect(),
            visit_sd: repeatability.unwrap_or(USUAL_SD),
        }
    }

    /// Variance of a prediction's error: what is left of its interval once the new visit's own
    /// chance is taken out of it.
    fn variance(&self, work: &Workload) -> f64 {
        let all = self.answers.prediction_sd(work).powi(2) - self.visit_sd.powi(2);
        all.max(self.answers.guess(work).sd.powi(2))
    }
}

/// A ratio that was tested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tested {
    /// With the interval of the level at which it was tested.
    pub ratio: Figure,
    /// The smallest difference that would have been shown, as a fraction.
    pub resolution: f64,
    /// What that says.
    pub verdict: Verdict,
}

/// A system against the baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Versus {
    /// In the order of the workloads.
    pub workloads: Vec<Tested>,
    /// Over the workloads in range; `None` where fewer than two are.
    pub geometric_mean: Option<OverallRatio>,
    /// Over the workloads that both records measured; `None` where they are too few.
    pub measured: Option<OverallRatio>,
    /// All of that together.
    pub verdict: Overall,
}

/// Holds a system against the baseline on these workloads.
pub fn compare(baseline: &System<'_>, other: &System<'_>, works: &[Workload]) -> Versus {
    let run = run::spread(&baseline.canaries, &other.canaries);
    let doubts: Vec<Doubt> =
        works.iter().map(|work| Doubt::between(baseline, other, work)).collect();
    let trusted: Vec<Doubt> = doubts.iter().filter(|doubt| doubt.is_in_range).copied().collect();
    let pairs = pairs::measured_pairs(baseline, other);
    let common = Common::from_pairs(&pairs, &trusted);
    let drawn: Vec<Drawn> = trusted
        .iter()
        .map(|doubt| common.map_or_else(|| Drawn::alone(doubt), |common| common.draw(doubt)))
        .collect();
    let mean = geometric_mean(&drawn).map(|mean| mean.with_run(&run));
    let typical = pairs::typical(&pairs);
    let measured = typical.map(|(typical, count)| (typical.with_run(&run), count));

    let weight = WORKLOADS_WEIGHT / drawn.len().max(1) as f64;
    let mut family: Vec<(Difference, f64)> =
        drawn.iter().map(|drawn| (drawn.difference().with_run(&run), weight)).collect();
    family.extend(mean.map(|mean| (mean, SUM_WEIGHT)));
    family.extend(measured.map(|(measured, _)| (measured, SUM_WEIGHT)));
    let mut tested = test(&family).into_iter();
    let mut next = || tested.next().expect("the whole family was tested");
    let out_of_range = |doubt: &Doubt| Tested {
        verdict: Verdict::OutOfRange,
        ..Drawn::alone(doubt).difference().with_run(&run).at(ERROR_RATE)
    };
    let workloads: Vec<Tested> = doubts
        .iter()
        .map(|doubt| if doubt.is_in_range { next() } else { out_of_range(doubt) })
        .collect();
    let geometric_mean = mean.map(|_| next().over(drawn.len()));
    let measured = measured.map(|(_, count)| next().over(count));
    let verdict = Versus::overall(&workloads, [geometric_mean, measured]);
    Versus { workloads, geometric_mean, measured, verdict }
}

impl Versus {
    /// Holds the answer to a resolution: where no difference was shown and one as small as this could
    /// not have been, the verdict is inconclusive.
    #[must_use]
    pub fn requiring(mut self, resolution: f64) -> Self {
        let sums = [&mut self.geometric_mean, &mut self.measured].into_iter().flatten();
        for sum in sums {
            sum.verdict = required(sum.verdict, sum.resolution, resolution);
        }
        for tested in &mut self.workloads {
            tested.verdict = required(tested.verdict, tested.resolution, resolution);
        }
        self.verdict = Self::overall(&self.workloads, [self.geometric_mean, self.measured]);
        self
    }

    fn overall(workloads: &[Tested], sums: [Option<OverallRatio>; 2]) -> Overall {
        let workloads: Vec<Verdict> = workloads.iter().map(|tested| tested.verdict).collect();
        let sums: Vec<Verdict> = sums.into_iter().flatten().map(|sum| sum.verdict).collect();
        overall(&workloads, &sums)
    }
}

/// The verdict where a difference as small as `resolution` was to be shown.
fn required(verdict: Verdict, shown_from: f64, resolution: f64) -> Verdict {
    match verdict {
        Verdict::NoDifferenceShown if shown_from > resolution => Verdict::Inconclusive,
        verdict => verdict,
    }
}

/// One word for many. A sum can show a difference, but it answers for no workload that was asked
/// for: where none of these could be compared, nothing was answered.
pub fn overall(workloads: &[Verdict], sums: &[Verdict]) -> Overall {
    let is_shown = |verdict| workloads.contains(&verdict) || sums.contains(&verdict);
    match (is_shown(Verdict::Faster), is_shown(Verdict::Slower)) {
        (true, true) => Overall::Mixed,
        (true, false) => Overall::Faster,
        (false, true) => Overall::Slower,
        (false, false) if workloads.contains(&Verdict::Inconclusive) => Overall::Inconclusive,
        (false, false) if workloads.contains(&Verdict::NoDifferenceShown) => {
            Overall::NoDifferenceShown
        }
        (false, false) => Overall::OutOfRange,
    }
}

/// What the models say of one workload's ratio.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    ln_ratio: f64,
    /// Variance of its error.
    variance: f64,
    is_in_range: bool,
}

impl Doubt {
    fn between(baseline: &System<'_>, other: &System<'_>, work: &Workload) -> Self {
        let ln_throughput = |system: &System<'_>| system.answers.guess(work).ln_throughput;
        let is_in_range = |system: &System<'_>| system.answers.is_in_range(work);
        Self {
            ln_ratio: ln_throughput(other) - ln_throughput(baseline),
            variance: baseline.variance(work) + other.variance(work),
            is_in_range: is_in_range(baseline) && is_in_range(other),
        }
    }
}

impl Drawn {
    fn difference(&self) -> Difference {
        let variance = self.own_variance + self.common_variance;
        Difference::exact(self.ln_ratio, variance.sqrt())
    }
}

/// The mean of the logarithms.
fn geometric_mean(drawn: &[Drawn]) -> Option<Difference> {
    if drawn.len() < 2 {
        return None;
    }
    let count = drawn.len() as f64;
    let mean = |part: fn(&Drawn) -> f64| drawn.iter().map(part).sum::<f64>() / count;
    let together = mean(|drawn| drawn.own_variance.sqrt()).powi(2);
    let apart = mean(|drawn| drawn.own_variance) / count;
    let own = ERRORS_CORRELATION * together + (1.0 - ERRORS_CORRELATION) * apart;
    let common = mean(|drawn| drawn.common_variance.sqrt()).powi(2);
    Some(Difference::exact(mean(|drawn| drawn.ln_ratio), (own + common).sqrt()))
}

/// A difference of logarithms, its standard error, and how well that is known.
#[derive(Clone, Copy, Debug)]
struct Difference {
    value: f64,
    sd: f64,
    degrees_of_freedom: f64,
}

impl Difference {
    fn exact(value: f64, sd: f64) -> Self {
        Self { value, sd, degrees_of_freedom: DEGREES_OF_FREEDOM_MAX }
    }

    /// Two parts of a variance of which only one is uncertain have as many degrees of freedom
    /// more as that part is the smaller one (Satterthwaite 1946).
    fn with_run(self, run: &run::Spread) -> Self {
        let variance = self.sd.powi(2) + run.variance;
        let mine = self.sd.powi(4) / self.degrees_of_freedom;
        let of_run = run.variance.powi(2) / run.degrees_of_freedom;
        let degrees_of_freedom = variance.powi(2) / (mine + of_run).max(f64::MIN_POSITIVE);
        Self {
            sd: variance.sqrt(),
            degrees_of_freedom: degrees_of_freedom.clamp(1.0, DEGREES_OF_FREEDOM_MAX),
            ..self
        }
    }

    fn p_value(&self) -> f64 {
        if self.sd > 0.0 {
            return p_two_sided(self.value / self.sd, self.degrees_of_freedom);
        }
        if self.value == 0.0 { 1.0 } else { 0.0 }
    }

    /// The ratio with the interval that is wrong with this chance. The verdict is read off the
    /// interval, so that the two can never contradict each other.
    fn at(&self, level: f64) -> Tested {
        let half_width = self.sd * t_two_sided(1.0 - level, self.degrees_of_freedom);
        let ratio = Figure {
            value: self.value.exp(),
            low: (self.value - half_width).exp(),
            high: (self.value + half_width).exp(),
        };
        let verdict = match ratio {
            Figure { low, .. } if low > 1.0 => Verdict::Faster,
            Figure { high, .. } if high < 1.0 => Verdict::Slower,
            _ => Verdict::NoDifferenceShown,
        };
        Tested { ratio, resolution: half_width.exp_m1(), verdict }
    }
}

impl Tested {
    /// As a ratio that stands for so many workloads.
    fn over(self, workloads: usize) -> OverallRatio {
        let Self { ratio, resolution, verdict } = self;
        OverallRatio { ratio, resolution, verdict, workloads: workloads as u64 }
    }
}

/// Tests a family of differences, each with its weight.
fn test(family: &[(Difference, f64)]) -> Vec<Tested> {
    let hypotheses: Vec<Hypothesis> = family
        .iter()
        .map(|(difference, weight)| Hypothesis { p_value: difference.p_value(), weight: *weight })
        .collect();
    let adjusted = holm(&hypotheses, ERROR_RATE);
    let at = |((difference, _), adjusted): (&(Difference, f64), &Adjusted)| {
        difference.at(adjusted.level)
    };
    family.iter().zip(&adjusted).map(at).collect()
}
