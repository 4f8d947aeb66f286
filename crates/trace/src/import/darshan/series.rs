//! Calls of which only sums are known, as events that add up to these sums: as many, with as many
//! bytes, and with as many that begin where the one before ended.

use crate::event::{Event, Op};

/// Calls of one kind on one file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Series {
    pub(super) op: Op,
    pub(super) file: u32,
    pub(super) calls: u64,
    pub(super) bytes: u64,
    /// Calls that begin where the one before ended.
    pub(super) consecutive: u64,
    /// The highest byte that was touched, and one.
    pub(super) extent: u64,
    pub(super) start_ns: u64,
    pub(super) end_ns: u64,
    /// Time in all of the calls.
    pub(super) busy_ns: Option<u64>,
}

/// `count` parts of `whole`: the sum of the first `index`.
fn share(whole: u64, index: u64, count: u64) -> u64 {
    (u128::from(whole) * u128::from(index) / u128::from(count.max(1))) as u64
}

impl Series {
    /// When a call begins.
    pub(super) fn time_ns(&self, index: u64) -> u64 {
        let length_ns = self.end_ns.saturating_sub(self.start_ns);
        self.start_ns.saturating_add(share(length_ns, index, self.calls))
    }

    /// A call, 0 for the first.
    pub(super) fn event(&self, index: u64) -> Event {
        let runs = self.calls.saturating_sub(self.consecutive).max(1);
        let run = share(runs, index, self.calls);
        // The first call whose share of the runs reaches this one.
        let first = (u128::from(run) * u128::from(self.calls)).div_ceil(u128::from(runs)) as u64;
        let before = share(self.bytes, index, self.calls);
        let length = share(self.bytes, index.saturating_add(1), self.calls) - before;
        let offset = share(self.extent, run, runs)
            .saturating_add(before - share(self.bytes, first.min(index), self.calls));
        Event {
            file: self.file,
            offset: offset.min(u64::MAX - length),
            length,
            duration_ns: self.busy_ns.map(|busy_ns| busy_ns / self.calls.max(1)),
            ..Event::new(self.time_ns(index), self.op)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_add_up_to_the_sums() {
        for (calls, bytes, consecutive) in
            [(50, 3200, 49), (7, 1000, 3), (1, 5, 0), (10, 3, 0), (4, 8, 9)]
        {
            let series = Series {
                op: Op::Read,
                file: 1,
                calls,
                bytes,
                consecutive,
                extent: 1 << 20,
                start_ns: 100,
                end_ns: 1100,
                busy_ns: None,
            };
            let events: Vec<Event> = (0..calls).map(|index| series.event(index)).collect();
            assert_eq!(events.iter().map(|event| event.length).sum::<u64>(), bytes);
            let follows = |two: &&[Event]| two[0].offset + two[0].length == two[1].offset;
            let found = events.windows(2).filter(follows).count() as u64;
            assert_eq!(found, consecutive.min(calls - 1), "{calls} calls");
            assert!(events.is_sorted_by_key(|event| event.start_ns));
            assert!(events.iter().all(|event| (100..1100).contains(&event.start_ns)));
        }
    }
}
