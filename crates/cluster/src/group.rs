//! How ranks talk: bytes from one to another, and what is made of that.

use crate::clock::Clock;
use crate::error::Result;

/// How a rank waits for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// With a processor, for the least delay: not while anything is measured.
    Spinning,
    /// Asleep between looks, so that what is measured keeps the processors.
    Sleeping {
        /// At most so long, nanoseconds.
        most_ns: i64,
    },
}

impl Wait {
    /// However long it takes.
    pub const LONG: Self = Self::Sleeping { most_ns: i64::MAX };
}

/// The ranks of one run, as one of them sees them.
pub trait Group {
    /// The number of this one, from 0.
    fn rank(&self) -> u32;

    /// How many there are.
    fn size(&self) -> u32;

    /// The clock of this rank.
    fn clock(&self) -> &dyn Clock;

    /// Sends bytes to a rank.
    ///
    /// # Errors
    /// When it is gone, as far as that can be seen.
    fn send(&self, to: u32, bytes: &[u8]) -> Result<()>;

    /// The next bytes from a rank; what one rank sends arrives in order.
    ///
    /// # Errors
    /// [`Error::Silent`](crate::Error::Silent) when nothing came in time, or when the rank is gone.
    fn receive(&self, from: u32, wait: Wait) -> Result<Vec<u8>>;

    /// Ends all ranks with this exit code, as far as that can be brought about.
    fn abort(&self, code: i32);

    /// A rank is gone: this one is not to wait for it when it leaves the group.
    fn abandon(&self);

    /// The others.
    fn others(&self) -> std::ops::Range<u32> {
        1..self.size()
    }

    /// On rank 0 the words of every rank, by rank; nothing on the others.
    ///
    /// # Errors
    /// When a rank is gone.
    fn gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>> {
        if self.rank() > 0 {
            self.send(0, bytes)?;
            return Ok(Vec::new());
        }
        let mut all = vec![bytes.to_vec()];
        for rank in self.others() {
            all.push(self.receive(rank, Wait::LONG)?);
        }
        Ok(all)
    }

    /// The words of rank 0, on every rank.
    ///
    /// # Errors
    /// When a rank is gone.
    fn broadcast(&self, bytes: &[u8]) -> Result<Vec<u8>> {
        if self.rank() > 0 {
            return self.receive(0, Wait::LONG);
        }
        self.others().try_for_each(|rank| self.send(rank, bytes))?;
        Ok(bytes.to_vec())
    }

    /// Returns once every rank has called it.
    ///
    /// # Errors
    /// When a rank is gone.
    fn barrier(&self) -> Result<()> {
        self.gather(&[])?;
        self.broadcast(&[]).map(drop)
    }
}
