//! Makes one call after another, as one stream of a trace.

use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::fs::{
    Advice, AtFlags, FallocateFlags, FlockOperation, Mode, OFlags, RawDir, SeekFrom, Timespec,
    Timestamps,
};
use rustix::io::{Errno, Result};

use super::handles::Handle;
use super::mappings::Mapping;
use super::stage::Stage;
use super::{Action, How, Kind, Outcome, POOL_BYTES, Shape};

const PAGE: usize = 4096;
/// Entries of a directory are asked for in pieces of this size, as the C library does.
const LIST_BYTES: usize = 32 << 10;
/// An extended attribute that no file has.
const ATTRIBUTE: &str = "user.ioscape";
/// Handles of files that no call opened are told from those of the trace by this bit.
const OF_FILE: u64 = 1 << 32;
/// Pieces of one transfer: the kernel takes no more.
const PIECES_MAX: usize = 1024;

/// Makes calls on a stage. Each stream of a trace has one.
#[derive(Debug)]
pub struct Performer<'a> {
    stage: &'a Stage,
    /// Read into, from a page's border on.
    buffer: Vec<u8>,
    /// Entries of directories.
    entries: Option<Vec<MaybeUninit<u8>>>,
    path: String,
    other_path: String,
    /// The handle of the call before: mostly it is used again.
    last: Option<(u64, Arc<Handle>)>,
    /// Where in the stage's random bytes the next write begins.
    drawn: usize,
}

impl<'a> Performer<'a> {
    /// One that has made no call yet. The thread that it is made in sleeps to the microsecond from
    /// now on.
    #[must_use]
    pub fn new(stage: &'a Stage) -> Self {
        crate::clock::fine_timers();
        Self {
            stage,
            buffer: Vec::new(),
            entries: None,
            path: String::new(),
            other_path: String::new(),
            last: None,
            drawn: 0,
        }
    }

    /// Makes a call.
    pub fn perform(&mut self, action: &Action) -> Outcome {
        match self.make(action) {
            Ok(bytes) => Outcome { bytes, error: 0 },
            Err(error) => Outcome { bytes: 0, error: error.raw_os_error() },
        }
    }

    /// Lets go of a handle that the program never closed.
    pub fn release(&mut self, handle: u32) {
        self.last = None;
        self.stage.handles.take(handle.into());
    }

    fn make(&mut self, action: &Action) -> Result<u64> {
        match action.kind {
            Kind::Read => self.read(action),
            Kind::Write => self.write(action),
            Kind::Sync => rustix::fs::fsync(&self.handle(action)?.descriptor).map(|()| 0),
            Kind::DataSync => rustix::fs::fdatasync(&self.handle(action)?.descriptor).map(|()| 0),
            Kind::SyncAll => rustix::fs::syncfs(&self.stage.root).map(|()| 0),
            Kind::RangeSync => self.sync_range(action),
            Kind::Open | Kind::Create => self.open(action).map(|()| 0),
            Kind::Close => {
                self.close(action);
                Ok(0)
            }
            Kind::List => self.list(action),
            Kind::Truncate | Kind::Allocate | Kind::Punch => self.resize(action).map(|()| 0),
            Kind::Advise => self.advise(action).map(|()| 0),
            Kind::Lock => {
                let handle = self.handle(action)?;
                rustix::fs::fcntl_lock(&handle.descriptor, FlockOperation::Unlock).map(|()| 0)
            }
            Kind::Copy => self.copy(action),
            Kind::Send => self.send(action),
            Kind::Map => self.map(action).map(|()| 0),
            Kind::Unmap => {
                self.stage.mappings.take(action.file);
                Ok(0)
            }
            Kind::SyncMap => self.mapping(action)?.sync(action.offset, action.length).map(|()| 0),
            Kind::FaultRead => self.fault(action, rustix::mm::Advice::LinuxPopulateRead),
            Kind::FaultWrite => self.fault(action, rustix::mm::Advice::LinuxPopulateWrite),
            _ => self.name(action).map(|()| 0),
        }
    }

    /// Calls on names.
    fn name(&mut self, action: &Action) -> Result<()> {
        let Self { stage, path, other_path, .. } = self;
        let (root, other) = (&stage.root, action.other as u32);
        if action.handle != 0 && matches!(action.kind, Kind::Stat | Kind::Touch | Kind::Attribute) {
            return self.attributes(action);
        }
        stage.names.path(action.file, path);
        let path = path.as_str();
        match action.kind {
            Kind::Stat | Kind::LookUp => {
                rustix::fs::statat(root, path, AtFlags::SYMLINK_NOFOLLOW).map(drop)
            }
            Kind::Unlink => rustix::fs::unlinkat(root, path, AtFlags::empty()),
            Kind::RemoveDirectory => rustix::fs::unlinkat(root, path, AtFlags::REMOVEDIR),
            Kind::MakeDirectory => rustix::fs::mkdirat(root, path, Mode::RWXU),
            Kind::Rename => {
                let renamed = stage.names.path_after(action.file, other, other_path);
                rustix::fs::renameat(root, path, root, other_path.as_str())?;
                stage.names.rename(renamed);
                Ok(())
            }
            Kind::Link => {
                stage.names.path(other, other_path);
                rustix::fs::linkat(root, path, root, other_path.as_str(), AtFlags::empty())
            }
            Kind::Symlink => rustix::fs::symlinkat(".", root, path),
            Kind::ReadLink => rustix::fs::readlinkat(root, path, Vec::new()).map(drop),
            Kind::Touch => rustix::fs::utimensat(root, path, &now(), AtFlags::SYMLINK_NOFOLLOW),
            // There is no call for an attribute of a name relative to a directory.
            Kind::Attribute => self.attributes(action),
            _ => Err(Errno::NOSYS),
        }
    }

    fn attributes(&mut self, action: &Action) -> Result<()> {
        let handle = self.handle(action)?;
        match action.kind {
            Kind::Touch => rustix::fs::futimens(&handle.descriptor, &now()),
            Kind::Attribute => {
                let mut value = [0_u8; 1];
                match rustix::fs::fgetxattr(&handle.descriptor, ATTRIBUTE, &mut value) {
                    Err(Errno::NODATA | Errno::OPNOTSUPP) | Ok(_) => Ok(()),
                    Err(error) => Err(error),
                }
            }
            _ => rustix::fs::fstat(&handle.descriptor).map(drop),
        }
    }

    /// The handle of a call; where none was opened, the file is opened now.
    fn handle(&mut self, action: &Action) -> Result<Arc<Handle>> {
        let number = match action.handle {
            0 => OF_FILE | u64::from(action.file),
            handle => handle.into(),
        };
        if let Some((last, handle)) = &self.last
            && *last == number
        {
            return Ok(Arc::clone(handle));
        }
        let handle = if let Some(handle) = self.stage.handles.get(number) {
            handle
        } else {
            let how = How(action.how.0 & (How::DIRECT.0 | How::SYNC.0 | How::APPEND.0));
            let descriptor = self.open_file(action.file, how, OFlags::empty())?;
            let handle = Arc::new(Handle { descriptor });
            let (handle, is_first) = self.stage.handles.put_first(number, handle);
            self.stage.reopened.fetch_add(u64::from(is_first), Ordering::Relaxed);
            handle
        };
        self.last = Some((number, Arc::clone(&handle)));
        Ok(handle)
    }

    fn open_file(&mut self, file: u32, how: How, extra: OFlags) -> Result<OwnedFd> {
        let shape = self.stage.shape(file);
        let mut flags = extra | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        flags |= match shape {
            Shape::Directory => OFlags::RDONLY,
            Shape::File | Shape::Link => OFlags::RDWR,
        };
        for (bit, flag) in [
            (How::DIRECT, OFlags::DIRECT),
            (How::SYNC, OFlags::DSYNC),
            (How::APPEND, OFlags::APPEND),
            (How::TRUNC, OFlags::TRUNC),
        ] {
            flags.set(flag, how.has(bit) && shape == Shape::File);
        }
        flags.set(OFlags::EXCL, how.has(How::EXCL) && extra.contains(OFlags::CREATE));
        self.stage.names.path(file, &mut self.path);
        let mode = Mode::RUSR | Mode::WUSR;
        match rustix::fs::openat(&self.stage.root, self.path.as_str(), flags, mode) {
            // A filesystem that cannot pass the page cache by.
            Err(Errno::INVAL) if flags.contains(OFlags::DIRECT) => {
                let flags = flags - OFlags::DIRECT;
                rustix::fs::openat(&self.stage.root, self.path.as_str(), flags, mode)
            }
            opened => opened,
        }
    }

    fn open(&mut self, action: &Action) -> Result<()> {
        let extra = if action.kind == Kind::Create { OFlags::CREATE } else { OFlags::empty() };
        let descriptor = self.open_file(action.file, action.how, extra)?;
        if (action.kind == Kind::Create || action.how.has(How::TRUNC))
            && let Ok(mut copied) = self.stage.copied.lock()
        {
            copied.remove(&action.file);
        }
        let handle = Arc::new(Handle { descriptor });
        let number = match action.handle {
            0 => OF_FILE | u64::from(action.file),
            handle => handle.into(),
        };
        self.stage.handles.put(number, Arc::clone(&handle));
        self.last = Some((number, handle));
        Ok(())
    }

    fn close(&mut self, action: &Action) {
        self.last = None;
        let number = match action.handle {
            0 => OF_FILE | u64::from(action.file),
            handle => handle.into(),
        };
        // One description may have several descriptors, each of which is closed: the first close counts.
        self.stage.handles.take(number);
    }

    fn read(&mut self, action: &Action) -> Result<u64> {
        let handle = self.handle(action)?;
        let length = action.length as usize;
        let room = length.min(POOL_BYTES).next_power_of_two().max(PAGE);
        if self.buffer.len() < room + PAGE {
            self.buffer = vec![0; room + PAGE];
        }
        let start = self.buffer.as_ptr().align_offset(PAGE);
        let into = &mut self.buffer[start..start + room];
        if length <= room {
            return rustix::io::pread(&handle.descriptor, &mut into[..length], action.offset)
                .map(|done| done as u64);
        }
        let pieces = pieces(into.as_mut_ptr(), room, length);
        // SAFETY: each piece lies within `into`, which is exclusively ours during the call; that the
        // kernel fills it several times over is meant.
        let done = unsafe {
            let (first, count) = (pieces.as_ptr(), pieces_count(&pieces));
            libc::preadv(handle.descriptor.as_raw_fd(), first, count, action.offset.cast_signed())
        };
        done_of(done)
    }

    fn write(&mut self, action: &Action) -> Result<u64> {
        let handle = self.handle(action)?;
        let length = action.length as usize;
        self.drawn = (self.drawn + 37 * PAGE) % POOL_BYTES;
        let from = self.stage.pool.as_ptr().align_offset(PAGE) + self.drawn;
        let pool = &self.stage.pool[from..];
        if length <= POOL_BYTES - 2 * PAGE && length <= pool.len() {
            return rustix::io::pwrite(&handle.descriptor, &pool[..length], action.offset)
                .map(|done| done as u64);
        }
        let room = pool.len() / PAGE * PAGE;
        let pieces = pieces(pool.as_ptr().cast_mut(), room, length);
        // SAFETY: each piece lies within `pool`, which the kernel only reads.
        let done = unsafe {
            let (first, count) = (pieces.as_ptr(), pieces_count(&pieces));
            libc::pwritev(handle.descriptor.as_raw_fd(), first, count, action.offset.cast_signed())
        };
        done_of(done)
    }

    fn sync_range(&mut self, action: &Action) -> Result<u64> {
        let handle = self.handle(action)?;
        let (offset, length) = (action.offset.cast_signed(), action.length.cast_signed());
        // SAFETY: the call takes a descriptor that is open and numbers.
        let done = unsafe {
            let how = libc::SYNC_FILE_RANGE_WRITE;
            libc::sync_file_range(handle.descriptor.as_raw_fd(), offset, length, how)
        };
        done_of(done as isize)
    }

    fn list(&mut self, action: &Action) -> Result<u64> {
        let handle = self.handle(action)?;
        if action.handle == 0 {
            // Nobody opened it, so nobody has listed a part of it yet.
            rustix::fs::seek(&handle.descriptor, SeekFrom::Start(0))?;
        }
        let memory = self.entries.get_or_insert_with(|| vec![MaybeUninit::uninit(); LIST_BYTES]);
        let mut entries = RawDir::new(&handle.descriptor, memory);
        let mut count = 0;
        while let Some(entry) = entries.next() {
            entry?;
            count += 1;
            if entries.is_buffer_empty() {
                break;
            }
        }
        Ok(count)
    }

    fn resize(&mut self, action: &Action) -> Result<()> {
        let handle = self.handle(action)?;
        let (offset, length) = (action.offset, action.length);
        let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match action.kind {
            Kind::Truncate => rustix::fs::ftruncate(&handle.descriptor, length),
            Kind::Punch => rustix::fs::fallocate(&handle.descriptor, punch, offset, length),
            _ => {
                let plain = FallocateFlags::empty();
                rustix::fs::fallocate(&handle.descriptor, plain, offset, length)
            }
        }
    }

    fn advise(&mut self, action: &Action) -> Result<()> {
        let handle = self.handle(action)?;
        let advice = match action.other {
            1 => Advice::Random,
            2 => Advice::Sequential,
            3 => Advice::WillNeed,
            4 => Advice::DontNeed,
            5 => Advice::NoReuse,
            _ => Advice::Normal,
        };
        let length = std::num::NonZeroU64::new(action.length);
        rustix::fs::fadvise(&handle.descriptor, action.offset, length, advice)
    }

    fn copy(&mut self, action: &Action) -> Result<u64> {
        let from = self.handle(action)?;
        let into = action.other as u32;
        let to = self.handle(&Action { file: into, handle: 0, how: How(0), ..*action })?;
        let copied = &self.stage.copied;
        let at = copied.lock().ok().and_then(|all| all.get(&into).copied()).unwrap_or(0);
        let (mut offset_from, mut offset_to) = (action.offset, at);
        let done = rustix::fs::copy_file_range(
            &from.descriptor,
            Some(&mut offset_from),
            &to.descriptor,
            Some(&mut offset_to),
            action.length as usize,
        )?;
        if let Ok(mut all) = copied.lock() {
            all.insert(into, at + done as u64);
        }
        Ok(done as u64)
    }

    fn send(&mut self, action: &Action) -> Result<u64> {
        let handle = self.handle(action)?;
        let mut offset = action.offset;
        let length = action.length as usize;
        rustix::fs::sendfile(&self.stage.null, &handle.descriptor, Some(&mut offset), length)
            .map(|done| done as u64)
    }

    fn map(&mut self, action: &Action) -> Result<()> {
        let handle = self.handle(action)?;
        let mapping = Mapping::new(&handle.descriptor, action.offset, action.length)?;
        self.stage.mappings.put(action.file, Arc::new(mapping));
        Ok(())
    }

    /// The mapping of a file that holds a place; where there is none, the file is mapped now.
    fn mapping(&mut self, action: &Action) -> Result<Arc<Mapping>> {
        let found = self.stage.mappings.get(action.file);
        if let Some(found) = found.filter(|found| found.holds(action.offset, action.length)) {
            return Ok(found);
        }
        let handle = self.handle(&Action { handle: 0, how: How(0), ..*action })?;
        let bytes = rustix::fs::fstat(&handle.descriptor)?.st_size.cast_unsigned();
        let mapping = Arc::new(Mapping::new(&handle.descriptor, 0, bytes)?);
        self.stage.mappings.put(action.file, Arc::clone(&mapping));
        Ok(mapping)
    }

    fn fault(&mut self, action: &Action, advice: rustix::mm::Advice) -> Result<u64> {
        self.mapping(action)?.touch(action.offset, action.length, advice)?;
        Ok(action.length)
    }
}

fn now() -> Timestamps {
    let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
    Timestamps { last_access: now, last_modification: now }
}

/// One stretch of memory again and again, until it is as long as asked for, or as the kernel takes.
fn pieces(start: *mut u8, room: usize, length: usize) -> Vec<libc::iovec> {
    let count = length.div_ceil(room).min(PIECES_MAX);
    let piece = |number: usize| libc::iovec {
        iov_base: start.cast(),
        iov_len: room.min(length - number * room),
    };
    (0..count).map(piece).collect()
}

/// No more than the kernel takes.
fn pieces_count(pieces: &[libc::iovec]) -> i32 {
    i32::try_from(pieces.len()).unwrap_or(i32::MAX)
}

fn done_of(done: isize) -> Result<u64> {
    u64::try_from(done).map_err(|_| {
        let error = std::io::Error::last_os_error();
        Errno::from_io_error(&error).unwrap_or(Errno::IO)
    })
}
