//! The law of request sizes as a table of equally likely sizes, which is what fio takes: at most
//! 64 of them, in whole percent.

use ioscape_model::{SizeDist, Workload};

/// Slices of the law, each equally likely.
const SLICES: u32 = 50;
/// Steps of the integration.
const STEPS: u32 = 8_000;
/// Halvings in the search for the scale: as far as an `f64` goes. What is owed from slice to slice
/// may tip over at the smallest difference, and job files would change.
const HALVINGS: u32 = 50;
/// Beyond this multiple of the mean neither law has anything left.
const MULTIPLE_MAX: f64 = 12.0;

/// A size and how often it is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeShare {
    /// Bytes, a multiple of `align`.
    pub size_bytes: u64,
    /// Of all requests.
    pub percent: u32,
}

/// The sizes of a workload, smallest first.
pub fn size_table(work: &Workload) -> Vec<SizeShare> {
    if work.size_dist == SizeDist::Fixed {
        return vec![SizeShare { size_bytes: work.size_mean, percent: 100 }];
    }
    let align = work.align as f64;
    let mut table: Vec<SizeShare> = Vec::new();
    // What rounding adds to one slice is taken from the next.
    let mut owed = 0.0;
    for length in slices(&SizeLaw::from_workload(work).lengths().collect::<Vec<_>>()) {
        let units = ((length + owed) / align).round().max(1.0);
        owed += length - units * align;
        let size_bytes = units as u64 * work.align;
        let percent = 100 / SLICES;
        match table.iter_mut().find(|part| part.size_bytes == size_bytes) {
            Some(part) => part.percent += percent,
            None => table.push(SizeShare { size_bytes, percent }),
        }
    }
    table.sort_by_key(|part| part.size_bytes);
    table
}

/// The law of a workload's sizes: a multiple of `scale`, rounded to `align`, redrawn above `most`.
struct SizeLaw {
    /// At each index the sum of the weights of all steps before it; the last one is the sum of all weights. The scale
    /// changes none of them.
    weight_below: Vec<f64>,
    scale: f64,
    align: f64,
    most: f64,
}

impl SizeLaw {
    /// With the scale that gives the mean after redrawing and rounding, by bisection.
    fn from_workload(work: &Workload) -> Self {
        let mean = work.size_mean as f64;
        let most = (work.share_bytes() / 2) as f64;
        let weight_below = weight_below(work.size_dist);
        let mut law = Self { weight_below, scale: mean, align: work.align as f64, most };
        let (mut low, mut high) = (mean * 1e-3, mean * 2.0);
        for _ in 0..HALVINGS {
            law.scale = f64::midpoint(low, high);
            if law.mean() < mean { low = law.scale } else { high = law.scale }
        }
        law
    }

    /// Rounded lengths, rising, and the weight of each: all steps that are rounded to one length together.
    fn lengths(&self) -> impl Iterator<Item = (f64, f64)> {
        let steps = self.weight_below.len() - 1;
        let steps_per_unit = self.align / self.scale / MULTIPLE_MAX * steps as f64;
        let mut from = 0;
        std::iter::from_fn(move || {
            // Cut, not `round`ed: the same here, and `round` is a call, a third of the time.
            let units = ((from as f64 + 0.5) / steps_per_unit + 0.5) as u64;
            let units = units.max(1) as f64;
            let length = units * self.align;
            if from == steps || length > self.most {
                return None;
            }
            let to = ((units + 0.5) * steps_per_unit + 0.5) as usize;
            let to = to.clamp(from + 1, steps);
            let weight = self.weight_below[to] - self.weight_below[from];
            from = to;
            Some((length, weight))
        })
    }

    fn mean(&self) -> f64 {
        let (weight, sum) = self
            .lengths()
            .fold((0.0, 0.0), |(all, sum), (length, weight)| (all + weight, sum + weight * length));
        sum / weight
    }
}

/// All steps are equally long; each weighs what the law gives in its middle.
fn weight_below(dist: SizeDist) -> Vec<f64> {
    let weight = |multiple: f64| match dist {
        SizeDist::Exponential => (-multiple).exp(),
        _ => (-(multiple - 1.0) * (multiple - 1.0) / 2.0).exp(),
    };
    let mut sum = 0.0;
    let mut below = vec![sum];
    below.extend((0..STEPS).map(|step| {
        sum += weight((f64::from(step) + 0.5) / f64::from(STEPS) * MULTIPLE_MAX);
        sum
    }));
    below
}

/// The mean length in each of the slices.
fn slices(lengths: &[(f64, f64)]) -> Vec<f64> {
    let slice = lengths.iter().map(|part| part.1).sum::<f64>() / f64::from(SLICES);
    let mut means = Vec::new();
    let (mut sum, mut room) = (0.0, slice);
    for &(length, weight) in lengths {
        let mut left = weight;
        while left >= room && means.len() + 1 < SLICES as usize {
            means.push((sum + length * room) / slice);
            left -= room;
            (sum, room) = (0.0, slice);
        }
        sum += length * left;
        room -= left;
    }
    // The last one takes what rounding left.
    means.push(sum / (slice - room).max(f64::MIN_POSITIVE));
    means
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Vec<SizeShare> {
        size_table(&Workload::parse(text).unwrap())
    }

    #[test]
    fn the_table_keeps_the_mean_and_adds_up() {
        for law in ["normal", "exponential", "fixed"] {
            for size in [4096_u32, 8192, 12_288, 16_384, 65_536, 1 << 20] {
                let table = table(&format!("unique_bytes=64MiB,size_mean={size},size_dist={law}"));
                assert_eq!(table.iter().map(|part| part.percent).sum::<u32>(), 100);
                assert!(table.len() <= 64, "{}", table.len());
                let weigh = |part: &SizeShare| part.size_bytes as f64 * f64::from(part.percent);
                let mean = table.iter().map(weigh).sum::<f64>() / 100.0;
                assert!((mean / f64::from(size) - 1.0).abs() < 0.011, "{law} {size}: {mean}");
                assert!(table.iter().all(|part| part.size_bytes % 4096 == 0));
            }
        }
    }

    #[test]
    fn the_table_keeps_the_variation_of_the_law() {
        // What is left of a normal law above zero has a coefficient of variation of 0.62, an
        // exponential one of 1 loses a little of its tail to the last slice's mean.
        for (law, expected) in [("normal", 0.62), ("exponential", 0.97)] {
            let table = table(&format!("unique_bytes=1GiB,size_mean=256k,size_dist={law}"));
            let mean: f64 =
                table.iter().map(|p| p.size_bytes as f64 * f64::from(p.percent) / 100.0).sum();
            let square =
                |p: &SizeShare| (p.size_bytes as f64 - mean).powi(2) * f64::from(p.percent);
            let variation = (table.iter().map(square).sum::<f64>() / 100.0).sqrt() / mean;
            assert!((variation / expected - 1.0).abs() < 0.02, "{law}: {variation}");
        }
    }

    #[test]
    fn no_size_exceeds_half_a_share() {
        let table = table("unique_bytes=512KiB,size_mean=64k,size_dist=exponential");
        assert!(table.last().unwrap().size_bytes <= 256 << 10);
    }
}
