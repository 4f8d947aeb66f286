//! Latency over the rate at which requests come.

use ioscape_model::units::{show_iops, show_seconds};
use ioscape_model::{Interval, OpenLoop, Record, ResponseTime, open_loops};

use crate::chart::{Axis, Chart, Drawn, Ink, Mark, Scale, Series, Unit};
use crate::datasheet::words;

/// Percentiles of latency over the rate; empty where no open loop was visited.
pub(crate) fn chart(record: &Record) -> Chart {
    chart_of(&open_loops(&record.points))
}

fn chart_of(open: &[OpenLoop]) -> Chart {
    type Percentile = (&'static str, Ink, fn(&ResponseTime) -> f64);
    let percentiles: [Percentile; 3] = [
        ("half", Ink::Read, |times| times.p50),
        ("99 %", Ink::Mixed, |times| times.p99),
        ("99.9 %", Ink::Write, |times| times.p999),
    ];
    let series = percentiles.map(|(name, ink, of)| {
        let mark = |open: &OpenLoop| {
            let (rate, seconds) = (show_iops(open.workload.rate), of(&open.latency_s));
            Mark {
                x: open.workload.rate,
                y: Interval::exact(seconds),
                note: format!("{rate} IOPS: {name} within {}", show_seconds(seconds)),
            }
        };
        let marks: Vec<Mark> = open.iter().map(mark).collect();
        Series { name: format!("{name} of the requests"), ink, drawn: Drawn::Joined, marks }
    });
    let about = open.first().map_or_else(String::new, |first| {
        format!(
            "{}, at most {} in flight; a closed loop does {} IOPS. ",
            words(&first.workload.closed_loop()),
            first.workload.in_flight(),
            show_iops(first.workload.rate / first.share)
        )
    });
    Chart {
        id: "rates".to_owned(),
        title: "Latency when requests come at a rate".to_owned(),
        caption: format!(
            "{about}Latency counts from when a request was due, so that waiting for earlier ones and \
             stalls of the machine count."
        ),
        x: Axis::new("requests per second", Scale::Linear, Unit::Count),
        y: Axis::new("latency", Scale::Log10, Unit::Seconds),
        series: series.into_iter().filter(|series| !series.marks.is_empty()).collect(),
        bands: vec![],
        rules: vec![],
    }
}

#[cfg(test)]
mod tests {
    use ioscape_model::datasheet;

    use super::*;

    #[test]
    fn three_percentiles_are_drawn_over_the_rate_or_nothing() {
        assert!(chart_of(&[]).is_empty());
        let line = datasheet::named(datasheet::RATE_LINE).unwrap();
        let open = [(2500.0, 1e-4), (5000.0, 1e-3)].map(|(rate, p99)| OpenLoop {
            workload: datasheet::at_rate(&line, rate),
            share: rate / 10_000.0,
            ops_per_s: rate,
            latency_s: ResponseTime { p50: p99 / 2.0, p99, p999: 2.0 * p99, ..Default::default() },
        });
        let chart = chart_of(&open);
        assert!(chart.caption.starts_with("rand read 4 KiB, QD 32"), "{}", chart.caption);
        assert!(chart.caption.contains("a closed loop does 10.0k IOPS"), "{}", chart.caption);
        assert_eq!(chart.series.len(), 3);
        assert_eq!(chart.series[1].marks[1].note, "5.00k IOPS: 99 % within 1.00 ms");
    }
}
