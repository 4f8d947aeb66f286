//! Exact where it must be, and refused where there is no grid.

use ioscape_model::units::{KIB, MIB};

use super::super::formula::{anywhere, training};
use super::*;

const UNIQUE_MIB: [u64; 3] = [64, 512, 960];
const SIZES_KIB: [u64; 3] = [4, 500, 996];

fn grid() -> Vec<Workload> {
    let mut works = Vec::new();
    for unique in UNIQUE_MIB {
        for size in SIZES_KIB {
            for read_frac in [0.0, 0.5, 1.0] {
                for seq_frac in [0.0, 0.5, 1.0] {
                    works.extend([1, 4].map(|process_num| Workload {
                        unique_bytes: unique * MIB,
                        size_mean: size * KIB,
                        read_frac,
                        seq_frac,
                        process_num,
                        ..Workload::default()
                    }));
                }
            }
        }
    }
    works
}

/// Linear in every parameter alone, with all products between them.
fn multilinear(work: &Workload) -> f64 {
    let factors = Axis::ALL.iter().zip([2e-9, 3e-6, 0.9, -0.4, 0.2]);
    1e8 * factors.map(|(axis, slope)| 1.0 + slope * axis.value(work)).product::<f64>()
}

#[test]
fn a_law_that_is_linear_in_every_parameter_is_predicted_exactly_between_the_points() {
    let mut shuffled = grid();
    for seed in 0..4_usize {
        shuffled.rotate_left(37 * seed + 1);
        shuffled.swap(3, 150 - seed);
        let orthogonal = Orthogonal::fit(&training(&shuffled, &multilinear, (0.0, 0))).unwrap();
        let inside = |work: &Workload| {
            (64 * MIB..=960 * MIB).contains(&work.unique_bytes) && work.size_mean <= 996 * KIB
        };
        let mut count = 0;
        for work in anywhere(400, seed as u64).into_iter().filter(inside) {
            let guess = orthogonal.predict(&work).unwrap();
            let error = (guess.ln_throughput - multilinear(&work).ln()).abs();
            assert!(error < 1e-9, "{work}: {error}");
            assert!(guess.sd > 0.0 && guess.sd <= 0.010_001, "{guess:?}");
            count += 1;
        }
        assert!(count > 150, "{count}");
    }
}

#[test]
fn every_measured_point_is_predicted_as_measured_whatever_the_law() {
    let cliff = |work: &Workload| if work.unique_bytes > 100 * MIB { 1e7 } else { 3e9 };
    let training = training(&grid(), &cliff, (0.3, 1));
    let orthogonal = Orthogonal::fit(&training).unwrap();
    for sample in &training.samples {
        let guess = orthogonal.predict(&sample.workload).unwrap();
        assert!((guess.ln_throughput - sample.ln_throughput).abs() < 1e-9, "{}", sample.workload);
    }
    // Half-way down a cliff in throughput, which no storage is.
    let between = Workload { unique_bytes: 288 * MIB, ..grid()[0].clone() };
    let sharp = Orthogonal::fit(&super::super::formula::training(&grid(), &cliff, (0.0, 0)));
    let guess = sharp.unwrap().predict(&between).unwrap();
    assert!((guess.ln_throughput - f64::midpoint(3e9, 1e7).ln()).abs() < 1e-9, "{guess:?}");
}

#[test]
fn outside_the_grid_the_edge_answers() {
    let orthogonal = Orthogonal::fit(&training(&grid(), &multilinear, (0.0, 0))).unwrap();
    let at = |unique_bytes, size_mean, process_num| {
        let work = Workload { unique_bytes, size_mean, process_num, ..Workload::default() };
        orthogonal.predict(&work).unwrap()
    };
    assert_eq!(at(MIB, 4 * KIB, 1), at(64 * MIB, 4 * KIB, 1));
    assert_eq!(at(1 << 40, 4 * MIB, 64), at(960 * MIB, 996 * KIB, 4));
}

#[test]
fn further_samples_do_not_hide_a_grid_and_a_hole_is_not_filled() {
    let mut works = grid();
    works.extend(anywhere(60, 9));
    let law = |work: &Workload| multilinear(work);
    let whole = Orthogonal::fit(&training(&works, &law, (0.0, 0))).unwrap();
    assert_eq!(whole.grid.len(), 162);
    works.remove(80);
    assert!(Orthogonal::fit(&training(&works, &law, (0.0, 0))).is_none());
    assert!(Orthogonal::fit(&training(&anywhere(200, 1), &law, (0.0, 0))).is_none());
    assert!(Orthogonal::fit(&training(&[], &law, (0.0, 0))).is_none());
}

#[test]
fn with_one_process_only_the_grid_has_half_the_points() {
    let works: Vec<Workload> = grid().into_iter().filter(|work| work.process_num == 1).collect();
    let orthogonal = Orthogonal::fit(&training(&works, &multilinear, (0.0, 0))).unwrap();
    let work = &works[40];
    let guess = orthogonal.predict(&Workload { process_num: 3, ..work.clone() }).unwrap();
    assert!((guess.ln_throughput - multilinear(work).ln()).abs() < 1e-9);
}
