//! Doubt about a number, as data: stored in the record, shown by every renderer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much a warning takes away from the number beside it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; the number stands.
    Note,
    /// The number may mean something else than it seems to.
    Warning,
    /// The number should not be used.
    Serious,
}

/// What a warning is about. Renderers and scripts match on it; the text is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Code {
    /// The map's range ends below the cache that the machine could have.
    BorderNotReached,
    /// Still drifting when the time for this point was over.
    NotSteady,
    /// The interval is wider than the precision asked for.
    NotPrecise,
    /// Two visits to one workload disagree far beyond their intervals.
    Bistable,
    /// The target lives in memory: nothing here says anything about a disk.
    MemoryFilesystem,
    /// Dirty limits far above the memory limit: write-heavy points can stall in reclaim.
    DirtyLimitAboveMemory,
    /// A write-heavy point took far longer than planned, or was skipped for fear of it.
    WriteStall,
    /// The machine's time was taken by others while this was measured.
    StolenTime,
    /// The canaries say that the machine changed during the run.
    Drift,
    /// Device counters mean nothing on this filesystem; borders are found by timing.
    NoCounters,
    /// The clock is slow or not the processor's own.
    SlowClock,
    /// Dirty data could not be written back before the point started.
    DirtyAtStart,
    /// Too few requests for the quantile.
    FewRequests,
    /// The plan was cut by the budget.
    Incomplete,
    /// The machine swapped since the previous point.
    Swapping,
    /// Something left over from an earlier run was found or removed.
    Leftover,
    /// The filesystem compresses or copies on write.
    CopyOnWrite,
    /// A workload outside the box that was measured was asked for.
    OutOfRange,
    /// Measured by another program: what it did not say is not known here either.
    Imported,
}

impl Code {
    /// Whether it is about a run as a whole and known only at its end.
    pub fn is_closing(self) -> bool {
        matches!(self, Self::BorderNotReached | Self::Drift | Self::Incomplete)
    }
}

/// One doubt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// What it is about.
    pub code: Code,
    /// How much it matters.
    pub severity: Severity,
    /// What was seen, with its figures.
    pub text: String,
    /// What to do about it.
    pub remedy: String,
}

impl Warning {
    /// A warning that leaves the number standing, but in doubt.
    pub fn new(code: Code, text: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { code, severity: Severity::Warning, text: text.into(), remedy: remedy.into() }
    }

    /// The same, with another severity.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }
}
