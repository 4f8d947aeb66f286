//! How far the map may reach: the test files of all workloads together must fit the room there
//! is, and be laid out in a share of the budget.

use ioscape_engine::Hints;
use ioscape_model::units::MIB;
use ioscape_model::{Range, Ranges};

/// The largest share of the room that one process's file may take: what is left serves the
/// files of workloads with several processes.
const FIRST_FILE_SHARE: f64 = 0.65;
/// Of the budget, what laying out may cost.
const LAYOUT_SHARE: f64 = 0.15;
/// The map reaches this far beyond the largest border.
const BEYOND_BORDER: f64 = 4.0;
/// A cache is worth climbing to only if the map reaches this far beyond it.
const BEYOND_HINT: f64 = 1.6;

/// What the files of workloads may hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Extent {
    /// Largest `unique_bytes` with one process.
    pub max_bytes: f64,
    /// Largest `unique_bytes` with several processes: their files come on top of the first.
    pub max_bytes_shared_out: f64,
}

impl Extent {
    /// For a map up to `wanted_bytes` in `room_bytes`. Workloads of 2, 4, … processes need files
    /// of a half, a quarter, … each: as much again as the first file, together.
    pub fn within(wanted_bytes: f64, room_bytes: f64) -> Self {
        let max_bytes = wanted_bytes.min(room_bytes * FIRST_FILE_SHARE);
        let rest = (room_bytes - max_bytes).max(0.0);
        Self { max_bytes, max_bytes_shared_out: rest.min(max_bytes) }
    }

    /// Largest `unique_bytes` with this many processes, bytes.
    pub fn largest(&self, process_num: u32) -> f64 {
        if process_num == 1 { self.max_bytes } else { self.max_bytes_shared_out }
    }

    /// Further out, to four times the largest border found.
    #[must_use]
    pub fn beyond(&self, border_bytes: f64, room_bytes: f64) -> Self {
        Self::within(self.max_bytes.max(border_bytes * BEYOND_BORDER), room_bytes)
    }
}

/// The ranges of a map before anything is known but the hints: up to 1 GiB, and further where a
/// cache that the machine is known to have can be passed in the time.
pub fn ranges(cpus: u32, hints: &Hints, unique_max_bytes: Option<u64>, budget_s: f64) -> Ranges {
    let mut ranges = Ranges::usual(cpus);
    let room_bytes =
        (hints.room_bytes as f64).min(unique_max_bytes.unwrap_or(u64::MAX) as f64 * 3.0);
    let mut wanted_bytes = ranges.unique_bytes.max as f64;
    let affordable_bytes = hints
        .layout_bytes_per_s
        .map_or(0.0, |rate| rate * budget_s * LAYOUT_SHARE)
        .min(room_bytes * FIRST_FILE_SHARE);
    let caches = [hints.write_cache_bytes, hints.read_cache_bytes];
    for cache_bytes in caches.into_iter().flatten() {
        if !hints.in_memory && cache_bytes * BEYOND_HINT <= affordable_bytes {
            wanted_bytes = wanted_bytes.max((cache_bytes * BEYOND_BORDER).min(affordable_bytes));
        }
    }
    if let Some(most) = unique_max_bytes {
        wanted_bytes = wanted_bytes.min(most as f64);
    }
    let max_bytes = Extent::within(wanted_bytes, room_bytes).max_bytes as u64 / MIB * MIB;
    let min_bytes = ranges.unique_bytes.min.min(max_bytes);
    ranges.unique_bytes = Range { min: min_bytes, max: max_bytes };
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
        for room in [0.1, 1.0, 1.5, 40.0] {
            let extent = Extent::within(GIB as f64, room * GIB as f64);
            let all = extent.max_bytes + extent.max_bytes_shared_out;
            assert!(all <= room * GIB as f64 * 1.0001, "{room}: {extent:?}");
        }
    }

    #[test]
    fn a_map_reaches_a_gibibyte_where_there_is_room() {
        assert_eq!(ranges(2, &hints(40.0), None, 600.0).unique_bytes.max, GIB);
        assert!(ranges(2, &hints(0.5), None, 600.0).unique_bytes.max < GIB / 2);
        assert_eq!(ranges(2, &hints(40.0), Some(256 * MIB), 600.0).unique_bytes.max, 256 * MIB);
    }

    #[test]
    fn a_known_cache_is_climbed_to_only_where_the_budget_allows() {
        let with_cache = |budget_s| {
            let hints = Hints {
                read_cache_bytes: Some(4.0 * GIB as f64),
                layout_bytes_per_s: Some(1e9),
                ..hints(100.0)
            };
            ranges(2, &hints, None, budget_s).unique_bytes.max
        };
        assert_eq!(with_cache(30.0), GIB);
        assert!(with_cache(60.0) > 6 * GIB);
    }
}
