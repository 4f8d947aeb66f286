//! Pure functions over records: the same record gives the same answer.
//!
//! ```
//! use ioscape_analysis::{conclusion::conclude, predict::Predictor};
//! use ioscape_model::{Record, Workload};
//! # let path = "../model/tests/records/v1.jsonl";
//! let record = Record::read(std::io::BufReader::new(std::fs::File::open(path)?))?;
//! if let Some(answer) = conclude(&record) {
//!     println!("{}", answer.storage);
//! }
//! if let Ok(predictor) = Predictor::of_record(&record) {
//!     let work = Workload::parse("unique_bytes=64MiB,read_frac=0.7")?;
//!     println!("{} bytes/s", predictor.predict("mine", &work).throughput_bytes_per_s.value);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod application;
pub mod border;
pub mod compare;
pub mod conclusion;
pub mod datasheet;
pub mod doctor;
pub mod estimate;
pub mod finding;
pub mod focal;
pub mod history;
pub mod layer;
pub mod model;
pub mod predict;
pub mod region;
pub mod representative;
pub mod slope;
pub mod validate;
#[cfg(test)]
mod visit;

/// The parameters as axes of a space.
use ioscape_model::graph as axis;
