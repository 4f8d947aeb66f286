//! Which pages of a file the page cache holds.

use std::fs::File;

/// Bytes of a page here.
const PAGE_BYTES: u64 = 4096;

/// Whether each of the first pages of a file is there; `None` where the kernel does not say.
#[must_use]
pub fn pages_held(file: &File, pages: u64) -> Option<Vec<bool>> {
    let held = |page: u64| {
        let range = page * PAGE_BYTES..(page + 1) * PAGE_BYTES;
        ioscape_engine::cachestat::resident(file, range).map(|found| found.resident_bytes > 0)
    };
    (0..pages).map(held).collect()
}
