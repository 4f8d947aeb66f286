//! The ring that programs in the kernel write records into, mapped and read without a system call.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::system::Map;
use crate::error::Error;

/// The writer has not finished this record.
const BUSY: u32 = 1 << 31;
/// The writer has given this record up.
const DISCARDED: u32 = 1 << 30;
/// Length and a number of the kernel's before each record.
const HEADER_BYTES: usize = 8;

/// Whose position in a ring.
#[derive(Clone, Copy, Debug)]
enum Side {
    Reader,
    Writer,
}

/// The reader's side of a ring.
#[derive(Debug)]
pub(crate) struct Ring {
    /// One page with the reader's position, which the kernel reads.
    consumer: NonNull<u8>,
    /// One page with the writer's position, then the records, mapped twice in a row.
    producer: NonNull<u8>,
    page_bytes: usize,
    length: usize,
}

// SAFETY: the mappings belong to this value alone and are valid in every thread.
unsafe impl Send for Ring {}

fn map_pages(map: &Map, bytes: usize, access: i32, from: usize) -> Result<NonNull<u8>, Error> {
    // SAFETY: a new mapping at a place the kernel chooses; it touches no memory of ours.
    let mapped = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            access,
            libc::MAP_SHARED,
            map.descriptor(),
            from.cast_signed() as libc::off_t,
        )
    };
    let failed = mapped == libc::MAP_FAILED;
    NonNull::new(mapped.cast()).filter(|_| !failed).ok_or_else(|| Error::last("map the ring"))
}

impl Ring {
    /// Maps a ring of this many bytes.
    pub(crate) fn map(map: &Map, ring_bytes: usize) -> Result<Self, Error> {
        // SAFETY: the call takes a number and touches no memory.
        let page_bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let consumer = map_pages(map, page_bytes, libc::PROT_READ | libc::PROT_WRITE, 0)?;
        let length = page_bytes + 2 * ring_bytes;
        let producer = map_pages(map, length, libc::PROT_READ, page_bytes)?;
        Ok(Self { consumer, producer, page_bytes, length: ring_bytes })
    }

    fn position(&self, side: Side) -> &AtomicUsize {
        let of = match side {
            Side::Reader => self.consumer,
            Side::Writer => self.producer,
        };
        // SAFETY: both mappings begin with an aligned position that the kernel reads and writes as
        // one word, and they live as long as `self`.
        unsafe { of.cast().as_ref() }
    }

    /// Hands over every finished record; how many there were.
    pub(crate) fn drain<E>(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<usize, E> {
        let mut at = self.position(Side::Reader).load(Ordering::Relaxed);
        let written = self.position(Side::Writer).load(Ordering::Acquire);
        let mut records = 0;
        while at < written {
            let within = self.page_bytes + (at & (self.length - 1));
            // SAFETY: the position is below the writer's, so a header of 8 aligned bytes is there.
            let header = unsafe { self.producer.add(within).cast::<AtomicU32>().as_ref() };
            let length = header.load(Ordering::Acquire);
            if length & BUSY != 0 {
                break;
            }
            let bytes = (length & !DISCARDED) as usize;
            if length & DISCARDED == 0 {
                // SAFETY: the kernel has finished this record and writes it no more until the
                // reader's position moves on; the ring is mapped twice, so it lies in one piece.
                let record = unsafe {
                    let start = self.producer.add(within + HEADER_BYTES);
                    std::slice::from_raw_parts(start.as_ptr(), bytes)
                };
                records += 1;
                take(record)?;
            }
            at += (bytes + HEADER_BYTES).next_multiple_of(8);
            self.position(Side::Reader).store(at, Ordering::Release);
        }
        Ok(records)
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: these are the mappings made in `map`, with the same lengths, and nothing borrowed
        // from them outlives `self`.
        unsafe {
            libc::munmap(self.consumer.as_ptr().cast(), self.page_bytes);
            libc::munmap(self.producer.as_ptr().cast(), self.page_bytes + 2 * self.length);
        }
    }
}
