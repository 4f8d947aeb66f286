//! From events to steps: which lane makes a call, how long after the one before, and what must have
//! ended before it.
//!
//! A call waits for
//! - the call before it in its stream; requests of a stream that overlapped run side by side in lanes
//!   of their own, each after the one that had ended last before it began;
//! - the call before it on its handle, by whichever stream, where that had ended before; otherwise for
//!   the one that opened the handle. A read waits only for the last call that was no read. Every other
//!   call, such as a close, waits for the last calls of two lanes, and a read by a third lane waits for
//!   the older of these two. So no lane closes a file that another lane still has to read;
//! - where it is about a name: the call before it on that file, and the one that made its directory;
//! - the birth of its stream, where another one started it;
//! - where its stream waited (for a child, a pipe, a lock of memory): the end of the child, or the call
//!   of another stream that went on for most of the wait and ended last before it did. Waits for which
//!   there is neither last as long as they did.
//!
//! All of these stand before it in the trace, so nobody waits for ever.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use ioscape_engine::replay::{Action, Kind};
use ioscape_model::{RequestClass, Spacing};
use ioscape_trace::{Event, Op, StreamEntry};

use super::action::{action, changes_names, is_of_name, kind, moves_bytes};
use super::step::{After, Call, Doing, Progress, Step};
use super::survey::{Surveyed, is_below_cache};
use super::{Load, Settings};

/// Events of other streams that may have ended a wait: the last so many are looked at.
const RECENT: usize = 256;
/// Lanes of one stream; more requests at a time wait for the one that ends first.
const LANES_MAX: usize = 256;

/// A call is waited for if it goes on for this share of the wait: any call that ended meanwhile, however
/// short, made a replay of two threads of `RocksDB` take 16 % too long, and this 6 %.
const CAUSE_SHARE: f64 = 0.5;

/// A step that was handed out.
#[derive(Clone, Debug)]
struct Handed {
    progress: Arc<Progress>,
    lane: u32,
    step: u64,
    start_ns: u64,
    end_ns: u64,
}

/// A lane: what is known of its last step.
#[derive(Debug, Default)]
struct Lane {
    progress: Arc<Progress>,
    steps: u64,
    end_ns: u64,
}

#[derive(Debug, Default)]
struct Stream {
    process: u32,
    parent: u32,
    lanes: Vec<u32>,
    /// When it was started, where another one did that.
    born: Option<Handed>,
    /// It waited, and what for is not known yet.
    waited: Option<(u64, u64)>,
    /// A stream that it had started ended.
    child_ended: Option<Handed>,
    /// On a processor since its last step.
    busy_ns: u64,
    made_calls: bool,
    /// Events since its last step that became none.
    passed_over: u64,
}

#[derive(Clone, Debug)]
struct Opened {
    by: Handed,
    last: Handed,
    /// The last one that may have changed what is read.
    changed: Handed,
    /// The last one of another lane than `last`.
    other: Option<Handed>,
    /// Where the last transfer ended.
    position: u64,
}

#[derive(Clone, Debug, Default)]
struct Named {
    last: Option<Handed>,
    made: Option<Handed>,
}

/// Output of the planner.
pub(super) enum Said {
    /// A lane has a step to make.
    Step(u32, Step),
    /// A lane has made its last one.
    Ended(u32),
}

/// Makes steps of events.
pub(super) struct Planner<'a> {
    surveyed: &'a Surveyed,
    spacing: Spacing,
    speed: f64,
    below_cache: bool,
    /// Time that recording added between two calls.
    overhead_ns: u64,
    lanes: HashMap<u32, Lane>,
    lanes_made: u32,
    streams: HashMap<u32, Stream>,
    handles: HashMap<u32, Opened>,
    /// Open handles of each process.
    open: HashMap<u32, HashSet<u32>>,
    files: Vec<Named>,
    recent: VecDeque<(u32, Handed)>,
    passed_over: u64,
    streams_with_calls: u64,
}

impl<'a> Planner<'a> {
    pub(super) fn new(load: &dyn Load, surveyed: &'a Surveyed, settings: &Settings) -> Self {
        let stream = |entry: &StreamEntry| {
            let (process, parent) = (entry.process, entry.parent);
            (entry.id, Stream { process, parent, ..Stream::default() })
        };
        Self {
            surveyed,
            spacing: settings.spacing,
            speed: settings.speed,
            below_cache: is_below_cache(load.info().layer),
            overhead_ns: (load.info().overhead_s * 0.5e9) as u64,
            lanes: HashMap::new(),
            lanes_made: 0,
            streams: load.streams().iter().map(stream).collect(),
            handles: HashMap::new(),
            open: HashMap::new(),
            files: vec![Named::default(); surveyed.stage_files().len()],
            recent: VecDeque::new(),
            passed_over: 0,
            streams_with_calls: 0,
        }
    }

    /// Events that became no call.
    pub(super) fn passed_over(&self) -> u64 {
        self.passed_over
    }

    /// Streams that made calls.
    pub(super) fn streams(&self) -> u64 {
        self.streams_with_calls
    }

    /// Takes an event.
    pub(super) fn take(&mut self, event: &Event, say: &mut dyn FnMut(Said)) {
        self.settle_wait(event, say);
        let stream = self.streams.entry(event.stream).or_default();
        stream.busy_ns += event.cpu_gap_ns.unwrap_or(0);
        match event.op {
            Op::Fork => return self.fork(event, say),
            Op::Exit => return self.exit(event, say),
            _ => {}
        }
        let is_staged =
            event.file == 0 && event.op == Op::Sync || self.surveyed.is_staged(event.file);
        match kind(event) {
            Some(kind) if is_staged => self.call(event, kind, say),
            _ => self.pass_over(event),
        }
    }

    /// No call: it was waited for somebody, or the program was at work.
    fn pass_over(&mut self, event: &Event) {
        self.passed_over += 1;
        let stream = self.streams.entry(event.stream).or_default();
        stream.passed_over += 1;
        let duration_ns = event.duration_ns.unwrap_or(0);
        let end_ns = event.start_ns.saturating_add(duration_ns);
        match event.op {
            Op::Wait | Op::Read | Op::Lock => stream.waited = Some((event.start_ns, end_ns)),
            _ => stream.busy_ns += duration_ns,
        }
    }

    /// Once a stream goes on, it is known for whom it had waited.
    fn settle_wait(&mut self, event: &Event, say: &mut dyn FnMut(Said)) {
        let Some(stream) = self.streams.get_mut(&event.stream) else { return };
        let Some((from_ns, to_ns)) = stream.waited.take() else { return };
        let child = stream.child_ended.take_if(|ended| ended.end_ns <= to_ns);
        let other = || {
            let ended = self.recent.iter().filter(|(stream, handed)| {
                let waited_ns = handed.end_ns.saturating_sub(handed.start_ns.max(from_ns));
                *stream != event.stream
                    && (from_ns + 1..=to_ns).contains(&handed.end_ns)
                    && waited_ns as f64 >= CAUSE_SHARE * (to_ns - from_ns) as f64
            });
            ended.max_by_key(|(_, handed)| handed.end_ns).map(|(_, handed)| handed.clone())
        };
        let Some(before) = child.or_else(other) else { return };
        // The wait itself becomes a step.
        if let Some(stream) = self.streams.get_mut(&event.stream) {
            stream.passed_over = stream.passed_over.saturating_sub(1);
        }
        let after_ns = to_ns - before.end_ns.max(from_ns);
        let doing = Doing::Pause(self.scaled(after_ns));
        self.hand_out((event.stream, from_ns, to_ns), doing, [Some(before), None], say);
    }

    fn fork(&mut self, event: &Event, say: &mut dyn FnMut(Said)) {
        self.passed_over += 1;
        let at = (event.stream, event.start_ns, event.start_ns);
        let born = self.hand_out(at, Doing::Pause(0), [None, None], say);
        let child = u32::try_from(event.other).unwrap_or(0);
        self.streams.entry(child).or_default().born = Some(born);
    }

    fn exit(&mut self, event: &Event, say: &mut dyn FnMut(Said)) {
        self.passed_over += 1;
        let at = (event.stream, event.start_ns, event.start_ns);
        let ended = self.hand_out(at, Doing::Pause(0), [None, None], say);
        let Some(stream) = self.streams.remove(&event.stream) else { return };
        // What a process never closed is closed when its first thread ends.
        if stream.process == event.stream {
            for handle in self.open.remove(&stream.process).into_iter().flatten() {
                self.handles.remove(&handle);
                let doing = Doing::Release(handle);
                let step = Step { doing, gap_ns: 0, busy_ns: 0, due_ns: 0, after: [None, None] };
                say(Said::Step(ended.lane, step));
                if let Some(lane) = self.lanes.get_mut(&ended.lane) {
                    lane.steps += 1;
                }
            }
        }
        for lane in stream.lanes {
            self.lanes.remove(&lane);
            say(Said::Ended(lane));
        }
        if let Some(parent) = self.streams.get_mut(&stream.parent) {
            parent.child_ended = Some(ended);
        }
    }

    fn call(&mut self, event: &Event, kind: Kind, say: &mut dyn FnMut(Said)) {
        let action = action(event, kind, self.below_cache);
        let class = self.class(event, &action);
        let call = Call { action, op: event.op, class, error: event.error, bytes: event.length };
        let end_ns = event.start_ns.saturating_add(event.duration_ns.unwrap_or(0));
        let lane = self.lane(event.stream, event.start_ns);
        let after = self.dependencies(event, &action, lane);
        let at = (event.stream, event.start_ns, end_ns);
        let handed = self.hand_out(at, Doing::Call(call), after, say);
        let stream = self.streams.entry(event.stream).or_default();
        self.streams_with_calls += u64::from(!stream.made_calls);
        stream.made_calls = true;
        let process = stream.process;
        self.remember(event, &action, process, &handed);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back((event.stream, handed));
    }

    /// Read or write, in sequence or not, seen from the one before of its handle.
    fn class(&mut self, event: &Event, action: &Action) -> Option<RequestClass> {
        if !moves_bytes(action.kind) || event.error != 0 {
            return None;
        }
        let before = self.handles.get(&event.handle).map(|opened| opened.position);
        let follows = before == Some(event.offset);
        Some(match (action.kind == Kind::Write, follows) {
            (false, true) => RequestClass::ReadSeq,
            (false, false) => RequestClass::ReadRand,
            (true, true) => RequestClass::WriteSeq,
            (true, false) => RequestClass::WriteRand,
        })
    }

    /// Steps of others that must have ended before.
    fn dependencies(&self, event: &Event, action: &Action, lane: u32) -> [Option<Handed>; 2] {
        let has_ended = |handed: &&Handed| handed.end_ns <= event.start_ns;
        let opened = self.handles.get(&event.handle).filter(|_| event.handle != 0);
        let of_handle = opened.map(|opened| {
            let last = if action.kind == Kind::Read { &opened.changed } else { &opened.last };
            if has_ended(&last) { last.clone() } else { opened.by.clone() }
        });
        if !is_of_name(action.kind) {
            let other = opened.and_then(|opened| {
                let other = opened.other.as_ref().filter(has_ended)?;
                let is_third = ![opened.last.lane, other.lane].contains(&lane);
                (action.kind != Kind::Read || is_third).then(|| other.clone())
            });
            return [of_handle, other];
        }
        let file = self.files.get(event.file as usize);
        let of_file = file.and_then(|file| file.last.as_ref()).filter(has_ended).cloned();
        let directory = self.surveyed.directory(event.file) as usize;
        let of_directory = self.files.get(directory).and_then(|file| file.made.as_ref());
        let of_directory = of_directory.filter(has_ended).cloned();
        [of_file.or(of_handle), of_directory]
    }

    fn remember(&mut self, event: &Event, action: &Action, process: u32, handed: &Handed) {
        if event.handle != 0 {
            match action.kind {
                Kind::Close => drop(self.handles.remove(&event.handle)),
                _ => self.remember_handle(event, action, handed),
            }
            let open = self.open.entry(process).or_default();
            match action.kind {
                Kind::Open | Kind::Create => drop(open.insert(event.handle)),
                Kind::Close => drop(open.remove(&event.handle)),
                _ => {}
            }
        }
        let makes = matches!(action.kind, Kind::MakeDirectory | Kind::Rename);
        if let Some(file) = self.files.get_mut(event.file as usize) {
            file.last = Some(handed.clone());
            if makes {
                file.made = Some(handed.clone());
            }
        }
        if changes_names(action.kind) {
            let others = [self.surveyed.directory(event.file), action.other as u32];
            for other in others.into_iter().filter(|other| *other != 0) {
                if let Some(file) = self.files.get_mut(other as usize) {
                    file.last = Some(handed.clone());
                }
            }
        }
    }

    fn remember_handle(&mut self, event: &Event, action: &Action, handed: &Handed) {
        let end = event.offset.saturating_add(event.length);
        let moves = moves_bytes(action.kind);
        if let Some(opened) = self.handles.get_mut(&event.handle) {
            let last = std::mem::replace(&mut opened.last, handed.clone());
            if last.lane != handed.lane {
                opened.other = Some(last);
            }
            if action.kind != Kind::Read {
                opened.changed = handed.clone();
            }
            if moves {
                opened.position = end;
            }
        } else {
            let position = if moves { end } else { u64::MAX };
            let [by, last, changed] = [(); 3].map(|()| handed.clone());
            let opened = Opened { by, last, changed, other: None, position };
            self.handles.insert(event.handle, opened);
        }
    }

    fn scaled(&self, ns: u64) -> u64 {
        match self.spacing {
            Spacing::None => 0,
            _ => (ns as f64 / self.speed) as u64,
        }
    }

    /// Hands a step to the lane of its stream that had ended last before it began.
    fn hand_out(
        &mut self,
        (stream, start_ns, end_ns): (u32, u64, u64),
        doing: Doing,
        mut after: [Option<Handed>; 2],
        say: &mut dyn FnMut(Said),
    ) -> Handed {
        let number = self.lane(stream, start_ns);
        let of_stream = self.streams.entry(stream).or_default();
        let busy_ns = std::mem::take(&mut of_stream.busy_ns);
        let born = of_stream.born.take();
        // An event between two steps cost as much before it as after it.
        let events = 1 + 2 * std::mem::take(&mut of_stream.passed_over);
        let overhead_ns = self.overhead_ns.saturating_mul(events);
        let lane = self.lanes.entry(number).or_default();
        let mut before_ns = lane.end_ns;
        if let Some(born) = born {
            before_ns = before_ns.max(born.end_ns);
            // One of the three comes first in any case: whoever is born later waits for less.
            after[1] = after[1].take().or(Some(born));
        }
        lane.steps += 1;
        lane.end_ns = end_ns.max(lane.end_ns);
        let progress = Arc::clone(&lane.progress);
        let handed = Handed { progress, lane: number, step: lane.steps, start_ns, end_ns };
        let gap_ns = start_ns.saturating_sub(before_ns).saturating_sub(overhead_ns);
        let step = Step {
            doing,
            gap_ns: self.scaled(gap_ns),
            busy_ns: self.scaled(busy_ns.min(gap_ns)),
            due_ns: self.scaled(start_ns),
            after: after.map(|after| after_other(after?, number)),
        };
        say(Said::Step(number, step));
        handed
    }

    fn lane(&mut self, stream: u32, start_ns: u64) -> u32 {
        let of_stream = self.streams.entry(stream).or_default();
        let end_of = |lane: &u32| self.lanes.get(lane).map_or(0, |lane| lane.end_ns);
        let free = of_stream.lanes.iter().filter(|lane| end_of(lane) <= start_ns);
        if let Some(free) = free.max_by_key(|lane| end_of(lane)) {
            return *free;
        }
        if of_stream.lanes.len() >= LANES_MAX
            && let Some(first) = of_stream.lanes.iter().min_by_key(|lane| end_of(lane))
        {
            return *first;
        }
        self.lanes_made += 1;
        of_stream.lanes.push(self.lanes_made);
        self.lanes.insert(self.lanes_made, Lane::default());
        self.lanes_made
    }

    /// The lane's progress, to be told by whoever makes its steps.
    pub(super) fn progress(&self, lane: u32) -> Arc<Progress> {
        self.lanes.get(&lane).map_or_else(Arc::default, |lane| Arc::clone(&lane.progress))
    }
}

/// A step of another lane: a lane makes its own steps in order anyway.
fn after_other(handed: Handed, own: u32) -> Option<After> {
    let Handed { progress, lane, step, .. } = handed;
    (lane != own).then_some(After { lane: progress, step })
}
