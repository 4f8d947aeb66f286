//! Levels of the law: the caches whose borders were found, and the kernel's limit on dirty data.

use ioscape_model::{Access, Curve, READ_AHEAD_BYTES, Workload};
use serde::{Deserialize, Serialize};

use crate::model::{Sample, Training};

#[cfg(test)]
mod tests;

/// Directions, as places in pairs.
pub(super) const READ: usize = 0;
pub(super) const WRITE: usize = 1;
/// Reads or writes count as such from this share on.
const MOSTLY: f64 = 0.9;

/// The kernel caches and reads ahead in pages of this size.
pub(super) const PAGE_BYTES: f64 = 4096.0;
/// Direct requests have no cache. The law needs a level whose misses they pay for: a cache of a page.
const PSEUDO_CACHE_BYTES: f64 = PAGE_BYTES;
/// Two sizes closer than this factor are one cache. A choice, far wider than a border's doubt (5 %).
const SAME_CACHE: f64 = 1.4;
/// Data must exceed a cache by this factor for samples to say something about what is beyond: a quarter
/// of the requests miss it. A choice.
pub(super) const CLEARLY_BEYOND: f64 = 1.3;

/// True of a direct visit that tells how fast storage takes what the kernel writes back: nine in ten requests write,
/// and none is synced.
pub(super) fn tells_of_writes(direct: &Sample) -> bool {
    is_mostly(&direct.workload, WRITE) && direct.workload.fsync_every == 0
}

/// What a law has beside its fitted parameters: how many levels, where storage begins, and what the machine says or
/// samples show directly.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Shape {
    /// How many caches for reads and for writes.
    pub(super) counts: [usize; 2],
    /// Misses of this cache and of later ones count as requests to storage, against the limits; for reads and
    /// for writes.
    pub(super) first_to_storage: [usize; 2],
    /// Processor time of a cached read, whatever its size, seconds: half of the quickest read seen. Fitted, it made
    /// the law no better (`docs/experiments.md`). It counts as exact: no interval has its doubt. With direct access
    /// half of a device's read counts as processor time; where several are in flight, ξ may take that back.
    pub(super) read_copy_fixed_s: f64,
    /// Pages that a kernel reads ahead at most, where it reads ahead what misses its page cache, the first cache for
    /// reads.
    pub(super) read_ahead_pages: Option<f64>,
    /// Dirty data from which on the kernel writes back all the time, bytes, where it does. What-if sizes of caches leave it
    /// as it is.
    pub(super) written_back_from_bytes: Option<f64>,
    /// Share of write-back that its writer waits for: write-back runs beside the writer, and with direct access there is
    /// none. The half is a choice: fitted, it made the law no better (`docs/experiments.md`).
    pub(super) write_waited: f64,
}

/// Sizes of the caches that the samples can tell something about, bytes, smallest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Caches {
    /// The processor's last-level cache, where a border was found to be that.
    pub(super) processor_bytes: Option<f64>,
    /// Caches that reads find data in.
    pub(super) read: Vec<f64>,
    /// Amounts of dirty data from which on writers begin to wait.
    pub(super) write: Vec<f64>,
    /// For each of the latter, whether it is a cache for reads, as the page cache is, where writes of new pages wait for
    /// old ones to go: it changes with the cache for reads.
    pub(super) is_page_cache: Vec<bool>,
    /// Index of the first real cache: 1 with direct access, whose first is a pseudo-cache.
    pub(super) first_real: usize,
    /// True where no border was found on writes, and direct writes tell what lies beyond: the only cache for writes
    /// is then as large as the machine lets dirty data grow.
    pub(super) is_write_size_assumed: bool,
    /// Whether the device layer's direct writes say what write-back costs, in place of visits: no visit passed the page
    /// cache, and there are such writes.
    pub(super) has_device_writes: bool,
    /// True if no visit touched more data than the page cache holds: the size of the only cache for reads is what
    /// the machine says, and cold reads measured what lies beyond.
    pub(super) is_unpassed: bool,
    read_ahead_pages: Option<f64>,
    written_back_from_bytes: Option<f64>,
    /// Least time of a request in warm visits that mostly read, seconds.
    quickest_read_s: f64,
}

impl Caches {
    /// The borders found. Where one was found on writes, also the kernel's limit on dirty data and the
    /// page cache, if data went clearly beyond them: without a border on writes, writes cost nothing
    /// but copying as far as the map goes.
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
        let first_real = usize::from(training.ranges.access == Access::Direct);
        if first_real > 0 {
            read.insert(0, PSEUDO_CACHE_BYTES);
            write.insert(0, (PSEUDO_CACHE_BYTES, false));
        } else if !write.is_empty() {
            let reach = training.samples.iter().map(|s| s.workload.unique_bytes as f64);
            let reach = reach.fold(0.0, f64::max);
            let limit = std::iter::once((training.host.dirty_limit_bytes as f64, false));
            for (bytes, is_page_cache) in limit.chain(read.iter().map(|bytes| (*bytes, true))) {
                let is_apart = |already: &(f64, bool)| {
                    !(1.0 / SAME_CACHE..SAME_CACHE).contains(&(bytes / already.0))
                };
                if bytes > 0.0 && bytes * CLEARLY_BEYOND < reach && write.iter().all(is_apart) {
                    write.push((bytes, is_page_cache));
                }
            }
            write.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
        let [mut is_write_size_assumed, mut has_device_writes, mut is_unpassed] = [false; 3];
        if let Some(bytes) = training.unpassed_bytes().filter(|_| read.is_empty()) {
            read.push(bytes);
            is_unpassed = true;
            has_device_writes = training.device.iter().any(tells_of_writes);
            if write.is_empty() && has_device_writes {
                let dirty = training.host.dirty_limit_bytes as f64;
                write.push((if dirty > 0.0 { dirty.min(bytes) } else { bytes }, false));
                is_write_size_assumed = true;
            }
        }
        let has_page_cache = read.first().is_some_and(|it| training.hints.may_be_page_cache(*it));
        // Where no visit passed the page cache and the target does not say, as much as Linux does by default.
        let window_bytes = training.read_ahead_bytes.or(is_unpassed.then_some(READ_AHEAD_BYTES));
        let is_read_ahead = |bytes: &u64| *bytes > 0 && first_real == 0 && has_page_cache;
        let read_ahead_pages =
            window_bytes.filter(is_read_ahead).map(|bytes| bytes as f64 / PAGE_BYTES);
        let (write, is_page_cache) = write.into_iter().unzip();
        Self {
            processor_bytes,
            read,
            write,
            is_page_cache,
            first_real,
            is_write_size_assumed,
            has_device_writes,
            is_unpassed,
            read_ahead_pages,
            written_back_from_bytes: Some(training.host.dirty_background_bytes as f64)
                .filter(|bytes| *bytes > 0.0 && first_real == 0 && !training.hints.in_memory),
            quickest_read_s: quickest_s(training, READ),
        }
    }

    /// For reads and for writes: true where the law predicts them for more data than any visit of a warm cache touched.
    /// Cold reads and direct writes measured what they cost there.
    pub(super) fn is_put_together(&self) -> [bool; 2] {
        [self.is_unpassed, self.is_unpassed && !self.write.is_empty()]
    }

    pub(super) fn shape(&self) -> Shape {
        let absorbing = self.is_page_cache.iter().rposition(|is_page_cache| !is_page_cache);
        Shape {
            counts: [self.read.len(), self.write.len()],
            first_to_storage: [self.read.len().saturating_sub(1), absorbing.unwrap_or(0)],
            read_copy_fixed_s: self.quickest_read_s / 2.0,
            read_ahead_pages: self.read_ahead_pages,
            written_back_from_bytes: self.written_back_from_bytes,
            write_waited: if self.first_real > 0 { 1.0 } else { 0.5 },
        }
    }

    /// Index of the read cache that [`super::Blend::with_caches`] changes: the largest.
    pub(super) fn main_read(&self) -> Option<usize> {
        self.read.len().checked_sub(1).filter(|last| *last >= self.first_real)
    }

    /// Index of the write cache that [`super::Blend::with_caches`] changes: the first that is not the
    /// page cache.
    pub(super) fn main_write(&self) -> Option<usize> {
        (self.first_real..self.write.len()).find(|index| !self.is_page_cache[*index])
    }
}

pub(super) fn is_mostly(work: &Workload, direction: usize) -> bool {
    let share = if direction == READ { work.read_frac } else { 1.0 - work.read_frac };
    share >= MOSTLY
}

/// Least time of a request of a process that has one in flight, in warm visits that mostly read, or write, seconds;
/// in all of them where there are no such visits.
pub(super) fn quickest_s(training: &Training, direction: usize) -> f64 {
    let least = |is: &dyn Fn(&Workload) -> bool| {
        let of = training.samples.iter().filter(|sample| is(&sample.workload));
        of.map(request_s).fold(f64::INFINITY, f64::min)
    };
    let chosen = least(&|work| is_mostly(work, direction));
    if chosen.is_finite() { chosen } else { least(&|_| true) }
}

/// Seconds per request of one process.
pub(super) fn request_s(sample: &Sample) -> f64 {
    let work = &sample.workload;
    f64::from(work.process_num) * work.size_mean as f64 / sample.ln_throughput.exp()
}
