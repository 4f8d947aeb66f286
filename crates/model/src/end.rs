//! The last line of a record: why the run ended, and what there was no time or room for.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Point, Spent, Workload};

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// The plan had nothing left to measure.
    Complete,
    /// The budget was used up.
    Budget,
    /// The precision asked for was reached.
    Precision,
    /// Ctrl-C or SIGTERM.
    Interrupted,
    /// `--max-written` was reached.
    Written,
    /// The measurement could not go on.
    Failed,
}

/// The last line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct End {
    /// Why.
    pub reason: EndReason,
    /// Visits made, canaries included.
    pub points: u64,
    /// Seconds of the budget used, all parts of a resumed run together.
    pub elapsed_s: f64,
    /// How the time was spent, seconds.
    pub spent_s: Spent,
    /// Bytes read by the workloads.
    pub read_bytes: u64,
    /// Bytes written by layout and workloads.
    pub written_bytes: u64,
    /// Bytes that the target's device counted meanwhile: with what the filesystem wrote for itself,
    /// and other programs; left out where no device is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_written_bytes: Option<u64>,
    /// What the forecast had said.
    pub forecast: Option<Forecast>,
    /// Workloads that were asked for and dropped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<Dropped>,
    /// Parts of the map that were not measured, or not in full.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

impl End {
    /// The end of a record of these points, which wrote what their requests did and no layout.
    pub fn after(reason: EndReason, points: &[Point], elapsed_s: f64) -> Self {
        let bytes = |bytes: fn(&Point) -> u64| points.iter().map(bytes).sum();
        Self {
            reason,
            points: points.len() as u64,
            elapsed_s,
            spent_s: points.iter().fold(Spent::default(), |sum, point| sum.plus(&point.spent_s)),
            read_bytes: bytes(|p| p.classes.read_seq.bytes + p.classes.read_rand.bytes),
            written_bytes: bytes(|p| p.classes.write_seq.bytes + p.classes.write_rand.bytes),
            device_written_bytes: None,
            forecast: None,
            dropped: vec![],
            left_out: vec![],
        }
    }
}

/// A workload that was asked for and dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dropped {
    /// The workload.
    pub workload: Workload,
    /// What there was no more of.
    pub want_of: Want,
}

/// What a workload was dropped for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Want {
    /// The budget was over, or something ended the run before.
    Time,
    /// The test files, or the dirty data in memory, had no room.
    Room,
}

/// A part of a map, in the order in which they are measured.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The nine workloads that are asked for first.
    DataSheet,
    /// Borders of the page cache, and a family of graphs for each region.
    CacheLayer,
    /// The family of the device layer.
    DeviceLayer,
    /// Elements of the system vector.
    SystemVector,
    /// Workloads that were named when the run began.
    Named,
    /// Second visits, from which intervals come.
    Repeats,
    /// Latency where requests come at a rate.
    RateLatency,
}

/// A part of a map that was not measured, or not in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LeftOut {
    /// Which.
    pub part: Part,
    /// What of it was left out and for want of what, in words.
    pub text: String,
}

/// What a run is expected to cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Forecast {
    /// Visits.
    pub points: u64,
    /// Seconds.
    pub elapsed_s: f64,
    /// Bytes written, layout included.
    pub written_bytes: u64,
}
