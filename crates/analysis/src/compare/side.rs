//! Two landscapes side by side: caches and regions, each pair with its ratio. Intervals are 95 %,
//! each by itself.

use ioscape_model::{
    Border, CacheComparison, Curve, Figure, Interval, Region, RegionComparison, RegionLevel,
    RegionName,
};

use super::{Difference, System, run};

/// Error rate of these intervals.
const LEVEL: f64 = 0.05;
/// Half of a 95 % interval over the standard deviation behind it.
const SIGMAS_OF_95: f64 = 1.96;

/// Caches, the largest first on each curve: that is the one which storage lies behind. A border on
/// both curves stands for one cache of each.
pub fn caches(baseline: &[Border], other: &[Border]) -> Vec<CacheComparison> {
    let mut rows = Vec::new();
    for curve in [Curve::Read, Curve::Write] {
        let of = |borders: &[Border]| -> Vec<Interval> {
            let on_curve =
                borders.iter().filter(|b| b.curve == curve || b.curve == Curve::Mixed).rev();
            on_curve.map(capacity).collect()
        };
        let (from, to) = (of(baseline), of(other));
        for rank in 0..from.len().max(to.len()) {
            let (from, to) = (from.get(rank).copied(), to.get(rank).copied());
            rows.push(CacheComparison {
                curve,
                baseline_capacity_bytes: from,
                capacity_bytes: to,
                ratio: from.zip(to).map(|(from, to)| capacity_ratio(&from, &to)),
            });
        }
    }
    rows
}

fn capacity(border: &Border) -> Interval {
    let at = border.unique_bytes;
    Interval { mean: at.capacity, low: at.low, high: at.high }
}

/// Variance of a figure's logarithm, from its 95 % interval.
pub(super) fn ln_variance(low: f64, high: f64) -> f64 {
    ((high / low).ln() / (2.0 * SIGMAS_OF_95)).powi(2)
}

fn capacity_ratio(from: &Interval, to: &Interval) -> Figure {
    let sd = (ln_variance(from.low, from.high) + ln_variance(to.low, to.high)).sqrt();
    Difference::exact((to.mean / from.mean).ln(), sd).at(LEVEL).ratio
}

/// Regions of one name in both, and those that only one of them has. The first of several caches is
/// the one that another map calls the cache.
pub fn regions(
    baseline: (&System<'_>, &[Region]),
    other: (&System<'_>, &[Region]),
) -> Vec<RegionComparison> {
    let run = run::spread(&baseline.0.canaries, &other.0.canaries);
    let named = |regions: &[Region], name: RegionName| {
        let exact = regions.iter().position(|region| region.name == name);
        let first = name.with_first_unnumbered();
        let is_alike = |region: &Region| region.name.with_first_unnumbered() == first;
        exact.or_else(|| regions.iter().position(is_alike))
    };
    let mut names: Vec<RegionName> = baseline.1.iter().map(|region| region.name).collect();
    let others = other.1.iter().map(|region| region.name);
    names.extend(others.filter(|name| named(baseline.1, *name).is_none()));
    let row = |name: RegionName| {
        let level = |(system, regions): (&System<'_>, &[Region])| {
            let region = &regions[named(regions, name)?];
            Some((region.unique_bytes, focal(system, region)))
        };
        let (from, to) = (level(baseline), level(other));
        let ratio = from.zip(to).map(|((_, from), (_, to))| {
            let sd = from.sd.hypot(to.sd);
            Difference::exact(to.value - from.value, sd).with_run(&run).at(LEVEL).ratio
        });
        let shown = |(unique_bytes, level): (_, Difference)| RegionLevel {
            unique_bytes,
            throughput_bytes_per_s: level.at(LEVEL).ratio,
        };
        RegionComparison { name, baseline: from.map(shown), other: to.map(shown), ratio }
    };
    names.into_iter().map(row).collect()
}

/// Throughput at a region's focal point: measured, or predicted where it was not.
fn focal(system: &System<'_>, region: &Region) -> Difference {
    let measured = system.samples.iter().find(|sample| sample.workload == region.focal);
    if let Some(sample) = measured {
        return Difference::exact(sample.ln_throughput, sample.sd);
    }
    let guess = system.answers.guess(&region.focal);
    Difference::exact(guess.ln_throughput, guess.sd)
}
