//! Text of `darshan-dxt-parser`: each read and write of an application, by file and rank.

use std::io;

use super::ledger::Ledger;
use super::lines::Lines;
use super::scan::{self, Words};
use super::source::{Item, Row, Source};
use crate::event::{Event, Op};

const S: u64 = 1_000_000_000;
/// The file is in the order of files, not of time: so many events are put in order at once.
const SORTED_AT_ONCE: usize = 1 << 20;
const PARTS: &str = "The file was longer than is sorted at once: events are in order of time within \
                     parts of a million only.";
const LIBRARY: &str =
    "Only the POSIX calls were taken; those of MPI-IO above them would count twice.";

/// A file that the parser wrote.
pub(crate) struct Dxt<'a> {
    name: String,
    lines: Lines<'a>,
    /// The file that the lines below its heading are about.
    file: u32,
    /// One for each heading: a rank's own opening of the file.
    handle: u32,
    /// Events in order of time, the earliest last.
    sorted: Vec<Event>,
    parts: u32,
}

impl<'a> Dxt<'a> {
    pub(crate) fn new(name: String, lines: Lines<'a>) -> Self {
        Self { name, lines, file: 0, handle: 0, sorted: Vec::new(), parts: 0 }
    }

    fn fill(&mut self, ledger: &mut Ledger) -> io::Result<()> {
        while self.sorted.len() < SORTED_AT_ONCE {
            let number = self.lines.number + 1;
            let Some(line) = self.lines.line()? else { break };
            if let Some(remark) = line.strip_prefix(b"#") {
                if let Some(path) = file_name(remark) {
                    self.file = ledger.files.path(path);
                    self.handle = self.handle.wrapping_add(1).max(1);
                }
                continue;
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            ledger.tally.lines += 1;
            match segment(line, ledger) {
                Some(Row::Is(event)) => {
                    let end = event.offset.saturating_add(event.length);
                    ledger.files.reach(self.file, end);
                    self.sorted.push(Event { file: self.file, handle: self.handle, ..event });
                }
                Some(Row::Other) => ledger.tally.passed_over += 1,
                None => ledger.tally.bad(&self.name, number, line),
            }
        }
        self.sorted.sort_by_key(|event| std::cmp::Reverse(event.start_ns));
        self.parts += u32::from(!self.sorted.is_empty());
        if self.parts > 1 {
            ledger.limit(PARTS);
        }
        Ok(())
    }
}

impl Source for Dxt<'_> {
    fn next(&mut self, ledger: &mut Ledger) -> io::Result<Option<Item>> {
        if self.sorted.is_empty() {
            self.fill(ledger)?;
        }
        Ok(self.sorted.pop().map(Item::from))
    }
}

/// ` DXT, file_id: 8515, file_name: /scratch/a.out`.
fn file_name(remark: &[u8]) -> Option<&[u8]> {
    let mark = b"file_name: ";
    let at = memchr::memmem::find(remark, mark)?;
    Some(remark[at + mark.len()..].trim_ascii())
}

/// ` X_POSIX 0 write 0 1048576 1048576 4.8324 4.8436`: module, rank, direction, number, offset,
/// length, start and end in seconds. None for modules that call POSIX themselves.
fn segment(line: &[u8], ledger: &mut Ledger) -> Option<Row<Event>> {
    let mut words = Words::in_line(line);
    match words.next()? {
        b"X_POSIX" => {}
        module if module.starts_with(b"X_") => {
            ledger.limit(LIBRARY);
            return Some(Row::Other);
        }
        _ => return None,
    }
    let rank = scan::number(words.next()?)?;
    let op = match words.next()? {
        b"read" => Op::Read,
        b"write" => Op::Write,
        _ => return None,
    };
    scan::decimal(words.next()?)?;
    let (offset, length) = (scan::decimal(words.next()?)?, scan::decimal(words.next()?)?);
    let start_ns = scan::nanoseconds(words.next()?, S)?;
    let end_ns = scan::nanoseconds(words.next()?, S)?;
    offset.checked_add(length)?;
    let stream = ledger.streams.numbered(rank.cast_unsigned(), start_ns);
    let duration_ns = Some(end_ns.saturating_sub(start_ns));
    Some(Row::Is(Event { duration_ns, stream, offset, length, ..Event::new(start_ns, op) }))
}
