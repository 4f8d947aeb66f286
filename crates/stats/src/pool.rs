//! Many things visited a few times each: how much visits differ, pooled over all of them, and the
//! interval of each thing's mean.
//!
//! The interval from inside one visit is not an error bar: visits differ by more than that. Three
//! visits alone say too little about how much (t = 4.3); pooled over everything that was visited,
//! they say enough. Values are logarithms, so that differences are ratios.

use crate::interval::Mean;

/// What visits usually differ by, in logarithms, as far as is known before any was repeated.
pub const USUAL_SD: f64 = 0.04;
/// How many degrees of freedom that prior knowledge is worth; the data soon outweigh it.
pub const USUAL_DEGREES_OF_FREEDOM: f64 = 4.0;
/// A group whose own scatter is this many times the pooled one does not belong to the pool.
const STRANGE_SIGMAS: f64 = 2.5;

/// One visit: the logarithm of what was found, and its standard error from inside the visit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LogMeasurement {
    /// Logarithm of the value.
    pub ln_value: f64,
    /// Standard error of that, from inside the visit.
    pub within_sd: f64,
}

/// The spread between visits, pooled over groups of visits to one thing each.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// Variance between visits, beyond what is seen inside them.
    between_variance: f64,
    /// Degrees of freedom behind it, the prior's included.
    degrees_of_freedom: f64,
    /// Standard deviation of a visit, from repeated visits alone, and its degrees of freedom.
    repeatability: Option<(f64, f64)>,
    /// Groups whose own scatter is past the usual.
    strange: Vec<bool>,
}

impl Spread {
    /// Pools groups of visits. The order of groups, and of visits in them, does not matter.
    pub fn from_groups(groups: &[Vec<LogMeasurement>]) -> Self {
        let scatters: Vec<Scatter> =
            groups.iter().map(|group| Scatter::from_visits(group)).collect();
        let usual = robust_variance(&scatters);
        let strange: Vec<bool> = scatters
            .iter()
            .map(|scatter| {
                scatter.degrees_of_freedom > 0.0
                    && scatter.variance()
                        > STRANGE_SIGMAS.powi(2) * usual.max(scatter.within_variance)
            })
            .collect();
        let mut sum = Scatter::default();
        let mut within = 0.0;
        for (scatter, _) in scatters.iter().zip(&strange).filter(|(_, strange)| !**strange) {
            sum.squares += scatter.squares;
            sum.degrees_of_freedom += scatter.degrees_of_freedom;
            within += scatter.within_variance * scatter.degrees_of_freedom;
        }
        let beyond = (sum.squares - within).max(0.0);
        let prior = USUAL_SD.powi(2) * USUAL_DEGREES_OF_FREEDOM;
        let degrees_of_freedom = sum.degrees_of_freedom + USUAL_DEGREES_OF_FREEDOM;
        Self {
            between_variance: (beyond + prior) / degrees_of_freedom,
            degrees_of_freedom,
            repeatability: (sum.degrees_of_freedom > 0.0)
                .then(|| (sum.variance().sqrt(), sum.degrees_of_freedom)),
            strange,
        }
    }

    /// Standard deviation of a visit about its group's mean, and the degrees of freedom behind it;
    /// none where nothing was visited twice.
    pub fn repeatability(&self) -> Option<(f64, f64)> {
        self.repeatability
    }

    /// Standard deviation to be expected of one visit.
    pub fn visit_sd(&self, visit: &LogMeasurement) -> f64 {
        (self.between_variance + visit.within_sd.powi(2)).sqrt()
    }

    /// Whether the visits of group number `index` scatter far more than those of the others.
    pub fn is_strange(&self, index: usize) -> bool {
        self.strange[index]
    }

    /// The mean logarithm of group number `index`, which is `group`.
    pub fn mean(&self, index: usize, group: &[LogMeasurement]) -> Mean {
        let count = group.len() as f64;
        let value = group.iter().map(|visit| visit.ln_value).sum::<f64>() / count;
        let expected: f64 =
            group.iter().map(|visit| self.visit_sd(visit).powi(2)).sum::<f64>() / count;
        let (variance, degrees_of_freedom) = if self.strange[index] {
            // Its own scatter, moderated by the pool as if by a few visits more (Smyth 2004): two
            // visits alone would give an interval over many orders of magnitude.
            let own = Scatter::from_visits(group);
            let degrees_of_freedom = own.degrees_of_freedom + USUAL_DEGREES_OF_FREEDOM;
            let squares = own.squares + expected * USUAL_DEGREES_OF_FREEDOM;
            (squares / degrees_of_freedom, degrees_of_freedom)
        } else {
            (expected, self.degrees_of_freedom)
        };
        Mean { value, standard_error: (variance / count).sqrt(), degrees_of_freedom }
    }
}

/// The scatter of one group.
#[derive(Clone, Copy, Debug, Default)]
struct Scatter {
    squares: f64,
    degrees_of_freedom: f64,
    within_variance: f64,
}

impl Scatter {
    fn from_visits(group: &[LogMeasurement]) -> Self {
        assert!(!group.is_empty(), "a group holds at least one visit");
        let count = group.len() as f64;
        let mean = group.iter().map(|visit| visit.ln_value).sum::<f64>() / count;
        Self {
            squares: group.iter().map(|visit| (visit.ln_value - mean).powi(2)).sum(),
            degrees_of_freedom: count - 1.0,
            within_variance: group.iter().map(|visit| visit.within_sd.powi(2)).sum::<f64>() / count,
        }
    }

    fn variance(&self) -> f64 {
        self.squares / self.degrees_of_freedom
    }
}

/// A variance that strange groups do not move: the median over the groups that were visited more
/// than once, with the prior as two more groups of three visits.
fn robust_variance(scatters: &[Scatter]) -> f64 {
    let mut variances = vec![USUAL_SD.powi(2); 2];
    for scatter in scatters.iter().filter(|scatter| scatter.degrees_of_freedom > 0.0) {
        // The median of χ²/ν lies below 1 (Wilson and Hilferty 1931).
        let median = (1.0 - 2.0 / (9.0 * scatter.degrees_of_freedom)).powi(3);
        variances.push(scatter.variance() / median);
    }
    variances.sort_by(f64::total_cmp);
    let middle = variances.len() / 2;
    f64::midpoint(variances[middle], variances[(variances.len() - 1) / 2])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn group(ln_values: &[f64]) -> Vec<LogMeasurement> {
        ln_values.iter().map(|&ln_value| LogMeasurement { ln_value, within_sd: 0.0 }).collect()
    }

    /// `count` groups of three visits that scatter by about `sd`, the same for all.
    fn groups(count: usize, sd: f64) -> Vec<Vec<LogMeasurement>> {
        // Three values with standard deviation 1 around 0.
        (0..count).map(|_| group(&[-sd, 0.0, sd])).collect()
    }

    #[test]
    fn many_groups_outweigh_what_is_usual() {
        let spread = Spread::from_groups(&groups(200, 0.10));
        let (sd, degrees_of_freedom) = spread.repeatability().unwrap();
        assert!((sd - 0.10).abs() < 1e-12);
        assert!((degrees_of_freedom - 400.0).abs() < 1e-9);
        let half_width = spread.mean(0, &groups(1, 0.10)[0]).half_width(0.95);
        assert!((half_width / (1.966 * 0.10 / 3f64.sqrt()) - 1.0).abs() < 0.01, "{half_width}");
    }

    #[test]
    fn a_single_visit_is_as_sure_as_the_pool_says_and_never_as_sure_as_itself() {
        let alone = vec![LogMeasurement { ln_value: 3.0, within_sd: 0.01 }];
        let unpooled = Spread::from_groups(std::slice::from_ref(&alone));
        assert_eq!(unpooled.repeatability(), None);
        let expected = t_two_sided_95(USUAL_DEGREES_OF_FREEDOM) * USUAL_SD.hypot(0.01);
        assert!((unpooled.mean(0, &alone).half_width(0.95) - expected).abs() < 1e-9);
        let mut quiet = groups(100, 0.005);
        quiet.push(alone.clone());
        let pooled = Spread::from_groups(&quiet).mean(100, &alone).half_width(0.95);
        assert!(pooled < 0.03 && pooled > 1.97 * 0.01, "{pooled}");
    }

    fn t_two_sided_95(degrees_of_freedom: f64) -> f64 {
        crate::interval::t_two_sided(0.95, degrees_of_freedom)
    }

    #[test]
    fn what_is_seen_inside_visits_is_not_counted_twice() {
        // All of the scatter is explained by the visits' own errors.
        let noisy: Vec<Vec<LogMeasurement>> = groups(100, 0.06)
            .into_iter()
            .map(|group| {
                group.into_iter().map(|visit| LogMeasurement { within_sd: 0.06, ..visit }).collect()
            })
            .collect();
        let half_width = Spread::from_groups(&noisy).mean(0, &noisy[0]).half_width(0.95);
        assert!((half_width / (1.97 * 0.06 / 3f64.sqrt()) - 1.0).abs() < 0.03, "{half_width}");
    }

    #[test]
    fn a_group_that_jumps_keeps_its_scatter_to_itself() {
        let mut all = groups(20, 0.03);
        all.push(group(&[20.0, 22.9]));
        let spread = Spread::from_groups(&all);
        assert!(spread.is_strange(20) && !(0..20).any(|index| spread.is_strange(index)));
        assert!(spread.repeatability().unwrap().0 < 0.031);
        let jumping = spread.mean(20, &all[20]);
        assert!(jumping.half_width(0.95) > 1.45, "covers both visits");
        assert!(jumping.half_width(0.95) < 3.0, "but not half of the number line");
    }

    #[test]
    fn one_group_alone_can_jump() {
        assert!(Spread::from_groups(&[group(&[20.0, 22.9, 22.9])]).is_strange(0));
        assert!(!Spread::from_groups(&[group(&[20.0, 20.05, 19.97])]).is_strange(0));
    }

    proptest! {
        #[test]
        fn the_order_of_visits_and_of_groups_does_not_matter(
            values in prop::collection::vec(prop::collection::vec(-0.2..0.2f64, 1..5), 1..12),
        ) {
            let forth: Vec<Vec<LogMeasurement>> = values.iter().map(|values| group(values)).collect();
            let back: Vec<Vec<LogMeasurement>> = forth
                .iter()
                .rev()
                .map(|group| group.iter().rev().copied().collect())
                .collect();
            let (one, other) = (Spread::from_groups(&forth), Spread::from_groups(&back));
            for index in 0..forth.len() {
                let mirror = forth.len() - 1 - index;
                let a = one.mean(index, &forth[index]);
                let b = other.mean(mirror, &back[mirror]);
                prop_assert!((a.value - b.value).abs() < 1e-12);
                prop_assert!((a.half_width(0.95) - b.half_width(0.95)).abs() < 1e-9);
            }
        }
    }
}
