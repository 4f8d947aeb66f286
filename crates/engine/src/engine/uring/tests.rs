//! On a real file of the temporary directory's filesystem; skipped aloud where io_uring may not be
//! used.

use std::collections::HashSet;
use std::os::unix::fs::FileExt;

use ioscape_model::Failure;

use super::*;
use crate::engine::Duties;
use crate::rig::Class;
use ioscape_test_support::skipped;

const MIB: u64 = 1 << 20;

struct Bench {
    _directory: tempfile::TempDir,
    file: File,
    engine: Uring,
}

fn bench(depth: u32, fsync_every: u32) -> Option<Bench> {
    bench_with(depth, fsync_every, None)
}

fn bench_with(depth: u32, fsync_every: u32, ledger: Option<Arc<Ledger>>) -> Option<Bench> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
    file.set_len(MIB).unwrap();
    let parts = Parts {
        file: Arc::new(file.try_clone().unwrap()),
        path,
        length_max: 64 << 10,
        seed: 1,
        duties: Duties { fsync_every },
        ledger,
        watch: Stopwatch::calibrated(),
    };
    match Uring::new(parts, depth, UringOptions::default()) {
        Ok(engine) => Some(Bench { _directory: directory, file, engine }),
        Err(error) => {
            skipped(error);
            None
        }
    }
}

fn op(index: u64, class: Class) -> Op {
    Op { offset: index % 16 * (64 << 10), length: 64 << 10, class, due_ns: 0 }
}

#[test]
fn as_many_are_in_flight_as_there_are_slots_and_every_request_comes_back_once() {
    let Some(mut bench) = bench(8, 0) else { return };
    let ops: Vec<Op> = (0..23).map(|index| op(index, Class::ReadRand)).collect();
    let mut tally = Tally::new(false);
    assert_eq!(bench.engine.submit(&ops).unwrap(), 8);
    assert_eq!(bench.engine.submit(&ops[8..]).unwrap(), 0);
    let (mut sent, mut done) = (8, 0);
    while done < ops.len() {
        done += bench.engine.reap(Wait::ForOne, &mut tally).unwrap();
        sent += bench.engine.submit(&ops[sent..]).unwrap();
    }
    assert_eq!((sent, done, tally.ops(), bench.engine.in_flight()), (23, 23, 23, 0));
    assert_eq!(tally.sums[Class::ReadRand as usize].bytes, 23 * (64 << 10));
}

#[test]
fn what_is_written_arrives_is_incompressible_and_no_block_is_alike() {
    let Some(mut bench) = bench(16, 5) else { return };
    let ops: Vec<Op> = (0..16).map(|index| op(index, Class::WriteRand)).collect();
    assert_eq!(bench.engine.submit(&ops).unwrap(), 16);
    let mut tally = Tally::new(false);
    while tally.ops() < 16 {
        bench.engine.reap(Wait::ForOne, &mut tally).unwrap();
    }
    let mut bytes = vec![0; MIB as usize];
    bench.file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes.chunks(4096).collect::<HashSet<_>>().len(), 256);
    let mut values = [0_usize; 256];
    for byte in &bytes {
        values[usize::from(*byte)] += 1;
    }
    assert!(values.iter().all(|count| *count < bytes.len() / 100));
}

#[test]
fn a_read_past_the_end_is_counted_as_short_and_the_rest_is_done() {
    let Some(mut bench) = bench(4, 0) else { return };
    let past = Op { offset: MIB - 4096, length: 8192, class: Class::ReadRand, due_ns: 0 };
    let mut tally = Tally::new(false);
    make(&mut bench.engine, &[op(0, Class::ReadSeq), past, op(1, Class::ReadSeq)], &mut tally);
    let first = tally.failures.first().unwrap();
    assert_eq!((tally.ops(), first.count, first.failure), (2, 1, Failure::Short));
    assert_eq!(first.first_offset, MIB - 4096);
    assert!(first.text.contains("only 4096 bytes"), "{}", first.text);
}

#[test]
fn a_wait_ends_at_its_time_with_nothing_done_or_before_with_something() {
    let Some(mut bench) = bench(2, 0) else { return };
    let mut tally = Tally::new(false);
    let from_ns = bench.engine.watch.now_ns();
    bench.engine.submit(&[op(0, Class::ReadRand)]).unwrap();
    let wait = Wait::Until(from_ns + 120_000_000_000);
    assert_eq!(bench.engine.reap(wait, &mut tally).unwrap(), 1);
    assert!(bench.engine.watch.now_ns() < from_ns + 120_000_000_000);
    let from_ns = bench.engine.watch.now_ns();
    let wait = Wait::Until(from_ns + 1_000_000);
    assert_eq!(bench.engine.reap(wait, &mut tally).unwrap(), 0);
    assert!(bench.engine.watch.now_ns() >= from_ns + 1_000_000);
}

#[test]
fn what_follows_a_write_is_handed_over_by_a_look_that_does_not_wait() {
    let Some(mut bench) = bench(4, 1) else { return };
    let mut tally = Tally::new(false);
    let ops: Vec<Op> = (0..4).map(|index| op(index, Class::WriteRand)).collect();
    assert_eq!(bench.engine.submit(&ops).unwrap(), 4);
    let end_ns = bench.engine.watch.now_ns() + 120_000_000_000;
    while tally.ops() < 4 {
        let now_ns = bench.engine.watch.now_ns();
        assert!(now_ns < end_ns, "an fdatasync was never handed over");
        bench.engine.reap(Wait::Until(now_ns), &mut tally).unwrap();
    }
    assert_eq!(bench.engine.in_flight(), 0);
}

#[test]
fn where_io_uring_is_forbidden_the_way_out_is_named() {
    for (number, part) in [
        (libc::EPERM, "kernel.io_uring_disabled"),
        (libc::ENOSYS, "seccomp"),
        (libc::ENOMEM, "locked memory"),
    ] {
        let message = forbidden(&io::Error::from_raw_os_error(number)).to_string();
        assert!(message.contains(part) && message.contains("leave --engine out"), "{message}");
    }
}

/// All requests, as many in flight as there are slots.
fn make(engine: &mut Uring, ops: &[Op], tally: &mut Tally) {
    let (mut sent, mut done) = (0, 0);
    while done < ops.len() {
        sent += engine.submit(&ops[sent..]).unwrap();
        done += engine.reap(Wait::ForOne, tally).unwrap();
    }
}

#[test]
fn a_byte_that_was_changed_is_found_where_it_lies_also_with_many_in_flight() {
    let Some(mut bench) = bench_with(8, 0, Some(Arc::new(Ledger::new(9, MIB)))) else { return };
    let mut tally = Tally::new(false);
    let writes: Vec<Op> = (0..16).map(|index| op(index, Class::WriteRand)).collect();
    make(&mut bench.engine, &writes, &mut tally);
    // Reads and writes of the same blocks at a time are not taken for mismatches.
    let mixed: Vec<Op> = (0..400)
        .map(|index| op(index * 7, if index % 3 == 0 { Class::WriteRand } else { Class::ReadRand }))
        .collect();
    make(&mut bench.engine, &mixed, &mut tally);
    assert_eq!(tally.failures.first(), None);
    make(&mut bench.engine, &writes, &mut tally);
    let at = (5 << 16) + 3 * 4096;
    let mut byte = [0];
    bench.file.read_exact_at(&mut byte, at + 100).unwrap();
    bench.file.write_all_at(&[byte[0] ^ 1], at + 100).unwrap();
    let reads: Vec<Op> = (0..16).map(|index| op(index, Class::ReadRand)).collect();
    let before = tally.verified_bytes;
    make(&mut bench.engine, &reads, &mut tally);
    let first = tally.failures.first().unwrap();
    assert_eq!((first.failure, first.count, first.first_offset), (Failure::Mismatch, 1, at));
    assert_eq!(tally.verified_bytes - before, 15 << 16);
}
