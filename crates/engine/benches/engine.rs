//! The parts of the timed loop one by one, and whole engines: `cargo bench -p ioscape-engine
//! --bench engine`. How they compare with a bare loop and with fio is what `pair` measures.

#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]

use std::fs::File;
use std::hint::black_box;
use std::io::Write as _;
use std::sync::Arc;

use divan::Bencher;
use divan::counter::ItemsCount;
use hdrhistogram::Histogram;
use ioscape_engine::engine::null::Null;
use ioscape_engine::engine::psync::{Parts, Psync};
use ioscape_engine::engine::uring::Uring;
use ioscape_engine::engine::{Duties, InFlight, OneByOne, Wait};
use ioscape_engine::request::{Op, Stream};
use ioscape_engine::tally::Tally;
use ioscape_engine::{Stopwatch, UringOptions};
use ioscape_model::Workload;

const BATCH: usize = 64;
const FILE_BYTES: u64 = 64 << 20;

fn main() {
    divan::main();
}

fn stream(text: &str) -> Stream {
    Stream::new(&Workload::parse(text).unwrap(), 0, 0, 1)
}

#[divan::bench(args = ["seq_frac=0.5", "size_mean=4k,size_dist=fixed,seq_frac=0"])]
fn request_generation(bencher: Bencher, text: &str) {
    let mut stream = stream(text);
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            black_box(stream.next_op());
        }
    });
}

#[divan::bench]
fn histogram(bencher: Bencher) {
    let mut histogram = Histogram::<u64>::new_with_bounds(1, 3_600_000_000_000, 2).unwrap();
    let mut value = 1_u64;
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            value = value.wrapping_mul(25_214_903_917).wrapping_add(11);
            histogram.saturating_record(value >> 50);
        }
    });
}

#[divan::bench]
fn clock(bencher: Bencher) {
    let watch = Stopwatch::calibrated();
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        for _ in 0..BATCH {
            black_box(watch.now_ns());
        }
    });
}

fn one_by_one(bencher: Bencher, engine: &mut dyn OneByOne, text: &str) {
    let (mut stream, mut tally) = (stream(text), Tally::new(false));
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        let ops: [Op; BATCH] = std::array::from_fn(|_| stream.next_op());
        let mut times_ns = [0; BATCH];
        engine.make(&ops, &mut times_ns, &mut tally).unwrap();
        tally.enter_all(&ops, &times_ns);
    });
}

fn in_flight(bencher: Bencher, engine: &mut dyn InFlight, text: &str) {
    let (mut stream, mut tally) = (stream(text), Tally::new(false));
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        let ops: [Op; BATCH] = std::array::from_fn(|_| stream.next_op());
        let (mut taken, mut done) = (0, 0);
        while done < BATCH {
            taken += engine.submit(&ops[taken..]).unwrap();
            done += engine.reap(Wait::ForOne, &mut tally).unwrap();
        }
    });
}

#[divan::bench]
fn null(bencher: Bencher) {
    one_by_one(bencher, &mut Null::new(Stopwatch::calibrated()), "seq_frac=0.5");
}

/// The directory goes with it.
fn parts() -> (tempfile::TempDir, Parts) {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = directory.path().join("file");
    std::fs::write(&path, vec![7; FILE_BYTES as usize]).unwrap();
    let file = Arc::new(File::options().read(true).write(true).open(&path).unwrap());
    let watch = Stopwatch::calibrated();
    let duties = Duties::default();
    let length_max = 64 << 10;
    (directory, Parts { file, path, length_max, seed: 1, duties, ledger: None, watch })
}

fn cached(size: u64) -> String {
    format!("unique_bytes={FILE_BYTES},size_mean={size},size_dist=fixed,read_frac=1,seq_frac=0")
}

#[divan::bench(args = [512, 4096, 65_536])]
fn cached_read(bencher: Bencher, size: u64) {
    let (_directory, parts) = parts();
    one_by_one(bencher, &mut Psync::new(parts), &cached(size));
}

#[divan::bench(args = [1, 8, 32, 128])]
fn uring_depth(bencher: Bencher, depth: u32) {
    let (_directory, parts) = parts();
    match Uring::new(parts, depth, UringOptions::default()) {
        Ok(mut engine) => in_flight(bencher, &mut engine, &cached(4096)),
        Err(error) => writeln!(std::io::stderr(), "SKIPPED: {error}").unwrap_or(()),
    }
}
