//! Counts what is seen in a stretch of time, and says it as a behaviour.

use std::collections::{BTreeMap, HashMap};

use ioscape_model::app::{
    Behaviour, Concurrency, FileClass, Five, Metadata, Order, Sequence, SizeCount, SizeLaw, Sizes,
    StreamShare, SyncKind, Syncs, Think, Unique,
};

use super::arrivals::{Arrivals, Sureness};
use super::dirty::SyncedKind;
use super::flights::Flights;
use super::histogram::LogHistogram;
use super::pages::{PAGE_BYTES, PageSet};
use super::seen::{Class, Direction, Memory, RelativePosition, Request, Seen};
use super::transaction::Tokens;
use super::union::Union;
use crate::{Flags, Op};

/// Sizes that are counted one by one.
const SIZES_MAX: usize = 4096;
/// Sizes that a model names.
const TOP_SIZES: usize = 16;
/// Streams that a model tells apart.
const TOP_STREAMS: usize = 8;
/// Classes of files that a model names.
const TOP_CLASSES: usize = 17;
/// The loader's look into a program is shorter than a page, bytes.
const HEADER_BYTES_MAX: u64 = PAGE_BYTES;
/// The class of files whose extension says nothing.
const NO_CLASS: &str = "other";

/// Sizes of requests in one direction.
#[derive(Debug, Default)]
struct Counted {
    count: u64,
    bytes: u64,
    squares: f64,
    exact: HashMap<u64, u64>,
    histogram: LogHistogram,
}

impl Counted {
    fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += bytes;
        self.squares += (bytes as f64).powi(2);
        self.histogram.add(bytes);
        if self.exact.len() < SIZES_MAX || self.exact.contains_key(&bytes) {
            *self.exact.entry(bytes).or_default() += 1;
        }
    }

    fn law(&self) -> SizeLaw {
        let count = |(bytes, count): (&u64, &u64)| SizeCount { bytes: *bytes, count: *count };
        let mut top: Vec<SizeCount> = self.exact.iter().map(count).collect();
        top.sort_by_key(|size| (std::cmp::Reverse(size.count), size.bytes));
        top.truncate(TOP_SIZES);
        let mean_bytes = ratio(self.bytes as f64, self.count as f64);
        SizeLaw { mean_bytes, top, histogram: self.histogram.buckets() }
    }
}

/// Whether the loader reads a program's header: a start of a program is dozens of these, and none is
/// what the application does with its data.
fn is_look_into_program(seen: &Seen<'_>, request: &Request) -> bool {
    seen.is_program && request.direction == Direction::Read && request.bytes < HEADER_BYTES_MAX
}

/// Syncs of one kind.
#[derive(Debug, Default)]
struct SyncTally {
    count: u64,
    pages: u64,
    extents: u64,
    timed: u64,
    time_ns: u64,
}

/// What a stream did.
#[derive(Debug, Default)]
struct StreamTally {
    share: StreamShare,
    busy_ns: u64,
    covered_until_ns: u64,
    covered_ns: u64,
    active_gaps_ns: u64,
}

/// Everything that is counted in a stretch of time.
#[derive(Debug, Default)]
pub(super) struct Tally {
    calls: u64,
    failed: u64,
    operations: BTreeMap<Op, u64>,
    reads: Counted,
    writes: Counted,
    read_pages: PageSet,
    written_pages: PageSet,
    mapped_pages: PageSet,
    program_pages: PageSet,
    pages: PageSet,
    /// Read of programs' headers, which are no requests.
    loaded_bytes: u64,
    follows: u64,
    follows_in_direction: u64,
    forward: u64,
    backward: u64,
    strided: u64,
    direct: u64,
    asynchronous: u64,
    timed: u64,
    calls_ns: u64,
    calling: Union,
    at_it: Union,
    flights: Flights,
    arrivals: Arrivals,
    think: LogHistogram,
    think_ns: u64,
    processor_ns: u64,
    processor_gaps: u64,
    waiting_ns: u64,
    names: u64,
    named: u64,
    same_directory: u64,
    depths: u64,
    entries: u64,
    listings: u64,
    syncs: BTreeMap<SyncedKind, SyncTally>,
    writes_between: HashMap<u64, u64>,
    sync_writes: u64,
    transitions: HashMap<(Class, Class), u64>,
    tokens: Tokens,
    files: HashMap<u32, (u64, u64)>,
    streams: HashMap<u32, StreamTally>,
}

impl Tally {
    /// Counts an event.
    pub(super) fn add(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        self.calls += 1;
        self.failed += u64::from(event.error != 0);
        *self.operations.entry(event.op).or_default() += 1;
        for request in seen.requests.iter().flatten() {
            self.add_request(seen, request);
        }
        self.add_mapped(seen);
        self.add_time(seen);
        self.add_names(seen);
        self.add_sync(seen);
        if let Some(before) = seen.class_before {
            *self.transitions.entry((before, seen.class)).or_default() += 1;
        }
        if event.op != Op::Wait {
            self.tokens.add(event);
        }
    }

    fn add_request(&mut self, seen: &Seen<'_>, request: &Request) {
        let event = seen.event;
        let Request { file, offset, bytes, .. } = *request;
        let by_file = self.files.entry(file).or_default();
        if is_look_into_program(seen, request) {
            self.loaded_bytes += bytes;
            by_file.0 += bytes;
            return;
        }
        let stream = self.streams.entry(event.stream).or_default();
        stream.share.requests += 1;
        self.pages.insert_bytes(file, offset, bytes);
        match request.direction {
            Direction::Read => {
                self.reads.add(bytes);
                self.read_pages.insert_bytes(file, offset, bytes);
                by_file.0 += bytes;
                stream.share.bytes_read += bytes;
            }
            Direction::Write => {
                self.writes.add(bytes);
                self.written_pages.insert_bytes(file, offset, bytes);
                by_file.1 += bytes;
                stream.share.bytes_written += bytes;
                self.sync_writes += u64::from(event.flags.has(Flags::SYNC));
            }
        }
        match request.place {
            RelativePosition::Follows { same_direction } => {
                self.follows += 1;
                self.follows_in_direction += u64::from(same_direction);
            }
            RelativePosition::Forward => self.forward += 1,
            RelativePosition::Backward => self.backward += 1,
            RelativePosition::Strided => self.strided += 1,
            RelativePosition::First | RelativePosition::Elsewhere => {}
        }
        self.direct += u64::from(event.flags.has(Flags::DIRECT));
        self.asynchronous += u64::from(event.flags.has(Flags::ASYNC));
    }

    fn add_mapped(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        if !matches!(event.op, Op::FaultR | Op::FaultW) || !seen.is_storage {
            return;
        }
        let bytes = event.length.max(1);
        if seen.is_program {
            self.program_pages.insert_bytes(event.file, event.offset, bytes);
        } else if event.file != 0 {
            self.mapped_pages.insert_bytes(event.file, event.offset, bytes);
            self.pages.insert_bytes(event.file, event.offset, bytes);
        }
    }

    fn add_time(&mut self, seen: &Seen<'_>) {
        let event = seen.event;
        if let Some(gap) = seen.gap {
            self.think.add(gap.length_ns);
            self.think_ns += gap.length_ns;
            if let Some(processor_ns) = gap.processor_ns {
                self.processor_ns += processor_ns.min(gap.length_ns);
                self.processor_gaps += 1;
            }
        }
        let Some(duration_ns) = event.duration_ns else { return };
        let end_ns = event.start_ns.saturating_add(duration_ns);
        if !seen.is_storage {
            self.waiting_ns += duration_ns;
            return;
        }
        self.timed += 1;
        self.calls_ns += duration_ns;
        self.calling.add(event.start_ns, end_ns);
        self.at_it.add(event.start_ns, end_ns);
        let stream = self.streams.entry(event.stream).or_default();
        stream.busy_ns += duration_ns;
        if let Some(gap) = seen.gap.filter(|gap| gap.is_active) {
            let until_ns = gap.from_ns + gap.length_ns;
            self.at_it.add(gap.from_ns, until_ns);
            // Requests in flight may have covered it.
            let open_ns = until_ns.saturating_sub(gap.from_ns.max(stream.covered_until_ns));
            stream.active_gaps_ns += open_ns;
        }
        let from_ns = event.start_ns.max(stream.covered_until_ns);
        stream.covered_ns += end_ns.saturating_sub(from_ns);
        stream.covered_until_ns = stream.covered_until_ns.max(end_ns);
        let is_look = |request: &Request| is_look_into_program(seen, request);
        if seen.requests.iter().flatten().any(is_look) {
            return;
        }
        if let Some(in_flight) = seen.in_flight {
            self.flights.add(in_flight);
        }
        if let Some(arrival) = seen.arrival {
            self.arrivals.add(event.stream, arrival);
        }
    }

    fn add_names(&mut self, seen: &Seen<'_>) {
        let is_of_names =
            matches!(seen.class, Class::Open | Class::Close | Class::Look | Class::Change);
        if !is_of_names || !seen.is_storage {
            return;
        }
        self.names += 1;
        if seen.event.op == Op::Readdir {
            self.listings += 1;
            self.entries += seen.event.length;
        }
        if let Some((same, depth)) = seen.place_of_name {
            self.named += 1;
            self.same_directory += u64::from(same);
            self.depths += u64::from(depth);
        }
    }

    fn add_sync(&mut self, seen: &Seen<'_>) {
        let Some(synced) = seen.synced else { return };
        self.streams.entry(seen.event.stream).or_default().share.syncs += 1;
        let tally = self.syncs.entry(synced.kind).or_default();
        tally.count += 1;
        tally.pages += synced.pages;
        tally.extents += synced.extents;
        if let Some(duration_ns) = seen.event.duration_ns {
            tally.timed += 1;
            tally.time_ns += duration_ns;
        }
        if synced.writes > 0 {
            *self.writes_between.entry(synced.writes).or_default() += 1;
        }
    }

    /// Requests counted so far.
    pub(super) fn requests(&self) -> u64 {
        self.reads.count + self.writes.count
    }

    /// Whether any call has a duration.
    pub(super) fn has_durations(&self) -> bool {
        self.timed > 0
    }

    /// Whether it could not be told if requests wait for each other.
    pub(super) fn arrivals_are_guessed(&self) -> bool {
        self.arrivals.sureness(self.flights.are_full()) == Sureness::Guess
    }

    /// Says it; `memory` knows the files.
    pub(super) fn behaviour(&self, elapsed_s: f64, memory: &Memory) -> Behaviour {
        let requests = self.requests();
        let bytes = self.reads.bytes + self.writes.bytes;
        let share = |count: u64| ratio(count as f64, requests as f64);
        let concurrency = self.concurrency();
        let (arrivals, arriving) =
            self.arrivals.judge(requests, elapsed_s, self.flights.are_full());
        let squares = self.reads.squares + self.writes.squares;
        let mean = ratio(bytes as f64, requests as f64);
        let variance = (ratio(squares, requests as f64) - mean * mean).max(0.0);
        let mut behaviour = Behaviour {
            elapsed_s,
            cpu_s: None,
            five: Five {
                unique_bytes: self.pages.bytes(),
                size_mean: mean,
                read_frac: share(self.reads.count),
                seq_frac: share(self.follows),
                process_num: (concurrency.active.round() as u32).max(1),
            },
            workload: String::new(),
            bytes_read: self.reads.bytes + self.loaded_bytes,
            bytes_written: self.writes.bytes,
            calls: self.calls,
            requests,
            failed: self.failed,
            operations: self.operations.iter().map(|(op, n)| (op.name().to_owned(), *n)).collect(),
            sizes: Sizes {
                variation: ratio(variance.sqrt(), mean),
                read: self.reads.law(),
                write: self.writes.law(),
            },
            unique: self.unique(),
            sequence: self.sequence(share, bytes),
            concurrency,
            arrivals,
            arriving,
            think: self.think(),
            metadata: self.metadata(elapsed_s, bytes),
            syncs: self.syncs(),
            order: self.order(),
            files: self.files(memory),
            streams: self.streams(),
        };
        if self.timed == 0 {
            behaviour.five.process_num = behaviour.concurrency.streams.clamp(1, 4096) as u32;
        }
        behaviour.workload = super::literal::workload(&behaviour).literal();
        behaviour
    }

    fn unique(&self) -> Unique {
        let (read, written) = (self.read_pages.bytes(), self.written_pages.bytes());
        Unique {
            read_bytes: read,
            written_bytes: written,
            both_bytes: self.read_pages.shared(&self.written_pages) * PAGE_BYTES,
            mapped_bytes: self.mapped_pages.bytes(),
            program_bytes: self.program_pages.bytes(),
        }
    }

    fn sequence(&self, share: impl Fn(u64) -> f64, bytes: u64) -> Sequence {
        let runs = (self.requests() - self.follows) as f64;
        Sequence {
            same_direction_frac: share(self.follows_in_direction),
            forward_frac: share(self.forward),
            backward_frac: share(self.backward),
            strided_frac: share(self.strided),
            run_requests_mean: ratio(self.requests() as f64, runs),
            run_bytes_mean: ratio(bytes as f64, runs),
        }
    }

    fn concurrency(&self) -> Concurrency {
        let active_ns: u64 = self.streams.values().map(|s| s.covered_ns + s.active_gaps_ns).sum();
        let requests = self.requests() as f64;
        Concurrency {
            busy: ratio(self.calls_ns as f64, self.calling.length_ns() as f64),
            active: ratio(active_ns as f64, self.at_it.length_ns() as f64),
            streams: self.streams.values().filter(|s| s.share.requests > 0).count() as u64,
            depth: self.flights.depth(),
            direct_frac: ratio(self.direct as f64, requests),
            async_frac: ratio(self.asynchronous as f64, requests),
        }
    }

    fn think(&self) -> Think {
        let gaps = self.think.total() as f64;
        let all_measured = self.processor_gaps > 0;
        Think {
            mean_s: ratio(self.think_ns as f64, gaps) / 1e9,
            processor_mean_s: all_measured
                .then(|| ratio(self.processor_ns as f64, self.processor_gaps as f64) / 1e9),
            p50_s: self.think.quantile(0.5) / 1e9,
            p90_s: self.think.quantile(0.9) / 1e9,
            waiting_s: self.waiting_ns as f64 / 1e9,
        }
    }

    fn metadata(&self, elapsed_s: f64, bytes: u64) -> Metadata {
        let names = self.names as f64;
        Metadata {
            per_s: ratio(names, elapsed_s),
            per_mb: (bytes > 0).then(|| names / (bytes as f64 / 1e6)),
            same_directory_frac: ratio(self.same_directory as f64, self.named as f64),
            depth_mean: ratio(self.depths as f64, self.named as f64),
            entries_mean: ratio(self.entries as f64, self.listings as f64),
        }
    }

    fn syncs(&self) -> Syncs {
        let count: u64 = self.syncs.values().map(|tally| tally.count).sum();
        let kind = |tally: &SyncTally| SyncKind {
            count: tally.count,
            pages_mean: ratio(tally.pages as f64, tally.count as f64),
            extents_mean: ratio(tally.extents as f64, tally.count as f64),
            mean_s: (tally.timed > 0).then(|| tally.time_ns as f64 / tally.timed as f64 / 1e9),
        };
        Syncs {
            count,
            per_write: ratio(count as f64, self.writes.count as f64),
            every: self.sync_every(count),
            sync_writes: self.sync_writes,
            by_kind: self.syncs.iter().map(|(k, t)| (k.name().to_owned(), kind(t))).collect(),
        }
    }

    /// Writes between two syncs of a file: the number that is found most often, where it is found
    /// in half of the cases; the mean otherwise.
    fn sync_every(&self, count: u64) -> u32 {
        let cases: u64 = self.writes_between.values().sum();
        if self.sync_writes * 2 > self.writes.count {
            return 1;
        }
        let most = self.writes_between.iter().max_by_key(|(n, cases)| (**cases, **n));
        let every = match most {
            Some((writes, often)) if often * 2 >= cases => *writes,
            Some(_) => (self.writes.count as f64 / count as f64).round().max(1.0) as u64,
            None => 0,
        };
        u32::try_from(every).unwrap_or(u32::MAX)
    }

    fn order(&self) -> Order {
        let mut transitions: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for ((from, to), count) in &self.transitions {
            let row = transitions.entry(from.name().to_owned()).or_default();
            row.insert(to.name().to_owned(), *count);
        }
        Order { transitions, transaction: self.tokens.transaction() }
    }

    fn files(&self, memory: &Memory) -> Vec<FileClass> {
        let mut classes: BTreeMap<&str, FileClass> = BTreeMap::new();
        for (file, (read, written)) in &self.files {
            let known = memory.known(*file).class.as_str();
            let class = if crate::classes::is_known(known) { known } else { NO_CLASS };
            let of_class = classes.entry(class).or_default();
            class.clone_into(&mut of_class.class);
            of_class.files += 1;
            of_class.bytes_read += read;
            of_class.bytes_written += written;
        }
        let mut all: Vec<FileClass> = classes.into_values().collect();
        all.sort_by_key(|class| std::cmp::Reverse(class.bytes_read + class.bytes_written));
        all.truncate(TOP_CLASSES);
        all
    }

    fn streams(&self) -> Vec<StreamShare> {
        let share = |tally: &StreamTally| StreamShare {
            busy_s: tally.busy_ns as f64 / 1e9,
            ..tally.share.clone()
        };
        let made = self.streams.values().filter(|tally| tally.share.requests > 0);
        let mut all: Vec<StreamShare> = made.map(share).collect();
        let bytes = |share: &StreamShare| share.bytes_read + share.bytes_written;
        all.sort_by(|a, b| bytes(b).cmp(&bytes(a)).then(b.busy_s.total_cmp(&a.busy_s)));
        all.truncate(TOP_STREAMS);
        all
    }
}

/// A quotient, 0 where there is nothing to divide by.
fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
