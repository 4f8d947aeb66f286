//! Histories with a known truth: levels, steps, blocks, and new records against them.

use ioscape_model::{Better, Interval, KeptRun, Reading, Standing, Turn};
use rand::SeedableRng;
use rand_distr::{Distribution, Normal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Demand, Run, check, history};

const NOISE: f64 = 0.03;
const NAMES: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "read border"];

/// Figures about these levels with 3 % noise.
fn readings(chance: &mut Xoshiro256PlusPlus, levels: [f64; 12]) -> Vec<Reading> {
    let noise = Normal::new(1.0, NOISE).unwrap();
    let named = |(name, level): (&str, f64)| {
        let mean = level * noise.sample(chance);
        Reading {
            name: name.to_owned(),
            unit: "bytes/s".to_owned(),
            better: Better::Higher,
            value: Interval { mean, low: mean * 0.98, high: mean * 1.02 },
        }
    };
    NAMES.into_iter().zip(levels).map(named).collect()
}

fn run(number: usize, block: Option<&str>, readings: Vec<Reading>) -> Run {
    Run {
        kept: KeptRun {
            run_id: format!("{number:04x}"),
            block: block.map(str::to_owned),
            start_time: format!("2026-11-{:02}T00:00:00Z", number + 1),
            ..KeptRun::default()
        },
        readings,
    }
}

/// Runs whose line `a` is at `level(run)` times the others'.
fn runs(seed: u64, count: usize, level: impl Fn(usize) -> f64) -> Vec<Run> {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(seed);
    let of_run = |number: usize| {
        let mut levels = [1e8; 12];
        levels[0] *= level(number);
        run(number, None, readings(&mut chance, levels))
    };
    (0..count).map(of_run).collect()
}

#[test]
fn a_halving_is_found_at_once_and_only_where_it_is() {
    let mut all = runs(1, 21, |number| if number < 20 { 1.0 } else { 0.5 });
    all.reverse(); // in any order
    let history = history("main", all);
    assert_eq!(history.lines.len(), 12);
    let changed: Vec<&str> = history
        .lines
        .iter()
        .filter(|line| !line.changes.is_empty())
        .map(|line| line.name.as_str())
        .collect();
    assert_eq!(changed, ["a"]);
    let line = &history.lines[0];
    let change = &line.changes[0];
    assert_eq!((change.run, line.level_since_run), (21, 21));
    assert_eq!(change.time, "2026-11-21T00:00:00Z");
    assert_eq!((change.turn, change.is_confirmed), (Turn::Worse, false));
    assert!(change.ratio.low < 0.5 && change.ratio.high > 0.5, "{change:?}");
    assert!((0.02..0.05).contains(&line.noise), "{}", line.noise);
}

#[test]
fn histories_of_twelve_lines_without_a_change_show_none_in_nineteen_of_twenty() {
    let alarms = (0..100)
        .filter(|seed| {
            let history = history("main", runs(100 + seed, 20, |_| 1.0));
            history.lines.iter().any(|line| !line.changes.is_empty())
        })
        .count();
    assert!(alarms <= 9, "{alarms} of 100"); // 5 expected at most; 10 and more are 3 in 100
}

#[test]
fn a_run_without_a_line_leaves_a_gap() {
    let mut all = runs(2, 8, |_| 1.0);
    all[3].readings.retain(|reading| reading.name != "b");
    let history = history("main", all);
    let line = history.lines.iter().find(|line| line.name == "b").unwrap();
    assert!(line.values[3].is_none() && line.values[4].is_some());
}

#[test]
fn a_slow_decline_has_a_slope() {
    let history = history("main", runs(3, 30, |number| 0.99_f64.powf(number as f64)));
    let line = &history.lines[1];
    let trend = line.trend_per_run.unwrap();
    assert!(trend.low < 1.0 && trend.high > 1.0, "a level line: {trend:?}");
    assert!(!history.lines[0].changes.is_empty(), "a quarter is lost, in whatever steps");
}

/// Runs in blocks, in each of which line `a` is at this level.
fn blocked(blocks: &[(&str, f64)], runs_each: usize) -> Vec<Run> {
    let mut chance = Xoshiro256PlusPlus::seed_from_u64(4);
    let mut all = Vec::new();
    for (block, level) in blocks {
        for _ in 0..runs_each {
            let mut levels = [1e8; 12];
            levels[0] *= level;
            all.push(run(all.len(), Some(block), readings(&mut chance, levels)));
        }
    }
    all
}

#[test]
fn blocks_in_turn_tell_a_condition_from_time() {
    let (a, b) = (("kernel-6.1", 1.0), ("kernel-6.12", 0.7));
    let turns = history("main", blocked(&[a, b, a, b, a, b], 4));
    let contrast = turns.blocks.iter().find(|contrast| contrast.line == "a").unwrap();
    assert!(contrast.shown && contrast.is_told_from_time, "{contrast:?}");
    assert!(contrast.ratio.low < 0.7 && contrast.ratio.high > 0.7);
    assert_eq!((contrast.visits, contrast.turn), ((3, 3), Some(Turn::Worse)));
    let others = turns.blocks.iter().filter(|contrast| contrast.line != "a");
    assert!(others.filter(|contrast| contrast.shown).count() == 0);
    assert!(turns.lines[0].changes.is_empty(), "a block is no change");
    let once = history("main", blocked(&[a, b], 6));
    let contrast = once.blocks.iter().find(|contrast| contrast.line == "a").unwrap();
    assert!(contrast.shown && !contrast.is_told_from_time);
}

#[test]
fn a_new_record_is_held_against_the_runs_since_the_last_change() {
    let before = runs(5, 24, |number| if number < 12 { 1.0 } else { 0.6 });
    let held = |level: f64, demand: Demand| {
        let mut chance = Xoshiro256PlusPlus::seed_from_u64(50);
        let mut levels = [1e8; 12];
        levels[0] *= level;
        let new = readings(&mut chance, levels);
        check("main", before.clone(), ("new.jsonl", &new), demand)
    };
    let alike = held(0.6, Demand::default());
    assert_eq!(alike.standing, Standing::NoDifferenceShown, "{:?}", alike.lines);
    assert_eq!(alike.lines[0].baseline_runs, 12);
    assert_eq!(alike.lines[1].baseline_runs, 24);
    assert_eq!(held(1.0, Demand::default()).lines[0].standing, Standing::Better);
    assert_eq!(held(0.3, Demand::default()).standing, Standing::Worse);
    let tolerant = Demand { tolerance: 0.9, resolution: None };
    assert_eq!(held(0.3, tolerant).standing, Standing::NoDifferenceShown);
    let strict = Demand { tolerance: 0.0, resolution: Some(0.01) };
    assert_eq!(held(0.6, strict).standing, Standing::Inconclusive);
}

#[test]
fn of_one_run_no_baseline_is_made() {
    let new = &runs(6, 2, |_| 1.0)[1].readings.clone();
    let checked = check("main", runs(6, 1, |_| 1.0), ("new.jsonl", new), Demand::default());
    assert_eq!(checked.standing, Standing::NoBaseline);
    assert!(history("main", vec![]).lines.is_empty());
}
