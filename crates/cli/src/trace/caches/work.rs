//! Passes over traces: the first look, and the caches at sizes of memory.

use ioscape_model::app::{CachePart, Caches};
use ioscape_trace::Layer;
use ioscape_trace::caches::mrc::{Access, Curve, sample_until_agreed};
use ioscape_trace::caches::page_cache::{PageCache, Policy, Settings, counters_ns};
use ioscape_trace::caches::{
    AMPLE_BYTES, Detail, Looker, PAGE_BYTES, Start, Subjects, caches_of, ladder, sizes_around_gain,
    touches_of, use_of,
};

use super::super::opened::Opened;
use super::super::together::{Together, pages_of_memory};

/// Events above which the curve is made from samples of the pages: the exact one takes some bytes of
/// memory for each page.
const EXACT_EVENTS_MAX: u64 = 500_000_000;
/// Samples are to agree this well, relative to the misses.
const SAMPLES_APART_MAX: f64 = 0.05;
/// Share of what memory saves that is asked about.
pub(super) const GAIN: f64 = 0.9;
/// Further sizes that are simulated for a model, each this much larger than the one before.
const MODEL_STEP: f64 = 1.5;
/// And so many of them at most.
const MODEL_SIZES_MAX: i32 = 16;

/// The simulation asked for.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) policy: Policy,
    pub(super) start: Start,
    /// Bytes; empty for a ladder around the knee.
    pub(super) memory: Vec<u64>,
    /// How often the simulated kernel counts its lists; `None` for what suits the trace.
    pub(super) counters_s: Option<f64>,
}

/// Findings of a first look at traces.
pub(super) struct Looked {
    pub(super) subjects: Subjects,
    pub(super) curve: Curve,
    /// Of the curve's misses, where it was made from samples.
    pub(super) relative_error: Option<f64>,
    pub(super) parts: Vec<CachePart>,
    pub(super) names: Option<CachePart>,
    /// Share of the touched pages that were touched through mappings.
    pub(super) mapped_fraction: f64,
}

/// A size of memory, simulated.
pub(super) struct Simulated {
    pub(super) memory_bytes: u64,
    pub(super) cache: PageCache,
    /// Pages read from storage for each of the traces.
    pub(super) read_by_trace: Vec<u64>,
}

/// True where requests seen at a layer go through the page cache, and have not yet.
pub(super) const fn passes_the_cache(layer: Layer) -> bool {
    match layer {
        Layer::Syscall | Layer::Library | Layer::File => true,
        Layer::Block | Layer::KeyValue | Layer::Http => false,
    }
}

/// Makes the curve, and leaves out programs that are started.
pub(super) fn look(traces: &Together, cuts_ns: &[u64]) -> anyhow::Result<Looked> {
    let is_small = traces.events_count() <= EXACT_EVENTS_MAX;
    let detail = if is_small { Detail::Exact } else { Detail::Without };
    let mut looker = Looker::new(&traces.files()?, traces.info(), cuts_ns, detail);
    traces.for_each("looking at what is touched", |_, event| looker.see(event))?;
    let look = looker.finish();
    let (curve, relative_error) = match look.curve {
        Some(curve) => (curve, None),
        None => sampled(traces, &look.subjects)?,
    };
    Ok(Looked {
        subjects: look.subjects,
        curve,
        relative_error,
        parts: look.parts,
        names: look.names,
        mapped_fraction: look.mapped_fraction,
    })
}

fn sampled(traces: &Together, subjects: &Subjects) -> anyhow::Result<(Curve, Option<f64>)> {
    let agreement = sample_until_agreed(SAMPLES_APART_MAX, |curve| {
        traces.for_each("making the curve from samples", |_, event| {
            touches_of(event, subjects, |access, file, first, pages| {
                curve.touch(access, file, first, pages);
            });
        })
    })?;
    Ok((agreement.curve, Some(agreement.relative_error)))
}

/// Puts all events through caches of the sizes asked for; by itself of a ladder around the knee of the
/// curve, and of some sizes around the one that has most of the gain.
pub(super) fn simulate(
    traces: &Together,
    looked: &Looked,
    ask: &Ask,
) -> anyhow::Result<Vec<Simulated>> {
    if !ask.memory.is_empty() {
        return simulate_at(traces, looked, ask, &ask.memory);
    }
    let bytes = |sizes: Vec<u64>| sizes.into_iter().map(|pages| pages * PAGE_BYTES);
    let most = held_at_most(traces, looked, ask)?;
    let sizes: Vec<u64> = bytes(ladder(&looked.curve, most)).collect();
    let mut simulated = simulate_at(traces, looked, ask, &sizes)?;
    let asked = looked.curve.touches(Access::Read);
    let known = known(&simulated);
    let sizes: Vec<u64> = bytes(sizes_around_gain(&known, asked, GAIN)).collect();
    simulated.extend(simulate_at(traces, looked, ask, &sizes)?);
    simulated.sort_by_key(|one| one.memory_bytes);
    Ok(simulated)
}

/// Pages that the policy holds at most where memory is ample.
fn held_at_most(traces: &Together, looked: &Looked, ask: &Ask) -> anyhow::Result<u64> {
    let simulated = simulate_at(traces, looked, ask, &[AMPLE_BYTES])?;
    Ok(simulated[0].cache.held_at_most())
}

/// Sizes in pages, and pages read from storage.
pub(super) fn known(simulated: &[Simulated]) -> Vec<(u64, u64)> {
    let read = |one: &Simulated| (pages_of_memory(one.memory_bytes), one.cache.pages_read());
    simulated.iter().map(read).collect()
}

fn simulate_at(
    traces: &Together,
    looked: &Looked,
    ask: &Ask,
    memory: &[u64],
) -> anyhow::Result<Vec<Simulated>> {
    let by_itself_ns = counters_ns(traces.info().elapsed_s);
    let every_ns = ask.counters_s.map_or(by_itself_ns, |seconds| (seconds * 1e9) as u64);
    let cache = |memory_bytes: u64| {
        let mut settings = Settings::new(ask.policy, pages_of_memory(memory_bytes));
        settings.counters_ns = every_ns;
        Simulated {
            memory_bytes,
            cache: looked.subjects.cache(settings, ask.start),
            read_by_trace: vec![0; traces.paths().count()],
        }
    };
    let mut simulated: Vec<Simulated> = memory.iter().copied().map(cache).collect();
    if simulated.is_empty() {
        return Ok(simulated);
    }
    traces.for_each("simulating", |number, event| {
        for one in &mut simulated {
            let before = one.cache.pages_read();
            one.cache.event(event);
            one.read_by_trace[number] += one.cache.pages_read() - before;
        }
    })?;
    Ok(simulated)
}

/// A model's part about caches: the curve, its parts, and the page cache at some sizes.
pub(super) fn for_model(trace: Opened, cuts_ns: &[u64]) -> anyhow::Result<Caches> {
    let traces = Together::of_opened(vec![trace])?;
    let looked = look(&traces, cuts_ns)?;
    let mut caches = caches_of(&looked.curve);
    caches.sampling_error = looked.relative_error;
    caches.parts.clone_from(&looked.parts);
    caches.names.clone_from(&looked.names);
    if !passes_the_cache(traces.info().layer) || looked.curve.pages() == 0 {
        return Ok(caches);
    }
    let mut ask =
        Ask { policy: Policy::PageCache, start: Start::Cold, memory: Vec::new(), counters_s: None };
    let largest = held_at_most(&traces, &looked, &ask)?.max(looked.curve.pages());
    let mut sizes = ladder(&looked.curve, largest);
    let steps = (0..MODEL_SIZES_MAX).map(|step| largest as f64 / MODEL_STEP.powi(step));
    sizes.extend(steps.map(|pages| pages as u64).take_while(|pages| *pages >= 256));
    sizes.sort_unstable();
    sizes.dedup();
    ask.memory = sizes.into_iter().map(|pages| pages * PAGE_BYTES).collect();
    let simulated = simulate(&traces, &looked, &ask)?;
    caches.page_cache = simulated.iter().map(|one| use_of(&one.cache)).collect();
    Ok(caches)
}
