//! Durable throughput has the final fdatasync counted in: it is never above the absorbed one, on any
//! device and with any seed, in a visit as in an estimate.

use ioscape_analysis::estimate;
use ioscape_engine::sim::{SimRig, SimSpec};
use ioscape_experiment::{Subject, measure};
use ioscape_model::{Point, Role, Rules, Workload};

const SEEDS: u64 = 6;

/// The presets, and each with visits that find it slow and with credit that runs out.
fn devices() -> Vec<SimSpec> {
    let mut all = Vec::new();
    for name in SimSpec::names() {
        let calm = SimSpec::preset(name).unwrap();
        let mut troubled = calm.clone();
        troubled.trouble.slow_visits = 0.4;
        troubled.trouble.slow_speed = 0.2;
        let mut spending = calm.clone();
        spending.trouble.credit_bytes = Some(calm.ranges().unique_bytes.max / 2);
        spending.trouble.spent_speed = 0.1;
        all.extend([calm, troubled, spending]);
    }
    all
}

/// Small and large data, more and fewer writes.
fn works(spec: &SimSpec) -> Vec<Workload> {
    let range = spec.ranges().unique_bytes;
    let sizes = [range.min, (range.min * range.max).isqrt(), range.max / 2];
    let work = |unique_bytes| {
        [0.0, 0.5, 0.95].map(|read_frac| Workload {
            unique_bytes,
            read_frac,
            ..Workload::default()
        })
    };
    sizes.into_iter().flat_map(work).filter(|work| work.check().is_ok()).collect()
}

fn visits(spec: &SimSpec, seed: u64, rules: &Rules) -> Vec<Point> {
    let mut rig = SimRig::new(spec.clone(), seed);
    let works = works(spec);
    let mut points = Vec::new();
    for round in 0..2 {
        for work in &works {
            let seed = seed + 100 * points.len() as u64;
            let subject = Subject { work, role: Role::Calibration, round, seed };
            points.push(measure(&subject, rules, &mut rig, &mut |_| {}).unwrap());
        }
    }
    points
}

#[test]
fn durable_throughput_is_never_above_the_absorbed_one() {
    for spec in devices() {
        for seed in 0..SEEDS {
            for rules in [Rules::brief(), Rules::thorough()] {
                let points = visits(&spec, seed, &rules);
                for point in &points {
                    let durable = point.durable_bytes_per_s.unwrap();
                    assert!(durable <= point.throughput(), "{}: {point:?}", spec.name);
                }
                for estimate in estimate::pool(&points, 0).0 {
                    let durable = estimate.durable_bytes_per_s.unwrap();
                    let mean = estimate.throughput_bytes_per_s.mean;
                    assert!(durable <= mean, "{}: {estimate:?}", spec.name);
                }
            }
        }
    }
}
