//! Is the workload model fair to real applications (Chen and Patterson 1994, Fig. 3)? Applications
//! that a suite ran, each beside a workload with the same five parameters on the same target.

use ioscape_model::{IoShare, Record, Workload};
use ioscape_stats::t_two_sided;
use serde::Serialize;

/// Confidence of the intervals of ratios.
const CONFIDENCE: f64 = 0.95;

/// How fast one trial or one visit was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Bytes read and written, over the time in reads, writes and waiting for storage.
    pub throughput_bytes_per_s: f64,
    /// Mean response time of reads and writes.
    pub response_time_s: f64,
}

/// An application and the workload made after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The application's benchmark.
    pub name: String,
    /// The workload with its parameters.
    pub workload: Workload,
    /// The application's trials.
    pub application: Vec<Speed>,
    /// The workload's visits; empty until it was made to run.
    pub model: Vec<Speed>,
}

/// The applications of a record's suite on its first target, in the order of their first trials.
/// Each goes by the parameters of its first trial.
pub fn applications(record: &Record) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    for trial in record.suite.trials.iter().filter(|trial| trial.target == 0) {
        let Some(share) = &trial.io else { continue };
        let Some((workload, speed)) = share.workload().zip(speed(share)) else { continue };
        match pairs.iter_mut().find(|pair| pair.name == trial.benchmark) {
            Some(pair) => pair.application.push(speed),
            None => pairs.push(Pair {
                name: trial.benchmark.clone(),
                workload,
                application: vec![speed],
                model: vec![],
            }),
        }
    }
    pairs
}

/// An application's speed, where its calls were seen. As for the workload, a write that is to be
/// durable lasts until it is.
fn speed(share: &IoShare) -> Option<Speed> {
    let calls_s = share.read_s + share.write_s + share.sync_s;
    let is_seen = share.at_most_s.is_none() && calls_s > 0.0;
    let bytes = (share.read_bytes + share.written_bytes) as f64;
    is_seen.then(|| Speed {
        throughput_bytes_per_s: bytes / calls_s,
        response_time_s: calls_s / (share.reads + share.writes) as f64,
    })
}

/// A ratio with its 95 % interval, which has no end above where nothing was repeated.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The ratio of the geometric means.
    pub value: f64,
    /// Lower end.
    pub low: f64,
    /// Upper end; infinite where nothing was repeated.
    pub high: f64,
}

/// A figure of the application beside that of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Beside {
    /// The application's: geometric mean over its trials.
    pub application: f64,
    /// The workload's: geometric mean over its visits.
    pub model: f64,
    /// The workload's over the application's.
    pub ratio: Ratio,
}

/// How near a workload comes to the application it was made after.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Likeness {
    /// The application's benchmark.
    pub name: String,
    /// The workload with its parameters.
    pub workload: Workload,
    /// Throughput, bytes per second.
    pub throughput_bytes_per_s: Beside,
    /// Mean response time, seconds.
    pub response_time_s: Beside,
}

/// Compares each application with its workload, where that ran.
pub fn likenesses(pairs: &[Pair]) -> Vec<Likeness> {
    let likeness = |pair: &Pair| Likeness {
        name: pair.name.clone(),
        workload: pair.workload.clone(),
        throughput_bytes_per_s: beside(pair, |speed| speed.throughput_bytes_per_s),
        response_time_s: beside(pair, |speed| speed.response_time_s),
    };
    pairs.iter().filter(|pair| !pair.model.is_empty()).map(likeness).collect()
}

/// Mean of the logarithms, and its standard error where there are two values at least.
struct LnMean {
    mean: f64,
    standard_error: f64,
}

fn ln_mean(values: &[Speed], figure: fn(&Speed) -> f64) -> LnMean {
    let logs: Vec<f64> = values.iter().map(|speed| figure(speed).ln()).collect();
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    LnMean { mean, standard_error: (squares / (count - 1.0).max(1.0) / count).sqrt() }
}

/// The interval comes from the scatter of both.
fn beside(pair: &Pair, figure: fn(&Speed) -> f64) -> Beside {
    let (ours, theirs) = (ln_mean(&pair.model, figure), ln_mean(&pair.application, figure));
    let freedom = (pair.model.len() + pair.application.len()) as f64 - 2.0;
    let half_width = if freedom > 0.0 {
        t_two_sided(CONFIDENCE, freedom) * ours.standard_error.hypot(theirs.standard_error)
    } else {
        f64::INFINITY
    };
    let (application, model) = (theirs.mean.exp(), ours.mean.exp());
    let value = model / application;
    let ratio = Ratio { value, low: value * (-half_width).exp(), high: value * half_width.exp() };
    Beside { application, model, ratio }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn speeds(all: &[[f64; 2]]) -> Vec<Speed> {
        let speed = |[throughput_bytes_per_s, response_time_s]: &[f64; 2]| Speed {
            throughput_bytes_per_s: *throughput_bytes_per_s,
            response_time_s: *response_time_s,
        };
        all.iter().map(speed).collect()
    }

    #[test]
    fn the_ratio_has_an_interval_from_the_scatter_of_both() {
        let pair = Pair {
            name: "sort".to_owned(),
            workload: Workload::default(),
            application: speeds(&[[100.0, 1.0], [110.0, 1.1], [105.0, 0.9]]),
            model: speeds(&[[120.0, 1.0], [125.0, 1.0], [130.0, 1.0]]),
        };
        let Ratio { value, low, high } =
            likenesses(std::slice::from_ref(&pair))[0].throughput_bytes_per_s.ratio;
        assert!((value - 1.19).abs() < 0.01 && low < value && value < high);
        assert!(low > 1.07 && high < 1.33, "{low} {high}");
        let once = Pair {
            application: speeds(&[[100.0, 1.0]]),
            model: speeds(&[[120.0, 1.0]]),
            ..pair.clone()
        };
        assert!(likenesses(&[once])[0].throughput_bytes_per_s.ratio.high.is_infinite());
        let not_run = Pair { model: vec![], ..pair };
        assert!(likenesses(&[not_run]).is_empty());
    }
}
