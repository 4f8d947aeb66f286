//! Checks on the repository itself: what the architecture forbids, as functions from source text
//! to complaints. The tables of what is allowed stand in `tests/tidy.rs`, which runs them all. And
//! what is handed out: `dist`.

#[cfg(feature = "dist")]
pub mod dist;
pub mod modules;
pub mod phrases;
pub mod rings;
pub mod source;
pub mod wasm;
pub mod workspace;

pub use source::Source;
pub use workspace::{Package, Workspace};
