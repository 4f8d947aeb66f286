//! Text of blkparse in its own format: `8,0 1 42 0.000123456 697 D W 223490 + 8 [kjournald]`.

use std::io;

use super::ledger::Ledger;
use super::lines::Lines;
use super::pairing;
use super::scan::{self, Words};
use super::source::{Item, Row, Source, Step};
use crate::event::{Event, Op};

const S: u64 = 1_000_000_000;
const SECTOR_BYTES: u64 = 512;

/// A file that blkparse wrote.
pub(crate) struct Blkparse<'a> {
    name: String,
    lines: Lines<'a>,
    /// Sums by processor follow; nothing else does.
    is_footer: bool,
}

impl<'a> Blkparse<'a> {
    pub(crate) fn new(name: String, lines: Lines<'a>) -> Self {
        Self { name, lines, is_footer: false }
    }
}

impl Source for Blkparse<'_> {
    fn next(&mut self, ledger: &mut Ledger) -> io::Result<Option<Item>> {
        loop {
            let number = self.lines.number + 1;
            let Some(line) = self.lines.line()? else { return Ok(None) };
            self.is_footer |= line.starts_with(b"CPU") || line.starts_with(b"Total (");
            if line.is_empty() || self.is_footer {
                continue;
            }
            ledger.tally.lines += 1;
            match step(line, ledger) {
                Some(Row::Is(item)) => return Ok(Some(item)),
                Some(Row::Other) => ledger.tally.passed_over += 1,
                None => ledger.tally.bad(&self.name, number, line),
            }
        }
    }
}

/// A step of a request, none for another kind of line; `None` for no line of blkparse.
fn step(line: &[u8], ledger: &mut Ledger) -> Option<Row<Item>> {
    let mut words = Words::in_line(line);
    let device = scan::device(words.next()?, b',')?;
    let (_cpu, _sequence) = (scan::decimal(words.next()?)?, scan::decimal(words.next()?)?);
    let start_ns = scan::nanoseconds(words.next()?, S)?;
    let pid = scan::decimal(words.next()?)?;
    let step = match words.next()? {
        b"Q" => Step::Queued,
        b"D" => Step::Issued,
        b"C" => Step::Completed,
        action if action.len() <= 2 => return Some(Row::Other),
        _ => return None,
    };
    let Some((op, flags, preflush)) = pairing::rwbs(words.next()?) else { return Some(Row::Other) };
    // `FW` without a place is a flush of its own: there are no data behind it.
    let has_place = memchr::memmem::find(words.rest(), b" + ").is_some();
    let (op, preflush) = if preflush > 0 && !has_place { (Op::Flush, 0) } else { (op, preflush) };
    let (offset, length) = place(words.rest(), op)?;
    let file = ledger.files.device(device);
    ledger.files.reach(file, offset.checked_add(length)?);
    // Who is running when a request is done has nothing to do with it.
    let stream = match step {
        Step::Completed => 0,
        _ => ledger.streams.numbered(pid, start_ns),
    };
    let place = Event { stream, file, offset, length, ..Event::new(start_ns, op) };
    let error = if step == Step::Completed { error(words.rest()) } else { 0 };
    Some(Row::Is(Item { event: Event { flags, error, other: preflush, ..place }, step }))
}

/// `223490 + 8 [comm]`, in sectors; a flush has no place. A request to the device itself, with its
/// command in brackets, is no I/O of a place either.
fn place(text: &[u8], op: Op) -> Option<(u64, u64)> {
    let mut words = Words::in_line(text);
    let sector = words.next().and_then(scan::decimal);
    let plus = words.next();
    match (sector, plus) {
        (Some(sector), Some(b"+")) => {
            let sectors = scan::decimal(words.next()?)?;
            Some((sector.checked_mul(SECTOR_BYTES)?, sectors.checked_mul(SECTOR_BYTES)?))
        }
        _ if op == Op::Flush => Some((sector.unwrap_or(0).checked_mul(SECTOR_BYTES)?, 0)),
        _ => None,
    }
}

/// `[-5]` at the end of a completion.
fn error(text: &[u8]) -> i16 {
    let last = text.strip_suffix(b"]").and_then(|text| text.rsplit(|&byte| byte == b'[').next());
    let number = last.and_then(scan::number).unwrap_or(0);
    i16::try_from(number.saturating_abs()).unwrap_or(0)
}
