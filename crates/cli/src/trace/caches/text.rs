//! The answer for people: the curve as bars, the sizes as a table.

use std::fmt::Write as _;

use ioscape_model::units::show_percent;
use ioscape_trace::caches::PAGE_BYTES;

use super::{Document, Point, Simulated, size};

/// Lines of the picture.
const LINES: usize = 16;
/// Characters of a bar where everything misses.
const BAR: usize = 44;

pub(super) fn text(document: &Document) -> String {
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
    }
    for warning in &document.warnings {
        let _ = writeln!(text, "note: {warning}");
    }
    text
}

/// Misses of an LRU cache by its size, a bar for each of some sizes.
fn chart(text: &mut String, curve: &[Point]) {
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

fn table(text: &mut String, simulated: &[Simulated]) {
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
