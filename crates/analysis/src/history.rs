//! Records of one system kept over time: what each line did, and what a new record is compared with.
//!
//! Runs are the unit: an interval from inside one run says nothing about how runs differ. Values
//! are taken as logarithms, so that steps are ratios. Steps are found by
//! [`ioscape_stats::change`]; a line may raise a false alarm with a chance of [`LINE_LEVEL`], all
//! lines of a history together with one of [`HISTORY_LEVEL`] (Holm's correction).

use ioscape_model::{
    Better, Change, Figure, History, HistoryLine, Interval, KeptRun, Reading, Turn,
};
use ioscape_stats::change::law::NullLaw;
use ioscape_stats::change::{self, Series, Step};
use ioscape_stats::holm::{Hypothesis, holm};
use ioscape_stats::{Mean, t_two_sided};

mod blocks;
mod check;
mod readings;
#[cfg(test)]
mod tests;

pub use check::{Demand, check};
pub use readings::readings;

/// The chance of a false alarm in one line.
pub const LINE_LEVEL: f64 = 0.02;
/// The chance of any false alarm in a history.
pub const HISTORY_LEVEL: f64 = 0.05;
/// Older runs are no longer looked at: what is asked is what changed lately.
pub const RUNS_MAX: usize = 200;
/// Confidence of all intervals that stand for one line.
const CONFIDENCE: f64 = 0.95;
/// Half of a 95 % interval, in standard deviations.
const HALF_WIDTH_SDS: f64 = 1.96;
/// Fewer runs at one level have no trend.
const TREND_RUNS_MIN: usize = 6;

/// A run with what its record says.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The run.
    pub kept: KeptRun,
    /// Its figures.
    pub readings: Vec<Reading>,
}

/// The history of runs under one label, in any order; of very many the latest.
pub fn history(label: &str, mut runs: Vec<Run>) -> History {
    sort(&mut runs);
    let lines = lines(&runs);
    History {
        label: label.to_owned(),
        blocks: blocks::contrasts(&runs, &lines),
        lines,
        runs: runs.into_iter().map(|run| run.kept).collect(),
    }
}

/// Earliest first, the latest [`RUNS_MAX`].
fn sort(runs: &mut Vec<Run>) {
    let key = |run: &Run| (run.kept.start_time.clone(), run.kept.run_id.clone());
    runs.sort_by_key(key);
    runs.drain(..runs.len().saturating_sub(RUNS_MAX));
}

fn lines(runs: &[Run]) -> Vec<HistoryLine> {
    let mut law = NullLaw::default();
    let tracks: Vec<Track> = tracks(runs);
    let found: Vec<Vec<Step>> =
        tracks.iter().map(|track| change::steps(&track.series(), &mut law, LINE_LEVEL)).collect();
    let lowest = |steps: &Vec<Step>| steps.iter().map(|step| step.p_value).fold(1.0, f64::min);
    let hypotheses: Vec<Hypothesis> =
        found.iter().map(|steps| Hypothesis { p_value: lowest(steps), weight: 1.0 }).collect();
    let adjusted = holm(&hypotheses, HISTORY_LEVEL);
    let mut lines = Vec::new();
    for ((track, steps), adjusted) in tracks.iter().zip(found).zip(adjusted) {
        let steps = if adjusted.p_value <= HISTORY_LEVEL { steps } else { vec![] };
        lines.push(track.line(runs, &steps, &mut law));
    }
    lines
}

/// A line's values in the runs that have it.
struct Track<'a> {
    first: &'a Reading,
    /// By run.
    values: Vec<Option<Interval>>,
    /// Runs that have it.
    places: Vec<usize>,
    /// Logarithms there, each block's own mean taken out.
    logarithms: Vec<f64>,
    /// Mean variance of a value from inside its run.
    variance_within: f64,
}

/// All lines, in the order in which they first appear. A figure that is zero somewhere has no
/// logarithm, and is left out.
fn tracks(runs: &[Run]) -> Vec<Track<'_>> {
    let mut firsts: Vec<&Reading> = Vec::new();
    for reading in runs.iter().flat_map(|run| &run.readings) {
        if !firsts.iter().any(|first| is_same(first, reading)) {
            firsts.push(reading);
        }
    }
    firsts.into_iter().filter_map(|first| track(runs, first)).collect()
}

/// True if both belong to one line.
fn is_same(one: &Reading, other: &Reading) -> bool {
    (&one.name, &one.unit) == (&other.name, &other.unit)
}

fn track<'a>(runs: &[Run], first: &'a Reading) -> Option<Track<'a>> {
    let value_in = |run: &Run| {
        run.readings.iter().find(|reading| is_same(reading, first)).map(|reading| reading.value)
    };
    let values: Vec<Option<Interval>> = runs.iter().map(value_in).collect();
    let present = values.iter().enumerate().filter_map(|(place, value)| Some((place, (*value)?)));
    let (places, figures): (Vec<usize>, Vec<Interval>) = present.unzip();
    if figures.iter().any(|figure| figure.mean <= 0.0 || !figure.mean.is_finite()) {
        return None;
    }
    let raw: Vec<f64> = figures.iter().map(|figure| figure.mean.ln()).collect();
    let logarithms = blocks::taken_out(runs, &places, &raw);
    let variances: f64 = figures.iter().map(variance_within).sum();
    let variance_within = variances / figures.len().max(1) as f64;
    Some(Track { first, values, places, logarithms, variance_within })
}

/// Variance of a figure's logarithm, from its interval; of a figure without one, none.
fn variance_within(figure: &Interval) -> f64 {
    let half_width = figure.relative_half_width();
    if half_width.is_finite() { (half_width.max(0.0) / HALF_WIDTH_SDS).powi(2) } else { 0.0 }
}

impl Track<'_> {
    fn series(&self) -> Series<'_> {
        Series::new(&self.logarithms, self.variance_within)
    }

    fn line(&self, runs: &[Run], steps: &[Step], law: &mut NullLaw) -> HistoryLine {
        let since = steps.last().map_or(0, |step| step.at);
        let here = &self.logarithms[since..];
        let (level, _) = change::level(here, self.variance_within)
            .expect("a line has a value at least, and a step values behind it");
        let noise = self.noise(steps);
        HistoryLine {
            name: self.first.name.clone(),
            unit: self.first.unit.clone(),
            better: self.first.better,
            values: self.values.clone(),
            level: figure(&level),
            level_since_run: self.run_number(since),
            noise,
            trend_per_run: trend(here, self.variance_within),
            smallest_change: change::smallest_step(self.logarithms.len(), noise, law, LINE_LEVEL)
                .map(|step| 1.0 - (-step).exp()),
            changes: steps.iter().map(|step| self.change(runs, step)).collect(),
        }
    }

    /// Standard deviation of a run about the level it belongs to.
    fn noise(&self, steps: &[Step]) -> f64 {
        let starts = std::iter::once(0).chain(steps.iter().map(|step| step.at));
        let ends = steps.iter().map(|step| step.at).chain([self.logarithms.len()]);
        let (mut squares, mut freedom) = (0.0, 0.0);
        for (start, end) in starts.zip(ends) {
            let values = &self.logarithms[start..end];
            if let Some((mean, sd)) = change::level(values, self.variance_within) {
                squares += sd * sd * mean.degrees_of_freedom;
                freedom += mean.degrees_of_freedom;
            }
        }
        if freedom > 0.0 { (squares / freedom).sqrt() } else { 0.0 }
    }

    /// The run at a place in the series, counted from 1.
    fn run_number(&self, place: usize) -> u64 {
        self.places.get(place).map_or(0, |run| *run as u64 + 1)
    }

    fn change(&self, runs: &[Run], step: &Step) -> Change {
        let run = self.places[step.at];
        Change {
            run: run as u64 + 1,
            time: runs[run].kept.start_time.clone(),
            earliest_run: self.run_number(step.earliest),
            latest_run: self.run_number(step.latest),
            ratio: figure(&step.difference),
            p_value: step.p_value,
            is_confirmed: step.is_confirmed,
            turn: turn(self.first.better, step.difference.value),
        }
    }
}

/// A mean of logarithms as a figure with its 95 % interval.
fn figure(mean: &Mean) -> Figure {
    with_half_width(mean.value, mean.half_width(CONFIDENCE))
}

fn with_half_width(ln_value: f64, half_width: f64) -> Figure {
    Figure {
        value: ln_value.exp(),
        low: (ln_value - half_width).exp(),
        high: (ln_value + half_width).exp(),
    }
}

/// The judgement on a difference of logarithms.
fn turn(better: Better, difference: f64) -> Turn {
    match better {
        Better::Higher if difference > 0.0 => Turn::Better,
        Better::Lower if difference < 0.0 => Turn::Better,
        Better::Neither => Turn::Different,
        Better::Higher | Better::Lower => Turn::Worse,
    }
}

/// The straight line through logarithms: what a run is multiplied by to give the next.
fn trend(values: &[f64], variance_min: f64) -> Option<Figure> {
    if values.len() < TREND_RUNS_MIN {
        return None;
    }
    let n = values.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let mean = values.iter().sum::<f64>() / n;
    let centred = || values.iter().enumerate().map(|(i, value)| (i as f64 - middle, value - mean));
    let spread: f64 = centred().map(|(x, _)| x * x).sum();
    let slope = centred().map(|(x, y)| x * y).sum::<f64>() / spread;
    let squares: f64 = centred().map(|(x, y)| (y - slope * x).powi(2)).sum();
    let degrees_of_freedom = n - 2.0;
    let variance = (squares / degrees_of_freedom).max(variance_min);
    let half_width = t_two_sided(CONFIDENCE, degrees_of_freedom) * (variance / spread).sqrt();
    Some(with_half_width(slope, half_width))
}
