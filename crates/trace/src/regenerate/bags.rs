//! Drawing without putting back: what is drawn to the end has the counts that it was filled with.

use std::collections::BTreeMap;

use ioscape_model::app::SizeLaw;
use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::places::PAGE_BYTES;

/// Things with counts.
#[derive(Clone, Debug)]
pub(super) struct Bag<T> {
    things: Vec<(T, u64)>,
    left: u64,
}

impl<T: Copy + PartialEq> Bag<T> {
    pub(super) fn new(things: impl IntoIterator<Item = (T, u64)>) -> Self {
        let things: Vec<(T, u64)> = things.into_iter().filter(|(_, count)| *count > 0).collect();
        let left = things.iter().map(|(_, count)| count).sum();
        Self { things, left }
    }

    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// How many of one are left.
    pub(super) fn count(&self, thing: T) -> u64 {
        self.things.iter().find(|(other, _)| *other == thing).map_or(0, |(_, count)| *count)
    }

    /// Draws one, with a chance that goes by how many are left.
    pub(super) fn draw(&mut self, chance: &mut Xoshiro256PlusPlus) -> Option<T> {
        let mut at = chance.random_range(0..self.left.max(1));
        for (thing, count) in &mut self.things {
            if at < *count {
                *count -= 1;
                self.left -= 1;
                return Some(*thing);
            }
            at -= *count;
        }
        None
    }

    /// Puts one back.
    pub(super) fn put(&mut self, thing: T) {
        if let Some((_, count)) = self.things.iter_mut().find(|(other, _)| *other == thing) {
            *count += 1;
            self.left += 1;
        }
    }

    /// Takes a certain one, if there is one left.
    pub(super) fn take(&mut self, thing: T) -> bool {
        let found = self.things.iter_mut().find(|(other, count)| *other == thing && *count > 0);
        if let Some((_, count)) = found {
            *count -= 1;
            self.left -= 1;
            return true;
        }
        false
    }
}

/// Sizes of requests in one direction: some exact, others from a range.
#[derive(Clone, Debug)]
pub(super) struct SizeBag {
    bag: Bag<(u64, u64)>,
    /// Bytes. A size drawn from a range is a multiple of this if the range holds one. A request of such a
    /// size begins at a multiple of it, unless it goes on where one ended.
    pub(super) step: u64,
}

/// Sizes are mostly multiples of one of these, or of none.
const STEPS: [u64; 6] =
    [16 * PAGE_BYTES, 8 * PAGE_BYTES, 4 * PAGE_BYTES, 2 * PAGE_BYTES, PAGE_BYTES, 512];
/// Such a share, of the sizes known exactly.
const MOSTLY: f64 = 0.9;

/// Granularity of most sizes, bytes.
fn step(law: &SizeLaw) -> u64 {
    let all: u64 = law.top.iter().map(|size| size.count).sum();
    let is_step = |step: &u64| {
        let multiples = law.top.iter().filter(|size| size.bytes.is_multiple_of(*step));
        multiples.map(|size| size.count).sum::<u64>() as f64 >= MOSTLY * all.max(1) as f64
    };
    STEPS.into_iter().find(is_step).unwrap_or(1)
}

/// Pages of a block, of which most requests are multiples; 1 where a block is smaller than a page.
pub(super) fn block_pages(law: &SizeLaw) -> usize {
    (step(law) / PAGE_BYTES).max(1) as usize
}

impl SizeBag {
    /// As many as a law tells, times a factor; where it tells none, so many of one size.
    pub(super) fn new(law: &SizeLaw, (count, bytes): (u64, f64), factor: f64) -> Self {
        if law.histogram.is_empty() {
            let bytes = bytes.round().max(1.0) as u64;
            let count = (count as f64 * factor).round() as u64;
            return Self { bag: Bag::new([((bytes, bytes + 1), count)]), step: 1 };
        }
        let mut ranges: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let starts = law.histogram.iter().map(|bucket| bucket.bytes.max(1));
        for (bucket, start) in law.histogram.iter().zip(starts.clone()) {
            // Eight to a doubling.
            let width = (1_u64 << start.ilog2()) / 8;
            ranges.insert(start, (start + width.max(1), bucket.count));
        }
        for size in &law.top {
            let bucket = ranges.range_mut(..=size.bytes.max(1)).next_back();
            if let Some((_, (_, count))) = bucket {
                *count = count.saturating_sub(size.count);
            }
        }
        let scaled = |count: u64| (count as f64 * factor).round() as u64;
        let exact = law.top.iter().map(|size| ((size.bytes, size.bytes + 1), scaled(size.count)));
        let others = ranges.into_iter().map(|(start, (end, count))| ((start, end), scaled(count)));
        Self { bag: Bag::new(exact.chain(others)), step: step(law) }
    }

    pub(super) fn left(&self) -> u64 {
        self.bag.left()
    }

    /// Pages of all that are left, if each begins with a page.
    pub(super) fn pages(&self) -> f64 {
        let pages = |((from, to), count): &((u64, u64), u64)| {
            let middle = self.within(*from, *to, 0.5);
            middle.div_ceil(PAGE_BYTES) as f64 * *count as f64
        };
        self.bag.things.iter().map(pages).sum()
    }

    /// Takes this size, if it is left.
    pub(super) fn take(&mut self, bytes: u64) -> Option<u64> {
        let holds = |(from, to): (u64, u64)| (from..to).contains(&bytes);
        let range = self.bag.things.iter().find(|(range, count)| *count > 0 && holds(*range));
        let range = range?.0;
        self.bag.take(range).then_some(bytes)
    }

    pub(super) fn draw(&mut self, chance: &mut Xoshiro256PlusPlus) -> Option<u64> {
        let (from, to) = self.bag.draw(chance)?;
        Some(self.within(from, to, chance.random()))
    }

    /// The size at a share of a range.
    fn within(&self, from: u64, to: u64, share: f64) -> u64 {
        let (first, next) = (from.div_ceil(self.step), to.div_ceil(self.step));
        let (first, next, step) =
            if first < next { (first, next, self.step) } else { (from, to.max(from + 1), 1) };
        (first + ((next - first) as f64 * share) as u64) * step
    }
}

#[cfg(test)]
mod tests {
    use ioscape_model::app::SizeCount;
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn a_bag_gives_what_was_put_in() {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(3);
        let mut bag = Bag::new([('a', 5), ('b', 0), ('c', 7)]);
        assert!(bag.take('a') && !bag.take('b'));
        let mut drawn = BTreeMap::new();
        while let Some(thing) = bag.draw(&mut chance) {
            *drawn.entry(thing).or_insert(0) += 1;
        }
        assert_eq!(drawn, [('a', 4), ('c', 7)].into());
    }

    #[test]
    fn sizes_are_those_of_the_law() {
        let size = |bytes, count| SizeCount { bytes, count };
        let law = SizeLaw {
            mean_bytes: 0.0,
            top: vec![size(4096, 90)],
            histogram: vec![size(1, 2), size(4096, 100)],
        };
        let mut bag = SizeBag::new(&law, (0, 0.0), 2.0);
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(3);
        let all: Vec<u64> = std::iter::from_fn(|| bag.draw(&mut chance)).collect();
        assert_eq!(all.len(), 204);
        assert_eq!(all.iter().filter(|bytes| **bytes == 1).count(), 4);
        assert!(all.iter().filter(|bytes| **bytes == 4096).count() >= 180);
        assert!(all.iter().all(|bytes| *bytes == 1 || (4096..4608).contains(bytes)));
    }
}
