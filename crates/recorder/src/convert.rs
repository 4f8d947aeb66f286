//! Turns facts about processes into events, files and streams of a trace.
//!
//! Descriptors become files here: a table per process, positions per open description. The rules
//! are those of POSIX and of Linux' manual pages.

mod calls;
mod descriptors;
mod files;
mod paths;
mod process;
mod totals;

use std::cell::RefCell;
use std::rc::Rc;

use ioscape_trace::{Event, FileKind, Flags, Op, Sink, StreamEntry, TraceInfo};

use crate::observed::{
    Ended, Executed, Exited, Forked, Identity, Observed, Requested, Touch, Touched,
};
use crate::proc;
use descriptors::{Description, Shared};
use files::Files;
use process::Processes;
pub(crate) use totals::Totals;

/// Errors from here on are the kernel's own: the call goes on, or begins again.
const RESTARTED: i64 = 512;

/// Turns facts into a trace.
pub(crate) struct Converter<'a> {
    sink: &'a mut dyn Sink,
    /// When the trace began.
    zero_ns: u64,
    page_bytes: u64,
    files: Files,
    processes: Processes,
    handles: u32,
    pub(crate) totals: Totals,
}

/// Where an event happens.
#[derive(Clone, Copy, Debug, Default)]
struct Target {
    handle: u32,
    file: u32,
    offset: u64,
    length: u64,
    asked: Option<u64>,
    flags: Flags,
    other: u64,
}

type Written = std::io::Result<()>;

impl<'a> Converter<'a> {
    pub(crate) fn new(sink: &'a mut dyn Sink, zero_ns: u64, page_bytes: u64) -> Self {
        Self {
            sink,
            zero_ns,
            page_bytes,
            files: Files::default(),
            processes: Processes::default(),
            handles: 0,
            totals: Totals::default(),
        }
    }

    /// Takes one fact.
    pub(crate) fn take(&mut self, observed: &Observed) -> Written {
        match observed {
            Observed::Call(ended) => self.call(ended),
            Observed::Fork(forked) => self.fork(forked),
            Observed::Exec(executed) => self.exec(executed),
            Observed::Exit(exited) => self.exit(exited),
            Observed::Inserted(touched) => {
                self.inserted(touched);
                Ok(())
            }
            Observed::Fault(touched, touch) => self.fault(touched, *touch),
            Observed::Request(request) => self.request(request),
        }
    }

    /// A process that was there before, with what it has open.
    pub(crate) fn adopt(&mut self, process: u32, now_ns: u64) {
        if self.processes.all.contains_key(&process) {
            return;
        }
        let start_ns = now_ns.saturating_sub(self.zero_ns);
        self.processes.add_thread(process, process, 0, start_ns);
        for thread in proc::threads(process) {
            if thread != process {
                self.processes.add_thread(thread, process, 0, start_ns);
            }
            self.totals.begin(thread, proc::counts(process, thread).unwrap_or_default());
        }
        for opened in proc::descriptors(process) {
            self.install_opened(process, &opened, 0);
        }
        if let Some(known) = self.processes.all.get_mut(&process) {
            known.directory = proc::working_directory(process).unwrap_or_default();
        }
    }

    /// Streams that there were.
    pub(crate) fn streams(&self) -> u32 {
        self.processes.streams()
    }

    /// How many processes live.
    pub(crate) fn living(&self) -> usize {
        self.processes.all.len()
    }

    /// Whether a process is known.
    pub(crate) fn knows(&self, process: u32) -> bool {
        self.processes.all.contains_key(&process)
    }

    /// Devices that were touched.
    pub(crate) fn devices(&self) -> Vec<(u32, u32)> {
        self.files.devices()
    }

    /// Pages that entered the page cache, and those of them that no event explains.
    pub(crate) fn pages(&self) -> (u64, u64) {
        self.totals.pages(|inode| self.files.explains(inode))
    }

    /// Tells what is left: streams that live, and all files.
    pub(crate) fn tell_tables(&mut self, now_ns: u64) -> Written {
        let end_ns = now_ns.saturating_sub(self.zero_ns);
        for (number, thread) in self.processes.threads.drain() {
            if let Some(counts) = proc::counts(thread.process, number) {
                self.totals.count(number, counts);
            }
            self.sink.stream(StreamEntry { end_ns, ..thread.entry })?;
        }
        let totals = &self.totals;
        self.files.tell(self.sink, self.page_bytes, |inode| totals.was_inserted(inode))
    }

    /// Tells what is known of the whole.
    pub(crate) fn finish(self, info: &TraceInfo) -> Written {
        self.sink.finish(info)
    }

    fn install_opened(&mut self, process: u32, opened: &proc::Opened, since_ns: u64) {
        let file = self.files.opened(opened.path.as_deref(), &opened.identity);
        let description = self.describe(file, opened.identity.flags.cast_signed());
        description.borrow_mut().position = opened.position;
        if let Some(known) = self.processes.all.get(&process) {
            let mut descriptors = known.descriptors.borrow_mut();
            descriptors.install(opened.descriptor, description, opened.closes_on_exec, since_ns);
        }
    }

    /// A new open description.
    fn describe(&mut self, file: u32, flags: i32) -> Shared {
        self.handles += 1;
        let kind = self.files.get(file).kind;
        let handle = self.handles;
        Rc::new(RefCell::new(Description { handle, file, kind, position: 0, flags }))
    }

    /// What a descriptor of a thread's process stands for; /proc is asked where nobody saw it made.
    fn description(&mut self, thread: u32, descriptor: i32) -> Option<Shared> {
        let process = self.processes.threads.get(&thread)?.process;
        let known = self.processes.all.get(&process)?;
        if let Some(found) = known.descriptors.borrow().get(descriptor) {
            return Some(found);
        }
        let opened = proc::opened(process, descriptor)?;
        self.install_opened(process, &opened, 0);
        self.processes.all.get(&process)?.descriptors.borrow().get(descriptor)
    }

    /// The thread is known from now on.
    fn know(&mut self, thread: u32, at_ns: u64) {
        if self.processes.threads.contains_key(&thread) {
            return;
        }
        let process = proc::process_of(thread).unwrap_or(thread);
        self.adopt(process, at_ns);
        if process != thread {
            let start_ns = at_ns.saturating_sub(self.zero_ns);
            self.processes.add_thread(thread, process, 0, start_ns);
        }
    }

    fn event(
        &mut self,
        thread: u32,
        op: Op,
        (start_ns, end_ns): (u64, u64),
        at: Target,
    ) -> Written {
        let stream = self.processes.threads.get(&thread).map_or(0, |known| known.stream);
        self.sink.event(&Event {
            start_ns: start_ns.saturating_sub(self.zero_ns),
            duration_ns: Some(end_ns.saturating_sub(start_ns)),
            op,
            stream,
            handle: at.handle,
            file: at.file,
            offset: at.offset,
            length: at.length,
            asked: at.asked,
            error: 0,
            flags: at.flags,
            cpu_gap_ns: None,
            other: at.other,
        })
    }

    /// An event that is a system call.
    fn call_event(&mut self, ended: &Ended, op: Op, at: Target) -> Written {
        self.totals.calls += 1;
        // The tracer that measures processor time is the one that sees the page cache.
        self.totals.sees_pages |= ended.cpu_gap_ns.is_some();
        let Some(known) = self.processes.threads.get_mut(&ended.thread) else { return Ok(()) };
        let pending_ns = std::mem::take(&mut known.pending_cpu_ns);
        self.sink.event(&Event {
            start_ns: ended.start_ns.saturating_sub(self.zero_ns),
            duration_ns: Some(ended.end_ns.saturating_sub(ended.start_ns)),
            op,
            stream: known.stream,
            handle: at.handle,
            file: at.file,
            offset: at.offset,
            length: at.length,
            asked: at.asked.filter(|asked| *asked != at.length),
            error: if ended.result < 0 { (-ended.result) as i16 } else { 0 },
            flags: at.flags,
            cpu_gap_ns: ended.cpu_gap_ns.map(|gap_ns| gap_ns + pending_ns),
            other: at.other,
        })
    }

    fn fork(&mut self, forked: &Forked) -> Written {
        self.know(forked.parent, forked.at_ns);
        let Some(parent) = self.processes.threads.get(&forked.parent).cloned() else {
            return Ok(());
        };
        if forked.process == forked.child {
            let shares = forked.shares_descriptors;
            self.processes.add_process(forked.child, parent.process, shares);
        }
        let start_ns = forked.at_ns.saturating_sub(self.zero_ns);
        let child =
            self.processes.add_thread(forked.child, forked.process, parent.stream, start_ns);
        let at = Target { other: u64::from(child), ..Target::default() };
        self.event(forked.parent, Op::Fork, (forked.at_ns, forked.at_ns), at)
    }

    fn exec(&mut self, executed: &Executed) -> Written {
        self.know(executed.before, executed.at_ns);
        if executed.before != executed.thread {
            self.processes.threads.remove(&executed.thread);
            if let Some(thread) = self.processes.threads.remove(&executed.before) {
                self.processes.threads.insert(executed.thread, thread);
            }
        }
        if let Some(process) = self.processes.of_thread(executed.thread) {
            let mut own = process.descriptors.borrow().clone();
            own.become_program();
            process.descriptors = Rc::new(RefCell::new(own));
            process.mappings.clear();
        }
        self.totals.programs += 1;
        let mut at = Target::default();
        if let Some(identity) = &executed.program {
            let path = match self.files.of_inode(identity) {
                Some(_) => None,
                None => proc::program(executed.thread),
            };
            at.file = self.files.opened(path.as_deref(), identity);
            self.mark_program(at.file);
        }
        self.event(executed.thread, Op::Exec, (executed.at_ns, executed.at_ns), at)
    }

    fn mark_program(&mut self, file: u32) {
        let known = self.files.get(file);
        known.is_program = known.kind == FileKind::Regular;
        known.is_touched = true;
    }

    fn exit(&mut self, exited: &Exited) -> Written {
        self.know(exited.thread, exited.at_ns);
        let code = crate::spawn::exit_code(exited.status.cast_signed());
        let at = Target { other: u64::from(code.unsigned_abs()), ..Target::default() };
        self.event(exited.thread, Op::Exit, (exited.at_ns, exited.at_ns), at)?;
        if let Some(counted) = exited.counted {
            self.totals.count(exited.thread, counted);
        }
        let Some(gone) = self.processes.remove_thread(exited.thread) else { return Ok(()) };
        let end_ns = exited.at_ns.saturating_sub(self.zero_ns);
        self.totals.cpu_ns += exited.cpu_ns.unwrap_or(0);
        self.sink.stream(StreamEntry { end_ns, cpu_ns: exited.cpu_ns, ..gone.entry })
    }

    fn inserted(&mut self, touched: &Touched) {
        if touched.file.mode & libc::S_IFMT == libc::S_IFREG {
            let inode = (touched.file.inode, touched.file.device);
            self.totals.inserted(inode, touched.pages);
        }
    }

    /// A file that a tracer names by its inode alone. One that nobody opened was mapped by the
    /// kernel itself: the loader of programs.
    fn found(&mut self, identity: &Identity) -> u32 {
        self.files.of_inode(identity).unwrap_or_else(|| {
            let file = self.files.opened(None, identity);
            self.mark_program(file);
            file
        })
    }

    fn fault(&mut self, touched: &Touched, touch: Touch) -> Written {
        if touched.file.mode & libc::S_IFMT != libc::S_IFREG {
            return Ok(());
        }
        self.know(touched.thread, touched.at_ns);
        let file = self.found(&touched.file);
        self.files.get(file).is_touched = true;
        let op = if touch == Touch::Load { Op::FaultR } else { Op::FaultW };
        let at = Target {
            file,
            offset: touched.first_page * self.page_bytes,
            length: touched.pages * self.page_bytes,
            flags: Flags::FROM_FAULT,
            ..Target::default()
        };
        self.event(touched.thread, op, (touched.at_ns, touched.at_ns), at)
    }

    fn request(&mut self, request: &Requested) -> Written {
        let op = match request.opcode {
            // READV, READ_FIXED, READ.
            1 | 4 | 22 => Op::Read,
            // WRITEV, WRITE_FIXED, WRITE.
            2 | 5 | 23 => Op::Write,
            // FSYNC.
            3 => Op::Sync,
            // SYNC_FILE_RANGE.
            8 => Op::Rsync,
            _ => return Ok(()),
        };
        self.know(request.thread, request.start_ns);
        let file = self.found(&request.file);
        if self.files.get(file).handle == 0 {
            self.handles += 1;
            self.files.get(file).handle = self.handles;
        }
        let moves_bytes = matches!(op, Op::Read | Op::Write);
        let length =
            if moves_bytes { request.result.max(0).cast_unsigned() } else { request.asked };
        let known = self.files.get(file);
        known.is_touched = true;
        if op == Op::Write {
            known.bytes = known.bytes.max(request.offset + length);
        }
        self.totals.calls += 1;
        let (handle, thread) = (known.handle, request.thread);
        let flags = flags_of(request.file.flags.cast_signed()).with(Flags::ASYNC);
        let offset = request.offset;
        let at = Target { handle, file, offset, length, flags, ..Target::default() };
        self.event(thread, op, (request.start_ns, request.end_ns), at)
    }
}

/// What flags of `open` say about how bytes move.
fn flags_of(flags: i32) -> Flags {
    let pairs = [
        (libc::O_DIRECT, Flags::DIRECT),
        (libc::O_DSYNC, Flags::SYNC),
        (libc::O_APPEND, Flags::APPEND),
        (libc::O_EXCL, Flags::EXCL),
        (libc::O_TRUNC, Flags::TRUNC),
    ];
    let set = pairs.into_iter().filter(|(bit, _)| flags & bit != 0);
    set.fold(Flags::default(), |all, (_, flag)| all.with(flag))
}
