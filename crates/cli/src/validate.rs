//! `ioscape validate`: measures random workloads on a record's target and compares them with what
//! the record predicts (Chen and Patterson 1994, Figs 12 to 15).
//!
//! The order is what makes it a test: the seed is in the new record before anything is measured,
//! every visit is there before a model is fitted, and nothing is taken out afterwards.

use std::path::Path;

use anyhow::Context;
use ioscape_analysis::model::Training;
use ioscape_analysis::model::blend::SAMPLES_MIN;
use ioscape_analysis::predict::Predictor;
use ioscape_analysis::validate as score;
use ioscape_engine::{Clock, EngineKind, RunId};
use ioscape_experiment::bench::is_pinned;
use ioscape_experiment::explore::Outcome;
use ioscape_experiment::validate::{self as drawing, Space};
use ioscape_experiment::{Exploration, Watch};
use ioscape_model::units::{show_bytes, show_percent, show_seconds};
use ioscape_model::{
    Access, Code, EndReason, Header, Host, Hosts, Method, ModelName, Record, Target, Validation,
    Warning, Workload,
};
use ioscape_report::ValidationPage;
use ioscape_suite::critique;

use crate::args::{Common, ValidateArgs};
use crate::bench::{self, Request, RunMode};
use crate::company::Company;
use crate::exit::{Exit, usage};
use crate::interrupt::Interrupt;
use crate::journal::{self, Journal};
use crate::origin::origin;
use crate::out_file;
use crate::output::{self, answer, say};
use crate::page_file;
use crate::progress::{Progress, Until};

/// The dirty limit in bytes follows the free memory where it was set as a share of it: further
/// apart than this factor, write-back begins elsewhere than it did.
const DIRTY_LIMIT_RATIO_MAX: f64 = 1.25;

/// Measures, fits, compares, prints.
pub(crate) fn validate(
    args: &ValidateArgs,
    clock: Clock,
    company: &Company,
) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::catch()?;
    let outcome = validate_record(args, clock, (&interrupt, company));
    interrupt.settle(outcome)
}

fn validate_record(
    args: &ValidateArgs,
    clock: Clock,
    (interrupt, company): (&Interrupt, &Company),
) -> anyhow::Result<Exit> {
    let record = journal::open(&args.record)?;
    if let Some(why) = refusal(&record) {
        return Err(usage(format!("{} {why}", args.record.display())));
    }
    refuse_layer(args, &record)?;
    single_points(args)?; // what is wrong with it is better said now than in ten minutes
    let run = RunId::random()?;
    let origin = origin(&run, args.seed);
    let usual = || journal::default_record("ioscape-validate", &origin.start_time);
    let out = args.out.clone().unwrap_or_else(usual);
    out_file::check_new(&out, "--out")?;
    page_file::check(args.report.as_deref(), &out, None)?;
    let common = limits_of(&record.header, args);
    let request = Request {
        target: Path::new(&record.header.target.path),
        run: &run,
        engine: EngineKind::Auto,
        verify: false,
        seed: drawing::visits_seed(origin.seed),
        common: &common,
        device: None,
        // How fast laying out is stands in the record.
        mode: RunMode::Measure { probe_max_bytes: 0 },
        clock,
        interrupt,
        company,
    };
    let mut bench = bench::reopen(&request, &record.header)?;
    if let Some(difference) = difference(&record.header, &bench.target, &bench.host) {
        let shown = args.record.display();
        return Err(usage(format!("{shown} was made on another system: {difference}")));
    }
    if let Some(text) = other_ranks(record.header.hosts.as_ref(), bench.hosts.as_ref()) {
        return Err(usage(format!("{} was made with {text}", args.record.display())));
    }
    let access = args.access.map_or(record.header.ranges.access, Access::from);
    let space = Space::from_record(&record, access, bench.rig.hints().room_bytes);
    let shortage = space.shortage();
    bench.warnings.extend(shortage.clone());
    let is_cached_only = |warning: &&Warning| warning.code == Code::BorderNotReached;
    bench.warnings.extend(record.warnings.iter().filter(is_cached_only).cloned());
    let works =
        space.draw(origin.seed, args.workloads as usize).map_err(|e| usage(e.to_string()))?;
    let validation = Exploration::validation(bench, origin, &record, (&space, &works));
    if !args.quiet {
        announce(validation.header(), works.len());
        if let Some(Warning { text, remedy, .. }) = shortage {
            say(&format!("{text}; {remedy}"));
        }
    }
    let mut journal = Journal::create(&out, "--out")?;
    let outcome = measure(validation, works.len(), &mut journal, (args.quiet, interrupt))?;
    journal::refuse_nothing(&outcome, f64::INFINITY)?;
    finish(args, &record, &out, &outcome, interrupt)
}

/// How the ranks that a record was made with differ from those there are, where they do.
fn other_ranks(recorded: Option<&Hosts>, now: Option<&Hosts>) -> Option<String> {
    let count = |hosts: Option<&Hosts>| {
        hosts.map_or((1, 1), |hosts| (hosts.ranks.len(), hosts.hosts as usize))
    };
    let ((ranks, on), (ranks_now, on_now)) = (count(recorded), count(now));
    ((ranks, on) != (ranks_now, on_now)).then(|| {
        format!(
            "{ranks} ranks on {on} hosts, and these are {ranks_now} on {on_now}: start as many by \
             mpirun as the record was made with"
        )
    })
}

/// Refuses a layer that the record does not have.
fn refuse_layer(args: &ValidateArgs, record: &Record) -> anyhow::Result<()> {
    let header = &record.header;
    let has = |access: Access| {
        header.ranges.access == access || header.device.is_some() && access == Access::Direct
    };
    match args.access.map(Access::from) {
        Some(access) if !has(access) => Err(usage(format!(
            "{} holds no points of access={}: leave --access out, or make a map that has them",
            args.record.display(),
            ioscape_model::word(access)
        ))),
        _ => Ok(()),
    }
}

/// Why a record cannot be validated, where it cannot.
fn refusal(record: &Record) -> Option<&'static str> {
    match record.header.method {
        Method::Measure => Some("holds a single measurement: validate a record of `ioscape run`"),
        Method::Validate => Some("holds a validation: validate a record of `ioscape run`"),
        Method::Suite => Some("holds classic benchmarks: validate a record of `ioscape run`"),
        Method::Vector => Some("holds a system vector: validate a record of `ioscape run`"),
        Method::Replay => Some("holds replays: validate a record of `ioscape run`"),
        Method::Compare => Some("holds a live comparison: validate a record of `ioscape run`"),
        _ if record.map.is_none() => {
            Some("holds no map: continue it with `ioscape run --resume` first")
        }
        _ if Training::from_record(record).samples.len() < SAMPLES_MIN => {
            Some("holds too few workloads to predict others from: give the run a longer --budget")
        }
        _ => None,
    }
}

/// The limits that the run had set are put in force again; those it found have to be there.
fn limits_of(recorded: &Header, args: &ValidateArgs) -> Common {
    Common {
        json: args.json,
        quiet: args.quiet,
        seed: args.seed,
        memory_limit: recorded.host.memory_limit_set_bytes,
        dirty_limit: recorded.host.dirty_limit_set_bytes,
        pin: is_pinned(&recorded.host),
    }
}

/// In what the system is another one than the record's; predictions say nothing about that one.
fn difference(recorded: &Header, target: &Target, host: &Host) -> Option<String> {
    let (then, now) = (&recorded.target, target);
    if then.path != now.path {
        return Some(format!("its target was {}, not {}", then.path, now.path));
    }
    if then.filesystem != now.filesystem {
        let (was, is) = (&then.filesystem, &now.filesystem);
        return Some(format!("{} was {was} and is {is} now", then.path));
    }
    let (then, now) = (&recorded.host, host);
    let limit = |bytes: Option<u64>| {
        bytes.map_or_else(|| "none".to_owned(), |bytes| show_bytes(bytes as f64))
    };
    // Earlier builds recorded limits above the memory, too, which never take effect.
    let was = then.memory_limit_bytes.filter(|limit| *limit < then.memory_bytes);
    if was != now.memory_limit_bytes {
        let (was, is) = (limit(was), limit(now.memory_limit_bytes));
        return Some(format!(
            "the memory limit was {was} and is {is} now; run in a control group like the record's"
        ));
    }
    let (was, is) = (then.dirty_limit_bytes as f64, now.dirty_limit_bytes as f64);
    if was.max(is) > was.min(is) * DIRTY_LIMIT_RATIO_MAX {
        let (was, is) = (show_bytes(was), show_bytes(is));
        return Some(format!(
            "the dirty limit was {was} and is {is} now; set vm.dirty_bytes as it was"
        ));
    }
    None
}

fn announce(header: &Header, workloads: usize) {
    let target = &header.target;
    say(&format!(
        "{} ({}): {workloads} random workloads, each twice, seed {}",
        target.path, target.filesystem, header.seed
    ));
    if let Some(forecast) = &header.forecast {
        say(&format!(
            "forecast: about {}, {} written",
            show_seconds(forecast.elapsed_s),
            show_bytes(forecast.written_bytes as f64)
        ));
    }
}

fn measure(
    validation: Exploration,
    workloads: usize,
    journal: &mut Journal,
    (quiet, interrupt): (bool, &Interrupt),
) -> anyhow::Result<Outcome> {
    let expected_s = validation.header().forecast.map_or(0.0, |forecast| forecast.elapsed_s);
    let until = Until::Visits { count: 2 * workloads, forecast_s: expected_s };
    let mut progress = Progress::new(until, quiet);
    let outcome = validation.run(Watch {
        interrupt: &interrupt.flag(),
        journal: &mut |line| journal.write(line),
        on_event: &mut |event| progress.show(&event),
    });
    drop(progress);
    outcome.with_context(|| format!("cannot write the record {}", journal.path().display()))
}

fn finish(
    args: &ValidateArgs,
    record: &Record,
    out: &Path,
    outcome: &Outcome,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    let trial = journal::open(out)?;
    let validation = scored(&args.record.to_string_lossy(), Some(args.workloads), record, &trial)?;
    let single_points = single_points(args)?;
    let errors = critique::single_point_errors(&single_points, &validation.points);
    let validation = Validation { single_point_errors: errors.into_iter().collect(), ..validation };
    let page = ValidationPage {
        record,
        trial: &trial,
        validation: &validation,
        single_points: &single_points,
    };
    let report = page_file::path(args.report.as_deref(), out);
    if let Some(report) = &report {
        page_file::write(report, &ioscape_report::validation_html(&page), None)?;
    }
    if args.json {
        answer(&crate::output::json(&validation)?)?;
    } else if !args.quiet {
        let color = output::is_colourful();
        let told = answer(&ioscape_report::validation_text(&page, page_file::WIDTH, color));
        say(&format!("record  {}", out.display()));
        if let Some(report) = &report {
            say(&format!("report  {}", report.display()));
        }
        told?;
    }
    if let Some(failure) = &outcome.failure {
        say(&format!("ioscape: it ended early: {failure}; what was measured twice is scored"));
        return Ok(Exit::Failed);
    }
    let exit = verdict(args, &validation);
    match outcome.end.reason {
        EndReason::Interrupted => Ok(interrupt.signal_or(exit)),
        _ => Ok(exit),
    }
}

/// Fits the models, now that all is measured, and holds them against it. Where nobody knows how
/// many workloads were drawn, all that were visited count.
pub(crate) fn scored(
    shown: &str,
    drawn: Option<u32>,
    record: &Record,
    trial: &Record,
) -> anyhow::Result<Validation> {
    // The layer that its workloads were drawn from.
    let of_device = Training::of_device(record);
    let of_device = of_device.filter(|layer| layer.ranges.access == trial.header.ranges.access);
    let training = of_device.unwrap_or_else(|| Training::from_record(record));
    let predictor = Predictor::fit(training.clone())
        .map_err(|error| usage(format!("{shown}: {error}; what was measured is kept")))?
        .with_gaussian(&training);
    let answer = |work: &Workload| score::answers(&predictor, work);
    let points = score::points(&trial.points, &record.borders, answer);
    let about = score::Trial {
        record: shown.to_owned(),
        seed: trial.header.seed,
        workloads: drawn.map_or(points.len() as u64, u64::from),
    };
    Ok(score::validation(about, points))
}

/// What benchmarks would predict for every workload, where a suite's record was named.
fn single_points(args: &ValidateArgs) -> anyhow::Result<Vec<(String, f64)>> {
    let Some(path) = &args.suite else { return Ok(Vec::new()) };
    let points = critique::single_points(&journal::open(path)?.suite);
    if points.is_empty() {
        let shown = path.display();
        return Err(usage(format!("{shown} holds no benchmark that predicts: run ioscape suite")));
    }
    Ok(points)
}

/// The error counts only where a tolerance was asked for.
fn verdict(args: &ValidateArgs, validation: &Validation) -> Exit {
    let Some(asked) = args.tolerance else { return Exit::Fine };
    let reached = validation.models.get(&ModelName::Blend).map(|errors| errors.median);
    match reached {
        Some(median) if median <= asked => Exit::Fine,
        _ => {
            let reached = reached.map_or_else(|| "unknown".to_owned(), show_percent);
            let asked = show_percent(asked);
            say(&format!("ioscape: the median error is {reached}, not within {asked}"));
            Exit::NotWithin
        }
    }
}
