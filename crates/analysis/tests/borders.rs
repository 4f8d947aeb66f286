//! Borders of known hierarchies are put in and must come back: a formula stands for the disk.

use ioscape_analysis::border::{Found, Sample, Search, Step, find, next};
use ioscape_model::{Border, Curve};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

const MIB: f64 = 1_048_576.0;

/// Nested caches: `(capacity, time per byte beyond it over time per byte before it)`.
#[derive(Clone, Debug)]
struct Hierarchy {
    base_s_per_byte: f64,
    levels: Vec<(f64, f64)>,
    max_bytes: f64,
    /// Which level is counted, if any.
    counted: Option<usize>,
}

impl Hierarchy {
    /// 1 to 3 capacities a factor 3 to 16 apart, steps of a factor 2 to 100.
    fn random(rng: &mut Xoshiro256PlusPlus, with_counters: bool) -> Self {
        let n_levels = rng.random_range(1..=3);
        let mut capacity = 8.0 * MIB * log_uniform(rng, 2.0, 64.0);
        let mut levels = Vec::new();
        for _ in 0..n_levels {
            levels.push((capacity, log_uniform(rng, 2.0, 100.0)));
            capacity *= log_uniform(rng, 3.0, 16.0);
        }
        let last = levels[n_levels - 1].0;
        let counted = with_counters.then_some(0); // the page cache comes before all other storage
        let max_bytes = last * log_uniform(rng, 2.0, 8.0);
        Self { base_s_per_byte: log_uniform(rng, 1e-10, 1e-7), levels, max_bytes, counted }
    }

    fn time_s_per_byte(&self, unique_bytes: f64) -> f64 {
        let (mut time, mut level) = (self.base_s_per_byte, self.base_s_per_byte);
        for (capacity, step) in &self.levels {
            time += level * (step - 1.0) * (1.0 - capacity / unique_bytes).max(0.0);
            level *= step;
        }
        time
    }

    /// Where a level has made the time 10 % longer than it would be without it: by bisection.
    fn onset_bytes(&self, level_idx: usize) -> f64 {
        let truncated = |n: usize| Self { levels: self.levels[..n].to_vec(), ..self.clone() };
        let (without, with) = (truncated(level_idx), truncated(level_idx + 1));
        let (mut low, mut high) = (self.levels[level_idx].0, self.levels[level_idx].0 * 4.0);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            let raised = with.time_s_per_byte(middle) > 1.1 * without.time_s_per_byte(middle);
            if raised { high = middle } else { low = middle }
        }
        low
    }

    fn search(&self) -> Search {
        Search {
            min_bytes: 8.0 * MIB,
            max_bytes: self.max_bytes,
            hints_bytes: Vec::new(),
            noise: 0.03,
            in_memory: false,
            memory_s_per_byte: None,
        }
    }

    fn sample(&self, unique_bytes: f64, noise: f64, rng: &mut Xoshiro256PlusPlus) -> Sample {
        let counter_noise = (0.01 * normal(rng)).exp();
        let hit = |i: usize| (self.levels[i].0 * counter_noise / unique_bytes).min(1.0);
        Sample {
            unique_bytes,
            time_s_per_byte: self.time_s_per_byte(unique_bytes) * (noise * normal(rng)).exp(),
            hit_fraction: self.counted.map(hit),
            resident_bytes: None,
        }
    }
}

fn log_uniform(rng: &mut Xoshiro256PlusPlus, low: f64, high: f64) -> f64 {
    low * (rng.random::<f64>() * (high / low).ln()).exp()
}

fn normal(rng: &mut Xoshiro256PlusPlus) -> f64 {
    StandardNormal.sample(rng)
}

/// Runs a search to its end.
fn explore(
    search: &Search,
    curve: Curve,
    mut visit: impl FnMut(f64) -> Sample,
) -> (Found, Vec<Sample>) {
    let mut samples = Vec::new();
    while let Step::Measure(unique_bytes) = next(search, curve, &samples) {
        assert!(unique_bytes >= search.min_bytes && unique_bytes <= search.max_bytes);
        samples.push(visit(unique_bytes));
        assert!(samples.len() < 200, "the search must end");
    }
    (find(search, curve, &samples), samples)
}

fn is_right(hierarchy: &Hierarchy, borders: &[Border]) -> bool {
    borders.len() == hierarchy.levels.len()
        && borders.iter().enumerate().all(|(i, border)| {
            (border.unique_bytes.onset / hierarchy.onset_bytes(i) - 1.0).abs() <= 0.05
        })
}

/// How a few hundred searches went.
#[derive(Debug, Default)]
struct Tally {
    searches: usize,
    /// Every border there, none too many, each onset within 5 %.
    right: usize,
    missed_or_false: usize,
    visits_per_border: Vec<f64>,
    borders: usize,
    /// Borders whose capacity lies in its 95 % interval.
    covered: usize,
}

impl Tally {
    fn count(
        n_searches: u64,
        noise: f64,
        make: impl Fn(&mut Xoshiro256PlusPlus) -> Hierarchy,
    ) -> Self {
        let mut tally = Self::default();
        for seed in 0..n_searches {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let truth = make(&mut rng);
            let visit = |bytes| truth.sample(bytes, noise, &mut rng);
            let (found, samples) = explore(&truth.search(), Curve::Read, visit);
            tally.add(&truth, &found.borders, samples.len());
        }
        tally.print();
        tally
    }

    #[expect(clippy::print_stdout, reason = "the figures behind the assertions, with --nocapture")]
    fn print(&self) {
        println!(
            "{} of {} right, {} with borders missed or false; visits per border: median {:.1}, \
             p90 {:.1}; {} of {} capacities in their interval",
            self.right,
            self.searches,
            self.missed_or_false,
            self.visits_quantile(0.5),
            self.visits_quantile(0.9),
            self.covered,
            self.borders
        );
    }

    fn add(&mut self, truth: &Hierarchy, borders: &[Border], n_visits: usize) {
        self.searches += 1;
        self.right += usize::from(is_right(truth, borders));
        self.visits_per_border.push(n_visits as f64 / truth.levels.len() as f64);
        if borders.len() != truth.levels.len() {
            self.missed_or_false += 1;
            return;
        }
        for (border, (capacity, _)) in borders.iter().zip(&truth.levels) {
            let at = border.unique_bytes;
            self.borders += 1;
            self.covered += usize::from((at.low..=at.high).contains(capacity));
        }
    }

    fn visits_quantile(&self, fraction: f64) -> f64 {
        let mut sorted = self.visits_per_border.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[(fraction * (sorted.len() - 1) as f64) as usize]
    }
}

/// Searches a curve given as a formula, `n` times, and counts those that report any border.
fn false_alarms(n: u64, search: &Search, noise: f64, time: impl Fn(f64) -> f64) -> usize {
    let alarmed = |seed: &u64| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(*seed);
        let visit = |unique_bytes| Sample {
            unique_bytes,
            time_s_per_byte: time(unique_bytes) * (noise * normal(&mut rng)).exp(),
            hit_fraction: None,
            resident_bytes: None,
        };
        !explore(search, Curve::Read, visit).0.borders.is_empty()
    };
    (0..n).filter(alarmed).count()
}

fn one_level(capacity: f64, step: f64, max_bytes: f64) -> Hierarchy {
    let levels = vec![(capacity, step)];
    Hierarchy { base_s_per_byte: 3e-10, levels, max_bytes, counted: None }
}

#[test]
fn hierarchies_are_found_by_timing_alone() {
    let tally = Tally::count(200, 0.03, |rng| Hierarchy::random(rng, false));
    assert!(tally.right >= 196);
    assert!(tally.missed_or_false <= 1);
    assert!(tally.visits_quantile(0.5) <= 12.0);
    assert!(tally.covered * 100 >= tally.borders * 92);
}

#[test]
fn hierarchies_are_found_with_one_level_counted() {
    let tally = Tally::count(200, 0.03, |rng| Hierarchy::random(rng, true));
    assert!(tally.right >= 196);
    assert!(tally.missed_or_false <= 1);
    assert!(tally.visits_quantile(0.5) <= 7.0);
    assert!(tally.covered * 100 >= tally.borders * 92);
}

#[test]
fn a_single_counted_cache_takes_the_coarse_values_and_two_to_verify() {
    let tally = Tally::count(100, 0.03, |rng| {
        let capacity = 8.0 * MIB * log_uniform(rng, 2.0, 64.0);
        let step = log_uniform(rng, 2.0, 100.0);
        let counted = Some(0);
        Hierarchy { counted, ..one_level(capacity, step, 1024.0 * MIB) }
    });
    assert!(tally.right >= 98);
    // Coarse: 8, 32, 128, 512 and 1024 MiB.
    assert!(tally.visits_quantile(0.5) <= 8.0);
}

#[test]
fn twice_the_noise_costs_visits_not_borders() {
    let tally = Tally::count(100, 0.06, |rng| Hierarchy::random(rng, false));
    assert!(tally.right >= 88);
    assert!(tally.missed_or_false <= 1);
}

#[test]
fn a_throttled_write_curve_shows_its_border_through_heavy_noise() {
    // A dirty limit of 107 MiB, hinted at; 15 % noise where 3 % was expected.
    let truth = one_level(107.0 * MIB, 20.0, 1024.0 * MIB);
    let search = Search { hints_bytes: vec![80.0 * MIB, 107.0 * MIB], ..truth.search() };
    let near = |seed: &u64| {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(*seed);
        let visit = |bytes| truth.sample(bytes, 0.15, &mut rng);
        let (found, _) = explore(&search, Curve::Write, visit);
        found.borders.len() == 1
            && (found.borders[0].unique_bytes.capacity / (107.0 * MIB)).ln().abs() < 0.15
    };
    let right = (0..100).filter(near).count();
    println!("{right} of 100 throttled write curves right");
    assert!(right >= 95);
}

#[test]
fn one_stalled_visit_makes_no_border() {
    let truth = one_level(100.0 * MIB, 1.0, 1024.0 * MIB);
    for stalled in 0..5 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(stalled);
        let mut visit_idx = 0;
        let (found, _) = explore(&truth.search(), Curve::Read, |bytes| {
            let mut sample = truth.sample(bytes, 0.03, &mut rng);
            if visit_idx == stalled {
                sample.time_s_per_byte *= 3.0;
            }
            visit_idx += 1;
            sample
        });
        assert_eq!(found.borders, [], "visit {stalled} stalled");
    }
}

#[test]
fn a_flat_curve_has_no_border_however_noisy() {
    let search = one_level(100.0 * MIB, 1.0, 4096.0 * MIB).search();
    let alarms =
        false_alarms(1000, &search, 0.03, |_| 2e-10) + false_alarms(300, &search, 0.10, |_| 2e-10);
    println!("{alarms} false alarms on 1300 flat curves");
    assert!(alarms <= 3);
}

#[test]
fn a_curve_that_rises_gently_past_the_processors_cache_has_no_border() {
    let on_disk = one_level(100.0 * MIB, 1.0, 4096.0 * MIB).search();
    let in_memory = Search { in_memory: true, ..on_disk.clone() };
    let at_copy_speed = Search { memory_s_per_byte: Some(2e-10), ..on_disk.clone() };
    // From 64 MiB to 1 GiB the time rises by this much.
    let gentle = |total: f64| {
        move |bytes: f64| 2e-10 * total.powf(((bytes / (64.0 * MIB)).log(16.0)).clamp(0.0, 1.0))
    };
    let alarms = [
        false_alarms(100, &on_disk, 0.03, gentle(1.2)),
        false_alarms(100, &on_disk, 0.03, gentle(1.4)),
        false_alarms(100, &on_disk, 0.03, gentle(1.6)),
        false_alarms(100, &in_memory, 0.03, gentle(1.6)),
        false_alarms(100, &in_memory, 0.03, gentle(2.5)),
        false_alarms(100, &at_copy_speed, 0.03, gentle(2.5)),
    ];
    println!("{alarms:?} false alarms on 100 gently rising curves each");
    assert!(alarms.iter().all(|n| *n == 0));
}

#[test]
fn a_step_below_one_and_a_half_is_a_change_of_slope() {
    let truth = one_level(100.0 * MIB, 1.35, 4096.0 * MIB);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
    let (found, _) =
        explore(&truth.search(), Curve::Read, |bytes| truth.sample(bytes, 0.01, &mut rng));
    assert_eq!(found.borders, []);
    assert_eq!(found.slopes.len(), 1);
    assert_eq!(found.slopes[0].found_by, ioscape_model::FoundBy::Slope);
    assert!((found.slopes[0].step - 1.35).abs() < 0.05);
}

#[test]
fn a_border_that_is_smeared_is_still_one_border() {
    // Memory comes and goes: the capacity of each visit lies anywhere within ±15 %.
    for seed in 0..50 {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let search = one_level(200.0 * MIB, 40.0, 2048.0 * MIB).search();
        let (found, samples) = explore(&search, Curve::Read, |bytes| {
            let capacity = 200.0 * MIB * (0.85 + 0.3 * rng.random::<f64>());
            one_level(capacity, 40.0, search.max_bytes).sample(bytes, 0.03, &mut rng)
        });
        assert_eq!(found.borders.len(), 1, "seed {seed}: {found:#?}");
        let capacity = found.borders[0].unique_bytes.capacity;
        assert!((capacity / (200.0 * MIB) - 1.0).abs() < 0.2, "seed {seed}: {capacity}");
        assert!(samples.len() <= 30);
    }
}

#[test]
fn a_range_that_ends_below_the_cache_shows_none() {
    let truth = one_level(2048.0 * MIB, 50.0, 1024.0 * MIB);
    let counted = Hierarchy { counted: Some(0), ..truth.clone() };
    for hierarchy in [truth, counted] {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let visit = |bytes| hierarchy.sample(bytes, 0.03, &mut rng);
        let (found, samples) = explore(&hierarchy.search(), Curve::Read, visit);
        assert_eq!(found, Found::default());
        assert_eq!(samples.len(), 5);
    }
}

#[test]
fn counters_that_see_everything_resident_claim_no_page_cache() {
    // The counted level is never left; the border before it is found by timing, and says so.
    let mut truth = one_level(64.0 * MIB, 5.0, 1024.0 * MIB);
    truth.levels.push((1e6 * MIB, 50.0));
    truth.counted = Some(1);
    truth.base_s_per_byte = 1e-9; // no memory is as slow as five times this
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
    let visit = |bytes| truth.sample(bytes, 0.03, &mut rng);
    let (found, _) = explore(&truth.search(), Curve::Read, visit);
    assert_eq!(found.borders.len(), 1);
    assert_eq!(found.borders[0].found_by, ioscape_model::FoundBy::Timing);
}

#[test]
fn the_order_of_the_samples_does_not_matter() {
    let truth = one_level(150.0 * MIB, 30.0, 1024.0 * MIB);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let visit = |bytes| truth.sample(bytes, 0.03, &mut rng);
    let (found, mut samples) = explore(&truth.search(), Curve::Read, visit);
    samples.reverse();
    assert_eq!(find(&truth.search(), Curve::Read, &samples), found);
    let shorter = &samples[..samples.len() - 2];
    let mut sorted = shorter.to_vec();
    sorted.sort_by(|a, b| a.unique_bytes.total_cmp(&b.unique_bytes));
    let search = truth.search();
    assert_eq!(next(&search, Curve::Read, shorter), next(&search, Curve::Read, &sorted));
}

#[test]
fn a_read_curve_measured_on_a_busy_machine_shows_its_page_cache_and_nothing_else() {
    // ext4 on a loop device in a memory group of 256 MiB, two neighbours at work: MiB, ns per
    // byte, hit fraction. Below 245 MiB memory answers, from the processor's caches and past them.
    let measured = [
        (8.0, 0.058, 1.0),
        (32.0, 0.119, 1.0),
        (128.0, 0.210, 1.0),
        (198.2, 0.173, 1.0),
        (232.2, 0.343, 1.0),
        (256.8, 10.295, 0.972),
        (309.8, 5.896, 0.792),
        (495.8, 77.583, 0.491),
        (903.0, 69.984, 0.270),
    ];
    let samples = measured.map(|(unique_mib, time_ns_per_byte, hit)| Sample {
        unique_bytes: unique_mib * MIB,
        time_s_per_byte: time_ns_per_byte * 1e-9,
        hit_fraction: Some(hit),
        resident_bytes: None,
    });
    let search =
        Search { hints_bytes: vec![248.0 * MIB], ..one_level(1.0, 1.0, 903.0 * MIB).search() };
    for memory_s_per_byte in [Some(1.5e-10), None] {
        let search = Search { memory_s_per_byte, ..search.clone() };
        // Whatever had been measured when the budget ended: never more than the one border.
        for n in 1..=samples.len() {
            let found = find(&search, Curve::Read, &samples[..n]);
            let counted = found
                .borders
                .iter()
                .filter(|border| border.found_by == ioscape_model::FoundBy::Counters)
                .count();
            assert_eq!(
                found.borders.len(),
                usize::from(n > 5),
                "{n} samples: {:#?}",
                found.borders
            );
            assert_eq!(counted, found.borders.len());
        }
        let border = &find(&search, Curve::Read, &samples).borders[0];
        assert!((border.unique_bytes.capacity / (245.0 * MIB) - 1.0).abs() < 0.03);
        assert!(border.step > 100.0);
    }
}

#[test]
fn a_search_cut_short_says_between_which_values_the_border_lies() {
    let truth = one_level(20.0 * MIB, 30.0, 512.0 * MIB);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let samples = [8.0, 32.0].map(|mib| truth.sample(mib * MIB, 0.03, &mut rng));
    let found = find(&truth.search(), Curve::Write, &samples);
    assert_eq!(found.borders.len(), 1);
    let at = found.borders[0].unique_bytes;
    assert_eq!((at.low.round(), at.high.round()), (8.0 * MIB, 32.0 * MIB));
    assert!(at.low < at.capacity && at.capacity < at.high);
}

#[test]
fn a_write_curve_whose_pages_were_all_dirty_already_shows_no_border_before_they_are_not() {
    // ext4 with 23 GiB of memory: MiB, ns per byte, share of the pages found dirty. The steps up
    // to 900 MiB are the processor's caches'; from 1 GiB on write-back takes part.
    let measured = [
        (8.0, 0.093, 1.0),
        (32.0, 0.109, 1.0),
        (64.0, 0.129, 1.0),
        (90.5, 0.237, 1.0),
        (128.0, 0.395, 1.0),
        (181.0, 0.461, 1.0),
        (209.0, 0.539, 0.95),
        (512.0, 0.58, 1.0),
        (900.0, 0.62, 1.0),
        (1400.0, 1.3, 0.5),
        (2800.0, 1.8, 0.3),
        (9500.0, 2.3, 0.1),
    ];
    let samples = measured.map(|(unique_mib, time_ns_per_byte, dirty)| Sample {
        unique_bytes: unique_mib * MIB,
        time_s_per_byte: time_ns_per_byte * 1e-9,
        hit_fraction: Some(dirty),
        resident_bytes: None,
    });
    let search =
        Search { memory_s_per_byte: Some(9.5e-11), ..one_level(1.0, 1.0, 9500.0 * MIB).search() };
    let found = find(&search, Curve::Write, &samples);
    let capacities: Vec<f64> =
        found.borders.iter().map(|border| border.unique_bytes.capacity / MIB).collect();
    assert_eq!(capacities.len(), 1, "{capacities:?}");
    assert!((700.0..1400.0).contains(&capacities[0]), "{capacities:?}");
}
