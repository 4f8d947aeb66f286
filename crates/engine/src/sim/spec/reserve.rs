//! `[reserve]` of a description: what makes a device faster at first than it is for long.

use serde::{Deserialize, Serialize};

use super::size_option;
use crate::error::{Error, Result};

/// A reserve of the storage, used up by what is written or by load as such.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reserve {
    /// Bytes that are written at full speed; then writes are slower, and reads are not.
    #[serde(default, deserialize_with = "size_option", skip_serializing_if = "Option::is_none")]
    pub write_bytes: Option<u64>,
    /// Seconds of load that are served at full speed; then all requests are slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_s: Option<f64>,
    /// Speed of the storage when it is used up; 1 is full speed.
    pub spent_speed: f64,
    /// At rest all of it comes back in so many seconds.
    pub rest_s: f64,
}

impl Reserve {
    pub(super) fn check(&self) -> Result<()> {
        let wrong = |what: &str| Err(Error::Sim(format!("simulated device: reserve: {what}")));
        if self.write_bytes.is_some() == self.load_s.is_some() {
            return wrong("it is write_bytes or load_s; give one of the two");
        }
        if self.write_bytes == Some(0) || self.load_s.is_some_and(|s| !(s > 0.0 && s.is_finite())) {
            return wrong(
                "write_bytes or load_s must be above 0; leave it out where there is none",
            );
        }
        if !(self.spent_speed > 0.0 && self.spent_speed <= 1.0) {
            return wrong("spent_speed must be above 0, and 1 at most; 0.3 is usual");
        }
        if !(self.rest_s > 0.0 && self.rest_s.is_finite()) {
            return wrong("rest_s must be above 0 seconds; 60 is usual");
        }
        Ok(())
    }
}
