//! What to conclude from a record: what the storage is, how much data is fast, what sets the pace,
//! how far to trust it, what to do. Decided once by `analysis`, shown by every renderer.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The answer that a report leads with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Conclusion {
    /// What this storage is, in one or two sentences.
    pub storage: String,
    /// How much data is read fast, and how fast beyond that.
    pub reads: String,
    /// How much data is written fast, and how fast beyond that.
    pub writes: String,
    /// Whether memory or the device sets the pace.
    pub limit: String,
    /// How far to trust the figures.
    pub trust: Trust,
    /// What to do, the largest gain first.
    pub advice: Vec<Advice>,
}

/// How far to trust the figures of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trust {
    /// The grade.
    pub grade: Grade,
    /// Which differences mean something at this grade.
    pub meaning: String,
    /// The two criteria that decide the grade, the worst first.
    pub reasons: Vec<String>,
}

/// A grade; the order is from good to bad.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Grade {
    /// Repeated measurements agree within 5 %, and nothing is in doubt.
    A,
    /// They agree within 10 %, or little is in doubt.
    B,
    /// They agree within 25 %, or much is in doubt.
    C,
    /// No decision should rest on it.
    D,
}

/// One thing to do, with the figures that speak for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    /// What kind of thing.
    pub kind: AdviceKind,
    /// A sentence with its figures.
    pub text: String,
    /// The figures, by name with their unit; `gain_ratio` is what it brings, as a factor.
    pub figures: BTreeMap<String, f64>,
}

/// What there is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AdviceKind {
    /// The figures cannot be trusted yet.
    MeasureAgain,
    /// Touch less data.
    SmallerWorkingSet,
    /// Add memory for the page cache.
    MoreMemory,
    /// Buy a faster device, or more of its provisioned rate.
    FasterDevice,
    /// Make requests larger.
    LargerRequests,
    /// Keep more requests in flight.
    MoreInFlight,
    /// Keep queues short: requests in flight only wait.
    FewerInFlight,
    /// Make several writes durable with one fdatasync.
    GroupCommits,
}

impl AdviceKind {
    /// The advice in two or three words, as a heading.
    pub fn title(self) -> &'static str {
        match self {
            Self::MeasureAgain => "Measure again",
            Self::SmallerWorkingSet => "Smaller working set",
            Self::MoreMemory => "More memory",
            Self::FasterDevice => "Faster device",
            Self::LargerRequests => "Larger requests",
            Self::MoreInFlight => "More in flight",
            Self::FewerInFlight => "Shorter queues",
            Self::GroupCommits => "Group commits",
        }
    }
}
