//! Memory and dirty limits on the real kernel. Both need root; without it, or in a container
//! that hides the control files, the tests say so and pass. The dirty limits are the whole
//! machine's: they are touched only where the environment says `IOSCAPE_TEST_LIMITS=1`.
//!
//! Limits bind whole processes, so each test runs its deed in a process of its own: this program
//! again, told by the environment to run one ignored test.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail as loudly as they do")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ioscape_engine::cachestat::{Pieces, drop_cache, read_in, resident};
use ioscape_engine::dirty_limit::{self, DirtyLimit};
use ioscape_engine::files::{TestFiles, leftovers, remove_leftovers};
use ioscape_engine::memory_limit::{MemoryLimit, remove_leftover_groups};
use ioscape_engine::target::open_directory;
use ioscape_engine::{Clock, Error, RunId, host};
use ioscape_test_support::skipped;

const MIB: u64 = 1 << 20;
const LIMIT_BYTES: u64 = 64 * MIB;

/// A process that runs one ignored test of this program.
struct Deed {
    process: Child,
    output: BufReader<ChildStdout>,
}

impl Deed {
    fn start(name: &str, place: &Path) -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--ignored", "--nocapture"])
            .env("IOSCAPE_TEST_PLACE", place)
            .stdout(Stdio::piped())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output }
    }

    /// What it says behind `deed: `; it may go on afterwards.
    fn says(&mut self) -> String {
        let mut lines = self.output.by_ref().lines().map_while(Result::ok);
        let said = lines.find_map(|line| Some(line.split_once("deed: ")?.1.to_owned()));
        said.expect("the deed says something before it ends")
    }

    fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn ends_well(mut self) -> bool {
        std::io::copy(&mut self.output, &mut std::io::sink()).unwrap();
        self.process.wait().unwrap().success()
    }
}

/// Where a deed is done; none where no test started it.
fn place() -> Option<PathBuf> {
    std::env::var_os("IOSCAPE_TEST_PLACE").map(PathBuf::from)
}

/// Waits to be killed, or for the end of the test that started us.
fn wait() {
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn reading_more_than_the_memory_limit_leaves_no_more_than_it_in_the_cache() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut deed = Deed::start("deed_reads_more_than_its_memory", place.path());
    let said = deed.says();
    assert!(deed.ends_well());
    if let Some(why) = said.strip_prefix("SKIPPED: ") {
        skipped(why);
        return;
    }
    let numbers: Vec<u64> = said.split(' ').map(|number| number.parse().unwrap()).collect();
    let [limit_seen, resident_bytes, used_bytes] = numbers[..] else { panic!("{said}") };
    eprintln!("resident of 200 MiB read: {resident_bytes}, group holds {used_bytes}");
    assert_eq!(limit_seen, LIMIT_BYTES, "the description of the host knows the limit");
    assert!(used_bytes <= LIMIT_BYTES);
    assert!(resident_bytes < LIMIT_BYTES && resident_bytes > LIMIT_BYTES / 2, "{resident_bytes}");
}

#[test]
#[ignore = "run in a process of its own by the test above"]
fn deed_reads_more_than_its_memory() {
    let Some(place) = place() else { return };
    let quiet = Arc::new(AtomicBool::new(false));
    let run = RunId::random().unwrap();
    let directory = Arc::new(open_directory(place).unwrap());
    let mut files = TestFiles::new(directory, run.clone(), quiet.clone()).unwrap();
    let range = 0..200 * MIB;
    if files.ground().is_memory() || resident(files.get(0, 4096).unwrap(), 0..1).is_none() {
        println!("\ndeed: SKIPPED: a disk and cachestat are needed");
        return;
    }
    let file = files.get(0, range.end).unwrap();
    drop_cache(file, range.clone()).unwrap();
    let limit = match MemoryLimit::enter(LIMIT_BYTES, &run) {
        Ok(limit) => limit,
        Err(Error::Refused(why)) => {
            println!("\ndeed: SKIPPED: {why}");
            return;
        }
        Err(other) => panic!("{other}"),
    };
    assert_eq!(remove_leftover_groups(), 0, "a group with a process in it stays");
    read_in(file, range.clone(), Pieces::Pages, &quiet).unwrap();
    let resident_bytes = resident(file, range).unwrap().resident_bytes;
    let limit_seen = host::describe(&Clock::start()).memory_limit_bytes.unwrap();
    println!("\ndeed: {limit_seen} {resident_bytes} {}", limit.used_bytes().unwrap());
    let group = limit.group().to_owned();
    assert!(group.is_dir());
    drop(limit);
    assert!(!group.exists(), "the group is gone with the limit");
}

#[test]
fn what_a_killed_run_leaves_is_found_and_cleared_away() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let directory = open_directory(place.path()).unwrap();
    let mut deed = Deed::start("deed_lays_out_and_waits", place.path());
    let said = deed.says();
    let alive = leftovers(&directory).unwrap();
    assert_eq!(alive.len(), 1);
    assert!(alive[0].live);
    assert_eq!(remove_leftovers(&directory, None).unwrap().files, 0, "a live run keeps its files");

    deed.kill();
    assert!(!leftovers(&directory).unwrap()[0].live);
    let removed = remove_leftovers(&directory, None).unwrap();
    assert_eq!(removed.files, 1);
    assert!(removed.bytes >= MIB);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);

    let group = Path::new(&said);
    if said == "no group" {
        skipped("the part about control groups, none can be made here");
    } else {
        assert!(group.is_dir(), "the killed run's group is still there");
        // Another run that starts at this moment may be quicker to remove it.
        remove_leftover_groups();
        assert!(!group.exists());
    }
}

#[test]
#[ignore = "run in a process of its own by the test above"]
fn deed_lays_out_and_waits() {
    let Some(place) = place() else { return };
    let run = RunId::random().unwrap();
    let directory = Arc::new(open_directory(place).unwrap());
    let mut files =
        TestFiles::new(directory, run.clone(), Arc::new(AtomicBool::new(false))).unwrap();
    files.get(0, MIB).unwrap();
    let limit = MemoryLimit::enter(LIMIT_BYTES, &run).ok();
    let group =
        limit.as_ref().map_or("no group".into(), |limit| limit.group().display().to_string());
    println!("\ndeed: {group}");
    wait();
}

const SETTINGS: [&str; 4] =
    ["dirty_bytes", "dirty_ratio", "dirty_background_bytes", "dirty_background_ratio"];

fn settings() -> [String; 4] {
    SETTINGS.map(|name| fs::read_to_string(Path::new("/proc/sys/vm").join(name)).unwrap())
}

#[test]
fn dirty_limits_of_a_killed_run_are_restored_by_the_next() {
    if std::env::var_os("IOSCAPE_TEST_LIMITS").is_none_or(|value| value != "1") {
        skipped("it changes the whole machine's dirty limits; IOSCAPE_TEST_LIMITS=1 allows it");
        return;
    }
    let before = settings();
    // What is in force already, only in bytes: the machine hardly notices.
    let bytes = host::describe(&Clock::start()).dirty_limit_bytes;
    let mut deed = Deed::start("deed_sets_dirty_limits_and_waits", Path::new(&bytes.to_string()));
    let said = deed.says();
    if let Some(why) = said.strip_prefix("SKIPPED: ") {
        skipped(why);
        deed.kill();
        return;
    }
    let set = settings();
    let second = DirtyLimit::set(bytes);
    let restored_early = dirty_limit::restore_leftover().unwrap();
    deed.kill();
    let after_kill = settings();
    let restored = dirty_limit::restore_leftover().unwrap();

    assert_eq!(set[0].trim(), bytes.to_string());
    assert!(matches!(second, Err(Error::Refused(_))), "one run at a time");
    assert!(!restored_early, "a live run keeps its limits");
    assert_eq!(after_kill, set, "the killed run restored nothing");
    assert!(restored);
    assert_eq!(settings(), before);
    assert!(!dirty_limit::restore_leftover().unwrap());

    drop(DirtyLimit::set(bytes).unwrap());
    assert_eq!(settings(), before, "a run that ends restores them itself");
}

#[test]
#[ignore = "run in a process of its own by the test above"]
fn deed_sets_dirty_limits_and_waits() {
    let Some(place) = place() else { return };
    let bytes = place.to_str().unwrap().parse().unwrap();
    let limit = DirtyLimit::set(bytes);
    match &limit {
        Ok(_) => println!("\ndeed: ready"),
        Err(error) => println!("\ndeed: SKIPPED: {error}"),
    }
    wait();
}
