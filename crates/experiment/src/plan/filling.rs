//! The space-filling sequence: workloads spread evenly over the whole box. What refinement chooses
//! from, and what `--precision` is judged by.

use ioscape_model::units::{KIB, MIB};
use ioscape_model::workload::SHARE_REQUESTS_MIN;
use ioscape_model::{Ranges, Workload};

use super::halton;

/// Requests of several sizes fit a share this many times.
pub(super) const SHARE_REQUESTS: f64 = SHARE_REQUESTS_MIN as f64;

/// A sequence of workloads.
pub(crate) struct Filling<'a, Largest> {
    /// The box.
    pub(crate) ranges: &'a Ranges,
    /// Largest `unique_bytes` with so many processes.
    pub(crate) largest_bytes: Largest,
    /// Another seed, another sequence.
    pub(crate) seed: u64,
}

impl<Largest: Fn(u32) -> f64> Filling<'_, Largest> {
    /// Half of the fractions are at 0 or 1: the corners hold the single classes, which no point
    /// inside shows alone. The coordinate itself says which: by the index, those at an end would
    /// all have large data or all small, for that goes by the index's digits too.
    pub(crate) fn workload(&self, index: u64) -> Workload {
        let coordinate = |dimension| halton::coordinate(index, dimension, self.seed);
        let fraction = |dimension| {
            let value = (2.0 * coordinate(dimension) - 0.5).clamp(0.0, 1.0);
            (value * 1000.0).round() / 1000.0
        };
        let Ranges { unique_bytes, size_mean, process_num: nums, access, .. } = self.ranges;
        let process_num =
            (nums.min as f64 + coordinate(4) * (nums.max - nums.min + 1) as f64) as u32;
        let least = unique_bytes.min as f64;
        let unique =
            log_between(least, (self.largest_bytes)(process_num).max(least), coordinate(0));
        let size_max = (unique / f64::from(process_num) / SHARE_REQUESTS).min(size_mean.max as f64);
        let size = log_between(size_mean.min as f64, size_mean.max as f64, coordinate(1));
        Workload {
            unique_bytes: whole_blocks(unique),
            size_mean: whole_blocks(size.min(size_max)),
            read_frac: fraction(2),
            seq_frac: fraction(3),
            process_num,
            access: *access,
            ..Workload::default()
        }
    }
}

pub(crate) fn log_between(from: f64, to: f64, share: f64) -> f64 {
    from * (to / from).powf(share)
}

/// Sizes that people can read: quarters of a mebibyte, or blocks where they are small.
pub(crate) fn whole_blocks(bytes: f64) -> u64 {
    let unit = if bytes >= 16.0 * MIB as f64 { MIB / 4 } else { 4 * KIB };
    (bytes as u64 / unit * unit).max(4 * KIB)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_fractions_are_at_an_end_and_nearly_all_workloads_can_be() {
        let ranges = Ranges::usual(4);
        let filling = Filling { ranges: &ranges, largest_bytes: |_| 1e9, seed: 5 };
        let works: Vec<Workload> = (0..100).map(|index| filling.workload(index)).collect();
        // A few are too large for their share by what rounding took from it.
        assert!(works.iter().filter(|work| work.check().is_ok()).count() >= 90);
        let at_an_end = |value: f64| value <= 0.0 || value >= 1.0;
        let count = |of: fn(&Workload) -> f64| works.iter().filter(|w| at_an_end(of(w))).count();
        assert!((50..60).contains(&count(|w| w.read_frac)));
        assert!((50..60).contains(&count(|w| w.seq_frac)));
    }

    #[test]
    fn reads_writes_and_mixtures_all_come_with_little_and_with_much_data() {
        let ranges = Ranges::usual(4);
        for seed in 0..20 {
            let filling = Filling { ranges: &ranges, largest_bytes: |_| 1e9, seed };
            let mut counts = [[0; 3]; 3];
            for work in (0..90).map(|index| filling.workload(index)) {
                let least = ranges.unique_bytes.min as f64;
                let share = (work.unique_bytes as f64 / least).ln() / (1e9 / least).ln();
                let kind =
                    if work.read_frac <= 0.0 { 0 } else { 1 + usize::from(work.read_frac >= 1.0) };
                counts[kind][(2.99 * share) as usize] += 1;
            }
            assert!(counts.iter().flatten().all(|count| *count >= 4), "seed {seed}: {counts:?}");
        }
    }
}
