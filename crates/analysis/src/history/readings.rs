//! The figures of a record that are followed: those that mean one thing in every run.

use ioscape_model::named::name_of;
use ioscape_model::{
    Better, Border, Estimate, Interval, Reading, Record, Region, Score, SheetFigures, word,
};

const RATE: &str = "bytes/s";

/// Figures that can be compared with those of earlier and later records: lines of the data sheet
/// (throughput in bytes/s, 99th percentile of the response time in seconds), throughput of
/// workloads that have a name or were asked for, borders in bytes, regions at their focal points,
/// scores of classic benchmarks. Each name stands once.
pub fn readings(record: &Record) -> Vec<Reading> {
    let sheet = record.map.iter().flat_map(|map| &map.datasheet);
    let mut readings: Vec<Reading> = sheet.flat_map(sheet_line).collect();
    for estimate in &record.estimates {
        let reading = workload(record, estimate);
        // A line of the data sheet is pooled over its own visits and is here already.
        readings.extend(reading.filter(|new| readings.iter().all(|known| known.name != new.name)));
    }
    for (index, border) in record.borders.iter().enumerate() {
        let namesakes = record.borders[..index].iter().filter(|b| b.curve == border.curve).count();
        readings.push(capacity(border, namesakes));
    }
    readings.extend(record.regions.iter().filter_map(|region| focal(record, region)));
    readings.extend(record.suite.scores.iter().filter(|score| score.target == 0).map(score_of));
    readings
}

/// Two figures of a line. Its requests per second are its throughput over a fixed size, and its
/// mean response time is their inverse: they would tell the same story again.
fn sheet_line(line: &SheetFigures) -> [Reading; 2] {
    let p99 = Reading {
        name: format!("{} p99", line.name),
        unit: "s".to_owned(),
        better: Better::Lower,
        value: line.response_time_s.p99.into(),
    };
    [rate(line.name.clone(), line.throughput_bytes_per_s.into()), p99]
}

fn workload(record: &Record, estimate: &Estimate) -> Option<Reading> {
    let work = &estimate.workload;
    let is_asked = !record.header.method.is_map() || record.header.asked.contains(work);
    let name = match name_of(work) {
        Some(name) => name.to_owned(),
        None if is_asked => work.literal(),
        None => return None,
    };
    Some(rate(name, estimate.throughput_bytes_per_s))
}

fn rate(name: String, value: Interval) -> Reading {
    Reading { name, unit: RATE.to_owned(), better: Better::Higher, value }
}

/// `read border`, and from the second on that curve `read border 2`.
fn capacity(border: &Border, namesakes: usize) -> Reading {
    let at = border.unique_bytes;
    let curve = word(border.curve);
    let name = match namesakes {
        0 => format!("{curve} border"),
        _ => format!("{curve} border {}", namesakes + 1),
    };
    let value = Interval { mean: at.capacity, low: at.low, high: at.high };
    Reading { name, unit: "bytes".to_owned(), better: Better::Higher, value }
}

fn focal(record: &Record, region: &Region) -> Option<Reading> {
    let estimate = record.estimates.iter().find(|e| e.workload == region.focal)?;
    Some(rate(region.noun(), estimate.throughput_bytes_per_s))
}

fn score_of(score: &Score) -> Reading {
    Reading {
        name: format!("{}: {}", score.benchmark, score.name),
        unit: score.unit.clone(),
        better: score.better,
        value: score.interval.unwrap_or(Interval::exact(score.mean)),
    }
}
