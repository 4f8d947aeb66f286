//! The two layers of a map: what the page cache answers, and what the device does.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Access, Point, Ranges};

/// Which layer of a map something is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// Buffered requests: through the page cache.
    #[default]
    Cache,
    /// Direct requests: past the page cache.
    Device,
}

impl Layer {
    /// The layer that a workload's requests belong to.
    pub fn of_access(access: Access) -> Self {
        match access {
            Access::Buffered => Self::Cache,
            Access::Direct => Self::Device,
        }
    }

    /// Whether a visit belongs to it.
    pub fn holds(self, point: &Point) -> bool {
        Self::of_access(point.workload.access) == self
    }
}

/// The device layer of a map whose other layer is the page cache's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceLayer {
    /// Where it extends; `unique_bytes.max` is the span.
    pub ranges: Ranges,
    /// Most data in all of its test files together, bytes.
    pub room_bytes: u64,
}
