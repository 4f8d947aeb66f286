//! What `trace caches` says: the misses of caches of every size, and what the page cache does with
//! so much memory. Pages are of 4 KiB.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::app::CachePart;

/// What `trace caches --json` prints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheAnswer {
    /// Distinct pages touched.
    pub pages: u64,
    /// Misses of an LRU cache, by its size.
    pub curve: Vec<CachePoint>,
    /// How far the samples that the curve was made from are apart, relative to the misses; null
    /// where it was made from every touch.
    pub curve_relative_error: Option<f64>,
    /// Where the curve bends most.
    pub knee_bytes: u64,
    /// The least memory with nine tenths of the hits that any memory has.
    pub gain_90_bytes: u64,
    /// Memory from which on the simulated policy saves nine tenths of the reads that any memory saves;
    /// null where sizes were asked for, or memory saves nothing.
    pub simulated_gain_90_bytes: Option<u64>,
    /// Pages touched by reads, each as often as it was.
    pub pages_touched_by_reads: u64,
    /// Pages touched by writes, each as often as it was.
    pub pages_touched_by_writes: u64,
    /// Classes of files and phases in the one cache of all.
    pub parts: Vec<CachePart>,
    /// Look-ups of files and directories by name.
    pub names: Option<CachePart>,
    /// The sizes of memory that were simulated.
    pub simulated: Vec<MemoryUse>,
    /// What is doubtful about it, a sentence each.
    pub warnings: Vec<String>,
}

/// A size of an LRU cache.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CachePoint {
    /// The cache's size.
    pub bytes: u64,
    /// Share of the touches that miss.
    pub miss_ratio: f64,
    /// Touches by reads that miss.
    pub read_misses: u64,
    /// Touches by writes that miss.
    pub write_misses: u64,
}

/// What a policy does with a size of memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryUse {
    /// Memory for the data of files.
    pub memory_bytes: u64,
    /// The policy: which page makes room for another.
    pub policy: String,
    /// Pages that entered the cache.
    pub pages_inserted: u64,
    /// Pages read from storage, read-ahead included.
    pub pages_read: u64,
    /// Of these, those read by touching mappings.
    pub pages_read_mapped: u64,
    /// Pages written to storage.
    pub pages_written_back: u64,
    /// Share of the pages asked for by reads that were found.
    pub hit_fraction: f64,
    /// Asked for by reads that went on where the one before ended, and found.
    pub sequential_hits: u64,
    /// Asked for by such reads, and not found.
    pub sequential_misses: u64,
    /// Asked for by other reads, and found.
    pub random_hits: u64,
    /// Asked for by other reads, and not found.
    pub random_misses: u64,
    /// Bytes read past the page cache.
    pub direct_read_bytes: u64,
    /// Bytes written past the page cache.
    pub direct_written_bytes: u64,
    /// Pages read for each of several traces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_trace: Vec<TraceShare>,
}

/// What was read for one of several traces that share a cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TraceShare {
    /// The trace's file.
    pub trace: String,
    /// Pages read from storage for it.
    pub pages_read: u64,
}
