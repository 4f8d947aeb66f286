//! Time that a server takes to answer, as quantiles.

use ioscape_model::units::parse_duration_s;
use rand::{Rng, RngExt};

/// A distribution of times, by some of its quantiles.
///
/// Between two quantiles the logarithm of the time grows evenly. Nothing is shorter than the first
/// or longer than the last: `p50=5ms,p99=80ms` gives half of all requests exactly 5 ms.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseTimes {
    quantiles: Vec<(f64, f64)>,
}

impl ResponseTimes {
    /// No time at all.
    pub fn none() -> Self {
        Self { quantiles: Vec::new() }
    }

    /// Reads `5ms`, quantiles such as `p50=5ms,p90=20ms,p99.9=80ms`, or `none`.
    ///
    /// # Errors
    /// One line that names the text and shows a form that works.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text == "none" {
            return Ok(Self::none());
        }
        if !text.contains('=') {
            return Ok(Self { quantiles: vec![(0.5, parse_duration_s(text)?)] });
        }
        let quantiles =
            text.split(',').map(parse_quantile).collect::<Result<Vec<(f64, f64)>, String>>()?;
        let grows =
            |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1.total_cmp(&pair[1].1).is_le();
        if !quantiles.windows(2).all(grows) {
            return Err(format!(
                "`{text}`: percentiles and their times must grow, as in p50=5ms,p90=20ms,p99=80ms"
            ));
        }
        Ok(Self { quantiles })
    }

    /// Quantiles, each with a share from 0 to 1 and seconds.
    pub fn quantiles(&self) -> &[(f64, f64)] {
        &self.quantiles
    }

    /// Time that a share `quantile` of all requests, 0 to 1, does not exceed, seconds.
    pub fn quantile_s(&self, quantile: f64) -> f64 {
        let above = self.quantiles.partition_point(|(share, _)| *share < quantile);
        match (above.checked_sub(1).map(|below| self.quantiles[below]), self.quantiles.get(above)) {
            (Some((from, from_s)), Some(&(to, to_s))) => {
                from_s * (to_s / from_s).powf((quantile - from) / (to - from))
            }
            (Some((_, time_s)), None) | (None, Some(&(_, time_s))) => time_s,
            (None, None) => 0.0,
        }
    }

    /// A time by chance, nanoseconds.
    pub fn draw_ns(&self, chance: &mut impl Rng) -> u64 {
        (self.quantile_s(chance.random::<f64>()) * 1e9) as u64
    }
}

fn parse_quantile(text: &str) -> Result<(f64, f64), String> {
    let wrong = || format!("`{text}` is not a percentile; write for example p50=5ms,p99=80ms");
    let (name, time) = text.trim().split_once('=').ok_or_else(wrong)?;
    let percent: f64 =
        name.trim().strip_prefix('p').and_then(|number| number.parse().ok()).ok_or_else(wrong)?;
    if !(0.0..=100.0).contains(&percent) {
        return Err(wrong());
    }
    Ok((percent / 100.0, parse_duration_s(time)?))
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(f64, f64)]) {
        let times = ResponseTimes::parse(text).unwrap();
        let near = |(a, b): (&(f64, f64), &(f64, f64))| {
            (a.0 - b.0).abs() < 1e-12 && (a.1 - b.1).abs() < 1e-12
        };
        assert_eq!(times.quantiles().len(), expected.len());
        assert!(times.quantiles().iter().zip(expected).all(near), "{times:?}");
    }

    #[test]
    fn times_are_read() {
        check("none", &[]);
        check("5ms", &[(0.5, 0.005)]);
        check("p50=5ms,p90=20ms,p99=80ms", &[(0.5, 0.005), (0.9, 0.02), (0.99, 0.08)]);
        check(" p0=100us, p99.9=1s ", &[(0.0, 0.0001), (0.999, 1.0)]);
    }

    #[test]
    fn other_texts_are_refused_in_one_line() {
        let texts =
            ["", "5", "p50", "p50=", "q50=5ms", "p101=5ms", "p90=5ms,p50=1ms", "p50=5ms,p90=1ms"];
        for text in texts {
            let error = ResponseTimes::parse(text).unwrap_err();
            assert_eq!(error.lines().count(), 1);
            assert!(error.contains("5ms") || error.contains("for example"), "{error}");
        }
    }

    #[test]
    fn drawn_times_have_the_quantiles_that_were_given() {
        let times = ResponseTimes::parse("p1=1ms,p50=5ms,p90=20ms,p99=80ms").unwrap();
        for seed in 0..5 {
            let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut drawn_ns: Vec<u64> = (0..20_000).map(|_| times.draw_ns(&mut chance)).collect();
            drawn_ns.sort_unstable();
            assert!(drawn_ns[0] >= 999_999 && drawn_ns[19_999] <= 80_000_001);
            let geometric_middle_s = (0.005_f64 * 0.02).sqrt();
            for (quantile, expected_s) in
                [(0.5, 0.005), (0.7, geometric_middle_s), (0.9, 0.02), (0.99, 0.08)]
            {
                let found_s = drawn_ns[(quantile * 19_999.0) as usize] as f64 / 1e9;
                let error = (found_s / expected_s).ln().abs();
                assert!(error < 0.08, "seed {seed}, {quantile}: {found_s} for {expected_s}");
            }
        }
    }

    #[test]
    fn one_time_is_always_the_same() {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(0);
        let times = ResponseTimes::parse("5ms").unwrap();
        assert!((0..100).all(|_| times.draw_ns(&mut chance) == 5_000_000));
        assert!((0..100).all(|_| ResponseTimes::none().draw_ns(&mut chance) == 0));
    }
}
