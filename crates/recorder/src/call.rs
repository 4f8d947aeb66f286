//! System calls that concern files: which arguments mean what. One table for both architectures;
//! newer ones never had the calls at its end.

use ioscape_trace::Op;
use libc::c_long;

/// Which argument, from 0.
pub(crate) type Argument = u8;

/// What a call does, as far as files are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Bytes move between a descriptor, argument 0, and memory.
    Transfer(Transfer),
    /// A path becomes a descriptor.
    Open {
        /// The directory that the path, the next argument, is relative to.
        directory: Option<Argument>,
        /// Flags, where they are an argument.
        flags: Option<Argument>,
    },
    /// `close`.
    Close,
    /// `close_range`.
    CloseRange,
    /// `dup` and its kin: the result is a copy of argument 0; flags where there are any.
    Duplicate(Option<Argument>),
    /// `fcntl`.
    Control,
    /// `lseek`.
    Seek,
    /// Something is done to a path.
    Path(Op, PathArgument),
    /// Something is done with two paths.
    TwoPaths(Op, PathArgument, PathArgument),
    /// Something is done to a descriptor, argument 0.
    Descriptor(Op),
    /// Bytes move from descriptor to descriptor inside the kernel.
    Copy(Copy),
    /// `mmap`.
    Map,
    /// `munmap`.
    Unmap,
    /// `msync`.
    SyncMap,
    /// `madvise`.
    AdviseMap,
    /// `chdir`.
    ChangeDirectory,
    /// `fchdir`.
    ChangeDirectoryTo,
    /// The result is a descriptor of something that is no file: a socket, a timer.
    MakeOther,
    /// Two descriptors of no file, written to this argument.
    MakePair(Argument),
    /// Waits for something that is not storage.
    Wait,
    /// `futex`, which waits only if argument 1 says so.
    Futex,
    /// All files of the machine, or of a filesystem, are written out.
    SyncAll,
}

/// A path and the descriptor of the directory it is relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PathArgument {
    pub(crate) directory: Option<Argument>,
    pub(crate) path: Argument,
}

/// How bytes move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    pub(crate) op: Op,
    /// Argument with the offset; `None` where it is the description's own.
    pub(crate) offset: Option<Argument>,
    /// Argument with the bytes asked for; `None` where they are in a vector.
    pub(crate) asked: Option<Argument>,
    /// Argument with flags of this one transfer.
    pub(crate) flags: Option<Argument>,
}

/// How bytes move from descriptor to descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    pub(crate) from: Argument,
    /// Argument with the address of the offset there, which may be none.
    pub(crate) offset: Argument,
    pub(crate) to: Argument,
    /// Whether `rchar` and `wchar` of /proc/PID/io hold its bytes.
    pub(crate) is_counted: bool,
}

/// What of a call must be copied out of the program's memory, or looked up, when it has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) path: Option<Argument>,
    pub(crate) second_path: Option<Argument>,
    /// The file behind the descriptor that is the result.
    pub(crate) made: bool,
    /// The eight bytes at this address.
    pub(crate) pointed: Option<Argument>,
}

const fn transfer(op: Op, offset: Option<Argument>, asked: Option<Argument>) -> Call {
    Call::Transfer(Transfer { op, offset, asked, flags: None })
}

const fn flagged(op: Op) -> Call {
    Call::Transfer(Transfer { op, offset: Some(3), asked: None, flags: Some(5) })
}

const fn path(op: Op) -> Call {
    Call::Path(op, PathArgument { directory: None, path: 0 })
}

const fn path_at(op: Op) -> Call {
    Call::Path(op, PathArgument { directory: Some(0), path: 1 })
}

const fn two_at(op: Op) -> Call {
    let from = PathArgument { directory: Some(0), path: 1 };
    Call::TwoPaths(op, from, PathArgument { directory: Some(2), path: 3 })
}

/// The calls of every architecture.
const EVERYWHERE: &[(c_long, Call)] = &[
    (libc::SYS_read, transfer(Op::Read, None, Some(2))),
    (libc::SYS_write, transfer(Op::Write, None, Some(2))),
    (libc::SYS_readv, transfer(Op::Read, None, None)),
    (libc::SYS_writev, transfer(Op::Write, None, None)),
    (libc::SYS_pread64, transfer(Op::Read, Some(3), Some(2))),
    (libc::SYS_pwrite64, transfer(Op::Write, Some(3), Some(2))),
    (libc::SYS_preadv, transfer(Op::Read, Some(3), None)),
    (libc::SYS_pwritev, transfer(Op::Write, Some(3), None)),
    (libc::SYS_preadv2, flagged(Op::Read)),
    (libc::SYS_pwritev2, flagged(Op::Write)),
    (libc::SYS_openat, Call::Open { directory: Some(0), flags: Some(2) }),
    (libc::SYS_openat2, Call::Open { directory: Some(0), flags: None }),
    (libc::SYS_close, Call::Close),
    (libc::SYS_close_range, Call::CloseRange),
    (libc::SYS_dup, Call::Duplicate(None)),
    (libc::SYS_dup3, Call::Duplicate(Some(2))),
    (libc::SYS_fcntl, Call::Control),
    (libc::SYS_lseek, Call::Seek),
    (libc::SYS_fsync, Call::Descriptor(Op::Sync)),
    (libc::SYS_fdatasync, Call::Descriptor(Op::Dsync)),
    (libc::SYS_sync_file_range, Call::Descriptor(Op::Rsync)),
    (libc::SYS_sync, Call::SyncAll),
    (libc::SYS_syncfs, Call::SyncAll),
    (libc::SYS_fstat, Call::Descriptor(Op::Stat)),
    (libc::SYS_newfstatat, path_at(Op::Stat)),
    (libc::SYS_statx, path_at(Op::Stat)),
    (libc::SYS_faccessat, path_at(Op::Stat)),
    (libc::SYS_faccessat2, path_at(Op::Stat)),
    (libc::SYS_getdents64, Call::Descriptor(Op::Readdir)),
    (libc::SYS_readlinkat, path_at(Op::Readlink)),
    (libc::SYS_unlinkat, path_at(Op::Unlink)),
    (libc::SYS_mkdirat, path_at(Op::Mkdir)),
    (libc::SYS_renameat2, two_at(Op::Rename)),
    (libc::SYS_linkat, two_at(Op::Link)),
    (libc::SYS_symlinkat, Call::Path(Op::Symlink, PathArgument { directory: Some(1), path: 2 })),
    (libc::SYS_truncate, path(Op::Trunc)),
    (libc::SYS_ftruncate, Call::Descriptor(Op::Trunc)),
    (libc::SYS_fallocate, Call::Descriptor(Op::Falloc)),
    (libc::SYS_fadvise64, Call::Descriptor(Op::Advise)),
    (libc::SYS_flock, Call::Descriptor(Op::Lock)),
    (libc::SYS_fchmod, Call::Descriptor(Op::Chattr)),
    (libc::SYS_fchown, Call::Descriptor(Op::Chattr)),
    (libc::SYS_fchmodat, path_at(Op::Chattr)),
    (libc::SYS_fchownat, path_at(Op::Chattr)),
    (libc::SYS_utimensat, path_at(Op::Chattr)),
    (libc::SYS_getxattr, path(Op::Xattr)),
    (libc::SYS_lgetxattr, path(Op::Xattr)),
    (libc::SYS_setxattr, path(Op::Xattr)),
    (libc::SYS_lsetxattr, path(Op::Xattr)),
    (libc::SYS_listxattr, path(Op::Xattr)),
    (libc::SYS_llistxattr, path(Op::Xattr)),
    (libc::SYS_removexattr, path(Op::Xattr)),
    (libc::SYS_fgetxattr, Call::Descriptor(Op::Xattr)),
    (libc::SYS_fsetxattr, Call::Descriptor(Op::Xattr)),
    (libc::SYS_flistxattr, Call::Descriptor(Op::Xattr)),
    (libc::SYS_copy_file_range, Call::Copy(Copy { from: 0, offset: 1, to: 2, is_counted: true })),
    (libc::SYS_splice, Call::Copy(Copy { from: 0, offset: 1, to: 2, is_counted: false })),
    (libc::SYS_sendfile, Call::Copy(Copy { from: 1, offset: 2, to: 0, is_counted: true })),
    (libc::SYS_mmap, Call::Map),
    (libc::SYS_munmap, Call::Unmap),
    (libc::SYS_msync, Call::SyncMap),
    (libc::SYS_madvise, Call::AdviseMap),
    (libc::SYS_chdir, Call::ChangeDirectory),
    (libc::SYS_fchdir, Call::ChangeDirectoryTo),
    (libc::SYS_socket, Call::MakeOther),
    (libc::SYS_accept, Call::MakeOther),
    (libc::SYS_accept4, Call::MakeOther),
    (libc::SYS_eventfd2, Call::MakeOther),
    (libc::SYS_epoll_create1, Call::MakeOther),
    (libc::SYS_timerfd_create, Call::MakeOther),
    (libc::SYS_signalfd4, Call::MakeOther),
    (libc::SYS_inotify_init1, Call::MakeOther),
    (libc::SYS_perf_event_open, Call::MakeOther),
    (libc::SYS_pidfd_open, Call::MakeOther),
    (libc::SYS_io_uring_setup, Call::MakeOther),
    (libc::SYS_pipe2, Call::MakePair(0)),
    (libc::SYS_socketpair, Call::MakePair(3)),
    (libc::SYS_futex, Call::Futex),
    (libc::SYS_ppoll, Call::Wait),
    (libc::SYS_pselect6, Call::Wait),
    (libc::SYS_epoll_pwait, Call::Wait),
    (libc::SYS_nanosleep, Call::Wait),
    (libc::SYS_clock_nanosleep, Call::Wait),
    (libc::SYS_wait4, Call::Wait),
    (libc::SYS_waitid, Call::Wait),
    (libc::SYS_connect, Call::Wait),
    (libc::SYS_recvfrom, Call::Wait),
    (libc::SYS_recvmsg, Call::Wait),
    (libc::SYS_rt_sigtimedwait, Call::Wait),
    (libc::SYS_io_getevents, Call::Wait),
    (libc::SYS_io_uring_enter, Call::Wait),
];

/// Calls that newer architectures never had.
#[cfg(target_arch = "x86_64")]
const OLDER: &[(c_long, Call)] = &[
    (libc::SYS_open, Call::Open { directory: None, flags: Some(1) }),
    (libc::SYS_creat, Call::Open { directory: None, flags: None }),
    (libc::SYS_dup2, Call::Duplicate(None)),
    (libc::SYS_stat, path(Op::Stat)),
    (libc::SYS_lstat, path(Op::Stat)),
    (libc::SYS_access, path(Op::Stat)),
    (libc::SYS_getdents, Call::Descriptor(Op::Readdir)),
    (libc::SYS_readlink, path(Op::Readlink)),
    (libc::SYS_unlink, path(Op::Unlink)),
    (libc::SYS_rmdir, path(Op::Rmdir)),
    (libc::SYS_mkdir, path(Op::Mkdir)),
    (libc::SYS_rename, TWO),
    (libc::SYS_renameat, two_at(Op::Rename)),
    (libc::SYS_link, Call::TwoPaths(Op::Link, FIRST, SECOND)),
    (libc::SYS_symlink, Call::Path(Op::Symlink, SECOND)),
    (libc::SYS_chmod, path(Op::Chattr)),
    (libc::SYS_chown, path(Op::Chattr)),
    (libc::SYS_lchown, path(Op::Chattr)),
    (libc::SYS_utime, path(Op::Chattr)),
    (libc::SYS_utimes, path(Op::Chattr)),
    (libc::SYS_pipe, Call::MakePair(0)),
    (libc::SYS_eventfd, Call::MakeOther),
    (libc::SYS_epoll_create, Call::MakeOther),
    (libc::SYS_signalfd, Call::MakeOther),
    (libc::SYS_inotify_init, Call::MakeOther),
    (libc::SYS_poll, Call::Wait),
    (libc::SYS_select, Call::Wait),
    (libc::SYS_epoll_wait, Call::Wait),
    (libc::SYS_pause, Call::Wait),
];
#[cfg(target_arch = "x86_64")]
const FIRST: PathArgument = PathArgument { directory: None, path: 0 };
#[cfg(target_arch = "x86_64")]
const SECOND: PathArgument = PathArgument { directory: None, path: 1 };
#[cfg(target_arch = "x86_64")]
const TWO: Call = Call::TwoPaths(Op::Rename, FIRST, SECOND);
/// The last of these came in 2013 under a number of its own.
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[(c_long, Call)] = &[(libc::SYS_renameat, two_at(Op::Rename))];

/// The number of `mmap`, whose anonymous kind concerns no file.
pub(crate) const MAP: usize = libc::SYS_mmap as usize;
/// Numbers at and above this one are no calls that concern files.
pub(crate) const NUMBERS: u32 = 512;

/// Calls by number.
#[derive(Debug)]
pub(crate) struct Calls(Vec<Option<Call>>);

impl Calls {
    /// Of this architecture.
    pub(crate) fn native() -> Self {
        let mut calls = vec![None; NUMBERS as usize];
        for (number, call) in EVERYWHERE.iter().chain(OLDER) {
            calls[*number as usize] = Some(*call);
        }
        Self(calls)
    }

    /// What the call with this number does.
    pub(crate) fn get(&self, number: usize) -> Option<Call> {
        self.0.get(number).copied().flatten()
    }

    /// All that concern files, with their numbers.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, Call)> {
        self.0.iter().enumerate().filter_map(|(number, call)| Some((number, (*call)?)))
    }
}

impl Call {
    /// What of it must be copied when it has ended.
    pub(crate) fn wanted(self) -> Wanted {
        let nothing = Wanted::default();
        match self {
            Self::Open { directory, .. } => {
                let path = Some(directory.map_or(0, |directory| directory + 1));
                Wanted { path, made: true, ..nothing }
            }
            Self::Path(_, place) => Wanted { path: Some(place.path), ..nothing },
            Self::TwoPaths(_, from, to) => {
                Wanted { path: Some(from.path), second_path: Some(to.path), ..nothing }
            }
            Self::ChangeDirectory => Wanted { path: Some(0), ..nothing },
            Self::MakePair(at) => Wanted { pointed: Some(at), ..nothing },
            Self::Copy(copy) => Wanted { pointed: Some(copy.offset), ..nothing },
            _ => nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_stands_for_two_calls() {
        let mut numbers: Vec<c_long> =
            EVERYWHERE.iter().chain(OLDER).map(|(number, _)| *number).collect();
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
        assert!(numbers.iter().all(|number| *number < NUMBERS.into()));
    }

    #[test]
    fn paths_stand_after_their_directories() {
        let calls = Calls::native();
        let openat = calls.get(libc::SYS_openat as usize).unwrap().wanted();
        assert_eq!((openat.path, openat.made), (Some(1), true));
        let rename = calls.get(libc::SYS_renameat2 as usize).unwrap().wanted();
        assert_eq!((rename.path, rename.second_path), (Some(1), Some(3)));
        assert_eq!(calls.get(libc::SYS_getpid as usize), None);
    }
}
