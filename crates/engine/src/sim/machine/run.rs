//! A workload on a machine, event by event: processes that ask, processors that copy, read-ahead,
//! write-back, writers that wait, fdatasyncs.

mod reading;
mod writing;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::ops::Range;

use hdrhistogram::Histogram;
use ioscape_model::{Access, State, Workload};
use rand_xoshiro::Xoshiro256PlusPlus;

use self::reading::Ahead;
use self::writing::Sync;
use super::pages::{Found, PAGE, Pages};
use super::storage::{Purpose, Request, Storage};
use crate::request::{Op, Stream};
use crate::rig::{Class, ClassCount};
use crate::schedule::Schedule;
use crate::sim::files::histogram;
use crate::sim::noise::lognormal;
use crate::sim::spec::Machine;

/// How often a workload beyond the cache goes through it before it begins, and how much of what
/// it asks for is looked at most, in capacities.
const TURNED_OVER: u64 = 2;
const LOOKED_MAX: u64 = 8;

/// Counted since the latest window ended.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowCounts {
    pub(super) classes: [ClassCount; 4],
    pub(super) asked_pages: u64,
    pub(super) hit_pages: u64,
    /// Of those asked for to be read, the ones that storage had to bring.
    pub(super) missed_reads: u64,
    pub(super) dirtied_pages: u64,
    pub(super) copying_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A processor is done with a slot's request.
    Copied(usize),
    /// A channel of storage is done.
    Stored(usize),
    /// A slot's next request is due.
    Due(usize),
}

#[derive(Debug)]
struct Process {
    stream: Stream,
    schedule: Option<Schedule>,
    pages: Range<u32>,
    ahead: Ahead,
    /// A read that begins here goes on, page.
    goes_on: u32,
    writes: u64,
    writing_back: u32,
    /// Slots that wait to be copied; the first one may be at it.
    copies: VecDeque<usize>,
}

/// One of a process's requests in flight.
#[derive(Clone, Copy, Debug)]
struct Slot {
    process: usize,
    op: Op,
    began_ns: u64,
    /// The next page to look at, and the end.
    cursor: u32,
    end: u32,
    is_stream: bool,
    ahead: Ahead,
    sync: Option<Sync>,
}

/// A workload under way.
#[derive(Debug)]
pub(super) struct Run {
    spec: Machine,
    is_direct: bool,
    fsync_every: u64,
    pub(super) now_ns: u64,
    /// Of processors and storage, 1 being what the description says.
    speed: f64,
    events: BinaryHeap<Reverse<(u64, u64, Event)>>,
    scheduled: u64,
    pub(super) pages: Pages,
    pub(super) storage: Storage,
    share_pages: u32,
    processes: Vec<Process>,
    slots: Vec<Slot>,
    /// Processes that have something to copy and no processor.
    ready: VecDeque<usize>,
    idle_processors: u32,
    /// Slots that wait for a page, for dirty pages to become fewer, for write-back of their file.
    readers: Vec<usize>,
    throttled: VecDeque<usize>,
    syncing: Vec<usize>,
    /// Where write-back has got to, page.
    swept: u32,
    writing_back: u32,
    write_backs: u64,
    is_stopped: bool,
    /// Most that may reach storage in this run, bytes, and whether that is reached.
    written_max_bytes: u64,
    pub(super) is_full: bool,
    pub(super) seen: WindowCounts,
    pub(super) response_ns: [Histogram<u64>; 4],
    /// In an open loop, since requests were due.
    pub(super) latency_ns: Option<Histogram<u64>>,
    response_cv: f64,
    rng: Xoshiro256PlusPlus,
}

/// How a run is set up.
pub(super) struct Setting {
    pub(super) room_bytes: u64,
    pub(super) sync_s: f64,
    pub(super) response_cv: f64,
    pub(super) seed: u64,
    pub(super) written_max_bytes: u64,
    pub(super) rng: Xoshiro256PlusPlus,
}

impl Run {
    /// A cache in the state that the workload asks for; its requests begin.
    pub(super) fn new(spec: &Machine, work: &Workload, setting: Setting) -> Self {
        let share_pages = work.share_bytes().div_ceil(PAGE) as u32;
        let process = |index: u32| Process {
            stream: Stream::new(work, index, 0, setting.seed),
            schedule: Schedule::new(work, index, setting.seed),
            pages: index * share_pages..(index + 1) * share_pages,
            ahead: Ahead::default(),
            goes_on: u32::MAX,
            writes: 0,
            writing_back: 0,
            copies: VecDeque::new(),
        };
        let slot = |process| Slot {
            process,
            op: Op { offset: 0, length: 0, class: Class::ReadSeq, due_ns: 0 },
            began_ns: 0,
            cursor: 0,
            end: 0,
            is_stream: false,
            ahead: Ahead::default(),
            sync: None,
        };
        let processes = work.process_num as usize;
        let mut run = Self {
            is_direct: work.access == Access::Direct,
            fsync_every: u64::from(work.fsync_every),
            now_ns: 0,
            speed: 1.0,
            events: BinaryHeap::new(),
            scheduled: 0,
            pages: Pages::new(&spec.cache, share_pages * work.process_num),
            storage: Storage::new(spec.storage.clone(), setting.room_bytes, setting.sync_s),
            share_pages,
            processes: (0..work.process_num).map(process).collect(),
            slots: (0..processes * work.depth as usize)
                .map(|slot_of| slot(slot_of % processes))
                .collect(),
            ready: VecDeque::new(),
            idle_processors: spec.cache.parallel,
            readers: Vec::new(),
            throttled: VecDeque::new(),
            syncing: Vec::new(),
            swept: 0,
            writing_back: 0,
            write_backs: 0,
            is_stopped: false,
            written_max_bytes: setting.written_max_bytes,
            is_full: false,
            seen: WindowCounts::default(),
            response_ns: std::array::from_fn(|_| histogram()),
            latency_ns: (work.rate > 0.0).then(histogram),
            response_cv: setting.response_cv,
            rng: setting.rng,
            spec: spec.clone(),
        };
        if !run.is_direct && work.state == State::Warm {
            run.warm_up();
        }
        (0..run.slots.len()).for_each(|slot| run.next(slot));
        run
    }

    /// What fits is there, as a long time of this workload leaves it: where the data exceed the
    /// cache, requests go through it until it has been turned over, in no time.
    fn warm_up(&mut self) {
        let processes = self.processes.len() as u32;
        let fits = self.share_pages.min(self.pages.capacity() / processes);
        for process in 0..processes {
            let first = process * self.share_pages;
            (first..first + fits).for_each(|page| self.pages.insert(page));
        }
        if fits == self.share_pages {
            return;
        }
        let capacity = u64::from(self.pages.capacity());
        let (mut looked, mut inserted) = (0, 0);
        while looked < LOOKED_MAX * capacity && inserted < TURNED_OVER * capacity {
            for process in 0..self.processes.len() {
                let op = self.processes[process].stream.next_op();
                for page in self.pages_of(process, &op) {
                    if self.pages.look(page) == Found::Missing {
                        self.pages.insert(page);
                        inserted += 1;
                    }
                    self.pages.access(page);
                    looked += 1;
                }
            }
        }
    }

    /// Lets time pass at a speed, or until no more may be written.
    pub(super) fn pass(&mut self, length_s: f64, speed: f64) {
        self.speed = speed;
        let until_ns = self.now_ns.saturating_add((length_s * 1e9).round() as u64);
        while !self.is_full && self.step(until_ns) {}
        self.now_ns = until_ns;
    }

    /// Requests in flight are forgotten, and all that is dirty is written; the seconds that takes.
    pub(super) fn drain(&mut self) -> f64 {
        let began_ns = self.now_ns;
        self.is_stopped = true;
        self.events.retain(|Reverse((_, _, event))| matches!(event, Event::Stored(_)));
        let all = 0..self.share_pages * self.processes.len() as u32;
        loop {
            while self.pages.dirty() > 0 && self.write_run(all.clone()).is_some() {}
            if !self.step(u64::MAX) {
                break;
            }
        }
        self.storage.submit(Request {
            position: 0,
            bytes: 0,
            purpose: Purpose::Barrier { slot: 0 },
        });
        self.serve();
        while self.step(u64::MAX) {}
        (self.now_ns - began_ns) as f64 * 1e-9
    }

    /// Device bytes that were written or will be.
    pub(super) fn coming_bytes(&self) -> u64 {
        self.storage.written_bytes + u64::from(self.pages.dirty()) * PAGE
    }

    /// The next event, where there is one until then.
    pub(super) fn step(&mut self, until_ns: u64) -> bool {
        let Some(Reverse((at_ns, _, event))) = self.events.peek().copied() else { return false };
        if at_ns > until_ns {
            return false;
        }
        self.events.pop();
        self.now_ns = self.now_ns.max(at_ns); // a run that was full has gone on without its events
        match event {
            Event::Copied(slot) => self.copied(slot),
            Event::Stored(channel) => self.stored(channel),
            Event::Due(slot) => self.begin(slot),
        }
        true
    }

    fn after(&mut self, delay_ns: f64, event: Event) {
        self.scheduled += 1;
        let at_ns = self.now_ns.saturating_add((delay_ns.round() as u64).max(1));
        self.events.push(Reverse((at_ns, self.scheduled, event)));
    }

    fn pages_of(&self, process: usize, op: &Op) -> Range<u32> {
        let base = self.processes[process].pages.start;
        let end = (op.offset + op.length).div_ceil(PAGE);
        base + (op.offset / PAGE) as u32..base + end as u32
    }

    /// A slot's next request begins: at once, or when it is due.
    fn next(&mut self, slot: usize) {
        let process = &mut self.processes[self.slots[slot].process];
        self.slots[slot].op = process.stream.next_op();
        let Some(schedule) = &mut process.schedule else { return self.begin(slot) };
        let due_ns = schedule.next_ns();
        schedule.advance();
        self.slots[slot].op.due_ns = due_ns;
        match due_ns.checked_sub(self.now_ns).filter(|wait_ns| *wait_ns > 0) {
            Some(wait_ns) => self.after(wait_ns as f64, Event::Due(slot)),
            None => self.begin(slot),
        }
    }

    fn begin(&mut self, slot: usize) {
        let Slot { process, op, .. } = self.slots[slot];
        let pages = self.pages_of(process, &op);
        let is_read = op.class.is_read();
        let at = &mut self.slots[slot];
        (at.began_ns, at.cursor, at.end) = (self.now_ns, pages.start, pages.end);
        if self.is_direct || !is_read {
            return self.ask_processor(slot);
        }
        let process = &mut self.processes[process];
        // A request may end within a page.
        let shared = u32::from(!op.offset.is_multiple_of(PAGE));
        at.is_stream = pages.start + shared == process.goes_on;
        at.ahead = if at.is_stream { process.ahead } else { Ahead::default() };
        process.goes_on = pages.end;
        self.fetch(slot);
    }

    fn submit(&mut self, first: u32, count: u32, purpose: Purpose) {
        let (position, bytes) = (u64::from(first) * PAGE, u64::from(count) * PAGE);
        self.storage.submit(Request { position, bytes, purpose });
        self.serve();
    }

    /// Idle channels begin what waits.
    fn serve(&mut self) {
        while self.storage.can_begin() {
            let spread = lognormal(self.response_cv, &mut self.rng);
            let (channel, service_ns) = self.storage.begin(self.now_ns, spread / self.speed);
            self.after(service_ns, Event::Stored(channel));
        }
    }

    fn ask_processor(&mut self, slot: usize) {
        let process = self.slots[slot].process;
        let copies = &mut self.processes[process].copies;
        copies.push_back(slot);
        if copies.len() == 1 {
            self.ready.push_back(process);
            self.copy();
        }
    }

    /// Idle processors take the processes that wait for one, in their order.
    fn copy(&mut self) {
        while self.idle_processors > 0 {
            let Some(process) = self.ready.pop_front() else { return };
            self.idle_processors -= 1;
            let slot = self.processes[process].copies[0];
            let Op { length, class, .. } = self.slots[slot].op;
            let cost = if class.is_read() { self.spec.cache.read } else { self.spec.cache.write };
            // Around the cache nothing is copied.
            let bytes = if self.is_direct { 0.0 } else { length as f64 };
            let copying_ns = cost.time_s(bytes) * 1e9 / self.speed;
            self.seen.copying_ns += copying_ns.round() as u64;
            self.after(copying_ns, Event::Copied(slot));
        }
    }

    fn copied(&mut self, slot: usize) {
        let Slot { process, op, .. } = self.slots[slot];
        let copies = &mut self.processes[process].copies;
        copies.pop_front();
        if !copies.is_empty() {
            self.ready.push_back(process);
        }
        self.idle_processors += 1;
        let read = op.class.is_read();
        if self.is_direct {
            self.ask_storage(slot, &op);
        } else if read {
            self.complete(slot);
        } else {
            self.make_dirty(slot);
        }
        self.copy();
    }

    /// Around the cache.
    fn ask_storage(&mut self, slot: usize, op: &Op) {
        let read = op.class.is_read();
        if !read && self.coming_bytes() + op.length > self.written_max_bytes {
            self.is_full = true;
            return;
        }
        let process = &self.processes[self.slots[slot].process];
        let position = u64::from(process.pages.start) * PAGE + op.offset;
        let purpose = Purpose::Direct { slot, read };
        self.storage.submit(Request { position, bytes: op.length, purpose });
        self.serve();
    }

    fn stored(&mut self, channel: usize) {
        let request = self.storage.end(channel);
        match request.purpose {
            Purpose::ReadIn { first, count } => self.has_read(first..first + count),
            Purpose::WriteBack { first, count, number } => self.has_written(first, count, number),
            Purpose::Direct { .. } | Purpose::Barrier { .. } if self.is_stopped => {}
            Purpose::Direct { slot, read: true } | Purpose::Barrier { slot } => self.complete(slot),
            Purpose::Direct { slot, read: false } => self.written(slot),
        }
        self.serve();
    }

    fn complete(&mut self, slot: usize) {
        let Slot { op, began_ns, .. } = self.slots[slot];
        let response_ns = self.now_ns - began_ns;
        self.response_ns[op.class as usize].saturating_record(response_ns);
        if let Some(latency) = &mut self.latency_ns {
            latency.saturating_record(self.now_ns.saturating_sub(op.due_ns));
        }
        let count = &mut self.seen.classes[op.class as usize];
        count.ops += 1;
        count.bytes += op.length;
        count.time_s += response_ns as f64 * 1e-9;
        self.next(slot);
    }
}
