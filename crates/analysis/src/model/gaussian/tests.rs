//! Laws made by a formula come back, with as much doubt as there is reason for.

use super::super::formula::{anywhere, training};
use super::*;

/// Smooth, with an interaction, over a factor of about 60; `process_num` does not matter.
fn law(work: &Workload) -> f64 {
    let size = Axis::SizeMean.coordinate(work) - 9.0;
    let beyond = (Axis::UniqueBytes.coordinate(work) - 18.5).tanh();
    1e8 * (0.4 * size + work.read_frac * (1.0 - beyond) + 0.5 * work.seq_frac * beyond).exp()
}

fn errors_and_scores(gaussian: &Gaussian, seed: u64) -> (Vec<f64>, Vec<f64>) {
    let judge = |work: &Workload| {
        let guess = gaussian.predict(work).unwrap();
        let error = (guess.ln_throughput - law(work).ln()).abs();
        (error, error / guess.sd)
    };
    anywhere(200, seed + 1000).iter().map(judge).unzip()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn a_smooth_law_is_learnt_from_eighty_points() {
    for seed in 0..4 {
        let training = training(&anywhere(80, seed), &law, (0.03, seed));
        let gaussian = Gaussian::fit(&training).unwrap();
        let (errors, scores) = errors_and_scores(&gaussian, seed);
        let inside = scores.iter().filter(|score| **score < 1.645).count();
        let median = median(errors);
        assert!(median < 0.05, "seed {seed}: {median} {:?}", gaussian.hyper);
        // Of the law itself, without a measurement's noise: at least as many as promised.
        assert!(inside >= 170, "seed {seed}: {inside} of 200 {:?}", gaussian.hyper);
        let lengths = gaussian.hyper.lengths;
        assert!(lengths[4] > 2.0 * lengths[0], "seed {seed}: {lengths:?}");
    }
}

#[test]
fn noise_that_the_samples_do_not_admit_to_is_found() {
    for seed in 0..3 {
        let mut training = training(&anywhere(100, seed), &law, (0.2, seed));
        for sample in &mut training.samples {
            sample.sd = 0.01;
        }
        let extra = Gaussian::fit(&training).unwrap().hyper.extra.sqrt();
        assert!((0.14..0.27).contains(&extra), "seed {seed}: {extra}");
    }
}

#[test]
fn a_sample_with_little_certainty_weighs_little() {
    let mut training = training(&anywhere(60, 5), &law, (0.02, 5));
    let work = training.samples[30].workload.clone();
    training.samples[30].ln_throughput += 3.0;
    training.samples[30].sd = 3.0;
    let guess = Gaussian::fit(&training).unwrap().predict(&work).unwrap();
    assert!((guess.ln_throughput - law(&work).ln()).abs() < 0.3, "{guess:?}");
}

#[test]
fn a_level_law_is_level_everywhere_and_few_samples_are_refused() {
    let level = training(&anywhere(30, 2), &|_| 5e8, (0.0, 0));
    let gaussian = Gaussian::fit(&level).unwrap();
    for work in anywhere(50, 3) {
        let guess = gaussian.predict(&work).unwrap();
        assert!((guess.ln_throughput - 5e8_f64.ln()).abs() < 1e-3, "{guess:?}");
    }
    let mut few = level.clone();
    few.samples.truncate(SAMPLES_MIN - 1);
    assert!(Gaussian::fit(&few).is_none());
}

#[test]
fn outside_of_what_was_measured_the_edge_answers() {
    let gaussian = Gaussian::fit(&training(&anywhere(60, 7), &law, (0.02, 7))).unwrap();
    let edge = Workload { unique_bytes: 1 << 40, ..Workload::default() };
    let further = Workload { unique_bytes: 1 << 44, ..Workload::default() };
    assert_eq!(gaussian.predict(&edge), gaussian.predict(&further));
}
