//! `ioscape trace caches`: the miss-ratio curve of a trace, and the page cache at sizes of memory.

mod text;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ioscape_model::units::{parse_size, show_percent, show_size};
use ioscape_trace::caches::mrc::{Access, Curve, ExactCurve, sample_until_agreed};
use ioscape_trace::caches::page_cache::{PageCache, Policy, Settings};
use ioscape_trace::caches::{PAGE_BYTES, Start, Subjects, ladder, touches_of};
use ioscape_trace::{Event, Layer, Op, TraceInfo};
use serde::Serialize;

use super::opened::Opened;
use crate::exit::{Exit, usage};
use crate::output::answer;

/// Points of the curve in the answer.
const CURVE_POINTS: usize = 100;
/// Share of mapped touches above which the answer says what it does not see.
const MAPPED_MAX: f64 = 0.1;

/// Events above which the curve is made from samples of the pages: the exact one takes some bytes of
/// memory for each page.
const EXACT_EVENTS_MAX: u64 = 500_000_000;
/// Samples are to agree this well, relative to the misses.
const SAMPLES_APART_MAX: f64 = 0.05;

/// What can be typed.
#[derive(Debug, Args)]
pub(crate) struct CachesArgs {
    /// The trace, as `trace record` and `trace import` make it.
    trace: PathBuf,
    /// Sizes of the memory that files may take, to simulate; default: a ladder around the knee of the
    /// curve.
    #[arg(long, value_name = "SIZE,…", value_parser = parse_size, value_delimiter = ',')]
    memory: Vec<u64>,
    /// Which page makes room for another.
    #[arg(long, value_enum, default_value_t = TypedPolicy::PageCache)]
    policy: TypedPolicy,
    /// What is in memory at the start.
    #[arg(long, value_enum, default_value_t = TypedStart::Cold)]
    start: TypedStart,
    /// Answer as JSON.
    #[arg(long)]
    json: bool,
}

/// Policies as they are typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TypedPolicy {
    /// The page touched longest ago; no read-ahead.
    Lru,
    /// The page that came first; no read-ahead.
    Fifo,
    /// Linux: two lists, refaults, read-ahead.
    PageCache,
}

impl TypedPolicy {
    const fn meant(self) -> Policy {
        match self {
            Self::Lru => Policy::Lru,
            Self::Fifo => Policy::Fifo,
            Self::PageCache => Policy::PageCache,
        }
    }
}

/// Starts as they are typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TypedStart {
    /// As many pages of each file as there were when it was first opened.
    AsRecorded,
    /// No data; names and programs are in memory.
    Cold,
}

impl TypedStart {
    const fn meant(self) -> Start {
        match self {
            Self::AsRecorded => Start::AsRecorded,
            Self::Cold => Start::Cold,
        }
    }
}

/// The answer.
#[derive(Debug, Serialize)]
struct Document {
    /// Distinct pages of 4 KiB.
    pages: u64,
    curve: Vec<Point>,
    /// How far the samples that the curve was made from are apart, relative to the misses, where it was.
    curve_relative_error: Option<f64>,
    /// Where the curve bends most.
    knee_bytes: u64,
    /// The least memory with nine tenths of the hits that any memory has.
    gain_90_bytes: u64,
    pages_touched_by_reads: u64,
    pages_touched_by_writes: u64,
    simulated: Vec<Simulated>,
    warnings: Vec<String>,
}

/// A size of an LRU cache.
#[derive(Debug, Serialize)]
struct Point {
    bytes: u64,
    miss_ratio: f64,
    read_misses: u64,
    write_misses: u64,
}

/// A size of memory. Pages are of 4 KiB.
#[derive(Debug, Serialize)]
struct Simulated {
    memory_bytes: u64,
    policy: &'static str,
    pages_inserted: u64,
    pages_read: u64,
    pages_read_mapped: u64,
    pages_written_back: u64,
    hit_fraction: f64,
    sequential_hits: u64,
    sequential_misses: u64,
    random_hits: u64,
    random_misses: u64,
    direct_read_bytes: u64,
    direct_written_bytes: u64,
}

/// Looks at the trace twice: for the curve, and for the caches at the sizes asked for.
pub(crate) fn caches(args: &CachesArgs) -> anyhow::Result<Exit> {
    let trace = Opened::open(&args.trace)?;
    let policy = args.policy.meant();
    check_layer(trace.info().layer, policy, args)?;
    let mut subjects = Subjects::new(&trace.files()?, trace.info());
    let look = look(&trace, &mut subjects)?;
    let curve = look.curve;
    let memory = if args.memory.is_empty() {
        ladder(&curve).into_iter().map(|pages| pages * PAGE_BYTES).collect()
    } else {
        args.memory.clone()
    };
    let cache = |bytes: &u64| {
        subjects.cache(Settings::new(policy, (bytes / PAGE_BYTES).max(1)), args.start.meant())
    };
    let mut caches: Vec<PageCache> = memory.iter().map(cache).collect();
    trace.for_each("simulating", |event: &Event| {
        for cache in &mut caches {
            cache.event(event);
        }
    })?;
    let simulated = memory.iter().zip(&caches).map(|(bytes, cache)| simulated(*bytes, cache));
    let document = Document {
        simulated: simulated.collect(),
        warnings: warnings(trace.info(), look.mapped_fraction, args.start),
        curve_relative_error: look.relative_error,
        ..curve_of(&curve)
    };
    if args.json {
        answer(&serde_json::to_string_pretty(&document)?)?;
    } else {
        answer(&text::text(&document))?;
    }
    Ok(Exit::Fine)
}

/// What a first look at a trace found.
struct Look {
    curve: Curve,
    /// Of the curve's misses, where it was made from samples.
    relative_error: Option<f64>,
    /// Share of the touched pages that were touched through mappings.
    mapped_fraction: f64,
}

/// Makes the curve, and leaves out programs that are started.
fn look(trace: &Opened, subjects: &mut Subjects) -> anyhow::Result<Look> {
    let (mut mapped, mut touched) = (0, 0);
    let mut exact = (trace.events_count() <= EXACT_EVENTS_MAX).then(ExactCurve::new);
    trace.for_each("looking at what is touched", |event| {
        subjects.see(event);
        touches_of(event, subjects, |access, file, first, pages| {
            touched += pages;
            mapped += if matches!(event.op, Op::FaultR | Op::FaultW) { pages } else { 0 };
            if let Some(curve) = &mut exact {
                curve.touch(access, file, first, pages);
            }
        });
    })?;
    let mapped_fraction = mapped as f64 / touched.max(1) as f64;
    if let Some(curve) = exact {
        return Ok(Look { curve: curve.finish(), relative_error: None, mapped_fraction });
    }
    let agreement = sample_until_agreed(SAMPLES_APART_MAX, |curve| {
        trace.for_each("making the curve from samples", |event| {
            touches_of(event, subjects, |access, file, first, pages| {
                curve.touch(access, file, first, pages);
            });
        })
    })?;
    let relative_error = Some(agreement.relative_error);
    Ok(Look { curve: agreement.curve, relative_error, mapped_fraction })
}

/// What comes below the page cache is not to be put through it once more.
fn check_layer(layer: Layer, policy: Policy, args: &CachesArgs) -> anyhow::Result<()> {
    let is_below = match layer {
        Layer::Syscall | Layer::Library | Layer::File => false,
        Layer::Block | Layer::KeyValue | Layer::Http => true,
    };
    if is_below && policy == Policy::PageCache {
        return Err(usage(format!(
            "{}: its requests did not go through a page cache, or already did: try --policy lru",
            args.trace.display()
        )));
    }
    Ok(())
}

fn curve_of(curve: &Curve) -> Document {
    let point = |pages: u64| Point {
        bytes: pages * PAGE_BYTES,
        miss_ratio: curve.miss_ratio(pages),
        read_misses: curve.misses(Access::Read, pages),
        write_misses: curve.misses(Access::Write, pages),
    };
    Document {
        pages: curve.pages(),
        curve: curve.sizes(CURVE_POINTS).into_iter().map(point).collect(),
        curve_relative_error: None,
        knee_bytes: curve.knee() * PAGE_BYTES,
        gain_90_bytes: curve.pages_for_gain(0.9) * PAGE_BYTES,
        pages_touched_by_reads: curve.touches(Access::Read),
        pages_touched_by_writes: curve.touches(Access::Write),
        simulated: Vec::new(),
        warnings: Vec::new(),
    }
}

fn simulated(memory_bytes: u64, cache: &PageCache) -> Simulated {
    let totals = cache.totals();
    Simulated {
        memory_bytes,
        policy: cache.settings().policy.name(),
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
    }
}

fn warnings(info: &TraceInfo, mapped: f64, start: TypedStart) -> Vec<String> {
    let mut warnings = info.limits.clone();
    if info.lost > 0 {
        warnings.push(format!("{} events were lost: what they touched is missing", info.lost));
    }
    if mapped > MAPPED_MAX {
        warnings.push(format!(
            "{} of the pages were touched through mappings, of which only the first touch is seen: \
             they may stay in memory for longer than said",
            show_percent(mapped)
        ));
    }
    if start == TypedStart::AsRecorded {
        warnings.push(
            "how much of each file was in memory at the start is known, not which pages: taken for \
             its first"
                .to_owned(),
        );
    }
    warnings
}

/// A size for people.
fn size(bytes: u64) -> String {
    show_size(bytes as f64)
}
