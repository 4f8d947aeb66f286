//! Numbers in, numbers out. Nothing here has heard of a disk.
//!
//! A raw series ([`series`]) becomes a kept sample ([`steady`]), a kept sample a mean with its
//! error ([`batch`], [`interval`]), and means of repeated visits a pooled spread ([`pool`]).

pub mod batch;
pub mod change;
pub mod changes;
pub mod gaussian_process;
pub mod hinge;
pub mod holm;
pub mod interval;
pub mod least_squares;
pub mod maximise;
pub mod monotone;
pub mod non_negative;
pub mod pool;
pub mod quantile;
pub mod segment;
pub mod series;
pub mod steady;
pub mod step;

pub use interval::{Mean, normal_quantile, t_two_sided};
pub use non_negative::{Observation, non_negative};
pub use pool::{LogMeasurement, Spread};
pub use quantile::{NORMAL_90, conformal_quantile, median, quantile, robust_sd};
pub use series::Piece;
pub use steady::{Drift, Kept};
pub use step::{Fall, fall};
