//! Mappings, first touches of their pages, and copies that the kernel makes.

use std::fs::File;
use std::os::fd::AsFd;

use ioscape_model::ElementName::{
    self, CopyRange, FaultAnonymous, FaultCached, FaultWrite, Map, Sendfile,
};
use rustix::fs::OFlags;

use super::Probe;
use super::cached::lay_out;
use super::mapping::Mapping;
use super::sample::Shape;
use super::workplace::{Enough, PAGE, Workplace, open_at, read_at, write_at};
use crate::error::Result;

/// How often a file is mapped in a round.
const MAPS: u64 = 500;
/// What is mapped and touched, bytes.
const MAPPED_BYTES: u64 = 8 << 20;
const ANONYMOUS_BYTES: usize = 16 << 20;
/// Written through a mapping, bytes. The page cache holds it in single pages: a large folio is dirty as
/// a whole, and where that is more than may be dirty, the writer waits at every fault until the folio
/// is written and clean, and faults again: seen without end on ext4 of Linux 6.18 in a group of 256 MiB.
const WRITTEN_BYTES: u64 = 2 << 20;
/// What `cp` asks for at a time, and more, bytes.
const COPIED: [usize; 2] = [128 << 10, 1 << 20];
const MIB: usize = 1 << 20;
const FILE: &str = "mapped";
const WRITTEN: &str = "written-mapped";
const COPY: &str = "copy";

/// Faults of all kinds but those that miss.
#[derive(Debug, Default)]
pub(super) struct Faults {
    made: Option<(File, u64)>,
    written: Option<File>,
}

impl Probe for Faults {
    fn names(&self) -> &'static [ElementName] {
        &[FaultCached, FaultWrite, FaultAnonymous, Map]
    }

    fn prepare(&mut self, at: &mut Workplace) -> Result<()> {
        let mut buffer = at.buffer(MIB);
        let length = at.room_bytes(MAPPED_BYTES).max(MIB as u64);
        let (file, length) = lay_out(at, FILE, (&mut buffer, length))?;
        self.made = Some((File::from(file), length));
        let written = open_at(at.root(), WRITTEN, OFlags::empty());
        let written = File::from(written.map_err(|error| at.error("create", error))?);
        at.note_written(WRITTEN_BYTES)?;
        for offset in (0..WRITTEN_BYTES).step_by(PAGE) {
            write_at(&written, buffer.get(PAGE), offset)
                .map_err(|error| at.error("write", error))?;
        }
        rustix::fs::fdatasync(&written).map_err(|error| at.error("write back", error))?;
        self.written = Some(written);
        Ok(())
    }

    fn round(&mut self, at: &mut Workplace) -> Result<()> {
        let (Some((file, length)), Some(written)) = (&self.made, &self.written) else {
            return Ok(());
        };
        let mut buffer = at.buffer(MIB);
        for offset in (0..*length).step_by(MIB) {
            read_at(file, buffer.get_mut(MIB), offset).map_err(|error| at.error("read", error))?;
        }
        let length = *length as usize;
        let failed = |at: &Workplace, error| at.error("map", error);
        // Four a time: mapping is not cheaper by being repeated, touching is not either.
        for _ in 0..4 {
            let mapping = Mapping::of_file(file, length).map_err(|error| failed(at, error))?;
            touch_all(at, FaultCached, length, |offset| mapping.touch(offset));
        }
        let room = WRITTEN_BYTES as usize;
        let mut mapping = Mapping::of_file(written, room).map_err(|error| failed(at, error))?;
        // Nor does what was dropped meanwhile come back in large folios.
        mapping.expect_random();
        touch_all(at, FaultWrite, room, |offset| mapping.write(offset));
        drop(mapping);
        at.note_written(WRITTEN_BYTES)?;
        rustix::fs::fdatasync(written).map_err(|error| at.error("write back", error))?;
        let mut mapping = Mapping::anonymous(ANONYMOUS_BYTES).map_err(|error| failed(at, error))?;
        touch_all(at, FaultAnonymous, ANONYMOUS_BYTES, |offset| mapping.write(offset));
        drop(mapping);
        let lap = at.lap();
        for _ in 0..MAPS {
            Mapping::of_file(file, length).map(drop).map_err(|error| failed(at, error))?;
        }
        let passed_s = at.since(&lap);
        at.push(Map, Shape::NONE, (2 * MAPS, passed_s));
        Ok(())
    }
}

/// Every page once, front to back.
fn touch_all(at: &mut Workplace, name: ElementName, length: usize, mut touch: impl FnMut(usize)) {
    let lap = at.lap();
    for offset in (0..length).step_by(PAGE) {
        touch(offset);
    }
    let passed_s = at.since(&lap);
    at.push(name, Shape::NONE, ((length / PAGE) as u64, passed_s));
}

/// Copies from a cached file to another.
#[derive(Debug, Default)]
pub(super) struct Copies {
    made: Option<(File, File, u64)>,
}

impl Probe for Copies {
    fn names(&self) -> &'static [ElementName] {
        &[CopyRange, Sendfile]
    }

    fn prepare(&mut self, at: &mut Workplace) -> Result<()> {
        let mut buffer = at.buffer(MIB);
        let length = at.room_bytes(MAPPED_BYTES).max(MIB as u64);
        let (from, length) = lay_out(at, "source", (&mut buffer, length))?;
        let to = open_at(at.root(), COPY, OFlags::empty());
        let to = to.map_err(|error| at.error("create", error))?;
        self.made = Some((File::from(from), File::from(to), length));
        Ok(())
    }

    fn round(&mut self, at: &mut Workplace) -> Result<()> {
        let Some((from, to, length)) = &self.made else { return Ok(()) };
        let mut buffer = at.buffer(MIB);
        for offset in (0..*length).step_by(MIB) {
            read_at(from, buffer.get_mut(MIB), offset).map_err(|error| at.error("read", error))?;
        }
        for name in [CopyRange, Sendfile] {
            for bytes in COPIED {
                rustix::fs::ftruncate(to, 0).map_err(|error| at.error("truncate", error))?;
                let pieces = length / bytes as u64;
                let enough = Enough { seconds: 4.0 * at.cheap().seconds, calls: pieces };
                let moved = at.time((name, Shape::bytes(bytes)), enough, |call| {
                    copy(name, (from, to), (call * bytes as u64, bytes))
                })?;
                at.note_written(moved * bytes as u64)?;
            }
        }
        rustix::fs::ftruncate(to, 0).map_err(|error| at.error("truncate", error))
    }
}

/// One piece, to the place that it has in the source.
fn copy(
    name: ElementName,
    (from, to): (impl AsFd, impl AsFd),
    (offset, bytes): (u64, usize),
) -> rustix::io::Result<()> {
    let (mut source, mut place) = (offset, offset);
    let moved = if name == CopyRange {
        rustix::fs::copy_file_range(from, Some(&mut source), to, Some(&mut place), bytes)?
    } else {
        rustix::fs::seek(&to, rustix::fs::SeekFrom::Start(offset))?;
        rustix::fs::sendfile(to, from, Some(&mut source), bytes)?
    };
    if moved == 0 { Err(rustix::io::Errno::OPNOTSUPP) } else { Ok(()) }
}
