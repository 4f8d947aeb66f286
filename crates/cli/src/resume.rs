//! `ioscape run --resume`: what a record says about the run that it began.

use std::path::{Path, PathBuf};

use ioscape_engine::RunId;
use ioscape_experiment::explore::Earlier;
use ioscape_experiment::plan::extent::files_bytes;
use ioscape_model::line::Resumed;
use ioscape_model::{EndReason, Header, Method, Record};

use crate::args::{Common, RunArgs};
use crate::bench;
use crate::exit::usage;
use crate::journal::Journal;

/// A run to go on with.
pub(crate) struct Resumption {
    pub(crate) journal: Journal,
    /// As it is opened: a record holds a name that is no text only as it is shown.
    pub(crate) target: PathBuf,
    pub(crate) record: Record,
    pub(crate) header: Header,
    pub(crate) run: RunId,
    pub(crate) common: Common,
    pub(crate) earlier: Earlier,
    pub(crate) budget_s: f64,
}

/// Opens the record of an unfinished run, which nobody else may write from here on. What was
/// decided then holds: target, method, seed, ranges, limits; only a longer budget may be given now.
pub(crate) fn open(path: &Path, args: &RunArgs) -> anyhow::Result<Resumption> {
    let (record, journal) = Journal::go_on(path)?;
    let header = record.header.clone();
    let shown = path.display();
    match header.method {
        Method::Measure => {
            return Err(usage(format!(
                "{shown} holds a single measurement: measure again instead"
            )));
        }
        Method::Validate => {
            return Err(usage(format!("{shown} holds a validation: validate again instead")));
        }
        Method::Compare => {
            return Err(usage(format!("{shown} holds a live comparison: compare again instead")));
        }
        Method::Suite => {
            return Err(usage(format!(
                "{shown} holds classic benchmarks: ioscape suite --resume {shown} goes on with them"
            )));
        }
        _ => {}
    }
    let given =
        args.target.as_deref().map(|t| std::fs::canonicalize(t).unwrap_or_else(|_| t.into()));
    if given.as_ref().is_some_and(|given| given.to_string_lossy() != header.target.path) {
        return Err(usage(format!("{shown} is about {}: leave TARGET out", header.target.path)));
    }
    if given.is_none() && header.target.path.contains(char::REPLACEMENT_CHARACTER) {
        return Err(usage(format!(
            "{shown} is about a directory whose name is no text, and does not hold it: name TARGET \
             too"
        )));
    }
    let target = given.unwrap_or_else(|| PathBuf::from(&header.target.path));
    let Some(run) = RunId::parse(&header.run_id) else {
        return Err(usage(format!("{shown} names no run that could be gone on with")));
    };
    let recorded_s = record.budget_s();
    let budget_s = if budget_was_typed() { args.budget } else { recorded_s };
    let ended = record.end.as_ref().map(|end| end.reason);
    let used_up = matches!(ended, Some(EndReason::Budget)) && budget_s <= recorded_s;
    if matches!(ended, Some(EndReason::Complete)) || used_up {
        return Err(usage(format!(
            "{shown} has ended: nothing is left to do within its budget; give a longer --budget"
        )));
    }
    let earlier = earlier(&record);
    let common = Common {
        memory_limit: header.host.memory_limit_set_bytes,
        dirty_limit: header.host.dirty_limit_set_bytes,
        seed: Some(header.seed),
        pin: bench::is_pinned(&header.host),
        ..args.common.clone()
    };
    Ok(Resumption { journal, target, record, header, run, common, earlier, budget_s })
}

impl Resumption {
    /// A simulated device's noise must not repeat what the record holds already.
    pub(crate) fn rig_seed(&self) -> u64 {
        self.header.seed.wrapping_add(self.record.points.len() as u64)
    }

    /// The line that says so.
    pub(crate) fn line(&self, time: String, command_line: Vec<String>) -> Resumed {
        let elapsed_before_s = self.earlier.elapsed_s;
        Resumed { time, elapsed_before_s, budget_s: Some(self.budget_s), command_line }
    }
}

fn budget_was_typed() -> bool {
    std::env::args_os().any(|arg| {
        let arg = arg.to_string_lossy();
        arg == "--budget" || arg.starts_with("--budget=")
    })
}

/// What the run did until it ended.
pub(crate) fn earlier(record: &Record) -> Earlier {
    Earlier {
        points: record.points.clone(),
        elapsed_s: elapsed_s(record),
        revision: record.revision_max,
        written_bytes: written_bytes(record),
        device_written_bytes: device_written_bytes(record),
        warnings: record.warnings.clone(),
    }
}

/// The part of the budget that is gone: after a kill, up to the last thing that was written.
fn elapsed_s(record: &Record) -> f64 {
    let of_points = record.points.last().map_or(0.0, |point| point.started_s + point.elapsed_s);
    let of_map = record.map.as_ref().map_or(0.0, |map| map.elapsed_s);
    let of_end = record.end.as_ref().map_or(0.0, |end| end.elapsed_s);
    of_points.max(of_map).max(of_end)
}

fn written_bytes(record: &Record) -> u64 {
    if let Some(end) = &record.end {
        return end.written_bytes;
    }
    // What was dirty already when it was written cost storage nothing more.
    let written = |point: &ioscape_model::Point| {
        let bytes = point.classes.write_seq.bytes + point.classes.write_rand.bytes;
        (bytes as f64 * (1.0 - point.write_absorbed_fraction.unwrap_or(0.0))) as u64
    };
    // Each part of the run made its files anew.
    let parts = record.resumed.len() as u64 + 1;
    let files_bytes = files_bytes(record.points.iter().map(|point| &point.workload));
    let written = record.points.iter().map(written).fold(0, u64::saturating_add);
    parts.saturating_mul(files_bytes).saturating_add(written)
}

/// What the device counted; where nobody wrote that down, at least what was written.
fn device_written_bytes(record: &Record) -> u64 {
    let counted = record.end.as_ref().and_then(|end| end.device_written_bytes);
    counted.unwrap_or_else(|| written_bytes(record))
}
