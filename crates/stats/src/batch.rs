//! Batch means: the mean of a series whose neighbours resemble each other, with an honest error.
//!
//! Pieces are joined into batches, as Pilot does (Li et al., MASCOTS 2016), and what resemblance
//! is left between batches widens the error. All batch sizes are tried and the widest interval
//! counts: small batches are many, and show how much neighbours resemble each other; large ones
//! show swings that are longer than a piece. Stopping at the first size at which batches happen
//! to look independent gave intervals that were too narrow.

use crate::interval::Mean;
use crate::series::{Piece, total};

/// Fewest batches: with fewer, neither scatter nor resemblance can be seen.
const BATCHES_MIN: usize = 10;
/// Where the intervals of batch sizes are held against each other.
const CONFIDENCE: f64 = 0.95;
/// Past this the widening, which grows like 1/(1−ρ), says more about chance than about the series.
const AUTOCORRELATION_MAX: f64 = 0.9;

/// The rate of a steady series, amount over length, as the ratio of totals. Pieces without any
/// amount count like all others.
pub fn mean(pieces: &[Piece]) -> Mean {
    let whole = total(pieces);
    let rate = whole.rate();
    if pieces.len() < 2 || whole.length <= 0.0 {
        return Mean { value: rate, standard_error: 0.0, degrees_of_freedom: 0.0 };
    }
    // A ratio of totals is linear in the residuals amount − rate·length, whatever the lengths.
    let mut residuals: Vec<f64> =
        pieces.iter().map(|piece| piece.amount - rate * piece.length).collect();
    let mut mean = mean_of_batches(&residuals, rate, whole.length);
    while residuals.len() >= 2 * BATCHES_MIN {
        residuals = joined_in_pairs(&residuals);
        let wider = mean_of_batches(&residuals, rate, whole.length);
        if wider.half_width(CONFIDENCE) > mean.half_width(CONFIDENCE) {
            mean = wider;
        }
    }
    mean
}

/// n batches with autocorrelation ρ are worth n·(1−ρ)/(1+ρ) independent ones.
fn mean_of_batches(residuals: &[f64], rate: f64, length: f64) -> Mean {
    // Batches that repel each other would narrow the error; that is not to be relied on.
    let likeness = autocorrelation(residuals).clamp(0.0, AUTOCORRELATION_MAX);
    let count = residuals.len() as f64;
    let independent = count * (1.0 - likeness) / (1.0 + likeness);
    let sum_of_squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    let variance = sum_of_squares / (count - 1.0);
    Mean {
        value: rate,
        standard_error: (variance / independent).sqrt() * count / length,
        degrees_of_freedom: count - 1.0,
    }
}

/// Sums of neighbours; an odd one out is dropped at the start, where the series is oldest.
fn joined_in_pairs(residuals: &[f64]) -> Vec<f64> {
    residuals[residuals.len() % 2..].chunks_exact(2).map(|pair| pair[0] + pair[1]).collect()
}

/// Lag-1 autocorrelation, with the bias of short series taken out: on average the plain estimate
/// is (1 + 3ρ)/n too low (Marriott and Pope 1954; Kendall 1954).
fn autocorrelation(residuals: &[f64]) -> f64 {
    let count = residuals.len() as f64;
    let mean = residuals.iter().sum::<f64>() / count;
    let variance: f64 = residuals.iter().map(|residual| (residual - mean).powi(2)).sum();
    if variance <= 0.0 {
        return 0.0;
    }
    let covariance: f64 =
        residuals.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let plain = covariance / variance;
    plain + (1.0 + 3.0 * plain) / count
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "exact by construction")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(amounts: &[f64]) -> Vec<Piece> {
        amounts.iter().map(|&amount| Piece { amount, length: 1.0 }).collect()
    }

    #[test]
    fn independent_pieces_have_the_error_of_the_textbook_or_a_little_more() {
        // A fixed scramble of 0..100: no neighbour resembles the next.
        let amounts: Vec<f64> = (0..100).map(|i| f64::from(i * 37 % 101)).collect();
        let mean = mean(&pieces(&amounts));
        let plain = amounts.iter().sum::<f64>() / 100.0;
        let squares: f64 = amounts.iter().map(|amount| (amount - plain).powi(2)).sum();
        let textbook = (squares / 99.0 / 100.0).sqrt();
        assert!((mean.value - plain).abs() < 1e-9);
        let ratio = mean.standard_error / textbook;
        assert!((0.999..1.5).contains(&ratio), "{ratio}");
    }

    #[test]
    fn swings_longer_than_a_piece_widen_the_error() {
        // The same hundred values, once in blocks of eight.
        let blocks: Vec<f64> = (0..96).map(|i| f64::from(i / 8 * 5 % 12)).collect();
        let scrambled: Vec<f64> = (0..96).map(|i| blocks[i * 35 % 96]).collect();
        let ratio =
            mean(&pieces(&blocks)).standard_error / mean(&pieces(&scrambled)).standard_error;
        // Twelve independent values instead of 96: √8 = 2.8 times the error.
        assert!((2.0..4.5).contains(&ratio), "{ratio}");
    }

    #[test]
    fn pieces_without_amount_count_and_lengths_may_differ() {
        let uneven = [(0.0, 1.0), (30.0, 2.0), (0.0, 1.0), (0.0, 3.0), (50.0, 1.0)];
        let uneven: Vec<Piece> = uneven.map(|(amount, length)| Piece { amount, length }).to_vec();
        assert_eq!(mean(&uneven).value, 10.0);
        assert!(mean(&uneven).standard_error > 0.0);
    }

    #[test]
    fn too_little_says_nothing_of_its_error() {
        assert_eq!(mean(&[]).degrees_of_freedom, 0.0);
        assert!(mean(&pieces(&[5.0])).half_width(0.95).is_infinite());
    }

    proptest! {
        #[test]
        fn the_error_scales_with_the_units(
            amounts in prop::collection::vec(0.0..100.0f64, 2..80),
            amount_unit in 1e-3..1e9f64,
            length_unit in 1e-3..1e3f64,
        ) {
            let one = mean(&pieces(&amounts));
            let scaled: Vec<Piece> = amounts
                .iter()
                .map(|amount| Piece { amount: amount * amount_unit, length: length_unit })
                .collect();
            let other = mean(&scaled);
            let unit = amount_unit / length_unit;
            prop_assert!((other.value / unit - one.value).abs() <= 1e-6 * (1.0 + one.value));
            prop_assert!(
                (other.standard_error / unit - one.standard_error).abs()
                    <= 1e-6 * (1.0 + one.standard_error)
            );
            prop_assert_eq!(other.degrees_of_freedom, one.degrees_of_freedom);
        }
    }
}
