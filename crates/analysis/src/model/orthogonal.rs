//! Interpolation on a grid of a few values per parameter (Chen and Patterson 1994, Fig. 14 and
//! footnote 7): the design that they compare their method with.
//!
//! Throughput itself is interpolated, linearly in each parameter, as they did. Outside the grid it
//! stays at the edge.

use ioscape_model::{ModelName, Workload};

use super::{Guess, Model, Sample, Training};
use crate::axis::Axis;

const AXES: usize = Axis::ALL.len();
/// Values of `unique_bytes`, `size_mean`, `read_frac`, `seq_frac` and `process_num`.
const LEVELS_MAX: [usize; AXES] = [3, 3, 3, 3, 2];
/// With one process only, `process_num` is no axis.
const LEVELS_MIN: [usize; AXES] = [3, 3, 3, 3, 1];

/// The model.
#[derive(Clone, Debug)]
pub struct Orthogonal {
    /// Per axis, smallest first.
    levels: [Vec<f64>; AXES],
    /// Throughput and its standard deviation, bytes per second: the last axis's levels lie next
    /// to each other.
    grid: Vec<(f64, f64)>,
}

impl Orthogonal {
    /// From the samples that form a complete grid. `None` where there is no such grid.
    pub fn fit(training: &Training) -> Option<Self> {
        let levels: [Vec<f64>; AXES] =
            std::array::from_fn(|i| levels(Axis::ALL[i], LEVELS_MAX[i], &training.samples));
        if (0..AXES).any(|i| levels[i].len() < LEVELS_MIN[i]) {
            return None;
        }
        let mut grid = vec![None; levels.iter().map(Vec::len).product()];
        for sample in &training.samples {
            if let Some(node) = node_of(&levels, &sample.workload) {
                let throughput = sample.ln_throughput.exp();
                grid[node] = Some((throughput, throughput * sample.sd));
            }
        }
        let grid: Option<Vec<(f64, f64)>> = grid.into_iter().collect();
        Some(Self { levels, grid: grid? })
    }
}

impl Model for Orthogonal {
    fn name(&self) -> ModelName {
        ModelName::Orthogonal
    }

    fn predict(&self, work: &Workload) -> Option<Guess> {
        // One axis after the other: the nodes around the workload and what each counts for.
        let mut nodes = vec![(0, 1.0)];
        for (axis, levels) in Axis::ALL.into_iter().zip(&self.levels) {
            let (below, part) = between(levels, axis.value(work));
            let above = (below + 1).min(levels.len() - 1);
            let split = |(node, weight): (usize, f64)| {
                let node = node * levels.len();
                [(node + below, weight * (1.0 - part)), (node + above, weight * part)]
            };
            nodes = nodes.into_iter().flat_map(split).filter(|(_, w)| *w > 0.0).collect();
        }
        let weighted = |(node, weight): &(usize, f64)| weight * self.grid[*node].0;
        let throughput: f64 = nodes.iter().map(weighted).sum();
        let variance: f64 = nodes.iter().map(|(node, w)| (w * self.grid[*node].1).powi(2)).sum();
        Some(Guess { ln_throughput: throughput.ln(), sd: variance.sqrt() / throughput })
    }
}

/// The values that most samples have: a grid's samples share few values, others hardly any.
fn levels(axis: Axis, count_max: usize, samples: &[Sample]) -> Vec<f64> {
    let mut values: Vec<f64> = samples.iter().map(|s| axis.value(&s.workload)).collect();
    values.sort_by(f64::total_cmp);
    let mut counted: Vec<(usize, f64)> = values
        .chunk_by(|a, b| a.total_cmp(b).is_eq())
        .map(|equal| (equal.len(), equal[0]))
        .collect();
    counted.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    let mut levels: Vec<f64> = counted.iter().take(count_max).map(|(_, value)| *value).collect();
    levels.sort_by(f64::total_cmp);
    levels
}

/// Where on the grid a workload lies; `None` where it lies between.
fn node_of(levels: &[Vec<f64>; AXES], work: &Workload) -> Option<usize> {
    let mut node = 0;
    for (axis, levels) in Axis::ALL.into_iter().zip(levels) {
        let level = levels.iter().position(|level| level.total_cmp(&axis.value(work)).is_eq())?;
        node = node * levels.len() + level;
    }
    Some(node)
}

/// The level at or below a value, and how far the value is towards the next one.
fn between(levels: &[f64], value: f64) -> (usize, f64) {
    let below = levels.partition_point(|level| *level <= value).saturating_sub(1);
    match levels.get(below + 1) {
        Some(above) if value > levels[below] => {
            (below, (value - levels[below]) / (above - levels[below]))
        }
        _ => (below, 0.0),
    }
}

#[cfg(test)]
mod tests;
