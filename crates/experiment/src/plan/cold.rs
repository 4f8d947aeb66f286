//! Cold visits: what a read costs that misses the page cache, measured at once where the map cannot
//! fill the cache to see it.

use ioscape_model::{Border, Curve, Header, State, Workload};

/// Processes of the visits with several.
const PROCESSES: u64 = 4;

/// Workloads whose reads all miss, over the data that `largest` says files have room for with so many
/// processes: three sizes at random, two in sequence, and several processes.
pub(super) fn workloads(header: &Header, largest: &dyn Fn(u32) -> u64) -> Vec<Workload> {
    let sizes = header.ranges.size_mean;
    let size = |bytes: u64| bytes.clamp(sizes.min, sizes.max);
    let usual = size(Workload::default().size_mean);
    let many = header.ranges.process_num.max.min(PROCESSES) as u32;
    let chosen = [
        (sizes.min, 0.0, 1),
        (usual, 1.0, 1),
        (sizes.max, 0.0, 1),
        (usual, 0.0, many),
        (usual, 0.0, 1),
        (sizes.max, 1.0, 1),
        (usual, 1.0, many),
    ];
    let mut all: Vec<Workload> = Vec::new();
    for (size_mean, seq_frac, process_num) in chosen {
        let work = Workload {
            unique_bytes: largest(process_num),
            size_mean,
            read_frac: 1.0,
            seq_frac,
            process_num,
            state: State::Cold,
            ..Workload::default()
        };
        if work.check().is_ok() && !all.contains(&work) {
            all.push(work);
        }
    }
    all
}

/// Whether the page cache, whose size is known, was passed by no search for a border.
pub(super) fn is_needed(header: &Header, borders: &[Border], reached_bytes: f64) -> bool {
    let hints = &header.hints;
    let Some(cache_bytes) = hints.read_cache_bytes.filter(|_| !hints.in_memory) else {
        return false;
    };
    let is_its = |border: &Border| {
        border.curve != Curve::Write && hints.may_be_page_cache(border.unique_bytes.capacity)
    };
    reached_bytes < cache_bytes && !borders.iter().any(is_its)
}
