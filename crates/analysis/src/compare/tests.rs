use std::collections::BTreeSet;

use ioscape_model::units::MIB;
use rand::SeedableRng;
use rand_distr::{Distribution, Normal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;

/// Answers by a formula.
struct Formula {
    /// Added to every logarithm.
    shift: f64,
    /// Error of measuring that all workloads share, as drawn and as admitted.
    shared: (f64, f64),
    /// Misfit, as drawn for each of the workloads and as admitted.
    misfit: (Vec<f64>, f64),
    largest: u64,
}

const VISIT_SD: f64 = 0.03;

fn plain() -> Formula {
    Formula { shift: 0.0, shared: (0.0, 0.02), misfit: (vec![], 0.05), largest: 1 << 40 }
}

/// Throughput falls with the data touched.
fn law(work: &Workload) -> f64 {
    20.0 - 0.5 * (work.unique_bytes as f64 / MIB as f64).ln() + work.read_frac
}

impl Answers for Formula {
    fn guess(&self, work: &Workload) -> Guess {
        let place = (work.unique_bytes / MIB) as usize;
        let misfit = self.misfit.0.get(place % self.misfit.0.len().max(1)).unwrap_or(&0.0);
        Guess { ln_throughput: law(work) + self.shift + self.shared.0 + misfit, sd: self.shared.1 }
    }

    fn prediction_sd(&self, _: &Workload) -> f64 {
        self.shared.1.hypot(self.misfit.1).hypot(VISIT_SD)
    }

    fn is_in_range(&self, work: &Workload) -> bool {
        work.unique_bytes <= self.largest
    }
}

fn work(unique_mib: u64, read_frac: f64) -> Workload {
    Workload { unique_bytes: unique_mib * MIB, read_frac, ..Workload::default() }
}

fn works() -> Vec<Workload> {
    (1..=12).map(|i| work(16 * i + i, 0.5)).collect()
}

fn sample(work: Workload, ln_throughput: f64) -> Sample {
    Sample {
        workload: work,
        ln_throughput,
        sd: VISIT_SD,
        visits: 1,
        ln_tail: None,
        hit_fraction: None,
    }
}

fn system<'a>(answers: &'a Formula, samples: &'a [Sample]) -> System<'a> {
    System { answers, samples, canaries: canaries(&[22.0; 10]), visit_sd: VISIT_SD }
}

/// A run of a system: errors of all kinds are drawn as they are admitted.
struct Drawn {
    formula: Formula,
    samples: Vec<Sample>,
    canaries: Vec<LogMeasurement>,
}

impl Drawn {
    fn shifted(shift: f64, rng: &mut Xoshiro256PlusPlus) -> Self {
        let mut normal = |sd: f64| Normal::new(0.0, sd).unwrap().sample(&mut *rng);
        let run = normal(0.01);
        let formula = Formula {
            shift: shift + run,
            shared: (normal(0.02), 0.02),
            // Half of the variance is common to all maps, and cancels.
            misfit: ((0..97).map(|_| normal(0.05 / 2f64.sqrt())).collect(), 0.05),
            ..plain()
        };
        let measured = (1..=20).map(|i| {
            let work = work(10 * i, 1.0);
            let ln_throughput = law(&work) + shift + run + normal(VISIT_SD);
            sample(work, ln_throughput)
        });
        let samples = measured.collect();
        let minutes: Vec<f64> = (0..10).map(|_| 22.0 + normal(VISIT_SD)).collect();
        let canaries = canaries(&minutes);
        Self { formula, samples, canaries }
    }

    fn system(&self) -> System<'_> {
        System { canaries: self.canaries.clone(), ..system(&self.formula, &self.samples) }
    }
}

fn rate(shift: f64, wanted: Overall) -> f64 {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(11);
    let found = (0..1000).filter(|_| {
        let (one, other) = (Drawn::shifted(0.0, &mut rng), Drawn::shifted(shift, &mut rng));
        compare(&one.system(), &other.system(), &works()).verdict == wanted
    });
    found.count() as f64 / 1000.0
}

#[test]
fn a_system_rarely_differs_from_itself() {
    let same = rate(0.0, Overall::NoDifferenceShown);
    assert!(same >= 0.95, "{same}");
}

#[test]
fn a_tenth_is_found_almost_always() {
    let found = rate(-1.1_f64.ln(), Overall::Slower);
    assert!(found >= 0.95, "{found}");
}

#[test]
fn a_verdict_is_what_its_interval_says_and_a_record_is_no_other_than_itself() {
    let mut verdicts = BTreeSet::new();
    for shift in [-0.9, -0.2, -0.1, 0.0, 0.05, 0.1, 0.3] {
        let (one, other) = (plain(), Formula { shift, ..plain() });
        let versus = compare(&system(&one, &[]), &system(&other, &[]), &works());
        for Tested { ratio, resolution, verdict } in &versus.workloads {
            assert!(ratio.low < ratio.value && ratio.value < ratio.high);
            assert!((ratio.value / f64::exp(shift) - 1.0).abs() < 1e-9);
            let says = match ratio {
                Figure { low, .. } if *low > 1.0 => Verdict::Faster,
                Figure { high, .. } if *high < 1.0 => Verdict::Slower,
                _ => Verdict::NoDifferenceShown,
            };
            assert_eq!(*verdict, says);
            let is_as_large = ratio.value.ln().abs() > resolution.ln_1p();
            assert_eq!(is_as_large, says != Verdict::NoDifferenceShown, "{ratio:?}");
        }
        verdicts.insert(format!("{:?}", versus.verdict));
        assert!(shift != 0.0 || versus.verdict == Overall::NoDifferenceShown);
    }
    assert_eq!(verdicts.len(), 3, "{verdicts:?}");
}

#[test]
fn what_one_record_did_not_measure_is_out_of_range_and_counts_for_nothing() {
    let (one, other) = (plain(), Formula { largest: 100 * MIB, shift: -1.0, ..plain() });
    let versus = compare(&system(&one, &[]), &system(&other, &[]), &works());
    let inside = versus.workloads.iter().filter(|t| t.verdict == Verdict::Slower).count();
    let outside = versus.workloads.iter().filter(|t| t.verdict == Verdict::OutOfRange).count();
    assert_eq!((inside, outside), (5, 7));
    assert_eq!(versus.geometric_mean.unwrap().workloads, 5);
    let none = Formula { largest: 0, ..plain() };
    let versus = compare(&system(&one, &[]), &system(&none, &[]), &works());
    assert_eq!((versus.verdict, versus.geometric_mean), (Overall::OutOfRange, None));
}

#[test]
fn what_both_measured_does_not_answer_for_workloads_out_of_range() {
    let (one, other) = (plain(), Formula { largest: 0, ..plain() });
    let samples: Vec<Sample> =
        (1..=20).map(|i| work(10 * i, 1.0)).map(|w| sample(w.clone(), law(&w))).collect();
    let versus = compare(&system(&one, &samples), &system(&other, &samples), &works());
    assert_eq!(versus.measured.unwrap().verdict, Verdict::NoDifferenceShown);
    assert_eq!(versus.verdict, Overall::OutOfRange);
    let moved: Vec<Sample> =
        samples.iter().map(|s| sample(s.workload.clone(), s.ln_throughput - 1.0)).collect();
    let versus = compare(&system(&one, &samples), &system(&other, &moved), &works());
    assert_eq!(versus.verdict, Overall::Slower, "a difference is one wherever it is shown");
}

#[test]
fn what_could_not_have_shown_what_was_asked_for_is_inconclusive() {
    let (one, other) = (plain(), Formula { shift: 0.05, ..plain() });
    let versus = compare(&system(&one, &[]), &system(&other, &[]), &works());
    assert_eq!(versus.verdict, Overall::NoDifferenceShown);
    let coarsest = versus.workloads.iter().map(|t| t.resolution).fold(0.0, f64::max);
    let fine = versus.clone().requiring(1.001 * coarsest);
    assert_eq!(fine, versus, "fine enough");
    let coarse = versus.requiring(0.999 * coarsest);
    assert_eq!(coarse.verdict, Overall::Inconclusive);
    assert!(coarse.workloads.iter().any(|t| t.verdict == Verdict::Inconclusive));
    let far = Formula { shift: 1.0, ..plain() };
    let shown = compare(&system(&one, &[]), &system(&far, &[]), &works());
    assert_eq!(shown.clone().requiring(1e-6), shown, "what was shown was seen");
}

#[test]
fn faster_here_and_slower_there_is_mixed() {
    let bent = Formula { misfit: ([vec![0.6], vec![-0.6]].concat(), 0.05), ..plain() };
    let one = plain();
    let versus = compare(&system(&one, &[]), &system(&bent, &[]), &works());
    assert_eq!(versus.verdict, Overall::Mixed);
    assert_eq!(versus.geometric_mean.unwrap().verdict, Verdict::NoDifferenceShown);
}

#[test]
fn pairs_are_carried_over_small_steps_and_used_once() {
    let formula = plain();
    let from: Vec<Sample> =
        (1..=9).map(|i| work(100 * i, 0.5)).map(|w| sample(w.clone(), law(&w))).collect();
    let moved = |mib: u64| work(mib, 0.5);
    let mut to: Vec<Sample> =
        (1..=9).map(|i| moved(103 * i)).map(|w| sample(w.clone(), law(&w) - 0.2)).collect();
    to.push(sample(work(100, 0.4), 0.0)); // differs in more than unique_bytes
    let found = pairs::measured_pairs(&system(&formula, &from), &system(&formula, &to));
    assert_eq!(found.len(), 9);
    assert!(found.iter().all(|pair| (pair.ln_ratio + 0.2).abs() < 1e-9), "{found:?}");
    let (typical, count) = pairs::typical(&found).unwrap();
    assert!((typical.value + 0.2).abs() < 1e-9 && count == 9);
    let twice: Vec<Sample> = from.iter().chain(&from).cloned().collect();
    let found = pairs::measured_pairs(&system(&formula, &twice), &system(&formula, &to));
    assert_eq!(found.len(), 9, "nine of eighteen have a partner");
    assert!(pairs::typical(&found[..7]).is_none());
}

#[test]
fn what_moves_within_runs_is_what_runs_may_differ_by() {
    let steady = run::spread(&canaries(&[22.0; 10]), &canaries(&[22.0; 10]));
    let moving: Vec<f64> = (0..10).map(|i| 22.0 + 0.1 * f64::from(i % 2)).collect();
    let moved = run::spread(&canaries(&moving), &canaries(&moving));
    assert!(moved.variance > 3.0 * steady.variance);
    let unsure: Vec<LogMeasurement> = canaries(&moving)
        .into_iter()
        .map(|visit| LogMeasurement { within_sd: 0.06, ..visit })
        .collect();
    let explained = run::spread(&unsure, &unsure).variance;
    assert!((explained - steady.variance).abs() < 1e-12, "the visits' own errors explain it");
    let unseen = run::spread(&[], &[]);
    assert!((unseen.variance.sqrt() - USUAL_SD * 2f64.sqrt()).abs() < 1e-12);
    assert!(unseen.degrees_of_freedom < steady.degrees_of_freedom);
}

fn canaries(ln_values: &[f64]) -> Vec<LogMeasurement> {
    ln_values.iter().map(|&ln_value| LogMeasurement { ln_value, within_sd: 0.0 }).collect()
}

#[test]
fn predictions_are_drawn_to_what_measured_pairs_have_in_common_and_to_nothing_else() {
    let unsure = || Formula { misfit: (vec![], 0.2), ..plain() };
    let (one, other) = (unsure(), Formula { shift: -0.1, ..unsure() });
    let from: Vec<Sample> = (1..=20).map(|i| work(10 * i, 1.0)).map(|w| sample(w, 20.0)).collect();
    let shifted = |by: fn(usize) -> f64| -> Vec<Sample> {
        let moved = |(i, s): (usize, &Sample)| sample(s.workload.clone(), s.ln_throughput + by(i));
        from.iter().enumerate().map(moved).collect()
    };
    let ln_ratio = |to: &[Sample]| {
        let versus = compare(&system(&one, &from), &system(&other, to), &works());
        versus.workloads[0].ratio.value.ln()
    };
    assert!((ln_ratio(&[]) + 0.1).abs() < 1e-9, "no pairs");
    let alike = ln_ratio(&shifted(|_| -0.3));
    assert!((alike + 0.3).abs() < 0.01, "{alike}");
    let apart = ln_ratio(&shifted(|i| if i % 2 == 0 { 1.5 } else { -2.1 }));
    assert!((apart + 0.1).abs() < 0.01, "{apart}");
}
