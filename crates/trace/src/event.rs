//! The nouns of a trace: events, and the tables of files and streams that they point into.

use std::io;

use serde::{Deserialize, Serialize};

/// What an event did. The names are those of the trace's `op` column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Op {
    /// Bytes were read.
    Read,
    /// Bytes were written.
    Write,
    /// `fsync`.
    Sync,
    /// `fdatasync`.
    Dsync,
    /// `sync_file_range`.
    Rsync,
    /// A file that existed was opened.
    Open,
    /// A file was created.
    Create,
    /// A descriptor was closed.
    Close,
    /// Attributes were asked for.
    Stat,
    /// A name was looked up that is not there.
    LookupNeg,
    /// Entries of a directory were read.
    Readdir,
    /// A name was removed.
    Unlink,
    /// A name was changed.
    Rename,
    /// A directory was made.
    Mkdir,
    /// A directory was removed.
    Rmdir,
    /// A hard link was made.
    Link,
    /// A symbolic link was made.
    Symlink,
    /// A symbolic link was read.
    Readlink,
    /// Attributes were changed: mode, owner, times.
    Chattr,
    /// Extended attributes.
    Xattr,
    /// The length was set.
    Trunc,
    /// Space was reserved.
    Falloc,
    /// A hole was made.
    Punch,
    /// Advice about future use.
    Advise,
    /// A lock was taken or given back.
    Lock,
    /// Bytes were copied from file to file inside the kernel.
    Copy,
    /// Bytes went from a file to a socket or pipe inside the kernel.
    Sendfile,
    /// A file was mapped.
    Mmap,
    /// A mapping was removed.
    Munmap,
    /// A mapping was written back.
    Msync,
    /// A mapped page was touched for reading.
    FaultR,
    /// A mapped page was touched for writing.
    FaultW,
    /// Blocks were given back to the device.
    Discard,
    /// The device's cache was flushed.
    Flush,
    /// An object was fetched (key-value and object traces).
    Get,
    /// An object was stored.
    Set,
    /// An object was removed.
    Del,
    /// A request of another protocol (HTTP).
    Req,
    /// Waited for something that is not storage: futex, poll, sleep.
    Wait,
    /// A program was started in this process.
    Exec,
    /// A process or thread was started.
    Fork,
    /// A process or thread ended.
    Exit,
}

impl Op {
    /// Every operation, in the order of declaration.
    pub const ALL: [Self; 42] = [
        Self::Read,
        Self::Write,
        Self::Sync,
        Self::Dsync,
        Self::Rsync,
        Self::Open,
        Self::Create,
        Self::Close,
        Self::Stat,
        Self::LookupNeg,
        Self::Readdir,
        Self::Unlink,
        Self::Rename,
        Self::Mkdir,
        Self::Rmdir,
        Self::Link,
        Self::Symlink,
        Self::Readlink,
        Self::Chattr,
        Self::Xattr,
        Self::Trunc,
        Self::Falloc,
        Self::Punch,
        Self::Advise,
        Self::Lock,
        Self::Copy,
        Self::Sendfile,
        Self::Mmap,
        Self::Munmap,
        Self::Msync,
        Self::FaultR,
        Self::FaultW,
        Self::Discard,
        Self::Flush,
        Self::Get,
        Self::Set,
        Self::Del,
        Self::Req,
        Self::Wait,
        Self::Exec,
        Self::Fork,
        Self::Exit,
    ];

    /// The word of the `op` column.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "READ",
            Self::Write => "WRITE",
            Self::Sync => "SYNC",
            Self::Dsync => "DSYNC",
            Self::Rsync => "RSYNC",
            Self::Open => "OPEN",
            Self::Create => "CREATE",
            Self::Close => "CLOSE",
            Self::Stat => "STAT",
            Self::LookupNeg => "LOOKUP_NEG",
            Self::Readdir => "READDIR",
            Self::Unlink => "UNLINK",
            Self::Rename => "RENAME",
            Self::Mkdir => "MKDIR",
            Self::Rmdir => "RMDIR",
            Self::Link => "LINK",
            Self::Symlink => "SYMLINK",
            Self::Readlink => "READLINK",
            Self::Chattr => "CHATTR",
            Self::Xattr => "XATTR",
            Self::Trunc => "TRUNC",
            Self::Falloc => "FALLOC",
            Self::Punch => "PUNCH",
            Self::Advise => "ADVISE",
            Self::Lock => "LOCK",
            Self::Copy => "COPY",
            Self::Sendfile => "SENDFILE",
            Self::Mmap => "MMAP",
            Self::Munmap => "MUNMAP",
            Self::Msync => "MSYNC",
            Self::FaultR => "FAULT_R",
            Self::FaultW => "FAULT_W",
            Self::Discard => "DISCARD",
            Self::Flush => "FLUSH",
            Self::Get => "GET",
            Self::Set => "SET",
            Self::Del => "DEL",
            Self::Req => "REQ",
            Self::Wait => "WAIT",
            Self::Exec => "EXEC",
            Self::Fork => "FORK",
            Self::Exit => "EXIT",
        }
    }

    /// The operation of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.name() == name)
    }
}

/// How an operation was asked for: bits of the `flags` column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Flags(pub u16);

impl Flags {
    /// `O_DIRECT`.
    pub const DIRECT: Self = Self(1);
    /// `O_SYNC`, `O_DSYNC`, `RWF_SYNC` or `RWF_DSYNC`.
    pub const SYNC: Self = Self(1 << 1);
    /// `O_APPEND`: the offset is the end of the file.
    pub const APPEND: Self = Self(1 << 2);
    /// `RWF_NOWAIT`.
    pub const NOWAIT: Self = Self(1 << 3);
    /// The offset is the description's own position.
    pub const IMPLICIT_OFFSET: Self = Self(1 << 4);
    /// Submitted through io_uring or libaio: the stream did not wait in the call.
    pub const ASYNC: Self = Self(1 << 5);
    /// A fixed file of io_uring.
    pub const FIXED: Self = Self(1 << 6);
    /// Seen as a page fault of a mapping.
    pub const FROM_FAULT: Self = Self(1 << 7);
    /// `O_EXCL`.
    pub const EXCL: Self = Self(1 << 8);
    /// `O_TRUNC`.
    pub const TRUNC: Self = Self(1 << 9);

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

/// One operation of one stream. Times are nanoseconds, sizes bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// When it began, since the trace began.
    pub start_ns: u64,
    /// Time in the call; `None` where the format has none.
    pub duration_ns: Option<u64>,
    /// What was done.
    pub op: Op,
    /// Thread or client: an `id` of the table of streams, 0 where the format knows none.
    pub stream: u32,
    /// Open file description, 0 where there is none: read-ahead and positions belong to it.
    pub handle: u32,
    /// An `id` of the table of files, 0 where there is none.
    pub file: u32,
    /// Where in the file.
    pub offset: u64,
    /// Bytes done; entries of a directory (`Readdir`); for `Copy` bytes copied.
    pub length: u64,
    /// Bytes asked for, where they differ from those done.
    pub asked: Option<u64>,
    /// The errno it failed with, 0 if it did not.
    pub error: i16,
    /// How it was asked for.
    pub flags: Flags,
    /// Processor time of this stream since its event before; `None` where nobody measured it.
    pub cpu_gap_ns: Option<u64>,
    /// A second number, by operation: the other file of `Rename`, `Link`, `Copy` (an `id`), the
    /// advice of `Advise`, the child stream of `Fork`, the exit code of `Exit`; 0 otherwise.
    pub other: u64,
}

impl Event {
    /// An event of which only time and operation are known yet.
    #[must_use]
    pub const fn new(start_ns: u64, op: Op) -> Self {
        Self {
            start_ns,
            duration_ns: None,
            op,
            stream: 0,
            handle: 0,
            file: 0,
            offset: 0,
            length: 0,
            asked: None,
            error: 0,
            flags: Flags(0),
            cpu_gap_ns: None,
            other: 0,
        }
    }
}

/// What a file is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// A regular file.
    #[default]
    Regular,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A block device, or the address space of a block trace.
    Block,
    /// Pipe, socket, terminal or anything else that is no storage.
    Other,
    /// A file of /proc, /sys or another filesystem without storage.
    Pseudo,
    /// An object of a key-value or object trace.
    Object,
}

/// A file of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileEntry {
    /// What events say in `file`; 1 and up.
    pub id: u32,
    /// What it is.
    pub kind: FileKind,
    /// Hash of its path under a key that was thrown away.
    pub key: u64,
    /// The directory it is in, an `id` of this table; 0 where unknown.
    pub directory: u32,
    /// Directories above it.
    pub depth: u16,
    /// Class of its extension (`log`, `db`, `text`, …), empty where it has none.
    pub class: String,
    /// Length when it was first seen, bytes.
    pub first_bytes: u64,
    /// Length when it was last seen, bytes.
    pub last_bytes: u64,
    /// Device number (major, minor), 0 where unknown.
    pub device: (u32, u32),
    /// Bytes of it in the page cache when it was first opened; `None` where nobody looked.
    pub resident_bytes: Option<u64>,
    /// Its path, only where names were asked to be kept.
    pub path: Option<String>,
}

/// A thread or client of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamEntry {
    /// What events say in `stream`; 1 and up.
    pub id: u32,
    /// The process it is a thread of, an `id` of this table.
    pub process: u32,
    /// The stream that started it, 0 where unknown.
    pub parent: u32,
    /// When it was first seen.
    pub start_ns: u64,
    /// When it ended, or the trace did.
    pub end_ns: u64,
    /// Processor time it used, where that was measured.
    pub cpu_ns: Option<u64>,
}

/// Where in the system the events were seen; it decides what may be asked of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// System calls: above the page cache.
    #[default]
    Syscall,
    /// A library inside the application (Darshan, MPI-IO).
    Library,
    /// Files of an unknown layer (fio's logs).
    File,
    /// Block requests: below the page cache, what it missed.
    Block,
    /// Keys and values.
    KeyValue,
    /// Requests to a web server.
    Http,
}

/// What is known of a trace as a whole: the file's metadata.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TraceInfo {
    /// Where it was seen.
    pub layer: Layer,
    /// Who recorded it: `ebpf`, `ptrace`, `counters`, or the format it was imported from.
    pub recorder: String,
    /// Its clock, in words (`CLOCK_MONOTONIC`, `wall clock, 1 s`).
    pub clock: String,
    /// From the first event to the end, seconds.
    pub elapsed_s: f64,
    /// When the first event was, seconds since 1970; `None` where the format's clock has no date.
    pub started_unix_s: Option<f64>,
    /// Processor time of all streams, seconds; `None` where nobody measured it.
    pub cpu_s: Option<f64>,
    /// What one recorded call cost more than a bare one, seconds (calibrated).
    pub overhead_s: f64,
    /// Events that were lost.
    pub lost: u64,
    /// Lines of an imported file that could not be read.
    pub malformed: u64,
    /// Bytes a page has.
    pub page_bytes: u64,
    /// What the kernel counted beside the events; `None` where nobody looked.
    pub counted: Option<Counted>,
    /// Read-ahead of the devices that were touched: (major, minor), KiB.
    pub read_ahead_kb: Vec<((u32, u32), u64)>,
    /// Exit code of the recorded command.
    pub exit_code: Option<i32>,
    /// The machine, as a record's header has it (`host`), where it was recorded here.
    pub host: Option<serde_json::Value>,
    /// What cannot be known from this trace, one sentence each.
    pub limits: Vec<String>,
}

/// What the kernel counted while the trace was recorded, to hold the events against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// `rchar` of /proc/PID/io over all processes, bytes.
    pub read_bytes: u64,
    /// `wchar` likewise.
    pub written_bytes: u64,
    /// `read_bytes`: what storage was asked for.
    pub storage_read_bytes: u64,
    /// `write_bytes`: what will go to storage.
    pub storage_written_bytes: u64,
    /// Pages that entered the page cache.
    pub pages_inserted: u64,
    /// Of these, pages that no recorded event explains.
    pub pages_unexplained: u64,
    /// Bytes of calls on files that no recorded event explains.
    pub bytes_unexplained: u64,
}

/// Takes a trace as it comes: a writer, a characteriser, a simulator. Entries of the tables may come
/// at any time before `finish`, also after events that point to them.
pub trait Sink {
    /// One event; they come in the order of `start_ns` within a few seconds, not strictly.
    ///
    /// # Errors
    /// When it cannot be taken (a full disk).
    fn event(&mut self, event: &Event) -> io::Result<()>;

    /// A file; one that comes again with the same `id` takes the place of the one before.
    ///
    /// # Errors
    /// When it cannot be taken.
    fn file(&mut self, file: FileEntry) -> io::Result<()>;

    /// A stream; one that comes again with the same `id` takes the place of the one before.
    ///
    /// # Errors
    /// When it cannot be taken.
    fn stream(&mut self, stream: StreamEntry) -> io::Result<()>;

    /// The end, with what is known of the whole.
    ///
    /// # Errors
    /// When it cannot be taken.
    fn finish(&mut self, info: &TraceInfo) -> io::Result<()>;
}
