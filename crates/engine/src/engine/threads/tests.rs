//! On a real file of the temporary directory's filesystem.

use std::collections::HashSet;
use std::os::unix::fs::FileExt;

use ioscape_model::Failure;

use super::*;
use crate::engine::OneByOne;
use crate::engine::psync::Psync;
use crate::verify::Ledger;

const MIB: u64 = 1 << 20;
const BLOCK: u64 = 4096;

struct Bench {
    _directory: tempfile::TempDir,
    file: File,
    parts: Parts,
}

fn bench(fsync_every: u32, ledger: Option<Arc<Ledger>>) -> Bench {
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
    Bench { _directory: directory, file, parts }
}

fn op(index: u64, class: Class) -> Op {
    Op { offset: index * BLOCK % MIB, length: BLOCK, class, due_ns: 0 }
}

/// Makes all of these, as a closed loop does.
fn make(engine: &mut Threads, ops: &[Op], tally: &mut Tally) {
    let (mut sent, mut done) = (0, 0);
    while done < ops.len() {
        sent += engine.submit(&ops[sent..]).unwrap();
        done += engine.reap(Wait::ForOne, tally).unwrap();
    }
}

#[test]
fn every_request_comes_back_once_and_no_more_are_taken_than_fit() {
    for access in [Access::Direct, Access::Buffered] {
        let bench = bench(0, None);
        let mut engine = Threads::new(bench.parts.clone(), 8, access);
        let ops: Vec<Op> = (0..500).map(|index| op(index, Class::ReadRand)).collect();
        assert_eq!(engine.submit(&ops).unwrap(), 16);
        assert_eq!(engine.submit(&ops[16..]).unwrap(), 0);
        let mut tally = Tally::new(false);
        let (mut sent, mut done) = (16, 0);
        while done < ops.len() {
            done += engine.reap(Wait::ForOne, &mut tally).unwrap();
            sent += engine.submit(&ops[sent..]).unwrap();
        }
        assert_eq!((sent, done, tally.ops(), engine.taken), (500, 500, 500, 0));
        assert_eq!(tally.sums[Class::ReadRand as usize].bytes, 500 * BLOCK);
    }
}

#[test]
fn what_is_written_arrives_is_incompressible_and_no_block_is_alike() {
    let bench = bench(5, None);
    let mut engine = Threads::new(bench.parts.clone(), 16, Access::Buffered);
    let ops: Vec<Op> = (0..256).map(|index| op(index, Class::WriteRand)).collect();
    let mut tally = Tally::new(false);
    make(&mut engine, &ops, &mut tally);
    let mut bytes = vec![0; MIB as usize];
    bench.file.read_exact_at(&mut bytes, 0).unwrap();
    assert_eq!(bytes.chunks(BLOCK as usize).collect::<HashSet<_>>().len(), 256);
    assert_eq!(engine.desk.writes.load(Ordering::Relaxed), 256);
}

#[test]
fn what_many_threads_wrote_one_after_the_other_recognises() {
    let ledger = Arc::new(Ledger::new(9, MIB));
    let bench = bench(0, Some(Arc::clone(&ledger)));
    let mut engine = Threads::new(bench.parts.clone(), 32, Access::Buffered);
    let all = |class| (0..256).map(move |index| op(index, class));
    let first: Vec<Op> = all(Class::WriteSeq).collect();
    // Reads and writes of the same few blocks at a time: some are not judged, none is wrong.
    let crowded: Vec<Op> = (0..4000)
        .map(|index| {
            let class = if index % 3 == 0 { Class::WriteRand } else { Class::ReadRand };
            op(index * 7 % 13, class)
        })
        .collect();
    let mut tally = Tally::new(false);
    make(&mut engine, &first, &mut tally);
    make(&mut engine, &crowded, &mut tally);
    assert_eq!((tally.ops(), tally.failed_ops), (4256, 0));
    assert!(tally.verified_bytes > 0);
    drop(engine);
    let mut psync = Psync::new(bench.parts.clone());
    let mut tally = Tally::new(false);
    for op in all(Class::ReadSeq) {
        psync.make_one(&op, &mut tally).unwrap();
    }
    assert_eq!((tally.ops(), tally.failed_ops), (256, 0));
    // Blocks that were written twice at a time are not known.
    assert!(tally.verified_bytes >= 243 * BLOCK, "{}", tally.verified_bytes);
}

#[test]
fn a_block_that_was_changed_is_found_and_a_read_past_the_end_is_short() {
    let ledger = Arc::new(Ledger::new(9, 2 * MIB));
    let bench = bench(0, Some(ledger));
    let mut engine = Threads::new(bench.parts.clone(), 4, Access::Buffered);
    let writes: Vec<Op> = (0..256).map(|index| op(index, Class::WriteSeq)).collect();
    let mut tally = Tally::new(false);
    make(&mut engine, &writes, &mut tally);
    let mut byte = [0];
    bench.file.read_exact_at(&mut byte, 77 * BLOCK + 100).unwrap();
    bench.file.write_all_at(&[byte[0] ^ 1], 77 * BLOCK + 100).unwrap();
    let past = Op { offset: MIB, length: BLOCK, class: Class::ReadRand, due_ns: 0 };
    make(&mut engine, &[op(77, Class::ReadRand), past], &mut tally);
    let failures = [Failure::Mismatch, Failure::Short];
    let all = tally.failures.into_all();
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|failed| failures.contains(&failed.failure) && failed.count == 1));
}

#[test]
fn requests_that_wait_for_a_thread_are_given_up_at_the_end() {
    let bench = bench(0, None);
    let mut engine = Threads::new(bench.parts.clone(), 2, Access::Direct);
    let ops: Vec<Op> = (0..4).map(|index| op(index, Class::WriteRand)).collect();
    assert_eq!(engine.submit(&ops).unwrap(), 4);
    drop(engine);
    assert_eq!(Arc::strong_count(&bench.parts.file), 1, "every thread is gone");
}

#[test]
fn handing_over_costs_something() {
    let cost_s = cost_s(Stopwatch::calibrated()).unwrap();
    eprintln!("{:.1} us per request", cost_s * 1e6);
    assert!(cost_s < 0.1, "{cost_s}");
}
