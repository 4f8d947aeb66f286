//! Reads, partial writes and faults that the page cache cannot answer. The pages of a file of our
//! own are dropped before (`fadvise`), which needs no root and disturbs nobody.

use std::fs::File;
use std::os::fd::AsFd;

use ioscape_model::ElementName::{
    self, DirectRead, DirectWrite, FaultMissed, ReadRandomMiss, ReadSequentialMiss, WriteDsync,
    WritePartialMiss,
};
use rustix::fs::{Advice, OFlags};

use super::Probe;
use super::cached::lay_out;
use super::mapping::Mapping;
use super::sample::Shape;
use super::workplace::{Buffer, Enough, PAGE, Workplace, open_at, read_at, write_at};
use crate::cachestat::{drop_cache, resident};
use crate::error::Result;

/// Data that is read cold, bytes.
const COLD_BYTES: u64 = 64 << 20;
/// What programs that read from front to back ask for at a time (cp, tar, sort), bytes.
const PIECE: usize = 128 << 10;
const PARTIAL: usize = 100;
const MIB: usize = 1 << 20;
/// More of the file than this is still cached after it was dropped: nothing can be missed.
const KEPT_MAX: f64 = 0.05;
const FILE: &str = "cold";

/// A file whose pages are dropped.
#[derive(Debug, Default)]
pub(super) struct Missed {
    made: Option<Made>,
}

#[derive(Debug)]
struct Made {
    file: File,
    buffer: Buffer,
    length: u64,
}

impl Probe for Missed {
    fn names(&self) -> &'static [ElementName] {
        &[ReadRandomMiss, ReadSequentialMiss, FaultMissed, WritePartialMiss]
    }

    fn prepare(&mut self, at: &mut Workplace) -> Result<()> {
        let mut buffer = at.buffer(MIB);
        let length = at.room_bytes(COLD_BYTES).max(4 << 20);
        let (file, length) = lay_out(at, FILE, (&mut buffer, length))?;
        let made = Made { file: File::from(file), buffer, length };
        let kept = made.drop_pages(at)?;
        if kept > KEPT_MAX {
            for name in self.names() {
                at.refuse(*name, "files live in memory here: no page of them can be missing");
            }
            return Ok(());
        }
        self.made = Some(made);
        Ok(())
    }

    fn round(&mut self, at: &mut Workplace) -> Result<()> {
        let Some(made) = &mut self.made else { return Ok(()) };
        made.random(at)?;
        made.sequential(at)?;
        made.faults(at)?;
        made.partial(at)
    }
}

impl Made {
    /// Drops all pages; which share of them stayed.
    fn drop_pages(&self, at: &Workplace) -> Result<f64> {
        drop_cache(&self.file, 0..self.length)
            .map_err(|error| crate::Error::path("drop from the page cache", at.path(), error))?;
        let kept = resident(&self.file, 0..self.length).map_or(0, |kept| kept.resident_bytes);
        Ok(kept as f64 / self.length as f64)
    }

    fn advise(&self, advice: Advice) {
        rustix::fs::fadvise(&self.file, 0, None, advice).ok();
    }

    /// Each page is asked for once: the first ones bring what throttles let through at once.
    fn random(&mut self, at: &mut Workplace) -> Result<()> {
        self.drop_pages(at)?;
        self.advise(Advice::Random);
        let (file, buffer) = (&self.file, &mut self.buffer);
        // Half of the file in pages, the rest in larger pieces.
        let half = self.length / 2;
        let pages = at.shuffled(half / PAGE as u64);
        let place = |call: u64| pages.get(call as usize).copied().unwrap_or(0) * PAGE as u64;
        let few = pages.len() as u64 / 2;
        let ramped = at.ramp(|call| {
            if call < few { read_at(file, buffer.get_mut(PAGE), place(call)) } else { Ok(()) }
        })?;
        let first = ramped.min(few);
        at.time_waits((ReadRandomMiss, Shape::bytes(PAGE)), at.costly(few), |call| {
            read_at(file, buffer.get_mut(PAGE), place(first + call))
        })?;
        for (bytes, from) in [(16 * PAGE, half), (MIB, half + half / 2)] {
            let pieces = at.shuffled(half / 2 / bytes as u64);
            let place = |call: u64| from + pieces[call as usize % pieces.len()] * bytes as u64;
            // A piece that comes round again is dropped first, untimed.
            let missing = |call: u64| {
                let place = place(call);
                let length = std::num::NonZeroU64::new(bytes as u64);
                rustix::fs::fadvise(file, place, length, Advice::DontNeed).map(|()| place)
            };
            // Small pages have not used up what a limit of bytes lets through at once.
            let ramped = at.ramp(|call| {
                missing(call).and_then(|place| read_at(file, buffer.get_mut(bytes), place))
            })?;
            let enough = Enough { seconds: 0.5 * at.pace().costly_s, calls: u64::MAX };
            let of = (ReadRandomMiss, Shape::bytes(bytes));
            at.time_each(
                of,
                enough,
                |call| missing(ramped + call),
                |place| read_at(file, buffer.get_mut(bytes), *place),
            )?;
        }
        Ok(())
    }

    /// From the front, with read-ahead as it is.
    fn sequential(&mut self, at: &mut Workplace) -> Result<()> {
        self.drop_pages(at)?;
        self.advise(Advice::Normal);
        let (file, buffer) = (&self.file, &mut self.buffer);
        let pieces = self.length / PIECE as u64;
        at.time_waits((ReadSequentialMiss, Shape::bytes(PIECE)), at.costly(pieces), |call| {
            read_at(file, buffer.get_mut(PIECE), call * PIECE as u64)
        })?;
        Ok(())
    }

    fn faults(&mut self, at: &mut Workplace) -> Result<()> {
        self.drop_pages(at)?;
        let mapping = Mapping::of_file(&self.file, self.length as usize)
            .map_err(|error| at.error("map", error))?;
        mapping.expect_random();
        let pages = at.shuffled(self.length / PAGE as u64);
        at.time_waits((FaultMissed, Shape::NONE), at.costly(pages.len() as u64), |call| {
            mapping.touch(pages[call as usize] as usize * PAGE);
            Ok(())
        })?;
        Ok(())
    }

    /// Dirty pages are written back before the next drop, outside of the time.
    fn partial(&mut self, at: &mut Workplace) -> Result<()> {
        self.drop_pages(at)?;
        self.advise(Advice::Random);
        let (file, buffer) = (&self.file, &self.buffer);
        let pages = at.shuffled(self.length / PAGE as u64);
        let enough = at.costly(500.min(pages.len() as u64));
        let written = at.time_waits((WritePartialMiss, Shape::bytes(PARTIAL)), enough, |call| {
            write_at(file, buffer.get(PARTIAL), pages[call as usize] * PAGE as u64 + 24)
        })?;
        at.note_written(written * PAGE as u64)?;
        self.drop_pages(at).map(drop)
    }
}

/// Requests that go past the page cache, or are on storage when they return.
#[derive(Debug, Default)]
pub(super) struct Direct {
    made: Option<(File, Option<File>, Buffer, u64)>,
}

/// A file that is written past the page cache, bytes.
const DIRECT_BYTES: u64 = 16 << 20;
const DIRECT_FILE: &str = "direct";

impl Probe for Direct {
    fn names(&self) -> &'static [ElementName] {
        &[WriteDsync, DirectRead, DirectWrite]
    }

    fn prepare(&mut self, at: &mut Workplace) -> Result<()> {
        let mut buffer = at.buffer(MIB);
        let length = at.room_bytes(DIRECT_BYTES).max(4 << 20);
        let (_, length) = lay_out(at, DIRECT_FILE, (&mut buffer, length))?;
        let direct = open_at(at.root(), DIRECT_FILE, OFlags::DIRECT).map(File::from).ok();
        // Some filesystems open for direct access and take a cached page all the same.
        let direct = direct.filter(|direct| {
            drop_cache(direct, 0..length).ok();
            let read = read_at(direct, buffer.get_mut(PAGE), 0);
            let kept = resident(direct, 0..length).map_or(0, |kept| kept.resident_bytes);
            read.is_ok() && kept == 0
        });
        if direct.is_none() {
            for name in [DirectRead, DirectWrite] {
                at.refuse(name, "the filesystem has no direct access");
            }
        }
        let durable = open_at(at.root(), DIRECT_FILE, OFlags::DSYNC);
        let durable = File::from(durable.map_err(|error| at.error("create", error))?);
        self.made = Some((durable, direct, buffer, length));
        Ok(())
    }

    fn round(&mut self, at: &mut Workplace) -> Result<()> {
        let Some((durable, direct, buffer, length)) = &mut self.made else { return Ok(()) };
        let pages = at.shuffled(*length / PAGE as u64);
        let place = |call: u64| pages[call as usize % pages.len()] * PAGE as u64;
        if !at.directory().is_memory() {
            at.ramp(|call| write_at(durable.as_fd(), buffer.get(PAGE), place(call)))?;
        }
        let written = at.time_waits((WriteDsync, Shape::bytes(PAGE)), at.costly(1000), |call| {
            write_at(durable.as_fd(), buffer.get(PAGE), place(call))
        })?;
        at.note_written(2 * written * PAGE as u64)?;
        let Some(direct) = direct else { return Ok(()) };
        for (bytes, share, most) in [(PAGE, 1.0, 2000), (16 * PAGE, 0.5, 64), (MIB, 0.5, 8)] {
            let pieces = at.shuffled(*length / bytes as u64);
            let place = |call: u64| pages_at(&pieces, call) * bytes as u64;
            let enough = Enough { seconds: share * at.pace().costly_s, calls: most };
            at.time_waits((DirectRead, Shape::bytes(bytes)), enough, |call| {
                read_at(direct.as_fd(), buffer.get_mut(bytes), place(call))
            })?;
            let written = at.time_waits((DirectWrite, Shape::bytes(bytes)), enough, |call| {
                write_at(direct.as_fd(), buffer.get(bytes), place(call))
            })?;
            at.note_written(written * bytes as u64)?;
        }
        Ok(())
    }
}

fn pages_at(pieces: &[u64], call: u64) -> u64 {
    pieces[call as usize % pieces.len()]
}
