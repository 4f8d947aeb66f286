//! The fastest that was seen, and which layer sets the pace in a region: copies in memory, the page
//! cache that absorbs writes, or the storage (Chen and Patterson 1994, sections 2 and 8.1.3).

use ioscape_model::units::{show_percent, show_rate};
use ioscape_model::{Estimate, Finding, FindingCode, Region};

use super::family::{Axis, graph, size};
use super::policy::{Policy, policy};
use super::{Evidence, FAR_BEYOND, finding, finding_in};

/// A layer is held to set the pace where it makes requests this many times slower.
const SLOWER_MIN: f64 = 1.5;
/// From this share on, all requests count as hits.
const HIT: f64 = 0.99;
/// Below this share, misses are more than stragglers.
const MISSED: f64 = 0.95;
/// Within a border, with its interval.
const WITHIN: f64 = 1.05;

/// The highest throughput within the cache and beyond it.
pub(super) fn peak_rates(evidence: &Evidence<'_>) -> Option<Finding> {
    let border = evidence.read_border().map(|border| border.unique_bytes);
    let (from, to) = border.map_or((f64::INFINITY, f64::INFINITY), |at| {
        (at.onset.min(at.capacity), at.capacity * FAR_BEYOND)
    });
    let bytes = |estimate: &&Estimate| estimate.workload.unique_bytes as f64;
    let within = peak(evidence.estimates.iter().filter(|estimate| bytes(estimate) <= from))?;
    let Some(beyond) = peak(evidence.estimates.iter().filter(|estimate| bytes(estimate) >= to))
    else {
        let text = format!("The highest throughput measured is {}.", peak_words(within));
        return Some(finding(FindingCode::PeakRates, text, &[("peak_bytes_per_s", rate(within))]));
    };
    let text = format!(
        "The highest throughput measured is {} within the cache, and {} with {} or more of data.",
        peak_words(within),
        peak_words(beyond),
        size(to),
    );
    let figures = [
        ("peak_cached_bytes_per_s", rate(within)),
        ("peak_storage_bytes_per_s", rate(beyond)),
        ("peak_storage_from_bytes", to),
    ];
    Some(finding(FindingCode::PeakRates, text, &figures))
}

fn rate(estimate: &Estimate) -> f64 {
    estimate.throughput_bytes_per_s.mean
}

fn peak<'a>(estimates: impl Iterator<Item = &'a Estimate>) -> Option<&'a Estimate> {
    estimates.filter(|x| rate(x) > 0.0).max_by(|a, b| rate(a).total_cmp(&rate(b)))
}

/// `24.9 GB/s (16 KiB requests, 50 % reads, 4 processes)`.
fn peak_words(estimate: &Estimate) -> String {
    let work = &estimate.workload;
    let processes = match work.process_num {
        1 => "1 process".to_owned(),
        count => format!("{count} processes"),
    };
    format!(
        "{} ({} requests, {} reads, {processes})",
        show_rate(rate(estimate)),
        size(work.size_mean as f64),
        show_percent(work.read_frac),
    )
}

/// What sets the pace of reads and of writes in a region, where the data tell.
pub(super) fn bound(evidence: &Evidence<'_>, region: &Region) -> Option<Finding> {
    let clauses: Vec<String> = [reads_bound(evidence, region), writes_bound(evidence, region)]
        .into_iter()
        .flatten()
        .collect();
    if clauses.is_empty() {
        return None;
    }
    Some(finding_in(region, FindingCode::Bound, &clauses.join("; "), &[]))
}

fn reads_bound(evidence: &Evidence<'_>, region: &Region) -> Option<String> {
    let reads = end(evidence, region, 1.0)?;
    let border = evidence.read_border().map(|border| border.unique_bytes);
    let fits = border.is_some_and(|at| region.unique_bytes.to <= at.capacity * WITHIN);
    let beyond = border.is_some_and(|at| region.unique_bytes.from * WITHIN >= at.capacity);
    let (hits, misses) = match reads.hit_fraction {
        Some(hit) => (hit >= HIT, hit < MISSED),
        None => (fits, beyond),
    };
    if hits {
        let copies = if evidence.target.is_simulated() { "the cache" } else { "copying in memory" };
        return Some(format!("reads run at the speed of {copies}"));
    }
    let missed = reads.hit_fraction.map_or_else(String::new, |hit| {
        format!(" for {} of the requested pages", show_percent(1.0 - hit))
    });
    let slower = is_slower(evidence, region, reads, 1.0);
    (misses && slower).then(|| format!("reads wait for the storage{missed}"))
}

fn writes_bound(evidence: &Evidence<'_>, region: &Region) -> Option<String> {
    let writes = end(evidence, region, 0.0)?;
    match policy(evidence)?.policy {
        Policy::WriteThrough => {
            Some("writes wait for the storage, because the cache writes through".to_owned())
        }
        Policy::WriteBack => {
            let borders = evidence.write_borders();
            let first = borders.first().copied().or_else(|| evidence.read_border())?.unique_bytes;
            if region.unique_bytes.to <= first.capacity * WITHIN {
                return Some("the page cache absorbs writes, which do not wait".to_owned());
            }
            let slower = is_slower(evidence, region, writes, 0.0);
            slower.then(|| "writes wait for the write-back to the storage".to_owned())
        }
    }
}

/// The read-only or the write-only point of a region's family.
fn end<'a>(evidence: &Evidence<'a>, region: &Region, read_frac: f64) -> Option<&'a Estimate> {
    let spots = graph(evidence.estimates, &region.focal, Axis::ReadFrac);
    let found = spots.into_iter().find(|spot| (spot.value - read_frac).abs() < 1e-9)?;
    Some(found.estimate)
}

/// True if reads or writes (`read_frac`) are [`SLOWER_MIN`] times slower here than in the first region, and
/// the focal vectors of both regions differ only in the data touched.
fn is_slower(evidence: &Evidence<'_>, region: &Region, here: &Estimate, read_frac: f64) -> bool {
    let Some(first) = evidence.regions.first() else { return false };
    let same = Axis::UniqueBytes.alone_differs(&region.focal, &first.focal);
    let there = end(evidence, first, read_frac);
    same && there.is_some_and(|there| rate(there) >= SLOWER_MIN * rate(here))
}
