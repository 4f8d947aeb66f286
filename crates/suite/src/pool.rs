//! From trials to scores and contrasts.

use ioscape_model::{Contrast, Interval, Score, Trial, TrialFigure};
use ioscape_stats::Mean;

const CONFIDENCE: f64 = 0.95;
/// Left out at each end for the trimmed mean.
const TRIMMED: f64 = 0.2;

/// Pools the scored trials: one score for each figure of each benchmark on each target, in the
/// order in which they first appear.
pub fn scores(trials: &[Trial]) -> Vec<Score> {
    let mut scores: Vec<Score> = Vec::new();
    for trial in trials.iter().filter(|trial| trial.scored) {
        for figure in &trial.figures {
            let known = |score: &Score| {
                (score.benchmark.as_str(), score.target, score.name.as_str())
                    == (trial.benchmark.as_str(), trial.target, figure.name.as_str())
            };
            if !scores.iter().any(known) {
                let values = values(trials, &trial.benchmark, trial.target, &figure.name);
                scores.push(score(trial, figure, values.into_iter().map(|pair| pair.1).collect()));
            }
        }
    }
    scores
}

/// Repetition and value of each scored trial.
fn values(trials: &[Trial], benchmark: &str, target: u32, name: &str) -> Vec<(u32, f64)> {
    trials
        .iter()
        .filter(|trial| trial.scored && trial.benchmark == benchmark && trial.target == target)
        .filter_map(|trial| {
            let figure = trial.figures.iter().find(|figure| figure.name == name)?;
            Some((trial.repeat, figure.value))
        })
        .collect()
}

fn score(trial: &Trial, figure: &TrialFigure, mut values: Vec<f64>) -> Score {
    values.sort_by(f64::total_cmp);
    let (mean, standard_deviation) = spread(&values);
    let count = values.len();
    let cut = (count as f64 * TRIMMED) as usize;
    let middle = &values[cut..count - cut];
    let interval = standard_deviation.map(|sd| {
        let half = half_width(sd, count);
        // None of the figures can be below zero.
        Interval { mean, low: (mean - half).max(0.0), high: mean + half }
    });
    Score {
        benchmark: trial.benchmark.clone(),
        target: trial.target,
        name: figure.name.clone(),
        unit: figure.unit.clone(),
        better: figure.better,
        repeats: count as u32,
        mean,
        interval,
        standard_deviation,
        min: values[0],
        median: f64::midpoint(values[(count - 1) / 2], values[count / 2]),
        max: values[count - 1],
        trimmed_mean: middle.iter().sum::<f64>() / middle.len() as f64,
    }
}

/// Mean and standard deviation; the latter needs two values.
fn spread(values: &[f64]) -> (f64, Option<f64>) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (values.len() >= 2).then(|| (squares / (count - 1.0)).sqrt()))
}

/// Half of the width of the interval of a mean.
fn half_width(standard_deviation: f64, count: usize) -> f64 {
    let mean = Mean {
        value: 0.0,
        standard_error: standard_deviation / (count as f64).sqrt(),
        degrees_of_freedom: count as f64 - 1.0,
    };
    mean.half_width(CONFIDENCE)
}

/// Mean and 95 % interval of a few values; with only one of them the interval is everything from
/// zero on.
pub(crate) fn interval(values: &[f64]) -> Interval {
    let (mean, standard_deviation) = spread(values);
    let half = standard_deviation.map_or(f64::MAX, |sd| half_width(sd, values.len()));
    Interval { mean, low: (mean - half).max(0.0), high: mean + half }
}

/// How figures differ between each further target and the first, from pairs of trials of one
/// round. Ratios are pooled as logarithms, so figures that are not above zero are left out.
pub fn contrasts(trials: &[Trial]) -> Vec<Contrast> {
    let scores = scores(trials);
    let others = scores.iter().filter(|score| score.target > 0);
    others.filter_map(|score| contrast(trials, score)).collect()
}

fn contrast(trials: &[Trial], score: &Score) -> Option<Contrast> {
    let here = values(trials, &score.benchmark, 0, &score.name);
    let there = values(trials, &score.benchmark, score.target, &score.name);
    let pairs: Vec<(f64, f64)> = there
        .iter()
        .filter_map(|(repeat, value)| {
            let (_, base) = here.iter().find(|(other, _)| other == repeat)?;
            (*value > 0.0 && *base > 0.0).then_some((*base, *value))
        })
        .collect();
    let logs: Vec<f64> = pairs.iter().map(|(base, value)| (value / base).ln()).collect();
    if logs.len() < 2 {
        return None;
    }
    let (mean, standard_deviation) = spread(&logs);
    let half = half_width(standard_deviation?, logs.len());
    let (here, there): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
    let ((mean_here, sd_here), (mean_there, sd_there)) = (spread(&here), spread(&there));
    let pooled_sd = (f64::midpoint(sd_here?.powi(2), sd_there?.powi(2))).sqrt();
    let ratio = Interval { mean: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() };
    Some(Contrast {
        benchmark: score.benchmark.clone(),
        target: score.target,
        name: score.name.clone(),
        shown: ratio.low > 1.0 || ratio.high < 1.0,
        ratio,
        pairs: logs.len() as u32,
        separation_sd: (pooled_sd > 0.0).then(|| (mean_there - mean_here) / pooled_sd),
    })
}

/// How the figures of the first target differ between two runs that did not take turns: ratios of
/// geometric means, with intervals from the scatter of both (Welch).
pub fn between(baseline: &[Trial], other: &[Trial]) -> Vec<Contrast> {
    let scores = scores(other);
    let here = scores.iter().filter(|score| score.target == 0);
    here.filter_map(|score| unpaired(baseline, other, score)).collect()
}

fn unpaired(baseline: &[Trial], other: &[Trial], score: &Score) -> Option<Contrast> {
    let logs = |trials: &[Trial]| -> Option<Vec<f64>> {
        let values = values(trials, &score.benchmark, 0, &score.name);
        let positive = values.len() >= 2 && values.iter().all(|(_, value)| *value > 0.0);
        positive.then(|| values.iter().map(|(_, value)| value.ln()).collect())
    };
    let (base, there) = (logs(baseline)?, logs(other)?);
    let ((mean_base, sd_base), (mean_there, sd_there)) = (spread(&base), spread(&there));
    let [a, b] = [(sd_base?, &base), (sd_there?, &there)]
        .map(|(sd, logs)| (sd * sd / logs.len() as f64, logs.len() as f64 - 1.0));
    let (value, variance) = (mean_there - mean_base, a.0 + b.0);
    let half = if variance > 0.0 {
        // Welch and Satterthwaite.
        let degrees_of_freedom = variance.powi(2) / (a.0.powi(2) / a.1 + b.0.powi(2) / b.1);
        let standard_error = variance.sqrt();
        Mean { value, standard_error, degrees_of_freedom }.half_width(CONFIDENCE)
    } else {
        0.0
    };
    let ratio =
        Interval { mean: value.exp(), low: (value - half).exp(), high: (value + half).exp() };
    Some(Contrast {
        benchmark: score.benchmark.clone(),
        target: 1,
        name: score.name.clone(),
        shown: ratio.low > 1.0 || ratio.high < 1.0,
        ratio,
        pairs: base.len().min(there.len()) as u32,
        separation_sd: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::benchmark::rate;

    fn trial(target: u32, repeat: u32, value: f64) -> Trial {
        Trial {
            benchmark: "b".to_owned(),
            target,
            repeat,
            scored: repeat < 10,
            started_s: 0.0,
            elapsed_s: 1.0,
            figures: vec![rate("x", value, "1/s")],
            io: None,
            warnings: vec![],
        }
    }

    #[test]
    fn a_score_is_a_mean_with_students_interval() {
        let values = [10.0, 12.0, 11.0, 13.0, 9.0];
        let mut trials: Vec<Trial> =
            values.iter().enumerate().map(|(i, &value)| trial(0, i as u32, value)).collect();
        trials.push(trial(0, 10, 1e9)); // metered: not scored
        let score = &scores(&trials)[0];
        assert_eq!((score.repeats, score.min, score.median, score.max), (5, 9.0, 11.0, 13.0));
        assert!((score.mean - 11.0).abs() < 1e-12 && (score.trimmed_mean - 11.0).abs() < 1e-12);
        // s = sqrt(2.5), t(0.975, 4) = 2.7764, so the half-width is 2.7764 × s / sqrt(5).
        let interval = score.interval.unwrap();
        assert!((interval.high - 11.0 - 1.9632).abs() < 1e-3, "{interval:?}");
    }

    #[test]
    fn one_trial_has_no_interval() {
        let score = &scores(&[trial(0, 0, 3.0)])[0];
        assert_eq!((score.interval, score.standard_deviation), (None, None));
        assert!(contrasts(&[trial(0, 0, 3.0), trial(1, 0, 4.0)]).is_empty());
    }

    #[test]
    fn pairs_show_a_difference_that_drift_hides() {
        // Everything gets faster by half over the run; target 1 is 5 % faster throughout.
        let mut trials = Vec::new();
        for repeat in 0..6 {
            let drift = 100.0 * (1.0 + f64::from(repeat) * 0.1);
            let noise = if repeat % 2 == 0 { 1.004 } else { 0.996 };
            trials.push(trial(0, repeat, drift));
            trials.push(trial(1, repeat, drift * 1.05 * noise));
        }
        let contrast = &contrasts(&trials)[0];
        assert!(contrast.shown && (contrast.ratio.mean - 1.05).abs() < 0.002, "{contrast:?}");
        assert!(contrast.separation_sd.unwrap() < 1.0);
        assert_eq!((contrast.pairs, contrast.target), (6, 1));
    }

    #[test]
    fn two_runs_are_compared_by_the_scatter_of_both() {
        let run = |factor: f64| -> Vec<Trial> {
            let values = [0.97, 1.0, 1.03, 1.01, 0.99];
            values.iter().enumerate().map(|(i, v)| trial(0, i as u32, v * factor)).collect()
        };
        let contrast = &between(&run(10.0), &run(13.0))[0];
        assert!(contrast.shown && (contrast.ratio.mean - 1.3).abs() < 1e-9, "{contrast:?}");
        // sd of a logarithm about 0.0224, standard error 0.0142, t(8) = 2.31: a factor of 1.033.
        assert!((contrast.ratio.high / 1.3 - 1.033).abs() < 0.002, "{contrast:?}");
        assert!(!between(&run(10.0), &run(10.1))[0].shown);
        assert!(between(&run(10.0), &run(13.0)[..1]).is_empty());
    }
}
