//! Text of `perf script`: tracepoints of the block layer, and of system calls.

mod calls;

use std::io;

use super::ledger::Ledger;
use super::lines::Lines;
use super::pairing;
use super::scan::{self, Words};
use super::source::{Item, Row, Source, Step};
use crate::event::{Event, Op};
use calls::Calls;

const S: u64 = 1_000_000_000;
const SECTOR_BYTES: u64 = 512;

/// A file that perf script wrote.
pub(crate) struct Perf<'a> {
    name: String,
    lines: Lines<'a>,
    calls: Calls,
    wanted: Wanted,
}

/// One layer of those that a file may hold: one is below the page cache, the other above it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Block,
    Calls,
}

/// A line's beginning, and what is behind the event's name.
#[derive(Clone, Copy, Debug)]
struct Head<'a> {
    tid: u32,
    time_ns: u64,
    /// `block` of `block:block_rq_issue`.
    group: &'a [u8],
    name: &'a [u8],
    rest: &'a [u8],
}

impl<'a> Perf<'a> {
    pub(crate) fn new(name: String, lines: Lines<'a>, wanted: Wanted) -> Self {
        Self { name, lines, calls: Calls::new(), wanted }
    }
}

impl Source for Perf<'_> {
    fn next(&mut self, ledger: &mut Ledger) -> io::Result<Option<Item>> {
        loop {
            if let Some(event) = self.calls.pop() {
                return Ok(Some(event.into()));
            }
            let number = self.lines.number + 1;
            let Some(line) = self.lines.line()? else { return Ok(None) };
            if line.is_empty() || line.first() == Some(&b'#') {
                continue;
            }
            ledger.tally.lines += 1;
            let found = head(line).and_then(|head| match (head.group, self.wanted) {
                (b"block", Wanted::Block) => block(&head, ledger),
                (b"syscalls" | b"raw_syscalls", Wanted::Calls) => {
                    self.calls.line(&head, ledger).map(|()| Row::Other)
                }
                _ => {
                    ledger.tally.passed_over += 1;
                    Some(Row::Other)
                }
            });
            match found {
                Some(Row::Is(item)) => return Ok(Some(item)),
                Some(Row::Other) => {}
                None => ledger.tally.bad(&self.name, number, line),
            }
        }
    }
}

/// `comm 1234 [000] 100.000001: block:block_rq_issue: …`; the processor may be absent, and the name
/// of a command may have blanks and brackets.
fn head(line: &[u8]) -> Option<Head<'_>> {
    let mut words = Words::in_line(line);
    let (mut before, mut last) = (None, None);
    loop {
        let word = words.next()?;
        let is_time = |time: &[u8]| {
            time.first().is_some_and(u8::is_ascii_digit) && memchr::memchr(b'.', time).is_some()
        };
        if let Some(time) = word.strip_suffix(b":").filter(|time| is_time(time))
            && let Some(time_ns) = scan::nanoseconds(time, S)
        {
            let is_processor = |word: &&[u8]| word.first() == Some(&b'[');
            let tid: &[u8] = if last.as_ref().is_some_and(is_processor) { before? } else { last? };
            let tid = tid.rsplit(|byte| *byte == b'/').next()?;
            // −1 stands for a thread that is gone.
            let tid = u32::try_from(scan::number(tid)?.max(0)).ok()?;
            // A period may stand before the name.
            let mut event = words.next()?;
            if event.iter().all(u8::is_ascii_digit) {
                event = words.next()?;
            }
            let (group, name) = scan::split_at_byte(event.strip_suffix(b":")?, b':')?;
            return Some(Head { tid, time_ns, group, name, rest: words.rest() });
        }
        (before, last) = (last, Some(word));
    }
}

/// A step of a request, none for other events of the block layer.
fn block(head: &Head<'_>, ledger: &mut Ledger) -> Option<Row<Item>> {
    let step = match head.name {
        b"block_bio_queue" => Step::Queued,
        b"block_rq_issue" => Step::Issued,
        b"block_rq_complete" => Step::Completed,
        _ => {
            ledger.tally.passed_over += 1;
            return Some(Row::Other);
        }
    };
    let mut words = Words::in_line(head.rest);
    let device = scan::device(words.next()?, b',')?;
    let Some((op, flags, preflush)) = pairing::rwbs(words.next()?) else {
        ledger.tally.passed_over += 1;
        return Some(Row::Other);
    };
    let rest = words.rest();
    let plus = memchr::memmem::find(rest, b" + ")?;
    let sector = rest[..plus].rsplit(|byte| *byte == b' ').next()?;
    let mut after = Words::in_line(&rest[plus + 3..]);
    let sectors = scan::decimal(after.next()?)?;
    // A flush has the sector −1.
    let offset = match scan::decimal(sector).and_then(|sector| sector.checked_mul(SECTOR_BYTES)) {
        Some(offset) => offset,
        None if op == Op::Flush => 0,
        None => return None,
    };
    let length = sectors.checked_mul(SECTOR_BYTES)?;
    let file = ledger.files.device(device);
    ledger.files.reach(file, offset.checked_add(length)?);
    let error = if step == Step::Completed { error(after.rest()) } else { 0 };
    // Who is running when a request is done has nothing to do with it.
    let stream = match step {
        Step::Completed => 0,
        _ => ledger.streams.numbered(u64::from(head.tid), head.time_ns),
    };
    let place = Event { stream, file, offset, length, ..Event::new(head.time_ns, op) };
    Some(Row::Is(Item { event: Event { flags, error, other: preflush, ..place }, step }))
}

/// `[-5]` at the end of a completion.
fn error(text: &[u8]) -> i16 {
    let last = text.strip_suffix(b"]").and_then(|text| text.rsplit(|&byte| byte == b'[').next());
    let number = last.and_then(scan::number).unwrap_or(0);
    i16::try_from(number.saturating_abs()).unwrap_or(0)
}
