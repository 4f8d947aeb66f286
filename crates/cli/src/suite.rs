//! `ioscape suite`: the classic benchmarks, in turn on one target or several.

pub(crate) mod against;
mod progress;
mod representative;
mod special;
mod typed;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use ioscape_analysis::representative::{Pair, applications, likenesses};
use ioscape_engine::{Clock, Error, RunId, target};
use ioscape_experiment::bench::clear_leftovers;
use ioscape_model::line::Resumed;
use ioscape_model::{
    Code, End, EndReason, Header, Host, Line, Method, Purpose, Record, Rules, Severity, Suite,
    Trial, Warning,
};
use ioscape_suite::{Event, Name, Plan, SuiteTarget, pool, words};

pub(crate) use typed::SuiteArgs;

use crate::args::Common;
use crate::exit::{Exit, usage};
use crate::interrupt::Interrupt;
use crate::journal::{self, Journal};
use crate::limits::{self, LimitsInForce};
use crate::origin::{command_line, now_text, origin};
use crate::output::{self, answer, say};
use crate::{bench, out_file, page_file};

/// Runs benchmarks, or continues a suite that was interrupted.
pub(crate) fn suite(args: &SuiteArgs, clock: Clock) -> anyhow::Result<Exit> {
    if args.common.pin {
        return Err(usage("classic benchmarks run where the kernel puts them: leave --pin out"));
    }
    match args.names.as_deref() {
        Some(special::LIST) => return special::list(args.common.json),
        Some(special::PUBLISHED) => return special::published(args.common.json),
        _ => {}
    }
    let interrupt = Interrupt::catch()?;
    let outcome = match &args.resume {
        Some(path) => go_on(args, path, clock, &interrupt),
        None => begin(args, clock, &interrupt),
    };
    interrupt.settle(outcome)
}

/// Targets of a suite, made ready. Limits go last.
struct OpenTargets {
    places: Vec<SuiteTarget>,
    host: Arc<Host>,
    warnings: Vec<Warning>,
    _limits: LimitsInForce,
}

/// What is run, and what of it was.
struct Course<'a> {
    header: &'a Header,
    suite: &'a Suite,
    done: Vec<Trial>,
    elapsed_before_s: f64,
    clock: Clock,
    interrupt: &'a Interrupt,
}

fn begin(args: &SuiteArgs, clock: Clock, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let (names, purpose) = args.names()?;
    let run = RunId::random()?;
    let origin = origin(&run, args.common.seed);
    let usual = || journal::default_record("ioscape-suite", &origin.start_time);
    let out = args.out.clone().unwrap_or_else(usual);
    out_file::check_new(&out, "--out")?;
    check_report(args, &out, None)?;
    let opened = open(&args.targets(), &args.common, &run, clock)?;
    let targets = opened.places.iter().map(|place| place.directory.describe()).collect();
    let suite = Suite {
        benchmarks: names.iter().map(|name| name.as_str().to_owned()).collect(),
        targets,
        repeats: args.repeats_of(&names),
        metered: args.metered || purpose != Purpose::Scores,
        purpose,
        settings: args.settings(),
        kernel_version: names.contains(&Name::Os).then_some(ioscape_suite::os::kernel::VERSION),
    };
    let target = suite.targets[0].clone();
    let header = Header {
        rules: Rules::thorough(),
        ..Header::new(origin, Method::Suite, (*opened.host).clone(), target)
    };
    let mut journal = Journal::create(&out, "--out")?;
    journal.put(&Line::Header(header.clone()))?;
    journal.put(&Line::Suite(suite.clone()))?;
    for warning in opened.warnings.iter().cloned().chain(few_repeats(&suite)) {
        journal.put(&Line::Warning(warning))?;
    }
    let course = Course {
        header: &header,
        suite: &suite,
        done: vec![],
        elapsed_before_s: 0.0,
        clock,
        interrupt,
    };
    make(args, opened, journal, course)
}

/// A page is made of a suite only where it is asked for.
fn check_report(args: &SuiteArgs, path: &Path, resumed: Option<&Record>) -> anyhow::Result<()> {
    match &args.report {
        Some(asked) => page_file::check(Some(asked), path, resumed),
        None => Ok(()),
    }
}

fn go_on(
    args: &SuiteArgs,
    path: &Path,
    clock: Clock,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    let (record, mut journal) = Journal::go_on(path)?;
    let shown = path.display();
    let Some(suite) = record.suite.suite.clone() else {
        return Err(usage(format!("{shown} holds no classic benchmarks")));
    };
    if matches!(record.end.as_ref().map(|end| end.reason), Some(EndReason::Complete)) {
        return Err(usage(format!("{shown} has ended: nothing is left to do")));
    }
    let Some(run) = RunId::parse(&record.header.run_id) else {
        return Err(usage(format!("{shown} names no run that could be continued")));
    };
    let common = Common {
        memory_limit: record.header.host.memory_limit_set_bytes,
        dirty_limit: record.header.host.dirty_limit_set_bytes,
        ..args.common.clone()
    };
    let targets: Vec<PathBuf> =
        suite.targets.iter().map(|target| PathBuf::from(&target.path)).collect();
    check_report(args, path, Some(&record))?;
    let opened = open(&targets, &common, &run, clock)?;
    let done = record.suite.trials.clone();
    let elapsed_before_s = done.last().map_or(0.0, |trial| trial.started_s + trial.elapsed_s);
    let resumed = Resumed {
        time: now_text(),
        elapsed_before_s,
        budget_s: None,
        command_line: command_line(),
    };
    journal.put(&Line::Resumed(resumed))?;
    let header = &record.header;
    let course = Course { header, suite: &suite, done, elapsed_before_s, clock, interrupt };
    make(args, opened, journal, course)
}

fn open(
    targets: &[PathBuf],
    common: &Common,
    run: &RunId,
    clock: Clock,
) -> anyhow::Result<OpenTargets> {
    let mut places: Vec<SuiteTarget> = Vec::new();
    let mut warnings = Vec::new();
    for path in targets {
        if bench::sim_name(path).is_some() {
            return Err(usage(format!(
                "{}: classic benchmarks need a real directory",
                path.display()
            )));
        }
        let directory = target::open_directory(path)?;
        if places.iter().any(|place| place.directory.path() == directory.path()) {
            return Err(usage(format!("{} is named twice", path.display())));
        }
        warnings.extend(directory.warnings());
        warnings.extend(clear_leftovers(&directory, run)?);
        places.push(SuiteTarget { directory: Arc::new(directory) });
    }
    let first = places.first().map_or("", |first| first.directory.filesystem());
    let (limits, host) = limits::enter(common, run, (&clock, first))?;
    Ok(OpenTargets { places, host: Arc::new(host), warnings, _limits: limits })
}

fn make(
    args: &SuiteArgs,
    opened: OpenTargets,
    mut journal: Journal,
    course: Course<'_>,
) -> anyhow::Result<Exit> {
    let Course { header, suite, done, elapsed_before_s, clock, interrupt } = course;
    let run = RunId::parse(&header.run_id).context("the run has no name")?;
    let mut progress = progress::Progress::new(args.common.quiet);
    let plan = Plan {
        suite,
        seed: header.seed,
        run: &run,
        host: &opened.host,
        done: &done,
        interrupt: &interrupt.flag(),
        clock,
    };
    let mut trials = done.clone();
    let outcome = ioscape_suite::run(&plan, &opened.places, &mut |event| {
        progress.show(&event, &suite.targets);
        if let Event::Made(trial) = event {
            let mut trial = trial.clone();
            trial.started_s += elapsed_before_s;
            let line = Line::Trial(trial.clone());
            journal.write(&line).map_err(|e| Error::path("write", journal.path(), e))?;
            trials.push(trial);
        }
        Ok(())
    });
    progress.end();
    for score in pool::scores(&trials) {
        journal.put(&Line::Score(score))?;
    }
    for contrast in pool::contrasts(&trials) {
        journal.put(&Line::Contrast(contrast))?;
    }
    // What a signal breaks on its way (a child, a pipe) is an interruption all the same.
    let asked_to_stop = interrupt.signal().is_some();
    let mut failure =
        outcome.err().map(|error| if asked_to_stop { Error::Interrupted } else { error });
    let mut pairs = Vec::new();
    if failure.is_none() && suite.purpose == Purpose::Representative {
        pairs = applications(&journal::open_again(journal.path())?);
        let ground = representative::Ground {
            target: opened.places[0].directory.path(),
            run: &run,
            seed: header.seed,
            host: &opened.host,
            clock,
            interrupt,
        };
        failure = match representative::visit(&ground, &mut pairs, &mut journal) {
            Ok(()) => None,
            Err(error) => Some(error.downcast::<Error>()?),
        };
    }
    drop(opened); // what was laid out is gone; limits go before anything is said
    let elapsed_s = elapsed_before_s + clock.now_s();
    journal.put(&Line::End(end(&trials, failure.as_ref(), elapsed_s)))?;
    if !journal.is_kept() {
        // Refused, or interrupted at once: there is nothing to tell.
        return Err(failure.map_or_else(|| anyhow::anyhow!("nothing was measured"), Into::into));
    }
    let done = Done { path: journal.path(), pairs: &pairs, failure };
    finish(args, done, interrupt)
}

/// What there is to say at the end.
struct Done<'a> {
    path: &'a Path,
    pairs: &'a [Pair],
    failure: Option<Error>,
}

fn finish(args: &SuiteArgs, done: Done<'_>, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let Done { path, pairs, failure } = done;
    let record = journal::open_again(path)?;
    if let Some(file) = args.report.as_deref().and_then(|asked| page_file::path(Some(asked), path))
    {
        let resumed = args.resume.is_some().then_some(&record);
        page_file::write(&file, &ioscape_report::suite_html(&record), resumed)?;
    }
    let purpose = record.suite.suite.as_ref().map(|suite| suite.purpose).unwrap_or_default();
    if args.common.json {
        answer(&crate::output::json(&document(&record, path, pairs))?)?;
    } else if !args.common.quiet && !record.suite.trials.is_empty() {
        let mut text =
            ioscape_report::suite_text(&record, page_file::WIDTH, output::is_colourful());
        let mut lines = Vec::new();
        for sentence in words::beside_the_papers(&record.suite) {
            lines.push(ioscape_report::wrap(&sentence, page_file::WIDTH - 2).join("\n  "));
        }
        if purpose == Purpose::Critique {
            lines.extend(words::critique(&record.suite));
        }
        for line in lines {
            text.push('\n');
            text.push_str(&line);
        }
        if !pairs.is_empty() {
            text.push_str(&representative::text(pairs));
        }
        answer(&text)?;
    }
    if !args.common.quiet {
        say(&format!("record  {}", path.display()));
        if record.end.as_ref().is_some_and(|end| end.reason != EndReason::Complete) {
            say(&format!("ioscape suite --resume {} continues it", path.display()));
        }
    }
    match failure {
        None | Some(Error::Interrupted) => Ok(interrupt.signal_or(Exit::Fine)),
        Some(error) => Err(error.into()),
    }
}

/// What `--json` prints.
fn document(record: &Record, path: &Path, pairs: &[Pair]) -> serde_json::Value {
    let lines = &record.suite;
    serde_json::json!({
        "record": path.to_string_lossy(),
        "suite": lines.suite,
        "scores": lines.scores,
        "contrasts": lines.contrasts,
        "critique": special::critique_json(&record.suite),
        "representative": likenesses(pairs),
        "warnings": record.warnings,
        "elapsed_s": record.end.as_ref().map(|end| end.elapsed_s),
    })
}

fn end(trials: &[Trial], failure: Option<&Error>, elapsed_s: f64) -> End {
    let moved = |of: fn(&ioscape_model::IoShare) -> u64| {
        trials.iter().filter_map(|trial| trial.io.as_ref()).map(of).sum()
    };
    End {
        points: trials.len() as u64,
        read_bytes: moved(|io| io.read_bytes),
        written_bytes: moved(|io| io.written_bytes),
        ..End::after(Error::ending(failure), &[], elapsed_s)
    }
}

fn few_repeats(suite: &Suite) -> Option<Warning> {
    (suite.repeats < 3).then(|| {
        Warning::new(
            Code::TooFewRepeats,
            "fewer than three repetitions say next to nothing about their scatter",
            "leave --repeats out, or raise it",
        )
        .with_severity(Severity::Note)
    })
}
