//! Under version 2: where a group of our own can be made, and who has memory handed down there.
//!
//! A group hands controllers down only while it holds no process itself; the root group alone is
//! exempt. A login's scope holds the shell as well, so the new group is made beside it, under the
//! nearest group above that hands memory down or can be made to. What was handed down for us is
//! taken back by the last run that relies on it: an empty group beside the runs' marks it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rustix::process::getpid;

use super::write;
use crate::cgroup::{Group, number};
use crate::run_id::RunId;

/// The empty group that says: memory is handed down here for ioscape alone.
const MARK: &str = "ioscape-handed-memory-down";
const SUBTREE: &str = "cgroup.subtree_control";

/// The group in which one of our own can be made.
///
/// # Errors
/// Why there is none, in words.
pub(super) fn host(group: &Group, bytes: u64) -> Result<PathBuf, String> {
    if is_alone(&group.path) {
        return Ok(group.path.clone());
    }
    let mut left: Vec<&Path> = Vec::new();
    for path in group.upwards() {
        if can_hand_down(path) {
            return Ok(path.to_owned());
        }
        left.push(path);
        if let Some(bound) = left.iter().find_map(|path| bound(path, bytes)) {
            return Err(format!(
                "other processes share {}, and beside it {bound} would not hold any more",
                group.path.display()
            ));
        }
    }
    Err(format!(
        "other processes share {}, and no group above it hands memory down",
        group.path.display()
    ))
}

/// Whether no other process is in a group. Where nothing can be read there is nobody else.
fn is_alone(path: &Path) -> bool {
    let own = getpid().as_raw_nonzero().get().to_string();
    let processes = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    processes.lines().all(|process| process.trim() == own)
}

fn can_hand_down(path: &Path) -> bool {
    if hands_down(path) {
        return true;
    }
    let processes = fs::read_to_string(path.join("cgroup.procs"));
    let is_empty = processes.is_ok_and(|processes| processes.trim().is_empty());
    // The root group has no type.
    let is_root = !path.join("cgroup.type").exists();
    lists_memory(&path.join("cgroup.controllers")) && (is_empty || is_root)
}

fn hands_down(path: &Path) -> bool {
    lists_memory(&path.join(SUBTREE))
}

fn lists_memory(path: &Path) -> bool {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.split_whitespace().any(|controller| controller == "memory")
}

/// A limit of a group that would be left: a smaller one of memory, or any of processors or I/O.
fn bound(path: &Path, bytes: u64) -> Option<String> {
    let named = |name: &str| format!("{} of {}", name, path.display());
    let of_memory = ["memory.max", "memory.high"];
    let smaller = of_memory.iter().find(|name| number(&path.join(name)).is_some_and(|n| n < bytes));
    if let Some(name) = smaller {
        return Some(named(name));
    }
    let text = |name: &str| fs::read_to_string(path.join(name)).unwrap_or_default();
    let quota = text("cpu.max");
    if !quota.trim().is_empty() && !quota.starts_with("max") {
        return Some(named("cpu.max"));
    }
    (!text("io.max").trim().is_empty()).then(|| named("io.max"))
}

/// Makes a group hand memory down, unless it does; marks it where it did not.
pub(super) fn hand_down(parent: &Path) -> io::Result<()> {
    // What a file cannot say it may allow all the same: writing decides.
    fs::read_to_string(parent.join(SUBTREE))?;
    if hands_down(parent) {
        return Ok(());
    }
    write(&parent.join(SUBTREE), "+memory")?;
    match fs::create_dir(parent.join(MARK)) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// Undoes it where it was done for ioscape and no other run relies on it any more; `leaving` does
/// not count.
pub(super) fn take_back(parent: &Path, leaving: Option<&Path>) {
    let relies = |group: &PathBuf| Some(group.as_path()) != leaving;
    if !is_marked(parent) || run_groups(parent).iter().any(relies) {
        return;
    }
    if write(&parent.join(SUBTREE), "-memory").is_ok() {
        fs::remove_dir(parent.join(MARK)).ok();
    }
}

/// Whether memory is handed down there for ioscape alone.
pub(super) fn is_marked(parent: &Path) -> bool {
    parent.join(MARK).is_dir()
}

/// The groups of runs in a group.
pub(super) fn run_groups(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let of_runs =
        entries.filter(|entry| entry.file_name().to_str().and_then(RunId::of_group_name).is_some());
    of_runs.map(|entry| entry.path()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cgroup::Version;

    const LIMIT_BYTES: u64 = 64 << 20;

    /// A tree of version 2 in a plain directory; the root has no `cgroup.type`.
    fn tree(files: &[(&str, &str)]) -> tempfile::TempDir {
        let place = tempfile::tempdir().unwrap();
        let all = [("cgroup.controllers", "cpu io memory\n"), ("cgroup.procs", "1\n2\n")];
        for (name, text) in all.iter().chain(files) {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        place
    }

    fn group(place: &tempfile::TempDir, name: &str) -> Group {
        let top = place.path().to_owned();
        Group { version: Version::Two, path: top.join(name), top }
    }

    /// A login: a slice that hands memory down, a scope with a shell and us in it.
    const LOGIN: [(&str, &str); 6] = [
        ("cgroup.subtree_control", "cpu io memory\n"),
        ("user/cgroup.type", "domain\n"),
        ("user/cgroup.procs", ""),
        ("user/cgroup.controllers", "cpu memory\n"),
        ("user/scope/cgroup.type", "domain\n"),
        ("user/scope/cgroup.procs", "11\n12\n"),
    ];

    #[test]
    fn beside_a_shell_the_group_is_made_under_the_nearest_that_can_hand_memory_down() {
        let place = tree(&LOGIN);
        let found = host(&group(&place, "user/scope"), LIMIT_BYTES).unwrap();
        assert_eq!(found, place.path().join("user"));
    }

    #[test]
    fn in_the_root_group_it_is_made_there() {
        let place = tree(&[("cgroup.subtree_control", "\n")]);
        assert_eq!(host(&group(&place, ""), LIMIT_BYTES).unwrap(), place.path());
    }

    #[test]
    fn who_is_alone_in_a_group_stays_below_it() {
        let own = getpid().as_raw_nonzero().get().to_string();
        let place = tree(&[("a/cgroup.type", "domain\n"), ("a/cgroup.procs", &own)]);
        assert_eq!(host(&group(&place, "a"), LIMIT_BYTES).unwrap(), place.path().join("a"));
    }

    #[test]
    fn a_group_whose_limits_bind_is_not_left() {
        for (name, text, is_left) in [
            ("memory.max", "max", true),
            ("memory.max", "1000000000", true),
            ("memory.high", "1000000", false),
            ("memory.max", "1000000", false),
            ("cpu.max", "max 100000", true),
            ("cpu.max", "50000 100000", false),
            ("io.max", "8:0 rbps=1048576 wbps=max riops=max wiops=max", false),
        ] {
            let path = format!("user/scope/{name}");
            let place = tree(&[&LOGIN[..], &[(path.as_str(), text)]].concat());
            let answer = host(&group(&place, "user/scope"), LIMIT_BYTES);
            assert_eq!(answer.is_ok(), is_left, "{name} {text}: {answer:?}");
            if let Err(why) = answer {
                assert!(why.contains(name), "{why}");
            }
        }
    }

    #[test]
    fn where_nobody_hands_memory_down_that_is_said() {
        let place = tree(&LOGIN);
        fs::write(place.path().join("user/cgroup.procs"), "7\n").unwrap();
        fs::write(place.path().join("cgroup.subtree_control"), "cpu\n").unwrap();
        fs::write(place.path().join("cgroup.type"), "domain\n").unwrap();
        let why = host(&group(&place, "user/scope"), LIMIT_BYTES).unwrap_err();
        assert!(why.contains("no group above it"), "{why}");
    }

    #[test]
    fn what_was_handed_down_is_taken_back_by_the_last_run_only() {
        let place = tree(&[("cgroup.subtree_control", "")]);
        let subtree = || fs::read_to_string(place.path().join(SUBTREE)).unwrap();
        let runs = [RunId::random().unwrap(), RunId::random().unwrap()];
        let groups = runs.map(|run| place.path().join(run.group_name()));
        for group in &groups {
            fs::create_dir(group).unwrap();
        }
        hand_down(place.path()).unwrap();
        assert_eq!(subtree(), "+memory");
        fs::write(place.path().join(SUBTREE), "memory").unwrap();
        hand_down(place.path()).unwrap();
        take_back(place.path(), Some(&groups[0]));
        assert_eq!(subtree(), "memory", "the other run relies on it");
        fs::remove_dir(&groups[0]).unwrap();
        take_back(place.path(), Some(&groups[1]));
        assert_eq!(subtree(), "-memory");
        assert!(!is_marked(place.path()));
    }

    #[test]
    fn what_others_handed_down_stays() {
        let place = tree(&[("cgroup.subtree_control", "memory")]);
        hand_down(place.path()).unwrap();
        take_back(place.path(), None);
        assert_eq!(fs::read_to_string(place.path().join(SUBTREE)).unwrap(), "memory");
    }
}
