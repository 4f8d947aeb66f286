//! A map that may not fill the page cache, asked about data that the cache does not hold: what cold
//! reads and the device layer say is put together. Simulated, page by page; the truth is another visit
//! to the same machine.

use std::sync::Arc;

use ioscape_analysis::predict::Predictor;
use ioscape_engine::SimSpec;
use ioscape_engine::sim::SimRig;
use ioscape_experiment::{AskedRanges, Bench, Exploration, Settings, Subject, Watch, measure};
use ioscape_model::{
    Access, Line, Origin, Point, Range, Role, Rules, State, Workload, units::GIB, units::MIB,
};
use ioscape_stats::median;
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The page cache of the device holds 384 MiB.
const DEVICE: &str = "pages-flash";
const WARM_MAX_BYTES: u64 = 128 * MIB;
const WORKLOADS: usize = 20;

fn map(seed: u64) -> (Predictor, Vec<Point>) {
    let origin = Origin { run_id: "together".to_owned(), seed, ..Origin::default() };
    let bench = Bench::simulated(DEVICE, SimSpec::preset(DEVICE).unwrap(), seed);
    let settings = Settings {
        span_bytes: Some(GIB),
        ranges: AskedRanges {
            unique_bytes: Some(Range { min: 8 * MIB, max: WARM_MAX_BYTES }),
            ..AskedRanges::default()
        },
        ..Settings::default()
    };
    let mut points = Vec::new();
    let outcome = Exploration::new(bench, origin, settings)
        .unwrap()
        .run(Watch {
            interrupt: &Arc::default(),
            journal: &mut |line| {
                if let Line::Point(point) = line {
                    points.push(point.clone());
                }
                Ok(())
            },
            on_event: &mut |_| {},
        })
        .unwrap();
    (outcome.models.unwrap(), points)
}

/// Workloads of one and a half to four times the cache.
fn beyond(seed: u64) -> Vec<Workload> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut work = || Workload {
        unique_bytes: rng.random_range(576..1400) * MIB,
        size_mean: rng.random_range(2..64) * 4096,
        read_frac: rng.random_range(0.0..1.0),
        seq_frac: rng.random_range(0.0..1.0),
        process_num: rng.random_range(1..3),
        ..Workload::default()
    };
    std::iter::repeat_with(&mut work).filter(|work| work.check().is_ok()).take(WORKLOADS).collect()
}

fn truth(work: &Workload, seed: u64) -> f64 {
    let mut rig = SimRig::new(SimSpec::preset(DEVICE).unwrap(), seed);
    let subject = Subject { work, role: Role::Measure, round: 0, seed };
    measure(&subject, &Rules::brief(), &mut rig, &mut |_| {}).unwrap().throughput()
}

#[test]
fn what_the_map_may_not_fill_is_put_together() {
    let (predictor, points) = map(1);
    let buffered = || points.iter().filter(|point| point.workload.access == Access::Buffered);
    let (cold, warm): (Vec<&Point>, Vec<&Point>) =
        buffered().partition(|point| point.workload.state == State::Cold);
    assert!(warm.iter().all(|point| point.workload.unique_bytes <= WARM_MAX_BYTES));
    let stayed_cold = cold.iter().filter(|point| point.hit_fraction.is_some_and(|hit| hit < 0.2));
    assert!(stayed_cold.count() >= 5, "of {} cold visits", cold.len());
    let (mut errors, mut held) = (Vec::new(), 0);
    for (index, work) in beyond(1).iter().enumerate() {
        let said = predictor.predict("", work);
        assert!(said.in_range && said.put_together, "{work}: {:?}", said.warnings);
        let found = truth(work, 100 + index as u64);
        let figure = said.throughput_bytes_per_s;
        errors.push((figure.value / found).ln().abs());
        held += usize::from((figure.low..figure.high).contains(&found));
    }
    let typical = median(errors.iter().copied()).unwrap();
    // 0.19 with this seed: the machine reads ahead, in vain as well, by rules of its own.
    assert!(typical < 0.3, "median error {typical:.2}: {errors:.2?}");
    assert!(held >= WORKLOADS * 8 / 10, "{held} of {WORKLOADS} intervals hold");
    // Within what was visited nothing is put together, and further out than four caches nothing is said.
    let at = |unique_bytes| Workload { unique_bytes, read_frac: 1.0, ..Workload::default() };
    assert!(!predictor.predict("", &at(64 * MIB)).put_together);
    assert!(!predictor.predict("", &at(16 * GIB)).in_range);
}
