//! Curves from a sample of pages, for traces of billions of requests.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::super::hash_of;
use super::curve::Sampling;
use super::{Access, Curve, Distances, ExactCurve};

/// Shares of the pages that are tried, one after the other, until two samples agree.
const RATES: [f64; 5] = [0.001, 0.004, 0.016, 0.064, 0.25];

/// Sizes at which two samples are held against each other.
const SIZES: usize = 100;

/// Sizes at which fewer of the touches miss are left out: a relative error of nearly nothing.
const MISS_RATIO_MIN: f64 = 0.01;

/// A curve from two disjoint samples of the pages: SHARDS (Waldspurger et al., FAST 2015).
///
/// Samples are of pages, not of requests: of a sampled page every touch is seen.
#[derive(Debug)]
pub struct SampledCurve {
    /// Hashes below are of the one sample, hashes above the rest of their range of the other.
    below: u64,
    rate: f64,
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
    /// Two samples that each have this share of all pages, at most a half.
    #[must_use]
    pub fn new(rate: f64) -> Self {
        let rate = rate.clamp(1e-9, 0.5);
        Self {
            below: (rate * 2_f64.powi(64)) as u64,
            rate,
            samples: [Sample::default(), Sample::default()],
            reads: 0,
            writes: 0,
        }
    }

    /// Touches pages of a file, first to last.
    #[inline]
    pub fn touch(&mut self, access: Access, file: u32, first_page: u64, pages: u64) {
        match access {
            Access::Read => self.reads += pages,
            Access::Write => self.writes += pages,
        }
        for page in first_page..first_page.saturating_add(pages) {
            let hash = hash_of(file, page);
            if hash < self.below {
                self.samples[0].touch(access, hash);
            } else if hash > u64::MAX - self.below {
                self.samples[1].touch(access, hash);
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
                (one - other).abs() / (one + other)
            });
        let relative_error = apart.fold(0.0, f64::max);
        Agreement { rate: self.rate, relative_error, curve }
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
        let sampling = Sampling { rate: self.rate, samples: samples.len() as f64 };
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
    /// The largest relative difference of either sample's misses from their mean, over all sizes with
    /// more than one per cent of misses.
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
    for rate in RATES {
        let mut curve = SampledCurve::new(rate);
        pass(&mut curve)?;
        let agreement = curve.finish();
        if agreement.relative_error <= relative_error {
            return Ok(agreement);
        }
    }
    let mut curve = SampledCurve::new(0.5);
    pass(&mut curve)?;
    Ok(curve.finish())
}

/// Keys are hashes already.
#[derive(Debug, Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn finish(&self) -> u64 {
        // The upper bits of a sampled hash are much alike, so the lower ones take their place.
        self.0.rotate_left(32)
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
    fn two_samples_that_agree_are_as_near_to_the_truth_as_they_say_twice_over() {
        for seed in 0..3 {
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
                if truth > 0.01 * trace.len() as f64 && pages as f64 * agreement.rate > 20.0 {
                    let error = (misses - truth).abs() / truth;
                    assert!(error <= 0.1, "{pages} pages: {misses} instead of {truth}");
                }
            }
        }
    }
}
