//! Processes and threads as the converter knows them.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use ioscape_trace::StreamEntry;

use super::descriptors::Descriptors;

/// A thread: a stream of the trace.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) stream: u32,
    pub(crate) process: u32,
    /// Of this thread; `end_ns` and `cpu_ns` come last.
    pub(crate) entry: StreamEntry,
    /// Processor time since its last event, in calls that made none.
    pub(crate) pending_cpu_ns: u64,
}

/// A mapping of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mapping {
    pub(crate) file: u32,
    pub(crate) handle: u32,
    /// Where in the file it begins.
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// A process.
#[derive(Debug)]
pub(crate) struct Process {
    /// The stream of its first thread.
    pub(crate) stream: u32,
    pub(crate) descriptors: Rc<RefCell<Descriptors>>,
    pub(crate) directory: String,
    pub(crate) mappings: BTreeMap<u64, Mapping>,
    /// Threads that live.
    pub(crate) threads: usize,
}

/// All that live. Streams begin with 1.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    pub(crate) threads: HashMap<u32, Thread>,
    pub(crate) all: HashMap<u32, Process>,
    streams: Cell<u32>,
}

impl Processes {
    fn new_stream(&self) -> u32 {
        self.streams.set(self.streams.get() + 1);
        self.streams.get()
    }

    /// How many streams there were.
    pub(crate) fn streams(&self) -> u32 {
        self.streams.get()
    }

    /// A thread that is new here, in a process that may be.
    pub(crate) fn add_thread(
        &mut self,
        thread: u32,
        process: u32,
        parent: u32,
        start_ns: u64,
    ) -> u32 {
        let stream = self.new_stream();
        let of = self.all.entry(process).or_insert_with(|| Process {
            stream,
            descriptors: Rc::default(),
            directory: String::new(),
            mappings: BTreeMap::new(),
            threads: 0,
        });
        of.threads += 1;
        let entry = StreamEntry {
            id: stream,
            process: of.stream,
            parent,
            start_ns,
            end_ns: start_ns,
            cpu_ns: None,
        };
        let known = Thread { stream, process, entry, pending_cpu_ns: 0 };
        self.threads.insert(thread, known);
        stream
    }

    /// A process that begins with copies of what another has, or with its table itself.
    pub(crate) fn add_process(&mut self, process: u32, parent: u32, shares_descriptors: bool) {
        let Some(from) = self.all.get(&parent) else { return };
        let descriptors = if shares_descriptors {
            Rc::clone(&from.descriptors)
        } else {
            Rc::new(RefCell::new(from.descriptors.borrow().clone()))
        };
        let copy = Process {
            // The thread that comes next, its first.
            stream: self.streams.get() + 1,
            descriptors,
            directory: from.directory.clone(),
            mappings: from.mappings.clone(),
            threads: 0,
        };
        self.all.insert(process, copy);
    }

    /// The process of a thread that is known.
    pub(crate) fn of_thread(&mut self, thread: u32) -> Option<&mut Process> {
        let process = self.threads.get(&thread)?.process;
        self.all.get_mut(&process)
    }

    /// A thread ended; so does its process with the last one.
    pub(crate) fn remove_thread(&mut self, thread: u32) -> Option<Thread> {
        let gone = self.threads.remove(&thread)?;
        if let Some(process) = self.all.get_mut(&gone.process) {
            process.threads = process.threads.saturating_sub(1);
            if process.threads == 0 {
                self.all.remove(&gone.process);
            }
        }
        Some(gone)
    }
}
