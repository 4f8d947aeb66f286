//! Which caches the law has: the borders that were found, and where the kernel is known to hold
//! writers up.

use ioscape_model::{Access, Curve};
use serde::{Deserialize, Serialize};

use crate::model::Training;

/// Direct requests find a page cached, which is to say nothing.
const NOTHING_BYTES: f64 = 4096.0;
/// Two sizes closer than this factor are one cache.
const SAME_CACHE: f64 = 1.4;
/// Data must exceed a cache by this factor for the samples to say something about what is beyond.
pub(super) const CLEAR: f64 = 1.3;

/// The caches that a law has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Shape {
    /// How many for reads and for writes.
    pub(super) caches: [usize; 2],
    /// The first place, of those for reads and for writes, beyond which requests get to storage.
    pub(super) asked_from: [usize; 2],
}

/// Sizes of the caches that the samples can tell something about, bytes, smallest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Caches {
    /// The processor's last-level cache, where a border was found to be that.
    pub(super) processor_bytes: Option<f64>,
    /// Caches that reads find data in.
    pub(super) read: Vec<f64>,
    /// Amounts of data that can be overwritten before storage is waited for.
    pub(super) write: Vec<f64>,
    /// For each of the latter, whether it is the page cache itself, where room has to be made for new
    /// pages: it is changed with the cache for reads.
    pub(super) is_room: Vec<bool>,
    /// How many of either are none: direct requests have one that holds nothing.
    pub(super) none: usize,
}

impl Caches {
    /// The borders found; for writes also where the kernel begins to hold writers up, and where
    /// pages have to be made room for.
    pub(super) fn of_samples(training: &Training) -> Self {
        let is_processors = |place: &usize| training.processor_borders.contains(place);
        let borders = || training.borders.iter().enumerate();
        let on = |curve: Curve| -> Vec<f64> {
            borders()
                .filter(|(place, it)| {
                    !is_processors(place) && (it.curve == curve || it.curve == Curve::Mixed)
                })
                .map(|(_, border)| border.unique_bytes.capacity)
                .collect()
        };
        let mut processors = borders().filter(|(place, _)| is_processors(place));
        let processor_bytes = processors.next().map(|(_, border)| border.unique_bytes.capacity);
        let (mut read, dirty) = (on(Curve::Read), on(Curve::Write));
        let mut write: Vec<(f64, bool)> = dirty.into_iter().map(|bytes| (bytes, false)).collect();
        let none = usize::from(training.ranges.access == Access::Direct);
        if none > 0 {
            read.insert(0, NOTHING_BYTES);
            write.insert(0, (NOTHING_BYTES, false));
        } else if !write.is_empty() {
            let reach = training.samples.iter().map(|s| s.workload.unique_bytes as f64);
            let reach = reach.fold(0.0, f64::max);
            let limit = std::iter::once((training.host.dirty_limit_bytes as f64, false));
            for (bytes, is_room) in limit.chain(read.iter().map(|bytes| (*bytes, true))) {
                let is_apart = |known: &(f64, bool)| {
                    !(1.0 / SAME_CACHE..SAME_CACHE).contains(&(bytes / known.0))
                };
                if bytes > 0.0 && bytes * CLEAR < reach && write.iter().all(is_apart) {
                    write.push((bytes, is_room));
                }
            }
            write.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        let (write, is_room) = write.into_iter().unzip();
        Self { processor_bytes, read, write, is_room, none }
    }

    pub(super) fn shape(&self) -> Shape {
        let absorbing = self.is_room.iter().rposition(|is_room| !is_room);
        Shape {
            caches: [self.read.len(), self.write.len()],
            asked_from: [self.read.len().saturating_sub(1), absorbing.unwrap_or(0)],
        }
    }

    /// The cache for reads that can be told to be another size: the largest.
    pub(super) fn main_read(&self) -> Option<usize> {
        self.read.len().checked_sub(1).filter(|last| *last >= self.none)
    }

    /// The cache for writes that can be told to be another size: the first that is not the page cache.
    pub(super) fn main_write(&self) -> Option<usize> {
        (self.none..self.write.len()).find(|index| !self.is_room[*index])
    }
}
