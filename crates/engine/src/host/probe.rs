//! A small test file says what no table tells: whether the filesystem compresses, how long a page
//! takes to become durable, whether direct I/O is direct.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ioscape_model::checkup::Probe;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rustix::fs::{AtFlags, FallocateFlags, OFlags, StatxFlags};

use crate::aligned::Aligned;
use crate::cachestat::{drop_cache, resident};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::extents;
use crate::files::{BLOCK_BYTES, OpenAccess, TestFiles};
use crate::run_id::RunId;
use crate::target::{Device, Directory};

/// The test file.
const LENGTH_BYTES: u64 = 8 << 20;
/// A part of it that is overwritten with zeros.
const ZEROS_BYTES: u64 = 1 << 20;
/// Of each kind of request; the median counts.
const REQUESTS: usize = 15;
/// Flushes may take long: no more are made after this.
const FLUSHES_MAX_S: f64 = 1.0;

/// Makes the file, looks, and removes it. `None` where there is no room for it.
///
/// # Errors
/// When it cannot be made although there is room, or on an interrupt.
pub(super) fn make(
    directory: &Arc<Directory>,
    run: &RunId,
    clock: &Clock,
    interrupt: Arc<AtomicBool>,
) -> Result<Option<Probe>> {
    let in_memory = directory.is_memory();
    let mut files = TestFiles::new(Arc::clone(directory), run.clone(), interrupt)?;
    if files.room_bytes() < LENGTH_BYTES {
        return Ok(None);
    }
    files.get(0, LENGTH_BYTES)?;
    let file = files.open_again(0, OpenAccess::Buffered)?;
    let failed = |error: std::io::Error| Error::path("try out", files.path(0), error);
    let mut probe = Probe {
        length_bytes: LENGTH_BYTES,
        extents: extents::read_extents(&file, LENGTH_BYTES).map(|extents| extents.count),
        direct_align_bytes: direct_align_bytes(&file),
        ..Probe::default()
    };
    if in_memory {
        return Ok(Some(probe));
    }
    probe.flush_s = Some(flush_s(&file, clock).map_err(failed)?);
    drop_cache(&file, 0..LENGTH_BYTES).map_err(failed)?;
    probe.read_ahead_bytes = read_ahead_bytes(&file);
    if let Ok(direct) = files.open_again(0, OpenAccess::Direct) {
        drop_cache(&file, 0..LENGTH_BYTES).map_err(failed)?;
        probe.direct_read_s = direct_read_s(&direct, LENGTH_BYTES, clock);
        probe.direct_is_direct = resident(&file, 0..LENGTH_BYTES)
            .filter(|_| probe.direct_read_s.is_some())
            .map(|cached| cached.resident_bytes == 0);
    } else {
        probe.direct_align_bytes = probe.direct_align_bytes.or(Some(0));
    }
    probe.compresses = compresses(&file).map_err(failed)?;
    Ok(Some(probe))
}

/// Reads alone, from all over the device.
pub(super) fn of_device(device: &Device, clock: &Clock) -> Option<Probe> {
    let direct = device.open_again(OFlags::DIRECT).ok()?;
    Some(Probe {
        direct_align_bytes: rustix::fs::ioctl_blksszget(device.as_fd()).ok().map(u64::from),
        direct_read_s: direct_read_s(&direct, device.length_bytes(), clock),
        ..Probe::default()
    })
}

/// A page written and flushed, over and over.
fn flush_s(file: &File, clock: &Clock) -> std::io::Result<f64> {
    let mut page = vec![0; BLOCK_BYTES as usize];
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(1);
    let began_s = clock.now_s();
    let mut times_s = Vec::new();
    while times_s.len() < REQUESTS && clock.now_s() - began_s < FLUSHES_MAX_S {
        chance.fill_bytes(&mut page);
        file.write_all_at(&page, times_s.len() as u64 * BLOCK_BYTES)?;
        let start_s = clock.now_s();
        rustix::fs::fdatasync(file)?;
        times_s.push(clock.now_s() - start_s);
    }
    Ok(median(times_s))
}

/// Pages spread over the file, out of order, past the page cache; `None` where that fails.
fn direct_read_s(file: &File, length_bytes: u64, clock: &Clock) -> Option<f64> {
    let mut page = Aligned::new(BLOCK_BYTES as usize);
    let blocks = length_bytes / BLOCK_BYTES;
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(2);
    let mut times_s = Vec::new();
    for _ in 0..REQUESTS {
        let at = chance.next_u64() % blocks * BLOCK_BYTES;
        let start_s = clock.now_s();
        file.read_exact_at(page.bytes_mut(), at).ok()?;
        times_s.push(clock.now_s() - start_s);
    }
    Some(median(times_s))
}

/// What one page read from the middle of an uncached file brings in.
fn read_ahead_bytes(file: &File) -> Option<u64> {
    let mut page = vec![0; BLOCK_BYTES as usize];
    file.read_exact_at(&mut page, LENGTH_BYTES / 2).ok()?;
    Some(resident(file, 0..LENGTH_BYTES)?.resident_bytes)
}

/// Zeros written over a part of the file: less room, or blocks that the filesystem calls encoded.
fn compresses(file: &File) -> std::io::Result<Option<bool>> {
    let before = rustix::fs::fstat(file)?.st_blocks;
    // Room that is reserved keeps a filesystem from compressing what goes there: it is given up
    // first, where that is possible.
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    if rustix::fs::fallocate(file, punch, 0, ZEROS_BYTES).is_err() {
        return Ok(None);
    }
    file.write_all_at(&vec![0; ZEROS_BYTES as usize], 0)?;
    rustix::fs::fsync(file)?;
    let after = rustix::fs::fstat(file)?.st_blocks;
    let encoded =
        extents::read_extents(file, ZEROS_BYTES).is_some_and(|extents| extents.encoded_bytes > 0);
    Ok(Some(encoded || (after + (ZEROS_BYTES / 512 / 2).cast_signed()) < before))
}

/// What direct I/O has to keep to, as the file says; `None` where the kernel is too old to tell.
fn direct_align_bytes(file: &File) -> Option<u64> {
    let answer =
        rustix::fs::statx(file.as_fd(), "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let known = answer.stx_mask & StatxFlags::DIOALIGN.bits() != 0;
    known.then(|| u64::from(answer.stx_dio_offset_align))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
