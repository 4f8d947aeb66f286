//! Reads and writes that the page cache answers, appends, and what truncating and allocating take.

use std::os::fd::{AsFd, OwnedFd};

use ioscape_model::ElementName::{
    self, Append, AppendUnaligned, CloseWritten, Fallocate, ReadHit, Truncate, WriteCached,
    WritePartialCached,
};
use rustix::fs::{AtFlags, FallocateFlags, OFlags};

use super::Probe;
use super::sample::Shape;
use super::workplace::{Buffer, Enough, PAGE, Workplace, open_at, read_at, write_at};
use crate::error::Result;

/// Cached data that is read and written: more than processors keep close, bytes.
const CACHED_BYTES: u64 = 8 << 20;
/// What is appended to one file in a round, bytes.
const APPENDED_BYTES: u64 = 4 << 20;
const MIB: usize = 1 << 20;
/// A line of a log, a row: less than a page.
const PARTIAL: usize = 100;
/// `SQLite`'s frame of a page in its write-ahead log.
const UNALIGNED: usize = 4120;
const FILE: &str = "cached";
const GROWING: &str = "growing";

/// Reads and writes of a file that is cached.
#[derive(Debug, Default)]
pub(super) struct Cached {
    made: Option<(OwnedFd, Buffer, u64)>,
}

impl Probe for Cached {
    fn names(&self) -> &'static [ElementName] {
        &[ReadHit, WriteCached, WritePartialCached]
    }

    fn prepare(&mut self, at: &mut Workplace) -> Result<()> {
        let mut buffer = at.buffer(MIB);
        let length = at.room_bytes(CACHED_BYTES).max(MIB as u64);
        let (file, length) = lay_out(at, FILE, (&mut buffer, length))?;
        self.made = Some((file, buffer, length));
        Ok(())
    }

    fn round(&mut self, at: &mut Workplace) -> Result<()> {
        let Some((file, buffer, length)) = &mut self.made else { return Ok(()) };
        let (file, length) = (file.as_fd(), *length);
        for offset in (0..length).step_by(MIB) {
            read_at(file, buffer.get_mut(MIB), offset).map_err(|error| at.error("read", error))?;
        }
        for bytes in [PAGE, 16, 16 * PAGE, MIB] {
            let places = places(at, length, bytes);
            at.time((ReadHit, Shape::bytes(bytes)), at.cheap(), |call| {
                read_at(file, buffer.get_mut(bytes), places[call as usize % places.len()])
            })?;
        }
        for (name, bytes) in [
            (WriteCached, PAGE),
            (WriteCached, 16 * PAGE),
            (WriteCached, MIB),
            (WritePartialCached, PARTIAL),
        ] {
            let places = places(at, length, bytes);
            // A page that is dirty already is written to without the filesystem's doing: both kinds
            // are met, each place at most twice.
            let enough = Enough { calls: 2 * places.len() as u64, ..at.cheap() };
            let written = at.time((name, Shape::bytes(bytes)), enough, |call| {
                write_at(file, buffer.get(bytes), places[call as usize % places.len()])
            })?;
            at.note_written((written * bytes as u64).min(length))?;
            rustix::fs::fdatasync(file).map_err(|error| at.error("write back", error))?;
        }
        Ok(())
    }
}

/// Where pieces of this length begin, in random order; partial ones lie in pages of their own.
fn places(at: &mut Workplace, length: u64, bytes: usize) -> Vec<u64> {
    let step = (bytes as u64).next_multiple_of(PAGE as u64);
    at.shuffled(length / step).into_iter().map(|number| number * step).collect()
}

/// A file whose every byte is on storage, and how long it became in the time that there is for it.
pub(super) fn lay_out(
    at: &mut Workplace,
    name: &str,
    (buffer, length): (&mut Buffer, u64),
) -> Result<(OwnedFd, u64)> {
    /// A file this long is of use, bytes.
    const LEAST_BYTES: u64 = 4 << 20;
    let file =
        open_at(at.root(), name, OFlags::empty()).map_err(|error| at.error("create", error))?;
    let until_s = at.now_s() + at.pace().prepare_s;
    let mut offset = 0;
    while offset < length && (at.now_s() < until_s || offset < LEAST_BYTES) {
        let piece = (length - offset).min(MIB as u64);
        at.note_written(piece)?;
        write_at(&file, buffer.get(piece as usize), offset)
            .map_err(|error| at.error("write", error))?;
        offset += piece;
        if offset % (8 * MIB as u64) == 0 {
            rustix::fs::fdatasync(&file).map_err(|error| at.error("write back", error))?;
        }
    }
    rustix::fs::fsync(&file).map_err(|error| at.error("write back", error))?;
    Ok((file, offset))
}

/// Files that grow and are cut, and their room.
#[derive(Debug, Default)]
pub(super) struct Growing {
    buffer: Option<Buffer>,
}

impl Probe for Growing {
    fn names(&self) -> &'static [ElementName] {
        &[Append, AppendUnaligned, CloseWritten, Truncate, Fallocate]
    }

    fn prepare(&mut self, at: &mut Workplace) -> Result<()> {
        self.buffer = Some(at.buffer(MIB));
        Ok(())
    }

    fn round(&mut self, at: &mut Workplace) -> Result<()> {
        let Some(buffer) = &self.buffer else { return Ok(()) };
        for (name, bytes) in
            [(Append, PAGE), (Append, 16 * PAGE), (Append, MIB), (AppendUnaligned, UNALIGNED)]
        {
            append(at, (name, bytes), buffer)?;
        }
        for pages in [1, 16, 256] {
            truncate(at, pages, buffer)?;
        }
        for bytes in [MIB, 4 * MIB] {
            if at.room_bytes(bytes as u64) == bytes as u64 {
                allocate(at, bytes)?;
            }
        }
        at.go_on()
    }
}

/// Appends to a new file, which goes again before most of it was written back.
fn append(at: &mut Workplace, (name, bytes): (ElementName, usize), buffer: &Buffer) -> Result<()> {
    let root = at.root();
    let file = fresh(&root).map_err(|error| at.error("create", error))?;
    let calls = (at.room_bytes(APPENDED_BYTES) / bytes as u64).max(1);
    let enough = Enough { calls, ..at.cheap() };
    let appended = at.time((name, Shape::bytes(bytes)), enough, |call| {
        write_at(&file, buffer.get(bytes), call * bytes as u64)
    })?;
    at.note_written(appended * bytes as u64)?;
    let mut file = Some(file);
    let once = Enough { seconds: 0.0, calls: 1 };
    at.time((CloseWritten, Shape::NONE), once, |_| {
        drop(file.take());
        Ok(())
    })?;
    remove(at)
}

fn truncate(at: &mut Workplace, pages: usize, buffer: &Buffer) -> Result<()> {
    let root = at.root();
    let file = fresh(&root).map_err(|error| at.error("create", error))?;
    let bytes = pages * PAGE;
    let enough = at.cheap();
    let cut = at.time_each(
        (Truncate, Shape::pages(pages, 0)),
        Enough { calls: 200, seconds: 2.0 * enough.seconds },
        |_| write_at(&file, buffer.get(bytes), 0),
        |()| rustix::fs::ftruncate(&file, 0),
    )?;
    at.note_written(cut * bytes as u64)?;
    remove(at)
}

fn allocate(at: &mut Workplace, bytes: usize) -> Result<()> {
    let root = at.root();
    let enough = Enough { calls: 50, seconds: 2.0 * at.cheap().seconds };
    let made = at.time_each(
        (Fallocate, Shape::bytes(bytes)),
        enough,
        |_| {
            rustix::fs::unlinkat(&root, GROWING, AtFlags::empty()).ok();
            fresh(&root)
        },
        |file| rustix::fs::fallocate(&*file, FallocateFlags::empty(), 0, bytes as u64),
    )?;
    at.note_written(made * PAGE as u64)?;
    remove(at)
}

fn fresh(root: impl AsFd) -> rustix::io::Result<OwnedFd> {
    open_at(root, GROWING, OFlags::EXCL)
}

fn remove(at: &mut Workplace) -> Result<()> {
    match rustix::fs::unlinkat(at.root(), GROWING, AtFlags::empty()) {
        Err(error) if error != rustix::io::Errno::NOENT => Err(at.error("remove", error)),
        _ => Ok(()),
    }
}
