//! pread and pwrite, one request at a time.
//!
//! All requests of a worker share one buffer, as in most applications and in fio: it is hot in
//! the processor's cache. It is filled with incompressible data at the start, reads put other
//! incompressible data into it, and every block is stamped before it is written, so that no two
//! written blocks are alike.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Done, Engine};
use crate::clock::Lap;
use crate::error::{Error, Result};
use crate::request::Op;
use crate::rig::Class;

const PAGE: usize = 4096;

/// A worker's file, buffer and finished requests.
#[derive(Debug)]
pub struct Psync {
    file: File,
    path: PathBuf,
    buffer: Buffer,
    stamp: u64,
    done: Vec<Done>,
}

impl Psync {
    /// For requests of up to `length_max` bytes on `file`.
    pub fn new(file: File, path: PathBuf, length_max: u64, seed: u64) -> Self {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut buffer = Buffer::new(length_max as usize);
        rng.fill_bytes(buffer.bytes());
        Self { file, path, buffer, stamp: rng.next_u64(), done: Vec::with_capacity(256) }
    }

    #[inline]
    fn transfer(&mut self, op: &Op) -> io::Result<()> {
        let length = op.length as usize;
        let fd = self.file.as_raw_fd();
        let bytes = &mut self.buffer.bytes()[..length];
        let offset = op.offset.cast_signed();
        let moved = match op.class {
            Class::ReadSeq | Class::ReadRand => {
                // SAFETY: `bytes` is a live, exclusive slice of `length` bytes.
                unsafe { libc::pread(fd, bytes.as_mut_ptr().cast(), length, offset) }
            }
            Class::WriteSeq | Class::WriteRand => {
                for block in bytes.chunks_mut(PAGE) {
                    self.stamp = self.stamp.wrapping_add(1);
                    let stamp = self.stamp.to_le_bytes();
                    let length = block.len().min(stamp.len());
                    block[..length].copy_from_slice(&stamp[..length]);
                }
                // SAFETY: `bytes` is a live slice of `length` bytes.
                unsafe { libc::pwrite(fd, bytes.as_ptr().cast(), length, offset) }
            }
        };
        if moved < 0 {
            let error = io::Error::last_os_error();
            // Nothing was moved before the signal came: the request is made again.
            return match error.kind() {
                io::ErrorKind::Interrupted => self.transfer(op),
                _ => Err(error),
            };
        }
        if moved as usize != length {
            let short = format!("only {moved} bytes were moved");
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, short));
        }
        Ok(())
    }
}

impl Engine for Psync {
    fn submit(&mut self, ops: &[Op]) -> Result<usize> {
        let mut lap = Lap::start();
        for op in ops {
            self.transfer(op).map_err(|source| failed(op, &self.path, source))?;
            self.done.push(Done { class: op.class, length: op.length, time_ns: lap.lap_ns() });
        }
        Ok(ops.len())
    }

    fn reap(&mut self, _min: usize, done: &mut Vec<Done>) -> Result<()> {
        done.append(&mut self.done);
        Ok(())
    }
}

#[cold]
fn failed(op: &Op, path: &std::path::Path, source: io::Error) -> Error {
    let read = matches!(op.class, Class::ReadSeq | Class::ReadRand);
    Error::Request {
        direction: if read { "read" } else { "write" },
        offset: op.offset,
        length: op.length,
        path: path.to_owned(),
        source,
    }
}

/// Page-aligned memory.
#[derive(Debug)]
struct Buffer {
    memory: Vec<u8>,
    start: usize,
    length: usize,
}

impl Buffer {
    fn new(length: usize) -> Self {
        let memory = vec![0_u8; length + PAGE];
        let start = memory.as_ptr().align_offset(PAGE);
        Self { memory, start, length }
    }

    #[inline]
    fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.length]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engine(length: u64) -> (tempfile::TempDir, Psync) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.set_len(length).unwrap();
        let engine = Psync::new(file, path, 64 << 10, 1);
        (directory, engine)
    }

    #[test]
    fn what_is_written_is_incompressible_and_no_block_is_alike() {
        let (directory, mut engine) = engine(1 << 20);
        let write = |index: u64| Op {
            offset: index * (64 << 10),
            length: 64 << 10,
            class: Class::WriteRand,
        };
        let ops: Vec<Op> = (0..16).map(write).collect();
        assert_eq!(engine.submit(&ops).unwrap(), 16);
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
    fn a_read_past_the_end_is_an_error_that_names_the_request() {
        let (_directory, mut engine) = engine(8192);
        let op = Op { offset: 4096, length: 8192, class: Class::ReadRand };
        let message = engine.submit(&[op]).unwrap_err().to_string();
        assert!(message.contains("a read of 8192 bytes at offset 4096"), "{message}");
        assert!(message.contains("only 4096 bytes"), "{message}");
    }

    #[test]
    fn every_request_is_handed_back_once() {
        let (_directory, mut engine) = engine(1 << 20);
        let op = Op { offset: 0, length: 4096, class: Class::ReadSeq };
        engine.submit(&[op; 23]).unwrap();
        let mut done = vec![];
        engine.reap(1, &mut done).unwrap();
        engine.reap(1, &mut done).unwrap();
        assert_eq!(done.len(), 23);
    }
}
