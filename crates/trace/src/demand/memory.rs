//! Page caches of a ladder of sizes, shown all events: what each leaves to the device. And write-back
//! where only so much may be dirty.

use ioscape_model::app::{CacheRung, DirtyRung, Misses};

use super::look::Look;
use crate::caches::page_cache::{PageCache, Policy, Settings, Totals};
use crate::caches::{PAGE_BYTES, Start};
use crate::{Event, Op};

/// The smallest memory that is looked at, bytes.
const SMALLEST_BYTES: u64 = 8 << 20;
/// Rungs of the ladder at most: each costs as much time as all that is counted.
const RUNGS_MAX: usize = 14;
/// Dirty data of the lowest rung, bytes; the next ones are four times as large.
const DIRTY_SMALLEST_BYTES: u64 = 1 << 20;
/// All data fit with this much to spare.
const ENOUGH: f64 = 1.15;

/// A page cache and what it left to the device.
struct Rung {
    cache: PageCache,
    misses: Misses,
    before: Totals,
}

/// Caches of all sizes, and of all limits on dirty data.
pub(super) struct Ladder {
    sizes: Vec<u64>,
    cold: Vec<Rung>,
    /// Empty where nothing was known to be in memory.
    warm: Vec<Rung>,
    dirty: Vec<(u64, Flusher)>,
}

/// Counts what is written back without being asked for.
struct Flusher {
    cache: PageCache,
    asked: u64,
}

impl Ladder {
    pub(super) fn new(look: &Look) -> Self {
        let sizes = sizes((look.touched.bytes() as f64 * ENOUGH) as u64);
        let cache = |bytes: &u64, start: Start| {
            let cache = look.subjects.cache(settings(*bytes), start);
            Rung { before: cache.totals(), cache, misses: Misses::default() }
        };
        let is_warm = look.files.warm_frac().is_some_and(|warm| warm > 0.0);
        let warm = if is_warm { sizes.clone() } else { Vec::new() };
        let most = *sizes.last().unwrap_or(&SMALLEST_BYTES);
        let flusher = |bytes: u64| {
            let settings =
                Settings { dirty_pages_background: bytes / PAGE_BYTES, ..settings(most) };
            (bytes, Flusher { cache: look.subjects.cache(settings, Start::Cold), asked: 0 })
        };
        let mut limits = vec![DIRTY_SMALLEST_BYTES];
        while limits.last().is_some_and(|last| *last < look.written.bytes()) && limits.len() < 8 {
            limits.push(limits[limits.len() - 1] * 4);
        }
        Self {
            cold: sizes.iter().map(|bytes| cache(bytes, Start::Cold)).collect(),
            warm: warm.iter().map(|bytes| cache(bytes, Start::AsRecorded)).collect(),
            sizes,
            dirty: limits.into_iter().map(flusher).collect(),
        }
    }

    pub(super) fn event(&mut self, event: &Event) {
        for rung in self.cold.iter_mut().chain(&mut self.warm) {
            rung.event(event);
        }
        for (_, flusher) in &mut self.dirty {
            flusher.event(event);
        }
    }

    pub(super) fn finish(self) -> (Vec<CacheRung>, Vec<DirtyRung>) {
        let cold: Vec<Misses> = falling(self.cold.iter().map(|rung| rung.misses));
        let warm: Vec<Misses> = falling(self.warm.iter().map(|rung| rung.misses));
        let rung = |(at, memory_bytes): (usize, &u64)| CacheRung {
            memory_bytes: *memory_bytes,
            cold: cold[at],
            as_recorded: warm.get(at).copied().unwrap_or(cold[at]),
        };
        let caches = self.sizes.iter().enumerate().map(rung).collect();
        let dirty = |(dirty_bytes, flusher): &(u64, Flusher)| DirtyRung {
            dirty_bytes: *dirty_bytes,
            pages: flusher.cache.totals().written_back.saturating_sub(flusher.asked),
        };
        (caches, self.dirty.iter().map(dirty).collect())
    }
}

fn settings(memory_bytes: u64) -> Settings {
    Settings::new(Policy::PageCache, (memory_bytes / PAGE_BYTES).max(1))
}

/// Half a doubling apart, from the smallest to one that holds everything.
fn sizes(enough_bytes: u64) -> Vec<u64> {
    let mut sizes = vec![SMALLEST_BYTES];
    while let Some(last) = sizes.last().copied()
        && last < enough_bytes
        && sizes.len() < RUNGS_MAX
    {
        let next = if last.is_power_of_two() { last / 2 * 3 } else { last / 3 * 4 };
        sizes.push(next);
    }
    if let Some(last) = sizes.last_mut() {
        *last = (*last).max(enough_bytes.next_multiple_of(1 << 20));
    }
    sizes
}

/// More memory never reads more: where the simulation has it otherwise, by read-ahead that was given
/// up sooner, the smaller number of a smaller memory holds.
fn falling(misses: impl Iterator<Item = Misses>) -> Vec<Misses> {
    let mut least: Option<Misses> = None;
    let fall = |now: Misses| {
        let before = least.unwrap_or(now);
        let lower = Misses {
            random_requests: now.random_requests.min(before.random_requests),
            random_pages: now.random_pages.min(before.random_pages),
            sequential_pages: now.sequential_pages.min(before.sequential_pages),
            mapped_requests: now.mapped_requests.min(before.mapped_requests),
            mapped_pages: now.mapped_pages.min(before.mapped_pages),
            partial_pages: now.partial_pages.min(before.partial_pages),
        };
        least = Some(lower);
        lower
    };
    misses.map(fall).collect()
}

impl Rung {
    /// Does what the event did, and counts what it read by the kind of call that it was.
    fn event(&mut self, event: &Event) {
        self.cache.event(event);
        let reads = matches!(
            event.op,
            Op::Read | Op::Sendfile | Op::Copy | Op::Write | Op::FaultR | Op::FaultW | Op::Advise
        );
        if !reads {
            return;
        }
        let now = self.cache.totals();
        let pages = (now.read - self.before.read) as f64;
        let sequential = now.sequential_hits + now.sequential_misses;
        let is_sequential =
            sequential > self.before.sequential_hits + self.before.sequential_misses;
        let mut misses = self.misses;
        match event.op {
            _ if pages == 0.0 => {}
            Op::FaultR | Op::FaultW => {
                misses.mapped_requests += 1.0;
                misses.mapped_pages += pages;
            }
            Op::Write => misses.partial_pages += pages,
            _ if is_sequential || event.op == Op::Advise => misses.sequential_pages += pages,
            _ => {
                misses.random_requests += 1.0;
                misses.random_pages += pages;
            }
        }
        self.misses = misses;
        self.before = now;
    }
}

impl Flusher {
    fn event(&mut self, event: &Event) {
        let is_asked = matches!(event.op, Op::Sync | Op::Dsync | Op::Rsync | Op::Msync)
            || event.flags.has(crate::Flags::SYNC);
        let before = if is_asked { self.cache.totals().written_back } else { 0 };
        self.cache.event(event);
        if is_asked {
            self.asked += self.cache.totals().written_back - before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ladder_reaches_from_the_smallest_to_what_holds_everything() {
        assert_eq!(sizes(0), [8 << 20]);
        let all = sizes(100 << 20);
        assert_eq!(&all[..4], [8 << 20, 12 << 20, 16 << 20, 24 << 20]);
        assert!(all.last().is_some_and(|last| *last >= 100 << 20), "{all:?}");
        let huge = sizes(1 << 40);
        assert_eq!((huge.len(), huge.last()), (RUNGS_MAX, Some(&(1 << 40))));
    }

    #[test]
    fn more_memory_never_reads_more() {
        let of = |pages: f64| Misses { random_pages: pages, ..Misses::default() };
        let all = falling([of(9.0), of(4.0), of(5.0)].into_iter());
        assert_eq!(all, [of(9.0), of(4.0), of(4.0)]);
    }
}
