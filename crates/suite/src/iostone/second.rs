//! `IOStone` of 1990 (Park and Becker, version C/II; Computer Architecture News 18(2)): 396 files
//! in four sets of 99, 960 KiB in all. Each set is gone through twice, all sets three times, the
//! whole four times: each time a file is opened, read (two times of three) or written whole in
//! transfers of at most 16 KiB, and closed. Eight spacer files of 512 KiB lie between them and are
//! read beforehand.
//!
//! The published program shuffles file names through buffers that are too short for them; only
//! the shuffling is done here. It seeds random(3) with 34710373.

use std::fs::File;
use std::path::PathBuf;

use ioscape_engine::error::Result;
use ioscape_model::TrialFigure;

use crate::benchmark::{Benchmark, Turn, count};
use crate::glibc_random::GlibcRandom;
use crate::handle::Handle;
use crate::site::Site;

/// Size of files, and how many there are of it.
const FILES: [(usize, usize); 9] = [
    (256, 128),
    (512, 64),
    (1 << 10, 64),
    (2 << 10, 64),
    (4 << 10, 32),
    (8 << 10, 32),
    (16 << 10, 8),
    (32 << 10, 2),
    (64 << 10, 2),
];
const SETS: usize = 4;
const SET_FILES: usize = 99;
const SPACERS: usize = 8;
/// After every so many files comes a spacer.
const SPACER_EVERY: usize = 44;
const SPACER_BYTES: usize = 512 << 10;
const TRANSFER_BYTES: usize = 16 << 10;
const SEED: i32 = 34_710_373;
const PASSES: u32 = 4;
const ROUNDS: usize = 3;
const TIMES: usize = 2;
/// A machine that takes one second has this score.
const STONES: f64 = 500_000.0 * PASSES as f64;
const MOVED_MIB: f64 = 22.5;

/// A file of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    path: PathBuf,
    number: u32,
    length: usize,
}

/// The benchmark.
#[derive(Debug, Default)]
pub struct Second {
    sets: Vec<Vec<Piece>>,
    spacers: Vec<PathBuf>,
}

impl Benchmark for Second {
    fn room_bytes(&self, _: &Site) -> u64 {
        // Each file takes whole blocks.
        (SPACERS * SPACER_BYTES + SETS * SET_FILES * 4096 + (2 << 20)) as u64
    }

    fn prepare(&mut self, site: &mut Site) -> Result<()> {
        self.sets = vec![Vec::new(); SETS];
        let mut made = 0;
        for (size_index, (length, files)) in FILES.into_iter().enumerate() {
            for index in 0..files {
                // The last two files complete the sets that the two before them left open.
                let set = if size_index < FILES.len() - 1 { index } else { index + 2 } % SETS;
                let path = site.at(&format!("{size_index}_{index}"));
                fill(site, &path, length)?;
                self.sets[set].push(Piece { path, number: made as u32, length });
                if self.spacers.len() < SPACERS && made % SPACER_EVERY == 0 {
                    let path = site.at(&format!("s_{}", self.spacers.len()));
                    fill(site, &path, SPACER_BYTES)?;
                    self.spacers.push(path);
                }
                made += 1;
            }
        }
        Ok(())
    }

    fn trial(&mut self, site: &mut Site, _: Turn) -> Result<Vec<TrialFigure>> {
        let mut buffer = vec![0; TRANSFER_BYTES];
        let mut random = GlibcRandom::seeded(SEED);
        let sets = shuffled(&self.sets, &mut random);
        let meter = &mut site.meter;
        for path in &self.spacers {
            let mut file = Handle::read_only(meter, path, 0)?;
            while file.read(meter, &mut buffer)? > 0 {}
        }
        let mut opened = 0;
        meter.begin();
        for _ in 0..PASSES as usize * ROUNDS {
            for set in &sets {
                for piece in (0..TIMES).flat_map(|_| set) {
                    let mut how = File::options();
                    let how = how.read(true).write(true);
                    let mut file = Handle::open(meter, &piece.path, piece.number, how)?;
                    opened += 1;
                    let read = random.below(3) < 2;
                    let transfer = piece.length.min(TRANSFER_BYTES);
                    file.seek(0)?;
                    for _ in 0..piece.length / transfer {
                        if read {
                            file.read_exact(meter, &mut buffer[..transfer])?;
                        } else {
                            file.write(meter, &buffer[..transfer])?;
                        }
                    }
                    file.close(meter)?;
                }
            }
        }
        let elapsed_s = meter.end();
        let mut figures = super::figures(site, STONES, MOVED_MIB, elapsed_s);
        figures.push(count("opened", f64::from(opened), "files"));
        Ok(figures)
    }
}

fn fill(site: &mut Site, path: &std::path::Path, length: usize) -> Result<()> {
    let mut file = Handle::create(&mut site.meter, path, 0)?;
    let block = vec![0; length.min(TRANSFER_BYTES)];
    for _ in 0..length / block.len() {
        file.write(&mut site.meter, &block)?;
    }
    Ok(())
}

/// Each set in an order of its own, drawn from the back to the front.
fn shuffled(sets: &[Vec<Piece>], random: &mut GlibcRandom) -> Vec<Vec<Piece>> {
    let mut sets = sets.to_vec();
    for set in &mut sets {
        for last in (1..=set.len()).rev() {
            let other = random.below(last as u32) as usize;
            set.swap(last - 1, other);
        }
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::tests::site;

    #[test]
    fn sets_are_equal_and_a_run_opens_9504_files_and_moves_22_and_a_half_mib() {
        let (_directory, mut site) = site();
        let mut benchmark = Second::default();
        benchmark.prepare(&mut site).unwrap();
        assert_eq!(benchmark.spacers.len(), SPACERS);
        for set in &benchmark.sets {
            assert_eq!(set.len(), SET_FILES);
        }
        let total: usize = benchmark.sets.iter().flatten().map(|piece| piece.length).sum();
        assert_eq!(total, 960 << 10);
        site.renew(true);
        let figures = benchmark.trial(&mut site, Turn { repeat: 0, seed: 1 }).unwrap();
        assert_eq!(figures.last().unwrap().value as u64, 9504);
        let share = site.meter.share().unwrap();
        assert_eq!(share.read_bytes + share.written_bytes, (22.5 * 1_048_576.0) as u64);
        assert_eq!(share.unique_bytes, Some(960 << 10));
        let read = share.read_bytes as f64 / (22.5 * 1_048_576.0);
        assert!((0.62..0.71).contains(&read), "two reads for each write: {read}");
    }

    #[test]
    fn each_run_draws_the_same() {
        let pieces: Vec<Piece> = (0..SET_FILES as u32)
            .map(|number| Piece { path: PathBuf::new(), number, length: 1 })
            .collect();
        let draw = || shuffled(std::slice::from_ref(&pieces), &mut GlibcRandom::seeded(SEED));
        assert_eq!(draw(), draw());
        assert_ne!(draw()[0], pieces);
    }
}
