//! Processes that read files of their own do not miss alike.
//!
//! Where most requests hit and misses take most of the time, who misses a little more asks less
//! often, so that its pages leave the cache first, and so on: some processes end with all of their
//! data in the cache and the others with little. In a cache that keeps what was used last, a
//! process that asks `x` times a second for one of `u` pages finds the share
//! `h = 1 − exp(−xτ/u)` (Che et al. 2002, with `τ` the same for all). With `m` for the share of the
//! time that misses take, a small difference between processes grows by `m` times `−ln(1 − h)`:
//! above 1, what all have alike is not what stays.

use ioscape_model::Workload;

use super::{Law, Load, Times, held, logistic};

#[cfg(test)]
mod tests;

/// Where misses take all of the time, differences between processes that find more than this
/// share of their data grow.
const EVEN_UNTIL: f64 = 1.0 - 1.0 / std::f64::consts::E;
/// Differences that grow by less do not come to much within a visit, and how sharp that is.
const GROWTH_MIN: f64 = 1.1;
const GROWTH_SOFTNESS: f64 = 0.05;
/// Nothing grows where less than this share is found.
const HELD_MIN: f64 = 0.53;

/// How the processes of a workload fare: all alike, or some well and the others not.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ways {
    even: Times,
    uneven: Option<Uneven>,
}

/// Some processes have their data cached, the others what is left.
#[derive(Clone, Debug, PartialEq)]
struct Uneven {
    /// How far it comes to this, 0 to 1.
    weight: f64,
    /// What requests take, and how many processes take that.
    groups: [(Times, f64); 2],
}

impl Law {
    /// How the processes of a workload fare.
    pub(super) fn ways(&self, work: &Workload) -> Ways {
        let even = self.times(work);
        let uneven = self.uneven_among(work, &even);
        Ways { even, uneven }
    }

    fn uneven_among(&self, work: &Workload, even: &Times) -> Option<Uneven> {
        let found = held(self.read_caches.last()?.bytes, work);
        if work.process_num < 2 || work.read_frac <= 0.0 || !(HELD_MIN..1.0).contains(&found) {
            return None;
        }
        let load = Load::of(work);
        let fast = self.finding(1.0, work).times(work);
        let missing = 1.0 - self.response_s(&fast, load) / self.response_s(even, load);
        let growth = -(1.0 - found).ln() * missing;
        let weight = self.unevenness * logistic((growth - GROWTH_MIN) / GROWTH_SOFTNESS);
        // As many win as it takes for the others to be alike among themselves: rounded, but not to
        // whole processes, for a law has to be smooth.
        let count = load.process_num;
        let winners = count * (found - EVEN_UNTIL) / (1.0 - EVEN_UNTIL) + 0.5;
        let winners = winners.clamp(1.0, count - 1.0);
        let losers = count - winners;
        let slow = self.finding((count * found - winners) / losers, work).times(work);
        Some(Uneven { weight, groups: [(fast, winners), (slow, losers)] })
    }

    /// The law where reads find this share of their data in the last cache.
    fn finding(&self, share: f64, work: &Workload) -> Self {
        let mut law = self.clone();
        if let Some(last) = law.read_caches.last_mut() {
            last.bytes = share * work.unique_bytes as f64;
        }
        law
    }

    /// Requests per second, as a logarithm, with one part of the time so many times as long.
    pub(super) fn ln_requests_per_s(
        &self,
        ways: &Ways,
        load: Load,
        scale: Option<(usize, f64)>,
    ) -> f64 {
        let [alike, apart] = self.ln_rates(ways, load, scale);
        alike + apart
    }

    /// By how much processes that fare unevenly are faster together than if all fared alike, as a
    /// logarithm: as far as it comes to that.
    pub(in super::super) fn apart(&self, work: &Workload) -> f64 {
        let [_, apart] = self.ln_rates(&self.ways(work), Load::of(work), None);
        apart
    }

    /// Requests per second if all fare alike, as a logarithm, and what to add to it.
    fn ln_rates(&self, ways: &Ways, load: Load, scale: Option<(usize, f64)>) -> [f64; 2] {
        let scaled = |times: &Times| scale.map_or(*times, |(part, by)| times.scaled(part, by));
        let alike = self.rate(&scaled(&ways.even), load).ln();
        let Some(Uneven { weight, groups }) = &ways.uneven else { return [alike, 0.0] };
        let of =
            |(times, process_num): (Times, f64)| (scaled(&times), Load { process_num, ..load });
        let together = self.rate_together(groups.map(of));
        let all_win = self.rate(&scaled(&groups[0].0), load);
        // Some could only win if all together do.
        [alike, weight * (together.min(all_win).ln() - alike).max(0.0)]
    }

    fn rate(&self, times: &Times, load: Load) -> f64 {
        load.process_num * load.depth / self.response_s(times, load)
    }

    /// Of processes beside each other, which share storage and processors.
    fn rate_together(&self, groups: [(Times, Load); 2]) -> f64 {
        let [mut rate, mut storage, mut processors] = [0.0; 3];
        for (times, load) in groups {
            let copy = [times.copy_reads, times.copy_writes];
            let here = self.rate(&times, load);
            rate += here;
            storage += here * self.busiest_s(&times, load);
            processors += here * self.extras.processed_s(copy, load.depth) / self.processors;
        }
        rate / storage.max(processors).max(1.0)
    }
}
