//! Support for the tests of several crates; no crate depends on it but for its tests.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "tests fail and speak as they like")]

mod blameless;
mod browser;
mod filesystem;
mod header;
mod recorded;
mod resident;
mod skip;
mod stream;

pub use blameless::blameless;
pub use browser::browser;
pub use filesystem::{LoopDevice, Mount, run};
pub use header::header;
pub use recorded::recorded;
pub use resident::pages_held;
pub use skip::skipped;
pub use stream::{Stream, StreamSpec};
