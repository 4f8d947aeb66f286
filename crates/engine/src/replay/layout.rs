//! Makes what is there before the first call: directories, lengths, data, and which of them are in
//! the page cache.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{Advice, Mode, OFlags};
use rustix::io::Errno;

use super::names::Names;
use super::{AtStart, POOL_BYTES, Shape, StageFile};
use crate::error::{Error, Result};

const PAGE_BYTES: usize = 4096;
/// A symbolic link leads here: to its own directory.
const LINK_TARGET: &str = ".";

/// Bytes that the files take at the start.
pub(super) fn data_bytes(files: &[StageFile]) -> u64 {
    let data = files.iter().filter_map(|file| file.at_start).filter(|start| start.has_data);
    data.map(|start| start.bytes).fold(0, u64::saturating_add)
}

/// Lays files out.
pub(super) struct Layout<'a> {
    pub(super) root: &'a OwnedFd,
    pub(super) names: &'a Names,
    pub(super) pool: &'a [u8],
    pub(super) interrupt: &'a AtomicBool,
    /// Written so far.
    pub(super) bytes: u64,
}

impl Layout<'_> {
    /// Makes all of them; `place` is where the stage is, for what is said of errors.
    pub(super) fn make(
        &mut self,
        files: &[StageFile],
        place: &Path,
        on_bytes: &mut dyn FnMut(u64),
    ) -> Result<()> {
        let mut is_made = vec![false; files.len()];
        let mut path = String::new();
        let at = |path: &str| place.join(path);
        for (number, file) in (0..).zip(files).skip(1) {
            let Some(start) = file.at_start else { continue };
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            self.directories(files, file.directory, &mut is_made)
                .map_err(|error| Error::path("make directories in", place, error))?;
            self.names.path(number, &mut path);
            let made = match file.shape {
                Shape::Directory => self.directories(files, number, &mut is_made),
                Shape::Link => rustix::fs::symlinkat(LINK_TARGET, self.root, path.as_str()),
                Shape::File => self.file(&path, &start, on_bytes),
            };
            match made {
                Err(Errno::INTR) => return Err(Error::Interrupted),
                made => made.map_err(|error| Error::path("create", at(&path), error))?,
            }
        }
        // Nothing that laying out left dirty is written back while calls are timed.
        rustix::fs::syncfs(self.root).map_err(|error| Error::path("write back", place, error))?;
        self.drop_cached(files, place)
    }

    /// Makes a directory with those above it.
    fn directories(
        &self,
        files: &[StageFile],
        directory: u32,
        is_made: &mut [bool],
    ) -> rustix::io::Result<()> {
        let mut chain = Vec::new();
        let mut at = directory;
        while at != 0 && !is_made.get(at as usize).copied().unwrap_or(true) {
            is_made[at as usize] = true; // a ring of directories ends here
            chain.push(at);
            at = files[at as usize].directory;
        }
        let mut path = String::new();
        for directory in chain.into_iter().rev() {
            self.names.path(directory, &mut path);
            match rustix::fs::mkdirat(self.root, path.as_str(), Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn file(
        &mut self,
        path: &str,
        start: &AtStart,
        on_bytes: &mut dyn FnMut(u64),
    ) -> rustix::io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(self.root, path, flags, Mode::RUSR | Mode::WUSR)?;
        if !start.has_data {
            return rustix::fs::ftruncate(&file, start.bytes);
        }
        // A large write makes large folios, all of which a small write dirties later: as programs that
        // write in small pieces find their files in single pages, these get them so.
        let is_in_pages = start.is_cached && start.is_written;
        let piece_bytes = if is_in_pages { PAGE_BYTES } else { POOL_BYTES };
        let mut at = 0;
        while at < start.bytes {
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(Errno::INTR);
            }
            let length = (start.bytes - at).min(piece_bytes as u64) as usize;
            // Pieces that begin in different places have no block in common.
            let from = (self.bytes / 4096 * 8 + self.bytes / 511) as usize % POOL_BYTES;
            let written = rustix::io::pwrite(&file, &self.pool[from..from + length], at)?;
            at += written as u64;
            self.bytes += written as u64;
            on_bytes(self.bytes);
        }
        Ok(())
    }

    /// Drops from the page cache what was not in it. What is clean by now, goes.
    fn drop_cached(&self, files: &[StageFile], place: &Path) -> Result<()> {
        let mut path = String::new();
        for (number, file) in (0..).zip(files).skip(1) {
            let Some(start) = file.at_start else { continue };
            if start.is_cached || !start.has_data || file.shape != Shape::File {
                continue;
            }
            self.names.path(number, &mut path);
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            rustix::fs::openat(self.root, path.as_str(), flags, Mode::empty())
                .and_then(|file| rustix::fs::fadvise(&file, 0, None, Advice::DontNeed))
                .map_err(|error| Error::path("drop from memory", place.join(&path), error))?;
        }
        Ok(())
    }
}
