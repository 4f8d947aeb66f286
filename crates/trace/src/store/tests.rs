//! The store: what goes in comes out, whole or cut.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;
use crate::{Collected, Event, FileEntry, FileKind, Flags, Op, Sink, StreamEntry};

fn event(number: u64) -> Event {
    Event {
        start_ns: number * 1000,
        duration_ns: (!number.is_multiple_of(7)).then_some(number % 5000),
        op: Op::ALL[number as usize % Op::ALL.len()],
        stream: number as u32 % 3,
        handle: number as u32 % 11,
        file: number as u32 % 5,
        offset: number * 4096,
        length: 4096,
        asked: number.is_multiple_of(13).then_some(8192),
        error: if number.is_multiple_of(17) { -2 } else { 0 },
        flags: Flags(number as u16 & 0x3ff),
        cpu_gap_ns: number.is_multiple_of(2).then_some(number % 100),
        other: if number.is_multiple_of(19) { u64::MAX } else { 0 },
    }
}

fn info() -> TraceInfo {
    TraceInfo {
        recorder: "test".to_owned(),
        elapsed_s: 1.5,
        lost: 3,
        page_bytes: 4096,
        read_ahead_kb: vec![((8, 0), 128)],
        host: Some(serde_json::json!({"cores": 2})),
        ..TraceInfo::default()
    }
}

fn written(events: &[Event], files: &[FileEntry], names: Names) -> Vec<u8> {
    let mut writer = StoreWriter::new(Vec::new(), names, &info()).unwrap();
    for (at, event) in events.iter().enumerate() {
        if at % 1000 == 0 {
            for file in files {
                writer.file(file.clone()).unwrap();
            }
        }
        writer.event(event).unwrap();
        if at % 2500 == 2499 {
            writer.flush().unwrap();
        }
    }
    writer
        .stream(StreamEntry { id: 1, process: 1, cpu_ns: Some(5), ..StreamEntry::default() })
        .unwrap();
    writer.close(&info()).unwrap()
}

fn read(bytes: Vec<u8>) -> (Collected, bool) {
    let store = Store::open(Bytes::from(bytes)).unwrap();
    let mut kept = Collected::default();
    store.pour(&mut kept).unwrap();
    (kept, store.is_cut())
}

fn file(id: u32, path: &str) -> FileEntry {
    FileEntry {
        id,
        kind: FileKind::Directory,
        depth: 2,
        first_bytes: 7,
        last_bytes: 1 << 40,
        device: (8, 1),
        resident_bytes: Some(0),
        path: Some(path.to_owned()),
        ..FileEntry::default()
    }
}

#[test]
fn what_was_written_is_read() {
    let events: Vec<Event> = (0..10_000).map(event).collect();
    let (kept, is_cut) = read(written(&events, &[file(1, "/a/b.log")], Names::Kept));
    assert!(!is_cut);
    assert_eq!(kept.events, events);
    assert_eq!(kept.files.len(), 1);
    let only = &kept.files[&1];
    assert_eq!(only.path.as_deref(), Some("/a/b.log"));
    assert_eq!(
        (only.kind, only.class.as_str(), only.device, only.last_bytes),
        (FileKind::Directory, "log", (8, 1), 1 << 40)
    );
    assert_eq!((kept.streams.len(), kept.streams[&1].cpu_ns), (1, Some(5)));
    assert_eq!(kept.info, Some(info()));
}

#[test]
fn paths_leave_no_trace_unless_they_are_asked_for() {
    let events: Vec<Event> = (0..100).map(event).collect();
    let mut named = file(1, "/home/canary-7f3a/canary-7f3b.canary-7f3c");
    named.class = "canary-7f3d".to_owned();
    let bytes = written(&events, &[named.clone()], Names::Hashed);
    assert!(!bytes.windows(11).any(|window| window == b"canary-7f3a" || window == b"canary-7f3d"));
    let (kept, _) = read(bytes);
    assert_eq!(kept.files[&1].path, None);
    assert_eq!(kept.files[&1].class, "");
    let (again, _) = read(written(&events, &[named], Names::Hashed));
    assert_ne!(kept.files[&1].key, again.files[&1].key, "the key is another each time");
}

#[test]
fn events_are_sorted_by_their_start() {
    let mut events: Vec<Event> = (0..5000).map(event).collect();
    for pair in events.chunks_mut(2) {
        pair.reverse();
    }
    let (kept, _) = read(written(&events, &[], Names::Hashed));
    assert!(kept.events.is_sorted_by_key(|event| event.start_ns));
    assert_eq!(kept.events.len(), 5000);
}

#[test]
fn a_trace_cut_anywhere_opens_with_what_was_whole() {
    let events: Vec<Event> = (0..10_000).map(event).collect();
    let bytes = written(&events, &[file(1, "/x")], Names::Hashed);
    let mut counts = Vec::new();
    for cut in (1..=60).map(|part| bytes.len() * part / 61) {
        match Store::open(Bytes::copy_from_slice(&bytes[..cut])) {
            Ok(store) => {
                assert!(store.is_cut());
                assert_eq!(store.info().recorder, "test");
                let mut count = 0;
                store
                    .for_each_event(|seen| {
                        assert_eq!(*seen, event(count));
                        count += 1;
                        Ok(())
                    })
                    .unwrap();
                assert_eq!(store.events_count(), count);
                counts.push(count);
            }
            Err(error) => assert!(matches!(error, StoreError::NotATrace) && cut < 4096, "{error}"),
        }
    }
    assert!(counts.is_sorted() && counts.contains(&0) && *counts.last().unwrap() >= 7500);
}

#[test]
fn a_slow_recording_that_is_killed_early_keeps_half_or_all_but_three_seconds() {
    for seconds in [4, 10, 30, 100, 300] {
        let (file, path) = tempfile::NamedTempFile::new().unwrap().into_parts();
        let mut writer = StoreWriter::new(file, Names::Hashed, &info()).unwrap();
        let count = seconds * 10;
        for number in 0..count {
            let event = Event { start_ns: number * 100_000_000, ..event(number) };
            writer.event(&event).unwrap();
        }
        // As a recorder that is killed leaves it.
        let store = Store::open(Bytes::from(std::fs::read(&path).unwrap())).unwrap();
        let kept = store.events_count();
        assert!(store.is_cut() && kept + (count / 2).max(30) >= count, "{kept} of {count}");
    }
}

#[test]
fn what_is_no_trace_is_refused() {
    for bytes in [&b""[..], b"PAR1", b"PAR1PAR1", b"{\"version\": 1}", &[0; 100]] {
        let refused = Store::open(Bytes::from_static(bytes)).err().unwrap();
        assert!(matches!(refused, StoreError::NotATrace), "{refused}");
    }
}

#[test]
fn an_event_costs_few_bytes() {
    let mut random = 1_u64;
    let mut now = 0;
    let events: Vec<Event> = (0..100_000)
        .map(|number| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            now += 5000 + (random >> 52);
            let offset = (random >> 40) % 32768 * 4096;
            Event {
                start_ns: now,
                duration_ns: Some(3000 + (random >> 20) % 1500),
                op: if number % 3 == 0 { Op::Write } else { Op::Read },
                stream: 1,
                handle: 4,
                file: 2,
                offset,
                length: 4096,
                asked: None,
                error: 0,
                flags: Flags::default(),
                cpu_gap_ns: Some(900 + (random >> 30) % 256),
                other: 0,
            }
        })
        .collect();
    let mut writer = StoreWriter::new(Vec::new(), Names::Hashed, &info()).unwrap();
    for event in &events {
        writer.event(event).unwrap();
    }
    let bytes = writer.close(&info()).unwrap().len();
    assert!(bytes < 9 * events.len(), "{} bytes per event", bytes as f64 / 1e5);
}

#[test]
fn events_that_are_far_apart_cost_few_bytes_in_full_groups() {
    const MINUTE_NS: u64 = 60_000_000_000;
    let each_minute = |number| Event { start_ns: number * MINUTE_NS, ..event(number) };
    // More than are held at once.
    let events: Vec<Event> = (0..70_000).map(each_minute).collect();
    let writer = StoreWriter::new(Vec::new(), Names::Hashed, &info()).unwrap();
    let mut writer = writer.with_full_groups();
    for event in &events {
        writer.event(event).unwrap();
    }
    let bytes = writer.close(&info()).unwrap();
    assert!(bytes.len() < 40 * events.len(), "{} bytes", bytes.len());
    assert_eq!(read(bytes).0.events, events);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn any_events_survive(numbers in prop::collection::vec(any::<u64>(), 0..300)) {
        let mut events: Vec<Event> = numbers.iter().map(|number| Event {
            start_ns: *number >> 1, offset: number.rotate_left(17), length: *number, ..event(*number % 10_007)
        }).collect();
        let (kept, _) = read(written(&events, &[], Names::Hashed));
        events.sort_by_key(|event| event.start_ns);
        let mut got = kept.events;
        got.sort_by_key(|event| event.start_ns);
        prop_assert_eq!(got, events);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(at in 0_usize..20_000, to in any::<u8>()) {
        let events: Vec<Event> = (0..500).map(event).collect();
        let mut bytes = written(&events, &[file(1, "/x")], Names::Hashed);
        let at = at % bytes.len();
        bytes[at] = to;
        if let Ok(store) = Store::open(Bytes::from(bytes)) {
            store.for_each_event(|_| Ok(())).ok();
        }
    }
}
