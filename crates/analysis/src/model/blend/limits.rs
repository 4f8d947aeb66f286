//! The most that storage serves.

use serde::{Deserialize, Serialize};

/// Exponent of the norm over resources: nearly the largest.
pub(super) const RESOURCE_NORM: i32 = 8;
/// What data have to be larger than a cache by, so that storage surely is asked for them.
pub(super) const CLEAR: f64 = 1.3;

/// By requests and by bytes, as volumes are sold: what is read and what is written share the way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Limits {
    pub(super) requests_per_s: f64,
    /// If all were reads, and if all were writes.
    pub(super) bytes_per_s: [f64; 2],
}

/// What storage is asked for in the place of one request of a workload, reads and writes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Asked {
    /// How many requests.
    pub(super) requests: [f64; 2],
    pub(super) bytes: [f64; 2],
}

impl Asked {
    /// So many times as much read, and as much written.
    pub(super) fn scaled(self, by: [f64; 2]) -> Self {
        let scaled = |of: [f64; 2]| [of[0] * by[0], of[1] * by[1]];
        Self { requests: scaled(self.requests), bytes: scaled(self.bytes) }
    }
}

impl Limits {
    /// From their logarithms.
    pub(super) fn of(at: &[f64]) -> Self {
        Self { requests_per_s: at[0].exp(), bytes_per_s: [at[1].exp(), at[2].exp()] }
    }

    /// On the way to others by their logarithms, 0 to 1; bytes written may be on another part of it.
    pub(super) fn towards(self, others: Self, share: f64, written: f64) -> Self {
        if share <= 0.0 && written <= 0.0 {
            return self;
        }
        let between = |one: f64, other: f64, share: f64| one.powf(1.0 - share) * other.powf(share);
        let ([from_read, from_written], [to_read, to_written]) =
            (self.bytes_per_s, others.bytes_per_s);
        Self {
            requests_per_s: between(self.requests_per_s, others.requests_per_s, share),
            bytes_per_s: [
                between(from_read, to_read, share),
                between(from_written, to_written, written),
            ],
        }
    }

    /// The least that storage needs for what it is asked for, seconds.
    pub(super) fn least_s(&self, asked: Asked) -> f64 {
        let [read_s, written_s] = self.moving_s(asked);
        let [read, written] = asked.requests;
        norm((read + written) / self.requests_per_s, read_s + written_s)
    }

    /// How much of what the limits cost is for reads.
    pub(super) fn share_of_reads(&self, asked: Asked) -> f64 {
        let [read_s, written_s] = self.moving_s(asked);
        let read_s = read_s + asked.requests[0] / self.requests_per_s;
        let written_s = written_s + asked.requests[1] / self.requests_per_s;
        read_s / (read_s + written_s).max(f64::MIN_POSITIVE)
    }

    /// By the limits on bytes alone, for what is read and for what is written, seconds.
    fn moving_s(&self, asked: Asked) -> [f64; 2] {
        std::array::from_fn(|direction| asked.bytes[direction] / self.bytes_per_s[direction])
    }
}

/// Nearly the larger of what two resources need.
pub(super) fn norm(one: f64, other: f64) -> f64 {
    // Three square roots are the eighth, in a fraction of the time.
    const { assert!(RESOURCE_NORM == 8) };
    norm_by(one, other, |share| share.powi(RESOURCE_NORM), |sum| sum.sqrt().sqrt().sqrt())
}

/// The root of the sum of both, each to the power `exponent`.
pub(super) fn norm_of(exponent: f64, one: f64, other: f64) -> f64 {
    norm_by(one, other, |share| share.powf(exponent), |sum| sum.powf(1.0 / exponent))
}

/// With the larger as the unit, so that one power is enough.
fn norm_by(one: f64, other: f64, power: impl Fn(f64) -> f64, root: impl Fn(f64) -> f64) -> f64 {
    let (smaller, larger) = if one < other { (one, other) } else { (other, one) };
    if larger <= 0.0 {
        return 0.0;
    }
    larger * root(1.0 + power(smaller / larger))
}
