//! An event with what had to be remembered to understand it: which file it is about, what the one
//! before of its handle, its stream and its file was. The state is here; counting is in `tally`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use super::dirty::{Dirty, Synced};
use crate::{Event, FileEntry, FileKind, Flags, Layer, Op};

/// `PROT_EXEC` in an `Mmap` event's second number.
const PROT_EXEC: u64 = 4;
/// The class of programs and libraries.
const PROGRAM: &str = "program";
/// A gap of this size between requests is still read-ahead's business, bytes.
const FORWARD_BYTES_MAX: u64 = 128 << 10;
/// Ends of requests that are remembered where nobody knows handles.
const DEVICE_ENDS: usize = 32;
/// Requests in flight that are followed per stream.
const FLIGHT_MAX: usize = 4096;

/// Read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Read,
    Write,
}

/// Where a request lies, seen from the one before of its handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RelativePosition {
    /// There was none before.
    First,
    /// Where it ended.
    Follows { same_direction: bool },
    /// A little further on.
    Forward,
    /// Before it.
    Backward,
    /// At the distance between the two before.
    Strided,
    /// Anywhere.
    Elsewhere,
}

/// A read or write that moved bytes of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub(super) direction: Direction,
    pub(super) file: u32,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    pub(super) place: RelativePosition,
}

/// A class of calls, for what follows what.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Class {
    Read,
    Write,
    Sync,
    Open,
    Close,
    Look,
    Change,
    Map,
    Other,
}

impl Class {
    /// The word in a model.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Sync => "sync",
            Self::Open => "open",
            Self::Close => "close",
            Self::Look => "look",
            Self::Change => "change",
            Self::Map => "map",
            Self::Other => "other",
        }
    }

    pub(crate) const fn holding(op: Op) -> Self {
        match op {
            Op::Read | Op::Sendfile | Op::Get | Op::Req => Self::Read,
            Op::Write | Op::Copy | Op::Set => Self::Write,
            Op::Sync | Op::Dsync | Op::Rsync | Op::Msync | Op::Flush => Self::Sync,
            Op::Open | Op::Create => Self::Open,
            Op::Close => Self::Close,
            Op::Stat | Op::LookupNeg | Op::Readdir | Op::Readlink => Self::Look,
            Op::Unlink | Op::Rename | Op::Mkdir | Op::Rmdir | Op::Link | Op::Symlink => {
                Self::Change
            }
            Op::Chattr | Op::Xattr | Op::Trunc | Op::Falloc | Op::Punch | Op::Del => Self::Change,
            Op::Mmap | Op::Munmap | Op::FaultR | Op::FaultW => Self::Map,
            _ => Self::Other,
        }
    }
}

/// What a file is, as far as counting goes.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) kind: FileKind,
    pub(super) class: String,
    pub(super) directory: u32,
    pub(super) depth: u16,
    pub(super) length: u64,
    pub(super) is_program: bool,
}

/// Time between a call of a stream and the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    pub(super) from_ns: u64,
    pub(super) length_ns: u64,
    pub(super) processor_ns: Option<u64>,
    /// Whether the stream was at it all along: it did some work between two calls, or would have
    /// had it been given a processor.
    pub(super) is_active: bool,
}

/// From the start of a stream's request to the start of its next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    /// Spent in the request, and in calls to storage that follow it: a sync, most of all.
    pub(super) duration_ns: u64,
    pub(super) gap_ns: u64,
}

/// An event and what it means.
pub(super) struct Seen<'a> {
    pub(super) event: &'a Event,
    pub(super) class: Class,
    pub(super) requests: [Option<Request>; 2],
    /// Whether it is about storage, and no wait for others.
    pub(super) is_storage: bool,
    pub(super) is_program: bool,
    pub(super) synced: Option<Synced>,
    pub(super) gap: Option<Gap>,
    pub(super) arrival: Option<Arrival>,
    /// Requests of its stream in flight with this one, where it was not waited for.
    pub(super) in_flight: Option<usize>,
    pub(super) class_before: Option<Class>,
    /// Of a call on names: whether in the directory of the one before, and how deep.
    pub(super) place_of_name: Option<(bool, u16)>,
}

#[derive(Debug, Default)]
struct Cursor {
    end: u64,
    start: u64,
    stride: i64,
    direction: Option<Direction>,
}

#[derive(Debug, Default)]
struct Stream {
    last_end_ns: Option<u64>,
    last_class: Option<Class>,
    last_was_storage: bool,
    /// When it began, and time in calls to storage since.
    last_request: Option<(u64, u64)>,
    last_directory: u32,
    mean_call_ns: f64,
    usual_gap_ns: f64,
    in_flight: BinaryHeap<Reverse<u64>>,
}

/// Remembers what is needed to understand the next event.
#[derive(Debug, Default)]
pub(super) struct Memory {
    layer: Layer,
    files: HashMap<u32, Known>,
    cursors: HashMap<u64, Cursor>,
    device_ends: HashMap<u32, Vec<u64>>,
    copied_to: HashMap<u32, u64>,
    streams: HashMap<u32, Stream>,
    pub(super) dirty: Dirty,
    unknown: Known,
}

impl Memory {
    pub(super) fn new(layer: Layer) -> Self {
        let kind = match layer {
            Layer::Block => FileKind::Block,
            Layer::KeyValue | Layer::Http => FileKind::Object,
            Layer::Syscall | Layer::Library | Layer::File => FileKind::Regular,
        };
        let unknown = Known { kind, ..Known::default() };
        Self { layer, unknown, ..Self::default() }
    }

    pub(super) fn file(&mut self, entry: FileEntry) {
        let before = self.files.remove(&entry.id);
        let is_program = before.is_some_and(|known| known.is_program) || entry.class == PROGRAM;
        let known = Known {
            kind: entry.kind,
            class: entry.class,
            directory: entry.directory,
            depth: entry.depth,
            length: entry.first_bytes,
            is_program,
        };
        self.files.insert(entry.id, known);
    }

    pub(super) fn known(&self, file: u32) -> &Known {
        self.files.get(&file).unwrap_or(&self.unknown)
    }

    /// Whether bytes of it are data on storage. Calls that name no file are not, but where the
    /// format knows none.
    fn holds_data(&self, file: u32) -> bool {
        let knows_files = matches!(self.layer, Layer::Syscall | Layer::Library);
        if file == 0 && knows_files {
            return false;
        }
        matches!(self.known(file).kind, FileKind::Regular | FileKind::Block | FileKind::Object)
    }

    /// Understands an event.
    pub(super) fn see<'a>(&mut self, event: &'a Event) -> Seen<'a> {
        self.remember_programs(event);
        let class = Class::holding(event.op);
        let requests = self.requests(event);
        let synced = self.durability(event, requests);
        let is_storage = self.is_storage(event);
        let is_program = self.known(event.file).is_program;
        let (directory, depth) = match self.files.get(&event.file) {
            Some(known) => (known.directory, known.depth),
            None => (0, 0),
        };
        let stream = self.streams.entry(event.stream).or_default();
        let gap = stream.gap(event);
        let class_before = stream.last_class;
        let is_request = requests.iter().any(Option::is_some);
        let arrival = if is_request { stream.arrival(event) } else { None };
        let is_async = event.flags.has(Flags::ASYNC);
        let in_flight = (is_async && is_request).then(|| stream.fly(event));
        let is_of_names = matches!(class, Class::Open | Class::Look | Class::Change);
        let place_of_name = (is_of_names && directory != 0).then(|| {
            let same = stream.last_directory == directory;
            stream.last_directory = directory;
            (same, depth)
        });
        stream.remember(event, (class, is_storage, is_request), gap);
        if event.op == Op::Close {
            self.cursors.remove(&u64::from(event.handle));
        }
        Seen {
            event,
            class,
            requests,
            is_storage,
            is_program,
            synced,
            gap,
            arrival,
            in_flight,
            class_before,
            place_of_name,
        }
    }

    fn remember_programs(&mut self, event: &Event) {
        let is_text = match event.op {
            Op::Exec => event.error == 0,
            Op::Mmap => event.other & PROT_EXEC != 0,
            _ => false,
        };
        if is_text && let Some(known) = self.files.get_mut(&event.file) {
            known.is_program = true;
        }
    }

    fn is_storage(&self, event: &Event) -> bool {
        if matches!(event.op, Op::Wait | Op::Fork | Op::Exit | Op::Exec | Op::Lock) {
            return false;
        }
        let kind = self.files.get(&event.file).map(|known| known.kind);
        !matches!(kind, Some(FileKind::Other | FileKind::Pseudo))
    }

    /// The reads and writes that an event is.
    fn requests(&mut self, event: &Event) -> [Option<Request>; 2] {
        if event.error != 0 || event.length == 0 {
            return [None, None];
        }
        match event.op {
            Op::Read | Op::Get | Op::Sendfile => [self.request(event, Direction::Read), None],
            Op::Write | Op::Set => [self.request(event, Direction::Write), None],
            Op::Copy => [self.request(event, Direction::Read), self.copied(event)],
            _ => [None, None],
        }
    }

    fn request(&mut self, event: &Event, direction: Direction) -> Option<Request> {
        if !self.holds_data(event.file) {
            return None;
        }
        let (offset, bytes) = (event.offset, event.length);
        let place = if event.handle == 0 && self.layer == Layer::Block {
            self.place_on_device(event.file, offset, bytes)
        } else {
            let handle = match event.handle {
                0 => 1 << 63 | u64::from(event.stream) << 32 | u64::from(event.file),
                handle => u64::from(handle),
            };
            self.cursors.entry(handle).or_default().place(offset, bytes, direction)
        };
        Some(Request { direction, file: event.file, offset, bytes, place })
    }

    /// The writing half of a copy: where the copy before into this file ended.
    fn copied(&mut self, event: &Event) -> Option<Request> {
        let file = u32::try_from(event.other).ok()?;
        if !self.holds_data(file) {
            return None;
        }
        let end = self.copied_to.entry(file).or_default();
        let offset = *end;
        *end += event.length;
        let place = match offset {
            0 => RelativePosition::First,
            _ => RelativePosition::Follows { same_direction: true },
        };
        Some(Request { direction: Direction::Write, file, offset, bytes: event.length, place })
    }

    fn place_on_device(&mut self, device: u32, offset: u64, bytes: u64) -> RelativePosition {
        let ends = self.device_ends.entry(device).or_default();
        let found = ends.iter().position(|end| *end == offset);
        let is_first = ends.is_empty();
        match found {
            Some(at) => drop(ends.remove(at)),
            None if ends.len() >= DEVICE_ENDS => drop(ends.remove(0)),
            None => {}
        }
        ends.push(offset.saturating_add(bytes));
        match found {
            Some(_) => RelativePosition::Follows { same_direction: true },
            None if is_first => RelativePosition::First,
            None => RelativePosition::Elsewhere,
        }
    }

    fn durability(&mut self, event: &Event, requests: [Option<Request>; 2]) -> Option<Synced> {
        for request in requests.iter().flatten() {
            if request.direction == Direction::Write {
                let length = self.known(request.file).length;
                self.dirty.written(request.file, request.offset, request.bytes, length);
            }
        }
        if event.error != 0 {
            return None;
        }
        match event.op {
            Op::Create | Op::Open if event.op == Op::Create || event.flags.has(Flags::TRUNC) => {
                self.dirty.created(event.file);
                self.copied_to.remove(&event.file);
            }
            Op::Unlink => self.dirty.gone(event.file),
            Op::Sync | Op::Dsync => {
                let is_directory = self.known(event.file).kind == FileKind::Directory;
                return Some(self.dirty.synced(event.file, is_directory));
            }
            _ => {}
        }
        None
    }
}

impl Cursor {
    fn place(&mut self, offset: u64, bytes: u64, direction: Direction) -> RelativePosition {
        let stride = offset.cast_signed().wrapping_sub(self.start.cast_signed());
        let place = match self.direction {
            None => RelativePosition::First,
            Some(before) if offset == self.end => {
                RelativePosition::Follows { same_direction: before == direction }
            }
            Some(_) if stride == self.stride && stride != 0 => RelativePosition::Strided,
            Some(_) if offset < self.start => RelativePosition::Backward,
            Some(_)
                if offset.saturating_sub(self.end) <= FORWARD_BYTES_MAX && offset > self.end =>
            {
                RelativePosition::Forward
            }
            Some(_) => RelativePosition::Elsewhere,
        };
        *self = Self {
            end: offset.saturating_add(bytes),
            start: offset,
            stride,
            direction: Some(direction),
        };
        place
    }
}

/// How much a new value weighs in a running mean.
const NEW_WEIGHT: f64 = 1.0 / 64.0;
/// Work between two calls that is short whatever the calls take, ns.
const SHORT_WORK_NS: f64 = 20_000.0;
/// Longer than any turn that another program is given a processor for, ns.
const TURN_NS: u64 = 100_000_000;

impl Stream {
    /// Time since the call before. Where processor time is known, time off the processor without
    /// any call is time in which another had it; where not, a gap counts as work if gaps of this
    /// stream are usually short.
    fn gap(&self, event: &Event) -> Option<Gap> {
        let from_ns = self.last_end_ns?;
        let length_ns = event.start_ns.checked_sub(from_ns)?;
        let short_ns = (2.0 * self.mean_call_ns).max(SHORT_WORK_NS);
        let is_short = match event.cpu_gap_ns {
            Some(work_ns) => work_ns as f64 <= short_ns,
            None => self.usual_gap_ns <= short_ns,
        };
        let is_active = self.last_was_storage && is_short && length_ns <= TURN_NS;
        Some(Gap { from_ns, length_ns, processor_ns: event.cpu_gap_ns, is_active })
    }

    fn arrival(&mut self, event: &Event) -> Option<Arrival> {
        let now = (event.start_ns, event.duration_ns?);
        let (start_ns, duration_ns) = self.last_request.replace(now)?;
        Some(Arrival { duration_ns, gap_ns: event.start_ns.saturating_sub(start_ns) })
    }

    /// Notes a request in flight; how many there are with it.
    fn fly(&mut self, event: &Event) -> usize {
        while self.in_flight.peek().is_some_and(|Reverse(end)| *end <= event.start_ns) {
            self.in_flight.pop();
        }
        if self.in_flight.len() < FLIGHT_MAX {
            let end = event.start_ns.saturating_add(event.duration_ns.unwrap_or(0));
            self.in_flight.push(Reverse(end));
        }
        self.in_flight.len()
    }

    fn remember(
        &mut self,
        event: &Event,
        (class, is_storage, is_request): (Class, bool, bool),
        gap: Option<Gap>,
    ) {
        let duration_ns = event.duration_ns.unwrap_or(0);
        if let Some(gap) = gap {
            let shown = gap.length_ns.min(1_000_000) as f64;
            self.usual_gap_ns += NEW_WEIGHT * (shown - self.usual_gap_ns);
        }
        if is_storage {
            self.mean_call_ns += NEW_WEIGHT * (duration_ns as f64 - self.mean_call_ns);
        }
        let is_waited_for = !event.flags.has(Flags::ASYNC);
        let in_call_ns = if is_waited_for { duration_ns } else { 0 };
        if let Some((_, until_next_ns)) = &mut self.last_request
            && is_storage
            && !is_request
        {
            *until_next_ns += in_call_ns;
        }
        let end = event.start_ns.saturating_add(in_call_ns);
        self.last_end_ns = Some(self.last_end_ns.map_or(end, |before| before.max(end)));
        self.last_class = Some(class);
        self.last_was_storage = is_storage;
    }
}
