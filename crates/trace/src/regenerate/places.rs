//! Where requests go: pages are taken at the stack distances that the model's miss-ratio curve tells,
//! so that caches of every size miss as often as with the original (2DIO, `EuroSys` 2026, has the aim;
//! the way is the plain one: an LRU stack that can be asked for its n-th page).
//!
//! The curve says how many touches are to come at which distances. What is still wanting is kept for
//! each stretch of distances; a place is drawn by it, and every page that a request then touches,
//! also by going on where the one before ended, is taken off.

use ioscape_model::app::Caches;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::stack::Stack;

pub(super) const PAGE_BYTES: u64 = 4096;

/// Reads or writes, as indices.
pub(super) const READ: usize = 0;
pub(super) const WRITE: usize = 1;

/// Exponent of the share of the wanted touches that can be drawn: with 0 no distance is preferred, with 1
/// the longest are drawn first. With 0.5 misses of `SQLite` are off by 0.06, with 0.1 by 0.04; with 0 those
/// of sort by up to 0.044, with 0.1 by up to 0.027.
const LONG_FIRST: f64 = 0.1;
/// Rounds through all cells after the first; each gives out the first untouched page of a cell.
const ROUNDS: usize = 8;

/// Touches that are still to come at distances from `from` on, up to the next.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    from: u64,
    to: u64,
    touches: f64,
}

/// Touches in one direction.
#[derive(Clone, Debug, Default)]
struct Direction {
    reuses: Vec<Wanted>,
    first: f64,
}

impl Direction {
    fn add(&mut self, caches: &Caches, misses: impl Fn(usize) -> u64, factors: &Factors) {
        let last = caches.curve.len().saturating_sub(1);
        let is_new = self.reuses.is_empty();
        for at in 0..last {
            let scaled = |pages: u64| (pages as f64 * factors.data).round() as u64;
            let (from, to) = (scaled(caches.curve[at].pages), scaled(caches.curve[at + 1].pages));
            // Scaled down, a stretch may have no length left.
            let to = to.max(from + 1);
            let touches = (misses(at).saturating_sub(misses(at + 1))) as f64 * factors.touches;
            if is_new {
                self.reuses.push(Wanted { from, to, touches });
            } else {
                self.reuses[at].touches += touches;
            }
        }
        self.first += misses(last) as f64 * factors.first;
    }

    fn take(&mut self, distance: Option<u64>) {
        let Some(distance) = distance else {
            self.first -= 1.0;
            return;
        };
        if let Some(at) = self.nearest(distance) {
            let wanted = &mut self.reuses[at];
            wanted.touches = (wanted.touches - 1.0).max(0.0);
        }
    }

    /// Index of the stretch nearest to `distance` (pages, by ratio), of those that still want touches. A
    /// curve in steps wants few distances, and pages touched in a row seldom have these.
    fn nearest(&self, distance: u64) -> Option<usize> {
        let at = self.reuses.partition_point(|wanted| wanted.to <= distance);
        let (below, above) = self.reuses.split_at(at);
        let is_wanting = |wanted: &Wanted| wanted.touches > 0.0;
        let below = below.iter().rposition(is_wanting);
        let above = above.iter().position(is_wanting).map(|after| at + after);
        let (Some(low), Some(high)) = (below, above) else { return below.or(above) };
        let ratio = |more: u64, less: u64| (more as f64 + 1.0) / (less as f64 + 1.0);
        let is_low =
            ratio(distance, self.reuses[low].to - 1) < ratio(self.reuses[high].from, distance);
        Some(if is_low { low } else { high })
    }

    /// A stretch of distances, with a chance that goes by what is wanting; `None` for a first touch.
    /// Requests that go on where one ended touch pages without being drawn, so more touches may be wanting
    /// than can be drawn. Then first touches are drawn before all others. Long distances are drawn a little
    /// more often than their share (`LONG_FIRST`).
    fn draw(&self, drawn_left: f64, chance: &mut Xoshiro256PlusPlus) -> Option<(u64, u64)> {
        let first = self.first.max(0.0);
        let reuses: f64 = self.reuses.iter().map(|wanted| wanted.touches).sum();
        let wanted = (reuses + first).max(1.0);
        let drawn_frac = (drawn_left.max(1.0) / wanted).min(1.0);
        let mut at = chance.random::<f64>() * drawn_frac.powf(LONG_FIRST);
        let first = first / wanted * drawn_frac.powf(LONG_FIRST - 1.0);
        if at < first {
            return None;
        }
        at = (at - first) * wanted;
        for wanted in self.reuses.iter().rev() {
            if at < wanted.touches {
                return Some((wanted.from, wanted.to));
            }
            at -= wanted.touches;
        }
        None
    }
}

/// By what a pass multiplies what the curve says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Factors {
    /// Distances.
    pub(super) data: f64,
    /// Touches again.
    pub(super) touches: f64,
    /// First touches.
    pub(super) first: f64,
}

/// A stretch of pages that are touched first in one direction, in cells of the length of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Region {
    pub(super) from: usize,
    pub(super) pages: usize,
    cell: usize,
    cells_begun: usize,
    stride: usize,
    /// Everything before it is touched.
    swept: usize,
    /// Pages are given out in order, as files begin and grow, and not drawn.
    pub(super) grows: bool,
    /// Its files have no data at the start.
    pub(super) is_empty: bool,
}

impl Region {
    pub(super) fn new(from: usize, pages: usize, run_pages: usize) -> Self {
        let cell = run_pages.clamp(1, pages.max(1));
        let cells = pages.div_ceil(cell);
        // A stride near the golden ratio visits all cells in no visible order.
        let mut stride = ((cells as f64 * 0.618) as usize).max(1);
        while gcd(stride, cells.max(1)) != 1 {
            stride += 1;
        }
        Self {
            from,
            pages,
            cell,
            cells_begun: 0,
            stride,
            swept: from,
            grows: false,
            is_empty: false,
        }
    }

    /// One in which files begin and grow one after another. Their last pages are not full, so it has
    /// more room than there will be pages.
    pub(super) fn growing(from: usize, pages: usize) -> Self {
        let room = if pages == 0 { 0 } else { pages + pages / 4 + 1024 };
        Self { grows: true, ..Self::new(from, room, 1) }
    }

    /// Number of a page that no request has touched, `None` if all were. Successive calls return the first
    /// page of every cell, then, `ROUNDS` times, the first untouched page of every cell, then the remaining
    /// pages in order. Two neighbouring cells do not follow each other.
    fn untouched(&mut self, stack: &Stack) -> Option<usize> {
        let cells = self.pages.div_ceil(self.cell);
        while self.cells_begun < cells * (1 + ROUNDS) {
            let cell = self.cells_begun % cells * self.stride % cells;
            let from = self.from + cell * self.cell;
            let looked_at = if self.cells_begun < cells { 1 } else { self.cell };
            let end = (from + looked_at).min(self.from + self.pages);
            self.cells_begun += 1;
            if let Some(page) = (from..end).find(|page| !stack.is_touched(*page)) {
                return Some(page);
            }
        }
        while self.swept < self.from + self.pages {
            if !stack.is_touched(self.swept) {
                return Some(self.swept);
            }
            self.swept += 1;
        }
        None
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Draws places.
#[derive(Clone, Debug)]
pub(super) struct Places {
    stack: Stack,
    directions: [Direction; 2],
    regions: [Region; 2],
}

impl Places {
    pub(super) fn new(regions: [Region; 2]) -> Self {
        let pages = regions.iter().map(|region| region.from + region.pages).max().unwrap_or(0);
        Self { stack: Stack::new(pages), directions: Default::default(), regions }
    }

    /// So many more touches are to come.
    pub(super) fn want(&mut self, caches: &Caches, reads: &Factors, writes: &Factors) {
        self.directions[READ].add(caches, |at| caches.curve[at].reads, reads);
        self.directions[WRITE].add(caches, |at| caches.curve[at].writes, writes);
    }

    /// Draws the page at which a request begins that does not go on where one ended. Such requests will
    /// still touch about `drawn_left` pages. `None`: a file that grows is to get a new page.
    pub(super) fn draw(
        &mut self,
        direction: usize,
        drawn_left: f64,
        chance: &mut Xoshiro256PlusPlus,
    ) -> Option<usize> {
        let live = self.stack.live();
        match self.directions[direction].draw(drawn_left, chance) {
            Some((from, to)) if from < live => {
                let distance = chance.random_range(from..to.min(live).max(from + 1));
                self.stack.at_distance(distance)
            }
            // Nothing lies that far back yet: what is to come first, comes first.
            _ => self.first(direction),
        }
    }

    fn first(&mut self, direction: usize) -> Option<usize> {
        let Self { stack, regions, .. } = self;
        if regions[direction].grows {
            return None;
        }
        let own = regions[direction].untouched(stack);
        let other = &mut regions[1 - direction];
        // What nobody has written yet cannot be read.
        let can_spare = !other.grows && (direction == WRITE || !other.is_empty);
        let spared = || if can_spare { other.untouched(stack) } else { None };
        own.or_else(spared).or_else(|| self.oldest())
    }

    /// Whether pages are to come that nobody has touched.
    pub(super) fn wants_first(&self, direction: usize) -> bool {
        self.directions[direction].first >= 1.0
    }

    /// All were touched: the one touched longest ago is as far as there is.
    pub(super) fn oldest(&self) -> Option<usize> {
        self.stack.at_distance(self.stack.live().saturating_sub(1))
    }

    /// Touches pages, one after another.
    pub(super) fn touch(&mut self, direction: usize, pages: std::ops::Range<usize>) {
        for page in pages {
            let distance = self.stack.touch(page);
            self.directions[direction].take(distance);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_touch_counts_for_the_nearest_distance_that_is_wanted() {
        let wanted = |from, touches| Wanted { from, to: from + 1, touches };
        let mut direction = Direction {
            reuses: vec![wanted(0, 0.0), wanted(99, 1.0), wanted(199, 1.0), wanted(5000, 2.0)],
            first: 1.0,
        };
        let mut left = |distance| {
            direction.take(distance);
            let left = direction.reuses.iter().map(|wanted| wanted.touches as u64);
            (left.collect::<Vec<u64>>(), direction.first as i64)
        };
        assert_eq!(left(Some(150)), (vec![0, 1, 0, 2], 1));
        assert_eq!(left(Some(150)), (vec![0, 0, 0, 2], 1));
        assert_eq!(left(Some(0)), (vec![0, 0, 0, 1], 1));
        assert_eq!(left(Some(9000)), (vec![0, 0, 0, 0], 1));
        assert_eq!(left(Some(9000)), (vec![0, 0, 0, 0], 1));
        assert_eq!(left(None), (vec![0, 0, 0, 0], 0));
    }

    #[test]
    fn each_page_of_a_region_is_given_out_once_and_no_two_neighbours_in_a_row() {
        let (mut region, mut stack) = (Region::new(7, 1001, 4), Stack::new(2000));
        let mut before = None;
        let mut neighbours = 0;
        for _ in 0..1001 {
            let page = region.untouched(&stack).unwrap();
            assert!((7..1008).contains(&page) && !stack.is_touched(page));
            neighbours += usize::from(before == page.checked_sub(1));
            stack.touch(page);
            before = Some(page);
        }
        assert_eq!((region.untouched(&stack), neighbours), (None, 0));
    }
}
