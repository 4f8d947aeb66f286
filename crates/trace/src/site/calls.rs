//! Calls of a server that answers the requests of sessions from files: open, stat, read, close.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::iter::Peekable;

use super::sessions::Sessions;
use super::{Answer, Session};
use crate::{Event, FileEntry, Op};

/// A server reads files in pieces of this size.
const PIECE_BYTES: u64 = 64 << 10;
const NOT_FOUND: i16 = 2;
/// Calls of one request are so far apart.
const STEP_NS: u64 = 1000;

/// Calls of the requests in their order; a stream is a place that one session after another takes.
pub(super) struct Calls<'a> {
    sessions: Peekable<Sessions<'a>>,
    entries: &'a [FileEntry],
    /// By the time of their next request: sessions that are on, with the place they have.
    on: BinaryHeap<Reverse<(u64, u32)>>,
    /// By place: the session, and which of its requests is next.
    places: Vec<(Session, usize)>,
    free: Vec<u32>,
    /// Users who take turns: a place is taken again at once.
    users: Option<u32>,
    until_ns: u64,
    handles: u32,
    out: Option<Answering>,
}

impl<'a> Calls<'a> {
    pub(super) fn new(
        sessions: Sessions<'a>,
        entries: &'a [FileEntry],
        (users, for_s): (Option<u32>, Option<f64>),
    ) -> Self {
        let mut calls = Self {
            sessions: sessions.peekable(),
            entries,
            on: BinaryHeap::new(),
            places: Vec::new(),
            free: Vec::new(),
            users,
            until_ns: for_s.map_or(u64::MAX, |for_s| (for_s * 1e9) as u64),
            handles: 0,
            out: None,
        };
        for _ in 0..users.unwrap_or(0) {
            calls.begin(0);
        }
        calls
    }

    /// Places that were ever taken.
    pub(super) fn places(&self) -> u32 {
        self.places.len() as u32
    }

    /// Begins the next session, no sooner than then.
    fn begin(&mut self, from_ns: u64) {
        let Some(session) = self.sessions.next() else { return };
        let at_ns = from_ns.saturating_add(session.start_ns);
        let place = self.free.pop().unwrap_or(self.places.len() as u32);
        if place as usize == self.places.len() {
            self.places.push((session, 0));
        } else {
            self.places[place as usize] = (session, 0);
        }
        self.on.push(Reverse((at_ns, place)));
    }

    /// The request that is next.
    fn step(&mut self) -> Option<Answering> {
        if self.users.is_none() {
            loop {
                let next_ns = self.sessions.peek().map(|session| session.start_ns);
                let on_ns = self.on.peek().map(|Reverse((at_ns, _))| *at_ns);
                match next_ns {
                    Some(next_ns) if on_ns.is_none_or(|on_ns| next_ns <= on_ns) => self.begin(0),
                    _ => break,
                }
            }
        }
        let Reverse((at_ns, place)) = self.on.pop()?;
        if at_ns > self.until_ns {
            return None;
        }
        let (session, next) = &mut self.places[place as usize];
        let ask = session.asks[*next];
        *next += 1;
        let following = session.asks.get(*next).map(|ask| at_ns.saturating_add(ask.gap_ns));
        if let Some(then_ns) = following {
            self.on.push(Reverse((then_ns, place)));
        } else {
            self.free.push(place);
            if self.users.is_some() {
                self.begin(at_ns);
            }
        }
        Some(self.answer(at_ns, place + 1, ask.file, ask.answer))
    }

    fn answer(&mut self, at_ns: u64, stream: u32, file: u32, answer: Answer) -> Answering {
        let event = Event { stream, file, ..Event::new(at_ns, Op::Stat) };
        let one = |event| Answering { event, bytes: 0, calls: 1, made: 0 };
        match answer {
            Answer::Unchanged => one(event),
            Answer::Missing => one(Event { op: Op::LookupNeg, error: NOT_FOUND, ..event }),
            Answer::Whole => {
                self.handles = self.handles % (u32::MAX - 1) + 1;
                let event = Event { handle: self.handles, ..event };
                let bytes = self.entries[file as usize - 1].first_bytes;
                Answering { event, bytes, calls: bytes.div_ceil(PIECE_BYTES) + 3, made: 0 }
            }
        }
    }
}

/// Calls of one answer: one, or open, stat, reads, close.
struct Answering {
    event: Event,
    bytes: u64,
    calls: u64,
    made: u64,
}

impl Iterator for Answering {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let at = self.made;
        if at == self.calls {
            return None;
        }
        self.made += 1;
        let event =
            Event { start_ns: self.event.start_ns.saturating_add(at * STEP_NS), ..self.event };
        if self.calls == 1 {
            return Some(event);
        }
        Some(match at {
            0 => Event { op: Op::Open, ..event },
            1 => event,
            _ if at + 1 == self.calls => Event { op: Op::Close, ..event },
            _ => {
                let offset = (at - 2) * PIECE_BYTES;
                let length = (self.bytes - offset).min(PIECE_BYTES);
                Event { op: Op::Read, offset, length, ..event }
            }
        })
    }
}

impl Iterator for Calls<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.out.as_mut().and_then(Iterator::next) {
                return Some(event);
            }
            self.out = Some(self.step()?);
        }
    }
}
