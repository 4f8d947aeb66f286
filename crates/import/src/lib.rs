//! What other programs measured, as records of ours: text in, lines out.

pub mod fio;
mod record;

pub use record::lines;
