//! Known truths: workloads are drawn as events, and what is said of them is held against what was
//! drawn.

use std::collections::HashSet;

use bytes::Bytes;
use ioscape_model::app::Loop;
use ioscape_model::{Arrivals, SizeDist, Workload};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp, Normal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use crate::{FileKind, Flags, Names, Op, StoreWriter};

const PAGE: u64 = 4096;

/// What was drawn.
#[derive(Debug, Default)]
struct Drawn {
    events: Vec<Event>,
    files: Vec<FileEntry>,
    sizes: u64,
    requests: u64,
    reads: u64,
    follows: u64,
    syncs: u64,
    pages: HashSet<(u32, u64)>,
}

/// One process of a workload.
struct Process<'a> {
    work: &'a Workload,
    id: u32,
    requests: usize,
    from_ns: u64,
    duration_ns: f64,
    think_ns: f64,
}

fn event(op: Op, stream: u32, start_ns: u64, duration_ns: u64) -> Event {
    Event { duration_ns: Some(duration_ns), stream, ..Event::new(start_ns, op) }
}

fn draw_size(work: &Workload, random: &mut Xoshiro256PlusPlus) -> u64 {
    if work.size_dist == SizeDist::Fixed {
        return work.size_mean;
    }
    let normal = Normal::new(1.0, 1.0).unwrap();
    let drawn = std::iter::repeat_with(|| normal.sample(random)).find(|x| *x > 0.0).unwrap();
    // The mean of a normal (1, 1) above zero is 1.2876.
    let bytes = drawn / 1.2876 * work.size_mean as f64;
    ((bytes / work.align as f64).round() as u64).max(1) * work.align
}

impl Drawn {
    fn process(&mut self, process: &Process<'_>, random: &mut Xoshiro256PlusPlus) -> u64 {
        let Process { work, id, .. } = *process;
        let share = work.share_bytes();
        self.files.push(FileEntry { id, first_bytes: share, ..FileEntry::default() });
        let lasts = Exp::new(1.0 / process.duration_ns).unwrap();
        let thinks = Exp::new(1.0 / process.think_ns.max(1.0)).unwrap();
        let period = 1e9 * f64::from(work.process_num) / work.rate.max(1e-9);
        let waits = Exp::new(1.0 / period).unwrap();
        let (mut now, mut due, mut end, mut unsynced) =
            (process.from_ns, process.from_ns as f64, None, 0);
        let mut flying: Vec<u64> = Vec::new();
        for _ in 0..process.requests {
            let bytes = draw_size(work, random).min(share);
            let is_read = random.random_bool(work.read_frac);
            let follows = end.filter(|end| *end + bytes <= share);
            let follows = follows.filter(|_| random.random_bool(work.seq_frac));
            let places = (share - bytes) / work.align + 1;
            let offset = follows.unwrap_or_else(|| random.random_range(0..places) * work.align);
            if work.rate > 0.0 {
                due += if work.arrivals == Arrivals::Fixed { period } else { waits.sample(random) };
                now = now.max(due as u64);
            }
            let duration = lasts.sample(random) as u64 + 1;
            let mut flags = Flags::default();
            if work.depth > 1 {
                flags = Flags::ASYNC;
                flying.sort_unstable();
                if flying.len() >= work.depth as usize {
                    now = now.max(flying.remove(0)) + 1;
                }
                flying.push(now + duration);
            }
            let op = if is_read { Op::Read } else { Op::Write };
            let made = Event {
                handle: id + 100,
                file: id,
                offset,
                length: bytes,
                flags,
                ..event(op, id, now, duration)
            };
            self.events.push(made);
            self.requests += 1;
            self.sizes += bytes;
            self.reads += u64::from(is_read);
            self.follows += u64::from(end == Some(offset));
            self.pages.extend((offset / PAGE..=(offset + bytes - 1) / PAGE).map(|page| (id, page)));
            end = Some(offset + bytes);
            now += if work.depth > 1 { 1 } else { duration };
            unsynced += u32::from(!is_read);
            if work.fsync_every > 0 && unsynced == work.fsync_every {
                unsynced = 0;
                let sync = lasts.sample(random) as u64 + 1;
                let made = Event { handle: id + 100, file: id, ..event(Op::Dsync, id, now, sync) };
                self.events.push(made);
                self.syncs += 1;
                now += sync;
            }
            now += thinks.sample(random) as u64;
        }
        now
    }

    /// All processes of a workload; when the last ends.
    fn workload(&mut self, work: &Workload, requests: usize, from_ns: u64, seed: u64) -> u64 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut until_ns = from_ns;
        for id in 1..=work.process_num {
            let process = Process {
                work,
                id,
                requests: requests / work.process_num as usize,
                from_ns,
                duration_ns: 80_000.0,
                think_ns: 4_000.0,
            };
            until_ns = until_ns.max(self.process(&process, &mut random));
        }
        until_ns
    }

    fn info(&self) -> TraceInfo {
        let end = |event: &Event| event.start_ns + event.duration_ns.unwrap_or(0);
        let last = self.events.iter().map(end).max().unwrap_or(0);
        TraceInfo { elapsed_s: last as f64 / 1e9, ..TraceInfo::default() }
    }

    /// Through the trace's file and back.
    fn described(&self) -> App {
        let mut writer = StoreWriter::new(Vec::new(), Names::Hashed, &self.info()).unwrap();
        for file in &self.files {
            writer.file(file.clone()).unwrap();
        }
        let mut events = self.events.clone();
        events.sort_by_key(|event| event.start_ns);
        for event in &events {
            writer.event(event).unwrap();
        }
        let bytes = writer.close(&self.info()).unwrap();
        characterise(&Store::open(Bytes::from(bytes)).unwrap(), &mut |_| ()).unwrap()
    }
}

fn described(text: &str, seed: u64) -> (App, Drawn, Workload) {
    let work = Workload::parse(text).unwrap();
    let mut drawn = Drawn::default();
    drawn.workload(&work, 12_000, 0, seed);
    (drawn.described(), drawn, work)
}

#[test]
fn workloads_come_back_as_they_were_drawn() {
    let texts = [
        "unique_bytes=64MiB,size_mean=16KiB,read_frac=1,seq_frac=1",
        "unique_bytes=200MiB,size_mean=4KiB,size_dist=fixed,read_frac=1,seq_frac=0",
        "unique_bytes=256MiB,size_mean=8KiB,size_dist=fixed,read_frac=0.7,seq_frac=0,process_num=4",
        "unique_bytes=32MiB,size_mean=32KiB,read_frac=0.3,seq_frac=0.5,process_num=2",
        "unique_bytes=16MiB,size_mean=2300,size_dist=fixed,align=4,read_frac=0,seq_frac=1,fsync_every=1",
        "unique_bytes=1GiB,size_mean=64KiB,read_frac=0,seq_frac=0.9,fsync_every=8,process_num=3",
        "unique_bytes=128MiB,size_mean=4KiB,size_dist=fixed,read_frac=0.5,seq_frac=0,depth=16",
        "unique_bytes=128MiB,size_mean=4KiB,size_dist=fixed,read_frac=1,seq_frac=0,rate=2000",
        "unique_bytes=128MiB,size_mean=8KiB,read_frac=0.9,seq_frac=0.1,rate=1000,arrivals=poisson",
        "unique_bytes=64MiB,size_mean=16KiB,read_frac=0.5,seq_frac=0.3,process_num=8,fsync_every=2",
    ];
    for (at, text) in texts.iter().enumerate() {
        for seed in 0..4 {
            let (app, drawn, work) = described(text, 100 * at as u64 + seed);
            let (whole, five) = (&app.whole, &app.whole.five);
            let near = |name: &str, got: f64, truth: f64, slack: f64| {
                assert!((got - truth).abs() <= slack, "{text}: {name} {got}, drawn {truth}");
            };
            let count = drawn.requests as f64;
            let mean = drawn.sizes as f64 / count;
            near("size_mean", five.size_mean, mean, 1e-9 * mean);
            near("read_frac", five.read_frac, drawn.reads as f64 / count, 1e-9);
            near("seq_frac", five.seq_frac, drawn.follows as f64 / count, 1e-9);
            near("unique", five.unique_bytes as f64, (drawn.pages.len() as u64 * PAGE) as f64, 0.0);
            near("syncs", whole.syncs.count as f64, drawn.syncs as f64, 0.0);
            near("every", f64::from(whole.syncs.every), f64::from(work.fsync_every), 0.0);
            near("depth", f64::from(whole.concurrency.depth), f64::from(work.depth), 0.0);
            if work.rate == 0.0 {
                let processes = f64::from(work.process_num);
                near("process_num", f64::from(five.process_num), processes, 0.0);
            } else {
                near("rate", whole.arriving.rate_per_s, work.rate, 0.1 * work.rate);
            }
            let arrivals = if work.rate > 0.0 { Loop::Open } else { Loop::Closed };
            assert_eq!(whole.arrivals, arrivals, "{text}: {:?}", whole.arriving);
            // Streams end one after the other: what the last do alone may be a phase of its own.
            let early = starts(&app).into_iter().skip(1).find(|s| *s < 0.9 * whole.elapsed_s);
            assert!(early.is_none(), "{text}: phases at {:?}", starts(&app));
            Workload::parse(&whole.workload).unwrap();
        }
    }
}

fn starts(app: &App) -> Vec<f64> {
    app.phases.iter().map(|phase| phase.from_s).collect()
}

#[test]
fn phases_are_found_where_they_are() {
    let texts = [
        "unique_bytes=64MiB,size_mean=64KiB,read_frac=0,seq_frac=1",
        "unique_bytes=64MiB,size_mean=4KiB,size_dist=fixed,read_frac=1,seq_frac=0",
        "unique_bytes=64MiB,size_mean=4KiB,size_dist=fixed,read_frac=0.5,seq_frac=0,fsync_every=1",
        "unique_bytes=64MiB,size_mean=16KiB,read_frac=0.5,seq_frac=0.2,process_num=4",
    ];
    let mut right = 0;
    for seed in 0..20_u64 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let count = random.random_range(2..=4);
        let first = random.random_range(0..4);
        let (mut drawn, mut now, mut cuts) = (Drawn::default(), 0, Vec::new());
        for at in 0..count {
            let work = Workload::parse(texts[(first + at) % 4]).unwrap();
            let requests = random.random_range(3000..9000) * work.process_num as usize;
            now = drawn.workload(&work, requests, now, seed * 10 + at as u64);
            cuts.push(now as f64 / 1e9);
        }
        cuts.pop();
        let app = drawn.described();
        let found: Vec<f64> = starts(&app).into_iter().skip(1).collect();
        let slack = 0.03 * app.whole.elapsed_s;
        let near = found.len() == cuts.len()
            && found.iter().zip(&cuts).all(|(found, cut)| (found - cut).abs() <= slack);
        right += u32::from(near);
    }
    assert!(right >= 19, "{right} of 20");
}

#[test]
fn a_phase_has_numbers_of_its_own() {
    let mut drawn = Drawn::default();
    let write = "unique_bytes=64MiB,size_mean=64KiB,size_dist=fixed,read_frac=0,seq_frac=1";
    let read = "unique_bytes=64MiB,size_mean=4KiB,size_dist=fixed,read_frac=1,seq_frac=0";
    let now = drawn.workload(&Workload::parse(write).unwrap(), 6000, 0, 1);
    drawn.workload(&Workload::parse(read).unwrap(), 6000, now, 2);
    let app = drawn.described();
    let five: Vec<_> = app.phases.iter().map(|phase| &phase.behaviour.five).collect();
    assert_eq!(five.len(), 2);
    assert!(five[0].read_frac < 0.05 && five[1].read_frac > 0.95, "{five:?}");
    assert!(five[0].size_mean > 60_000.0 && five[1].size_mean < 5_000.0, "{five:?}");
    let requests: u64 = app.phases.iter().map(|phase| phase.behaviour.requests).sum();
    assert_eq!(requests, app.whole.requests);
}

#[test]
fn a_loop_that_thinks_is_closed() {
    let work = Workload::parse("unique_bytes=64MiB,size_mean=4KiB,size_dist=fixed").unwrap();
    for seed in 0..10 {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut drawn = Drawn::default();
        let process = Process {
            work: &work,
            id: 1,
            requests: 8000,
            from_ns: 0,
            duration_ns: 100_000.0,
            think_ns: 300_000.0,
        };
        drawn.process(&process, &mut random);
        assert_eq!(drawn.described().whole.arrivals, Loop::Closed, "seed {seed}");
    }
}

#[test]
fn streams_that_only_lack_a_processor_are_at_it() {
    // Four loops on two processors: half of the time each waits for its turn, outside of calls.
    let mut drawn = Drawn::default();
    for stream in 1..=4_u32 {
        drawn.files.push(FileEntry { id: stream, ..FileEntry::default() });
        let mut now = u64::from(stream % 2) * 3_000_000;
        for turn in 0..50_u64 {
            for call in 0..600_u64 {
                let gap = if call == 0 && turn > 0 { 3_000_000 } else { 2_000 };
                now += gap;
                drawn.events.push(Event {
                    file: stream,
                    handle: stream,
                    length: PAGE,
                    cpu_gap_ns: Some(2_000),
                    ..event(Op::Read, stream, now, 3_000)
                });
                now += 3_000;
            }
        }
    }
    assert_eq!(drawn.described().whole.five.process_num, 4);
}

#[test]
fn what_waits_for_no_storage_is_not_at_it() {
    let mut drawn = Drawn::default();
    drawn.files.push(FileEntry { id: 1, ..FileEntry::default() });
    drawn.files.push(FileEntry { id: 2, kind: FileKind::Other, ..FileEntry::default() });
    for at in 0..1000_u64 {
        let read = Event {
            file: 1,
            handle: 1,
            length: PAGE,
            ..event(Op::Read, 1, at * 1_000_000, 50_000)
        };
        let pipe =
            Event { file: 2, handle: 2, length: 10, ..event(Op::Read, 2, at * 1_000_000, 900_000) };
        drawn.events.extend([read, pipe, event(Op::Wait, 3, at * 1_000_000, 990_000)]);
    }
    let whole = drawn.described().whole;
    assert_eq!((whole.five.process_num, whole.bytes_read), (1, 1000 * PAGE));
    assert!((whole.concurrency.busy - 1.0).abs() < 1e-9);
}

#[test]
fn mapped_data_are_unique_data_and_programs_are_not() {
    let mut drawn = Drawn::default();
    let file = |id, class: &str| FileEntry { id, class: class.to_owned(), ..FileEntry::default() };
    drawn.files.extend([file(1, "database"), file(2, "program"), file(3, "")]);
    for at in 0..100_u64 {
        for (file, op) in [(1, Op::FaultR), (2, Op::FaultR), (3, Op::FaultW)] {
            let fault = Event {
                file,
                offset: at * 16 * PAGE,
                length: 16 * PAGE,
                ..event(op, 1, at * 1000, 500)
            };
            drawn.events.push(fault);
        }
    }
    drawn.events.insert(0, Event { file: 3, other: 4, ..event(Op::Mmap, 1, 0, 10) });
    let whole = drawn.described().whole;
    assert_eq!(whole.five.unique_bytes, 1600 * PAGE);
    assert_eq!((whole.unique.mapped_bytes, whole.unique.program_bytes), (1600 * PAGE, 3200 * PAGE));
    assert_eq!((whole.bytes_read, whole.bytes_written), (0, 0));
}

#[test]
fn a_copy_reads_and_writes() {
    let mut drawn = Drawn::default();
    drawn.files.extend([1, 2].map(|id| FileEntry { id, ..FileEntry::default() }));
    let create = Event { file: 2, ..event(Op::Create, 1, 0, 10) };
    let copy = |at: u64| Event {
        file: 1,
        other: 2,
        offset: at << 20,
        length: 1 << 20,
        ..event(Op::Copy, 1, 1000 + at, 1)
    };
    drawn.events.extend([create, copy(0), copy(1)]);
    drawn.events.push(Event { file: 2, ..event(Op::Sync, 1, 9000, 10) });
    let whole = drawn.described().whole;
    assert_eq!((whole.bytes_read, whole.bytes_written), (2 << 20, 2 << 20));
    assert_eq!(whole.five.unique_bytes, 4 << 20);
    assert!((whole.syncs.by_kind["new"].pages_mean - 512.0).abs() < 1e-9);
}

#[test]
fn a_model_is_small_and_names_nobody() {
    let secret = |n: u32| format!("canary{n:04}");
    let mut drawn = Drawn::default();
    for id in 0..1000 {
        let name = secret(id);
        drawn.files.push(FileEntry {
            id: id + 1,
            class: name.clone(),
            path: Some(format!("/home/{name}/{name}.{name}")),
            ..FileEntry::default()
        });
        for at in 0..20_u64 {
            let start = u64::from(id) * 1_000_000 + at * 40_000;
            let op = Op::ALL[(at + u64::from(id)) as usize % Op::ALL.len()];
            let length = 1 + at * u64::from(id) * 37;
            drawn.events.push(Event {
                file: id + 1,
                handle: id + 1,
                length,
                ..event(op, id, start, 20_000)
            });
        }
    }
    let app = drawn.described();
    let text = model_text(app.clone());
    assert!(text.len() <= ioscape_model::app::APP_BYTES_MAX, "{} bytes", text.len());
    assert!(!text.contains("canary"));
    assert_eq!(App::parse(&text).unwrap().whole, app.whole);
    assert!(!crate::export::fio_job(&app).text.contains("canary"));
}

#[test]
fn a_mixture_adds_up() {
    let (a, ..) =
        described("unique_bytes=64MiB,size_mean=4KiB,size_dist=fixed,read_frac=1,seq_frac=0", 1);
    let (b, ..) = described(
        "unique_bytes=64MiB,size_mean=64KiB,size_dist=fixed,read_frac=0,seq_frac=1,process_num=2",
        2,
    );
    let both = mix(&a, &b).whole;
    assert_eq!(both.five.unique_bytes, a.whole.five.unique_bytes + b.whole.five.unique_bytes);
    assert_eq!(both.five.process_num, 3);
    assert!((both.five.read_frac - 0.5).abs() < 0.01);
    assert!((both.five.size_mean - 34.0 * 1024.0).abs() < 400.0, "{}", both.five.size_mean);
    assert_eq!(both.bytes_read, a.whole.bytes_read);
    Workload::parse(&both.workload).unwrap();
}

#[test]
fn nothing_is_described_as_nothing() {
    let app = Drawn::default().described();
    assert_eq!(app.whole.five.unique_bytes, 0);
    assert!(!app.warnings.is_empty());
    let text = model_text(app);
    assert!(!text.contains("null,null") && App::parse(&text).is_ok());
    Workload::parse(&App::parse(&text).unwrap().whole.workload).unwrap();
}
