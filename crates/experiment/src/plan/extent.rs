//! How far the map may reach: the test files of all workloads together must fit the room there
//! is, and be laid out in a share of the budget.

use ioscape_model::units::MIB;
use ioscape_model::{Hints, Limits, Range, Ranges, Workload};

/// The largest share of the room that one process's file may take: what is left serves the
/// files of workloads with several processes.
const FIRST_FILE_SHARE: f64 = 0.65;
/// Of the budget, what laying out may cost.
const LAYOUT_SHARE: f64 = 0.15;
/// Of what may be written altogether, what a file may take: most is for the workloads.
const WRITTEN_SHARE: f64 = 0.25;
/// … and all files together.
const FILES_WRITTEN_SHARE: f64 = 0.4;
/// Of what may be written altogether, what the span of the device layer may take.
const SPAN_WRITTEN_SHARE: f64 = 0.5;
/// The span is laid out before the first direct line of the data sheet is on the screen, which people
/// wait for: seconds.
const SPAN_LAYOUT_MAX_S: f64 = 20.0;
/// Of the budget of a data sheet alone, what laying out may cost: all lines have time for two visits.
const QUICK_LAYOUT_SHARE: f64 = 0.1;
/// However slow the storage and short the budget, a map is tried up to here.
const SMALLEST_MAP_BYTES: f64 = 64.0 * MIB as f64;
/// The map reaches this far beyond the largest border.
const BEYOND_BORDER: f64 = 4.0;
/// A cache is worth climbing to only if the map reaches this far beyond it …
const BEYOND_HINT: f64 = 1.6;
/// … and if filling it once, which every visit beyond it may have to, takes no more than this
/// share of the budget.
const FILL_SHARE: f64 = 1.0 / 150.0;

/// What the files of workloads may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// Largest `unique_bytes` with one process.
    pub max_bytes: f64,
    /// Largest `unique_bytes` with several processes: their files come on top of the first.
    pub max_bytes_shared_out: f64,
}

impl Extent {
    /// For a map up to `wanted_bytes` and `process_num_max` processes in `room_bytes`. For
    /// workloads of 2, 3, … processes the second file needs a half of the data, the third a third,
    /// …: that comes on top of the first file.
    pub fn within(wanted_bytes: f64, room_bytes: f64, process_num_max: u64) -> Self {
        let max_bytes = wanted_bytes.min(room_bytes * FIRST_FILE_SHARE);
        let rest_bytes = (room_bytes - max_bytes).max(0.0);
        let more_files = harmonic(process_num_max) - 1.0;
        let max_bytes_shared_out = (rest_bytes / more_files.max(1e-9)).min(max_bytes);
        Self { max_bytes, max_bytes_shared_out }
    }

    /// For a device layer: one process touches all of the span, several what there is room for beside
    /// it.
    pub fn over_span(span_bytes: f64, room_bytes: f64, process_num_max: u64) -> Self {
        let rest_bytes = (room_bytes - span_bytes).max(0.0);
        let more_files = harmonic(process_num_max) - 1.0;
        let max_bytes_shared_out = (rest_bytes / more_files.max(1e-9)).min(span_bytes);
        Self { max_bytes: span_bytes, max_bytes_shared_out }
    }

    /// Largest `unique_bytes` with this many processes, bytes.
    pub fn largest(&self, process_num: u32) -> f64 {
        if process_num == 1 { self.max_bytes } else { self.max_bytes_shared_out }
    }
}

/// The most that one file may hold where all files together have so much room, bytes.
pub fn first_file_bytes(room_bytes: u64) -> f64 {
    room_bytes as f64 * FIRST_FILE_SHARE
}

/// What the files beside the first one may hold altogether, bytes.
pub fn other_files_bytes(ranges: &Ranges, room_bytes: u64) -> f64 {
    let wanted_bytes = ranges.unique_bytes.max as f64;
    let extent = Extent::within(wanted_bytes, room_bytes as f64, ranges.process_num.max);
    extent.max_bytes_shared_out * (harmonic(ranges.process_num.max) - 1.0)
}

/// How long laying out the span of a run may take, seconds.
pub fn span_layout_s(budget_s: f64, is_quick: bool) -> f64 {
    let share = if is_quick { QUICK_LAYOUT_SHARE } else { LAYOUT_SHARE };
    (budget_s * share).min(SPAN_LAYOUT_MAX_S)
}

/// The span of a device layer where nobody said one, bytes: what can be laid out in `layout_s`, what the first file has room for beside the others, half of what may be written.
pub fn span_bytes(hints: &Hints, limits: &Limits, (layout_s, others_bytes): (f64, f64)) -> u64 {
    let room_bytes = hints.room_bytes as f64;
    let written =
        limits.written_max_bytes.map_or(f64::INFINITY, |most| most as f64 * SPAN_WRITTEN_SHARE);
    let asked = limits.unique_max_bytes.map_or(f64::INFINITY, |most| most as f64);
    let laid_out = hints
        .layout_bytes_per_s
        .map_or(f64::INFINITY, |rate| (rate * layout_s).max(SMALLEST_MAP_BYTES));
    let most = written.min(asked).min(laid_out).min(room_bytes - others_bytes);
    most.max(0.0) as u64 / MIB * MIB
}

/// The smallest map that shows what lies behind a border.
pub fn beyond(border_bytes: f64) -> f64 {
    border_bytes * BEYOND_BORDER
}

/// 1 + 1/2 + … + 1/n: all files of workloads with up to n processes, over the largest.
fn harmonic(n: u64) -> f64 {
    (1..=n).map(|k| 1.0 / k as f64).sum()
}

/// All test files of these workloads together, bytes: file k serves every workload of more than k
/// processes.
pub fn files_bytes<'a>(works: impl Iterator<Item = &'a Workload>) -> u64 {
    let works: Vec<&Workload> = works.collect();
    let most = works.iter().map(|work| work.process_num).max().unwrap_or(0);
    let file = |k: u32| {
        let served = works.iter().filter(|work| work.process_num > k);
        served.map(|work| work.share_bytes()).max().unwrap_or(0)
    };
    (0..most).map(file).sum()
}

/// Most data in all test files together: what there is room for, and a part of what may be written.
pub fn room_bytes(room_bytes: u64, written_max_bytes: Option<u64>) -> u64 {
    let share = |most: u64| (most as f64 * FILES_WRITTEN_SHARE) as u64;
    written_max_bytes.map_or(room_bytes, |most| room_bytes.min(share(most)))
}

/// The most that the map may ever reach, bytes: what was asked for, what may be written, and what
/// can be laid out in its share of the budget.
pub fn most_bytes(hints: &Hints, limits: &Limits, budget_s: f64) -> f64 {
    let asked = limits.unique_max_bytes.map_or(f64::INFINITY, |bytes| bytes as f64);
    let written = limits.written_max_bytes.map_or(f64::INFINITY, |b| b as f64 * WRITTEN_SHARE);
    let laid_out = hints
        .layout_bytes_per_s
        .map_or(f64::INFINITY, |rate| (rate * budget_s * LAYOUT_SHARE).max(SMALLEST_MAP_BYTES));
    asked.min(written).min(laid_out)
}

/// Narrows ranges for a plan that takes any `unique_bytes` with any number of processes and
/// does not keep writers away from large data.
#[must_use]
pub fn ranges_for_all(ranges: Ranges, hints: &Hints, limits: &Limits) -> Ranges {
    let all_files = hints.room_bytes as f64 / harmonic(ranges.process_num.max);
    let most = all_files.min(limits.writes_max_bytes.unwrap_or(f64::INFINITY));
    let max = ranges.unique_bytes.max.min(most as u64 / MIB * MIB);
    Ranges { unique_bytes: Range { min: ranges.unique_bytes.min.min(max), max }, ..ranges }
}

/// The ranges of a map before anything is known but the hints: up to 1 GiB, and further where a
/// cache that the machine is known to have can be passed in the time.
pub fn ranges(cpus: u32, hints: &Hints, limits: &Limits, budget_s: f64) -> Ranges {
    let mut ranges = Ranges::usual(cpus);
    let room_bytes = hints.room_bytes as f64;
    let most_bytes = most_bytes(hints, limits, budget_s);
    let mut wanted_bytes = ranges.unique_bytes.max as f64;
    let caches = [hints.write_cache_bytes, hints.read_cache_bytes];
    for cache_bytes in caches.into_iter().flatten().filter(|_| !hints.in_memory) {
        let fill_bytes = hints.layout_bytes_per_s.unwrap_or(0.0) * budget_s * FILL_SHARE;
        let reach_bytes = most_bytes.min(room_bytes * FIRST_FILE_SHARE);
        if cache_bytes <= fill_bytes && cache_bytes * BEYOND_HINT <= reach_bytes {
            wanted_bytes = wanted_bytes.max((cache_bytes * BEYOND_BORDER).min(reach_bytes));
        }
    }
    let extent = Extent::within(wanted_bytes.min(most_bytes), room_bytes, ranges.process_num.max);
    let max = extent.max_bytes as u64 / MIB * MIB;
    ranges.unique_bytes = Range { min: ranges.unique_bytes.min.min(max), max };
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use ioscape_model::units::GIB;

    fn hints(room_gib: f64) -> Hints {
        Hints { room_bytes: (room_gib * GIB as f64) as u64, ..Hints::default() }
    }

    #[test]
    fn files_of_all_workloads_together_never_exceed_the_room() {
        for (room_gib, processes) in [(0.1, 4), (1.0, 4), (1.5, 8), (2.0, 32), (40.0, 128)] {
            let room = room_gib * GIB as f64;
            let extent = Extent::within(GIB as f64, room, processes);
            // File k serves every workload of more than k processes.
            let file = |k: u64| {
                let of = |n: u64| extent.largest(n as u32) / n as f64;
                (k + 1..=processes).map(of).fold(0.0, f64::max)
            };
            let all: f64 = (0..processes).map(file).sum();
            assert!(all <= room * 1.0001, "{room_gib} GiB, {processes}: {extent:?}");
        }
    }

    #[test]
    fn a_map_reaches_a_gibibyte_where_there_is_room() {
        let max = |room_gib, unique_max_bytes| {
            let limits = Limits { unique_max_bytes, ..Limits::default() };
            ranges(2, &hints(room_gib), &limits, 600.0).unique_bytes.max
        };
        assert_eq!(max(40.0, None), GIB);
        assert!(max(0.5, None) < GIB / 2);
        assert_eq!(max(40.0, Some(256 * MIB)), 256 * MIB);
    }

    #[test]
    fn what_may_be_written_and_a_slow_device_bound_the_map() {
        let limits = Limits { written_max_bytes: Some(GIB), ..Limits::default() };
        assert_eq!(ranges(2, &hints(40.0), &limits, 600.0).unique_bytes.max, GIB / 4);
        let slow = Hints { layout_bytes_per_s: Some(1e6), ..hints(40.0) };
        assert_eq!(ranges(2, &slow, &Limits::default(), 600.0).unique_bytes.max, 85 * MIB);
    }

    #[test]
    fn a_known_cache_is_climbed_to_only_where_the_budget_allows() {
        let with_cache = |budget_s| {
            let hints = Hints {
                read_cache_bytes: Some(4.0 * GIB as f64),
                layout_bytes_per_s: Some(1e9),
                ..hints(100.0)
            };
            ranges(2, &hints, &Limits::default(), budget_s).unique_bytes.max
        };
        assert_eq!(with_cache(300.0), GIB);
        assert!(with_cache(900.0) > 6 * GIB);
    }
}
