//! What a run keeps to: how a point is measured, and the ranges of the map. Recorded as numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{GIB, KIB, MIB};

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
}

impl Ranges {
    /// The usual ranges on a machine with `cpus` processors.
    pub fn usual(cpus: u32) -> Self {
        Self {
            unique_bytes: Range { min: 8 * MIB, max: GIB },
            size_mean: Range { min: 4 * KIB, max: MIB },
            process_num: Range { min: 1, max: u64::from(cpus * 2).max(4) },
        }
    }
}
