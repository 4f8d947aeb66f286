//! Which files of a trace the caches are asked about, and in which state they start.

use std::collections::{BTreeMap, HashSet};

use super::advised::Scattered;
use super::mrc::{Access, Curve};
use super::page_cache::{PageCache, Settings};
use super::{PAGE_BYTES, pages_of};
use crate::event::{Event, FileEntry, FileKind, Flags, Op, TraceInfo};

/// Class of files whose pages other programs keep in memory, too: libraries.
const PROGRAM: &str = "program";

/// Bit of the second number of `Op::Mmap`, as in <sys/mman.h>.
const PROT_EXEC: u64 = 4;

/// Memory that nothing fills, not what is read ahead in vain or cached at the start either: a pebibyte.
pub const AMPLE_BYTES: u64 = 1 << 50;

/// Bytes of a KiB.
const KIB: u64 = 1024;

/// Scatters numbers that follow each other: 2^32 divided by the golden ratio (Knuth, The Art of Computer
/// Programming, 6.4).
const SCATTER: u32 = 0x9e37_79b9;

/// What is in memory at the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// No data; names and program text are there.
    #[default]
    Cold,
    /// Of each file as many pages as were found when it was first opened, its first ones.
    AsRecorded,
}

#[derive(Clone, Copy, Debug)]
struct Subject {
    bytes: u64,
    read_ahead_pages: Option<u64>,
    resident_pages: u64,
}

/// Files with data, and those that are left out: programs and libraries, which are taken to be in
/// memory for others, and what is no storage.
#[derive(Clone, Debug, Default)]
pub struct Subjects {
    files: BTreeMap<u32, Subject>,
    outside: HashSet<u32>,
    scattered: Scattered,
}

impl Subjects {
    /// From the table of files and what is known of the whole.
    #[must_use]
    pub fn new(files: &[FileEntry], info: &TraceInfo) -> Self {
        let read_ahead: BTreeMap<_, _> = info.read_ahead_kb.iter().copied().collect();
        let mut subjects = Self::default();
        for file in files {
            let holds_data =
                matches!(file.kind, FileKind::Regular | FileKind::Block | FileKind::Object);
            if !holds_data || file.class == PROGRAM {
                subjects.outside.insert(file.id);
                continue;
            }
            let read_ahead_kb = read_ahead.get(&file.device);
            let subject = Subject {
                bytes: file.first_bytes,
                read_ahead_pages: read_ahead_kb.map(|kib| kib * KIB / PAGE_BYTES),
                resident_pages: file.resident_bytes.unwrap_or(0).div_ceil(PAGE_BYTES),
            };
            subjects.files.insert(file.id, subject);
        }
        subjects
    }

    /// Leaves out a program that an event starts, and a library that it maps to run; learns where reads are
    /// scattered. Before `touches_of` is asked about the event.
    pub fn see(&mut self, event: &Event) {
        let runs = event.op == Op::Exec || event.op == Op::Mmap && event.other & PROT_EXEC != 0;
        if runs && event.file != 0 {
            self.outside.insert(event.file);
        }
        self.scattered.see(event);
    }

    /// Pages that a fault touched: the first, and how many.
    pub(crate) fn touched_by(&self, fault: &Event) -> (u64, u64) {
        self.scattered.touched_by(fault)
    }

    /// Leaves out a file: it lies elsewhere than what is asked about.
    pub fn leave_out(&mut self, file: u32) {
        self.outside.insert(file);
    }

    /// Whether a file is one of those asked about.
    #[must_use]
    pub fn takes_part(&self, file: u32) -> bool {
        file != 0 && !self.outside.contains(&file)
    }

    /// A page cache that knows the files. Which of those that are in memory at the start came into it
    /// first is unknown: they are filled in an order that has nothing to do with the order in which the
    /// program uses them; each from its first page on. Filled in the order of use, each file would be used
    /// just before it is evicted: a program that copies 104 MiB with 163 MiB of memory would read nothing,
    /// where the kernel read 37 MiB.
    #[must_use]
    pub fn cache(&self, settings: Settings, start: Start) -> PageCache {
        let mut cache = PageCache::new(settings);
        let mut resident = Vec::new();
        for (file, subject) in &self.files {
            cache.set_length(*file, subject.bytes);
            if let Some(pages) = subject.read_ahead_pages {
                cache.set_read_ahead(*file, pages);
            }
            if start == Start::AsRecorded && self.takes_part(*file) {
                let pages = subject.resident_pages.min(subject.bytes.div_ceil(PAGE_BYTES));
                resident.push((file.wrapping_mul(SCATTER), *file, pages));
            }
        }
        resident.sort_unstable();
        for (_, file, pages) in resident {
            cache.fill(file, pages);
        }
        self.outside.iter().for_each(|file| cache.leave_out(*file));
        cache
    }
}

/// Shows the ranges of pages that an event touches in the cache: access, file, first page, pages. Direct
/// I/O passes by all caches.
#[inline]
pub fn touches_of(
    event: &Event,
    subjects: &Subjects,
    mut touch: impl FnMut(Access, u32, u64, u64),
) {
    if event.error != 0 || event.flags.has(Flags::DIRECT) || !subjects.takes_part(event.file) {
        return;
    }
    let (first, pages) = pages_of(event.offset, event.length);
    match event.op {
        Op::Read | Op::Sendfile | Op::Get => touch(Access::Read, event.file, first, pages),
        Op::Write | Op::Set => touch(Access::Write, event.file, first, pages),
        Op::Copy => {
            touch(Access::Read, event.file, first, pages);
            let to = u32::try_from(event.other).unwrap_or(0);
            if subjects.takes_part(to) {
                touch(Access::Write, to, first, pages);
            }
        }
        Op::FaultR | Op::FaultW => {
            let (first, pages) = subjects.touched_by(event);
            touch(Access::Read, event.file, first, pages);
        }
        _ => {}
    }
}

/// Sizes in pages that are worth simulating: around the knee, where shares of the gain are had, and what
/// a policy holds at most where memory is ample. That is more than is touched: what is read ahead in vain
/// takes memory, too (git's grep touches 66 MiB and fills 77).
#[must_use]
pub fn ladder(curve: &Curve, held_at_most: u64) -> Vec<u64> {
    /// A mebibyte: no program has less for its files.
    const SMALLEST: u64 = 256;
    let knee = curve.knee();
    let gains = [0.25, 0.5, 0.75, 0.9, 0.99].map(|fraction| curve.pages_for_gain(fraction));
    let near_knee = [knee - knee / 8, knee, knee + knee / 8];
    let all = gains.into_iter().chain(near_knee).chain([curve.pages(), held_at_most]);
    let mut sizes: Vec<_> = all.map(|pages| rounded_up(pages.max(SMALLEST))).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

/// Memory in pages from which on a policy has this share of what all memory saves: reads that were asked
/// for and not taken from storage. Where read-ahead takes about as much as was asked for with any memory,
/// savings are against the most that is read with one. `known` are sizes and pages read from storage;
/// between two of them reads change evenly. `None` where memory saves nothing.
#[must_use]
pub fn memory_for_gain(known: &[(u64, u64)], asked: u64, fraction: f64) -> Option<u64> {
    /// What was asked for counts if it is so much more than what all memory leaves to be read.
    const MORE: f64 = 1.1;
    let mut known = known.to_vec();
    known.sort_unstable();
    let most = known.iter().map(|(_, read)| *read).max()?;
    let least = known.last()?.1;
    let all = if asked as f64 > MORE * least as f64 { asked } else { most };
    let saved = |read: u64| all as f64 - read as f64;
    let wanted = fraction * saved(known.last()?.1);
    if wanted <= 0.0 {
        return None;
    }
    let Some(below) = known.iter().rposition(|(_, read)| saved(*read) < wanted) else {
        return Some(known[0].0);
    };
    let ((low, some), (high, enough)) = (known[below], known[below + 1]);
    let along = (wanted - saved(some)) / (saved(enough) - saved(some));
    Some(low + ((high - low) as f64 * along).ceil() as u64)
}

/// Sizes between the two of `known` where `memory_for_gain` lies: simulated, they tell it to a tenth of
/// the way from one to the other.
#[must_use]
pub fn sizes_around_gain(known: &[(u64, u64)], asked: u64, fraction: f64) -> Vec<u64> {
    /// Below the smallest, down to this: a mebibyte.
    const SMALLEST: u64 = 256;
    /// Parts of the way.
    const PARTS: u64 = 10;
    let Some(pages) = memory_for_gain(known, asked, fraction) else { return Vec::new() };
    let high = known.iter().map(|(size, _)| *size).filter(|size| *size >= pages).min();
    let low = known.iter().map(|(size, _)| *size).filter(|size| *size < pages).max();
    let (low, high) = (low.unwrap_or(SMALLEST), high.unwrap_or(pages));
    let sizes = (1..PARTS).map(|part| low + high.saturating_sub(low) * part / PARTS);
    let mut sizes: Vec<u64> = sizes.filter(|size| *size > low && *size < high).collect();
    sizes.dedup();
    sizes
}

/// Two digits are enough: up to the next sixteenth of the power of two below.
fn rounded_up(pages: u64) -> u64 {
    let step = (1 << pages.ilog2()) / 16;
    pages.next_multiple_of(step.max(1))
}

#[cfg(test)]
mod tests {
    use super::super::mrc::ExactCurve;
    use super::*;

    #[test]
    fn the_ladder_has_a_rung_above_the_cliff_of_a_loop_and_one_below() {
        let mut curve = ExactCurve::new();
        for _ in 0..10 {
            (0..5000).for_each(|page| curve.touch(Access::Read, 1, page, 1));
        }
        let curve = curve.finish();
        let sizes = ladder(&curve, 7000);
        assert!(sizes.last().is_some_and(|pages| (7000..7500).contains(pages)), "{sizes:?}");
        assert!(sizes.iter().any(|pages| (5000..5300).contains(pages)), "{sizes:?}");
        assert!(sizes.iter().any(|pages| *pages < 5000), "{sizes:?}");
        assert!(sizes.len() < 12, "{sizes:?}");
    }

    /// Files that are cached at the start and do not all fit with what is written meanwhile: some are evicted,
    /// others last until their turn.
    #[test]
    fn files_cached_at_the_start_are_not_evicted_in_the_order_of_their_use() {
        const PAGES: u64 = 16;
        let file = |id: u32| FileEntry {
            id,
            first_bytes: PAGES * PAGE_BYTES,
            resident_bytes: (id <= 64).then_some(PAGES * PAGE_BYTES),
            ..FileEntry::default()
        };
        let files: Vec<FileEntry> = (1..=128).map(file).collect();
        let subjects = Subjects::new(&files, &TraceInfo::default());
        let settings = Settings::new(super::super::page_cache::Policy::PageCache, 80 * PAGES);
        let mut cache = subjects.cache(settings, Start::AsRecorded);
        for id in 1..=64 {
            for (file, op) in [(id, Op::Read), (id + 64, Op::Write)] {
                let length = PAGES * PAGE_BYTES;
                cache.event(&Event { file, length, ..Event::new(0, op) });
            }
        }
        let read = cache.totals().read;
        assert!((4 * PAGES..32 * PAGES).contains(&read), "{read}");
    }

    #[test]
    fn memory_for_a_gain_is_found_between_the_sizes_that_are_known() {
        // 1000 reads were asked for; all memory saves 900 of them.
        let known = [(400, 100), (100, 1000), (200, 500), (300, 100)];
        assert_eq!(memory_for_gain(&known, 1000, 0.9), Some(278));
        let between = sizes_around_gain(&known, 1000, 0.9);
        assert!(between.len() > 5 && between.iter().all(|size| (201..300).contains(size)));
        assert_eq!(memory_for_gain(&known[..1], 1000, 0.9), Some(400));
        assert!(sizes_around_gain(&known[..1], 1000, 0.9).iter().all(|size| *size < 400));
        // More is read than was asked for, whatever the memory; but much less with some than with others.
        assert_eq!(memory_for_gain(&known, 90, 0.9), Some(278));
        assert_eq!(memory_for_gain(&[(100, 90), (200, 90)], 90, 0.9), None);
        assert_eq!(memory_for_gain(&[], 1000, 0.9), None);
    }
}
