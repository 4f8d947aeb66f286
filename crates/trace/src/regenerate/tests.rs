//! Events out of models, characterised again.

use ioscape_model::app::{App, SizeLaw};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::Collected;
use crate::caches::mrc::{Access, Curve, ExactCurve};
use crate::caches::{caches_of, pages_of};
use crate::character::Character;
use crate::event::{FileKind, Layer, Op, Sink};

/// Events with their tables.
fn collected(load: &Regenerated) -> Collected {
    let mut all = Collected::default();
    load.files().iter().for_each(|file| all.file(file.clone()).unwrap());
    load.streams().iter().for_each(|stream| all.stream(stream.clone()).unwrap());
    load.events().for_each(|event| all.event(&event).unwrap());
    all.finish(load.info()).unwrap();
    all
}

fn characterised(trace: &Collected) -> App {
    let mut character = Character::new(Layer::Syscall);
    trace.files.values().for_each(|file| character.file(file.clone()).unwrap());
    trace.streams.values().for_each(|stream| character.stream(stream.clone()).unwrap());
    trace.events.iter().for_each(|event| character.event(event).unwrap());
    character.finish(trace.info.as_ref().unwrap()).unwrap();
    let mut app = character.app();
    app.caches = Some(caches_of(&curve(trace)));
    app
}

fn curve(trace: &Collected) -> Curve {
    let mut exact = ExactCurve::new();
    for event in &trace.events {
        let (first, pages) = pages_of(event.offset, event.length);
        match event.op {
            Op::Read | Op::FaultR => exact.touch(Access::Read, event.file, first, pages),
            Op::Write => exact.touch(Access::Write, event.file, first, pages),
            _ => {}
        }
    }
    exact.finish()
}

/// A trace written by hand, call after call of one stream.
struct Hand {
    trace: Collected,
    now_ns: u64,
}

impl Hand {
    fn new(files: &[u64]) -> Self {
        let mut trace = Collected::default();
        for (id, first_bytes) in (1..).zip(files) {
            let file = FileEntry { id, first_bytes: *first_bytes, ..FileEntry::default() };
            trace.file(file).unwrap();
        }
        trace.stream(StreamEntry { id: 1, process: 1, ..StreamEntry::default() }).unwrap();
        Self { trace, now_ns: 0 }
    }

    fn put(&mut self, op: Op, (file, handle): (u32, u32), (offset, length): (u64, u64)) {
        let mut event = Event::new(self.now_ns, op);
        (event.stream, event.file, event.handle) = (1, file, handle);
        (event.offset, event.length) = (offset, length);
        event.duration_ns = Some(if op == Op::Dsync { 300_000 } else { 5_000 });
        event.cpu_gap_ns = Some(8_000);
        self.now_ns += event.duration_ns.unwrap_or(0) + 9_000;
        self.trace.event(&event).unwrap();
    }

    fn finish(mut self) -> Collected {
        let elapsed_s = self.now_ns as f64 / 1e9;
        self.trace.finish(&TraceInfo { elapsed_s, ..TraceInfo::default() }).unwrap();
        self.trace
    }
}

/// Skewed reads and writes of pages of a database, a sync after five writes.
fn database() -> Collected {
    let mut hand = Hand::new(&[3000 * 4096]);
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(7);
    hand.put(Op::Open, (1, 1), (0, 0));
    let mut page = || (3000.0 * chance.random::<f64>().powi(3)) as u64;
    for round in 0..4000 {
        for _ in 0..4 {
            hand.put(Op::Read, (1, 1), (page() * 4096, 4096));
        }
        hand.put(Op::Write, (1, 1), (page() * 4096, 4096));
        if round % 5 == 4 {
            hand.put(Op::Dsync, (1, 1), (0, 0));
        }
    }
    hand.put(Op::Close, (1, 1), (0, 0));
    hand.finish()
}

/// Files read from end to end, twice over.
fn scans() -> Collected {
    let mut hand = Hand::new(&[40 * 4096; 64]);
    for pass in 0..2 {
        for file in 1..=64 {
            let at = (file, pass * 64 + file);
            hand.put(Op::Stat, (file, 0), (0, 0));
            hand.put(Op::Open, at, (0, 0));
            for piece in 0..10 {
                hand.put(Op::Read, at, (piece * 16_384, 16_384));
            }
            hand.put(Op::Close, at, (0, 0));
        }
    }
    hand.finish()
}

/// A log: pieces that fill no page, each synced.
fn log() -> Collected {
    let mut hand = Hand::new(&[0]);
    hand.put(Op::Create, (1, 1), (0, 0));
    for piece in 0..3000 {
        hand.put(Op::Write, (1, 1), (piece * 2300, 2300));
        hand.put(Op::Dsync, (1, 1), (0, 0));
    }
    hand.finish()
}

/// Reads of a page each, most of which begin within one and end in the next.
fn unaligned() -> Collected {
    let mut hand = Hand::new(&[3001 * 4096]);
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(7);
    hand.put(Op::Open, (1, 1), (0, 0));
    for round in 0..6000 {
        let within = if round % 3 == 0 { 0 } else { 24 + round % 1000 };
        let page = chance.random_range(0..3000);
        hand.put(Op::Read, (1, 1), (page * 4096 + within, 4096));
    }
    hand.finish()
}

/// Blocks of two pages, most of them read once, and writes of one to four blocks, in files that are there.
fn blocks() -> Collected {
    let mut hand = Hand::new(&[6000 * 4096, 6000 * 4096]);
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut left: Vec<u64> = (0..3000).collect();
    (1..=2).for_each(|file| hand.put(Op::Open, (file, file), (0, 0)));
    for _ in 0..3000 {
        let block = left.swap_remove(chance.random_range(0..left.len()));
        hand.put(Op::Read, (1, 1), (block * 8192, 8192));
        if chance.random_bool(0.2) {
            hand.put(Op::Read, (1, 1), (chance.random_range(0..3000) * 8192, 8192));
        }
        let written = chance.random_range(1..=4);
        hand.put(
            Op::Write,
            (2, 2),
            (chance.random_range(0..=3000 - written) * 8192, written * 8192),
        );
    }
    hand.finish()
}

/// Files that are mapped and touched from end to end, beside others that are read.
fn mapped() -> Collected {
    let mut hand = Hand::new(&[50 * 4096; 40]);
    for file in 1..=40 {
        hand.put(Op::Open, (file, file), (0, 0));
        if file % 2 == 0 {
            hand.put(Op::Mmap, (file, file), (0, 50 * 4096));
            hand.put(Op::FaultR, (file, 0), (0, 50 * 4096));
            hand.put(Op::Munmap, (file, 0), (0, 50 * 4096));
        } else {
            hand.put(Op::Read, (file, file), (0, 50 * 4096));
        }
        hand.put(Op::Close, (file, file), (0, 0));
    }
    hand.finish()
}

/// Largest difference between two distributions of sizes.
fn distance(one: &SizeLaw, other: &SizeLaw) -> f64 {
    let total = |law: &SizeLaw| law.histogram.iter().map(|size| size.count).sum::<u64>() as f64;
    let below = |law: &SizeLaw, bytes: u64| {
        let below = law.histogram.iter().filter(|size| size.bytes <= bytes);
        below.map(|size| size.count).sum::<u64>() as f64 / total(law).max(1.0)
    };
    let sizes = one.histogram.iter().chain(&other.histogram).map(|size| size.bytes);
    sizes.map(|bytes| (below(one, bytes) - below(other, bytes)).abs()).fold(0.0, f64::max)
}

#[track_caller]
fn near(what: &str, one: f64, other: f64, most: f64) {
    let off = (one - other).abs();
    assert!(off <= most * one.abs().max(1e-9) || off < 1e-3, "{what}: {one} became {other}");
}

/// Everything but the misses; the curves before and after.
#[track_caller]
fn comes_back(name: &str, original: &Collected) -> (Curve, Curve) {
    let before = characterised(original);
    let load = Regenerated::new(before.clone(), Scale::default(), 1).unwrap();
    let again = collected(&load);
    let after = characterised(&again);
    let (one, other) = (&before.whole, &after.whole);
    near(name, one.five.unique_bytes as f64, other.five.unique_bytes as f64, 0.02);
    near(name, one.five.size_mean, other.five.size_mean, 0.02);
    near(name, one.five.read_frac, other.five.read_frac, 0.02);
    near(name, one.five.seq_frac, other.five.seq_frac, 0.02);
    assert_eq!(one.five.process_num, other.five.process_num, "{name}");
    let rate = |app: &App| app.whole.syncs.count as f64 / app.whole.elapsed_s;
    near(name, rate(&before), rate(&after), 0.02);
    assert!(distance(&one.sizes.read, &other.sizes.read) < 0.02, "{name}: reads");
    assert!(distance(&one.sizes.write, &other.sizes.write) < 0.02, "{name}: writes");
    (curve(original), curve(&again))
}

#[track_caller]
fn misses_come_back(name: &str, curves: &(Curve, Curve)) {
    misses_come_within(0.02, name, curves);
}

#[track_caller]
fn misses_come_within(most: f64, name: &str, curves: &(Curve, Curve)) {
    let (truth, made) = curves;
    for pages in truth.sizes(100) {
        let (one, other) = (truth.miss_ratio(pages), made.miss_ratio(pages));
        assert!((one - other).abs() < most, "{name}: {pages} pages miss {one}, then {other}");
    }
}

#[test]
fn a_database_comes_back() {
    misses_come_back("database", &comes_back("database", &database()));
}

#[test]
fn blocks_of_pages_come_back() {
    misses_come_within(0.03, "blocks", &comes_back("blocks", &blocks()));
}

#[test]
fn requests_across_pages_come_back() {
    let (truth, made) = comes_back("unaligned", &unaligned());
    near("touches", truth.touches(Access::Read) as f64, made.touches(Access::Read) as f64, 0.01);
}

#[test]
fn mapped_pages_come_back() {
    let before = characterised(&mapped());
    let load = Regenerated::new(before.clone(), Scale::default(), 1).unwrap();
    let after = characterised(&collected(&load));
    let pages = |app: &App| (app.whole.unique.mapped_bytes / 4096) as f64;
    near("mapped", pages(&before), pages(&after), 0.02);
    let unique = |app: &App| app.whole.five.unique_bytes as f64;
    near("touched", unique(&before), unique(&after), 0.02);
}

#[test]
fn data_are_cached_at_the_start_as_the_model_says() {
    let cold = |warm_frac| {
        let mut app = characterised(&scans());
        app.demand = Some(ioscape_model::app::Demand { warm_frac, ..Default::default() });
        let load = Regenerated::new(app, Scale::default(), 1).unwrap();
        let files = load.files().iter().filter(|file| file.kind == FileKind::Regular);
        files.filter(|file| file.resident_bytes == Some(0)).count()
    };
    assert_eq!((cold(None), cold(Some(1.0))), (0, 0));
    assert_eq!((cold(Some(0.0)), cold(Some(0.25))), (64, 48));
}

#[test]
fn scans_of_files_come_back() {
    // Their misses do not come back within 0.02: runs end by chance where files ended before, so some
    // pages come again too soon.
    comes_back("scans", &scans());
}

#[test]
fn a_log_comes_back() {
    misses_come_back("log", &comes_back("log", &log()));
}

#[test]
fn the_same_seed_makes_the_same_load_and_another_one_another() {
    let app = characterised(&database());
    let events = |seed| {
        let load = Regenerated::new(app.clone(), Scale::default(), seed).unwrap();
        load.events().collect::<Vec<Event>>()
    };
    assert_eq!(events(1), events(1));
    assert_ne!(events(1), events(2));
}

#[test]
fn scaling_changes_what_it_says_and_nothing_else() {
    let app = characterised(&database());
    let scaled = |scale: Scale| {
        characterised(&collected(&Regenerated::new(app.clone(), scale, 1).unwrap())).whole
    };
    let usual = Scale::default();
    let before = scaled(usual);
    let users = scaled(Scale { users: 3.0, ..usual });
    near("requests", 3.0 * before.requests as f64, users.requests as f64, 0.01);
    near("data", before.five.unique_bytes as f64, users.five.unique_bytes as f64, 0.02);
    assert_eq!(users.concurrency.streams, 3);
    let data = scaled(Scale { data: 2.0, ..usual });
    near("data", 2.0 * before.five.unique_bytes as f64, data.five.unique_bytes as f64, 0.02);
    near("requests", before.requests as f64, data.requests as f64, 0.01);
    let read = scaled(Scale { read: Some(0.5), ..usual });
    near("reads", 0.5, read.five.read_frac, 0.01);
    near("requests", before.requests as f64, read.requests as f64, 0.01);
    let span_s = |scale: Scale| {
        let load = Regenerated::new(app.clone(), scale, 1).unwrap();
        load.events().map(|event| event.start_ns).max().unwrap() as f64 / 1e9
    };
    let longer_s = span_s(Scale { for_s: Some(3.0), ..usual });
    near("as long as asked", 3.0, longer_s, 0.01);
    assert!(span_s(Scale { rate: 2.0, ..usual }) < 0.9 * span_s(usual));
}

#[test]
fn a_model_typed_by_hand_makes_load_and_an_empty_one_none() {
    let text = r#"{"elapsed_s": 2, "requests": 1000, "five": {"unique_bytes": 1000000,
        "size_mean": 8192, "read_frac": 0.7, "seq_frac": 0.1, "process_num": 4}}"#;
    let load = Regenerated::new(App::parse(text).unwrap(), Scale::default(), 1).unwrap();
    let made = characterised(&collected(&load)).whole;
    near("requests", 1000.0, made.requests as f64, 0.01);
    near("reads", 0.7, made.five.read_frac, 0.02);
    near("size", 8192.0, made.five.size_mean, 0.02);
    assert!(Regenerated::new(App::default(), Scale::default(), 1).is_err());
}
