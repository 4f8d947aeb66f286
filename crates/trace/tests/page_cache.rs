//! The simulated page cache against the kernel's: bytes read from storage by a process in a memory
//! group with a limit, and the pages it leaves behind. Needs root; `examples/page_cache_truth.rs` does
//! all patterns under several limits.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and speak as they like")]

#[path = "page_cache/kernel.rs"]
mod kernel;
#[path = "page_cache/patterns.rs"]
mod patterns;

use std::path::Path;
use std::process::Command;

use ioscape_test_support::{Mount, skipped};
use ioscape_trace::caches::page_cache::{PageCache, Policy, Settings};
use patterns::{A_PAGES, B_PAGES, PAGE, events, steps};

/// Where the child of a test finds its files, and what it does with them.
const DIRECTORY: &str = "IOSCAPE_TEST_DIRECTORY";
const PATTERN: &str = "IOSCAPE_TEST_PATTERN";

/// Share of a pattern's full length.
const PART: f64 = 0.5;
/// The memory of the group, bytes.
const LIMIT: u64 = 40 << 20;
/// The kernel's counters while somebody reads them every few milliseconds.
const COUNTERS_NS: u64 = 5_000_000;

#[test]
fn child_of_another_test() {
    if let (Some(directory), Ok(name)) = (std::env::var_os(DIRECTORY), std::env::var(PATTERN)) {
        kernel::child(Path::new(&directory), &steps(&name, PART), false);
    }
}

#[test]
fn bytes_read_under_a_limit_are_those_that_the_kernel_reads() {
    let Ok(directory) = tempfile::tempdir_in("/dev/shm") else {
        return skipped("no directory in memory");
    };
    let mount = match Mount::of_image(&directory.path().join("fs"), "ext4", "noatime") {
        Ok(mount) => mount,
        Err(why) => return skipped(why),
    };
    kernel::set_read_ahead(mount.point(), 128);
    kernel::make_files(mount.point(), &[("a", A_PAGES), ("b", B_PAGES), ("log", 0)]);
    for name in ["once", "zipf-1.0", "two files", "zipf+scan"] {
        kernel::forget(mount.point());
        let Some(group) = kernel::Group::make(LIMIT) else {
            return skipped("no memory groups of version 1 that can be made");
        };
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "child_of_another_test", "--nocapture"]);
        child.env(DIRECTORY, mount.point()).env(PATTERN, name);
        let run = kernel::run(&group, LIMIT, &mut child);
        let simulated = simulate(name, &run);
        let truth = run.read_bytes as f64;
        let error = (simulated - truth) / truth;
        println!("{name}: {truth} bytes read, simulated {:+.1} %", 100.0 * error);
        assert!(error.abs() < 0.15, "{name}: {run:?}, simulated {simulated}");
    }
}

fn simulate(name: &str, run: &kernel::Run) -> f64 {
    let settings = Settings {
        counters_ns: COUNTERS_NS,
        ..Settings::new(Policy::PageCache, run.held_bytes / PAGE)
    };
    let mut cache = PageCache::new(settings);
    cache.set_length(1, A_PAGES * PAGE);
    cache.set_length(2, B_PAGES * PAGE);
    for event in events(&steps(name, PART), false, run.elapsed_ns) {
        cache.event(&event);
    }
    (cache.totals().read * PAGE) as f64
}
