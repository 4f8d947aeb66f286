//! The data sheet: nine workloads whose figures everybody asks for first, each with a name.
//!
//! All but the last go around the page cache, over a span that no cache of the machine answers for;
//! requests are all of one size, as data sheets of drives have them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{GIB, KIB, MIB};
use crate::{Access, Figure, SizeDist, Warning, Workload};

/// The span where none was said, bytes: `measure -w read_4k_32`.
pub const SPAN_USUAL_BYTES: u64 = GIB;
/// Data of the line that is served from memory, bytes: less than any machine's page cache.
const CACHED_BYTES: u64 = 64 * MIB;
/// Data of a direct line are at least so many requests.
const SPAN_REQUESTS_MIN: u64 = 64;

/// Name, `size_mean`, `read_frac`, `seq_frac`, `depth`, `fsync_every`.
type Row = (&'static str, u64, f64, f64, u32, u32);

const DIRECT: [Row; 8] = [
    ("read_4k_1", 4 * KIB, 1.0, 0.0, 1, 0),
    ("read_4k_32", 4 * KIB, 1.0, 0.0, 32, 0),
    ("write_4k_1", 4 * KIB, 0.0, 0.0, 1, 0),
    ("write_4k_32", 4 * KIB, 0.0, 0.0, 32, 0),
    ("read_1m_8", MIB, 1.0, 1.0, 8, 0),
    ("write_1m_8", MIB, 0.0, 1.0, 8, 0),
    ("mixed_8k_16", 8 * KIB, 0.7, 0.0, 16, 0),
    ("sync_4k", 4 * KIB, 0.0, 0.0, 1, 1),
];
const CACHED: Row = ("cached_read_4k", 4 * KIB, 1.0, 0.0, 1, 0);

/// A line of the data sheet, before it is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SheetLine {
    /// `read_4k_1`.
    pub name: String,
    /// Its workload: the literal is what `measure -w` takes.
    pub workload: Workload,
}

/// A line of the data sheet with its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SheetFigures {
    /// `read_4k_1`.
    pub name: String,
    /// Its workload.
    pub workload: Workload,
    /// How many visits it rests on.
    pub visits: u32,
    /// Requests per second; 95 % intervals, here and below.
    pub ops_per_s: Figure,
    /// Bytes per second.
    pub throughput_bytes_per_s: Figure,
    /// Response times, closed loop.
    pub response_time_s: SheetTimes,
    /// What is doubtful about it.
    pub warnings: Vec<Warning>,
}

/// Response times of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SheetTimes {
    /// Arithmetic mean.
    pub mean: Figure,
    /// Median.
    pub p50: Figure,
    /// 99th percentile.
    pub p99: Figure,
    /// 99.9th percentile.
    pub p999: Figure,
}

/// The lines that go around the page cache, over `span_bytes`, and the one that does not.
pub fn lines(span_bytes: u64) -> Vec<SheetLine> {
    let names = DIRECT.iter().chain([&CACHED]).map(|row| row.0);
    let line =
        |name: &str| Some(SheetLine { name: name.to_owned(), workload: over(name, span_bytes)? });
    names.filter_map(line).collect()
}

/// The workload of that name over the usual span.
pub fn named(name: &str) -> Option<Workload> {
    over(name, SPAN_USUAL_BYTES)
}

/// The line whose latency is also measured at rates.
pub const RATE_LINE: &str = "read_4k_32";

/// A line at a rate, requests per second, rounded to three digits.
#[must_use]
pub fn at_rate(line: &Workload, per_s: f64) -> Workload {
    let places = 2.0 - per_s.log10().floor();
    let (up, down) = (10_f64.powf(places.max(0.0)), 10_f64.powf((-places).max(0.0)));
    Workload { rate: (per_s * up / down).round() * down / up, ..line.clone() }
}

/// All names, in their order.
pub fn names() -> impl Iterator<Item = &'static str> {
    DIRECT.iter().chain([&CACHED]).map(|row| row.0)
}

/// Lines that are also measured from several hosts, each with one process.
const OVER_HOSTS: [&str; 4] = ["read_4k_32", "write_4k_32", "read_1m_8", "write_1m_8"];

/// Lines of a data sheet that are also measured from several hosts.
pub fn over_hosts(lines: &[SheetLine]) -> impl Iterator<Item = &SheetLine> {
    lines.iter().filter(|line| OVER_HOSTS.contains(&line.name.as_str()))
}

/// A line of a data sheet from so many hosts: one process on each, all together over as much data.
pub fn from_hosts(line: &Workload, hosts: u32) -> Workload {
    Workload { process_num: hosts, ..line.clone() }
}

fn over(name: &str, span_bytes: u64) -> Option<Workload> {
    let row = DIRECT.iter().chain([&CACHED]).find(|row| row.0 == name)?;
    let (_, size_mean, read_frac, seq_frac, depth, fsync_every) = *row;
    let is_cached = name == CACHED.0;
    let span_bytes = span_bytes.max(SPAN_REQUESTS_MIN * size_mean);
    Some(Workload {
        unique_bytes: if is_cached { CACHED_BYTES } else { span_bytes },
        size_mean,
        size_dist: SizeDist::Fixed,
        read_frac,
        seq_frac,
        depth,
        fsync_every,
        access: if is_cached { Access::Buffered } else { Access::Direct },
        ..Workload::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits_and_nothing_behind_them() {
        let line = named(RATE_LINE).unwrap();
        for (per_s, shown) in [(48_523.7, "48500"), (573.46, "573"), (30.127, "30.1"), (2.0, "2")] {
            assert_eq!(at_rate(&line, per_s).rate.to_string(), shown);
        }
        assert!(at_rate(&line, 0.0).check().is_err(), "no rate is none");
    }

    #[test]
    fn every_line_can_be_measured_by_its_literal_and_by_its_name() {
        for span_bytes in [MIB, SPAN_USUAL_BYTES, 1 << 40] {
            let lines = lines(span_bytes);
            assert_eq!(lines.len(), 9);
            for SheetLine { name, workload } in lines {
                workload.check().unwrap();
                assert_eq!(Workload::parse(&workload.literal()).unwrap(), workload, "{name}");
                assert!(named(&name).is_some(), "{name}");
            }
        }
        assert_eq!(named("read_4k_64"), None);
    }
}
