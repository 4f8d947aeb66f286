//! What /proc says of processes that were there before the recording.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::observed::{Counts, Identity};

/// A descriptor that a process has open.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) descriptor: i32,
    /// Its path, where it is one.
    pub(crate) path: Option<String>,
    pub(crate) identity: Identity,
    pub(crate) position: u64,
    pub(crate) closes_on_exec: bool,
}

/// Entries of a directory of /proc whose names are numbers.
fn numbers<T: std::str::FromStr>(directory: &str) -> Vec<T> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Threads of a process.
pub(crate) fn threads(process: u32) -> Vec<u32> {
    numbers(&format!("/proc/{process}/task"))
}

/// A process and all that descend from it, as far as their parents still live.
pub(crate) fn tree(process: u32) -> Vec<u32> {
    let mut found = vec![process];
    let mut at = 0;
    while at < found.len() {
        for thread in threads(found[at]) {
            let path = format!("/proc/{}/task/{thread}/children", found[at]);
            let children = fs::read_to_string(path).unwrap_or_default();
            found.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
        at += 1;
    }
    found
}

/// Processes in a control group and those below it.
pub(crate) fn of_group(group: &Path) -> Vec<u32> {
    let processes = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let mut found: Vec<u32> =
        processes.lines().filter_map(|process| process.parse().ok()).collect();
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(of_group(&entry.path()));
        }
    }
    found
}

/// The process a thread belongs to.
pub(crate) fn process_of(thread: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{thread}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// A process's working directory.
pub(crate) fn working_directory(process: u32) -> Option<String> {
    let path = fs::read_link(format!("/proc/{process}/cwd")).ok()?;
    Some(path.to_string_lossy().into_owned())
}

/// The program that a process runs.
pub(crate) fn program(process: u32) -> Option<String> {
    let path = fs::read_link(format!("/proc/{process}/exe")).ok()?;
    Some(path.to_string_lossy().into_owned())
}

/// Which file is behind a path, of /proc or not.
pub(crate) fn identity(path: &str) -> Option<Identity> {
    let found = fs::metadata(path).ok()?;
    let device = found.dev();
    Some(Identity {
        inode: found.ino(),
        device: (libc::major(device), libc::minor(device)),
        mode: found.mode(),
        bytes: found.len(),
        created: false,
        flags: 0,
        cached_pages: None,
    })
}

/// One descriptor of a process.
pub(crate) fn opened(process: u32, descriptor: i32) -> Option<Opened> {
    let link = format!("/proc/{process}/fd/{descriptor}");
    let mut identity = identity(&link)?;
    let path = fs::read_link(&link).ok().map(|path| path.to_string_lossy().into_owned());
    let info = fs::read_to_string(format!("/proc/{process}/fdinfo/{descriptor}"));
    let info = info.unwrap_or_default();
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let flags = field("flags:").and_then(|text| u32::from_str_radix(text, 8).ok()).unwrap_or(0);
    identity.flags = flags;
    Some(Opened {
        descriptor,
        path: path.filter(|path| path.starts_with('/')),
        identity,
        position: field("pos:").and_then(|text| text.parse().ok()).unwrap_or(0),
        closes_on_exec: flags & libc::O_CLOEXEC.cast_unsigned() != 0,
    })
}

/// All descriptors of a process.
pub(crate) fn descriptors(process: u32) -> Vec<Opened> {
    let all: Vec<i32> = numbers(&format!("/proc/{process}/fd"));
    all.into_iter().filter_map(|descriptor| opened(process, descriptor)).collect()
}

/// What the kernel has counted for a thread.
pub(crate) fn counts(process: u32, thread: u32) -> Option<Counts> {
    counts_of(&format!("/proc/{process}/task/{thread}/io"))
}

/// What the kernel has counted for a process, its threads, and the children it has waited for.
pub(crate) fn counts_with_children(process: u32) -> Option<Counts> {
    counts_of(&format!("/proc/{process}/io"))
}

fn counts_of(path: &str) -> Option<Counts> {
    let text = fs::read_to_string(path).ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    Some(Counts {
        read: field("rchar:")?,
        written: field("wchar:")?,
        storage_read: field("read_bytes:")?,
        storage_written: field("write_bytes:")?,
    })
}

/// Processor time of a thread so far, as the scheduler counts it.
pub(crate) fn processor_time_ns(process: u32, thread: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/task/{thread}/schedstat")).ok()?;
    text.split_whitespace().next()?.parse().ok()
}

/// Whether a process is there.
pub(crate) fn is_alive(process: u32) -> bool {
    Path::new(&format!("/proc/{process}")).exists()
}

/// Read-ahead of a device, KiB.
pub(crate) fn read_ahead_kb((major, minor): (u32, u32)) -> Option<u64> {
    let path = format!("/sys/class/bdi/{major}:{minor}/read_ahead_kb");
    fs::read_to_string(path).ok()?.trim().parse().ok()
}
