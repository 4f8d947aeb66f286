//! How many levels the storage shows and how fast they are, and whether it keeps falling beyond
//! the last border (Chen and Patterson 1993, on a large server: a tail that the look-up of
//! indirect blocks explained).

use ioscape_model::units::{show_rate, three_digits};
use ioscape_model::{Estimate, Finding, Interval};

use super::family::{Axis, Effect, Spot, effect, graph, place, ratio, size, times};
use super::{Evidence, finding};

/// One clause per region: extent and throughput at the focal vector.
pub(super) fn levels(evidence: &Evidence<'_>) -> Option<Finding> {
    let mut clauses = Vec::new();
    let mut rates = Vec::new();
    for region in evidence.regions {
        let at_focal = evidence.estimates.iter().find(|x| x.workload == region.focal)?;
        let rate = at_focal.throughput_bytes_per_s;
        clauses.push(format!("{} at {}", place(region), show_rate(rate.mean)));
        rates.push(rate);
    }
    let (first, last) = (rates.first()?, rates.last()?);
    if rates.len() < 2 {
        return None;
    }
    let fall = ratio(first, last);
    let names: Vec<String> =
        (1..=rates.len()).map(|number| format!("level_{number}_bytes_per_s")).collect();
    let text = format!(
        "The storage shows {} levels: {}. The first is {} times as fast as the last.",
        rates.len(),
        clauses.join(", "),
        three_digits(fall.mean),
    );
    let mut figures =
        vec![("levels_count", rates.len() as f64), ("first_over_last_ratio", fall.mean)];
    figures.extend(names.iter().map(String::as_str).zip(rates.iter().map(|rate| rate.mean)));
    Some(finding("levels", text, &figures))
}

/// Whether requests that miss take longer the more data there are. Throughput falls beyond every
/// border because fewer and fewer requests hit; what is left after taking the hits out is a
/// property of the storage.
pub(super) fn declining_tail(evidence: &Evidence<'_>) -> Option<Finding> {
    const RISE_MIN: f64 = 1.1;
    let misses = longest_read_tail(evidence)?;
    let (first, last) = (misses.first()?, misses.last()?);
    let rise = ratio(&last.miss_s, &first.miss_s);
    let steady_rise =
        misses.windows(2).all(|pair| pair[1].miss_s.mean > pair[0].miss_s.mean * 0.95);
    if effect(&rise) != Effect::Gain || rise.low < RISE_MIN || !steady_rise {
        return None;
    }
    let text = format!(
        "Beyond the cache it keeps getting slower: a request that misses takes {} as long at {} as \
         at {}. Longer look-ups of metadata would do this (indirect blocks, a fragmented file), \
         and so would longer seeks; measuring on a file laid out in few large extents tells which.",
        times(&rise),
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
    Some(finding("declining_tail", text, &figures))
}

/// The time of a miss at one amount of data.
#[derive(Clone, Copy, Debug)]
struct Miss {
    unique_bytes: f64,
    miss_s: Interval,
}

/// The read-only curve with the most points at twice the cache and more.
fn longest_read_tail(evidence: &Evidence<'_>) -> Option<Vec<Miss>> {
    const POINTS_MIN: usize = 3;
    let capacity_bytes = evidence.read_border()?.unique_bytes.capacity;
    let curves = evidence
        .estimates
        .iter()
        .filter(|estimate| estimate.workload.read_frac >= 1.0)
        .map(|estimate| graph(evidence.estimates, &estimate.workload, Axis::UniqueBytes));
    let tails = curves.map(|curve| misses(&curve, capacity_bytes));
    tails.filter(|tail| tail.len() >= POINTS_MIN).max_by_key(Vec::len)
}

/// The mean time of a request is `h` times that of a hit and `1 − h` times that of a miss; `h` as
/// it was counted, or the share of the data that the cache holds.
fn misses(curve: &[Spot<'_>], capacity_bytes: f64) -> Vec<Miss> {
    let Some(hit) = curve.first().filter(|spot| spot.value < capacity_bytes) else { return vec![] };
    let hit_s = hit.estimate.response_time_s.mean;
    let far = curve.iter().filter(|spot| spot.value >= 2.0 * capacity_bytes);
    far.filter_map(|spot| {
        let hits = spot.estimate.hit_fraction.unwrap_or(capacity_bytes / spot.value);
        let mean_s = (spot.estimate.response_time_s.mean - hits * hit_s) / (1.0 - hits);
        let known = mean_s.is_finite() && mean_s > 0.0;
        let miss_s = with_width_of(mean_s, spot.estimate);
        known.then_some(Miss { unique_bytes: spot.value, miss_s })
    })
    .collect()
}

/// A time is as uncertain as the throughput of the same requests.
fn with_width_of(mean: f64, estimate: &Estimate) -> Interval {
    let rate = estimate.throughput_bytes_per_s;
    Interval { mean, low: mean * rate.mean / rate.high, high: mean * rate.mean / rate.low }
}
