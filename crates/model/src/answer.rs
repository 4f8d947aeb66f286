//! What is said about workloads that were not measured: predictions, comparisons of systems, and
//! how far predictions were off. Plain documents, as `--json` prints them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Curve, ElementName, Figure, Interval, ModelName, RegionName, RegionUniqueBytes, Want, Warning,
    Workload, point::finite,
};

mod caches;
mod ranking;
mod validation;

pub use caches::{CacheAnswer, CachePoint, MemoryUse, TraceShare};
pub use validation::Dependence;

/// A predicted response time: its mean, and percentiles where the record knows any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PredictedTime {
    /// Arithmetic mean.
    #[serde(flatten)]
    pub mean: Figure,
    /// Median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<Figure>,
    /// 99th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<Figure>,
    /// 99.9th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999: Option<Figure>,
}

/// What a workload that was not measured would get.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Prediction {
    /// A named workload's name; the literal otherwise.
    pub name: String,
    /// The workload.
    pub workload: Workload,
    /// The region its `unique_bytes` falls in.
    pub region: String,
    /// Whether it lies inside the box that was measured.
    pub in_range: bool,
    /// Whether it touches more data than the map did with a warm cache, and the answer is put together
    /// from the cache's size, cold reads and what the device layer writes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub put_together: bool,
    /// Absorbed throughput of one new measurement of a few seconds.
    pub throughput_bytes_per_s: Figure,
    /// Response time per request, closed loop.
    pub response_time_s: PredictedTime,
    /// The highest rate that keeps the 99th percentile asked for, requests per second; only where
    /// one was asked for and some rate keeps it. The other figures are those at this rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest_rate_per_s: Option<Figure>,
    /// What the product of single-parameter curves says (Chen and Patterson 1994, section 9).
    #[serde(serialize_with = "finite")]
    pub product_throughput_bytes_per_s: f64,
    /// What is doubtful about it.
    pub warnings: Vec<Warning>,
}

/// How long an application would take, as `predict --app --json` prints it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationTime {
    /// The model's file.
    pub app: String,
    /// Run time, seconds, with its 90 % interval for one run.
    pub seconds: Figure,
    /// The largest parts of it, at most five.
    pub largest: Vec<LargestTerm>,
    /// Share of the calls that no element of the record prices.
    #[serde(serialize_with = "finite")]
    pub unclassified_fraction: f64,
    /// Doubts about it, one sentence each.
    pub warnings: Vec<String>,
}

/// A part of an application's run time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LargestTerm {
    /// An element's word, or `work`: processor time between calls.
    pub category: String,
    /// How many operations.
    pub count: u64,
    /// Their time on the critical path, seconds.
    #[serde(serialize_with = "finite")]
    pub seconds: f64,
}

/// Systems ranked for an application, as `compare --app --json` prints them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ApplicationRanking {
    /// The model's file.
    pub app: String,
    /// The systems, fastest first.
    pub systems: Vec<RankedSystem>,
}

/// A system in a ranking.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankedSystem {
    /// The record's file.
    pub record: String,
    /// Run time, seconds, with its 90 % interval for one run.
    pub seconds: Figure,
    /// `fastest`, `slower`, or `alike`: not to be told from the fastest.
    pub verdict: String,
    /// Its price, in the currency of `--price`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
    /// Probability that one run takes longer than `--deadline`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_risk: Option<f64>,
}

/// What `predict --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Predictions {
    /// The model that answered.
    pub model: ModelName,
    /// In the order asked.
    pub predictions: Vec<Prediction>,
    /// What is doubtful about the map that all of them rest on.
    #[serde(default)]
    pub warnings: Vec<Warning>,
}

/// What comparing two systems on a workload says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Faster than the baseline, beyond doubt.
    Faster,
    /// Slower than the baseline, beyond doubt.
    Slower,
    /// The interval holds 1.
    NoDifferenceShown,
    /// The interval holds 1, and it is too wide to have shown a difference as small as was asked for.
    Inconclusive,
    /// One of the two was not measured there.
    OutOfRange,
}

/// One workload on a system, against the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The system's record.
    pub record: String,
    /// A named workload's name; the literal otherwise.
    pub name: String,
    /// The workload.
    pub workload: Workload,
    /// The baseline's predicted throughput.
    #[serde(serialize_with = "finite")]
    pub baseline_bytes_per_s: f64,
    /// The system's.
    #[serde(serialize_with = "finite")]
    pub throughput_bytes_per_s: f64,
    /// Throughput over the baseline's.
    pub ratio: Figure,
    /// The smallest difference that would have been shown, as a fraction: 0.05 for × 1.05 or
    /// × 1/1.05. It says nothing where the verdict is `out_of_range`.
    #[serde(default, serialize_with = "finite")]
    pub resolution: f64,
    /// What that says.
    pub verdict: Verdict,
    /// Measured in alternation: pairs of visits that it rests on; null for predictions.
    #[serde(default)]
    pub pairs: Option<u64>,
}

/// What many verdicts say together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overall {
    /// Faster somewhere, nowhere slower.
    Faster,
    /// Slower somewhere, nowhere faster.
    Slower,
    /// Faster here, slower there.
    Mixed,
    /// No interval leaves 1 out.
    NoDifferenceShown,
    /// No interval leaves 1 out, and on some workload a difference as small as was asked for could
    /// not have been shown.
    Inconclusive,
    /// None of the workloads could be compared.
    OutOfRange,
}

/// A ratio that stands for several workloads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OverallRatio {
    /// Throughput over the baseline's.
    pub ratio: Figure,
    /// The smallest difference that would have been shown, as a fraction.
    #[serde(default, serialize_with = "finite")]
    pub resolution: f64,
    /// What that says.
    pub verdict: Verdict,
    /// How many workloads it rests on.
    pub workloads: u64,
}

/// A cache in two systems: where a curve falls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheComparison {
    /// On which curve.
    pub curve: Curve,
    /// The baseline's capacity, bytes, 95 %; null where it showed no such border.
    pub baseline_capacity_bytes: Option<Interval>,
    /// The other's.
    pub capacity_bytes: Option<Interval>,
    /// Capacity over the baseline's, 95 %.
    pub ratio: Option<Figure>,
}

/// A region of one system, looked at where its family was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionLevel {
    /// Where it lies.
    pub unique_bytes: RegionUniqueBytes,
    /// Throughput at its focal point, 95 %.
    pub throughput_bytes_per_s: Figure,
}

/// A region that two systems may both have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RegionComparison {
    /// What it is.
    pub name: RegionName,
    /// In the baseline; null where it has no such region.
    pub baseline: Option<RegionLevel>,
    /// In the other.
    pub other: Option<RegionLevel>,
    /// Throughput over the baseline's, each at its own focal point, 95 %.
    pub ratio: Option<Figure>,
}

/// An element of the system vector in two systems.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ElementComparison {
    /// Which.
    pub name: ElementName,
    /// The baseline's time of one operation, seconds.
    #[serde(serialize_with = "finite")]
    pub baseline_s: f64,
    /// The other's.
    #[serde(serialize_with = "finite")]
    pub time_s: f64,
    /// Speed over the baseline's: more than 1 is faster.
    pub ratio: Figure,
    /// Faster or slower than the baseline, or neither shown; `inconclusive` where a warning stands
    /// beside the element in either record.
    pub verdict: Verdict,
}

/// Whether a system is worth its price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Worth {
    /// Throughput grows by more than the price.
    WorthIt,
    /// By less.
    NotWorthIt,
    /// The interval holds the ratio of the prices.
    CannotBeSaid,
}

/// A system's price against the baseline's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PriceComparison {
    /// Price over the baseline's.
    pub price_ratio: f64,
    /// Whether the geometric mean of the throughput follows.
    pub worth: Worth,
    /// Whether each workload's does, for those in range.
    pub workloads: BTreeMap<String, Worth>,
}

/// A system as a whole, against the baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SystemComparison {
    /// The system's record.
    pub record: String,
    /// What everything says together.
    pub verdict: Overall,
    /// Over the workloads in range, predicted; null where fewer than two are.
    pub geometric_mean: Option<OverallRatio>,
    /// Median over workloads that both records measured, without any model; null where there are
    /// too few.
    pub measured: Option<OverallRatio>,
    /// Caches side by side.
    pub caches: Vec<CacheComparison>,
    /// Regions side by side.
    pub regions: Vec<RegionComparison>,
    /// Elements that both system vectors have; empty where a record has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elements: Vec<ElementComparison>,
    /// What is slower than the baseline by more than the tolerance, beyond doubt.
    pub beyond_tolerance: Vec<String>,
    /// Where prices were given.
    pub price: Option<PriceComparison>,
}

/// What a system gives for its price.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PricePerformance {
    /// The system's record.
    pub record: String,
    /// Its price, in the currency that was meant.
    pub price: f64,
    /// Geometric mean of the workloads that are in range everywhere, MB/s per unit of currency.
    pub mb_per_s_per_unit: Option<f64>,
    /// Workload by workload, for those.
    pub workloads: BTreeMap<String, f64>,
}

/// What is doubtful about a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RecordWarnings {
    /// The record.
    pub record: String,
    /// Its doubts, the gravest first.
    pub warnings: Vec<Warning>,
}

/// A workload that was asked for and not compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotCompared {
    /// A named workload's name; the literal otherwise.
    pub name: String,
    /// The workload.
    pub workload: Workload,
    /// What there was no more of.
    pub want_of: Want,
}

/// What `compare --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparisons {
    /// The baseline's record.
    pub baseline: String,
    /// By record, then by workload, in the order asked.
    pub comparisons: Vec<Comparison>,
    /// Workloads that were to be measured in alternation and were dropped.
    #[serde(default)]
    pub dropped: Vec<NotCompared>,
    /// By record, the baseline first.
    #[serde(default)]
    pub warnings: Vec<RecordWarnings>,
    /// The largest resolution that was accepted (`--require-resolution`).
    #[serde(default)]
    pub required_resolution: Option<f64>,
    /// By record.
    pub systems: Vec<SystemComparison>,
    /// By record, the baseline first; empty without prices.
    pub prices: Vec<PricePerformance>,
    /// All of it together.
    pub verdict: Overall,
}

/// Errors of one model over a set of workloads, as fractions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Errors {
    /// How many workloads the model answered for.
    #[serde(default)]
    pub workloads: u64,
    /// Median of |predicted/measured - 1|.
    pub median: f64,
    /// Lower end of the median's 90 % interval: which workloads were drawn is chance.
    #[serde(default)]
    pub median_low: f64,
    /// Its upper end.
    #[serde(default)]
    pub median_high: f64,
    /// The median as it would be had sizes been drawn evenly and not log-evenly.
    #[serde(default)]
    pub median_even_sizes: f64,
    /// Its 75th percentile.
    pub p75: f64,
    /// Its 90th percentile.
    pub p90: f64,
    /// Median of |ln(predicted/measured)|, which is symmetric.
    pub log_median: f64,
    /// Share of the workloads whose measurement lies in the 90 % interval; null for a model
    /// without intervals.
    pub coverage: Option<f64>,
    /// Median of high over low; null for a model without intervals.
    pub interval_ratio_median: Option<f64>,
    /// Median outside the border bands that the record declared beforehand.
    pub median_outside_bands: f64,
    /// How many workloads lie inside those bands.
    pub dropped: u64,
}

/// How far the same workloads are apart when measured twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repeatability {
    /// Median of |first/second - 1|.
    pub median: f64,
    /// Its 90th percentile.
    pub p90: f64,
}

/// One validation workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValidationPoint {
    /// The workload.
    pub workload: Workload,
    /// Throughput of its visits, bytes per second.
    pub measured_bytes_per_s: Vec<f64>,
    /// What each model said beforehand; models that had nothing to say are missing.
    pub predicted_bytes_per_s: BTreeMap<ModelName, Figure>,
    /// Whether it lies in a border band that the record declared beforehand.
    pub in_border_band: bool,
}

/// What `validate --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Validation {
    /// The record whose predictions were tried.
    #[serde(default)]
    pub record: String,
    /// Where the workloads came from.
    pub seed: u64,
    /// How many were drawn; fewer were scored where it was interrupted.
    #[serde(default)]
    pub workloads: u64,
    /// Errors by model.
    pub models: BTreeMap<ModelName, Errors>,
    /// By model and parameter: rank correlation (Spearman) of the error with the parameter.
    #[serde(default)]
    pub rank_correlation: BTreeMap<ModelName, BTreeMap<String, f64>>,
    /// A perfect prediction would be off by half of it.
    pub repeatability: Repeatability,
    /// Median of |predicted/measured − 1| over all workloads, where each classic benchmark's one
    /// throughput is the prediction (Chen and Patterson 1994, section 9); empty without `--suite`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub single_point_errors: BTreeMap<String, f64>,
    /// All that were measured, in the order of their first visit; none was removed. Those visited
    /// twice are scored.
    pub points: Vec<ValidationPoint>,
}
