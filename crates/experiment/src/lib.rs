//! Decides what to run and when to stop: measures one workload, explores with a plan, keeps the
//! budget, goes on after an interruption.

pub mod alternate;
pub mod bench;
mod course;
pub mod exploration;
pub mod explore;
pub mod forecast;
pub mod highest_rate;
pub mod measure;
pub mod plan;
mod publish;
pub mod replay;
pub mod sustain;
pub mod validate;
pub mod vector;
mod written;

pub use bench::Bench;
pub use exploration::{AskedRanges, Exploration, Settings, Watch};
pub use measure::{Event, Subject, measure};
pub use plan::{Landscape, Plan, Seen, Visit};
