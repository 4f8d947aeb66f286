//! What a run keeps to: how a point is measured, and the ranges of the map. Recorded as numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Access;
use crate::units::{GIB, KIB, MIB};

/// How far a map sweeps requests in flight per process, and writes between two fdatasyncs.
const DEPTH_SWEPT_MAX: u64 = 32;
const FSYNC_SWEPT_MAX: u64 = 64;

/// How one visit is measured (`docs/method.md`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rules {
    /// Length of a window.
    pub window_s: f64,
    /// Fewest windows that a visit consists of.
    pub windows_min: u32,
    /// The relative half-width of the interval at which a visit may end.
    pub precision: f64,
    /// The workload runs at least this long before the windows count.
    pub ramp_s: f64,
    /// Longest a write-heavy workload is run in, waiting for write-back to settle.
    pub ramp_max_s: f64,
    /// The windows of a visit together last at most this long.
    pub measure_max_s: f64,
    /// Whether a visit ends with a timed fdatasync, which gives the durable throughput.
    pub sync_at_end: bool,
}

impl Rules {
    /// For `measure`: as long as the precision needs, 30 s at most.
    pub fn thorough() -> Self {
        Self {
            window_s: 0.1,
            windows_min: 20,
            precision: 0.05,
            ramp_s: 1.0,
            ramp_max_s: 5.0,
            measure_max_s: 30.0,
            sync_at_end: true,
        }
    }

    /// For `run`: short visits, because many are made and the spread between visits, not the one
    /// within, is what limits a map.
    pub fn brief() -> Self {
        Self {
            window_s: 0.1,
            windows_min: 12,
            precision: 0.05,
            ramp_s: 0.5,
            ramp_max_s: 2.0,
            measure_max_s: 2.4,
            sync_at_end: true,
        }
    }
}

/// A closed range of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Range {
    /// The smallest value.
    pub min: u64,
    /// The largest value.
    pub max: u64,
}

/// Where the map extends. `unique_bytes.max` may grow while the run climbs; the last closed map's
/// regions say how far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ranges {
    /// Data touched, bytes.
    pub unique_bytes: Range,
    /// Mean request size, bytes.
    pub size_mean: Range,
    /// Workers.
    pub process_num: Range,
    /// Requests in flight per process. The map's graphs are at the smallest.
    #[serde(default = "Range::one")]
    pub depth: Range,
    /// Writes between two fdatasyncs: 0, which is never, to this many. The map's graphs are at 0.
    #[serde(default = "Range::none")]
    pub fsync_every: Range,
    /// Through the page cache or past it: a map is of one of both.
    #[serde(default)]
    pub access: Access,
}

impl Range {
    /// One and nothing else.
    pub fn one() -> Self {
        Self { min: 1, max: 1 }
    }

    /// Zero and nothing else.
    pub fn none() -> Self {
        Self { min: 0, max: 0 }
    }
}

impl Ranges {
    /// Ranges of the five parameters, everything else as it is by default.
    pub fn of_five(unique_bytes: Range, size_mean: Range, process_num: Range) -> Self {
        let (depth, fsync_every) = (Range::one(), Range::none());
        let access = Access::Buffered;
        Self { unique_bytes, size_mean, process_num, depth, fsync_every, access }
    }

    /// The same with sweeps over requests in flight and over fdatasyncs.
    #[must_use]
    pub fn with_sweeps(self) -> Self {
        Self {
            depth: Range { min: 1, max: DEPTH_SWEPT_MAX },
            fsync_every: Range { min: 0, max: FSYNC_SWEPT_MAX },
            ..self
        }
    }

    /// The usual ranges on a machine with `cpus` processors.
    pub fn usual(cpus: u32) -> Self {
        Self::of_five(
            Range { min: 8 * MIB, max: GIB },
            Range { min: 4 * KIB, max: MIB },
            Range { min: 1, max: u64::from(cpus * 2).max(4) },
        )
    }
}

/// What is known about the target before anything was measured. Hints place extra points; they
/// are never results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Hints {
    /// The page cache that could be had: the memory limit or the memory available, bytes.
    pub read_cache_bytes: Option<f64>,
    /// Dirty data at which the kernel begins to write back all the time, bytes.
    pub write_cache_bytes: Option<f64>,
    /// Whether counters tell hits from misses here.
    pub counters: bool,
    /// Whether the target lives in memory.
    pub in_memory: bool,
    /// Most data that may be laid out in all test files together, bytes.
    pub room_bytes: u64,
    /// How fast test files are laid out, where that was tried.
    pub layout_bytes_per_s: Option<f64>,
}

/// What a run keeps to besides its budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Limits {
    /// The relative half-width of the typical 90 % interval of a prediction at which the run may
    /// end early.
    pub precision: Option<f64>,
    /// Most bytes that reach storage, layout included.
    pub written_max_bytes: Option<u64>,
    /// Most data that a workload may touch.
    pub unique_max_bytes: Option<u64>,
    /// Most data that a workload that writes may touch: beyond it writers would stall in reclaim.
    pub writes_max_bytes: Option<f64>,
}
