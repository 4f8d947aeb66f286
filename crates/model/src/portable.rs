//! Fitted models as plain data: all that a program needs to predict as `ioscape predict` does,
//! without the record and without fitting anything. The page of a record has such a program,
//! `crates/report/assets/predictor.js`; what the numbers mean is told where they come from, in
//! `crates/analysis/src/model/blend/law.rs` and beside it.

use serde::{Deserialize, Serialize};

/// What `analysis::predict::Predictor` answers from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortablePredictor {
    /// The law of the blend.
    pub law: PortableLaw,
    /// What is known of how far off the law is.
    pub doubt: PortableDoubt,
    /// Noise between visits as standard deviations of a logarithm, for copying, reading and
    /// writing back. None where it could not be learnt.
    pub noise: Option<[f64; 3]>,
    /// How intervals are made.
    pub calibration: PortableCalibration,
    /// The box that was measured: a workload further out is out of range.
    pub measured: Vec<PortableRange>,
    /// Regions, smallest first.
    pub regions: Vec<PortableRegion>,
    /// The product of single-parameter curves, where it could be fitted.
    pub product: Option<PortableProduct>,
}

/// The law: how many caches it knows, and its parameters as they were fitted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortableLaw {
    /// Caches that reads find data in.
    pub read_caches: usize,
    /// Amounts of data that can be overwritten before storage is waited for.
    pub write_caches: usize,
    /// Mostly logarithms, in the law's own order.
    pub parameters: Vec<f64>,
}

/// How far off the law is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PortableDoubt {
    /// A Gaussian process corrects it, and knows how well.
    Process(Box<PortableProcess>),
    /// It stands as it was fitted.
    Law {
        /// What it misses by, beyond what measuring does: standard deviation of a logarithm.
        misfit: f64,
        /// Covariance of its parameters: the lower half, row by row.
        covariance: Vec<f64>,
    },
}

/// A Gaussian process over workloads: its hyperparameters, and a column per figure of the samples
/// that it was learnt from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortableProcess {
    /// Of the four parts of a request's time.
    pub amplitudes: [f64; 4],
    /// Of request size, read and sequential fraction, processes.
    pub lengths: [f64; 4],
    /// Of data touched, for copying, reading and writing back.
    pub unique_lengths: [f64; 3],
    /// Data touched, bytes.
    pub unique_bytes: Vec<u64>,
    /// Mean request sizes, bytes.
    pub size_mean: Vec<u64>,
    /// Shares of reads.
    pub read_frac: Vec<f64>,
    /// Shares of sequential requests.
    pub seq_frac: Vec<f64>,
    /// Processes.
    pub process_num: Vec<u32>,
    /// Measured over what the law says, as logarithms.
    pub missed: Vec<f64>,
    /// Variances of these.
    pub noise: Vec<f64>,
}

/// How the interval of a prediction is made from what its model knows.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortableCalibration {
    /// Half-width in standard deviations of what is not known: the model's own variance, noise and
    /// `shared_variance`.
    pub factor: f64,
    /// What errors share beyond the model's own variance.
    pub shared_variance: f64,
    /// What `factor` is for a normal law, and for `elsewhere_sd`.
    pub score_usual: f64,
    /// What another hour and another state of the cache add: standard deviation of a logarithm.
    pub elsewhere_sd: f64,
    /// No interval has a smaller half-width, as a logarithm.
    pub half_width_min: f64,
    /// A workload may lie outside the measured box by this factor and still be in range.
    pub range_slack: f64,
    /// What the half-width grows by per unit of logarithm outside the box.
    pub wider_outside: f64,
}

/// How far a parameter was measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortableRange {
    /// The parameter's key.
    pub key: String,
    /// From here.
    pub min: u64,
    /// To here.
    pub max: u64,
}

/// A region's name and where it ends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortableRegion {
    /// Its name.
    pub name: String,
    /// The data touched that it ends at, bytes.
    pub to: f64,
}

/// The product model: a family of curves per region, smallest region first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortableProduct {
    /// The families.
    pub families: Vec<PortableFamily>,
}

/// The curves of a region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortableFamily {
    /// Data touched from here, bytes …
    pub from: f64,
    /// … to here.
    pub to: f64,
    /// Where the focal vector lies on each of the five axes, in the order of a workload's keys.
    pub focal: [f64; 5],
    /// Natural logarithm of the throughput there, bytes per second.
    pub ln_throughput: f64,
    /// Its curves.
    pub curves: Vec<PortableCurve>,
}

/// A curve over one parameter: piecewise cubic, with these heights and slopes at its points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PortableCurve {
    /// Which of the five axes it runs along.
    pub axis: usize,
    /// Where its points lie: sizes and counts as logarithms.
    pub x: Vec<f64>,
    /// Natural logarithms of the throughput, bytes per second.
    pub y: Vec<f64>,
    /// Slopes at the points.
    pub slope: Vec<f64>,
}
