//! Comparing systems, from end to end on simulated devices: a system must not differ from itself,
//! and one that is slower by a tenth must be found.
//!
//! A few comparisons are made with every test. The rates that are promised need a thousand: an
//! acceptance test of an hour or two (ARCHITECTURE.md, "Checking a change"). `IOSCAPE_COMPARISONS`
//! sets another number, or which of them (`240..480`): their counts are for adding up.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ioscape_analysis::compare::{System, Versus, compare};
use ioscape_analysis::model::{Sample, Training};
use ioscape_analysis::predict::Predictor;
use ioscape_engine::Rig;
use ioscape_engine::sim::{SimRig, SimSpec};
use ioscape_experiment::explore::{Earlier, Run, explore};
use ioscape_experiment::plan::{BlendPlan, BlendSettings};
use ioscape_model::{Header, Overall, Record, Verdict, Workload, named};
use ioscape_test_support::{header, recorded};

/// `--budget`, by default.
const BUDGET_S: f64 = 600.0;
/// Two visits differ by this; nothing else about two runs does.
const VISIT_CV: f64 = 0.03;
const HANDICAP: f64 = 1.1;
/// How it stands is said whenever so many more pairs were compared.
const REPORTED_EVERY: u64 = 20;

/// A run's record with what is asked of it.
struct Mapped {
    record: Record,
    samples: Vec<Sample>,
    predictor: Predictor,
}

impl Mapped {
    fn run(spec: &SimSpec, seed: u64) -> Self {
        Self::within(BUDGET_S, spec, seed)
    }

    fn within(budget_s: f64, spec: &SimSpec, seed: u64) -> Self {
        let record = record(budget_s, spec, seed);
        let training = Training::from_record(&record);
        let samples = training.samples.clone();
        Self { predictor: Predictor::fit(training).unwrap(), samples, record }
    }

    fn system(&self) -> System<'_> {
        System::new(&self.record, &self.samples, &self.predictor)
    }

    fn against(&self, baseline: &Self) -> Versus {
        let works: Vec<Workload> = named::names().filter_map(named::named).collect();
        compare(&baseline.system(), &self.system(), &works)
    }
}

/// What `ioscape run sim:NAME` writes.
fn record(budget_s: f64, spec: &SimSpec, seed: u64) -> Record {
    let mut rig = SimRig::new(spec.clone(), seed);
    let header = Header { budget_s, hints: rig.hints(), ..header(seed, spec.ranges()) };
    recorded(&header, |journal| {
        let run = Run {
            rig: &mut rig,
            plan: &mut BlendPlan::new(BlendSettings::from_header(&header)),
            header: &header,
            budget_s,
            interrupt: &AtomicBool::new(false),
            vector: None,
            journal,
            on_event: &mut |_| {},
        };
        explore(run, Earlier::default()).unwrap();
    })
}

fn device(name: &str) -> SimSpec {
    let mut spec = SimSpec::preset(name).unwrap();
    spec.noise.between_cv = VISIT_CV;
    spec
}

/// The word for a comparison of two runs, and what stands behind it.
fn said(versus: &Versus) -> String {
    let sum = |of: &Option<ioscape_model::OverallRatio>| {
        of.map_or_else(String::new, |of| {
            format!("{:.3} ({:.3} to {:.3})", of.ratio.value, of.ratio.low, of.ratio.high)
        })
    };
    let (mean, measured) = (sum(&versus.geometric_mean), sum(&versus.measured));
    let shown = versus
        .workloads
        .iter()
        .zip(named::names())
        .filter(|(tested, _)| matches!(tested.verdict, Verdict::Faster | Verdict::Slower));
    let shown: Vec<String> = shown
        .map(|(tested, name)| {
            format!(
                "{name} {:.3} ({:.3} to {:.3})",
                tested.ratio.value, tested.ratio.low, tested.ratio.high
            )
        })
        .collect();
    format!("{:?}, mean {mean}, measured {measured}; {}", versus.verdict, shown.join(", "))
}

#[test]
fn a_system_does_not_differ_from_itself_and_a_slower_one_is_found() {
    let spec = device("nvme");
    let (slower, runs) = (spec.at_speed(1.0 / HANDICAP), 3);
    let plain: Vec<Mapped> = (0..runs).map(|seed| Mapped::run(&spec, seed)).collect();
    let handicapped: Vec<Mapped> = (50..52).map(|seed| Mapped::run(&slower, seed)).collect();
    let (mut different, mut compared) = (0, 0);
    for (index, one) in plain.iter().enumerate() {
        for other in &plain[index + 1..] {
            let versus = other.against(one);
            compared += 1;
            different += usize::from(versus.verdict != Overall::NoDifferenceShown);
        }
    }
    assert!(different == 0, "{different} of {compared} comparisons of a system with itself");
    let (mut found, mut tried) = (0, 0);
    for one in &plain {
        for other in &handicapped {
            let versus = other.against(one);
            tried += 1;
            found += usize::from(versus.verdict == Overall::Slower);
        }
    }
    assert!(found * 10 >= tried * 8, "{found} of {tried} handicaps were found");
}

/// A right program is wrong about one pair in twenty, and about more than two of twelve once in
/// fifty times; the seeds are fixed, so this says the same every time.
#[test]
fn a_short_map_is_no_other_system_than_the_long_one() {
    let (mut different, mut answered) = (Vec::new(), 0);
    for (name, seed) in [("hdd", 201), ("nvme", 202), ("cloud-volume", 203)] {
        let spec = device(name);
        let long = Mapped::run(&spec, seed);
        for (budget_s, part) in [(60.0, 1), (60.0, 2), (120.0, 3), (120.0, 4)] {
            let versus = Mapped::within(budget_s, &spec, 10 * seed + part).against(&long);
            let verdicts = versus.workloads.iter().map(|tested| tested.verdict);
            answered += verdicts.filter(|verdict| *verdict != Verdict::OutOfRange).count();
            if !matches!(versus.verdict, Overall::NoDifferenceShown | Overall::OutOfRange) {
                different.push(format!("{name} in {budget_s} s: {}", said(&versus)));
            }
        }
    }
    assert!(different.len() <= 2, "{different:#?}");
    assert!(answered >= 3 * 12, "only {answered} of 144 workloads were answered");
}

/// Rates over many pairs of runs, no run in more than one of them.
#[test]
#[ignore = "an hour or two"]
fn the_rates_that_are_promised() {
    let asked = std::env::var("IOSCAPE_COMPARISONS").unwrap_or("1000".to_owned());
    let (first, end) = asked.split_once("..").unwrap_or(("0", &asked));
    let (first, end): (u64, u64) = (first.parse().unwrap(), end.parse().unwrap());
    let count = end - first;
    let devices = ["nvme", "hdd", "cloud-volume"].map(device);
    let next = AtomicU64::new(first);
    let [compared, different, found] = std::array::from_fn(|_| AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= end {
                        return;
                    }
                    let spec = &devices[index as usize % devices.len()];
                    let run = |spec: &SimSpec, part: u64| Mapped::run(spec, 3 * index + part);
                    let baseline = run(spec, 0);
                    let again = run(spec, 1).against(&baseline);
                    let slowed = run(&spec.at_speed(1.0 / HANDICAP), 2).against(&baseline);
                    if again.verdict != Overall::NoDifferenceShown {
                        different.fetch_add(1, Ordering::Relaxed);
                        println!("{index} {} with itself: {}", spec.name, said(&again));
                    }
                    if slowed.verdict == Overall::Slower {
                        found.fetch_add(1, Ordering::Relaxed);
                    } else {
                        println!("{index} {} slowed: {}", spec.name, said(&slowed));
                    }
                    let so_far = compared.fetch_add(1, Ordering::Relaxed) + 1;
                    if so_far.is_multiple_of(REPORTED_EVERY) {
                        println!(
                            "{so_far} of {count} compared: {} false differences, {} handicaps found",
                            different.load(Ordering::Relaxed),
                            found.load(Ordering::Relaxed),
                        );
                    }
                }
            });
        }
    });
    let share = |of: AtomicU64| of.into_inner() as f64 / count as f64;
    let (different, found) = (share(different), share(found));
    println!("{count} comparisons: false differences {different}, handicaps found {found}");
    assert!(different <= 0.065 && found >= 0.9);
}
