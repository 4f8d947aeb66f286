//! Steps that were put in are found; where there are none, none are.

use rand::SeedableRng;
use rand_distr::{Distribution, Normal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

const LEVEL: f64 = 0.02;
const SERIES: u64 = 200;
const RUNS: usize = 40;
const NOISE: f64 = 0.03;

/// Runs with 3 % noise; from `at` on multiplied by `factor`.
fn noisy(seed: u64, at: usize, factor: f64) -> Vec<f64> {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let normal = Normal::new(1.0, NOISE).unwrap();
    let value = |index: usize, draw: f64| (if index < at { draw } else { draw * factor }).ln();
    (0..RUNS).map(|index| value(index, normal.sample(&mut chance))).collect()
}

fn found(values: &[f64], law: &mut NullLaw) -> Vec<Step> {
    steps(&Series::new(values, 0.0), law, LEVEL)
}

/// Series of the two tests that hold rates, from seeds that nothing was tuned on: of 4,000 others
/// 91.0 % had their step found in time and 1.7 % raised a false alarm, so that 2,000 with these
/// rates would miss 90 % in 6 cases of a hundred, and exceed 2 % in 17.
const FRESH: std::ops::Range<u64> = 70_000_000..70_002_000;

#[test]
fn in_forty_runs_without_a_step_at_most_two_in_a_hundred_series_show_one() {
    let mut law = NullLaw::default();
    let alarms = FRESH.filter(|seed| !found(&noisy(*seed, RUNS, 1.0), &mut law).is_empty()).count();
    eprintln!("{alarms} false alarms in {} series", FRESH.count());
    assert!(alarms as f64 <= 0.02 * FRESH.count() as f64, "{alarms} false alarms");
}

#[test]
fn steps_of_five_percent_are_found_within_four_runs_in_nine_of_ten_series() {
    let mut law = NullLaw::default();
    let (mut hits, mut covered) = (0, 0);
    for seed in FRESH {
        // Down or up, anywhere in the middle half.
        let at = 10 + (seed as usize * 7) % 21;
        let factor = if seed % 2 == 0 { 0.95 } else { 1.05 };
        let all = found(&noisy(500_000 + seed, at, factor), &mut law);
        let near = all.iter().find(|step| step.at.abs_diff(at) <= 4);
        hits += usize::from(near.is_some());
        let truth = factor.ln();
        covered += usize::from(near.is_some_and(|step| {
            (step.difference.value - truth).abs() <= step.difference.half_width(0.95)
        }));
    }
    let series = FRESH.count() as f64;
    eprintln!("{hits} of {series} found, {covered} intervals hold the truth");
    assert!(hits as f64 >= 0.9 * series, "{hits} of {series} found");
    assert!(covered as f64 >= 0.85 * hits as f64, "{covered} of {hits} intervals hold the truth");
}

#[test]
fn a_halving_is_found_with_the_first_run_behind_it() {
    let mut law = NullLaw::default();
    for runs in [2, 5, 20] {
        let mut values = noisy(7, RUNS, 1.0)[..runs].to_vec();
        values.push(values[0] - std::f64::consts::LN_2);
        let all = found(&values, &mut law);
        assert_eq!(all.iter().map(|step| step.at).collect::<Vec<_>>(), [runs], "{runs} before");
        assert!(!all[0].is_confirmed);
    }
}

#[test]
fn a_step_that_was_taken_back_is_two_steps() {
    let mut law = NullLaw::default();
    let mut values = noisy(3, RUNS, 1.0);
    values[20..25].iter_mut().for_each(|value| *value -= 0.2);
    let at: Vec<usize> = found(&values, &mut law).iter().map(|step| step.at).collect();
    assert_eq!(at, [20, 25]);
}

#[test]
fn one_run_that_went_wrong_is_no_step() {
    let mut law = NullLaw::default();
    for wrong in [0, 1, 13, 30, 38] {
        let mut values = noisy(5, RUNS, 1.0);
        values[wrong] -= 0.5;
        let all = found(&values, &mut law);
        assert!(all.is_empty(), "run {wrong}: {all:?}");
    }
}

#[test]
fn values_that_are_known_badly_show_no_step() {
    let mut law = NullLaw::default();
    let values = noisy(2, 20, 0.9);
    assert!(!found(&values, &mut law).is_empty());
    assert!(steps(&Series::new(&values, 0.04), &mut law, LEVEL).is_empty());
}

#[test]
fn equal_and_few_values_have_no_step() {
    let mut law = NullLaw::default();
    assert!(found(&[], &mut law).is_empty());
    assert!(found(&[1.0, 2.0], &mut law).is_empty());
    assert!(found(&[1.0; 30], &mut law).is_empty());
}

#[test]
fn a_step_of_the_size_that_could_be_seen_is_seen_in_nine_of_ten_series() {
    let mut law = NullLaw::default();
    let size = smallest_step(RUNS, NOISE, &mut law, LEVEL).unwrap();
    let seen =
        |seed: &u64| !found(&noisy(5000 + seed, RUNS / 2, (-size).exp()), &mut law).is_empty();
    let share = (0..SERIES).filter(seen).count() as f64 / SERIES as f64;
    assert!((0.82..=0.99).contains(&share), "{share}");
    assert!(smallest_step(2, NOISE, &mut NullLaw::default(), LEVEL).is_none());
}
