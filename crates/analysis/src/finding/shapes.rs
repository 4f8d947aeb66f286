//! What the graphs of one region's family say: request sizes, reads against writes, sequence,
//! concurrency (Chen and Patterson 1994, sections 7 and 8.1.1).

use std::fmt::Write as _;

use ioscape_model::graph::{GOOD_FRACTION, Good};
use ioscape_model::units::{show_percent, show_rate};
use ioscape_model::{Finding, FindingCode, Interval, Region};

use super::family::{Axis, Effect, Spot, graph, range, size, times};
use super::{Evidence, finding_in};

/// The curve is saturated from this share on.
const SATURATED_SHARE: f64 = 0.9;
/// A curve of sizes needs this many points before its shape is talked about.
const SIZES_MIN: usize = 3;

/// Reads against writes.
pub(super) fn read_write_ratio(evidence: &Evidence<'_>, region: &Region) -> Option<Finding> {
    let (writes, reads) = ends(evidence, region, Axis::ReadFrac, 0.5)?;
    let ratio = reads.throughput().over(&writes.throughput());
    let mix = |read_frac: f64| match read_frac {
        x if x <= 0.0 => "writes".to_owned(),
        x if x >= 1.0 => "reads".to_owned(),
        x => format!("{:.0} % reads", x * 100.0),
    };
    let (fewer, more) = (mix(writes.value), mix(reads.value));
    let comparison = match ratio.effect() {
        Effect::Gain => format!("{more} run {} as fast as {fewer}", times(&ratio)),
        Effect::Loss => format!("{fewer} run {} as fast as {more}", times(&inverse(&ratio))),
        Effect::NotShown => {
            format!("no difference between {more} and {fewer} is shown (ratio {})", range(&ratio))
        }
    };
    let rates = match ratio.effect() {
        Effect::Loss => rates(&writes, &reads),
        _ => rates(&reads, &writes),
    };
    let clause = format!("{comparison}: {rates}");
    let mut figures = vec![
        ("reads_bytes_per_s", reads.throughput().mean),
        ("writes_bytes_per_s", writes.throughput().mean),
        ("reads_read_frac", reads.value),
        ("writes_read_frac", writes.value),
    ];
    figures.extend(ratio_figures(&ratio));
    Some(finding_in(region, FindingCode::ReadWriteRatio, &clause, &figures))
}

/// What sequential requests bring: the two ends of the graph of `seq_frac`.
pub(super) fn sequentiality(evidence: &Evidence<'_>, region: &Region) -> Option<Finding> {
    let (random, sequential) = ends(evidence, region, Axis::SeqFrac, 0.5)?;
    let ratio = sequential.throughput().over(&random.throughput());
    let ends = format!(
        "{:.0} % sequential requests against {:.0} %",
        sequential.value * 100.0,
        random.value * 100.0
    );
    let comparison = match ratio.effect() {
        Effect::Gain => format!("sequential access brings {} the throughput", times(&ratio)),
        Effect::Loss => format!("sequential access costs throughput: {} as much", times(&ratio)),
        Effect::NotShown => {
            format!("sequential access has no effect shown (ratio {})", range(&ratio))
        }
    };
    let rates = rates(&sequential, &random);
    let clause = format!("{comparison}: {rates}, {ends}");
    let mut figures = vec![
        ("sequential_bytes_per_s", sequential.throughput().mean),
        ("random_bytes_per_s", random.throughput().mean),
    ];
    figures.extend(ratio_figures(&ratio));
    Some(finding_in(region, FindingCode::Sequentiality, &clause, &figures))
}

/// The sizes worth using: those around the best that give 75 % of it. Nothing is said about sizes
/// that were not tried.
pub(super) fn good_sizes(evidence: &Evidence<'_>, region: &Region) -> Option<Finding> {
    let sizes = sizes(evidence, region)?;
    let Good { from, best, to } = Good::around_best(&throughputs(&sizes))?;
    let best = &sizes[best];
    let (smallest, largest) = (&sizes[from], &sizes[to]);
    let rate = show_rate(best.throughput().mean);
    let clause = if to - from + 1 == sizes.len() {
        format!(
            "every request size tried, {} to {}, gives at least {} of the best \
             throughput, {rate}",
            size(smallest.value),
            size(largest.value),
            show_percent(GOOD_FRACTION),
        )
    } else {
        let end = if to + 1 == sizes.len() { ", the largest tried" } else { "" };
        let (from_size, to_size) = (size(smallest.value), size(largest.value));
        let sizes = if from == to {
            format!("the only good request size is {to_size}{end}")
        } else {
            format!("good request sizes are {from_size} to {to_size}{end}")
        };
        format!(
            "{sizes}: at least {} of the best throughput, {rate} at {}",
            show_percent(GOOD_FRACTION),
            size(best.value),
        )
    };
    let figures = [
        ("smallest_good_size_bytes", smallest.value),
        ("largest_good_size_bytes", largest.value),
        ("smallest_good_bytes_per_s", smallest.throughput().mean),
        ("best_size_bytes", best.value),
        ("best_bytes_per_s", best.throughput().mean),
    ];
    Some(finding_in(region, FindingCode::GoodSizes, &clause, &figures))
}

/// The size from which larger requests bring little more, and whether the largest bring less.
pub(super) fn saturation(evidence: &Evidence<'_>, region: &Region) -> Option<Finding> {
    let sizes = sizes(evidence, region)?;
    let best = &sizes[Good::around_best(&throughputs(&sizes))?.best];
    let (first, last) = (sizes.first()?, sizes.last()?);
    let share = |spot: &Spot<'_>| spot.throughput().mean / best.throughput().mean;
    let at = sizes.iter().position(|spot| share(spot) >= SATURATED_SHARE)?;
    let saturated = &sizes[at];
    let gain = best.throughput().over(&first.throughput());
    let fall = last.throughput().over(&best.throughput());
    let clause = saturation_words(&sizes, at, &gain, &fall);
    let figures = [
        ("saturation_size_bytes", saturated.value),
        ("saturation_bytes_per_s", saturated.throughput().mean),
        ("largest_size_bytes", last.value),
        ("gain_ratio", gain.mean),
        ("gain_low_ratio", gain.low),
        ("gain_high_ratio", gain.high),
        ("largest_over_best_ratio", fall.mean),
    ];
    Some(finding_in(region, FindingCode::Saturation, &clause, &figures))
}

/// `gain` is the best over the smallest size, `fall` the largest over the best; the size at place
/// `at` is the first that is nearly as good as the best.
fn saturation_words(sizes: &[Spot<'_>], at: usize, gain: &Interval, fall: &Interval) -> String {
    let (first, last) = (&sizes[0], &sizes[sizes.len() - 1]);
    let (smallest, largest) = (size(first.value), size(last.value));
    let saturated = &sizes[at];
    let falls = fall.high < SATURATED_SHARE;
    if gain.effect() != Effect::Gain {
        let over_first = last.throughput().over(&first.throughput());
        return if falls {
            format!(
                "larger requests bring less: {} at {largest} that of {smallest} requests",
                times(&over_first)
            )
        } else {
            format!("request size has no effect shown (ratio of the best {})", range(gain))
        };
    }
    let before = last.throughput().over(&sizes[sizes.len() - 2].throughput());
    let reached = times(&saturated.throughput().over(&first.throughput()));
    let mut text = match at {
        0 => format!(
            "{smallest} requests, the smallest tried, already give at least {} of the best \
             throughput",
            show_percent(SATURATED_SHARE)
        ),
        at if at + 1 < sizes.len() => format!(
            "throughput saturates at requests of {}: {reached} that of {smallest} requests, and \
             larger ones bring at most 10 % more",
            size(saturated.value),
        ),
        _ if before.effect() == Effect::Gain => format!(
            "throughput still rises at the largest requests tried, {largest}: {reached} that of \
             {smallest} requests"
        ),
        _ => format!(
            "throughput rises up to the largest requests tried, {largest}: {reached} that of \
             {smallest} requests; whether it still rises there is not shown"
        ),
    };
    if falls {
        let _ = write!(text, "; it falls again, to {} the best at {largest}", times(fall));
    }
    text
}

/// What more processes bring.
pub(super) fn concurrency(evidence: &Evidence<'_>, region: &Region) -> Option<Finding> {
    let spots = graph(evidence.estimates, &region.focal, Axis::ProcessNum);
    let (one, most) = (spots.first()?, spots.last()?);
    if most.value <= one.value {
        return None;
    }
    let ratio_most = most.throughput().over(&one.throughput());
    let counts = format!("{} against {:.0}", processes(most.value), one.value);
    let clause = match ratio_most.effect() {
        Effect::Gain => {
            format!("concurrency brings {} the throughput: {counts}", times(&ratio_most))
        }
        Effect::Loss => {
            format!("concurrency costs throughput: {} as much, {counts}", times(&ratio_most))
        }
        Effect::NotShown => {
            format!("concurrency has no effect shown (ratio {}), {counts}", range(&ratio_most))
        }
    };
    let mut clause = format!("{clause}, {}", rates(most, one));
    let peak = &spots[Good::around_best(&throughputs(&spots))?.best];
    let over_ends = [one, most].map(|end| peak.throughput().over(&end.throughput()));
    if over_ends.iter().all(|ratio| ratio.effect() == Effect::Gain) {
        let _ = write!(
            clause,
            ". The most, {}, is reached with {}",
            show_rate(peak.throughput().mean),
            processes(peak.value)
        );
    }
    let mut figures = vec![
        ("process_num_min", one.value),
        ("process_num_max", most.value),
        ("process_num_best", peak.value),
        ("one_bytes_per_s", one.throughput().mean),
        ("most_bytes_per_s", most.throughput().mean),
        ("best_bytes_per_s", peak.throughput().mean),
    ];
    figures.extend(ratio_figures(&ratio_most));
    Some(finding_in(region, FindingCode::Concurrency, &clause, &figures))
}

/// The two ends of a graph, where they are at least `apart` from one another.
fn ends<'a>(
    evidence: &Evidence<'a>,
    region: &Region,
    axis: Axis,
    apart: f64,
) -> Option<(Spot<'a>, Spot<'a>)> {
    let spots = graph(evidence.estimates, &region.focal, axis);
    let (low, high) = (*spots.first()?, *spots.last()?);
    (high.value - low.value >= apart).then_some((low, high))
}

fn sizes<'a>(evidence: &Evidence<'a>, region: &Region) -> Option<Vec<Spot<'a>>> {
    let sizes = graph(evidence.estimates, &region.focal, Axis::SizeMean);
    (sizes.len() >= SIZES_MIN).then_some(sizes)
}

fn throughputs(spots: &[Spot<'_>]) -> Vec<f64> {
    spots.iter().map(|spot| spot.throughput().mean).collect()
}

fn inverse(ratio: &Interval) -> Interval {
    Interval { mean: 1.0 / ratio.mean, low: 1.0 / ratio.high, high: 1.0 / ratio.low }
}

fn rates(above: &Spot<'_>, below: &Spot<'_>) -> String {
    format!("{} against {}", show_rate(above.throughput().mean), show_rate(below.throughput().mean))
}

fn processes(count: f64) -> String {
    if count > 1.0 { format!("{count:.0} processes") } else { "1 process".to_owned() }
}

fn ratio_figures(ratio: &Interval) -> [(&'static str, f64); 3] {
    [("ratio", ratio.mean), ("ratio_low", ratio.low), ("ratio_high", ratio.high)]
}
