//! Programs are recorded, and what the trace says is held against what is known of them and what
//! the kernel counted.

use std::ffi::OsString;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use ioscape_recorder::{Error, Flow, Means, Options, Recorded, Subject, record, refusal};
use ioscape_test_support::{pages_held, skipped};
use ioscape_trace::{Collected, FileKind, Op};

/// Bytes of one kind of event on the file with this name.
fn bytes(kept: &Collected, name: &str, op: Op) -> u64 {
    kept.on(name, op).iter().map(|event| event.length).sum()
}

fn recorded(means: Means, command: &[&str]) -> Result<(Recorded, Collected), Error> {
    let mut kept = Collected::default();
    let command = command.iter().map(OsString::from).collect();
    let subject = Subject::Command(command);
    let options = Options { ring_bytes: 1 << 22, ..Options::default() };
    let recorded = record(means, &subject, &options, &mut kept, &mut |_| Flow::GoOn)?;
    Ok((recorded, kept))
}

/// Checks with both tracers, or as many as are allowed here.
fn with_tracers(check: impl Fn(Means)) {
    for means in [Means::Ebpf, Means::Ptrace] {
        match refusal(means, &Subject::Command(vec!["true".into()])) {
            None => check(means),
            Some(refused) => skipped(format!("no recording by {means} here: {refused}")),
        }
    }
}

fn shell(means: Means, directory: &Path, line: &str) -> (Recorded, Collected) {
    let line = format!("cd {} && {line}", directory.display());
    let (recorded, kept) = recorded(means, &["sh", "-c", &line]).expect("it is recorded");
    assert_eq!(recorded.exit_code().ok().flatten(), Some(0), "{means} {line}");
    assert_eq!(recorded.info.lost, 0, "{means}");
    let counted = recorded.info.counted.expect("the kernel counts");
    assert_eq!(counted.bytes_unexplained, 0, "{means} {counted:?}");
    (recorded, kept)
}

#[test]
fn what_of_a_file_is_cached_is_seen_when_it_is_opened() {
    const BYTES: usize = 8 << 20;
    let means = Means::Ebpf;
    if let Some(refused) = refusal(means, &Subject::Command(vec!["true".into()])) {
        skipped(format!("no recording by {means} here: {refused}"));
        return;
    }
    // Where temporary files live in memory none of their pages can be dropped.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = directory.path().join("in");
    std::fs::write(&path, vec![7; BYTES]).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    file.sync_all().unwrap();
    for cached in [0, BYTES / 2, BYTES] {
        for advice in [libc::POSIX_FADV_DONTNEED, libc::POSIX_FADV_RANDOM] {
            // SAFETY: the descriptor is open, and no memory is touched.
            unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, advice) };
        }
        let pages = (BYTES / 4096) as u64;
        if pages_held(&file, pages).is_none_or(|held| held.contains(&true)) {
            skipped("files here do not leave the page cache when they are dropped");
            return;
        }
        for page in 0..cached / 4096 {
            file.read_exact_at(&mut [0; 4096], page as u64 * 4096).unwrap();
        }
        // The kernel may take pages for other programs at any time.
        let held = pages_held(&file, pages).unwrap();
        let before = 4096 * held.into_iter().filter(|is_held| *is_held).count() as u64;
        let line = "dd if=in of=out bs=4096 count=1 status=none";
        let (_, kept) = shell(means, directory.path(), line);
        let named = |path: &str| path.ends_with("/in");
        let found = kept.files.values().find(|file| file.path.as_deref().is_some_and(named));
        let seen = found.unwrap().resident_bytes.unwrap();
        assert!(before <= cached as u64, "{before} of {cached}");
        assert!((cached as u64 / 2..=before).contains(&seen), "{seen} of {before}");
    }
}

#[test]
fn a_copy_is_seen_byte_by_byte_with_its_offsets() {
    with_tracers(|means| {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("in"), vec![7; 1_000_003]).unwrap();
        let line = "dd if=in of=out bs=4099 conv=fsync status=none";
        let (_, kept) = shell(means, directory.path(), line);
        assert_eq!(bytes(&kept, "in", Op::Read), 1_000_003, "{means}");
        assert_eq!(bytes(&kept, "out", Op::Write), 1_000_003, "{means}");
        assert_eq!(kept.on("out", Op::Sync).len(), 1, "{means}");
        assert_eq!(kept.on("out", Op::Create).len(), 1, "{means}");
        let mut end = 0;
        for event in kept.on("in", Op::Read) {
            assert_eq!(event.offset, end, "{means}");
            end += event.length;
        }
        let of = |name: &str| {
            let found = kept
                .files
                .values()
                .find(|file| file.path.as_deref().is_some_and(|path| path.ends_with(name)));
            found.unwrap().clone()
        };
        assert_eq!((of("/in").first_bytes, of("/in").last_bytes), (1_000_003, 1_000_003));
        assert_eq!((of("/out").first_bytes, of("/out").last_bytes), (0, 1_000_003));
        assert_eq!(of("/in").kind, FileKind::Regular);
    });
}

#[test]
fn appends_and_shared_positions_end_where_the_file_ends() {
    with_tracers(|means| {
        let directory = tempfile::tempdir().unwrap();
        let line = "{ echo first; (echo second); } > log; echo third >> log; mv log kept; dd if=kept of=/dev/null status=none";
        let (_, kept) = shell(means, directory.path(), line);
        let writes: Vec<(u64, u64)> =
            kept.on("kept", Op::Write).iter().map(|event| (event.offset, event.length)).collect();
        assert_eq!(writes, [(0, 6), (6, 7), (13, 6)], "{means}");
        assert_eq!(bytes(&kept, "kept", Op::Read), 19, "{means}");
        assert_eq!(kept.on("kept", Op::Rename).len(), 1, "{means}");
    });
}

#[test]
fn children_and_what_passes_between_them_are_told_apart() {
    with_tracers(|means| {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("in"), vec![b'a'; 300_000]).unwrap();
        let (recorded, kept) = shell(means, directory.path(), "cat in | wc -c > count");
        assert_eq!(bytes(&kept, "in", Op::Read), 300_000, "{means}");
        assert_eq!(bytes(&kept, "count", Op::Write), 7, "{means}");
        assert!(recorded.streams >= 3, "{means}: {}", recorded.streams);
        let other: Vec<u32> = kept
            .files
            .values()
            .filter(|file| file.kind == FileKind::Other)
            .map(|file| file.id)
            .collect();
        let piped =
            kept.events.iter().filter(|event| event.op == Op::Read && other.contains(&event.file));
        assert_eq!(piped.map(|event| event.length).sum::<u64>(), 300_000, "{means}");
        let forks = kept.events.iter().filter(|event| event.op == Op::Fork).count();
        let exits = kept.events.iter().filter(|event| event.op == Op::Exit).count();
        assert_eq!(
            (forks as u32 + 1, exits as u32),
            (recorded.streams, recorded.streams),
            "{means}"
        );
        assert_eq!(kept.streams.len() as u32, recorded.streams, "{means}");
    });
}

#[test]
fn names_that_are_not_there_are_look_ups_that_failed() {
    with_tracers(|means| {
        let directory = tempfile::tempdir().unwrap();
        let line = "mkdir a; rmdir a; [ ! -e gone ]; ln -s x y; rm y";
        let (_, kept) = shell(means, directory.path(), line);
        assert_eq!(kept.on("a", Op::Mkdir).len(), 1, "{means}");
        assert_eq!(kept.on("a", Op::Rmdir).len(), 1, "{means}");
        assert!(!kept.on("gone", Op::LookupNeg).is_empty(), "{means}");
        assert_eq!(kept.on("y", Op::Symlink).len(), 1, "{means}");
        assert_eq!(kept.on("y", Op::Unlink).len(), 1, "{means}");
    });
}

#[test]
fn exit_codes_and_signals_are_the_commands_own() {
    for means in [Means::Ebpf, Means::Ptrace, Means::Counters] {
        if let Some(refused) = refusal(means, &Subject::Command(vec!["true".into()])) {
            skipped(format!("no recording by {means} here: {refused}"));
            continue;
        }
        let code = |line: &str| {
            let (recorded, _) = recorded(means, &["sh", "-c", line]).unwrap();
            recorded.exit_code().unwrap()
        };
        assert_eq!(code("exit 7"), Some(7), "{means}");
        assert_eq!(code("kill -TERM $$"), Some(128 + 15), "{means}");
        let missing = recorded(means, &["/no/such/program"]);
        assert!(matches!(missing, Err(Error::NotFound(_))), "{means}");
        let refused = recorded(means, &["/etc/passwd"]);
        assert!(matches!(refused, Err(Error::NotExecutable { .. })), "{means}");
    }
}

#[test]
fn counters_know_the_sums_of_a_tree() {
    let line = "head -c 100000 /dev/zero | cat > /dev/null";
    let (recorded, kept) = recorded(Means::Counters, &["sh", "-c", line]).unwrap();
    let counted = recorded.info.counted.unwrap();
    assert!(counted.read_bytes >= 200_000, "{counted:?}");
    assert!(counted.written_bytes >= 200_000, "{counted:?}");
    assert!(kept.events.is_empty());
    assert!(kept.info.unwrap().limits[0].contains("no single call"));
}

#[test]
fn processor_time_and_mapped_pages_are_seen_by_ebpf() {
    if let Some(refused) = refusal(Means::Ebpf, &Subject::Command(vec!["true".into()])) {
        skipped(format!("no eBPF here: {refused}"));
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (recorded, kept) = shell(
        Means::Ebpf,
        directory.path(),
        "sleep 0.2; i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; : > made",
    );
    let cpu_s = recorded.info.cpu_s.unwrap();
    assert!(cpu_s > 0.0 && cpu_s < recorded.info.elapsed_s, "{cpu_s}");
    let of_loop = kept.on("made", Op::Create)[0].cpu_gap_ns.unwrap();
    assert!(of_loop > 1_000_000, "50,000 rounds of a shell's loop take more than {of_loop} ns");
    assert!(kept.events.iter().any(|event| event.op == Op::FaultR));
    assert!(recorded.info.overhead_s < 1e-4, "{}", recorded.info.overhead_s);
}
