//! What the product is right about, exactly, and what it is wrong about, by known figures.

use ioscape_model::units::{GIB, KIB, MIB};

use super::super::formula::{anywhere, region, training};
use super::*;

const UNIQUE: [u64; 5] = [8 * MIB, 32 * MIB, 100 * MIB, 400 * MIB, GIB];
const SIZES: [u64; 4] = [4 * KIB, 16 * KIB, 64 * KIB, MIB];
const FRACTIONS: [f64; 4] = [0.0, 0.25, 0.5, 1.0];
const PROCESSES: [u32; 3] = [1, 2, 4];

fn focal(unique_bytes: u64) -> Workload {
    Workload { unique_bytes, ..Workload::default() }
}

/// The curves of two regions and the `unique_bytes` curve across both, at this size.
fn works(sweep_size: u64) -> Vec<Workload> {
    let mut works = Vec::new();
    for focal in [focal(32 * MIB), focal(400 * MIB)] {
        works.push(focal.clone());
        works.extend(SIZES.map(|size_mean| Workload { size_mean, ..focal.clone() }));
        works.extend(FRACTIONS.map(|read_frac| Workload { read_frac, ..focal.clone() }));
        works.extend(FRACTIONS.map(|seq_frac| Workload { seq_frac, ..focal.clone() }));
        works.extend(PROCESSES.map(|process_num| Workload { process_num, ..focal.clone() }));
    }
    let at = |unique_bytes| Workload { unique_bytes, size_mean: sweep_size, ..Workload::default() };
    works.extend(UNIQUE.map(at));
    let mut once: Vec<Workload> = Vec::new();
    for work in works {
        if !once.contains(&work) {
            once.push(work);
        }
    }
    once
}

fn two_regions(works: &[Workload], law: &dyn Fn(&Workload) -> f64) -> Training {
    let mut training = training(works, law, (0.0, 0));
    training.regions = vec![
        region(&focal(32 * MIB), 8 * MIB, 100 * MIB),
        region(&focal(400 * MIB), 100 * MIB, GIB),
    ];
    training
}

/// One factor per parameter: `seed` decides which shapes they have.
fn separable(work: &Workload, seed: u64) -> f64 {
    let waves = [0.7, 1.3, 2.1, 3.4, 0.9].map(|pitch| pitch * (1.0 + seed as f64));
    let factors = Axis::ALL.iter().zip(waves);
    1e8 * factors.map(|(axis, pitch)| (pitch * axis.coordinate(work)).sin().exp()).product::<f64>()
}

fn mixed(work: &Workload) -> f64 {
    let read_s = 1e-4 * (1.0 - work.seq_frac) + 1e-5 * work.seq_frac;
    work.size_mean as f64 / (work.read_frac * read_s + (1.0 - work.read_frac) * 2e-5)
}

#[test]
fn a_separable_law_is_predicted_exactly_at_every_combination_of_measured_values() {
    for seed in 0..5 {
        for sweep_size in [16 * KIB, 40 * KIB] {
            let law = |work: &Workload| separable(work, seed);
            let product = Product::fit(&two_regions(&works(sweep_size), &law)).unwrap();
            let mut count = 0;
            for unique_bytes in UNIQUE {
                for size_mean in SIZES {
                    for (read_frac, seq_frac) in
                        FRACTIONS.into_iter().flat_map(|r| FRACTIONS.map(|q| (r, q)))
                    {
                        for process_num in PROCESSES {
                            let work = Workload {
                                unique_bytes,
                                size_mean,
                                read_frac,
                                seq_frac,
                                process_num,
                                ..Workload::default()
                            };
                            let guess = product.predict(&work).unwrap();
                            let error = (guess.ln_throughput - law(&work).ln()).abs();
                            assert!(error < 1e-9, "{work}: {error}");
                            count += 1;
                        }
                    }
                }
            }
            assert_eq!(count, 5 * 4 * 16 * 3);
        }
    }
}

#[test]
fn what_was_measured_on_a_curve_is_predicted_as_measured_whatever_the_law() {
    let training = two_regions(&works(16 * KIB), &mixed);
    let product = Product::fit(&training).unwrap();
    for sample in &training.samples {
        let guess = product.predict(&sample.workload).unwrap();
        assert!((guess.ln_throughput - sample.ln_throughput).abs() < 1e-9, "{}", sample.workload);
    }
}

#[test]
fn mixtures_do_not_multiply() {
    // Times of 100 µs, 10 µs and 20 µs: at the corners the product is off by known factors.
    let product = Product::fit(&two_regions(&works(16 * KIB), &mixed)).unwrap();
    let corners = [(1.0, 1.0, 22.0, 10.0), (0.0, 1.0, 8.0, 20.0), (0.0, 0.0, 32.0, 20.0)];
    for (read_frac, seq_frac, predicted_us, true_us) in corners {
        let work = Workload { read_frac, seq_frac, ..focal(32 * MIB) };
        let guess = product.predict(&work).unwrap();
        let off = guess.ln_throughput - mixed(&work).ln();
        let expected: f64 = true_us / predicted_us;
        assert!((off - expected.ln()).abs() < 1e-9, "{work}: {}", off.exp());
    }
}

#[test]
fn the_family_is_that_of_the_region_or_the_nearest_one() {
    // Reads are better in the first region and worse in the second.
    let law = |work: &Workload| {
        let slope = if work.unique_bytes < 100 * MIB { 1.0 } else { -1.0 };
        1e9 * (slope * work.read_frac).exp()
    };
    let mut training = two_regions(&works(16 * KIB), &law);
    let of_reads = |product: &Product, unique_bytes| {
        let at = |read_frac| {
            let work = Workload { read_frac, ..focal(unique_bytes) };
            product.predict(&work).unwrap().ln_throughput
        };
        at(1.0) - at(0.0)
    };
    let both = Product::fit(&training).unwrap();
    assert!((of_reads(&both, 90 * MIB) - 1.0).abs() < 1e-9);
    assert!((of_reads(&both, 110 * MIB) + 1.0).abs() < 1e-9);
    assert!((of_reads(&both, 2 * MIB) - 1.0).abs() < 1e-9);
    assert!((of_reads(&both, 4 * GIB) + 1.0).abs() < 1e-9);
    // A region of which nothing was measured is answered for by its neighbour.
    training.regions[0].focal.unique_bytes = 33 * MIB;
    let second = Product::fit(&training).unwrap();
    assert!((of_reads(&second, 9 * MIB) + 1.0).abs() < 1e-9);
    training.regions.remove(1);
    assert!(Product::fit(&training).is_none());
}

#[test]
fn a_curve_that_was_not_measured_counts_as_level_and_curves_end_at_their_ends() {
    let focal = focal(32 * MIB);
    let sizes = [4, 16, 64].map(|kib| Workload { size_mean: kib * KIB, ..focal.clone() });
    let law = |work: &Workload| work.size_mean as f64 * 1e4;
    let mut training = training(&sizes, &law, (0.0, 0));
    training.regions = vec![region(&focal, 8 * MIB, GIB)];
    let product = Product::fit(&training).unwrap();
    for (index, work) in anywhere(200, 3).into_iter().enumerate() {
        let guess = product.predict(&work).unwrap();
        let expected = 1e4 * (work.size_mean as f64).min(64.0 * KIB as f64);
        assert!((guess.ln_throughput - expected.ln()).abs() < 1e-9, "{index}: {work}");
        assert!(guess.sd > 0.0 && guess.sd < 0.1, "{guess:?}");
    }
}

#[test]
fn noise_on_the_curves_shows_in_the_guess_as_much_as_in_its_uncertainty() {
    let law = |work: &Workload| separable(work, 1);
    let work = Workload {
        unique_bytes: 100 * MIB,
        size_mean: 64 * KIB,
        read_frac: 0.0,
        seq_frac: 1.0,
        process_num: 4,
        ..Workload::default()
    };
    let scores: Vec<f64> = (0..400)
        .map(|seed| {
            let mut noisy = training(&works(16 * KIB), &law, (0.05, seed));
            noisy.regions = two_regions(&[], &law).regions;
            let guess = Product::fit(&noisy).unwrap().predict(&work).unwrap();
            (guess.ln_throughput - law(&work).ln()) / guess.sd
        })
        .collect();
    let spread = (scores.iter().map(|s| s * s).sum::<f64>() / scores.len() as f64).sqrt();
    assert!((0.8..1.5).contains(&spread), "{spread}");
}
