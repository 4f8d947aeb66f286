//! Graphs: workloads that differ from a focal vector in one parameter, with what is good on them
//! and what moving along them brings. Decided once, for sentences and for pictures.

use serde::{Deserialize, Serialize};

use crate::{Interval, Workload};

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
        let good = |at: &usize| throughputs[*at] >= GOOD_FRACTION * throughputs[best];
        let from = (0..=best).rev().take_while(good).last()?;
        let to = (best..throughputs.len()).take_while(good).last()?;
        Some(Self { from, best, to })
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
