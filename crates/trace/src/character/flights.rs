//! How many requests are in flight just after one was submitted.

/// Requests by how many were in flight with them.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights {
    counts: Vec<u64>,
}

impl Flights {
    /// One was submitted.
    pub(super) fn add(&mut self, in_flight: usize) {
        if self.counts.len() <= in_flight {
            self.counts.resize(in_flight + 1, 0);
        }
        self.counts[in_flight] += 1;
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

    /// Whether a request mostly takes the place of one that has ended; `None` where depth is 1.
    pub(super) fn are_full(&self) -> Option<bool> {
        let depth = self.depth() as usize;
        let total: u64 = self.counts.iter().sum();
        let full: u64 = self.counts.iter().skip(depth - depth.div_ceil(8)).sum();
        (depth > 1).then(|| full * 2 > total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_is_told_from_a_varying_one() {
        let (mut full, mut varying) = (Flights::default(), Flights::default());
        for at in 0..1000 {
            full.add(if at < 16 { at + 1 } else { 16 });
            varying.add(1 + at % 16);
        }
        assert_eq!((full.depth(), full.are_full()), (16, Some(true)));
        assert_eq!((varying.depth(), varying.are_full()), (16, Some(false)));
        assert_eq!((Flights::default().depth(), Flights::default().are_full()), (1, None));
    }
}
