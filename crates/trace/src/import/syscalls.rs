//! The meaning of system calls, whoever wrote them down: strace, or perf's tracepoints. A `read` has no
//! offset and a descriptor no file; both follow from what the threads did before.

pub(crate) mod arguments;
mod names;
pub(crate) mod processes;
pub(crate) mod table;
mod transfers;

use std::collections::VecDeque;

use super::ledger::Ledger;
use super::source::Row;
use crate::event::{Event, FileKind, Flags, Op};
use arguments::{Arguments, CURRENT_DIRECTORY, Descriptor};
use processes::{Kind, Processes, Thread};
use table::{PathAt, Sys};

/// A call that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) tid: u32,
    pub(crate) start_ns: u64,
    pub(crate) duration_ns: Option<u64>,
    pub(crate) sys: Sys,
    pub(crate) arguments: Arguments<'a>,
    pub(crate) result: Outcome<'a>,
}

/// How a call ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome<'a> {
    /// With a number, which may be a descriptor of a named file.
    Done(i64, Option<&'a [u8]>),
    /// With an errno.
    Failed(i16),
}

impl Outcome<'_> {
    fn value(&self) -> Option<i64> {
        match self {
            Self::Done(value, _) => Some(*value),
            Self::Failed(_) => None,
        }
    }

    fn error(&self) -> i16 {
        match self {
            Self::Done(..) => 0,
            Self::Failed(error) => *error,
        }
    }
}

/// ENOENT.
const NOT_THERE: i16 = 2;

/// As much of a kernel as descriptors and positions need.
pub(crate) struct Kernel {
    processes: Processes,
    /// Events that have not been taken yet.
    events: VecDeque<Event>,
    /// Two paths being put together.
    path: Vec<u8>,
    second: Vec<u8>,
}

const RING: &str = "The program used io_uring or libaio: their requests are not in the file.";

impl Kernel {
    pub(crate) fn new() -> Self {
        let (path, second) = (Vec::new(), Vec::new());
        Self { processes: Processes::default(), events: VecDeque::new(), path, second }
    }

    /// An event that the calls so far gave.
    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// A call that starts a thread has begun.
    pub(crate) fn begin(&mut self, tid: u32, sys: Sys, is_thread: bool) {
        if sys == Sys::Fork {
            self.processes.begin_start(tid, if is_thread { Kind::Thread } else { Kind::Process });
        }
    }

    /// A thread ended.
    pub(crate) fn exit(&mut self, tid: u32, end_ns: u64, code: u64, ledger: &mut Ledger) {
        let thread = self.processes.thread(tid, end_ns, ledger);
        let this = Event { stream: thread.stream, other: code, ..Event::new(end_ns, Op::Exit) };
        self.events.push_back(this);
        self.processes.end(tid, end_ns, ledger);
    }

    /// A call has ended. `None` where its arguments cannot be.
    pub(crate) fn call(&mut self, call: &Call<'_>, ledger: &mut Ledger) -> Option<()> {
        let thread = self.processes.thread(call.tid, call.start_ns, ledger);
        let blank = Event {
            stream: thread.stream,
            duration_ns: call.duration_ns,
            error: call.result.error(),
            ..Event::new(call.start_ns, Op::Wait)
        };
        let mut at = At { kernel: self, ledger, thread, call };
        let this = match call.sys {
            Sys::Transfer(op, place, shape) => at.transfer(blank, op, place, shape)?,
            Sys::Open(path) => at.open(blank, path)?,
            Sys::Creat => at.creat(blank)?,
            Sys::Close => at.close(blank)?,
            Sys::CloseRange => return at.close_range(),
            Sys::Seek => return at.seek(),
            Sys::Dup => return at.dup(),
            Sys::Fcntl => at.fcntl(blank)?,
            Sys::Path(op, path) => at.path(blank, op, path)?,
            Sys::UnlinkAt => at.unlink_at(blank)?,
            Sys::Names(op, from, to) => at.names(blank, op, from, to)?,
            Sys::Descriptor(op) => at.descriptor_op(blank, op)?,
            Sys::SyncAll => Row::Is(Event { op: Op::Sync, ..blank }),
            Sys::SyncRange => Row::Is(at.ranged(blank, Op::Rsync, 1)?),
            Sys::Truncate => at.truncate(blank)?,
            Sys::Ftruncate => at.ftruncate(blank)?,
            Sys::Fallocate => at.fallocate(blank)?,
            Sys::Fadvise => at.advise(blank)?,
            Sys::Readahead => at.readahead(blank)?,
            Sys::Readdir => at.readdir(blank)?,
            Sys::CopyRange => at.copy_range(blank)?,
            Sys::Sendfile => at.sendfile(blank)?,
            Sys::Mmap => at.mmap(blank)?,
            Sys::Wait => Row::Is(blank),
            Sys::Exec => at.exec(blank)?,
            Sys::Fork => at.fork(blank),
            Sys::Chdir => return at.chdir(),
            Sys::Fchdir => return at.fchdir(),
            Sys::Ring => {
                at.ledger.limit(RING);
                Row::Other
            }
        };
        if let Row::Is(event) = this {
            self.events.push_back(event);
        }
        Some(())
    }
}

/// A call in its thread: everything that understanding it takes.
struct At<'k, 'l, 'c, 'a> {
    kernel: &'k mut Kernel,
    ledger: &'l mut Ledger,
    thread: Thread,
    call: &'c Call<'a>,
}

/// An event, or a call that is none; the outer `None` is a line that cannot be.
type Found = Option<Row<Event>>;

impl<'a> At<'_, '_, '_, 'a> {
    fn arguments(&self) -> &Arguments<'a> {
        &self.call.arguments
    }

    /// The description behind a descriptor. One that was never opened here was inherited: it gets a file by
    /// the path that the tracer wrote, or a nameless one.
    fn handle(&mut self, descriptor: Descriptor<'_>) -> u32 {
        let known = self.kernel.processes.handle(self.thread, descriptor.number);
        let file = match descriptor.path {
            // The name of a deleted file may be another one's by now.
            Some(path) if !descriptor.is_deleted => {
                Some(self.ledger.files.path(&arguments::unescaped(path)))
            }
            _ => None,
        };
        if let Some(handle) = known {
            let open = self.kernel.processes.opened(handle).map(|open| open.file);
            if file.is_none() || open == file {
                return handle;
            }
        }
        let file = file.unwrap_or_else(|| match descriptor.path {
            Some(_) => self.ledger.files.nameless(FileKind::Regular),
            None => self.ledger.files.nameless(FileKind::Other),
        });
        self.kernel.processes.open(self.thread, descriptor.number, file, Flags::default())
    }

    /// An operation's file and handle, by the descriptor in an argument.
    fn on(&mut self, blank: Event, op: Op, index: usize) -> Option<Event> {
        let descriptor = self.arguments().descriptor(index)?;
        // A descriptor that is none: the error says so.
        if descriptor.number < 0 {
            return Some(Event { op, ..blank });
        }
        let handle = self.handle(descriptor);
        let open = self.kernel.processes.opened(handle)?;
        Some(Event { op, handle, file: open.file, flags: open.flags, ..blank })
    }

    fn descriptor_op(&mut self, blank: Event, op: Op) -> Found {
        let this = self.on(blank, op, 0)?;
        if op == Op::Stat {
            self.note_attributes(this.file);
        }
        Some(Row::Is(this))
    }

    /// Puts the path of an argument into `self.kernel.path`, and says where in the arguments it was.
    fn resolve(&mut self, path: PathAt) -> Option<Named> {
        let (directory, index) = match path {
            PathAt::Path(index) => (None, index),
            PathAt::Below(index) => (self.arguments().descriptor(index), index + 1),
        };
        let Some(name) = self.arguments().text(index) else {
            // perf writes addresses, and NULL asks for the descriptor itself.
            return match directory {
                Some(descriptor) if descriptor.number >= 0 && self.is_null(index) => {
                    Some(Named::Descriptor(descriptor.number))
                }
                _ if self.arguments().raw(index).is_empty() => None,
                _ => Some(Named::Unknown),
            };
        };
        if name.is_empty()
            && let Some(descriptor) = directory
            && descriptor.number >= 0
        {
            return Some(Named::Descriptor(descriptor.number));
        }
        let below = directory.and_then(|descriptor| descriptor.path).map(arguments::unescaped);
        let is_current = directory.is_none_or(|found| found.number == CURRENT_DIRECTORY);
        if let Some(path) = below.as_ref().filter(|_| is_current) {
            self.kernel.processes.set_directory(self.thread, path);
        }
        let known = self.kernel.processes.directory(self.thread).filter(|_| is_current);
        super::paths::join(&mut self.kernel.path, below.as_deref().or(known), &name);
        Some(Named::Path)
    }

    fn is_null(&self, index: usize) -> bool {
        self.arguments().raw(index) == b"NULL"
    }

    /// `st_size` and `st_mode` of what was asked for.
    fn note_attributes(&mut self, file: u32) {
        let found = |index| {
            let text = self.arguments().raw(index);
            let bytes = after(text, b"st_size=").or_else(|| after(text, b"stx_size="));
            (bytes, memchr::memmem::find(text, b"S_IFDIR").is_some())
        };
        let texts = [found(1), found(2), found(4)];
        let bytes = texts.iter().find_map(|(bytes, _)| *bytes);
        let is_directory = texts.iter().any(|(_, is_directory)| *is_directory);
        let Some(entry) = self.ledger.files.entry(file) else { return };
        if is_directory {
            entry.kind = FileKind::Directory;
        } else if let Some(bytes) = bytes {
            if entry.last_bytes == 0 {
                entry.first_bytes = bytes;
            }
            entry.last_bytes = entry.last_bytes.max(bytes);
        }
    }
}

/// How an argument names a file.
enum Named {
    /// By the path that was put together.
    Path,
    /// By a descriptor alone.
    Descriptor(i32),
    /// By an address, whose bytes nobody wrote down.
    Unknown,
}

/// The number behind a name in a structure.
fn after(text: &[u8], name: &[u8]) -> Option<u64> {
    let rest = &text[memchr::memmem::find(text, name)? + name.len()..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    super::scan::decimal(&rest[..digits])
}
