//! A process that may have no io_uring, as in most containers, or no cachestat, as under older kernels: a seccomp
//! filter refuses it in a child, which is this very program, told to run one test.

#![expect(clippy::unwrap_used, reason = "a test binary is all test")]

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ioscape_engine::{
    Clock, EngineKind, FileRig, Rig, RunId, UringOptions, cachestat, host, target,
};
use ioscape_model::{Code, Severity, Workload};
use ioscape_test_support::skipped;

const MIXED: &str = "unique_bytes=16MiB,size_mean=4k,size_dist=fixed,read_frac=0.6,seq_frac=0.3,\
                     depth=8,process_num=2,fsync_every=50";

// Numbers of system calls, on all architectures but alpha.
const IO_URING_SETUP: u32 = 425;
const CACHESTAT: u32 = 451;
/// Set in the children, which are the only ones to run the ignored tests.
const DENIED: &str = "IOSCAPE_TEST_DENIED";

/// Makes a system call fail with EPERM from here on, as Docker's default profile does with those of io_uring.
fn deny(call: u32) -> std::io::Result<()> {
    let statement =
        |code: u32, jt: u8, jf: u8, k: u32| libc::sock_filter { code: code as u16, jt, jf, k };
    let mut filter = [
        // The number of the system call is the first word of what the filter is shown.
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, call),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        statement(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: both calls concern this process alone; the program and its filter live on the stack
    // until the second one returns, and the kernel has copied them then.
    let status = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
    };
    if status == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Runs one ignored test of this program in a child that is denied a system call.
fn denied(call: u32, test: &str) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(DENIED, call.to_string());
    // SAFETY: between fork and exec nothing is called but prctl, twice.
    unsafe { command.pre_exec(move || deny(call)) };
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}\n{said}");
    assert!(!said.contains("SKIPPED"), "{said}");
}

/// Whether another test started this process, with a filter on the system call; says so where none did.
fn is_denied(call: u32) -> bool {
    let is_denied = std::env::var(DENIED).is_ok_and(|denied| denied == call.to_string());
    if !is_denied {
        skipped("it is run by another test, in a child with a seccomp filter");
    }
    is_denied
}

fn rig(directory: &std::path::Path, engine: EngineKind) -> FileRig {
    let clock = Clock::start();
    let opened = target::open_directory(directory).unwrap();
    let run = RunId::random().unwrap();
    let quiet = Arc::new(AtomicBool::new(false));
    let rig = FileRig::new(opened, run.clone(), &host::describe(&clock), clock, quiet).unwrap();
    rig.with_engine(engine).with_verification(&run).unwrap()
}

/// Requests of a visit with checked data, and the codes of its doubts.
fn visit(rig: &mut FileRig, text: &str) -> (u64, Vec<Code>) {
    let work = Workload::parse(text).unwrap();
    rig.prepare(&work).unwrap();
    rig.start(&work, 7).unwrap();
    let mut ops = 0;
    while ops < 2000 {
        ops += rig.window(0.05).unwrap().ops();
    }
    let finished = rig.finish(false).unwrap();
    assert_eq!(finished.failed, vec![]);
    assert!(finished.verified_bytes.unwrap() > 0);
    (ops, finished.warnings.iter().map(|warning| warning.code).collect())
}

#[test]
fn where_io_uring_is_denied_threads_make_the_requests_and_data_are_what_was_written() {
    denied(IO_URING_SETUP, "in_a_child_that_is_denied_io_uring");
}

#[test]
fn where_cachestat_is_denied_pages_are_looked_up_and_it_is_said() {
    denied(CACHESTAT, "in_a_child_that_is_denied_cachestat");
}

#[test]
#[ignore = "run by another test, in a child with a seccomp filter"]
fn in_a_child_that_is_denied_cachestat() {
    if !is_denied(CACHESTAT) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let warnings = target::open_directory(place.path()).unwrap().warnings();
    let said = warnings.iter().find(|warning| warning.text.contains("cachestat")).unwrap();
    assert_eq!((said.code, said.severity), (Code::NoCounters, Severity::Note));
    let path = place.path().join("file");
    std::fs::write(&path, vec![7; 1 << 20]).unwrap();
    let held = cachestat::resident(&std::fs::File::open(&path).unwrap(), 0..1 << 20).unwrap();
    assert_eq!((held.resident_bytes, held.dirty_bytes), (1 << 20, None));
}

#[test]
#[ignore = "run by another test, in a child with a seccomp filter"]
fn in_a_child_that_is_denied_io_uring() {
    if !is_denied(IO_URING_SETUP) {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let mut usual = rig(place.path(), EngineKind::Auto);
    let (_, codes) = visit(&mut usual, MIXED);
    assert_eq!(usual.engine(), "threads");
    assert!(codes.contains(&Code::ThreadPerRequest), "{codes:?}");
    let (_, codes) = visit(&mut usual, &format!("{MIXED},rate=2000"));
    assert!(codes.contains(&Code::ThreadPerRequest), "{codes:?}");
    let (_, codes) = visit(&mut usual, "unique_bytes=16MiB,size_mean=4k,size_dist=fixed");
    assert_eq!((usual.engine(), codes.contains(&Code::ThreadPerRequest)), ("psync", false));
    drop(usual);
    let mut asked = rig(place.path(), EngineKind::Uring(UringOptions::default()));
    let work = Workload::parse(MIXED).unwrap();
    asked.prepare(&work).unwrap();
    let message = asked.start(&work, 7).unwrap_err().to_string();
    assert!(message.contains("leave --engine out"), "{message}");
}

#[test]
fn threads_can_be_asked_for_and_say_what_they_cost() {
    let place = tempfile::tempdir().unwrap();
    let mut rig = rig(place.path(), EngineKind::Threads);
    let (_, codes) = visit(&mut rig, MIXED);
    assert_eq!(rig.engine(), "threads");
    assert!(codes.contains(&Code::ThreadPerRequest), "{codes:?}");
}
