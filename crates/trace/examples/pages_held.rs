//! The pages of files that the kernel holds now, against those that a simulated page cache holds at the
//! end of a trace with names (`ioscape trace record --names`): for each file, and Jaccard's index over
//! all of them.
//!
//! usage: `pages_held TRACE BYTES`, right after a run of the traced program under a limit of memory that
//! left files BYTES, from a cold start.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "an example that prints")]

use std::fs::File;

use ioscape_trace::Store;
use ioscape_trace::caches::page_cache::{PageCache, Policy, Settings};
use ioscape_trace::caches::{PAGE_BYTES, Start, Subjects};

/// The watcher of a run reads its group's counters about so often.
const COUNTERS_NS: u64 = 5_000_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let store = Store::open(File::open(&arguments[1]).unwrap()).unwrap();
    let bytes: u64 = arguments[2].parse().unwrap();
    let files = store.tables().unwrap().files;
    let mut subjects = Subjects::new(&files, store.info());
    let mut see = |event: &_| {
        subjects.see(event);
        Ok(())
    };
    store.for_each_event(&mut see).unwrap();
    let settings = Settings {
        counters_ns: COUNTERS_NS,
        ..Settings::new(Policy::PageCache, bytes / PAGE_BYTES)
    };
    let mut cache: PageCache = subjects.cache(settings, Start::Cold);
    let mut show = |event: &_| {
        cache.event(event);
        Ok(())
    };
    store.for_each_event(&mut show).unwrap();
    let (mut both, mut either) = (0_u64, 0_u64);
    for file in files.iter().filter(|file| subjects.takes_part(file.id)) {
        let Some(path) = &file.path else { continue };
        // A file that is gone has no pages, and no file has a page behind its end.
        let Ok(handle) = File::open(path) else { continue };
        let Ok(found) = handle.metadata() else { continue };
        if !found.is_file() {
            continue;
        }
        let pages = found.len().div_ceil(PAGE_BYTES);
        let Some(held) = ioscape_test_support::pages_held(&handle, pages) else { continue };
        let (mut both_here, mut kernels, mut simulated) = (0_u64, 0_u64, 0_u64);
        for (page, kernel) in (0..).zip(held) {
            let here = cache.holds(file.id, page);
            both_here += u64::from(kernel && here);
            kernels += u64::from(kernel);
            simulated += u64::from(here);
        }
        both += both_here;
        either += kernels + simulated - both_here;
        if kernels + simulated > 256 {
            println!("{path}: {kernels} pages held, {simulated} simulated, {both_here} in both");
        }
    }
    println!("Jaccard {:.4}", both as f64 / either.max(1) as f64);
}
