//! The form that libCacheSim reads as `oracleGeneral`: for each page that a read or write touches
//! 24 bytes, little-endian: seconds (u32), object (u64), size (u32), number of the request that
//! touches it next (i64, -1 for none).
//!
//! The next touch is not known when a page is written, so it is put in when it comes: changes are
//! collected and made in the order of their places. Memory grows with the pages touched, not with
//! the requests.

use std::collections::HashMap;
use std::io::{self, Seek, SeekFrom, Write};

use parquet::file::reader::ChunkReader;

use crate::{FileKind, Layer, Op, Store, StoreError};

const RECORD_BYTES: u64 = 24;
/// Where in a record the number of the next request stands.
const NEXT_AT: u64 = 16;
const PAGE_BYTES: u64 = 4096;
/// Bits of an object's number that its page within the file takes.
const PAGE_BITS: u32 = 36;
/// Changes that are collected.
const CHANGES_MAX: usize = 1 << 20;
const BUFFER_BYTES: usize = 1 << 20;

/// How much was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OracleCounts {
    /// Touches of pages.
    pub requests: u64,
    /// Pages.
    pub objects: u64,
}

/// Writes the touches of pages by reads and writes of files, at the start of `out`.
///
/// # Errors
/// When the trace cannot be read or `out` be written.
pub fn oracle<R: ChunkReader + 'static>(
    store: &Store<R>,
    out: &mut (impl Write + Seek),
) -> Result<OracleCounts, StoreError> {
    let knows_files = matches!(store.info().layer, Layer::Syscall | Layer::Library);
    let others: Vec<u32> = store
        .tables()?
        .files
        .iter()
        .filter(|f| !matches!(f.kind, FileKind::Regular | FileKind::Block | FileKind::Object))
        .map(|file| file.id)
        .collect();
    let mut touches = Touches {
        out,
        buffer: Vec::new(),
        last: HashMap::new(),
        changes: Vec::new(),
        written: 0,
        count: 0,
    };
    store.for_each_event(|event| {
        let moves = matches!(event.op, Op::Read | Op::Write | Op::Sendfile | Op::Get | Op::Set);
        let is_data = event.error == 0 && event.length > 0 && (event.file != 0 || !knows_files);
        if !moves || !is_data || others.binary_search(&event.file).is_ok() {
            return Ok(());
        }
        let last = event.offset.saturating_add(event.length - 1) / PAGE_BYTES;
        for page in event.offset / PAGE_BYTES..=last {
            let object = u64::from(event.file) << PAGE_BITS | page & ((1 << PAGE_BITS) - 1);
            touches.add((event.start_ns / 1_000_000_000) as u32, object)?;
        }
        Ok(())
    })?;
    Ok(touches.finish()?)
}

struct Touches<'a, W> {
    out: &'a mut W,
    /// What is not written yet; it begins at `written`.
    buffer: Vec<u8>,
    last: HashMap<u64, u64>,
    changes: Vec<(u64, u64)>,
    written: u64,
    count: u64,
}

impl<W: Write + Seek> Touches<'_, W> {
    fn add(&mut self, seconds: u32, object: u64) -> io::Result<()> {
        if let Some(before) = self.last.insert(object, self.count) {
            self.changes.push((before, self.count));
        }
        self.buffer.extend(seconds.to_le_bytes());
        self.buffer.extend(object.to_le_bytes());
        self.buffer.extend((PAGE_BYTES as u32).to_le_bytes());
        self.buffer.extend((-1_i64).to_le_bytes());
        self.count += 1;
        if self.buffer.len() >= BUFFER_BYTES {
            self.write_buffer()?;
        }
        if self.changes.len() >= CHANGES_MAX {
            self.write_changes()?;
        }
        Ok(())
    }

    fn write_buffer(&mut self) -> io::Result<()> {
        self.out.write_all(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    fn write_changes(&mut self) -> io::Result<()> {
        self.write_buffer()?;
        self.changes.sort_unstable();
        for (record, next) in self.changes.drain(..) {
            self.out.seek(SeekFrom::Start(record * RECORD_BYTES + NEXT_AT))?;
            self.out.write_all(&next.to_le_bytes())?;
        }
        self.out.seek(SeekFrom::Start(self.written))?;
        Ok(())
    }

    fn finish(mut self) -> io::Result<OracleCounts> {
        self.write_changes()?;
        self.out.flush()?;
        Ok(OracleCounts { requests: self.count, objects: self.last.len() as u64 })
    }
}
