//! Misses of caches of every size, as part of an application's model. One page has 4 KiB.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a page, the unit in which caches keep files.
pub const PAGE_BYTES: u64 = 4096;

/// Misses by size of the cache.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Caches {
    /// Distinct pages touched: no cache needs to be larger.
    pub pages: u64,
    /// Pages touched by reads, each as often as it was.
    pub reads: u64,
    /// Pages touched by writes, each as often as it was.
    pub writes: u64,
    /// Misses of an LRU cache, from an empty one to one that holds everything. Between two points
    /// the curve is straight.
    pub curve: Vec<CacheMisses>,
    /// No miss ratio on the curve is further from the exact one than this.
    pub curve_error: f64,
    /// How far the samples that the curve was made from are apart, relative to the misses; null
    /// where it was made from every touch.
    pub sampling_error: Option<f64>,
    /// Of the touches those of each class of files and of each phase, in the one cache of all.
    pub parts: Vec<CachePart>,
    /// Files and directories by name, missing names included.
    pub names: Option<CachePart>,
    /// Linux' page cache from a cold start, simulated, by its memory.
    pub page_cache: Vec<PageCacheUse>,
}

/// Misses of an LRU cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CacheMisses {
    /// Pages that it holds.
    pub pages: u64,
    /// Touches by reads that do not find their page.
    pub reads: u64,
    /// Touches by writes that do not find their page.
    pub writes: u64,
}

/// Misses of a part of the touches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CachePart {
    /// `read` or `write`, and a class of files or `phase` with its number from 1.
    pub part: String,
    /// Its touches.
    pub touches: u64,
    /// Those of them that no cache can spare: first touches.
    pub first_touches: u64,
    /// Its misses by the size of the cache, within a twelfth of that size.
    pub misses: Vec<PartMisses>,
}

impl CachePart {
    /// Misses with so many pages, on a straight line between the sizes that are known.
    #[must_use]
    pub fn misses_with(&self, pages: u64) -> f64 {
        let next = self.misses.partition_point(|point| point.pages <= pages);
        let Some(low) = next.checked_sub(1).map(|before| self.misses[before]) else {
            return self.touches as f64;
        };
        let Some(high) = self.misses.get(next) else { return low.misses as f64 };
        let along = (pages - low.pages) as f64 / (high.pages - low.pages) as f64;
        low.misses as f64 + (high.misses as f64 - low.misses as f64) * along
    }

    /// The smallest known size, in pages (of names: names), that loses no more than this share of the
    /// hits that any size has. With room for every first touch nothing is lost.
    #[must_use]
    pub fn pages_losing(&self, share: f64) -> u64 {
        let spared = self.touches - self.first_touches;
        let wanted = self.first_touches as f64 + share * spared as f64;
        let enough = self.misses.iter().find(|point| point.misses as f64 <= wanted);
        enough.map_or(self.first_touches, |point| point.pages)
    }
}

/// Misses of a part of the touches in a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PartMisses {
    /// Pages (of names: names) that the cache holds.
    pub pages: u64,
    /// Touches that miss.
    pub misses: u64,
}

/// Linux' page cache with so much memory; counts are pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PageCacheUse {
    /// Memory for files.
    pub pages: u64,
    /// Entered the cache.
    pub inserted: u64,
    /// Read from storage, read-ahead included.
    pub read: u64,
    /// Of these, by touching mappings.
    pub read_mapped: u64,
    /// Written back.
    pub written_back: u64,
    /// Asked for by reads that went on where the one before ended, and found.
    pub sequential_hits: u64,
    /// Likewise, but not found.
    pub sequential_misses: u64,
    /// Asked for by other reads, and found.
    pub random_hits: u64,
    /// Likewise, but not found.
    pub random_misses: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenth_of_the_hits_is_lost_with_the_smallest_size_that_keeps_the_rest() {
        let at = |pages, misses| PartMisses { pages, misses };
        let part = CachePart {
            touches: 1100,
            first_touches: 100,
            misses: vec![at(10, 900), at(40, 201), at(50, 200), at(90, 100)],
            ..CachePart::default()
        };
        assert_eq!((part.pages_losing(0.1), part.pages_losing(0.0)), (50, 90));
        let unknown = CachePart { misses: vec![], ..part };
        assert_eq!(unknown.pages_losing(0.1), 100);
    }
}
