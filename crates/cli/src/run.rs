//! `ioscape run`: the main job.

use std::path::{Path, PathBuf};

use ioscape_analysis::conclusion::conclude;
use ioscape_analysis::predict::Predictor;
use ioscape_engine::{Clock, EngineKind, RunId};
use ioscape_experiment::exploration::resumed_seed;
use ioscape_experiment::explore::{Event, Outcome};
use ioscape_experiment::forecast::ForecastRow;
use ioscape_experiment::{AskedRanges, Exploration, Settings, Watch};
use ioscape_model::units::{GIB, show_bytes, show_seconds};
use ioscape_model::{Access, Code, EndReason, Header, Point, Record, Severity, Warning};

use crate::args::{AccessArg, DeviceArgs, RangeKey, RunArgs, WorkloadArgs};
use crate::bench::{self, Request, RunMode};
use crate::company::Company;
use crate::doctor;
use crate::exit::{Exit, usage};
use crate::interrupt::Interrupt;
use crate::journal::{self, Journal};
use crate::origin::{now_text, origin};
use crate::out_file;
use crate::output::{self, answer, say};
use crate::page_file;
use crate::progress::{Progress, Until};
use crate::resume::{self, Resumption};
use crate::workload_arg::{self, Asked};

/// How often SNIA's Performance Test Specification writes a drive over before it is measured.
const PRECONDITION_TIMES: u32 = 2;

/// Explores a target, writes record and report, prints the summary.
pub(crate) fn run(args: &RunArgs, clock: Clock, company: &Company) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::catch()?;
    let outcome = match &args.resume {
        Some(path) => go_on(args, path, clock, (&interrupt, company)),
        None => begin(args, clock, (&interrupt, company)),
    };
    interrupt.settle(outcome)
}

fn begin(
    args: &RunArgs,
    clock: Clock,
    (interrupt, company): (&Interrupt, &Company),
) -> anyhow::Result<Exit> {
    let run = RunId::random()?;
    let origin = origin(&run, args.common.seed);
    let target = args.target.as_deref().unwrap_or(Path::new("."));
    let usual = || journal::default_record("ioscape", &now_text());
    let out = args.out.clone().unwrap_or_else(usual);
    if !args.dry_run {
        refuse_record(&out)?;
        page_file::check(args.report.as_deref(), &out, None)?;
    }
    let is_quick = args.quick || args.device.read_only;
    let usual_max_bytes = usual_written_max_bytes(target).filter(|_| !args.device.read_only);
    let written_max_bytes = args.max_written.or(usual_max_bytes);
    let most_bytes = args.unique_max.unwrap_or(u64::MAX);
    let probe_max_bytes = most_bytes.min(written_max_bytes.unwrap_or(u64::MAX) / 8);
    let request = Request {
        target,
        run: &run,
        engine: EngineKind::Auto,
        verify: false,
        seed: origin.seed,
        common: &args.common,
        device: Some(&args.device),
        mode: if args.dry_run { RunMode::DryRun } else { RunMode::Measure { probe_max_bytes } },
        clock,
        interrupt,
        company,
    };
    let mut settings = Settings {
        method: args.method.into(),
        access: args.access.map(Into::into),
        is_quick,
        budget_s: args.budget.unwrap_or(usual_budget_s(is_quick)),
        precision: args.precision,
        written_max_bytes,
        unique_max_bytes: args.unique_max,
        span_bytes: args.span,
        ranges: asked_ranges(args),
        sustain_s: args.sustain,
        precondition_times: args.precondition.then_some(PRECONDITION_TIMES),
    };
    refuse_sustaining(&settings)?;
    // Before there are files of this run to be taken for somebody's.
    let looks = !args.dry_run
        && !args.device.read_only // it makes files to look at
        && bench::sim_name(target).is_none()
        && settings.budget_s >= LOOK_BUDGET_MIN_S;
    // Where a look fails, opening the target says why.
    let known = if looks { doctor::doubts(target, clock, interrupt) } else { Ok(Vec::new()) };
    let known = known.unwrap_or_default();
    let mut bench = bench::open(&request)?;
    bench.warnings = doctor::with_doubts(bench.warnings, known);
    if bench.rig.hints().in_memory {
        settings.written_max_bytes = args.max_written;
    }
    let mut exploration = Exploration::new(bench, origin, settings)?;
    visit_asked(args, &mut exploration)?;
    if args.dry_run {
        return print_plan(args, exploration.header(), &exploration.forecast());
    }
    if !args.common.quiet {
        announce(exploration.header());
    }
    let journal = Journal::create(&out, "--out")?;
    finish(args, interrupt, make(args, exploration, journal, (settings.budget_s, interrupt))?)
}

/// A device is not to be worn by a look at it, bytes. Simulated ones and memory have nothing to wear.
const WRITTEN_MAX_USUAL_BYTES: u64 = 16 * GIB;
/// Looking at a target as `doctor` does takes two to three seconds: too much for shorter budgets.
const LOOK_BUDGET_MIN_S: f64 = 45.0;
/// The data sheet alone takes a minute.
const QUICK_BUDGET_S: f64 = 60.0;

fn usual_budget_s(is_quick: bool) -> f64 {
    if is_quick { QUICK_BUDGET_S } else { Settings::default().budget_s }
}

fn usual_written_max_bytes(target: &Path) -> Option<u64> {
    bench::sim_name(target).is_none().then_some(WRITTEN_MAX_USUAL_BYTES)
}

/// What `--range` said; of a key that was given twice the last.
fn asked_ranges(args: &RunArgs) -> AskedRanges {
    let mut asked = AskedRanges::default();
    for (key, range) in &args.range {
        let place = match key {
            RangeKey::UniqueBytes => &mut asked.unique_bytes,
            RangeKey::SizeMean => &mut asked.size_mean,
            RangeKey::ProcessNum => &mut asked.process_num,
            RangeKey::Depth => &mut asked.depth,
        };
        *place = Some(*range);
    }
    asked
}

/// What a run left to say.
struct Done {
    record: PathBuf,
    reason: EndReason,
    failure: Option<String>,
    models: Option<Predictor>,
}

fn go_on(
    args: &RunArgs,
    path: &Path,
    clock: Clock,
    (interrupt, company): (&Interrupt, &Company),
) -> anyhow::Result<Exit> {
    let Resumption { journal, target, record, run, common, budget_s } = resume::open(path, args)?;
    page_file::check(args.report.as_deref(), path, Some(&record))?;
    let device = DeviceArgs { read_only: record.header.is_read_only, ..args.device.clone() };
    let request = Request {
        target: &target,
        run: &run,
        engine: EngineKind::Auto,
        verify: false,
        seed: resumed_seed(&record),
        common: &common,
        device: Some(&device),
        // How fast laying out is stands in the record.
        mode: RunMode::Measure { probe_max_bytes: 0 },
        clock,
        interrupt,
        company,
    };
    let now = origin(&run, common.seed);
    let exploration = Exploration::resume(bench::open(&request)?, &record, now, budget_s)?;
    if !args.common.quiet {
        say(&format!(
            "continuing {}: {} points, {} of {} used",
            path.display(),
            record.points.len(),
            show_seconds(exploration.elapsed_before_s()),
            show_seconds(budget_s)
        ));
    }
    finish(args, interrupt, make(args, exploration, journal, (budget_s, interrupt))?)
}

fn make(
    args: &RunArgs,
    exploration: Exploration,
    mut journal: Journal,
    (budget_s, interrupt): (f64, &Interrupt),
) -> anyhow::Result<Done> {
    let mut progress = Progress::new(Until::Seconds(budget_s), args.common.quiet);
    let sheet = exploration.header().datasheet.clone();
    let tells = !args.common.quiet && !args.common.json;
    let outcome = exploration.run(Watch {
        interrupt: &interrupt.flag(),
        journal: &mut |line| journal.write(line),
        on_event: &mut |event| {
            progress.show(&event);
            if let Event::Point(point) = event
                && tells
                && point.round == 0
                && let Some(line) = ioscape_report::datasheet_line(&sheet, point)
            {
                progress.line(&line);
            }
        },
    });
    drop(progress);
    let outcome = outcome.map_err(|error| journal.unwritten(error.0))?;
    journal::refuse_nothing(&outcome, budget_s)?;
    let Outcome { end, failure, models } = outcome;
    Ok(Done { record: journal.path().to_owned(), reason: end.reason, failure, models })
}

fn finish(args: &RunArgs, interrupt: &Interrupt, done: Done) -> anyhow::Result<Exit> {
    let record = journal::open_again(&done.record)?;
    // Ten minutes' worth is told even where its page could not be written.
    let written = write_report(args, &done, &record);
    let report = written.as_ref().ok().and_then(Option::as_ref);
    if args.common.json {
        answer(&summary_json(&done.record, report.map(PathBuf::as_path), &record)?)?;
    } else if !args.common.quiet {
        let color = output::is_colourful();
        let told = answer(&page_file::summary(&done.record, &record, color));
        say(&format!("record  {}", done.record.display()));
        if let Some(report) = report {
            say(&format!("report  {}", report.display()));
        }
        told?;
    }
    written?;
    if let Some(failure) = done.failure {
        say(&format!(
            "ioscape: the run ended early: {failure}; what was measured is kept, continue with \
             `ioscape run --resume {}`",
            done.record.display()
        ));
        return Ok(Exit::Failed);
    }
    let exit = verdict(args, &record);
    match done.reason {
        EndReason::Interrupted => Ok(interrupt.signal_or(exit)),
        _ => Ok(exit),
    }
}

/// Whether the run can say what it was asked for, and no doubt is as grave as `--fail-on` has it.
fn verdict(args: &RunArgs, record: &Record) -> Exit {
    if let Some(why) = unanswered(args, record) {
        say(&format!("ioscape: {why}"));
        return Exit::Failed;
    }
    let Some(asked) = args.fail_on.map(Severity::from) else { return Exit::Fine };
    let doubts = ioscape_report::bearing_doubts(record);
    let grave = doubts.iter().filter(|doubt| doubt.severity >= asked).count();
    if grave == 0 {
        return Exit::Fine;
    }
    say(&format!(
        "ioscape: doubts as grave as --fail-on {}: {grave}, the first: {}",
        ioscape_model::word(asked),
        doubts[0].text
    ));
    Exit::NotWithin
}

/// Why the run cannot say what it was asked for, where it cannot.
fn unanswered(args: &RunArgs, record: &Record) -> Option<&'static str> {
    let asked_direct = args.access == Some(AccessArg::Direct) || args.span.is_some();
    let is_direct = |point: &Point| point.workload.access == Access::Direct;
    if asked_direct && !record.points.iter().any(is_direct) {
        return Some(
            "the device layer was asked for and no point of it was measured: give a \
                     longer --budget, or a smaller --span",
        );
    }
    let is_doubted = |point: &Point| point.warnings.iter().any(spoils);
    record
        .points
        .iter()
        .all(is_doubted)
        .then_some("every point is doubted seriously: the summary says why and what to do about it")
}

/// Doubts after which a visit tells nothing. A limit of a container or a volume is what is measured there.
fn spoils(doubt: &Warning) -> bool {
    doubt.severity == Severity::Serious && doubt.code != Code::Throttled
}

fn write_report(args: &RunArgs, done: &Done, record: &Record) -> anyhow::Result<Option<PathBuf>> {
    let path = &done.record;
    let Some(report) = page_file::path(args.report.as_deref(), path) else { return Ok(None) };
    let page = page_file::page(path, record, done.models.as_ref(), None);
    page_file::write(&report, &page, args.resume.is_some().then_some(record))?;
    Ok(Some(report))
}

fn summary_json(path: &Path, report: Option<&Path>, record: &Record) -> anyhow::Result<String> {
    let value = serde_json::json!({
        "record": path.to_string_lossy(),
        "conclusion": conclude(record),
        "datasheet": record.map.as_ref().map_or(&[][..], |map| &map.datasheet),
        "left_out": record.end.as_ref().map(|end| &end.left_out),
        "report": report.map(|report| report.to_string_lossy()),
        "borders": record.borders,
        "regions": record.regions,
        "findings": record.findings,
        "warnings": record.warnings,
        "elapsed_s": record.end.as_ref().map(|end| end.elapsed_s),
        "reason": record.end.as_ref().map(|end| end.reason),
    });
    output::json(&value)
}

/// Has the map visit the workloads of `-w`.
fn visit_asked(args: &RunArgs, exploration: &mut Exploration) -> anyhow::Result<()> {
    if args.workload.is_empty() {
        return Ok(());
    }
    for asked in workload_arg::read_all(&args.workload, &WorkloadArgs::default())? {
        let Asked { name, mut work, says_access } = asked;
        if !says_access {
            work.access = exploration.header().ranges.access;
        }
        exploration.visit_also(work).map_err(|why| usage(format!("-w {name}: {why}")))?;
    }
    Ok(())
}

fn print_plan(args: &RunArgs, header: &Header, rows: &[ForecastRow]) -> anyhow::Result<Exit> {
    if args.common.json {
        let value = serde_json::json!({ "target": header.target.path, "ranges": header.ranges, "plans": rows });
        answer(&output::json(&value)?)?;
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
    if let Some(span) = span_words(header) {
        lines.push(span);
    }
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

/// What the data sheet and the device layer lie over.
fn span_words(header: &Header) -> Option<String> {
    let mut direct = header.datasheet.iter().filter(|line| line.workload.access == Access::Direct);
    let span = show_bytes(direct.next()?.workload.unique_bytes as f64);
    let parts = match header.device {
        Some(_) => "data sheet and device layer",
        None => "data sheet",
    };
    Some(format!("{parts} past the page cache, over {span}"))
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

/// Writing for long must leave time for the map.
fn refuse_sustaining(settings: &Settings) -> anyhow::Result<()> {
    let Some(sustain_s) = settings.sustain_s else { return Ok(()) };
    if sustain_s * 2.0 <= settings.budget_s {
        return Ok(());
    }
    Err(usage(format!(
        "--sustain {} is more than half of the budget of {}: give --budget {} or more",
        show_seconds(sustain_s),
        show_seconds(settings.budget_s),
        show_seconds(sustain_s * 2.0)
    )))
}

/// A record is never overwritten. One of a run may be continued.
fn refuse_record(path: &Path) -> anyhow::Result<()> {
    if out_file::is_taken(path) {
        return Err(usage(format!(
            "{} exists: choose another --out, or continue a run by `ioscape run --resume`",
            path.display()
        )));
    }
    out_file::check(path, "--out")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_that_holds_visits_back_does_not_spoil_a_run() {
        let serious = |code| Warning::new(code, "said", "to do").with_severity(Severity::Serious);
        assert!(spoils(&serious(Code::DataMismatch)));
        assert!(!spoils(&serious(Code::Throttled)));
        assert!(!spoils(&Warning::new(Code::DataMismatch, "said", "to do")));
    }
}
