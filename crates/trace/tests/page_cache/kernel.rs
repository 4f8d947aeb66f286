//! What the kernel itself does with a pattern, in a memory group with a limit (cgroup v1, root).

use std::fs::{self, File as Handle};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::fs::{Advice, fadvise};

use super::patterns::{File, PAGE, Step};

/// A group with a limit, until dropped.
pub(crate) struct Group {
    path: PathBuf,
}

impl Group {
    /// A new group, if this machine lets us.
    pub(crate) fn make(limit_bytes: u64) -> Option<Self> {
        let name = format!("ioscape-test-{}", std::process::id());
        let path = Path::new("/sys/fs/cgroup/memory").join(name);
        fs::create_dir(&path).ok()?;
        let group = Self { path };
        fs::write(group.path.join("memory.limit_in_bytes"), limit_bytes.to_string()).ok()?;
        Some(group)
    }

    /// Bytes in use, and bytes of page cache among them.
    fn usage(&self) -> (u64, u64) {
        let read = |name: &str| fs::read_to_string(self.path.join(name)).unwrap_or_default();
        let stat = read("memory.stat");
        let cache = stat.lines().find_map(|line| line.strip_prefix("cache "));
        let number = |text: &str| text.trim().parse().unwrap_or(0);
        (number(&read("memory.usage_in_bytes")), cache.map_or(0, number))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..100 {
            if fs::remove_dir(&self.path).is_ok() {
                return;
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }
}

/// What a run did.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) read_bytes: u64,
    pub(crate) elapsed_ns: u64,
    /// Page cache while the group was full, median; where it never was, what there was room for.
    pub(crate) held_bytes: u64,
}

/// Runs a command in the group, looking at it every few milliseconds, which brings its counters up to
/// date. The command prints bytes read from storage and nanoseconds.
pub(crate) fn run(group: &Group, limit_bytes: u64, command: &mut Command) -> Run {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let output = std::thread::scope(|scope| {
        let watcher = scope.spawn(move || {
            let mut samples = Vec::new();
            loop {
                samples.push(group.usage());
                let wait = stopped.recv_timeout(Duration::from_millis(5));
                if wait != Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                    return samples;
                }
            }
        });
        let output = command.env("IOSCAPE_TEST_GROUP", &group.path).output().unwrap();
        drop(stop);
        (output, watcher.join().unwrap())
    });
    let (output, samples) = output;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.split_once("DONE ")).map(|(_, rest)| rest);
    let line = line.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    let (read, elapsed) = line.trim().split_once(' ').unwrap();
    let median = |mut values: Vec<u64>| {
        values.sort_unstable();
        values[values.len() / 2]
    };
    let full: Vec<_> =
        samples.iter().filter(|(used, _)| *used > limit_bytes - (2 << 20)).map(|s| s.1).collect();
    let held_bytes = if full.len() > 2 {
        median(full)
    } else {
        limit_bytes - median(samples.iter().map(|(used, cache)| used - cache).collect())
    };
    Run { read_bytes: read.parse().unwrap(), elapsed_ns: elapsed.parse().unwrap(), held_bytes }
}

/// In the child: joins the group, does the steps, says what they took.
pub(crate) fn child(directory: &Path, steps: &[Step], is_random: bool) {
    if let Some(group) = std::env::var_os("IOSCAPE_TEST_GROUP") {
        let procs = Path::new(&group).join("cgroup.procs");
        fs::write(procs, std::process::id().to_string()).unwrap();
    }
    let open = |name: &str, create: bool| {
        let mut options = Handle::options();
        let file = options.read(true).write(true).create(create).truncate(create);
        let file = file.open(directory.join(name)).unwrap();
        let advice = if is_random { Advice::Random } else { Advice::Normal };
        fadvise(&file, 0, None, advice).unwrap();
        file
    };
    let needs_log = steps.iter().any(|step| step.file == File::Log);
    let files = [open("a", false), open("b", false), open("log", needs_log)];
    let mut block = vec![7_u8; 1 << 16];
    let start = fs::read_to_string("/proc/uptime").is_ok().then(Clock::start);
    let before = read_bytes();
    for step in steps {
        let file = &files[step.file as usize - 1];
        let block = &mut block[..step.length as usize];
        if step.is_write {
            file.write_all_at(block, step.offset).unwrap();
        } else {
            file.read_exact_at(block, step.offset).unwrap();
        }
    }
    let elapsed = start.map_or(0, |clock| clock.elapsed_ns());
    println!("DONE {} {elapsed}", read_bytes() - before);
}

struct Clock(rustix::time::Timespec);

impl Clock {
    fn now() -> rustix::time::Timespec {
        rustix::time::clock_gettime(rustix::time::ClockId::Monotonic)
    }

    fn start() -> Self {
        Self(Self::now())
    }

    fn elapsed_ns(&self) -> u64 {
        let now = Self::now();
        ((now.tv_sec - self.0.tv_sec) * 1_000_000_000 + (now.tv_nsec - self.0.tv_nsec)) as u64
    }
}

fn read_bytes() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap();
    let line = io.lines().find_map(|line| line.strip_prefix("read_bytes: ")).unwrap();
    line.trim().parse().unwrap()
}

/// How far the device of a directory is read ahead.
pub(crate) fn set_read_ahead(directory: &Path, kib: u64) {
    use std::os::unix::fs::MetadataExt;
    let device = fs::metadata(directory).unwrap().dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let path = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
    fs::write(path, kib.to_string()).unwrap();
}

/// Makes the files that the patterns go through.
pub(crate) fn make_files(directory: &Path, files: &[(&str, u64)]) {
    let mut block = vec![0_u8; 1 << 16];
    let mut state = 1_u64;
    for (name, pages) in files {
        let file = Handle::create(directory.join(name)).unwrap();
        for offset in (0..pages * PAGE).step_by(block.len()) {
            for word in block.chunks_exact_mut(8) {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                word.copy_from_slice(&state.to_le_bytes());
            }
            file.write_all_at(&block, offset).unwrap();
        }
        file.sync_all().unwrap();
    }
}

/// No page of the files in memory.
pub(crate) fn forget(directory: &Path) {
    for name in ["a", "b", "log"] {
        if let Ok(file) = Handle::open(directory.join(name)) {
            file.sync_all().unwrap();
            fadvise(&file, 0, None, Advice::DontNeed).unwrap();
        }
    }
}
