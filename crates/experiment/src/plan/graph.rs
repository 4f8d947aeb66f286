//! What the paper's two plans share: the values that a graph is drawn from, and a way to write a
//! plan as if measuring were a function call.
//!
//! A plan walks through its steps from the start each time it is asked. [`Replay::throughput`]
//! answers from the points, or ends the walk with the first visit that is missing. So a plan
//! holds no state of its own, and a resumed run goes on where the points end.

use std::collections::BTreeSet;

use ioscape_analysis::focal::CurvePoint;
use ioscape_model::units::KIB;
use ioscape_model::workload::SHARE_REQUESTS_MIN;
use ioscape_model::{Point, Ranges, Role, Workload};

use super::Visit;

/// Points of the `unique_bytes` graph (Chen and Patterson 1994, section 9).
pub(super) const UNIQUE_POINTS: usize = UNIQUE_COARSE + UNIQUE_FINE;
/// Of those, evenly spaced on a logarithmic axis.
const UNIQUE_COARSE: usize = 14;
/// Of those, placed one by one where they say most.
const UNIQUE_FINE: usize = 6;
/// Points of any other graph, the concurrency permitting.
pub(super) const GRAPH_POINTS: usize = 10;
/// Values of `unique_bytes` are multiples of this, bytes.
const UNIQUE_STEP: u64 = 4 * KIB;
/// Values of `size_mean` are multiples of this, bytes.
const SIZE_STEP: u64 = 512;

/// The points that were shown, and what was asked of them on this walk.
pub(super) struct Replay<'a> {
    points: &'a [Point],
    asked: BTreeSet<String>,
}

impl<'a> Replay<'a> {
    pub(super) fn new(points: &'a [Point]) -> Self {
        Self { points, asked: BTreeSet::new() }
    }

    /// What a workload gave on its first visit in this role; later visits to it do not change
    /// what was decided on it.
    pub(super) fn throughput(&mut self, visit: Visit) -> Result<f64, Visit> {
        self.asked.insert(format!("{:?} {}", visit.role, visit.workload));
        let same = |point: &&Point| point.role == visit.role && point.workload == visit.workload;
        match self.points.iter().find(same) {
            Some(point) => Ok(point.throughput()),
            None => Err(visit),
        }
    }

    /// Different workloads that were asked for.
    pub(super) fn asked(&self) -> u64 {
        self.asked.len() as u64
    }
}

/// Measures graphs around a vector of values.
#[derive(Clone, Debug)]
pub(super) struct Graphs {
    pub(super) ranges: Ranges,
}

impl Graphs {
    /// The vector both plans start from: a small request, halves, as few workers as may be.
    pub(super) fn start(&self) -> Workload {
        let sizes = self.ranges.size_mean;
        let usual = Workload::default();
        Workload {
            unique_bytes: self.ranges.unique_bytes.max,
            size_mean: usual.size_mean.clamp(sizes.min, sizes.max),
            process_num: self.ranges.process_num.min as u32,
            align: usual.align.min(1 << sizes.min.max(1).ilog2()),
            access: self.ranges.access,
            ..usual
        }
    }

    /// Throughput over `unique_bytes`: a coarse grid, then points inside the segment that
    /// `steepest` picks, given by the index of its first point.
    pub(super) fn unique_bytes(
        &self,
        replay: &mut Replay<'_>,
        vector: &Workload,
        round: u32,
        steepest: impl Fn(&[CurvePoint]) -> Option<usize>,
    ) -> Result<Vec<CurvePoint>, Visit> {
        let range = self.ranges.unique_bytes;
        let needed = SHARE_REQUESTS_MIN * vector.size_mean * u64::from(vector.process_num);
        let min = range.min.max(needed.next_multiple_of(UNIQUE_STEP)).min(range.max);
        let at = |unique_bytes| Visit {
            workload: Workload { unique_bytes, ..vector.clone() },
            role: Role::Sweep,
            round,
        };
        let mut curve = Vec::with_capacity(UNIQUE_POINTS);
        for value in spaced(min, range.max, UNIQUE_COARSE, UNIQUE_STEP) {
            curve.push(point(value as f64, replay.throughput(at(value))?));
        }
        for _ in 0..UNIQUE_FINE {
            let Some(segment) = steepest(&curve) else { break };
            let middle = (curve[segment].value * curve[segment + 1].value).sqrt();
            let value = multiple(middle, UNIQUE_STEP);
            let measured = point(value as f64, replay.throughput(at(value))?);
            curve.insert(segment + 1, measured);
        }
        Ok(curve)
    }

    /// Throughput over `size_mean`, as far as shares of the vector's data hold such requests.
    pub(super) fn size_mean(
        &self,
        replay: &mut Replay<'_>,
        vector: &Workload,
        round: u32,
    ) -> Result<Vec<CurvePoint>, Visit> {
        let range = self.ranges.size_mean;
        let max = range.max.min(vector.share_bytes() / SHARE_REQUESTS_MIN).max(range.min);
        let max = max / SIZE_STEP * SIZE_STEP;
        let sizes = spaced(range.min, max.max(range.min), GRAPH_POINTS, SIZE_STEP);
        let works = sizes
            .into_iter()
            .map(|size_mean| (size_mean as f64, Workload { size_mean, ..vector.clone() }));
        family(replay, works, round)
    }

    /// Throughput over `read_frac`.
    pub(super) fn read_frac(
        replay: &mut Replay<'_>,
        vector: &Workload,
        round: u32,
    ) -> Result<Vec<CurvePoint>, Visit> {
        let works =
            fractions().map(|read_frac| (read_frac, Workload { read_frac, ..vector.clone() }));
        family(replay, works, round)
    }

    /// Throughput over `seq_frac`.
    pub(super) fn seq_frac(
        replay: &mut Replay<'_>,
        vector: &Workload,
        round: u32,
    ) -> Result<Vec<CurvePoint>, Visit> {
        let works = fractions().map(|seq_frac| (seq_frac, Workload { seq_frac, ..vector.clone() }));
        family(replay, works, round)
    }

    /// Throughput over `process_num`, as far as the vector's data can be shared out.
    pub(super) fn process_num(
        &self,
        replay: &mut Replay<'_>,
        vector: &Workload,
        round: u32,
    ) -> Result<Vec<CurvePoint>, Visit> {
        let works = self.process_values().into_iter().map(|process_num| {
            (f64::from(process_num), Workload { process_num, ..vector.clone() })
        });
        family(replay, works.filter(|(_, work)| work.check().is_ok()), round)
    }

    /// Numbers of workers: doubled from the smallest, and the largest.
    pub(super) fn process_values(&self) -> Vec<u32> {
        let range = self.ranges.process_num;
        let doubled = std::iter::successors(Some(range.min.max(1)), |value| value.checked_mul(2));
        let mut values: Vec<u32> = doubled
            .take_while(|value| *value < range.max)
            .take(GRAPH_POINTS - 1)
            .map(|value| value as u32)
            .collect();
        values.push(range.max as u32);
        values
    }
}

/// The nearest multiple of `step`, at least one.
pub(super) fn multiple(value: f64, step: u64) -> u64 {
    ((value / step as f64).round() as u64).max(1) * step
}

/// Whether there is room for another multiple of the step between two points of the
/// `unique_bytes` graph.
pub(super) fn divisible(pair: &[CurvePoint]) -> bool {
    let middle = multiple((pair[0].value * pair[1].value).sqrt(), UNIQUE_STEP) as f64;
    middle > pair[0].value && middle < pair[1].value
}

fn family(
    replay: &mut Replay<'_>,
    works: impl Iterator<Item = (f64, Workload)>,
    round: u32,
) -> Result<Vec<CurvePoint>, Visit> {
    works
        .map(|(value, workload)| {
            let visit = Visit { workload, role: Role::Family, round };
            Ok(point(value, replay.throughput(visit)?))
        })
        .collect()
}

fn point(value: f64, throughput_bytes_per_s: f64) -> CurvePoint {
    CurvePoint { value, throughput_bytes_per_s }
}

fn fractions() -> impl Iterator<Item = f64> {
    (0..GRAPH_POINTS).map(|index| index as f64 / (GRAPH_POINTS - 1) as f64)
}

/// Values from `min` to `max`, evenly spaced on a logarithmic axis, rounded to multiples of
/// `step` between the ends; fewer where they would coincide.
fn spaced(min: u64, max: u64, count: usize, step: u64) -> Vec<u64> {
    let ratio = max as f64 / min as f64;
    let value = |index: usize| {
        let exact = min as f64 * ratio.powf(index as f64 / (count - 1) as f64);
        multiple(exact, step).clamp(min, max)
    };
    let mut values: Vec<u64> = (0..count).map(value).collect();
    values.dedup();
    values
}
