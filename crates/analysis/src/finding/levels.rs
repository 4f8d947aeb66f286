//! How many levels the storage shows and how fast they are, and whether it keeps falling beyond
//! the last border (Chen and Patterson 1993, on a large server: a tail that the look-up of
//! indirect blocks explained).

use std::fmt::Write as _;

use ioscape_model::units::{show_rate, three_digits};
use ioscape_model::{Estimate, Finding, FindingCode, Interval, Region};

use super::family::{Axis, Effect, Spot, graph, size, times};
use super::{Evidence, finding};

/// One clause per region: extent and throughput at the focal vector, where it was measured.
pub(super) fn levels(evidence: &Evidence<'_>) -> Option<Finding> {
    let rate_of = |region: &Region| {
        let at_focal = evidence.estimates.iter().find(|x| x.workload == region.focal)?;
        Some(at_focal.throughput_bytes_per_s)
    };
    let regions = evidence.regions;
    let rates: Vec<Option<Interval>> = regions.iter().map(rate_of).collect();
    if rates.iter().flatten().count() < 2 {
        return None;
    }
    let clauses: Vec<String> = regions
        .iter()
        .zip(&rates)
        .map(|(region, rate)| match rate {
            Some(rate) => format!("{} at {}", region.place(), show_rate(rate.mean)),
            None => format!("{}, not measured at its focal point", region.place()),
        })
        .collect();
    let mut text = format!("The storage shows {} levels: {}.", regions.len(), clauses.join("; "));
    let mut figures = vec![("levels_count", regions.len() as f64)];
    if let (Some(Some(first)), Some(Some(last))) = (rates.first(), rates.last()) {
        let fall = first.mean / last.mean;
        let _ = write!(text, " The first is {} times as fast as the last.", three_digits(fall));
        figures.push(("first_over_last_ratio", fall));
    }
    let names: Vec<String> =
        (1..=rates.len()).map(|number| format!("level_{number}_bytes_per_s")).collect();
    let known = names.iter().map(String::as_str).zip(&rates);
    figures.extend(known.filter_map(|(name, rate)| rate.map(|rate| (name, rate.mean))));
    Some(finding(FindingCode::Levels, text, &figures))
}

/// Whether requests that miss take longer the more data there are. Throughput falls beyond every
/// border because fewer and fewer requests hit; what is left after taking the hits out is a
/// property of the storage.
pub(super) fn declining_tail(evidence: &Evidence<'_>) -> Option<Finding> {
    // Behind a server's memory its storage answers: that is told, and reason enough.
    if evidence.target.is_served() {
        return None;
    }
    let at = evidence.read_border()?.unique_bytes;
    let tail = longest_read_tail(evidence, at.capacity)?;
    // Were the cache as large or as small as its interval allows, it would still have to show.
    let tails = [at.low, at.high, at.capacity].map(|bytes| misses(&tail, bytes));
    let rises: Vec<Interval> = tails.iter().filter_map(|misses| steady_rise(misses)).collect();
    let (misses, rise) = (tails.last()?, rises.last()?);
    let (first, last) = (misses.first()?, misses.last()?);
    if rises.len() < tails.len() {
        return None;
    }
    let text = format!(
        "Beyond the cache it keeps getting slower: a request that misses takes {} as long at {} as \
         at {}. Longer look-ups of metadata would do this (indirect blocks, a fragmented file), \
         and so would longer seeks; measuring on a file laid out in few large extents tells which.",
        times(rise),
        size(last.unique_bytes),
        size(first.unique_bytes),
    );
    let figures = [
        ("first_unique_bytes", first.unique_bytes),
        ("last_unique_bytes", last.unique_bytes),
        ("first_miss_s", first.miss_s.mean),
        ("last_miss_s", last.miss_s.mean),
        ("rise_ratio", rise.mean),
        ("rise_low_ratio", rise.low),
        ("rise_high_ratio", rise.high),
    ];
    Some(finding(FindingCode::DecliningTail, text, &figures))
}

/// The time of a miss at one amount of data.
#[derive(Clone, Copy, Debug)]
struct Miss {
    unique_bytes: f64,
    miss_s: Interval,
}

/// How much longer the last miss takes than the first, if they surely take longer and longer.
fn steady_rise(misses: &[Miss]) -> Option<Interval> {
    const POINTS_MIN: usize = 3;
    const RISE_MIN: f64 = 1.1;
    let rise = misses.last()?.miss_s.over(&misses.first()?.miss_s);
    let steady = misses.windows(2).all(|pair| pair[1].miss_s.mean > pair[0].miss_s.mean * 0.95);
    let shown = rise.effect() == Effect::Gain && rise.low >= RISE_MIN;
    (misses.len() >= POINTS_MIN && steady && shown).then_some(rise)
}

/// A curve's hits at its start, and its points at twice the cache and more.
struct Tail<'a> {
    hit: Spot<'a>,
    far: Vec<Spot<'a>>,
}

/// Of the curves of random reads the one with the most points far beyond the cache: read-ahead
/// would blur what a miss costs.
fn longest_read_tail<'a>(evidence: &Evidence<'a>, capacity_bytes: f64) -> Option<Tail<'a>> {
    let random_reads = evidence
        .estimates
        .iter()
        .map(|estimate| &estimate.workload)
        .filter(|work| work.read_frac >= 1.0 && work.seq_frac <= 0.0);
    let tails = random_reads.filter_map(|work| {
        let curve = graph(evidence.estimates, work, Axis::UniqueBytes);
        let hit = *curve.first().filter(|spot| spot.value < capacity_bytes)?;
        let far = curve.into_iter().filter(|spot| spot.value >= 2.0 * capacity_bytes).collect();
        Some(Tail { hit, far })
    });
    tails.max_by_key(|tail| tail.far.len())
}

/// The mean time of a request is `h` times that of a hit and `1 − h` times that of a miss; `h` as
/// it was counted, or the share of the data that the cache holds.
fn misses(tail: &Tail<'_>, capacity_bytes: f64) -> Vec<Miss> {
    let hit_s = tail.hit.estimate.response_time_s.mean;
    let miss = |spot: &Spot<'_>| {
        let hits = spot.estimate.hit_fraction.unwrap_or(capacity_bytes / spot.value);
        let mean_s = (spot.estimate.response_time_s.mean - hits * hit_s) / (1.0 - hits);
        let known = mean_s.is_finite() && mean_s > 0.0;
        let miss_s = with_width_of(mean_s, spot.estimate);
        known.then_some(Miss { unique_bytes: spot.value, miss_s })
    };
    tail.far.iter().filter_map(miss).collect()
}

/// A time is as uncertain as the throughput of the same requests.
fn with_width_of(mean: f64, estimate: &Estimate) -> Interval {
    let rate = estimate.throughput_bytes_per_s;
    Interval { mean, low: mean * rate.mean / rate.high, high: mean * rate.mean / rate.low }
}
