//! Pure functions over records: the same record gives the same answer.

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
pub mod slope;
pub mod validate;
#[cfg(test)]
mod visit;

/// The parameters as axes of a space.
use ioscape_model::graph as axis;
