//! What the kernel reads for a workload whose data exceed the page cache: how many reads wait for storage, in
//! how many pieces their missing pages lie, and how many pages are read, in vain as well.
//!
//! usage: `read_ahead WINDOW PAGES SEQ_FRAC READ_FRAC HELD`
//!
//! The page cache of `trace caches`, shown one process with requests of PAGES pages on average, distributed
//! as ioscape's. WINDOW is the most that the kernel reads ahead, pages; HELD is the share of the data that
//! memory holds. Counts are for each read and each page that it should miss (1 − HELD): `crates/analysis`
//! has its formula for them in `model/blend/law.rs`, `vain_bytes`.

#![expect(clippy::print_stdout, reason = "an example that prints")]

use std::error::Error;

use ioscape_trace::caches::PAGE_BYTES;
use ioscape_trace::caches::page_cache::{PageCache, Policy, Settings};
use ioscape_trace::{Event, Op};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

/// Mean of 1 + a normal draw of which those below 0 were drawn again.
const MEAN_OF_DRAWS: f64 = 1.2876;
/// Requests until so many times the memory was touched; twice as many let it settle before.
const TURNS: f64 = 2.5;

fn main() -> Result<(), Box<dyn Error>> {
    let numbers = std::env::args().skip(1).map(|number| number.parse());
    let numbers: Vec<f64> = numbers.collect::<Result<_, _>>()?;
    let [window, mean, seq_frac, read_frac, held] = *numbers else {
        return Err("usage: read_ahead WINDOW PAGES SEQ_FRAC READ_FRAC HELD".into());
    };
    let file_pages = (40.0 * window).max(400.0 * mean).max(16_384.0) as u64;
    let memory_pages = file_pages as f64 * held;
    let settings = Settings::new(Policy::PageCache, memory_pages as u64);
    let mut cache = PageCache::new(Settings { read_ahead_pages: window as u64, ..settings });
    cache.set_length(1, file_pages * PAGE_BYTES);
    let begun = |op| Event { stream: 1, handle: 1, file: 1, ..Event::new(0, op) };
    cache.event(&begun(Op::Open));
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let requests = (TURNS * memory_pages / mean).max(4000.0) as u64;
    let (mut at, mut reads, mut waits, mut pieces, mut read_before) = (0, 0_u64, 0_u64, 0_u64, 0);
    for request in 0..3 * requests {
        let is_counted = request >= 2 * requests;
        if request == 2 * requests {
            read_before = cache.pages_read();
        }
        let draw = std::iter::repeat_with(|| 1.0 + normal(&mut rng)).find(|draw| *draw > 0.0);
        let size = (draw.unwrap_or(1.0) * mean / MEAN_OF_DRAWS).round();
        let size = (size as u64).clamp(1, file_pages / 4);
        if rng.random::<f64>() >= seq_frac {
            at = rng.random_range(0..=file_pages - size);
        } else if at + size > file_pages {
            at = 0;
        }
        let is_read = rng.random::<f64>() < read_frac;
        if is_read && is_counted {
            let absent = (at..at + size).map(|page| !cache.holds(1, page));
            let mut was_absent = false;
            let begins = absent.filter(|is_absent| {
                let begins = *is_absent && !was_absent;
                was_absent = *is_absent;
                begins
            });
            let here = begins.count() as u64;
            (reads, waits, pieces) = (reads + 1, waits + u64::from(here > 0), pieces + here);
        }
        let event = begun(if is_read { Op::Read } else { Op::Write });
        let (offset, length) = (at * PAGE_BYTES, size * PAGE_BYTES);
        cache.event(&Event { start_ns: request * 1000, offset, length, ..event });
        at += size;
    }
    let each = |count: u64| count as f64 / reads.max(1) as f64 / (1.0 - held);
    println!(
        "waits {:.2}, pieces {:.2}, pages {:.1}",
        each(waits),
        each(pieces),
        each(cache.pages_read() - read_before),
    );
    Ok(())
}

fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    StandardNormal.sample(rng)
}
