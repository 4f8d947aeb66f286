//! Graphs: workloads that differ from a focal vector in one parameter, with what is good on them
//! and what moving along them brings. Decided once, for sentences and for pictures.

use serde::{Deserialize, Serialize};

use crate::units::MIB;
use crate::{Estimate, Interval, Workload};

/// A value is good that gives at least this part of the best throughput (Chen and Patterson 1994,
/// section 7).
pub const GOOD_FRACTION: f64 = 0.75;
/// A ratio nearer to 1 than this is a trifle, however well it is known.
const TRIFLE: f64 = 1.03;

/// A parameter that a graph runs along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Axis {
    /// Data touched, bytes.
    UniqueBytes,
    /// Mean request size, bytes.
    SizeMean,
    /// Share of reads.
    ReadFrac,
    /// Share of sequential requests.
    SeqFrac,
    /// Processes.
    ProcessNum,
    /// Requests in flight per process.
    Depth,
    /// fdatasyncs per write, so that never is an end of the axis.
    FsyncEvery,
}

impl Axis {
    /// The five parameters of Chen and Patterson (1994, section 5).
    pub const ALL: [Self; 5] =
        [Self::UniqueBytes, Self::SizeMean, Self::ReadFrac, Self::SeqFrac, Self::ProcessNum];

    /// Its key, or its words.
    pub fn name(self) -> &'static str {
        match self {
            Self::UniqueBytes => "unique_bytes",
            Self::SizeMean => "size_mean",
            Self::ReadFrac => "read_frac",
            Self::SeqFrac => "seq_frac",
            Self::ProcessNum => "process_num",
            Self::Depth => "depth",
            Self::FsyncEvery => "fdatasyncs per write",
        }
    }

    /// In words, for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::UniqueBytes => "data touched",
            Self::SizeMean => "request size",
            Self::ReadFrac => "reads",
            Self::SeqFrac => "sequential",
            Self::ProcessNum => "processes",
            Self::Depth => "queue depth",
            Self::FsyncEvery => "fdatasyncs per write",
        }
    }

    /// The parameter's value.
    pub fn value(self, work: &Workload) -> f64 {
        match self {
            Self::UniqueBytes => work.unique_bytes as f64,
            Self::SizeMean => work.size_mean as f64,
            Self::ReadFrac => work.read_frac,
            Self::SeqFrac => work.seq_frac,
            Self::ProcessNum => f64::from(work.process_num),
            Self::Depth => f64::from(work.depth),
            Self::FsyncEvery if work.fsync_every == 0 => 0.0,
            Self::FsyncEvery => f64::from(work.fsync_every).recip(),
        }
    }

    /// A workload moved along the parameter.
    #[must_use]
    pub fn moved(self, focal: &Workload, value: f64) -> Workload {
        let mut work = focal.clone();
        match self {
            Self::UniqueBytes => work.unique_bytes = value.round() as u64,
            Self::SizeMean => work.size_mean = value.round() as u64,
            Self::ReadFrac => work.read_frac = value,
            Self::SeqFrac => work.seq_frac = value,
            Self::ProcessNum => work.process_num = value.round() as u32,
            Self::Depth => work.depth = value.round() as u32,
            Self::FsyncEvery if value <= 0.0 => work.fsync_every = 0,
            Self::FsyncEvery => work.fsync_every = value.recip().round() as u32,
        }
        work
    }

    /// Where a workload lies along the parameter: sizes and counts on a logarithmic axis, fractions
    /// on a linear one.
    pub fn coordinate(self, work: &Workload) -> f64 {
        match self {
            Self::ReadFrac | Self::SeqFrac | Self::FsyncEvery => self.value(work),
            _ => self.value(work).max(1.0).ln(),
        }
    }

    /// Whether two workloads differ in this parameter at most.
    pub fn alone_differs(self, a: &Workload, b: &Workload) -> bool {
        let mut moved = a.clone();
        match self {
            Self::UniqueBytes => moved.unique_bytes = b.unique_bytes,
            Self::SizeMean => moved.size_mean = b.size_mean,
            Self::ReadFrac => moved.read_frac = b.read_frac,
            Self::SeqFrac => moved.seq_frac = b.seq_frac,
            Self::ProcessNum => moved.process_num = b.process_num,
            Self::Depth => moved.depth = b.depth,
            Self::FsyncEvery => moved.fsync_every = b.fsync_every,
        }
        moved == *b
    }

    /// Whether a workload lies on the graph through `focal` along this parameter. `align` follows
    /// small request sizes.
    pub fn is_on_graph(self, work: &Workload, focal: &Workload) -> bool {
        if self != Self::SizeMean {
            return self.alone_differs(work, focal);
        }
        self.alone_differs(&Workload { align: focal.align, ..work.clone() }, focal)
    }
}

/// The good values around the best, as places in a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Good {
    /// The first.
    pub from: usize,
    /// The best.
    pub best: usize,
    /// The last.
    pub to: usize,
}

impl Good {
    /// Out of the throughputs of a graph, in its order; none where there are none.
    pub fn around_best(throughputs: &[f64]) -> Option<Self> {
        let all = 0..throughputs.len();
        let best = all.max_by(|a, b| throughputs[*a].total_cmp(&throughputs[*b]))?;
        let good = |at: &usize| is_good(throughputs[*at], throughputs[best]);
        let from = (0..=best).rev().take_while(good).last()?;
        let to = (best..throughputs.len()).take_while(good).last()?;
        Some(Self { from, best, to })
    }
}

/// Whether a throughput reaches [`GOOD_FRACTION`] of the highest.
pub fn is_good(throughput: f64, highest: f64) -> bool {
    throughput >= GOOD_FRACTION * highest
}

/// The place of the first good throughput of a graph, whatever lies between it and the best.
pub fn first_good(throughputs: &[f64]) -> Option<usize> {
    let highest = throughputs.iter().copied().fold(0.0, f64::max);
    throughputs.iter().position(|throughput| is_good(*throughput, highest))
}

/// The stretches of an axis on which a graph is good. The graph is straight lines between its points,
/// each a position along the axis and the throughput there; a line's good part ends where it
/// crosses [`GOOD_FRACTION`] of the highest point.
pub fn good_stretches(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let highest = points.iter().map(|(_, throughput)| *throughput).fold(0.0, f64::max);
    let threshold = GOOD_FRACTION * highest;
    let mut stretches: Vec<(f64, f64)> = Vec::new();
    for pair in points.windows(2) {
        let [(x0, y0), (x1, y1)] = [0, 1].map(|end: usize| (pair[end].0, pair[end].1 - threshold));
        if y0 < 0.0 && y1 < 0.0 {
            continue;
        }
        let crossing = x0 + (x1 - x0) * y0 / (y0 - y1);
        let from = if y0 < 0.0 { crossing } else { x0 };
        let to = if y1 < 0.0 { crossing } else { x1 };
        match stretches.last_mut() {
            Some(last) if y0 >= 0.0 => last.1 = to,
            _ => stretches.push((from, to)),
        }
    }
    stretches
}

/// How throughput changes from one working set to a larger one, on linear axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slope {
    /// The smaller working set.
    pub from_bytes: f64,
    /// The larger one.
    pub to_bytes: f64,
    /// Change of throughput for each MiB more; below zero where it falls.
    pub mb_per_s_per_mib: f64,
}

impl Slope {
    /// From one estimate to another; `None` where the second working set is not larger.
    pub fn between(one: &Estimate, other: &Estimate) -> Option<Self> {
        let [from_bytes, to_bytes] = [one, other].map(|at| at.workload.unique_bytes as f64);
        let run_mib = (to_bytes - from_bytes) / MIB as f64;
        let rise_mb_per_s =
            (other.throughput_bytes_per_s.mean - one.throughput_bytes_per_s.mean) / 1e6;
        (run_mib > 0.0).then(|| Self {
            from_bytes,
            to_bytes,
            mb_per_s_per_mib: rise_mb_per_s / run_mib,
        })
    }

    /// Half-way between both on a logarithmic axis, bytes.
    pub fn middle_bytes(&self) -> f64 {
        (self.from_bytes * self.to_bytes).sqrt()
    }
}

/// What a ratio lets us say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Above 1.
    Gain,
    /// Below 1.
    Loss,
    /// The interval holds 1, or the ratio is a trifle.
    NotShown,
}

impl Interval {
    /// This over another one. The half-widths of two independent intervals add in squares, on the
    /// scale of logarithms; an interval that reaches zero makes the ratio's one boundless.
    #[must_use]
    pub fn over(&self, below: &Self) -> Self {
        let mean = self.mean / below.mean;
        let half_width = self.ln_half_width().hypot(below.ln_half_width());
        Self { mean, low: mean * (-half_width).exp(), high: mean * half_width.exp() }
    }

    fn ln_half_width(&self) -> f64 {
        if self.low > 0.0 && self.high.is_finite() {
            (self.high / self.mean).ln().max((self.mean / self.low).ln())
        } else {
            f64::INFINITY
        }
    }

    /// What this ratio lets us say: an effect is shown where the interval leaves out 1 and the ratio
    /// is not a trifle.
    pub fn effect(&self) -> Effect {
        if self.low > 1.0 && self.mean > TRIFLE {
            Effect::Gain
        } else if self.high < 1.0 && self.mean < 1.0 / TRIFLE {
            Effect::Loss
        } else {
            Effect::NotShown
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_good_value_may_lie_before_a_dip() {
        let throughputs = [1.0, 8.0, 3.0, 10.0, 9.0];
        assert_eq!(first_good(&throughputs), Some(1));
        let good = Good::around_best(&throughputs).unwrap();
        assert_eq!((good.from, good.best, good.to), (3, 3, 4));
        assert_eq!(first_good(&[]), None);
    }

    #[test]
    fn good_stretches_end_where_lines_cross_the_threshold() {
        // 7.5 is crossed a quarter before 1, after 1, and half-way from 2 to 3.
        let stretches = good_stretches(&[(0.0, 0.0), (1.0, 10.0), (2.0, 5.0), (3.0, 10.0)]);
        assert_eq!(stretches, [(0.75, 1.5), (2.5, 3.0)]);
        assert_eq!(good_stretches(&[(0.0, 8.0), (1.0, 10.0), (2.0, 9.0)]), [(0.0, 2.0)]);
        assert!(good_stretches(&[(0.0, 8.0)]).is_empty());
    }

    #[test]
    fn a_slope_needs_a_larger_working_set() {
        let at = |unique_bytes: u64, mean: f64| {
            let workload = Workload { unique_bytes, ..Workload::default() };
            Estimate::bare(workload, 1, Interval::exact(mean))
        };
        let (near, far) = (at(MIB, 9e6), at(4 * MIB, 3e6));
        let slope = Slope::between(&near, &far).unwrap();
        assert!((slope.mb_per_s_per_mib + 2.0).abs() < 1e-12, "{slope:?}");
        assert!((slope.middle_bytes() / (2 * MIB) as f64 - 1.0).abs() < 1e-12);
        assert_eq!(Slope::between(&far, &near), None);
        assert_eq!(Slope::between(&near, &near), None);
    }
}
