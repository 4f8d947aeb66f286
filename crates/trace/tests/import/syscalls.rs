//! System calls: offsets and files out of what the threads did before.

use ioscape_trace::import::Format;
use ioscape_trace::{FileKind, Flags, Layer, Op};

use crate::collected::{clean, rows};

const LOG: &str = "/home/a/log.txt";
const DB: &str = "/home/a/odd > name, (1).db";

#[test]
fn strace_gives_offsets_through_append_dup_fork_and_seek() {
    let trace = clean(&Format::Strace, "strace-old.txt");
    let expected = [
        (0, Op::Open, LOG, 0, 0),
        (100, Op::Stat, LOG, 0, 0),
        (200, Op::Write, LOG, 1000, 100),
        (300, Op::Fork, "", 0, 0),
        (350, Op::Write, LOG, 1100, 50),
        (600, Op::Read, DB, 0, 4096),
        (800, Op::Read, DB, 4096, 8192),
        (1000, Op::Read, DB, 100, 10),
        (1100, Op::Write, DB, 4096, 512),
        (1200, Op::Dsync, DB, 0, 0),
        (3300, Op::Unlink, LOG, 0, 0),
        (3400, Op::Write, LOG, 1150, 1),
        (3500, Op::LookupNeg, "/nowhere", 0, 0),
        (3600, Op::Readdir, "/home/a", 0, 12),
        (3900, Op::Exit, "", 0, 0),
        (4100, Op::Exit, "", 0, 0),
    ];
    assert_eq!(rows(&trace), expected);
    let event = |at: usize| trace.events[at];
    assert!(event(2).flags.has(Flags::APPEND) && event(2).flags.has(Flags::IMPLICIT_OFFSET));
    assert_eq!((event(4).duration_ns, event(5).asked), (Some(150_000), Some(8192)));
    assert_eq!((event(12).error, event(14).other, event(15).other), (2, 128 + 15, 3));
    // Parent and child share what was open before the fork; a duplicate shares with its original.
    assert_eq!(event(2).handle, event(4).handle);
    assert_eq!((event(5).handle, event(6).handle), (event(7).handle, event(8).handle));
    assert_eq!(event(3).other, u64::from(event(4).stream));
    let child = &trace.streams[&event(4).stream];
    assert_eq!((child.parent, child.process), (event(0).stream, child.id));
    assert_eq!(trace.files[&event(2).file].first_bytes, 1000);
    assert_eq!(trace.files[&event(13).file].kind, FileKind::Directory);
    assert_eq!(trace.files[&event(5).file].directory, trace.files[&event(2).file].directory);
}

#[test]
fn strace_of_a_real_program_gives_each_offset() {
    let trace = clean(&Format::Strace, "strace.txt");
    let (log, data, moved) =
        ("/tmp/app/run/wal.log", "/tmp/app/run/data.bin", "/tmp/app/run/moved.bin");
    let odd = "/tmp/app/run/thread \"odd>\" name.txt";
    let rows = rows(&trace);
    let of = |wanted: Op| {
        rows.iter().filter(move |row| row.1 == wanted).map(|row| (row.2, row.3, row.4))
    };
    // A renamed file is the one it was; its entry has the name that it had last.
    let writes = [
        (log, 0, 2300),
        (log, 2300, 2300),
        (log, 4600, 2300),
        (moved, 4096, 8192),
        (log, 6900, 5),
        (odd, 0, 10),
        (moved, 1850, 4),
    ];
    assert_eq!(of(Op::Write).collect::<Vec<_>>(), writes);
    let reads = [(moved, 100, 1000), (moved, 1100, 500), (moved, 1600, 200), (moved, 1800, 50)];
    assert_eq!(of(Op::Read).collect::<Vec<_>>(), reads);
    assert_eq!(of(Op::Dsync).count(), 3);
    assert_eq!(of(Op::Sync).collect::<Vec<_>>(), [(odd, 0, 0)]);
    assert_eq!(of(Op::Trunc).collect::<Vec<_>>(), [(moved, 1000, 0)]);
    assert_eq!(
        of(Op::Rename).chain(of(Op::Unlink)).map(|row| row.0).collect::<Vec<_>>(),
        [moved; 2]
    );
    assert_eq!(of(Op::Create).map(|row| row.0).collect::<Vec<_>>(), [log, moved]);
    assert_eq!(of(Op::Readdir).map(|row| row.2).collect::<Vec<_>>(), [4, 0]);
    assert_eq!(of(Op::LookupNeg).map(|row| row.0).collect::<Vec<_>>(), ["/tmp/app/run/absent"]);
    assert!(trace.files.values().all(|file| file.path.as_deref() != Some(data)));
    // One process, one that it forked, and a thread.
    let streams: Vec<_> = trace.streams.values().map(|s| (s.id, s.process, s.parent)).collect();
    assert_eq!(streams, [(1, 1, 0), (2, 2, 1), (3, 1, 1)]);
    let codes = trace.events.iter().filter(|e| e.op == Op::Exit).map(|e| (e.stream, e.other));
    assert_eq!(codes.collect::<Vec<_>>(), [(2, 7), (3, 0), (1, 0)]);
    let info = trace.info.unwrap();
    assert_eq!((info.layer, info.page_bytes), (Layer::Syscall, 4096));
}

#[test]
fn perf_script_of_a_real_program_gives_offsets_without_names() {
    for name in ["perf-syscalls.txt", "perf-raw.txt"] {
        let trace = clean(&Format::PerfSyscalls, name);
        let rows = rows(&trace);
        let created = rows.iter().position(|row| row.1 == Op::Create).unwrap();
        let found: Vec<_> = rows[created..].iter().map(|row| (row.1, row.3, row.4)).collect();
        let expected = [
            (Op::Create, 0, 0),
            (Op::Write, 0, 3000),
            (Op::Write, 3000, 3000),
            (Op::Write, 6000, 3000),
            (Op::Write, 8192, 512),
            (Op::Sync, 0, 0),
            (Op::Read, 10, 100),
            (Op::Read, 110, 50),
            (Op::Close, 0, 0),
            (Op::Close, 0, 0),
            (Op::Unlink, 0, 0),
        ];
        assert_eq!(found[..11], expected, "{name}");
        let handles = trace.events[created..created + 10].iter().map(|event| event.handle);
        assert!(handles.clone().all(|handle| Some(handle) == handles.clone().next()), "{name}");
        assert!(trace.events[created + 1].duration_ns.is_some_and(|ns| ns < 100_000));
    }
}
