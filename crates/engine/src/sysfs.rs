//! What the kernel says in small files, and of block devices in sysfs.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Major and minor number of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number(u64);

impl Number {
    pub(crate) fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// Of the device that a path leads to.
    pub(crate) fn of_path(path: &Path) -> Option<Self> {
        let metadata = path.is_absolute().then(|| fs::metadata(path).ok()).flatten()?;
        metadata.file_type().is_block_device().then(|| Self(metadata.rdev()))
    }

    /// Its directory in sysfs.
    pub(crate) fn sysfs(self) -> Option<PathBuf> {
        fs::canonicalize(format!("/sys/dev/block/{self}")).ok()
    }

    /// Set so by an administrator, or by nature.
    pub(crate) fn is_read_only(self) -> bool {
        self.sysfs().and_then(|sysfs| attribute(&sysfs, "ro")).is_some_and(|ro| ro != "0")
    }
}

/// `7:3`.
impl std::fmt::Display for Number {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", rustix::fs::major(self.0), rustix::fs::minor(self.0))
    }
}

/// The disk that a partition is of, in sysfs; anything else is whole.
pub(crate) fn whole(device: PathBuf) -> PathBuf {
    match device.parent() {
        Some(disk) if device.join("partition").exists() => disk.to_path_buf(),
        _ => device,
    }
}

/// A file of a device's directory in sysfs, without the white space around it.
pub(crate) fn attribute(device: &Path, name: &str) -> Option<String> {
    read(device.join(name))
}

/// A file's text without the white space around it; `None` where there is nothing to read.
pub(crate) fn read(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}
