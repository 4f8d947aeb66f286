//! blktrace's binary files, one for each processor: `struct blk_io_trace` of 48 bytes and its
//! wider version 2 of 64 bytes, each followed by `pdu_len` bytes (`linux/blktrace_api.h`).

use std::io;

use super::ledger::Ledger;
use super::lines::Lines;
use super::pairing::PREFLUSH;
use super::records::{Endian, Fields};
use super::source::{Item, Source, Step};
use crate::event::{Event, Flags, Op};

/// The upper three bytes of a record's first number; the lowest is the version.
const MAGIC: u32 = 0x0065_6174;
const RECORD_BYTES: [usize; 2] = [48, 64];
const SECTOR_BYTES: u64 = 512;
/// Looked through for the next record where one is broken.
const SEARCHED_BYTES: usize = 4096;

/// Categories: bits of the upper half of `action`.
mod category {
    pub(super) const READ: u64 = 1;
    pub(super) const WRITE: u64 = 1 << 1;
    pub(super) const FLUSH: u64 = 1 << 2;
    pub(super) const SYNC: u64 = 1 << 3;
    pub(super) const PASSED_THROUGH: u64 = 1 << 9;
    pub(super) const NOTIFY: u64 = 1 << 10;
    pub(super) const DISCARD: u64 = 1 << 13;
    pub(super) const FORCED_ACCESS: u64 = 1 << 15;
}

/// One processor's file.
pub(crate) struct Blktrace<'a> {
    name: String,
    records: Lines<'a>,
    endian: Endian,
    /// Bytes between records were no record: said once for each gap.
    is_lost: bool,
}

impl<'a> Blktrace<'a> {
    pub(crate) fn new(name: String, records: Lines<'a>) -> Self {
        Self { name, records, endian: Endian::Little, is_lost: false }
    }

    /// Length of the record at hand, without what follows it; `None` where there is no record.
    fn record_bytes(&mut self) -> io::Result<Option<usize>> {
        let Ok(start) = <[u8; 4]>::try_from(self.records.peek(4)?) else { return Ok(None) };
        let orders =
            [(Endian::Little, u32::from_le_bytes(start)), (Endian::Big, u32::from_be_bytes(start))];
        for (endian, magic) in orders {
            let version = magic & 0xff;
            if magic >> 8 == MAGIC && (version == 7 || version == 8) {
                self.endian = endian;
                return Ok(Some(RECORD_BYTES[version as usize - 7]));
            }
        }
        Ok(None)
    }

    /// Goes to where the next record may begin.
    fn search(&mut self) -> io::Result<()> {
        let bytes = self.records.peek(SEARCHED_BYTES)?;
        let marks = [MAGIC.to_be_bytes(), MAGIC.to_le_bytes()];
        let little = memchr::memmem::find(&bytes[1..], &marks[1][..3]);
        let big = memchr::memmem::find(&bytes[1..], &marks[0][1..]);
        // In little-endian order the version is the byte before the mark.
        let at = [little, big.map(|at| at + 1)].into_iter().flatten().min();
        let skipped = at.unwrap_or(bytes.len().saturating_sub(4)).max(1);
        self.records.take(skipped);
        Ok(())
    }
}

impl Source for Blktrace<'_> {
    fn next(&mut self, ledger: &mut Ledger) -> io::Result<Option<Item>> {
        loop {
            let number = self.records.number + 1;
            let length = self.record_bytes()?;
            let endian = self.endian;
            let record = self.records.peek(length.unwrap_or(RECORD_BYTES[0]))?;
            if record.is_empty() {
                return Ok(None);
            }
            let Some(length) = length.filter(|&length| length == record.len()) else {
                if !self.is_lost {
                    ledger.tally.lines += 1;
                    ledger.tally.bad(&self.name, number, record);
                }
                self.is_lost = true;
                self.search()?;
                continue;
            };
            self.is_lost = false;
            ledger.tally.lines += 1;
            let fields = Fields { bytes: record, endian };
            let follows = if length == 48 { fields.u16(46) } else { fields.u16(50) };
            let item = item(fields, ledger);
            let total = length + usize::from(follows);
            self.records.peek(total)?;
            self.records.take(total);
            match item {
                Some(item) => return Ok(Some(item)),
                None => ledger.tally.passed_over += 1,
            }
        }
    }
}

/// A step of a request; `None` for notes, merges, plugs and requests that are no I/O.
fn item(fields: Fields<'_>, ledger: &mut Ledger) -> Option<Item> {
    let is_wide = fields.bytes.len() > 48;
    let (pid, action, device, error) = if is_wide {
        (fields.u32(28), fields.u64(32), fields.u32(40), fields.u16(48))
    } else {
        (fields.u32(32), u64::from(fields.u32(28)), fields.u32(36), fields.u16(44))
    };
    let is = |bits: u64| action >> 16 & bits != 0;
    if is(category::NOTIFY) || is(category::PASSED_THROUGH) {
        return None;
    }
    let step = match action & 0xff {
        1 => Step::Queued,
        7 => Step::Issued,
        8 => Step::Completed,
        _ => return None,
    };
    let length = u64::from(fields.u32(24));
    let op = if is(category::DISCARD) {
        Op::Discard
    } else if is(category::FLUSH) && length == 0 {
        Op::Flush
    } else if is(category::WRITE) {
        Op::Write
    } else if is(category::READ) {
        Op::Read
    } else {
        return None;
    };
    let is_sync = op != Op::Read && is(category::SYNC | category::FORCED_ACCESS);
    let start_ns = fields.u64(8);
    let file = ledger.files.device((device >> 20, device & 0xf_ffff));
    let offset = fields.u64(16).checked_mul(SECTOR_BYTES)?;
    ledger.files.reach(file, offset.checked_add(length)?);
    // The kernel's errors are negative there.
    let error = error.cast_signed().saturating_abs();
    // Who is running when a request is done has nothing to do with it.
    let stream = match step {
        Step::Completed => 0,
        _ => ledger.streams.numbered(u64::from(pid), start_ns),
    };
    let event = Event {
        stream,
        file,
        offset,
        length,
        error,
        flags: if is_sync { Flags::SYNC } else { Flags::default() },
        other: if is(category::FLUSH) && op == Op::Write { PREFLUSH } else { 0 },
        ..Event::new(start_ns, op)
    };
    Some(Item { event, step })
}
