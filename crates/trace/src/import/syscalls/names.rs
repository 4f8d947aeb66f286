//! Calls that open, close, name and start.

use super::processes::{Kind, Start};
use super::table::PathAt;
use super::{At, Found, NOT_THERE, Named, Row};
use crate::event::{Event, FileKind, Flags, Op};

const CREATE: i64 = 0o100;
const EXCLUSIVE: i64 = 0o200;
const TRUNCATE: i64 = 0o1000;

impl At<'_, '_, '_, '_> {
    pub(super) fn open(&mut self, blank: Event, path: PathAt) -> Found {
        let index = match path {
            PathAt::Path(index) => index + 1,
            PathAt::Below(index) => index + 2,
        };
        let has = |word, bits| self.arguments().has_flag(index, word, bits);
        let kinds = [
            (Flags::DIRECT, has("O_DIRECT", 0o40_000)),
            (Flags::SYNC, has("O_SYNC", 0o10_000) || has("O_DSYNC", 0o10_000)),
            (Flags::APPEND, has("O_APPEND", 0o2_000)),
        ];
        let chosen = kinds.iter().filter(|(_, is_set)| *is_set).map(|(flag, _)| *flag);
        let kept = chosen.fold(Flags::default(), Flags::with);
        let (creates, is_new) = (has("O_CREAT", CREATE), has("O_EXCL", EXCLUSIVE));
        let cuts = has("O_TRUNC", TRUNCATE);
        let once = [(Flags::EXCL, is_new), (Flags::TRUNC, cuts)];
        let flags =
            once.iter().filter(|(_, is_set)| *is_set).fold(kept, |f, (flag, _)| f.with(*flag));
        let named = self.resolve(path)?;
        let known = match named {
            Named::Path => self.ledger.files.known(&self.kernel.path),
            _ => None,
        };
        // Whether the file was there is not in the call: one that is cut or exclusive and was never
        // heard of is taken as new.
        let is_created = creates && (is_new || cuts && known.is_none());
        let op = if is_created { Op::Create } else { Op::Open };
        self.opened(Event { op, flags, ..blank }, &named, kept)
    }

    pub(super) fn creat(&mut self, blank: Event) -> Found {
        let named = self.resolve(PathAt::Path(0))?;
        self.opened(
            Event { op: Op::Create, flags: Flags::TRUNC, ..blank },
            &named,
            Flags::default(),
        )
    }

    fn opened(&mut self, this: Event, named: &Named, kept: Flags) -> Found {
        let Some(number) = self.call.result.value() else {
            let is_absent = self.call.result.error() == NOT_THERE;
            let op = if is_absent { Op::LookupNeg } else { this.op };
            let file = self.named_file(named);
            return Some(Row::Is(Event { op, file, ..this }));
        };
        let number = i32::try_from(number).ok()?;
        let file = match self.call.result {
            // Where links were followed, and `..`: the kernel's own name of it.
            super::Outcome::Done(_, Some(path)) => {
                self.ledger.files.path(&super::arguments::unescaped(path))
            }
            _ => self.named_file(named),
        };
        let handle = self.kernel.processes.open(self.thread, number, file, kept);
        if this.flags.has(Flags::TRUNC)
            && let Some(entry) = self.ledger.files.entry(file)
        {
            entry.last_bytes = 0;
        }
        Some(Row::Is(Event { handle, file, ..this }))
    }

    /// The file of a path that was resolved.
    fn named_file(&mut self, named: &Named) -> u32 {
        match named {
            Named::Path => self.ledger.files.path(&self.kernel.path),
            Named::Descriptor(number) => {
                let handle = self.kernel.processes.handle(self.thread, *number);
                let open = handle.and_then(|handle| self.kernel.processes.opened(handle));
                open.map_or(0, |open| open.file)
            }
            Named::Unknown => 0,
        }
    }

    pub(super) fn close(&mut self, blank: Event) -> Found {
        let this = self.on(blank, Op::Close, 0)?;
        if let Some(descriptor) = self.arguments().descriptor(0) {
            self.kernel.processes.close(self.thread, descriptor.number);
        }
        Some(Row::Is(this))
    }

    pub(super) fn close_range(&mut self) -> Option<()> {
        let (first, last) = (self.arguments().unsigned(0)?, self.arguments().unsigned(1)?);
        // With flags it only marks them to be closed by exec.
        if self.call.result.error() == 0 && self.arguments().number(2) == Some(0) {
            self.kernel.processes.close_range(self.thread, first, last);
        }
        Some(())
    }

    pub(super) fn dup(&mut self) -> Option<()> {
        let descriptor = self.arguments().descriptor(0)?;
        if let Some(number) = self.call.result.value() {
            let handle = self.handle(descriptor);
            self.kernel.processes.dup(self.thread, handle, i32::try_from(number).ok()?);
        }
        Some(())
    }

    pub(super) fn fcntl(&mut self, blank: Event) -> Found {
        const DUP: i64 = 0;
        const DUP_CLOSE_ON_EXEC: i64 = 1030;
        const LOCKS: [i64; 4] = [6, 7, 37, 38];
        let command = self.arguments().raw(1);
        let number = self.arguments().number(1);
        let is_dup =
            command.starts_with(b"F_DUPFD") || matches!(number, Some(DUP | DUP_CLOSE_ON_EXEC));
        let is_lock = command.starts_with(b"F_SETLK")
            || command.starts_with(b"F_OFD_SETLK")
            || number.is_some_and(|number| LOCKS.contains(&number));
        if is_dup {
            self.dup()?;
        }
        if is_lock { Some(Row::Is(self.on(blank, Op::Lock, 0)?)) } else { Some(Row::Other) }
    }

    pub(super) fn path(&mut self, blank: Event, op: Op, path: PathAt) -> Found {
        let named = self.resolve(path)?;
        let error = self.call.result.error();
        let asks = matches!(op, Op::Stat | Op::Readlink);
        let file = self.named_file(&named);
        let op = if asks && error == NOT_THERE { Op::LookupNeg } else { op };
        if error == 0 {
            self.changed(op, file, &named);
        }
        Some(Row::Is(Event { op, file, ..blank }))
    }

    /// Learns of a file from a call that went well.
    fn changed(&mut self, op: Op, file: u32, named: &Named) {
        let kind = match op {
            Op::Stat => return self.note_attributes(file),
            Op::Mkdir => FileKind::Directory,
            Op::Symlink | Op::Readlink => FileKind::Symlink,
            Op::Unlink | Op::Rmdir => {
                if let Named::Path = named {
                    self.ledger.files.forget(&self.kernel.path);
                }
                return;
            }
            _ => return,
        };
        if let Some(entry) = self.ledger.files.entry(file).filter(|e| e.kind == FileKind::Regular) {
            entry.kind = kind;
        }
    }

    pub(super) fn unlink_at(&mut self, blank: Event) -> Found {
        let is_directory = self.arguments().has_flag(2, "AT_REMOVEDIR", 0x200);
        self.path(blank, if is_directory { Op::Rmdir } else { Op::Unlink }, PathAt::Below(0))
    }

    pub(super) fn names(&mut self, blank: Event, op: Op, from: PathAt, to: PathAt) -> Found {
        let first = self.resolve(from)?;
        std::mem::swap(&mut self.kernel.path, &mut self.kernel.second);
        let second = self.resolve(to)?;
        let is_named = matches!((first, second), (Named::Path, Named::Path));
        if !is_named {
            return Some(Row::Is(Event { op, ..blank }));
        }
        let (old, new) = (&self.kernel.second, &self.kernel.path);
        if op == Op::Rename && self.call.result.error() == 0 {
            let (file, replaced) = self.ledger.files.rename(old, new);
            return Some(Row::Is(Event {
                op,
                file,
                other: u64::from(replaced.unwrap_or(0)),
                ..blank
            }));
        }
        let file = self.ledger.files.path(old);
        let other = u64::from(self.ledger.files.path(new));
        Some(Row::Is(Event { op, file, other, ..blank }))
    }

    pub(super) fn truncate(&mut self, blank: Event) -> Found {
        let named = self.resolve(PathAt::Path(0))?;
        let offset = self.arguments().unsigned(1)?;
        let this = Event { op: Op::Trunc, file: self.named_file(&named), offset, ..blank };
        self.cut(this);
        Some(Row::Is(this))
    }

    pub(super) fn chdir(&mut self) -> Option<()> {
        let named = self.resolve(PathAt::Path(0))?;
        if self.call.result.error() == 0 && matches!(named, Named::Path) {
            let path = std::mem::take(&mut self.kernel.path);
            self.kernel.processes.set_directory(self.thread, &path);
            self.kernel.path = path;
        }
        Some(())
    }

    pub(super) fn fchdir(&mut self) -> Option<()> {
        let descriptor = self.arguments().descriptor(0)?;
        if let Some(path) = descriptor.path.filter(|_| self.call.result.error() == 0) {
            self.kernel.processes.set_directory(self.thread, &super::arguments::unescaped(path));
        }
        Some(())
    }

    pub(super) fn exec(&mut self, blank: Event) -> Found {
        let named = self.resolve(PathAt::Path(0))?;
        let file = self.named_file(&named);
        let op = if self.call.result.error() == NOT_THERE { Op::LookupNeg } else { Op::Exec };
        Some(Row::Is(Event { op, file, ..blank }))
    }

    pub(super) fn fork(&mut self, blank: Event) -> Row<Event> {
        self.kernel.processes.end_start(self.call.tid);
        let Some(child) = self.call.result.value() else { return Row::Other };
        let child = u32::try_from(child).ok().filter(|&child| child > 0);
        // In the child itself the call gives 0: perf sees both.
        let Some(child) = child else { return Row::Other };
        let kind = if self.is_thread() { Kind::Thread } else { Kind::Process };
        let start = Start { parent: self.call.tid, child, kind, time_ns: self.call.start_ns };
        let thread = self.kernel.processes.start(&start, self.ledger);
        Row::Is(Event { op: Op::Fork, other: u64::from(thread.stream), ..blank })
    }

    fn is_thread(&self) -> bool {
        (0..3).any(|index| {
            let text = self.arguments().raw(index);
            memchr::memmem::find(text, b"CLONE_THREAD").is_some()
        }) || self.call.sys == super::Sys::Fork
            && self.arguments().number(0).is_some_and(|flags| flags & CLONE_THREAD == CLONE_THREAD)
    }
}

const CLONE_THREAD: i64 = 0x1_0000;
