//! A formula in place of a disk: drives a plan to its end with made-up points.

use ioscape_model::{Interval, Point, ResponseTime, Role, Spent, Workload};
use rand::SeedableRng;
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Plan, Seen, Visit};

/// More visits than any plan here may want.
const VISITS_MAX: usize = 5000;

/// Shows points to the plan until it wants no more. `law` gives bytes per second, `noise` is the
/// coefficient of variation between visits.
pub(crate) fn drive(
    plan: &mut dyn Plan,
    points: &mut Vec<Point>,
    law: &dyn Fn(&Workload) -> f64,
    (noise, seed): (f64, u64),
) {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    while let Some(visit) = plan.next(&Seen { points, elapsed_s: 0.0, budget_s: 1e9 }) {
        visit.workload.check().unwrap();
        let normal: f64 = StandardNormal.sample(&mut rng);
        points.push(point(&visit, law(&visit.workload) * (noise * normal).exp()));
        assert!(points.len() < VISITS_MAX, "the plan does not end");
    }
}

/// A point of which only the workload and the throughput are real.
pub(crate) fn point(visit: &Visit, throughput_bytes_per_s: f64) -> Point {
    let ops_per_s = throughput_bytes_per_s / visit.workload.size_mean as f64;
    Point {
        workload: visit.workload.clone(),
        round: visit.round,
        role: visit.role,
        engine: "formula".to_owned(),
        seed: 0,
        started_s: 0.0,
        throughput_bytes_per_s: Interval::exact(throughput_bytes_per_s),
        durable_bytes_per_s: None,
        ops_per_s,
        response_time_s: ResponseTime::default(),
        latency_s: None,
        classes: ioscape_model::Classes::default(),
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
        windows: 1,
        windows_cut: 0,
        elapsed_s: 1.0,
        spent_s: Spent::default(),
        warnings: Vec::new(),
    }
}

/// A point that has nothing to do with the plan.
pub(crate) fn canary(round: u32) -> Point {
    let visit = Visit { workload: Workload::default(), role: Role::Canary, round };
    point(&visit, 1e9)
}
