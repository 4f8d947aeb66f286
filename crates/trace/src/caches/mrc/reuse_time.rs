//! Reuse times, which can be put together: two programs that share one cache.
//!
//! The model is AET (Hu et al., USENIX ATC 2016): a page leaves an LRU cache of `c` pages when it was
//! not touched for a time T, where the sum over t < T of P(t) is c; P(t) is the share of touches whose
//! next one, if any, is more than t later. Misses are then P(T).

use serde::{Deserialize, Serialize};

use super::super::page_table::PageTable;

/// Parts of an octave of time.
const PARTS: usize = 32;

/// Measures times between touches of the same page, in touches of any page.
#[derive(Debug, Default)]
pub struct ReuseTimes {
    /// Time of the last touch, modulo 2³², 0 for none: longer times than that are taken for shorter.
    last: PageTable<u32>,
    now: u64,
    buckets: Vec<u64>,
    cold: u64,
}

impl ReuseTimes {
    /// Nothing touched.
    #[must_use]
    pub fn new() -> Self {
        Self { last: PageTable::new(), now: 0, buckets: Vec::new(), cold: 0 }
    }

    /// Touches pages of a file, first to last.
    pub fn touch(&mut self, file: u32, first_page: u64, pages: u64) {
        let mut done = 0;
        while done < pages {
            let run = self.last.run(file, first_page.saturating_add(done), pages - done);
            for last in run.iter_mut() {
                self.now += 1;
                if *last == 0 {
                    self.cold += 1;
                } else {
                    let bucket = bucket_of(u64::from((self.now as u32).wrapping_sub(*last)));
                    if bucket >= self.buckets.len() {
                        self.buckets.resize(bucket + 1, 0);
                    }
                    self.buckets[bucket] += 1;
                }
                *last = (self.now as u32).max(1);
            }
            done += run.len() as u64;
        }
    }

    /// What is to be known of the times.
    #[must_use]
    pub fn finish(self) -> ReuseProfile {
        ReuseProfile { buckets: self.buckets, cold: self.cold, touches: self.now }
    }
}

/// Times between touches, counted: enough to know the misses in a cache shared with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReuseProfile {
    buckets: Vec<u64>,
    cold: u64,
    touches: u64,
}

impl ReuseProfile {
    /// Share of touches that are not followed, within this time, by another of their page.
    fn survival(&self) -> Survival {
        let total = self.touches.max(1) as f64;
        let mut times = vec![0.0];
        let mut shares = vec![1.0];
        let mut integral = vec![0.0];
        let mut left = self.touches;
        for (bucket, count) in self.buckets.iter().enumerate() {
            left -= count;
            let (time, share) = (start_of(bucket + 1), left as f64 / total);
            let last = times.len() - 1;
            integral
                .push(integral[last] + (time - times[last]) * f64::midpoint(shares[last], share));
            times.push(time);
            shares.push(share);
        }
        Survival { times, shares, integral }
    }
}

/// The share of touches that outlive a time, and its integral.
struct Survival {
    times: Vec<f64>,
    shares: Vec<f64>,
    integral: Vec<f64>,
}

impl Survival {
    /// The share and the integral at a time.
    fn at(&self, time: f64) -> (f64, f64) {
        let next = self.times.partition_point(|t| *t < time).max(1);
        let Some(end) = self.times.get(next) else {
            // Only first touches are left.
            let last = self.times.len() - 1;
            let share = self.shares[last];
            return (share, self.integral[last] + share * (time - self.times[last]));
        };
        let (start, low, high) = (self.times[next - 1], self.shares[next - 1], self.shares[next]);
        let part = (time - start) / (end - start);
        let share = low + (high - low) * part;
        (share, self.integral[next - 1] + (time - start) * f64::midpoint(low, share))
    }
}

/// Miss ratios of programs that share one LRU cache of so many pages: of each, its reuse times and
/// how many pages it touches per second.
#[must_use]
pub fn shared_miss_ratios(programs: &[(&ReuseProfile, f64)], cache_pages: u64) -> Vec<f64> {
    let survivals: Vec<_> = programs.iter().map(|(p, rate)| (p.survival(), *rate)).collect();
    let filled =
        |seconds: f64| survivals.iter().map(|(s, rate)| s.at(seconds * rate).1).sum::<f64>();
    let longest = programs.iter().map(|(p, rate)| 2.0 * p.touches as f64 / rate.max(1e-12));
    let mut high = longest.fold(0.0, f64::max);
    let mut low = 0.0;
    for _ in 0..100 {
        let middle = f64::midpoint(low, high);
        if filled(middle) < cache_pages as f64 { low = middle } else { high = middle }
    }
    survivals.iter().map(|(s, rate)| s.at(high * rate).0).collect()
}

/// The bucket of a time or distance.
pub(in super::super) fn bucket_of(time: u64) -> usize {
    let octave = time.max(1).ilog2() as usize;
    if octave < PARTS.ilog2() as usize {
        return time as usize;
    }
    let part = (time >> (octave - PARTS.ilog2() as usize)) as usize - PARTS;
    (octave - PARTS.ilog2() as usize + 1) * PARTS + part
}

/// The shortest time in a bucket.
pub(in super::super) fn start_of(bucket: usize) -> f64 {
    if bucket < 2 * PARTS {
        return bucket as f64;
    }
    ((PARTS + bucket % PARTS) as f64) * ((bucket / PARTS) as f64 - 1.0).exp2()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashMap};

    use super::super::{Access, ExactCurve};
    use super::*;

    fn random(state: &mut u64) -> f64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*state >> 11) as f64 / (1_u64 << 53) as f64
    }

    #[test]
    fn every_time_lies_in_its_bucket() {
        for time in (1..5000).chain([1 << 20, (1 << 31) + 12345, u64::from(u32::MAX)]) {
            let bucket = bucket_of(time);
            let time = time as f64;
            assert!(start_of(bucket) <= time && time < start_of(bucket + 1), "{time}");
        }
    }

    #[test]
    fn programs_that_share_a_cache_miss_as_often_as_lru_says() {
        let mut state = 7;
        let mut times = [ReuseTimes::new(), ReuseTimes::new()];
        let cache = 6000;
        let mut together = lru_of(cache as usize);
        let mut counts = [(0_u32, 0_u64); 2];
        for _ in 0..600_000 {
            // The one touches three times as often as the other, and more evenly.
            let who = usize::from(random(&mut state) < 0.25);
            let skew = if who == 0 { 2 } else { 4 };
            let page = (20_000.0 * random(&mut state).powi(skew)) as u64;
            times[who].touch(1, page, 1);
            counts[who].0 += 1;
            counts[who].1 += u64::from(!together(who as u32, page));
        }
        let [one, other] = times.map(ReuseTimes::finish);
        let predicted = shared_miss_ratios(&[(&one, 0.75), (&other, 0.25)], cache);
        for ((touches, misses), predicted) in counts.into_iter().zip(predicted) {
            let truth = misses as f64 / f64::from(touches);
            assert!((predicted - truth).abs() < 0.02, "{predicted} instead of {truth}");
        }
    }

    #[test]
    fn a_program_alone_has_the_exact_curve() {
        let mut state = 3;
        let (mut times, mut exact) = (ReuseTimes::new(), ExactCurve::new());
        for _ in 0..400_000 {
            let page = (30_000.0 * random(&mut state).powi(2)) as u64;
            times.touch(1, page, 1);
            exact.touch(Access::Read, 1, page, 1);
        }
        let (times, exact) = (times.finish(), exact.finish());
        for pages in [100, 1000, 5000, 10_000, 20_000] {
            let predicted = shared_miss_ratios(&[(&times, 1.0)], pages)[0];
            let truth = exact.miss_ratio(pages);
            assert!((predicted - truth).abs() < 0.015, "{pages}: {predicted} instead of {truth}");
        }
    }

    /// Whether touches hit in an LRU cache of both programs.
    fn lru_of(pages: usize) -> impl FnMut(u32, u64) -> bool {
        let (mut times, mut order, mut now) = (HashMap::new(), BTreeMap::new(), 0_u64);
        move |file, page| {
            now += 1;
            let before = times.insert((file, page), now);
            if let Some(before) = before {
                order.remove(&before);
            } else if order.len() == pages {
                let (_, oldest) = order.pop_first().unwrap();
                times.remove(&oldest);
            }
            order.insert(now, (file, page));
            before.is_some()
        }
    }
}
