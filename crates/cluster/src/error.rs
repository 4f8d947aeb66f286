//! All that can go wrong between ranks.

/// An error of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The launch or the library does not do; the text says why and what to try.
    #[error("{0}")]
    Refused(String),
    /// Nothing came in the time allowed.
    #[error("nothing was heard of rank {rank} in time")]
    Silent {
        /// The rank that was to send.
        rank: u32,
    },
    /// A rank is gone.
    #[error("rank {rank} is gone")]
    Gone {
        /// Its number.
        rank: u32,
    },
    /// MPI refused a call.
    #[error("MPI cannot {operation} rank {rank} (error {code})")]
    Mpi {
        /// The attempt, as a verb.
        operation: &'static str,
        /// With whom.
        rank: u32,
        /// The code that it gave.
        code: i32,
    },
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
