//! Readings at the end of every window: the workers' counts and the kernel's.

use super::FileRig;
use crate::counters::{ProcessIo, ProcessorTicks};
use crate::rig::ClassCount;
use crate::worker::Worker;

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

    /// Mean response time since the workers began, seconds; nothing done is as long as it gets.
    pub(super) fn mean_s(&self) -> f64 {
        let ops = self.ops();
        let time_s: f64 = self.classes.iter().map(|class| class.time_s).sum();
        if ops > 0 { time_s / ops as f64 } else { f64::INFINITY }
    }
}

impl FileRig {
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
