//! The trace's file: Parquet that grows while a program is recorded.
//!
//! Rows are events, sorted by start within each row group; rows whose `op` is `FILE` or `STREAM` are
//! entries of the tables, in row groups of their own. The last entry of an id is the valid one.
//!
//! After each row group stands a footer of that group alone, which says where the one before it
//! ended (see `segment.rs`). Readers of Parquet skip these. So a file that was cut, by a kill, a
//! full disk or a limit, is read up to the last row group that was whole.

mod columns;
mod pages;
mod reader;
mod rows;
mod segment;
mod writer;

use std::io;

use parquet::errors::ParquetError;
use serde::{Deserialize, Serialize};

use crate::TraceInfo;

pub use reader::{Events, Store, Tables};
pub use writer::StoreWriter;

/// Of this version are traces written here; older ones are read.
pub const VERSION: u32 = 1;
/// Where the footer keeps what is known of the whole.
const INFO_KEY: &str = "ioscape.trace";

/// What becomes of paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Names {
    /// They stand in the trace.
    Kept,
    /// Only hashes of them, under a random key that is thrown away.
    #[default]
    Hashed,
}

/// The footer's entry: what is known of the whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Whole {
    version: u32,
    #[serde(default)]
    names: Names,
    #[serde(flatten)]
    info: TraceInfo,
}

/// A trace that cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// No trace, nor the beginning of one.
    #[error("it is no trace of ioscape: `ioscape trace record` and `trace import` make them")]
    NotATrace,
    /// Made by a later version.
    #[error("it is a trace of version {0}, and this build reads up to {VERSION}: update ioscape")]
    Newer(u32),
    /// Its bytes are not what was written.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// It could not be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl From<ParquetError> for StoreError {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(cause) => match cause.downcast::<io::Error>() {
                Ok(cause) => Self::Io(*cause),
                Err(cause) => Self::Damaged(cause.to_string()),
            },
            other => Self::Damaged(other.to_string()),
        }
    }
}

impl From<StoreError> for io::Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Io(error) => error,
            other => Self::other(other),
        }
    }
}

#[cfg(test)]
mod tests;
