//! The figures that are shown: the estimates of the last closed map. A record without a map (one
//! workload measured by hand, a run killed within its first minute) still has its visits, and
//! those are shown as what they are.

use std::borrow::Cow;

use ioscape_model::line::{REPEATED_MIN, SPREAD_ASSUMED};
use ioscape_model::{Estimate, Interval, Point, Record};

use crate::figures;

/// The figures, and whether they are pooled.
pub(crate) struct Samples<'a> {
    /// One per workload where pooled, one per visit otherwise.
    pub(crate) estimates: Cow<'a, [Estimate]>,
    /// Whether the intervals come from the variance between visits.
    pub(crate) pooled: bool,
}

impl<'a> Samples<'a> {
    /// The figures of a record.
    pub(crate) fn from_record(record: &'a Record) -> Self {
        if record.estimates.is_empty() {
            let visits = record.points.iter().map(single_visit).collect();
            return Self { estimates: Cow::Owned(visits), pooled: false };
        }
        Self { estimates: Cow::Borrowed(&record.estimates), pooled: true }
    }

    /// What the intervals are.
    pub(crate) fn interval_words(&self) -> String {
        if !self.pooled {
            return "95 % intervals from within single visits, which say nothing about the spread \
                    between visits"
                .to_owned();
        }
        let assumed = spread_assumed();
        match self.repeated() {
            0 => format!(
                "95 % intervals; visits are assumed to differ by {assumed}, because only the \
                 canary was visited more than once"
            ),
            few if few < REPEATED_MIN => format!(
                "95 % intervals from the spread between visits of {} and an assumed {assumed}",
                figures::count(few, "repeated workload")
            ),
            _ => "95 % intervals from the spread between visits".to_owned(),
        }
    }

    /// Workloads that were visited more than once.
    pub(crate) fn repeated(&self) -> usize {
        self.estimates.iter().filter(|estimate| estimate.visits > 1).count()
    }
}

/// The spread that is assumed where nothing was measured twice: `4 %`.
pub(crate) fn spread_assumed() -> String {
    format!("{:.0} %", SPREAD_ASSUMED * 100.0)
}

fn single_visit(point: &Point) -> Estimate {
    Estimate {
        workload: point.workload.clone(),
        visits: 1,
        throughput_bytes_per_s: point.throughput_bytes_per_s,
        durable_bytes_per_s: point.durable_bytes_per_s,
        ops_per_s: Interval::exact(point.ops_per_s),
        response_time_s: point.response_time_s,
        latency_s: point.latency_s,
        hit_fraction: point.hit_fraction,
        steady: point.steady,
        warnings: point.warnings.clone(),
        revision: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_that_rest_on_an_assumption_say_so() {
        let estimate = |visits| {
            let known = serde_json::json!({
                "workload": {}, "visits": visits, "throughput_bytes_per_s": Interval::exact(1.0),
                "durable_bytes_per_s": null, "ops_per_s": Interval::exact(1.0),
                "response_time_s": ioscape_model::ResponseTime::default(), "hit_fraction": null,
                "steady": true, "warnings": [],
            });
            serde_json::from_value::<Estimate>(known).unwrap()
        };
        for (repeated, said) in [
            (0, "only the canary was visited more than once"),
            (1, "of 1 repeated workload and an assumed 4 %"),
            (9, "of 9 repeated workloads and an assumed 4 %"),
            (10, "from the spread between visits"),
        ] {
            let estimates: Vec<Estimate> =
                (0..12).map(|i| estimate(if i < repeated { 3 } else { 1 })).collect();
            let words = Samples { estimates: estimates.into(), pooled: true }.interval_words();
            assert!(words.contains(said), "{words}");
            assert_eq!(words.contains("4 %"), repeated < 10, "{words}");
        }
    }
}
