//! Memory that requests read into and write from: page-aligned, incompressible from the start, and
//! stamped before each write, so that no two blocks that are written are alike.

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const PAGE: usize = 4096;

/// As many buffers of one length as requests may be in flight, side by side.
#[derive(Debug)]
pub(super) struct Buffers {
    memory: Vec<u8>,
    start: usize,
    /// Of one buffer.
    length: usize,
    count: usize,
    stamp: u64,
}

impl Buffers {
    /// `count` buffers for requests of up to `length_max` bytes, filled from `seed`.
    pub(super) fn new(count: usize, length_max: u64, seed: u64) -> Self {
        let length = (length_max as usize).next_multiple_of(PAGE);
        let mut memory = vec![0_u8; length * count + PAGE];
        let start = memory.as_ptr().align_offset(PAGE);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        rng.fill_bytes(&mut memory[start..]);
        Self { memory, start, length, count, stamp: rng.next_u64() }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Bytes of each.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// Gives the memory up for good.
    pub(super) fn leak(&mut self) {
        std::mem::forget(std::mem::take(&mut self.memory));
    }

    /// The first `length` bytes of buffer `index`.
    #[inline]
    pub(super) fn get(&mut self, index: usize, length: u64) -> &mut [u8] {
        let from = self.start + index * self.length;
        &mut self.memory[from..from + length as usize]
    }

    /// A slot to be written from, with a new stamp on each of its blocks.
    #[inline]
    pub(super) fn stamped(&mut self, index: usize, length: u64) -> &mut [u8] {
        let mut stamp = self.stamp;
        let from = self.start + index * self.length;
        let bytes = &mut self.memory[from..from + length as usize];
        for block in bytes.chunks_mut(PAGE) {
            stamp = stamp.wrapping_add(1);
            let stamp = stamp.to_le_bytes();
            let length = block.len().min(stamp.len());
            block[..length].copy_from_slice(&stamp[..length]);
        }
        self.stamp = stamp;
        bytes
    }
}
