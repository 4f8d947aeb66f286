//! A mean with its standard error, and the interval that follows from them by Student's t.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// More degrees of freedom than this make no difference, but the search for a quantile may not end.
pub(crate) const DEGREES_OF_FREEDOM_MAX: f64 = 1e4;

/// A mean, how far it may be off, and how well that is known. Carries the unit of what was
/// averaged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    /// The mean.
    pub value: f64,
    /// Standard error of the mean.
    pub standard_error: f64,
    /// Degrees of freedom behind the standard error; 0 where there was too little to tell.
    pub degrees_of_freedom: f64,
}

impl Mean {
    /// Half of the width of the two-sided interval at `confidence`; infinite where the scatter
    /// could not be seen.
    pub fn half_width(&self, confidence: f64) -> f64 {
        if self.degrees_of_freedom <= 0.0 {
            return f64::INFINITY;
        }
        t_two_sided(confidence, self.degrees_of_freedom) * self.standard_error
    }

    /// Half the interval's width over the mean; infinite for a mean of zero.
    pub fn relative_half_width(&self, confidence: f64) -> f64 {
        if self.value == 0.0 {
            return f64::INFINITY;
        }
        self.half_width(confidence) / self.value.abs()
    }
}

/// The t for which a Student variable lies within ±t with probability `confidence`. Degrees of
/// freedom need not be whole.
pub fn t_two_sided(confidence: f64, degrees_of_freedom: f64) -> f64 {
    assert!((0.0..1.0).contains(&confidence), "a confidence lies between 0 and 1");
    assert!(degrees_of_freedom > 0.0, "degrees of freedom are above 0");
    let student = StudentsT::new(0.0, 1.0, degrees_of_freedom.min(DEGREES_OF_FREEDOM_MAX))
        .expect("a scale of 1 and checked degrees of freedom");
    student.inverse_cdf(0.5 + confidence / 2.0)
}

/// The value that a standard normal variable is below with this probability.
pub fn normal_quantile(probability: f64) -> f64 {
    assert!((0.0..=1.0).contains(&probability), "a probability lies between 0 and 1");
    Normal::standard().inverse_cdf(probability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_the_printed_tables() {
        for (confidence, degrees_of_freedom, expected) in [
            (0.95, 1.0, 12.7062),
            (0.95, 2.0, 4.3027),
            (0.95, 4.0, 2.7764),
            (0.95, 9.0, 2.2622),
            (0.95, 19.0, 2.0930),
            (0.95, 30.0, 2.0423),
            (0.95, 120.0, 1.9799),
            (0.95, 1000.0, 1.9623),
            (0.95, 10_000.0, 1.9602),
            (0.90, 5.0, 2.0150),
            (0.99, 10.0, 3.1693),
            (0.95, 4_294_967_294.0, 1.9602),
            (0.95, f64::INFINITY, 1.9602),
        ] {
            let found = t_two_sided(confidence, degrees_of_freedom);
            assert!((found - expected).abs() < 6e-5, "{confidence} {degrees_of_freedom}: {found}");
        }
    }

    #[test]
    fn an_interval_is_wider_the_less_is_known_about_the_scatter() {
        let half = |degrees_of_freedom| {
            Mean { value: 10.0, standard_error: 1.0, degrees_of_freedom }.half_width(0.95)
        };
        assert!(half(0.0).is_infinite());
        assert!(half(1.5) > half(2.5) && half(2.5) > half(100.0));
    }
}
