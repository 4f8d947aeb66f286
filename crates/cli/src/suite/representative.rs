//! Is the workload model fair to real applications (Chen and Patterson 1994, Fig. 3)? An external
//! merge sort and TPC-B are run and described by their five parameters; then workloads with the
//! same parameters run on the same target.

use std::path::Path;

use ioscape_engine::{Clock, FileRig, RunId, target};
use ioscape_experiment::measure::{Event, Subject, measure};
use ioscape_model::units::{show_rate, show_seconds};
use ioscape_model::{Host, IoShare, Line, Record, Role, Rules, Workload};

use crate::interrupt::Interrupt;
use crate::journal::Journal;

/// An application and the workload made after it.
#[derive(Clone, Debug)]
pub(super) struct Pair {
    pub(super) name: String,
    pub(super) work: Workload,
    /// Bytes per second of its reads and writes; one figure for each trial.
    pub(super) application: Vec<[f64; 2]>,
    /// Bytes per second that the workload read and wrote; one figure for each visit.
    pub(super) model: Vec<[f64; 2]>,
}

/// Rate and mean response time of reads and writes. As for the workload, a write that is to be
/// durable lasts until it is.
fn of_share(share: &IoShare) -> Option<[f64; 2]> {
    let calls_s = share.read_s + share.write_s + share.sync_s;
    let seen = share.at_most_s.is_none() && calls_s > 0.0;
    let bytes = (share.read_bytes + share.written_bytes) as f64;
    seen.then(|| [bytes / calls_s, calls_s / (share.reads + share.writes) as f64])
}

/// The applications of a record, with what describes them: parameters are means over its trials.
pub(super) fn applications(record: &Record) -> Vec<Pair> {
    let mut pairs: Vec<Pair> = Vec::new();
    for trial in record.suite.trials.iter().filter(|trial| trial.target == 0) {
        let Some(share) = &trial.io else { continue };
        let Some((work, figures)) = share.workload().zip(of_share(share)) else { continue };
        match pairs.iter_mut().find(|pair| pair.name == trial.benchmark) {
            Some(pair) => pair.application.push(figures),
            None => pairs.push(Pair {
                name: trial.benchmark.clone(),
                work,
                application: vec![figures],
                model: vec![],
            }),
        }
    }
    pairs
}

/// What the workloads run on. Limits are in force already.
pub(super) struct Ground<'a> {
    pub(super) target: &'a Path,
    pub(super) run: &'a RunId,
    pub(super) host: &'a Host,
    pub(super) seed: u64,
    pub(super) clock: Clock,
    pub(super) interrupt: &'a Interrupt,
}

/// Visits each workload as often as its application was tried, and writes the points down.
pub(super) fn visit(
    ground: &Ground<'_>,
    pairs: &mut [Pair],
    journal: &mut Journal,
) -> anyhow::Result<()> {
    let directory = target::open_directory(ground.target)?;
    let (run, flag) = (ground.run.clone(), ground.interrupt.flag());
    let mut rig = FileRig::new(directory, run, ground.host, ground.clock, flag)?;
    for pair in pairs {
        for round in 0..pair.application.len() as u32 {
            let seed = ground.seed.wrapping_add(u64::from(round));
            let subject = Subject { work: &pair.work, role: Role::Measure, round, seed };
            let rules = Rules::brief();
            let point = measure(&subject, &rules, &mut rig, &mut |_: Event| {})?;
            pair.model.push([point.throughput(), point.response_time_s.mean]);
            journal.put(&Line::Point(point))?;
        }
    }
    Ok(())
}

/// Logarithmic mean, and the half-width of its 95 % interval as a factor where there is one.
fn summary(values: &[[f64; 2]], which: usize) -> (f64, f64) {
    let logs: Vec<f64> = values.iter().map(|pair| pair[which].ln()).collect();
    let count = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / count;
    let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
    let standard_error = (squares / (count - 1.0).max(1.0) / count).sqrt();
    (mean.exp(), standard_error)
}

/// Ratio of model to application with its 95 % interval, from the scatter of both.
fn ratio(pair: &Pair, which: usize) -> [f64; 3] {
    let (ours, our_error) = summary(&pair.model, which);
    let (theirs, their_error) = summary(&pair.application, which);
    let freedom = (pair.model.len() + pair.application.len()) as f64 - 2.0;
    let half = if freedom > 0.0 {
        ioscape_stats::t_two_sided(0.95, freedom) * our_error.hypot(their_error)
    } else {
        f64::INFINITY
    };
    let mean = ours / theirs;
    [mean, mean * (-half).exp(), mean * half.exp()]
}

/// How a figure is written.
type Show = fn(f64) -> String;

/// In characters.
pub(super) fn text(pairs: &[Pair]) -> String {
    let mut lines = vec![
        String::new(),
        "Is the model fair to them? (Chen and Patterson 1994, Fig. 3)".to_owned(),
    ];
    for pair in pairs.iter().filter(|pair| !pair.model.is_empty()) {
        lines.push(format!("  {} as {}", pair.name, pair.work));
        let names: [(&str, Show); 2] = [("throughput", show_rate), ("response time", show_seconds)];
        for (which, (name, show)) in names.into_iter().enumerate() {
            let [mean, low, high] = ratio(pair, which);
            lines.push(format!(
                "    {name:<14} application {:<12} model {:<12} model/application {mean:.2} \
                 ({low:.2} to {high:.2})",
                show(summary(&pair.application, which).0),
                show(summary(&pair.model, which).0)
            ));
        }
    }
    lines.push(
        "  Bytes over the time in reads, writes and waiting for storage, on both sides.".to_owned(),
    );
    lines.join("\n")
}

/// The pairs as JSON, for scripts.
pub(super) fn json(pairs: &[Pair]) -> Vec<serde_json::Value> {
    let of = |pair: &Pair| {
        let figure = |which| {
            let [mean, low, high] = ratio(pair, which);
            serde_json::json!({
                "application": summary(&pair.application, which).0,
                "model": summary(&pair.model, which).0,
                "ratio": { "value": mean, "low": low, "high": high },
            })
        };
        serde_json::json!({
            "name": pair.name,
            "workload": pair.work,
            "throughput_bytes_per_s": figure(0),
            "response_time_s": figure(1),
        })
    };
    pairs.iter().filter(|pair| !pair.model.is_empty()).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_has_an_interval_from_the_scatter_of_both() {
        let pair = Pair {
            name: "sort".to_owned(),
            work: Workload::default(),
            application: vec![[100.0, 1.0], [110.0, 1.1], [105.0, 0.9]],
            model: vec![[120.0, 1.0], [125.0, 1.0], [130.0, 1.0]],
        };
        let [mean, low, high] = ratio(&pair, 0);
        assert!((mean - 1.19).abs() < 0.01 && low < mean && mean < high);
        assert!(low > 1.07 && high < 1.33, "{low} {high}");
        let once = Pair { application: vec![[100.0, 1.0]], model: vec![[120.0, 1.0]], ..pair };
        assert!(ratio(&once, 0)[2].is_infinite());
    }
}
