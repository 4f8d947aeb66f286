//! Two applications on one system at a time, as one model: data, rates and streams add up, shares
//! weigh by what they are shares of.

use std::collections::BTreeMap;
use std::ops::AddAssign;

use ioscape_model::app::{
    APP_BYTES_MAX, APP_VERSION, App, Arriving, Behaviour, Concurrency, Doubt, DoubtCode, FileClass,
    Five, Loop, Metadata, Order, Phase, Sequence, SizeCount, SizeLaw, Sizes, SyncKind, Syncs,
    Think, Unique,
};

/// The mixture; its phases are not known, for nobody knows when which meets which.
#[must_use]
pub fn mix(a: &App, b: &App) -> App {
    let whole = behaviours(&a.whole, &b.whole);
    let mut warnings: Vec<Doubt> = Vec::new();
    for doubt in a.warnings.iter().chain(&b.warnings) {
        if !warnings.contains(doubt) {
            warnings.push(doubt.clone());
        }
    }
    warnings.insert(
        0,
        Doubt {
            code: DoubtCode::Mixed,
            text: "put together from several as if they ran at the same time; phases are left out"
                .to_owned(),
        },
    );
    let bytes = |app: &App| (app.whole.bytes_read + app.whole.bytes_written) as f64;
    App {
        app_version: APP_VERSION,
        recorder: "mix".to_owned(),
        layer: if a.layer == b.layer { a.layer.clone() } else { String::new() },
        lost: a.lost + b.lost,
        unexplained_fraction: mean(
            (a.unexplained_fraction, bytes(a)),
            (b.unexplained_fraction, bytes(b)),
        ),
        phases: Vec::new(),
        // Whose pages leave first depends on both: to be asked of the traces.
        caches: None,
        whole,
        demand: None,
        site: None,
        warnings,
    }
}

/// Parts of the misses that a model keeps as long as it has phases.
const PARTS_MIN: usize = 4;

/// A model as JSON of at most [`APP_BYTES_MAX`] bytes: where it would be larger, first tables
/// of phases are left out, then the shortest phases.
#[must_use]
pub fn model_text(mut app: App) -> String {
    let text = serde_json::to_string_pretty(&app).unwrap_or_default() + "\n";
    if text.len() <= APP_BYTES_MAX {
        return text;
    }
    // The lists of a site are long in lines of their own.
    let is_dense = app.site.is_some();
    loop {
        let text =
            if is_dense { serde_json::to_string(&app) } else { serde_json::to_string_pretty(&app) };
        let text = text.unwrap_or_default() + "\n";
        if text.len() <= APP_BYTES_MAX || !thin(&mut app) {
            return text;
        }
    }
}

/// Takes away what a model can best do without: tables of phases, then misses of all but the largest
/// classes of files, then phases. False where nothing is left to be taken.
fn thin(app: &mut App) -> bool {
    let is_wide = |phase: &Phase| !phase.behaviour.order.transitions.is_empty();
    if app.phases.iter().any(is_wide) {
        for phase in &mut app.phases {
            phase.behaviour.order = Order::default();
            phase.behaviour.streams.clear();
            phase.behaviour.files.clear();
        }
        return true;
    }
    if let Some(caches) = app.caches.as_mut().filter(|caches| caches.parts.len() > PARTS_MIN) {
        caches.parts.truncate((caches.parts.len() / 2).max(PARTS_MIN));
        return true;
    }
    let lasts = |phase: &Phase| phase.behaviour.elapsed_s;
    let shortest = app.phases.iter().enumerate().min_by(|a, b| lasts(a.1).total_cmp(&lasts(b.1)));
    let Some((at, _)) = shortest else { return false };
    app.phases.remove(at);
    let text = "a short phase was left out to keep the model small".to_owned();
    app.warnings.push(Doubt { code: DoubtCode::Bounded, text });
    true
}

fn behaviours(a: &Behaviour, b: &Behaviour) -> Behaviour {
    let by_requests = |of: fn(&Behaviour) -> f64| mean((of(a), weight(a)), (of(b), weight(b)));
    let writes = |one: &Behaviour| (1.0 - one.five.read_frac) * weight(one);
    let mut streams = [a.streams.clone(), b.streams.clone()].concat();
    streams.sort_by_key(|share| std::cmp::Reverse(share.bytes_read + share.bytes_written));
    streams.truncate(8);
    let is_open = a.arrivals == Loop::Open && b.arrivals == Loop::Open;
    let arriving = Arriving {
        slope: None,
        rate_per_s: a.arriving.rate_per_s + b.arriving.rate_per_s,
        variation: by_requests(|one| one.arriving.variation),
    };
    let mut mixed = Behaviour {
        elapsed_s: a.elapsed_s.max(b.elapsed_s),
        cpu_s: a.cpu_s.zip(b.cpu_s).map(|(a, b)| a + b),
        five: Five {
            unique_bytes: a.five.unique_bytes + b.five.unique_bytes,
            size_mean: by_requests(|one| one.five.size_mean),
            read_frac: by_requests(|one| one.five.read_frac),
            seq_frac: by_requests(|one| one.five.seq_frac),
            process_num: a.five.process_num + b.five.process_num,
        },
        workload: String::new(),
        bytes_read: a.bytes_read + b.bytes_read,
        bytes_written: a.bytes_written + b.bytes_written,
        calls: a.calls + b.calls,
        requests: a.requests + b.requests,
        failed: a.failed + b.failed,
        operations: joined(&a.operations, &b.operations),
        sizes: Sizes {
            variation: by_requests(|one| one.sizes.variation),
            read: laws(&a.sizes.read, &b.sizes.read),
            write: laws(&a.sizes.write, &b.sizes.write),
        },
        unique: unique(&a.unique, &b.unique),
        sequence: Sequence {
            same_direction_frac: by_requests(|one| one.sequence.same_direction_frac),
            forward_frac: by_requests(|one| one.sequence.forward_frac),
            backward_frac: by_requests(|one| one.sequence.backward_frac),
            strided_frac: by_requests(|one| one.sequence.strided_frac),
            run_requests_mean: by_requests(|one| one.sequence.run_requests_mean),
            run_bytes_mean: by_requests(|one| one.sequence.run_bytes_mean),
        },
        concurrency: Concurrency {
            busy: a.concurrency.busy + b.concurrency.busy,
            active: a.concurrency.active + b.concurrency.active,
            streams: a.concurrency.streams + b.concurrency.streams,
            depth: by_requests(|one| f64::from(one.concurrency.depth)).round().max(1.0) as u32,
            direct_frac: by_requests(|one| one.concurrency.direct_frac),
            async_frac: by_requests(|one| one.concurrency.async_frac),
        },
        arrivals: if is_open { Loop::Open } else { Loop::Closed },
        arriving,
        think: think(a, b),
        metadata: metadata(a, b),
        syncs: syncs((&a.syncs, writes(a)), (&b.syncs, writes(b))),
        order: Order { transitions: transitions(&a.order, &b.order), transaction: None },
        files: files(&a.files, &b.files),
        streams,
    };
    mixed.workload = super::literal::workload(&mixed).literal();
    mixed
}

/// Requests; a model typed by hand that has none counts as one request.
fn weight(one: &Behaviour) -> f64 {
    one.requests.max(1) as f64
}

/// The mean of two values with their weights.
fn mean(a: (f64, f64), b: (f64, f64)) -> f64 {
    let total = a.1 + b.1;
    if total > 0.0 { (a.0 * a.1 + b.0 * b.1) / total } else { 0.0 }
}

fn joined<V: Copy + AddAssign + Default>(
    a: &BTreeMap<String, V>,
    b: &BTreeMap<String, V>,
) -> BTreeMap<String, V> {
    let mut all = a.clone();
    for (key, value) in b {
        *all.entry(key.clone()).or_default() += *value;
    }
    all
}

fn laws(a: &SizeLaw, b: &SizeLaw) -> SizeLaw {
    let count = |law: &SizeLaw| law.histogram.iter().map(|size| size.count).sum::<u64>() as f64;
    let counts = |a: &[SizeCount], b: &[SizeCount]| {
        let mut all: BTreeMap<u64, u64> = BTreeMap::new();
        for size in a.iter().chain(b) {
            *all.entry(size.bytes).or_default() += size.count;
        }
        let counts = all.into_iter().map(|(bytes, count)| SizeCount { bytes, count });
        counts.collect::<Vec<_>>()
    };
    let mut top = counts(&a.top, &b.top);
    top.sort_by_key(|size| (std::cmp::Reverse(size.count), size.bytes));
    top.truncate(16);
    SizeLaw {
        mean_bytes: mean((a.mean_bytes, count(a)), (b.mean_bytes, count(b))),
        top,
        histogram: counts(&a.histogram, &b.histogram),
    }
}

fn unique(a: &Unique, b: &Unique) -> Unique {
    Unique {
        read_bytes: a.read_bytes + b.read_bytes,
        written_bytes: a.written_bytes + b.written_bytes,
        both_bytes: a.both_bytes + b.both_bytes,
        mapped_bytes: a.mapped_bytes + b.mapped_bytes,
        program_bytes: a.program_bytes + b.program_bytes,
    }
}

fn think(a: &Behaviour, b: &Behaviour) -> Think {
    let (calls_a, calls_b) = (a.calls.max(1) as f64, b.calls.max(1) as f64);
    let by_calls = |of: fn(&Think) -> f64| mean((of(&a.think), calls_a), (of(&b.think), calls_b));
    let processor = a.think.processor_mean_s.zip(b.think.processor_mean_s);
    Think {
        mean_s: by_calls(|think| think.mean_s),
        processor_mean_s: processor.map(|(a, b)| mean((a, calls_a), (b, calls_b))),
        p50_s: by_calls(|think| think.p50_s),
        p90_s: by_calls(|think| think.p90_s),
        waiting_s: a.think.waiting_s + b.think.waiting_s,
    }
}

fn metadata(a: &Behaviour, b: &Behaviour) -> Metadata {
    let (names_a, names_b) = (a.metadata.per_s * a.elapsed_s, b.metadata.per_s * b.elapsed_s);
    let by_names =
        |of: fn(&Metadata) -> f64| mean((of(&a.metadata), names_a), (of(&b.metadata), names_b));
    let bytes = (a.bytes_read + a.bytes_written + b.bytes_read + b.bytes_written) as f64;
    Metadata {
        per_s: a.metadata.per_s + b.metadata.per_s,
        per_mb: (bytes > 0.0).then(|| (names_a + names_b) / (bytes / 1e6)),
        same_directory_frac: by_names(|names| names.same_directory_frac),
        depth_mean: by_names(|names| names.depth_mean),
        entries_mean: by_names(|names| names.entries_mean),
    }
}

fn syncs(a: (&Syncs, f64), b: (&Syncs, f64)) -> Syncs {
    let ((a, writes_a), (b, writes_b)) = (a, b);
    let count = a.count + b.count;
    let every = match (a.every, b.every) {
        (same, other) if same == other => same,
        (only, 0) if writes_b < 1.0 => only,
        (0, only) if writes_a < 1.0 => only,
        _ if count > 0 => ((writes_a + writes_b) / count as f64).round().max(1.0) as u32,
        _ => 0,
    };
    let mut by_kind = a.by_kind.clone();
    for (name, other) in &b.by_kind {
        let kind = by_kind.entry(name.clone()).or_default();
        let both = |a: f64, b: f64| mean((a, kind.count as f64), (b, other.count as f64));
        *kind = SyncKind {
            count: kind.count + other.count,
            pages_mean: both(kind.pages_mean, other.pages_mean),
            extents_mean: both(kind.extents_mean, other.extents_mean),
            mean_s: match (kind.mean_s, other.mean_s) {
                (Some(a), Some(b)) => Some(both(a, b)),
                (known, None) | (None, known) => known,
            },
        };
    }
    Syncs {
        count,
        per_write: mean((a.per_write, writes_a), (b.per_write, writes_b)),
        every,
        sync_writes: a.sync_writes + b.sync_writes,
        by_kind,
    }
}

fn transitions(a: &Order, b: &Order) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut all = a.transitions.clone();
    for (from, row) in &b.transitions {
        let before = all.entry(from.clone()).or_default();
        *before = joined(before, row);
    }
    all
}

fn files(a: &[FileClass], b: &[FileClass]) -> Vec<FileClass> {
    let mut all: BTreeMap<&str, FileClass> = BTreeMap::new();
    for class in a.iter().chain(b) {
        let sum = all.entry(class.class.as_str()).or_default();
        sum.class.clone_from(&class.class);
        sum.files += class.files;
        sum.bytes_read += class.bytes_read;
        sum.bytes_written += class.bytes_written;
    }
    let mut all: Vec<FileClass> = all.into_values().collect();
    all.sort_by_key(|class| std::cmp::Reverse(class.bytes_read + class.bytes_written));
    all
}
