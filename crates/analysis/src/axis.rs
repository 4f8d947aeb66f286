//! The five parameters as axes: of a graph, of a space.

use ioscape_model::Workload;
use serde::{Deserialize, Serialize};

/// A parameter of Chen and Patterson (1994, section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Axis {
    UniqueBytes,
    SizeMean,
    ReadFrac,
    SeqFrac,
    ProcessNum,
}

impl Axis {
    pub(crate) const ALL: [Self; 5] =
        [Self::UniqueBytes, Self::SizeMean, Self::ReadFrac, Self::SeqFrac, Self::ProcessNum];

    /// The parameter's value.
    pub(crate) fn value(self, work: &Workload) -> f64 {
        match self {
            Self::UniqueBytes => work.unique_bytes as f64,
            Self::SizeMean => work.size_mean as f64,
            Self::ReadFrac => work.read_frac,
            Self::SeqFrac => work.seq_frac,
            Self::ProcessNum => f64::from(work.process_num),
        }
    }

    /// Where that lies: sizes and counts on a logarithmic axis, fractions on a linear one.
    pub(crate) fn coordinate(self, work: &Workload) -> f64 {
        match self {
            Self::ReadFrac | Self::SeqFrac => self.value(work),
            _ => self.value(work).max(1.0).ln(),
        }
    }

    /// Whether two workloads differ in this parameter at most.
    pub(crate) fn alone_differs(self, a: &Workload, b: &Workload) -> bool {
        let mut moved = a.clone();
        match self {
            Self::UniqueBytes => moved.unique_bytes = b.unique_bytes,
            Self::SizeMean => moved.size_mean = b.size_mean,
            Self::ReadFrac => moved.read_frac = b.read_frac,
            Self::SeqFrac => moved.seq_frac = b.seq_frac,
            Self::ProcessNum => moved.process_num = b.process_num,
        }
        moved == *b
    }
}
