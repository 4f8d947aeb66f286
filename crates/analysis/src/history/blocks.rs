//! Blocks: runs under one condition, then under another, and back (A B A B), for what cannot be
//! measured in alternation: kernels, mount options, firmware.
//!
//! A turn to a block is one observation: whatever else a reboot changes is alike for all runs
//! behind it. Where each block was turned to once the runs themselves are compared, and what the
//! block does cannot be told from what time does.

use std::collections::BTreeMap;

use ioscape_model::{BlockContrast, HistoryLine};
use ioscape_stats::t_two_sided;

use super::{HISTORY_LEVEL, Run, turn, with_half_width};

/// Degrees of freedom and variance that turns are worth beforehand, as for runs.
const USUAL_DEGREES_OF_FREEDOM: f64 = 2.0;

/// Logarithms, each block's mean replaced by the mean of all.
pub(super) fn taken_out(runs: &[Run], places: &[usize], logarithms: &[f64]) -> Vec<f64> {
    if places.iter().all(|place| runs[*place].kept.block.is_none()) {
        return logarithms.to_vec();
    }
    let mut groups: BTreeMap<Option<&str>, (f64, f64)> = BTreeMap::new();
    for (place, value) in places.iter().zip(logarithms) {
        let group = groups.entry(runs[*place].kept.block.as_deref()).or_default();
        *group = (group.0 + value, group.1 + 1.0);
    }
    let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
    let own = |place: &usize| {
        let (sum, count) = groups[&runs[*place].kept.block.as_deref()];
        sum / count
    };
    places.iter().zip(logarithms).map(|(place, value)| value - own(place) + mean).collect()
}

/// Values of one line in one turn to a block.
struct TurnValues<'a> {
    block: &'a str,
    logarithms: Vec<f64>,
}

impl TurnValues<'_> {
    fn mean(&self) -> f64 {
        self.logarithms.iter().sum::<f64>() / self.logarithms.len() as f64
    }
}

/// Every further block against the first one, line by line.
pub(super) fn contrasts(runs: &[Run], lines: &[HistoryLine]) -> Vec<BlockContrast> {
    let mut names: Vec<&str> = Vec::new();
    for name in runs.iter().filter_map(|run| run.kept.block.as_deref()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let Some((baseline, others)) = names.split_first() else { return vec![] };
    let tests = (others.len() * lines.len()).max(1);
    let confidence = 1.0 - HISTORY_LEVEL / tests as f64;
    let of_line = |line: &HistoryLine| {
        let visits = visits(runs, line);
        let against = |block: &&str| contrast(line, &visits, (baseline, block), confidence);
        others.iter().filter_map(against).collect::<Vec<_>>()
    };
    lines.iter().flat_map(of_line).collect()
}

fn visits<'a>(runs: &'a [Run], line: &HistoryLine) -> Vec<TurnValues<'a>> {
    let mut visits: Vec<TurnValues<'a>> = Vec::new();
    let mut last = None;
    for (run, value) in runs.iter().zip(&line.values) {
        let block = run.kept.block.as_deref();
        if let (Some(block), Some(value)) = (block, value) {
            match visits.last_mut() {
                Some(visit) if last == Some(block) => visit.logarithms.push(value.mean.ln()),
                _ => visits.push(TurnValues { block, logarithms: vec![value.mean.ln()] }),
            }
        }
        last = block;
    }
    visits
}

fn contrast(
    line: &HistoryLine,
    visits: &[TurnValues<'_>],
    (baseline, block): (&str, &str),
    confidence: f64,
) -> Option<BlockContrast> {
    let means = |name: &str| -> Vec<f64> {
        visits.iter().filter(|visit| visit.block == name).map(TurnValues::mean).collect()
    };
    let runs = |name: &str| -> Vec<f64> {
        let of_block = visits.iter().filter(|visit| visit.block == name);
        of_block.flat_map(|visit| visit.logarithms.iter().copied()).collect()
    };
    let turns = (means(baseline), means(block));
    let is_told_from_time = turns.0.len().min(turns.1.len()) > 1;
    let (before, after) =
        if is_told_from_time { turns.clone() } else { (runs(baseline), runs(block)) };
    let (difference, half_width) = difference(&before, &after, line.noise, confidence)?;
    let shown = difference.abs() > half_width;
    Some(BlockContrast {
        line: line.name.clone(),
        baseline: baseline.to_owned(),
        block: block.to_owned(),
        ratio: with_half_width(difference, half_width),
        visits: (turns.0.len() as u64, turns.1.len() as u64),
        is_told_from_time,
        shown,
        turn: shown.then(|| turn(line.better, difference)),
    })
}

/// Mean of `after` minus mean of `before`, and half of its interval by Student's t with the spread
/// of both pooled and drawn towards the line's noise.
fn difference(before: &[f64], after: &[f64], noise: f64, confidence: f64) -> Option<(f64, f64)> {
    let (m, n) = (before.len() as f64, after.len() as f64);
    if before.is_empty() || after.is_empty() {
        return None;
    }
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let squares = |values: &[f64]| {
        let mean = mean(values);
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    let degrees_of_freedom = m + n - 2.0 + USUAL_DEGREES_OF_FREEDOM;
    let pooled = squares(before) + squares(after) + USUAL_DEGREES_OF_FREEDOM * noise.powi(2);
    let sd = (pooled / degrees_of_freedom * (1.0 / m + 1.0 / n)).sqrt();
    Some((mean(after) - mean(before), t_two_sided(confidence, degrees_of_freedom) * sd))
}
