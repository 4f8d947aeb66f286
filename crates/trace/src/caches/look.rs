//! The first look at a trace, in one pass: the curve of all sizes, whose misses they are, and what is
//! looked up by name.

use ioscape_model::app::{CachePart, Caches, PageCacheUse};

use super::mrc::{Access, Curve, ExactCurve, Touch};
use super::names::Names;
use super::page_cache::{PageCache, Totals};
use super::parts::Parts;
use super::subjects::{Subjects, touches_of};
use crate::event::{Event, FileEntry, Op, TraceInfo};

/// Takes the events of a trace.
#[derive(Debug)]
pub struct Looker {
    subjects: Subjects,
    curve: Option<ExactCurve>,
    /// Touches that the curve has not seen yet, with their times: it is quickest with many at once.
    waiting: (Vec<Touch>, Vec<u64>),
    parts: Parts,
    names: Names,
    mapped: u64,
    touched: u64,
}

/// Touches that wait at most.
const WAITING_MAX: usize = 512;

/// How the curve is to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// From every touch: some bytes of memory for each distinct page.
    Exact,
    /// Not in this pass.
    Without,
}

/// Findings of a first look.
#[derive(Debug)]
pub struct Look {
    /// Files with data, without the programs that were started.
    pub subjects: Subjects,
    /// The curve, where it was asked for.
    pub curve: Option<Curve>,
    /// Touches by class and by phase; empty without the curve.
    pub parts: Vec<CachePart>,
    /// Look-ups of names; `None` where there were none.
    pub names: Option<CachePart>,
    /// Share of the touched pages that were touched through mappings.
    pub mapped_fraction: f64,
}

impl Looker {
    /// For the files of a trace, and phases that begin at these moments after the first one.
    #[must_use]
    pub fn new(files: &[FileEntry], info: &TraceInfo, cuts_ns: &[u64], detail: Detail) -> Self {
        Self {
            subjects: Subjects::new(files, info),
            curve: (detail == Detail::Exact).then(ExactCurve::new),
            waiting: Default::default(),
            parts: Parts::new(files, cuts_ns),
            names: Names::new(files),
            mapped: 0,
            touched: 0,
        }
    }

    /// Takes an event.
    pub fn see(&mut self, event: &Event) {
        self.subjects.see(event);
        self.names.see(event);
        let Self { subjects, curve, waiting, mapped, touched, .. } = self;
        touches_of(event, subjects, |access, file, first_page, pages| {
            *touched += pages;
            *mapped += if matches!(event.op, Op::FaultR | Op::FaultW) { pages } else { 0 };
            if curve.is_some() {
                waiting.0.push(Touch { access, file, first_page, pages });
                waiting.1.push(event.start_ns);
            }
        });
        if self.waiting.0.len() >= WAITING_MAX {
            self.count_waiting();
        }
    }

    fn count_waiting(&mut self) {
        let Self { curve: Some(curve), waiting: (touches, times_ns), parts, .. } = self else {
            return;
        };
        curve.touch_all(touches, |number, distance, pages| {
            let Touch { access, file, .. } = touches[number];
            parts.add((file, times_ns[number]), access, distance, pages);
        });
        touches.clear();
        times_ns.clear();
    }

    /// The findings.
    #[must_use]
    pub fn finish(mut self) -> Look {
        self.count_waiting();
        let parts = if self.curve.is_some() { self.parts.finish() } else { Vec::new() };
        Look {
            subjects: self.subjects,
            curve: self.curve.map(ExactCurve::finish),
            parts,
            names: self.names.finish(),
            mapped_fraction: self.mapped as f64 / self.touched.max(1) as f64,
        }
    }
}

/// A model's part about caches, from a curve.
#[must_use]
pub fn caches_of(curve: &Curve) -> Caches {
    let (points, curve_error) = curve.simplify();
    Caches {
        pages: curve.pages(),
        reads: curve.touches(Access::Read),
        writes: curve.touches(Access::Write),
        curve: points,
        curve_error,
        ..Caches::default()
    }
}

/// A model's line about a simulated page cache.
#[must_use]
pub fn use_of(cache: &PageCache) -> PageCacheUse {
    let totals = cache.totals();
    PageCacheUse {
        pages: cache.settings().memory_pages,
        inserted: totals.inserted,
        read: totals.read,
        read_mapped: totals.read_mapped,
        written_back: totals.written_back,
        sequential_hits: totals.sequential_hits,
        sequential_misses: totals.sequential_misses,
        random_hits: totals.random_hits,
        random_misses: totals.random_misses,
    }
}

/// A page cache of this many pages, by a model: straight between the two sizes next to it
/// that were simulated, and theirs beyond the first and the last. `None` where none was.
#[must_use]
pub fn use_at(caches: &Caches, pages: u64) -> Option<Totals> {
    let mut known: Vec<&PageCacheUse> = caches.page_cache.iter().collect();
    known.sort_by_key(|one| one.pages);
    let next = known.partition_point(|one| one.pages < pages);
    let high = known.get(next).or(known.last())?;
    let low = if next > 0 { known[next - 1] } else { known[0] };
    let run = high.pages.saturating_sub(low.pages);
    let part = if run == 0 { 0.0 } else { (pages - low.pages) as f64 / run as f64 };
    let between = |count: fn(&PageCacheUse) -> u64| {
        let (low, high) = (count(low) as f64, count(high) as f64);
        (low + (high - low) * part).round() as u64
    };
    Some(Totals {
        inserted: between(|one| one.inserted),
        read: between(|one| one.read),
        read_mapped: between(|one| one.read_mapped),
        written_back: between(|one| one.written_back),
        sequential_hits: between(|one| one.sequential_hits),
        sequential_misses: between(|one| one.sequential_misses),
        random_hits: between(|one| one.random_hits),
        random_misses: between(|one| one.random_misses),
        ..Totals::default()
    })
}
