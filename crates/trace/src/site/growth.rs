//! Growth of a site: a straight line through the logarithms of its months (Seltzer et al. 1999, section
//! 4.2: future access patterns from the logs that have accumulated).

use ioscape_model::app::{Month, Site};
use ioscape_stats::t_two_sided;

/// A month of which less is covered is left out.
const COVERED_MIN: f64 = 0.8;
/// With fewer months a line has no interval.
const MONTHS_MIN: usize = 3;
const CONFIDENCE: f64 = 0.9;
/// Further than this into the future nobody sees, in times the months that the log covers.
const AHEAD_MAX: f64 = 4.0;

/// A number of which a site will have more, or less: factors on what the whole log has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor {
    /// The line's.
    pub mean: f64,
    /// Between these the month lies with a probability of 90 %.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// A site some months after the end of its log.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Growth {
    /// Sessions per month.
    pub sessions: Factor,
    /// Files that are asked for in a month.
    pub files: Factor,
    /// Months that the lines go through.
    pub months: usize,
}

/// A projection that cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GrowthError {
    /// Too few months.
    #[error(
        "growth needs three months of the log, and it covers {0}: import the logs of more months \
         together"
    )]
    Short(usize),
    /// Months that do not follow each other.
    #[error("the months of a site need rising numbers: look at `months` of the model")]
    Order,
    /// Too far ahead.
    #[error(
        "the log covers {months} months, which says nothing of {ahead} months later: up to {most}"
    )]
    Far {
        /// Months that the log covers.
        months: usize,
        /// Months asked for.
        ahead: f64,
        /// Months that may be asked for.
        most: f64,
    },
}

/// The site so many months after the last one of its log.
///
/// # Errors
/// When the log has fewer than three months, or they are too few to look so far ahead.
pub fn growth(site: &Site, ahead_months: f64) -> Result<Growth, GrowthError> {
    let is_whole = |month: &&Month| month.covered_frac >= COVERED_MIN && month.sessions > 0;
    let months: Vec<&Month> = site.months.iter().filter(is_whole).collect();
    let last = match months.last() {
        Some(last) if months.len() >= MONTHS_MIN => last,
        _ => return Err(GrowthError::Short(months.len())),
    };
    if months.windows(2).any(|two| two[0].number >= two[1].number) {
        return Err(GrowthError::Order);
    }
    let most = AHEAD_MAX * months.len() as f64;
    if ahead_months > most {
        return Err(GrowthError::Far { months: months.len(), ahead: ahead_months, most });
    }
    let at = f64::from(last.number) + ahead_months;
    let line = |count: &dyn Fn(&Month) -> f64| {
        let points = months.iter().map(|month| (f64::from(month.number), count(month).max(1.0)));
        factor(&points.collect::<Vec<_>>(), at)
    };
    let sessions = line(&|month| month.sessions as f64 / month.covered_frac);
    // Most files are asked for early in a month: the part that is not covered adds few.
    let files = line(&|month| month.files as f64);
    Ok(Growth { sessions, files, months: months.len() })
}

/// Value of the line at `at` over the geometric mean of the points; the interval is that of a new point.
fn factor(points: &[(f64, f64)], at: f64) -> Factor {
    let count = points.len() as f64;
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / count;
    let x_mean = mean(&mut points.iter().map(|(x, _)| *x));
    let y_mean = mean(&mut points.iter().map(|(_, y)| y.ln()));
    let sxx: f64 = points.iter().map(|(x, _)| (x - x_mean).powi(2)).sum();
    let sxy: f64 = points.iter().map(|(x, y)| (x - x_mean) * (y.ln() - y_mean)).sum();
    let slope = if sxx > 0.0 { sxy / sxx } else { 0.0 };
    let value = |x: f64| y_mean + slope * (x - x_mean);
    let residual: f64 = points.iter().map(|(x, y)| (y.ln() - value(*x)).powi(2)).sum();
    let freedom = count - 2.0;
    let spread = (residual / freedom * (1.0 + 1.0 / count + (at - x_mean).powi(2) / sxx)).sqrt();
    let half = t_two_sided(CONFIDENCE, freedom) * spread;
    let times = |ln: f64| (ln - y_mean).exp();
    let ahead = value(at);
    Factor { mean: times(ahead), low: times(ahead - half), high: times(ahead + half) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(sessions: &[u64]) -> Site {
        let month = |(number, sessions): (u32, &u64)| Month {
            number,
            covered_frac: 1.0,
            sessions: *sessions,
            files: 100,
            requests: *sessions,
        };
        Site { months: (0..).zip(sessions).map(month).collect(), ..Site::default() }
    }

    #[test]
    fn steady_growth_goes_on() {
        let found = growth(&site(&[1000, 1100, 1210, 1331]), 2.0).unwrap();
        let expected = 1331.0 * 1.21 / (1000.0 * 1.1_f64.powf(1.5));
        assert!((found.sessions.mean / expected - 1.0).abs() < 1e-3, "{found:?}");
        assert!((found.files.mean - 1.0).abs() < 1e-9 && found.files.high < 1.0 + 1e-6);
    }

    #[test]
    fn months_that_scatter_make_a_wide_interval() {
        let found = growth(&site(&[1000, 700, 1500, 900, 1300]), 3.0).unwrap();
        let Factor { mean, low, high } = found.sessions;
        assert!(low < mean && mean < high && high / low > 2.0, "{found:?}");
    }

    #[test]
    fn too_little_is_refused() {
        assert_eq!(growth(&site(&[1, 2]), 1.0), Err(GrowthError::Short(2)));
        let mut part = site(&[10, 20, 30]);
        part.months[0].covered_frac = 0.3;
        assert_eq!(growth(&part, 1.0), Err(GrowthError::Short(2)), "a part of a month");
        assert!(matches!(growth(&site(&[1, 2, 3]), 13.0), Err(GrowthError::Far { .. })));
    }
}
