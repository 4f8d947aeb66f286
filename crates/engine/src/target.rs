//! Where a benchmark may work: opens a directory or a block device, or refuses it in one line.
//!
//! A [`Directory`] is held open: what is made and removed in it goes by its descriptor, so that
//! a path that is swapped under the run leads nowhere else. So is a [`Device`].

pub(crate) mod describe;
mod device;
mod existing;
mod ground;
pub mod signature;
mod uses;

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use ioscape_model::Words;
use ioscape_model::warning::{Code, Severity, Warning};
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags};

use crate::aligned::Aligned;
use crate::error::{Error, Result};
use crate::mounts::{self, Mount};
pub use describe::describe;
pub use device::{Consent, Device, open_device};
pub use existing::{Existing, open_existing};
pub use ground::Ground;
pub use uses::Uses;

/// What the kernel makes up: nothing is stored there.
const PSEUDO: &[&str] = &[
    "autofs",
    "binder",
    "binfmt_misc",
    "bpf",
    "cgroup",
    "cgroup2",
    "configfs",
    "debugfs",
    "devpts",
    "devtmpfs",
    "efivarfs",
    "functionfs",
    "fusectl",
    "hugetlbfs",
    "mqueue",
    "nfsd",
    "nsfs",
    "pipefs",
    "proc",
    "pstore",
    "resctrl",
    "rpc_pipefs",
    "securityfs",
    "selinuxfs",
    "sockfs",
    "sysfs",
    "tracefs",
];
/// A write goes to a new place; some compress.
const COPY_ON_WRITE: &[&str] = &["btrfs", "zfs", "bcachefs", "nilfs2"];
/// Another filesystem, another machine or a process of its own lies between: the page cache and
/// the device bytes that this process sees are not the whole of it.
const INDIRECT: &[&str] = &[
    "9p",
    "afs",
    "aufs",
    "beegfs",
    "ceph",
    "cifs",
    "coda",
    "ecryptfs",
    "gfs2",
    "glusterfs",
    "gpfs",
    "lustre",
    "nfs",
    "nfs4",
    "ocfs2",
    "orangefs",
    "overlay",
    "prl_fs",
    "smb3",
    "smbfs",
    "vboxsf",
    "virtiofs",
    "vmhgfs",
    "zfs",
];

/// A directory that test files can be made in.
#[derive(Debug)]
pub struct Directory {
    descriptor: OwnedFd,
    path: PathBuf,
    given: PathBuf,
    mount: Mount,
}

/// Opens a target directory. A symbolic link to one is followed, once, here.
///
/// # Errors
/// [`Error::Refused`] with the reason for everything that is not a directory this user may open on
/// a writable filesystem that stores something.
pub fn open_directory(path: impl AsRef<Path>) -> Result<Directory> {
    let directory = open_unchecked(path.as_ref())?;
    directory.check()?;
    Ok(directory)
}

/// Opens a directory in which no file is going to be made: it may be another user's, or mounted
/// read-only.
fn open_unchecked(given: &Path) -> Result<Directory> {
    let refused = |error| cannot_open(given, error);
    let path = fs::canonicalize(given).map_err(refused)?;
    let metadata = fs::metadata(&path).map_err(refused)?;
    let kind = FileType::from_raw_mode(metadata.mode());
    if kind != FileType::Directory {
        return Err(Error::Refused(not_a_directory(&path, kind)));
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let descriptor =
        rustix::fs::open(&path, flags, Mode::empty()).map_err(|error| refused(error.into()))?;
    let mount = mounts::mount_of(descriptor.as_fd()).ok_or_else(|| {
        Error::Refused(format!(
            "{}: cannot find out what filesystem this is: the kernel's list of mounts \
             (/proc/self/mountinfo) does not say; mount /proc, or name a mounted directory",
            path.display()
        ))
    })?;
    Ok(Directory { descriptor, path, given: given.to_owned(), mount })
}

/// Another descriptor of what `handle` holds, whatever its path leads to by now.
fn open_through(handle: BorrowedFd<'_>, flags: OFlags) -> rustix::io::Result<File> {
    let link = format!("/proc/self/fd/{}", handle.as_raw_fd());
    rustix::fs::open(link, flags | OFlags::CLOEXEC, Mode::empty()).map(File::from)
}

/// Share of a few evenly spread blocks that hold nothing but zeros; `None` where one cannot be read.
/// The file may be open for direct access.
fn zero_fraction(file: &File, length_bytes: u64) -> Option<f64> {
    const SAMPLES: u64 = 64;
    const BLOCK_BYTES: u64 = 4096;
    let mut block = Aligned::new(BLOCK_BYTES as usize);
    let mut zeros = 0;
    for sample in 0..SAMPLES {
        let at = (length_bytes - BLOCK_BYTES) / SAMPLES * sample / BLOCK_BYTES * BLOCK_BYTES;
        file.read_exact_at(block.bytes_mut(), at).ok()?;
        zeros += u64::from(block.bytes().iter().all(|byte| *byte == 0));
    }
    Some(zeros as f64 / SAMPLES as f64)
}

/// Doubts storage that may have been found with nothing in it: `what` holds the blocks, `who` answers.
fn never_written(zeros: Option<f64>, (what, who): (&str, &str), remedy: &str) -> Option<Warning> {
    /// A share of such blocks that is worth a word.
    const ZEROS_MANY: f64 = 0.05;
    let zeros = zeros.filter(|zeros| *zeros > ZEROS_MANY)?;
    let text = Words::new(
        "{zeros_share:.0} of {what} hold nothing but zeros: {who} that never wrote them may answer \
         without looking at its medium",
    )
    .figure("zeros_share", zeros)
    .name("what", what)
    .name("who", who);
    Some(Warning::new(Code::NeverWritten, text, remedy))
}

/// A path that leads nowhere, or where this user may not go, is refused with what to try; what else
/// can be wrong has nothing to do with the path.
fn cannot_open(given: &Path, error: io::Error) -> Error {
    let advice = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "name a directory that exists",
        io::ErrorKind::PermissionDenied => "name a directory that this user may enter and list",
        io::ErrorKind::InvalidFilename => "name another directory",
        _ if error.raw_os_error() == Some(libc::ELOOP) => "name another directory",
        _ => return Error::path("open", given, error),
    };
    Error::Refused(format!("{} cannot be opened ({error}): {advice}", given.display()))
}

/// Whether a path leads to a block device, for choosing how to open it; that looks again.
pub fn is_block_device(path: impl AsRef<Path>) -> bool {
    let kind = fs::metadata(path).map(|metadata| FileType::from_raw_mode(metadata.mode()));
    matches!(kind, Ok(FileType::BlockDevice))
}

fn not_a_directory(path: &Path, kind: FileType) -> String {
    let (path, name) = (path.display(), kind_name(kind));
    if kind == FileType::BlockDevice {
        return format!(
            "{path} is {name}: here a directory is needed; `ioscape measure {path}` reads a device, \
             and with `--destroy {path}` overwrites it"
        );
    }
    format!("{path} is {name}: name a directory, test files are made in it and removed afterwards")
}

/// What a path leads to, with an article.
fn kind_name(kind: FileType) -> &'static str {
    match kind {
        FileType::RegularFile => "a regular file",
        FileType::Directory => "a directory",
        FileType::BlockDevice => "a block device",
        FileType::CharacterDevice => "a character device",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::Symlink => "a symbolic link",
        FileType::Unknown => "nothing that can be measured",
    }
}

impl Directory {
    /// Absolute, without symbolic links.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// As it was given.
    pub fn given(&self) -> &Path {
        &self.given
    }

    /// Filesystem type, as mount(8) names it.
    pub fn filesystem(&self) -> &str {
        &self.mount.filesystem
    }

    /// Whether files here live in memory.
    pub fn is_memory(&self) -> bool {
        ioscape_model::host::is_in_memory(self.filesystem())
    }

    /// See [`ioscape_model::host::is_served`].
    pub(crate) fn is_served(&self) -> bool {
        ioscape_model::host::is_served(self.filesystem())
    }

    /// Whether a write goes to a new place.
    pub(crate) fn copies_on_write(&self) -> bool {
        COPY_ON_WRITE.contains(&self.filesystem())
    }

    /// Whether device bytes and resident pages mean here what they seem to.
    pub fn counters_trusted(&self) -> bool {
        !self.is_memory() && !is_indirect(self.filesystem())
    }

    /// Bytes that this user may still fill; on an in-memory filesystem not more than the memory
    /// that could be had.
    ///
    /// # Errors
    /// When the filesystem does not answer.
    pub fn free_bytes(&self) -> Result<u64> {
        let space = rustix::fs::fstatvfs(&self.descriptor)
            .map_err(|error| Error::path("ask for the free space of", &self.path, error))?;
        let free_bytes = space.f_bavail.saturating_mul(space.f_frsize);
        if !self.is_memory() {
            return Ok(free_bytes);
        }
        // ramfs knows no size at all, and that of tmpfs may exceed the memory.
        let free_bytes = if space.f_blocks == 0 { u64::MAX } else { free_bytes };
        Ok(free_bytes.min(crate::memory::to_be_had_bytes()))
    }

    /// What a reader of the results has to know about this filesystem.
    pub fn warnings(&self) -> Vec<Warning> {
        let filesystem = self.filesystem();
        let mut warnings = Vec::new();
        if self.is_memory() {
            warnings.push(Warning::new(
                Code::MemoryFilesystem,
                format!("the target is on {filesystem}: files live in memory, no disk is involved"),
                "name a directory on a disk to measure one",
            ));
        }
        if self.copies_on_write() {
            let options = &self.mount.super_options;
            let compresses = options.split(',').find(|option| option.starts_with("compress"));
            let text = match compresses {
                Some(option) => format!(
                    "{filesystem} writes to new places and compresses ({option}): the test data \
                     cannot be compressed, other data may do better"
                ),
                None => format!(
                    "{filesystem} writes to new places: files fragment while they are overwritten, \
                     those of a visit less than files that have been in use for long"
                ),
            };
            let remedy = "compare only with other results from this filesystem";
            warnings
                .push(Warning::new(Code::CopyOnWrite, text, remedy).with_severity(Severity::Note));
        }
        if is_indirect(filesystem) {
            warnings.push(Warning::new(
                Code::NoCounters,
                format!("{filesystem} hides caches and devices from this process's counters"),
                "borders are found by timing alone; measure the filesystem below it to see more",
            ));
        }
        if let Some(why) = crate::cachestat::denied() {
            let text = format!(
                "cachestat is not to be had here ({why}): what is cached is looked up page by page \
                 (mincore), and how much of it is dirty is not known"
            );
            let remedy =
                "take Linux 6.5 or later, or allow cachestat in the container's seccomp profile";
            warnings
                .push(Warning::new(Code::NoCounters, text, remedy).with_severity(Severity::Note));
        }
        warnings
    }

    /// What the record's header says about the target.
    pub fn describe(&self) -> ioscape_model::Target {
        describe::of_directory(self)
    }

    pub(crate) fn mount(&self) -> &Mount {
        &self.mount
    }

    /// Refuses pseudo-filesystems, such as proc, and directories of the operating system: users keep no
    /// data there.
    fn check_stores(&self) -> Result<()> {
        let path = self.path.display();
        let filesystem = self.filesystem();
        if PSEUDO.contains(&filesystem) {
            return Err(Error::Refused(format!(
                "{path} is on {filesystem}, which the kernel makes up: nothing is stored there"
            )));
        }
        // Memory filesystems that hold devices, or where the kernel's own are mounted.
        let of_system = ["/dev", "/sys", "/proc"].iter().any(|top| self.path.starts_with(top));
        if self.is_memory() && of_system && !self.path.starts_with("/dev/shm") {
            return Err(Error::Refused(format!(
                "{path} belongs to the system: name a directory where data are kept"
            )));
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        self.check_stores()?;
        let path = self.path.display();
        let filesystem = self.filesystem();
        let space = rustix::fs::fstatvfs(&self.descriptor)
            .map_err(|error| Error::path("ask for the free space of", &self.path, error))?;
        if space.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) {
            return Err(Error::Refused(format!(
                "{path} is mounted read-only: name a directory that can be written"
            )));
        }
        if space.f_blocks == 0 && !self.is_memory() {
            return Err(Error::Refused(format!(
                "{path} is on {filesystem}, which says that it has no room at all"
            )));
        }
        let access = Access::WRITE_OK | Access::EXEC_OK;
        rustix::fs::accessat(&self.descriptor, ".", access, AtFlags::EACCESS).map_err(|error| {
            Error::Refused(format!(
                "{path} cannot be written by this user ({error}): name a directory of yours"
            ))
        })
    }
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// FUSE has many names: `fuse`, `fuseblk`, `fuse.sshfs`.
fn is_indirect(filesystem: &str) -> bool {
    INDIRECT.contains(&filesystem) || filesystem.starts_with("fuse")
}

#[cfg(test)]
mod tests;
