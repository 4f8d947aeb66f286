//! Stack distances counted, and the curve that they make.

use ioscape_model::app::{CacheMisses, Caches};

use super::{Access, simplified};

/// A curve that is simplified stays this close to the exact one, as a miss ratio.
const ERROR_MIN: f64 = 0.002;
/// Points of a simplified curve: with more, the error is let grow.
const POINTS_MAX: usize = 120;
/// Sizes of the cache that are looked at to simplify a curve.
const SIZES_MAX: u64 = 1 << 24;

/// How often pages were touched at each stack distance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Distances {
    /// Touches by the number of other pages touched since the touch before.
    pub counts: Vec<u64>,
    /// First touches: misses in a cache of any size.
    pub cold: u64,
}

impl Distances {
    /// Counts touches at one distance.
    #[inline]
    pub(super) fn add(&mut self, distance: u64, touches: u64) {
        let distance = distance as usize;
        if distance >= self.counts.len() {
            self.counts.resize((distance + 1).next_power_of_two(), 0);
        }
        self.counts[distance] += touches;
    }

    /// Those of another sample, too.
    pub(super) fn merge(&mut self, other: &Self) {
        self.cold += other.cold;
        self.counts.resize(self.counts.len().max(other.counts.len()), 0);
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
    }

    /// All touches.
    #[must_use]
    pub fn touches(&self) -> u64 {
        self.cold + self.counts.iter().sum::<u64>()
    }
}

/// Misses of an LRU cache, by its size in pages: reads and writes apart, in one cache of both.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    reads: Side,
    writes: Side,
    pages: u64,
    sampling: Sampling,
}

/// Reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Side {
    hits: Hits,
    /// Touches that were looked at.
    seen: u64,
    /// All touches.
    touches: u64,
}

/// How many touches hit, by the size of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Hits {
    /// In caches of 0, 1, 2, … pages.
    Each(Vec<u64>),
    /// In caches of so many pages; straight in between.
    At(Vec<(u64, u64)>),
}

impl Hits {
    fn at(&self, size: usize) -> u64 {
        match self {
            Self::Each(hits) => hits[size.min(hits.len() - 1)],
            Self::At(points) => {
                let next = points.partition_point(|(at, _)| *at <= size as u64);
                let Some((from, low)) = next.checked_sub(1).map(|before| points[before]) else {
                    return 0;
                };
                let Some((to, high)) = points.get(next) else { return low };
                let part = (size as u64 - from) as f64 / (to - from) as f64;
                low + (high.saturating_sub(low) as f64 * part).round() as u64
            }
        }
    }
}

/// Which part of the pages a curve was made from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Sampling {
    /// Share of the pages in a sample: so much shorter are its distances.
    pub(super) rate: f64,
    /// Samples that are counted together.
    pub(super) samples: f64,
}

const EVERYTHING: Sampling = Sampling { rate: 1.0, samples: 1.0 };

impl Side {
    fn new(distances: &Distances, touches: u64) -> Self {
        let longest = distances.counts.iter().rposition(|count| *count > 0).map_or(0, |d| d + 1);
        let sums = distances.counts[..longest].iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        let hits = Hits::Each(std::iter::once(0).chain(sums).collect());
        Self { hits, seen: distances.touches(), touches }
    }

    fn misses(&self, cache_pages: u64, sampling: Sampling) -> u64 {
        if sampling == EVERYTHING {
            return self.seen - self.hits.at(cache_pages as usize);
        }
        // Straight between two sizes that the sample tells apart; without a cache all touches miss.
        let touches = self.touches as f64;
        let misses = |size: usize| match size {
            0 => touches,
            _ => (self.seen - self.hits.at(size)) as f64 / sampling.rate / sampling.samples,
        };
        let size = cache_pages as f64 * sampling.rate;
        let (low, high) = (misses(size as usize), misses(size as usize + 1));
        (low + (high - low) * size.fract()).round().min(touches) as u64
    }
}

impl Curve {
    /// From distances of reads and writes, and the number of distinct pages.
    #[must_use]
    pub fn new(reads: &Distances, writes: &Distances, pages: u64) -> Self {
        Self {
            reads: Side::new(reads, reads.touches()),
            writes: Side::new(writes, writes.touches()),
            pages,
            sampling: EVERYTHING,
        }
    }

    /// From samples: of reads and writes the distances and how many there were in all. The adjustment
    /// of SHARDS for a sample with too many or too few touches makes the misses those of the sample,
    /// over its rate.
    pub(super) fn sampled(
        reads: (&Distances, u64),
        writes: (&Distances, u64),
        pages: u64,
        sampling: Sampling,
    ) -> Self {
        Self {
            reads: Side::new(reads.0, reads.1),
            writes: Side::new(writes.0, writes.1),
            pages,
            sampling,
        }
    }

    /// From a model; the points need not be in order.
    #[must_use]
    pub fn from_model(caches: &Caches) -> Self {
        let side = |touches: u64, misses: fn(&CacheMisses) -> u64| {
            let hits = |point: &CacheMisses| (point.pages, touches.saturating_sub(misses(point)));
            let mut points: Vec<_> = caches.curve.iter().map(hits).collect();
            points.sort_unstable();
            points.dedup_by_key(|(pages, _)| *pages);
            Side { hits: Hits::At(points), seen: touches, touches }
        };
        Self {
            reads: side(caches.reads, |point| point.reads),
            writes: side(caches.writes, |point| point.writes),
            pages: caches.pages,
            sampling: EVERYTHING,
        }
    }

    /// Few points that stand for the curve, and how far off it they are at most, as a miss ratio.
    #[must_use]
    pub fn simplify(&self) -> (Vec<CacheMisses>, f64) {
        let touches = (self.reads.touches + self.writes.touches) as f64;
        let step = (self.pages / SIZES_MAX).max(1);
        let mut error = ERROR_MIN;
        loop {
            let sizes = (0..self.pages).step_by(step as usize).chain([self.pages]);
            let points = sizes.map(|pages| {
                (pages, [Access::Read, Access::Write].map(|a| self.misses(a, pages) as f64))
            });
            // Reads and writes may be off in one direction.
            let corners = simplified(points, error / 2.0 * touches);
            if corners.len() <= POINTS_MAX {
                let whole = |misses: f64| misses.max(0.0).round() as u64;
                let misses = |(pages, [reads, writes]): (u64, [f64; 2])| CacheMisses {
                    pages,
                    reads: whole(reads),
                    writes: whole(writes),
                };
                return (corners.into_iter().map(misses).collect(), error);
            }
            error *= 1.5;
        }
    }

    fn side(&self, access: Access) -> &Side {
        match access {
            Access::Read => &self.reads,
            Access::Write => &self.writes,
        }
    }

    /// Distinct pages: no cache needs to be larger.
    #[must_use]
    pub const fn pages(&self) -> u64 {
        self.pages
    }

    /// Pages touched by reads or writes, each as often as it was.
    #[must_use]
    pub fn touches(&self, access: Access) -> u64 {
        self.side(access).touches
    }

    /// Touches that do not find their page in a cache of this many pages.
    #[must_use]
    pub fn misses(&self, access: Access, cache_pages: u64) -> u64 {
        self.side(access).misses(cache_pages, self.sampling)
    }

    fn all_misses(&self, cache_pages: u64) -> u64 {
        self.misses(Access::Read, cache_pages) + self.misses(Access::Write, cache_pages)
    }

    /// Share of all touches that miss, between 0 and 1; 0 where nothing was touched.
    #[must_use]
    pub fn miss_ratio(&self, cache_pages: u64) -> f64 {
        let touches = self.reads.touches + self.writes.touches;
        if touches == 0 { 0.0 } else { self.all_misses(cache_pages) as f64 / touches as f64 }
    }

    /// The smallest cache, in pages, that has this share of the hits of a cache that holds everything.
    #[must_use]
    pub fn pages_for_gain(&self, fraction: f64) -> u64 {
        let touches = self.all_misses(0);
        let hits = |pages| touches - self.all_misses(pages).min(touches);
        let wanted = (fraction * hits(self.pages) as f64).ceil() as u64;
        let (mut low, mut high) = (0, self.pages);
        while low < high {
            let middle = u64::midpoint(low, high);
            if hits(middle) < wanted { low = middle + 1 } else { high = middle }
        }
        low
    }

    /// Where the curve bends most, in pages: furthest below the line from an empty cache to one that
    /// holds everything (Satopää et al., "Finding a 'Kneedle' in a Haystack", 2011).
    #[must_use]
    pub fn knee(&self) -> u64 {
        let (top, bottom) = (self.miss_ratio(0), self.miss_ratio(self.pages));
        let below = |pages: u64| {
            let along = pages as f64 / self.pages.max(1) as f64;
            top + (bottom - top) * along - self.miss_ratio(pages)
        };
        let step = (self.pages / 4096).max(1);
        let sizes = (0..=self.pages).step_by(step as usize);
        sizes.max_by(|a, b| below(*a).total_cmp(&below(*b)).then(b.cmp(a))).unwrap_or(0)
    }

    /// Sizes in pages at which to draw the curve, from one page to all of them, evenly spaced in
    /// their logarithm.
    #[must_use]
    pub fn sizes(&self, count: usize) -> Vec<u64> {
        let last = (self.pages.max(1) as f64).ln();
        let at = |i: usize| (last * i as f64 / (count - 1).max(1) as f64).exp().round() as u64;
        let mut sizes: Vec<_> = (0..count).map(at).collect();
        sizes.dedup();
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::super::ExactCurve;
    use super::*;

    /// A loop, a skewed law over many pages and a scan, with writes among them.
    fn mixed() -> Curve {
        let mut curve = ExactCurve::new();
        let mut state = 7_u64;
        for at in 0..200_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let uniform = (state >> 11) as f64 / (1_u64 << 53) as f64;
            let access = if at % 5 == 0 { Access::Write } else { Access::Read };
            curve.touch(access, 1, (40_000.0 * uniform.powi(3)) as u64, 1);
            curve.touch(Access::Read, 2, at % 3000, 1);
            if at % 50_000 == 0 {
                curve.touch(Access::Read, 3, 0, 10_000);
            }
        }
        curve.finish()
    }

    #[test]
    fn a_model_of_few_points_gives_the_curve_within_a_hundredth_at_a_hundred_sizes() {
        let exact = mixed();
        let (points, error) = exact.simplify();
        assert!(points.len() <= POINTS_MAX && error <= 0.01, "{} points, {error}", points.len());
        let caches = Caches {
            pages: exact.pages(),
            reads: exact.touches(Access::Read),
            writes: exact.touches(Access::Write),
            curve: points,
            ..Caches::default()
        };
        let model = Curve::from_model(&caches);
        for pages in exact.sizes(100) {
            let off = (model.miss_ratio(pages) - exact.miss_ratio(pages)).abs();
            assert!(off <= error + 1e-5, "{off} at {pages} pages, {error} was promised");
        }
        let (known, truth) = (model.pages_for_gain(0.9), exact.pages_for_gain(0.9));
        assert!((known as f64 / truth as f64 - 1.0).abs() < 0.1, "{known} {truth}");
    }

    #[test]
    fn a_model_typed_by_hand_may_say_nothing() {
        let curve = Curve::from_model(&Caches::default());
        assert_eq!((curve.pages(), curve.knee(), curve.miss_ratio(5)), (0, 0, 0.0));
        assert_eq!(curve.simplify().0.len(), 1);
    }
}
