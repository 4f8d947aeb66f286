//! Several hypotheses tested at once: Holm's step-down procedure, with weights (Holm 1979).
//!
//! The hypotheses are put in order of p over weight. The first is tested at the share of the error
//! rate that its weight has among all, and each later one at the share it has among those that are
//! left; with the first that is not rejected the procedure stops. The chance that any true
//! hypothesis is rejected is at most the error rate, however the tests depend on each other.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::interval::DEGREES_OF_FREEDOM_MAX;

/// A hypothesis that was tested by itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hypothesis {
    /// Two-sided p-value.
    pub p_value: f64,
    /// How much of the error rate it may use, relative to the others; above zero.
    pub weight: f64,
}

/// What testing all of them together says about one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adjusted {
    /// The smallest error rate at which it is rejected.
    pub p_value: f64,
    /// The level at which it was tested. It is rejected exactly if its p-value is not above this
    /// level, and so the interval of confidence `1 - level` shows the same verdict as the test.
    pub level: f64,
}

/// Tests all of them with this error rate for the family. The answers are in the order asked.
pub fn holm(hypotheses: &[Hypothesis], error_rate: f64) -> Vec<Adjusted> {
    assert!(hypotheses.iter().all(|h| h.weight > 0.0), "every hypothesis has a weight");
    let mut order: Vec<usize> = (0..hypotheses.len()).collect();
    let key = |index: usize| hypotheses[index].p_value / hypotheses[index].weight;
    order.sort_by(|a, b| key(*a).total_cmp(&key(*b)));
    let mut left: f64 = hypotheses.iter().map(|hypothesis| hypothesis.weight).sum();
    let mut adjusted = vec![Adjusted { p_value: 1.0, level: 0.0 }; hypotheses.len()];
    let (mut p_value_so_far, mut has_stopped) = (0.0_f64, false);
    let mut left_at_stop = left;
    for index in order {
        let Hypothesis { p_value, weight } = hypotheses[index];
        left = left.max(weight); // the last one's own, but for rounding
        p_value_so_far = p_value_so_far.max((p_value * (left / weight)).min(1.0));
        if !has_stopped {
            left_at_stop = left;
            has_stopped = p_value > error_rate * weight / left;
        }
        let level = (error_rate * weight / left_at_stop).min(1.0);
        adjusted[index] = Adjusted { p_value: p_value_so_far, level };
        left -= weight;
    }
    adjusted
}

/// The chance that a Student variable lies further from zero than `t`, on either side.
pub fn p_two_sided(t: f64, degrees_of_freedom: f64) -> f64 {
    assert!(degrees_of_freedom > 0.0, "degrees of freedom are above 0");
    let student = StudentsT::new(0.0, 1.0, degrees_of_freedom.min(DEGREES_OF_FREEDOM_MAX))
        .expect("a scale of 1 and checked degrees of freedom");
    2.0 * student.cdf(-t.abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::t_two_sided;
    use proptest::prelude::*;

    fn equal(p_values: &[f64]) -> Vec<Hypothesis> {
        p_values.iter().map(|&p_value| Hypothesis { p_value, weight: 1.0 }).collect()
    }

    #[test]
    fn the_textbook_steps_are_taken() {
        // 0.01 against 0.05/4, 0.02 against 0.05/3 (not below: stop).
        let found = holm(&equal(&[0.04, 0.01, 0.02, 0.045]), 0.05);
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(found[1].p_value, 0.04);
        close(found[1].level, 0.0125);
        close(found[2].p_value, 0.06);
        for index in [0, 2, 3] {
            close(found[index].level, 0.05 / 3.0);
        }
        close(found[0].p_value, 0.08);
        close(found[3].p_value, 0.08);
    }

    #[test]
    fn a_weight_is_a_larger_share_of_the_error_rate() {
        let of = |weight| {
            let pair =
                [Hypothesis { p_value: 0.03, weight }, Hypothesis { p_value: 0.9, weight: 1.0 }];
            holm(&pair, 0.05)[0].p_value
        };
        assert!(of(1.0) > 0.05, "0.03 is above 0.05 / 2");
        assert!(of(3.0) < 0.05, "0.03 is below 0.05 x 3 / 4");
        assert!(holm(&[], 0.05).is_empty());
    }

    #[test]
    fn chances_are_those_of_the_quantiles() {
        for (confidence, degrees_of_freedom) in [(0.95, 4.0), (0.99, 20.0), (0.998, 1e4)] {
            let t = t_two_sided(confidence, degrees_of_freedom);
            let p_value = p_two_sided(t, degrees_of_freedom);
            assert!((p_value - (1.0 - confidence)).abs() < 1e-6, "{p_value}");
        }
        assert!((p_two_sided(0.0, 5.0) - 1.0).abs() < 1e-12);
        assert!((p_two_sided(1.959_964, 1e9) - 0.05).abs() < 1e-4);
    }

    proptest! {
        #[test]
        fn what_is_rejected_is_what_its_level_and_its_adjusted_p_value_say(
            family in prop::collection::vec((0.0..1.0f64, 0.1..4.0f64), 1..15),
            power in 1.0..4.0f64,
        ) {
            let family: Vec<Hypothesis> = family
                .into_iter()
                .map(|(p, weight)| Hypothesis { p_value: p.powf(power), weight })
                .collect();
            for (hypothesis, found) in family.iter().zip(holm(&family, 0.05)) {
                prop_assert!(found.p_value >= hypothesis.p_value);
                let by_level = hypothesis.p_value <= found.level;
                // Both say the same but for rounding at the border.
                prop_assert!(by_level == (found.p_value <= 0.05)
                    || (found.p_value / 0.05 - 1.0).abs() < 1e-9);
            }
        }
    }
}
