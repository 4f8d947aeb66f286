//! Page caches of a ladder of sizes, shown all events: what each leaves to the device. And write-back
//! where only so much may be dirty.

use ioscape_model::app::{CacheRung, DirtyRung, Misses};

use super::look::Look;
use crate::caches::page_cache::{PageCache, Policy, Settings, Totals};
use crate::caches::{AMPLE_BYTES, PAGE_BYTES, Start};
use crate::{Event, Op};

/// The smallest memory that is looked at, bytes.
const SMALLEST_BYTES: u64 = 8 << 20;
/// Rungs of the ladder below `NEAR`, at most: to simulate one takes as long as to count all calls.
const RUNGS_MAX: i32 = 9;
/// Shares of the touched data where rungs lie close: a loop over data that just do not fit misses all of
/// them.
const NEAR: [f64; 6] = [0.7, 0.8, 0.9, 1.0, 1.1, 1.2];
/// Dirty data of the lowest rung, bytes; the next ones are four times as large.
const DIRTY_SMALLEST_BYTES: u64 = 1 << 20;

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
        let sizes = sizes(look.touched.bytes());
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
        let ample = [self.cold.last(), self.warm.last()].into_iter().flatten();
        let held = ample.map(|rung| rung.cache.held_at_most()).max().unwrap_or(0);
        let held_bytes = (held * PAGE_BYTES).next_multiple_of(1 << 20);
        let cold: Vec<Misses> = falling(self.cold.iter().map(|rung| rung.misses));
        let warm: Vec<Misses> = falling(self.warm.iter().map(|rung| rung.misses));
        let rung = |(at, memory_bytes): (usize, &u64)| CacheRung {
            memory_bytes: *memory_bytes,
            cold: cold[at],
            as_recorded: warm.get(at).copied().unwrap_or(cold[at]),
        };
        let mut caches: Vec<CacheRung> = self.sizes.iter().enumerate().map(rung).collect();
        if let Some(mut last) = caches.pop() {
            last.memory_bytes = held_bytes.max(SMALLEST_BYTES);
            caches.retain(|rung| rung.memory_bytes < last.memory_bytes);
            caches.push(last);
        }
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

/// Evenly spaced in their logarithm, half a doubling apart or more, then close around the touched data. The
/// last is ample: its rung stands for the size that was filled then at most.
fn sizes(touched_bytes: u64) -> Vec<u64> {
    const MIB: u64 = 1 << 20;
    let touched = touched_bytes as f64;
    let smallest = SMALLEST_BYTES as f64;
    let coarse = (NEAR[0] * touched / smallest).max(1.0);
    let step = coarse.powf(1.0 / f64::from(RUNGS_MAX)).max(std::f64::consts::SQRT_2);
    let below = (0..RUNGS_MAX).map(|rung| smallest * step.powi(rung));
    let below = below.take_while(|bytes| *bytes < NEAR[0] * touched);
    let near = NEAR.into_iter().map(|share| share * touched);
    let mut sizes: Vec<u64> =
        below.chain(near).map(|bytes| (bytes as u64).next_multiple_of(MIB)).collect();
    sizes.retain(|bytes| *bytes >= SMALLEST_BYTES);
    sizes.dedup();
    sizes.push(AMPLE_BYTES);
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
        assert_eq!(sizes(0), [AMPLE_BYTES]);
        for touched in [1 << 20, 20 << 20, 100 << 20, 1 << 30, 1 << 40] {
            let all = sizes(touched);
            assert!(all.len() <= RUNGS_MAX as usize + NEAR.len() + 1, "{all:?}");
            assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
            assert!(touched < SMALLEST_BYTES || all[all.len() - 2] >= touched, "{all:?}");
            assert!(all.last().is_some_and(|last| *last >= 8 * touched), "{all:?}");
            assert!(touched < 20 << 20 || all[0] == SMALLEST_BYTES, "{all:?}");
        }
    }

    #[test]
    fn more_memory_never_reads_more() {
        let of = |pages: f64| Misses { random_pages: pages, ..Misses::default() };
        let all = falling([of(9.0), of(4.0), of(5.0)].into_iter());
        assert_eq!(all, [of(9.0), of(4.0), of(4.0)]);
    }
}
