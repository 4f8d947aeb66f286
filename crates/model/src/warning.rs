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
    /// Two visits to one workload disagree far beyond their intervals, or one ran at two speeds.
    Bistable,
    /// The target lives in memory: nothing here says anything about a disk.
    MemoryFilesystem,
    /// Dirty limits far above the memory limit: write-heavy points can stall in reclaim.
    DirtyLimitAboveMemory,
    /// A write-heavy point took far longer than planned.
    WriteStall,
    /// The machine's time was taken by others while this was measured.
    StolenTime,
    /// The canaries say that the machine changed during the run.
    Drift,
    /// Device counters mean nothing on this filesystem; borders are found by timing. As a note: the kernel counts no
    /// pages of a file, and is asked for each of them.
    NoCounters,
    /// The clock is slow or not the processor's own.
    SlowClock,
    /// Dirty data could not be written back before the point started.
    DirtyAtStart,
    /// Too few requests for the quantile.
    FewRequests,
    /// Hardly any workload was visited twice before the run ended.
    Incomplete,
    /// The machine swapped since the previous point.
    Swapping,
    /// Something left over from an earlier run was found or removed.
    Leftover,
    /// The filesystem compresses or copies on write.
    CopyOnWrite,
    /// Direct I/O is not to be had, or goes through the page cache all the same.
    DirectNotDirect,
    /// The harness takes so large a part of a request's time that it is part of the result.
    HarnessCost,
    /// Fewer requests were made than the schedule of an open loop asked for.
    BehindSchedule,
    /// The kernel would not hold the buffers: each request pays for looking them up.
    NotRegistered,
    /// io_uring is denied: a thread for each request in flight takes its place.
    ThreadPerRequest,
    /// A workload outside the box that was measured was asked for.
    OutOfRange,
    /// Measured by another program: what it did not say is not known here either.
    Imported,
    /// Too few repetitions to tell how much they scatter.
    TooFewRepeats,
    /// A benchmark's own rule gives no score here.
    NoScore,
    /// Part of a benchmark could not be done as it is defined.
    NotFaithful,
    /// What should have come from storage came from a cache, or the other way round.
    CacheState,
    /// Others use the machine or the device.
    Neighbours,
    /// A control group holds this process back, or the kernel the device.
    Throttled,
    /// The machine saves power, or is hot, and does not run at its speed.
    PowerSaving,
    /// Memory is near to some processors and far from others.
    ManyNodes,
    /// The filesystem is nearly full, or a quota ends before it does.
    NearlyFull,
    /// How it is mounted changes what is measured.
    MountOptions,
    /// Something below the operating system keeps a cache of its own.
    CachesBelow,
    /// Data was called durable sooner than it can have been.
    FlushSuspect,
    /// More is read than was asked for.
    ReadAhead,
    /// The rate depends on where on the medium the data lie.
    Placement,
    /// An array is being rebuilt or checked.
    Rebuilding,
    /// Blocks were read that nobody ever wrote.
    NeverWritten,
    /// The target is only read.
    ReadOnly,
    /// Requests failed: errors of the device, time-outs, transfers that were cut short.
    RequestErrors,
    /// What was read is not what was written.
    DataMismatch,
    /// Somebody else changed, cut, replaced or removed a test file while it was measured.
    FileChanged,
    /// Time passed in which this process, or the whole machine, stood still.
    ClockJump,
    /// A run ended because no more was to be written, or more was written than that.
    MaxWritten,
    /// Requests in flight that did not add anything: they were served one at a time.
    DepthIgnored,
    /// Lines of the record are missing, out of order or copies of others.
    Altered,
    /// Calls of a replay ended otherwise than when they were recorded, or had to be added to.
    ReplayUnlike,
    /// The ranks of a run do not have the same to work with, or one fell behind.
    Ranks,
}

impl Code {
    /// Whether it is about a run as a whole and known only at its end.
    pub fn is_closing(self) -> bool {
        matches!(self, Self::BorderNotReached | Self::Drift | Self::Incomplete | Self::MaxWritten)
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

    /// Sets the severity.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }
}
