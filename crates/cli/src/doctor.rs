//! `ioscape doctor`: the preflight alone. What would make a measurement of a target misleading, what
//! to do about it, and what cannot be known.

use std::path::{Path, PathBuf};

use clap::Args;
use ioscape_analysis::doctor::judge;
use ioscape_engine::Clock;
use ioscape_engine::host::{checkup, scale_dirty_limits};
use ioscape_engine::target::{self, Consent};
use ioscape_experiment::bench::machine_warnings;
use ioscape_model::checkup::{Checkup, Facts};
use ioscape_model::{Severity, Target, TargetKind, Warning};
use ioscape_report::checkup_text;

use crate::bench;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::answer;

/// What can be typed.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// A directory, a block device, or sim:NAME for a simulated device [default: the current directory]
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// Print one JSON document on stdout and nothing else there
    #[arg(long)]
    json: bool,
}

/// Looks and says. The exit code is 1 where a doubt is serious.
pub(crate) fn doctor(args: &DoctorArgs, clock: Clock) -> anyhow::Result<Exit> {
    let target = args.target.as_deref().unwrap_or(Path::new("."));
    if let Some(name) = bench::sim_name(target) {
        bench::sim_spec(name)?;
        return show(args, &simulated(target), &Checkup::default());
    }
    let interrupt = Interrupt::catch()?;
    let outcome = examine(args, target, clock, &interrupt);
    interrupt.settle(outcome)
}

/// What would make a measurement of this directory or device misleading: warnings and worse.
///
/// # Errors
/// When the target is refused, or cannot be looked at.
pub(crate) fn doubts(
    path: &Path,
    clock: Clock,
    interrupt: &Interrupt,
) -> anyhow::Result<Vec<Warning>> {
    let checkup = judge(&facts(path, clock, interrupt)?);
    // What only its end can tell, a run says then.
    let bears = |doubt: &Warning| doubt.severity >= Severity::Warning && !doubt.code.is_closing();
    Ok(checkup.doubts.into_iter().filter(bears).collect())
}

/// Doubts that a measurement has already, and those of a checkup that it has not.
pub(crate) fn with_doubts(mut known: Vec<Warning>, found: Vec<Warning>) -> Vec<Warning> {
    for doubt in found {
        if !known.iter().any(|known| known.code == doubt.code) {
            known.push(doubt);
        }
    }
    known
}

fn examine(
    args: &DoctorArgs,
    path: &Path,
    clock: Clock,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    let facts = facts(path, clock, interrupt)?;
    let checkup = judge(&facts);
    show(args, &facts, &checkup)
}

fn facts(path: &Path, clock: Clock, interrupt: &Interrupt) -> anyhow::Result<Facts> {
    let mut facts = if target::is_block_device(path) {
        checkup::of_device(&target::open_device(path, Consent::ReadOnly)?, &clock)
    } else {
        checkup::of_directory(target::open_directory(path)?, &clock, interrupt.flag())?
    };
    // Facts are the machine's; what holds writers back is what holds here.
    let mut host = facts.host.clone();
    scale_dirty_limits(&mut host, &facts.target.filesystem);
    facts.warnings.extend(machine_warnings(&host, facts.target.is_in_memory()));
    Ok(facts)
}

/// Nothing of this machine touches a simulated device.
fn simulated(target: &Path) -> Facts {
    let path = target.display().to_string();
    let target = Target { path, kind: TargetKind::Sim, ..Target::default() };
    Facts { target, ..Facts::default() }
}

fn show(args: &DoctorArgs, facts: &Facts, checkup: &Checkup) -> anyhow::Result<Exit> {
    if args.json {
        let mut document = serde_json::to_value(checkup)?;
        document["verdict"] = verdict(checkup).into();
        document["facts"] = serde_json::to_value(facts)?;
        answer(&crate::output::json(&document)?)?;
    } else {
        answer(&checkup_text(facts, checkup))?;
    }
    Ok(if verdict(checkup) == MISLEADING { Exit::NotWithin } else { Exit::Fine })
}

const MISLEADING: &str = "misleading";

/// For scripts: `fine`, `doubtful`, `misleading`.
fn verdict(checkup: &Checkup) -> &'static str {
    match checkup.doubts.iter().map(|doubt| doubt.severity).max() {
        Some(Severity::Serious) => MISLEADING,
        Some(Severity::Warning) => "doubtful",
        _ => "fine",
    }
}
