//! How many requests are in flight just after one was submitted.

/// Requests by how many were in flight with them.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights {
    counts: Vec<u64>,
    /// Requests by how many were in flight, for those after which one ended before the next was submitted.
    peaks: Vec<u64>,
    latest: usize,
}

impl Flights {
    /// One was submitted.
    pub(super) fn add(&mut self, in_flight: usize) {
        add_one(&mut self.counts, in_flight);
        if in_flight <= self.latest {
            add_one(&mut self.peaks, self.latest);
        }
        self.latest = in_flight;
    }

    /// The depth that is kept: 19 of 20 requests see no more. 1 where all are waited for.
    pub(super) fn depth(&self) -> u32 {
        let total: u64 = self.counts.iter().sum();
        let mut below = 0;
        let found = self.counts.iter().position(|count| {
            below += count;
            below * 20 >= total * 19
        });
        found.unwrap_or(1).max(1) as u32
    }

    /// Whether requests in flight are kept at their number: where several end together, they are
    /// replaced together, so it is the peaks that tell. `None` where depth is 1.
    pub(super) fn are_full(&self) -> Option<bool> {
        let depth = self.depth() as usize;
        let total: u64 = self.peaks.iter().sum();
        let full: u64 = self.peaks.iter().skip(depth - depth.div_ceil(8)).sum();
        (depth > 1).then(|| full * 2 > total)
    }
}

fn add_one(counts: &mut Vec<u64>, index: usize) {
    if counts.len() <= index {
        counts.resize(index + 1, 0);
    }
    counts[index] += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flights(series: impl Iterator<Item = usize>) -> Flights {
        let mut flights = Flights::default();
        series.for_each(|in_flight| flights.add(in_flight));
        flights
    }

    #[test]
    fn a_full_queue_is_told_from_a_varying_one() {
        let full = flights((0..1000).map(|at| if at < 16 { at + 1 } else { 16 }));
        // All end together, and all are submitted anew.
        let in_batches = flights((0..1000).map(|at| 1 + at % 16));
        // Peaks anywhere from 1 to 16.
        let varying = flights((0..1000_usize).flat_map(|at| 1..=1 + at * 7 % 16));
        assert_eq!((full.depth(), full.are_full()), (16, Some(true)));
        assert_eq!((in_batches.depth(), in_batches.are_full()), (16, Some(true)));
        assert_eq!((varying.depth(), varying.are_full()), (13, Some(false)));
        assert_eq!((Flights::default().depth(), Flights::default().are_full()), (1, None));
    }
}
