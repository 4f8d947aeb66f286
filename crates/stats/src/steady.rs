//! From a raw series to the sample that is kept: where the beginning is cut off, and whether what
//! is left has stopped drifting.
//!
//! The cut is MSER-5 (White 1997; White, Cobb and Spratt 2000). It sees a start that differs from
//! the rest by more than the noise, not a slow drift; the drift guard compares the two halves of
//! what is left for that.

use crate::batch;
use crate::interval::Mean;
use crate::series::{Piece, total};

/// Pieces that MSER-5 joins before it looks for the cut.
const JOINED: usize = 5;
/// How far the mean of a sample may lag behind where it is going, as a multiple of what its halves
/// differ by: 1 for a straight line, up to 2 for a decay that takes as long as the sample.
const LAG_PER_DRIFT: f64 = 1.5;
/// Fewest joined pieces left: the scatter of one or two says nothing.
const LEFT_MIN: usize = 3;
/// A drift of this many standard errors is more than scatter.
const DRIFT_SIGMAS: f64 = 2.0;
/// A drift below this share of what is allowed does not matter, however well it is seen.
const DRIFT_NEGLIGIBLE: f64 = 0.2;

/// The part of a series that is kept: its beginning cut off, nothing else left out. Slow pieces
/// stay; a device that stalls is a device that stalls.
#[derive(Clone, Copy, Debug)]
pub struct Kept<'a> {
    pieces: &'a [Piece],
    cut: usize,
}

/// The rate of the second half over that of the first, less one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    /// The drift.
    pub relative: f64,
    /// Its standard error, from the scatter inside the halves.
    pub standard_error: f64,
}

impl<'a> Kept<'a> {
    /// Cuts off the beginning that differs from the rest; half of the series at most.
    pub fn from_series(series: &'a [Piece]) -> Self {
        let cut = mser_cut(series);
        Self { pieces: &series[cut..], cut }
    }

    /// The pieces.
    pub fn pieces(&self) -> &'a [Piece] {
        self.pieces
    }

    /// How many pieces were cut off before them.
    pub fn cut(&self) -> usize {
        self.cut
    }

    /// The rate with its error.
    pub fn mean(&self) -> Mean {
        batch::mean(self.pieces)
    }

    /// Standard deviation of the pieces' rates over their mean; infinite where that is zero.
    pub fn variation(&self) -> f64 {
        let mean = total(self.pieces).rate();
        if mean <= 0.0 || self.pieces.len() < 2 {
            return f64::INFINITY;
        }
        let squares: f64 = self.pieces.iter().map(|piece| (piece.rate() - mean).powi(2)).sum();
        (squares / (self.pieces.len() - 1) as f64).sqrt() / mean
    }

    /// How far the second half lies from the first.
    pub fn drift(&self) -> Drift {
        let (first, second) = self.pieces.split_at(self.pieces.len() / 2);
        let (first, second) = (batch::mean(first), batch::mean(second));
        let mean = total(self.pieces).rate();
        if mean <= 0.0 {
            return Drift { relative: 0.0, standard_error: 0.0 };
        }
        Drift {
            relative: (second.value - first.value) / mean,
            standard_error: first.standard_error.hypot(second.standard_error) / mean,
        }
    }
}

impl Drift {
    /// How far the mean may lag behind the steady state, as a share of it. Chance makes halves
    /// differ too, so this is an error to be added in quadrature, not a correction.
    pub fn lag(&self) -> f64 {
        LAG_PER_DRIFT * self.relative.abs()
    }

    /// Whether measuring may end: the drift is within `allowed`, and either negligible or no more
    /// than scatter. A drift that is plainly seen goes on, and the mean lags behind it.
    pub fn is_over(&self, allowed: f64) -> bool {
        let drift = self.relative.abs();
        drift <= allowed
            && (drift <= DRIFT_NEGLIGIBLE * allowed || drift <= DRIFT_SIGMAS * self.standard_error)
    }

    /// Whether the series drifts beyond doubt, and by more than `allowed`.
    pub fn is_certain(&self, allowed: f64) -> bool {
        self.relative.abs() > allowed.max(DRIFT_SIGMAS * self.standard_error)
    }
}

/// How many pieces to cut off: the d that minimises Σ(x − mean)²/(n − d)² over what is left of the
/// series joined by fives, half of the series at most.
fn mser_cut(series: &[Piece]) -> usize {
    // What does not fill a five is left over at the start, so that the newest pieces count.
    let spare = series.len() % JOINED;
    let mean = total(series).rate();
    let rates: Vec<f64> =
        series[spare..].chunks_exact(JOINED).map(|five| total(five).rate() - mean).collect();
    let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    // From the end, so that each candidate is one step away from the one before.
    for (cut, rate) in rates.iter().enumerate().rev() {
        sum += rate;
        squares += rate * rate;
        count += 1.0;
        let statistic: f64 = (squares - sum * sum / count).max(0.0) / (count * count);
        if cut <= rates.len() / 2 && rates.len() - cut >= LEFT_MIN && statistic <= best.0 {
            best = (statistic, cut);
        }
    }
    if best.1 == 0 { 0 } else { spare + best.1 * JOINED }.min(series.len() / 2)
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "exact by construction")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pieces(rates: impl IntoIterator<Item = f64>) -> Vec<Piece> {
        rates.into_iter().map(|rate| Piece { amount: rate * 0.1, length: 0.1 }).collect()
    }

    /// Small, fixed noise.
    fn noise(index: u32) -> f64 {
        f64::from(index * 37 % 101) / 101.0 - 0.5
    }

    #[test]
    fn a_slow_start_is_cut_off() {
        let series = pieces((0..60).map(|i| if i < 12 { 50.0 } else { 100.0 } + noise(i)));
        let kept = Kept::from_series(&series);
        assert!((15..=20).contains(&kept.cut()), "{}", kept.cut());
        assert!((kept.mean().value - 100.0).abs() < 0.5);
        assert!(kept.drift().is_over(0.025));
    }

    #[test]
    fn a_steady_series_is_kept_whole_and_slow_pieces_stay() {
        let series = pieces((0..60).map(|i| if i == 40 { 10.0 } else { 100.0 + noise(i) }));
        let kept = Kept::from_series(&series);
        assert_eq!(kept.cut(), 0);
        assert!((kept.mean().value - 98.5).abs() < 0.5);
        assert_eq!(Kept::from_series(&pieces([7.0; 40])).cut(), 0);
    }

    #[test]
    fn a_drift_is_seen_through_the_noise() {
        let series = pieces((0..100).map(|i| 100.0 + 0.2 * f64::from(i) + 4.0 * noise(i)));
        let drift = Kept::from_series(&series).drift();
        assert!(drift.relative > 0.04 && drift.is_certain(0.025) && !drift.is_over(0.025));
        let steady = pieces((0..100).map(|i| 100.0 + 4.0 * noise(i)));
        let drift = Kept::from_series(&steady).drift();
        assert!(drift.is_over(0.025) && !drift.is_certain(0.025));
    }

    #[test]
    fn nothing_at_all_is_no_reason_to_panic() {
        for count in 0..12 {
            let kept_mean = Kept::from_series(&pieces(vec![0.0; count])).mean();
            assert_eq!(kept_mean.value, 0.0);
            assert_eq!(Kept::from_series(&pieces(vec![0.0; count])).drift().relative, 0.0);
        }
    }

    proptest! {
        #[test]
        fn never_more_than_half_is_cut(rates in prop::collection::vec(0.0..1e9f64, 0..200)) {
            let series = pieces(rates);
            let kept = Kept::from_series(&series);
            prop_assert!(kept.cut() <= series.len() / 2);
            prop_assert_eq!(kept.cut() + kept.pieces().len(), series.len());
        }

        #[test]
        fn the_cut_does_not_depend_on_the_unit(
            rates in prop::collection::vec(1.0..100.0f64, 0..120),
        ) {
            // A power of two changes no rounding.
            let scaled = pieces(rates.iter().map(|rate| rate * 1_048_576.0));
            prop_assert_eq!(Kept::from_series(&pieces(rates)).cut(), Kept::from_series(&scaled).cut());
        }
    }
}
