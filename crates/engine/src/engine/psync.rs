//! pread and pwrite, one request at a time.
//!
//! All requests of a worker share one buffer, as in most applications and in fio: it is hot in
//! the processor's cache. Reads put other incompressible data into it than it held.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::io::Errno;

use super::buffers::Buffers;
use super::{Done, Duties, OneByOne, SyncDue, short};
use crate::clock::Stopwatch;
use crate::error::Result;
use crate::request::Op;
use crate::tally::{FAILED_NS, Tally};
use crate::verify::Ledger;

/// A worker's file and buffer.
#[derive(Debug)]
pub struct Psync {
    file: Arc<File>,
    path: PathBuf,
    buffer: Buffers,
    sync_due: SyncDue,
    ledger: Option<Arc<Ledger>>,
    watch: Stopwatch,
}

/// What every engine that makes requests is made of.
#[derive(Debug)]
pub struct Parts {
    /// Opened anew for this worker. Whoever starts the worker holds it too, until the worker is done:
    /// a descriptor is closed in the table that it was opened in.
    pub file: Arc<File>,
    /// For messages.
    pub path: PathBuf,
    /// Longest request, bytes.
    pub length_max: u64,
    /// Of the data that is written.
    pub seed: u64,
    /// What is done apart from requests.
    pub duties: Duties,
    /// What the file should hold, where that is to be checked.
    pub ledger: Option<Arc<Ledger>>,
    /// Times requests.
    pub watch: Stopwatch,
}

impl Psync {
    /// An engine of these parts.
    pub fn new(parts: Parts) -> Self {
        Self {
            file: parts.file,
            path: parts.path,
            buffer: Buffers::new(1, parts.length_max, parts.seed),
            sync_due: SyncDue::new(parts.duties),
            ledger: parts.ledger,
            watch: parts.watch,
        }
    }

    /// By system calls without a C library in between: with several threads it makes every read a
    /// point where a thread may be cancelled, which takes longer than all that the harness does.
    #[inline]
    fn transfer(&mut self, op: &Op) -> io::Result<()> {
        let moved = if op.class.is_read() {
            rustix::io::pread(&*self.file, self.buffer.get(0, op.length), op.offset)
        } else {
            let bytes = self.buffer.stamped(0, op.length);
            if let Some(ledger) = &self.ledger {
                ledger.begin_write(bytes, op.offset);
            }
            rustix::io::pwrite(&*self.file, bytes, op.offset)
        };
        match moved {
            Ok(moved) if moved as u64 == op.length => {}
            Ok(moved) => self.go_on(op, moved as u64)?,
            // Nothing was moved before the signal came: the request is made again.
            Err(Errno::INTR) => self.go_on(op, 0)?,
            Err(error) => return Err(error.into()),
        }
        if !op.class.is_read() && self.sync_due.after_write() {
            rustix::fs::fdatasync(&*self.file)?;
        }
        Ok(())
    }

    /// The rest of a request of which a part was moved, as every careful program asks for it.
    #[cold]
    fn go_on(&mut self, op: &Op, mut moved: u64) -> io::Result<()> {
        while moved < op.length {
            let rest = &mut self.buffer.get(0, op.length)[moved as usize..];
            let more = if op.class.is_read() {
                rustix::io::pread(&*self.file, rest, op.offset + moved)
            } else {
                rustix::io::pwrite(&*self.file, rest, op.offset + moved)
            };
            match more {
                Ok(0) => return Err(short(moved)),
                Ok(more) => moved += more as u64,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// With `--verify`.
impl Psync {
    /// Keeps the ledger of writes, and checks reads against it.
    #[cold]
    fn settle(&mut self, op: &Op, outcome: io::Result<()>, tally: &mut Tally) -> io::Result<()> {
        let Some(ledger) = &self.ledger else { return outcome };
        if !op.class.is_read() {
            ledger.end_write(op.offset, op.length, outcome.is_ok());
            return outcome;
        }
        outcome?;
        let reading = ledger.begin_read(op.offset, op.length);
        let bytes = self.buffer.get(0, op.length);
        tally.verified_bytes += ledger.check(reading, bytes, op.offset)?;
        Ok(())
    }
}

impl OneByOne for Psync {
    fn make(&mut self, ops: &[Op], times_ns: &mut [u64], tally: &mut Tally) -> Result<()> {
        // The end of one request is the beginning of the next: one reading of the clock each.
        let mut began_ns = self.watch.now_ns();
        for (op, time_ns) in ops.iter().zip(times_ns) {
            let mut outcome = self.transfer(op);
            let ended_ns = self.watch.now_ns();
            *time_ns = ended_ns.saturating_sub(began_ns);
            began_ns = ended_ns;
            if self.ledger.is_some() {
                outcome = self.settle(op, outcome, tally);
                began_ns = self.watch.now_ns();
            }
            if let Err(error) = outcome {
                *time_ns = FAILED_NS;
                tally.fail(op, &self.path, error)?;
            }
        }
        Ok(())
    }

    fn make_one(&mut self, op: &Op, tally: &mut Tally) -> Result<()> {
        let began_ns = self.watch.now_ns();
        let outcome = self.transfer(op);
        let ended_ns = self.watch.now_ns();
        match self.settle(op, outcome, tally) {
            Ok(()) => {
                tally.enter(&Done { op: *op, began_ns, ended_ns });
                Ok(())
            }
            Err(error) => tally.fail(op, &self.path, error),
        }
    }
}

#[cfg(test)]
mod tests {
    use ioscape_model::Failure;

    use super::*;
    use crate::request::Stream;
    use crate::rig::Class;

    fn engine(length: u64) -> (tempfile::TempDir, Psync) {
        engine_with(length, None)
    }

    fn engine_with(length: u64, ledger: Option<Arc<Ledger>>) -> (tempfile::TempDir, Psync) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(length).unwrap();
        let file = Arc::new(file);
        let duties = Duties { fsync_every: 5 };
        let watch = Stopwatch::calibrated();
        let length_max = 64 << 10;
        let engine = Psync::new(Parts { file, path, length_max, seed: 1, duties, ledger, watch });
        (directory, engine)
    }

    #[test]
    fn what_is_written_is_incompressible_and_no_block_is_alike() {
        let (directory, mut engine) = engine(1 << 20);
        let write = |index: u64| Op {
            offset: index * (64 << 10),
            length: 64 << 10,
            class: Class::WriteRand,
            due_ns: 0,
        };
        let mut tally = Tally::new(false);
        for index in 0..16 {
            engine.make_one(&write(index), &mut tally).unwrap();
        }
        assert_eq!(tally.ops(), 16);
        let bytes = std::fs::read(directory.path().join("file")).unwrap();
        let blocks: std::collections::HashSet<&[u8]> = bytes.chunks(4096).collect();
        assert_eq!(blocks.len(), 256);
        let mut values = [0_usize; 256];
        for byte in &bytes {
            values[usize::from(*byte)] += 1;
        }
        assert!(values.iter().all(|count| *count < bytes.len() / 100));
    }

    #[test]
    fn a_read_past_the_end_is_counted_as_short_and_not_as_done() {
        let (_directory, mut engine) = engine(8192);
        let op = Op { offset: 4096, length: 8192, class: Class::ReadRand, due_ns: 0 };
        let mut tally = Tally::new(false);
        engine.make_one(&op, &mut tally).unwrap();
        let first = tally.failures.first().unwrap().clone();
        assert_eq!((tally.ops(), first.count), (0, 1));
        assert_eq!((first.failure, first.first_offset), (Failure::Short, 4096));
        assert!(first.text.contains("only 4096 bytes"), "{}", first.text);
    }

    #[test]
    fn an_error_that_is_no_result_names_the_request() {
        let (directory, mut engine) = engine(8192);
        let file = File::open(directory.path().join("file")).unwrap();
        engine.file = Arc::new(file);
        let op = Op { offset: 4096, length: 4096, class: Class::WriteRand, due_ns: 0 };
        let message = engine.make_one(&op, &mut Tally::new(false)).unwrap_err().to_string();
        assert!(message.contains("a write of 4096 bytes at offset 4096"), "{message}");
    }

    #[test]
    fn a_byte_that_was_changed_is_found_where_it_lies() {
        let ledger = Arc::new(Ledger::new(9, 1 << 20));
        let (directory, mut engine) = engine_with(1 << 20, Some(ledger));
        let mut tally = Tally::new(false);
        let op = |index: u64, class| Op { offset: index << 16, length: 64 << 10, class, due_ns: 0 };
        for index in 0..16 {
            engine.make_one(&op(index, Class::WriteSeq), &mut tally).unwrap();
        }
        let path = directory.path().join("file");
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[(5 << 16) + 3 * 4096 + 100] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        for index in 0..16 {
            engine.make_one(&op(index, Class::ReadSeq), &mut tally).unwrap();
        }
        let first = tally.failures.first().unwrap();
        assert_eq!((first.failure, first.count), (Failure::Mismatch, 1));
        assert_eq!(first.first_offset, (5 << 16) + 3 * 4096);
        assert_eq!((tally.ops(), tally.verified_bytes), (31, 15 << 16));
    }

    #[test]
    fn every_request_of_the_stream_is_made_once() {
        let (_directory, mut engine) = engine(1 << 20);
        let work = ioscape_model::Workload::parse("unique_bytes=1MiB,size_mean=4k,size_dist=fixed");
        let mut stream = Stream::new(&work.unwrap(), 0, 0, 1);
        let mut tally = Tally::new(false);
        let ops: [Op; 23] = std::array::from_fn(|_| stream.next_op());
        let mut times_ns = [0; 23];
        engine.make(&ops, &mut times_ns, &mut tally).unwrap();
        tally.enter_all(&ops, &times_ns);
        assert_eq!(tally.ops(), 23);
        assert!(times_ns.iter().all(|time_ns| *time_ns > 0));
    }

    #[test]
    fn a_request_that_failed_leaves_no_time_among_the_others() {
        let (_directory, mut engine) = engine(8192);
        let op = |offset| Op { offset, length: 4096, class: Class::ReadRand, due_ns: 0 };
        let (ops, mut times_ns) = ([op(0), op(8192), op(4096)], [0; 3]);
        let mut tally = Tally::new(false);
        engine.make(&ops, &mut times_ns, &mut tally).unwrap();
        tally.enter_all(&ops, &times_ns);
        assert_eq!((times_ns[1], tally.ops(), tally.failed_ops), (FAILED_NS, 2, 1));
        assert!(tally.time_ns() < FAILED_NS / 2);
    }
}
