//! Access logs of web servers: Common Log Format, and Combined with referrer and agent.
//!
//! ```text
//! host ident user [day/Mon/year:hour:minute:second zone] "METHOD path PROTOCOL" status bytes "referrer" "agent"
//! ```
//!
//! A log tells of requests; events are the calls that a server makes for each: open, stat, read and
//! close for a file that is sent, a stat where the client has it already, a look-up of a name that is
//! not there. A stream is a session of a user (after Seltzer et al. 1999, section 4.2): one host with
//! one agent, until it asks for nothing for half an hour. What is between two of its requests is the
//! user's off time.

use std::collections::hash_map::DefaultHasher;
use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::io;

use super::ledger::Ledger;
use super::lines::Lines;
use super::scan::decimal;
use super::source::{Item, Source};
use crate::event::{Event, Op};

const S: u64 = 1_000_000_000;
const MS: u64 = 1_000_000;
/// A user who asks for nothing for so long comes back as another one: the usual rule.
const SESSION_NS: u64 = 30 * 60 * S;
/// A server reads files in pieces of this size.
const PIECE_BYTES: u64 = 64 << 10;
/// Nobody is sent more at once: a line that says so is damaged, and its reads might never end.
const SENT_MAX_BYTES: u64 = 1 << 40;
const NOT_FOUND: i16 = 2;
const MONTHS: [&[u8]; 12] = [
    b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec",
];

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request<'a> {
    time_ns: u64,
    /// Host and agent, hashed.
    user: u64,
    method: &'a [u8],
    path: &'a [u8],
    status: u64,
    bytes: u64,
}

/// A session that may go on.
#[derive(Clone, Copy, Debug)]
struct Session {
    stream: u32,
    /// Number of its stream: a user's sessions are told apart.
    number: u64,
    last_ns: u64,
}

/// A file that is sent piece by piece, after what is in the queue.
#[derive(Clone, Copy, Debug)]
struct Sending {
    read: Event,
    end: u64,
}

impl Sending {
    /// The next piece; at the end the file is closed.
    fn step(self) -> (Event, Option<Self>) {
        let Self { mut read, end } = self;
        if read.offset >= end {
            return (Event { op: Op::Close, offset: 0, ..read }, None);
        }
        let piece = Event { length: (end - read.offset).min(PIECE_BYTES), ..read };
        read.offset += piece.length;
        (piece, Some(Self { read, end }))
    }
}

/// A log.
pub(crate) struct Clf<'a> {
    name: String,
    lines: Lines<'a>,
    state: State,
}

#[derive(Default)]
struct State {
    out: VecDeque<Event>,
    sending: Option<Sending>,
    sessions: HashMap<u64, Session>,
    /// Requests by their time, to find sessions that are over.
    asked: VecDeque<(u64, u64)>,
    sessions_begun: u64,
    handles: u32,
    /// The time of the last request, and how many came at it: mostly a log tells whole seconds.
    second: (u64, u64),
}

impl<'a> Clf<'a> {
    pub(crate) fn new(name: String, lines: Lines<'a>) -> Self {
        Self { name, lines, state: State::default() }
    }
}

impl Source for Clf<'_> {
    fn next(&mut self, ledger: &mut Ledger) -> io::Result<Option<Item>> {
        loop {
            if let Some(event) = self.state.next() {
                return Ok(Some(event.into()));
            }
            let number = self.lines.number + 1;
            let Some(line) = self.lines.line()? else { return Ok(None) };
            if line.is_empty() {
                continue;
            }
            ledger.tally.lines += 1;
            match request(line) {
                Some(request) => self.state.take(&request, ledger),
                None => ledger.tally.bad(&self.name, number, line),
            }
        }
    }
}

impl State {
    /// The next event of the lines so far.
    fn next(&mut self) -> Option<Event> {
        if let Some(event) = self.out.pop_front() {
            return Some(event);
        }
        let (event, sending) = self.sending?.step();
        self.sending = sending;
        Some(event)
    }

    fn take(&mut self, request: &Request<'_>, ledger: &mut Ledger) {
        let is_read = request.method == b"GET";
        let is_known = is_read || request.method == b"HEAD";
        let is_missing = matches!(request.status, 404 | 410);
        if !is_known || !(is_missing || (200..400).contains(&request.status)) {
            ledger.tally.passed_over += 1;
            return;
        }
        let start_ns = self.within_second(request.time_ns);
        self.end_sessions(start_ns, ledger);
        let stream = self.stream(request.user, start_ns, ledger);
        let mut name = page(request.path).to_vec();
        let mut event = Event::new(start_ns, Op::Stat);
        event.stream = stream;
        if is_missing {
            // It may be there at another time, as another file.
            name.extend_from_slice(b"?missing");
            (event.op, event.error) = (Op::LookupNeg, NOT_FOUND);
        }
        event.file = ledger.files.path(&name);
        let is_sent = is_read && matches!(request.status, 200 | 206);
        if is_missing || !is_sent {
            self.out.push_back(event);
            return;
        }
        if request.status == 200
            && let Some(entry) = ledger.files.entry(event.file)
        {
            entry.first_bytes = entry.first_bytes.max(request.bytes);
            entry.last_bytes = entry.first_bytes;
        }
        self.handles += 1;
        event.handle = self.handles;
        for op in [Op::Open, Op::Stat] {
            self.out.push_back(Event { op, ..event });
        }
        self.sending = Some(Sending { read: Event { op: Op::Read, ..event }, end: request.bytes });
    }

    /// Requests of one second are a millisecond apart, in their order; of one millisecond a microsecond.
    fn within_second(&mut self, time_ns: u64) -> u64 {
        self.second = match self.second {
            (second, count) if second == time_ns => (second, (count + 1).min(999)),
            _ => (time_ns, 0),
        };
        let step_ns = if time_ns.is_multiple_of(S) { MS } else { MS / 1000 };
        time_ns + self.second.1 * step_ns
    }

    /// The session of a user who asks now.
    fn stream(&mut self, user: u64, now_ns: u64, ledger: &mut Ledger) -> u32 {
        self.asked.push_back((now_ns, user));
        let session = self.sessions.entry(user).or_insert_with(|| {
            self.sessions_begun += 1;
            let number = self.sessions_begun;
            Session { stream: ledger.streams.add(number, now_ns), number, last_ns: now_ns }
        });
        session.last_ns = session.last_ns.max(now_ns);
        session.stream
    }

    /// Ends the sessions of users who asked for nothing for too long.
    fn end_sessions(&mut self, now_ns: u64, ledger: &mut Ledger) {
        while let Some((asked_ns, user)) = self.asked.front().copied() {
            if asked_ns.saturating_add(SESSION_NS) >= now_ns {
                return;
            }
            self.asked.pop_front();
            let session = self.sessions.get(&user).copied();
            if let Some(session) = session.filter(|session| session.last_ns == asked_ns) {
                self.sessions.remove(&user);
                ledger.streams.end(session.number, asked_ns);
                let mut exit = Event::new(asked_ns + SESSION_NS, Op::Exit);
                exit.stream = session.stream;
                self.out.push_back(exit);
            }
        }
    }
}

/// A path as a name of a file: without the question, and with a name where it ends in none.
fn page(path: &[u8]) -> &[u8] {
    let end = path.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(path.len());
    let path = &path[..end];
    // A directory cannot be read: its page has a name that no path has.
    if path.ends_with(b"/") || path.is_empty() { b"/?index" } else { path }
}

/// Takes a line apart; `None` where it is none of a log.
fn request(line: &[u8]) -> Option<Request<'_>> {
    let space = memchr::memchr(b' ', line)?;
    let host = &line[..space];
    let open = memchr::memchr(b'[', line)?;
    let close = open + memchr::memchr(b']', &line[open..])?;
    let time_ns = time_ns(&line[open + 1..close])?;
    let (asked, rest) = quoted(&line[close + 1..])?;
    let mut words = asked.split(|byte| *byte == b' ').filter(|word| !word.is_empty());
    // What is no request was answered all the same, with an error: it has no path.
    let (method, path) = (words.next().unwrap_or(b"-"), words.next().unwrap_or(b""));
    let mut fields = rest.split(|byte| *byte == b' ').filter(|field| !field.is_empty());
    let status = decimal(fields.next()?)?;
    let bytes = match fields.next()? {
        b"-" => 0,
        bytes => decimal(bytes).filter(|bytes| *bytes <= SENT_MAX_BYTES)?,
    };
    let agent =
        quoted(rest).and_then(|(_, rest)| quoted(rest)).map_or(&b""[..], |(agent, _)| agent);
    let mut hasher = DefaultHasher::new();
    (host, agent).hash(&mut hasher);
    Some(Request { time_ns, user: hasher.finish(), method, path, status, bytes })
}

/// The text between the next two quotes, and the rest; a quote after a backslash is none.
fn quoted(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let start = memchr::memchr(b'"', text)? + 1;
    let mut at = start;
    loop {
        at += memchr::memchr2(b'"', b'\\', &text[at..])?;
        if text[at] == b'"' {
            return Some((&text[start..at], &text[at + 1..]));
        }
        at += 2;
        if at > text.len() {
            return None;
        }
    }
}

/// `10/Oct/2000:13:55:36 -0700`, or with a fraction of the second as in `13:55:36.123`, since 1970.
fn time_ns(text: &[u8]) -> Option<u64> {
    let (zone, fraction_ns) = match text.get(20..)? {
        [b'.', rest @ ..] => {
            let end = rest.iter().position(|digit| !digit.is_ascii_digit())?;
            let missing = 9_u32.checked_sub(u32::try_from(end).ok()?)?;
            (&rest[end..], decimal(&rest[..end])? * 10_u64.pow(missing))
        }
        zone => (zone, 0),
    };
    let number = |range: std::ops::Range<usize>| decimal(text.get(range)?);
    let (day, year) = (number(0..2)?, number(7..11)?);
    let month = MONTHS.iter().position(|month| text.get(3..6) == Some(month))? as u64;
    let (hour, minute, second) = (number(12..14)?, number(15..17)?, number(18..20)?);
    let is_time = (1..=31).contains(&day) && hour < 24 && minute < 60 && second <= 60;
    if !is_time || !(1970..10_000).contains(&year) {
        return None;
    }
    let of_zone = |range: std::ops::Range<usize>| decimal(zone.get(range)?);
    let offset_s = match (zone.get(1), of_zone(2..4), of_zone(4..6)) {
        (Some(b'+'), Some(hours), Some(minutes)) => (hours * 3600 + minutes * 60).cast_signed(),
        (Some(b'-'), Some(hours), Some(minutes)) => -(hours * 3600 + minutes * 60).cast_signed(),
        _ => 0,
    };
    // Days of the civil calendar, with years that begin in March.
    let shifted = year - u64::from(month < 2);
    let day_of_year = (153 * ((month + 10) % 12) + 2) / 5 + day - 1;
    let days = shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + day_of_year - 719_468;
    let seconds = (days * 86_400 + hour * 3600 + minute * 60 + second).cast_signed() - offset_s;
    u64::try_from(seconds).ok()?.checked_mul(S)?.checked_add(fraction_ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Collected;
    use crate::import::{Error, Format, Input, import};

    const LOG: &str = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /apache_pb.gif HTTP/1.0" 200 2326
a.example - - [10/Oct/2000:20:55:37 +0000] "GET / HTTP/1.1" 200 70000 "http://x/\"y\"" "Agent \"7\""
a.example - - [10/Oct/2000:20:55:37 +0000] "GET /logo.png?v=2 HTTP/1.1" 304 - "-" "Agent \"7\""
a.example - - [10/Oct/2000:20:55:38 +0000] "GET /gone HTTP/1.1" 404 196 "-" "Agent \"7\""
a.example - - [10/Oct/2000:20:55:39 +0000] "POST /form HTTP/1.1" 200 5 "-" "Agent \"7\""
b.example - - [10/Oct/2000:20:55:40 +0000] "-" 408 0 "-" "-"
a.example - - [10/Oct/2000:21:26:00 +0000] "HEAD /logo.png HTTP/1.1" 200 0 "-" "Agent \"7\""
a.example - - [10/Oct/2000:21:26:01 +0000] "GET /logo.png HTTP/1.1" 206 100 "-" "Agent \"7\""
"#;

    fn imported(text: &str) -> Result<Collected, Error> {
        let mut trace = Collected::default();
        let bytes: Box<dyn io::Read> = Box::new(text.as_bytes());
        import(&Format::Clf, vec![Input { name: "log".to_owned(), bytes }], &mut trace)?;
        Ok(trace)
    }

    #[test]
    fn requests_become_the_calls_of_a_server() {
        let trace = imported(LOG).unwrap();
        let ops = |stream: u32| -> Vec<Op> {
            let of_stream = trace.events.iter().filter(|event| event.stream == stream);
            of_stream.map(|event| event.op).collect()
        };
        assert_eq!(ops(1), [Op::Open, Op::Stat, Op::Read, Op::Close, Op::Exit]);
        let second = [Op::Open, Op::Stat, Op::Read, Op::Read, Op::Close];
        let rest = [Op::Stat, Op::LookupNeg, Op::Exit];
        assert_eq!(ops(2), [&second[..], &rest[..]].concat(), "until half an hour went by");
        assert_eq!(ops(3), [Op::Stat, Op::Open, Op::Stat, Op::Read, Op::Close]);
        assert_eq!(trace.streams.len(), 3);
        let image = trace.on("apache_pb.gif", Op::Read)[0];
        assert_eq!((image.offset, image.length, image.start_ns), (0, 2326, 0));
        assert_eq!(trace.files[&image.file].first_bytes, 2326);
        let page: u64 = trace.on("?index", Op::Read).iter().map(|event| event.length).sum();
        assert_eq!(page, 70_000);
        assert_eq!(trace.on("?index", Op::Read)[0].start_ns, S, "a second after the first");
    }

    #[test]
    fn times_are_those_of_the_calendar() {
        for (text, seconds) in [
            ("01/Jan/1970:00:00:00 +0000", 0),
            ("10/Oct/2000:13:55:36 -0700", 971_211_336),
            ("29/Feb/2024:23:59:59 +0100", 1_709_247_599),
            ("31/Dec/1999:23:59:60 +0000", 946_684_800),
        ] {
            assert_eq!(time_ns(text.as_bytes()), Some(seconds * S), "{text}");
        }
        let fine = time_ns(b"10/Oct/2000:13:55:36.125 -0700").unwrap();
        assert_eq!(fine, time_ns(b"10/Oct/2000:13:55:36 -0700").unwrap() + 125 * MS);
        for text in [
            "",
            "10/Okt/2000:13:55:36 -0700",
            "10/Oct/2000:13:55:36. -0700",
            "32/Jan/2000:00:00:00 +0000",
            "1",
        ] {
            assert_eq!(time_ns(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_damaged_size_is_no_request_and_a_large_one_takes_no_memory() {
        let line = |bytes: u64| {
            format!("h - - [10/Oct/2000:13:55:36 +0000] \"GET /a HTTP/1.0\" 200 {bytes}")
        };
        assert_eq!(request(line(SENT_MAX_BYTES + 1).as_bytes()), None);
        let line = line(SENT_MAX_BYTES);
        let mut state = State::default();
        state.take(&request(line.as_bytes()).unwrap(), &mut Ledger::default());
        assert_eq!(state.out.len(), 2, "open and stat");
        let reads = std::iter::from_fn(|| state.next()).skip(2).take(3);
        assert_eq!(reads.map(|read| read.offset / PIECE_BYTES).collect::<Vec<_>>(), [0, 1, 2]);
    }

    #[test]
    fn what_is_no_log_is_refused() {
        let refused = imported("one\ntwo \"x\n[three] \"\\").unwrap_err();
        assert!(matches!(refused, Error::OtherFormat { malformed: 3, .. }), "{refused}");
    }
}
