//! What the graphs of one region's family say: request sizes, reads against writes, sequence,
//! concurrency (Chen and Patterson 1994, sections 7 and 8.1.1).

use std::fmt::Write as _;

use ioscape_model::units::show_rate;
use ioscape_model::{Finding, Interval, Region};

use super::family::{
    Axis, Effect, Spot, effect, graph, place, place_figures, range, ratio, size, times,
};
use super::{Evidence, finding};

/// A size is good from this share of the best throughput on.
const GOOD_SHARE: f64 = 0.75;
/// The curve is saturated from this share on.
const SATURATED_SHARE: f64 = 0.9;
/// A curve of sizes needs this many points before its shape is talked about.
const SIZES_MIN: usize = 3;

/// Reads against writes.
pub(super) fn read_write_ratio(evidence: &Evidence<'_>, region: &Region) -> Option<Finding> {
    let (writes, reads) = ends(evidence, region, Axis::ReadFrac, 0.5)?;
    let ratio = ratio(&reads.throughput(), &writes.throughput());
    let mix = |read_frac: f64| match read_frac {
        x if x <= 0.0 => "writes".to_owned(),
        x if x >= 1.0 => "reads".to_owned(),
        x => format!("{:.0} % reads", x * 100.0),
    };
    let (fewer, more) = (mix(writes.value), mix(reads.value));
    let comparison = match effect(&ratio) {
        Effect::Gain => format!("{more} run {} as fast as {fewer}", times(&ratio)),
        Effect::Loss => format!("{fewer} run {} as fast as {more}", times(&inverse(&ratio))),
        Effect::NotShown => {
            format!("no difference between {more} and {fewer} is shown (ratio {})", range(&ratio))
        }
    };
    let text = format!("In {}, {comparison}: {}.", place(region), rates(&reads, &writes));
    let mut figures = vec![
        ("reads_bytes_per_s", reads.throughput().mean),
        ("writes_bytes_per_s", writes.throughput().mean),
        ("reads_read_frac", reads.value),
        ("writes_read_frac", writes.value),
    ];
    figures.extend(ratio_figures(&ratio));
    figures.extend(place_figures(region));
    Some(finding("read_write_ratio", text, &figures))
}

/// What it brings that requests follow one another.
pub(super) fn sequentiality(evidence: &Evidence<'_>, region: &Region) -> Option<Finding> {
    let (random, sequential) = ends(evidence, region, Axis::SeqFrac, 0.5)?;
    let ratio = ratio(&sequential.throughput(), &random.throughput());
    let ends = format!(
        "{:.0} % sequential requests against {:.0} %",
        sequential.value * 100.0,
        random.value * 100.0
    );
    let comparison = match effect(&ratio) {
        Effect::Gain => format!("sequence brings {} the throughput", times(&ratio)),
        Effect::Loss => format!("sequence costs: {} the throughput", times(&ratio)),
        Effect::NotShown => format!("sequence has no effect shown (ratio {})", range(&ratio)),
    };
    let text =
        format!("In {}, {comparison}: {}, {ends}.", place(region), rates(&sequential, &random));
    let mut figures = vec![
        ("sequential_bytes_per_s", sequential.throughput().mean),
        ("random_bytes_per_s", random.throughput().mean),
    ];
    figures.extend(ratio_figures(&ratio));
    figures.extend(place_figures(region));
    Some(finding("sequentiality", text, &figures))
}

/// The sizes worth using: the smallest that gives 75 % of the best, and how far from there.
pub(super) fn good_sizes(evidence: &Evidence<'_>, region: &Region) -> Option<Finding> {
    let sizes = sizes(evidence, region)?;
    let best = best(&sizes)?;
    let good = |spot: &Spot<'_>| spot.throughput().mean >= GOOD_SHARE * best.throughput().mean;
    let from = sizes.iter().position(good)?;
    let to = sizes.iter().rposition(good)?;
    let (smallest, largest) = (&sizes[from], &sizes[to]);
    let all = sizes.iter().all(good);
    let (place, rate) = (place(region), show_rate(best.throughput().mean));
    let text = if all {
        format!(
            "In {place}, every request size from {} to {} gives at least 75 % of the best \
             throughput, {rate}.",
            size(smallest.value),
            size(largest.value),
        )
    } else {
        let reach = match (from == to, to + 1 == sizes.len()) {
            (true, _) => "only".to_owned(),
            (false, true) => "and more".to_owned(),
            (false, false) => format!("to {}", size(largest.value)),
        };
        format!(
            "In {place}, good request sizes are {} {reach}: at least 75 % of the best throughput, \
             {rate} at {}.",
            size(smallest.value),
            size(best.value),
        )
    };
    let mut figures = vec![
        ("smallest_good_size_bytes", smallest.value),
        ("largest_good_size_bytes", largest.value),
        ("smallest_good_bytes_per_s", smallest.throughput().mean),
        ("best_size_bytes", best.value),
        ("best_bytes_per_s", best.throughput().mean),
    ];
    figures.extend(place_figures(region));
    Some(finding("good_sizes", text, &figures))
}

/// Where larger requests stop to bring more, and whether they bring less in the end.
pub(super) fn saturation(evidence: &Evidence<'_>, region: &Region) -> Option<Finding> {
    let sizes = sizes(evidence, region)?;
    let best = best(&sizes)?;
    let (first, last) = (sizes.first()?, sizes.last()?);
    let share = |spot: &Spot<'_>| spot.throughput().mean / best.throughput().mean;
    let at = sizes.iter().position(|spot| share(spot) >= SATURATED_SHARE)?;
    let saturated = &sizes[at];
    let gain = ratio(&best.throughput(), &first.throughput());
    let fall = ratio(&last.throughput(), &best.throughput());
    let mut text = match effect(&gain) {
        Effect::Gain if at + 1 == sizes.len() => format!(
            "In {}, throughput still rises at the largest requests, {}: {} that of {} requests.",
            place(region),
            size(last.value),
            times(&gain),
            size(first.value),
        ),
        Effect::Gain => format!(
            "In {}, throughput saturates at requests of {}: {} that of {} requests, and larger \
             ones bring at most 10 % more.",
            place(region),
            size(saturated.value),
            times(&ratio(&saturated.throughput(), &first.throughput())),
            size(first.value),
        ),
        _ => format!(
            "In {}, requests larger than {} bring no gain that is shown (best ratio {}).",
            place(region),
            size(first.value),
            range(&gain),
        ),
    };
    if fall.high < SATURATED_SHARE {
        let _ =
            write!(text, " It falls again, to {} the best at {}.", times(&fall), size(last.value));
    }
    let mut figures = vec![
        ("saturation_size_bytes", saturated.value),
        ("saturation_bytes_per_s", saturated.throughput().mean),
        ("largest_size_bytes", last.value),
        ("gain_ratio", gain.mean),
        ("gain_low_ratio", gain.low),
        ("gain_high_ratio", gain.high),
        ("largest_over_best_ratio", fall.mean),
    ];
    figures.extend(place_figures(region));
    Some(finding("saturation", text, &figures))
}

/// What more processes bring.
pub(super) fn concurrency(evidence: &Evidence<'_>, region: &Region) -> Option<Finding> {
    let spots = graph(evidence.estimates, &region.focal, Axis::ProcessNum);
    let (one, most) = (spots.first()?, spots.last()?);
    if most.value <= one.value {
        return None;
    }
    let ratio_most = ratio(&most.throughput(), &one.throughput());
    let place = place(region);
    let counts = format!("{} against {:.0}", processes(most.value), one.value);
    let mut text = match effect(&ratio_most) {
        Effect::Gain => {
            format!(
                "In {place}, concurrency brings {} the throughput: {counts}",
                times(&ratio_most)
            )
        }
        Effect::Loss => {
            format!(
                "In {place}, concurrency costs: {} the throughput, {counts}",
                times(&ratio_most)
            )
        }
        Effect::NotShown => format!(
            "In {place}, concurrency has no effect shown (ratio {}), {counts}",
            range(&ratio_most)
        ),
    };
    let _ = write!(text, ", {}.", rates(most, one));
    let peak = best(&spots)?;
    let over_ends = [one, most].map(|end| ratio(&peak.throughput(), &end.throughput()));
    if over_ends.iter().all(|ratio| effect(ratio) == Effect::Gain) {
        let _ = write!(
            text,
            " The most, {}, is reached with {}.",
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
    figures.extend(place_figures(region));
    Some(finding("concurrency", text, &figures))
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

fn best<'s, 'a>(spots: &'s [Spot<'a>]) -> Option<&'s Spot<'a>> {
    spots.iter().max_by(|a, b| a.throughput().mean.total_cmp(&b.throughput().mean))
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
