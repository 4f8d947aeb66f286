//! Latency where requests come at a rate, as the open loops of a map show it.

use ioscape_model::units::{show_iops, show_seconds, show_size};
use ioscape_model::{DONE_MIN, Finding, FindingCode, Layer, OpenLoop, Point, open_loops};

use super::finding;

/// Bounds that the highest rate is told for, seconds: the first that the lowest rate keeps.
const BOUNDS_S: [(f64, &str); 5] =
    [(1e-4, "100 µs"), (1e-3, "1 ms"), (1e-2, "10 ms"), (1e-1, "100 ms"), (1.0, "1 s")];

/// Up to which rate p99 keeps a round bound, p99 at every rate, and how many requests are done at most.
pub fn rate_latency(points: &[Point], revision: u32) -> Option<Finding> {
    let open = open_loops(points);
    let first = open.first()?;
    let work = &first.workload;
    let is_kept = |(bound_s, _): &(f64, &str)| first.latency_s.p99 <= *bound_s;
    let (bound_s, bound) = BOUNDS_S.into_iter().find(is_kept)?;
    let is_done = |open: &OpenLoop| open.ops_per_s >= DONE_MIN * open.workload.rate;
    let keeps = |open: &&OpenLoop| open.latency_s.p99 <= bound_s && is_done(open);
    let kept = open.iter().take_while(keeps).last()?;
    let most_per_s = first.workload.rate / first.share;
    let at = |open: &OpenLoop| {
        format!("{} at {}", show_seconds(open.latency_s.p99), show_iops(open.workload.rate))
    };
    let text = format!(
        "Random {} reads that come at a rate, {} in flight at most: p99 stays below {} up to {} IOPS; \
         {} are done at most. p99 is {}.",
        show_size(work.size_mean as f64),
        work.in_flight(),
        bound,
        show_iops(kept.workload.rate),
        show_iops(most_per_s),
        open.iter().map(at).collect::<Vec<_>>().join(", "),
    );
    let figures = [
        ("p99_max_s", bound_s),
        ("kept_ops_per_s", kept.workload.rate),
        ("most_ops_per_s", most_per_s),
    ];
    let mut found = finding(FindingCode::RateLatency, text, &figures);
    for open in &open {
        let percent = (100.0 * open.share).round();
        found.figures.insert(format!("p99_at_{percent:.0}_percent_s"), open.latency_s.p99);
    }
    (found.layer, found.revision) = (Layer::of_access(work.access), revision);
    Some(found)
}

#[cfg(test)]
mod tests {
    use ioscape_model::{Interval, ResponseTime, Role, datasheet};

    use super::*;

    /// Visits to the line, closed at 10,000 requests per second and at these rates with these p99.
    fn visits(rates: &[(f64, f64)]) -> Vec<Point> {
        let line = datasheet::named(datasheet::RATE_LINE).unwrap();
        let visit = |workload| Point::bare(workload, "sim", Interval::exact(1e6));
        let closed = Point { ops_per_s: 10_000.0, role: Role::Named, ..visit(line.clone()) };
        let open = rates.iter().map(|&(rate, p99)| {
            let latency =
                ResponseTime { mean: p99 / 4.0, p50: p99 / 4.0, p99, ..closed.response_time_s };
            let work = datasheet::at_rate(&line, rate);
            let latency_s = Some(latency);
            Point { ops_per_s: rate, role: Role::OpenLoop, latency_s, ..visit(work) }
        });
        open.chain([closed.clone()]).collect()
    }

    #[test]
    fn the_highest_rate_below_a_round_bound_is_told_with_all_the_others() {
        let points = visits(&[(9000.0, 0.02), (2500.0, 2e-4), (7000.0, 8e-4)]);
        let found = rate_latency(&points, 3).unwrap();
        let figure = |name: &str, expected: f64| {
            assert!((found.figures[name] / expected - 1.0).abs() < 1e-9, "{name}: {found:?}");
        };
        figure("kept_ops_per_s", 7000.0);
        figure("p99_max_s", 1e-3);
        figure("most_ops_per_s", 10_000.0);
        figure("p99_at_90_percent_s", 0.02);
        assert_eq!((found.revision, found.layer), (3, Layer::Device));
        assert!(
            found.text.contains("p99 stays below 1 ms up to 7.00k IOPS; 10.0k are done"),
            "{}",
            found.text
        );
    }

    #[test]
    fn nothing_is_said_without_open_loops_or_where_none_is_quick_enough() {
        assert_eq!(rate_latency(&visits(&[]), 1), None);
        assert_eq!(rate_latency(&visits(&[(2500.0, 5.0)]), 1), None);
    }
}
