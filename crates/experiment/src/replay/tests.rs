//! Traces written by hand, replayed on a real directory: what comes of each call is known.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ioscape_engine::error::Error;
use ioscape_engine::target::open_directory;
use ioscape_engine::{RunId, Stopwatch};
use ioscape_model::{Replay, Spacing, Start};
use ioscape_trace::{Event, FileEntry, FileKind, Flags, Layer, Op, StreamEntry, TraceInfo};

use super::order::{Planner, Said};
use super::step::{Doing, Step};
use super::*;

/// A trace in memory.
#[derive(Default)]
struct Written {
    files: Vec<FileEntry>,
    streams: Vec<StreamEntry>,
    info: TraceInfo,
    events: Vec<Event>,
}

impl Load for Written {
    fn source(&self) -> &'static str {
        "trace"
    }
    fn files(&self) -> &[FileEntry] {
        &self.files
    }
    fn streams(&self) -> &[StreamEntry] {
        &self.streams
    }
    fn info(&self) -> &TraceInfo {
        &self.info
    }
    fn events_count(&self) -> u64 {
        self.events.len() as u64
    }
    fn events(&self) -> Box<dyn Iterator<Item = io::Result<Event>> + '_> {
        Box::new(self.events.iter().copied().map(Ok))
    }
}

const US: u64 = 1000;

impl Written {
    fn new() -> Self {
        Self {
            info: TraceInfo { layer: Layer::Syscall, ..TraceInfo::default() },
            ..Self::default()
        }
    }

    fn file(&mut self, kind: FileKind, directory: u32, first_bytes: u64) -> u32 {
        let id = self.files.len() as u32 + 1;
        self.files.push(FileEntry { id, kind, directory, first_bytes, ..FileEntry::default() });
        id
    }

    fn stream(&mut self, process: u32, parent: u32) -> u32 {
        let id = self.streams.len() as u32 + 1;
        self.streams.push(StreamEntry { id, process, parent, ..StreamEntry::default() });
        id
    }

    /// An event of ten microseconds, ten after the one before began.
    fn put(&mut self, stream: u32, op: Op, file: u32, handle: u32) -> &mut Event {
        let start_ns = self.events.last().map_or(0, |last| last.start_ns + 20 * US);
        let event = Event::new(start_ns, op);
        self.events.push(Event { stream, file, handle, duration_ns: Some(10 * US), ..event });
        self.events.last_mut().unwrap()
    }

    fn transfer(&mut self, stream: u32, op: Op, (file, handle): (u32, u32), at: (u64, u64)) {
        let event = self.put(stream, op, file, handle);
        (event.offset, event.length) = at;
    }
}

const MAX: Settings = Settings { spacing: Spacing::None, speed: 1.0, start: Start::AsRecorded };
const KEPT: Settings = Settings { spacing: Spacing::Closed, ..MAX };

fn try_replay(load: &dyn Load, settings: &Settings, interrupt: bool) -> Result<Replay> {
    let parent = tempfile::tempdir().unwrap();
    let interrupt = AtomicBool::new(interrupt);
    let run = RunId::random().unwrap();
    let ground = ReplaySite {
        directory: Arc::new(open_directory(parent.path()).unwrap()),
        run: &run,
        interrupt: &interrupt,
        watch: Stopwatch::calibrated(),
    };
    let surveyed = survey(load, settings.start, &AtomicBool::new(false), &mut |_| {})?;
    let replayed = replay(load, &surveyed, (settings, 0), &ground, &mut |_| {});
    assert_eq!(parent.path().read_dir().unwrap().count(), 0, "nothing is left");
    replayed.map(|replayed| replayed.replay)
}

#[track_caller]
fn replayed(load: &dyn Load, settings: &Settings) -> Replay {
    try_replay(load, settings, false).unwrap()
}

#[track_caller]
fn alike(load: &dyn Load, settings: &Settings) -> Replay {
    let replay = replayed(load, settings);
    assert_eq!(replay.errors.unlike(), 0, "{:?}", replay.errors);
    replay
}

#[test]
fn every_call_ends_as_it_did_and_the_kernel_counts_the_bytes() {
    let mut trace = Written::new();
    let directory = trace.file(FileKind::Directory, 0, 0);
    let old = trace.file(FileKind::Regular, directory, 10_007);
    let new = trace.file(FileKind::Regular, directory, 0);
    let made = trace.file(FileKind::Directory, directory, 0);
    let pipe = trace.file(FileKind::Other, 0, 0);
    let one = trace.stream(1, 0);
    trace.put(one, Op::LookupNeg, new, 0).error = libc_enoent();
    trace.put(one, Op::Stat, old, 0);
    trace.put(one, Op::Open, old, 7);
    trace.transfer(one, Op::Read, (old, 7), (0, 4_099));
    trace.transfer(one, Op::Read, (old, 7), (4_099, 5_908));
    trace.events.last_mut().unwrap().asked = Some(8_192);
    trace.transfer(one, Op::Read, (pipe, 8), (0, 77));
    trace.put(one, Op::Create, new, 9).flags = Flags::EXCL;
    trace.transfer(one, Op::Write, (new, 9), (0, 3_001));
    trace.transfer(one, Op::Write, (new, 9), (3_001, 3_001));
    trace.put(one, Op::Dsync, new, 9);
    trace.put(one, Op::Close, new, 9);
    trace.put(one, Op::Mkdir, made, 0);
    trace.put(one, Op::Mkdir, made, 0).error = 17;
    trace.put(one, Op::Rename, new, 0).other = u64::from(old);
    trace.put(one, Op::Unlink, new, 0);
    trace.put(one, Op::Close, old, 7);
    let replay = alike(&trace, &MAX);
    assert_eq!((replay.bytes_read, replay.bytes_written), (10_007, 6_002));
    assert_eq!((replay.calls, replay.passed_over), (15, 1));
    assert_eq!(replay.errors.alike, 2, "ENOENT and EEXIST");
    assert_eq!(replay.operations["READ"].count, 2);
    assert_eq!((replay.laid_out_bytes, replay.reopened), (10_007, 0));
    if let Some(counted) = replay.counted {
        assert_eq!((counted.read_bytes, counted.written_bytes), (10_007, 6_002));
    }
}

fn libc_enoent() -> i16 {
    2
}

#[test]
fn directories_that_no_call_names_are_there() {
    let mut trace = Written::new();
    let above = trace.file(FileKind::Regular, 0, 0);
    let directory = trace.file(FileKind::Directory, above, 0);
    let file = trace.file(FileKind::Regular, directory, 0);
    let one = trace.stream(1, 0);
    trace.put(one, Op::Stat, above, 0);
    trace.put(one, Op::Create, file, 1);
    alike(&trace, &MAX);
}

#[test]
fn what_ends_otherwise_is_counted() {
    let mut trace = Written::new();
    let file = trace.file(FileKind::Regular, 0, 1_000);
    let one = trace.stream(1, 0);
    trace.put(one, Op::Open, file, 1).error = 13;
    trace.put(one, Op::Stat, file, 0);
    trace.put(one, Op::Unlink, file, 0);
    trace.put(one, Op::Stat, file, 0);
    trace.put(one, Op::Unlink, file, 0).error = 13;
    let errors = replayed(&trace, &MAX).errors;
    assert_eq!((errors.only_recorded, errors.only_here, errors.different), (1, 1, 1));
    assert_eq!((errors.alike, errors.examples.len()), (0, 3));
}

#[test]
fn streams_wait_for_the_calls_they_depend_on() {
    let mut trace = Written::new();
    let (one, two) = (trace.stream(1, 0), trace.stream(2, 0));
    for round in 0..500 {
        let file = trace.file(FileKind::Regular, 0, 0);
        let handle = round + 1;
        trace.put(one, Op::Create, file, handle);
        trace.transfer(one, Op::Write, (file, handle), (0, 64 << 10));
        trace.transfer(two, Op::Read, (file, handle), (0, 64 << 10));
        trace.put(one, Op::Close, file, handle);
        trace.put(two, Op::Open, file, handle + 1000);
        trace.put(two, Op::Close, file, handle + 1000);
        trace.put(one, Op::Unlink, file, 0);
    }
    let replay = alike(&trace, &MAX);
    assert_eq!((replay.streams, replay.reopened), (2, 0));
    assert_eq!(replay.bytes_read, 500 * (64 << 10));
}

#[test]
fn who_closes_a_file_waits_for_all_that_read_it() {
    let mut trace = Written::new();
    let [one, two, three] = [(); 3].map(|()| trace.stream(1, 0));
    for handle in 1..=500 {
        let file = trace.file(FileKind::Regular, 0, 64 << 10);
        trace.put(one, Op::Open, file, handle);
        trace.transfer(one, Op::Read, (file, handle), (0, 64 << 10));
        trace.transfer(two, Op::Read, (file, handle), (0, 64 << 10));
        trace.put(three, Op::Close, file, handle);
        trace.put(three, Op::Unlink, file, 0);
    }
    let replay = alike(&trace, &MAX);
    assert_eq!((replay.streams, replay.reopened), (3, 0));
    assert_eq!(replay.bytes_read, 1000 * (64 << 10));
}

/// Steps of a stream that waits 100 µs while another one is in a call for so long.
fn steps_after_a_wait(call_ns: u64) -> Vec<Step> {
    let mut trace = Written::new();
    let (one, two) = (trace.stream(1, 0), trace.stream(2, 0));
    let file = trace.file(FileKind::Regular, 0, 4_096);
    trace.put(one, Op::Open, file, 1);
    let from_ns = trace.events[0].start_ns + 20 * US;
    trace.transfer(two, Op::Dsync, (file, 1), (0, 0));
    let sync = trace.events.last_mut().unwrap();
    (sync.start_ns, sync.duration_ns) = (from_ns + 5 * US, Some(call_ns));
    let waits = Event { stream: one, duration_ns: Some(100 * US), ..Event::new(from_ns, Op::Wait) };
    trace.events.insert(1, waits);
    trace.transfer(one, Op::Read, (file, 1), (0, 4_096));
    trace.events.last_mut().unwrap().start_ns = from_ns + 120 * US;
    let surveyed = survey(&trace, KEPT.start, &AtomicBool::new(false), &mut |_| {}).unwrap();
    let mut planner = Planner::new(&trace, &surveyed, &KEPT);
    let mut steps = Vec::new();
    for event in &trace.events {
        planner.take(event, &mut |said| {
            if let Said::Step(_, step) = said {
                steps.push(step);
            }
        });
    }
    steps
}

#[test]
fn who_waits_waits_for_a_call_that_went_on_for_most_of_it() {
    let after = |steps: &[Step]| steps.iter().any(|step| matches!(step.doing, Doing::Pause(_)));
    assert!(after(&steps_after_a_wait(80 * US)));
    let others = steps_after_a_wait(10 * US);
    assert!(!after(&others));
    // It goes on when it did.
    assert_eq!(others.last().unwrap().gap_ns, 130 * US);
}

#[test]
fn children_begin_after_they_were_born_and_parents_go_on_after_they_ended() {
    let mut trace = Written::new();
    let parent = trace.stream(1, 0);
    for round in 0..100 {
        let child = trace.stream(round + 2, parent);
        let (first, second) =
            (trace.file(FileKind::Regular, 0, 0), trace.file(FileKind::Regular, 0, 0));
        trace.put(parent, Op::Create, first, 2 * round + 1);
        trace.put(parent, Op::Fork, 0, 0).other = u64::from(child);
        let waits_from_ns = trace.events.last().unwrap().start_ns + 5 * US;
        // The child finds the file and leaves another one, open.
        trace.put(child, Op::Stat, first, 0);
        trace.put(child, Op::Create, second, 2 * round + 2);
        trace.put(child, Op::Exit, 0, 0);
        let at = trace.events.len() - 3;
        let mut waits = Event::new(waits_from_ns, Op::Wait);
        (waits.stream, waits.duration_ns) = (parent, Some(200 * US));
        trace.events.insert(at, waits);
        trace.put(parent, Op::Unlink, second, 0).start_ns += 200 * US;
        trace.put(parent, Op::Unlink, first, 0);
    }
    for settings in [MAX, KEPT] {
        let replay = alike(&trace, &settings);
        assert_eq!((replay.calls, replay.streams), (500, 101));
    }
}

#[test]
fn the_time_between_calls_is_kept_halved_or_dropped() {
    let mut trace = Written::new();
    let file = trace.file(FileKind::Regular, 0, 4_096);
    let one = trace.stream(1, 0);
    trace.put(one, Op::Open, file, 1);
    for _ in 0..20 {
        trace.transfer(one, Op::Read, (file, 1), (0, 4_096));
        trace.events.last_mut().unwrap().start_ns += 1000 * US;
    }
    let at_least = |settings: &Settings, shortest_s: f64| {
        let replay = alike(&trace, settings);
        assert!(replay.elapsed_s >= shortest_s, "{settings:?}: {} s", replay.elapsed_s);
        assert_eq!(replay.late_s.is_some(), settings.spacing != Spacing::None);
    };
    at_least(&KEPT, 0.020);
    at_least(&Settings { speed: 2.0, ..KEPT }, 0.010);
    at_least(&Settings { spacing: Spacing::Open, ..MAX }, 0.020);
    at_least(&MAX, 0.0);
}

#[test]
fn requests_of_one_stream_that_overlapped_are_made_side_by_side() {
    let mut trace = Written::new();
    let file = trace.file(FileKind::Block, 0, 0);
    for at in 0..64_u64 {
        let mut event = Event::new(at * 10 * US, Op::Read);
        (event.duration_ns, event.file) = (Some(75 * US), file);
        (event.offset, event.length) = (at * 8_192, 8_192);
        trace.events.push(event);
    }
    let replay = alike(&trace, &KEPT);
    assert_eq!((replay.calls, replay.bytes_read), (64, 64 * 8_192));
    assert_eq!(replay.reopened, 1, "nobody opens a device");
}

#[test]
fn an_interrupt_ends_it_with_nothing_left() {
    let mut trace = Written::new();
    let file = trace.file(FileKind::Regular, 0, 4_096);
    let one = trace.stream(1, 0);
    trace.transfer(one, Op::Read, (file, 1), (0, 4_096));
    assert!(matches!(try_replay(&trace, &MAX, true), Err(Error::Interrupted)));
}

#[test]
fn a_trace_without_files_is_refused() {
    let mut trace = Written::new();
    let one = trace.stream(1, 0);
    trace.put(one, Op::Wait, 0, 0);
    let refused = try_replay(&trace, &MAX, false).unwrap_err().to_string();
    assert!(refused.contains("nothing to replay"), "{refused}");
}

/// Events that are made as they are asked for, so many that holding them all would be seen.
struct Endless {
    files: Vec<FileEntry>,
    info: TraceInfo,
    events: u64,
    taken: Cell<u64>,
    looks: Cell<u64>,
}

impl Load for Endless {
    fn source(&self) -> &'static str {
        "trace"
    }
    fn files(&self) -> &[FileEntry] {
        &self.files
    }
    fn streams(&self) -> &[StreamEntry] {
        &[]
    }
    fn info(&self) -> &TraceInfo {
        &self.info
    }
    fn events_count(&self) -> u64 {
        self.events
    }
    fn events(&self) -> Box<dyn Iterator<Item = io::Result<Event>> + '_> {
        self.looks.set(self.looks.get() + 1);
        let event = |at: u64| {
            self.taken.set(at);
            let mut event = Event::new(at * US, Op::Read);
            (event.file, event.handle, event.stream) = (1, 1, 1);
            (event.offset, event.length) = (at % 256 * 512, 512);
            Ok(event)
        };
        Box::new((0..self.events).map(event))
    }
}

#[test]
fn events_are_read_as_they_are_needed() {
    let file = FileEntry { id: 1, first_bytes: 128 << 10, ..FileEntry::default() };
    let (taken, looks) = (Cell::new(0), Cell::new(0));
    let info = TraceInfo::default();
    let load = Endless { files: vec![file], info, events: 300_000, taken, looks };
    let replay = alike(&load, &MAX);
    assert_eq!((replay.calls, replay.bytes_read), (300_000, 300_000 * 512));
    assert_eq!(load.looks.get(), 2, "once to look at them, once to replay them");
}
