//! Makes the calls of a trace on files of our own: lays the files out, keeps their names, open
//! descriptions and mappings, and makes one call after another. When which call is made is decided in
//! `ioscape-experiment`.
//!
//! All files lie below one directory that is made here, locked, and removed at the end, so no file of
//! anybody else is ever named.

mod handles;
mod layout;
mod mappings;
mod names;
mod perform;
mod stage;
mod thread_io;
mod times;

pub use perform::Performer;
pub use stage::{Stage, raise_file_limit};
pub use thread_io::ThreadIo;
pub use times::Times;

/// Bytes that are written: incompressible, in pieces that begin anywhere in them.
const POOL_BYTES: usize = 1 << 20;

/// Kind of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `pread`.
    Read,
    /// `pwrite`.
    Write,
    /// `fsync`.
    Sync,
    /// `fdatasync`.
    DataSync,
    /// `sync_file_range`.
    RangeSync,
    /// `syncfs`.
    SyncAll,
    /// `open` of a file that is there.
    Open,
    /// `open` with `O_CREAT`.
    Create,
    /// `close`.
    Close,
    /// `fstat` where there is a handle, `stat` otherwise.
    Stat,
    /// `stat` of a name that is not there.
    LookUp,
    /// `getdents`.
    List,
    /// `unlink`.
    Unlink,
    /// `rename`; `other` is the file that is replaced, or the file itself.
    Rename,
    /// `mkdir`.
    MakeDirectory,
    /// `rmdir`.
    RemoveDirectory,
    /// `link`; `other` is the new name.
    Link,
    /// `symlink`.
    Symlink,
    /// `readlink`.
    ReadLink,
    /// `utimensat`: stands for every change of attributes.
    Touch,
    /// `getxattr`.
    Attribute,
    /// `ftruncate` or `truncate`.
    Truncate,
    /// `fallocate`.
    Allocate,
    /// `fallocate` with `FALLOC_FL_PUNCH_HOLE`.
    Punch,
    /// `posix_fadvise`; `other` is the advice.
    Advise,
    /// `fcntl` that gives a lock back, so that nobody waits.
    Lock,
    /// `copy_file_range`; `other` is the file it goes to.
    Copy,
    /// `sendfile`, to nowhere.
    Send,
    /// `mmap`.
    Map,
    /// `munmap`.
    Unmap,
    /// `msync`.
    SyncMap,
    /// Touches mapped pages for reading.
    FaultRead,
    /// Touches mapped pages for writing.
    FaultWrite,
}

/// How a file is opened: bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct How(pub u8);

impl How {
    /// `O_DIRECT`.
    pub const DIRECT: Self = Self(1);
    /// `O_DSYNC`.
    pub const SYNC: Self = Self(1 << 1);
    /// `O_APPEND`.
    pub const APPEND: Self = Self(1 << 2);
    /// `O_EXCL`.
    pub const EXCL: Self = Self(1 << 3);
    /// `O_TRUNC`.
    pub const TRUNC: Self = Self(1 << 4);

    /// Whether all bits of `other` are set.
    #[must_use]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of bits.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// The kind of call.
    pub kind: Kind,
    /// The file it is about: an index of the stage's files, 0 where there is none.
    pub file: u32,
    /// The open description, 0 where there is none.
    pub handle: u32,
    /// A second number, by kind.
    pub other: u64,
    /// Where in the file, bytes.
    pub offset: u64,
    /// How much, bytes.
    pub length: u64,
    /// How the file is opened.
    pub how: How,
}

/// Result of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes moved; entries of a directory.
    pub bytes: u64,
    /// The errno it failed with, 0 if it did not.
    pub error: i32,
}

/// Kind of file behind a name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// A regular file.
    #[default]
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Link,
}

/// A file of the stage. The one with index 0 stands for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageFile {
    /// The kind of file.
    pub shape: Shape,
    /// The directory it is in, an index; 0 is the topmost.
    pub directory: u32,
    /// How it is at the start; `None` where it is not there yet.
    pub at_start: Option<AtStart>,
}

/// A file before the first call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AtStart {
    /// Its length.
    pub bytes: u64,
    /// Whether its bytes are written; a file that is only looked at has a length and no data.
    pub has_data: bool,
    /// Whether its data are in the page cache.
    pub is_cached: bool,
    /// True if calls write into its data.
    pub is_written: bool,
}

#[cfg(test)]
mod tests;
