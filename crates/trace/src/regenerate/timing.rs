//! Times of a stretch: between calls, in calls, and waiting.

use ioscape_model::app::{Behaviour, Think};
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Operations for which time passes: waiting for something that is no storage.
const WAITS: [&str; 4] = ["WAIT", "FORK", "EXEC", "EXIT"];

/// Requests of a stretch.
pub(super) fn requests(behaviour: &Behaviour) -> u64 {
    let [reads, writes] = transfers(behaviour);
    reads + writes
}

/// Reads and writes that move bytes.
pub(super) fn transfers(behaviour: &Behaviour) -> [u64; 2] {
    let sizes = [&behaviour.sizes.read, &behaviour.sizes.write];
    let counted = sizes.map(|law| law.histogram.iter().map(|size| size.count).sum());
    if counted != [0, 0] {
        return counted;
    }
    let reads = (behaviour.requests as f64 * behaviour.five.read_frac).round() as u64;
    [reads, behaviour.requests - reads.min(behaviour.requests)]
}

/// Reads and writes that move bytes, of several stretches.
pub(super) fn all_transfers(stretches: &[&Behaviour]) -> [u64; 2] {
    stretches.iter().fold([0, 0], |sum: [u64; 2], stretch| {
        let count = transfers(stretch);
        [sum[0] + count[0], sum[1] + count[1]]
    })
}

/// Times of a stretch, ns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Timing {
    p50_ns: f64,
    p90_ns: f64,
    /// Mean beyond the 90th percentile, from there.
    tail_ns: f64,
    /// Of the time between calls, on a processor.
    busy_frac: f64,
    /// By this the times between calls are multiplied, so that all streams together take as long.
    stretch: f64,
    /// In a call that is no sync.
    pub(super) call_ns: f64,
    /// In a wait.
    pub(super) wait_ns: f64,
}

impl Timing {
    pub(super) fn new(behaviour: &Behaviour, streams: f64, rate: f64) -> Self {
        let Think { mean_s, processor_mean_s, p50_s, p90_s, waiting_s } = behaviour.think;
        let count = |names: &[&str]| -> u64 {
            names.iter().filter_map(|name| behaviour.operations.get(*name)).sum()
        };
        let calls = behaviour.calls.max(behaviour.requests).max(1) as f64;
        let waits = count(&WAITS) as f64;
        let syncs = behaviour.syncs.by_kind.values();
        let syncs_s: f64 = syncs.map(|kind| kind.count as f64 * kind.mean_s.unwrap_or(0.0)).sum();
        let busy_s: f64 = behaviour.streams.iter().map(|stream| stream.busy_s).sum();
        let others = (calls - waits - behaviour.syncs.count as f64).max(1.0);
        let call_s = (busy_s - syncs_s).max(0.0) / others;
        let gaps_s = mean_s * calls;
        let wanted_s = (behaviour.elapsed_s * streams - busy_s.max(syncs_s)).max(0.0);
        // Streams that are at it all the time wait for nobody: waiting fills what calls and the time
        // between them leave.
        let waits_s = if waiting_s > 0.0 && waits > 0.0 { wanted_s - gaps_s } else { 0.0 };
        let waits_s = waits_s.max(0.0);
        // Where nothing is known of the time between calls, it is what is left.
        let (mean_s, stretch) = if gaps_s > 0.0 {
            (mean_s, (wanted_s - waits_s) / gaps_s)
        } else {
            ((wanted_s - waits_s) / calls, 1.0)
        };
        let (p50_s, p90_s) = (p50_s.min(2.0 * mean_s), p90_s.max(p50_s));
        let body_s = if p90_s > p50_s && p50_s > 0.0 {
            0.25 * p50_s + 0.4 * (p90_s - p50_s) / (p90_s / p50_s).ln()
        } else {
            0.65 * p50_s
        };
        let tail_s = ((mean_s - body_s) / 0.1 - p90_s).max(0.0);
        Self {
            p50_ns: p50_s * 1e9,
            p90_ns: p90_s * 1e9,
            tail_ns: tail_s * 1e9,
            busy_frac: processor_mean_s.map_or(0.0, |busy_s| (busy_s / mean_s.max(1e-12)).min(1.0)),
            stretch: stretch / rate,
            call_ns: call_s * 1e9,
            wait_ns: waits_s * 1e9 / rate / waits.max(1.0),
        }
    }

    /// Time before a call, and how much of it is work.
    pub(super) fn gap(&self, chance: &mut Xoshiro256PlusPlus) -> (u64, u64) {
        let at: f64 = chance.random();
        let ns = if at < 0.5 {
            self.p50_ns * 2.0 * at
        } else if at < 0.9 {
            self.p50_ns.max(1.0)
                * (self.p90_ns / self.p50_ns.max(1.0)).max(1.0).powf((at - 0.5) / 0.4)
        } else {
            self.p90_ns - self.tail_ns * (1.0 - chance.random::<f64>()).ln()
        };
        let ns = ns * self.stretch;
        (ns as u64, (ns * self.busy_frac) as u64)
    }
}
