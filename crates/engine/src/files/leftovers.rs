//! What killed runs left behind in a directory: recognised by name and mode, and by a lock that
//! nobody holds.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::PathBuf;

use ioscape_model::warning::{Code, Warning};
use rustix::fs::{Dir, FileType, FlockOperation, Mode, OFlags, Stat};

use super::remove;
use crate::error::{Error, Result};
use crate::run_id::RunId;
use crate::scratch;
use crate::target::Directory;

/// A test file found in a directory, or a directory of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// Where.
    pub path: PathBuf,
    /// Whose.
    pub run: RunId,
    /// Room it takes.
    pub bytes: u64,
    /// A run holds it: not a leftover yet.
    pub live: bool,
}

/// What [`remove_leftovers`] removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Removed {
    /// Files.
    pub files: u64,
    /// Bytes they took.
    pub bytes: u64,
}

/// All test files in a directory, those of live runs marked.
///
/// # Errors
/// When the directory cannot be listed.
pub fn leftovers(directory: &Directory) -> Result<Vec<Leftover>> {
    let mut found = candidates(directory)?;
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found
        .into_iter()
        .map(|candidate| Leftover {
            path: directory.path().join(&candidate.name),
            bytes: candidate.bytes(directory),
            live: try_lock(&candidate.file).is_err(),
            run: candidate.run,
        })
        .collect())
}

/// The doubt that another run is at work in this directory, with its name; none while `run` is alone.
///
/// # Errors
/// When the directory cannot be listed.
pub fn neighbours(directory: &Directory, run: &RunId) -> Result<Option<Warning>> {
    let others = candidates(directory)?.into_iter().filter(|candidate| {
        !run.is_of_same_command(&candidate.run) && try_lock(&candidate.file).is_err()
    });
    let mut names: Vec<String> = others.map(|other| other.run.to_string()).collect();
    names.sort();
    names.dedup();
    if names.is_empty() {
        return Ok(None);
    }
    let text = format!(
        "others measure in this directory at the same time (run_id {}): both have the storage and \
         its caches for a part of the time only",
        names.join(", ")
    );
    let remedy = "measure again when they have ended";
    Ok(Some(Warning::new(Code::Neighbours, text, remedy)))
}

/// Removes what nobody holds, of one run or of all.
///
/// # Errors
/// When the directory cannot be listed or a file not be removed.
pub fn remove_leftovers(directory: &Directory, run: Option<&RunId>) -> Result<Removed> {
    let mut removed = Removed::default();
    for candidate in candidates(directory)? {
        let wanted = run.is_none_or(|run| *run == candidate.run);
        // The lock is kept until after the removal, so that no run can take the file meanwhile.
        if !wanted || try_lock(&candidate.file).is_err() {
            continue;
        }
        let bytes = candidate.bytes(directory);
        let path = directory.path().join(&candidate.name);
        let gone = if candidate.is_directory() {
            std::fs::remove_dir_all(&path).map(|()| true)
        } else {
            remove(directory, &candidate.name, &candidate.file).map_err(Into::into)
        };
        if gone.map_err(|error| Error::path("remove", &path, error))? {
            removed.files += 1;
            removed.bytes += bytes;
        }
    }
    Ok(removed)
}

struct Candidate {
    name: String,
    run: RunId,
    file: File,
    status: Stat,
}

impl Candidate {
    fn is_directory(&self) -> bool {
        FileType::from_raw_mode(self.status.st_mode) == FileType::Directory
    }

    /// Room it takes, what is in it included.
    fn bytes(&self, directory: &Directory) -> u64 {
        if self.is_directory() {
            scratch::allocated_bytes(&directory.path().join(&self.name))
        } else {
            allocated_bytes(&self.status)
        }
    }
}

/// Regular files with a name of ours, made as we make them: mode 0600, one link, owned by us; and
/// directories of ours (see [`scratch`]).
fn candidates(directory: &Directory) -> Result<Vec<Candidate>> {
    let failed = |error| Error::path("list", directory.path(), error);
    let mut found = Vec::new();
    for entry in Dir::read_from(directory.as_fd()).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(name) = entry.file_name().to_str() else { continue };
        let Some((run, _)) = RunId::of_file_name(name) else { continue };
        if let Some((handle, status)) = scratch::candidate(directory, name) {
            let (name, file) = (name.to_owned(), File::from(handle));
            found.push(Candidate { name, run, file, status });
            continue;
        }
        // Without O_NONBLOCK a pipe of that name would keep us waiting for its other end.
        let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(directory.as_fd(), name, flags, Mode::empty()) else {
            continue;
        };
        let file = File::from(file);
        let status = rustix::fs::fstat(&file).map_err(failed)?;
        if is_as_we_make_them(&status) {
            found.push(Candidate { name: name.to_owned(), run, file, status });
        }
    }
    Ok(found)
}

fn is_as_we_make_them(status: &Stat) -> bool {
    let user = rustix::process::geteuid();
    FileType::from_raw_mode(status.st_mode) == FileType::RegularFile
        && status.st_mode & 0o7777 == 0o600
        && status.st_nlink == 1
        && (user.is_root() || status.st_uid == user.as_raw())
}

fn try_lock(file: &File) -> rustix::io::Result<()> {
    rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive)
}

fn allocated_bytes(status: &Stat) -> u64 {
    status.st_blocks.cast_unsigned() * 512
}
