//! pread and pwrite, one request at a time.
//!
//! All requests of a worker share one buffer, as in most applications and in fio: it is hot in
//! the processor's cache. Reads put other incompressible data into it than it held.

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use super::buffers::Buffers;
use super::transfer::Transfer;
use super::{Done, Duties, OneByOne, SyncDue};
use crate::clock::Stopwatch;
use crate::error::Result;
use crate::request::Op;
use crate::tally::{FAILED_NS, Tally};
use crate::verify::Ledger;

/// A worker's file and buffer.
#[derive(Debug)]
pub struct Psync {
    transfer: Transfer,
    path: PathBuf,
    sync_due: SyncDue,
    watch: Stopwatch,
}

/// What every engine that makes requests is made of.
#[derive(Clone, Debug)]
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

impl Parts {
    /// A maker of requests, one after the other: the `index`-th of those that share the file.
    pub(super) fn into_transfer(self, index: u64) -> Transfer {
        let buffer = Buffers::new(1, self.length_max, self.seed ^ (index << 32));
        Transfer { file: self.file, buffer, ledger: self.ledger }
    }
}

impl Psync {
    /// An engine of these parts.
    pub fn new(parts: Parts) -> Self {
        let sync_due = SyncDue::new(parts.duties);
        let (path, watch) = (parts.path.clone(), parts.watch);
        Self { transfer: parts.into_transfer(0), path, sync_due, watch }
    }

    #[inline]
    fn transfer(&mut self, op: &Op) -> io::Result<()> {
        self.transfer.make(op)?;
        if !op.class.is_read() && self.sync_due.after_write() {
            self.transfer.sync()?;
        }
        Ok(())
    }

    /// With `--verify`: one request at a time, so nothing is written while a read is under way.
    #[cold]
    fn settle(&mut self, op: &Op, outcome: io::Result<()>, tally: &mut Tally) -> io::Result<()> {
        let reading = self.transfer.reading(op);
        tally.verified_bytes += self.transfer.settle(op, reading, outcome)?;
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
            if self.transfer.ledger.is_some() {
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
        engine.transfer.file = Arc::new(file);
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
