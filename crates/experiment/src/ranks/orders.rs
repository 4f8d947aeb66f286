//! Messages: orders of rank 0, and the answers to them.

use hdrhistogram::Histogram;
use ioscape_engine::{Error, Finished, Prepared, Rig, Window};
use ioscape_model::{Failed, Waits, Warning, Workload};
use serde::{Deserialize, Serialize};

/// The next thing that a rank is to do. Instants are by the clock of the rank that is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Order {
    /// Answer pings until there are enough.
    Pings,
    Prepare(Box<Workload>),
    /// Make the workers, say so, and wait for [`Order::Go`].
    Start {
        work: Box<Workload>,
        seed: u64,
    },
    /// Let them begin then.
    Go {
        at_ns: i64,
    },
    /// Do not begin after all.
    Stay,
    /// Let a window pass that ends then.
    Window {
        until_ns: i64,
    },
    Mark,
    Finish {
        sync: bool,
    },
    LimitWritten {
        most_bytes: u64,
    },
    /// Remove the files and leave; in order where all ranks are still there.
    Leave {
        in_order: bool,
    },
}

/// The answer of a rank that has done as it was told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Answer {
    pub(super) said: Result<Said, Trouble>,
    pub(super) sums: Sums,
}

/// A rank's writing, as it is known at any time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "a unit ends each name")]
pub(super) struct Sums {
    pub(super) written_bytes: u64,
    pub(super) device_written_bytes: Option<u64>,
    pub(super) may_write_bytes: u64,
}

impl Default for Sums {
    /// Nothing is written yet, and nothing limits it before the rank says so.
    fn default() -> Self {
        Self { written_bytes: 0, device_written_bytes: None, may_write_bytes: u64::MAX }
    }
}

impl Sums {
    pub(super) fn read(rig: &dyn Rig) -> Self {
        Self {
            written_bytes: rig.written_bytes(),
            device_written_bytes: rig.device_written_bytes(),
            may_write_bytes: rig.may_write_bytes(),
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Said {
    Done,
    Prepared(Prepared),
    /// The workers are made and wait.
    Ready,
    Window {
        window: Box<Window>,
        /// When it ended.
        at_ns: i64,
    },
    Finished(Box<Rest>),
}

/// Trouble on a rank, as far as rank 0 has to tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Trouble {
    MaxWritten,
    Interrupted,
    Refused(String),
    Other(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        match error {
            Error::MaxWritten => Self::MaxWritten,
            Error::Interrupted => Self::Interrupted,
            Error::Refused(text) => Self::Refused(text),
            Error::NoRoom { .. } => Self::Refused(error.to_string()),
            other => Self::Other(other.to_string()),
        }
    }
}

impl Trouble {
    /// As an error of rank 0, which names the rank that had it.
    pub(super) fn on(self, rank: u32) -> Error {
        match self {
            Self::MaxWritten => Error::MaxWritten,
            Self::Interrupted => Error::Interrupted,
            Self::Refused(text) => Error::Refused(format!("rank {rank}: {text}")),
            Self::Other(text) => Error::Rank { rank, text },
        }
    }
}

/// The rest of a visit, once its workload was stopped, as it travels.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Rest {
    response_ns: [Vec<(u64, u64)>; 4],
    latency_ns: Option<Vec<(u64, u64)>>,
    pub(super) warnings: Vec<Warning>,
    pub(super) sync_s: Option<f64>,
    pub(super) failed: Vec<Failed>,
    /// When its first worker began and its last.
    pub(super) began_ns: Option<(i64, i64)>,
    /// When the workers had stopped.
    pub(super) stopped_ns: i64,
    /// Waits since the windows began to count.
    pub(super) waits: Waits,
}

impl Rest {
    pub(super) fn new(finished: &Finished, stopped_ns: i64, waits: Waits) -> Self {
        Self {
            response_ns: finished.response_ns.each_ref().map(counts),
            latency_ns: finished.latency_ns.as_ref().map(counts),
            warnings: finished.warnings.clone(),
            sync_s: finished.sync_s,
            failed: finished.failed.clone(),
            began_ns: finished.began_ns,
            stopped_ns,
            waits,
        }
    }

    /// Adds the times to those of another rank: histograms are merged, quantiles never averaged.
    pub(super) fn add_times_to(&self, sum: &mut Finished) {
        for (sum, counts) in sum.response_ns.iter_mut().zip(&self.response_ns) {
            add(sum, counts);
        }
        if let (Some(sum), Some(counts)) = (&mut sum.latency_ns, &self.latency_ns) {
            add(sum, counts);
        }
    }
}

fn counts(histogram: &Histogram<u64>) -> Vec<(u64, u64)> {
    histogram.iter_recorded().map(|bin| (bin.value_iterated_to(), bin.count_at_value())).collect()
}

fn add(sum: &mut Histogram<u64>, counts: &[(u64, u64)]) {
    for (value, count) in counts {
        sum.saturating_record_n(*value, *count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(times_ns: &[u64]) -> Finished {
        let mut response_ns: [Histogram<u64>; 4] =
            std::array::from_fn(|_| Histogram::new_with_bounds(1, 1 << 42, 2).unwrap());
        for time_ns in times_ns {
            response_ns[0].record(*time_ns).unwrap();
        }
        Finished {
            latency_ns: Some(response_ns[0].clone()),
            response_ns,
            warnings: vec![],
            sync_s: None,
            failed: vec![],
            verified_bytes: None,
            began_ns: None,
            ranks: None,
        }
    }

    #[test]
    fn times_that_travelled_and_were_merged_are_those_of_all() {
        let ours: Vec<u64> = (1..1000).map(|i| i * i).collect();
        let theirs: Vec<u64> = (1..5000).map(|i| i * 7919).collect();
        let rest = Rest::new(&finished(&theirs), 0, Waits::default());
        let rest: Rest = serde_json::from_slice(&serde_json::to_vec(&rest).unwrap()).unwrap();
        let mut sum = finished(&ours);
        rest.add_times_to(&mut sum);
        let all = finished(&[ours, theirs].concat());
        assert_eq!(sum.response_ns, all.response_ns);
        assert_eq!(sum.latency_ns, all.latency_ns);
    }
}
