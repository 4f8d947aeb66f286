//! System calls that are of interest, by name and by x86-64 number.

use std::collections::HashMap;

use crate::event::Op;

/// How a call is understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sys {
    /// Bytes go through a descriptor at its position, or at a place given.
    Transfer(Op, OffsetSource, Shape),
    /// A file is opened; the path is the first argument, or the second after a directory.
    Open(PathAt),
    Creat,
    Close,
    CloseRange,
    Seek,
    Dup,
    Fcntl,
    /// One of a path's own operations that changes or asks for what a name means.
    Path(Op, PathAt),
    UnlinkAt,
    /// From one name to another: arguments of the first and the second path.
    Names(Op, PathAt, PathAt),
    /// An operation on a descriptor.
    Descriptor(Op),
    SyncAll,
    SyncRange,
    Truncate,
    Ftruncate,
    Fallocate,
    Fadvise,
    Readahead,
    Readdir,
    CopyRange,
    Sendfile,
    Mmap,
    Wait,
    Exec,
    Fork,
    Chdir,
    Fchdir,
    /// io_uring: what is asked for is not in the arguments.
    Ring,
}

/// Where in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OffsetSource {
    Position,
    /// In the fourth argument.
    Given,
}

/// How the bytes are described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A length in the third argument.
    Buffer,
    /// A vector.
    Vector,
}

/// The arguments that name a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathAt {
    /// The path alone.
    Path(usize),
    /// The directory's descriptor, the path behind it.
    Below(usize),
}

use OffsetSource::{Given, Position};
use PathAt::{Below, Path};
use Shape::{Buffer, Vector};

/// Name, number, meaning.
const CALLS: &[(&str, u32, Sys)] = &[
    ("read", 0, Sys::Transfer(Op::Read, Position, Buffer)),
    ("write", 1, Sys::Transfer(Op::Write, Position, Buffer)),
    ("pread64", 17, Sys::Transfer(Op::Read, Given, Buffer)),
    ("pwrite64", 18, Sys::Transfer(Op::Write, Given, Buffer)),
    ("readv", 19, Sys::Transfer(Op::Read, Position, Vector)),
    ("writev", 20, Sys::Transfer(Op::Write, Position, Vector)),
    ("preadv", 295, Sys::Transfer(Op::Read, Given, Vector)),
    ("pwritev", 296, Sys::Transfer(Op::Write, Given, Vector)),
    ("preadv2", 327, Sys::Transfer(Op::Read, Given, Vector)),
    ("pwritev2", 328, Sys::Transfer(Op::Write, Given, Vector)),
    ("open", 2, Sys::Open(Path(0))),
    ("openat", 257, Sys::Open(Below(0))),
    ("openat2", 437, Sys::Open(Below(0))),
    ("creat", 85, Sys::Creat),
    ("close", 3, Sys::Close),
    ("close_range", 436, Sys::CloseRange),
    ("lseek", 8, Sys::Seek),
    ("dup", 32, Sys::Dup),
    ("dup2", 33, Sys::Dup),
    ("dup3", 292, Sys::Dup),
    ("fcntl", 72, Sys::Fcntl),
    ("stat", 4, Sys::Path(Op::Stat, Path(0))),
    ("lstat", 6, Sys::Path(Op::Stat, Path(0))),
    ("newfstatat", 262, Sys::Path(Op::Stat, Below(0))),
    ("statx", 332, Sys::Path(Op::Stat, Below(0))),
    ("access", 21, Sys::Path(Op::Stat, Path(0))),
    ("faccessat", 269, Sys::Path(Op::Stat, Below(0))),
    ("faccessat2", 439, Sys::Path(Op::Stat, Below(0))),
    ("statfs", 137, Sys::Path(Op::Stat, Path(0))),
    ("fstat", 5, Sys::Descriptor(Op::Stat)),
    ("fstatfs", 138, Sys::Descriptor(Op::Stat)),
    ("readlink", 89, Sys::Path(Op::Readlink, Path(0))),
    ("readlinkat", 267, Sys::Path(Op::Readlink, Below(0))),
    ("unlink", 87, Sys::Path(Op::Unlink, Path(0))),
    ("unlinkat", 263, Sys::UnlinkAt),
    ("rmdir", 84, Sys::Path(Op::Rmdir, Path(0))),
    ("mkdir", 83, Sys::Path(Op::Mkdir, Path(0))),
    ("mkdirat", 258, Sys::Path(Op::Mkdir, Below(0))),
    ("chmod", 90, Sys::Path(Op::Chattr, Path(0))),
    ("chown", 92, Sys::Path(Op::Chattr, Path(0))),
    ("lchown", 94, Sys::Path(Op::Chattr, Path(0))),
    ("fchmodat", 268, Sys::Path(Op::Chattr, Below(0))),
    ("fchownat", 260, Sys::Path(Op::Chattr, Below(0))),
    ("utimensat", 280, Sys::Path(Op::Chattr, Below(0))),
    ("utime", 132, Sys::Path(Op::Chattr, Path(0))),
    ("utimes", 235, Sys::Path(Op::Chattr, Path(0))),
    ("fchmod", 91, Sys::Descriptor(Op::Chattr)),
    ("fchown", 93, Sys::Descriptor(Op::Chattr)),
    ("getxattr", 191, Sys::Path(Op::Xattr, Path(0))),
    ("lgetxattr", 192, Sys::Path(Op::Xattr, Path(0))),
    ("setxattr", 188, Sys::Path(Op::Xattr, Path(0))),
    ("lsetxattr", 189, Sys::Path(Op::Xattr, Path(0))),
    ("listxattr", 194, Sys::Path(Op::Xattr, Path(0))),
    ("llistxattr", 195, Sys::Path(Op::Xattr, Path(0))),
    ("removexattr", 197, Sys::Path(Op::Xattr, Path(0))),
    ("fgetxattr", 193, Sys::Descriptor(Op::Xattr)),
    ("fsetxattr", 190, Sys::Descriptor(Op::Xattr)),
    ("flistxattr", 196, Sys::Descriptor(Op::Xattr)),
    ("rename", 82, Sys::Names(Op::Rename, Path(0), Path(1))),
    ("renameat", 264, Sys::Names(Op::Rename, Below(0), Below(2))),
    ("renameat2", 316, Sys::Names(Op::Rename, Below(0), Below(2))),
    ("link", 86, Sys::Names(Op::Link, Path(0), Path(1))),
    ("linkat", 265, Sys::Names(Op::Link, Below(0), Below(2))),
    ("symlink", 88, Sys::Path(Op::Symlink, Path(1))),
    ("symlinkat", 266, Sys::Path(Op::Symlink, Below(1))),
    ("fsync", 74, Sys::Descriptor(Op::Sync)),
    ("fdatasync", 75, Sys::Descriptor(Op::Dsync)),
    ("syncfs", 306, Sys::Descriptor(Op::Sync)),
    ("sync", 162, Sys::SyncAll),
    ("sync_file_range", 277, Sys::SyncRange),
    ("truncate", 76, Sys::Truncate),
    ("ftruncate", 77, Sys::Ftruncate),
    ("fallocate", 285, Sys::Fallocate),
    ("fadvise64", 221, Sys::Fadvise),
    ("readahead", 187, Sys::Readahead),
    ("flock", 73, Sys::Descriptor(Op::Lock)),
    ("getdents", 78, Sys::Readdir),
    ("getdents64", 217, Sys::Readdir),
    ("copy_file_range", 326, Sys::CopyRange),
    ("sendfile", 40, Sys::Sendfile),
    ("sendfile64", u32::MAX, Sys::Sendfile),
    ("mmap", 9, Sys::Mmap),
    ("futex", 202, Sys::Wait),
    ("poll", 7, Sys::Wait),
    ("ppoll", 271, Sys::Wait),
    ("select", 23, Sys::Wait),
    ("pselect6", 270, Sys::Wait),
    ("epoll_wait", 232, Sys::Wait),
    ("epoll_pwait", 281, Sys::Wait),
    ("epoll_pwait2", 441, Sys::Wait),
    ("nanosleep", 35, Sys::Wait),
    ("clock_nanosleep", 230, Sys::Wait),
    ("pause", 34, Sys::Wait),
    ("wait4", 61, Sys::Wait),
    ("waitid", 247, Sys::Wait),
    ("chdir", 80, Sys::Chdir),
    ("fchdir", 81, Sys::Fchdir),
    ("execve", 59, Sys::Exec),
    ("execveat", 322, Sys::Exec),
    ("clone", 56, Sys::Fork),
    ("clone3", 435, Sys::Fork),
    ("fork", 57, Sys::Fork),
    ("vfork", 58, Sys::Fork),
    ("io_uring_enter", 426, Sys::Ring),
    ("io_submit", 209, Sys::Ring),
];

/// Numbers of errors that file operations give.
const ERRORS: &[(&str, i16)] = &[
    ("EPERM", 1),
    ("ENOENT", 2),
    ("EINTR", 4),
    ("EIO", 5),
    ("ENXIO", 6),
    ("EBADF", 9),
    ("ECHILD", 10),
    ("EAGAIN", 11),
    ("ENOMEM", 12),
    ("EACCES", 13),
    ("EFAULT", 14),
    ("EBUSY", 16),
    ("EEXIST", 17),
    ("EXDEV", 18),
    ("ENODEV", 19),
    ("ENOTDIR", 20),
    ("EISDIR", 21),
    ("EINVAL", 22),
    ("EMFILE", 24),
    ("ENOTTY", 25),
    ("ETXTBSY", 26),
    ("EFBIG", 27),
    ("ENOSPC", 28),
    ("ESPIPE", 29),
    ("EROFS", 30),
    ("EMLINK", 31),
    ("EPIPE", 32),
    ("ENAMETOOLONG", 36),
    ("ENOSYS", 38),
    ("ENOTEMPTY", 39),
    ("ELOOP", 40),
    ("ENODATA", 61),
    ("EOVERFLOW", 75),
    ("EOPNOTSUPP", 95),
    ("ETIMEDOUT", 110),
    ("ESTALE", 116),
    ("EDQUOT", 122),
];

/// Lookup of both.
pub(crate) struct Table {
    by_name: HashMap<&'static [u8], Sys>,
    by_number: HashMap<u32, Sys>,
    errors: HashMap<&'static [u8], i16>,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self {
            by_name: CALLS.iter().map(|(name, _, sys)| (name.as_bytes(), *sys)).collect(),
            by_number: CALLS.iter().map(|(_, number, sys)| (*number, *sys)).collect(),
            errors: ERRORS.iter().map(|(name, number)| (name.as_bytes(), *number)).collect(),
        }
    }

    /// A call of this name; `None` for calls that are of no interest.
    pub(crate) fn named(&self, name: &[u8]) -> Option<Sys> {
        self.by_name.get(name).copied()
    }

    /// A call of this number on x86-64.
    pub(crate) fn numbered(&self, number: u32) -> Option<Sys> {
        self.by_number.get(&number).copied()
    }

    /// The number of an error's name; of one that is not in the table, that of an I/O error.
    pub(crate) fn error(&self, name: &[u8]) -> i16 {
        self.errors.get(name).copied().unwrap_or(5)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_there_once() {
        let table = Table::new();
        assert_eq!(table.by_name.len(), CALLS.len());
        assert_eq!(table.by_number.len(), CALLS.len());
        assert_eq!(table.errors.len(), ERRORS.len());
    }
}
