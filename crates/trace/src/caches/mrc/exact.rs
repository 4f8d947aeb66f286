//! The exact curve of a whole trace.

use std::hint::black_box;

use super::super::page_table::PageTable;
use super::slots::Slots;
use super::{Access, Curve, Distances};

/// Pages of a request that are taken at a time.
const PIECE_PAGES: u64 = 1 << 24;

/// Requests that are taken at a time. A page's last touch, its slot and the count of its distance lie
/// anywhere in tables far larger than the processor's caches: read one after the other, a request waits
/// for three of them, while those of many requests are read side by side.
const BATCH: usize = 64;

/// A request: pages of a file, first to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// Read or written.
    pub access: Access,
    /// Number of the file.
    pub file: u32,
    /// Number of the first page in the file.
    pub first_page: u64,
    /// How many pages.
    pub pages: u64,
}

/// Counts stack distances of pages, exactly, in one pass.
///
/// A request takes one slot of time for each of its pages. Pages that lie side by side and were last
/// touched one after the other are one piece with one distance: its pages before have become most
/// recent, those behind it are still more recent than itself. So the cost is one query for each piece.
///
/// ```
/// use ioscape_trace::caches::mrc::{Access, ExactCurve};
/// let mut curve = ExactCurve::new();
/// for _ in 0..2 {
///     curve.touch(Access::Read, 1, 0, 100);
/// }
/// let curve = curve.finish();
/// assert_eq!(curve.misses(Access::Read, 99), 200);
/// assert_eq!(curve.misses(Access::Read, 100), 100);
/// ```
#[derive(Debug)]
pub struct ExactCurve {
    /// Slot of a page's last touch, plus one.
    last: PageTable<u32>,
    slots: Slots,
    reads: Distances,
    writes: Distances,
    /// Distances of the batch at hand, and how many pages have each.
    found: Vec<(Access, u64, u64)>,
}

impl Default for ExactCurve {
    fn default() -> Self {
        Self::new()
    }
}

impl ExactCurve {
    /// Nothing touched.
    #[must_use]
    pub fn new() -> Self {
        Self {
            last: PageTable::new(),
            slots: Slots::new(),
            reads: Distances::default(),
            writes: Distances::default(),
            found: Vec::new(),
        }
    }

    /// Distinct pages so far.
    #[must_use]
    pub const fn pages(&self) -> u64 {
        self.slots.live()
    }

    /// Touches pages of a file, first to last. Many requests are faster with `touch_all`.
    pub fn touch(&mut self, access: Access, file: u32, first_page: u64, pages: u64) {
        self.touch_all(&[Touch { access, file, first_page, pages }], |_, _, _| {});
    }

    /// Takes requests in their order and tells of each, by its place among them, the distances, `None`
    /// for first touches, with how many pages have it.
    pub fn touch_all(&mut self, touches: &[Touch], mut see: impl FnMut(usize, Option<u64>, u64)) {
        let mut before = 0;
        for batch in touches.chunks(BATCH) {
            if batch.len() > 1 {
                self.fetch(batch);
            }
            for (number, touch) in (before..).zip(batch) {
                let mut done = 0;
                while done < touch.pages {
                    let pages = (touch.pages - done).min(PIECE_PAGES);
                    let first_page = touch.first_page.saturating_add(done);
                    let piece = Touch { first_page, pages, ..*touch };
                    self.touch_piece(piece, &mut |distance, pages| see(number, distance, pages));
                    done += pages;
                }
            }
            self.count_found();
            before += batch.len();
        }
    }

    /// Reads what the first pages of these touches will need.
    #[inline]
    fn fetch(&self, batch: &[Touch]) {
        let mut slots = [0; BATCH];
        for (slot, touch) in slots.iter_mut().zip(batch) {
            *slot = self.last.get(touch.file, touch.first_page);
        }
        let read = slots.iter().map(|slot| self.slots.fetch((*slot as usize).saturating_sub(1)));
        black_box(read.fold(0, |all, one| all ^ one));
    }

    #[inline]
    fn count_found(&mut self) {
        for (access, distance, pages) in self.found.drain(..) {
            match access {
                Access::Read => self.reads.add(distance, pages),
                Access::Write => self.writes.add(distance, pages),
            }
        }
    }

    #[inline]
    fn touch_piece(&mut self, touch: Touch, see: &mut impl FnMut(Option<u64>, u64)) {
        let Touch { access, file, first_page, pages } = touch;
        if !self.slots.has_room(pages) {
            self.compact(pages);
        }
        let base = self.slots.next() as u32 + 1;
        let mut done = 0;
        while done < pages {
            let run = self.last.run(file, first_page + done, pages - done);
            let mut at = 0;
            while at < run.len() {
                let slot = run[at];
                let length = length_of_piece(&run[at..]);
                if slot == 0 {
                    match access {
                        Access::Read => self.reads.cold += length as u64,
                        Access::Write => self.writes.cold += length as u64,
                    }
                    see(None, length as u64);
                } else {
                    let last = slot as usize - 1 + length - 1;
                    let recent = self.slots.live_after(last) + done + at as u64;
                    let distance = recent + length as u64 - 1;
                    self.found.push((access, distance, length as u64));
                    see(Some(distance), length as u64);
                    self.slots.clear(slot as usize - 1, length);
                }
                let start = base + done as u32 + at as u32;
                for (value, slot) in run[at..at + length].iter_mut().zip(start..) {
                    *value = slot;
                }
                at += length;
            }
            done += run.len() as u64;
        }
        self.slots.append(pages as usize);
    }

    #[cold]
    fn compact(&mut self, pages: u64) {
        let last = &mut self.last;
        self.slots.compact(pages, |renumber| {
            for slot in last.values_mut().filter(|slot| **slot != 0) {
                *slot = renumber(*slot as usize - 1) as u32 + 1;
            }
        });
    }

    /// The curve of what was touched.
    #[must_use]
    pub fn finish(self) -> Curve {
        Curve::new(&self.reads, &self.writes, self.slots.live())
    }

    /// Distances of reads or writes so far.
    #[must_use]
    pub const fn distances(&self, access: Access) -> &Distances {
        match access {
            Access::Read => &self.reads,
            Access::Write => &self.writes,
        }
    }
}

/// Pages from the start of a run that were all never touched, or one after the other.
#[inline]
fn length_of_piece(run: &[u32]) -> usize {
    let first = run[0];
    let step = u32::from(first != 0);
    let mut length = 1;
    while length < run.len() && run[length] == first + step * length as u32 {
        length += 1;
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// Distances by looking back over every touch.
    fn brute_force(requests: &[(Access, u32, u64, u64)]) -> [Distances; 2] {
        let mut touches: Vec<(u32, u64)> = Vec::new();
        let mut result = [Distances::default(), Distances::default()];
        for &(access, file, first, pages) in requests {
            for page in first..first + pages {
                let distances = &mut result[usize::from(access == Access::Write)];
                let since = touches.iter().rposition(|touch| *touch == (file, page));
                match since {
                    None => distances.cold += 1,
                    Some(at) => {
                        let others: HashSet<_> = touches[at + 1..].iter().collect();
                        distances.add(others.len() as u64, 1);
                    }
                }
                touches.push((file, page));
            }
        }
        result
    }

    fn random(state: &mut u64, below: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*state >> 33) % below
    }

    #[test]
    fn every_distance_is_that_of_brute_force_on_a_thousand_random_traces() {
        for seed in 0..1000 {
            let mut state = seed;
            let longest = 1 + random(&mut state, 40);
            let span = 1 + random(&mut state, 200);
            let requests: Vec<_> = (0..=random(&mut state, 40))
                .map(|_| {
                    let access =
                        if random(&mut state, 3) == 0 { Access::Write } else { Access::Read };
                    let file = random(&mut state, 3) as u32;
                    let first = random(&mut state, span) + 480;
                    (access, file, first, 1 + random(&mut state, longest))
                })
                .collect();
            let (mut curve, mut touches) = (ExactCurve::new(), Vec::new());
            for &(access, file, first_page, pages) in &requests {
                touches.push(Touch { access, file, first_page, pages });
                // As one batch, or as several with time that starts anew in between.
                if random(&mut state, 10) == 0 {
                    curve.touch_all(&std::mem::take(&mut touches), |_, _, _| {});
                    curve.compact(1);
                }
            }
            curve.touch_all(&touches, |_, _, _| {});
            let [reads, writes] = brute_force(&requests);
            for (access, expected) in [(Access::Read, reads), (Access::Write, writes)] {
                assert_eq!(curve.distances(access), &expected, "seed {seed}");
            }
        }
    }

    #[test]
    fn time_starts_anew_without_a_trace_when_slots_run_out() {
        let mut curve = ExactCurve::new();
        let (pages, rounds) = (50_000, 100);
        for _ in 0..rounds {
            for page in 0..pages {
                curve.touch(Access::Read, 1, page, 1);
            }
        }
        let curve = curve.finish();
        assert_eq!(curve.misses(Access::Read, pages - 1), pages * rounds);
        assert_eq!(curve.misses(Access::Read, pages), pages);
        assert_eq!(curve.pages_for_gain(0.9), pages);
        assert_eq!(curve.pages(), pages);
    }
}
