//! Test files: made here, locked while in use, fully written, removed when dropped.
//!
//! They are called `.ioscape-<run>-N`, created anew (never opened) with mode 0600 and held under
//! flock(2), by which a live run's files are told from what a killed run left behind.
//!
//! A block device is the one file there is on it, and a file that was there already is one, too: it
//! is neither made nor removed, and laid out only where it may be written.

mod layout;
mod leftovers;

use std::fs::File;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::{Error, Result};
use crate::extents;
use crate::run_id::RunId;
use crate::scratch;
use crate::target::{Directory, Ground};
pub use crate::verify::BLOCK_BYTES;
use crate::verify::Tag;
use layout::{Pattern, Writing};
pub use leftovers::{Leftover, Removed, leftovers, neighbours, remove_leftovers};

/// A file is broken up where its pieces are smaller than this in the mean.
const PIECE_BYTES_MIN: f64 = 1_048_576.0;
/// Pieces that are none too many for any part of a file.
const PIECES_FREE: u64 = 16;
/// Less than this says nothing of how many pieces laying out leaves.
const TELLS_PIECES_BYTES: u64 = 16 << 20;
/// Pieces as small as this are not fresh, even if laying out leaves them: a filesystem that
/// compresses has them of 128 KiB.
const FRESH_PIECE_BYTES_MIN: f64 = 65536.0;

/// The files of one run on one ground. Dropping it removes them.
#[derive(Debug)]
pub struct TestFiles {
    ground: Ground,
    run: RunId,
    interrupt: Arc<AtomicBool>,
    pattern: Pattern,
    room_bytes: u64,
    files: Vec<Option<TestFile>>,
    written_bytes: u64,
    /// The files whose numbers leave this when divided by that are ours; the others belong to other
    /// ranks, which made them and remove them.
    ours: (usize, usize),
}

#[derive(Debug)]
struct TestFile {
    /// Holds the lock as long as it is open.
    file: File,
    number: usize,
    length: u64,
    /// How many pieces laying out has left, at most, beyond [`PIECES_FREE`].
    fresh_pieces_per_byte: f64,
}

impl TestFile {
    fn new(file: File, number: usize) -> Self {
        Self { file, number, length: 0, fresh_pieces_per_byte: 0.0 }
    }

    /// Looks at what was just laid out. Where storage never has it in large pieces, because it
    /// compresses or has only smaller ones left, that is what is fresh there, within bounds.
    fn note_pieces(&mut self, range: Range<u64>) {
        let bytes = range.end.saturating_sub(range.start);
        if bytes < TELLS_PIECES_BYTES {
            return;
        }
        let count = extents::count(&self.file, range, u64::MAX).unwrap_or(0);
        let pieces_per_byte = count.saturating_sub(PIECES_FREE) as f64 / bytes as f64;
        self.fresh_pieces_per_byte =
            self.fresh_pieces_per_byte.max(pieces_per_byte).min(1.0 / FRESH_PIECE_BYTES_MIN);
    }
}

/// Gives the lock up at once: closing alone leaves it to a child that was forked meanwhile, until that child
/// becomes another program.
impl Drop for TestFile {
    fn drop(&mut self) {
        scratch::unlock(&self.file);
    }
}

impl TestFiles {
    /// No file yet. `interrupt` ends a layout under way.
    ///
    /// # Errors
    /// When the filesystem does not say how much room it has.
    pub fn new(ground: impl Into<Ground>, run: RunId, interrupt: Arc<AtomicBool>) -> Result<Self> {
        let ground = ground.into();
        let room_bytes = ground.room_bytes()?;
        let pattern = Pattern::from_run(&run);
        Ok(Self {
            ground,
            run,
            interrupt,
            pattern,
            room_bytes,
            files: Vec::new(),
            written_bytes: 0,
            ours: (0, 1),
        })
    }

    /// From now on only every so-many-th file is made here, and each rank has its part of the room.
    pub(crate) fn be_part(&mut self, rank: u32, ranks: u32) {
        self.ours = (rank as usize, ranks as usize);
        if rank > 0 {
            self.room_bytes /= u64::from(ranks); // rank 0 may make a file that all share
        }
    }

    fn is_ours(&self, number: usize) -> bool {
        let (rank, ranks) = self.ours;
        number % ranks == rank
    }

    /// Lays out blocks that can be recognised when they are read.
    pub(crate) fn stamp_with(&mut self, tag: Tag) {
        assert!(self.files.is_empty(), "what is laid out already has no stamps");
        self.pattern.tag = Some(tag);
    }

    /// Where they are.
    pub fn ground(&self) -> &Ground {
        &self.ground
    }

    /// Whose they are.
    pub fn run(&self) -> &RunId {
        &self.run
    }

    /// Most bytes that all files together may have: half of what was free at the start, or all of
    /// a device.
    pub fn room_bytes(&self) -> u64 {
        self.room_bytes
    }

    /// Bytes that all files have now.
    pub fn total_bytes(&self) -> u64 {
        self.files.iter().flatten().map(|file| file.length).sum()
    }

    /// Bytes written by laying out, so far.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes
    }

    /// One more than the largest number of a file.
    pub fn count(&self) -> usize {
        self.files.len()
    }

    /// Length of file `number`, 0 where it does not exist yet.
    pub fn length(&self, number: usize) -> u64 {
        self.files.get(number).and_then(Option::as_ref).map_or(0, |file| file.length)
    }

    /// File `number` with at least its first `length_min` bytes laid out: each byte written and
    /// on storage, incompressible, no two blocks alike. What is missing is made now; a file
    /// never shrinks, and what is there already is not written again.
    ///
    /// # Errors
    /// [`Error::NoRoom`], [`Error::Interrupted`], or what the kernel said. The part that was
    /// finished is kept, so that the same call may be made again.
    pub fn get(&mut self, number: usize, length_min: u64) -> Result<&File> {
        let wanted = length_min.next_multiple_of(BLOCK_BYTES);
        if !self.is_ours(number) {
            return self.adopt(number, wanted);
        }
        let total = self.total_bytes() + wanted.saturating_sub(self.length(number));
        if total > self.room_bytes {
            return Err(self.no_room(total));
        }
        if self.files.len() <= number {
            self.files.resize_with(number + 1, || None);
        }
        let slot = &mut self.files[number];
        let test_file = match slot {
            Some(file) => file,
            None => slot.insert(match (&self.ground, self.ground.open_again(OFlags::empty())) {
                (Ground::Directory(directory), None) => create(directory, &self.run, number)?,
                (_, opened) => TestFile::new(opened.expect("it is the file")?, number),
            }),
        };
        if self.ground.is_read_only() {
            // Whatever is on it is what is read.
            test_file.length = test_file.length.max(wanted);
        }
        if test_file.length < wanted {
            let Self { ground, pattern, interrupt, written_bytes, .. } = self;
            let mut writing = Writing { ground, pattern, interrupt, written_bytes };
            writing.grow(test_file, wanted)?;
        }
        Ok(&test_file.file)
    }

    /// A file that another rank has made and laid out.
    fn adopt(&mut self, number: usize, wanted: u64) -> Result<&File> {
        let path = self.path(number);
        if self.files.len() <= number {
            self.files.resize_with(number + 1, || None);
        }
        let slot = &mut self.files[number];
        let test_file = match (slot, self.ground.directory()) {
            (Some(file), _) => file,
            (slot, Some(directory)) => {
                let file = open(directory, &self.run.file_name(number), OFlags::empty())
                    .map_err(|error| Error::path("open", &path, error))?;
                slot.insert(TestFile::new(File::from(file), number))
            }
            (_, None) => unreachable!("ranks share a directory, not a device"),
        };
        let status = rustix::fs::fstat(&test_file.file)
            .map_err(|error| Error::path("look at", &path, error))?;
        if status.st_size.cast_unsigned() < wanted {
            let path = path.display();
            return Err(Error::Refused(format!(
                "{path} was laid out by rank 0 and is not as long here: the ranks do not see one \
                 directory, so leave layout=shared out"
            )));
        }
        test_file.length = test_file.length.max(wanted);
        Ok(&test_file.file)
    }

    /// Whether storage has the first `length` bytes of file `number` in many more pieces than laying
    /// out left: filesystems that never write in place break files up as they are written. Never,
    /// where the filesystem does not tell.
    pub fn is_broken_up(&self, number: usize, length: u64) -> bool {
        let test_file = self.files.get(number).and_then(Option::as_ref);
        let Some(test_file) = test_file.filter(|_| self.is_ours(number)) else { return false };
        let per_byte = (2.0 * test_file.fresh_pieces_per_byte).max(1.0 / PIECE_BYTES_MIN);
        let most = (per_byte * length as f64) as u64 + PIECES_FREE;
        extents::count(&test_file.file, 0..length, most).is_some_and(|count| count > most)
    }

    /// Writes the first `length` bytes of file `number` once more, front to back.
    ///
    /// # Errors
    /// [`Error::Interrupted`], or what the kernel said.
    ///
    /// # Panics
    /// Where there is no such file, or where blocks are to be recognised as the requests left them.
    pub fn lay_out_again(&mut self, number: usize, length: u64) -> Result<()> {
        assert!(self.pattern.tag.is_none(), "blocks that were written keep their stamps");
        let test_file = self.files.get_mut(number).and_then(Option::as_mut);
        let test_file = test_file.expect("a file is laid out before it is laid out again");
        let length = length.next_multiple_of(BLOCK_BYTES).min(test_file.length);
        let Self { ground, pattern, interrupt, written_bytes, .. } = self;
        let mut writing = Writing { ground, pattern, interrupt, written_bytes };
        writing.again(test_file, length)
    }

    /// Another descriptor of file `number`, with a position and read-ahead state of its own, as a
    /// process that opens the file would have. `direct` adds `O_DIRECT`.
    ///
    /// # Errors
    /// When the file is no longer the one that was made, or cannot be opened.
    pub fn open_again(&self, number: usize, access: OpenAccess) -> Result<File> {
        let test_file = self.files.get(number).and_then(Option::as_ref);
        let test_file = test_file.expect("a file is laid out before it is opened again");
        let path = self.path(number);
        let extra = match access {
            OpenAccess::Buffered => OFlags::empty(),
            OpenAccess::Direct => OFlags::DIRECT,
        };
        let Ground::Directory(directory) = &self.ground else {
            return self.ground.open_again(extra).expect("it is the file");
        };
        let opened = open(directory, &self.run.file_name(number), extra)
            .map_err(|error| Error::path("open", &path, error))?;
        let same = rustix::fs::fstat(&opened)
            .and_then(|opened| Ok(is_same(&opened, &rustix::fs::fstat(&test_file.file)?)))
            .map_err(|error| Error::path("look at", &path, error))?;
        if !same {
            let path = path.display();
            return Err(Error::Refused(format!(
                "{path} is no longer the file that this run made: somebody replaced it"
            )));
        }
        Ok(File::from(opened))
    }

    /// Path of file `number`, for messages.
    pub fn path(&self, number: usize) -> PathBuf {
        match &self.ground {
            Ground::Directory(directory) => directory.path().join(self.run.file_name(number)),
            ground => ground.path().to_owned(),
        }
    }

    fn no_room(&self, wanted_bytes: u64) -> Error {
        let path = self.ground.path();
        match &self.ground {
            Ground::Directory(_) => {
                let free_bytes = self.room_bytes * 2;
                Error::NoRoom { path: path.to_owned(), free_bytes, wanted_bytes }
            }
            Ground::Device(_) | Ground::File(_) => Error::Refused(format!(
                "{} holds {} bytes, but {wanted_bytes} are needed: lower unique_bytes or \
                 --unique-max",
                path.display(),
                self.room_bytes
            )),
        }
    }
}

/// How [`TestFiles::open_again`] opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenAccess {
    /// Through the page cache.
    Buffered,
    /// Past the page cache.
    Direct,
}

impl Drop for TestFiles {
    fn drop(&mut self) {
        let Ground::Directory(directory) = &self.ground else { return };
        for test_file in self.files.iter().flatten().filter(|file| self.is_ours(file.number)) {
            let name = self.run.file_name(test_file.number);
            remove(directory, &name, &test_file.file).ok();
        }
    }
}

fn create(directory: &Directory, run: &RunId, number: usize) -> Result<TestFile> {
    let name = run.file_name(number);
    let failed =
        |operation, error: Errno| Error::path(operation, directory.path().join(&name), error);
    let created = open(directory, &name, OFlags::CREATE | OFlags::EXCL)
        .map_err(|error| failed("create", error))?;
    let file = File::from(created);
    if let Err(error) = scratch::lock(&file) {
        remove(directory, &name, &file).ok();
        return Err(failed("lock", error));
    }
    // Whoever clears up leftovers may have found it before it was locked.
    let status = rustix::fs::fstat(&file).map_err(|error| failed("look at", error))?;
    if status.st_nlink == 0 {
        return Err(failed("create", Errno::NOENT));
    }
    Ok(TestFile::new(file, number))
}

/// Opens a name of ours for reading and writing, without touching its access time where the
/// filesystem lets us.
fn open(directory: &Directory, name: &str, extra: OFlags) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | extra;
    let mode = Mode::RUSR | Mode::WUSR;
    match rustix::fs::openat(directory.as_fd(), name, flags | OFlags::NOATIME, mode) {
        Err(Errno::PERM | Errno::INVAL) => rustix::fs::openat(directory.as_fd(), name, flags, mode),
        answer => answer,
    }
}

/// Removes `name` if it still is `file`; says whether it did.
fn remove(directory: &Directory, name: &str, file: &File) -> rustix::io::Result<bool> {
    let found = rustix::fs::statat(directory.as_fd(), name, AtFlags::SYMLINK_NOFOLLOW)?;
    if !is_same(&found, &rustix::fs::fstat(file)?) {
        return Ok(false);
    }
    rustix::fs::unlinkat(directory.as_fd(), name, AtFlags::empty())?;
    Ok(true)
}

fn is_same(one: &Stat, other: &Stat) -> bool {
    (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)
}

#[cfg(test)]
mod tests;
