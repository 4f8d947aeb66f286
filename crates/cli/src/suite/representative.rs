//! Is the workload model fair to real applications (Chen and Patterson 1994, Fig. 3)? An external
//! merge sort and TPC-B are run and described by their five parameters; then workloads with the
//! same parameters run on the same target.

use std::path::Path;

use ioscape_analysis::representative::{self, Beside, Pair, Speed};
use ioscape_engine::{Clock, FileRig, RunId, target};
use ioscape_experiment::measure::{Event, Subject, measure};
use ioscape_model::units::{show_rate, show_seconds};
use ioscape_model::{Host, Line, Role, Rules};

use crate::interrupt::Interrupt;
use crate::journal::Journal;

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
            let subject = Subject { work: &pair.workload, role: Role::Measure, round, seed };
            let rules = Rules::brief();
            let point = measure(&subject, &rules, &mut rig, &mut |_: Event| {})?;
            pair.model.push(Speed {
                throughput_bytes_per_s: point.throughput(),
                response_time_s: point.response_time_s.mean,
            });
            journal.put(&Line::Point(point))?;
        }
    }
    Ok(())
}

/// How a figure is written.
type Show = fn(f64) -> String;

/// In characters.
pub(super) fn text(pairs: &[Pair]) -> String {
    let mut lines = vec![
        String::new(),
        "Is the model fair to them? (Chen and Patterson 1994, Fig. 3)".to_owned(),
    ];
    for likeness in representative::likenesses(pairs) {
        lines.push(format!("  {} as {}", likeness.name, likeness.workload));
        let figures: [(&str, Beside, Show); 2] = [
            ("throughput", likeness.throughput_bytes_per_s, show_rate),
            ("response time", likeness.response_time_s, show_seconds),
        ];
        for (name, Beside { application, model, ratio }, show) in figures {
            lines.push(format!(
                "    {name:<14} application {:<12} model {:<12} model/application {:.2} \
                 ({:.2} to {:.2})",
                show(application),
                show(model),
                ratio.value,
                ratio.low,
                ratio.high
            ));
        }
    }
    lines.push(
        "  Bytes over the time in reads, writes and waiting for storage, on both sides.".to_owned(),
    );
    lines.join("\n")
}
