//! The page cache as one file sees it: what is resident, dropping it, reading it in.
//!
//! Counts come from cachestat(2), Linux 6.5 and later. Older kernels say of each page whether it is
//! resident (mincore(2)), to the owner of the file and to root; not whether it is dirty.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt as _};
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::Advice;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use crate::error::{Error, Result, is_denial};

/// Pages of a range of a file, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStat {
    /// In the page cache, whatever their state.
    pub resident_bytes: u64,
    /// Bytes of these that the kernel still has to write to storage; `None` on kernels before 6.5, which
    /// do not tell.
    pub dirty_bytes: Option<u64>,
}

/// Share of a range that counts as all of it: reclaim may take a page at any time.
const NEARLY_ALL: f64 = 0.999;

/// Counts the pages of `range` that are in the page cache; `None` where the kernel cannot say.
///
/// The kernel walks the range's entries, which takes microseconds where the filesystem keeps
/// large folios (13 for 512 MiB on ext4, Linux 6.18) and longer for single pages. Without cachestat
/// it is asked for every page.
pub fn resident(file: &File, range: Range<u64>) -> Option<CacheStat> {
    counted(file, range.clone()).or_else(|| by_mincore(file, range))
}

/// The answer of cachestat(2) alone, which is quickly given; `None` where the kernel has no such call.
pub(crate) fn counted(file: &File, range: Range<u64>) -> Option<CacheStat> {
    // An empty range would mean "to the end of the file" to the kernel.
    if range.is_empty() {
        return Some(CacheStat::default());
    }
    let page_bytes = rustix::param::page_size() as u64;
    let [resident, dirty, ..] = cachestat(file, [range.start, range.end - range.start]).ok()?;
    Some(CacheStat { resident_bytes: resident * page_bytes, dirty_bytes: Some(dirty * page_bytes) })
}

/// Looks at each page through a mapping that is never touched.
fn by_mincore(file: &File, range: Range<u64>) -> Option<CacheStat> {
    /// Mapped at a time, bytes: a byte of answer for each page of it.
    const PIECE_BYTES: u64 = 1 << 30;
    let page_bytes = rustix::param::page_size() as u64;
    let about = file.metadata().ok()?;
    let user = rustix::process::geteuid();
    // To others the kernel says that all is resident.
    if !user.is_root() && user.as_raw() != about.uid() {
        return None;
    }
    // Mappings begin at a page; beyond the end of a file there is nothing. A device has no length of that kind.
    let end = if about.is_file() { range.end.min(about.len()) } else { range.end };
    let mut from = range.start - range.start % page_bytes;
    let mut resident = 0;
    while from < end {
        let length = PIECE_BYTES.min(end - from) as usize;
        let mut pages = vec![0_u8; length.div_ceil(page_bytes as usize)];
        let nowhere = std::ptr::null_mut();
        // SAFETY: mmap makes a new mapping at an address that the kernel chooses, and nothing is read or
        // written through it. mincore writes one byte per page of the mapping into `pages`, which has as
        // many bytes. munmap removes the whole mapping.
        let status = unsafe {
            let start =
                mmap(nowhere, length, ProtFlags::empty(), MapFlags::SHARED, file, from).ok()?;
            let status = libc::mincore(start, length, pages.as_mut_ptr());
            munmap(start, length).ok()?;
            status
        };
        if status != 0 {
            return None;
        }
        resident += pages.iter().filter(|page| **page & 1 == 1).count() as u64;
        from += length as u64;
    }
    Some(CacheStat { resident_bytes: resident * page_bytes, dirty_bytes: None })
}

/// The system call, which the C libraries do not wrap yet: `struct cachestat_range` in (offset,
/// length), `struct cachestat` out (five counts of pages).
fn cachestat(file: &File, range: [u64; 2]) -> io::Result<[u64; 5]> {
    // New system calls have one number on all architectures but alpha.
    const SYS_CACHESTAT: libc::c_long = 451;
    let mut counts = [0_u64; 5];
    // SAFETY: both pointers are to live arrays of the sizes and alignment that the kernel's ABI
    // gives these structures; the kernel reads the first and writes the second, nothing more.
    let status = unsafe {
        libc::syscall(SYS_CACHESTAT, file.as_raw_fd(), range.as_ptr(), counts.as_mut_ptr(), 0_u32)
    };
    if status == 0 { Ok(counts) } else { Err(io::Error::last_os_error()) }
}

/// Why this process may not ask for counts; `None` where it may. Then every page is asked for by itself, and how much
/// of it is dirty is not known.
pub(crate) fn denied() -> Option<io::Error> {
    cachestat(&File::open("/dev/null").ok()?, [0, 1]).err().filter(is_denial)
}

/// Writes back and drops `range` from the page cache. Needs no privilege. What stayed (pages
/// that are mapped, locked or being written) is in the answer; `None` where the kernel cannot say.
///
/// # Errors
/// When writing back fails.
pub fn drop_cache(file: &File, range: Range<u64>) -> io::Result<Option<CacheStat>> {
    // Pages on their way to the LRU lists are passed over the first time.
    const ATTEMPTS: usize = 3;
    rustix::fs::fdatasync(file)?;
    let mut left = None;
    for _ in 0..ATTEMPTS {
        let length = std::num::NonZeroU64::new(range.end.saturating_sub(range.start));
        rustix::fs::fadvise(file, range.start, length, Advice::DontNeed)?;
        left = resident(file, range.clone());
        if left.is_none_or(|left| left.resident_bytes == 0) {
            break;
        }
    }
    Ok(left)
}

/// In what pieces the kernel is to keep what is read in. It decides more than it should: all of a
/// folio counts as dirty when a part of it is (`docs/method.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pieces {
    /// Single pages, as random requests leave them.
    Pages,
    /// What read-ahead makes of a stream: folios that grow as it goes on, up to 2 MiB.
    Stream,
}

/// Reads `range` in, front to back. Does nothing where all of it is resident already. The answer
/// is the number of bytes read.
///
/// # Errors
/// When a read fails or comes back short, or when `interrupt` is raised.
pub fn read_in(
    file: &File,
    range: Range<u64>,
    pieces: Pieces,
    interrupt: &AtomicBool,
) -> Result<u64> {
    let (advice, chunk_bytes) = match pieces {
        Pieces::Pages => (Advice::Random, 1 << 20),
        Pieces::Stream => (Advice::Normal, 256 << 10),
    };
    let length = range.end.saturating_sub(range.start);
    if is_resident(file, range.clone()) {
        return Ok(0);
    }
    // Only this descriptor is told; where the advice is not taken, pages come as they come.
    rustix::fs::fadvise(file, 0, None, advice).ok();
    let mut buffer = vec![0; chunk_bytes.min(length) as usize];
    let mut offset = range.start;
    while offset < range.end {
        if interrupt.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let chunk = &mut buffer[..chunk_bytes.min(range.end - offset) as usize];
        file.read_exact_at(chunk, offset).map_err(|source| Error::Request {
            direction: "read",
            offset,
            length: chunk.len() as u64,
            path: path_of(file),
            source,
        })?;
        offset += chunk.len() as u64;
    }
    Ok(length)
}

/// Whether nearly all of `range` is in the page cache; not, where the kernel cannot say.
pub fn is_resident(file: &File, range: Range<u64>) -> bool {
    let length = range.end.saturating_sub(range.start);
    let cached = resident(file, range);
    cached.is_some_and(|cached| cached.resident_bytes as f64 >= NEARLY_ALL * length as f64)
}

/// The path a descriptor was opened by, for messages.
pub(crate) fn path_of(file: &impl AsRawFd) -> std::path::PathBuf {
    let link = format!("/proc/self/fd/{}", file.as_raw_fd());
    std::fs::read_link(&link).unwrap_or_else(|_| link.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_cachestat_says_the_same_of_what_is_resident() {
        const PAGES: u64 = 512;
        let page_bytes = rustix::param::page_size() as u64;
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        // Not a whole number of pages.
        std::fs::write(&path, vec![1; (PAGES * page_bytes - 100) as usize]).unwrap();
        let file = File::open(&path).unwrap();
        let all = 0..PAGES * page_bytes - 100;
        drop_cache(&file, all.clone()).unwrap();
        rustix::fs::fadvise(&file, 0, None, Advice::Random).unwrap();
        for page in [0, 3, 4, 5, 90, PAGES - 1] {
            file.read_exact_at(&mut [0; 10], page * page_bytes).unwrap();
        }
        for range in
            [all, 0..1, 3 * page_bytes..5 * page_bytes, 4 * page_bytes + 1..91 * page_bytes]
        {
            let Some(known) = counted(&file, range.clone()) else {
                ioscape_test_support::skipped("this kernel has no cachestat");
                return;
            };
            let told = by_mincore(&file, range.clone()).unwrap();
            assert_eq!(told.resident_bytes, known.resident_bytes, "{range:?}");
        }
    }
}
