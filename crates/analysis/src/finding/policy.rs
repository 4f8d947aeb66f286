//! Write-back or write-through (Chen and Patterson 1994, section 8.1.3, Fig. 9): a cache that
//! writes through gives its writers the speed of the storage however little they write.

use std::fmt::Write as _;

use ioscape_model::units::{show_rate, show_seconds};
use ioscape_model::{Access, Estimate, Finding, FindingCode, Interval, Workload};

use super::family::{Axis, graph, size};
use super::{Evidence, FAR_BEYOND, finding};

/// Writes that would fit are as slow as writes that do not: within this factor.
const SAME_SPEED_MAX: f64 = 1.5;
/// Writes are absorbed: faster than beyond the cache by this factor, surely.
const ABSORBED_MIN: f64 = 1.5;
/// A write past this machine's cache takes this many times as long as one into it.
const DIRECT_SLOWER_MIN: f64 = 3.0;
/// Reads of the same cached data are this much faster than writes that go through …
const READS_FASTER_MIN: f64 = 3.0;
/// … and surely this much.
const READS_FASTER_LOW_MIN: f64 = 2.0;
/// The share of written pages that were dirty already, above which writes are absorbed …
const REDIRTIED_HIGH: f64 = 0.5;
/// … and below which each page was clean again by the time it was written anew.
const REDIRTIED_LOW: f64 = 0.1;

/// What a cache does with written data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Policy {
    WriteBack,
    WriteThrough,
}

/// A policy and what it was concluded from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict<'a> {
    pub(super) policy: Policy,
    clues: Clues<'a>,
}

/// Workloads that differ in nothing but `unique_bytes` and `read_frac`.
#[derive(Clone, Copy, Debug)]
struct Clues<'a> {
    /// Writes of data that fit every cache.
    small_writes: &'a Estimate,
    /// Writes of far more data than the cache holds.
    large_writes: Option<&'a Estimate>,
    /// Reads of what the small writes write.
    small_reads: Option<&'a Estimate>,
    /// Writes that go past this machine's cache, to a server.
    direct_writes: Option<Direct<'a>>,
    /// Share of the pages written by the small writes that were dirty already.
    redirtied_fraction: Option<f64>,
}

/// Writes past the cache.
#[derive(Clone, Copy, Debug)]
struct Direct<'a> {
    writes: &'a Estimate,
    /// Median time of one over that of a write into the cache: a few writes that wait for the server's disk
    /// would decide the mean.
    times_as_long: f64,
}

/// The sentence.
pub(super) fn write_policy(evidence: &Evidence<'_>) -> Option<Finding> {
    let verdict = policy(evidence)?;
    let clues = verdict.clues;
    let small = clues.small_writes.throughput_bytes_per_s;
    let small_bytes = clues.small_writes.workload.unique_bytes as f64;
    let mut figures = vec![("small_bytes", small_bytes), ("small_write_bytes_per_s", small.mean)];
    let mut seen = format!("writes within {} run at {}", size(small_bytes), show_rate(small.mean));
    if let Some(large) = clues.large_writes {
        let (large_bytes, rate) =
            (large.workload.unique_bytes as f64, &large.throughput_bytes_per_s);
        let _ = write!(seen, ", writes over {} at {}", size(large_bytes), show_rate(rate.mean));
        figures.extend([("large_bytes", large_bytes), ("large_write_bytes_per_s", rate.mean)]);
        figures.push(("small_over_large_write_ratio", small.mean / rate.mean));
    }
    if let Some(reads) = clues.small_reads {
        let rate = &reads.throughput_bytes_per_s;
        let _ =
            write!(seen, ", reads of the same {} at {}", size(small_bytes), show_rate(rate.mean));
        figures.push(("small_read_bytes_per_s", rate.mean));
        figures.push(("read_over_small_write_ratio", rate.mean / small.mean));
    }
    if let Some(fraction) = clues.redirtied_fraction {
        let _ = write!(seen, "; {:.0} % of the pages written were still dirty", fraction * 100.0);
        figures.push(("write_absorbed_fraction", fraction));
    }
    if let Some(Direct { writes, times_as_long }) = clues.direct_writes {
        let of_size = |estimate: &Estimate| size(estimate.workload.size_mean as f64);
        let median = |estimate: &Estimate| show_seconds(estimate.response_time_s.p50);
        let _ = write!(
            seen,
            "; half of them take less than {} for {}, half of those past the cache less than {} for {}",
            median(clues.small_writes),
            of_size(clues.small_writes),
            median(writes),
            of_size(writes)
        );
        figures.push(("direct_over_small_write_time_ratio", times_as_long));
    }
    let conclusion = match verdict.policy {
        Policy::WriteBack => "The cache is write-back: it absorbs writes",
        Policy::WriteThrough if evidence.target.is_served() => {
            "This machine's cache is write-through: each write is handed on before it returns, whether its \
             data fit the cache or not"
        }
        Policy::WriteThrough => {
            "The cache is write-through: each write waits for the storage, whether its data fit \
             the cache or not"
        }
    };
    let mount = match verdict.policy {
        Policy::WriteThrough if mounted_sync(evidence) => " The filesystem is mounted with `sync`.",
        _ => "",
    };
    Some(finding(FindingCode::WritePolicy, format!("{conclusion} ({seen}).{mount}"), &figures))
}

/// The verdict of the first workload, smallest data first, that allows one.
pub(super) fn policy<'a>(evidence: &Evidence<'a>) -> Option<Verdict<'a>> {
    if evidence.target.is_in_memory() {
        return None;
    }
    let mut writes: Vec<&Estimate> =
        evidence.estimates.iter().filter(|estimate| is_small_write(evidence, estimate)).collect();
    writes.sort_by_key(|estimate| estimate.workload.unique_bytes);
    writes.into_iter().find_map(|small_writes| {
        let clues = clues(evidence, small_writes);
        judge(&clues).map(|policy| Verdict { policy, clues })
    })
}

/// Write-only, buffered without fsync, and well within whatever cache there is.
fn is_small_write(evidence: &Evidence<'_>, estimate: &Estimate) -> bool {
    const WELL_WITHIN: f64 = 0.8;
    let work = &estimate.workload;
    let buffered = Workload { access: Workload::default().access, fsync_every: 0, ..work.clone() };
    let onsets = evidence.read_border().into_iter().chain(evidence.write_borders());
    let cache_bytes =
        onsets.map(|border| border.unique_bytes.onset).fold(f64::INFINITY, f64::min) * WELL_WITHIN;
    let measured = estimate.throughput_bytes_per_s.mean > 0.0;
    work.read_frac <= 0.0
        && *work == buffered
        && measured
        && work.unique_bytes as f64 <= cache_bytes
}

fn clues<'a>(evidence: &Evidence<'a>, small_writes: &'a Estimate) -> Clues<'a> {
    let work = &small_writes.workload;
    let beyond_bytes = evidence.read_border().map(|border| border.unique_bytes.capacity);
    let larger = graph(evidence.estimates, work, Axis::UniqueBytes).pop();
    let large_writes = larger
        .filter(|spot| beyond_bytes.is_some_and(|bytes| spot.value >= bytes * FAR_BEYOND))
        .map(|spot| spot.estimate);
    let read_only = graph(evidence.estimates, work, Axis::ReadFrac).pop();
    let small_reads = read_only.filter(|spot| spot.value >= 1.0).map(|spot| spot.estimate);
    let fractions: Vec<f64> = evidence
        .points
        .iter()
        .filter(|point| point.workload == *work)
        .filter_map(|point| point.write_absorbed_fraction)
        .collect();
    let redirtied_fraction =
        (!fractions.is_empty()).then(|| fractions.iter().sum::<f64>() / fractions.len() as f64);
    let direct_writes = direct_writes(evidence, small_writes);
    Clues { small_writes, large_writes, small_reads, direct_writes, redirtied_fraction }
}

/// Before a server: direct writes, one at a time, of this size or down to a quarter of it. How they are
/// ordered and over how much data matters little where each is sent. SMB asks the server to pass its own
/// cache by, too.
fn direct_writes<'a>(evidence: &Evidence<'a>, small_writes: &Estimate) -> Option<Direct<'a>> {
    const TIMES_SMALLER_MAX: u64 = 4;
    let work = &small_writes.workload;
    let is_smb = matches!(evidence.target.filesystem.as_str(), "cifs" | "smb3" | "smbfs");
    if !evidence.target.is_served() || is_smb {
        return None;
    }
    let sizes = work.size_mean / TIMES_SMALLER_MAX..=work.size_mean;
    let is_alike = |estimate: &&Estimate| {
        let other = &estimate.workload;
        let is_single = !other.has_extras() && other.process_num == work.process_num;
        let is_write = other.access == Access::Direct && other.read_frac <= 0.0;
        is_write && is_single && sizes.contains(&other.size_mean)
    };
    let alike = evidence.all_estimates.iter().filter(is_alike);
    let writes = alike.max_by_key(|estimate| estimate.workload.size_mean)?;
    let times_as_long = writes.response_time_s.p50 / small_writes.response_time_s.p50;
    let is_known = times_as_long.is_finite() && times_as_long > 0.0;
    is_known.then_some(Direct { writes, times_as_long })
}

/// Speed alone must speak clearly; counters may confirm it or stand against it. Without writes
/// beyond the cache only counters can show that writes are absorbed.
fn judge(clues: &Clues<'_>) -> Option<Policy> {
    let small = &clues.small_writes.throughput_bytes_per_s;
    let over_large = clues.large_writes.map(|large| small.over(&large.throughput_bytes_per_s));
    let reads_over = clues.small_reads.map(|reads| reads.throughput_bytes_per_s.over(small));
    let reads_far_faster = reads_over
        .is_some_and(|ratio| ratio.mean >= READS_FASTER_MIN && ratio.low >= READS_FASTER_LOW_MIN);
    let redirtied = clues.redirtied_fraction;
    if redirtied.is_some_and(|fraction| fraction >= REDIRTIED_HIGH) {
        return Some(Policy::WriteBack);
    }
    let same_speed = |ratio: &Interval| ratio.mean <= SAME_SPEED_MAX;
    let absorbed = |ratio: &Interval| ratio.low >= ABSORBED_MIN;
    // On files of a server direct writes decide where they are clear; otherwise writes beyond the cache do,
    // as elsewhere.
    match clues.direct_writes.map(|direct| direct.times_as_long) {
        Some(times) if times <= SAME_SPEED_MAX && reads_far_faster => {
            return Some(Policy::WriteThrough);
        }
        Some(times)
            if times >= DIRECT_SLOWER_MIN && !over_large.is_some_and(|it| same_speed(&it)) =>
        {
            return Some(Policy::WriteBack);
        }
        _ => (),
    }
    let always_clean = redirtied.is_some_and(|fraction| fraction <= REDIRTIED_LOW);
    match over_large {
        Some(ratio) if same_speed(&ratio) && reads_far_faster => Some(Policy::WriteThrough),
        Some(ratio) if absorbed(&ratio) && !always_clean => Some(Policy::WriteBack),
        None if always_clean && reads_far_faster => Some(Policy::WriteThrough),
        _ => None,
    }
}

/// `sync` among the mount options.
fn mounted_sync(evidence: &Evidence<'_>) -> bool {
    let options = &evidence.target.mount_options;
    options.split([',', ' ', ';']).any(|option| option.trim() == "sync")
}
