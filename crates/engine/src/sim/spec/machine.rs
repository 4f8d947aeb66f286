//! `[machine]` of a description: what stands in place of its levels.

use serde::{Deserialize, Serialize};

use super::{Cost, rate_option, size};
use crate::error::{Error, Result};

/// Most data of such a device: each page has an entry in memory.
pub(super) const ROOM_MAX_BYTES: u64 = 64 << 30;
/// Dirty pages cannot be replaced: some others must be left.
const DIRTY_SHARE_MAX: f64 = 0.8;

/// A page cache and the storage below it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// Held page by page.
    pub cache: MachineCache,
    /// With a queue of requests.
    pub storage: MachineStorage,
}

/// The page cache, and the processors that copy from and to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineCache {
    /// Capacity.
    #[serde(deserialize_with = "size")]
    pub bytes: u64,
    /// Which page is replaced.
    #[serde(default)]
    pub policy: Policy,
    /// Write-back begins above so much dirty data.
    #[serde(deserialize_with = "size")]
    pub dirty_background_bytes: u64,
    /// Writers wait at so much dirty data, that under write-back included.
    #[serde(deserialize_with = "size")]
    pub dirty_bytes: u64,
    /// The largest read-ahead.
    #[serde(deserialize_with = "size", default = "read_ahead_usual")]
    pub read_ahead_bytes: u64,
    /// Processors.
    #[serde(default = "one")]
    pub parallel: u32,
    /// What a processor spends on a read.
    pub read: Cost,
    /// What it spends on a write.
    pub write: Cost,
}

/// Which page is replaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// The oldest of an inactive list; the second access to a page moves it to an active list.
    #[default]
    TwoLists,
    /// The one least recently used.
    Lru,
}

/// What serves a queue of requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MachineStorage {
    /// Requests that are served at a time.
    #[serde(default = "one")]
    pub channels: u32,
    /// A request that does not begin where its channel's previous one ended, microseconds.
    #[serde(default)]
    pub seek_us: f64,
    /// What comes to that for a seek over all the room, microseconds; the share of it grows with
    /// the square root of the distance.
    #[serde(default)]
    pub seek_across_us: f64,
    /// Most requests per second: a token bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops_per_s_max: Option<f64>,
    /// Most bytes per second.
    #[serde(default, deserialize_with = "rate_option", skip_serializing_if = "Option::is_none")]
    pub bytes_per_s_max: Option<f64>,
    /// A read, without the seek.
    pub read: Cost,
    /// A write, without the seek.
    pub write: Cost,
}

impl Machine {
    /// Whether this can be.
    ///
    /// # Errors
    /// One line: what is wrong and what would do.
    pub(super) fn check(&self) -> Result<()> {
        let wrong = |what: &str| Err(Error::Sim(format!("simulated device: machine: {what}")));
        let Self { cache, storage } = self;
        if !(1 << 20..=ROOM_MAX_BYTES).contains(&cache.bytes) {
            return wrong("cache.bytes must be from 1 MiB to 64 GiB");
        }
        let is_bounded = cache.dirty_bytes as f64 <= DIRTY_SHARE_MAX * cache.bytes as f64;
        if cache.dirty_bytes < 64 << 10 || !is_bounded {
            return wrong("cache.dirty_bytes must be from 64 KiB to 0.8 of cache.bytes");
        }
        if cache.dirty_background_bytes > cache.dirty_bytes {
            return wrong("cache.dirty_background_bytes must not exceed cache.dirty_bytes");
        }
        if !(4096..=16 << 20).contains(&cache.read_ahead_bytes) {
            return wrong("cache.read_ahead_bytes must be from 4 KiB to 16 MiB; 128 KiB is usual");
        }
        if ![cache.parallel, storage.channels].iter().all(|count| (1..=4096).contains(count)) {
            return wrong("cache.parallel and storage.channels must be from 1 to 4096");
        }
        let costs = [cache.read, cache.write, storage.read, storage.write];
        if costs.iter().any(|cost| !(1e3..=1e15).contains(&cost.bytes_per_s)) {
            return wrong("bytes_per_s must be from 1 kB to 1 PB");
        }
        // Each request is made: a second of quicker ones would take many.
        if [cache.read, cache.write].iter().any(|cost| cost.fixed_us < 0.5) {
            return wrong("a cache's fixed_us must be 0.5 or more");
        }
        let fixed = costs.map(|cost| cost.fixed_us);
        let times_us = fixed.iter().chain([&storage.seek_us, &storage.seek_across_us]);
        if times_us.into_iter().any(|time| !(0.0..=1e9).contains(time)) {
            return wrong("times must be from 0 to 1e9 microseconds");
        }
        let limits = [storage.ops_per_s_max, storage.bytes_per_s_max];
        if limits.iter().flatten().any(|limit| !(1e-3..=1e15).contains(limit)) {
            return wrong("a limit must be above 0; leave it out where there is none");
        }
        Ok(())
    }
}

fn one() -> u32 {
    1
}

fn read_ahead_usual() -> u64 {
    128 << 10
}
