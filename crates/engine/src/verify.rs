//! Whether storage gives back what it was given (`--verify`): each block of 4 KiB is stamped when it is
//! written, with its file, its offset, a generation and a checksum of the rest, and looked at when it
//! is read.
//!
//! The ledger of a file remembers which generation every block should be of, so that a write that
//! was lost is found as well as one that went to another place. Of a block that is written while it
//! is read, or by two requests at a time, either content is right: such reads are not judged.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::run_id::RunId;

/// Test files are whole blocks of this size, bytes.
pub const BLOCK_BYTES: u64 = 4096;
const BLOCK: usize = BLOCK_BYTES as usize;
/// Tag, offset, generation, checksum: eight bytes each.
const STAMP: usize = 32;
/// An odd number with as many ones as zeros.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Of a block: generation in the low 48 bits, writes in flight above it, and whether nobody can know
/// what it holds.
const GENERATION: u64 = (1 << 48) - 1;
const ONE_WRITE: u64 = 1 << 48;
const WRITES: u64 = 0x7fff << 48;
const UNKNOWN: u64 = 1 << 63;

/// Which files are meant: those of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tag(u64);

impl Tag {
    pub(crate) fn from_run(run: &RunId) -> Self {
        let mut hasher = DefaultHasher::new();
        run.hash(&mut hasher);
        Self(hasher.finish())
    }

    /// Of one file of the run.
    pub(crate) fn file(self, number: usize) -> u64 {
        self.0 ^ (number as u64).wrapping_mul(FACTOR)
    }
}

/// Makes a block one that can be recognised.
pub(crate) fn stamp(block: &mut [u8], tag: u64, offset: u64, generation: u64) {
    for (word, value) in block.chunks_exact_mut(8).zip([tag, offset, generation]) {
        word.copy_from_slice(&value.to_le_bytes());
    }
    let sum = checksum(block).to_le_bytes();
    block[24..STAMP].copy_from_slice(&sum);
}

/// Of all of a block but the checksum itself. Each step can be undone, so that no single change of a
/// word leaves it as it was; four lanes keep the processor busy.
fn checksum(block: &[u8]) -> u64 {
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&block[at..at + 8]);
        u64::from_le_bytes(bytes)
    };
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(FACTOR).rotate_left(29);
    let mut lanes = [word(0), word(8), word(16), 1];
    for at in (STAMP..block.len()).step_by(32) {
        for (lane, part) in lanes.iter_mut().zip([0, 8, 16, 24]) {
            *lane = mix(*lane, word(at + part));
        }
    }
    lanes.into_iter().fold(FACTOR, mix)
}

/// A block that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// Where it lies in its file, bytes.
    pub(crate) offset: u64,
    text: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Mismatch {}

impl From<Mismatch> for io::Error {
    fn from(mismatch: Mismatch) -> Self {
        Self::new(io::ErrorKind::InvalidData, mismatch)
    }
}

/// What each block of a file should hold. Every worker has blocks of its own, and may have several
/// threads that make its requests.
#[derive(Debug)]
pub struct Ledger {
    tag: u64,
    blocks: Vec<AtomicU64>,
    latest: AtomicU64,
}

/// A read under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The latest generation given away when it began; none where a write to it was in flight.
    since: Option<u64>,
}

impl Ledger {
    /// Of a file that was laid out, with blocks of generation 0.
    pub(crate) fn new(tag: u64, length_bytes: u64) -> Self {
        let count = length_bytes.div_ceil(BLOCK_BYTES) as usize;
        let blocks = std::iter::repeat_with(|| AtomicU64::new(0)).take(count).collect();
        Self { tag, blocks, latest: AtomicU64::new(0) }
    }

    /// The ledger of this file after it has grown.
    pub(crate) fn grown(&self, length_bytes: u64) -> Self {
        let mut grown = Self::new(self.tag, length_bytes);
        for (new, old) in grown.blocks.iter_mut().zip(&self.blocks) {
            // No write is in flight between two visits; one that was left behind is not known.
            let state = old.load(Ordering::Relaxed);
            let unknown = if state & WRITES == 0 { state & UNKNOWN } else { UNKNOWN };
            *new.get_mut() = state & GENERATION | unknown;
        }
        *grown.latest.get_mut() = self.latest.load(Ordering::Relaxed);
        grown
    }

    /// Bytes it covers.
    pub(crate) fn length_bytes(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK_BYTES
    }

    fn blocks(&self, offset: u64, length: u64) -> &[AtomicU64] {
        let from = (offset / BLOCK_BYTES) as usize;
        &self.blocks[from..from + (length / BLOCK_BYTES) as usize]
    }

    /// Stamps what is about to be written.
    ///
    /// A block is marked as being written before its generation is given away: who reads it
    /// meanwhile in another thread sees the mark or an older generation, never neither.
    pub(crate) fn begin_write(&self, bytes: &mut [u8], offset: u64) {
        let states = self.blocks(offset, bytes.len() as u64);
        let at = (offset..).step_by(BLOCK);
        for ((block, state), offset) in bytes.chunks_exact_mut(BLOCK).zip(states).zip(at) {
            change(state, |before| {
                let unknown = if before & WRITES == 0 { 0 } else { UNKNOWN };
                ((before & (GENERATION | WRITES)) + ONE_WRITE) | unknown
            });
            let generation = (self.latest.fetch_add(1, Ordering::SeqCst) + 1) & GENERATION;
            change(state, |before| (before & !GENERATION) | generation);
            stamp(block, self.tag, offset, generation);
        }
    }

    /// A write has come to its end.
    pub(crate) fn end_write(&self, offset: u64, length: u64, is_done: bool) {
        let unknown = if is_done { 0 } else { UNKNOWN };
        for state in self.blocks(offset, length) {
            change(state, |before| (before - ONE_WRITE) | unknown);
        }
    }

    /// Before a read.
    pub(crate) fn begin_read(&self, offset: u64, length: u64) -> Reading {
        // In this order: a write that is given a generation in between is marked by then.
        let since = self.latest.load(Ordering::SeqCst);
        let is_written = self
            .blocks(offset, length)
            .iter()
            .any(|state| state.load(Ordering::SeqCst) & WRITES > 0);
        Reading { since: (!is_written).then_some(since) }
    }

    /// After a read: how many bytes were judged, or the first block that is wrong.
    pub(crate) fn check(
        &self,
        reading: Reading,
        bytes: &[u8],
        offset: u64,
    ) -> Result<u64, Mismatch> {
        let Some(since) = reading.since else { return Ok(0) };
        let states = self.blocks(offset, bytes.len() as u64);
        let mut judged = 0;
        let at = (offset..).step_by(BLOCK);
        for ((block, state), offset) in bytes.chunks_exact(BLOCK).zip(states).zip(at) {
            let state = state.load(Ordering::SeqCst);
            let generation = state & GENERATION;
            if state & (WRITES | UNKNOWN) == 0 && generation <= since {
                self.judge(block, offset, generation).map_err(|text| Mismatch { offset, text })?;
                judged += BLOCK_BYTES;
            }
        }
        Ok(judged)
    }

    /// Why a block is not what it should be.
    fn judge(&self, block: &[u8], offset: u64, generation: u64) -> Result<(), String> {
        let word = |index: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&block[8 * index..8 * index + 8]);
            u64::from_le_bytes(bytes)
        };
        let is_whole = word(3) == checksum(block);
        if is_whole && (word(0), word(1), word(2)) == (self.tag, offset, generation) {
            return Ok(());
        }
        let text = if block.iter().all(|byte| *byte == 0) {
            "holds nothing but zeros".to_owned()
        } else if !is_whole {
            "holds other bytes than were written: its checksum differs".to_owned()
        } else if word(0) != self.tag {
            "holds a block of another file".to_owned()
        } else if word(1) != offset {
            format!("holds the block of offset {}", word(1))
        } else {
            format!(
                "holds generation {} where {generation} was written last: a write was lost",
                word(2)
            )
        };
        Err(format!("the block at offset {offset} {text}"))
    }
}

/// In one step, whatever other threads do to it.
fn change(state: &AtomicU64, to: impl Fn(u64) -> u64) {
    let changed = state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |before| Some(to(before)));
    changed.expect("there is always a next state");
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: u64 = 16 * BLOCK_BYTES;

    /// A file in memory, with random content and its ledger.
    fn file() -> (Vec<u8>, Ledger) {
        let tag = Tag(77).file(3);
        let mut bytes: Vec<u8> =
            (0..LENGTH as u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for (block, offset) in bytes.chunks_mut(BLOCK).zip((0..).step_by(BLOCK)) {
            stamp(block, tag, offset, 0);
        }
        (bytes, Ledger::new(tag, LENGTH))
    }

    fn read(ledger: &Ledger, bytes: &[u8]) -> Result<u64, Mismatch> {
        ledger.check(ledger.begin_read(0, LENGTH), bytes, 0)
    }

    #[test]
    fn what_was_laid_out_and_what_was_written_is_recognised() {
        let (mut bytes, ledger) = file();
        assert_eq!(read(&ledger, &bytes), Ok(LENGTH));
        ledger.begin_write(&mut bytes[2 * BLOCK..5 * BLOCK], 2 * BLOCK_BYTES);
        assert_eq!(read(&ledger, &bytes), Ok(0), "a write is in flight when it begins");
        ledger.end_write(2 * BLOCK_BYTES, 3 * BLOCK_BYTES, true);
        assert_eq!(read(&ledger, &bytes), Ok(LENGTH));
        let grown = ledger.grown(2 * LENGTH);
        assert_eq!(grown.check(grown.begin_read(0, LENGTH), &bytes, 0), Ok(LENGTH));
        assert_eq!(grown.length_bytes(), 2 * LENGTH);
    }

    #[test]
    fn every_byte_counts() {
        let (mut bytes, ledger) = file();
        for at in [0, 9, 17, 25, 31, 32, 1000, 4095, 3 * BLOCK + 2048] {
            bytes[at] ^= 0x10;
            let mismatch = read(&ledger, &bytes).unwrap_err();
            assert_eq!(mismatch.offset, (at / BLOCK * BLOCK) as u64);
            bytes[at] ^= 0x10;
        }
        assert_eq!(read(&ledger, &bytes), Ok(LENGTH));
    }

    #[track_caller]
    fn check(spoil: impl FnOnce(&mut [u8], &Ledger), part: &str) {
        let (mut bytes, ledger) = file();
        spoil(&mut bytes, &ledger);
        let mismatch = read(&ledger, &bytes).unwrap_err();
        assert!(mismatch.to_string().contains(part), "{mismatch}");
    }

    #[test]
    fn what_happened_is_said() {
        check(|bytes, _| bytes[..BLOCK].fill(0), "nothing but zeros");
        check(|bytes, _| bytes[5 * BLOCK + 77] ^= 1, "offset 20480 holds other bytes");
        check(|bytes, _| bytes.copy_within(BLOCK..2 * BLOCK, 0), "the block of offset 4096");
        check(|bytes, _| stamp(&mut bytes[..BLOCK], 1, 0, 0), "another file");
        let lose = |bytes: &mut [u8], ledger: &Ledger| {
            ledger.begin_write(&mut bytes[..BLOCK].to_owned(), 0);
            ledger.end_write(0, BLOCK_BYTES, true);
        };
        check(lose, "generation 0 where 1 was written last");
    }

    #[test]
    fn what_is_written_meanwhile_twice_or_in_vain_is_not_judged() {
        let (mut bytes, ledger) = file();
        let other = bytes.clone();
        // Written and done while it was read.
        let reading = ledger.begin_read(0, LENGTH);
        ledger.begin_write(&mut bytes[..BLOCK], 0);
        ledger.end_write(0, BLOCK_BYTES, true);
        assert_eq!(ledger.check(reading, &other, 0), Ok(LENGTH - BLOCK_BYTES));
        // Twice at a time: either may have come last.
        ledger.begin_write(&mut bytes[..BLOCK], 0);
        ledger.begin_write(&mut bytes[..BLOCK], 0);
        ledger.end_write(0, BLOCK_BYTES, true);
        ledger.end_write(0, BLOCK_BYTES, true);
        assert_eq!(read(&ledger, &other), Ok(LENGTH - BLOCK_BYTES));
        // Once more, alone: known again. In vain: unknown again.
        ledger.begin_write(&mut bytes[..BLOCK], 0);
        ledger.end_write(0, BLOCK_BYTES, true);
        assert_eq!(read(&ledger, &bytes), Ok(LENGTH));
        ledger.begin_write(&mut bytes[..BLOCK], 0);
        ledger.end_write(0, BLOCK_BYTES, false);
        assert_eq!(read(&ledger, &other), Ok(LENGTH - BLOCK_BYTES));
    }
}
