//! Text of `darshan-parser`: counters of each file and rank. There are no single calls in it; the
//! events that it gives add up to its counters.

mod series;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use super::ledger::Ledger;
use super::lines::Lines;
use super::scan;
use super::source::{Item, Source};
use crate::event::{Event, Op};
use series::Series;

const S: f64 = 1e9;
/// Ranks that calls on a shared file are dealt out to.
const RANKS_MAX: u64 = 1 << 16;

/// A file that the parser wrote.
pub(crate) struct Darshan<'a> {
    name: String,
    lines: Lines<'a>,
    ranks: u64,
    /// All calls; by when the next of each comes.
    series: Vec<(Series, Rank)>,
    next: BinaryHeap<Reverse<(u64, usize, u64)>>,
    is_read: bool,
}

/// Whose calls they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rank {
    One(u64),
    /// A file of all ranks: they take turns.
    Shared,
}

/// Counters of one file and rank; those that Darshan did not see are −1 there and 0 here.
#[derive(Default)]
struct Record {
    key: Vec<u8>,
    rank: i64,
    path: Vec<u8>,
    opens: u64,
    stats: u64,
    syncs: u64,
    data_syncs: u64,
    open_s: f64,
    close_s: f64,
    read: Direction,
    written: Direction,
}

#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    calls: u64,
    bytes: u64,
    consecutive: u64,
    last_byte: u64,
    start_s: f64,
    end_s: f64,
    busy_s: f64,
}

impl<'a> Darshan<'a> {
    pub(crate) fn new(name: String, lines: Lines<'a>) -> Self {
        let (series, next) = (Vec::new(), BinaryHeap::new());
        Self { name, lines, ranks: 1, series, next, is_read: false }
    }

    fn read(&mut self, ledger: &mut Ledger) -> io::Result<()> {
        let mut record = Record::default();
        loop {
            let number = self.lines.number + 1;
            let Some(line) = self.lines.line()? else { break };
            if let Some(remark) = line.strip_prefix(b"#") {
                let ranks = remark.trim_ascii().strip_prefix(b"nprocs:").map(<[u8]>::trim_ascii);
                if let Some(ranks) = ranks.and_then(scan::decimal) {
                    self.ranks = ranks.clamp(1, RANKS_MAX);
                }
                continue;
            }
            if line.is_empty() {
                continue;
            }
            ledger.tally.lines += 1;
            let fields: Vec<&[u8]> = line.split(|byte| *byte == b'\t').take(6).collect();
            let Some(counter) = Counter::from_fields(&fields) else {
                ledger.tally.bad(&self.name, number, line);
                continue;
            };
            if counter.module != b"POSIX" && counter.module != b"STDIO" {
                ledger.tally.passed_over += 1;
                continue;
            }
            if record.key != counter.key || record.rank != counter.rank {
                give(&mut self.series, &record, ledger);
                let (key, path) = (counter.key.to_vec(), counter.path.to_vec());
                record = Record { key, rank: counter.rank, path, ..Record::default() };
            }
            record.set(counter.name, counter.value);
        }
        give(&mut self.series, &record, ledger);
        let firsts = self.series.iter().enumerate();
        self.next = firsts.map(|(at, (series, _))| Reverse((series.time_ns(0), at, 0))).collect();
        Ok(())
    }
}

impl Source for Darshan<'_> {
    fn next(&mut self, ledger: &mut Ledger) -> io::Result<Option<Item>> {
        if !self.is_read {
            self.is_read = true;
            self.read(ledger)?;
        }
        let Some(Reverse((time_ns, at, index))) = self.next.pop() else { return Ok(None) };
        let Some((series, rank)) = self.series.get(at) else { return Ok(None) };
        if index + 1 < series.calls {
            self.next.push(Reverse((series.time_ns(index + 1), at, index + 1)));
        }
        let rank = match rank {
            Rank::One(rank) => *rank,
            Rank::Shared => index % self.ranks,
        };
        let stream = ledger.streams.numbered(rank, time_ns);
        let handle = series.file;
        Ok(Some(Event { stream, handle, ..series.event(index) }.into()))
    }
}

/// A line: module, rank, record, counter, value, path, and more.
struct Counter<'a> {
    module: &'a [u8],
    rank: i64,
    /// Module and record, as they stand in the line.
    key: &'a [u8],
    name: &'a [u8],
    value: f64,
    path: &'a [u8],
}

impl<'a> Counter<'a> {
    fn from_fields(fields: &[&'a [u8]]) -> Option<Self> {
        let [module, rank, key, name, value, path] = fields else { return None };
        let value = std::str::from_utf8(value).ok()?.parse().ok()?;
        Some(Self { module, rank: scan::number(rank)?, key, name, value, path })
    }
}

impl Record {
    fn set(&mut self, name: &[u8], value: f64) {
        let name = name.strip_prefix(b"POSIX_").or_else(|| name.strip_prefix(b"STDIO_"));
        let (Some(name), true) = (name, value.is_finite() && value > 0.0) else { return };
        let count = value as u64;
        match name {
            b"OPENS" => self.opens = count,
            b"STATS" => self.stats = count,
            b"FSYNCS" => self.syncs = count,
            b"FDSYNCS" => self.data_syncs = count,
            b"READS" => self.read.calls = count,
            b"WRITES" => self.written.calls = count,
            b"BYTES_READ" => self.read.bytes = count,
            b"BYTES_WRITTEN" => self.written.bytes = count,
            b"CONSEC_READS" => self.read.consecutive = count,
            b"CONSEC_WRITES" => self.written.consecutive = count,
            b"MAX_BYTE_READ" => self.read.last_byte = count,
            b"MAX_BYTE_WRITTEN" => self.written.last_byte = count,
            b"F_OPEN_START_TIMESTAMP" => self.open_s = value,
            b"F_CLOSE_END_TIMESTAMP" => self.close_s = value,
            b"F_READ_START_TIMESTAMP" => self.read.start_s = value,
            b"F_READ_END_TIMESTAMP" => self.read.end_s = value,
            b"F_WRITE_START_TIMESTAMP" => self.written.start_s = value,
            b"F_WRITE_END_TIMESTAMP" => self.written.end_s = value,
            b"F_READ_TIME" => self.read.busy_s = value,
            b"F_WRITE_TIME" => self.written.busy_s = value,
            _ => {}
        }
    }
}

/// The calls of a record.
fn give(all: &mut Vec<(Series, Rank)>, record: &Record, ledger: &mut Ledger) {
    if record.key.is_empty() {
        return;
    }
    let file = ledger.files.path(&record.path);
    let rank = u64::try_from(record.rank).map_or(Rank::Shared, Rank::One);
    let ns = |time_s: f64| (time_s * S) as u64;
    let mut add = |op, calls, of: Direction| {
        let extent = if of.bytes > 0 { of.last_byte.saturating_add(1) } else { 0 };
        let busy_ns = (of.busy_s > 0.0).then(|| ns(of.busy_s));
        let (start_ns, end_ns) = (ns(of.start_s), ns(of.end_s));
        let Direction { bytes, consecutive, .. } = of;
        let series =
            Series { op, file, calls, bytes, consecutive, extent, start_ns, end_ns, busy_ns };
        if calls > 0 {
            ledger.files.reach(file, extent);
            all.push((series, rank));
        }
    };
    let life = Direction { start_s: record.open_s, end_s: record.close_s, ..Direction::default() };
    let write = record.written;
    let syncing = Direction { start_s: write.start_s, end_s: write.end_s, ..Direction::default() };
    add(Op::Open, record.opens, life);
    add(Op::Stat, record.stats, life);
    add(Op::Read, record.read.calls, record.read);
    add(Op::Write, write.calls, write);
    add(Op::Sync, record.syncs, syncing);
    add(Op::Dsync, record.data_syncs, syncing);
}
