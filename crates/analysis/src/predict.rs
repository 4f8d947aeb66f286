//! Predictions from a record: models fitted, intervals calibrated, workloads answered.
//!
//! A [`Predictor`] can be stored, and answers without the record and without a fit when it is read
//! back. The page of a record does that, with this code compiled to WebAssembly.

use std::sync::Arc;

use ioscape_model::units::three_digits;
use ioscape_model::{
    Access, Code, Figure, Layer, ModelLine, PredictedTime, Prediction, Range, Ranges, Record,
    Region, Severity, Warning, Words, Workload,
};
use ioscape_stats::NORMAL_90;
use serde::{Deserialize, Serialize};

use crate::model::blend::{Blend, Coverage};
use crate::model::gaussian::Gaussian;
use crate::model::orthogonal::Orthogonal;
use crate::model::product::Product;
use crate::model::{Guess, Model, Training};

mod calibration;
mod open_loop;
mod percentiles;
mod rates;
mod reach;
#[cfg(test)]
mod tests;

use calibration::Calibration;
use percentiles::Percentiles;
use rates::Rates;
use reach::Reach;

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
        "the record holds {found} workloads, too few to predict others from: run with a longer --budget, \
         or continue this run with --resume"
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

/// The models of a record, fitted: all that predictions rest on. Stored and read back it predicts
/// the same, to the last bit; the models that are only there to be compared with are left out.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Predictor {
    blend: Blend,
    product: Option<Product>,
    /// Models that are only there to be compared with.
    #[serde(skip)]
    others: Vec<Arc<dyn Model>>,
    calibration: Calibration,
    percentiles: Option<Percentiles>,
    rates: Option<Rates>,
    measured: Ranges,
    reach: Reach,
    regions: Vec<Region>,
    /// Whether cold reads were measured.
    knows_cold: bool,
    /// The other layer of a map that has two.
    device: Option<Box<Predictor>>,
    /// The map has such a layer, though it may have too few workloads to fit.
    has_device: bool,
}

impl Predictor {
    /// Fits all models and calibrates the intervals.
    ///
    /// # Errors
    /// Where there are too few samples.
    pub fn fit(mut training: Training) -> Result<Self, FitError> {
        // A run has not numbered its regions when it fits; a record has. Both are to fit alike.
        for region in &mut training.regions {
            (region.revision, region.layer) = (0, Layer::default());
        }
        let found = training.all().len();
        let (blend, held_out) = Blend::fit(&training).ok_or(FitError::TooFewSamples { found })?;
        let calibration = Calibration::from_held_out(&blend, &training, &held_out);
        let percentiles = Percentiles::learn(&blend, &training.all());
        let mut others: Vec<Arc<dyn Model>> = Vec::new();
        if let Some(orthogonal) = Orthogonal::fit(&training) {
            others.push(Arc::new(orthogonal));
        }
        let product = Product::fit(&training);
        let reach = Reach::from_training(&training, put_together_to(&blend, &training));
        let measured = measured(&training);
        let knows_cold = !training.cold.is_empty();
        let regions = training.regions;
        let unguided = Self {
            blend,
            product,
            others,
            calibration,
            percentiles,
            rates: None,
            measured,
            reach,
            regions,
            knows_cold,
            device: None,
            has_device: false,
        };
        let rates = Rates::learn(&unguided, &training.open);
        Ok(Self { rates, ..unguided })
    }

    /// The models of a record, of both its layers where it has two.
    ///
    /// # Errors
    /// Where there are too few samples.
    pub fn of_record(record: &Record) -> Result<Self, FitError> {
        let main = Self::fit(Training::from_record(record))?;
        Ok(match Training::of_device(record) {
            Some(device) => main.with_device(Self::fit(device).ok()),
            None => main,
        })
    }

    /// Adds the models of a device layer, which answer for direct requests; `None` where too few
    /// workloads of that layer were measured.
    #[must_use]
    pub fn with_device(self, device: Option<Self>) -> Self {
        Self { device: device.map(Box::new), has_device: true, ..self }
    }

    /// The models of the device layer, where these are those of the cache layer beside it.
    pub fn device(&self) -> Option<&Self> {
        self.device.as_deref()
    }

    /// The models of the layer that a workload belongs to.
    pub(crate) fn layer(&self, work: &Workload) -> &Self {
        self.other_layer(work).unwrap_or(self)
    }

    /// The models of the device layer, where a workload belongs to it and these are those of the cache layer.
    fn other_layer(&self, work: &Workload) -> Option<&Self> {
        self.device().filter(|_| work.access != self.access())
    }

    /// Adds a plain Gaussian process, fitted to the samples alone, to compare with.
    #[must_use]
    pub fn with_gaussian(mut self, training: &Training) -> Self {
        if let Some(gaussian) = Gaussian::fit(training) {
            self.others.push(Arc::new(gaussian));
        }
        self
    }

    /// All fitted models, the one that answers first.
    pub fn models(&self) -> Vec<&dyn Model> {
        let mut models: Vec<&dyn Model> = vec![&self.blend];
        models.extend(self.product.as_ref().map(|product| product as &dyn Model));
        models.extend(self.others.iter().map(AsRef::as_ref));
        models
    }

    /// The logarithm of the throughput, and how unsure the fit is of it.
    pub fn guess(&self, work: &Workload) -> Guess {
        self.layer(work).blend.guess(work)
    }

    /// Throughput and response time of one new measurement of a few seconds, with their 90 %
    /// intervals. Where requests come at a rate of their own, the latency from when they were due.
    pub fn predict(&self, name: &str, work: &Workload) -> Prediction {
        if let Some(other) = self.other_layer(work) {
            return other.predict(name, work);
        }
        let closed = work.closed_loop();
        let (outside, mut warnings) = self.outside(&closed);
        let mut throughput = self.throughput(&closed, outside);
        let mut response_time_s = self.response_time(&closed, throughput);
        if work.rate > 0.0 {
            let open = self.open_loop(work);
            let asked = work.rate * work.size_mean as f64;
            if work.rate > open.most_per_s {
                warnings.push(too_fast(open.most_per_s));
            } else {
                throughput = Figure { value: asked, low: asked.min(throughput.low), high: asked };
            }
            response_time_s = open.latency_s;
        }
        let product = self.product.as_ref().and_then(|product| product.predict(&closed));
        let product = product.unwrap_or_else(|| self.guess(&closed));
        Prediction {
            name: name.to_owned(),
            workload: work.clone(),
            region: self.region(work),
            in_range: warnings.is_empty(),
            put_together: self.is_put_together(work),
            throughput_bytes_per_s: throughput,
            response_time_s,
            highest_rate_per_s: None,
            product_throughput_bytes_per_s: product.ln_throughput.exp(),
            warnings,
        }
    }

    /// Throughput of a closed loop; `outside` is its distance from what was visited, in logarithms.
    fn throughput(&self, work: &Workload, outside: f64) -> Figure {
        let guess = self.blend.guess(work);
        let half_width = self.calibration.half_width(&self.blend, work) + WIDER_OUTSIDE * outside;
        let value = guess.ln_throughput.exp();
        Figure { value, low: value * (-half_width).exp(), high: value * half_width.exp() }
    }

    /// Response time in a closed loop of this throughput.
    fn response_time(&self, work: &Workload, throughput: Figure) -> PredictedTime {
        // Little's law: requests in flight over requests per second.
        let in_flight_bytes = work.size_mean as f64 * work.in_flight();
        let mean = Figure {
            value: in_flight_bytes / throughput.value,
            low: in_flight_bytes / throughput.high,
            high: in_flight_bytes / throughput.low,
        };
        let alone = PredictedTime { mean, ..PredictedTime::default() };
        let beside = |known: &Percentiles| known.beside(&self.blend, work, mean);
        self.percentiles.as_ref().map_or(alone, beside)
    }

    /// How far one new measurement may be from the prediction: standard deviation of the logarithm,
    /// from the calibrated interval.
    pub fn prediction_sd(&self, work: &Workload) -> f64 {
        let layer = self.layer(work);
        let Figure { low, high, .. } = layer.throughput(work, layer.outside(work).0);
        (high / low).ln() / (2.0 * NORMAL_90)
    }

    /// Half of the 90 % interval for another measurement within this run, as a logarithm: without drift,
    /// the page cache's state and other sizes of caches, which more visits cannot lower.
    pub fn half_width_here(&self, work: &Workload) -> f64 {
        let layer = self.layer(work);
        layer.calibration.half_width_here(&layer.blend, work)
    }

    /// Whether the workload lies inside the box that was measured.
    pub fn is_in_range(&self, work: &Workload) -> bool {
        self.layer(work).outside(work).1.is_empty()
    }

    /// Whether a workload touches more data than any visit of a warm cache did, and the answer is put
    /// together from cold reads and from what the device layer writes.
    pub fn is_put_together(&self, work: &Workload) -> bool {
        self.layer(work).blend.is_put_together(work)
    }

    /// Data up to which answers are put together, bytes; none where the map reaches as far itself.
    pub fn put_together_to(&self) -> Option<f64> {
        self.reach.put_together_bytes()
    }

    fn region(&self, work: &Workload) -> String {
        let unique = work.unique_bytes as f64;
        let inside = self.regions.iter().find(|region| unique < region.unique_bytes.to);
        inside.or(self.regions.last()).map_or_else(String::new, |region| region.name.to_string())
    }

    /// The box that was measured.
    pub fn measured(&self) -> &Ranges {
        &self.measured
    }

    /// How far outside what was visited, in logarithms, and what to say about it.
    fn outside(&self, work: &Workload) -> (f64, Vec<Warning>) {
        let mut outside = 0.0;
        let mut warnings = Vec::new();
        for (key, over, Range { min, max }) in self.reach.beyond(work) {
            outside += over.ln();
            if over > RANGE_SLACK {
                warnings.push(out_of_range(outside_range(key, min, max)));
            }
        }
        let other_access = (work.access != self.access()).then_some("access");
        let is_known = |key: &&str| *key == "state" && self.knows_cold;
        for key in work.unpredicted_keys().filter(|key| !is_known(key)).chain(other_access) {
            outside += 1.0;
            warnings.push(out_of_range(format!("this record was measured with one {key} only")));
        }
        for (key, far) in self.beyond_coverage(work) {
            outside += far;
            warnings.push(out_of_range(format!("{key} is outside the values that were measured")));
        }
        (outside, warnings)
    }

    /// How far several requests in flight and fdatasyncs were measured.
    pub fn coverage(&self) -> Coverage {
        self.blend.coverage()
    }

    /// Whether these models are of buffered or of direct requests.
    pub fn access(&self) -> Access {
        self.measured.access
    }

    /// Why a workload has a key that the record knows nothing of, where it has one.
    pub fn refuses(&self, work: &Workload) -> Option<String> {
        if let Some(other) = self.other_layer(work) {
            return other.refuses(work);
        }
        let Coverage { depth, fsync_every } = self.coverage();
        if work.access != self.access() {
            let (is, other) = match self.access() {
                Access::Buffered => ("buffered", "direct"),
                Access::Direct => ("direct", "buffered"),
            };
            return Some(if self.has_device {
                format!(
                    "too few workloads of access={other} were measured to predict others from: give \
                     `ioscape run` a longer --budget, or --access {other} for all of it"
                )
            } else {
                format!(
                    "this is a map of {is} requests and says nothing of access={other}: \
                     `ioscape run --access {other}` makes one that does"
                )
            });
        }
        let unknown = [
            (work.depth > 1 && depth.max == 1, "depth above 1"),
            (work.fsync_every > 0 && fsync_every.max == 0, "fsync_every"),
        ];
        let (_, what) = unknown.into_iter().find(|(is_unknown, _)| *is_unknown)?;
        Some(format!(
            "{what} was not measured here: give `ioscape run` a longer --budget, or measure the \
             workload itself with `ioscape measure`"
        ))
    }

    /// Keys beyond the five parameters whose values lie outside of what was measured, and how far
    /// outside, in logarithms.
    fn beyond_coverage(&self, work: &Workload) -> Vec<(&'static str, f64)> {
        let Coverage { depth, fsync_every } = self.coverage();
        let far = |value: u32, Range { min, max }: Range| {
            if max == 0 {
                return 1.0;
            }
            let value = f64::from(value);
            (value / max as f64).max(min as f64 / value).max(1.0).ln()
        };
        let mut beyond = vec![("depth", far(work.depth, depth))];
        if work.fsync_every > 0 {
            beyond.push(("fsync_every", far(work.fsync_every, fsync_every)));
        }
        beyond.retain(|(_, far)| *far > RANGE_SLACK.ln());
        beyond
    }

    /// Predicts for this system with caches of other sizes, by the blend. The other models know nothing
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
        let factors =
            [factor(caches.read_bytes, read, "read")?, factor(caches.write_bytes, write, "write")?];
        Ok(Self { blend: self.blend.with_caches(factors), ..self.clone() })
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
            name: model.name(),
            parameters: model.parameters(),
            cross_validated_error: None,
            interval_factor: None,
            layer: Layer::of_access(self.access()),
            revision,
        };
        let mut lines: Vec<ModelLine> = self.models().into_iter().map(line).collect();
        lines[0].cross_validated_error = Some(self.calibration.error_median());
        lines[0].interval_factor = Some(self.calibration.factor());
        lines
    }
}

/// The box that was measured: the one that was to be explored, as far as it was.
fn measured(training: &Training) -> Ranges {
    let unique_bytes = training.ranges.unique_bytes;
    let touched = training.samples.iter().map(|sample| sample.workload.unique_bytes);
    let max = touched.max().unwrap_or(0).max(unique_bytes.min);
    Ranges { unique_bytes: Range { max, ..unique_bytes }, ..training.ranges }
}

/// How far reads and writes are answered for beyond the visits, bytes: to the span of the cold reads at
/// least, and never further than the target's free space.
fn put_together_to(blend: &Blend, training: &Training) -> [f64; 2] {
    let span = training.cold.iter().map(|sample| sample.workload.unique_bytes as f64);
    let span = span.fold(0.0, f64::max);
    let free = 2.0 * training.hints.room_bytes as f64; // test data may fill half of it
    let bounded = |to: f64| if free > 0.0 { to.max(span).min(free) } else { to.max(span) };
    blend.put_together_to().map(|to| if to > 0.0 { bounded(to) } else { 0.0 })
}

fn too_fast(most_per_s: f64) -> Warning {
    let text = Words::new(
        "at most {most} requests per second are served: at the rate asked for the queue grows without \
         end, so the latency shown is that at {most}",
    )
    .name("most", three_digits(most_per_s))
    .figure("most_per_s", most_per_s);
    let remedy = "ask for a lower rate, or for more requests in flight by depth or process_num";
    Warning::new(Code::OutOfRange, text, remedy).with_severity(Severity::Warning)
}

/// The range of a key that was measured; its ends are figures named after the key.
fn outside_range(key: &str, min: u64, max: u64) -> Words {
    Words::new("{key} is outside the {min} to {max} that were measured")
        .name("key", key)
        .name("min", min)
        .name("max", max)
        .figure(&format!("min_{key}"), min as f64)
        .figure(&format!("max_{key}"), max as f64)
}

fn out_of_range(text: impl Into<Words>) -> Warning {
    let remedy = "measure it: `ioscape measure`; or let a run reach that far (--unique-max, a longer --budget)";
    Warning::new(Code::OutOfRange, text, remedy).with_severity(Severity::Warning)
}
