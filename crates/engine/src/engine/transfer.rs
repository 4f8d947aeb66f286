//! One request by a system call of its own, pread or pwrite, and what is checked of it where data are
//! verified. The calling thread waits for it.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::sync::Arc;

use rustix::io::{Errno, ReadWriteFlags};

use super::buffers::Buffers;
use super::short;
use crate::request::Op;
use crate::verify::{Ledger, Reading};

/// A file, and the memory that its requests are read into and written from, one at a time.
#[derive(Debug)]
pub(super) struct Transfer {
    pub(super) file: Arc<File>,
    pub(super) buffer: Buffers,
    pub(super) ledger: Option<Arc<Ledger>>,
}

impl Transfer {
    /// Moves all bytes of a request. By system calls without a C library in between: with several
    /// threads it makes every read a point where a thread may be cancelled, which takes longer than
    /// all that the harness does.
    #[inline]
    pub(super) fn make(&mut self, op: &Op) -> io::Result<()> {
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
            Ok(moved) if moved as u64 == op.length => Ok(()),
            Ok(moved) => self.go_on(op, moved as u64),
            // Nothing was moved before the signal came: the request is made again.
            Err(Errno::INTR) => self.go_on(op, 0),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads what is all in the page cache already, and says whether it was; nothing is fetched.
    /// An error says that this cannot be asked for here.
    pub(super) fn read_cached(&mut self, op: &Op) -> io::Result<bool> {
        let mut bytes = [IoSliceMut::new(self.buffer.get(0, op.length))];
        let flags = ReadWriteFlags::NOWAIT;
        match rustix::io::preadv2(&*self.file, &mut bytes, op.offset, flags) {
            Ok(moved) => Ok(moved as u64 == op.length),
            Err(Errno::AGAIN | Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until all that was written to the file is on stable storage.
    pub(super) fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fdatasync(&*self.file)?)
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
impl Transfer {
    /// Before a read.
    pub(super) fn reading(&self, op: &Op) -> Reading {
        let ledger = self.ledger.as_ref().filter(|_| op.class.is_read());
        ledger.map_or_else(Reading::default, |ledger| ledger.begin_read(op.offset, op.length))
    }

    /// Keeps the ledger of writes, and checks reads against it. Says how many bytes were checked.
    pub(super) fn settle(
        &mut self,
        op: &Op,
        reading: Reading,
        outcome: io::Result<()>,
    ) -> io::Result<u64> {
        let Some(ledger) = &self.ledger else { return outcome.map(|()| 0) };
        if !op.class.is_read() {
            ledger.end_write(op.offset, op.length, outcome.is_ok());
            return outcome.map(|()| 0);
        }
        outcome?;
        Ok(ledger.check(reading, self.buffer.get(0, op.length), op.offset)?)
    }
}
