//! A formula in place of a disk: drives a plan to its end with made-up points.

use ioscape_model::{Interval, Point, Role, Workload};
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
    while let Some(visit) = plan.next(&Seen::writing_freely(points, 0.0, 1e9)) {
        visit.workload.check().unwrap();
        let normal: f64 = StandardNormal.sample(&mut rng);
        points.push(point(&visit, law(&visit.workload) * (noise * normal).exp()));
        assert!(points.len() < VISITS_MAX, "the plan does not end");
    }
}

/// A point of which only the workload and the throughput are real.
pub(crate) fn point(visit: &Visit, throughput_bytes_per_s: f64) -> Point {
    let throughput = Interval::exact(throughput_bytes_per_s);
    let bare = Point::bare(visit.workload.clone(), "formula", throughput);
    Point { round: visit.round, role: visit.role, ..bare }
}

/// A point that has nothing to do with the plan.
pub(crate) fn canary(round: u32) -> Point {
    let visit = Visit { workload: Workload::default(), role: Role::Canary, round };
    point(&visit, 1e9)
}
