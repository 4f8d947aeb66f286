//! Visits as tests make them up.

use ioscape_model::{Interval, Point, Workload};

/// A visit to this workload that gave exactly so much, and of which nothing else is known.
pub(crate) fn visit(workload: Workload, throughput_bytes_per_s: f64) -> Point {
    let throughput = Interval::exact(throughput_bytes_per_s);
    Point { windows: 20, elapsed_s: 3.0, ..Point::bare(workload, "test", throughput) }
}
