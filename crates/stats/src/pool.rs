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
pub struct Visit {
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
    /// Standard deviation of a visit about its group's mean, from repeated visits alone.
    repeatability: Option<f64>,
    /// Groups whose own scatter is past the usual.
    strange: Vec<bool>,
}

impl Spread {
    /// Pools groups of visits. The order of groups, and of visits in them, does not matter.
    pub fn of(groups: &[Vec<Visit>]) -> Self {
        let scatters: Vec<Scatter> = groups.iter().map(|group| Scatter::of(group)).collect();
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
            repeatability: (sum.degrees_of_freedom > 0.0).then(|| sum.variance().sqrt()),
            strange,
        }
    }

    /// Standard deviation of a visit about its group's mean; none where nothing was visited twice.
    pub fn repeatability(&self) -> Option<f64> {
        self.repeatability
    }

    /// Standard deviation to be expected of one visit.
    pub fn visit_sd(&self, visit: &Visit) -> f64 {
        (self.between_variance + visit.within_sd.powi(2)).sqrt()
    }

    /// Whether the visits of group number `index` scatter far more than those of the others.
    pub fn is_strange(&self, index: usize) -> bool {
        self.strange[index]
    }

    /// The mean logarithm of group number `index`, which is `group`.
    pub fn mean(&self, index: usize, group: &[Visit]) -> Mean {
        let count = group.len() as f64;
        let value = group.iter().map(|visit| visit.ln_value).sum::<f64>() / count;
        let expected: f64 =
            group.iter().map(|visit| self.visit_sd(visit).powi(2)).sum::<f64>() / count;
        let (variance, degrees_of_freedom) = if self.strange[index] {
            // Its own scatter, moderated by the pool as if by a few visits more (Smyth 2004): two
            // visits alone would give an interval over many orders of magnitude.
            let own = Scatter::of(group);
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
    fn of(group: &[Visit]) -> Self {
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
