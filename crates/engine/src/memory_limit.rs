//! `--memory-limit`: a memory control group of our own, so that the page cache is small enough
//! to be outgrown in minutes. The tool's own memory counts in it as well.
//!
//! Version 1 needs a group that may be written, which usually means root. Under version 2 a
//! group hands memory down to its children only while no process is in it. So the new group is made
//! where that holds (see `place`): in our own group where we are alone in it, else beside it.
//! Nothing but groups of our own making is limited, and no other process is moved.

mod place;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use ioscape_model::Words;
use rustix::fs::FlockOperation;
use rustix::process::getpid;

use crate::cgroup::{self, Group, Version};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::run_id::RunId;

/// Below this the tool itself, its threads and its buffers leave no room worth measuring.
pub const LIMIT_MIN_BYTES: u64 = 32 << 20;

/// The limit in force. Dropping it moves the process back and removes the group.
#[derive(Debug)]
pub struct MemoryLimit {
    version: Version,
    /// Where this process was before.
    origin: PathBuf,
    /// Where the group of our own lies.
    parent: PathBuf,
    /// The group of our own.
    child: PathBuf,
    bytes: u64,
}

impl MemoryLimit {
    /// Moves this process, all its threads, into a new group that may use `bytes` of memory.
    /// What was in memory before stays on the old group's account.
    ///
    /// # Errors
    /// [`Error::Refused`] naming the ways there are, where this one is closed; nothing has
    /// changed then.
    pub fn enter(bytes: u64, run: &RunId) -> Result<Self> {
        if bytes < LIMIT_MIN_BYTES {
            return Err(Error::Refused(format!(
                "--memory-limit {bytes}: at least {LIMIT_MIN_BYTES} bytes (32 MiB) are needed, the \
                 tool's own memory counts"
            )));
        }
        let group = Group::current("memory")
            .ok_or_else(|| refused(bytes, "this system offers no memory control group here"))?;
        Self::enter_below(&group, bytes, run)
    }

    fn enter_below(group: &Group, bytes: u64, run: &RunId) -> Result<Self> {
        let parent = match group.version {
            Version::One => group.path.clone(),
            Version::Two => place::host(group, bytes).map_err(|why| refused(bytes, &why))?,
        };
        let child = parent.join(run.group_name());
        let failed = |what: &str, error: &io::Error| {
            refused(bytes, &format!("{what} {}: {error}", child.display()))
        };
        let turn = take_turn(&parent);
        fs::create_dir(&child).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Error::Refused(format!(
                "--memory-limit {bytes}: {} is there from before, with processes in it: end those \
                 that its cgroup.procs lists, and try again",
                child.display()
            )),
            _ => failed("cannot make", &error),
        })?;
        // From here on, dropping it undoes what was done.
        let origin = group.path.clone();
        let limit = Self { version: group.version, origin, parent, child: child.clone(), bytes };
        let done = match group.version {
            Version::One => limit.limit_then_move(),
            Version::Two => limit.hand_down_and_limit(),
        };
        // Dropping takes its own turn.
        drop(turn);
        done.map_err(|(what, error)| failed(what, &error))?;
        Ok(limit)
    }

    fn limit_then_move(&self) -> Step {
        let limit = self.child.join("memory.limit_in_bytes");
        write(&limit, &self.bytes.to_string()).map_err(|error| ("cannot limit", error))?;
        // Swapping the tool out would make room for cache that others would not have.
        write(&self.child.join("memory.swappiness"), "0").ok();
        move_into(&self.child).map_err(|error| ("cannot move into", error))
    }

    fn hand_down_and_limit(&self) -> Step {
        // A group with a process in it does not hand down: where it is our own we leave it first.
        move_into(&self.child).map_err(|error| ("cannot move into", error))?;
        place::hand_down(&self.parent).map_err(|error| ("cannot hand memory down to", error))?;
        let limit = self.child.join("memory.max");
        write(&limit, &self.bytes.to_string()).map_err(|error| ("cannot limit", error))?;
        write(&self.child.join("memory.swap.max"), "0").ok();
        Ok(())
    }

    /// Leaves nothing behind.
    fn undo(&self) {
        if self.version == Version::Two && self.origin == self.parent {
            // Back into a group that hands memory down is not allowed.
            place::take_back(&self.parent, Some(&self.child));
        }
        move_into(&self.origin).ok();
        remove(&self.child).ok();
        if self.version == Version::Two {
            place::take_back(&self.parent, None);
        }
    }

    /// The limit, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Directory of the group.
    pub fn group(&self) -> &Path {
        &self.child
    }

    /// Memory in use in the group, page cache included, bytes.
    pub fn used_bytes(&self) -> Option<u64> {
        cgroup::number(&self.child.join(match self.version {
            Version::One => "memory.usage_in_bytes",
            Version::Two => "memory.current",
        }))
    }
}

impl Drop for MemoryLimit {
    fn drop(&mut self) {
        let _turn = take_turn(&self.parent);
        self.undo();
    }
}

/// What to say of a limit that was set and does not hold any more; `None` while it does.
pub(crate) fn lost(set_bytes: u64) -> Option<Words> {
    lost_to(set_bytes, Group::current("memory").and_then(|group| group.memory_limit_bytes()))
}

/// What to say of a limit that was set, given the one in force. The kernel rounds limits down to pages.
fn lost_to(set_bytes: u64, in_force_bytes: Option<u64>) -> Option<Words> {
    let gone = |why: &str| {
        Words::new(format!("the memory limit of {{set_bytes}} that this run set is gone: {why}"))
            .figure("set_bytes", set_bytes as f64)
    };
    match in_force_bytes {
        Some(bytes) if bytes <= set_bytes => None,
        Some(bytes) => {
            Some(gone("{allowed_bytes:.0} bytes are allowed").figure("allowed_bytes", bytes as f64))
        }
        None => Some(gone("no limit is in force")),
    }
}

type Step = std::result::Result<(), (&'static str, io::Error)>;

/// Removes the groups of killed runs, wherever this run could make its own;
/// answers how many. Groups with processes in them stay: the kernel keeps them.
pub fn remove_leftover_groups() -> usize {
    let Some(group) = Group::current("memory") else { return 0 };
    let mut removed = 0;
    for path in group.upwards() {
        let groups = place::run_groups(path);
        if groups.is_empty() && !place::is_marked(path) {
            continue;
        }
        let _turn = take_turn(path);
        removed += groups.iter().filter(|group| fs::remove_dir(group).is_ok()).count();
        if group.version == Version::Two {
            place::take_back(path, None);
        }
    }
    removed
}

/// Keeps a run that clears up from removing a group that another has made and not yet entered.
fn take_turn(group: &Path) -> Option<File> {
    let directory = File::open(group).ok()?;
    rustix::fs::flock(&directory, FlockOperation::LockExclusive).ok()?;
    Some(directory)
}

/// All threads of this process.
fn move_into(group: &Path) -> io::Result<()> {
    write(&group.join("cgroup.procs"), &getpid().as_raw_nonzero().to_string())
}

/// A group whose last process has just left may be busy for an instant.
fn remove(group: &Path) -> io::Result<()> {
    const ATTEMPTS: usize = 20;
    const PAUSE_NS: u64 = 10_000_000;
    let clock = Clock::start();
    let mut answer = fs::remove_dir(group);
    for _ in 1..ATTEMPTS {
        match &answer {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
            _ => break,
        }
        clock.sleep_until(clock.now_ns() + PAUSE_NS);
        answer = fs::remove_dir(group);
    }
    answer
}

/// Control files exist already: never made, never truncated.
fn write(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    fs::OpenOptions::new().write(true).open(path)?.write_all(text.as_bytes())
}

fn refused(bytes: u64, why: &str) -> Error {
    Error::Refused(format!(
        "--memory-limit {bytes}: {why}; run it as root, or under `systemd-run --user --scope -p \
         Delegate=yes ioscape …`, or let that set the limit: `systemd-run --user --scope -p \
         MemoryMax={bytes} ioscape …` without --memory-limit"
    ))
}

#[cfg(test)]
mod tests {
    use ioscape_model::{Code, Warning};

    use super::*;

    #[test]
    fn limits_that_leave_no_room_for_the_tool_are_refused() {
        let run = RunId::random().unwrap();
        let answer = MemoryLimit::enter(LIMIT_MIN_BYTES - 1, &run);
        assert!(matches!(answer, Err(Error::Refused(reason)) if reason.contains("32 MiB")));
    }

    #[test]
    fn a_limit_that_went_away_is_noticed() {
        assert_eq!(lost_to(1 << 26, Some(1 << 26)), None);
        assert_eq!(lost_to((1 << 26) + 5, Some(1 << 26)), None, "rounded to pages");
        let text = lost_to(1 << 26, Some(1 << 27)).unwrap();
        let warning = Warning::new(Code::Throttled, text, "");
        assert_eq!(
            warning.text,
            "the memory limit of 64.0 MiB that this run set is gone: 134217728 bytes are allowed"
        );
        let figures = ["set_bytes", "allowed_bytes"].map(|name| warning.figures[name] as u64);
        assert_eq!(figures, [1 << 26, 1 << 27]);
        let text = lost_to(1 << 26, None).unwrap().to_string();
        assert!(text.ends_with("is gone: no limit is in force"), "{text}");
    }

    #[test]
    fn a_group_that_is_still_there_is_named_and_not_a_matter_of_rights() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().to_owned();
        let run = RunId::random().unwrap();
        fs::create_dir(path.join(run.group_name())).unwrap();
        let group = Group { version: Version::One, path: path.clone(), top: path };
        let Err(Error::Refused(reason)) = MemoryLimit::enter_below(&group, 1 << 30, &run) else {
            panic!("a group that was there");
        };
        assert!(reason.contains(&run.group_name()) && reason.contains("cgroup.procs"), "{reason}");
        assert!(!reason.contains("root"), "{reason}");
        assert!(group.path.join(run.group_name()).is_dir());
    }

    #[test]
    fn where_no_group_can_be_made_the_ways_are_named_and_nothing_is_left() {
        // A plain directory takes a child, but has no control files in it.
        for version in [Version::One, Version::Two] {
            let place = tempfile::tempdir().unwrap();
            let path = place.path().to_owned();
            let group = Group { version, path: path.clone(), top: path.clone() };
            let run = RunId::random().unwrap();
            let Err(Error::Refused(reason)) = MemoryLimit::enter_below(&group, 1 << 30, &run)
            else {
                panic!("a limit without control files");
            };
            assert!(reason.contains("root") && reason.contains("systemd-run"), "{reason}");
            assert!(!reason.contains('\n'));
            assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
        }
    }
}
