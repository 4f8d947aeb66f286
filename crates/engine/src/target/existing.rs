//! A file that is there already, as a target that is only read: a look at storage that is in use,
//! without a byte written.

use std::fs::{self, File};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use ioscape_model::units::{MIB, show_bytes};
use ioscape_model::warning::{Code, Severity, Warning};
use ioscape_model::{Target, TargetKind};
use rustix::fs::{FileType, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::{Directory, describe, open_unchecked, zero_fraction};
use crate::error::{Error, Result};
use crate::extents;

/// Smaller ones fit in the caches of drives, bytes.
const LENGTH_MIN_BYTES: u64 = 64 * MIB;
/// Names that are looked at: some seconds' worth.
const NAMES_MAX: usize = 1_000_000;
/// Files that are tried, the largest first.
const TRIES: usize = 100;
/// A share of blocks that hold only zeros from which it is worth a word.
const ZEROS_MANY: f64 = 0.05;

/// A regular file, held open for reading.
#[derive(Debug)]
pub struct Existing {
    file: File,
    path: PathBuf,
    /// Where it was found.
    directory: Directory,
    length_bytes: u64,
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
    if directory.is_memory() {
        let path = path.display();
        return Err(Error::Refused(format!(
            "{path}: files live in memory here, there is no storage to read from; name a directory \
             on a disk"
        )));
    }
    let candidates =
        if is_file { vec![(u64::MAX, path.clone())] } else { largest_files(&directory) };
    let mut why = None;
    for (_, path) in candidates.into_iter().take(TRIES) {
        match open(&path, &directory) {
            Ok((file, length_bytes)) => {
                return Ok(Existing { file, path, directory, length_bytes });
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

/// Files on the directory's own filesystem, the largest first. Symbolic links are not followed; what
/// cannot be looked at is passed over.
fn largest_files(directory: &Directory) -> Vec<(u64, PathBuf)> {
    let Ok(top) = fs::metadata(directory.path()) else { return Vec::new() };
    let mut found = Vec::new();
    let mut open = vec![directory.path().to_owned()];
    let mut names = 0;
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(at).into_iter().flatten().flatten() {
            names += 1;
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.dev() != top.dev() || names > NAMES_MAX {
                continue;
            }
            if metadata.is_dir() {
                open.push(entry.path());
            } else if metadata.is_file() && metadata.len() >= LENGTH_MIN_BYTES {
                found.push((metadata.len(), entry.path()));
            }
        }
    }
    found.sort_by(|one, other| other.cmp(one));
    found
}

/// Opens a file and says how long it is, or why it will not do.
fn open(path: &Path, directory: &Directory) -> std::result::Result<(File, u64), String> {
    let failed = |error: Errno| format!("cannot be opened ({error})");
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) if keeps_no_access_times(directory) => {
            rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?
        }
        Err(Errno::PERM) => {
            return Err("belongs to another user: reading it would write its access time".into());
        }
        answer => answer.map_err(failed)?,
    };
    let file = File::from(file);
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
    let extents = extents::of(&file, length).unwrap_or_default();
    if extents.unwritten_bytes > 0 {
        return Err("has parts that were never written, which are read without storage".to_owned());
    }
    if extents.encoded_bytes > 0 {
        return Err("is compressed: it is not read as it is stored".to_owned());
    }
    Ok((file, length))
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
        // What the flags were when it was opened decides whether an access time is kept.
        let kept = rustix::fs::fcntl_getfl(self.file.as_fd()).map_err(failed)? & OFlags::NOATIME;
        super::open_through(self.file.as_fd(), OFlags::RDONLY | kept | extra).map_err(failed)
    }

    /// What a reader of the results has to know.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = self.directory.warnings();
        let text = format!(
            "only {} was read ({}): nothing is said about writes, and other files may lie elsewhere",
            self.path.display(),
            show_bytes(self.length_bytes as f64)
        );
        let remedy = "without --read-only, ioscape makes files of its own and measures writes too";
        warnings.push(Warning::new(Code::ReadOnly, text, remedy).with_severity(Severity::Note));
        // Past the page cache, which holds what others need.
        let direct = self.open_again(OFlags::DIRECT).ok();
        let zeros = direct.and_then(|file| zero_fraction(&file, self.length_bytes));
        if let Some(zeros) = zeros.filter(|zeros| *zeros > ZEROS_MANY) {
            let text = format!(
                "{:.0} % of the file's blocks hold nothing but zeros: storage may answer without \
                 looking at its medium",
                zeros * 100.0
            );
            let remedy = "name another file, with data in it";
            warnings.push(Warning::new(Code::NeverWritten, text, remedy));
        }
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
