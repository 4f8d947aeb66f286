//! oracleGeneral, libCacheSim's format of object traces: records of 24 bytes, little-endian:
//! u32 seconds, u64 object, u32 size, i64 the number of the object's next request, −1 for none.

use std::io;

use super::ledger::Ledger;
use super::lines::Lines;
use super::records::Fields;
use super::source::{Item, Source};
use crate::event::{Event, Op};

const RECORD_BYTES: usize = 24;
const S: u64 = 1_000_000_000;
/// Smallest number of a next request: there is none, or none was looked for.
const NEXT_MIN: i64 = -2;

/// A trace of objects.
pub(crate) struct Oracle<'a> {
    name: String,
    records: Lines<'a>,
}

impl<'a> Oracle<'a> {
    pub(crate) fn new(name: String, records: Lines<'a>) -> Self {
        Self { name, records }
    }
}

impl Source for Oracle<'_> {
    fn next(&mut self, ledger: &mut Ledger) -> io::Result<Option<Item>> {
        loop {
            let number = self.records.number + 1;
            let record = self.records.peek(RECORD_BYTES)?;
            if record.is_empty() {
                return Ok(None);
            }
            ledger.tally.lines += 1;
            let found = (record.len() == RECORD_BYTES).then(|| Fields::little(record));
            let found = found.filter(|fields| fields.u64(16).cast_signed() >= NEXT_MIN);
            let item = found.map(|fields| Event {
                length: u64::from(fields.u32(12)),
                other: fields.u64(4),
                ..Event::new(u64::from(fields.u32(0)) * S, Op::Get)
            });
            if item.is_none() {
                ledger.tally.bad(&self.name, number, record);
            }
            self.records.take(RECORD_BYTES);
            if let Some(event) = item {
                return Ok(Some(Event { file: file(event.other), ..event }.into()));
            }
        }
    }
}

/// A file for each object, without a table that grows with them: its number, or a hash of it (the
/// finaliser of `MurmurHash3`) where that takes more than 32 bits.
fn file(object: u64) -> u32 {
    if let Ok(file @ 1..) = u32::try_from(object) {
        return file;
    }
    let mut hash = (object ^ object >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash = (hash ^ hash >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    ((hash >> 32) as u32).max(1)
}
