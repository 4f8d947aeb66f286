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

/// Touches that are still to come at distances from `from` on, up to the next.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    from: u64,
    to: u64,
    /// Below 0: more came than were to.
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
            let (from, to) = (caches.curve[at].pages, caches.curve[at + 1].pages);
            let touches = (misses(at).saturating_sub(misses(at + 1))) as f64 * factors.touches;
            if is_new {
                self.reuses.push(Wanted { from: scaled(from), to: scaled(to), touches });
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
        let at = self.reuses.partition_point(|wanted| wanted.to <= distance);
        if let Some(wanted) = self.reuses.get_mut(at) {
            wanted.touches -= 1.0;
        }
    }

    /// A stretch of distances, with a chance that goes by what is wanting; `None` for a first touch.
    /// More is wanting than can be drawn if many requests go on where one ended: these touch pages at short
    /// distances without being drawn. So long distances and first touches are drawn with more than their
    /// share. With these always first, or with all alike, misses of eight programs were further off
    /// (docs/experiments.md).
    fn draw(&self, drawn_left: f64, chance: &mut Xoshiro256PlusPlus) -> Option<(u64, u64)> {
        let first = self.first.max(0.0);
        let reuses: f64 = self.reuses.iter().map(|wanted| wanted.touches.max(0.0)).sum();
        let wanted = reuses + first;
        let drawn = (wanted.min(drawn_left.max(1.0)) * wanted).sqrt();
        let mut at = chance.random::<f64>() * drawn;
        if at < first {
            return None;
        }
        at -= first;
        for wanted in self.reuses.iter().rev() {
            if at < wanted.touches {
                return Some((wanted.from, wanted.to));
            }
            at -= wanted.touches.max(0.0);
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

/// Pages that are touched first in one direction: a stretch of the address space, in cells of the
/// length of a run, each begun once.
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
        Self { from, pages, cell, cells_begun: 0, stride, swept: from, grows: false }
    }

    /// One in which files begin and grow one after another. Their last pages are not full, so it has
    /// more room than there will be pages.
    pub(super) fn growing(from: usize, pages: usize) -> Self {
        let room = if pages == 0 { 0 } else { pages + pages / 4 + 1024 };
        Self { grows: true, ..Self::new(from, room, 1) }
    }

    /// A page that nobody has touched, at the start of a cell as long as there is one.
    fn untouched(&mut self, stack: &Stack) -> Option<usize> {
        let cells = self.pages.div_ceil(self.cell);
        while self.cells_begun < cells {
            let at = self.from + self.cells_begun * self.stride % cells * self.cell;
            self.cells_begun += 1;
            if !stack.is_touched(at) {
                return Some(at);
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
        // What nobody has written yet cannot be read.
        let can_spare = direction == WRITE && !regions[READ].grows;
        let other = || if can_spare { regions[READ].untouched(stack) } else { None };
        own.or_else(other).or_else(|| self.oldest())
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
