//! Chen and Patterson's first attempt (1994, section 7): find the vector at which every parameter
//! is at its 75 % point at the same time, that is, at the least restrictive value that gives at
//! least 75 % of its graph's maximum. Then take the five graphs around it.
//!
//! The vector is found by going through the parameters one after the other, again and again,
//! each time with the others where they were left, until a vector comes back. It is here to show
//! why its authors gave it up: one extreme vector, at a border, stands for everything.

use ioscape_analysis::focal::{Axis, CurvePoint, Easier, good_range, least_restrictive};
use ioscape_model::graph::GOOD_FRACTION;
use ioscape_model::units::show_bytes;
use ioscape_model::{
    Border, BorderUniqueBytes, Curve, FoundBy, Layer, Point, Ranges, Region, RegionKind,
    RegionUniqueBytes, Workload,
};

use super::graph::{Graphs, Replay, divisible, multiple};
use super::{Landscape, Plan, Seen, Visit};

const ROUNDS_MAX: u32 = 10;
/// Sizes this near to each other, as a factor, are the same vector: less than a step of a graph.
const SAME_FACTOR: f64 = 1.1;
/// Fractions this near to each other are the same vector: half a step of a graph.
const SAME_FRACTION: f64 = 0.06;
const UNIQUE_STEP: u64 = 4096;
const SIZE_STEP: u64 = 512;

/// The plan. It has no state: everything follows from the ranges and the points.
#[derive(Clone, Debug)]
pub struct Global75Plan {
    graphs: Graphs,
}

impl Global75Plan {
    /// A plan over these ranges.
    pub fn new(ranges: Ranges) -> Self {
        Self { graphs: Graphs { ranges } }
    }

    fn walk(&self, points: &[Point], map: &mut Landscape) -> Result<(), Visit> {
        let mut replay = Replay::new(points);
        let mut vectors = vec![self.graphs.start()];
        let mut round = 0;
        while round < ROUNDS_MAX {
            let found = self.one_round(&mut replay, &vectors[vectors.len() - 1], round)?;
            map.log.push(format!("round {round}: {found}"));
            map.regions = vec![self.region(&found)];
            let repeated = vectors.iter().skip(1).any(|earlier| same(earlier, &found));
            round += 1;
            if repeated {
                map.log.push(format!("a vector came back after {round} rounds"));
                break;
            }
            if round == ROUNDS_MAX {
                map.log.push(format!("no vector came back in {ROUNDS_MAX} rounds; the last one"));
            }
            vectors.push(found);
        }
        let focal = map.regions[0].focal.clone();
        self.final_graphs(&mut replay, &focal, round, map)
    }

    /// Each parameter in turn to its 75 % point, the others where they are.
    fn one_round(
        &self,
        replay: &mut Replay<'_>,
        from: &Workload,
        round: u32,
    ) -> Result<Workload, Visit> {
        let (graphs, ranges) = (&self.graphs, &self.graphs.ranges);
        let mut vector = from.clone();
        let uniques = graphs.unique_bytes(replay, &vector, round, at_the_edge)?;
        let easiest = |curve: &[CurvePoint], axis| least_restrictive(curve, axis, Easier::Smaller);
        if let Some(value) = least_restrictive(&uniques, Axis::Logarithmic, Easier::Larger) {
            let range = ranges.unique_bytes;
            vector.unique_bytes = multiple(value, UNIQUE_STEP).clamp(range.min, range.max);
        }
        let sizes = graphs.size_mean(replay, &vector, round)?;
        if let Some(value) = easiest(&sizes, Axis::Logarithmic) {
            vector.size_mean = multiple(value, SIZE_STEP).max(ranges.size_mean.min);
        }
        let reads = Graphs::read_frac(replay, &vector, round)?;
        vector.read_frac = easiest(&reads, Axis::Linear).map_or(vector.read_frac, percent);
        let sequential = Graphs::seq_frac(replay, &vector, round)?;
        vector.seq_frac = easiest(&sequential, Axis::Linear).map_or(vector.seq_frac, percent);
        let processes = graphs.process_num(replay, &vector, round)?;
        if let Some(value) = easiest(&processes, Axis::Counted) {
            vector.process_num = value as u32;
        }
        Ok(vector)
    }

    /// The graphs of Fig. 4: each parameter alone, the others at the vector; logs what is shaded.
    fn final_graphs(
        &self,
        replay: &mut Replay<'_>,
        focal: &Workload,
        round: u32,
        map: &mut Landscape,
    ) -> Result<(), Visit> {
        let graphs = &self.graphs;
        let drawn = [
            (
                "unique_bytes",
                graphs.unique_bytes(replay, focal, round, at_the_edge)?,
                Axis::Logarithmic,
            ),
            ("size_mean", graphs.size_mean(replay, focal, round)?, Axis::Logarithmic),
            ("read_frac", Graphs::read_frac(replay, focal, round)?, Axis::Linear),
            ("seq_frac", Graphs::seq_frac(replay, focal, round)?, Axis::Linear),
            ("process_num", graphs.process_num(replay, focal, round)?, Axis::Counted),
        ];
        let [(_, uniques, _), ..] = &drawn;
        map.borders = cache_end(uniques, focal.read_frac).into_iter().collect();
        for (name, curve, axis) in drawn {
            let Some((low, high)) = good_range(&curve, axis) else { continue };
            let show = |value: f64| match axis {
                Axis::Logarithmic => show_bytes(value),
                Axis::Linear | Axis::Counted => percent(value).to_string(),
            };
            map.log.push(format!(
                "{name} from {} to {} gives at least {:.0} % of the maximum",
                show(low),
                show(high),
                GOOD_FRACTION * 100.0
            ));
        }
        map.log.push(format!("{} points", replay.asked()));
        Ok(())
    }

    fn region(&self, focal: &Workload) -> Region {
        let range = self.graphs.ranges.unique_bytes;
        Region {
            name: RegionKind::WholeRange.into(),
            unique_bytes: RegionUniqueBytes {
                from: range.min as f64,
                to: range.max as f64,
                focal: focal.unique_bytes as f64,
            },
            focal: focal.clone(),
            layer: Layer::default(),
            revision: 0,
        }
    }
}

impl Plan for Global75Plan {
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

/// The segment in which the curve leaves the good range for the last time.
fn at_the_edge(curve: &[CurvePoint]) -> Option<usize> {
    let highest = curve.iter().map(|point| point.throughput_bytes_per_s).fold(0.0, f64::max);
    let good = |point: &CurvePoint| point.throughput_bytes_per_s >= GOOD_FRACTION * highest;
    let last = curve.iter().rposition(good)?;
    let edge = curve.get(last..last + 2)?;
    divisible(edge).then_some(last)
}

/// The size of the effective file cache: where the graph leaves the good range for the last time,
/// known to the two values measured on both sides. None where it never does.
fn cache_end(curve: &[CurvePoint], read_frac: f64) -> Option<Border> {
    let (_, capacity) = good_range(curve, Axis::Logarithmic)?;
    let within = curve.iter().rfind(|point| point.value <= capacity)?;
    let beyond = curve.iter().find(|point| point.value > capacity)?;
    let highest = curve.iter().map(|point| point.throughput_bytes_per_s).fold(0.0, f64::max);
    let last = curve.last().map(|point| point.throughput_bytes_per_s).filter(|last| *last > 0.0)?;
    Some(Border {
        // The neighbours on the graph stand for the ends of an interval: nothing narrower is known.
        unique_bytes: BorderUniqueBytes {
            onset: within.value,
            capacity,
            low: within.value,
            high: beyond.value,
        },
        curve: match read_frac {
            ..=0.0 => Curve::Write,
            1.0.. => Curve::Read,
            _ => Curve::Mixed,
        },
        found_by: FoundBy::Slope,
        step: highest / last,
        layer: Layer::default(),
        revision: 0,
    })
}

/// Whether two vectors differ by less than the graphs can tell.
fn same(a: &Workload, b: &Workload) -> bool {
    let near = |a: u64, b: u64| (a as f64 / b as f64).ln().abs() <= SAME_FACTOR.ln();
    near(a.unique_bytes, b.unique_bytes)
        && near(a.size_mean, b.size_mean)
        && (a.read_frac - b.read_frac).abs() <= SAME_FRACTION
        && (a.seq_frac - b.seq_frac).abs() <= SAME_FRACTION
        && a.process_num == b.process_num
}

/// Rounded to whole percent: what lies below is noise.
fn percent(fraction: f64) -> f64 {
    (fraction * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests;
