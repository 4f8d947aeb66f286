//! One workload on many hosts: a [`Rig`](ioscape_engine::Rig) that drives a rig on every rank, so that
//! the measuring loop and the plans above it cannot tell the difference.
//!
//! Rank 0 measures and decides; the others obey `orders`. Each rank runs every so-many-th process of
//! a workload on a rig of its own. The workers begin at one instant, which is agreed on clocks that
//! were held against each other just before; windows end at instants of one grid, and each rank counts
//! by its own clock what it did between two of them. No message is under way while a window runs:
//! a library that waits for one takes a processor from what is measured.

mod assembly;
mod crew;
mod merged;
mod orders;
mod rig;
mod serve;
mod stragglers;
#[cfg(test)]
mod tests;

pub use assembly::{Party, Setup, assemble, check_alike, take_part};
pub use rig::RanksRig;
pub use serve::Left;
