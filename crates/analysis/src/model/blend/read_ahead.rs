//! What storage reads that nobody asked for.
//!
//! A kernel that sees two requests side by side reads on behind them, further each time; where the
//! run ends, what was read on is wasted. It takes cached pages before a request for such a run, too,
//! and reads on where writes will overwrite what it read. So storage may read several bytes for each
//! that a read misses, and a limit on bytes per second is reached at a part of what requests see.
//!
//! The figures are of Linux with windows of 128 KiB, from what seven maps of ext4 and xfs, on a fast
//! and on a slow disk, say of bytes read from storage (`read_amplification` of their points). They
//! agree within a fifth whatever the filesystem and the disk, for it is the kernel that decides. One
//! parameter says how eager this one is, 1 as there.

use ioscape_model::Workload;

/// What the kernel reads on at most, bytes.
const WINDOW_BYTES: f64 = 131_072.0;
/// Streams of requests as long go over half as little of what was read for them, as a power.
const STREAM_BYTES: f64 = 1_048_576.0;
/// What short runs cost, as a logarithm, if only writes stood in them, and what reads add.
const RUNS: [f64; 2] = [1.0, 1.1];
/// Runs longer than this many requests waste little of what is read on behind them.
const LONG_RUN: i32 = 10;
/// Rarer reads among the writes of a stream are taken to cost as much as these: nothing was seen
/// below a fifth.
const READS_MIN: f64 = 0.1;

/// Bytes that storage reads for one that a request misses, at random and in short runs; and for one
/// that is missed by a stream. `held` is what part of the data the cache has, 0 to 1.
pub(super) fn read_for_one(work: &Workload, held: f64, eagerness: f64) -> [f64; 2] {
    let (read, sequential) = (work.read_frac, work.seq_frac);
    let size = work.size_mean as f64;
    let in_runs = sequential * (1.0 - sequential.powi(LONG_RUN)) * (RUNS[0] + RUNS[1] * read);
    // More of it in a larger cache, but never so much more that a larger one has more to read.
    let before_cached = held * (1.0 - 0.1_f64.powf(eagerness));
    // With several in flight requests side by side meet storage in another order: half of it goes.
    let in_order = 0.5 + 0.5 / f64::from(work.depth.max(1));
    let short = before_cached + eagerness * in_order * in_runs / (1.0 + size / WINDOW_BYTES);
    // A stream's own writes go over pages that were read for it, unless they are as long.
    let overwritten = -read.max(READS_MIN).ln() / (1.0 + size / STREAM_BYTES);
    [short.exp(), (eagerness * overwritten).exp()]
}

#[cfg(test)]
mod tests {
    use ioscape_model::units::{KIB, MIB};
    use proptest::prelude::*;

    use super::*;

    /// The cache of the maps that the figures are from.
    const HELD_BYTES: f64 = 245.0 * 1_048_576.0;

    fn work(mib: u64, kib: u64, read_frac: f64, seq_frac: f64) -> Workload {
        let (unique_bytes, size_mean) = (mib * MIB, kib * KIB);
        Workload { unique_bytes, size_mean, read_frac, seq_frac, ..Workload::default() }
    }

    #[test]
    fn storage_reads_as_much_as_was_seen_on_ext4_and_xfs() {
        // Bytes read from storage for one that is not among the 245 MiB that the cache holds.
        for (work, seen) in [
            (work(903, 16, 1.0, 0.0), 1.25),
            (work(449, 16, 0.5, 0.0), 1.60),
            (work(435, 92, 1.0, 0.0), 1.63),
            (work(449, 16, 0.5, 0.25), 2.40),
            (work(449, 16, 0.25, 0.5), 2.70),
            (work(449, 16, 0.5, 0.5), 3.30),
            (work(449, 16, 1.0, 0.5), 4.50),
            (work(698, 16, 0.5, 0.5), 3.40),
            (work(449, 256, 0.5, 0.5), 2.15),
            (work(449, 1024, 0.5, 0.5), 1.65),
        ] {
            let [here, _] = read_for_one(&work, HELD_BYTES / work.unique_bytes as f64, 1.0);
            assert!((0.75..1.33).contains(&(here / seen)), "{work}: {here}, not {seen}");
        }
        // The same with 8 and with 32 in flight.
        for (depth, seen) in [(8, 2.5), (32, 2.0)] {
            let deep = Workload { depth, ..work(449, 16, 0.5, 0.5) };
            let [here, _] = read_for_one(&deep, HELD_BYTES / deep.unique_bytes as f64, 1.0);
            assert!((0.75..1.33).contains(&(here / seen)), "{deep}: {here}, not {seen}");
        }
        // A stream that writes over half of what is read for it.
        let [_, stream] = read_for_one(&work(449, 16, 0.5, 1.0), 0.5, 1.0);
        assert!((1.8..2.1).contains(&stream), "{stream}");
    }

    proptest! {
        #[test]
        fn a_larger_cache_leaves_no_more_to_read_and_nobody_eager_nothing_in_vain(
            held in 0.0..0.99_f64, kib in 4_u64..1024, read_frac in 0.0..=1.0_f64,
            seq_frac in 0.0..=1.0_f64, eagerness in 0.0..5.0_f64,
        ) {
            let work = work(449, kib, read_frac, seq_frac);
            let read = |held: f64| (1.0 - held) * read_for_one(&work, held, eagerness)[0];
            prop_assert!(read(held + 0.01) <= read(held) * (1.0 + 1e-9));
            let in_vain = read_for_one(&work, held, 0.0).map(|bytes| bytes - 1.0);
            prop_assert!(in_vain.iter().all(|bytes| bytes.abs() < 1e-12), "{in_vain:?}");
        }
    }
}
