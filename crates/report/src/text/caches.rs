//! What caches make of a trace, for people: the curve as bars, the sizes of memory as a table.

use std::fmt::Write as _;

use ioscape_model::app::{CachePart, PAGE_BYTES};
use ioscape_model::units::{show_percent, show_size};
use ioscape_model::{CacheAnswer, CachePoint, MemoryUse};

/// Lines of the picture.
const LINES: usize = 16;
/// Characters of a bar where everything misses.
const BAR: usize = 44;

/// The answer of `trace caches`.
pub fn caches_text(document: &CacheAnswer) -> String {
    let mut text = String::new();
    let all = size(document.pages * PAGE_BYTES);
    let touched = document.pages_touched_by_reads + document.pages_touched_by_writes;
    if touched == 0 {
        text.push_str("It touches no page of a file through a cache.\n");
    } else {
        let touched = size(touched * PAGE_BYTES);
        let _ = writeln!(text, "It touches {all} of files, {touched} in all.\n");
        chart(&mut text, &document.curve);
        if let Some(error) = document.curve_relative_error {
            let apart = show_percent(error);
            let _ = writeln!(text, "From two samples of the pages, {apart} of the misses apart.");
        }
        let gain = size(document.gain_90_bytes);
        let knee = size(document.knee_bytes);
        let _ = writeln!(
            text,
            "\n90 % of the gain is had with {gain} (LRU); the curve bends most at {knee}.\n"
        );
        table(&mut text, &document.simulated);
        if let (Some(gain), Some(first)) =
            (document.simulated_gain_90_bytes, document.simulated.first())
        {
            let (gain, policy) = (size(gain), &first.policy);
            let _ = writeln!(
                text,
                "\n{gain} save 90 % of the reads that any memory saves (policy {policy})."
            );
        }
        by_trace(&mut text, &document.simulated);
        parts(&mut text, document);
    }
    if let Some(names) = &document.names {
        said_of_names(&mut text, names);
    }
    for warning in &document.warnings {
        let _ = writeln!(text, "note: {warning}");
    }
    text
}

/// Misses of an LRU cache by its size, a bar for each of some sizes.
fn chart(text: &mut String, curve: &[CachePoint]) {
    let _ = writeln!(text, "Misses of an LRU cache of");
    let step = curve.len().div_ceil(LINES).max(1);
    let last = curve.len().saturating_sub(1);
    for (_, point) in curve.iter().enumerate().filter(|(i, _)| (last - i).is_multiple_of(step)) {
        let length = (point.miss_ratio * BAR as f64).round() as usize;
        let bar = "█".repeat(length);
        let percent = show_percent(point.miss_ratio);
        let _ = writeln!(text, "{:>10}  {bar} {percent}", size(point.bytes));
    }
}

fn table(text: &mut String, simulated: &[MemoryUse]) {
    let Some(first) = simulated.first() else { return };
    let _ = writeln!(text, "Simulated, policy {}:", first.policy);
    let _ = writeln!(
        text,
        "{:>10} {:>12} {:>12} {:>8} {:>12} {:>12}",
        "memory", "read", "written", "hits", "sequential", "random"
    );
    for one in simulated {
        let hits = |hits: u64, misses: u64| match hits + misses {
            0 => "none".to_owned(),
            all => show_percent(hits as f64 / all as f64),
        };
        let _ = writeln!(
            text,
            "{:>10} {:>12} {:>12} {:>8} {:>12} {:>12}",
            size(one.memory_bytes),
            size(one.pages_read * PAGE_BYTES),
            size(one.pages_written_back * PAGE_BYTES),
            show_percent(one.hit_fraction),
            hits(one.sequential_hits, one.sequential_misses),
            hits(one.random_hits, one.random_misses),
        );
    }
    let _ = writeln!(
        text,
        "read and written: from and to storage; sequential, random: hits of such reads"
    );
}

/// Reads from storage for each of several programs.
fn by_trace(text: &mut String, simulated: &[MemoryUse]) {
    let Some(first) = simulated.iter().find(|one| !one.by_trace.is_empty()) else { return };
    let _ = writeln!(text, "\nRead for each, by memory:");
    for (number, share) in first.by_trace.iter().enumerate() {
        let _ = writeln!(text, "  {}", share.trace);
        for one in simulated {
            let pages_read = one.by_trace.get(number).map_or(0, |share| share.pages_read);
            let read = size(pages_read * PAGE_BYTES);
            let _ = writeln!(text, "{:>10} {read:>12}", size(one.memory_bytes));
        }
    }
}

/// Sizes of memory at which parts are told.
const PART_SIZES: usize = 4;
/// Parts that are told.
const PARTS_MAX: usize = 16;

/// Misses of each part, at some of the sizes that were simulated.
fn parts(text: &mut String, document: &CacheAnswer) {
    if document.parts.is_empty() {
        return;
    }
    let all: Vec<u64> = document.simulated.iter().map(|one| one.memory_bytes).collect();
    let step = all.len().div_ceil(PART_SIZES).max(1);
    let sizes: Vec<u64> = all.into_iter().step_by(step).collect();
    let _ = write!(text, "\n{:<24} {:>10}", "Misses of LRU with", "touched");
    for bytes in &sizes {
        let _ = write!(text, " {:>10}", size(*bytes));
    }
    text.push('\n');
    for part in document.parts.iter().take(PARTS_MAX) {
        let _ = write!(text, "  {:<22} {:>10}", part.part, size(part.touches * PAGE_BYTES));
        for bytes in &sizes {
            let misses = part.misses_with(bytes / PAGE_BYTES);
            let ratio = misses / part.touches.max(1) as f64;
            let _ = write!(text, " {:>10}", show_percent(ratio));
        }
        text.push('\n');
    }
}

/// How many names are looked up, and how many a cache must hold.
fn said_of_names(text: &mut String, names: &CachePart) {
    let enough = names.pages_losing(0.1);
    let _ = writeln!(
        text,
        "\nNames: {} distinct files and directories are looked up {} times; a cache of {enough} \
         names has 90 % of the gain.",
        names.first_touches, names.touches
    );
}

/// A size for people.
fn size(bytes: u64) -> String {
    show_size(bytes as f64)
}
