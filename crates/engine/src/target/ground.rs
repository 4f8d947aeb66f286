//! What a rig stands on: a directory that test files are made in, or a block device or file that
//! is itself the test file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ioscape_model::warning::Warning;
use rustix::fs::OFlags;

use super::{Device, Directory, Existing, describe};
use crate::error::{Error, Result};

/// A target, opened. Clones share it.
#[derive(Clone, Debug)]
pub enum Ground {
    /// Test files are made here.
    Directory(Arc<Directory>),
    /// All processes have a range of this.
    Device(Arc<Device>),
    /// All processes have a range of this file that somebody uses; it is read past the page cache, and
    /// nothing else.
    File(Arc<Existing>),
}

impl Ground {
    /// Absolute, without symbolic links.
    pub fn path(&self) -> &Path {
        match self {
            Self::Directory(directory) => directory.path(),
            Self::Device(device) => device.path(),
            Self::File(file) => file.path(),
        }
    }

    /// Whether what is written here lives in memory.
    pub fn is_memory(&self) -> bool {
        matches!(self, Self::Directory(directory) if directory.is_memory())
    }

    /// The device, where it is one.
    pub fn device(&self) -> Option<&Device> {
        match self {
            Self::Directory(_) | Self::File(_) => None,
            Self::Device(device) => Some(device),
        }
    }

    /// Whether nothing may be written here.
    pub fn is_read_only(&self) -> bool {
        match self {
            Self::Directory(_) => false,
            Self::Device(device) => !device.is_writable(),
            Self::File(_) => true,
        }
    }

    /// Whether it is somebody's file, whose pages in the page cache are to stay as they are.
    pub(crate) fn is_in_use(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// Another descriptor of what is itself the test file; `None` where test files are made.
    /// `extra` may hold `O_DIRECT`.
    pub(crate) fn open_again(&self, extra: OFlags) -> Option<Result<File>> {
        match self {
            Self::Directory(_) => None,
            Self::Device(device) => Some(device.open_again(extra)),
            Self::File(file) => Some(file.open_again(extra)),
        }
    }

    /// The directory, where it is one.
    pub fn directory(&self) -> Option<&Directory> {
        match self {
            Self::Directory(directory) => Some(directory),
            Self::Device(_) | Self::File(_) => None,
        }
    }

    /// Whether device bytes and resident pages mean here what they seem to.
    pub fn counters_trusted(&self) -> bool {
        match self {
            Self::Directory(directory) => directory.counters_trusted(),
            Self::Device(_) => true,
            Self::File(file) => file.directory().counters_trusted(),
        }
    }

    /// The directory in sysfs of the device or partition behind it, where that is known.
    pub(crate) fn sysfs(&self) -> Option<PathBuf> {
        match self {
            Self::Directory(directory) => describe::device(directory.mount()),
            Self::Device(device) => device.number().sysfs(),
            Self::File(file) => describe::device(file.directory().mount()),
        }
    }

    /// Most bytes of test data: half of what is free, or the whole device or file.
    ///
    /// # Errors
    /// When the filesystem does not say.
    pub fn room_bytes(&self) -> Result<u64> {
        match self {
            Self::Directory(directory) => Ok(directory.free_bytes()? / 2),
            Self::Device(device) => Ok(device.length_bytes()),
            Self::File(file) => Ok(file.length_bytes()),
        }
    }

    /// What a reader of the results has to know.
    pub fn warnings(&self) -> Vec<Warning> {
        match self {
            Self::Directory(directory) => directory.warnings(),
            Self::Device(device) => device.warnings(),
            Self::File(file) => file.warnings(),
        }
    }

    /// What the record's header says about the target.
    pub fn describe(&self) -> ioscape_model::Target {
        match self {
            Self::Directory(directory) => directory.describe(),
            Self::Device(device) => device.describe(),
            Self::File(file) => file.describe(),
        }
    }

    /// Brings all that is dirty here to storage: the whole filesystem, or the device. Of a file in use
    /// nothing is.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn write_back(&self) -> Result<()> {
        let done = match self {
            Self::Directory(directory) => rustix::fs::syncfs(directory),
            Self::Device(device) => rustix::fs::fsync(device),
            Self::File(_) => Ok(()),
        };
        done.map_err(|error| Error::path("write back", self.path(), error))
    }
}

impl From<Directory> for Ground {
    fn from(directory: Directory) -> Self {
        Self::Directory(Arc::new(directory))
    }
}

impl From<Arc<Directory>> for Ground {
    fn from(directory: Arc<Directory>) -> Self {
        Self::Directory(directory)
    }
}

impl From<Device> for Ground {
    fn from(device: Device) -> Self {
        Self::Device(Arc::new(device))
    }
}

impl From<Existing> for Ground {
    fn from(file: Existing) -> Self {
        Self::File(Arc::new(file))
    }
}
