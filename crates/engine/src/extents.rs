//! Where a file's bytes lie on its device, as far as the filesystem says (FIEMAP).

use std::fs::File;
use std::ops::Range;

use rustix::ioctl::{Opcode, Updater, opcode};

/// Extents of a part of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extents {
    /// How many pieces.
    pub count: u64,
    /// Bytes whose blocks are reserved but were never written: they read as zeros without I/O.
    pub unwritten_bytes: u64,
    /// Bytes that are stored compressed or otherwise encoded.
    pub encoded_bytes: u64,
}

const BATCH: usize = 64;
/// Of the request: dirty data is given its place first. The call itself writes it back.
const FLAG_SYNC: u32 = 0x1;
const FLAG_LAST: u32 = 0x1;
const FLAG_ENCODED: u32 = 0x8;
const FLAG_UNWRITTEN: u32 = 0x800;

/// `struct fiemap_extent` of linux/fiemap.h.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved_64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` with room for a batch of extents.
#[repr(C)]
struct Request {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; BATCH],
}

/// The extents of the first `length` bytes; `None` where the filesystem does not tell.
pub fn read_extents(file: &File, length: u64) -> Option<Extents> {
    extents(file, length, FLAG_SYNC)
}

/// Extents of a file that another program may be using: the kernel reports those it has allocated and
/// writes no dirty data back first.
pub(crate) fn on_storage(file: &File, length: u64) -> Option<Extents> {
    extents(file, length, 0)
}

fn extents(file: &File, length: u64, flags: u32) -> Option<Extents> {
    let mut extents = Extents::default();
    walk(file, 0..length, flags, |extent, bytes| {
        let flagged = |flag| if extent.flags & flag == 0 { 0 } else { bytes };
        extents.count += 1;
        extents.unwritten_bytes += flagged(FLAG_UNWRITTEN);
        extents.encoded_bytes += flagged(FLAG_ENCODED);
        true
    })?;
    Some(extents)
}

/// How many extents begin in a range of a file; no more than just above `most` are counted. `None`
/// where the filesystem does not tell.
pub fn count(file: &File, range: Range<u64>, most: u64) -> Option<u64> {
    let mut count = 0;
    let begins = range.clone();
    walk(file, range, FLAG_SYNC, |extent, _| {
        count += u64::from(begins.contains(&extent.logical));
        count <= most
    })?;
    Some(count)
}

/// Shows every extent of a range, with how many of its bytes lie before the range's end, for as long
/// as the answer is yes.
fn walk(
    file: &File,
    range: Range<u64>,
    mut flags: u32,
    mut see: impl FnMut(&Extent, u64) -> bool,
) -> Option<()> {
    let Range { mut start, end } = range;
    while start < end {
        let request = ask(file, start, end - start, flags)?;
        flags = 0;
        let batch = request.extents.get(..request.mapped_extents as usize)?;
        for extent in batch {
            if !see(extent, extent.length.min(end - extent.logical.min(end))) {
                return Some(());
            }
        }
        match batch.last() {
            Some(last) if last.flags & FLAG_LAST == 0 && last.length > 0 => {
                start = last.logical + last.length;
            }
            _ => break,
        }
    }
    Some(())
}

fn ask(file: &File, start: u64, length: u64, flags: u32) -> Option<Request> {
    // The number is made from the size of `struct fiemap` without its extents.
    const FS_IOC_FIEMAP: Opcode = opcode::read_write::<[u64; 4]>(b'f', 11);
    let mut request = Request {
        start,
        length,
        flags,
        mapped_extents: 0,
        extent_count: BATCH as u32,
        reserved: 0,
        extents: [Extent::default(); BATCH],
    };
    // SAFETY: `request` is laid out as the kernel's `struct fiemap` followed by `extent_count`
    // extents, lives across the call, and the kernel writes no further than these.
    unsafe {
        let call = Updater::<FS_IOC_FIEMAP, Request>::new(&mut request);
        rustix::ioctl::ioctl(file, call).ok()?;
    }
    Some(request)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::FallocateFlags;
    use std::os::unix::fs::FileExt;

    #[test]
    fn what_is_only_reserved_is_told_from_what_was_written() {
        let file = tempfile::tempfile().unwrap();
        let reserved = rustix::fs::fallocate(&file, FallocateFlags::empty(), 0, 1 << 20);
        if reserved.is_err() || read_extents(&file, 1 << 20).is_none() {
            ioscape_test_support::skipped(
                "this filesystem reserves nothing or does not tell its extents",
            );
            return;
        }
        file.write_all_at(&vec![7; 256 << 10], 0).unwrap();
        file.sync_all().unwrap();
        let extents = read_extents(&file, 1 << 20).unwrap();
        assert_eq!(extents.unwritten_bytes, 768 << 10);
        assert!(extents.count >= 2);
        assert_eq!(read_extents(&file, 128 << 10).unwrap().unwritten_bytes, 0);
    }
}
