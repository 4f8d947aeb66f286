//! How far predictions were off, against workloads that were drawn and measured for it.
//!
//! The errors are those of Chen and Patterson (1994, section 9): |predicted/measured - 1|, as
//! median and upper quantiles, once over all workloads and once without the bands around the
//! borders that the record had declared before anything was drawn; and how far the workloads are
//! from themselves when measured twice.

use std::collections::{BTreeMap, BTreeSet};

use ioscape_model::{
    Border, Errors, Figure, ModelName, Point, Repeatability, Role, Validation, ValidationPoint,
    Workload,
};
use ioscape_stats::quantile;

mod statistics;

pub use statistics::{median_interval, rank_correlation, weighted_median};

use crate::predict::Predictor;

/// A border's band begins at this many times its onset ...
const BAND_ONSET: f64 = 0.8;
/// ... and ends at this many times its capacity.
const BAND_CAPACITY: f64 = 2.0;
/// A prediction of nothing has no logarithm: bytes per second.
const THROUGHPUT_MIN: f64 = 1.0;
/// Confidence of the interval of a median error.
const CONFIDENCE: f64 = 0.9;

/// What the validation was about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trial {
    /// The record whose predictions are tried.
    pub record: String,
    /// Where the workloads came from.
    pub seed: u64,
    /// How many were drawn.
    pub workloads: u64,
}

/// A parameter that an error may depend on, with how it is read from a workload.
type Parameter = (&'static str, fn(&Workload) -> f64);

const PARAMETERS: [Parameter; 5] = [
    ("unique_bytes", |work| work.unique_bytes as f64),
    ("size_mean", |work| work.size_mean as f64),
    ("read_frac", |work| work.read_frac),
    ("seq_frac", |work| work.seq_frac),
    ("process_num", |work| f64::from(work.process_num)),
];

/// What every model says about a workload. A figure without width has no interval: only those of the
/// blend have one.
pub fn answers(predictor: &Predictor, work: &Workload) -> BTreeMap<ModelName, Figure> {
    let mut figures: BTreeMap<ModelName, Figure> = BTreeMap::new();
    let predictor = predictor.layer(work);
    for model in predictor.models() {
        if let Some(guess) = model.predict(work) {
            let value = guess.ln_throughput.exp();
            figures.insert(model.name(), Figure { value, low: value, high: value });
        }
    }
    let calibrated = predictor.predict("", work).throughput_bytes_per_s;
    figures.insert(ModelName::Blend, calibrated);
    figures
}

/// The validation workloads of a record with what `answer` says about each.
pub fn points(
    visits: &[Point],
    borders: &[Border],
    answer: impl Fn(&Workload) -> BTreeMap<ModelName, Figure>,
) -> Vec<ValidationPoint> {
    let mut points: Vec<ValidationPoint> = Vec::new();
    for visit in visits.iter().filter(|visit| visit.role == Role::Validation) {
        if let Some(known) = points.iter_mut().find(|known| known.workload == visit.workload) {
            known.measured_bytes_per_s.push(visit.throughput());
            continue;
        }
        points.push(ValidationPoint {
            workload: visit.workload.clone(),
            measured_bytes_per_s: vec![visit.throughput()],
            predicted_bytes_per_s: answer(&visit.workload),
            in_border_band: is_in_a_band(&visit.workload, borders),
        });
    }
    points
}

fn is_in_a_band(work: &Workload, borders: &[Border]) -> bool {
    let at = work.unique_bytes as f64;
    borders.iter().any(|border| {
        let band = &border.unique_bytes;
        (band.onset * BAND_ONSET..=band.capacity * BAND_CAPACITY).contains(&at)
    })
}

/// Scores every model on the workloads that were visited twice.
pub fn validation(trial: Trial, points: Vec<ValidationPoint>) -> Validation {
    let scored: Vec<&ValidationPoint> = points.iter().filter(|point| point.is_scored()).collect();
    let names = scored.iter().flat_map(|point| point.predicted_bytes_per_s.keys());
    let names: BTreeSet<ModelName> = names.copied().collect();
    let models = names.iter().map(|name| (*name, errors(&scored, *name)));
    let correlations = names.iter().map(|name| (*name, correlations(&scored, *name)));
    Validation {
        record: trial.record,
        seed: trial.seed,
        workloads: trial.workloads,
        models: models.collect(),
        rank_correlation: correlations.collect(),
        repeatability: repeatability(&scored),
        single_point_errors: BTreeMap::new(),
        points,
    }
}

/// One workload that a model answered for.
struct Answer<'a> {
    point: &'a ValidationPoint,
    figure: Figure,
    measured: f64,
}

impl Answer<'_> {
    fn error(&self) -> f64 {
        (self.figure.value / self.measured - 1.0).abs()
    }

    fn log_error(&self) -> f64 {
        (self.figure.value.max(THROUGHPUT_MIN) / self.measured).ln().abs()
    }

    /// High over low.
    fn width(&self) -> f64 {
        self.figure.high / self.figure.low
    }

    fn holds(&self) -> bool {
        (self.figure.low..=self.figure.high).contains(&self.measured)
    }
}

fn answered<'a>(scored: &[&'a ValidationPoint], model: ModelName) -> Vec<Answer<'a>> {
    let answer = |point: &&'a ValidationPoint| {
        let figure = *point.predicted_bytes_per_s.get(&model)?;
        Some(Answer { point, figure, measured: point.mean_bytes_per_s() })
    };
    scored.iter().filter_map(answer).collect()
}

fn errors(scored: &[&ValidationPoint], model: ModelName) -> Errors {
    let answers = answered(scored, model);
    let all = sorted(answers.iter().map(Answer::error).collect());
    let log_errors = sorted(answers.iter().map(Answer::log_error).collect());
    let widths = sorted(answers.iter().map(Answer::width).collect());
    let outside = answers.iter().filter(|answer| !answer.point.in_border_band);
    let outside = sorted(outside.map(Answer::error).collect());
    let weighted: Vec<(f64, f64)> = answers
        .iter()
        .map(|answer| (answer.error(), answer.point.weight_of_even_sizes()))
        .collect();
    let has_intervals = widths.last().is_some_and(|widest| *widest > 1.0);
    let held = answers.iter().filter(|answer| answer.holds()).count();
    let (median_low, median_high) = median_interval(&all, CONFIDENCE);
    Errors {
        workloads: answers.len() as u64,
        median: quantile(&all, 0.5),
        median_low,
        median_high,
        median_even_sizes: weighted_median(&weighted),
        p75: quantile(&all, 0.75),
        p90: quantile(&all, 0.9),
        log_median: quantile(&log_errors, 0.5),
        coverage: has_intervals.then(|| held as f64 / answers.len() as f64),
        interval_ratio_median: has_intervals.then(|| quantile(&widths, 0.5)),
        median_outside_bands: quantile(&outside, 0.5),
        dropped: (all.len() - outside.len()) as u64,
    }
}

/// Rank correlation of the errors with each parameter that took more than one value.
fn correlations(scored: &[&ValidationPoint], model: ModelName) -> BTreeMap<String, f64> {
    let answers = answered(scored, model);
    let errors: Vec<f64> = answers.iter().map(Answer::error).collect();
    let with = |(name, read): &Parameter| {
        let values: Vec<f64> = answers.iter().map(|answer| read(&answer.point.workload)).collect();
        Some(((*name).to_owned(), rank_correlation(&values, &errors)?))
    };
    PARAMETERS.iter().filter_map(with).collect()
}

fn repeatability(scored: &[&ValidationPoint]) -> Repeatability {
    let all = sorted(scored.iter().filter_map(|point| point.visits_apart()).collect());
    Repeatability { median: quantile(&all, 0.5), p90: quantile(&all, 0.9) }
}

fn sorted(mut values: Vec<f64>) -> Vec<f64> {
    values.sort_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests;
