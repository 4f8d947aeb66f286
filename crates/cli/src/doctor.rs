//! `ioscape doctor`: the preflight alone. What would make a measurement of a target misleading, what
//! to do about it, and what cannot be known.

use std::path::{Path, PathBuf};

use clap::Args;
use ioscape_analysis::doctor::judge;
use ioscape_engine::Clock;
use ioscape_engine::host::checkup;
use ioscape_engine::target::{self, Consent};
use ioscape_experiment::bench::machine_warnings;
use ioscape_model::checkup::{Checkup, Facts};
use ioscape_model::units::show_bytes;
use ioscape_model::{Severity, Target, TargetKind, Warning};

use crate::bench;
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::output::{answer, one_line};

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

fn examine(
    args: &DoctorArgs,
    path: &Path,
    clock: Clock,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    let mut facts = if target::is_block_device(path) {
        checkup::of_device(&target::open_device(path, Consent::ReadOnly)?, &clock)
    } else {
        checkup::of_directory(target::open_directory(path)?, &clock, interrupt.flag())?
    };
    facts.warnings.extend(machine_warnings(&facts.host, facts.target.is_in_memory()));
    let checkup = judge(&facts);
    show(args, &facts, &checkup)
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
        answer(&serde_json::to_string_pretty(&document)?)?;
    } else {
        answer(&text(facts, checkup))?;
    }
    Ok(if count(checkup, Severity::Serious) > 0 { Exit::NotWithin } else { Exit::Fine })
}

fn count(checkup: &Checkup, severity: Severity) -> usize {
    checkup.doubts.iter().filter(|doubt| doubt.severity == severity).count()
}

/// For scripts: `fine`, `doubtful`, `misleading`.
fn verdict(checkup: &Checkup) -> &'static str {
    match checkup.doubts.iter().map(|doubt| doubt.severity).max() {
        Some(Severity::Serious) => "misleading",
        Some(Severity::Warning) => "doubtful",
        _ => "fine",
    }
}

fn text(facts: &Facts, checkup: &Checkup) -> String {
    let mut lines = vec![headline(facts), String::new()];
    lines.extend(checkup.doubts.iter().map(doubt));
    let conclusion = match (count(checkup, Severity::Serious), count(checkup, Severity::Warning)) {
        (0, 0) => "Nothing seen that would make a measurement here misleading.",
        (0, 1) => "A measurement here is possible, with that warning in mind.",
        (0, _) => "A measurement here is possible, with those warnings in mind.",
        (1, _) => "A measurement here would be misleading: see to the serious doubt first.",
        _ => "A measurement here would be misleading: see to the serious doubts first.",
    };
    if !checkup.doubts.is_empty() {
        lines.push(String::new());
    }
    lines.push(conclusion.to_owned());
    if !checkup.unknown.is_empty() {
        lines.extend([String::new(), "What cannot be known from here:".to_owned()]);
        let unknown = checkup.unknown.iter();
        lines.extend(unknown.map(|unknown| format!("- {}\n  {}", unknown.text, unknown.remedy)));
    }
    let missing: Vec<&str> = checkup
        .privileges
        .iter()
        .filter(|privilege| !privilege.granted)
        .map(|privilege| privilege.text.as_str())
        .collect();
    if !missing.is_empty() {
        lines.extend([String::new(), "Not needed, but root would add:".to_owned()]);
        lines.extend(missing.into_iter().map(|text| format!("- {text}")));
    }
    lines.join("\n")
}

/// `/data: ext4 on nvme0n1 (a model), 1.20 TiB free`
fn headline(facts: &Facts) -> String {
    let target = &facts.target;
    let device = target.device.as_deref().map_or(String::new(), |device| {
        let model = target.device_model.as_deref();
        format!(" on {device}{}", model.map_or(String::new(), |model| format!(" ({model})")))
    });
    let (path, free_bytes) = (one_line(&target.path), show_bytes(target.free_bytes as f64));
    match target.kind {
        TargetKind::Directory => {
            format!("{path}: {}{device}, {free_bytes} free", target.filesystem)
        }
        TargetKind::BlockDevice => format!("{path}: a block device{device}, {free_bytes}"),
        _ => format!("{path}: a simulated device, the same on every machine"),
    }
}

fn doubt(warning: &Warning) -> String {
    let severity = match warning.severity {
        Severity::Note => "note   ",
        Severity::Warning => "warning",
        Severity::Serious => "serious",
    };
    format!("{severity}  {}\n         {}", warning.text, warning.remedy)
}
