//! What is to be said of a benchmark by what it did here (Chen and Patterson 1994, Fig. 1): the
//! share of its time in reads and writes, the data it touched, whether it grows with the system;
//! and the one rate that it would predict for every workload (Fig. 12).

use ioscape_model::{Interval, IoShare, SuiteLines, Trial, ValidationPoint};
use ioscape_stats::median;

use crate::catalogue::Name;
use crate::ousterhout::geometric_mean;
use crate::pool;

/// One benchmark on one target.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// Which.
    pub benchmark: Name,
    /// Where, counted from 0.
    pub target: u32,
    /// Trials that were metered.
    pub trials: u32,
    /// Share of the time in reads and writes, waiting for storage included: mean, and its 95 %
    /// interval where there are two trials.
    pub data_fraction: Interval,
    /// That share is an upper bound: commands of their own did the I/O.
    pub at_most: bool,
    /// Data touched, bytes; none where unknown.
    pub unique_bytes: Option<u64>,
    /// Bytes over the time in reads and writes; none where unknown.
    pub data_bytes_per_s: Option<f64>,
}

impl Judged {
    /// Most of its time goes into reads and writes, beyond doubt.
    pub fn is_io_limited(&self) -> bool {
        !self.at_most && self.data_fraction.low > 0.5
    }
}

/// All benchmarks with metered trials, in the order in which they were run.
pub fn judge(lines: &SuiteLines) -> Vec<Judged> {
    let mut judged: Vec<Judged> = Vec::new();
    for trial in lines.trials.iter().filter(|trial| trial.io.is_some()) {
        let Some(benchmark) = Name::parse(&trial.benchmark) else { continue };
        if judged.iter().any(|one| (one.benchmark, one.target) == (benchmark, trial.target)) {
            continue;
        }
        let shares = shares(&lines.trials, trial);
        let fractions: Vec<f64> = shares.iter().map(|share| share.data_fraction()).collect();
        let rates: Vec<f64> = shares.iter().filter_map(|share| share.data_bytes_per_s()).collect();
        judged.push(Judged {
            benchmark,
            target: trial.target,
            trials: shares.len() as u32,
            data_fraction: pool::interval(&fractions),
            at_most: shares[0].at_most_s.is_some(),
            unique_bytes: shares[0].unique_bytes,
            data_bytes_per_s: (!rates.is_empty())
                .then(|| rates.iter().sum::<f64>() / rates.len() as f64),
        });
    }
    judged
}

fn shares<'a>(trials: &'a [Trial], of: &Trial) -> Vec<&'a IoShare> {
    let same = |trial: &&Trial| trial.benchmark == of.benchmark && trial.target == of.target;
    trials.iter().filter(same).filter_map(|trial| trial.io.as_ref()).collect()
}

/// What each benchmark on the first target would predict for every workload, bytes per second:
/// Bonnie by its block writes, as in the paper, the others by their reads and writes.
pub fn single_points(lines: &SuiteLines) -> Vec<(String, f64)> {
    let of_bonnie = |name: Name| {
        lines.scores.iter().find(|score| {
            score.benchmark == name.as_str() && score.target == 0 && score.name == "write by block"
        })
    };
    judge(lines)
        .into_iter()
        .filter(|one| one.target == 0)
        .filter_map(|one| {
            let name = one.benchmark;
            let rate = match name {
                Name::Bonnie1990 | Name::Bonnie1996 => of_bonnie(name).map(|score| score.mean),
                _ => one.data_bytes_per_s,
            };
            Some((name.as_str().to_owned(), rate?))
        })
        .collect()
}

/// Half of the errors of each, |predicted/measured − 1|, are above this (section 9 of the paper:
/// 50 % for Andrew and `IOStone`, 65 % for Bonnie).
pub fn single_point_errors(
    single_points: &[(String, f64)],
    measured: &[ValidationPoint],
) -> Vec<(String, f64)> {
    let error = |(name, predicted): &(String, f64)| {
        let errors =
            measured.iter().filter(|point| !point.measured_bytes_per_s.is_empty()).map(|point| {
                let rates = point.measured_bytes_per_s.iter().copied();
                (predicted / geometric_mean(rates) - 1.0).abs()
            });
        Some((name.clone(), median(errors)?))
    };
    single_points.iter().filter_map(error).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trial(benchmark: &str, repeat: u32, io: Option<IoShare>) -> Trial {
        Trial {
            benchmark: benchmark.to_owned(),
            target: 0,
            repeat,
            scored: true,
            started_s: 0.0,
            elapsed_s: 1.0,
            figures: vec![],
            io,
            warnings: vec![],
        }
    }

    fn share(read_s: f64, at_most_s: Option<f64>) -> IoShare {
        IoShare {
            busy_s: 1.0,
            read_s,
            at_most_s,
            read_bytes: 1_000_000,
            unique_bytes: at_most_s.is_none().then_some(500),
            ..IoShare::default()
        }
    }

    #[test]
    fn a_benchmark_is_io_limited_only_beyond_doubt() {
        let trials = |shares: &[f64]| SuiteLines {
            trials: shares
                .iter()
                .enumerate()
                .map(|(repeat, &read_s)| trial("andrew", repeat as u32, Some(share(read_s, None))))
                .collect(),
            ..SuiteLines::default()
        };
        let limited = |shares: &[f64]| judge(&trials(shares))[0].is_io_limited();
        assert!(limited(&[0.8, 0.81, 0.79]));
        assert!(!limited(&[0.2, 0.21, 0.19]));
        assert!(!limited(&[0.4, 0.8, 0.5]), "the interval reaches below a half");
        let judged = judge(&trials(&[0.8, 0.82]));
        assert_eq!((judged.len(), judged[0].trials, judged[0].unique_bytes), (1, 2, Some(500)));
    }

    #[test]
    fn where_commands_did_the_io_there_is_a_bound_and_no_rate() {
        let lines = SuiteLines {
            trials: vec![
                trial("sdet", 0, Some(share(0.0, Some(0.9)))),
                trial("iostone-1990", 0, Some(share(0.5, None))),
                trial("tpcb", 0, None),
            ],
            ..SuiteLines::default()
        };
        let judged = judge(&lines);
        assert_eq!(judged.len(), 2);
        assert!(judged[0].at_most && !judged[0].is_io_limited());
        assert_eq!(single_points(&lines), [("iostone-1990".to_owned(), 2_000_000.0)]);
    }

    #[test]
    fn one_number_for_all_workloads_is_off_by_half_of_them_or_more() {
        let point = |rates: &[f64]| ValidationPoint {
            workload: ioscape_model::Workload::default(),
            measured_bytes_per_s: rates.to_vec(),
            predicted_bytes_per_s: std::collections::BTreeMap::new(),
            in_border_band: false,
        };
        let measured = [point(&[10.0, 40.0]), point(&[5.0]), point(&[100.0]), point(&[])];
        let errors = single_point_errors(&[("andrew".to_owned(), 10.0)], &measured);
        // Against 20, 5 and 100: off by 0.5, 1.0 and 0.9.
        assert_eq!(errors.len(), 1);
        assert!((errors[0].1 - 0.9).abs() < 1e-9, "{errors:?}");
        assert!(single_point_errors(&[("andrew".to_owned(), 10.0)], &[]).is_empty());
    }
}
