//! Mapped files. A page is touched by asking the kernel to fault it in, which a file that became
//! shorter meanwhile answers with an error and not with a signal.

use std::collections::HashMap;
use std::ffi::c_void;
use std::os::fd::AsFd;
use std::ptr;
use std::sync::{Arc, Mutex};

use rustix::mm::{Advice, MapFlags, MsyncFlags, ProtFlags, madvise, mmap, msync, munmap};

const PAGE: u64 = 4096;
/// No more address space than this is taken by one mapping, bytes.
const BYTES_MAX: u64 = 1 << 40;

/// A mapping of a file.
#[derive(Debug)]
pub(super) struct Mapping {
    address: *mut c_void,
    offset: u64,
    bytes: usize,
}

// SAFETY: the address is only handed to the kernel, never followed; the range is ours until `drop`.
unsafe impl Send for Mapping {}
// SAFETY: as above; the kernel takes calls on one range from several threads.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps part of a file, for reading and writing, shared.
    pub(super) fn new(file: impl AsFd, offset: u64, bytes: u64) -> rustix::io::Result<Self> {
        let offset = offset / PAGE * PAGE;
        let bytes = bytes.clamp(1, BYTES_MAX) as usize;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses an address where nothing is.
        let address =
            unsafe { mmap(ptr::null_mut(), bytes, protection, MapFlags::SHARED, file, offset)? };
        Ok(Self { address, offset, bytes })
    }

    /// The part of it that a range of the file is: whole pages.
    fn part(&self, offset: u64, length: u64) -> Option<(*mut c_void, usize)> {
        let from = (offset / PAGE * PAGE).checked_sub(self.offset)?;
        let mapped = (self.bytes as u64).next_multiple_of(PAGE);
        let to = (offset + length.max(1)).next_multiple_of(PAGE).checked_sub(self.offset)?;
        let to = to.min(mapped);
        (from < to).then(|| (self.address.wrapping_byte_add(from as usize), (to - from) as usize))
    }

    pub(super) fn holds(&self, offset: u64, length: u64) -> bool {
        self.part(offset, length).is_some()
    }

    /// Has the kernel bring pages in, for reading or for writing.
    pub(super) fn touch(&self, offset: u64, length: u64, advice: Advice) -> rustix::io::Result<()> {
        let Some((address, bytes)) = self.part(offset, length) else {
            return Err(rustix::io::Errno::NOMEM);
        };
        // SAFETY: the range lies within the mapping, and populating changes no byte of it.
        unsafe { madvise(address, bytes, advice) }
    }

    pub(super) fn sync(&self, offset: u64, length: u64) -> rustix::io::Result<()> {
        let Some((address, bytes)) = self.part(offset, length) else {
            return Err(rustix::io::Errno::NOMEM);
        };
        // SAFETY: the range lies within the mapping.
        unsafe { msync(address, bytes, MsyncFlags::SYNC) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was mapped by `new` and nobody else unmaps it.
        unsafe { munmap(self.address, self.bytes) }.ok();
    }
}

/// The latest mapping of each file.
#[derive(Debug, Default)]
pub(super) struct Mappings(Mutex<HashMap<u32, Arc<Mapping>>>);

impl Mappings {
    pub(super) fn get(&self, file: u32) -> Option<Arc<Mapping>> {
        self.0.lock().ok()?.get(&file).map(Arc::clone)
    }

    pub(super) fn put(&self, file: u32, mapping: Arc<Mapping>) {
        let before = self.0.lock().ok().and_then(|mut all| all.insert(file, mapping));
        drop(before); // unmapped outside the lock
    }

    pub(super) fn take(&self, file: u32) -> Option<Arc<Mapping>> {
        self.0.lock().ok()?.remove(&file)
    }
}
