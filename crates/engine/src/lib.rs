//! Makes I/O happen: engines, workers, layout, counters, the clock, a description of the host.
//!
//! What a workload asks for is in `ioscape-model`; what to run and when to stop is decided in
//! `ioscape-experiment`, which drives a [`Rig`]. All unsafe code of the project is here.

pub mod clock;
pub mod engine;
pub mod error;
pub mod request;
pub mod rig;
mod worker;

pub use clock::Clock;
pub use error::Error;
pub use rig::{Class, ClassCount, Finished, Hints, Prepared, Rig, Window};
