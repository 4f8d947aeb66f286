//! `ioscape vector`: what each kind of operation takes on a system, and nothing else.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use ioscape_engine::{Clock, Error, RunId, target};
use ioscape_experiment::bench::clear_leftovers;
use ioscape_experiment::vector::{self, SystemVector, left_out};
use ioscape_model::units::{GIB, parse_duration_s, parse_size, show_seconds};
use ioscape_model::{End, Header, Limits, Line, Method, Record, Rules};

use crate::args::Common;
use crate::bench;
use crate::exit::{Exit, usage};
use crate::interrupt::Interrupt;
use crate::journal::{self, Journal};
use crate::limits;
use crate::origin::origin;
use crate::out_file;
use crate::output::{self, answer, say};
use crate::page_file;
use crate::progress::Steps;

/// In less time than this the most important elements do not come to two rounds, seconds.
const BUDGET_MIN_S: f64 = 5.0;
const BUDGET_MAX_S: f64 = 600.0;
const BUDGET_USUAL_S: f64 = 60.0;

/// What can be typed.
#[derive(Debug, Args)]
pub(crate) struct VectorArgs {
    /// A directory [default: the current directory]
    #[arg(value_name = "TARGET")]
    target: Option<PathBuf>,
    /// How long it may take: 5s to 10m [default: 60s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_s)]
    budget: Option<f64>,
    /// Most bytes that may be written [default: 16 GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_written: Option<u64>,
    /// The record; by default ioscape-vector-TIME.jsonl in the current directory, in UTC
    #[arg(long, short, value_name = "RECORD")]
    out: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// Measures the vector, writes its record, shows it.
pub(crate) fn vector(args: &VectorArgs, clock: Clock) -> anyhow::Result<Exit> {
    if args.common.pin {
        return Err(usage("a system vector is measured where the kernel puts it: leave --pin out"));
    }
    let budget_s = args.budget.unwrap_or(BUDGET_USUAL_S);
    if !(BUDGET_MIN_S..=BUDGET_MAX_S).contains(&budget_s) {
        return Err(usage(format!(
            "--budget {}: a system vector takes {} to {}",
            show_seconds(budget_s),
            show_seconds(BUDGET_MIN_S),
            show_seconds(BUDGET_MAX_S)
        )));
    }
    let target = args.target.as_deref().unwrap_or(Path::new("."));
    if bench::sim_name(target).is_some() {
        return Err(usage(format!(
            "{}: a simulated device has no filesystem to measure, name a directory",
            target.display()
        )));
    }
    if target::is_block_device(target) {
        return Err(usage(format!(
            "{} is a block device: files and names are measured, name a directory on it",
            target.display()
        )));
    }
    let interrupt = Interrupt::catch()?;
    let outcome = measure(args, (target, budget_s), clock, &interrupt);
    interrupt.settle(outcome)
}

fn measure(
    args: &VectorArgs,
    (target, budget_s): (&Path, f64),
    clock: Clock,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    let run = RunId::random()?;
    let origin = origin(&run, args.common.seed);
    let usual = || journal::default_record("ioscape-vector", &origin.start_time);
    let out = args.out.clone().unwrap_or_else(usual);
    out_file::check_new(&out, "--out")?;
    let directory = Arc::new(target::open_directory(target)?);
    let mut warnings = directory.warnings();
    warnings.extend(clear_leftovers(&directory, &run)?);
    let around = (&clock, directory.filesystem());
    let (_limits, host) = limits::enter(&args.common, &run, around)?;
    let seed = origin.seed;
    let written_max_bytes = args.max_written.unwrap_or(16 * GIB);
    let header = Header {
        rules: Rules::thorough(),
        budget_s,
        limits: Limits { written_max_bytes: Some(written_max_bytes), ..Limits::default() },
        ..Header::new(origin, Method::Vector, host, directory.describe())
    };
    let mut journal = Journal::create(&out, "--out")?;
    journal.put(&Line::Header(header))?;
    for warning in warnings {
        journal.put(&Line::Warning(warning))?;
    }
    // Cleaning up takes a moment.
    let left_s = (budget_s * 0.95 - clock.now_s()).max(1.0);
    let request = vector::Request {
        directory,
        run: &run,
        budget: Duration::from_secs_f64(left_s),
        written_max_bytes,
        seed,
        clock,
        interrupt: interrupt.flag(),
    };
    let mut progress = Steps::new(budget_s, args.common.quiet);
    let outcome = vector::measure(&request, &mut |step| {
        progress.show(clock.now_s(), step.round, step.name.word());
    });
    drop(progress);
    let vector = outcome?;
    write(&vector, &mut journal, clock.now_s())?;
    show(args, &vector, journal.path())
}

fn write(vector: &SystemVector, journal: &mut Journal, elapsed_s: f64) -> anyhow::Result<()> {
    if vector.elements.is_empty() {
        let why = vector.dropped.first().map_or("", |(_, why)| why.as_str());
        return Err(anyhow::anyhow!("nothing was measured: {why}"));
    }
    for element in &vector.elements {
        journal.put(&Line::Element(element.clone()))?;
    }
    let end = End {
        written_bytes: vector.written_bytes,
        left_out: left_out(vector),
        ..End::after(Error::ending(None), &[], elapsed_s)
    };
    journal.put(&Line::End(end))
}

fn show(args: &VectorArgs, vector: &SystemVector, path: &Path) -> anyhow::Result<Exit> {
    let record = journal::open_again(path)?;
    if args.common.json {
        answer(&crate::output::json(&document(&record, vector, path))?)?;
    } else if !args.common.quiet {
        answer(&page_file::summary(path, &record, output::is_colourful()))?;
    }
    if !args.common.quiet {
        say(&format!("record  {}", path.display()));
    }
    Ok(Exit::Fine)
}

/// What `--json` prints.
fn document(record: &Record, vector: &SystemVector, path: &Path) -> serde_json::Value {
    let dropped: Vec<serde_json::Value> = vector
        .dropped
        .iter()
        .map(|(name, why)| serde_json::json!({ "name": name, "why": why }))
        .collect();
    serde_json::json!({
        "record": path.to_string_lossy(),
        "target": record.header.target.path,
        "elements": record.elements,
        "dropped": dropped,
        "rounds": vector.rounds,
        "written_bytes": vector.written_bytes,
        "warnings": record.warnings,
        "elapsed_s": record.end.as_ref().map(|end| end.elapsed_s),
    })
}
