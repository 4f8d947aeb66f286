//! What an application does, from a trace of known events to words, a model and other tools.

use std::fs::File;

use ioscape_trace::{Event, FileEntry, Names, Op, Sink, StoreWriter, StreamEntry, TraceInfo};
use serde_json::Value;

use crate::workdir::Workdir;

pub(crate) const RECORDS: u64 = 3000;
const RECORD_BYTES: u64 = 2300;

/// A write-ahead log: records that are appended, each made durable.
pub(crate) fn log() -> Workdir {
    let work = Workdir::new();
    let file = File::create(work.path("log.trace")).unwrap();
    let mut info = TraceInfo { recorder: "test".to_owned(), ..TraceInfo::default() };
    let mut trace = StoreWriter::new(file, Names::Hashed, &info).unwrap();
    let path = Some("/home/canary/canary.wal".to_owned());
    trace.file(FileEntry { id: 1, path, ..FileEntry::default() }).unwrap();
    trace.stream(StreamEntry { id: 1, process: 1, ..StreamEntry::default() }).unwrap();
    let mut now = 0;
    for number in 0..RECORDS {
        let places = [(Op::Write, number * RECORD_BYTES, RECORD_BYTES), (Op::Dsync, 0, 0)];
        for (op, offset, length) in places {
            let duration = if op == Op::Write { 9_000 } else { 900_000 + number % 7 * 50_000 };
            let place = Event { handle: 1, file: 1, offset, length, ..Event::new(now, op) };
            let event =
                Event { stream: 1, duration_ns: Some(duration), cpu_gap_ns: Some(2_000), ..place };
            trace.event(&event).unwrap();
            now += duration + 2_000;
        }
    }
    info.elapsed_s = now as f64 / 1e9;
    trace.finish(&info).unwrap();
    work
}

#[test]
fn a_trace_is_described_modelled_and_exported() {
    let work = log();
    let shown = work.json(&["trace", "show", "log.trace", "--json"]);
    assert_eq!(shown["five"]["size_mean"], 2300.0);
    assert_eq!((&shown["five"]["read_frac"], &shown["arrivals"]), (&0.0.into(), &"closed".into()));
    assert_eq!((&shown["syncs"]["count"], &shown["syncs"]["every"]), (&RECORDS.into(), &1.into()));
    assert_eq!(shown["bytes_written"], RECORDS * RECORD_BYTES);
    let literal = shown["workload"].as_str().unwrap();
    assert!(ioscape_model::Workload::parse(literal).is_ok(), "{literal}");

    let text = work.stdout(&["trace", "show", "log.trace"]);
    assert!(text.starts_with("The five parameters") && text.contains(literal), "{text}");

    work.stdout(&["trace", "model", "log.trace", "-o", "app.json"]);
    let mut again: Value = work.json(&["trace", "show", "app.json", "--json"]);
    // A model answers for caches, too; of a trace `trace caches` works that out.
    assert!(again.as_object_mut().unwrap().remove("caches").is_some());
    assert_eq!(again, shown);
    let mixed = work.json(&["trace", "model", "app.json", "log.trace"]);
    assert_eq!(mixed["five"]["process_num"], 2);

    let job = work.stdout(&["trace", "export", "app.json", "--format", "fio"]);
    assert!(job.contains("\nbs=2300\n") && job.contains("\nfdatasync=1\n"), "{job}");
    let graded =
        work.json(&["trace", "export", "log.trace", "--format", "fio", "-o", "log.fio", "--json"]);
    assert!(!graded["loses"].as_array().unwrap().is_empty());
    let table = work.stdout(&["trace", "export", "log.trace", "--format", "csv"]);
    assert_eq!(table.lines().count() as u64, 1 + 2 * RECORDS);
    work.stdout(&["trace", "export", "log.trace", "--format", "oracle", "-o", "log.oracle"]);
    let touches = std::fs::metadata(work.path("log.oracle")).unwrap().len() / 24;
    assert!((RECORDS..2 * RECORDS).contains(&touches), "{touches}");
    for made in ["app.json", "log.fio", "log.trace"] {
        let bytes = std::fs::read(work.path(made)).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"canary"), "{made}");
    }
}

#[test]
fn what_is_no_trace_is_wrong_usage() {
    let work = Workdir::new();
    std::fs::write(work.path("x"), "hello").unwrap();
    std::fs::write(work.path("y"), "PAR1hello").unwrap();
    for (arguments, part) in [
        (&["trace", "show", "x"][..], "no application model"),
        (&["trace", "show", "y"], "no trace of ioscape"),
        (&["trace", "show", "z"], "name a trace, a model, or one of"),
        (&["trace", "export", "x", "--format", "csv"], "no application model"),
    ] {
        let output = work.output(arguments);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(part), "{arguments:?}: {stderr}");
    }
}
