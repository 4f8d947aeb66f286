//! The Halton sequence with a random shift (Cranley and Patterson 1976): fills a box evenly from
//! the first points on, whatever their number turns out to be.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const BASES: [u64; 7] = [2, 3, 5, 7, 11, 13, 17];

/// Coordinate `dimension` (0 to 6) of point `index`, in [0, 1).
pub(crate) fn coordinate(index: u64, dimension: usize, seed: u64) -> f64 {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut shift: f64 = rng.random();
    for _ in 0..dimension {
        shift = rng.random();
    }
    (radical_inverse(index + 1, BASES[dimension]) + shift).fract()
}

/// The digits of `index` in `base`, mirrored at the point.
fn radical_inverse(mut index: u64, base: u64) -> f64 {
    let (mut value, mut weight) = (0.0, 1.0);
    while index > 0 {
        weight /= base as f64;
        value += (index % base) as f64 * weight;
        index /= base;
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_dimension_is_filled_evenly() {
        for dimension in 0..BASES.len() {
            let mut tenths = [0; 10];
            for index in 0..200 {
                tenths[(coordinate(index, dimension, 7) * 10.0) as usize] += 1;
            }
            assert!(tenths.iter().all(|count| (14..=26).contains(count)), "{tenths:?}");
        }
    }

    #[test]
    fn the_radical_inverse_mirrors_the_digits() {
        assert!((radical_inverse(6, 2) - 0.375).abs() < 1e-12); // 110 in base 2: 0.011
        assert!((radical_inverse(5, 3) - 7.0 / 9.0).abs() < 1e-12); // 12 in base 3: 0.21
    }
}
