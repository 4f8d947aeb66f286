//! The design that Chen and Patterson held their method against (1994, Fig. 14 and footnote 7):
//! three evenly spaced values of each parameter, two of `process_num`, in all combinations.
//!
//! Evenly spaced from end to end of the range, as theirs were, not on a logarithmic axis. The
//! order is shuffled, so that a run that ends early leaves no side of the grid unmeasured.

use ioscape_model::workload::SHARE_REQUESTS_MIN;
use ioscape_model::{
    Layer, Point, Range, Ranges, Region, RegionKind, RegionUniqueBytes, Role, Workload,
};
use rand::{SeedableRng, seq::SliceRandom};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Landscape, Plan, Seen, Visit};

/// The smallest `unique_bytes` may be raised to this part of the largest, so that its shares hold
/// the largest requests; where that is not enough, those are made smaller.
const LEAST_UNIQUE_PART: u64 = 8;
const UNIQUE_STEP: u64 = 4096;
const SIZE_STEP: u64 = 512;

/// The plan. Everything follows from ranges, seed and points.
#[derive(Clone, Debug)]
pub struct OrthogonalPlan {
    ranges: Ranges,
    /// In the order in which they are measured.
    grid: Vec<Workload>,
}

impl OrthogonalPlan {
    /// A plan over these ranges.
    pub fn new(ranges: Ranges, seed: u64) -> Self {
        let ranges = possible(ranges);
        let mut grid = grid(&ranges);
        grid.retain(|work| work.check().is_ok());
        grid.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
        Self { ranges, grid }
    }
}

impl Plan for OrthogonalPlan {
    fn next(&mut self, seen: &Seen<'_>) -> Option<Visit> {
        let missing = self.grid.iter().find(|work| !is_measured(work, seen.points))?;
        Some(Visit { workload: missing.clone(), role: Role::Calibration, round: 0 })
    }

    /// One region, around the grid's middle: the method knows no borders.
    fn landscape(&self, points: &[Point]) -> Landscape {
        let range = self.ranges.unique_bytes;
        let focal = middle(&self.ranges);
        let region = Region {
            name: RegionKind::WholeRange.into(),
            unique_bytes: RegionUniqueBytes {
                from: range.min as f64,
                to: range.max as f64,
                focal: focal.unique_bytes as f64,
            },
            focal,
            layer: Layer::default(),
            revision: 0,
        };
        let measured = self.grid.iter().filter(|work| is_measured(work, points)).count();
        let log = vec![format!("{measured} of the grid's {} points", self.grid.len())];
        Landscape { borders: Vec::new(), regions: vec![region], log }
    }
}

/// Narrows ranges so that the smallest share still holds the largest requests.
fn possible(ranges: Ranges) -> Ranges {
    let Ranges { unique_bytes, size_mean, process_num, .. } = ranges;
    let requests = SHARE_REQUESTS_MIN * process_num.max.max(1);
    let raised_max = (unique_bytes.max / LEAST_UNIQUE_PART).max(unique_bytes.min);
    let needed = (requests * size_mean.max).next_multiple_of(UNIQUE_STEP * process_num.max.max(1));
    let least = needed.clamp(unique_bytes.min, raised_max);
    let size_max = size_mean.max.min(least / requests / SIZE_STEP * SIZE_STEP);
    Ranges {
        unique_bytes: Range { min: least, max: unique_bytes.max },
        size_mean: Range { min: size_mean.min.min(size_max), max: size_max },
        ..ranges
    }
}

/// All combinations, each once.
fn grid(ranges: &Ranges) -> Vec<Workload> {
    let fractions = [0.0, 0.5, 1.0];
    let sizes = ends_and_middle(ranges.size_mean, SIZE_STEP);
    let mut process_nums = vec![ranges.process_num.min as u32, ranges.process_num.max as u32];
    process_nums.dedup();
    let mut works = vec![middle(ranges)];
    let mut vary = |values: &dyn Fn(&Workload) -> Vec<Workload>| {
        works = works.iter().flat_map(values).collect();
    };
    vary(&|work| {
        let levels = ends_and_middle(ranges.unique_bytes, UNIQUE_STEP);
        levels.map(|unique_bytes| Workload { unique_bytes, ..work.clone() }).into()
    });
    vary(&|work| sizes.map(|size_mean| Workload { size_mean, ..work.clone() }).into());
    vary(&|work| fractions.map(|read_frac| Workload { read_frac, ..work.clone() }).into());
    vary(&|work| fractions.map(|seq_frac| Workload { seq_frac, ..work.clone() }).into());
    vary(&|work| {
        let several = process_nums.iter();
        several.map(|&process_num| Workload { process_num, ..work.clone() }).collect()
    });
    works
}

/// The point of the grid that has most neighbours: the focal point, as far as it has one.
fn middle(ranges: &Ranges) -> Workload {
    let usual = Workload::default();
    Workload {
        unique_bytes: ends_and_middle(ranges.unique_bytes, UNIQUE_STEP)[1],
        size_mean: ends_and_middle(ranges.size_mean, SIZE_STEP)[1],
        process_num: ranges.process_num.min as u32,
        align: usual.align.min(1 << ranges.size_mean.min.max(1).ilog2()),
        access: ranges.access,
        ..usual
    }
}

fn ends_and_middle(range: Range, step: u64) -> [u64; 3] {
    let middle = u64::midpoint(range.min, range.max) / step * step;
    [range.min, middle.clamp(range.min, range.max), range.max]
}

fn is_measured(work: &Workload, points: &[Point]) -> bool {
    points.iter().any(|point| point.role == Role::Calibration && point.workload == *work)
}

#[cfg(test)]
mod tests;
