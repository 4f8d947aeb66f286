//! The figures that are shown: the estimates of the last closed map. A record without a map (one
//! workload measured by hand, a run killed within its first minute) still has its visits, and
//! those are shown as what they are.

use std::borrow::Cow;

use ioscape_model::{Estimate, Interval, Point, Record};

/// The figures, and whether they are pooled.
pub(crate) struct Samples<'a> {
    /// One per workload where pooled, one per visit otherwise.
    pub(crate) estimates: Cow<'a, [Estimate]>,
    /// Whether the intervals come from the variance between visits.
    pub(crate) pooled: bool,
}

impl<'a> Samples<'a> {
    /// The figures of a record.
    pub(crate) fn of(record: &'a Record) -> Self {
        if record.estimates.is_empty() {
            let visits = record.points.iter().map(single_visit).collect();
            return Self { estimates: Cow::Owned(visits), pooled: false };
        }
        Self { estimates: Cow::Borrowed(&record.estimates), pooled: true }
    }

    /// What the intervals are.
    pub(crate) fn interval_words(&self) -> &'static str {
        if self.pooled {
            "95 % intervals from the spread between visits"
        } else {
            "95 % intervals from within single visits, which say nothing about the spread between \
             visits"
        }
    }
}

fn single_visit(point: &Point) -> Estimate {
    Estimate {
        workload: point.workload.clone(),
        visits: 1,
        throughput_bytes_per_s: point.throughput_bytes_per_s,
        durable_bytes_per_s: point.durable_bytes_per_s,
        ops_per_s: Interval::exact(point.ops_per_s),
        response_time_s: point.response_time_s,
        hit_fraction: point.hit_fraction,
        steady: point.steady,
        warnings: point.warnings.clone(),
        revision: 0,
    }
}
