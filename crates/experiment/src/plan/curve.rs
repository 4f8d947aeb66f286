//! The curves on which borders are searched, as the points show them.

use ioscape_analysis::border::Sample;
use ioscape_model::{Access, Point, Role, Workload};

/// The workloads of a border search, each once: what a later round visits again.
pub(crate) fn searched_workloads(points: &[Point], role: Role) -> Vec<Workload> {
    let mut works: Vec<Workload> = Vec::new();
    for point in points.iter().filter(|point| point.role == role && point.round == 0) {
        if !works.contains(&point.workload) {
            works.push(point.workload.clone());
        }
    }
    works
}

/// What a border is looked for in.
pub(crate) fn samples(points: &[Point], role: Role) -> Vec<Sample> {
    /// A visit that moved nothing was slower than this, bytes per second.
    const THROUGHPUT_MIN: f64 = 1.0;
    let on_curve = points.iter().filter(|point| point.role == role);
    on_curve
        .map(|point| {
            // What the page cache holds is no border of requests that go past it.
            let is_cached = point.workload.access == Access::Buffered;
            let counted = match role {
                Role::WriteBorder => point.write_absorbed_fraction,
                _ => point.hit_fraction,
            };
            Sample {
                unique_bytes: point.workload.unique_bytes as f64,
                time_s_per_byte: 1.0 / point.throughput().max(THROUGHPUT_MIN),
                hit_fraction: counted.filter(|_| is_cached),
                resident_bytes: point.resident_bytes.filter(|_| is_cached).map(|b| b as f64),
            }
        })
        .collect()
}
