//! The lines of a record: one JSON object each, told apart by `kind`.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Contrast, DeviceLayer, Element, End, Forecast, Hints, Host, Hosts, Interval, Layer, Limits,
    Point, Ranges, Region, Replay, ResponseTime, Rules, Score, SheetFigures, SheetLine, Suite,
    Sustained, Target, Trial, Warning, Workload,
};

/// The record format this build writes.
pub const FORMAT_VERSION: u32 = 1;

/// One line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[expect(
    clippy::large_enum_variant,
    reason = "a line is written or read once, and most are points"
)]
pub enum Line {
    /// The first line: who, what, where, how.
    Header(Header),
    /// One visit to one workload.
    Point(Point),
    /// One workload, pooled over its visits.
    Estimate(Estimate),
    /// A border between two regions.
    Border(Border),
    /// A region.
    Region(Region),
    /// A fitted model.
    Model(ModelLine),
    /// A sentence with its figures.
    Finding(Finding),
    /// Closes a revision.
    Map(Map),
    /// A doubt about the run as a whole.
    Warning(Warning),
    /// What one kind of operation takes.
    Element(Element),
    /// Writing for long.
    Sustained(Sustained),
    /// What a suite runs.
    Suite(Suite),
    /// One repetition of a classic benchmark.
    Trial(Trial),
    /// A figure of a classic benchmark, pooled over its trials.
    Score(Score),
    /// How a figure differs between two targets.
    Contrast(Contrast),
    /// One replay of a trace or model.
    Replay(Replay),
    /// The run went on after an interruption.
    Resumed(Resumed),
    /// The last line.
    End(End),
}

/// The program that wrote the record.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// `ioscape`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How it was built: commit and profile.
    pub build: String,
}

/// How the points are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// Border search, families, space-filling points (the default).
    Blend,
    /// Chen and Patterson's plan (1994, section 8).
    Paper,
    /// Their first attempt (section 7).
    Global75,
    /// The grid they held their method against (Fig. 14): 162 points.
    Orthogonal,
    /// No exploring: one workload, asked for by hand.
    Measure,
    /// Random workloads, to hold the predictions of another record against.
    Validate,
    /// Classic benchmarks: no workload of ours.
    Suite,
    /// One side of two that were measured in alternation.
    Compare,
    /// The system vector alone: no workload.
    Vector,
    /// A trace, or load made from an application's model: `ioscape replay`.
    Replay,
}

impl Method {
    /// Whether it explores: its record holds a map, and can be continued.
    pub fn is_map(self) -> bool {
        matches!(self, Self::Blend | Self::Paper | Self::Global75 | Self::Orthogonal)
    }
}

/// How a record came to be made, whatever it measures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Origin {
    /// The program.
    pub tool: Tool,
    /// What was typed.
    pub command_line: Vec<String>,
    /// Wall-clock time at the start, UTC.
    pub start_time: String,
    /// Names the run in file names and groups.
    pub run_id: String,
    /// Where all chance comes from.
    pub seed: u64,
}

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Header {
    /// Version of the record format.
    pub format_version: u32,
    /// The program.
    pub tool: Tool,
    /// Names this run in file names and groups.
    pub run_id: String,
    /// What was typed.
    pub command_line: Vec<String>,
    /// Where all chance comes from.
    pub seed: u64,
    /// Wall-clock time at the start, UTC.
    pub start_time: String,
    /// The machine.
    pub host: Host,
    /// Where the ranks were, where there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hosts: Option<Hosts>,
    /// What is measured.
    pub target: Target,
    /// How the points are chosen.
    pub method: Method,
    /// How a point is measured.
    pub rules: Rules,
    /// Where the map extends.
    pub ranges: Ranges,
    /// `--budget`, seconds.
    pub budget_s: f64,
    /// What else the run keeps to.
    #[serde(default)]
    pub limits: Limits,
    /// What was known about the target beforehand.
    #[serde(default)]
    pub hints: Hints,
    /// Workloads that the map was asked to visit (`run -w`), besides those with a name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked: Vec<Workload>,
    /// What the forecast said: see `Forecast`.
    pub forecast: Option<Forecast>,
    /// The lines of the data sheet that were to be measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datasheet: Vec<SheetLine>,
    /// The device layer beside the one of `ranges`, where the map has two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceLayer>,
    /// Whether the data sheet was all that was asked for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_quick: bool,
    /// Whether nothing was to be written: only reads were measured.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_read_only: bool,
}

impl Header {
    /// A header with brief rules, the usual ranges of the machine, and neither budget nor limits,
    /// hints or forecast.
    pub fn new(origin: Origin, method: Method, host: Host, target: Target) -> Self {
        Self {
            format_version: FORMAT_VERSION,
            tool: origin.tool,
            run_id: origin.run_id,
            command_line: origin.command_line,
            seed: origin.seed,
            start_time: origin.start_time,
            ranges: Ranges::usual(host.cpus),
            host,
            hosts: None,
            target,
            method,
            rules: Rules::brief(),
            budget_s: 0.0,
            limits: Limits::default(),
            hints: Hints::default(),
            asked: vec![],
            forecast: None,
            datasheet: vec![],
            device: None,
            is_quick: false,
            is_read_only: false,
        }
    }
}

/// What visits to one workload are assumed to differ by, as far as none was repeated: standard
/// deviation of the logarithm.
pub const SPREAD_ASSUMED: f64 = 0.04;
/// Fewer workloads visited twice say little about how much visits differ.
pub const REPEATED_MIN: usize = 10;

/// One workload, pooled over its visits, with 95 % intervals from the variance between visits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The workload.
    pub workload: Workload,
    /// How many visits it rests on.
    pub visits: u32,
    /// Absorbed throughput.
    pub throughput_bytes_per_s: Interval,
    /// Durable throughput; null where it was not timed.
    pub durable_bytes_per_s: Option<f64>,
    /// Requests per second.
    pub ops_per_s: Interval,
    /// Response times, closed loop: means over the visits, the longest of all.
    pub response_time_s: ResponseTime,
    /// Latency from when requests were to begin; null in a closed loop.
    #[serde(default)]
    pub latency_s: Option<ResponseTime>,
    /// Share of the requested pages found resident; null where unknown.
    pub hit_fraction: Option<f64>,
    /// Whether every visit was steady.
    pub steady: bool,
    /// What is doubtful about it.
    pub warnings: Vec<Warning>,
    /// The revision of the map this belongs to.
    #[serde(default)]
    pub revision: u32,
}

impl Estimate {
    /// An estimate of which no more is known than its throughput.
    pub fn bare(workload: Workload, visits: u32, throughput_bytes_per_s: Interval) -> Self {
        let ops_per_s = throughput_bytes_per_s.scaled(1.0 / workload.size_mean as f64);
        Self {
            workload,
            visits,
            throughput_bytes_per_s,
            durable_bytes_per_s: None,
            ops_per_s,
            response_time_s: ResponseTime::default(),
            latency_s: None,
            hit_fraction: None,
            steady: true,
            warnings: vec![],
            revision: 0,
        }
    }
}

/// Which curve a border is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Curve {
    /// Read-only.
    Read,
    /// Write-only.
    Write,
    /// Both agree within a factor of 1.25, or the curve was mixed.
    Mixed,
}

/// How a border was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FoundBy {
    /// Counters of hits and misses.
    Counters,
    /// Times per request.
    Timing,
    /// The steepest part of a curve between two points (Chen and Patterson 1994, section 8).
    Slope,
}

/// Where a border lies, bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BorderUniqueBytes {
    /// Where time per request is 10 % over the plateau.
    #[serde(serialize_with = "crate::point::finite")]
    pub onset: f64,
    /// The size of the cache behind it.
    #[serde(serialize_with = "crate::point::finite")]
    pub capacity: f64,
    /// Lower end of the capacity's 95 % interval.
    #[serde(serialize_with = "crate::point::finite")]
    pub low: f64,
    /// Upper end.
    #[serde(serialize_with = "crate::point::finite")]
    pub high: f64,
}

/// A border.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Border {
    /// Where.
    pub unique_bytes: BorderUniqueBytes,
    /// On which curve.
    pub curve: Curve,
    /// How it was found.
    pub found_by: FoundBy,
    /// Time per request far beyond the border over time per request before it.
    #[serde(serialize_with = "crate::point::finite")]
    pub step: f64,
    /// The layer it is about.
    #[serde(default)]
    pub layer: Layer,
    /// The revision of the map this belongs to.
    #[serde(default)]
    pub revision: u32,
}

/// A model that predicts throughput.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ModelName {
    /// A law of storage with a Gaussian process for what it misses: predictions come from it.
    Blend,
    /// A Gaussian process that knows nothing of storage, to compare with.
    Gaussian,
    /// Interpolation within the grid of the orthogonal method, to compare with.
    Orthogonal,
    /// The product of single-parameter curves (Chen and Patterson 1994).
    Product,
}

impl ModelName {
    /// As it stands in a record: `blend`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blend => "blend",
            Self::Gaussian => "gaussian",
            Self::Orthogonal => "orthogonal",
            Self::Product => "product",
        }
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A fitted model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ModelLine {
    /// Which one.
    pub name: ModelName,
    /// Its parameters, with standard errors.
    pub parameters: BTreeMap<String, ParameterValue>,
    /// Median of |ln(measured/predicted)| over workloads left out of the fit; null where the
    /// model was not cross-validated.
    #[serde(default)]
    pub cross_validated_error: Option<f64>,
    /// Half-width of its 90 % intervals, in standard deviations of what it does not know; null for
    /// a model without intervals.
    #[serde(default)]
    pub interval_factor: Option<f64>,
    /// The layer it is about.
    #[serde(default)]
    pub layer: Layer,
    /// The revision of the map this belongs to.
    #[serde(default)]
    pub revision: u32,
}

/// A parameter of a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParameterValue {
    /// The value.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
}

/// What a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FindingCode {
    /// The target lives in memory.
    MemoryFilesystem,
    /// How many levels the storage shows.
    Levels,
    /// A border that is the processor's cache.
    ProcessorCache,
    /// The cache that reads are served from.
    ReadCache,
    /// The cache of the server behind a network filesystem.
    ServerCache,
    /// The cache that absorbs writes.
    WriteCache,
    /// Write-back or write-through.
    WritePolicy,
    /// The fastest that was seen.
    PeakRates,
    /// What sets the pace in a region.
    Bound,
    /// Reads against writes in a region.
    ReadWriteRatio,
    /// What sequential access brings in a region.
    Sequentiality,
    /// Request sizes worth using in a region.
    GoodSizes,
    /// Where larger requests stop to bring more in a region.
    Saturation,
    /// What more processes bring in a region.
    Concurrency,
    /// Throughput keeps falling beyond the last border.
    DecliningTail,
    /// Whether writes stay as fast as they are at first.
    FirstAndSustained,
    /// Latency where requests come at a rate.
    RateLatency,
    /// What lies beyond a page cache that was not passed, and what it is put together from.
    PutTogether,
    /// The parameters of the model.
    Model,
}

/// A sentence, drawn from the data only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// What it is about.
    pub code: FindingCode,
    /// The sentence.
    pub text: String,
    /// Number of the region it is about, counted from 1 in the order of the map's regions; none
    /// where it is about the storage as a whole, or was written before this field existed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<u32>,
    /// What the sentence says of its region, without the region's name and without the full stop:
    /// `reads run faster`. Given wherever `region` is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clause: Option<String>,
    /// The figures behind it; names carry their unit.
    pub figures: BTreeMap<String, f64>,
    /// The layer it is about.
    #[serde(default)]
    pub layer: Layer,
    /// The revision of the map this belongs to.
    #[serde(default)]
    pub revision: u32,
}

/// Closes a revision: everything that carries its number has been written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Map {
    /// The revision.
    pub revision: u32,
    /// Whether more was to come.
    pub provisional: bool,
    /// Pooled coefficient of variation between visits: the repeatability of this map.
    pub repeatability: Option<f64>,
    /// Seconds since the run's start.
    pub elapsed_s: f64,
    /// What the plan decided along the way, in order: rounds of focal points, borders dropped.
    #[serde(default)]
    pub log: Vec<String>,
    /// The data sheet, as far as it was measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datasheet: Vec<SheetFigures>,
}

/// The run went on after an interruption.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Resumed {
    /// Wall-clock time, UTC.
    pub time: String,
    /// Seconds of the budget used before.
    pub elapsed_before_s: f64,
    /// The budget from here on, all parts together, seconds.
    #[serde(default)]
    pub budget_s: Option<f64>,
    /// What was typed.
    pub command_line: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_shown_by_the_names_that_stand_in_a_record() {
        use ModelName::{Blend, Gaussian, Orthogonal, Product};
        for name in [Blend, Gaussian, Orthogonal, Product] {
            assert_eq!(serde_json::to_value(name).unwrap(), name.to_string());
        }
    }
}
