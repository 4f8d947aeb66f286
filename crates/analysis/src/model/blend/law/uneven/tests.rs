//! Held against a cache that keeps what was used last, page by page.

use std::collections::BTreeMap;

use ioscape_model::units::MIB;
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::tests::{SHAPE, usual};
use super::*;

const PAGE: u64 = 4096;
/// Pages of each process's file.
const PAGES: u32 = 1000;
/// What a request takes that finds its page, and one that does not, seconds.
const HIT_S: f64 = 10e-6;
const MISS_S: f64 = 500e-6;

/// Requests per second of so many processes, each with a file and a random order of its own, over
/// one cache that forgets what was used longest ago. All begin with the same share of their data.
fn simulated(process_num: u32, cached: f64, seed: u64) -> f64 {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let capacity = (f64::from(process_num * PAGES) * cached) as usize;
    let (mut used, mut last_use) = (BTreeMap::new(), BTreeMap::new());
    let mut tick = 0_u64;
    for page in (0..PAGES).flat_map(|page| (0..process_num).map(move |of| (of, page))) {
        if last_use.len() < capacity {
            used.insert(tick, page);
            last_use.insert(page, tick);
            tick += 1;
        }
    }
    let mut free_at_s = vec![0.0_f64; process_num as usize];
    let (settled_s, end_s) = (2.5, 4.0);
    let mut counted = 0_u32;
    loop {
        let of = (0..free_at_s.len()).min_by(|a, b| free_at_s[*a].total_cmp(&free_at_s[*b]));
        let of = of.unwrap();
        if free_at_s[of] > end_s {
            return f64::from(counted) / (end_s - settled_s);
        }
        let page = (of as u32, rng.random_range(0..PAGES));
        let is_hit = if let Some(before) = last_use.insert(page, tick) {
            used.remove(&before);
            true
        } else {
            false
        };
        used.insert(tick, page);
        tick += 1;
        if last_use.len() > capacity {
            let (_, oldest) = used.pop_first().unwrap();
            last_use.remove(&oldest);
        }
        counted += u32::from(free_at_s[of] >= settled_s);
        free_at_s[of] += if is_hit { HIT_S } else { MISS_S };
    }
}

/// The law of such a cache: as many processors and as much storage as anybody asks for.
fn law(cached: f64, process_num: u32, unevenness: f64) -> Law {
    let far = |ln: f64| ln + 20.0;
    let unique_bytes = f64::from(process_num * PAGES) * PAGE as f64;
    let mut at = usual();
    at[0] = HIT_S.ln();
    for index in [4, 11, 16, 17, 24, 25, 26] {
        at[index] = far(at[index]);
    }
    at[13] = -20.0;
    at[super::super::UNEVENNESS] = unevenness;
    let (first, last) = (SHAPE.read_cache(0), SHAPE.read_cache(1));
    at[first..first + 5].copy_from_slice(&[8.0, -40.0, 0.0, 60.0, 0.0]);
    let cost = [(cached * unique_bytes).ln(), (MISS_S - HIT_S).ln(), 0.0, 60.0, 0.0];
    at[last..last + 5].copy_from_slice(&cost);
    Law::of(SHAPE, &at)
}

fn reads(process_num: u32) -> Workload {
    Workload {
        unique_bytes: u64::from(process_num * PAGES) * PAGE,
        size_mean: PAGE,
        read_frac: 1.0,
        seq_frac: 0.0,
        process_num,
        ..Workload::default()
    }
}

fn requests_per_s(law: &Law, work: &Workload) -> f64 {
    law.ln_throughput(work).exp() / work.size_mean as f64
}

#[test]
fn a_cache_of_what_was_used_last_serves_some_processes_and_not_the_others() {
    for (process_num, cached) in [(2, 0.9), (2, 0.75), (3, 0.8), (3, 0.9), (4, 0.77), (4, 0.9)] {
        let work = reads(process_num);
        let found = simulated(process_num, cached, 1);
        let even = requests_per_s(&law(cached, process_num, -20.0), &work);
        let uneven = requests_per_s(&law(cached, process_num, 20.0), &work);
        let off = (uneven / found).ln();
        assert!(found > 1.8 * even, "N={process_num} {cached}: {found:.0}, all alike {even:.0}");
        assert!(off.abs() < 0.25, "N={process_num} {cached}: {found:.0}, expected {uneven:.0}");
    }
}

#[test]
fn who_mostly_misses_misses_alike() {
    for (process_num, cached) in [(2, 0.54), (3, 0.55), (4, 0.55)] {
        let work = reads(process_num);
        let found = simulated(process_num, cached, 2);
        let expected = requests_per_s(&law(cached, process_num, 20.0), &work);
        let off = (expected / found).ln();
        assert!(off.abs() < 0.1, "N={process_num} {cached}: {found:.0}, expected {expected:.0}");
    }
}

#[test]
fn one_process_writers_and_data_that_fit_know_no_unevenness() {
    let uneven = law(0.8, 3, 20.0);
    let alone = Workload { process_num: 1, ..reads(3) };
    let writes = Workload { read_frac: 0.0, ..reads(3) };
    let small = Workload { unique_bytes: MIB, ..reads(3) };
    for work in [alone, writes, small] {
        assert!(uneven.ways(&work).uneven.is_none(), "{}", work.literal());
    }
    assert!(uneven.apart(&reads(3)) > 0.5);
}

proptest! {
    /// Those that win need storage for their writes as well, and the others for more than that.
    #[test]
    fn together_they_ask_storage_for_no_more_than_it_can_do(
        by in proptest::collection::vec(-1.0..1.0_f64, usual().len()),
        read_frac in 0.05..1.0_f64, size_kib in 1_u64..64, process_num in 2_u32..9,
        over in 0.001..0.6_f64,
    ) {
        let mut at: Vec<f64> = usual().iter().zip(by).map(|(x, d)| x + d).collect();
        at[super::super::UNEVENNESS] = 20.0;
        let first = SHAPE.read_cache(0);
        at[first + 1..first + 5].copy_from_slice(&[-40.0, 0.0, 60.0, 0.0]);
        at[SHAPE.read_cache(1)] = at[first] + 2.0;
        let law = Law::of(SHAPE, &at);
        let unique_bytes = (law.read_caches[1].bytes * (1.0 + over)) as u64;
        let work = Workload {
            unique_bytes, read_frac, process_num, size_mean: 4096 * size_kib, ..Workload::default()
        };
        let rate = requests_per_s(&law, &work);
        let least = law.finding(1.0, &work).times(&work);
        let load = Load::of(&work);
        prop_assert!(rate * law.busiest_s(&least, load) <= 1.0 + 1e-9);
        // Nor are they faster than if all of their data was cached, unless all alike are.
        let alike = load.process_num / law.response_s(&law.times(&work), load);
        let all_win = load.process_num / law.response_s(&least, load);
        prop_assert!(rate <= alike.max(all_win) * (1.0 + 1e-9));
    }
}
