//! `ioscape run --resume`: what a record says about the run that it began.

use std::path::{Path, PathBuf};

use ioscape_engine::RunId;
use ioscape_experiment::bench;
use ioscape_model::{EndReason, Method, Record};

use crate::args::{Common, RunArgs};
use crate::exit::usage;
use crate::journal::Journal;

/// A run to continue.
pub(crate) struct Resumption {
    pub(crate) journal: Journal,
    /// As it is opened: a record holds a name that is no text only as it is shown.
    pub(crate) target: PathBuf,
    pub(crate) record: Record,
    pub(crate) run: RunId,
    pub(crate) common: Common,
    pub(crate) budget_s: f64,
}

/// Opens the record of an unfinished run, which nobody else may write from here on. What was
/// decided then holds: target, method, seed, ranges, limits; only a longer budget may be given now.
pub(crate) fn open(path: &Path, args: &RunArgs) -> anyhow::Result<Resumption> {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Some(out) = args.out.as_ref().filter(|out| real(out) != real(path)) {
        return Err(usage(format!(
            "--resume {} goes on in that record and cannot write {}: leave --out out",
            path.display(),
            out.display()
        )));
    }
    let (record, journal) = Journal::go_on(path)?;
    let header = &record.header;
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
        Method::Vector => {
            return Err(usage(format!("{shown} holds a system vector: measure it again instead")));
        }
        Method::Replay => {
            return Err(usage(format!("{shown} holds replays: replay again instead")));
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
        return Err(usage(format!("{shown} names no run that could be continued")));
    };
    let recorded_s = record.budget_s();
    let budget_s = args.budget.unwrap_or(recorded_s);
    let ended = record.end.as_ref().map(|end| end.reason);
    let used_up = matches!(ended, Some(EndReason::Budget)) && budget_s <= recorded_s;
    if matches!(ended, Some(EndReason::Complete)) || used_up {
        return Err(usage(format!(
            "{shown} has ended: nothing is left to do within its budget; give a longer --budget"
        )));
    }
    let common = Common {
        memory_limit: header.host.memory_limit_set_bytes,
        dirty_limit: header.host.dirty_limit_set_bytes,
        seed: Some(header.seed),
        pin: bench::is_pinned(&header.host),
        ..args.common.clone()
    };
    Ok(Resumption { journal, target, record, run, common, budget_s })
}
