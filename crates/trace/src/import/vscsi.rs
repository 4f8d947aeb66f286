//! SCSI commands of virtual disks (`VMware`'s vscsi, `CloudPhysics`): little-endian records of two
//! versions, told by the upper byte of the field `ver`.
//!
//! Version 1, 32 bytes: serial u32, length u32, segments u32, command u16, ver u16, block u64,
//! time u64. Version 2, 40 bytes: command u16, ver u16, serial u32, length u32, segments u32,
//! block u64, time u64, response u64. Lengths are bytes, blocks 512 bytes, times microseconds.

use std::io;

use super::ledger::Ledger;
use super::lines::Lines;
use super::records::Fields;
use super::source::{Item, Row, Source};
use crate::event::{Event, FileKind, Op};

const BLOCK_BYTES: u64 = 512;
const US: u64 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

impl Version {
    fn record_bytes(self) -> usize {
        match self {
            Self::One => 32,
            Self::Two => 40,
        }
    }

    /// Whether a record says of itself that it is of this version.
    fn is_of(self, fields: Fields<'_>) -> bool {
        match self {
            Self::One => fields.u16(14) >> 8 == 1,
            Self::Two => fields.u16(2) >> 8 == 2,
        }
    }
}

/// A virtual disk's commands.
pub(crate) struct Vscsi<'a> {
    name: String,
    records: Lines<'a>,
    version: Option<Version>,
}

impl<'a> Vscsi<'a> {
    pub(crate) fn new(name: String, records: Lines<'a>) -> Self {
        Self { name, records, version: None }
    }

    fn version(&mut self) -> io::Result<Version> {
        if let Some(version) = self.version {
            return Ok(version);
        }
        let bytes = Version::Two.record_bytes();
        let start = self.records.peek(bytes)?;
        let is_two = start.len() == bytes && Version::Two.is_of(Fields::little(start));
        let version = if is_two { Version::Two } else { Version::One };
        self.version = Some(version);
        Ok(version)
    }
}

impl Source for Vscsi<'_> {
    fn next(&mut self, ledger: &mut Ledger) -> io::Result<Option<Item>> {
        let version = self.version()?;
        let bytes = version.record_bytes();
        loop {
            let number = self.records.number + 1;
            let record = self.records.peek(bytes)?;
            if record.is_empty() {
                return Ok(None);
            }
            ledger.tally.lines += 1;
            let fields = (record.len() == bytes).then(|| Fields::little(record));
            let fields = fields.filter(|fields| version.is_of(*fields));
            let found = fields.and_then(|fields| command(version, fields));
            match &found {
                None => ledger.tally.bad(&self.name, number, record),
                Some(Row::Other) => ledger.tally.passed_over += 1,
                Some(Row::Is(_)) => {}
            }
            self.records.take(bytes);
            if let Some(Row::Is(event)) = found {
                let file = ledger.files.volume(self.name.as_bytes(), FileKind::Block);
                ledger.files.reach(file, event.offset.saturating_add(event.length));
                return Ok(Some(Event { file, ..event }.into()));
            }
        }
    }
}

/// An event, none for a command that moves no data; `None` where numbers cannot be.
fn command(version: Version, fields: Fields<'_>) -> Option<Row<Event>> {
    let (code, length, block, time) = match version {
        Version::One => (fields.u16(12), fields.u32(4), fields.u64(16), fields.u64(24)),
        Version::Two => (fields.u16(0), fields.u32(8), fields.u64(16), fields.u64(24)),
    };
    let Some(op) = operation(code) else { return Some(Row::Other) };
    let start_ns = time.checked_mul(US)?;
    let duration_ns = match version {
        Version::One => None,
        Version::Two => fields.u64(32).checked_mul(US),
    };
    let offset = block.checked_mul(BLOCK_BYTES)?;
    let length = u64::from(length);
    offset.checked_add(length)?;
    Some(Row::Is(Event { duration_ns, offset, length, ..Event::new(start_ns, op) }))
}

/// Operation codes of SCSI block commands (SBC-4, table of commands).
fn operation(code: u16) -> Option<Op> {
    match code {
        0x08 | 0x28 | 0x88 | 0xa8 => Some(Op::Read),
        0x0a | 0x2a | 0x8a | 0xaa | 0x2e | 0x8e | 0xae | 0x41 | 0x93 => Some(Op::Write),
        0x35 | 0x91 => Some(Op::Flush),
        0x42 => Some(Op::Discard),
        _ => None,
    }
}
