//! An application's demands on a system, counted so that any system can price them: operations by
//! category, misses by the size of memory, work of its own, and how much of each lies on the way
//! from its start to its end.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Counts that no system changes, and tables of those that the size of memory changes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Demand {
    /// From start to end where it was recorded, seconds.
    pub elapsed_s: f64,
    /// Where it was recorded.
    pub machine: Machine,
    /// Its work besides operations on files.
    pub work: Work,
    /// Operations by category: the words of a record's elements where there is one, others where
    /// none is.
    pub categories: BTreeMap<String, Category>,
    /// Misses of page caches of several sizes, smallest first.
    pub caches: Vec<CacheRung>,
    /// Pages written back during the run, by how many may be dirty, fewest first.
    pub write_back: Vec<DirtyRung>,
    /// Share of the data files that were in memory at the start; null where nobody knows.
    pub warm_frac: Option<f64>,
    /// Bytes of all reads that began where the one before ended.
    pub sequential_bytes: u64,
    /// Time between these reads, on the critical path, in which the next data can be fetched: the
    /// smallest limit first. Read-ahead fetches so much and then waits for the reader.
    pub overlap: Vec<OverlapRung>,
}

/// Time between reads, where of each stretch only so much counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct OverlapRung {
    /// What counts of a stretch at most, seconds.
    pub limit_s: f64,
    /// All stretches together, seconds.
    pub seconds: f64,
}

/// The machine of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Machine {
    /// Its processor, as that names itself.
    pub cpu_model: String,
    /// Processors.
    pub cpus: u32,
    /// Time of the element `processor` there, seconds; null where it was not measured.
    pub processor_s: Option<f64>,
}

/// A program's work besides operations on files. Time on the critical path is shared: where
/// several streams are at it, each has its part of every second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Work {
    /// On a processor between calls, on the critical path, seconds.
    pub processor_s: f64,
    /// On a processor between calls, all streams together, seconds.
    pub processor_total_s: f64,
    /// Neither on a processor nor in a recorded call, on the critical path, seconds.
    pub other_s: f64,
    /// Off the processor between calls while fewer streams were at it than there were processors, on the
    /// critical path, seconds. Another program had the processor, such as the recorder; elsewhere it
    /// has not, and this does not count.
    pub displaced_s: f64,
    /// All streams waited for something that is no storage, seconds.
    pub idle_s: f64,
    /// Stretches of work between calls.
    pub gaps: u64,
    /// Streams that made calls.
    pub streams: u64,
    /// True where processor time was measured; if not, all work counts as such.
    pub is_measured: bool,
}

/// Operations of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Category {
    /// How many.
    pub count: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Dirty, cached or mapped pages of them, or entries of directories.
    pub pages: u64,
    /// Pieces that these pages lie in; one that reaches beyond the end that its file had counts as two.
    pub extents: u64,
    /// Share of their time that lies on the critical path: 1 where one stream is at it alone.
    pub critical_frac: f64,
    /// How long one took where it was recorded, mean, without what recording cost, seconds; null
    /// where the trace has no durations.
    pub mean_s: Option<f64>,
}

/// Misses of a page cache of a size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CacheRung {
    /// Memory that files may take, bytes.
    pub memory_bytes: u64,
    /// With no data in memory at the start.
    pub cold: Misses,
    /// With the data in memory that were there when it was recorded.
    pub as_recorded: Misses,
}

/// Reads from the device, by how they come about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Misses {
    /// Reads that did not follow the one before, and found pages missing.
    pub random_requests: f64,
    /// Pages read for them, read-ahead included.
    pub random_pages: f64,
    /// Pages read for reads that follow the one before, read-ahead included.
    pub sequential_pages: f64,
    /// Touches of mapped pages that were missing.
    pub mapped_requests: f64,
    /// Pages read for them.
    pub mapped_pages: f64,
    /// Pages read because a part of them was written.
    pub partial_pages: f64,
}

/// Write-back in the background where only so much may be dirty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DirtyRung {
    /// Dirty data above which the kernel writes back, bytes.
    pub dirty_bytes: u64,
    /// Pages written back by it before the end.
    pub pages: u64,
}
