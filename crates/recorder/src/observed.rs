//! Facts that a tracer hands to the converter, whichever tracer it is. Times are those of
//! `CLOCK_MONOTONIC`, nanoseconds.

use crate::call::Call;

/// Something happened in a recorded process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Observed<'a> {
    /// A system call ended.
    Call(Ended<'a>),
    /// A thread or process was started.
    Fork(Forked),
    /// A thread became another program.
    Exec(Executed),
    /// A thread ended.
    Exit(Exited),
    /// Pages entered the page cache on behalf of a recorded process.
    Inserted(Touched),
    /// Pages were touched through a mapping.
    Fault(Touched, Touch),
    /// A request of `io_uring` was completed.
    Request(Requested),
}

/// A system call that ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended<'a> {
    pub(crate) thread: u32,
    pub(crate) call: Call,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) cpu_gap_ns: Option<u64>,
    /// What it returned: negative numbers are errors.
    pub(crate) result: i64,
    pub(crate) arguments: [u64; 6],
    /// Paths as the program wrote them, empty where none were wanted or readable.
    pub(crate) path: &'a [u8],
    pub(crate) second_path: &'a [u8],
    /// The file behind the descriptor that is the result.
    pub(crate) made: Option<Identity>,
    /// The eight bytes at the address that the call wants read: two descriptors, or an offset.
    pub(crate) pointed: Option<u64>,
}

/// Which file it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) inode: u64,
    /// Major and minor.
    pub(crate) device: (u32, u32),
    /// `st_mode`: kind and permissions.
    pub(crate) mode: u32,
    /// Length when it was opened.
    pub(crate) bytes: u64,
    /// The call made it.
    pub(crate) created: bool,
    /// Flags that the description keeps.
    pub(crate) flags: u32,
    /// Pages of it in the page cache when it was opened, where a tracer tells that.
    pub(crate) cached_pages: Option<u64>,
}

/// A thread or process that was started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Forked {
    pub(crate) parent: u32,
    pub(crate) child: u32,
    /// The process that the child belongs to: itself, or its parent's.
    pub(crate) process: u32,
    pub(crate) at_ns: u64,
    /// Both have one table of descriptors.
    pub(crate) shares_descriptors: bool,
}

/// A thread that became another program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Executed {
    /// Its number from now on: that of the process.
    pub(crate) thread: u32,
    /// Its number before.
    pub(crate) before: u32,
    pub(crate) at_ns: u64,
    /// The program.
    pub(crate) program: Option<Identity>,
}

/// A thread that ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exited {
    pub(crate) thread: u32,
    pub(crate) at_ns: u64,
    /// As `wait` tells it: the code in the second byte, a signal in the first.
    pub(crate) status: u32,
    pub(crate) cpu_ns: Option<u64>,
    pub(crate) counted: Option<Counts>,
}

/// What the kernel counted for a thread, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// `rchar`.
    pub(crate) read: u64,
    /// `wchar`.
    pub(crate) written: u64,
    /// `read_bytes`.
    pub(crate) storage_read: u64,
    /// `write_bytes`.
    pub(crate) storage_written: u64,
}

impl Counts {
    /// Adds up two.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            read: self.read + other.read,
            written: self.written + other.written,
            storage_read: self.storage_read + other.storage_read,
            storage_written: self.storage_written + other.storage_written,
        }
    }

    /// Takes off what was there before.
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            read: self.read.saturating_sub(before.read),
            written: self.written.saturating_sub(before.written),
            storage_read: self.storage_read.saturating_sub(before.storage_read),
            storage_written: self.storage_written.saturating_sub(before.storage_written),
        }
    }
}

/// Pages of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Touched {
    pub(crate) thread: u32,
    pub(crate) at_ns: u64,
    pub(crate) file: Identity,
    pub(crate) first_page: u64,
    pub(crate) pages: u64,
}

/// How a mapped page was touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Touch {
    /// Loaded.
    Load,
    /// Stored to.
    Store,
}

/// A request of `io_uring`, completed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Requested {
    pub(crate) thread: u32,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) file: Identity,
    /// `IORING_OP_…`.
    pub(crate) opcode: u8,
    pub(crate) offset: u64,
    pub(crate) asked: u64,
    pub(crate) result: i64,
}

/// Splits a device number as the kernel keeps it.
pub(crate) const fn device_of_kernel(number: u32) -> (u32, u32) {
    (number >> 20, number & 0x000f_ffff)
}
