//! What a rig stands on: a directory that test files are made in, or a block device that is
//! itself the test file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ioscape_model::warning::Warning;

use super::{Device, Directory, describe};
use crate::error::{Error, Result};

/// A target, opened. Clones share it.
#[derive(Clone, Debug)]
pub enum Ground {
    /// Test files are made here.
    Directory(Arc<Directory>),
    /// All processes have a range of this.
    Device(Arc<Device>),
}

impl Ground {
    /// Absolute, without symbolic links.
    pub fn path(&self) -> &Path {
        match self {
            Self::Directory(directory) => directory.path(),
            Self::Device(device) => device.path(),
        }
    }

    /// Whether what is written here lives in memory.
    pub fn is_memory(&self) -> bool {
        matches!(self, Self::Directory(directory) if directory.is_memory())
    }

    /// The device, where it is one.
    pub fn device(&self) -> Option<&Device> {
        match self {
            Self::Directory(_) => None,
            Self::Device(device) => Some(device),
        }
    }

    /// The directory, where it is one.
    pub fn directory(&self) -> Option<&Directory> {
        match self {
            Self::Directory(directory) => Some(directory),
            Self::Device(_) => None,
        }
    }

    /// Whether device bytes and resident pages mean here what they seem to.
    pub fn counters_trusted(&self) -> bool {
        match self {
            Self::Directory(directory) => directory.counters_trusted(),
            Self::Device(_) => true,
        }
    }

    /// The directory in sysfs of the device or partition behind it, where that is known.
    pub(crate) fn sysfs(&self) -> Option<PathBuf> {
        match self {
            Self::Directory(directory) => describe::device(directory.mount()),
            Self::Device(device) => device.number().sysfs(),
        }
    }

    /// Most bytes of test data: half of what is free, or the whole device.
    ///
    /// # Errors
    /// When the filesystem does not say.
    pub fn room_bytes(&self) -> Result<u64> {
        match self {
            Self::Directory(directory) => Ok(directory.free_bytes()? / 2),
            Self::Device(device) => Ok(device.length_bytes()),
        }
    }

    /// What a reader of the results has to know.
    pub fn warnings(&self) -> Vec<Warning> {
        match self {
            Self::Directory(directory) => directory.warnings(),
            Self::Device(device) => device.warnings(),
        }
    }

    /// What the record's header says about the target.
    pub fn describe(&self) -> ioscape_model::Target {
        match self {
            Self::Directory(directory) => directory.describe(),
            Self::Device(device) => device.describe(),
        }
    }

    /// Brings all that is dirty here to storage: the whole filesystem, or the device.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn write_back(&self) -> Result<()> {
        let done = match self {
            Self::Directory(directory) => rustix::fs::syncfs(directory),
            Self::Device(device) => rustix::fs::fsync(device),
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
