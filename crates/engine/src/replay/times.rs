//! Times of many calls or requests, as percentiles.

use hdrhistogram::Histogram;
use ioscape_model::ResponseTime;

/// Longest time told from longer ones.
const TIME_MAX_NS: u64 = 3600 * 1_000_000_000;
/// Two digits: at most 1 % error.
const DIGITS: u8 = 2;

/// Times, as they are counted: to 1 %.
#[derive(Clone, Debug)]
pub struct Times {
    histogram: Histogram<u64>,
    total_ns: u64,
    max_ns: u64,
}

impl Default for Times {
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(1, TIME_MAX_NS, DIGITS)
            .expect("the bounds and digits are constants that the library accepts");
        Self { histogram, total_ns: 0, max_ns: 0 }
    }
}

impl Times {
    /// Counts a time, nanoseconds.
    pub fn enter(&mut self, time_ns: u64) {
        self.histogram.saturating_record(time_ns.max(1));
        self.total_ns += time_ns;
        self.max_ns = self.max_ns.max(time_ns);
    }

    /// Counts all times of another.
    pub fn add(&mut self, other: &Self) {
        self.histogram.add(&other.histogram).expect("both have the same constant bounds");
        self.total_ns += other.total_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Number of times counted.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// Time that a share `quantile` of them, 0 to 1, does not exceed, nanoseconds.
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        self.histogram.value_at_quantile(quantile).min(self.max_ns)
    }

    /// Longest, nanoseconds.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Percentiles, seconds.
    pub fn response(&self) -> ResponseTime {
        let quantile = |quantile| self.quantile_ns(quantile) as f64 / 1e9;
        ResponseTime {
            mean: self.total_ns as f64 / 1e9 / self.count().max(1) as f64,
            p50: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            p999: quantile(0.999),
            max: self.max_ns as f64 / 1e9,
        }
    }
}
