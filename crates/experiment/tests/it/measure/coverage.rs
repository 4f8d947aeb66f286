//! The intervals cover the truth as often as they say: inside one visit, and pooled over visits
//! that differ from each other.

use ioscape_analysis::estimate;
use ioscape_experiment::{Subject, measure};
use ioscape_model::{Interval, Point, Role, Rules, Workload};
use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;
use rand_xoshiro::Xoshiro256PlusPlus;

use ioscape_test_support::{Stream, StreamSpec};

/// Spread between visits to one workload, log-normal.
const BETWEEN_SD: f64 = 0.04;

#[test]
fn intervals_of_single_visits_cover_the_truth() {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(1994);
    let mut tally = Tally::default();
    let mut seconds = Vec::new();
    for seed in 0..500 {
        let law = random_law(&mut chance);
        let point = visit(law, &workload(0), 0, seed);
        tally.add(&point.throughput_bytes_per_s, law.bytes_per_s);
        seconds.push(point.elapsed_s);
    }
    tally.show("single visits, 500 random streams");
    println!("  median length of a visit {:.1} s", median(&seconds));
    assert!(tally.coverage() >= 0.90, "{}", tally.coverage());
    assert!(median(&tally.half_widths) <= 0.05);
    assert!(median(&seconds) <= 12.0);
}

/// The averages above could hide a kind of stream that is always missed.
#[test]
fn no_kind_of_stream_is_missed_often() {
    let law = |transient, transient_s, variation, autocorrelation| StreamSpec {
        transient,
        transient_s,
        variation,
        autocorrelation,
        ..StreamSpec::default()
    };
    for (name, law) in [
        ("quiet", law(0.0, 0.5, 0.01, 0.0)),
        ("noisy", law(0.0, 0.5, 0.15, 0.0)),
        ("slow swings", law(0.0, 0.5, 0.05, 0.7)),
        ("noisy, slow swings", law(0.0, 0.5, 0.15, 0.7)),
        ("quiet, fast start", law(0.5, 1.0, 0.005, 0.0)),
        ("quiet, slow start", law(-0.5, 1.0, 0.02, 0.3)),
        ("all at once", law(0.5, 1.0, 0.15, 0.7)),
    ] {
        let mut tally = Tally::default();
        for seed in 0..200 {
            let point = visit(law, &workload(0), 0, seed);
            tally.add(&point.throughput_bytes_per_s, law.bytes_per_s);
        }
        tally.show(name);
        assert!(tally.coverage() >= 0.82, "{name}: {}", tally.coverage());
    }
}

#[test]
fn estimates_over_three_rounds_cover_the_truth_in_spite_of_the_spread_between_visits() {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(2026);
    let (mut within, mut pooled) = (Tally::default(), Tally::default());
    let mut repeatabilities = Vec::new();
    for session in 0..25 {
        let (points, truths) = session_of(&mut chance, 20, session);
        for (point, truth) in points.iter().zip(truths.iter().cycle()) {
            within.add(&point.throughput_bytes_per_s, *truth);
        }
        let (estimates, repeatability) = estimate::pool(&points, 0);
        repeatabilities.push(repeatability.unwrap());
        for (estimate, truth) in estimates.iter().zip(&truths) {
            assert_eq!(estimate.visits, 3);
            pooled.add(&estimate.throughput_bytes_per_s, *truth);
        }
    }
    within.show("single visits with a spread of 4 % between them");
    pooled.show("estimates over three rounds of 20 workloads, 25 sessions");
    println!("  median repeatability {:.4}", median(&repeatabilities));
    assert!(within.coverage() < 0.90, "else this test would prove nothing");
    assert!(pooled.coverage() >= 0.90, "{}", pooled.coverage());
    assert!(median(&pooled.half_widths) <= 0.05, "{}", median(&pooled.half_widths));
    assert!((0.035..0.05).contains(&median(&repeatabilities)));
}

#[test]
fn one_workload_alone_over_three_rounds_is_covered_too() {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(7);
    let mut tally = Tally::default();
    for session in 0..500 {
        let (points, truths) = session_of(&mut chance, 1, session);
        let (estimates, _) = estimate::pool(&points, 0);
        tally.add(&estimates[0].throughput_bytes_per_s, truths[0]);
    }
    tally.show("estimates over three rounds of one workload alone");
    assert!(tally.coverage() >= 0.90, "{}", tally.coverage());
    assert!(median(&tally.half_widths) <= 0.08, "{}", median(&tally.half_widths));
}

/// Three rounds of visits to `count` workloads, in the order of a run, and the workloads' truths.
fn session_of(
    chance: &mut Xoshiro256PlusPlus,
    count: usize,
    session: u64,
) -> (Vec<Point>, Vec<f64>) {
    let laws: Vec<StreamSpec> = (0..count).map(|_| random_law(chance)).collect();
    let mut points = Vec::new();
    for round in 0..3 {
        for (index, law) in laws.iter().enumerate() {
            let normal: f64 = chance.sample(StandardNormal);
            let shift = (BETWEEN_SD * normal - BETWEEN_SD.powi(2) / 2.0).exp();
            let shifted = StreamSpec { bytes_per_s: law.bytes_per_s * shift, ..*law };
            let seed = session << 32 | u64::from(round) << 16 | index as u64;
            points.push(visit(shifted, &workload(index), round, seed));
        }
    }
    (points, laws.iter().map(|law| law.bytes_per_s).collect())
}

fn random_law(chance: &mut Xoshiro256PlusPlus) -> StreamSpec {
    StreamSpec {
        bytes_per_s: 10f64.powf(chance.random_range(8.0..10.0)),
        transient: chance.random_range(-0.5..0.5),
        transient_s: chance.random_range(0.05..1.0),
        variation: chance.random_range(0.005..0.15),
        autocorrelation: chance.random_range(0.0..0.7),
        ..StreamSpec::default()
    }
}

/// Workloads that differ; every other one writes.
fn workload(index: usize) -> Workload {
    Workload {
        unique_bytes: (index as u64 + 8) << 20,
        read_frac: if index.is_multiple_of(2) { 1.0 } else { 0.5 },
        ..Workload::default()
    }
}

fn visit(law: StreamSpec, work: &Workload, round: u32, seed: u64) -> Point {
    let subject = Subject { work, role: Role::Measure, round, seed };
    measure(&subject, &Rules::thorough(), &mut Stream::new(law, seed), &mut |_| {}).unwrap()
}

#[derive(Default)]
struct Tally {
    covered: u32,
    half_widths: Vec<f64>,
    errors: Vec<f64>,
}

impl Tally {
    fn add(&mut self, interval: &Interval, truth: f64) {
        self.covered += u32::from(interval.low <= truth && truth <= interval.high);
        self.half_widths.push(interval.relative_half_width());
        self.errors.push((interval.mean / truth - 1.0).abs());
    }

    fn coverage(&self) -> f64 {
        f64::from(self.covered) / self.half_widths.len() as f64
    }

    fn show(&self, name: &str) {
        println!(
            "{name}: {} intervals, {:.1} % cover the truth, median half-width {:.2} %, \
             median error {:.1} %",
            self.half_widths.len(),
            self.coverage() * 100.0,
            median(&self.half_widths) * 100.0,
            median(&self.errors) * 100.0,
        );
    }
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
