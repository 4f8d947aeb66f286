//! A figure with its interval.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::point::{Interval, finite};

/// A predicted figure with its 90 % interval. Never null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The figure.
    #[serde(serialize_with = "finite")]
    pub value: f64,
    /// Lower end.
    #[serde(serialize_with = "finite")]
    pub low: f64,
    /// Upper end.
    #[serde(serialize_with = "finite")]
    pub high: f64,
}

impl From<Figure> for Interval {
    fn from(figure: Figure) -> Self {
        Self { mean: figure.value, low: figure.low, high: figure.high }
    }
}
