//! Models that answer for workloads nobody measured, behind one interface.
//!
//! A model is fitted from [`Training`], which is what a record says about workloads, and answers
//! with a [`Guess`]: the logarithm of the throughput and how unsure it is of it. Intervals that
//! hold what they promise are made from guesses elsewhere ([`crate::predict`]).

use std::collections::BTreeMap;
use std::fmt::Debug;

use ioscape_model::line::ParameterValue;
use ioscape_model::{ModelName, Workload};
use serde::{Deserialize, Serialize};

pub mod blend;
#[cfg(test)]
pub(crate) mod formula;
pub mod gaussian;
pub mod orthogonal;
pub mod product;
mod training;

pub use training::{
    Sample, Samples, TAIL, Training, device_hints, device_samples, drift_sd, off_graph_count,
    parameter_kind,
};

/// What a model says about one workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Guess {
    /// Natural logarithm of the throughput in bytes per second.
    pub ln_throughput: f64,
    /// Standard deviation of that, as far as the model knows: not calibrated.
    pub sd: f64,
}

/// A fitted model.
pub trait Model: Debug + Send + Sync {
    /// Which model it is.
    fn name(&self) -> ModelName;

    /// What it says about a workload; `None` where it has nothing to say.
    fn predict(&self, work: &Workload) -> Option<Guess>;

    /// Its parameters with standard errors, names with units; empty where it has none that mean
    /// anything.
    fn parameters(&self) -> BTreeMap<String, ParameterValue> {
        BTreeMap::new()
    }
}
