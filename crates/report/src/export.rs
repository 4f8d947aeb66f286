//! Leaving in the formats that others read: a table (CSV, Parquet), one JSON document, job files
//! for fio, `OpenMetrics` text. Pure functions of the record; names and units are those of
//! `docs/formats.md`.

mod columns;
mod csv;
pub mod fio;
mod json;
pub(crate) mod openmetrics;
#[cfg(feature = "parquet")]
mod parquet;
mod table;

pub use columns::{estimates, visits};
pub use json::json;
pub use openmetrics::openmetrics;
#[cfg(feature = "parquet")]
pub use parquet::ParquetError;
pub use table::{Column, Table, Values};

use ioscape_model::{Record, RegionName, Workload};

/// The region that a workload lies in.
fn region(record: &Record, work: &Workload) -> Option<RegionName> {
    let unique = work.unique_bytes as f64;
    let inside = record.regions.iter().find(|region| unique < region.unique_bytes.to);
    inside.or(record.regions.last()).map(|region| region.name)
}
