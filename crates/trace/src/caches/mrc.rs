//! Miss-ratio curves: the misses of an LRU cache of every size, from one pass over the requests.
//!
//! The method is Mattson's (IBM Systems Journal 9(2), 1970): a page hits in all caches larger than
//! its stack distance, the number of other pages touched since its last touch.

mod curve;
mod exact;
mod reuse_time;
mod sampled;
mod simplify;
mod slots;

pub use curve::{Curve, Distances};
pub use exact::{ExactCurve, Touch};
pub use reuse_time::{ReuseProfile, ReuseTimes, shared_miss_ratios};
pub(super) use reuse_time::{bucket_of, start_of};
pub use sampled::{Agreement, SampledCurve, sample_until_agreed};
pub(super) use simplify::simplified;

/// Whether pages were read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read.
    Read,
    /// Written.
    Write,
}
