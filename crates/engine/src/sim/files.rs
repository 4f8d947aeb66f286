//! What lies on a simulated device, of whichever kind: its files, and how much was written.

use std::path::PathBuf;

use hdrhistogram::Histogram;
use ioscape_model::Workload;
use ioscape_model::units::MIB;

use super::spec::{Cost, SimSpec};
use crate::error::{Error, Result};

/// Longest response time that is told apart, nanoseconds.
const RESPONSE_NS_MAX: u64 = 3_600_000_000_000;

/// The files and the ceiling on what is written.
#[derive(Clone, Debug)]
pub(super) struct Files {
    path: PathBuf,
    room_bytes: u64,
    /// Length of each process's file.
    lengths: Vec<u64>,
    pub(super) written_bytes: u64,
    /// The most that may be.
    pub(super) written_max_bytes: Option<u64>,
}

impl Files {
    pub(super) fn new(spec: &SimSpec) -> Self {
        Self {
            path: PathBuf::from(format!("sim:{}", spec.name)),
            room_bytes: spec.room(),
            lengths: Vec::new(),
            written_bytes: 0,
            written_max_bytes: None,
        }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// What may be written beside what is dirty.
    pub(super) fn may_write_bytes(&self, dirty_bytes: u64) -> u64 {
        let coming_bytes = self.written_bytes + dirty_bytes;
        self.written_max_bytes.map_or(u64::MAX, |most| most.saturating_sub(coming_bytes))
    }

    /// Makes the files as long as the workload needs, nothing being dirty; returns the bytes that
    /// were added.
    pub(super) fn lay_out(&mut self, work: &Workload) -> Result<u64> {
        let processes = work.process_num as usize;
        let mut lengths = self.lengths.clone();
        lengths.resize(lengths.len().max(processes), 0);
        for length in &mut lengths[..processes] {
            *length = (*length).max(work.share_bytes());
        }
        let wanted_bytes: u64 = lengths.iter().sum();
        if wanted_bytes > self.room_bytes {
            let free_bytes = self.room_bytes.saturating_mul(2);
            return Err(Error::NoRoom { path: self.path(), free_bytes, wanted_bytes });
        }
        let added_bytes = wanted_bytes - self.lengths.iter().sum::<u64>();
        if added_bytes > self.may_write_bytes(0) {
            return Err(Error::MaxWritten);
        }
        self.lengths = lengths;
        self.written_bytes += added_bytes;
        Ok(added_bytes)
    }
}

/// Seconds for a stretch in requests of 1 MiB.
pub(super) fn stretch_s(cost: Cost, bytes: f64) -> f64 {
    let request = MIB as f64;
    cost.time_s(request) * bytes / request
}

/// Response times, nanoseconds.
pub(super) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, RESPONSE_NS_MAX, 3).expect("the bounds are in order")
}
