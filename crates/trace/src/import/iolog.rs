//! fio's logs of I/O (`write_iolog`), versions 2 and 3: one file for each job.

use std::io;

use super::ledger::Ledger;
use super::lines::Lines;
use super::scan::{self, Words};
use super::source::{Item, Row, Source};
use crate::event::{Event, Flags, Op};

/// A job's log.
pub(crate) struct Iolog<'a> {
    name: String,
    lines: Lines<'a>,
    version: Version,
    /// This job among all of them, 0 and up.
    job: u64,
    /// Version 2: the sum of the waits so far.
    clock_ns: u64,
    /// File of each open handle.
    open: Vec<(u32, u32)>,
    handles: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// No line has been read.
    Unknown,
    /// `file action [offset length]`, time by `wait`.
    Two,
    /// `time file action [offset length]`.
    Three,
}

const US: u64 = 1_000;
/// Handles of different jobs are told apart by their upper bits.
const HANDLES_OF_JOB: u32 = 1 << 16;

impl<'a> Iolog<'a> {
    pub(crate) fn new(name: String, lines: Lines<'a>, job: u64) -> Self {
        let handles = (job as u32).wrapping_mul(HANDLES_OF_JOB);
        let version = Version::Unknown;
        Self { name, lines, version, job, clock_ns: 0, open: Vec::new(), handles }
    }
}

impl Source for Iolog<'_> {
    fn next(&mut self, ledger: &mut Ledger) -> io::Result<Option<Item>> {
        loop {
            let number = self.lines.number + 1;
            let Some(line) = self.lines.line()? else { return Ok(None) };
            if line.is_empty() {
                continue;
            }
            ledger.tally.lines += 1;
            if self.version == Version::Unknown {
                let found = version(line);
                self.version = found.unwrap_or(Version::Two);
                if found.is_none() {
                    ledger.tally.bad(&self.name, number, line);
                }
                continue;
            }
            let state = State {
                version: self.version,
                job: self.job,
                clock_ns: &mut self.clock_ns,
                open: &mut self.open,
                handles: &mut self.handles,
            };
            match state.line(line, ledger) {
                Some(Row::Is(event)) => return Ok(Some(event.into())),
                Some(Row::Other) => {}
                None => ledger.tally.bad(&self.name, number, line),
            }
        }
    }
}

fn version(line: &[u8]) -> Option<Version> {
    let rest = line.strip_prefix(b"fio version ")?;
    match rest.first()? {
        b'2' => Some(Version::Two),
        b'3' => Some(Version::Three),
        _ => None,
    }
}

struct State<'a> {
    version: Version,
    job: u64,
    clock_ns: &'a mut u64,
    open: &'a mut Vec<(u32, u32)>,
    handles: &'a mut u32,
}

impl State<'_> {
    /// An event, none for a line that only adds a file or waits; `None` for no line of a log.
    fn line(self, line: &[u8], ledger: &mut Ledger) -> Option<Row<Event>> {
        let mut words = Words::in_line(line);
        if self.version == Version::Three {
            *self.clock_ns = scan::decimal(words.next()?)?.checked_mul(US)?;
        }
        let (file, action) = (words.next()?, words.next()?);
        let op = match action {
            b"add" => {
                ledger.files.path(file);
                return Some(Row::Other);
            }
            b"wait" => {
                let wait_ns = scan::decimal(words.next()?)?.checked_mul(US)?;
                *self.clock_ns = self.clock_ns.checked_add(wait_ns)?;
                return Some(Row::Other);
            }
            b"open" => Op::Open,
            b"close" => Op::Close,
            b"read" => Op::Read,
            b"write" => Op::Write,
            b"trim" => Op::Discard,
            b"sync" => Op::Sync,
            b"datasync" => Op::Dsync,
            b"sync_file_range" => Op::Rsync,
            _ => return None,
        };
        let mut this = Event::new(*self.clock_ns, op);
        if matches!(op, Op::Read | Op::Write | Op::Discard) {
            this.offset = scan::decimal(words.next()?)?;
            this.length = scan::decimal(words.next()?)?;
        }
        let end = this.offset.checked_add(this.length)?;
        this.stream = ledger.streams.numbered(self.job, this.start_ns);
        this.file = ledger.files.path(file);
        ledger.files.reach(this.file, end);
        this.handle = handle(op, this.file, self.open, self.handles);
        this.flags = Flags::default();
        Some(Row::Is(this))
    }
}

/// The handle of a file that is open; one more where it is opened.
fn handle(op: Op, file: u32, open: &mut Vec<(u32, u32)>, handles: &mut u32) -> u32 {
    let known = open.iter().position(|(of, _)| *of == file);
    match (op, known) {
        (Op::Close, Some(at)) => open.swap_remove(at).1,
        (Op::Open, _) => {
            *handles = handles.wrapping_add(1).max(1);
            open.retain(|(of, _)| *of != file);
            open.push((file, *handles));
            *handles
        }
        (_, Some(at)) => open[at].1,
        (_, None) => 0,
    }
}
