//! On a filesystem of another machine, what a miss costs depends on what that machine keeps in its own
//! memory: a visit whose requests reach it has all of its data read there twice before it starts. Data
//! read once do not displace pages that were used more often (ext4 in a group of 160 MiB, full of such
//! pages: of 120 MiB that were read once 65 % stayed, read twice 96 %).

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;

use ioscape_model::{Access, State, Workload};

use super::FileRig;
use crate::aligned::Aligned;
use crate::error::{Error, Result};
use crate::files::{BLOCK_BYTES, OpenAccess};
use crate::target::Directory;

/// Reading a visit's data twice takes no longer, nanoseconds. A server that keeps more than passes in
/// that time holds them from when they were laid out, or shows a smaller cache than it has.
const READ_MAX_NS: u64 = 10_000_000_000;
/// So much is asked for at a time, bytes.
const REQUEST_BYTES: u64 = 1 << 20;

impl FileRig {
    /// Has the server read the data of a visit into its memory, as far as it keeps them, unless the visit
    /// before left them there. Pages of this machine stay as they are: the reads go past them, and where
    /// that is refused nothing is read.
    pub(super) fn read_at_server(
        &mut self,
        work: &Workload,
        shares: &[(usize, u64)],
    ) -> Result<()> {
        let is_served = self.ground.directory().is_some_and(Directory::is_served);
        let all_bytes: u64 = shares.iter().map(|(_, length)| length).sum();
        let stays_here = work.access == Access::Buffered && all_bytes <= self.cache_bytes();
        if !is_served || (stays_here && work.state == State::Warm) {
            return Ok(());
        }
        if self.served == shares && self.part.ranks <= 1 {
            return Ok(());
        }
        self.served.clear();
        if work.state == State::Cold || work.read_frac <= 0.0 {
            return Ok(());
        }
        let until_ns = self.clock.now_ns() + READ_MAX_NS;
        let mut memory = Aligned::new(REQUEST_BYTES as usize);
        for (number, length) in shares.iter().chain(shares) {
            let Ok(file) = self.files.open_again(*number, OpenAccess::Direct) else {
                return Ok(());
            };
            if !self.read_until(&file, *length, &mut memory, until_ns)? {
                break;
            }
        }
        self.served = shares.to_vec();
        Ok(())
    }

    /// Reads whole blocks of a file; says whether it came to the end of `length`, as it does not where time
    /// is over or a read fails: that is the visit's own to tell.
    fn read_until(
        &self,
        file: &File,
        length: u64,
        memory: &mut Aligned,
        until_ns: u64,
    ) -> Result<bool> {
        let end = length / BLOCK_BYTES * BLOCK_BYTES;
        let mut from = 0;
        while from < end {
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            let piece = REQUEST_BYTES.min(end - from) as usize;
            let is_late = self.clock.now_ns() > until_ns;
            if is_late || file.read_exact_at(&mut memory.bytes_mut()[..piece], from).is_err() {
                return Ok(false);
            }
            from += piece as u64;
        }
        Ok(true)
    }
}
