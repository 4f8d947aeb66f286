//! The interval of a median, a weighted one, and rank correlation of a few hundred numbers.

/// The bootstrap's percentile interval of the median of sorted values (Efron 1979), computed
/// instead of drawn: of a resample of n, the middle one is at most the k-th smallest value if at
/// least half of the resample comes from the k smallest, a binomial probability. Of the two middle
/// ones of an even number each end takes the outer one.
pub fn median_interval(sorted: &[f64], confidence: f64) -> (f64, f64) {
    let count = sorted.len();
    if count == 0 {
        return (0.0, 0.0);
    }
    let tail = (1.0 - confidence) / 2.0;
    let (lower_middle, upper_middle) = (count.div_ceil(2), count / 2 + 1);
    let at_most = |k: usize, middle: usize| at_least(middle, count, k as f64 / count as f64);
    let first = |share: f64, middle: usize| {
        let index = (1..=count).find(|k| at_most(*k, middle) >= share);
        sorted[index.unwrap_or(count) - 1]
    };
    (first(tail, lower_middle), first(1.0 - tail, upper_middle))
}

/// Probability of at least `least` successes in `trials`.
fn at_least(least: usize, trials: usize, success: f64) -> f64 {
    if success >= 1.0 {
        return 1.0;
    }
    // Term by term in logarithms: the first ones are too small for a number.
    let ln_odds = success.ln() - (1.0 - success).ln();
    let mut ln_term = trials as f64 * (1.0 - success).ln();
    let mut sum = 0.0;
    for successes in 0..=trials {
        if successes >= least {
            sum += ln_term.exp();
        }
        ln_term += ((trials - successes) as f64 / (successes + 1) as f64).ln() + ln_odds;
    }
    sum.min(1.0)
}

/// The value at which half of the weight is reached; zero where there is none.
pub fn weighted_median(weighted: &[(f64, f64)]) -> f64 {
    let mut sorted = weighted.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = sorted.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut reached = 0.0;
    for (value, weight) in &sorted {
        reached += weight;
        if reached >= half {
            return *value;
        }
    }
    0.0
}

/// Spearman's rank correlation; equal values share their mean rank. None where one of the two
/// does not vary.
pub fn rank_correlation(one: &[f64], other: &[f64]) -> Option<f64> {
    let (x, y) = (ranks(one), ranks(other));
    let middle = (x.len() as f64 - 1.0) / 2.0;
    let (mut of_both, mut of_x, mut of_y) = (0.0, 0.0, 0.0);
    for (x, y) in x.iter().zip(&y) {
        of_both += (x - middle) * (y - middle);
        of_x += (x - middle).powi(2);
        of_y += (y - middle).powi(2);
    }
    (of_x > 0.0 && of_y > 0.0).then(|| of_both / (of_x * of_y).sqrt())
}

fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    for tied in order.chunk_by(|a, b| values[*a].total_cmp(&values[*b]).is_eq()) {
        let mean = from as f64 + (tied.len() as f64 - 1.0) / 2.0;
        for index in tied {
            ranks[*index] = mean;
        }
        from += tied.len();
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
    }

    #[test]
    fn the_interval_of_a_median_is_that_of_the_bootstrap() {
        // Of three values the middle of a resample is the smallest one with probability 7/27.
        near(at_least(2, 3, 1.0 / 3.0), 7.0 / 27.0);
        assert_eq!(median_interval(&[1.0, 2.0, 3.0], 0.9), (1.0, 3.0));
        assert_eq!(median_interval(&[1.0, 2.0, 3.0], 0.4), (2.0, 2.0));
        assert_eq!(median_interval(&[7.0], 0.9), (7.0, 7.0));
        // For many values the binomial interval n/2 ± 1.645·sqrt(n)/2 is near.
        let values: Vec<f64> = (1..=400).map(f64::from).collect();
        let (low, high) = median_interval(&values, 0.9);
        assert!((low - 184.0).abs() <= 1.0 && (high - 217.0).abs() <= 1.0, "{low} {high}");
        let many: Vec<f64> = (0..2000).map(f64::from).collect();
        let (low, high) = median_interval(&many, 0.9);
        assert!(low > 940.0 && low < 1000.0 && high > 1000.0 && high < 1060.0, "{low} {high}");
    }

    #[test]
    fn weight_moves_the_median() {
        near(weighted_median(&[(3.0, 1.0), (1.0, 1.0), (2.0, 1.0)]), 2.0);
        near(weighted_median(&[(3.0, 5.0), (1.0, 1.0), (2.0, 1.0)]), 3.0);
        near(weighted_median(&[]), 0.0);
    }

    #[test]
    fn ranks_tell_order_whatever_the_distances() {
        let rising = [1.0, 10.0, 1000.0, 1e6];
        let rho = |other: &[f64]| rank_correlation(&rising, other);
        near(rho(&[0.1, 0.2, 0.3, 0.4]).unwrap(), 1.0);
        near(rho(&[4.0, 3.0, 2.0, -1.0]).unwrap(), -1.0);
        // Ranks 0, 1, 2, 3 and 0.5, 0.5, 3, 2; by hand 3.5/sqrt(5·4.5).
        near(rho(&[1.0, 1.0, 9.0, 5.0]).unwrap(), 3.5 / (5.0_f64 * 4.5).sqrt());
        assert_eq!(rho(&[1.0; 4]), None);
        assert_eq!(rank_correlation(&[], &[]), None);
    }
}
