//! A series that falls from one level to a lower one: where, how far, and how well that is known.
//!
//! Two constants are fitted by least squares over all places where the first may end (Page 1955; Hinkley
//! 1970). Neighbours resemble each other, so the scatter about the two is widened as in [`crate::batch`]
//! before the fall is held against it; a place belongs to the interval of the step as long as it fits
//! no worse than chance would have it (the profile of the likelihood).

use crate::interval::Mean;
use crate::quantile::median;
use crate::series::{Piece, total};

/// Fewest pieces at either level.
const LEVEL_MIN: usize = 8;
/// The second level is at most this share of the first: less of a fall is none that counts.
const FALL_MAX: f64 = 0.85;
/// Standard errors of the difference. The best of all places is taken, so chance has many tries.
const SIGMAS_MIN: f64 = 7.0;
/// A rate counts as no more than so many medians: one burst must not make a level.
const RATE_MAX: f64 = 5.0;
/// χ² with one degree of freedom at 95 %.
const CHI_SQUARED_95: f64 = 3.841;
/// Widening beyond this says more about chance than about the series.
const AUTOCORRELATION_MAX: f64 = 0.9;

/// A fall from one level to a lower one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fall {
    /// How many pieces come before it.
    pub at: usize,
    /// Least and most that it may be, at 95 %.
    pub between: (usize, usize),
    /// The rate before it.
    pub first: Mean,
    /// The rate after it.
    pub second: Mean,
}

/// The fall of a series, where there is one beyond doubt.
pub fn fall(series: &[Piece]) -> Option<Fall> {
    let rates = bounded_rates(series)?;
    let costs = Costs::new(&rates);
    let places = LEVEL_MIN..=rates.len().checked_sub(LEVEL_MIN)?;
    let at = places.clone().min_by(|a, b| costs.of_two(*a).total_cmp(&costs.of_two(*b)))?;
    let (before, after) = (costs.mean(0, at), costs.mean(at, rates.len()));
    let variance = widened_variance(&rates, at, (before, after));
    let (first_count, second_count) = (at as f64, (rates.len() - at) as f64);
    let square = |level: f64, count: f64| variance * level * level / count;
    let error = (square(before, first_count) + square(after, second_count)).sqrt();
    if after > FALL_MAX * before || before - after < SIGMAS_MIN * error {
        return None;
    }
    let worst = costs.of_two(at) + CHI_SQUARED_95 * square(before, 1.0);
    let likely = || places.clone().filter(|place| costs.of_two(*place) <= worst);
    let level = |pieces: &[Piece], count: f64| {
        let value = total(pieces).rate();
        let standard_error = (variance / count).sqrt() * value;
        Mean { value, standard_error, degrees_of_freedom: count - 1.0 }
    };
    Some(Fall {
        at,
        between: (likely().min().unwrap_or(at), likely().max().unwrap_or(at)),
        first: level(&series[..at], first_count),
        second: level(&series[at..], second_count),
    })
}

/// Rates over their median, which is how noise comes; `None` where most of it was no rate at all.
fn bounded_rates(series: &[Piece]) -> Option<Vec<f64>> {
    let middle = median(series.iter().map(Piece::rate)).filter(|middle| *middle > 0.0)?;
    Some(series.iter().map(|piece| (piece.rate() / middle).min(RATE_MAX)).collect())
}

/// Relative variance about two constants, for noise is a share of its level, widened for what neighbours have in common: n pieces with
/// autocorrelation ρ are worth n·(1−ρ)/(1+ρ) independent ones.
fn widened_variance(rates: &[f64], at: usize, (before, after): (f64, f64)) -> f64 {
    let level = |index: usize| if index < at { before } else { after };
    let relative = |(index, rate): (usize, &f64)| rate / level(index).max(f64::MIN_POSITIVE) - 1.0;
    let left: Vec<f64> = rates.iter().enumerate().map(relative).collect();
    let squares: f64 = left.iter().map(|rest| rest * rest).sum();
    if squares <= 0.0 {
        return 0.0;
    }
    let neighbours: f64 = left.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let likeness = (neighbours / squares).clamp(0.0, AUTOCORRELATION_MAX);
    squares / (rates.len() as f64 - 2.0) * (1.0 + likeness) / (1.0 - likeness)
}

/// Running sums, which give the squares about the mean of any part in constant time.
struct Costs {
    sums: Vec<(f64, f64)>,
}

impl Costs {
    fn new(rates: &[f64]) -> Self {
        let mut sums = vec![(0.0, 0.0)];
        let (mut sum, mut squares) = (0.0, 0.0);
        for rate in rates {
            sum += rate;
            squares += rate * rate;
            sums.push((sum, squares));
        }
        Self { sums }
    }

    fn mean(&self, from: usize, to: usize) -> f64 {
        (self.sums[to].0 - self.sums[from].0) / (to - from) as f64
    }

    /// Squares about one constant before `at` and another from there on.
    fn of_two(&self, at: usize) -> f64 {
        let end = self.sums.len() - 1;
        self.of_one(0, at) + self.of_one(at, end)
    }

    fn of_one(&self, from: usize, to: usize) -> f64 {
        let sum = self.sums[to].0 - self.sums[from].0;
        let squares = self.sums[to].1 - self.sums[from].1;
        (squares - sum * sum / (to - from) as f64).max(0.0)
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_distr::{Distribution, StandardNormal};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// So many pieces at each of some levels, with noise whose neighbours resemble each other.
    fn series(levels: &[(usize, f64)], cv: f64, likeness: f64, seed: u64) -> Vec<Piece> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut state: f64 = StandardNormal.sample(&mut rng);
        let mut pieces = Vec::new();
        for (count, level) in levels {
            for _ in 0..*count {
                let fresh: f64 = StandardNormal.sample(&mut rng);
                state = likeness * state + (1.0 - likeness * likeness).sqrt() * fresh;
                let rate = level * (1.0 + cv * state).max(0.0);
                pieces.push(Piece { amount: rate * 0.5, length: 0.5 });
            }
        }
        pieces
    }

    #[test]
    fn a_fall_is_found_where_it_is_with_both_its_levels() {
        for seed in 0..200 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let (before, after) = (rng.random_range(20..150), rng.random_range(20..150));
            let ratio = rng.random_range(0.1..0.7);
            let pieces = series(&[(before, 2e9), (after, 2e9 * ratio)], 0.08, 0.5, seed);
            let step = fall(&pieces).unwrap();
            let slack = 2 + before / 20;
            assert!(step.at.abs_diff(before) <= slack, "{seed}: {} of {before}", step.at);
            assert!(step.between.0 <= step.at && step.at <= step.between.1);
            let near = |mean: Mean, truth: f64| {
                (mean.value - truth).abs() < (5.0 * mean.standard_error).max(0.01 * truth)
            };
            assert!(near(step.first, 2e9) && near(step.second, 2e9 * ratio), "{seed}: {step:?}");
        }
    }

    #[test]
    fn a_steady_series_has_none_whatever_its_noise() {
        for seed in 0..500 {
            for (cv, likeness) in [(0.02, 0.0), (0.1, 0.5), (0.2, 0.8)] {
                let pieces = series(&[(250, 1e9)], cv, likeness, seed);
                assert_eq!(fall(&pieces), None, "{seed}: {cv} {likeness}");
            }
        }
        assert_eq!(fall(&series(&[(100, 1e9), (100, 3e9)], 0.05, 0.3, 1)), None, "a rise");
        assert_eq!(fall(&series(&[(100, 1e9), (100, 9e8)], 0.01, 0.0, 1)), None, "too little");
    }

    #[test]
    fn stalls_and_short_series_are_no_fall() {
        let mut pieces = series(&[(200, 1e9)], 0.05, 0.3, 3);
        for index in [20, 77, 78, 150, 199] {
            pieces[index].amount = 0.0;
        }
        assert_eq!(fall(&pieces), None);
        for count in 0..2 * LEVEL_MIN {
            assert_eq!(fall(&pieces[..count]), None);
        }
        assert_eq!(fall(&[Piece { amount: 0.0, length: 1.0 }; 50]), None);
    }

    #[test]
    fn the_interval_of_the_step_holds_it_nearly_always() {
        let inside = (0..200).filter(|seed| {
            let pieces = series(&[(60, 1e9), (60, 6e8)], 0.15, 0.4, *seed);
            let between = fall(&pieces).unwrap().between;
            (between.0..=between.1).contains(&60)
        });
        let count = inside.count();
        assert!(count >= 180, "{count} of 200");
    }
}
