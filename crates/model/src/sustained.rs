//! Writing for long, to see whether a target stays as fast as it was at first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Warning, Workload};

/// One stretch of writing without a rest, piece by piece.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sustained {
    /// The workload that wrote.
    pub workload: Workload,
    /// The engine of its requests.
    pub engine: String,
    /// Seconds since the run's start when it began.
    pub started_s: f64,
    /// Laid out just before it, seconds and bytes: the target had no rest in between.
    pub before: WrittenPiece,
    /// How long the writing was to last at most, seconds.
    pub asked_s: f64,
    /// Bytes that were to be written to precondition the target; none where only time was to pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_bytes: Option<u64>,
    /// All that was written, in the order of time.
    pub pieces: Vec<WrittenPiece>,
    /// Whether it ended before that, for want of what may be written or of time.
    pub is_cut_short: bool,
    /// Doubts about it.
    pub warnings: Vec<Warning>,
}

/// Bytes that were written in so many seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WrittenPiece {
    /// How long it was, seconds.
    pub length_s: f64,
    /// Bytes written in it.
    pub bytes: u64,
}
