//! Readings at the end of every window: the workers' counts and the kernel's.

use super::FileRig;
use crate::counters::{ProcessIo, ProcessorTicks};
use crate::error::{Error, Result};
use crate::rig::ClassCount;
use crate::tally::Together;
use crate::worker::Worker;

/// So many requests that failed, and none that was done: the target may be gone …
const FAILING_MIN: u64 = 10;
/// … and is where that lasts so long, nanoseconds. A path that is switched over takes a second or two.
const GONE_AFTER_NS: u64 = 3_000_000_000;

/// Everything that is read at the end of a window.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    pub(super) at_ns: u64,
    pub(super) classes: [ClassCount; 4],
    pub(super) failed_ops: u64,
    pub(super) io: Option<ProcessIo>,
    pub(super) ticks: Option<ProcessorTicks>,
    pub(super) cpu_s: f64,
}

impl Reading {
    pub(super) fn read_bytes(&self) -> u64 {
        self.classes[0].bytes + self.classes[1].bytes
    }

    pub(super) fn written_bytes(&self) -> u64 {
        self.classes[2].bytes + self.classes[3].bytes
    }

    pub(super) fn ops(&self) -> u64 {
        self.classes.iter().map(|class| class.ops).sum()
    }

    /// Requests that failed since another reading, where they are many and none succeeded.
    pub(super) fn failed_since(&self, before: &Self) -> Option<u64> {
        let count = self.failed_ops.saturating_sub(before.failed_ops);
        (count >= FAILING_MIN && self.ops() == before.ops()).then_some(count)
    }

    /// Counts them where none has succeeded for longer than a fault lasts that passes.
    pub(super) fn gone_since(&self, succeeded: &Self) -> Option<u64> {
        let for_ns = self.at_ns.saturating_sub(succeeded.at_ns);
        self.failed_since(succeeded).filter(|_| for_ns >= GONE_AFTER_NS)
    }

    /// Mean response time since the workers began, seconds; nothing done is as long as it gets.
    pub(super) fn mean_s(&self) -> f64 {
        let ops = self.ops();
        let time_s: f64 = self.classes.iter().map(|class| class.time_s).sum();
        if ops > 0 { time_s / ops as f64 } else { f64::INFINITY }
    }
}

impl FileRig {
    /// Ends a visit in which nothing succeeds any more.
    pub(super) fn give_up(&mut self, count: u64) -> Result<()> {
        let Some((_, times)) = self.stop()? else { return Ok(()) };
        Err(self.failing(&times, count))
    }

    pub(super) fn failing(&self, times: &Together, count: u64) -> Error {
        let first = times.failures.first();
        Error::Failing {
            path: self.ground.path().to_owned(),
            count,
            offset: first.map_or(0, |first| first.first_offset),
            text: first.map_or_else(String::new, |first| first.text.clone()),
        }
    }

    pub(super) fn reading(&self, workers: &[Worker]) -> Reading {
        let mut classes = [ClassCount::default(); 4];
        let failed_ops = workers.iter().map(|worker| worker.published.failed_ops()).sum();
        for worker in workers {
            for (sum, class) in classes.iter_mut().zip(worker.published.counts()) {
                sum.ops += class.ops;
                sum.bytes += class.bytes;
                sum.time_s += class.time_s;
            }
        }
        Reading {
            at_ns: self.clock.now_ns(),
            classes,
            failed_ops,
            io: self.counters.process_io(),
            ticks: self.counters.processor_ticks(),
            cpu_s: self.counters.cpu_s(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_gone_where_requests_fail_for_long_and_none_succeeds() {
        let reading = |at_s: u64, failed_ops: u64, ops: u64| {
            let class = ClassCount { ops, ..ClassCount::default() };
            let classes =
                [class, ClassCount::default(), ClassCount::default(), ClassCount::default()];
            Reading { at_ns: at_s * 1_000_000_000, failed_ops, classes, ..Reading::default() }
        };
        let succeeded = reading(10, 5, 100);
        assert_eq!(reading(12, 500, 100).gone_since(&succeeded), None, "it may come back");
        assert_eq!(reading(13, 500, 100).gone_since(&succeeded), Some(495));
        assert_eq!(reading(13, 500, 101).gone_since(&succeeded), None);
        assert_eq!(reading(60, 9, 100).gone_since(&succeeded), None, "few requests tell little");
        // A whole visit without any that succeeded.
        assert_eq!(reading(12, 15, 100).failed_since(&succeeded), Some(10));
    }
}
