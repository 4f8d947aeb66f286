//! `ioscape run`: the main job.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use ioscape_analysis::predict::Predictor;
use ioscape_engine::{Clock, EngineKind, RunId};
use ioscape_experiment::explore::{self, Earlier, Outcome, explore};
use ioscape_experiment::forecast::{self, ForecastRow};
use ioscape_experiment::plan::extent;
use ioscape_experiment::plan::{
    BlendPlan, BlendSettings, Global75Plan, OrthogonalPlan, PaperPlan, Plan,
};
use ioscape_model::line::{FORMAT_VERSION, Forecast};
use ioscape_model::units::{show_bytes, show_seconds};
use ioscape_model::{
    self as model, Access, EndReason, Header, Line, Method, Range, Record, Rules, Tool,
};

use crate::args::{MethodArg, RunArgs};
use crate::bench::{self, Bench, Earnest, Request};
use crate::exit::{Exit, usage};
use crate::interrupt::Interrupt;
use crate::journal::{self, Journal};
use crate::progress::{Progress, Until};
use crate::report;
use crate::resume::{self, Resumption};
use crate::{answer, say, signal_or};

/// A map of less is none: bytes of test data.
const UNIQUE_BYTES_LEAST: u64 = 4 << 20;

/// Explores a target, writes record and report, prints the summary.
pub(crate) fn run(args: &RunArgs, clock: Clock) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::catch()?;
    let outcome = match &args.resume {
        Some(path) => go_on(args, path, clock, &interrupt),
        None => begin(args, clock, &interrupt),
    };
    interrupt.settle(outcome)
}

fn begin(args: &RunArgs, clock: Clock, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let run = RunId::random()?;
    let seed = args.common.seed.unwrap_or_else(drawn_seed);
    let target = args.target.as_deref().unwrap_or(".");
    let usual = || journal::default_record("ioscape", &now_text());
    let out = args.out.clone().unwrap_or_else(usual);
    if !args.dry_run {
        refuse_existing(&out)?;
        report::check(args.report.as_deref(), &out, report::Earlier::Kept)?;
    }
    let probe_max_bytes = args.max_written.unwrap_or(u64::MAX) / 8;
    let request = Request {
        target,
        run: &run,
        engine: EngineKind::Auto,
        verify: false,
        seed,
        common: &args.common,
        device: Some(&args.device),
        earnest: if args.dry_run { Earnest::DryRun } else { Earnest::Measure { probe_max_bytes } },
        clock,
        interrupt,
    };
    let bench = bench::open(&request)?;
    bench.refuse_read_only()?;
    let header = header(args, &bench, &run, seed);
    if header.ranges.unique_bytes.max < UNIQUE_BYTES_LEAST {
        return Err(usage(format!(
            "{target}: only {} of test data fit (half of the free space, a quarter of \
             --max-written, and --unique-max bound it); {} are needed",
            show_bytes(header.ranges.unique_bytes.max as f64),
            show_bytes(UNIQUE_BYTES_LEAST as f64)
        )));
    }
    let rows = forecast_rows(&header);
    if args.dry_run {
        return Ok(print_plan(args, &header, &rows));
    }
    if !args.common.quiet {
        announce(&header);
    }
    let mut journal = Journal::create(&out)?;
    journal.write(&Line::Header(header.clone())).context("cannot write the record")?;
    for warning in &bench.warnings {
        journal.write(&Line::Warning(warning.clone())).context("cannot write the record")?;
    }
    let earlier = Earlier { warnings: bench.warnings.clone(), ..Earlier::default() };
    let course = Course { header: &header, budget_s: header.budget_s, earlier, interrupt };
    let done = make(args, bench, journal, course)?;
    finish(args, interrupt, done)
}

/// What a run left to say.
struct Done {
    record: PathBuf,
    reason: EndReason,
    failure: Option<String>,
    models: Option<Predictor>,
}

/// What a run starts from.
struct Course<'a> {
    header: &'a Header,
    budget_s: f64,
    earlier: Earlier,
    interrupt: &'a Interrupt,
}

fn go_on(args: &RunArgs, path: &Path, clock: Clock, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let mut resumption = resume::open(path, args)?;
    report::check(args.report.as_deref(), path, report::Earlier::Replaced)?;
    let header = resumption.header.clone();
    let request = Request {
        target: &header.target.path,
        run: &resumption.run,
        engine: EngineKind::Auto,
        verify: false,
        seed: resumption.rig_seed(),
        common: &resumption.common,
        device: Some(&args.device),
        // How fast laying out is stands in the record.
        earnest: Earnest::Measure { probe_max_bytes: 0 },
        clock,
        interrupt,
    };
    let bench = bench::open(&request)?;
    bench.refuse_read_only()?;
    let resumed = Line::Resumed(resumption.line(now_text(), command_line()));
    resumption.journal.write(&resumed).context("cannot write the record")?;
    if !args.common.quiet {
        say(&format!(
            "going on with {}: {} points, {} of {} used",
            path.display(),
            resumption.record.points.len(),
            show_seconds(resumption.earlier.elapsed_s),
            show_seconds(resumption.budget_s)
        ));
    }
    let Resumption { journal, earlier, budget_s, .. } = resumption;
    let course = Course { header: &header, budget_s, earlier, interrupt };
    let done = make(args, bench, journal, course)?;
    finish(args, interrupt, done)
}

fn make(
    args: &RunArgs,
    mut bench: Bench,
    mut journal: Journal,
    course: Course<'_>,
) -> anyhow::Result<Done> {
    let mut plan = plan(course.header);
    let mut progress = Progress::new(Until::Seconds(course.budget_s), args.common.quiet);
    let outcome = explore(
        explore::Run {
            rig: &mut *bench.rig,
            plan: &mut *plan,
            header: course.header,
            budget_s: course.budget_s,
            interrupt: &course.interrupt.flag(),
            journal: &mut |line| journal.write(line),
            on_event: &mut |event| progress.show(&event),
        },
        course.earlier,
    );
    drop(progress);
    drop(bench); // test files and limits go before anything is said
    let record = journal.path().to_owned();
    let outcome = outcome.map_err(|error| {
        anyhow::anyhow!(
            "{error}; what was written is kept, go on with `ioscape run --resume {}` once there is \
             room",
            record.display()
        )
    })?;
    let Outcome { end, failure, models } = outcome;
    Ok(Done { record, reason: end.reason, failure, models })
}

fn finish(args: &RunArgs, interrupt: &Interrupt, done: Done) -> anyhow::Result<Exit> {
    let record = journal::open_again(&done.record)?;
    let report = write_report(args, &done, &record)?;
    if args.common.json {
        answer(&summary_json(&done.record, report.as_deref(), &record)?);
    } else if !args.common.quiet {
        let color = crate::is_colourful();
        let file = done.record.to_string_lossy();
        answer(&ioscape_report::text(&record, &file, crate::report::WIDTH, color));
        say(&format!("record  {}", done.record.display()));
        if let Some(report) = &report {
            say(&format!("report  {}", report.display()));
        }
    }
    if let Some(failure) = done.failure {
        say(&format!(
            "ioscape: the run ended early: {failure}; what was measured is kept, go on with \
             `ioscape run --resume {}`",
            done.record.display()
        ));
        return Ok(Exit::Failed);
    }
    match done.reason {
        EndReason::Interrupted => Ok(signal_or(interrupt, Exit::Fine)),
        _ => Ok(Exit::Fine),
    }
}

fn write_report(args: &RunArgs, done: &Done, record: &Record) -> anyhow::Result<Option<PathBuf>> {
    let path = &done.record;
    let Some(report) = report::path(args.report.as_deref(), path) else { return Ok(None) };
    fs::write(&report, report::page(path, record, done.models.as_ref(), None)?)
        .with_context(|| format!("cannot write the report {}", report.display()))?;
    Ok(Some(report))
}

fn summary_json(path: &Path, report: Option<&Path>, record: &Record) -> anyhow::Result<String> {
    let value = serde_json::json!({
        "record": path.to_string_lossy(),
        "report": report.map(|report| report.to_string_lossy()),
        "borders": record.borders,
        "regions": record.regions,
        "findings": record.findings,
        "warnings": record.warnings,
        "elapsed_s": record.end.as_ref().map(|end| end.elapsed_s),
    });
    Ok(serde_json::to_string_pretty(&value)?)
}

fn header(args: &RunArgs, bench: &Bench, run: &RunId, seed: u64) -> Header {
    let mut hints = bench.rig.hints();
    let access = args.access.into();
    if access == Access::Direct {
        // What goes past the page cache finds no border of it.
        (hints.read_cache_bytes, hints.write_cache_bytes) = (None, None);
    }
    let limits = model::Limits {
        precision: args.precision,
        written_max_bytes: args.max_written,
        unique_max_bytes: args.unique_max,
        writes_max_bytes: bench.writes_max_bytes,
    };
    let method = method(args.method);
    let on_directory = || {
        let ranges = extent::ranges(bench.host.cpus, &hints, &limits, args.budget);
        match method {
            Method::Blend => ranges.with_sweeps(),
            _ => extent::ranges_for_all(ranges, &hints, &limits),
        }
    };
    let mut ranges = bench.sim_ranges.unwrap_or_else(on_directory);
    ranges.access = access;
    if method != Method::Blend {
        (ranges.depth, ranges.fsync_every) = (Range::one(), Range::none());
    } else if !bench.can_go_deep {
        ranges.depth = Range::one();
    }
    let mut header = Header {
        format_version: FORMAT_VERSION,
        tool: tool(),
        run_id: run.as_str().to_owned(),
        command_line: command_line(),
        seed,
        start_time: now_text(),
        host: bench.host.clone(),
        target: bench.target.clone(),
        method,
        rules: Rules::brief(),
        ranges,
        budget_s: args.budget,
        limits,
        hints,
        forecast: None,
    };
    header.forecast = forecast_rows(&header).first().map(|row| Forecast {
        points: row.points,
        elapsed_s: row.elapsed_s,
        written_bytes: row.written_bytes,
    });
    header
}

/// The chosen plan first, the others for comparison.
fn forecast_rows(header: &Header) -> Vec<ForecastRow> {
    forecast::forecast(&forecast::Question {
        method: header.method,
        ranges: header.ranges,
        rules: header.rules,
        budget_s: header.budget_s,
        layout_bytes_per_s: header.hints.layout_bytes_per_s,
    })
}

/// A plan decides by the header alone, so that a run that is gone on with decides as it did.
pub(crate) fn plan(header: &Header) -> Box<dyn Plan> {
    match header.method {
        Method::Paper => Box::new(PaperPlan::new(header.ranges)),
        Method::Global75 => Box::new(Global75Plan::new(header.ranges)),
        Method::Orthogonal => Box::new(OrthogonalPlan::new(header.ranges, header.seed)),
        _ => Box::new(BlendPlan::new(BlendSettings::of(header))),
    }
}

fn method(method: MethodArg) -> Method {
    match method {
        MethodArg::Blend => Method::Blend,
        MethodArg::Paper => Method::Paper,
        MethodArg::Global75 => Method::Global75,
        MethodArg::Orthogonal => Method::Orthogonal,
    }
}

fn print_plan(args: &RunArgs, header: &Header, rows: &[ForecastRow]) -> Exit {
    if args.common.json {
        let value = serde_json::json!({ "target": header.target.path, "ranges": header.ranges, "plans": rows });
        answer(&value.to_string());
        return Exit::Fine;
    }
    let mut lines = vec![format!(
        "{}: unique_bytes {} to {}, size_mean {} to {}, process_num {} to {}",
        header.target.path,
        show_bytes(header.ranges.unique_bytes.min as f64),
        show_bytes(header.ranges.unique_bytes.max as f64),
        show_bytes(header.ranges.size_mean.min as f64),
        show_bytes(header.ranges.size_mean.max as f64),
        header.ranges.process_num.min,
        header.ranges.process_num.max,
    )];
    lines.push(format!("{:12} {:>7} {:>9} {:>11}  {}", "plan", "points", "time", "written", ""));
    for row in rows {
        lines.push(format!(
            "{:12} {:>7} {:>9} {:>11}  {}",
            row.plan,
            row.points,
            show_seconds(row.elapsed_s),
            show_bytes(row.written_bytes as f64),
            row.note
        ));
    }
    answer(&lines.join("\n"));
    Exit::Fine
}

fn announce(header: &Header) {
    let target = &header.target;
    let on = target.device.as_deref().map_or(String::new(), |device| format!(" on {device}"));
    say(&format!(
        "{} ({}{on}), budget {}",
        target.path,
        target.filesystem,
        show_seconds(header.budget_s)
    ));
    if let Some(forecast) = &header.forecast {
        say(&format!(
            "forecast: about {} points in {}, {} written",
            forecast.points,
            show_seconds(forecast.elapsed_s),
            show_bytes(forecast.written_bytes as f64)
        ));
    }
}

/// A record is never overwritten.
pub(crate) fn refuse_existing(path: &Path) -> anyhow::Result<()> {
    if path.exists() {
        return Err(usage(format!(
            "{} exists: choose another --out, or go on with a run by `ioscape run --resume`",
            path.display()
        )));
    }
    Ok(())
}

/// The program, as records name it.
pub(crate) fn tool() -> Tool {
    Tool {
        name: "ioscape".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: if cfg!(debug_assertions) { "debug" } else { "release" }.to_owned(),
    }
}

/// What was typed.
pub(crate) fn command_line() -> Vec<String> {
    std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()).collect()
}

/// Wall-clock time, UTC.
pub(crate) fn now_text() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A seed nobody chose. 53 bits survive every JSON reader.
pub(crate) fn drawn_seed() -> u64 {
    jiff::Timestamp::now().as_nanosecond() as u64 & ((1 << 53) - 1)
}
