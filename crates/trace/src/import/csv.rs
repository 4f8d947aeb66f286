//! Lines of columns: block traces as they are published, and whatever else has an offset and a
//! length in each line.

pub(crate) mod columns;

use std::io;

use super::ledger::Ledger;
use super::lines::Lines;
use super::scan;
use super::source::{Item, Row, Source};
use crate::event::{Event, FileKind, Layer, Op};

use columns::{BlankOp, Meaning, Separator};
pub use columns::{Columns, MapError, Preset};

/// A file of lines of columns.
pub(crate) struct Csv<'a> {
    name: String,
    lines: Lines<'a>,
    columns: Columns,
    kind: FileKind,
    /// The volume's name, put together from its columns.
    volume: Vec<u8>,
    /// The time of the line before, for files without a clock.
    last_ns: u64,
    /// The first line may hold the names of the columns.
    is_begun: bool,
}

/// Line of a file without a clock count as one nanosecond each.
const NO_CLOCK_NS: u64 = 1;

impl<'a> Csv<'a> {
    pub(crate) fn new(name: String, lines: Lines<'a>, columns: Columns) -> Self {
        let kind = match columns.layer {
            Layer::Block => FileKind::Block,
            _ => FileKind::Regular,
        };
        Self { name, lines, columns, kind, volume: Vec::new(), last_ns: 0, is_begun: false }
    }
}

impl Source for Csv<'_> {
    fn next(&mut self, ledger: &mut Ledger) -> io::Result<Option<Item>> {
        loop {
            let number = self.lines.number + 1;
            let Some(line) = self.lines.line()? else { return Ok(None) };
            if number <= self.columns.skipped || line.is_empty() {
                continue;
            }
            ledger.tally.lines += 1;
            let mut reader = Reader { columns: &self.columns, volume: &mut self.volume };
            let row = reader.row(line, self.last_ns.saturating_add(NO_CLOCK_NS), self.kind, ledger);
            let is_remark = line.first() == Some(&b'#');
            let is_first = !self.is_begun;
            self.is_begun |= !is_remark;
            match row {
                Some(Row::Is(event)) => {
                    self.last_ns = event.start_ns;
                    return Ok(Some(event.into()));
                }
                Some(Row::Other) => ledger.tally.passed_over += 1,
                // Names of columns, or a remark.
                None if is_first || is_remark => ledger.tally.lines -= 1,
                None => ledger.tally.bad(&self.name, number, line),
            }
        }
    }
}

struct Reader<'a> {
    columns: &'a Columns,
    volume: &'a mut Vec<u8>,
}

impl Reader<'_> {
    fn row(
        &mut self,
        line: &[u8],
        next_ns: u64,
        kind: FileKind,
        ledger: &mut Ledger,
    ) -> Option<Row<Event>> {
        let mut this = Event::new(next_ns, Op::Read);
        let mut stream = None;
        let mut is_blank = false;
        self.volume.clear();
        let mut fields = Fields::new(line, self.columns.separator);
        for &(column, meaning) in &self.columns.fields {
            let field = fields.nth(column)?;
            match meaning {
                Meaning::Start(unit_ns) => this.start_ns = scan::nanoseconds(field, unit_ns)?,
                Meaning::Duration(unit_ns) => {
                    this.duration_ns = scan::nanoseconds(field, unit_ns);
                }
                Meaning::Op if field.is_empty() => is_blank = true,
                Meaning::Op => this.op = operation(field)?,
                Meaning::Offset(unit) => this.offset = scan::decimal(field)?.checked_mul(unit)?,
                Meaning::Length(unit) => this.length = scan::decimal(field)?.checked_mul(unit)?,
                Meaning::Volume => {
                    if !self.volume.is_empty() {
                        self.volume.push(b'/');
                    }
                    self.volume.extend_from_slice(field);
                }
                Meaning::Stream => stream = Some(field),
            }
        }
        if is_blank {
            let is_other = self.columns.blank_op == BlankOp::IsPassedOver;
            return is_other.then_some(Row::Other);
        }
        let end = this.offset.checked_add(this.length)?;
        if let Some(stream) = stream {
            this.stream = ledger.streams.numbered(scan::decimal(stream)?, this.start_ns);
        }
        this.file = ledger.files.volume(self.volume, kind);
        ledger.files.reach(this.file, end);
        Some(Row::Is(this))
    }
}

/// Columns of a line, taken from left to right.
struct Fields<'a> {
    rest: &'a [u8],
    separator: Separator,
    /// The column that `rest` begins with, 1 and up.
    column: usize,
}

impl<'a> Fields<'a> {
    fn new(line: &'a [u8], separator: Separator) -> Self {
        let rest = if separator == Separator::Blanks { line.trim_ascii_start() } else { line };
        Self { rest, separator, column: 1 }
    }

    /// A column that is not left of the one before.
    fn nth(&mut self, column: usize) -> Option<&'a [u8]> {
        while self.column < column {
            let end = self.end()?;
            self.rest = match self.separator {
                Separator::Byte(_) => &self.rest[end + 1..],
                Separator::Blanks => self.rest[end..].trim_ascii_start(),
            };
            if self.separator == Separator::Blanks && self.rest.is_empty() {
                return None;
            }
            self.column += 1;
        }
        let field = &self.rest[..self.end().unwrap_or(self.rest.len())];
        let field = field.trim_ascii();
        let unquoted = field.strip_prefix(b"\"").and_then(|field| field.strip_suffix(b"\""));
        Some(unquoted.unwrap_or(field))
    }

    /// Where the column at hand ends; `None` for the last one.
    fn end(&self) -> Option<usize> {
        let Separator::Byte(mark) = self.separator else {
            return self.rest.iter().position(u8::is_ascii_whitespace);
        };
        let from = match self.rest {
            [b'"', text @ ..] => memchr::memchr(b'"', text).map_or(0, |at| at + 1),
            _ => 0,
        };
        memchr::memchr(mark, &self.rest[from..]).map(|at| from + at)
    }
}

/// Operations as traces write them: `R`, `Read`, `read`, `0`, `WS`, `1`, `D`.
fn operation(field: &[u8]) -> Option<Op> {
    match field {
        b"0" | [b'R' | b'r', ..] => return Some(Op::Read),
        b"1" | [b'W' | b'w', ..] => return Some(Op::Write),
        _ => {}
    }
    let word = field.to_ascii_lowercase();
    match &word[..] {
        b"d" | b"discard" | b"trim" | b"unmap" => Some(Op::Discard),
        b"f" | b"flush" => Some(Op::Flush),
        b"fsync" | b"sync" => Some(Op::Sync),
        b"fdatasync" | b"datasync" => Some(Op::Dsync),
        b"get" => Some(Op::Get),
        b"set" | b"put" => Some(Op::Set),
        b"del" | b"delete" => Some(Op::Del),
        _ => None,
    }
}
