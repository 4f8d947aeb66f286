//! What more hosts bring: lines of the data sheet from one, two, four … hosts, one process on each.

use ioscape_model::units::show_iops;
use ioscape_model::{Estimate, Hosts, Interval, Record, SheetFigures, datasheet};

use crate::chart::{Axis, Chart, Drawn, Ink, Mark, Scale, Series, Unit};
use crate::datasheet::words;

/// A line of the data sheet, and the same from more hosts.
struct Line<'a> {
    one: &'a SheetFigures,
    more: Vec<(u32, &'a Estimate)>,
}

/// Lines that were measured from more than one host.
fn lines_of(record: &Record) -> Vec<Line<'_>> {
    let (Some(hosts), Some(map)) = (&record.header.hosts, &record.map) else { return Vec::new() };
    lines(&hosts.steps(), &map.datasheet, &record.estimates)
}

fn lines<'a>(steps: &[u32], sheet: &'a [SheetFigures], estimates: &'a [Estimate]) -> Vec<Line<'a>> {
    let line = |one: &'a SheetFigures| {
        let at = |&hosts: &u32| {
            let work = datasheet::from_hosts(&one.workload, hosts);
            Some((hosts, estimates.iter().find(|estimate| estimate.workload == work)?))
        };
        Line { one, more: steps.iter().filter_map(at).collect() }
    };
    let lines = sheet.iter().map(line);
    lines.filter(|line| !line.more.is_empty() && line.one.ops_per_s.value > 0.0).collect()
}

/// `rand read 4 KiB, QD 32: 64.7k IOPS from one host, 81.2k from 2 (× 1.25), 90.1k from 4 (× 1.39)`
pub(crate) fn sentences(record: &Record) -> Vec<String> {
    let noun = record.header.hosts.as_ref().map_or("host", Hosts::noun);
    lines_of(record).iter().map(|line| sentence(line, noun)).collect()
}

fn sentence(line: &Line<'_>, noun: &str) -> String {
    let one = line.one.ops_per_s.value;
    let from = |(hosts, estimate): &(u32, &Estimate)| {
        let ops = estimate.ops_per_s.mean;
        format!(", {} from {hosts} (× {:.2})", show_iops(ops), ops / one)
    };
    let more: String = line.more.iter().map(from).collect();
    format!("{}: {} IOPS from one {noun}{more}", words(&line.one.workload), show_iops(one))
}

/// Requests per second over hosts, as multiples of one host's; nothing where there is one host.
pub(crate) fn chart(record: &Record) -> Chart {
    let noun = record.header.hosts.as_ref().map_or("host", Hosts::noun);
    chart_of(lines_of(record), noun)
}

fn chart_of(lines: Vec<Line<'_>>, noun: &str) -> Chart {
    const INKS: [Ink; 4] = [Ink::Read, Ink::Write, Ink::Mixed, Ink::Plain];
    let series = lines.into_iter().zip(INKS).map(|(line, ink)| {
        let one = line.one.ops_per_s.value;
        let over = |at: &Interval| Interval {
            mean: at.mean / one,
            low: at.low / one,
            high: at.high / one,
        };
        let mark = |hosts: u32, y, ops| {
            let note = format!("{} IOPS", show_iops(ops));
            Mark { x: f64::from(hosts), y, note }
        };
        let first = mark(1, Interval::exact(1.0), one);
        let rest = line.more.iter().map(|(hosts, estimate)| {
            mark(*hosts, over(&estimate.ops_per_s), estimate.ops_per_s.mean)
        });
        Series {
            name: words(&line.one.workload),
            ink,
            drawn: Drawn::Joined,
            marks: std::iter::once(first).chain(rest).collect(),
        }
    });
    Chart {
        id: "hosts".to_owned(),
        title: format!("What more {noun}s bring"),
        caption: format!(
            "Requests per second of all {noun}s together, as multiples of one {noun}'s. One process on \
             each {noun}, all together over as much data; storage that gives every {noun} as much as \
             the first would double from 1 to 2."
        ),
        x: Axis::new(&format!("{noun}s"), Scale::Log2, Unit::Count),
        y: Axis::new(&format!("times one {noun}"), Scale::Linear, Unit::Ratio),
        series: series.collect(),
        bands: vec![],
        rules: vec![],
    }
}

#[cfg(test)]
mod tests {
    use ioscape_model::Figure;
    use ioscape_model::datasheet::SheetTimes;

    use super::*;

    /// 100 requests per second from one of four hosts, 150 from two, 160 from four.
    #[test]
    fn what_more_hosts_bring_is_said_and_drawn() {
        let workload = datasheet::named("read_4k_32").unwrap();
        let exact = |value: f64| Figure { value, low: value, high: value };
        let sheet = [SheetFigures {
            name: "read_4k_32".to_owned(),
            workload: workload.clone(),
            visits: 1,
            ops_per_s: exact(100.0),
            throughput_bytes_per_s: exact(409_600.0),
            response_time_s: SheetTimes::default(),
            warnings: vec![],
        }];
        let from = |(hosts, ops): (u32, f64)| Estimate {
            ops_per_s: Interval::exact(ops),
            ..crate::family::tests::estimate(datasheet::from_hosts(&workload, hosts), ops * 4096.0)
        };
        let estimates = [(2, 150.0), (4, 160.0)].map(from);
        let found = lines(&[2, 4], &sheet, &estimates);
        assert_eq!(
            sentence(&found[0], "host"),
            "rand read 4 KiB, QD 32: 100 IOPS from one host, 150 from 2 (× 1.50), 160 from 4 (× 1.60)"
        );
        let chart = chart_of(found, "host");
        let marks: Vec<(f64, f64)> =
            chart.series[0].marks.iter().map(|m| (m.x, m.y.mean)).collect();
        assert_eq!(marks, [(1.0, 1.0), (2.0, 1.5), (4.0, 1.6)]);
        assert!(lines(&[2, 4], &sheet, &[]).is_empty(), "no more hosts, no graph");
    }
}
