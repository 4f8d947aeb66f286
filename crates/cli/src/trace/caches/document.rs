//! The answer as data: what `--json` prints.

use ioscape_model::app::Caches;
use ioscape_model::{CacheAnswer, CachePoint, MemoryUse, TraceShare};
use ioscape_trace::caches::mrc::{Access, Curve};
use ioscape_trace::caches::page_cache::{Policy, Totals};
use ioscape_trace::caches::{PAGE_BYTES, ladder, memory_for_gain, use_at};

use super::super::together::{Together, pages_of_memory};
use super::work::{GAIN, Looked, Simulated};

/// Points of the curve in the answer.
const CURVE_POINTS: usize = 100;

/// The findings of passes over traces; without warnings.
pub(super) fn of_traces(
    traces: &Together,
    looked: &Looked,
    simulated: &[Simulated],
) -> CacheAnswer {
    let share = |(trace, pages_read): (&std::path::Path, &u64)| TraceShare {
        trace: trace.display().to_string(),
        pages_read: *pages_read,
    };
    let simulated = simulated.iter().map(|one| {
        let policy = one.cache.settings().policy;
        let mut told = answer((one.memory_bytes, policy), &one.cache.totals());
        if one.read_by_trace.len() > 1 {
            told.by_trace = traces.paths().zip(&one.read_by_trace).map(share).collect();
        }
        told
    });
    CacheAnswer {
        curve_relative_error: looked.relative_error,
        parts: looked.parts.clone(),
        names: looked.names.clone(),
        simulated: simulated.collect(),
        ..of_curve(&looked.curve)
    }
}

/// The answers that a model holds.
pub(super) fn of_model(caches: &Caches, policy: Policy, memory: &[u64]) -> CacheAnswer {
    let curve = Curve::from_model(caches);
    let memory = if memory.is_empty() {
        let most = caches.page_cache.iter().map(|one| one.pages).max().unwrap_or(0);
        ladder(&curve, most).into_iter().map(|pages| pages * PAGE_BYTES).collect()
    } else {
        memory.to_vec()
    };
    let at = |bytes: u64| {
        let pages = pages_of_memory(bytes);
        let totals = match policy {
            Policy::PageCache => use_at(caches, pages)?,
            _ => lru_at(&curve, pages),
        };
        Some(answer((bytes, policy), &totals))
    };
    let known: Vec<_> = caches.page_cache.iter().map(|one| (one.pages, one.read)).collect();
    let gain = (policy == Policy::PageCache).then(|| gain_bytes(&known, caches.reads)).flatten();
    let mut document = CacheAnswer {
        simulated_gain_90_bytes: gain,
        curve_relative_error: caches.sampling_error,
        parts: caches.parts.clone(),
        names: caches.names.clone(),
        simulated: memory.into_iter().filter_map(at).collect(),
        ..of_curve(&curve)
    };
    document.warnings.push(format!(
        "from a model: miss ratios are within {:.3}; what the page cache does was simulated at {} \
         sizes of memory and is taken to change evenly between them",
        caches.curve_error,
        caches.page_cache.len()
    ));
    document
}

/// Memory from which on a policy saves most of the reads that memory can save, from sizes in pages with
/// the pages read, and how many reads asked for.
pub(super) fn gain_bytes(known: &[(u64, u64)], asked: u64) -> Option<u64> {
    memory_for_gain(known, asked, GAIN).map(|pages| pages * PAGE_BYTES)
}

/// An LRU cache as its curve tells it: a page that is read and missed is read from storage.
fn lru_at(curve: &Curve, pages: u64) -> Totals {
    let (reads, writes) = (curve.misses(Access::Read, pages), curve.misses(Access::Write, pages));
    Totals {
        inserted: reads + writes,
        read: reads,
        random_misses: reads,
        random_hits: curve.touches(Access::Read) - reads,
        ..Totals::default()
    }
}

fn of_curve(curve: &Curve) -> CacheAnswer {
    let point = |pages: u64| CachePoint {
        bytes: pages * PAGE_BYTES,
        miss_ratio: curve.miss_ratio(pages),
        read_misses: curve.misses(Access::Read, pages),
        write_misses: curve.misses(Access::Write, pages),
    };
    CacheAnswer {
        pages: curve.pages(),
        curve: curve.sizes(CURVE_POINTS).into_iter().map(point).collect(),
        curve_relative_error: None,
        knee_bytes: curve.knee() * PAGE_BYTES,
        gain_90_bytes: curve.pages_for_gain(GAIN) * PAGE_BYTES,
        simulated_gain_90_bytes: None,
        pages_touched_by_reads: curve.touches(Access::Read),
        pages_touched_by_writes: curve.touches(Access::Write),
        parts: Vec::new(),
        names: None,
        simulated: Vec::new(),
        warnings: Vec::new(),
    }
}

fn answer((memory_bytes, policy): (u64, Policy), totals: &Totals) -> MemoryUse {
    MemoryUse {
        memory_bytes,
        policy: policy.name().to_owned(),
        pages_inserted: totals.inserted,
        pages_read: totals.read,
        pages_read_mapped: totals.read_mapped,
        pages_written_back: totals.written_back,
        hit_fraction: totals.hit_fraction(),
        sequential_hits: totals.sequential_hits,
        sequential_misses: totals.sequential_misses,
        random_hits: totals.random_hits,
        random_misses: totals.random_misses,
        direct_read_bytes: totals.direct_read_bytes,
        direct_written_bytes: totals.direct_written_bytes,
        by_trace: Vec::new(),
    }
}
