//! The simulated device: a storage hierarchy with a known law, its own clock, and faults on demand.
//!
//! It is how we know that a border, a parameter or an interval is right: put a known law in, get
//! it back. It works window by window, not request by request, so ten simulated minutes take a
//! fraction of a real second. It knows steady state only: caches are as full as they get, apart
//! from a start transient that the description asks for.
//!
//! | file | holds |
//! |---|---|
//! | `spec` | the description: a small TOML file; each of its larger tables in a file below `spec/` |
//! | `preset` | the descriptions that come with the tool |
//! | `law` | expected seconds per request, and from them the throughput |
//! | `machine` | the other kind of device: pages and a queue in place of a law |
//! | `arrivals` | the queue of an open loop |
//! | `noise` | how one visit departs from the law |
//! | `trouble` | failures, decline, a device that is slow for good |
//! | `reserve` | an SLC cache or burst credit, which come back at rest |
//! | `files` | what is laid out, and the ceiling on what is written |
//! | `device` | the device with a law as a rig: layout, warm-up, windows, counters, histograms |
//! | `rig` | one rig for both kinds |

pub mod law;
pub mod spec;

mod arrivals;
mod device;
mod files;
mod machine;
mod noise;
mod preset;
mod reserve;
mod rig;
mod trouble;

pub use law::{Performance, Share};
pub use rig::SimRig;
pub use spec::{
    Cost, Level, Machine, MachineCache, MachineStorage, Noise, Policy, Reserve, SimHints, SimSpec,
    SizeRange, SpecRanges, Trouble,
};

#[cfg(test)]
mod tests;
