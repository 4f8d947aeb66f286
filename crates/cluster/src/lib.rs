//! Ranks of a run over many hosts: who launched this process, how ranks talk, and what the clock of
//! one is by the clock of another. Knows nothing of storage.
//!
//! A [`Group`] sends bytes between ranks; the rest (barrier, broadcast, gather) is made of that. One
//! kind is MPI, loaded at run time, so that one binary suits any cluster; the other is threads of one
//! process, for tests, with clocks that may run apart.
//!
//! No environment variable is read here: whoever calls hands in how to look one up.

mod ancestors;
mod clock;
mod error;
mod group;
mod launch;
mod local;
mod mpi;
mod offset;

pub use ancestors::launcher_above;
pub use clock::{Clock, Monotonic, Skewed};
pub use error::{Error, Result};
pub use group::{Group, Wait};
pub use launch::{Environment, Launch, Launcher, detect};
pub use local::{Local, local};
pub use mpi::{Mpi, join};
pub use offset::{Offset, Track, answer_pings, measure};
