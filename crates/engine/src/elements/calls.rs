//! Calls that touch nothing but a descriptor, a lock, and a read by io_uring that is answered at
//! once.

use std::fs::File;
use std::os::fd::AsRawFd;

use io_uring::{IoUring, opcode, types};
use ioscape_model::ElementName::{self, Descriptor, Fstat, Lock, RingReadHit, Seek};
use rustix::fs::{OFlags, SeekFrom};

use super::Probe;
use super::sample::Shape;
use super::workplace::{Buffer, PAGE, Workplace, open_at, read_at, write_at};
use crate::error::Result;

const FILE: &str = "called";
/// What the file has, pages.
const PAGES: u64 = 256;

/// Calls on one open file.
#[derive(Debug, Default)]
pub(super) struct Calls {
    made: Option<(File, Buffer)>,
}

impl Probe for Calls {
    fn names(&self) -> &'static [ElementName] {
        &[Fstat, Seek, Descriptor, Lock]
    }

    fn prepare(&mut self, at: &mut Workplace) -> Result<()> {
        self.made = Some(file(at, FILE)?);
        Ok(())
    }

    fn round(&mut self, at: &mut Workplace) -> Result<()> {
        let Some((file, _)) = &self.made else { return Ok(()) };
        at.time((Fstat, Shape::NONE), at.cheap(), |_| rustix::fs::fstat(file).map(drop))?;
        at.time((Seek, Shape::NONE), at.cheap(), |call| {
            rustix::fs::seek(file, SeekFrom::Start(call % PAGES)).map(drop)
        })?;
        at.time((Descriptor, Shape::NONE), at.cheap(), |_| {
            rustix::fs::fcntl_getfl(file).map(drop)
        })?;
        at.time((Lock, Shape::NONE), at.cheap(), |call| lock(file, call))?;
        Ok(())
    }
}

/// Takes a range and gives it back, in turn: what `SQLite` and its like do.
fn lock(file: &File, call: u64) -> rustix::io::Result<()> {
    let kind = if call.is_multiple_of(2) { libc::F_WRLCK } else { libc::F_UNLCK };
    // SAFETY: all zeros is a valid `flock`.
    let mut range: libc::flock = unsafe { std::mem::zeroed() };
    range.l_type = kind as libc::c_short;
    range.l_whence = libc::SEEK_SET as libc::c_short;
    range.l_start = 1 << 30;
    range.l_len = 1;
    // SAFETY: the kernel reads `range`, which lives through the call.
    let status = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &raw const range) };
    if status == 0 { Ok(()) } else { Err(last_error()) }
}

fn last_error() -> rustix::io::Errno {
    let error = std::io::Error::last_os_error();
    rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO)
}

fn file(at: &mut Workplace, name: &str) -> Result<(File, Buffer)> {
    let buffer = at.buffer(PAGES as usize * PAGE);
    let file =
        open_at(at.root(), name, OFlags::empty()).map_err(|error| at.error("create", error))?;
    at.note_written(PAGES * PAGE as u64)?;
    let bytes = buffer.get(PAGES as usize * PAGE);
    write_at(&file, bytes, 0).map_err(|error| at.error("write", error))?;
    Ok((File::from(file), buffer))
}

/// Reads by io_uring.
#[derive(Default)]
pub(super) struct Ring {
    made: Option<(IoUring, File, Buffer)>,
}

impl Probe for Ring {
    fn names(&self) -> &'static [ElementName] {
        &[RingReadHit]
    }

    fn prepare(&mut self, at: &mut Workplace) -> Result<()> {
        match IoUring::new(4) {
            Ok(ring) => {
                let (file, buffer) = file(at, "ring")?;
                self.made = Some((ring, file, buffer));
            }
            Err(error) => at.refuse(RingReadHit, format!("io_uring cannot be used here: {error}")),
        }
        Ok(())
    }

    fn round(&mut self, at: &mut Workplace) -> Result<()> {
        let Some((ring, file, buffer)) = &mut self.made else { return Ok(()) };
        read_at(&*file, buffer.get_mut(PAGES as usize * PAGE), 0)
            .map_err(|error| at.error("read", error))?;
        at.time((RingReadHit, Shape::bytes(PAGE)), at.cheap(), |call| {
            read(ring, file, (buffer, call % PAGES * PAGE as u64))
        })?;
        Ok(())
    }
}

/// Submitted and waited for in one call.
fn read(
    ring: &mut IoUring,
    file: &File,
    (buffer, offset): (&mut Buffer, u64),
) -> rustix::io::Result<()> {
    let bytes = buffer.get_mut(PAGE);
    let descriptor = types::Fd(file.as_raw_fd());
    let entry = opcode::Read::new(descriptor, bytes.as_mut_ptr(), bytes.len() as u32);
    let failed = |error: &std::io::Error| {
        rustix::io::Errno::from_io_error(error).unwrap_or(rustix::io::Errno::IO)
    };
    // SAFETY: the buffer and the file outlive the request: it is waited for before this returns.
    unsafe { ring.submission().push(&entry.offset(offset).build()) }
        .map_err(|_| rustix::io::Errno::BUSY)?;
    ring.submit_and_wait(1).map_err(|error| failed(&error))?;
    match ring.completion().next().map(|done| done.result()) {
        Some(moved) if usize::try_from(moved) == Ok(PAGE) => Ok(()),
        Some(code) if code < 0 => Err(rustix::io::Errno::from_raw_os_error(-code)),
        _ => Err(rustix::io::Errno::IO),
    }
}
