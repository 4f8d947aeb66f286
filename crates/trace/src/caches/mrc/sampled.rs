//! Curves from a sample of pages, for traces of billions of requests.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::super::hash_of;
use super::curve::Sampling;
use super::{Access, Curve, Distances, ExactCurve};

/// Pages of which each sample takes one: these are tried, one after the other, until two samples agree.
const GROUPS: [u64; 6] = [1024, 256, 64, 16, 4, 2];

/// Sizes at which two samples are held against each other.
const SIZES: usize = 100;

/// Sizes at which fewer of the touches miss are left out: a relative error of nearly nothing.
const MISS_RATIO_MIN: f64 = 0.01;

/// A curve from two disjoint samples of the pages: SHARDS (Waldspurger et al., FAST 2015), with one
/// page drawn from each group of pages that lie side by side in place of one draw for each page. So a
/// sample of a file that is used all over has just its share of the pages: with a draw for each page it
/// has a few too many or too few, which is many times the misses of a cache for nearly all pages. And a
/// request costs one draw for each group that it touches.
///
/// Samples are of pages, not of requests: of a sampled page every touch is seen. Caches smaller than a
/// group cannot be told apart: straight from an empty cache to one as large.
#[derive(Debug)]
pub struct SampledCurve {
    /// Pages of a group, as a power of two.
    order: u32,
    samples: [Sample; 2],
    reads: u64,
    writes: u64,
}

#[derive(Debug, Default)]
struct Sample {
    pages: HashMap<u64, u32, BuildHasherDefault<Hashed>>,
    curve: ExactCurve,
}

impl SampledCurve {
    /// Two samples that each have one page of so many, rounded up to a power of two; at least two.
    #[must_use]
    pub fn new(group_pages: u64) -> Self {
        let order = group_pages.clamp(2, 1 << 30).next_power_of_two().ilog2();
        Self { order, samples: [Sample::default(), Sample::default()], reads: 0, writes: 0 }
    }

    /// Touches pages of a file, first to last.
    #[inline]
    pub fn touch(&mut self, access: Access, file: u32, first_page: u64, pages: u64) {
        if pages == 0 {
            return;
        }
        match access {
            Access::Read => self.reads += pages,
            Access::Write => self.writes += pages,
        }
        let last_page = first_page.saturating_add(pages - 1);
        for group in first_page >> self.order..=last_page >> self.order {
            let hash = hash_of(file, group);
            let places = places_of(hash, self.order);
            for (sample, place) in self.samples.iter_mut().zip(places) {
                let page = (group << self.order) + place;
                if first_page <= page && page <= last_page {
                    sample.touch(access, hash);
                }
            }
        }
    }

    /// The curve of both samples, and how far they are apart.
    #[must_use]
    pub fn finish(self) -> Agreement {
        let [one, other] = &self.samples;
        let alone = [one, other].map(|sample| self.curve_of(&[sample]));
        let curve = self.curve_of(&[one, other]);
        let touches = (self.reads + self.writes) as f64;
        let misses = |curve: &Curve, pages| {
            (curve.misses(Access::Read, pages) + curve.misses(Access::Write, pages)) as f64
        };
        let sizes = curve.sizes(SIZES).into_iter();
        let apart =
            sizes.filter(|pages| misses(&curve, *pages) > MISS_RATIO_MIN * touches).map(|pages| {
                let [one, other] = [&alone[0], &alone[1]].map(|curve| misses(curve, pages));
                2.0 * (one - other).abs() / (one + other)
            });
        let relative_error = apart.fold(0.0, f64::max);
        Agreement { rate: self.rate(), relative_error, curve }
    }

    /// Share of the pages in each sample.
    fn rate(&self) -> f64 {
        1.0 / (1_u64 << self.order) as f64
    }

    fn curve_of(&self, samples: &[&Sample]) -> Curve {
        let distances = |access| {
            let mut all = Distances::default();
            for sample in samples {
                all.merge(sample.curve.distances(access));
            }
            all
        };
        let pages: u64 = samples.iter().map(|sample| sample.curve.pages()).sum();
        let sampling = Sampling { rate: self.rate(), samples: samples.len() as f64 };
        let pages = (pages as f64 / sampling.rate / sampling.samples).round() as u64;
        let (reads, writes) = (distances(Access::Read), distances(Access::Write));
        Curve::sampled((&reads, self.reads), (&writes, self.writes), pages, sampling)
    }
}

impl Sample {
    fn touch(&mut self, access: Access, hash: u64) {
        let next = self.pages.len() as u32;
        let page = *self.pages.entry(hash).or_insert(next);
        self.curve.touch(access, 0, u64::from(page), 1);
    }
}

/// A curve from two samples, and how far they are apart.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// Share of the pages in each sample.
    pub rate: f64,
    /// The largest difference of the samples' misses, relative to their mean, over all sizes with more
    /// than one per cent of misses. The mean itself is about half as far off the truth.
    pub relative_error: f64,
    /// Of both samples together.
    pub curve: Curve,
}

/// Goes through a trace with larger and larger samples until two of them agree within this relative
/// error; `pass` shows one curve the whole trace.
///
/// # Errors
/// That of `pass`.
pub fn sample_until_agreed<E>(
    relative_error: f64,
    mut pass: impl FnMut(&mut SampledCurve) -> Result<(), E>,
) -> Result<Agreement, E> {
    let mut best = None;
    for group_pages in GROUPS {
        let mut curve = SampledCurve::new(group_pages);
        pass(&mut curve)?;
        let agreement = best.insert(curve.finish());
        if agreement.relative_error <= relative_error {
            break;
        }
    }
    Ok(best.expect("at least one group size is tried"))
}

/// Where in its group the pages of both samples lie: never the same place.
#[inline]
fn places_of(hash: u64, order: u32) -> [u64; 2] {
    let last = (1_u64 << order) - 1;
    let one = hash & last;
    // From the upper bits, between 1 and the last place.
    let further = 1 + (((hash >> 32) * last) >> 32);
    [one, (one + further) & last]
}

/// Keys are hashes already.
#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages with probabilities that fall as a power of their rank.
    fn skewed(seed: u64, touches: usize, pages: f64) -> impl Iterator<Item = u64> {
        let mut state = seed;
        (0..touches).map(move |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let uniform = (state >> 11) as f64 / (1_u64 << 53) as f64;
            (pages * uniform.powi(3)) as u64
        })
    }

    #[test]
    fn two_samples_that_agree_are_as_near_to_the_truth_as_they_say() {
        for seed in 0..8 {
            let trace: Vec<_> = skewed(seed, 400_000, 60_000.0).collect();
            let mut exact = ExactCurve::new();
            for page in &trace {
                exact.touch(Access::Read, 1, *page, 1);
            }
            let exact = exact.finish();
            let agreement = sample_until_agreed(0.05, |curve| {
                for page in &trace {
                    curve.touch(Access::Read, 1, *page, 1);
                }
                Ok::<_, ()>(())
            })
            .unwrap();
            assert!(agreement.relative_error <= 0.05, "{}", agreement.relative_error);
            for pages in agreement.curve.sizes(100) {
                let misses = agreement.curve.misses(Access::Read, pages) as f64;
                let truth = exact.misses(Access::Read, pages) as f64;
                if truth > 0.01 * trace.len() as f64 {
                    let error = (misses - truth).abs() / truth;
                    assert!(error <= 0.05, "{pages} pages: {misses} instead of {truth}");
                }
            }
        }
    }

    #[test]
    fn a_sample_of_a_file_that_is_used_all_over_has_its_share_of_the_pages() {
        for group_pages in [2, 64, 1024] {
            let mut curve = SampledCurve::new(group_pages);
            for _ in 0..3 {
                curve.touch(Access::Read, 1, 0, 64 * 1024);
            }
            let agreement = curve.finish();
            assert_eq!(agreement.curve.pages(), 64 * 1024);
            assert_eq!(agreement.curve.misses(Access::Read, 64 * 1024), 64 * 1024);
            assert_eq!(agreement.curve.misses(Access::Read, 60 * 1024), 3 * 64 * 1024);
            assert!(agreement.relative_error < 1e-9);
        }
    }

    #[test]
    fn no_page_is_in_both_samples_and_every_place_is_drawn() {
        for order in [1, 2, 4] {
            let mut drawn = [vec![0; 1 << order], vec![0; 1 << order]];
            for group in 0..1000 {
                let [one, other] = places_of(hash_of(3, group), order);
                assert_ne!(one, other);
                drawn[0][one as usize] += 1;
                drawn[1][other as usize] += 1;
            }
            let fair = 1000 / (1 << order);
            assert!(drawn.iter().flatten().all(|count| *count > fair / 2), "{drawn:?}");
        }
    }
}
