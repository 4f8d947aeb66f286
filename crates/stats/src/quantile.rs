//! Quantiles of a few hundred numbers.

/// Quantile of sorted values, between neighbours in proportion (type 7 of Hyndman and Fan 1996);
/// zero where there are none.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return 0.0 };
    let position = share.clamp(0.0, 1.0) * last as f64;
    let below = position as usize;
    let above = (below + 1).min(last);
    let share_above = position - below as f64;
    // Neighbours without an end have no place between them.
    if share_above <= 0.0 || sorted[below] >= sorted[above] {
        return sorted[below];
    }
    sorted[below] + (sorted[above] - sorted[below]) * share_above
}

/// What another value, drawn as these sorted ones were, stays below with a chance of `share` at
/// least: the ⌈`share` · (n + 1)⌉-th smallest (conformal prediction, Barber et al. 2021), or the
/// largest where they are too few for that. None where there are none.
pub fn conformal_quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let rank = (share * (sorted.len() + 1) as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).or(sorted.last()).copied()
}

/// Median of values in any order; none where there are none.
pub fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().collect();
    sorted.sort_by(f64::total_cmp);
    (!sorted.is_empty()).then(|| quantile(&sorted, 0.5))
}

/// The 90 % quantile of the absolute values of a normal law, in standard deviations: half of a 90 %
/// interval.
pub const NORMAL_90: f64 = 1.645;

/// Standard deviation of a normal law around zero with the median absolute value that these have.
const SD_OVER_MEDIAN: f64 = 1.4826;

/// Standard deviation around zero that a few values far out do not change: by the median absolute
/// value. None where there are none.
pub fn robust_sd(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    median(values.into_iter().map(f64::abs)).map(|median| SD_OVER_MEDIAN * median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        let sorted = [1.0, 2.0, 4.0, 8.0];
        for (share, expected) in [(0.0, 1.0), (0.5, 3.0), (0.75, 5.0), (0.9, 6.8), (1.0, 8.0)] {
            assert!((quantile(&sorted, share) - expected).abs() < 1e-9, "{share}");
        }
        assert!(quantile(&[], 0.5).abs() < 1e-9);
    }

    #[test]
    fn of_few_values_the_conformal_quantile_lies_further_out() {
        let sorted: Vec<f64> = (1..=19).map(f64::from).collect();
        assert_eq!(conformal_quantile(&sorted, 0.9), Some(18.0));
        assert_eq!(conformal_quantile(&sorted[..10], 0.9), Some(10.0));
        assert_eq!(conformal_quantile(&sorted[..3], 0.9), Some(3.0));
        assert_eq!(conformal_quantile(&[], 0.9), None);
    }

    #[test]
    fn a_median_does_not_depend_on_the_order() {
        assert_eq!(median([8.0, 1.0, 4.0, 2.0]), Some(3.0));
        assert_eq!(median([5.0, 7.0, 1.0]), Some(5.0));
        assert_eq!(median([]), None);
        assert_eq!(median([1.0, 2.0, f64::INFINITY]), Some(2.0));
        assert_eq!(median([1.0, f64::INFINITY, f64::INFINITY]), Some(f64::INFINITY));
        assert_eq!(robust_sd([-2.0, 1.0, 1e9]), Some(2.0 * SD_OVER_MEDIAN));
    }
}
