//! Law of the clearest step in a series that has none: simulated once per length.
//!
//! With normal values the statistic's law depends on the number of values alone, for the spread is
//! estimated from the values themselves. Beyond what so many simulations can tell, Bonferroni's
//! bound holds: as many tests as there are places. The seed is the length, so that the same series
//! is judged alike everywhere.

use std::collections::BTreeMap;

use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{BEFORE_MIN, Series, USUAL_DEGREES_OF_FREEDOM};
use crate::holm::p_two_sided;
use crate::t_two_sided;

/// Simulated series per length.
const SIMULATED: usize = 2999;
/// Up to here each length has a table of its own; longer series share one with those up to a
/// quarter longer, whose law is all but the same.
const OWN_TABLE_MAX: usize = 48;

/// The simulated laws, made when they are first asked for.
#[derive(Clone, Debug, Default)]
pub struct NullLaw {
    tables: BTreeMap<usize, Table>,
}

/// Of each simulated series the clearest |t|, smallest first.
#[derive(Clone, Debug)]
struct Table {
    single: Vec<f64>,
    stretch: Vec<f64>,
}

impl NullLaw {
    /// Chance that the clearest single step in `values` values without any has at least this |t|.
    pub fn single_p_value(&mut self, values: usize, t: f64) -> f64 {
        let places = values.saturating_sub(BEFORE_MIN) as f64;
        let bound = bonferroni(values, t, places);
        let table = self.table(values);
        bound.min(share_at_or_above(&table.single, t))
    }

    /// Probability of so large a t by chance for the clearest stretch.
    pub fn stretch_p_value(&mut self, values: usize, t: f64) -> f64 {
        let bound = bonferroni(values, t, (values * values) as f64 / 2.0);
        let table = self.table(values);
        bound.min(share_at_or_above(&table.stretch, t))
    }

    /// The |t| that the clearest single step has to exceed at this level.
    pub fn single_critical(&mut self, values: usize, level: f64) -> f64 {
        let places = values.saturating_sub(BEFORE_MIN).max(1) as f64;
        let bound = t_two_sided(1.0 - level / places, degrees_of_freedom(values));
        let table = &self.table(values).single;
        let allowed = (level * (table.len() + 1) as f64) as usize;
        // Too few simulations for so rare a thing: the bound is all there is.
        let seen = allowed.checked_sub(1).and_then(|above| table.iter().rev().nth(above));
        seen.map_or(bound, |seen| seen.min(bound))
    }

    fn table(&mut self, values: usize) -> &Table {
        let length = shared_length(values);
        self.tables.entry(length).or_insert_with(|| simulate(length))
    }
}

fn degrees_of_freedom(values: usize) -> f64 {
    values as f64 - 2.0 + USUAL_DEGREES_OF_FREEDOM
}

fn bonferroni(values: usize, t: f64, places: f64) -> f64 {
    (places * p_two_sided(t, degrees_of_freedom(values))).min(1.0)
}

fn share_at_or_above(sorted: &[f64], t: f64) -> f64 {
    let below = sorted.partition_point(|simulated| *simulated < t);
    (sorted.len() - below + 1) as f64 / (sorted.len() + 1) as f64
}

fn shared_length(values: usize) -> usize {
    let mut length = OWN_TABLE_MAX;
    while length < values {
        length += length / 4;
    }
    if values <= OWN_TABLE_MAX { values } else { length }
}

fn simulate(length: usize) -> Table {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(length as u64);
    let mut normal = || -> f64 { StandardNormal.sample(&mut chance) };
    let (mut single, mut stretch) = (Vec::new(), Vec::new());
    for _ in 0..SIMULATED {
        let values: Vec<f64> = (0..length).map(|_| normal()).collect();
        let usual = (0..USUAL_DEGREES_OF_FREEDOM as usize).map(|_| normal().powi(2)).sum();
        let series = Series::with_usual(&values, 0.0, usual);
        single.push(series.best_cut().1);
        stretch.push(series.best_stretch().1);
    }
    single.sort_by(f64::total_cmp);
    stretch.sort_by(f64::total_cmp);
    Table { single, stretch }
}
