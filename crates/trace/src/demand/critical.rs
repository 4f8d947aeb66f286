//! How much of the time of each category lies on the way from start to end. Where several streams
//! are at it, each has its part of every second: the shares of all add up to the time that passed,
//! less the time in which all of them waited.
//!
//! One sweep over the events by time. `shared_ns` is how much a stream that was at it all along would
//! have had so far; the share of a stretch is its difference between the ends.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use ioscape_model::app::{OverlapRung, Work};

use super::classify::{FAULT, Operation};
use super::look::Idle;
use crate::{Event, Flags, Op, StreamEntry};

/// Time of a category.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Time {
    shared_ns: f64,
    busy_ns: f64,
    calls: u64,
    recording_ns: f64,
}

impl Time {
    /// Share of it on the critical path.
    pub(super) fn critical_frac(&self) -> f64 {
        if self.busy_ns > 0.0 { (self.shared_ns / self.busy_ns).min(1.0) } else { 1.0 }
    }

    /// Mean time of an operation, less what recording cost, seconds.
    pub(super) fn mean_s(&self) -> Option<f64> {
        let net_ns = (self.busy_ns - self.recording_ns).max(0.0);
        (self.calls > 0).then(|| net_ns / self.calls as f64 / 1e9)
    }
}

/// Results of the sweep.
#[derive(Debug, Default)]
pub(super) struct Timed {
    pub(super) categories: BTreeMap<&'static str, Time>,
    pub(super) work: Work,
    pub(super) streams: u64,
    pub(super) elapsed_s: f64,
    pub(super) sequential_bytes: u64,
    pub(super) overlap: Vec<OverlapRung>,
}

#[derive(Debug, Default)]
struct Stream {
    /// When the call before ended.
    end_ns: u64,
    /// `shared_ns` at that time.
    mark_ns: f64,
    is_at_it: bool,
    faulted: bool,
    /// Stretches in which it waited outside of calls; the next one.
    idle_at: usize,
}

/// An event of the sweep at a time that is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A call of a stream ends, that had so many bits of `shared_ns` at its start.
    End { stream: u32, category: &'static str, mark_bits: u64, start_ns: u64 },
    /// A stream that no other started begins.
    Born { stream: u32 },
    /// A wait of a stream ends.
    Awake { stream: u32 },
    /// A stream ends.
    Gone { stream: u32 },
    /// A request that nobody waited for in a call ends.
    Landed { category: &'static str, mark_bits: u64, start_ns: u64 },
}

/// The sweep.
#[derive(Debug)]
pub(super) struct Critical {
    now_ns: u64,
    at_it: u32,
    shared_ns: f64,
    due: BinaryHeap<Reverse<(u64, Due)>>,
    streams: HashMap<u32, Stream>,
    idle: Idle,
    overhead_ns: f64,
    /// Processors; none are known where nobody said.
    cpus: u32,
    /// Of each open file: where the read before ended, what had been shared at its start, and how long
    /// it took.
    reads: HashMap<u32, (u64, f64, u64)>,
    /// What had been shared when a read of any file ended last.
    read_ns: f64,
    /// Time between reads of all files together, and between those of each file by limit.
    between_ns: f64,
    between_by_limit_ns: [f64; LIMITS_NS.len()],
    timed: Timed,
}

/// What counts of a stretch between two reads at most: from what memory to what a slow disk takes for
/// the 128 KiB that read-ahead fetches.
const LIMITS_NS: [f64; 8] = [1e4, 4e4, 1.6e5, 6.4e5, 2.56e6, 1.024e7, 4.096e7, 1.6384e8];

/// Recording costs about as much before a call is timed as within it: half is in the call's time.
const OVERHEAD_IN_CALL: f64 = 0.5;

impl Critical {
    pub(super) fn new(
        streams: &[StreamEntry],
        idle: Idle,
        (overhead_ns, cpus): (f64, u32),
    ) -> Self {
        // Those that no other started, or that nobody saw being started.
        let roots = streams.iter().filter(|stream| stream.parent == 0);
        let born = roots.map(|root| (root.start_ns, Due::Born { stream: root.id }));
        // Formats without events for ends know when a stream was last seen.
        let ended = streams.iter().filter(|stream| stream.end_ns > 0);
        let gone = ended.map(|stream| (stream.end_ns, Due::Gone { stream: stream.id }));
        Self {
            now_ns: 0,
            at_it: 0,
            shared_ns: 0.0,
            due: born.chain(gone).map(Reverse).collect(),
            streams: HashMap::new(),
            idle,
            overhead_ns,
            cpus,
            reads: HashMap::new(),
            read_ns: 0.0,
            between_ns: 0.0,
            between_by_limit_ns: [0.0; LIMITS_NS.len()],
            timed: Timed::default(),
        }
    }

    /// Takes the next event.
    pub(super) fn event(&mut self, event: &Event, operation: &Operation) {
        self.go_on_to(event.start_ns);
        self.begin(event.stream);
        match (event.op, operation) {
            (Op::FaultR | Op::FaultW, _) => self.fault(event),
            (Op::Fork, _) => {
                self.gap(event);
                if let Ok(child) = u32::try_from(event.other) {
                    self.begin(child);
                }
            }
            (Op::Exit, _) => {
                self.gap(event);
                self.end(event.stream);
            }
            (_, Operation::Mark) => self.gap(event),
            (_, Operation::Of(category)) if event.flags.has(Flags::ASYNC) => {
                self.fly(event, category);
            }
            (_, Operation::Of(category)) => self.call(event, category),
            (_, Operation::Wait) => self.wait(event),
        }
    }

    /// The end of the trace.
    pub(super) fn finish(&mut self, end_ns: u64) -> Timed {
        self.go_on_to(end_ns);
        while let Some(Reverse((at_ns, due))) = self.due.pop() {
            self.advance(at_ns);
            self.happen(at_ns, due);
        }
        let mut timed = std::mem::take(&mut self.timed);
        timed.elapsed_s = self.now_ns as f64 / 1e9;
        timed.streams = self.streams.len() as u64;
        // Several files' stretches lie over each other: no more than all the time can be used.
        let rung = |(limit_ns, between_ns): (f64, f64)| OverlapRung {
            limit_s: limit_ns / 1e9,
            seconds: between_ns.min(self.between_ns) / 1e9,
        };
        timed.overlap = LIMITS_NS.into_iter().zip(self.between_by_limit_ns).map(rung).collect();
        timed
    }

    fn go_on_to(&mut self, time_ns: u64) {
        while let Some(Reverse((at_ns, due))) = self.due.peek().copied() {
            if at_ns > time_ns {
                break;
            }
            self.due.pop();
            self.advance(at_ns);
            self.happen(at_ns, due);
        }
        self.advance(time_ns);
    }

    fn advance(&mut self, to_ns: u64) {
        let passed_ns = to_ns.saturating_sub(self.now_ns) as f64;
        if self.at_it > 0 {
            self.shared_ns += passed_ns / f64::from(self.at_it);
        } else {
            self.timed.work.idle_s += passed_ns / 1e9;
        }
        self.now_ns = self.now_ns.max(to_ns);
    }

    fn happen(&mut self, at_ns: u64, due: Due) {
        match due {
            Due::End { stream, category, mark_bits, start_ns } => {
                self.account(category, mark_bits, at_ns - start_ns);
                let mark_ns = self.shared_ns;
                if let Some(stream) = self.streams.get_mut(&stream) {
                    (stream.end_ns, stream.mark_ns) = (at_ns, mark_ns);
                }
                self.look_ahead(stream, at_ns);
            }
            Due::Born { stream } => self.begin(stream),
            Due::Gone { stream } => {
                self.close_gap(stream, at_ns, None);
                self.end(stream);
            }
            Due::Awake { stream: id } => {
                let mark_ns = self.shared_ns;
                if let Some(stream) = self.streams.get_mut(&id)
                    && !stream.is_at_it
                {
                    stream.is_at_it = true;
                    self.at_it += 1;
                    (stream.end_ns, stream.mark_ns) = (at_ns, mark_ns);
                }
                self.look_ahead(id, at_ns);
            }
            Due::Landed { category, mark_bits, start_ns } => {
                self.account(category, mark_bits, at_ns - start_ns);
                self.at_it -= 1;
            }
        }
    }

    fn account(&mut self, category: &'static str, mark_bits: u64, busy_ns: u64) {
        let time = self.timed.categories.entry(category).or_default();
        time.shared_ns += self.shared_ns - f64::from_bits(mark_bits);
        time.busy_ns += busy_ns as f64;
        time.calls += 1;
        time.recording_ns += (self.overhead_ns * OVERHEAD_IN_CALL).min(busy_ns as f64);
    }

    /// Lets the stream wait where it did so outside of calls: the first pass saw it.
    fn look_ahead(&mut self, id: u32, at_ns: u64) {
        let Some(all) = self.idle.get(&id) else { return };
        let Some(stream) = self.streams.get_mut(&id) else { return };
        while all.get(stream.idle_at).is_some_and(|(from_ns, _)| *from_ns < at_ns) {
            stream.idle_at += 1;
        }
        if let Some((from_ns, idle_ns)) = all.get(stream.idle_at)
            && *from_ns == at_ns
        {
            stream.idle_at += 1;
            self.sleep(id, at_ns + idle_ns);
        }
    }

    fn sleep(&mut self, id: u32, until_ns: u64) {
        if let Some(stream) = self.streams.get_mut(&id)
            && stream.is_at_it
        {
            stream.is_at_it = false;
            self.at_it -= 1;
            self.due.push(Reverse((until_ns, Due::Awake { stream: id })));
        }
    }

    /// A stream is at it from now on.
    fn begin(&mut self, id: u32) {
        let (end_ns, mark_ns) = (self.now_ns, self.shared_ns);
        self.streams.entry(id).or_insert_with(|| {
            self.at_it += 1;
            Stream { end_ns, mark_ns, is_at_it: true, ..Stream::default() }
        });
    }

    fn end(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(&id)
            && stream.is_at_it
        {
            stream.is_at_it = false;
            self.at_it -= 1;
        }
    }

    /// The stretch since the call before of a stream: work, or a wait for a mapped page.
    fn gap(&mut self, event: &Event) {
        self.close_gap(event.stream, event.start_ns, event.cpu_gap_ns);
    }

    fn close_gap(&mut self, stream: u32, now_ns: u64, cpu_gap_ns: Option<u64>) {
        let (shared_ns, overhead_ns) = (self.shared_ns, self.overhead_ns);
        let has_processor = self.at_it < self.cpus;
        let Some(stream) = self.streams.get_mut(&stream) else { return };
        if now_ns < stream.end_ns || !stream.is_at_it {
            return;
        }
        let length_ns = (now_ns - stream.end_ns) as f64;
        let part_ns = shared_ns - stream.mark_ns;
        let faulted = std::mem::take(&mut stream.faulted);
        (stream.end_ns, stream.mark_ns) = (now_ns, shared_ns);
        if length_ns <= 0.0 {
            return;
        }
        let work_ns = match cpu_gap_ns {
            Some(work_ns) => (work_ns as f64).min(length_ns),
            None => length_ns,
        };
        self.timed.work.is_measured |= cpu_gap_ns.is_some();
        let recording_ns = (overhead_ns * (1.0 - OVERHEAD_IN_CALL)).min(work_ns / 2.0);
        let on_path = part_ns / length_ns;
        let work = &mut self.timed.work;
        work.gaps += 1;
        work.processor_s += on_path * (work_ns - recording_ns) / 1e9;
        work.processor_total_s += (work_ns - recording_ns) / 1e9;
        let rest_ns = length_ns - work_ns;
        if faulted {
            let time = self.timed.categories.entry(FAULT).or_default();
            time.shared_ns += on_path * rest_ns;
            time.busy_ns += rest_ns;
        } else if has_processor {
            work.displaced_s += on_path * rest_ns / 1e9;
        } else {
            work.other_s += on_path * rest_ns / 1e9;
        }
    }

    fn fault(&mut self, event: &Event) {
        if let Some(stream) = self.streams.get_mut(&event.stream) {
            stream.faulted = true;
        }
        let time = self.timed.categories.entry(FAULT).or_default();
        time.calls += 1;
    }

    fn call(&mut self, event: &Event, category: &'static str) {
        self.gap(event);
        self.follow(event);
        let end_ns = event.start_ns + event.duration_ns.unwrap_or(0);
        let mark_bits = self.shared_ns.to_bits();
        let (stream, start_ns) = (event.stream, event.start_ns);
        if event.duration_ns.is_none() {
            return;
        }
        if let Some(stream) = self.streams.get_mut(&event.stream) {
            stream.end_ns = end_ns;
        }
        self.due.push(Reverse((end_ns, Due::End { stream, category, mark_bits, start_ns })));
    }

    fn wait(&mut self, event: &Event) {
        self.gap(event);
        self.sleep(event.stream, event.start_ns + event.duration_ns.unwrap_or(0));
    }

    fn fly(&mut self, event: &Event, category: &'static str) {
        let end_ns = event.start_ns + event.duration_ns.unwrap_or(0);
        let (mark_bits, start_ns) = (self.shared_ns.to_bits(), event.start_ns);
        self.at_it += 1;
        self.due.push(Reverse((end_ns, Due::Landed { category, mark_bits, start_ns })));
    }

    /// Time between reads of a file from front to back, in which what comes next can be fetched.
    fn follow(&mut self, event: &Event) {
        if event.op == Op::Close {
            self.reads.remove(&event.handle);
        }
        if !matches!(event.op, Op::Read | Op::Sendfile | Op::Copy) || event.length == 0 {
            return;
        }
        let took_ns = event.duration_ns.unwrap_or(0);
        let end_ns = self.shared_ns + took_ns as f64;
        let free_ns = (self.shared_ns - std::mem::replace(&mut self.read_ns, end_ns)).max(0.0);
        let now = (event.offset + event.length, self.shared_ns, took_ns);
        let Some((end, mark_ns, took_ns)) = self.reads.insert(event.handle, now) else { return };
        if end == event.offset && end > 0 {
            self.timed.sequential_bytes += event.length;
            self.between_ns += free_ns;
            let between_ns = (self.shared_ns - mark_ns - took_ns as f64).max(0.0);
            for (limit_ns, sum_ns) in LIMITS_NS.iter().zip(&mut self.between_by_limit_ns) {
                *sum_ns += between_ns.min(*limit_ns);
            }
        }
    }
}
