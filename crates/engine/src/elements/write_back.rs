//! What storage takes for data that the kernel writes back by itself.

use std::os::fd::OwnedFd;

use ioscape_model::ElementName::{self, WriteBack, WriteBackRandom};
use ioscape_model::{Code, Warning};

use super::Probe;
use super::cached::lay_out;
use super::sample::Shape;
use super::workplace::{Buffer, PAGE, Workplace, write_at};
use crate::error::Result;
use crate::memory;

/// Data made dirty at a time, bytes: below what makes writers wait.
const DIRTY_BYTES: u64 = 16 << 20;
/// Pages at random places.
const SCATTERED: u64 = 128;
/// So much dirty data of others makes that all that is dirty cannot be flushed, bytes.
const OTHERS_MAX_BYTES: u64 = 64 << 20;
/// A flush of many pages takes so much longer than of one, or it cannot be told what the pages took.
/// Much more is not asked: where a flush takes 10 ms, 128 pages on flash add 3.
const FLUSH_RATIO_MIN: f64 = 1.1;
const FILE: &str = "written-back";

/// Write-back by the kernel's own threads: `syncfs` has them write and waits. Throttles of control
/// groups do not hold these back under version 1, as they do not when nobody waits.
#[derive(Debug, Default)]
pub(super) struct WrittenBack {
    made: Option<(OwnedFd, Buffer, u64)>,
}

impl Probe for WrittenBack {
    fn names(&self) -> &'static [ElementName] {
        &[WriteBack, WriteBackRandom]
    }

    fn prepare(&mut self, at: &mut Workplace) -> Result<()> {
        if at.directory().is_memory() {
            for name in self.names() {
                at.refuse(*name, "files live in memory here: nothing is written back");
            }
            return Ok(());
        }
        let mut buffer = at.buffer(1 << 20);
        let length = at.room_bytes(DIRTY_BYTES).max(1 << 20);
        let (file, length) = lay_out(at, FILE, (&mut buffer, length))?;
        self.made = Some((file, buffer, length));
        Ok(())
    }

    fn round(&mut self, at: &mut Workplace) -> Result<()> {
        let Some((file, buffer, length)) = &self.made else { return Ok(()) };
        let pages = length / PAGE as u64;
        let flush = if memory::dirty_bytes().is_none_or(|dirty| dirty > OTHERS_MAX_BYTES) {
            for name in self.names() {
                at.doubt(*name, others_dirty());
            }
            rustix::fs::fdatasync::<&OwnedFd>
        } else {
            rustix::fs::syncfs::<&OwnedFd>
        };
        let timed = |at: &mut Workplace, places: &[u64], piece: usize| {
            let failed = |error| at.error("write back", error);
            flush(file).map_err(failed)?;
            for place in places {
                write_at(file, buffer.get(piece), place * piece as u64).map_err(failed)?;
            }
            let lap = at.lap();
            flush(file).map_err(failed)?;
            let passed_s = at.since(&lap);
            at.note_written((places.len() * piece) as u64)?;
            Ok::<f64, crate::Error>(passed_s)
        };
        let whole: Vec<u64> = (0..length >> 20).collect();
        let scattered: Vec<u64> = at.shuffled(pages).into_iter().take(SCATTERED as usize).collect();
        let mut least_s = timed(at, &[0], PAGE)?;
        let sequential_s = timed(at, &whole, 1 << 20)?;
        least_s = least_s.min(timed(at, &[0], PAGE)?);
        let random_s = timed(at, &scattered, PAGE)?;
        least_s = least_s.min(timed(at, &[0], PAGE)?);
        for (name, shape, count, all_s) in [
            (WriteBack, Shape::bytes(PAGE), pages, sequential_s),
            (WriteBackRandom, Shape::NONE, scattered.len() as u64, random_s),
        ] {
            let (count, time_s) = beyond_flush((count, all_s), least_s).unwrap_or_else(|| {
                at.doubt(name, held_up());
                (count, all_s)
            });
            at.push(name, shape, (count, time_s));
        }
        Ok(())
    }
}

/// Pages and seconds without the first page, whose flush took `least_s` alone. None where the flush of
/// all took hardly longer: other programs may have held up either.
fn beyond_flush((pages, all_s): (u64, f64), least_s: f64) -> Option<(u64, f64)> {
    (all_s > FLUSH_RATIO_MIN * least_s).then(|| (pages - 1, all_s - least_s))
}

fn held_up() -> Warning {
    let text = "a flush of one page took nearly as long as one of many, so that its time could not \
                be taken off: the figure may be too high";
    Warning::new(Code::Neighbours, text, "measure where nothing else writes")
}

fn others_dirty() -> Warning {
    let text = "other programs have much unwritten data: only the file of the measurement was \
                flushed, by this process and not by the kernel's threads";
    Warning::new(Code::Neighbours, text, "measure where nothing else writes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_flush_is_taken_off_only_where_something_is_left() {
        assert_eq!(beyond_flush((101, 3.0), 1.0), Some((100, 2.0)));
        assert_eq!(beyond_flush((101, 1.05), 1.0), None);
        assert_eq!(beyond_flush((101, 0.5), 1.0), None);
    }
}
