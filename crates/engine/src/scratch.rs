//! A directory of our own inside a target, for benchmarks that make many files: locked while in
//! use, removed with all that is in it when dropped. Named and told from what users made like a
//! test file (see [`crate::files`]).

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::run_id::RunId;
use crate::target::Directory;

/// Mode of a directory whose files others may open by name; until then it is 0700.
pub(crate) const MODE_FOR_OTHERS: u32 = 0o711;

/// The directory. Dropping it removes it.
#[derive(Debug)]
pub struct Scratch {
    directory: Arc<Directory>,
    name: String,
    path: PathBuf,
    /// Holds the lock as long as it is open.
    handle: OwnedFd,
}

impl Scratch {
    /// Makes directory `number` of a run.
    ///
    /// # Errors
    /// When it exists already or cannot be made.
    pub fn new(directory: Arc<Directory>, run: &RunId, number: usize) -> Result<Self> {
        let name = run.file_name(number);
        let path = directory.path().join(&name);
        let failed = |operation| {
            let path = path.clone();
            move |error: rustix::io::Errno| Error::path(operation, path, error)
        };
        rustix::fs::mkdirat(directory.as_fd(), &name, Mode::RWXU).map_err(failed("create"))?;
        let handle = open(&directory, &name).map_err(failed("open"))?;
        lock(&handle).map_err(failed("lock"))?;
        Ok(Self { directory, name, path, handle })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let found = rustix::fs::statat(
            self.directory.as_fd(),
            self.name.as_str(),
            AtFlags::SYMLINK_NOFOLLOW,
        );
        let ours = rustix::fs::fstat(&self.handle);
        if let (Ok(found), Ok(ours)) = (found, ours)
            && (found.st_dev, found.st_ino) == (ours.st_dev, ours.st_ino)
        {
            fs::remove_dir_all(&self.path).ok();
        }
    }
}

/// A directory with a name of ours, if it is as we make them.
pub(crate) fn candidate(directory: &Directory, name: &str) -> Option<(OwnedFd, Stat)> {
    let handle = open(directory, name).ok()?;
    let status = rustix::fs::fstat(&handle).ok()?;
    let user = rustix::process::geteuid();
    let ours = FileType::from_raw_mode(status.st_mode) == FileType::Directory
        && matches!(status.st_mode & 0o7777, 0o700 | MODE_FOR_OTHERS)
        && (user.is_root() || status.st_uid == user.as_raw());
    ours.then_some((handle, status))
}

/// Bytes that a directory takes with all that is in it, as far as it can be read.
pub(crate) fn allocated_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let own = fs::symlink_metadata(path).map_or(0, |found| found.blocks() * 512);
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    let below = entries.map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => allocated_bytes(&entry.path()),
        _ => entry.metadata().map_or(0, |found| found.blocks() * 512),
    });
    own + below.sum::<u64>()
}

fn open(directory: &Directory, name: &str) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(directory.as_fd(), name, flags, Mode::empty())
}

/// Takes the lock. A listing of leftovers may hold it for an instant.
pub(crate) fn lock(file: impl AsFd) -> rustix::io::Result<()> {
    const ATTEMPTS: usize = 20;
    const PAUSE_NS: u64 = 1_000_000;
    let clock = Clock::start();
    for _ in 0..ATTEMPTS {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => clock.sleep_until(clock.now_ns() + PAUSE_NS),
            answer => return answer,
        }
    }
    Err(Errno::WOULDBLOCK)
}

/// Gives the lock up, whoever else has the file open by now.
pub(crate) fn unlock(file: impl AsFd) {
    rustix::fs::flock(file, FlockOperation::Unlock).ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{leftovers, remove_leftovers};
    use crate::target::open_directory;

    #[test]
    fn it_goes_with_all_that_is_in_it() {
        let parent = tempfile::tempdir().unwrap();
        let directory = Arc::new(open_directory(parent.path()).unwrap());
        let scratch = Scratch::new(directory, &RunId::random().unwrap(), 0).unwrap();
        fs::create_dir(scratch.path().join("a")).unwrap();
        fs::write(scratch.path().join("a/file"), "x").unwrap();
        drop(scratch);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_run_left_is_found_and_removed_and_what_is_in_use_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let directory = Arc::new(open_directory(parent.path()).unwrap());
        let (live, dead) = (RunId::random().unwrap(), RunId::random().unwrap());
        let scratch = Scratch::new(Arc::clone(&directory), &live, 0).unwrap();
        let left = parent.path().join(dead.file_name(3));
        fs::create_dir(&left).unwrap();
        rustix::fs::chmod(&left, Mode::RWXU).unwrap();
        fs::write(left.join("file"), vec![1; 10_000]).unwrap();
        let theirs = parent.path().join(dead.file_name(4));
        fs::create_dir(&theirs).unwrap();
        rustix::fs::chmod(&theirs, Mode::RWXU | Mode::RGRP).unwrap();
        let found = leftovers(&directory).unwrap();
        let states: Vec<bool> = found.iter().map(|leftover| leftover.live).collect();
        assert_eq!(states.len(), 2, "{found:?}");
        assert_eq!(found.iter().find(|l| l.run == live).map(|l| l.live), Some(true));
        let removed = remove_leftovers(&directory, None).unwrap();
        assert_eq!(removed.files, 1);
        assert!(!left.exists() && theirs.exists() && scratch.path().exists());
    }
}
