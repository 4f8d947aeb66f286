//! `ioscape trace caches`: how much memory a traced program needs.

use std::fs::File;
use std::process::{Command, Stdio};

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
    for policy in ["page-cache", "mglru", "lru", "fifo"] {
        let command = ["trace", "caches", "loop.trace", "--memory", "4MiB,16MiB", "--json"];
        let json = work.json(&[&command[..], &["--policy", policy]].concat());
        assert_eq!(json["pages"], PAGES);
        assert_eq!(json["gain_90_bytes"], PAGES * 4096);
        let read = |i: usize| json["simulated"][i]["pages_read"].as_u64().unwrap();
        assert!(read(0) >= PAGES * ROUNDS, "{json}");
        assert_eq!(read(1), PAGES, "{json}");
        assert_eq!(json["simulated"][0]["memory_bytes"], 4 << 20);
        assert_eq!(json["simulated"][0]["policy"], policy);
        let is_doubted = json["warnings"].to_string().contains("not compared with a kernel");
        assert_eq!(is_doubted, policy == "mglru", "{json}");
    }
    let text = work.stdout(&["trace", "caches", "loop.trace"]);
    assert!(text.contains("90 % of the gain is had with 7.81 MiB"), "{text}");
    let json = work.json(&["trace", "caches", "loop.trace", "--json"]);
    let enough = json["simulated_gain_90_bytes"].as_u64().unwrap() / 4096;
    assert!((PAGES * 9 / 10..=PAGES * 11 / 10).contains(&enough), "{enough} pages");
}

#[test]
fn requests_of_a_device_are_not_put_through_the_page_cache_once_more() {
    let work = Workdir::new();
    a_loop(&work, "blocks.trace", Layer::Block);
    let refusal = work.refusal(&["trace", "caches", "blocks.trace"]);
    assert!(refusal.contains("--policy lru"), "{refusal}");
    work.json(&["trace", "caches", "blocks.trace", "--policy", "lru", "--json"]);
}

#[test]
fn a_model_answers_as_its_trace_does() {
    let work = Workdir::new();
    a_loop(&work, "loop.trace", Layer::Syscall);
    work.stdout(&["trace", "model", "loop.trace", "-o", "app.json"]);
    let ask = |of: &str| work.json(&["trace", "caches", of, "--memory", "4MiB,16MiB", "--json"]);
    let (trace, model) = (ask("loop.trace"), ask("app.json"));
    for key in ["pages", "pages_touched_by_reads", "gain_90_bytes"] {
        assert_eq!(trace[key], model[key], "{key}");
    }
    let points = |of: &serde_json::Value| of["curve"].as_array().unwrap().clone();
    assert_eq!(points(&trace).len(), points(&model).len());
    for (exact, known) in points(&trace).iter().zip(points(&model)) {
        let ratio = |point: &serde_json::Value| point["miss_ratio"].as_f64().unwrap();
        assert!((ratio(exact) - ratio(&known)).abs() < 0.01, "{exact} {known}");
    }
    let read = |of: &serde_json::Value| of["simulated"][1]["pages_read"].clone();
    assert_eq!(read(&trace), read(&model));
    for policy in ["fifo", "mglru"] {
        let refusal = work.refusal(&["trace", "caches", "app.json", "--policy", policy]);
        assert!(refusal.contains("name the trace"), "{refusal}");
    }
}

#[test]
fn two_programs_that_share_a_cache_need_room_for_both() {
    let work = Workdir::new();
    a_loop(&work, "a.trace", Layer::Syscall);
    a_loop(&work, "b.trace", Layer::Syscall);
    let command = ["trace", "caches", "a.trace", "b.trace", "--memory", "10MiB,20MiB", "--json"];
    let json = work.json(&command);
    assert_eq!(json["pages"], 2 * PAGES);
    let read = |size: usize, trace: usize| {
        json["simulated"][size]["by_trace"][trace]["pages_read"].as_u64().unwrap()
    };
    // Each alone has room enough in the smaller one.
    assert!(read(0, 0) > 2 * PAGES && read(0, 1) > 2 * PAGES, "{json}");
    assert_eq!((read(1, 0), read(1, 1)), (PAGES, PAGES));
}

#[test]
fn the_page_of_a_trace_draws_its_curve_and_replaces_nothing() {
    let work = Workdir::new();
    a_loop(&work, "loop.trace", Layer::Syscall);
    work.stdout(&["trace", "show", "loop.trace", "--report", "page.html"]);
    let page = std::fs::read_to_string(work.path("page.html")).unwrap();
    assert!(page.contains("data-chart=\"misses\"") && page.contains("The five parameters"));
    assert!(!page.contains("loop.trace"), "it names no file");
    let refusal = work.refusal(&["trace", "show", "loop.trace", "--report", "page.html"]);
    assert!(refusal.contains("page.html"), "{refusal}");
}

#[test]
fn pages_that_are_read_ahead_in_vain_count_in_the_memory_that_is_needed() {
    const FILES: u32 = 500;
    let work = Workdir::new();
    let info = TraceInfo { layer: Layer::Syscall, ..TraceInfo::default() };
    let file = File::create(work.path("heads.trace")).unwrap();
    let mut writer = StoreWriter::new(file, Names::Hashed, &info).unwrap();
    for id in 1..=FILES {
        let kind = FileKind::Regular;
        let (first_bytes, last_bytes) = (8 * 4096, 8 * 4096);
        writer
            .file(FileEntry { id, kind, first_bytes, last_bytes, ..FileEntry::default() })
            .unwrap();
    }
    for i in 0..2 * FILES {
        let id = i % FILES + 1;
        let place = Event {
            handle: i + 1,
            file: id,
            length: 4096,
            ..Event::new(u64::from(i) * 1000, Op::Read)
        };
        writer.event(&Event { stream: 1, duration_ns: Some(500), ..place }).unwrap();
    }
    writer.close(&info).unwrap();
    // One page of each file is read, four come into memory (the first window of read-ahead).
    let json = work.json(&["trace", "caches", "heads.trace", "--json"]);
    assert_eq!(json["pages"], FILES);
    let enough = json["simulated_gain_90_bytes"].as_u64().unwrap() / 4096;
    assert!((1700..2100).contains(&enough), "{enough} pages");
    work.stdout(&["trace", "model", "heads.trace", "-o", "heads.json"]);
    let json = work.json(&["trace", "caches", "heads.json", "--json"]);
    let enough = json["simulated_gain_90_bytes"].as_u64().unwrap() / 4096;
    assert!((1300..2300).contains(&enough), "{enough} pages");
}

#[test]
fn a_recorded_part_of_a_service_is_said_to_be_one() {
    let work = Workdir::new();
    let mut service = Command::new("sh");
    service.args(["-c", "while cat /proc/self/stat; do :; done"]);
    let mut service = service.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let pid = service.id().to_string();
    let record = ["trace", "record", "--for", "1s", "--quiet", "-o", "part.trace", "--pid", &pid];
    let output = work.command(&record).output().unwrap();
    service.kill().unwrap();
    service.wait().unwrap();
    assert!(output.status.success(), "{output:?}");
    let shown = work.stdout(&["trace", "show", "part.trace"]);
    assert!(shown.contains(" s of processes that ran before and ran on"), "{shown}");
}
