//! A file that is there already, as a target that is only read: a look at storage that is in use,
//! without a byte written.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ioscape_model::units::{MIB, show_bytes};
use ioscape_model::warning::{Code, Severity, Warning};
use ioscape_model::{Target, TargetKind, Words};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::{Directory, describe, never_written, open_unchecked, zero_fraction};
use crate::aligned::Aligned;
use crate::cachestat::{counted, resident};
use crate::error::{Error, Result};
use crate::extents;

/// Smaller ones hold no data sheet, bytes.
const LENGTH_MIN_BYTES: u64 = 64 * MIB;
/// Names that are looked at: a second's worth or two.
const NAMES_MAX: usize = 200_000;
/// Files that are tried, the largest first.
const TRIES: usize = 100;
/// Read to see whether direct access is direct.
const PROBE_BYTES: usize = 64 << 10;

/// A regular file, held open for reading.
#[derive(Debug)]
pub struct Existing {
    file: File,
    path: PathBuf,
    /// Where it was found.
    directory: Directory,
    length_bytes: u64,
    /// Whether the search stopped at its limit on names, with some not looked at.
    is_cut: bool,
}

/// What was found below a directory.
#[derive(Default)]
struct Found {
    /// The largest first.
    files: Vec<(u64, PathBuf)>,
    is_cut: bool,
}

/// The largest file at or below `given` that tells what storage does: all of it stored, as it is, on
/// this filesystem, and read without leaving a new access time.
///
/// # Errors
/// [`Error::Refused`] where there is none, with why the largest would not do.
pub fn open_existing(given: impl AsRef<Path>) -> Result<Existing> {
    let given = given.as_ref();
    let path = fs::canonicalize(given).map_err(|error| super::cannot_open(given, error))?;
    let is_file = fs::metadata(&path).is_ok_and(|metadata| metadata.is_file());
    let directory = match path.parent().filter(|_| is_file) {
        Some(parent) => open_unchecked(parent)?,
        None => open_unchecked(&path)?,
    };
    directory.check_stores()?;
    if directory.is_memory() {
        let path = path.display();
        return Err(Error::Refused(format!(
            "{path}: files live in memory here, there is no storage to read from; name a directory \
             on a disk"
        )));
    }
    let found = if is_file {
        Found { files: vec![(u64::MAX, path.clone())], is_cut: false }
    } else {
        largest_files(&directory)
    };
    let mut why = None;
    for (_, path) in found.files.into_iter().take(TRIES) {
        match open(&path, &directory) {
            Ok((file, length_bytes)) => {
                return Ok(Existing { file, path, directory, length_bytes, is_cut: found.is_cut });
            }
            Err(reason) => why = why.or(Some(format!("{} {reason}", path.display()))),
        }
    }
    let why = why.unwrap_or_else(|| {
        format!("{} holds no file of {}", path.display(), show_bytes(LENGTH_MIN_BYTES as f64))
    });
    Err(Error::Refused(format!(
        "nothing here tells what storage does: {why}; name a directory with a file of {} or more \
         that is yours, not sparse and not compressed",
        show_bytes(LENGTH_MIN_BYTES as f64)
    )))
}

/// Files on the directory's own filesystem. Symbolic links are not followed; what cannot be looked at
/// without leaving a trace is passed over.
fn largest_files(directory: &Directory) -> Found {
    let Ok(top) = rustix::fs::fstat(directory) else { return Found::default() };
    let mut found = Found::default();
    let mut waiting = vec![directory.path().to_owned()];
    let mut names = 0;
    while let Some(path) = waiting.pop() {
        let Ok(opened) = open_unseen(&path, OFlags::DIRECTORY, directory) else { continue };
        let Ok(entries) = Dir::read_from(&opened) else { continue };
        for entry in entries.flatten() {
            names += 1;
            if names > NAMES_MAX {
                found.is_cut = true;
                break;
            }
            let name = entry.file_name();
            let Ok(status) = rustix::fs::statat(&opened, name, AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let inside = || path.join(OsStr::from_bytes(name.to_bytes()));
            let length = status.st_size.cast_unsigned();
            match FileType::from_raw_mode(status.st_mode) {
                FileType::Directory if matches!(name.to_bytes(), b"." | b"..") => {}
                FileType::Directory if status.st_dev == top.st_dev => waiting.push(inside()),
                FileType::RegularFile if length >= LENGTH_MIN_BYTES => {
                    found.files.push((length, inside()));
                }
                _ => {}
            }
        }
        if found.is_cut {
            break;
        }
    }
    found.files.sort_by(|one, other| other.cmp(one));
    found
}

/// Opens for reading such that no access time is written.
fn open_unseen(path: &Path, extra: OFlags, directory: &Directory) -> rustix::io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | extra;
    let opened = match rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) if keeps_no_access_times(directory) => {
            rustix::fs::open(path, flags, Mode::empty())
        }
        answer => answer,
    };
    opened.map(File::from)
}

/// Opens a file and says how long it is, or why it will not do.
fn open(path: &Path, directory: &Directory) -> std::result::Result<(File, u64), String> {
    let failed = |error: Errno| format!("cannot be opened ({error})");
    let file = match open_unseen(path, OFlags::empty(), directory) {
        Err(Errno::PERM) => {
            return Err("belongs to another user: reading it would write its access time".into());
        }
        answer => answer.map_err(failed)?,
    };
    let status = rustix::fs::fstat(&file).map_err(failed)?;
    if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
        return Err("is no regular file any more".to_owned());
    }
    let length = status.st_size.cast_unsigned();
    if length < LENGTH_MIN_BYTES {
        return Err(format!("has only {}", show_bytes(length as f64)));
    }
    if rustix::fs::seek(&file, SeekFrom::Hole(0)).is_ok_and(|hole| hole < length) {
        return Err("is sparse: holes are read without storage".to_owned());
    }
    let extents = extents::on_storage(&file, length).unwrap_or_default();
    if extents.unwritten_bytes > 0 {
        return Err("has parts that were never written, which are read without storage".to_owned());
    }
    if extents.encoded_bytes > 0 {
        return Err("is compressed: it is not read as it is stored".to_owned());
    }
    if counted(&file, 0..length)
        .and_then(|cached| cached.dirty_bytes)
        .is_some_and(|dirty| dirty > 0)
    {
        return Err("has data in memory that are still to be written: reading past them would \
                    write them"
            .to_owned());
    }
    probe(&file, length)?;
    Ok((file, length))
}

/// Some filesystems take the flag and go through the page cache all the same, which would push out
/// what others need.
fn probe(file: &File, length: u64) -> std::result::Result<(), String> {
    let none = |error: Errno| format!("has no direct access here ({error})");
    let direct =
        super::open_through(file.as_fd(), flags_of(file) | OFlags::DIRECT).map_err(none)?;
    let at = length / 2 / MIB * MIB;
    let range = at..at + PROBE_BYTES as u64;
    let held = || resident(file, range.clone()).map_or(0, |cached| cached.resident_bytes);
    let before = held();
    let mut memory = Aligned::new(PROBE_BYTES);
    rustix::io::pread(&direct, memory.bytes_mut(), at).map_err(none)?;
    if held() > before {
        return Err("is read through the page cache here, whatever is asked for".to_owned());
    }
    Ok(())
}

/// What the flags were when it was opened decides whether an access time is kept.
fn flags_of(file: &File) -> OFlags {
    let flags = rustix::fs::fcntl_getfl(file).unwrap_or(OFlags::empty());
    OFlags::RDONLY | (flags & OFlags::NOATIME)
}

fn keeps_no_access_times(directory: &Directory) -> bool {
    let options = &directory.mount().mount_options;
    options.split(',').any(|option| matches!(option, "noatime" | "ro"))
}

impl Existing {
    /// Absolute, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where it lies.
    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Bytes in it.
    pub fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// A descriptor of its own for a worker. `extra` may hold `O_DIRECT`.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn open_again(&self, extra: OFlags) -> Result<File> {
        let failed = |error: Errno| Error::path("open", &self.path, error);
        super::open_through(self.file.as_fd(), flags_of(&self.file) | extra).map_err(failed)
    }

    /// What a reader of the results has to know.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.directory.warnings();
        let searched =
            if self.is_cut { ", the largest of the first {names_max} names," } else { "" };
        let mut text = Words::new(format!(
            "only {{path}}{searched} is read: nothing is said about writes, and other files may lie \
             elsewhere"
        ))
        .name("path", self.path.display());
        if self.is_cut {
            text = text.figure("names_max", NAMES_MAX as f64);
        }
        let remedy = "without --read-only, ioscape makes files of its own and measures writes too";
        warnings.push(Warning::new(Code::ReadOnly, text, remedy).with_severity(Severity::Note));
        // Past the page cache, which holds what others need.
        let direct = self.open_again(OFlags::DIRECT).ok();
        let zeros = direct.and_then(|file| zero_fraction(&file, self.length_bytes));
        let remedy = "name another file, with data in it";
        warnings.extend(never_written(zeros, ("the file's blocks", "storage"), remedy));
        warnings
    }

    /// What the record's header says about the target.
    pub fn describe(&self) -> Target {
        Target {
            path: self.path.display().to_string(),
            kind: TargetKind::File,
            ..describe::of_directory(&self.directory)
        }
    }
}
