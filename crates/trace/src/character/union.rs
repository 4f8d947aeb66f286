//! How long at least one of many intervals lasted. They come in the order of their starts, but for
//! some that become known a little later.

use std::collections::BTreeMap;

/// So many separate stretches are open to what comes late.
const OPEN_MAX: usize = 256;

/// The union of intervals, nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Union {
    /// Start and end of stretches that may still grow.
    open: BTreeMap<u64, u64>,
    closed_ns: u64,
    closed_until: u64,
}

impl Union {
    /// Adds an interval; what lies before all that is open is taken as added already.
    pub(crate) fn add(&mut self, from: u64, to: u64) {
        let (mut from, mut to) = (from.max(self.closed_until), to);
        if from >= to {
            return;
        }
        // The stretches that it touches, latest first.
        while let Some((&start, &end)) = self.open.range(..=to).next_back() {
            if end < from {
                break;
            }
            from = from.min(start);
            to = to.max(end);
            self.open.remove(&start);
        }
        self.open.insert(from, to);
        while self.open.len() > OPEN_MAX
            && let Some((start, end)) = self.open.pop_first()
        {
            self.closed_ns += end - start;
            self.closed_until = end;
        }
    }

    /// The length of it all.
    pub(crate) fn length_ns(&self) -> u64 {
        self.closed_ns + self.open.iter().map(|(start, end)| end - start).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn its_length_is_that_of_the_covered_points(
            all in prop::collection::vec((0_u64..2000, 0_u64..60), 0..120)
        ) {
            let mut union = Union::default();
            let mut covered = vec![false; 3000];
            for (from, length) in all {
                union.add(from, from + length);
                covered[from as usize..(from + length) as usize].fill(true);
            }
            prop_assert_eq!(union.length_ns(), covered.iter().filter(|c| **c).count() as u64);
        }
    }

    #[test]
    fn many_stretches_are_closed_in_bounded_memory() {
        let mut union = Union::default();
        (0..10_000).for_each(|at| union.add(at * 10, at * 10 + 4));
        assert_eq!(union.length_ns(), 40_000);
        assert!(union.open.len() <= OPEN_MAX);
    }
}
