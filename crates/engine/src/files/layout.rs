//! Laying out: writes each byte of a file, so that later reads find data and later writes
//! find blocks. Holes, unwritten extents and compressible or repeated content all make storage
//! look faster than it is; the result is checked for the first two.

use std::fs::File;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use rustix::fs::{FallocateFlags, SeekFrom};

use super::{BLOCK_BYTES, TestFile};
use crate::error::{Error, Result};
use crate::extents;
use crate::run_id::RunId;
use crate::target::Ground;
use crate::verify::{self, Tag};

/// Bytes per write call.
const CHUNK_BYTES: u64 = 1 << 20;
/// Dirty data goes to storage in pieces of this size: small beside any memory limit, so that
/// laying out does not itself fall into the kernel's write throttling.
const PACE_BYTES: u64 = 8 << 20;

/// Incompressible content. Each block gets its file and offset stamped in, so that no two are
/// alike, here or in another run: storage that looks for duplicates finds none.
#[derive(Debug)]
pub(super) struct Pattern {
    pool: Vec<u8>,
    /// Where blocks are to be recognised when they are read again.
    pub(super) tag: Option<Tag>,
}

impl Pattern {
    pub(super) fn from_run(run: &RunId) -> Self {
        let mut hasher = DefaultHasher::new();
        run.hash(&mut hasher);
        let mut pool = vec![0; CHUNK_BYTES as usize];
        Xoshiro256PlusPlus::seed_from_u64(hasher.finish()).fill_bytes(&mut pool);
        Self { pool, tag: None }
    }

    fn stamp(&self, chunk: &mut [u8], file: usize, offset: u64) {
        chunk.copy_from_slice(&self.pool[..chunk.len()]);
        for (block, at) in chunk.chunks_mut(BLOCK_BYTES as usize).zip(0..) {
            let offset = offset + at * BLOCK_BYTES;
            if let Some(tag) = self.tag {
                verify::stamp(block, tag.file(file), offset, 0);
                continue;
            }
            block[..8].copy_from_slice(&offset.to_le_bytes());
            block[8..16].copy_from_slice(&(file as u64).to_le_bytes());
        }
    }
}

/// What writing test data needs to know, and how much was written.
pub(super) struct Writing<'a> {
    pub ground: &'a Ground,
    pub pattern: &'a Pattern,
    pub interrupt: &'a AtomicBool,
    pub written_bytes: &'a mut u64,
}

impl Writing<'_> {
    /// Writes `test_file` out to `length`, which is a multiple of the block size. `length` of the
    /// file follows what was written also when this ends early.
    pub(super) fn grow(&mut self, test_file: &mut TestFile, length: u64) -> Result<()> {
        let (file, from) = (&test_file.file, test_file.length);
        reserve(file, from, length).map_err(|error| {
            Error::path("make room for", crate::cachestat::path_of(file), error)
        })?;
        let written = self.write(test_file, from..length);
        test_file.note_pieces(from..test_file.length);
        written
    }

    /// Writes the beginning of `test_file` once more, up to `length`.
    pub(super) fn again(&mut self, test_file: &mut TestFile, length: u64) -> Result<()> {
        self.write(test_file, 0..length)?;
        test_file.note_pieces(0..length);
        Ok(())
    }

    fn write(&mut self, test_file: &mut TestFile, range: Range<u64>) -> Result<()> {
        let file = &test_file.file;
        let name = || crate::cachestat::path_of(file);
        let Range { start: from, end: length } = range;
        let mut chunk = vec![0; CHUNK_BYTES as usize];
        let mut offset = from;
        while offset < length {
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let chunk = &mut chunk[..CHUNK_BYTES.min(length - offset) as usize];
            self.pattern.stamp(chunk, test_file.number, offset);
            file.write_all_at(chunk, offset)
                .map_err(|error| Error::path("lay out", name(), error))?;
            offset += chunk.len() as u64;
            *self.written_bytes += chunk.len() as u64;
            test_file.length = test_file.length.max(offset);
            if (offset - from).is_multiple_of(PACE_BYTES) && !self.ground.is_memory() {
                pace(file, from, offset)
                    .map_err(|error| Error::path("write back", name(), error))?;
            }
        }
        if !self.ground.is_memory() {
            rustix::fs::fdatasync(file)
                .map_err(|error| Error::path("write back", name(), error))?;
        }
        check_written(file, length)
    }
}

/// No hole, no block that is reserved but unwritten.
fn check_written(file: &File, length: u64) -> Result<()> {
    let name = || crate::cachestat::path_of(file);
    let refused = |what: &str| {
        Error::Refused(format!(
            "{} has {what} although each byte was written: its reads and writes would not \
                 mean what they seem to",
            name().display()
        ))
    };
    match rustix::fs::seek(file, SeekFrom::Hole(0)) {
        Ok(hole) if hole < length => return Err(refused(&format!("a hole at offset {hole}"))),
        Ok(_) | Err(rustix::io::Errno::INVAL) => {}
        Err(error) => return Err(Error::path("look for holes in", name(), error)),
    }
    let unwritten_bytes =
        extents::read_extents(file, length).map_or(0, |extents| extents.unwritten_bytes);
    if unwritten_bytes > 0 {
        return Err(refused(&format!("{unwritten_bytes} bytes that are only reserved")));
    }
    Ok(())
}

/// Asks for the blocks in one go, which keeps them together and finds a full disk before
/// anything is written. The length stays: what is reserved is not there yet.
fn reserve(file: &File, from: u64, to: u64) -> io::Result<()> {
    use rustix::io::Errno;
    match rustix::fs::fallocate(file.as_fd(), FallocateFlags::KEEP_SIZE, from, to - from) {
        Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => {
            // Gives back what it did get.
            file.set_len(from)?;
            Err(error.into())
        }
        // Where it is not supported, writing allocates.
        _ => Ok(()),
    }
}

/// Sets the latest piece going and waits for the one before it: storage is kept busy, and dirty
/// data never comes to more than two pieces.
fn pace(file: &File, from: u64, written: u64) -> io::Result<()> {
    let start = |from| sync_range(file, from, libc::SYNC_FILE_RANGE_WRITE);
    start(written - PACE_BYTES)?;
    if let Some(before) = written.checked_sub(2 * PACE_BYTES).filter(|before| *before >= from) {
        let wait = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        sync_range(file, before, wait)?;
    }
    Ok(())
}

fn sync_range(file: &File, from: u64, flags: libc::c_uint) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let (from, length) = (from.cast_signed(), PACE_BYTES.cast_signed());
    // SAFETY: the descriptor is open for as long as `file` is borrowed; no memory is passed.
    match unsafe { libc::sync_file_range(file.as_raw_fd(), from, length, flags) } {
        0 => Ok(()),
        _ => match io::Error::last_os_error() {
            // Only a matter of pace: filesystems without it are synced at the end.
            error if error.raw_os_error() == Some(libc::ENOSYS) => Ok(()),
            error => Err(error),
        },
    }
}
