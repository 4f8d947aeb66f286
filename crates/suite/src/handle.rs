//! A benchmark's file: its calls go through the meter.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use ioscape_engine::error::{Error, Result};

use crate::meter::{Call, Meter};

/// A file of a benchmark, with its number and its own idea of where it is.
#[derive(Debug)]
pub struct Handle {
    file: File,
    number: u32,
    path: PathBuf,
    position: u64,
}

impl Handle {
    /// Opens `path` as the benchmark's file `number`.
    ///
    /// # Errors
    /// What the kernel said, with the path.
    pub fn open(meter: &mut Meter, path: &Path, number: u32, how: &OpenOptions) -> Result<Self> {
        let file = meter.name("open", path, || how.open(path))?;
        Ok(Self { file, number, path: path.to_owned(), position: 0 })
    }

    /// Creates or empties `path`.
    ///
    /// # Errors
    /// What the kernel said, with the path.
    pub fn create(meter: &mut Meter, path: &Path, number: u32) -> Result<Self> {
        let mut how = File::options();
        Self::open(meter, path, number, how.write(true).create(true).truncate(true))
    }

    /// Opens `path` for reading.
    ///
    /// # Errors
    /// What the kernel said, with the path.
    pub fn read_only(meter: &mut Meter, path: &Path, number: u32) -> Result<Self> {
        Self::open(meter, path, number, File::options().read(true))
    }

    /// The file itself.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Moves to `offset`.
    ///
    /// # Errors
    /// What the kernel said.
    #[inline]
    pub fn seek(&mut self, offset: u64) -> Result<()> {
        self.position = self
            .file
            .seek(io::SeekFrom::Start(offset))
            .map_err(|error| Error::path("seek in", &self.path, error))?;
        Ok(())
    }

    /// Reads once from where it is; gives how much came.
    ///
    /// # Errors
    /// [`Error::Interrupted`], or what the kernel said.
    #[inline]
    pub fn read(&mut self, meter: &mut Meter, into: &mut [u8]) -> Result<usize> {
        meter.check()?;
        let place = (self.position, into.len());
        let count = meter
            .at(Call::Read, self.number, place, || self.file.read(into))
            .map_err(|error| self.failed("read", place, error))?;
        meter.came(count);
        self.position += count as u64;
        Ok(count)
    }

    /// Reads exactly as much as fits.
    ///
    /// # Errors
    /// [`Error::Interrupted`], what the kernel said, or that the file ended.
    #[inline]
    pub fn read_exact(&mut self, meter: &mut Meter, into: &mut [u8]) -> Result<()> {
        let (place, wanted) = ((self.position, into.len()), into.len());
        if self.read(meter, into)? == wanted {
            return Ok(());
        }
        Err(self.failed("read", place, io::ErrorKind::UnexpectedEof.into()))
    }

    /// Writes all of it where it is.
    ///
    /// # Errors
    /// [`Error::Interrupted`], or what the kernel said.
    #[inline]
    pub fn write(&mut self, meter: &mut Meter, from: &[u8]) -> Result<()> {
        meter.check()?;
        let place = (self.position, from.len());
        meter
            .at(Call::Write, self.number, place, || self.file.write_all(from))
            .map_err(|error| self.failed("write", place, error))?;
        self.position += from.len() as u64;
        Ok(())
    }

    /// Reads exactly as much as fits at a place, in one call.
    ///
    /// # Errors
    /// [`Error::Interrupted`], what the kernel said, or that the file ended.
    #[inline]
    pub fn read_at(&self, meter: &mut Meter, into: &mut [u8], offset: u64) -> Result<()> {
        meter.check()?;
        let place = (offset, into.len());
        meter
            .at(Call::Read, self.number, place, || self.file.read_exact_at(into, offset))
            .map_err(|error| self.failed("read", place, error))
    }

    /// Writes all of it at a place.
    ///
    /// # Errors
    /// [`Error::Interrupted`], or what the kernel said.
    #[inline]
    pub fn write_at(&self, meter: &mut Meter, from: &[u8], offset: u64) -> Result<()> {
        meter.check()?;
        let place = (offset, from.len());
        meter
            .at(Call::Write, self.number, place, || self.file.write_all_at(from, offset))
            .map_err(|error| self.failed("write", place, error))
    }

    /// Waits until its data are on storage.
    ///
    /// # Errors
    /// [`Error::Interrupted`], or what the kernel said.
    pub fn sync_data(&self, meter: &mut Meter) -> Result<()> {
        meter.check()?;
        meter
            .at(Call::Sync, self.number, (0, 0), || self.file.sync_data())
            .map_err(|error| Error::path("sync", &self.path, error))
    }

    /// Closes it.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn close(self, meter: &mut Meter) -> Result<()> {
        let Self { file, path, .. } = self;
        meter.name("close", &path, || {
            drop(file);
            Ok(())
        })
    }

    fn failed(&self, direction: &'static str, place: (u64, usize), source: io::Error) -> Error {
        let (offset, length) = (place.0, place.1 as u64);
        Error::Request { direction, offset, length, path: self.path.clone(), source }
    }
}
