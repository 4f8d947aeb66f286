//! Finds a site in the events of an access log: each stream is a session of a visitor.

use std::collections::{BTreeMap, HashMap};
use std::io;

use ioscape_model::app::{Counted, PageKind, Profile, Site};

use super::groups::{Asked, grouped};
use super::months::Calendar;
use crate::{Event, FileEntry, Op, Sink, StreamEntry, TraceInfo};

/// Sessions with fewer requests than this, and at least as many as the one before, are of one profile:
/// who leaves after a page or two reads at another pace than who copies the site.
const PROFILE_ENDS: [u64; 6] = [2, 4, 10, 30, 100, u64::MAX];
/// Stretches of time in which beginnings of sessions are counted: when there are more, two become one.
const STARTS_MAX: usize = 336;
/// Requests of a session, at most: who goes on for ever comes back as another visitor.
const SESSION_MAX: usize = 1 << 20;
/// Classes of files that are embedded in pages. A script is a source to the table of classes.
const EMBEDDED: [&str; 3] = ["image", "source", "style_or_font"];

/// Finds the site; entries of files come before the events.
#[derive(Debug)]
pub(super) struct Finder {
    files: HashMap<u32, Asked>,
    directories: u64,
    kinds: HashMap<u32, (PageKind, u64)>,
    sessions: HashMap<u32, OpenSession>,
    profiles: [Tally; PROFILE_ENDS.len()],
    starts: Starts,
    calendar: Calendar,
    requests: u64,
    sessions_begun: u64,
    together_ns: u64,
    elapsed_s: f64,
}

/// A session that may go on.
#[derive(Debug)]
struct OpenSession {
    start_ns: u64,
    last_ns: u64,
    /// Kind of each request, and the time since the one before, ms.
    asks: Vec<(PageKind, u64)>,
}

/// Sessions of a profile.
#[derive(Debug, Default)]
struct Tally {
    lengths: Spread,
    first: [u64; 2],
    after: [[u64; 2]; 2],
    gaps_ms: [Spread; 2],
}

/// Values with their counts.
#[derive(Debug, Default)]
struct Spread(BTreeMap<u64, u64>);

impl Spread {
    /// Values below this are told apart.
    const EXACT: u64 = 16;
    /// Cells of a doubling beyond.
    const PARTS: f64 = 3.0;
    /// A value with this share of all has a cell of its own: a program that asks once a second.
    const FREQUENT: f64 = 0.005;
    /// Such values at most, those that came most often: a model is to stay below 64 KiB.
    const FREQUENT_MAX: usize = 16;

    fn add(&mut self, value: u64) {
        // Four digits are enough, and bound what is held.
        let step = 10_u64.pow(value.max(1).ilog10().saturating_sub(3));
        *self.0.entry(value / step * step).or_default() += 1;
    }

    fn cell(value: u64) -> u64 {
        if value < Self::EXACT {
            return value;
        }
        Self::EXACT + ((value as f64 / Self::EXACT as f64).log2() * Self::PARTS) as u64
    }

    /// Frequent values, and cells of the others, a few to each doubling.
    fn list(&self) -> Vec<Counted> {
        let mut counts: Vec<u64> = self.0.values().copied().collect();
        counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
        let next = counts.get(Self::FREQUENT_MAX).map_or(0.0, |count| *count as f64 + 1.0);
        let all: u64 = counts.iter().sum();
        let frequent = (all as f64 * Self::FREQUENT).max(2.0).max(next);
        let mut list: Vec<Counted> = Vec::new();
        let mut open: Option<(u64, Counted)> = None;
        for (value, count) in &self.0 {
            let alone = Counted { from: *value, to: *value, count: *count };
            if *count as f64 >= frequent {
                list.push(alone);
                continue;
            }
            match &mut open {
                Some((cell, counted)) if *cell == Self::cell(*value) => {
                    counted.to = *value;
                    counted.count += count;
                }
                _ => list.extend(open.replace((Self::cell(*value), alone)).map(|(_, cell)| cell)),
            }
        }
        list.extend(open.map(|(_, cell)| cell));
        list
    }
}

/// When sessions began, in stretches that become longer with the log.
#[derive(Debug)]
struct Starts {
    counts: Vec<u64>,
    length_ns: u64,
}

impl Default for Starts {
    fn default() -> Self {
        Self { counts: Vec::new(), length_ns: 1_000_000_000 }
    }
}

impl Starts {
    fn add(&mut self, at_ns: u64) {
        self.reach(at_ns);
        let at = (at_ns / self.length_ns) as usize;
        if self.counts.len() <= at {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += 1;
    }

    /// Makes stretches so long that this time is in one of them.
    fn reach(&mut self, at_ns: u64) {
        while at_ns / self.length_ns >= STARTS_MAX as u64 {
            self.counts = self.counts.chunks(2).map(|two| two.iter().sum()).collect();
            self.length_ns *= 2;
        }
    }

    /// Counts of the whole log, and the length of each stretch, seconds.
    fn list(mut self, elapsed_s: f64) -> (Vec<u64>, f64) {
        let end_ns = (elapsed_s * 1e9) as u64;
        self.reach(end_ns.saturating_sub(1));
        let stretches = end_ns.div_ceil(self.length_ns) as usize;
        self.counts.resize(stretches.max(self.counts.len()), 0);
        (self.counts, self.length_ns as f64 / 1e9)
    }
}

impl Finder {
    /// For a log.
    pub(super) fn new(info: &TraceInfo) -> Self {
        Self {
            files: HashMap::new(),
            directories: 0,
            kinds: HashMap::new(),
            sessions: HashMap::new(),
            profiles: Default::default(),
            starts: Starts::default(),
            calendar: Calendar::new(info.started_unix_s),
            requests: 0,
            sessions_begun: 0,
            together_ns: 0,
            elapsed_s: info.elapsed_s,
        }
    }

    /// The site.
    pub(super) fn site(mut self) -> Site {
        let left: Vec<u32> = self.sessions.keys().copied().collect();
        for stream in left {
            self.end(stream);
        }
        let profile = |tally: &Tally| Profile {
            lengths: tally.lengths.list(),
            first: tally.first,
            after_page: tally.after[0],
            after_object: tally.after[1],
            page_gaps_ms: tally.gaps_ms[0].list(),
            object_gaps_ms: tally.gaps_ms[1].list(),
        };
        let profiles = self.profiles.iter().map(profile);
        let elapsed_s = self.elapsed_s.max(1.0);
        let (starts, stretch_s) = self.starts.list(elapsed_s);
        Site {
            elapsed_s,
            requests: self.requests,
            sessions: self.sessions_begun,
            sessions_mean: self.together_ns as f64 / 1e9 / elapsed_s,
            directories: self.directories,
            files: grouped(self.files.into_values().collect()),
            profiles: profiles.filter(|profile| !profile.lengths.is_empty()).collect(),
            starts,
            stretch_s,
            months: self.calendar.list(elapsed_s),
        }
    }

    fn ask(&mut self, event: &Event, is_unchanged: bool) {
        let missing = event.op == Op::LookupNeg;
        let (kind, bytes) = self.kinds.get(&event.file).copied().unwrap_or_default();
        let kind = if missing { PageKind::Missing } else { kind };
        let bytes = if missing { 0 } else { bytes };
        let fresh = Asked { kind, bytes, requests: 0, unchanged: 0 };
        let file = self.files.entry(event.file).or_insert(fresh);
        file.requests += 1;
        file.unchanged += u64::from(is_unchanged);
        self.requests += 1;
        let at_ns = event.start_ns;
        let is_endless = |visit: &OpenSession| visit.asks.len() >= SESSION_MAX;
        if self.sessions.get(&event.stream).is_some_and(is_endless) {
            self.end(event.stream);
        }
        let is_new = !self.sessions.contains_key(&event.stream);
        self.calendar.add(at_ns, event.file, is_new);
        let visit = self.sessions.entry(event.stream).or_insert_with(|| OpenSession {
            start_ns: at_ns,
            last_ns: at_ns,
            asks: Vec::new(),
        });
        visit.asks.push((kind, at_ns.saturating_sub(visit.last_ns) / 1_000_000));
        visit.last_ns = visit.last_ns.max(at_ns);
        if is_new {
            self.sessions_begun += 1;
            self.starts.add(at_ns);
        }
    }

    fn end(&mut self, stream: u32) {
        let Some(visit) = self.sessions.remove(&stream) else { return };
        self.together_ns += visit.last_ns - visit.start_ns;
        let length = visit.asks.len() as u64;
        let at = PROFILE_ENDS.partition_point(|end| *end <= length);
        let tally = &mut self.profiles[at.min(PROFILE_ENDS.len() - 1)];
        tally.lengths.add(length);
        let state = |kind: PageKind| usize::from(kind == PageKind::Object);
        let mut before: Option<usize> = None;
        for (kind, gap_ms) in &visit.asks {
            let now = state(*kind);
            match before {
                None => tally.first[now] += 1,
                Some(before) => {
                    tally.after[before][now] += 1;
                    tally.gaps_ms[now].add(*gap_ms);
                }
            }
            before = Some(now);
        }
    }
}

impl Sink for Finder {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        match event.op {
            Op::Open | Op::LookupNeg => self.ask(event, false),
            // Beside an open file it belongs to the request that opened it.
            Op::Stat if event.handle == 0 => self.ask(event, true),
            Op::Exit => self.end(event.stream),
            _ => {}
        }
        Ok(())
    }

    fn file(&mut self, file: FileEntry) -> io::Result<()> {
        let kind =
            if EMBEDDED.contains(&file.class.as_str()) { PageKind::Object } else { PageKind::Page };
        self.directories += u64::from(file.kind == crate::FileKind::Directory);
        self.kinds.insert(file.id, (kind, file.first_bytes));
        Ok(())
    }

    fn stream(&mut self, _: StreamEntry) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self, info: &TraceInfo) -> io::Result<()> {
        self.elapsed_s = info.elapsed_s;
        Ok(())
    }
}
