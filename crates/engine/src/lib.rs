//! Makes I/O happen: engines, workers, layout, counters, the clock, a description of the host.
//!
//! What a workload asks for is in `ioscape-model`; what to run and when to stop is decided in
//! `ioscape-experiment`, which drives a [`Rig`]. All unsafe code of the project is here.

mod aligned;
pub mod cachestat;
mod cgroup;
pub mod clock;
pub mod counters;
mod device_counter;
pub mod dirty_limit;
pub mod elements;
pub mod engine;
pub mod error;
pub mod extents;
mod failures;
pub mod file_rig;
pub mod files;
pub mod harness;
pub mod host;
mod memory;
pub mod memory_limit;
mod mounts;
pub mod placement;
pub mod primitives;
pub mod replay;
pub mod request;
pub mod rig;
pub mod run_id;
mod schedule;
pub mod scratch;
pub mod sim;
mod sysfs;
pub mod tally;
pub mod target;
mod verify;
mod worker;

pub use clock::{Clock, Stopwatch};
pub use engine::uring::UringOptions;
pub use error::Error;
pub use file_rig::{EngineKind, FileRig};
pub use placement::{Ahead, Placement};
pub use rig::{Class, ClassCount, Finished, Prepared, Rig, Window};
pub use run_id::RunId;
pub use scratch::Scratch;
pub use sim::{SimRig, SimSpec};
