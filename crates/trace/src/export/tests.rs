//! What leaves is what is there.

use std::io::Cursor;

use bytes::Bytes;
use ioscape_model::app::{App, Five, SizeCount, SyncKind};

use super::*;
use crate::{Event, FileEntry, FileKind, Names, Op, Sink, Store, StoreWriter, TraceInfo};

fn event(op: Op, start_ns: u64, offset: u64, length: u64) -> Event {
    let place = Event { stream: 1, handle: 1, file: 1, ..Event::new(start_ns, op) };
    Event { duration_ns: Some(10), offset, length, ..place }
}

fn store(events: &[Event]) -> Store<Bytes> {
    let mut writer = StoreWriter::new(Vec::new(), Names::Hashed, &TraceInfo::default()).unwrap();
    writer.file(FileEntry { id: 1, ..FileEntry::default() }).unwrap();
    writer.file(FileEntry { id: 2, kind: FileKind::Other, ..FileEntry::default() }).unwrap();
    for event in events {
        writer.event(event).unwrap();
    }
    Store::open(Bytes::from(writer.close(&TraceInfo::default()).unwrap())).unwrap()
}

#[test]
fn a_table_has_a_line_per_event() {
    let mut out = Vec::new();
    let events = [event(Op::Write, 5, 4096, 100), Event { error: -2, ..event(Op::Open, 9, 0, 0) }];
    assert_eq!(csv(&store(&events), &mut out).unwrap(), 2);
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<&str> = text.lines().skip(1).collect();
    assert_eq!(lines, ["5,10,WRITE,1,1,1,4096,100,,0,0,,0", "9,10,OPEN,1,1,1,0,0,,-2,0,,0"]);
}

#[test]
fn an_oracle_knows_the_next_touch_of_every_page() {
    let pages = [0_u64, 1, 0, 2, 1, 0];
    let mut events: Vec<Event> =
        (0..).zip(pages).map(|(at, page)| event(Op::Read, at, page * 4096, 4096)).collect();
    events.push(Event { file: 2, ..event(Op::Read, 99, 0, 4096) });
    let mut out = Cursor::new(Vec::new());
    let counts = oracle(&store(&events), &mut out).unwrap();
    assert_eq!(counts, OracleCounts { requests: 6, objects: 3 });
    let next: Vec<i64> = out
        .into_inner()
        .chunks(24)
        .map(|record| i64::from_le_bytes(record[16..24].try_into().unwrap()))
        .collect();
    assert_eq!(next, [2, 4, 5, -1, -1, -1]);
}

#[test]
fn a_log_for_fio_holds_calls_and_waits() {
    let events = [
        event(Op::Write, 0, 0, 2300),
        event(Op::Dsync, 50_000, 0, 0),
        event(Op::Read, 2_000_000, 4096, 512),
        Event { file: 2, ..event(Op::Read, 3_000_000, 0, 7) },
    ];
    let mut out = Vec::new();
    assert_eq!(iolog(&store(&events), &mut out).unwrap(), 3);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "fio version 2 iolog\nfile-1 add\nfile-1 open\nfile-1 write 0 2300\nfile-1 datasync 0 0\n\
         file-1 wait 2000 0\nfile-1 read 4096 512\nfile-1 close\n"
    );
}

#[test]
fn a_write_ahead_log_is_a_job_of_its_size_and_syncs() {
    let mut app = App::default();
    let whole = &mut app.whole;
    whole.five = Five {
        unique_bytes: 13_803_520,
        size_mean: 2300.0,
        seq_frac: 1.0,
        process_num: 1,
        ..Five::default()
    };
    whole.requests = 6000;
    whole.bytes_written = 13_800_000;
    whole.sizes.write.top = vec![SizeCount { bytes: 2300, count: 6000 }];
    whole.sizes.write.histogram = vec![SizeCount { bytes: 2176, count: 6000 }];
    whole.syncs.count = 6000;
    whole.syncs.every = 1;
    whole.syncs.by_kind.insert("grown".to_owned(), SyncKind { count: 6000, ..SyncKind::default() });
    let job = fio_job(&app);
    for line in [
        "[phase-1]",
        "rw=write",
        "bs=2300",
        "fdatasync=1",
        "io_size=13800000",
        "create_on_open=1",
        "unlink=1",
    ] {
        assert!(job.text.lines().any(|l| l == line), "{line} is not in\n{}", job.text);
    }
    assert!(!job.keeps.is_empty() && !job.loses.is_empty());
}

#[test]
fn percentages_of_sizes_add_up() {
    let mut app = App::default();
    let whole = &mut app.whole;
    whole.five = Five {
        unique_bytes: 1 << 30,
        size_mean: 9000.0,
        read_frac: 0.5,
        seq_frac: 0.3,
        process_num: 2,
    };
    whole.requests = 1000;
    whole.sizes.read.top = vec![
        SizeCount { bytes: 4096, count: 333 },
        SizeCount { bytes: 8192, count: 334 },
        SizeCount { bytes: 65536, count: 333 },
    ];
    whole.sizes.read.histogram = whole.sizes.read.top.clone();
    let job = fio_job(&app);
    let line = job.text.lines().find(|line| line.starts_with("bssplit=")).unwrap();
    let reads = line.trim_start_matches("bssplit=").split(',').next().unwrap();
    let sum: u32 =
        reads.split(':').map(|part| part.split_once('/').unwrap().1.parse::<u32>().unwrap()).sum();
    assert_eq!(sum, 100, "{line}");
}
