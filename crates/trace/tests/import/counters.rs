//! Darshan's counters and its extended traces.

use ioscape_trace::Op;
use ioscape_trace::import::Format;

use crate::collected::{clean, fixture, read, rows};

#[test]
fn counters_of_darshan_become_calls_that_add_up() {
    let trace = clean(&Format::Darshan, "darshan.txt");
    let of_kind = |op| trace.events.iter().filter(move |event| event.op == op);
    assert_eq!(of_kind(Op::Read).count(), 50);
    assert_eq!(of_kind(Op::Read).map(|event| event.length).sum::<u64>(), 3200);
    assert!(of_kind(Op::Read).all(|event| event.duration_ns == Some(5_000_000)));
    assert_eq!(of_kind(Op::Write).count(), 8);
    assert_eq!(of_kind(Op::Write).map(|event| event.length).sum::<u64>(), 8 << 20);
    assert_eq!((of_kind(Op::Open).count(), of_kind(Op::Sync).count()), (1, 2));
    // The shared file's calls are dealt out to the four ranks.
    assert_eq!(trace.streams.len(), 4);
    assert!(trace.events.is_sorted_by_key(|event| event.start_ns));
    let reads: Vec<_> = of_kind(Op::Read).collect();
    assert!(reads.windows(2).all(|two| two[0].offset + two[0].length == two[1].offset));
    assert_eq!(reads[0].start_ns, 500_000_000);
    assert_eq!(trace.path(reads[0].file), "/scratch/in.dat");
    assert!(trace.info.unwrap().limits[0].contains("Counters only"));
}

#[test]
fn dxt_is_put_in_order_and_counts_posix_only() {
    let (trace, summary) = read(&Format::Dxt, &[&fixture("dxt.txt")]).unwrap();
    let (first, second) = ("/mnt/c/conflict_app.out", "/mnt/c/other.out");
    let expected = [
        (0, Op::Write, second, 512, 100),
        (3_832_400, Op::Write, first, 0, 1 << 20),
        (3_843_600, Op::Write, first, 1 << 20, 1 << 20),
        (8_000_000, Op::Read, first, 0, 4096),
    ];
    assert_eq!(rows(&trace), expected);
    assert_eq!((summary.malformed, summary.passed_over), (0, 1));
    assert_eq!(trace.events[0].duration_ns, Some(500_000_000));
    assert_eq!(trace.streams.len(), 2);
}
