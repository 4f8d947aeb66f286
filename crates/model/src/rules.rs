//! What a run keeps to: how a point is measured, and the ranges of the map. Recorded as numbers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{DURATION_S_MAX, GIB, KIB, MIB};
use crate::workload::{DEPTH_MAX, SIZE_MEAN_MAX};
use crate::{Access, Workload};

/// How far a map sweeps requests in flight per process, and writes between two fdatasyncs.
const DEPTH_SWEPT_MAX: u64 = 32;
const FSYNC_SWEPT_MAX: u64 = 64;
/// Plans look at each number of workers up to the largest: more than any machine has use for.
const PROCESS_NUM_END: u64 = 1 << 16;
/// More windows than any workload is run in for.
const WINDOWS_MAX: u32 = 1_000_000;
/// A shorter window than any clock is read for, seconds.
const WINDOW_S_MIN: f64 = 1e-4;

/// A value that a map cannot be made with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} is {given}; it can be {expected}")]
pub struct RulesError {
    /// Where it stands: `size_mean.min`.
    pub field: String,
    /// What stands there.
    pub given: String,
    /// What would do.
    pub expected: String,
}

impl RulesError {
    pub(crate) fn new(
        field: impl Into<String>,
        given: impl std::fmt::Display,
        expected: impl Into<String>,
    ) -> Self {
        Self { field: field.into(), given: given.to_string(), expected: expected.into() }
    }
}

/// How one visit is measured (`docs/method.md`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rules {
    /// Length of a window.
    pub window_s: f64,
    /// A visit ends after this many windows at the earliest, unless they hardly vary or it has written its
    /// share.
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
    /// The shortest running in and the longest measuring of one visit, seconds.
    pub fn visit_s(&self) -> f64 {
        self.ramp_s + self.measure_max_s
    }

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

    /// For `measure` to a precision: where it is coarser than usual, visits run in and are measured for a shorter
    /// time in proportion, down to a quarter from 20 % on. Writers whose dirty data still rises are waited for as
    /// long as ever.
    #[must_use]
    pub fn to_precision(precision: f64) -> Self {
        let usual = Self::thorough();
        let part = (usual.precision / precision).clamp(0.25, 1.0);
        Self {
            windows_min: (f64::from(usual.windows_min) * part).ceil() as u32,
            precision,
            ramp_s: usual.ramp_s * part,
            ..usual
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

    /// Whether a visit can be measured like this, and ends.
    ///
    /// # Errors
    /// The first value that cannot be.
    pub fn check(&self) -> Result<(), RulesError> {
        let within = |field: &str, value: f64, least: f64, most: f64| {
            let expected = || format!("{least} to {most}");
            let fits = (least..=most).contains(&value);
            if fits { Ok(()) } else { Err(RulesError::new(field, value, expected())) }
        };
        within("window_s", self.window_s, WINDOW_S_MIN, DURATION_S_MAX)?;
        within("windows_min", f64::from(self.windows_min), 0.0, f64::from(WINDOWS_MAX))?;
        within("precision", self.precision, 0.0, 1.0)?;
        let longest_s = (self.window_s * f64::from(WINDOWS_MAX)).min(DURATION_S_MAX);
        within("ramp_s", self.ramp_s, 0.0, longest_s)?;
        within("ramp_max_s", self.ramp_max_s, 0.0, longest_s)?;
        within("measure_max_s", self.measure_max_s, 0.0, DURATION_S_MAX)
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
    /// Whether requests go through the page cache or past it; these ranges are of one layer.
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

    /// The values of `self` that `other` has too; the nearest one where it has none.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        let clamp = |value: u64| value.clamp(other.min, other.max);
        Self { min: clamp(self.min), max: clamp(self.max) }
    }

    fn check(&self, name: &str, least: u64, most: u64) -> Result<(), RulesError> {
        let wrong = |end: &str, value: u64, least: u64, most: u64| {
            Err(RulesError::new(format!("{name}.{end}"), value, format!("{least} to {most}")))
        };
        if !(least..=most).contains(&self.min) {
            return wrong("min", self.min, least, most);
        }
        if !(self.min..=most).contains(&self.max) {
            return wrong("max", self.max, self.min, most);
        }
        Ok(())
    }
}

impl Ranges {
    /// Ranges of the five parameters, everything else as it is by default.
    pub fn of_five(unique_bytes: Range, size_mean: Range, process_num: Range) -> Self {
        let (depth, fsync_every) = (Range::one(), Range::none());
        let access = Access::Buffered;
        Self { unique_bytes, size_mean, process_num, depth, fsync_every, access }
    }

    /// From the smallest to the largest of these workloads in the first three parameters; past the
    /// page cache where all of them are.
    pub fn spanning<'a>(works: impl Iterator<Item = &'a Workload> + Clone) -> Self {
        let range = |value: fn(&Workload) -> u64| Range {
            min: works.clone().map(value).min().unwrap_or(0),
            max: works.clone().map(value).max().unwrap_or(0),
        };
        let ranges = Self::of_five(
            range(|work| work.unique_bytes),
            range(|work| work.size_mean),
            range(|work| u64::from(work.process_num)),
        );
        let mut accesses = works.map(|work| work.access);
        let is_direct = accesses.all(|access| access == Access::Direct);
        Self { access: if is_direct { Access::Direct } else { Access::Buffered }, ..ranges }
    }

    /// Adds sweeps over requests in flight and over fdatasyncs.
    #[must_use]
    pub fn with_sweeps(self) -> Self {
        Self {
            depth: Range { min: 1, max: DEPTH_SWEPT_MAX },
            fsync_every: Range { min: 0, max: FSYNC_SWEPT_MAX },
            ..self
        }
    }

    /// Whether a map can extend like this.
    ///
    /// # Errors
    /// The first end of a range that cannot be.
    pub fn check(&self) -> Result<(), RulesError> {
        let Self { unique_bytes, size_mean, process_num, depth, fsync_every, access: _ } = self;
        unique_bytes.check("unique_bytes", 1, i64::MAX as u64)?;
        size_mean.check("size_mean", 1, SIZE_MEAN_MAX)?;
        process_num.check("process_num", 1, PROCESS_NUM_END)?;
        depth.check("depth", 1, u64::from(DEPTH_MAX))?;
        fsync_every.check("fsync_every", 0, u64::from(u32::MAX))
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
    /// The page cache that could be had, bytes: the memory available, or most of the memory limit where there
    /// is one.
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

impl Hints {
    /// True if a cache of this many bytes may be the page cache: it holds more than half (a choice) of
    /// `read_cache_bytes`, or the header does not say these. A target in memory has no page cache: always false.
    pub fn may_be_page_cache(&self, bytes: f64) -> bool {
        const OTHER_CACHE: f64 = 0.5;
        !self.in_memory
            && self.read_cache_bytes.is_none_or(|page_cache| bytes > OTHER_CACHE * page_cache)
    }
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
    /// How long is written before the map, to see whether writes stay as fast, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sustain_s: Option<f64>,
    /// How often all data that the map touches are written over before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precondition_times: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coarse_precision_takes_a_shorter_visit_and_a_fine_one_the_usual() {
        let usual = Rules::thorough();
        for precision in [0.05, 0.01] {
            assert_eq!(Rules::to_precision(precision), Rules { precision, ..usual });
        }
        for precision in [0.2, 1.0] {
            let short = Rules { windows_min: 5, precision, ramp_s: 0.25, ..usual };
            assert_eq!(Rules::to_precision(precision), short);
        }
    }
}
