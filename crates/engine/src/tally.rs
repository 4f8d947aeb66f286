//! What a worker has done: every request in its class's histogram, and the sums.

use std::io;
use std::path::Path;

use hdrhistogram::Histogram;

use crate::error::Result;
use crate::failures::{self, Failures};
use crate::request::{Done, Op};
use crate::rig::Class;
use crate::verify::Mismatch;

/// In place of the time of a request that failed.
pub const FAILED_NS: u64 = u64::MAX;
/// Longest response time told from longer ones.
const TIME_MAX_NS: u64 = 3600 * 1_000_000_000;
/// Two digits: at most 1 % error, and four of them fit beside the data in a second-level cache.
const DIGITS: u8 = 2;
/// Bins of an octave, and the bits of one more: what two digits come to.
const BINS: usize = 128;
const BITS: u32 = 8;
const BINS_ALL: usize = BINS * (64 - BITS as usize - TIME_MAX_NS.leading_zeros() as usize + 2);

/// An empty histogram of times in nanoseconds, as they leave this crate.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, TIME_MAX_NS, DIGITS)
        .expect("the bounds and digits are constants that the library accepts")
}

/// Bins of a histogram while the workload runs: to enter a time takes a handful of instructions and two
/// cache lines, which is what is left of the processor's caches after a system call.
#[derive(Clone, Debug)]
struct Bins {
    counts: Vec<u64>,
}

impl Bins {
    fn new() -> Self {
        Self { counts: vec![0; BINS_ALL] }
    }

    /// Below 256 ns a bin is a nanosecond wide; above, 128 share each octave.
    #[inline]
    fn enter(&mut self, time_ns: u64) {
        let time_ns = time_ns.min(TIME_MAX_NS);
        let shift = 64 - BITS - (time_ns | 255).leading_zeros();
        self.counts[shift as usize * BINS + (time_ns >> shift) as usize] += 1;
    }

    fn add_to(&self, sum: &mut Histogram<u64>) {
        for (bin, count) in self.counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            let shift = (bin / BINS).saturating_sub(1);
            let lowest_ns = ((bin - shift * BINS) as u64) << shift;
            sum.saturating_record_n(lowest_ns.max(1), *count);
        }
    }
}

/// Times in nanoseconds, as a worker hands them over when it stops.
#[derive(Debug)]
pub struct Times {
    response: [Bins; 4],
    latency: Option<Bins>,
}

impl Times {
    fn new(is_open: bool) -> Self {
        Self { response: std::array::from_fn(|_| Bins::new()), latency: is_open.then(Bins::new) }
    }

    /// Forgets all.
    pub(crate) fn reset(&mut self) {
        for bins in self.response.iter_mut().chain(&mut self.latency) {
            bins.counts.fill(0);
        }
    }
}

/// All workers together; times in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Together {
    /// Response times, by class.
    pub(crate) response: [Histogram<u64>; 4],
    /// From when requests were to begin, in an open loop.
    pub(crate) latency: Option<Histogram<u64>>,
    /// What failed beside them.
    pub(crate) failures: Failures,
    /// What of them was checked, bytes.
    pub(crate) verified_bytes: u64,
    /// When the first and the last of them began, by `CLOCK_MONOTONIC`.
    pub(crate) began_ns: Option<(i64, i64)>,
}

impl Together {
    /// None yet.
    pub(crate) fn new() -> Self {
        Self {
            response: std::array::from_fn(|_| histogram()),
            latency: None,
            failures: Failures::default(),
            verified_bytes: 0,
            began_ns: None,
        }
    }

    /// Those of a worker too.
    pub(crate) fn add(&mut self, tally: &Tally) {
        let times = &tally.times;
        self.failures.merge(&tally.failures);
        self.verified_bytes += tally.verified_bytes;
        let (first_ns, last_ns) = self.began_ns.unwrap_or((i64::MAX, i64::MIN));
        self.began_ns = Some((first_ns.min(tally.began_ns), last_ns.max(tally.began_ns)));
        for (sum, bins) in self.response.iter_mut().zip(&times.response) {
            bins.add_to(sum);
        }
        if let Some(bins) = &times.latency {
            bins.add_to(self.latency.get_or_insert_with(histogram));
        }
    }
}

/// Requests of one class since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) ops: u64,
    pub(crate) bytes: u64,
    pub(crate) time_ns: u64,
}

/// What a worker has done.
#[derive(Debug)]
pub struct Tally {
    pub(crate) times: Times,
    pub(crate) sums: [Sum; 4],
    /// Where the latest request ended in its file.
    pub(crate) position: u64,
    /// Requests that failed, by kind; no other field counts them.
    pub(crate) failures: Failures,
    pub(crate) failed_ops: u64,
    /// Bytes that were compared with what had been written.
    pub(crate) verified_bytes: u64,
    /// When its worker was let go and ran, by `CLOCK_MONOTONIC`.
    pub(crate) began_ns: i64,
}

impl Tally {
    /// Nothing yet.
    pub fn new(is_open: bool) -> Self {
        Self {
            times: Times::new(is_open),
            sums: [Sum::default(); 4],
            position: 0,
            failures: Failures::default(),
            failed_ops: 0,
            verified_bytes: 0,
            began_ns: 0,
        }
    }

    /// Requests of all classes.
    pub fn ops(&self) -> u64 {
        self.sums.iter().map(|sum| sum.ops).sum()
    }

    /// Bytes written by them.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.sums[Class::WriteSeq as usize].bytes + self.sums[Class::WriteRand as usize].bytes
    }

    /// Their response times added up.
    pub(crate) fn time_ns(&self) -> u64 {
        self.sums.iter().map(|sum| sum.time_ns).sum()
    }

    /// Enters a request that failed, where that is a result.
    ///
    /// # Errors
    /// Where it is the end.
    #[cold]
    pub fn fail(&mut self, op: &Op, path: &Path, error: io::Error) -> Result<()> {
        let Some(failure) = failures::kind(&error) else { return Err(op.failed(path, error)) };
        self.failed_ops += 1;
        let mismatch = error.get_ref().and_then(|inner| inner.downcast_ref::<Mismatch>());
        let offset = mismatch.map_or(op.offset, |mismatch| mismatch.offset);
        self.failures.enter(op, failure, offset, &error.to_string());
        Ok(())
    }

    /// Enters a request.
    #[inline]
    pub fn enter(&mut self, done: &Done) {
        self.enter_time(&done.op, done.ended_ns.saturating_sub(done.began_ns));
        if let Some(latency) = &mut self.times.latency {
            latency.enter(done.ended_ns.saturating_sub(done.op.due_ns));
        }
    }

    /// Enters the requests of a closed loop, each with its time, but those that failed.
    pub fn enter_all(&mut self, ops: &[Op], times_ns: &[u64]) {
        for (op, time_ns) in ops.iter().zip(times_ns) {
            if *time_ns != FAILED_NS {
                self.enter_time(op, *time_ns);
            }
        }
    }

    #[inline]
    fn enter_time(&mut self, op: &Op, time_ns: u64) {
        let class = op.class as usize;
        self.times.response[class].enter(time_ns);
        let sum = &mut self.sums[class];
        sum.ops += 1;
        sum.bytes += op.length;
        sum.time_ns += time_ns;
        self.position = op.offset + op.length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rig::Class;

    #[test]
    fn bins_are_those_of_the_histogram_that_leaves() {
        let mut tally = Tally::new(true);
        let mut expected = histogram();
        let mut time_ns = 1_u64;
        while time_ns < TIME_MAX_NS {
            for time_ns in [time_ns - 1, time_ns, time_ns + 1] {
                let op = Op { offset: 0, length: 1, class: Class::WriteSeq, due_ns: 5 };
                tally.enter(&Done { op, began_ns: 7, ended_ns: 7 + time_ns });
                expected.saturating_record(time_ns.max(1));
            }
            time_ns = time_ns * 9 / 8 + 1;
        }
        let mut together = Together::new();
        together.add(&tally);
        let [_, _, seen, _] = &together.response;
        assert_eq!(seen.len(), tally.ops());
        for step in 0..=1000 {
            let quantile = f64::from(step) / 1000.0;
            assert_eq!(seen.value_at_quantile(quantile), expected.value_at_quantile(quantile));
        }
        assert_eq!(together.latency.unwrap().len(), tally.ops());
        tally.times.reset();
        let mut none = Together::new();
        none.add(&tally);
        assert!(none.response.iter().all(Histogram::is_empty));
    }
}
