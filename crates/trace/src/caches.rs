//! What caches make of a trace: miss-ratio curves of all sizes at once, and the kernel's page cache.

mod advised;
mod look;
pub mod mrc;
mod names;
pub mod page_cache;
mod page_table;
mod parts;
mod subjects;

pub use ioscape_model::app::PAGE_BYTES;
pub use look::{Detail, Look, Looker, caches_of, use_at, use_of};
pub use subjects::{
    AMPLE_BYTES, Start, Subjects, ladder, memory_for_gain, sizes_around_gain, touches_of,
};

/// Pages that a range of bytes touches: the first, and how many.
#[must_use]
pub fn pages_of(offset: u64, length: u64) -> (u64, u64) {
    if length == 0 {
        return (offset / PAGE_BYTES, 0);
    }
    let first = offset / PAGE_BYTES;
    let last = offset.saturating_add(length - 1) / PAGE_BYTES;
    (first, last - first + 1)
}

/// A hash that spreads the pages of files evenly, for sampling and for tables.
pub(crate) fn hash_of(file: u32, page: u64) -> u64 {
    // The finaliser of MurmurHash3 (Appleby, public domain) over both numbers.
    let mut hash =
        page ^ (u64::from(file) << 40) ^ u64::from(file).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    hash = (hash ^ (hash >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    hash ^ (hash >> 33)
}
