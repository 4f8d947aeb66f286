//! `[trouble]` of a description: what goes wrong with a device.

use serde::{Deserialize, Serialize};

use super::size_option;
use crate::error::{Error, Result};

/// Seconds after which a kernel usually gives a device up.
const TIMEOUT_USUAL_S: f64 = 30.0;

/// `[trouble]` of a description. Nothing in it: none. What is slower is slower at all levels, as a
/// small virtual machine is when its credit is spent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Trouble {
    /// Share of requests that fail with an I/O error.
    pub error_rate: f64,
    /// Share of requests that end before all bytes were moved.
    pub short_rate: f64,
    /// Share of requests that time out.
    pub timeout_rate: f64,
    /// How long each of these takes, seconds.
    pub timeout_s: f64,
    /// Bytes that the storage moves at full speed; from then on all levels run at `spent_speed`.
    #[serde(deserialize_with = "size_option", skip_serializing_if = "Option::is_none")]
    pub credit_bytes: Option<u64>,
    /// Speed once the credit is spent; 1 is full speed.
    pub spent_speed: f64,
    /// Share of the speed that is lost within an hour, little by little; negative: gained.
    pub decline_per_hour: f64,
    /// Share of visits that find the device slow.
    pub slow_visits: f64,
    /// Its speed in these.
    pub slow_speed: f64,
}

impl Default for Trouble {
    fn default() -> Self {
        Self {
            error_rate: 0.0,
            short_rate: 0.0,
            timeout_rate: 0.0,
            timeout_s: TIMEOUT_USUAL_S,
            credit_bytes: None,
            spent_speed: 1.0,
            decline_per_hour: 0.0,
            slow_visits: 0.0,
            slow_speed: 1.0,
        }
    }
}

impl Trouble {
    /// Whether there is none, which a description leaves out.
    pub(in crate::sim) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn check(&self) -> Result<()> {
        let wrong = |what: &str| Err(Error::Sim(format!("simulated device: trouble: {what}")));
        let shares = [self.error_rate, self.short_rate, self.timeout_rate, self.slow_visits];
        if !shares.iter().all(|share| (0.0..=1.0).contains(share)) {
            return wrong("rates and slow_visits are shares, from 0 to 1");
        }
        if shares[..3].iter().sum::<f64>() > 1.0 {
            return wrong("error_rate, short_rate and timeout_rate must not exceed 1 together");
        }
        if !(self.timeout_s >= 0.0 && self.timeout_s.is_finite()) {
            return wrong("timeout_s must be 0 or more seconds; 30 is usual");
        }
        if ![self.spent_speed, self.slow_speed].iter().all(|s| *s > 0.0 && s.is_finite()) {
            return wrong("a speed must be above 0; 1 is full speed");
        }
        if !(-10.0..=10.0).contains(&self.decline_per_hour) {
            return wrong("decline_per_hour must be from -10 to 10; 0.3 is much");
        }
        Ok(())
    }
}
