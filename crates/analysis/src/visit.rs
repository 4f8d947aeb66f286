//! Visits as tests make them up.

use ioscape_model::{Classes, Interval, Point, ResponseTime, Role, Spent, Workload};

/// A visit to this workload that gave exactly so much, and of which nothing else is known.
pub(crate) fn visit(workload: Workload, throughput_bytes_per_s: f64) -> Point {
    Point {
        workload,
        round: 0,
        role: Role::Measure,
        engine: "test".to_owned(),
        seed: 0,
        started_s: 0.0,
        throughput_bytes_per_s: Interval::exact(throughput_bytes_per_s),
        durable_bytes_per_s: None,
        ops_per_s: throughput_bytes_per_s / 16384.0,
        response_time_s: ResponseTime::default(),
        latency_s: None,
        classes: Classes::default(),
        failed: vec![],
        verified_bytes: None,
        hit_fraction: None,
        resident_bytes: None,
        read_amplification: None,
        write_absorbed_fraction: None,
        dirty_bytes: None,
        writeback_bytes: None,
        cpu_s_per_op: None,
        steady: true,
        windows: 20,
        windows_cut: 0,
        elapsed_s: 3.0,
        spent_s: Spent::default(),
        warnings: vec![],
    }
}
