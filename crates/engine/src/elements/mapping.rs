//! Memory that is mapped for a measurement, and unmapped when dropped.

use std::ffi::c_void;
use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// A mapping of a file that nobody cuts while it lives, or of anonymous memory.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

impl Mapping {
    /// Shared, for reading and writing.
    pub(super) fn of_file(file: impl AsFd, length: usize) -> rustix::io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let nowhere = std::ptr::null_mut();
        // SAFETY: a new mapping at an address that the kernel chooses touches no other memory.
        let start =
            unsafe { rustix::mm::mmap(nowhere, length, access, MapFlags::SHARED, file, 0) }?;
        Ok(Self { start: not_null(start)?, length })
    }

    /// Memory of no file.
    pub(super) fn anonymous(length: usize) -> rustix::io::Result<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let nowhere = std::ptr::null_mut();
        // SAFETY: as above.
        let start =
            unsafe { rustix::mm::mmap_anonymous(nowhere, length, access, MapFlags::PRIVATE) }?;
        Ok(Self { start: not_null(start)?, length })
    }

    /// A fault brings in nothing but its own page.
    pub(super) fn expect_random(&self) {
        // SAFETY: the range is this mapping's own, and the advice changes no data.
        unsafe {
            rustix::mm::madvise(self.start.as_ptr().cast(), self.length, Advice::Random).ok();
        }
    }

    /// Reads a byte.
    #[inline]
    pub(super) fn touch(&self, offset: usize) {
        assert!(offset < self.length, "inside the mapping");
        // SAFETY: the byte is inside the mapping, which is readable.
        let byte = unsafe { self.start.as_ptr().add(offset).read_volatile() };
        std::hint::black_box(byte);
    }

    /// Writes a byte.
    #[inline]
    pub(super) fn write(&mut self, offset: usize) {
        assert!(offset < self.length, "inside the mapping");
        // SAFETY: the byte is inside the mapping, which is writable and has no references into it.
        unsafe { self.start.as_ptr().add(offset).write_volatile(1) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own; nobody can refer to it any more.
        unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.length).ok() };
    }
}

fn not_null(start: *mut c_void) -> rustix::io::Result<NonNull<u8>> {
    NonNull::new(start.cast()).ok_or(rustix::io::Errno::NOMEM)
}
