//! The classic benchmarks, and the operating-system microbenchmarks, each by its own rules and
//! with repetitions and intervals beside its own score.
//!
//! A [`Benchmark`] is prepared once on a target and then tried again and again; [`run`](run::run)
//! goes round the targets, so that what is compared was measured in turn. What was given becomes
//! scores and contrasts in [`pool`].

pub mod andrew;
pub mod benchmark;
pub mod bonnie;
pub mod catalogue;
pub mod critique;
pub mod glibc_random;
pub mod handle;
pub mod iostone;
pub mod meter;
pub mod netnews;
pub mod os;
pub mod ousterhout;
pub mod pool;
pub mod run;
pub mod sdet;
pub mod site;
pub mod sort;
pub mod tpcb;
pub mod words;

pub use benchmark::{Benchmark, Turn};
pub use catalogue::Name;
pub use meter::Meter;
pub use run::{Event, Plan, SuiteTarget, run};
pub use site::Site;
