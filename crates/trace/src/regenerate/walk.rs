//! Streams, call after call: classes follow each other as in the model, each stream in a time of
//! its own, all of them drawing from the same bags.

mod opening;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ioscape_model::app::{App, Behaviour};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Scale;
use super::calls::{Bags, CLASSES, CLOSE, MAP, OPEN, Synced, What, factors};
use super::crossings::{Crossings, aligned_pages};
use super::files::Files;
use super::ground::{GeneratedFiles, sequential_share};
use super::mapped::Mapped;
use super::places::{Factors, PAGE_BYTES, Places, READ, WRITE};
use super::timing::all_transfers;
use crate::event::{Event, Flags, Op};

/// Files that a stream has open at a time. With 64, load like `RocksDB`'s, which reads 87 files at random,
/// opened files 13,000 times for 148.
const OPEN_MAX: usize = 512;

#[derive(Clone, Copy, Debug)]
struct Open {
    handle: u32,
    /// An index of all files of data.
    data: usize,
    /// Where the last request ended.
    position: Option<u64>,
    /// It read or wrote.
    direction: usize,
    is_dirty: bool,
}

#[derive(Debug, Default)]
struct Stream {
    class: Option<usize>,
    /// The one used last is last.
    open: Vec<Open>,
    /// Where the next request is to begin.
    planned: Option<usize>,
    busy_ns: u64,
    /// End of the last event, or of the time that passed.
    now_ns: u64,
}

/// Makes events.
pub(super) struct Walk<'a> {
    whole: &'a Behaviour,
    stretches: Vec<&'a Behaviour>,
    scale: &'a Scale,
    ground: &'a GeneratedFiles,
    chance: Xoshiro256PlusPlus,
    places: Places,
    streams: Vec<Stream>,
    turns: BinaryHeap<Reverse<(u64, usize)>>,
    out: VecDeque<Event>,
    bags: Bags,
    /// Stretches begun.
    begun: usize,
    files: Files,
    crossings: [Crossings; 2],
    mapped: Mapped,
    /// Share of the bytes read that go on where the read before ended, where that is known.
    sequential: Option<f64>,
    handles: u32,
    /// Names without data that calls were about; directories apart.
    spare_used: [u32; 2],
    end_ns: Option<u64>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(
        app: &'a App,
        scale: &'a Scale,
        ground: &'a GeneratedFiles,
        seed: u64,
    ) -> Self {
        let stretches = app.stretches();
        let sequential = sequential_share(app);
        let users = ground.streams().len();
        let mut walk = Self {
            whole: &app.whole,
            bags: Bags::new(stretches[0], sequential, scale, streams_before(users, scale)),
            stretches,
            scale,
            ground,
            chance: Xoshiro256PlusPlus::seed_from_u64(seed),
            places: Places::new(ground.regions),
            streams: (0..users).map(|_| Stream::default()).collect(),
            turns: (0..users).map(|stream| Reverse((0, stream))).collect(),
            out: VecDeque::new(),
            begun: 1,
            files: Files::new(ground),
            crossings: Default::default(),
            mapped: Mapped::default(),
            sequential,
            handles: 0,
            spare_used: [0; 2],
            end_ns: scale.for_s.map(|seconds| (seconds * 1e9) as u64),
        };
        walk.begin_pass();
        walk
    }

    /// All of the model comes once more.
    fn begin_pass(&mut self) {
        let counts = all_transfers(&self.stretches);
        let factors = factors(counts, self.scale);
        let last = self.ground.caches.curve.last().copied().unwrap_or_default();
        let first = self.ground.caches.curve.first().copied().unwrap_or_default();
        let of = |at: usize, all: u64, first: u64| {
            // More users touch what one has touched first.
            let (all, first) = (all as f64, first as f64);
            let again = (all - first).max(1.0);
            let data = self.scale.data.min(all * factors[at] / first.max(1.0));
            let touches = ((all * factors[at] - first * data) / again).max(0.0);
            Factors { data: self.scale.data, touches, first: data }
        };
        let reads = of(READ, first.reads, last.reads);
        let writes = of(WRITE, first.writes, last.writes);
        self.places.want(&self.ground.caches, &reads, &writes);
        self.files.begin_pass();
        let mapped_pages = (self.whole.unique.mapped_bytes / PAGE_BYTES) as f64;
        let mapped = mapped_pages * factors[READ];
        for (at, touches, mapped) in [(READ, first.reads, mapped), (WRITE, first.writes, 0.0)] {
            let aligned: f64 =
                self.stretches.iter().map(|stretch| aligned_pages(stretch, at)).sum();
            let (touches, requests) =
                (touches as f64 * factors[at], counts[at] as f64 * factors[at]);
            let extra = (touches - aligned * factors[at] - mapped).max(0.0);
            self.crossings[at].add(extra, (requests, touches));
        }
        let calls = self.stretches.iter().filter_map(|stretch| stretch.operations.get("MMAP"));
        let calls = calls.sum::<u64>() as f64 * self.scale.users;
        self.mapped.add(if calls > 0.0 { mapped } else { 0.0 }, calls);
    }

    /// Goes on with the next stretch, or anew; whether there is more to come.
    fn go_on(&mut self) -> bool {
        if self.begun == self.stretches.len() {
            let now_ns = self.streams.iter().map(|stream| stream.now_ns).max().unwrap_or(0);
            if self.end_ns.is_none_or(|end_ns| now_ns >= end_ns) {
                return false;
            }
            self.begun = 0;
            self.begin_pass();
        }
        let streams = streams_before(self.streams.len(), self.scale);
        let stretch = self.stretches[self.begun];
        self.bags = Bags::new(stretch, self.sequential, self.scale, streams);
        self.begun += 1;
        true
    }

    /// Makes the next call of the stream whose turn it is; whether there is more to come.
    fn step(&mut self) -> bool {
        let Some(Reverse((now_ns, number))) = self.turns.pop() else { return false };
        if self.end_ns.is_some_and(|end_ns| now_ns >= end_ns) {
            return true; // this one has ended
        }
        let class = self.streams[number].class;
        let Some(class) = self.bags.next_class(class, &mut self.chance) else {
            self.turns.push(Reverse((now_ns, number)));
            return self.go_on();
        };
        self.streams[number].class = Some(class);
        let what = self.next_call(number, class);
        let (gap_ns, busy_ns) = self.bags.timing.gap(&mut self.chance);
        let stream = &mut self.streams[number];
        stream.now_ns += gap_ns;
        stream.busy_ns += busy_ns;
        match what {
            What::Call(Op::Open | Op::Close) if self.is_within(number) => {
                self.bags.calls[class].put(what);
                self.bags.calls[READ].take(What::Transfer(READ));
                self.transfer(number, READ);
            }
            What::Transfer(direction) => self.transfer(number, direction),
            What::Call(op) => self.call(number, op),
            What::Pass => {
                let is_other = class == CLASSES.len() - 1;
                let timing = &self.bags.timing;
                let ns = if is_other { timing.wait_ns } else { timing.call_ns };
                self.streams[number].now_ns += ns as u64;
            }
        }
        self.turns.push(Reverse((self.streams[number].now_ns, number)));
        true
    }

    /// The next call of a class: where a file is to be begun, a request or a mapping; else any that is left.
    fn next_call(&mut self, number: usize, class: usize) -> What {
        let is_planned = self.streams[number].planned.is_some();
        let begins = if class == MAP { What::Call(Op::Mmap) } else { What::Transfer(class) };
        if is_planned && self.bags.calls[class].take(begins) {
            return begins;
        }
        // A file that is opened later is mapped later.
        if class == MAP && !is_planned && self.bags.calls[MAP].take(What::Pass) {
            return What::Pass;
        }
        self.bags.calls[class].draw(&mut self.chance).unwrap_or(What::Pass)
    }

    fn put(&mut self, number: usize, op: Op, file: u32, handle: u32) -> &mut Event {
        let ns = self.bags.timing.call_ns as u64;
        let stream = &mut self.streams[number];
        let mut event = Event::new(stream.now_ns, op);
        (event.file, event.handle, event.stream) = (file, handle, number as u32 + 1);
        event.duration_ns = Some(ns);
        event.cpu_gap_ns = Some(std::mem::take(&mut stream.busy_ns));
        stream.now_ns += ns;
        self.out.push_back(event);
        self.out.back_mut().expect("it was just put there")
    }

    fn transfer(&mut self, number: usize, direction: usize) {
        let whole = self.planned_length(number, direction);
        let sizes = &mut self.bags.sizes[direction];
        let bytes = whole.and_then(|bytes| sizes.take(bytes));
        let Some(bytes) = bytes.or_else(|| sizes.draw(&mut self.chance)) else { return };
        let is_wanted = self.is_to_go_on(direction);
        self.bags.requests[direction] -= 1.0;
        let is_free = is_wanted && self.streams[number].planned.is_none();
        let before = if is_free { self.ended_before(number, direction, bytes) } else { None };
        let (at, offset) = if let Some((at, offset)) = before {
            self.bags.follows[direction] -= 1.0;
            (at, offset)
        } else {
            if is_free {
                self.turn_to_next(number, direction);
            }
            let planned = self.streams[number].planned.take();
            let page = planned.or_else(|| self.draw(direction));
            let found = page.and_then(|page| self.begin_at(number, direction, (page, bytes)));
            let Some(found) = found else { return };
            found
        };
        let Open { handle, data: file, .. } = self.streams[number].open[at];
        let op = if direction == READ { Op::Read } else { Op::Write };
        self.files.reach(file, offset + bytes, direction);
        let data = *self.files.get(file);
        let event = self.put(number, op, data.id, handle);
        (event.offset, event.length) = (offset, bytes);
        let first = (offset / PAGE_BYTES) as usize;
        let end = ((offset + bytes).div_ceil(PAGE_BYTES) as usize).min(data.pages);
        self.crossings[direction].take(offset, bytes);
        self.places.touch(direction, data.from + first..data.from + end.max(first));
        let open = &mut self.streams[number].open[at];
        (open.position, open.direction) = (Some(offset + bytes), direction);
        open.is_dirty |= direction == WRITE;
        self.use_last(number, at);
    }

    /// Whether the next request is to go on where one ended. The first of a handle cannot, so the
    /// others do all the more.
    fn is_to_go_on(&mut self, direction: usize) -> bool {
        let op = if direction == READ { Op::Open } else { Op::Create };
        let first = self.bags.calls[OPEN].count(What::Call(op)) as f64;
        let requests = self.bags.requests[direction];
        // Not all that are opened are read.
        let others = (requests - first.min(requests / 2.0)).max(1.0);
        let wanted = self.bags.follows[direction] / others;
        self.chance.random::<f64>() < wanted
    }

    /// The open file in which a request of this direction ended last, and can go on.
    fn ended_before(&self, number: usize, direction: usize, bytes: u64) -> Option<(usize, u64)> {
        let open = &self.streams[number].open;
        let at =
            open.iter().rposition(|open| open.position.is_some() && open.direction == direction)?;
        let (position, file) = (open[at].position?, open[at].data);
        let end = if direction == WRITE { self.files.room(file) } else { self.files.length(file) };
        if !self.crossings[direction].allows(position, bytes) {
            return None;
        }
        // A file that grows does so as long as pages are to be touched that nobody has.
        let known = self.files.get(file).pages as u64 * PAGE_BYTES;
        let may_grow = position + bytes <= known || self.places.wants_first(direction);
        (position + bytes <= end && may_grow).then_some((at, position))
    }

    /// A file has come to its end before its time: the next one is opened, or made, now.
    fn turn_to_next(&mut self, number: usize, direction: usize) {
        let op = if direction == WRITE { Op::Create } else { Op::Open };
        if !self.bags.calls[OPEN].take(What::Call(op)) {
            return;
        }
        let open = &self.streams[number].open;
        let at = open.iter().rposition(|open| open.direction == direction);
        if let Some(at) = at
            && self.bags.calls[CLOSE].take(What::Call(Op::Close))
        {
            self.close(number, at);
        }
        self.call(number, op);
    }

    /// Whether the file used last has more to be read: what is read in sequence is seldom left before
    /// its end.
    fn is_within(&mut self, number: usize) -> bool {
        let Some(open) = self.streams[number].open.last() else { return false };
        if self.files.is_growing(open.data) {
            return false;
        }
        let end = self.files.length(open.data);
        let is_within = open.direction == READ && open.position.is_some_and(|at| at < end);
        is_within && self.bags.sizes[READ].left() > 0 && self.is_to_go_on(READ)
    }

    /// The open file that holds a page, and where in it a request that begins there lies.
    fn begin_at(
        &mut self,
        number: usize,
        direction: usize,
        (page, bytes): (usize, u64),
    ) -> Option<(usize, u64)> {
        let file = self.files.holding(page)?;
        let room = self.files.room(file);
        let from = page.checked_sub(self.files.get(file).from)? as u64 * PAGE_BYTES;
        let follows = self.bags.follows[direction] / self.bags.requests[direction].max(1.0);
        let crossed = self.crossings[direction].wants(bytes, follows, &mut self.chance);
        let within = match (crossed, bytes) {
            (Some(within), _) => within,
            (None, 0 | PAGE_BYTES..) => 0,
            (None, small) => self.chance.random_range(0..PAGE_BYTES / small) * small,
        };
        let step = self.bags.sizes[direction].step;
        let is_of_blocks = step > PAGE_BYTES && bytes.is_multiple_of(step);
        let is_aligned = crossed.is_none() && is_of_blocks && !self.files.is_growing(file);
        let from = if is_aligned { from - from % step } else { from };
        let mut offset = (from + within).min(room.saturating_sub(bytes));
        if direction == READ {
            // What nobody has written yet cannot be read.
            offset = offset.min(self.files.length(file).saturating_sub(bytes));
        }
        let open = self.streams[number].open.iter().position(|open| open.data == file);
        let at = match open {
            Some(at) => at,
            None => self.open(number, file),
        };
        // Where the one before ended, by accident: that is to go on, as long as some are to.
        if self.streams[number].open[at].position == Some(offset) {
            if self.bags.follows[direction] >= 1.0 {
                self.bags.follows[direction] -= 1.0;
            } else if offset >= bytes.max(PAGE_BYTES) {
                offset -= bytes.max(PAGE_BYTES);
            }
        }
        Some((at, offset))
    }

    /// Opens or makes a file, as calls of the bag as long as there are any.
    fn open(&mut self, number: usize, file: usize) -> usize {
        let op = if self.files.is_there(file) { Op::Open } else { Op::Create };
        self.bags.calls[OPEN].take(What::Call(op));
        self.open_by(number, file, op)
    }

    fn open_by(&mut self, number: usize, file: usize, op: Op) -> usize {
        self.files.open(file);
        if self.streams[number].open.len() >= OPEN_MAX {
            self.bags.calls[CLOSE].take(What::Call(Op::Close));
            self.close(number, 0);
        }
        self.handles += 1;
        let handle = self.handles;
        let event = self.put(number, op, self.files.get(file).id, handle);
        if op == Op::Create {
            event.flags = Flags::TRUNC;
            self.files.make(file);
        }
        let opened = Open { handle, data: file, position: None, direction: READ, is_dirty: false };
        self.streams[number].open.push(opened);
        self.streams[number].open.len() - 1
    }

    fn close(&mut self, number: usize, at: usize) {
        let Open { handle, data, .. } = self.streams[number].open.remove(at);
        self.put(number, Op::Close, self.files.get(data).id, handle);
    }

    fn use_last(&mut self, number: usize, at: usize) {
        let open = self.streams[number].open.remove(at);
        self.streams[number].open.push(open);
    }

    fn call(&mut self, number: usize, op: Op) {
        match op {
            Op::Sync | Op::Dsync => self.sync(number, op),
            // It begins to write and promises nothing: what is dirty stays so for the next sync.
            Op::Rsync => {
                let open = &self.streams[number].open;
                let dirty = open.iter().rposition(|open| open.is_dirty);
                if let Some(Open { handle, data, .. }) = dirty.map(|at| open[at]) {
                    self.put(number, op, self.files.get(data).id, handle);
                }
            }
            Op::Open => self.open_planned(number),
            Op::Create => self.create(number),
            Op::Close => {
                if let Some(last) = self.closed_next(number) {
                    let stream = &mut self.streams[number];
                    let file = stream.open[last].data;
                    stream.planned = stream.planned.filter(|page| {
                        self.files.holding(*page).is_some_and(|planned| planned != file)
                    });
                    self.close(number, last);
                }
            }
            Op::Lock => {
                if let Some(Open { handle, data, .. }) = self.streams[number].open.last().copied() {
                    self.put(number, op, self.files.get(data).id, handle);
                }
            }
            Op::Readdir => {
                let directories = &self.ground.directories;
                if !directories.is_empty() {
                    let directory = directories[self.chance.random_range(0..directories.len())];
                    self.put(number, op, directory, 0);
                }
            }
            Op::Stat | Op::Chattr | Op::Xattr => {
                if let Some(file) = self.some_file() {
                    let id = self.files.get(file).id;
                    self.put(number, op, id, 0);
                }
            }
            Op::Mmap => self.map(number),
            Op::Munmap => {
                if let Some(file) = self.mapped.files.pop() {
                    self.put(number, op, file, 0);
                }
            }
            _ => self.name(number, op),
        }
    }

    /// A file that is there, by chance.
    fn some_file(&mut self) -> Option<usize> {
        let count = self.files.count();
        let from = self.chance.random_range(0..count.max(1));
        (from..count).chain(0..from).find(|file| self.files.is_there(*file))
    }

    /// Calls on names: each is about a name of its own.
    fn name(&mut self, number: usize, op: Op) {
        let (first, count) = match op {
            Op::Rmdir => self.ground.spare_directories,
            _ => self.ground.spare,
        };
        let used = &mut self.spare_used[usize::from(op == Op::Rmdir)];
        if *used >= count {
            return;
        }
        let id = first + *used;
        *used += 1;
        let event = self.put(number, op, id, 0);
        match op {
            Op::LookupNeg => event.error = 2,
            Op::Rename => event.other = u64::from(id),
            _ => {}
        }
    }

    /// The page that a request begins at which does not go on where one ended.
    fn draw(&mut self, direction: usize) -> Option<usize> {
        let Bags { follows, requests, .. } = &self.bags;
        let jumps = 1.0 - (follows[direction] / requests[direction].max(1.0)).clamp(0.0, 1.0);
        let drawn_left = self.crossings[direction].touches_left() * jumps;
        if let Some(page) = self.places.draw(direction, drawn_left, &mut self.chance) {
            return Some(page);
        }
        if let Some(file) = self.files.begin(direction) {
            return Some(self.files.get(file).from);
        }
        // All files have begun: the last one grows on.
        let growing = self.files.growing(direction).filter(|file| self.files.is_growing(*file));
        let end = growing.map(|file| self.files.get(file)).map(|data| data.from + data.pages);
        end.filter(|page| *page < self.files.end_of(direction)).or_else(|| self.places.oldest())
    }

    fn sync(&mut self, number: usize, op: Op) {
        let kind = self.bags.syncs.draw(&mut self.chance).unwrap_or(Synced::Data);
        if kind == Synced::Directory && !self.ground.directories.is_empty() {
            let directory = self.ground.directories[0];
            self.put(number, op, directory, 0);
            return;
        }
        let open = &mut self.streams[number].open;
        let wants_dirty = kind == Synced::Data;
        let found = open.iter().rposition(|open| open.is_dirty == wants_dirty);
        let at = if let Some(at) = found.or_else(|| open.len().checked_sub(1)) {
            at
        } else {
            let Some(file) = self.some_file().or_else(|| self.files.next_made()) else { return };
            self.open(number, file)
        };
        let open = &mut self.streams[number].open[at];
        open.is_dirty = false;
        let Open { handle, data, .. } = *open;
        self.put(number, op, self.files.get(data).id, handle);
    }
}

/// Streams of the model itself.
fn streams_before(users: usize, scale: &Scale) -> f64 {
    (users as f64 / scale.users).max(1.0)
}

impl Iterator for Walk<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        while self.out.is_empty() {
            if !self.step() {
                return self.out.pop_front();
            }
        }
        self.out.pop_front()
    }
}
