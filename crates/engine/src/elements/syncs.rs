//! What it takes until data are on storage: by what was done to the file since, over pages and the
//! pieces that they lie in. At a limit of requests the pieces decide, elsewhere the pages.

use std::os::fd::{AsFd, OwnedFd};

use ioscape_model::ElementName::{
    self, SyncClean, SyncDirectory, SyncGrown, SyncNew, SyncOverwritten,
};
use rustix::fs::{AtFlags, OFlags, fdatasync, fsync};

use super::Probe;
use super::cached::lay_out;
use super::sample::Shape;
use super::workplace::{Buffer, Enough, PAGE, Workplace, open_at, write_at};
use crate::error::Result;

/// The file that is overwritten, bytes.
const OVERWRITTEN_BYTES: u64 = 16 << 20;
/// A file grows to this, bytes.
const GROWN_BYTES_MAX: u64 = 8 << 20;
/// Pages and pieces that are overwritten before a sync; the usual one first.
const OVERWRITTEN: [(usize, usize); 6] = [(1, 1), (4, 1), (16, 1), (64, 1), (4, 4), (16, 16)];
/// One kind of sync writes no more in a round, bytes.
const WRITTEN_BYTES_MAX: u64 = 16 << 20;
/// Calls of one kind in a round; a limit of 3000 requests per second takes a tenth for a cycle.
const CALLS_MAX: u64 = 4000;
const GROWN: [usize; 3] = [1, 4, 16];
const NEW: [usize; 2] = [1, 16];
const FILE: &str = "overwritten";
const GROWING: &str = "grown";
const MADE: &str = "made";

/// All kinds of syncs, in one go: storage is as busy with one as with the next.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    made: Option<(OwnedFd, Buffer, u64)>,
}

impl Probe for Syncs {
    fn names(&self) -> &'static [ElementName] {
        &[SyncOverwritten, SyncGrown, SyncNew, SyncDirectory, SyncClean]
    }

    fn prepare(&mut self, at: &mut Workplace) -> Result<()> {
        let mut buffer = at.buffer(1 << 20);
        let length = at.room_bytes(OVERWRITTEN_BYTES).max(1 << 20);
        let (file, length) = lay_out(at, FILE, (&mut buffer, length))?;
        self.made = Some((file, buffer, length));
        Ok(())
    }

    fn round(&mut self, at: &mut Workplace) -> Result<()> {
        let Some((file, buffer, length)) = &self.made else { return Ok(()) };
        let file = file.as_fd();
        let pages = length / PAGE as u64;
        if !at.directory().is_memory() {
            let busy = at.ramp(|call| {
                write_at(file, buffer.get(PAGE), call % pages * PAGE as u64)?;
                fdatasync(file)
            })?;
            at.note_written(busy * PAGE as u64)?;
        }
        for (count, pieces) in OVERWRITTEN {
            let places = at.shuffled(pages / 128);
            overwrite(at, (file, buffer), (count, pieces), &places)?;
        }
        for count in GROWN {
            grow(at, buffer, count)?;
        }
        for count in NEW {
            make(at, buffer, count)?;
        }
        sync_directory(at)?;
        fdatasync(file).map_err(|error| at.error("write back", error))?;
        at.time_waits((SyncClean, Shape::NONE), enough(at, 1), |_| fdatasync(file))?;
        Ok(())
    }
}

/// A share of the time for costly operations, for there are many kinds of syncs, and of what is written.
fn enough(at: &Workplace, pages: usize) -> Enough {
    let calls = (WRITTEN_BYTES_MAX / (pages * PAGE) as u64).clamp(256, CALLS_MAX);
    Enough { seconds: at.pace().costly_s, calls }
}

/// Overwrites pages side by side, or far apart from each other; `places` are in units of 128 pages.
fn overwrite(
    at: &mut Workplace,
    (file, buffer): (impl AsFd + Copy, &Buffer),
    (count, pieces): (usize, usize),
    places: &[u64],
) -> Result<()> {
    let (unit, piece) = (128 * PAGE as u64, count / pieces * PAGE);
    let dirty = |call: u64| {
        (0..pieces).try_for_each(|number| {
            let index = (call as usize * pieces + number) % places.len();
            // The last ones over a small file leave a page between them and the ones before, so that no two join.
            let lap = ((call as usize * pieces + number) / places.len() % 32) as u64;
            write_at(file, buffer.get(piece), places[index] * unit + 2 * lap * PAGE as u64)
        })
    };
    let shape = Shape::pages(count, pieces);
    let synced =
        at.time_each((SyncOverwritten, shape), enough(at, count), dirty, |()| fdatasync(file))?;
    at.note_written(synced * (count * PAGE) as u64)
}

fn grow(at: &mut Workplace, buffer: &Buffer, count: usize) -> Result<()> {
    let root = at.root();
    let bytes = count * PAGE;
    let file = open_at(&root, GROWING, OFlags::EXCL).map_err(|error| at.error("create", error))?;
    write_at(&file, buffer.get(PAGE), 0).map_err(|error| at.error("write", error))?;
    fsync(&file).map_err(|error| at.error("write back", error))?;
    let calls = (at.room_bytes(GROWN_BYTES_MAX) / bytes as u64).clamp(1, CALLS_MAX);
    let grown = at.time_each(
        (SyncGrown, Shape::pages(count, 1)),
        Enough { calls, ..enough(at, count) },
        |call| write_at(&file, buffer.get(bytes), PAGE as u64 + call * bytes as u64),
        |()| fdatasync(&file),
    )?;
    at.note_written(grown * bytes as u64)?;
    rustix::fs::unlinkat(&root, GROWING, AtFlags::empty())
        .map_err(|error| at.error("remove", error))
}

/// New files, each of which goes once it is on storage.
fn make(at: &mut Workplace, buffer: &Buffer, count: usize) -> Result<()> {
    let root = at.root();
    let bytes = count * PAGE;
    let made = at.time_each(
        (SyncNew, Shape::pages(count, 1)),
        enough(at, count),
        |_| {
            rustix::fs::unlinkat(&root, MADE, AtFlags::empty()).ok();
            let file = open_at(&root, MADE, OFlags::EXCL)?;
            write_at(&file, buffer.get(bytes), 0)?;
            Ok(file)
        },
        |file| fsync(&*file),
    )?;
    at.note_written(made * bytes as u64)?;
    rustix::fs::unlinkat(&root, MADE, AtFlags::empty()).map_err(|error| at.error("remove", error))
}

/// The directory after a file was made in it: the other half of making a file durable.
fn sync_directory(at: &mut Workplace) -> Result<()> {
    let root = at.root();
    let made = at.time_each(
        (SyncDirectory, Shape::NONE),
        enough(at, 1),
        |_| {
            rustix::fs::unlinkat(&root, MADE, AtFlags::empty()).ok();
            open_at(&root, MADE, OFlags::EXCL)
        },
        |_| fsync(&root),
    )?;
    at.note_written(made * PAGE as u64)?;
    rustix::fs::unlinkat(&root, MADE, AtFlags::empty()).map_err(|error| at.error("remove", error))
}
