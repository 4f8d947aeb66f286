//! `ioscape run --resume`: what a record says about the run that it began.

use std::path::Path;

use ioscape_engine::RunId;
use ioscape_experiment::explore::Earlier;
use ioscape_model::line::Resumed;
use ioscape_model::{EndReason, Header, Method, Record};

use crate::args::{Common, RunArgs};
use crate::bench;
use crate::exit::usage;
use crate::journal::Journal;

/// A run to go on with.
pub(crate) struct Resumption {
    pub(crate) journal: Journal,
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
    if given.is_some_and(|given| given != Path::new(&header.target.path)) {
        return Err(usage(format!("{shown} is about {}: leave TARGET out", header.target.path)));
    }
    let Some(run) = RunId::parse(&header.run_id) else {
        return Err(usage(format!("{shown} names no run that could be gone on with")));
    };
    let recorded_s = record.resumed.iter().rev().find_map(|resumed| resumed.budget_s);
    let recorded_s = recorded_s.unwrap_or(header.budget_s);
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
    Ok(Resumption { journal, record, header, run, common, earlier, budget_s })
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
    let laid_out = |point: &ioscape_model::Point| point.workload.unique_bytes;
    let largest = record.points.iter().map(laid_out).max().unwrap_or(0);
    record.points.iter().map(written).fold(largest, u64::saturating_add)
}
