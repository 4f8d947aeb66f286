//! Chen and Patterson's plan (1994, section 8): a `unique_bytes` graph of 20 points, borders by
//! its slope, a family of graphs per region with 10 points each, and as many on `process_num` as
//! the concurrency allows.
//!
//! Focal points: `unique_bytes` is the middle of its region, the first one beginning at 0;
//! `read_frac` and `seq_frac` are 0.5; `size_mean` and `process_num` are where performance is
//! half-way between minimum and maximum, one value for all regions.
//!
//! The paper does not say how it gets out of a circle: the half-way size needs the regions, and
//! the regions need a size. Here a round sweeps `unique_bytes` at the current size, then takes the
//! size graph and the process graph in the last region, where they matter most. Where the half-way
//! size is more than twice or less than half the sweep's, or the number of processes another one,
//! the next round begins with the new values. There are three rounds at most.

use ioscape_analysis::focal::{Axis, CurvePoint, half_way};
use ioscape_analysis::slope::{self, Slopes};
use ioscape_model::units::{KIB, show_bytes};
use ioscape_model::workload::SHARE_REQUESTS_MIN;
use ioscape_model::{
    Border, BorderUniqueBytes, Curve, FoundBy, Layer, Point, Ranges, Region, RegionKind,
    RegionUniqueBytes, Workload,
};

use super::graph::{GRAPH_POINTS, Graphs, Replay, UNIQUE_POINTS, divisible, multiple};
use super::{Landscape, Plan, Seen, Visit};

const ROUNDS_MAX: u32 = 3;
/// The sweep is repeated where the size moved by more than this factor.
const SIZE_MOVED: f64 = 2.0;
/// Curves that vary by less say nothing about a focal point.
const FLAT: f64 = 3.0 * slope::NOISE_MIN;
/// Focal sizes are multiples of this, bytes.
const FOCAL_SIZE_STEP: u64 = KIB;
const FOCAL_UNIQUE_STEP: u64 = 4 * KIB;

/// Points of the plan for so many regions and values of `process_num`, without those that further
/// rounds in search of the focal size may take.
pub fn planned_points(regions: u64, process_values: u64) -> u64 {
    UNIQUE_POINTS as u64 + regions * (3 * GRAPH_POINTS as u64 + process_values)
}

/// The plan. It has no state: everything follows from the ranges and the points.
#[derive(Clone, Debug)]
pub struct PaperPlan {
    graphs: Graphs,
}

impl PaperPlan {
    /// A plan over these ranges.
    pub fn new(ranges: Ranges) -> Self {
        Self { graphs: Graphs { ranges } }
    }

    /// How many values of `process_num` a family has.
    pub fn process_values(&self) -> u64 {
        self.graphs.process_values().len() as u64
    }

    /// Walks through the plan as far as the points allow.
    fn walk(&self, points: &[Point], map: &mut Landscape) -> Result<(), Visit> {
        let mut replay = Replay::new(points);
        let (focal, round) = self.settle(&mut replay, map)?;
        for region in &mut map.regions {
            // A small first region may not hold the shared size eight times over.
            let size_mean = focal.size_mean.min(region.focal.share_bytes() / SHARE_REQUESTS_MIN);
            let unique_bytes = region.focal.unique_bytes;
            region.focal = Workload { unique_bytes, size_mean, ..focal.clone() };
        }
        for region in &map.regions {
            let graphs = &self.graphs;
            graphs.size_mean(&mut replay, &region.focal, round)?;
            Graphs::read_frac(&mut replay, &region.focal, round)?;
            Graphs::seq_frac(&mut replay, &region.focal, round)?;
            graphs.process_num(&mut replay, &region.focal, round)?;
        }
        let planned = planned_points(map.regions.len() as u64, self.process_values());
        let further = replay.asked().saturating_sub(planned);
        map.log.push(format!(
            "{} regions, {} planned points, {further} more in earlier rounds",
            map.regions.len(),
            replay.asked() - further
        ));
        Ok(())
    }

    /// Finds regions and focal vector together; returns the vector and the round that gave it.
    fn settle(
        &self,
        replay: &mut Replay<'_>,
        map: &mut Landscape,
    ) -> Result<(Workload, u32), Visit> {
        let mut vector = self.graphs.start();
        for round in 0.. {
            let sweep = self.graphs.unique_bytes(replay, &vector, round, steepest_fall)?;
            self.draw_regions(&slope::slopes(&sweep), &vector, round, map);
            let Some(last) = map.regions.last() else { break };
            let found = self.half_way_vector(replay, &last.focal.clone(), round)?;
            map.log.push(format!(
                "round {round}: swept with {} and {} processes; half-way in the last region: {} \
                 and {} processes",
                show_bytes(vector.size_mean as f64),
                vector.process_num,
                show_bytes(found.size_mean as f64),
                found.process_num
            ));
            let moved = (found.size_mean as f64 / vector.size_mean as f64).ln().abs();
            let settled = moved <= SIZE_MOVED.ln() && found.process_num == vector.process_num;
            if settled || round + 1 == ROUNDS_MAX {
                if !settled {
                    map.log.push(format!("not settled after {ROUNDS_MAX} rounds; going on"));
                }
                // The size graph was taken with the sweep's number of processes: keep to it.
                vector.size_mean = found.size_mean;
                return Ok((vector, round));
            }
            vector = Workload { unique_bytes: vector.unique_bytes, ..found };
        }
        Ok((vector, 0))
    }

    /// The half-way size and number of processes around a vector.
    fn half_way_vector(
        &self,
        replay: &mut Replay<'_>,
        focal: &Workload,
        round: u32,
    ) -> Result<Workload, Visit> {
        let mut found = focal.clone();
        let sizes = self.graphs.size_mean(replay, focal, round)?;
        if let Some(size) = half_way(&sizes, Axis::Logarithmic, FLAT) {
            found.size_mean = multiple(size, FOCAL_SIZE_STEP).max(self.graphs.ranges.size_mean.min);
        }
        let processes = self.graphs.process_num(replay, &found, round)?;
        if let Some(count) = half_way(&processes, Axis::Counted, FLAT) {
            found.process_num = count as u32;
        }
        Ok(found)
    }

    /// Regions between the borders of a sweep, each with its focal point.
    fn draw_regions(&self, slopes: &Slopes, vector: &Workload, round: u32, map: &mut Landscape) {
        let range = self.graphs.ranges.unique_bytes;
        map.borders = slopes.bands.iter().map(border).collect();
        let edges = slopes.bands.iter().map(|band| band.border_bytes);
        let ends: Vec<f64> = edges.chain([range.max as f64]).collect();
        let mut from = 0.0;
        map.regions.clear();
        let kinds: Vec<RegionKind> = (0..ends.len()).map(|at| kind(at, ends.len())).collect();
        for (&to, name) in ends.iter().zip(RegionKind::names(&kinds)) {
            let middle = multiple(f64::midpoint(from, to), FOCAL_UNIQUE_STEP);
            let focal = middle.clamp(range.min, range.max);
            map.regions.push(Region {
                name,
                unique_bytes: RegionUniqueBytes {
                    from: from.max(range.min as f64),
                    to,
                    focal: focal as f64,
                },
                focal: Workload { unique_bytes: focal, ..vector.clone() },
                layer: Layer::default(),
                revision: 0,
            });
            from = to;
        }
        map.log.push(format!(
            "round {round}: average slope {:.3} per second, borders at {}",
            slopes.average_per_s,
            if map.borders.is_empty() { "no size".to_owned() } else { sizes(&map.borders) }
        ));
    }
}

impl Plan for PaperPlan {
    fn next(&mut self, seen: &Seen<'_>) -> Option<Visit> {
        self.walk(seen.points, &mut Landscape::default()).err()
    }

    fn landscape(&self, points: &[Point]) -> Landscape {
        let mut map = Landscape::default();
        if self.walk(points, &mut map).is_err() {
            map.log.push("the plan is not complete".to_owned());
        }
        map
    }
}

/// The segment over which throughput falls by the largest factor.
fn steepest_fall(curve: &[CurvePoint]) -> Option<usize> {
    let fall = |pair: &[CurvePoint]| {
        let factor = pair[0].throughput_bytes_per_s / pair[1].throughput_bytes_per_s;
        if factor.is_finite() && divisible(pair) { factor } else { 0.0 }
    };
    let falls = curve.windows(2).map(fall).enumerate();
    let steepest = falls.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (steepest.1 > 0.0).then_some(steepest.0)
}

fn border(band: &slope::Band) -> Border {
    Border {
        unique_bytes: BorderUniqueBytes {
            onset: band.onset_bytes,
            capacity: band.border_bytes,
            low: band.from_bytes,
            high: band.to_bytes,
        },
        curve: Curve::Mixed,
        found_by: FoundBy::Slope,
        step: band.step,
        layer: Layer::default(),
        revision: 0,
    }
}

fn sizes(borders: &[Border]) -> String {
    let shown: Vec<String> =
        borders.iter().map(|border| show_bytes(border.unique_bytes.capacity)).collect();
    shown.join(", ")
}

/// A region's kind by its place alone.
fn kind(index: usize, count: usize) -> RegionKind {
    match (index, count) {
        (_, 1) => RegionKind::WholeRange,
        (0, _) => RegionKind::Cache,
        (index, count) if index + 1 == count => RegionKind::Storage,
        _ => RegionKind::WriteBack,
    }
}

#[cfg(test)]
mod tests;
