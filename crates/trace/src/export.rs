//! Traces and models for other tools.

mod csv;
mod fio;
mod iolog;
mod oracle;

pub use csv::csv;
pub use fio::{FioJob, JobError, Loss, fio_job};
pub use iolog::iolog;
pub use oracle::{OracleCounts, oracle};

#[cfg(test)]
mod tests;
