//! The system vector: what each kind of operation takes on a system, by a line per kind (after
//! Seltzer et al. 1999, section 3: the characterisation of a system by the times of its primitives).
//! The page cache misses and requests at the device are priced by the map's law; the vector has what
//! a law of throughput cannot say: names, syncs, processes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Figure, Warning};

/// What one kind of operation takes: a line of the record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Element {
    /// Which operation.
    pub name: ElementName,
    /// Mean of one operation as it usually is (`name` says how), seconds, with its 95 % interval.
    /// For `read_sequential_miss`, `write_back` and `processor` see there.
    pub time_s: Figure,
    /// How the time depends on what an operation is about.
    pub terms: Terms,
    /// Operations that it rests on.
    pub operations: u64,
    /// What is doubtful about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// Time of an operation = `per_call_s` + `per_byte_s` * its bytes + `per_page_s` * its pages +
/// `per_extent_s` * its pieces, seconds each; 0 where a term was not asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Terms {
    /// Whatever its size.
    pub per_call_s: f64,
    /// For each byte read, written or copied.
    pub per_byte_s: f64,
    /// For each dirty page (syncs), cached page (unlink, truncate) or mapped page (faults).
    pub per_page_s: f64,
    /// For each piece that these pages lie in.
    pub per_extent_s: f64,
}

impl Terms {
    /// Time of one operation, seconds.
    pub fn time_s(&self, bytes: f64, pages: f64, extents: f64) -> f64 {
        self.per_call_s
            + self.per_byte_s * bytes
            + self.per_page_s * pages
            + self.per_extent_s * extents
    }
}

macro_rules! element_names {
    ($($(#[doc = $doc:literal])+ $variant:ident => $word:literal,)*) => {
        /// Operations that the system vector knows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[non_exhaustive]
        pub enum ElementName {
            $($(#[doc = $doc])+ $variant,)*
        }

        impl ElementName {
            /// All of them, in the order in which they are shown.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// As in the record.
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    };
}

element_names! {
    /// `pread` of 4 KiB that the page cache holds; per byte up to 1 MiB.
    ReadHit => "read_hit",
    /// `pread` of 4 KiB at a random place, nothing cached, no read-ahead; per byte up to 1 MiB.
    ReadRandomMiss => "read_random_miss",
    /// Reading a file that is not cached from front to back in pieces of 128 KiB: one piece; the
    /// per-byte term is the time of a byte.
    ReadSequentialMiss => "read_sequential_miss",
    /// `pwrite` of 4 KiB, aligned, into a cached page; per byte up to 1 MiB.
    WriteCached => "write_cached",
    /// `pwrite` of 100 bytes into a cached page.
    WritePartialCached => "write_partial_cached",
    /// `pwrite` of 100 bytes into a page that is not cached, and is read for it.
    WritePartialMiss => "write_partial_miss",
    /// Appending 4 KiB, aligned; per byte up to 1 MiB.
    Append => "append",
    /// Appending 4,120 bytes, so that the last page is written again each time.
    AppendUnaligned => "append_unaligned",
    /// `pread` of 4 KiB by `O_DIRECT`; per byte up to 1 MiB.
    DirectRead => "direct_read",
    /// Overwriting 4 KiB by `O_DIRECT`; per byte up to 1 MiB.
    DirectWrite => "direct_write",
    /// Overwriting 4 KiB of a file opened with `O_DSYNC`.
    WriteDsync => "write_dsync",
    /// `fdatasync` with nothing to write.
    SyncClean => "sync_clean",
    /// `fdatasync` after overwriting one page; per page and per piece.
    SyncOverwritten => "sync_overwritten",
    /// `fdatasync` after appending one page; per page and per piece.
    SyncGrown => "sync_grown",
    /// `fsync` of a new file of one page; per page.
    SyncNew => "sync_new",
    /// `fsync` of a directory in which a file was made.
    SyncDirectory => "sync_directory",
    /// `open` of a file whose name and inode are cached.
    OpenCached => "open_cached",
    /// `open` of a file whose name and inode are not cached: mean over all files of a directory, which
    /// lie side by side.
    OpenMissed => "open_missed",
    /// `open` that creates, in a directory of 1,000.
    Create => "create",
    /// `open` that creates, in a directory of 10,000.
    CreateLarge => "create_large",
    /// `open` with `O_EXCL` that creates.
    CreateExclusive => "create_exclusive",
    /// `close` of a file that was only read.
    Close => "close",
    /// `close` of a file that was written.
    CloseWritten => "close_written",
    /// `stat` of a name that is cached, a different one each time.
    StatCached => "stat_cached",
    /// `stat` of a name that is not cached: mean over all files of a directory, which lie side by side.
    StatMissed => "stat_missed",
    /// `stat` of a name that does not exist.
    StatNegative => "stat_negative",
    /// `access` of a name that is cached.
    Access => "access",
    /// One entry of a cached directory, by `getdents64`; its share of the calls is in it.
    ReaddirEntry => "readdir_entry",
    /// One entry of a directory that is not cached, by `getdents64`.
    ReaddirMissed => "readdir_missed",
    /// `unlink` of an empty file; per page of it that is cached.
    Unlink => "unlink",
    /// `unlink` of a file whose inode is not cached: mean over all files of a directory.
    UnlinkMissed => "unlink_missed",
    /// `rename` within a directory.
    Rename => "rename",
    /// `rename` onto a file that exists.
    RenameReplace => "rename_replace",
    /// `mkdir`.
    Mkdir => "mkdir",
    /// `rmdir`.
    Rmdir => "rmdir",
    /// `link`.
    Link => "link",
    /// `symlink`.
    Symlink => "symlink",
    /// `ftruncate` to nothing; per page.
    Truncate => "truncate",
    /// `fallocate` of 1 MiB; per byte.
    Fallocate => "fallocate",
    /// A change of attributes: measured is `chmod`, and `utimensat` and others take about as long.
    SetAttribute => "set_attribute",
    /// `fcntl` that locks and unlocks a range: one of the two.
    Lock => "lock",
    /// `fstat`.
    Fstat => "fstat",
    /// `lseek`.
    Seek => "seek",
    /// A call that touches a descriptor only: measured is `fcntl`, and `dup` and `ioctl` are like it.
    Descriptor => "descriptor",
    /// `mmap` and `munmap` of a file: one of the two.
    Map => "map",
    /// First touch of a page of a mapped file that is cached, fault-around included: per page.
    FaultCached => "fault_cached",
    /// First touch of a page of a mapped file at a random place, not cached.
    FaultMissed => "fault_missed",
    /// First write to a page of a shared mapping.
    FaultWrite => "fault_write",
    /// First touch of a page of anonymous memory.
    FaultAnonymous => "fault_anonymous",
    /// `copy_file_range` of 128 KiB, cached; per byte. What a reflink takes where there is one.
    CopyRange => "copy_range",
    /// `sendfile` of 128 KiB to a file, cached; per byte.
    Sendfile => "sendfile",
    /// `fork`, `exec` and `exit` of a small program, waited for.
    Exec => "exec",
    /// `fork` and `exit`, waited for.
    Fork => "fork",
    /// A thread made and joined.
    Thread => "thread",
    /// A byte through a pipe to another process and back: one way.
    Pipe => "pipe",
    /// A read of 4 KiB by io_uring that the page cache holds: submitted and waited for.
    RingReadHit => "ring_read_hit",
    /// Write-back: seconds of the device for a page of 4 KiB among others side by side, written by the
    /// kernel's own threads, what a flush of one page takes taken off; the per-byte term is the time
    /// of a byte.
    WriteBack => "write_back",
    /// Write-back of pages at random places: seconds of the device for one.
    WriteBackRandom => "write_back_random",
    /// One million rounds of integer arithmetic and reads of a table of 1 MiB: two processors are
    /// compared by it.
    Processor => "processor",
}

impl fmt::Display for ElementName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
