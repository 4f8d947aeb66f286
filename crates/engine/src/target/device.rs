//! A block device as a target: opened for reading, or, when its path is typed twice and nothing
//! on it would be lost, for writing.
//!
//! Everything is checked on the descriptor that is used afterwards, and a device that may be
//! written is claimed from before the checks until the end: what the path leads to meanwhile does
//! not matter, and nobody can mount it.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ioscape_model::warning::{Code, Severity, Warning};
use rustix::fs::{FileType, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::describe;
use super::signature::{self, Found};
use super::uses::{self, Uses};
use super::{kind_name, never_written, open_through};
use crate::error::{Error, Result};
use crate::sysfs::Number;

/// Smaller ones hold no workload.
const LENGTH_MIN_BYTES: u64 = 8 << 20;

/// What may be done to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent<'a> {
    /// Only read it.
    ReadOnly,
    /// Overwrite it: the path as it was typed once more.
    Destroy(&'a Path),
}

/// A block device, held open; claimed where it may be written.
#[derive(Debug)]
pub struct Device {
    file: File,
    path: PathBuf,
    number: Number,
    length_bytes: u64,
    writable: bool,
    contents: Vec<Found>,
    uses: Uses,
}

/// Names made of a device's model and serial number. A boot may give `/dev/sdb` to another device, but
/// not these: of all names, they are the ones that say which device is meant.
const BY_ID: &str = "/dev/disk/by-id";

/// Whether a name says which device is meant: the device's own, byte for byte, or the one made of its
/// serial number.
fn says_which(given: &Path, path: &Path) -> bool {
    let is_own = given.as_os_str().as_bytes() == path.as_os_str().as_bytes();
    let directory = given.parent().map(|parent| parent.as_os_str().as_bytes());
    is_own || directory == Some(BY_ID.as_bytes())
}

/// Opens the block device that `given` names.
///
/// # Errors
/// [`Error::Refused`] with the reason: for everything that is no block device with a medium in it,
/// and for writing, for every device that is in use in any way or carries anything recognisable.
pub fn open_device(given: impl AsRef<Path>, consent: Consent<'_>) -> Result<Device> {
    let given = given.as_ref();
    let path = fs::canonicalize(given).map_err(|error| cannot_open(given, &error))?;
    match consent {
        Consent::ReadOnly => open(&path, OFlags::empty()),
        Consent::Destroy(typed) => {
            let bytes = |path: &Path| path.as_os_str().as_bytes().to_vec();
            let shown = given.display();
            if bytes(given) != bytes(typed) {
                return Err(Error::Refused(format!(
                    "--destroy {} is not the target {shown}: the same path has to be typed twice",
                    typed.display()
                )));
            }
            if !says_which(given, &path) {
                return Err(Error::Refused(format!(
                    "{shown} is another name of {}: what is to be destroyed has to be called by \
                     its own, or by the one in {BY_ID}, both times",
                    path.display()
                )));
            }
            // Claimed, but for reading: a device that is refused was never open to be written.
            let mut device = open(&path, OFlags::EXCL)?;
            device.uses = uses::settled(device.number);
            device.check_nothing_is_lost()?;
            Ok(Device { writable: true, ..device })
        }
    }
}

/// Opens a block device for reading. What is opened is what was looked at: a handle that can do
/// nothing comes first, and the device is opened through it.
fn open(path: &Path, extra: OFlags) -> Result<Device> {
    let failed = |error: Errno| cannot_open(path, &error.into());
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::open(path, flags, Mode::empty()).map_err(failed)?;
    let status = rustix::fs::fstat(&handle).map_err(failed)?;
    let kind = FileType::from_raw_mode(status.st_mode);
    if kind != FileType::BlockDevice {
        return Err(Error::Refused(format!(
            "{} is {}: --destroy is for block devices",
            path.display(),
            kind_name(kind)
        )));
    }
    let number = Number::from_raw(status.st_rdev);
    let file =
        open_through(handle.as_fd(), OFlags::RDONLY | extra).map_err(|error| match error {
            Errno::BUSY => Error::Refused(format!(
                "{} is in use: {}",
                path.display(),
                uses::find_uses(number)
                    .sentence()
                    .unwrap_or_else(|| "another program has claimed it".into())
            )),
            error => cannot_open(path, &error.into()),
        })?;
    let length_bytes = rustix::fs::seek(&file, SeekFrom::End(0)).map_err(failed)?;
    if length_bytes < LENGTH_MIN_BYTES {
        return Err(Error::Refused(format!(
            "{} holds {length_bytes} bytes: there is no medium in it, or none to measure on",
            path.display()
        )));
    }
    let read = |at: u64, buffer: &mut [u8]| file.read_exact_at(buffer, at);
    let contents = signature::find(length_bytes, read)
        .map_err(|error| Error::path("read the first and last blocks of", path, error))?;
    let path = path.to_owned();
    let uses = uses::find_uses(number);
    Ok(Device { file, path, number, length_bytes, writable: false, contents, uses })
}

fn cannot_open(path: &Path, error: &io::Error) -> Error {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "block devices are read by root and the group that owns them; a directory needs neither"
        }
        _ => "name a block device with a medium in it",
    };
    Error::Refused(format!("{} cannot be opened ({error}): {advice}", path.display()))
}

impl Device {
    /// Absolute, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes on it.
    pub fn length_bytes(&self) -> u64 {
        self.length_bytes
    }

    /// Whether it may be overwritten.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// What is on it, as far as it can be recognised.
    pub fn contents(&self) -> &[Found] {
        &self.contents
    }

    /// Who uses it, as far as that can be seen.
    pub fn uses(&self) -> &Uses {
        &self.uses
    }

    /// A descriptor of its own for a worker, for writing too where that was agreed to. `extra` may
    /// hold `O_DIRECT`.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn open_again(&self, extra: OFlags) -> Result<File> {
        let access = if self.writable { OFlags::RDWR } else { OFlags::RDONLY };
        open_through(self.file.as_fd(), access | extra)
            .map_err(|error| Error::path("open", &self.path, error))
    }

    /// What a reader of the results has to know.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        if let Some(uses) = self.uses.sentence() {
            let text = format!("{} is in use meanwhile: {uses}", self.path.display());
            let remedy = "measure when nothing else uses the device";
            warnings.push(Warning::new(Code::Neighbours, text, remedy));
        }
        let remedy = "measure reads on a device that is full of data";
        warnings.extend(never_written(self.zero_fraction(), ("the blocks", "a device"), remedy));
        if !self.writable {
            let text = "opened for reading only: nothing is said about writes";
            let remedy = format!(
                "`--destroy {}` measures writes too, and overwrites all that is on it",
                self.path.display()
            );
            let warning = Warning::new(Code::ReadOnly, text, remedy);
            warnings.push(warning.with_severity(Severity::Note));
        }
        warnings
    }

    /// What the record's header says about the target.
    pub fn describe(&self) -> ioscape_model::Target {
        describe::of_device(&self.path, self.number, self.length_bytes)
    }

    /// Share of a few evenly spread blocks that hold nothing but zeros; `None` where one cannot
    /// be read.
    pub fn zero_fraction(&self) -> Option<f64> {
        super::zero_fraction(&self.file, self.length_bytes)
    }

    pub(crate) fn number(&self) -> Number {
        self.number
    }

    fn check_nothing_is_lost(&self) -> Result<()> {
        let path = self.path.display();
        if self.number.is_read_only() {
            return Err(Error::Refused(format!("{path} is set read-only: it cannot be written")));
        }
        if let Some(uses) = self.uses.sentence() {
            return Err(Error::Refused(format!("{path} is in use: {uses}")));
        }
        if let Some(found) = self.contents.first() {
            return Err(Error::Refused(format!(
                "{path} carries {}: that is not overwritten. If it is to go, `wipefs --all {path}` \
                 removes the mark, and this command can be typed again",
                found.what
            )));
        }
        // To say so now and not when the first worker starts.
        open_through(self.file.as_fd(), OFlags::RDWR)
            .map(drop)
            .map_err(|error| Error::Refused(format!("{path} cannot be written ({error})")))
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_called_by_its_own_name_or_by_its_serial_number() {
        for (given, says) in [
            ("/dev/sdb", true),
            ("/dev/disk/by-id/nvme-Samsung_SSD_990_S6Z1", true),
            ("/dev/disk/by-uuid/1234", false),
            ("/dev/disk/by-id/../by-uuid/1234", false),
            ("/dev/disk/by-id/", false),
            ("/tmp/link", false),
            ("/dev/./sdb", false),
            ("sdb", false),
        ] {
            assert_eq!(says_which(Path::new(given), Path::new("/dev/sdb")), says, "{given}");
        }
    }
}
