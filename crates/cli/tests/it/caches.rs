//! `ioscape trace caches`: how much memory a traced program needs.

use std::fs::File;

use ioscape_trace::{Event, FileEntry, FileKind, Layer, Names, Op, Sink, StoreWriter, TraceInfo};

use crate::workdir::Workdir;

const PAGES: u64 = 2000;
const ROUNDS: u64 = 5;

/// A program that reads a file of 2,000 pages from start to end, five times.
fn a_loop(work: &Workdir, name: &str, layer: Layer) {
    let info = TraceInfo { layer, ..TraceInfo::default() };
    let file = File::create(work.path(name)).unwrap();
    let mut writer = StoreWriter::new(file, Names::Hashed, &info).unwrap();
    let entry = FileEntry {
        id: 1,
        kind: FileKind::Regular,
        first_bytes: PAGES * 4096,
        last_bytes: PAGES * 4096,
        ..FileEntry::default()
    };
    writer.file(entry).unwrap();
    for i in 0..PAGES * ROUNDS {
        let place = Event {
            handle: 1,
            file: 1,
            offset: i % PAGES * 4096,
            length: 4096,
            ..Event::new(i * 1000, Op::Read)
        };
        let event = Event { stream: 1, duration_ns: Some(500), ..place };
        writer.event(&event).unwrap();
    }
    writer.close(&info).unwrap();
}

#[test]
fn a_loop_needs_as_much_memory_as_its_file_and_gains_nothing_from_less() {
    let work = Workdir::new();
    a_loop(&work, "loop.trace", Layer::Syscall);
    for policy in ["page-cache", "lru", "fifo"] {
        let command = ["trace", "caches", "loop.trace", "--memory", "4MiB,16MiB", "--json"];
        let json = work.json(&[&command[..], &["--policy", policy]].concat());
        assert_eq!(json["pages"], PAGES);
        assert_eq!(json["gain_90_bytes"], PAGES * 4096);
        let read = |i: usize| json["simulated"][i]["pages_read"].as_u64().unwrap();
        assert!(read(0) >= PAGES * ROUNDS, "{json}");
        assert_eq!(read(1), PAGES, "{json}");
        assert_eq!(json["simulated"][0]["memory_bytes"], 4 << 20);
        assert_eq!(json["simulated"][0]["policy"], policy);
    }
    let text = work.stdout(&["trace", "caches", "loop.trace"]);
    assert!(text.contains("90 % of the gain is had with 7.81 MiB"), "{text}");
}

#[test]
fn requests_of_a_device_are_not_put_through_the_page_cache_once_more() {
    let work = Workdir::new();
    a_loop(&work, "blocks.trace", Layer::Block);
    let refusal = work.refusal(&["trace", "caches", "blocks.trace"]);
    assert!(refusal.contains("--policy lru"), "{refusal}");
    work.json(&["trace", "caches", "blocks.trace", "--policy", "lru", "--json"]);
}
