//! Predictions from a record: models fitted, intervals calibrated, workloads answered.

use std::sync::Arc;

use ioscape_model::{
    Access, Code, Figure, Layout, ModelLine, Prediction, SeqScope, Severity, SizeDist, State,
    Warning, Workload,
};

use crate::model::blend::Blend;
use crate::model::gaussian::Gaussian;
use crate::model::orthogonal::Orthogonal;
use crate::model::product::Product;
use crate::model::{Guess, Model, Training};

mod calibration;
#[cfg(test)]
mod tests;

use calibration::Calibration;

/// A workload may lie outside the measured box by this factor and still be in range.
const RANGE_SLACK: f64 = 1.2;
/// Half-width of the interval of a workload out of range grows with its distance from the box:
/// by this much per unit of logarithm.
const WIDER_OUTSIDE: f64 = 0.5;

/// Why a record does not answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FitError {
    /// Too few workloads were measured.
    #[error(
        "the record holds {found} workloads, too few to predict others from: give the run a \
         longer --budget, or go on with it by --resume"
    )]
    TooFewSamples {
        /// How many there are.
        found: usize,
    },
    /// A cache that the model does not know.
    #[error("the map shows no {0} border, so there is no such cache to change: leave it out")]
    NoSuchCache(&'static str),
}

/// Cache sizes that are supposed instead of those found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Caches {
    /// The cache that reads find data in, bytes.
    pub read_bytes: Option<f64>,
    /// Data that can be overwritten before storage is waited for, bytes.
    pub write_bytes: Option<f64>,
}

/// The models of a record, fitted.
#[derive(Debug)]
pub struct Predictor {
    training: Training,
    blend: Blend,
    others: Vec<Arc<dyn Model>>,
    calibration: Calibration,
}

impl Predictor {
    /// Fits all models and calibrates the intervals.
    ///
    /// # Errors
    /// Where there are too few samples.
    pub fn fit(training: Training) -> Result<Self, FitError> {
        let found = training.samples.len();
        let (blend, held_out) = Blend::fit(&training).ok_or(FitError::TooFewSamples { found })?;
        let calibration = Calibration::of(&blend, &training, &held_out);
        let mut others: Vec<Arc<dyn Model>> = Vec::new();
        if let Some(product) = Product::fit(&training) {
            others.push(Arc::new(product));
        }
        if let Some(orthogonal) = Orthogonal::fit(&training) {
            others.push(Arc::new(orthogonal));
        }
        Ok(Self { training, blend, others, calibration })
    }

    /// The same, and a plain Gaussian process from the same samples: to be held against.
    #[must_use]
    pub fn with_gaussian(mut self) -> Self {
        if let Some(gaussian) = Gaussian::fit(&self.training) {
            self.others.push(Arc::new(gaussian));
        }
        self
    }

    /// All fitted models, the one that answers first.
    pub fn models(&self) -> Vec<&dyn Model> {
        let mut models: Vec<&dyn Model> = vec![&self.blend];
        models.extend(self.others.iter().map(AsRef::as_ref));
        models
    }

    /// The logarithm of the throughput, and how unsure the fit is of it.
    pub fn guess(&self, work: &Workload) -> Guess {
        self.blend.guess(work)
    }

    /// Throughput of one new measurement of a few seconds, with its 90 % interval.
    pub fn predict(&self, name: &str, work: &Workload) -> Prediction {
        let guess = self.guess(work);
        let (outside, warnings) = self.outside(work);
        let half_width =
            self.calibration.half_width(&guess, self.blend.noise(work)) + WIDER_OUTSIDE * outside;
        let value = guess.ln_throughput.exp();
        let throughput =
            Figure { value, low: value * (-half_width).exp(), high: value * half_width.exp() };
        // Little's law: requests in flight over requests per second.
        let in_flight_bytes = work.size_mean as f64 * in_flight(work);
        let response_time_s = Figure {
            value: in_flight_bytes / throughput.value,
            low: in_flight_bytes / throughput.high,
            high: in_flight_bytes / throughput.low,
        };
        let product = self.others.iter().find(|model| model.name() == "product");
        let product = product.and_then(|model| model.predict(work)).unwrap_or(guess);
        Prediction {
            name: name.to_owned(),
            workload: work.clone(),
            region: self.region(work),
            in_range: warnings.is_empty(),
            throughput_bytes_per_s: throughput,
            response_time_s,
            product_throughput_bytes_per_s: product.ln_throughput.exp(),
            warnings,
        }
    }

    /// How far one new measurement may be from the prediction: standard deviation of the logarithm,
    /// from the calibrated interval.
    pub fn prediction_sd(&self, work: &Workload) -> f64 {
        let Figure { low, high, .. } = self.predict("", work).throughput_bytes_per_s;
        (high / low).ln() / (2.0 * calibration::SCORE_USUAL)
    }

    /// Whether the workload lies inside the box that was measured.
    pub fn is_in_range(&self, work: &Workload) -> bool {
        self.outside(work).1.is_empty()
    }

    fn region(&self, work: &Workload) -> String {
        let unique = work.unique_bytes as f64;
        let regions = &self.training.regions;
        let inside = regions.iter().find(|region| unique < region.unique_bytes.to);
        inside.or(regions.last()).map_or_else(String::new, |region| region.name.clone())
    }

    /// How far outside the box, in logarithms, and what to say about it.
    fn outside(&self, work: &Workload) -> (f64, Vec<Warning>) {
        let ranges = &self.training.ranges;
        let reach = self.training.samples.iter().map(|sample| sample.workload.unique_bytes);
        let reach = reach.max().unwrap_or(0).max(ranges.unique_bytes.min);
        let mut outside = 0.0;
        let mut warnings = Vec::new();
        for (key, value, min, max) in [
            ("unique_bytes", work.unique_bytes, ranges.unique_bytes.min, reach),
            ("size_mean", work.size_mean, ranges.size_mean.min, ranges.size_mean.max),
            (
                "process_num",
                u64::from(work.process_num),
                ranges.process_num.min,
                ranges.process_num.max,
            ),
        ] {
            let value = value as f64;
            let over = (value / max as f64).max(min as f64 / value).max(1.0);
            outside += over.ln();
            if over > RANGE_SLACK {
                warnings.push(out_of_range(format!(
                    "{key} is outside the {min} to {max} that were measured"
                )));
            }
        }
        let usual = Workload::default();
        let differs = [
            (work.size_dist != SizeDist::Normal, "size_dist"),
            (work.seq_scope != SeqScope::Any, "seq_scope"),
            (work.layout != Layout::Private, "layout"),
            (work.align != usual.align, "align"),
            (work.access != Access::Buffered, "access"),
            (work.depth != 1, "depth"),
            (work.fsync_every != 0, "fsync_every"),
            (work.rate > 0.0, "rate"),
            (work.state != State::Warm, "state"),
        ];
        for (_, key) in differs.into_iter().filter(|(differs, _)| *differs) {
            outside += 1.0;
            warnings.push(out_of_range(format!("the record holds no other {key} than the usual")));
        }
        (outside, warnings)
    }

    /// The same system with other caches: what the blend says of it. The other models know nothing
    /// of caches and say what they said.
    ///
    /// # Errors
    /// Where the map shows no border of that kind.
    pub fn with_caches(&self, caches: &Caches) -> Result<Self, FitError> {
        let (read, write) = self.blend.caches_bytes();
        let factor =
            |wanted: Option<f64>, found: Option<f64>, name: &'static str| match (wanted, found) {
                (None, _) => Ok(1.0),
                (Some(wanted), Some(found)) => Ok(wanted / found),
                (Some(_), None) => Err(FitError::NoSuchCache(name)),
            };
        let read_factor = factor(caches.read_bytes, read, "read")?;
        let write_factor = factor(caches.write_bytes, write, "write")?;
        Ok(Self {
            training: self.training.clone(),
            blend: self.blend.with_caches(read_factor, write_factor),
            others: self.others.clone(),
            calibration: self.calibration.clone(),
        })
    }

    /// The caches found, as [`Self::with_caches`] takes them.
    pub fn caches(&self) -> Caches {
        let (read_bytes, write_bytes) = self.blend.caches_bytes();
        Caches { read_bytes, write_bytes }
    }

    /// What the record says about the system, in sentences drawn from the blend's parameters.
    pub fn sentences(&self) -> Vec<String> {
        self.blend.sentences()
    }

    /// The fitted models as lines of a record.
    pub fn model_lines(&self, revision: u32) -> Vec<ModelLine> {
        let line = |model: &dyn Model| ModelLine {
            name: model.name().to_owned(),
            parameters: model.parameters(),
            cross_validated_error: None,
            interval_factor: None,
            revision,
        };
        let mut lines: Vec<ModelLine> = self.models().into_iter().map(line).collect();
        lines[0].cross_validated_error = Some(self.calibration.error_median());
        lines[0].interval_factor = Some(self.calibration.factor());
        lines
    }
}

fn out_of_range(text: String) -> Warning {
    let remedy = "measure it: `ioscape measure`; or let a run reach that far (--unique-max, a longer --budget)";
    Warning::new(Code::OutOfRange, text, remedy).with_severity(Severity::Warning)
}

/// Requests in flight: through the page cache each process waits for one at a time.
fn in_flight(work: &Workload) -> f64 {
    let depth = if work.access == Access::Direct { work.depth } else { 1 };
    f64::from(work.process_num) * f64::from(depth)
}
