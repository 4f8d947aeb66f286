//! What one visit to one workload gave.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::{Ranks, Warning, Workload};

/// A figure with its interval. Which confidence is said where it is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The estimate.
    #[serde(serialize_with = "finite")]
    pub mean: f64,
    /// Lower end.
    #[serde(serialize_with = "finite")]
    pub low: f64,
    /// Upper end.
    #[serde(serialize_with = "finite")]
    pub high: f64,
}

/// JSON has no infinity, and a record that cannot be opened again would be worse than an interval
/// that is merely absurdly wide.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
pub(crate) fn finite<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    let kept = if value.is_nan() { 0.0 } else { value.clamp(f64::MIN, f64::MAX) };
    to.serialize_f64(kept)
}

impl Interval {
    /// A figure that is known exactly.
    pub fn exact(mean: f64) -> Self {
        Self { mean, low: mean, high: mean }
    }

    /// Half of the width over the mean.
    pub fn relative_half_width(&self) -> f64 {
        if self.mean > 0.0 { (self.high - self.low) / 2.0 / self.mean } else { f64::INFINITY }
    }

    /// Both ends and the mean multiplied: a change of unit.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        Self { mean: self.mean * factor, low: self.low * factor, high: self.high * factor }
    }
}

/// Why a point was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Role {
    /// The `unique_bytes` curve of the paper's plan.
    Sweep,
    /// Read-only, in search of a border.
    ReadBorder,
    /// Write-only, in search of a border.
    WriteBorder,
    /// On a graph of a region's family; the focal vector itself too.
    Family,
    /// Space-filling: spread evenly over the whole box, or at corners of its last region.
    Calibration,
    /// Where the model is least sure.
    Refinement,
    /// Because it has a name: a line of the data sheet, one of the twelve named workloads, or what `run -w` asked for.
    Named,
    /// With several requests in flight, or with fdatasyncs: on the graphs of both at a focal
    /// vector, or anywhere.
    Extra,
    /// An open loop: a line of the data sheet at a share of the rate that its closed loop does. Its
    /// latencies correct those predicted at rates; its throughput is never fitted.
    OpenLoop,
    /// Never fitted: what a prediction is held against.
    Validation,
    /// One little workload again and again, to notice that the machine changed.
    Canary,
    /// Asked for by hand.
    Measure,
}

/// Response times of one visit or, pooled, of one workload; per request, in a closed loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResponseTime {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// Requests of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClassTotals {
    /// Requests.
    pub ops: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Mean response time, seconds.
    pub mean_s: f64,
    /// Median response time, seconds.
    #[serde(default)]
    pub p50_s: f64,
    /// 99th percentile of the response time, seconds.
    #[serde(default)]
    pub p99_s: f64,
}

/// Requests by class: read or write, sequential or at random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Classes {
    /// Reads that start where the previous request ended.
    pub read_seq: ClassTotals,
    /// Reads elsewhere.
    pub read_rand: ClassTotals,
    /// Writes that start where the previous request ended.
    pub write_seq: ClassTotals,
    /// Writes elsewhere.
    pub write_rand: ClassTotals,
}

/// In which way a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Failure {
    /// The device, or what lies before it, reported an error.
    Io,
    /// The device did not answer in the time that the kernel gives it.
    TimedOut,
    /// Fewer bytes were moved than asked for, and no more were to be had.
    Short,
    /// The bytes that were read are not those that were written (`--verify`).
    Mismatch,
}

impl Failure {
    /// All, in order.
    pub const ALL: [Self; 4] = [Self::Io, Self::TimedOut, Self::Short, Self::Mismatch];
}

/// Class of a request: its direction, and whether it went on where the previous one ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RequestClass {
    /// A read that goes on.
    ReadSeq,
    /// A read elsewhere.
    ReadRand,
    /// A write that goes on.
    WriteSeq,
    /// A write elsewhere.
    WriteRand,
}

/// Requests of one class that failed in one way, over a whole visit, running in included. They
/// count neither as requests nor in throughput and times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failed {
    /// Which requests.
    pub class: RequestClass,
    /// In which way.
    pub failure: Failure,
    /// How many.
    pub count: u64,
    /// Where the first of them was to begin, bytes; with a mismatch, the first wrong block.
    pub first_offset: u64,
    /// What was said about the first of them.
    pub text: String,
}

/// How a visit's time was spent, seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spent {
    /// Writing test files that were not there yet.
    pub layout: f64,
    /// Waiting for what earlier points left dirty, and laying out anew what they broke up.
    pub quiesce: f64,
    /// Reading in beforehand what fits the cache.
    pub warm_up: f64,
    /// Running the workload before the windows count.
    pub settling: f64,
    /// The windows.
    pub measuring: f64,
    /// The timed fdatasync at the end.
    pub sync: f64,
}

impl Spent {
    /// All of it.
    pub fn total(&self) -> f64 {
        self.layout + self.quiesce + self.warm_up + self.settling + self.measuring + self.sync
    }

    /// Part by part.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            layout: self.layout + other.layout,
            quiesce: self.quiesce + other.quiesce,
            warm_up: self.warm_up + other.warm_up,
            settling: self.settling + other.settling,
            measuring: self.measuring + other.measuring,
            sync: self.sync + other.sync,
        }
    }
}

/// One visit to one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// What was asked for, in plain numbers.
    pub workload: Workload,
    /// Which round of visits this belongs to, from 0.
    pub round: u32,
    /// Why it was measured.
    pub role: Role,
    /// What made the requests: `psync`, `null`, `sim`.
    pub engine: String,
    /// Seed of this visit's requests.
    pub seed: u64,
    /// When it began, seconds since the run's start.
    pub started_s: f64,
    /// Bytes read and written over the workers' common wall time, absorbed; 95 % within this visit.
    pub throughput_bytes_per_s: Interval,
    /// Bytes per second with the final fdatasync counted in; null where it was not timed.
    pub durable_bytes_per_s: Option<f64>,
    /// Requests per second.
    pub ops_per_s: f64,
    /// Response times over all classes, closed loop.
    pub response_time_s: ResponseTime,
    /// Latency from the intended start, open loop; null in a closed loop.
    pub latency_s: Option<ResponseTime>,
    /// Response times by class.
    pub classes: Classes,
    /// Requests that failed; none in most points.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<Failed>,
    /// Bytes whose content was checked when they were read (`--verify`); null where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified_bytes: Option<u64>,
    /// Share of the requested pages found resident; null where it cannot be known.
    pub hit_fraction: Option<f64>,
    /// Resident part of the data touched at the end of the visit, bytes; null where unknown.
    pub resident_bytes: Option<u64>,
    /// Device bytes read over bytes asked to be read; above 1 with read-ahead; null where unknown.
    pub read_amplification: Option<f64>,
    /// Share of the written pages that were still dirty, and so cost no write-back of their own;
    /// null where unknown.
    pub write_absorbed_fraction: Option<f64>,
    /// Dirty pages of the machine when the visit ended, bytes; null where unknown.
    pub dirty_bytes: Option<u64>,
    /// Pages under write-back when the visit ended, bytes; null where unknown.
    pub writeback_bytes: Option<u64>,
    /// Processor time of the tool per request, seconds; null where unknown.
    pub cpu_s_per_op: Option<f64>,
    /// Time of all requests over the most that was possible (processes × depth × time), in a closed
    /// loop: the rest is the tool's own work. Half of it at least makes a workload one of I/O (Chen
    /// and Patterson 1994, section 2). It says nothing with `--engine null`; null in an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io_time_fraction: Option<f64>,
    /// Whether a steady state was reached.
    pub steady: bool,
    /// Windows kept.
    pub windows: u32,
    /// Windows left out at the start, as not yet steady.
    pub windows_cut: u32,
    /// The whole visit, seconds.
    pub elapsed_s: f64,
    /// How it was spent.
    pub spent_s: Spent,
    /// Figures of each rank, where there were several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Ranks>,
    /// What is doubtful about it.
    pub warnings: Vec<Warning>,
}

impl Point {
    /// A steady visit of one window, of which nothing is known but what was asked for and the
    /// throughput: what else is known goes over it.
    pub fn bare(workload: Workload, engine: &str, throughput_bytes_per_s: Interval) -> Self {
        let ops_per_s = throughput_bytes_per_s.mean / workload.size_mean as f64;
        Self {
            workload,
            round: 0,
            role: Role::Measure,
            engine: engine.to_owned(),
            seed: 0,
            started_s: 0.0,
            throughput_bytes_per_s,
            durable_bytes_per_s: None,
            ops_per_s,
            response_time_s: ResponseTime::default(),
            latency_s: None,
            classes: Classes::default(),
            failed: Vec::new(),
            verified_bytes: None,
            hit_fraction: None,
            resident_bytes: None,
            read_amplification: None,
            write_absorbed_fraction: None,
            dirty_bytes: None,
            writeback_bytes: None,
            cpu_s_per_op: None,
            io_time_fraction: None,
            steady: true,
            windows: 1,
            windows_cut: 0,
            elapsed_s: 1.0,
            spent_s: Spent::default(),
            ranks: None,
            warnings: Vec::new(),
        }
    }

    /// Absorbed throughput, bytes per second.
    pub fn throughput(&self) -> f64 {
        self.throughput_bytes_per_s.mean
    }
}
