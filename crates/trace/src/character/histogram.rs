//! Counts of positive numbers by size, eight buckets to a doubling.

use ioscape_model::app::SizeCount;

/// Buckets to a doubling.
const PARTS: u64 = 8;
const PARTS_BITS: u32 = PARTS.trailing_zeros();

/// How often which size came.
#[derive(Clone, Debug, Default)]
pub(crate) struct LogHistogram {
    counts: Vec<u64>,
    total: u64,
}

/// The bucket of a value: values below eight have their own.
fn bucket(value: u64) -> usize {
    if value < PARTS {
        return value as usize;
    }
    let doubling = value.ilog2() - PARTS_BITS;
    (u64::from(doubling) * PARTS + (value >> doubling)) as usize
}

/// The least value of a bucket.
fn least(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * PARTS {
        return bucket;
    }
    let doubling = bucket / PARTS - 1;
    (bucket % PARTS + PARTS) << doubling
}

impl LogHistogram {
    /// One more.
    pub(crate) fn add(&mut self, value: u64) {
        let bucket = bucket(value);
        if self.counts.len() <= bucket {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
    }

    /// How many there are.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// A value that this share of all lies below, to an eighth.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let wanted = share * self.total as f64;
        let mut below = 0.0;
        for (bucket, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            below += *count as f64;
            if below >= wanted {
                return f64::midpoint(least(bucket) as f64, least(bucket + 1) as f64 - 1.0);
            }
        }
        0.0
    }

    /// Buckets that hold something.
    pub(crate) fn buckets(&self) -> Vec<SizeCount> {
        let held = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        held.map(|(bucket, count)| SizeCount { bytes: least(bucket), count: *count }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_lies_in_its_bucket() {
        let doublings = (0..63).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]);
        for value in (0..5000).chain(doublings) {
            let at = bucket(value);
            assert!(least(at) <= value && value < least(at + 1), "{value} in {at}");
        }
    }

    #[test]
    fn quantiles_are_within_an_eighth() {
        let mut histogram = LogHistogram::default();
        (1..=10_000).for_each(|value| histogram.add(value));
        for share in [0.1, 0.5, 0.9] {
            assert!((histogram.quantile(share) / (1e4 * share) - 1.0).abs() < 0.125);
        }
        assert_eq!(histogram.buckets().iter().map(|b| b.count).sum::<u64>(), 10_000);
    }
}
