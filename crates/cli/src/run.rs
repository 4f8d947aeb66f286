//! `ioscape run`: the main job.

use std::path::{Path, PathBuf};

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
    self as model, Access, EndReason, Header, Line, Method, Range, Record, Rules, Tool, Workload,
};

use crate::args::{MethodArg, RunArgs, WorkloadArgs};
use crate::bench::{self, Bench, Earnest, Request};
use crate::exit::{Exit, usage};
use crate::interrupt::Interrupt;
use crate::journal::{self, Journal};
use crate::out_file;
use crate::progress::{Progress, Until};
use crate::report;
use crate::resume::{self, Resumption};
use crate::workload_arg::{self, Asked};
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
    let target = args.target.as_deref().unwrap_or(Path::new("."));
    let usual = || journal::default_record("ioscape", &now_text());
    let out = args.out.clone().unwrap_or_else(usual);
    if !args.dry_run {
        refuse_record(&out)?;
        report::check(args.report.as_deref(), &out, None)?;
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
    let mut header = header(args, &bench, &run, seed);
    header.asked = asked(args, &header)?;
    if header.ranges.unique_bytes.max < UNIQUE_BYTES_LEAST {
        return Err(usage(format!(
            "{}: only {} of test data fit (half of the free space, a quarter of \
             --max-written, and --unique-max bound it); {} are needed",
            target.display(),
            show_bytes(header.ranges.unique_bytes.max as f64),
            show_bytes(UNIQUE_BYTES_LEAST as f64)
        )));
    }
    let rows = forecast_rows(&header);
    if args.dry_run {
        return print_plan(args, &header, &rows);
    }
    if !args.common.quiet {
        announce(&header);
    }
    let mut journal = Journal::create(&out, "--out")?;
    journal.put(&Line::Header(header.clone()))?;
    for warning in &bench.warnings {
        journal.put(&Line::Warning(warning.clone()))?;
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
    report::check(args.report.as_deref(), path, Some(&resumption.record))?;
    let header = resumption.header.clone();
    let request = Request {
        target: &resumption.target,
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
    resumption.journal.put(&resumed)?;
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
        if !journal.is_kept() {
            return anyhow::Error::from(error);
        }
        anyhow::anyhow!(
            "{error}; what was written is kept, go on with `ioscape run --resume {}` once there is \
             room",
            record.display()
        )
    })?;
    refuse_nothing(&outcome, course.budget_s)?;
    let Outcome { end, failure, models } = outcome;
    Ok(Done { record, reason: end.reason, failure, models })
}

/// A run without a single visit has nothing to say.
///
/// # Errors
/// Why there was none, and what to try.
pub(crate) fn refuse_nothing(outcome: &Outcome, budget_s: f64) -> anyhow::Result<()> {
    if outcome.end.points > 0 {
        return Ok(());
    }
    let why = match (outcome.end.reason, &outcome.failure) {
        (EndReason::Interrupted, _) => return Err(ioscape_engine::Error::Interrupted.into()),
        (_, Some(failure)) => failure.clone(),
        (EndReason::Written, None) => {
            "one visit may write more than --max-written allows; raise it".to_owned()
        }
        (_, None) => format!(
            "opening the target and a first visit take longer than the budget of {}; give a \
             longer --budget, 1m or more",
            show_seconds(budget_s)
        ),
    };
    Err(anyhow::anyhow!("nothing was measured: {why}"))
}

fn finish(args: &RunArgs, interrupt: &Interrupt, done: Done) -> anyhow::Result<Exit> {
    let record = journal::open_again(&done.record)?;
    // Ten minutes' worth is told even where its page could not be written.
    let written = write_report(args, &done, &record);
    let report = written.as_ref().ok().and_then(Option::as_ref);
    if args.common.json {
        answer(&summary_json(&done.record, report.map(PathBuf::as_path), &record)?)?;
    } else if !args.common.quiet {
        let color = crate::output::is_colourful();
        let file = done.record.to_string_lossy();
        let told = answer(&ioscape_report::text(&record, &file, crate::report::WIDTH, color));
        say(&format!("record  {}", done.record.display()));
        if let Some(report) = report {
            say(&format!("report  {}", report.display()));
        }
        told?;
    }
    written?;
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
    let page = report::page(path, record, done.models.as_ref(), None)?;
    report::write(&report, &page, args.resume.is_some().then_some(record))?;
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
        "reason": record.end.as_ref().map(|end| end.reason),
    });
    Ok(serde_json::to_string_pretty(&value)?)
}

/// The workloads of `-w`, as this map can visit them.
fn asked(args: &RunArgs, header: &Header) -> anyhow::Result<Vec<Workload>> {
    if args.workload.is_empty() {
        return Ok(Vec::new());
    }
    if header.method != Method::Blend {
        return Err(usage(
            "-w goes with --method blend: the other methods visit their own points only",
        ));
    }
    let plan = BlendPlan::new(BlendSettings::of(header));
    let visited = |Asked { name, mut work, says_access }: Asked| {
        if !says_access {
            work.access = header.ranges.access;
        }
        if let Some(key) = work.unpredicted_keys().next() {
            return Err(usage(format!(
                "-w {name}: a map visits no other {key} than the default; measure it with \
                 `ioscape measure`"
            )));
        }
        if work.access != header.ranges.access {
            return Err(usage(format!("-w {name}: this map has another --access; map both apart")));
        }
        if u64::from(work.depth) > header.ranges.depth.max.max(1) && header.ranges.depth.max <= 1 {
            return Err(usage(format!(
                "-w {name}: several requests in flight need io_uring, which is not allowed here"
            )));
        }
        if !plan.reaches(&work) {
            return Err(usage(format!(
                "-w {name}: {} of data are more than this map reaches with {} processes; give it \
                 more free space, budget or --max-written, or measure it with `ioscape measure`",
                show_bytes(work.unique_bytes as f64),
                work.process_num
            )));
        }
        Ok(work)
    };
    let all = workload_arg::read_all(&args.workload, &WorkloadArgs::default())?;
    all.into_iter().map(visited).collect()
}

fn header(args: &RunArgs, bench: &Bench, run: &RunId, seed: u64) -> Header {
    let mut hints = bench.rig.hints();
    let access = args.access.into();
    if access == Access::Direct {
        // What goes past the page cache finds no border of it.
        (hints.read_cache_bytes, hints.write_cache_bytes) = (None, None);
    }
    // Most of what may be written is for the workloads.
    hints.room_bytes = extent::room_bytes(hints.room_bytes, args.max_written);
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
    let unique = &mut ranges.unique_bytes;
    unique.max = unique.max.min(args.unique_max.unwrap_or(u64::MAX));
    unique.min = unique.min.min(unique.max);
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
        asked: vec![],
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
        written_max_bytes: header.limits.written_max_bytes,
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

fn print_plan(args: &RunArgs, header: &Header, rows: &[ForecastRow]) -> anyhow::Result<Exit> {
    if args.common.json {
        let value = serde_json::json!({ "target": header.target.path, "ranges": header.ranges, "plans": rows });
        answer(&value.to_string())?;
        return Ok(Exit::Fine);
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
    answer(&lines.join("\n"))?;
    Ok(Exit::Fine)
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

/// A record is never overwritten. One of a run may be gone on with.
fn refuse_record(path: &Path) -> anyhow::Result<()> {
    if out_file::is_taken(path) {
        return Err(usage(format!(
            "{} exists: choose another --out, or go on with a run by `ioscape run --resume`",
            path.display()
        )));
    }
    out_file::check(path, "--out")
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
