//! Threads, their tables of descriptors, and what is open behind these: enough of a kernel to know
//! where a `read` without an offset reads.

use std::collections::HashMap;

use super::super::ledger::Ledger;
use crate::event::Flags;

/// Calls under way that start threads; with more, their ends were lost.
const STARTING_MAX: usize = 64;

/// An open file description.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) file: u32,
    pub(crate) position: u64,
    pub(crate) flags: Flags,
    /// How many descriptors lead to it.
    links: u32,
}

/// A thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thread {
    /// Its stream.
    pub(crate) stream: u32,
    /// Its table of descriptors.
    table: u32,
}

#[derive(Clone, Debug, Default)]
struct Descriptors {
    handles: HashMap<i32, u32>,
    threads: u32,
    /// The working directory, empty where it is unknown.
    directory: Vec<u8>,
}

/// A new thread: does it share descriptors and process with the one that started it?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Process,
    Thread,
}

/// That a thread started another one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) parent: u32,
    pub(crate) child: u32,
    pub(crate) kind: Kind,
    pub(crate) time_ns: u64,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Processes {
    threads: HashMap<u32, Thread>,
    tables: HashMap<u32, Descriptors>,
    tables_made: u32,
    open: HashMap<u32, Open>,
    handles_made: u32,
    /// Threads that are within a call that starts another one.
    starting: Vec<(u32, Kind)>,
}

impl Processes {
    /// The thread of a number. One that was never heard of was started by whoever is just starting
    /// one: a child often runs before its parent is told.
    pub(crate) fn thread(&mut self, tid: u32, start_ns: u64, ledger: &mut Ledger) -> Thread {
        match (self.threads.get(&tid), self.starting.last().copied()) {
            (Some(thread), _) => *thread,
            (None, Some((parent, kind))) => {
                self.start(&Start { parent, child: tid, kind, time_ns: start_ns }, ledger)
            }
            (None, None) => self.add(tid, start_ns, ledger),
        }
    }

    fn add(&mut self, tid: u32, start_ns: u64, ledger: &mut Ledger) -> Thread {
        self.tables_made += 1;
        let table = self.tables_made;
        self.tables.insert(table, Descriptors { threads: 1, ..Descriptors::default() });
        let stream = ledger.streams.add(u64::from(tid), start_ns);
        let thread = Thread { stream, table };
        self.threads.insert(tid, thread);
        thread
    }

    /// A call that starts a thread begins; its child may be seen before it ends.
    pub(crate) fn begin_start(&mut self, parent: u32, kind: Kind) {
        let is_noted = self.starting.iter().any(|(starting, _)| *starting == parent);
        if !is_noted && self.starting.len() < STARTING_MAX {
            self.starting.push((parent, kind));
        }
    }

    /// It ended.
    pub(crate) fn end_start(&mut self, parent: u32) {
        if let Some(at) = self.starting.iter().rposition(|(starting, _)| *starting == parent) {
            self.starting.remove(at);
        }
    }

    /// A thread was started; gives what is known already where it has been seen.
    pub(crate) fn start(&mut self, start: &Start, ledger: &mut Ledger) -> Thread {
        let Start { parent, child, kind, time_ns: start_ns } = *start;
        if let Some(known) = self.threads.get(&child) {
            return *known;
        }
        let Some(&before) = self.threads.get(&parent) else {
            return self.add(child, start_ns, ledger);
        };
        let mut thread = self.add(child, start_ns, ledger);
        match kind {
            Kind::Thread => {
                self.tables.remove(&thread.table);
                thread.table = before.table;
                if let Some(table) = self.tables.get_mut(&before.table) {
                    table.threads += 1;
                }
                self.threads.insert(child, thread);
            }
            Kind::Process => {
                let mut table = self.tables.get(&before.table).cloned().unwrap_or_default();
                for handle in table.handles.values() {
                    if let Some(open) = self.open.get_mut(handle) {
                        open.links += 1;
                    }
                }
                table.threads = 1;
                self.tables.insert(thread.table, table);
            }
        }
        let process = ledger.streams.entry(before.stream).map_or(0, |entry| entry.process);
        if let Some(entry) = ledger.streams.entry(thread.stream) {
            entry.parent = before.stream;
            if kind == Kind::Thread {
                entry.process = process;
            }
        }
        thread
    }

    /// A thread ended: with the last one of its table its descriptors are closed.
    pub(crate) fn end(&mut self, tid: u32, end_ns: u64, ledger: &mut Ledger) {
        self.end_start(tid);
        let Some(thread) = self.threads.remove(&tid) else { return };
        ledger.streams.end(u64::from(tid), end_ns);
        let Some(table) = self.tables.get_mut(&thread.table) else { return };
        table.threads = table.threads.saturating_sub(1);
        if table.threads == 0
            && let Some(table) = self.tables.remove(&thread.table)
        {
            table.handles.into_values().for_each(|handle| self.unlink(handle));
        }
    }

    /// A file was opened under a descriptor.
    pub(crate) fn open(&mut self, thread: Thread, number: i32, file: u32, flags: Flags) -> u32 {
        self.handles_made = self.handles_made.wrapping_add(1).max(1);
        let handle = self.handles_made;
        self.open.insert(handle, Open { file, position: 0, flags, links: 1 });
        self.put(thread, number, Some(handle));
        handle
    }

    /// A descriptor becomes another name of what is open.
    pub(crate) fn dup(&mut self, thread: Thread, handle: u32, number: i32) {
        if let Some(open) = self.open.get_mut(&handle) {
            open.links += 1;
            self.put(thread, number, Some(handle));
        }
    }

    /// A descriptor is closed; gives what it led to.
    pub(crate) fn close(&mut self, thread: Thread, number: i32) {
        self.put(thread, number, None);
    }

    /// Descriptors are closed, both ends included.
    pub(crate) fn close_range(&mut self, thread: Thread, first: u64, last: u64) {
        let Some(table) = self.tables.get(&thread.table) else { return };
        let is_within = |number: i32| {
            u64::try_from(number).is_ok_and(|number| (first..=last).contains(&number))
        };
        let numbers: Vec<i32> = table.handles.keys().copied().filter(|&n| is_within(n)).collect();
        for number in numbers {
            self.close(thread, number);
        }
    }

    /// Where names without a directory are looked up.
    pub(crate) fn directory(&self, thread: Thread) -> Option<&[u8]> {
        let directory = &self.tables.get(&thread.table)?.directory;
        (!directory.is_empty()).then_some(directory)
    }

    /// The thread works in this directory.
    pub(crate) fn set_directory(&mut self, thread: Thread, path: &[u8]) {
        if let Some(table) = self.tables.get_mut(&thread.table)
            && table.directory != path
        {
            path.clone_into(&mut table.directory);
        }
    }

    /// The handle of a descriptor.
    pub(crate) fn handle(&self, thread: Thread, number: i32) -> Option<u32> {
        self.tables.get(&thread.table)?.handles.get(&number).copied()
    }

    /// The description of a handle.
    pub(crate) fn opened(&mut self, handle: u32) -> Option<&mut Open> {
        self.open.get_mut(&handle)
    }

    fn put(&mut self, thread: Thread, number: i32, handle: Option<u32>) {
        let Some(table) = self.tables.get_mut(&thread.table) else { return };
        let before = match handle {
            Some(handle) => table.handles.insert(number, handle),
            None => table.handles.remove(&number),
        };
        if let Some(before) = before {
            self.unlink(before);
        }
    }

    fn unlink(&mut self, handle: u32) {
        if let Some(open) = self.open.get_mut(&handle) {
            open.links = open.links.saturating_sub(1);
            if open.links == 0 {
                self.open.remove(&handle);
            }
        }
    }
}
