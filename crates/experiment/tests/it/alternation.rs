//! Two targets measured in alternation, from end to end on simulated devices: a device must not
//! differ from itself, and one that is slower by a twentieth must be found.
//!
//! Fifty comparisons are made with every test, a thousand in the acceptance tests (ARCHITECTURE.md,
//! "Checking a change").

use std::sync::atomic::AtomicBool;

use ioscape_analysis::compare::live::{self, Live};
use ioscape_engine::sim::{SimRig, SimSpec};
use ioscape_experiment::alternate::{Alternation, Outcome, PAIRS_ENOUGH, Side, Time, alternate};
use ioscape_model::{EndReason, Overall, Point, Rules, Workload, named};

/// Two visits differ by this; nothing else about two targets does.
const VISIT_CV: f64 = 0.03;

fn device(name: &str) -> SimSpec {
    let mut spec = SimSpec::preset(name).unwrap();
    spec.noise.between_cv = VISIT_CV;
    spec
}

/// What a session gave: both sides' points, and how it ended.
struct Session {
    points: [Vec<Point>; 2],
    sides: Vec<usize>,
    outcome: Outcome,
}

fn session(specs: [&SimSpec; 2], works: &[Workload], budget_s: f64, seed: u64) -> Session {
    let mut rigs = [0, 1].map(|side| SimRig::new(specs[side].clone(), 2 * seed + side as u64));
    let [one, other] = &mut rigs;
    let mut points = [vec![], vec![]];
    let mut sides = vec![];
    let outcome = alternate(Alternation {
        sides: [
            Side { rig: one, time: Time::Simulated },
            Side { rig: other, time: Time::Simulated },
        ],
        works,
        rules: Rules::brief(),
        budget_s,
        seed,
        interrupt: &AtomicBool::new(false),
        journal: &mut |side, point: &Point| {
            points[side].push(point.clone());
            sides.push(side);
            Ok(())
        },
        on_event: &mut |_| {},
    })
    .unwrap();
    Session { points, sides, outcome }
}

impl Session {
    fn compared(&self, works: &[Workload]) -> Live {
        let [baseline, other] = &self.points;
        live::compare(baseline, other, works)
    }
}

fn works(names: &[&str]) -> Vec<Workload> {
    names.iter().map(|name| named::named(name).unwrap()).collect()
}

/// In which share of so many sessions any difference is shown.
fn shown(specs: [&SimSpec; 2], works: &[Workload], budget_s: f64, sessions: u64) -> f64 {
    let is_shown = |seed: &u64| {
        let live = session(specs, works, budget_s, 5000 + *seed).compared(works);
        live.verdict != Overall::NoDifferenceShown
    };
    (0..sessions).filter(is_shown).count() as f64 / sessions as f64
}

#[test]
fn every_workload_is_visited_on_either_side_right_after_the_other() {
    let (spec, works) = (device("nvme"), works(&["compile", "oltp", "scan"]));
    let made = session([&spec, &spec], &works, 200.0, 3);
    assert_eq!(made.outcome.reason, EndReason::Budget);
    assert!(made.outcome.elapsed_s <= 200.0 && made.outcome.elapsed_s > 180.0);
    let [one, other] = &made.points;
    assert_eq!(one.len(), other.len(), "a pair is not begun that has no room");
    assert!(one.len() >= 12, "{} pairs", one.len());
    for (a, b) in one.iter().zip(other) {
        assert_eq!((&a.workload, a.round, a.seed), (&b.workload, b.round, b.seed));
    }
    assert!(made.sides.chunks(2).all(|pair| pair[0] != pair[1]), "{:?}", made.sides);
    let first: usize = made.sides.iter().step_by(2).sum();
    assert!(first.abs_diff(one.len() / 2) <= works.len(), "either side goes first as often");
    let again = session([&spec, &spec], &works, 200.0, 3);
    assert_eq!(again.points, made.points, "the seed fixes everything");
}

#[test]
fn a_short_budget_is_spent_on_as_many_workloads_as_get_enough_pairs_and_names_the_others() {
    let ladder: Vec<Workload> = named::names().filter_map(named::named).collect();
    let specs = [&device("nvme"), &device("hdd")];
    for seed in 0..12 {
        let made = session(specs, &ladder, 120.0, seed);
        let compared = made.compared(&ladder).workloads;
        assert!(compared.len() >= 4, "seed {seed}: {}", compared.len());
        assert!(compared.iter().all(|live| live.pairs >= PAIRS_ENOUGH), "seed {seed}");
        let named: Vec<usize> = compared.iter().map(|live| live.index).collect();
        let rest: Vec<usize> = (0..ladder.len()).filter(|i| !named.contains(i)).collect();
        assert_eq!(made.outcome.dropped, rest, "seed {seed}");
        assert!((105.0..=120.0).contains(&made.outcome.elapsed_s), "{:?}", made.outcome);
    }
    let whole = session(specs, &ladder, 600.0, 1);
    assert_eq!(whole.outcome.dropped, [0; 0]);
    assert!(whole.compared(&ladder).workloads.iter().all(|live| live.pairs >= PAIRS_ENOUGH));
}

#[test]
fn what_fails_on_one_side_ends_it_and_leaves_what_was_measured() {
    let (spec, works) = (device("nvme"), works(&["oltp"]));
    let mut failing = spec.clone();
    failing.error_after_requests = Some(2_000_000);
    let made = session([&spec, &failing], &works, 600.0, 4);
    assert_eq!(made.outcome.reason, EndReason::Failed);
    assert!(made.outcome.failure.as_ref().unwrap().starts_with("B: "), "{:?}", made.outcome);
    assert!(!made.points[0].is_empty());
    let none = session([&spec, &spec], &works, 1.0, 4);
    assert_eq!((none.outcome.reason, none.points[0].len()), (EndReason::Budget, 0));
    assert_eq!(none.outcome.dropped, [0]);
}

#[test]
fn a_device_does_not_differ_from_itself_and_one_slower_by_a_twentieth_is_found() {
    let works = works(&["compile", "oltp", "log-append"]);
    let spec = device("nvme");
    let false_shown = shown([&spec, &spec], &works, 120.0, 50);
    assert!(false_shown <= 0.1, "{false_shown} of 50, where a twentieth is expected");
    let slowed = spec.at_speed(1.0 / 1.05);
    let found = session([&spec, &slowed], &works, 600.0, 1).compared(&works);
    assert_eq!(found.verdict, Overall::Slower, "{found:?}");
    let ratio = found.geometric_mean.unwrap().ratio;
    // Not all of the time is the device's.
    assert!(ratio.value > 0.94 && ratio.value < 0.98 && ratio.high < 1.0, "{ratio:?}");
}

#[test]
#[ignore = "a thousand comparisons: minutes"]
fn of_a_thousand_comparisons_with_itself_few_show_a_difference() {
    let ladder: Vec<Workload> = named::names().filter_map(named::named).collect();
    let three = works(&["compile", "oltp", "log-append"]);
    for (name, works, budget_s) in [
        ("nvme", &ladder, 600.0),
        ("nvme", &three, 100.0),
        ("hdd", &three, 100.0),
        ("cloud-volume", &three, 100.0),
    ] {
        let spec = device(name);
        let count = works.len();
        let false_shown = shown([&spec, &spec], works, budget_s, 1000);
        let found = shown([&spec, &spec.at_speed(1.0 / 1.05)], works, 600.0, 100);
        println!("{name}, {count} workloads: false {false_shown}, a twentieth found {found}");
        assert!(false_shown <= 0.065, "{name}: {false_shown}");
    }
}
