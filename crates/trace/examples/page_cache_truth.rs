//! The simulated page cache against the kernel's, for twelve patterns under several limits: bytes read
//! from storage, and the pages held at the end. Takes root and memory groups of version 1.
//!
//! usage: `page_cache_truth DIRECTORY [PATTERN]`, DIRECTORY on ext4, xfs or btrfs with 300 MiB free.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "an example that prints")]

#[path = "../tests/page_cache/kernel.rs"]
mod kernel;
#[path = "../tests/page_cache/patterns.rs"]
mod patterns;

use std::path::Path;
use std::process::Command;

use ioscape_trace::caches::page_cache::{PageCache, Policy, Settings};
use patterns::{A_PAGES, B_PAGES, PAGE, events, steps};

/// The twelve names.
const NAMES: [&str; 12] = [
    "uniform",
    "zipf-0.6",
    "zipf-1.0",
    "cyclic",
    "zipf+scan",
    "once",
    "strided",
    "reverse",
    "window",
    "modify",
    "append",
    "two files",
];

const MIB: f64 = 1_048_576.0;

/// The watcher of a run reads its counters about so often.
const COUNTERS_NS: u64 = 5_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let directory = Path::new(&arguments[1]);
    if arguments.get(2).is_some_and(|word| word == "child") {
        kernel::child(directory, &steps(&arguments[3], 1.0), arguments[4] == "random");
        return;
    }
    let only = arguments.get(2).map_or("", String::as_str);
    kernel::set_read_ahead(directory, 128);
    kernel::make_files(directory, &[("a", A_PAGES), ("b", B_PAGES), ("log", 0)]);
    let mut errors = [Vec::new(), Vec::new()];
    let mut hard = Vec::new();
    let mut overlaps = Vec::new();
    for name in NAMES.iter().filter(|name| name.contains(only)) {
        for is_random in [false, true] {
            for share in [0.15, 0.3, 0.45, 0.6, 0.8] {
                let cell = cell(directory, name, (is_random, share));
                for (errors, error) in errors.iter_mut().zip(cell.errors) {
                    errors.push(error.abs());
                }
                if cell.errors[1].abs() > 0.02 {
                    hard.push(cell.errors[0].abs());
                }
                overlaps.push(cell.overlap);
            }
        }
    }
    for (what, values) in [
        ("page cache", &mut errors[0].clone()),
        ("where LRU errs", &mut hard),
        ("LRU", &mut errors[1].clone()),
        ("Jaccard", &mut overlaps),
    ] {
        values.sort_by(f64::total_cmp);
        let at = |q: f64| values.get((values.len() as f64 * q) as usize).unwrap_or(&f64::NAN);
        println!(
            "{what}: of {} median {:.3} p90 {:.3} p10 {:.3}",
            values.len(),
            at(0.5),
            at(0.9),
            at(0.1)
        );
    }
}

struct Cell {
    errors: [f64; 2],
    overlap: f64,
}

fn cell(directory: &Path, name: &str, how: (bool, f64)) -> Cell {
    let (is_random, share) = how;
    let steps = steps(name, 1.0);
    let touched = steps.iter().map(|s| ((s.file as u64) << 40) | (s.offset / PAGE));
    let distinct = touched.collect::<std::collections::HashSet<_>>().len() as u64;
    let limit = ((distinct as f64 * share) as u64 * PAGE).max(12 << 20) + (4 << 20);
    let _ = std::fs::remove_file(directory.join("log"));
    std::fs::write(directory.join("log"), "").unwrap();
    kernel::forget(directory);
    let group = kernel::Group::make(limit).expect("needs root and memory groups of version 1");
    let advice = if is_random { "random" } else { "none" };
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.arg(directory).args(["child", name, advice]);
    let run = kernel::run(&group, limit, &mut command);
    let held = [("a", 1, A_PAGES), ("b", 2, B_PAGES), ("log", 3, 20_200)];
    let held = held.map(|(name, file, pages)| {
        let handle = std::fs::File::open(directory.join(name)).unwrap();
        (file, ioscape_test_support::pages_held(&handle, pages).unwrap())
    });
    let mut errors = [0.0; 2];
    let mut overlap = 0.0;
    let mut reads = [0; 2];
    for (i, policy) in [Policy::PageCache, Policy::Lru].into_iter().enumerate() {
        let settings =
            Settings { counters_ns: COUNTERS_NS, ..Settings::new(policy, run.held_bytes / PAGE) };
        let mut cache = PageCache::new(settings);
        cache.set_length(1, A_PAGES * PAGE);
        cache.set_length(2, B_PAGES * PAGE);
        for event in events(&steps, is_random, run.elapsed_ns) {
            cache.event(&event);
        }
        reads[i] = cache.totals().read;
        let bytes = (cache.totals().read * PAGE) as f64;
        errors[i] = (bytes - run.read_bytes as f64) / (run.read_bytes as f64).max(4.0 * MIB);
        if i == 0 {
            overlap = jaccard(&cache, &held);
        }
    }
    println!(
        "{name:10} {advice:6} limit {:6.1} held {:6.1} MiB read {:6} pages in {:5.2} s: predicted {:6} {:+6.1} %, LRU {:+6.1} %, Jaccard {overlap:.3}",
        limit as f64 / MIB,
        run.held_bytes as f64 / MIB,
        run.read_bytes / PAGE,
        run.elapsed_ns as f64 / 1e9,
        reads[0],
        100.0 * errors[0],
        100.0 * errors[1],
    );
    Cell { errors, overlap }
}

fn jaccard(cache: &PageCache, held: &[(u32, Vec<bool>)]) -> f64 {
    let (mut both, mut either) = (0, 0);
    for (file, pages) in held {
        for (page, kernel) in (0..).zip(pages) {
            let simulated = cache.holds(*file, page);
            both += u64::from(*kernel && simulated);
            either += u64::from(*kernel || simulated);
        }
    }
    both as f64 / either.max(1) as f64
}
