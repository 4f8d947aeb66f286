//! Traces made by hand, whose counts and times are known.

use ioscape_model::app::Demand;

use super::*;
use crate::{FileEntry, FileKind, Flags, Op, StreamEntry};

/// A trace that is written down call by call; a call takes 10 µs, 5 µs of work before it.
struct Made {
    files: Vec<FileEntry>,
    streams: Vec<StreamEntry>,
    events: Vec<Event>,
    now_ns: u64,
}

const CALL_NS: u64 = 10_000;
const WORK_NS: u64 = 5_000;
const HOME: (u32, u32) = (7, 0);

fn made() -> Made {
    let streams = vec![StreamEntry { id: 1, process: 1, ..StreamEntry::default() }];
    Made { files: Vec::new(), streams, events: Vec::new(), now_ns: 0 }
}

impl Made {
    fn file(&mut self, id: u32, bytes: u64, resident_bytes: Option<u64>) {
        let entry = FileEntry {
            id,
            first_bytes: bytes,
            last_bytes: bytes,
            resident_bytes,
            ..FileEntry::default()
        };
        self.files.push(FileEntry { device: HOME, directory: 99, ..entry });
    }

    fn call(&mut self, op: Op, file: u32, offset: u64, length: u64) -> &mut Event {
        self.now_ns += WORK_NS;
        let event = Event {
            start_ns: self.now_ns,
            duration_ns: Some(CALL_NS),
            op,
            stream: 1,
            handle: file,
            file,
            offset,
            length,
            asked: None,
            error: 0,
            flags: Flags::default(),
            cpu_gap_ns: Some(WORK_NS),
            other: 0,
        };
        self.now_ns += CALL_NS;
        self.events.push(event);
        self.events.last_mut().expect("one was pushed")
    }

    fn demand(mut self) -> Demand {
        self.events.sort_by_key(|event| event.start_ns);
        let info = TraceInfo { elapsed_s: self.now_ns as f64 / 1e9, ..TraceInfo::default() };
        let tables = Tables { files: self.files, streams: self.streams };
        let mut look = Look::new(&tables, &info);
        self.events.iter().for_each(|event| look.see(event));
        look.finish(&tables.streams);
        let mut counting = Counting::new(&tables, &info, look);
        self.events.iter().for_each(|event| counting.event(event));
        counting.demand(&info)
    }
}

fn counts(demand: &Demand) -> Vec<(&str, u64, u64, u64, u64)> {
    let count = |(word, c): (&String, &ioscape_model::app::Category)| {
        (word.clone(), c.count, c.bytes, c.pages, c.extents)
    };
    let all: Vec<_> = demand.categories.iter().map(count).collect();
    all.into_iter().map(|(word, a, b, c, d)| (&*word.leak(), a, b, c, d)).collect()
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9, "{a} is not {b}");
}

#[test]
fn a_log_is_appended_to_and_synced() {
    let mut trace = made();
    trace.file(1, 0, None);
    trace.call(Op::Create, 1, 0, 0);
    for record in 0..3 {
        trace.call(Op::Write, 1, record * 2300, 2300);
        trace.call(Op::Dsync, 1, 0, 0);
    }
    trace.call(Op::Close, 1, 0, 0);
    let demand = trace.demand();
    assert_eq!(
        counts(&demand),
        [
            ("append", 1, 2300, 0, 0),
            ("append_unaligned", 2, 4600, 0, 0),
            ("close_written", 1, 0, 0, 0),
            ("create", 1, 0, 0, 0),
            // The second record lies over the end of the first page: a part is new, a part is not.
            ("sync_grown", 2, 0, 3, 3),
            ("sync_new", 1, 0, 1, 1),
        ]
    );
    near(demand.work.processor_s, 8.0 * WORK_NS as f64 / 1e9);
    near(demand.work.idle_s + demand.work.other_s, 0.0);
    for category in demand.categories.values() {
        near(category.critical_frac, 1.0);
        near(category.mean_s.unwrap(), CALL_NS as f64 / 1e9);
    }
}

#[test]
fn names_are_missed_once_where_the_data_were_not_in_memory() {
    let mut trace = made();
    trace.file(1, 10_000, Some(0));
    trace.file(2, 10_000, Some(0));
    trace.file(3, 10_000, Some(10_000));
    for file in [1, 1, 2, 3] {
        trace.call(Op::Open, file, 0, 0);
        trace.call(Op::Read, file, 0, 10_000);
        trace.call(Op::Stat, file, 0, 0).handle = 0;
        trace.call(Op::Close, file, 0, 0);
    }
    trace.call(Op::Stat, 3, 0, 0);
    trace.call(Op::LookupNeg, 4, 0, 0).handle = 0;
    let demand = trace.demand();
    assert_eq!(
        counts(&demand),
        [
            ("close", 4, 0, 0, 0),
            ("fstat", 1, 0, 0, 0),
            ("open_cached", 2, 0, 0, 0),
            ("open_missed", 2, 0, 0, 0),
            ("read_hit", 4, 40_000, 0, 0),
            ("stat_cached", 4, 0, 0, 0),
            ("stat_negative", 1, 0, 0, 0),
        ]
    );
    near(demand.warm_frac.unwrap(), 1.0 / 3.0);
    // Two files are read from the device where the third was found in memory, three where nothing was.
    let most = demand.caches.last().unwrap();
    assert_eq!((most.as_recorded.random_requests, most.cold.random_requests), (2.0, 3.0));
    assert_eq!((most.as_recorded.random_pages, most.cold.random_pages), (6.0, 9.0));
}

#[test]
fn more_memory_reads_less_of_a_loop() {
    const BYTES: u64 = 20 << 20;
    let mut trace = made();
    trace.file(1, BYTES, None);
    for _ in 0..2 {
        for piece in 0..BYTES >> 17 {
            trace.call(Op::Read, 1, piece << 17, 1 << 17);
        }
    }
    let demand = trace.demand();
    let pages =
        |rung: &ioscape_model::app::CacheRung| rung.cold.sequential_pages + rung.cold.random_pages;
    let all: Vec<f64> = demand.caches.iter().map(pages).collect();
    near(all[0], 2.0 * (BYTES / 4096) as f64);
    near(*all.last().unwrap(), (BYTES / 4096) as f64);
    assert!(all.windows(2).all(|pair| pair[0] >= pair[1]), "{all:?}");
    // Rungs lie close where the loop begins to fit, and the last is what the loop fills, not what was ample.
    let sizes: Vec<u64> = demand.caches.iter().map(|rung| rung.memory_bytes >> 20).collect();
    assert!([14, 16, 18, 20].iter().all(|mib| sizes.contains(mib)), "{sizes:?}");
    assert!(sizes.last().is_some_and(|mib| (20..=22).contains(mib)), "{sizes:?}");
    assert_eq!(demand.sequential_bytes, 2 * BYTES - 2 * (1 << 17));
    assert!(demand.overlap.iter().all(|rung| rung.seconds > 0.0));
}

#[test]
fn only_so_much_of_a_stretch_between_two_reads_hides_what_comes_next() {
    let mut trace = made();
    trace.file(1, 1 << 30, None);
    for piece in 0..100 {
        trace.call(Op::Read, 1, piece << 17, 1 << 17);
        trace.now_ns += 900_000;
    }
    let demand = trace.demand();
    let seconds = |limit_s: f64| {
        let rung = demand.overlap.iter().find(|rung| rung.limit_s >= limit_s);
        rung.map(|rung| (rung.limit_s, rung.seconds)).unwrap()
    };
    let (limit_s, some_s) = seconds(1e-5);
    near(some_s, 99.0 * limit_s);
    let (_, all_s) = seconds(1e-2);
    near(all_s, 99.0 * (900_000 + WORK_NS) as f64 / 1e9);
}

#[test]
fn streams_that_are_at_it_together_share_the_time() {
    let mut trace = made();
    trace.file(1, 1 << 20, None);
    trace.streams.push(StreamEntry { id: 2, process: 2, ..StreamEntry::default() });
    // Both compute for 100 µs; then one syncs for 1 ms while the other waits for it.
    for stream in [1, 2] {
        let op = if stream == 1 { Op::Dsync } else { Op::Wait };
        let event = trace.call(op, 1, 0, 0);
        event.stream = stream;
        (event.start_ns, event.duration_ns) = (100_000, Some(1_000_000));
        event.cpu_gap_ns = Some(100_000);
    }
    trace.now_ns = 1_100_000;
    let demand = trace.demand();
    near(demand.work.processor_s, 100e-6);
    near(demand.work.processor_total_s, 200e-6);
    near(demand.categories["sync_clean"].critical_frac, 1.0);
    assert_eq!(demand.work.streams, 2);
    near(demand.work.idle_s, 0.0);
}

#[test]
fn all_shares_add_up_to_the_time_that_passed() {
    let mut trace = made();
    trace.file(1, 1 << 20, None);
    trace.streams.push(StreamEntry { id: 2, process: 2, ..StreamEntry::default() });
    let mut at = [0_u64, 7_000];
    for step in 0..400_u64 {
        let stream = (step * 7 % 3 % 2) as usize;
        let event = trace.call(if step % 11 == 0 { Op::Wait } else { Op::Read }, 1, 0, 100);
        event.stream = stream as u32 + 1;
        event.start_ns = at[stream] + 3_000;
        event.cpu_gap_ns = None;
        event.duration_ns = Some(1_000 + step * 37 % 5_000);
        at[stream] = event.start_ns + 1_000 + step * 37 % 5_000;
    }
    trace.now_ns = at[0].max(at[1]);
    (trace.streams[0].end_ns, trace.streams[1].end_ns) = (at[0], at[1]);
    let demand = trace.demand();
    let in_calls: f64 = demand
        .categories
        .values()
        .map(|c| c.critical_frac * c.mean_s.unwrap() * c.count as f64)
        .sum();
    let work = &demand.work;
    let all = in_calls + work.processor_s + work.other_s + work.idle_s;
    assert!((all - demand.elapsed_s).abs() < 1e-9, "{all} of {}", demand.elapsed_s);
}

#[test]
fn what_lies_on_another_device_stays_there() {
    let mut trace = made();
    trace.file(1, 1 << 20, None);
    trace.file(2, 4096, Some(0));
    trace.files[1].device = (8, 1);
    trace.files.push(FileEntry { id: 3, kind: FileKind::Other, ..FileEntry::default() });
    trace.call(Op::Read, 1, 0, 1 << 20);
    trace.call(Op::Open, 2, 0, 0);
    trace.call(Op::Read, 2, 0, 4096);
    trace.call(Op::Write, 3, 0, 10);
    let demand = trace.demand();
    assert_eq!(counts(&demand), [("elsewhere", 2, 4096, 0, 0), ("read_hit", 1, 1 << 20, 0, 0)]);
    assert_eq!(demand.warm_frac, None);
}

#[test]
fn a_wait_in_a_call_that_nobody_recorded_is_no_work() {
    let mut trace = made();
    trace.file(1, 4096, None);
    trace.call(Op::Read, 1, 0, 100);
    trace.now_ns += 50_000_000;
    trace.call(Op::Read, 1, 0, 100);
    let demand = trace.demand();
    near(demand.work.idle_s, 0.05);
    near(demand.work.processor_s, 2.0 * WORK_NS as f64 / 1e9);
}

#[test]
fn dirty_data_beyond_the_limit_are_written_back() {
    let mut trace = made();
    trace.file(1, 0, None);
    trace.call(Op::Create, 1, 0, 0);
    for piece in 0..64 {
        trace.call(Op::Write, 1, piece << 20, 1 << 20);
    }
    let demand = trace.demand();
    let pages: Vec<u64> = demand.write_back.iter().map(|rung| rung.pages).collect();
    assert!(pages[0] > 60 * 256 && *pages.last().unwrap() == 0, "{pages:?}");
    assert!(pages.windows(2).all(|pair| pair[0] >= pair[1]), "{pages:?}");
}
