//! Block and object traces: steps of requests, binary records.

use ioscape_trace::import::{Error, Format};
use ioscape_trace::{Collected, FileKind, Flags, Layer, Op};

use crate::collected::{clean, fixture, read};

/// `(µs, operation, offset, length, duration µs, errno)`.
fn rows(trace: &Collected) -> Vec<(u64, Op, u64, u64, Option<u64>, i16)> {
    let us = |ns: u64| ns / 1000;
    let events = trace.events.iter();
    events
        .map(|e| (us(e.start_ns), e.op, e.offset, e.length, e.duration_ns.map(us), e.error))
        .collect()
}

#[test]
fn blkparse_counts_each_request_once() {
    let trace = clean(&Format::Blkparse, "blkparse.txt");
    let expected = [
        (0, Op::Write, 223_490 * 512, 4096, Some(300), 0),
        (4, Op::Read, 512_000, 131_072, Some(400), 0),
        (984, Op::Flush, 0, 0, Some(1000), 0),
        (2984, Op::Discard, 1 << 20, 32768, Some(500), 5),
    ];
    assert_eq!(rows(&trace), expected);
    assert_eq!((trace.files.len(), trace.files[&1].device), (2, (8, 1)));
    assert_eq!(trace.files[&2].kind, FileKind::Block);
    assert_eq!(trace.streams.len(), 2, "who was running at completions does not count");
}

#[test]
fn perf_script_finds_requests_whatever_commands_are_called() {
    let trace = clean(&Format::PerfBlock, "perf-block.txt");
    let expected = [
        (0, Op::Write, 1 << 20, 4096, Some(500), 0),
        (50, Op::Read, 2 << 20, 131_072, Some(1000), 5),
        (1800, Op::Flush, 0, 0, Some(1000), 0),
    ];
    assert_eq!(rows(&trace), expected);
    let info = trace.info.unwrap();
    assert_eq!(info.layer, Layer::Block);
    assert!(info.limits[0].contains("page cache"), "{:?}", info.limits);
}

#[test]
fn perf_script_of_a_real_device_is_read() {
    let trace = clean(&Format::PerfBlock, "perf-block-real.txt");
    let found: Vec<_> = rows(&trace).iter().map(|row| (row.1, row.3, row.4)).collect();
    let expected = [
        (Op::Write, 65536, Some(225)),
        (Op::Write, 65536, Some(201)),
        (Op::Write, 65536, Some(102)),
        (Op::Write, 65536, Some(87)),
        (Op::Write, 4096, Some(70)),
        (Op::Write, 4096, Some(102)),
        (Op::Flush, 0, Some(84)),
    ];
    assert_eq!(found, expected);
}

#[derive(Clone, Copy)]
enum Bytes {
    Little,
    Big,
}

/// Category bits of blktrace.
const READ: u64 = 1;
const WRITE: u64 = 2;
const FLUSH: u64 = 4;
const NOTIFY: u64 = 1 << 10;

struct Record {
    ns: u64,
    sector: u64,
    bytes: u32,
    act: u64,
    category: u64,
    error: i16,
    follows: u16,
}

const RECORD: Record =
    Record { ns: 0, sector: 0, bytes: 4096, act: 7, category: READ, error: 0, follows: 0 };

impl Record {
    fn encoded(&self, order: Bytes, is_wide: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let mut put = |value: u64, bytes: usize| match order {
            Bytes::Little => out.extend(&value.to_le_bytes()[..bytes]),
            Bytes::Big => out.extend(&value.to_be_bytes()[8 - bytes..]),
        };
        let action = self.act | self.category << 16;
        put(if is_wide { 0x6561_7408 } else { 0x6561_7407 }, 4);
        put(1, 4);
        put(self.ns, 8);
        put(self.sector, 8);
        put(u64::from(self.bytes), 4);
        if is_wide {
            put(77, 4);
            put(action, 8);
        } else {
            put(action, 4);
            put(77, 4);
        }
        put(8 << 20 | 16, 4);
        put(0, 4);
        put(u64::from(self.error.cast_unsigned()), 2);
        put(u64::from(self.follows), 2);
        if is_wide {
            put(0, 8);
            put(0, 4);
        }
        out.extend(vec![0x65; usize::from(self.follows)]);
        out
    }
}

fn processors(order: Bytes, is_wide: bool) -> [Vec<u8>; 2] {
    let one = [
        Record { act: 0, category: NOTIFY, follows: 8, ..RECORD },
        Record { ns: 1000, act: 1, sector: 8, ..RECORD },
        Record { ns: 2000, sector: 8, ..RECORD },
        Record { ns: 5000, sector: 64, category: WRITE, bytes: 512, follows: 3, ..RECORD },
        Record { ns: 9000, act: 8, sector: 0, category: FLUSH, bytes: 0, ..RECORD },
    ];
    let two = [
        Record { ns: 4000, sector: 0, category: FLUSH, bytes: 0, ..RECORD },
        Record { ns: 4500, act: 8, sector: 8, ..RECORD },
        Record { ns: 7000, act: 8, sector: 64, category: WRITE, error: -5, ..RECORD },
    ];
    let file = |records: &[Record]| {
        records.iter().flat_map(|record| record.encoded(order, is_wide)).collect::<Vec<u8>>()
    };
    [file(&one), file(&two)]
}

#[test]
fn blktrace_is_read_in_both_widths_and_orders_of_bytes() {
    let expected = [
        (0, Op::Read, 4096, 4096, Some(2), 0),
        (2, Op::Flush, 0, 0, Some(5), 0),
        (3, Op::Write, 32768, 512, Some(2), 5),
    ];
    for (order, is_wide) in [(Bytes::Little, false), (Bytes::Big, false), (Bytes::Little, true)] {
        let [one, two] = processors(order, is_wide);
        let (trace, summary) = read(&Format::Blktrace, &[&one, &two]).unwrap();
        assert_eq!(rows(&trace), expected);
        assert_eq!((summary.malformed, trace.files[&1].device), (0, (8, 16)));
    }
}

#[test]
fn a_binary_file_gives_what_blkparse_makes_of_it() {
    let binary = clean(&Format::Blktrace, "hand.blktrace.0");
    let text = clean(&Format::Blkparse, "blkparse-hand.txt");
    assert_eq!(rows(&binary), rows(&text));
    assert_eq!(binary.events.len(), 4);
    assert_eq!(binary.events[2].op, Op::Flush);
}

#[test]
fn blktrace_goes_on_behind_a_broken_record() {
    let records: Vec<u8> = (0..100)
        .flat_map(|n| {
            Record { ns: n * 1000, sector: n * 8, ..RECORD }.encoded(Bytes::Little, false)
        })
        .collect();
    let broken = [&records[..48 * 50], b"rubbish of any length", &records[48 * 50..]].concat();
    let (trace, summary) = read(&Format::Blktrace, &[&broken]).unwrap();
    assert_eq!((trace.events.len(), summary.malformed, summary.lines), (100, 1, 101));
}

fn vscsi(version: u16, commands: &[(u16, u32, u64, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (serial, &(command, length, block, us)) in (0_u32..).zip(commands) {
        let ver = version << 8;
        if version == 1 {
            out.extend([serial, length, 1].iter().flat_map(|number| number.to_le_bytes()));
            out.extend([command, ver].iter().flat_map(|number| number.to_le_bytes()));
        } else {
            out.extend([command, ver].iter().flat_map(|number| number.to_le_bytes()));
            out.extend([serial, length, 1].iter().flat_map(|number| number.to_le_bytes()));
        }
        out.extend([block, us].iter().flat_map(|number| number.to_le_bytes()));
        if version == 2 {
            out.extend(250_u64.to_le_bytes());
        }
    }
    out
}

#[test]
fn vscsi_has_two_versions() {
    let commands =
        [(0x28, 4096, 8, 1000), (0x2a, 512, 1, 1100), (0x12, 36, 0, 1150), (0x35, 0, 0, 1200)];
    for (version, duration) in [(1, None), (2, Some(250))] {
        let (trace, summary) = read(&Format::Vscsi, &[&vscsi(version, &commands)]).unwrap();
        let expected = [
            (0, Op::Read, 4096, 4096, duration, 0),
            (100, Op::Write, 512, 512, duration, 0),
            (200, Op::Flush, 0, 0, duration, 0),
        ];
        assert_eq!(rows(&trace), expected);
        assert_eq!((summary.passed_over, summary.malformed), (1, 0));
    }
}

#[test]
fn oracle_general_has_an_object_in_each_record() {
    let record = |s: u32, object: u64, size: u32, next: i64| {
        let parts: [&[u8]; 4] =
            [&s.to_le_bytes(), &object.to_le_bytes(), &size.to_le_bytes(), &next.to_le_bytes()];
        parts.concat()
    };
    let big = 0x1234_5678_9abc_def0;
    let objects = [record(7, 5, 100, 2), record(7, big, 4000, -1), record(9, 5, 100, -1)].concat();
    let (trace, summary) = read(&Format::Oracle, &[&objects]).unwrap();
    let found: Vec<_> =
        trace.events.iter().map(|e| (e.start_ns, e.op, e.other, e.length)).collect();
    let expected =
        [(0, Op::Get, 5, 100), (0, Op::Get, big, 4000), (2_000_000_000, Op::Get, 5, 100)];
    assert_eq!(found, expected);
    assert_eq!(trace.events[0].file, trace.events[2].file);
    assert_ne!(trace.events[0].file, trace.events[1].file);
    assert_eq!(summary.info.layer, Layer::KeyValue);
    let text = fixture("msr.csv");
    assert!(matches!(read(&Format::Oracle, &[&text]), Err(Error::OtherFormat { .. })));
}

#[test]
fn writes_that_are_waited_for_are_marked() {
    let line = |rwbs: &str| format!("8,0 1 1 0.5 7 Q {rwbs} 8 + 8 [x]\n");
    let text = [line("WS"), line("W"), line("FWS"), line("RS")].concat();
    let (trace, _) = read(&Format::Blkparse, &[text.as_bytes()]).unwrap();
    let found: Vec<_> = trace.events.iter().map(|e| (e.op, e.flags.has(Flags::SYNC))).collect();
    let expected = [
        (Op::Write, true),
        (Op::Write, false),
        (Op::Flush, false),
        (Op::Write, true),
        (Op::Read, false),
    ];
    assert_eq!(found, expected);
}
