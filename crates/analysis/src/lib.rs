//! Pure functions over records: the same record gives the same answer.

mod axis;
pub mod border;
pub mod compare;
pub mod doctor;
pub mod estimate;
pub mod finding;
pub mod focal;
pub mod model;
pub mod predict;
pub mod region;
pub mod slope;
pub mod validate;
#[cfg(test)]
mod visit;
