//! `IOStone` of 1987 (Park and Lipton, CS-TR-074-87, Appendix A): 4608 reads and writes at random
//! places of one file of 4 MiB, two reads for each write, from 256 bytes to 64 KiB.
//!
//! Like the listing it opens, unlinks, then fills its file, untimed; each operation moves the
//! file's position and transfers. The listing calls random(3) with the seed as an argument that is
//! ignored, so it is unseeded and the first value is lost; `seeded` does what was meant.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;

use ioscape_engine::Error;
use ioscape_engine::error::Result;
use ioscape_model::TrialFigure;

use crate::benchmark::{Benchmark, Turn};
use crate::glibc_random::GlibcRandom;
use crate::handle::Handle;
use crate::meter::Meter;
use crate::site::Site;

/// Scores of that year as printed (Park and Lipton, Table 1).
pub const OF_1987: [(&str, u32); 7] = [
    ("VAX 11/785 (8 MB cache)", 5650),
    ("VAX 8600", 2594),
    ("Sun 2", 2000),
    ("Pyramid 90X", 1793),
    ("VAX 11/750", 1259),
    ("PC/AT", 704),
    ("Sun 2 diskless", 522),
];

/// Size of the file, bytes.
pub const FILE_BYTES: u64 = 4 << 20;
/// Size of the blocks that it is filled with.
const FILL_BYTES: usize = 4096;
/// Passes over the table.
const PASSES: u32 = 4;
const SEED: i32 = 34_710_373;
/// A machine that takes one second has this score.
const STONES: f64 = 100_000.0 * PASSES as f64;
/// Size of a transfer, and how many triples of it a pass has.
const TRANSFERS: [(usize, u32); 9] = [
    (256, 128),
    (512, 64),
    (1 << 10, 64),
    (2 << 10, 64),
    (4 << 10, 32),
    (8 << 10, 16),
    (16 << 10, 8),
    (32 << 10, 4),
    (64 << 10, 4),
];
const TRANSFER_MAX_BYTES: usize = 64 << 10;

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// A read, or a write.
    pub read: bool,
    /// Where, bytes.
    pub offset: u64,
    /// How much, bytes.
    pub length: usize,
}

/// All operations in order.
pub fn operations(seeded: bool) -> Vec<Operation> {
    let mut random = if seeded { GlibcRandom::seeded(SEED) } else { GlibcRandom::unseeded() };
    if !seeded {
        random.draw();
    }
    let mut operations = Vec::new();
    for _ in 0..PASSES {
        for (length, triples) in TRANSFERS {
            for _ in 0..triples {
                for read in [true, true, false] {
                    let blocks = (FILE_BYTES / length as u64) as u32;
                    let offset = u64::from(random.below(blocks)) * length as u64;
                    operations.push(Operation { read, offset, length });
                }
            }
        }
    }
    operations
}

/// The benchmark.
#[derive(Debug, Default)]
pub struct First;

impl Benchmark for First {
    fn room_bytes(&self, _: &Site) -> u64 {
        FILE_BYTES
    }

    fn prepare(&mut self, _: &mut Site) -> Result<()> {
        Ok(())
    }

    fn trial(&mut self, site: &mut Site, _: Turn) -> Result<Vec<TrialFigure>> {
        let operations = operations(site.settings.seeded);
        let path = site.at("iostone_temp_file");
        let meter = &mut site.meter;
        let mut file = lay_out(meter, &path)?;
        let mut buffer = vec![0; TRANSFER_MAX_BYTES];
        meter.begin();
        for operation in operations {
            file.seek(operation.offset)?;
            let buffer = &mut buffer[..operation.length];
            if operation.read {
                file.read_exact(meter, buffer)?;
            } else {
                file.write(meter, buffer)?;
            }
        }
        let elapsed_s = meter.end();
        Ok(super::figures(site, STONES, 12.0, elapsed_s))
    }
}

fn lay_out(meter: &mut Meter, path: &std::path::Path) -> Result<Handle> {
    const CREATED: u32 = 0;
    let mut creating = File::options();
    creating.write(true).create(true).truncate(true).mode(0o640);
    Handle::open(meter, path, CREATED, &creating)?.close(meter)?;
    let mut file = Handle::open(meter, path, CREATED, File::options().read(true).write(true))?;
    std::fs::remove_file(path).map_err(|error| Error::path("remove", path, error))?;
    file.seek(0)?;
    for _ in 0..FILE_BYTES / FILL_BYTES as u64 {
        file.write(meter, &[0; FILL_BYTES])?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_is_4608_operations_and_12_mib_two_reads_for_each_write() {
        let operations = operations(false);
        assert_eq!(operations.len(), 4608);
        let bytes =
            |read| operations.iter().filter(|o| o.read == read).map(|o| o.length).sum::<usize>();
        assert_eq!((bytes(true), bytes(false)), (8 << 20, 4 << 20));
        let order: Vec<bool> = operations.iter().map(|o| o.read).collect();
        assert!(order.chunks(3).all(|triple| triple == [true, true, false]));
        assert!(operations.iter().all(|o| o.offset + o.length as u64 <= FILE_BYTES));
    }

    #[test]
    fn offsets_are_those_of_a_c_build_of_the_listing() {
        let operations = operations(false);
        let at = |index: usize| (operations[index].offset, operations[index].length);
        assert_eq!([at(0), at(1), at(2)], FIRST);
        assert_eq!([at(4605), at(4606), at(4607)], LAST);
        // FNV-1a over all offsets as little-endian words.
        let hash = operations
            .iter()
            .flat_map(|o| o.offset.to_le_bytes())
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        assert_eq!(hash, HASH);
    }

    const FIRST: [(u64, usize); 3] = [(2_344_448, 256), (1_599_744, 256), (553_728, 256)];
    const LAST: [(u64, usize); 3] = [(786_432, 65_536), (3_473_408, 65_536), (2_359_296, 65_536)];
    const HASH: u64 = 10_215_574_484_934_783_097;

    #[test]
    fn seeding_it_as_meant_gives_other_places_and_the_same_sizes() {
        let (one, other) = (operations(false), operations(true));
        assert!(one.iter().zip(&other).all(|(a, b)| a.length == b.length && a.read == b.read));
        assert!(one.iter().zip(&other).filter(|(a, b)| a.offset != b.offset).count() > 4000);
    }
}
