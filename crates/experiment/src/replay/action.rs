//! From an event of a trace to the call that it stands for.

use ioscape_engine::replay::{Action, How, Kind};
use ioscape_trace::{Event, Flags, Op};

/// The call; `None` where it is none that files see.
pub(super) fn kind(event: &Event) -> Option<Kind> {
    Some(match event.op {
        Op::Read | Op::Get => Kind::Read,
        Op::Write | Op::Set => Kind::Write,
        Op::Sync if event.file == 0 => Kind::SyncAll,
        Op::Sync => Kind::Sync,
        Op::Dsync | Op::Flush => Kind::DataSync,
        Op::Rsync => Kind::RangeSync,
        Op::Open => Kind::Open,
        Op::Create => Kind::Create,
        Op::Close => Kind::Close,
        Op::Stat => Kind::Stat,
        Op::LookupNeg => Kind::LookUp,
        Op::Readdir => Kind::List,
        Op::Unlink | Op::Del => Kind::Unlink,
        Op::Rename => Kind::Rename,
        Op::Mkdir => Kind::MakeDirectory,
        Op::Rmdir => Kind::RemoveDirectory,
        Op::Link => Kind::Link,
        Op::Symlink => Kind::Symlink,
        Op::Readlink => Kind::ReadLink,
        Op::Chattr => Kind::Touch,
        Op::Xattr => Kind::Attribute,
        Op::Trunc => Kind::Truncate,
        Op::Falloc => Kind::Allocate,
        Op::Punch | Op::Discard => Kind::Punch,
        // Advice about mappings has no handle: it changes read-ahead of faults alone.
        Op::Advise if event.handle == 0 => return None,
        Op::Advise => Kind::Advise,
        Op::Lock => Kind::Lock,
        Op::Copy => Kind::Copy,
        Op::Sendfile => Kind::Send,
        Op::Mmap => Kind::Map,
        Op::Munmap => Kind::Unmap,
        Op::Msync => Kind::SyncMap,
        Op::FaultR => Kind::FaultRead,
        Op::FaultW => Kind::FaultWrite,
        Op::Req | Op::Wait | Op::Exec | Op::Fork | Op::Exit => return None,
    })
}

/// The call of an event; requests of a block trace bypass the page cache.
pub(super) fn action(event: &Event, kind: Kind, is_below_cache: bool) -> Action {
    let mut how = How::default();
    for (flag, bit) in [
        (Flags::DIRECT, How::DIRECT),
        (Flags::SYNC, How::SYNC),
        (Flags::APPEND, How::APPEND),
        (Flags::EXCL, How::EXCL),
        (Flags::TRUNC, How::TRUNC),
    ] {
        if event.flags.has(flag) {
            how = how.with(bit);
        }
    }
    if is_below_cache {
        how = how.with(How::DIRECT);
    }
    let length = match kind {
        Kind::Read | Kind::Write => event.asked.unwrap_or(event.length),
        _ => event.length,
    };
    Action {
        kind,
        file: event.file,
        handle: event.handle,
        other: event.other,
        offset: event.offset,
        length,
        how,
    }
}

/// Whether a call is about a name: those of one file are made in the order of the trace.
pub(super) fn is_of_name(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Open
            | Kind::Create
            | Kind::Stat
            | Kind::LookUp
            | Kind::Unlink
            | Kind::Rename
            | Kind::MakeDirectory
            | Kind::RemoveDirectory
            | Kind::Link
            | Kind::Symlink
            | Kind::ReadLink
            | Kind::Touch
            | Kind::Attribute
            | Kind::Truncate
    )
}

/// Whether a call makes, removes or moves a name: its directory changes.
pub(super) fn changes_names(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Create
            | Kind::Unlink
            | Kind::Rename
            | Kind::MakeDirectory
            | Kind::RemoveDirectory
            | Kind::Link
            | Kind::Symlink
    )
}

/// Whether a call moves bytes of a file, as many as the trace says.
pub(super) fn moves_bytes(kind: Kind) -> bool {
    matches!(kind, Kind::Read | Kind::Write | Kind::Copy | Kind::Send)
}
