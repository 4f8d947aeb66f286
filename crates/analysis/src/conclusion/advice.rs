//! What to do, with the figures that speak for it: each kind of advice looks at what it needs and is
//! silent where the data do not carry it. Sorted by what it brings.

use ioscape_model::graph::{Axis, first_good};
use ioscape_model::units::{show_iops, show_rate, show_seconds, show_size, three_digits};
use ioscape_model::{Access, Advice, AdviceKind, Grade, Region};

use super::{Basis, HIT, ratio, trust};
use crate::finding::family::graph;

/// Less than this is not worth a sentence.
const WORTH: f64 = 1.5;
/// With 32 in flight in place of one, less than this is nothing.
const QUEUE_WORTH: f64 = 1.3;
/// Reads and writes that saturate within this of each other run into a limit on requests.
const ALIKE: f64 = 1.2;

/// All advice that the data carry, the largest gain first.
pub(super) fn advice(seen: &Basis<'_>) -> Vec<Advice> {
    let device = [more_in_flight(seen), larger_requests(seen), group_commits(seen)];
    let memory = [smaller_working_set(seen), more_memory(seen), faster_device(seen)];
    let mut all: Vec<Advice> = memory.into_iter().chain(device).flatten().collect();
    let gain = |advice: &Advice| advice.figures.get("gain_ratio").copied().unwrap_or_default();
    all.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
    again(seen).into_iter().chain(all).collect()
}

fn advise(kind: AdviceKind, text: String, figures: &[(&str, f64)]) -> Advice {
    let figures = figures.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    Advice { kind, text, figures }
}

fn again(seen: &Basis<'_>) -> Option<Advice> {
    let trust = trust::trust(seen.record);
    if trust.grade < Grade::D {
        return None;
    }
    let text = "on a quiet machine, or with a longer --budget: these figures decide nothing";
    Some(advise(AdviceKind::MeasureAgain, text.to_owned(), &[]))
}

fn smaller_working_set(seen: &Basis<'_>) -> Option<Advice> {
    let (border, ends) = (seen.read_border?, seen.reads()?);
    let gain = Some(ends.ratio()).filter(|gain| *gain >= WORTH && gain.is_finite())?;
    let sure_bytes = border.unique_bytes.low.min(border.unique_bytes.onset);
    let text = format!(
        "up to {} for sure, reads keep {}; with {} they get {} (× {})",
        show_size(sure_bytes),
        show_rate(ends.near.throughput().mean),
        show_size(ends.far.value),
        show_rate(ends.far.throughput().mean),
        three_digits(gain)
    );
    let figures = [
        ("gain_ratio", gain),
        ("working_set_max_bytes", sure_bytes),
        ("near_bytes_per_s", ends.near.throughput().mean),
        ("far_bytes_per_s", ends.far.throughput().mean),
    ];
    Some(advise(AdviceKind::SmallerWorkingSet, text, &figures))
}

/// A page found in memory against one read from the device.
fn more_memory(seen: &Basis<'_>) -> Option<Advice> {
    if seen.is_in_memory() || seen.record.header.ranges.access == Access::Direct {
        return None;
    }
    let gain = seen.memory_ratio().filter(|gain| *gain >= WORTH)?;
    let (cached, device) = (seen.line("cached_read_4k")?, seen.line("read_4k_1")?);
    let until = match (seen.read_border, seen.reads()) {
        (Some(border), _) => {
            format!("; the cache ends at {} now", show_size(border.unique_bytes.capacity))
        }
        (None, Some(ends)) if ends.far.estimate.hit_fraction.is_some_and(|hit| hit >= HIT) => {
            let most = show_size(ends.far.value);
            format!(
                "; it helps only with more data than memory holds now: all that was measured, up to {most}, fitted"
            )
        }
        (None, _) => String::new(),
    };
    let from = if seen.is_served() { "server" } else { "device" };
    let text = format!(
        "a 4 KiB read takes {} from memory, {} from the {from} (× {}){until}",
        show_seconds(cached.response_time_s.mean.value),
        show_seconds(device.response_time_s.mean.value),
        three_digits(gain)
    );
    let figures = [
        ("gain_ratio", gain),
        ("cached_ops_per_s", cached.ops_per_s.value),
        ("device_ops_per_s", device.ops_per_s.value),
    ];
    Some(advise(AdviceKind::MoreMemory, text, &figures))
}

/// What a faster device would have to beat. How much it brings depends on the device that is bought,
/// so that this stands behind what is known.
fn faster_device(seen: &Basis<'_>) -> Option<Advice> {
    // How much of what a server answers comes from its disk is not known.
    if seen.is_in_memory() || seen.is_served() {
        return None;
    }
    let (one, queue) = (seen.line("read_4k_1")?, seen.line("read_4k_32")?);
    let figures = [
        ("read_4k_1_ops_per_s", one.ops_per_s.value),
        ("read_4k_32_ops_per_s", queue.ops_per_s.value),
        ("read_4k_1_p99_s", one.response_time_s.p99.value),
    ];
    if let Some(writes) = seen.line("write_4k_32") {
        let apart = (writes.ops_per_s.value / queue.ops_per_s.value).ln().abs();
        let filled = ratio(queue.ops_per_s.value, one.ops_per_s.value)?;
        if apart <= ALIKE.ln() && filled < 4.0 {
            let text = format!(
                "reads and writes both stop near {} IOPS, probably a provisioned limit: raise \
                 that, a faster kind of disk would not help",
                show_iops(queue.ops_per_s.value)
            );
            return Some(advise(AdviceKind::FasterDevice, text, &figures));
        }
    }
    let where_it_helps = seen.read_border.map_or("reads that miss memory".to_owned(), |border| {
        format!("reads beyond {}", show_size(border.unique_bytes.capacity))
    });
    let text = format!(
        "helps {where_it_helps} and all commits; it must beat {} IOPS at depth 1 (p99 {}), {} at 32",
        show_iops(one.ops_per_s.value),
        show_seconds(one.response_time_s.p99.value),
        show_iops(queue.ops_per_s.value)
    );
    Some(advise(AdviceKind::FasterDevice, text, &figures))
}

fn more_in_flight(seen: &Basis<'_>) -> Option<Advice> {
    let (one, queue) = (seen.line("read_4k_1")?, seen.line("read_4k_32")?);
    let gain = ratio(queue.ops_per_s.value, one.ops_per_s.value)?;
    let waits = format!(
        "p99 {} instead of {}",
        show_seconds(queue.response_time_s.p99.value),
        show_seconds(one.response_time_s.p99.value)
    );
    let figures = [
        ("gain_ratio", gain),
        ("p99_at_1_s", one.response_time_s.p99.value),
        ("p99_at_32_s", queue.response_time_s.p99.value),
    ];
    let (one, queue) = (show_iops(one.ops_per_s.value), show_iops(queue.ops_per_s.value));
    if gain >= WORTH {
        let text = format!(
            "32 reads of 4 KiB at once give {queue} IOPS, one at a time {one} (× {}); {waits}",
            three_digits(gain)
        );
        return Some(advise(AdviceKind::MoreInFlight, text, &figures));
    }
    (gain < QUEUE_WORTH).then(|| {
        let text = format!(
            "32 reads at once give {queue} IOPS, one at a time {one}; but 32 at once have {waits}"
        );
        advise(AdviceKind::FewerInFlight, text, &figures)
    })
}

/// On the graph of sizes where the device is slowest: its own layer, or the last region.
fn larger_requests(seen: &Basis<'_>) -> Option<Advice> {
    let regions = &seen.record.regions;
    let is_direct = |region: &&Region| region.focal.access == Access::Direct;
    let region = regions.iter().find(is_direct).or(regions.last())?;
    let spots = graph(&seen.record.estimates, &region.focal, Axis::SizeMean);
    let smallest = spots.first()?;
    let throughputs: Vec<f64> = spots.iter().map(|spot| spot.throughput().mean).collect();
    let good = &spots[first_good(&throughputs)?];
    let gain = ratio(good.throughput().mean, smallest.throughput().mean)?;
    if gain < WORTH {
        return None;
    }
    let place = if region.focal.access == Access::Direct {
        "past the page cache"
    } else {
        "with the most data measured"
    };
    let text = format!(
        "{place}, requests of {} move {}, requests of {} {} (× {})",
        show_size(good.value),
        show_rate(good.throughput().mean),
        show_size(smallest.value),
        show_rate(smallest.throughput().mean),
        three_digits(gain)
    );
    let figures = [
        ("gain_ratio", gain),
        ("size_bytes", good.value),
        ("bytes_per_s", good.throughput().mean),
        ("small_bytes_per_s", smallest.throughput().mean),
    ];
    Some(advise(AdviceKind::LargerRequests, text, &figures))
}

fn group_commits(seen: &Basis<'_>) -> Option<Advice> {
    let (commit, write) = (seen.line("sync_4k")?, seen.line("write_4k_1")?);
    let gain = ratio(commit.response_time_s.mean.value, write.response_time_s.mean.value)?;
    if gain < WORTH {
        return None;
    }
    let text = format!(
        "a 4 KiB write takes {}, with its fdatasync {} (× {}, p99 {}): put several writes into one \
         commit",
        show_seconds(write.response_time_s.mean.value),
        show_seconds(commit.response_time_s.mean.value),
        three_digits(gain),
        show_seconds(commit.response_time_s.p99.value)
    );
    let figures = [("gain_ratio", gain), ("commit_s", commit.response_time_s.mean.value)];
    Some(advise(AdviceKind::GroupCommits, text, &figures))
}
