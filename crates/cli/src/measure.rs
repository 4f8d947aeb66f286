//! `ioscape measure`: one workload, visited a few times, to a stated precision.

mod highest_rate;

use anyhow::Context;
use ioscape_analysis::estimate;
use ioscape_engine::{Clock, EngineKind, Error, RunId, UringOptions};
use ioscape_experiment::measure::{Subject, measure as visit};
use ioscape_model::line::FORMAT_VERSION;
use ioscape_model::units::{show_bytes, show_rate, show_seconds, three_digits};
use ioscape_model::{
    End, EndReason, Estimate, Header, Limits, Line, Map, Method, Point, Range, Ranges, Role, Rules,
    Spent, Warning, Workload,
};

use crate::args::{EngineArg, MeasureArgs};
use crate::bench::{self, Bench, Earnest, Request};
use crate::exit::{Exit, usage};
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::progress::{Progress, Until};
use crate::run::{command_line, drawn_seed, now_text, refuse_existing, tool};
use crate::{answer, say, workload_arg};

/// Measures one workload and prints its estimate.
pub(crate) fn measure(args: &MeasureArgs, clock: Clock) -> anyhow::Result<Exit> {
    let work = workload_arg::read(args.workload.as_deref(), &args.keys)?;
    if args.p99_below.is_some() {
        highest_rate::check(&work)?;
    }
    let interrupt = Interrupt::catch()?;
    let outcome = measure_workload(args, &work, clock, &interrupt);
    interrupt.settle(outcome)
}

/// What a measurement is made with.
struct Opened {
    bench: Bench,
    journal: Option<Journal>,
    header: Header,
}

fn open(
    args: &MeasureArgs,
    work: &Workload,
    clock: Clock,
    interrupt: &Interrupt,
) -> anyhow::Result<Opened> {
    let run = RunId::random()?;
    let seed = args.common.seed.unwrap_or_else(drawn_seed);
    let engine = engine(args)?;
    let request = Request {
        target: &args.target,
        run: &run,
        engine,
        verify: args.verify,
        seed,
        common: &args.common,
        device: Some(&args.device),
        earnest: Earnest::Measure { probe_max_bytes: 0 },
        clock,
        interrupt,
    };
    if let Some(out) = &args.out {
        refuse_existing(out)?;
    }
    let bench = bench::open(&request)?;
    let mut journal = args.out.as_deref().map(Journal::create).transpose()?;
    let header = header(args, &bench, &run, seed, work);
    write(&mut journal, &Line::Header(header.clone()))?;
    for warning in &bench.warnings {
        write(&mut journal, &Line::Warning(warning.clone()))?;
    }
    Ok(Opened { bench, journal, header })
}

fn measure_workload(
    args: &MeasureArgs,
    work: &Workload,
    clock: Clock,
    interrupt: &Interrupt,
) -> anyhow::Result<Exit> {
    let opened = open(args, work, clock, interrupt)?;
    if let Some(p99_max_s) = args.p99_below {
        return highest_rate::find(args, work, p99_max_s, opened);
    }
    let Opened { mut bench, mut journal, header } = opened;
    let visits = Visits { args, header: &header, work };
    let (points, failure) = visits.make(&mut bench, &mut journal)?;
    let warnings = bench.warnings.clone();
    let (elapsed_s, written_bytes) = (bench.rig.now_s(), bench.rig.written_bytes());
    drop(bench); // test files and limits go before anything is said
    let (estimates, _) = estimate::pool(&points, 1);
    for line in pooled(&points, elapsed_s, failure.is_some()) {
        write(&mut journal, &line)?;
    }
    let end = end(&points, failure.as_ref(), elapsed_s, written_bytes);
    write(&mut journal, &Line::End(end))?;
    if let Some(mut estimate) = estimates.into_iter().next() {
        estimate.warnings.extend(warnings);
        print(args, &estimate, &points)?;
        if failure.is_none() {
            return Ok(verdict(args, &estimate));
        }
    }
    Err(failure.map_or_else(|| usage("nothing was measured"), Into::into))
}

/// The estimates of these visits, and the map that closes them; nothing where there are none.
pub(crate) fn pooled(points: &[Point], elapsed_s: f64, provisional: bool) -> Vec<Line> {
    let (estimates, repeatability) = estimate::pool(points, 1);
    let mut lines: Vec<Line> = estimates.into_iter().map(Line::Estimate).collect();
    if !lines.is_empty() {
        let map = Map { revision: 1, provisional, repeatability, elapsed_s, log: vec![] };
        lines.push(Line::Map(map));
    }
    lines
}

/// What was asked for: to ask for something of io_uring is to ask for io_uring.
fn engine(args: &MeasureArgs) -> anyhow::Result<EngineKind> {
    let options = UringOptions { polled: args.polled, kernel_submission: args.kernel_submission };
    let is_usual = options == UringOptions::default();
    match args.engine {
        EngineArg::Auto if is_usual => Ok(EngineKind::Auto),
        EngineArg::Auto | EngineArg::Uring => Ok(EngineKind::Uring(options)),
        EngineArg::Psync if is_usual => Ok(EngineKind::Psync),
        EngineArg::Null if is_usual => Ok(EngineKind::Null),
        _ => Err(usage("--polled and --kernel-submission are for --engine uring")),
    }
}

fn end(points: &[Point], failure: Option<&Error>, elapsed_s: f64, written_bytes: u64) -> End {
    let read = |point: &Point| point.classes.read_seq.bytes + point.classes.read_rand.bytes;
    End {
        reason: match failure {
            None => EndReason::Complete,
            Some(Error::Interrupted) => EndReason::Interrupted,
            Some(_) => EndReason::Failed,
        },
        points: points.len() as u64,
        elapsed_s,
        spent_s: points.iter().fold(Spent::default(), |sum, point| sum.plus(&point.spent_s)),
        read_bytes: points.iter().map(read).sum(),
        written_bytes,
        forecast: None,
        dropped: vec![],
    }
}

/// The rounds of a measurement.
struct Visits<'a> {
    args: &'a MeasureArgs,
    header: &'a Header,
    work: &'a Workload,
}

impl Visits<'_> {
    fn make(
        &self,
        bench: &mut Bench,
        journal: &mut Option<Journal>,
    ) -> anyhow::Result<(Vec<Point>, Option<Error>)> {
        let Self { args, header, work } = self;
        let until = Until::Visits { count: args.rounds as usize, forecast_s: 0.0 };
        let mut progress = Progress::new(until, args.common.quiet);
        let mut points = Vec::new();
        for round in 0..args.rounds {
            progress.visit(Role::Measure, work, points.len(), bench.rig.now_s());
            let seed = header.seed.wrapping_add(u64::from(round));
            let subject = Subject { work, role: Role::Measure, round, seed };
            let started_s = bench.rig.now_s();
            let mut on_event = |event| progress.measuring(&event);
            match visit(&subject, &header.rules, &mut *bench.rig, &mut on_event) {
                Ok(mut point) => {
                    point.started_s = started_s;
                    write(journal, &Line::Point(point.clone()))?;
                    points.push(point);
                }
                Err(error) => return Ok((points, Some(error))),
            }
        }
        Ok((points, None))
    }
}

fn header(args: &MeasureArgs, bench: &Bench, run: &RunId, seed: u64, work: &Workload) -> Header {
    let one = |value: u64| Range { min: value, max: value };
    let precision = args.precision.unwrap_or(Rules::thorough().precision);
    Header {
        format_version: FORMAT_VERSION,
        tool: tool(),
        run_id: run.as_str().to_owned(),
        command_line: command_line(),
        seed,
        start_time: now_text(),
        host: bench.host.clone(),
        target: bench.target.clone(),
        method: Method::Measure,
        rules: Rules { precision, ..Rules::thorough() },
        ranges: Ranges {
            unique_bytes: one(work.unique_bytes),
            size_mean: one(work.size_mean),
            process_num: one(u64::from(work.process_num)),
            depth: one(u64::from(work.depth)),
            fsync_every: one(u64::from(work.fsync_every)),
            access: work.access,
        },
        budget_s: 0.0,
        limits: Limits { precision: args.precision, ..Limits::default() },
        hints: bench.rig.hints(),
        forecast: None,
    }
}

fn write(journal: &mut Option<Journal>, line: &Line) -> anyhow::Result<()> {
    if let Some(journal) = journal {
        journal.write(line).context("cannot write the record")?;
    }
    Ok(())
}

/// Precision counts only where it was asked for.
fn verdict(args: &MeasureArgs, estimate: &Estimate) -> Exit {
    let reached = estimate.throughput_bytes_per_s.relative_half_width();
    match args.precision {
        Some(asked) if reached > asked => {
            say(&format!(
                "ioscape: the interval is ±{:.1} %, not the {:.1} % asked for: raise --rounds",
                reached * 100.0,
                asked * 100.0
            ));
            Exit::NotWithin
        }
        _ => Exit::Fine,
    }
}

fn print(args: &MeasureArgs, estimate: &Estimate, points: &[Point]) -> anyhow::Result<()> {
    if args.common.json {
        answer(&serde_json::to_string_pretty(estimate)?);
        return Ok(());
    }
    let rate = &estimate.throughput_bytes_per_s;
    let response = &estimate.response_time_s;
    let mut lines = vec![
        format!("workload       {}", estimate.workload),
        format!(
            "throughput     {} ({} to {}, 95 %, {} visits)",
            show_rate(rate.mean),
            show_rate(rate.low),
            show_rate(rate.high),
            estimate.visits
        ),
    ];
    if let Some(durable) = estimate.durable_bytes_per_s {
        lines.push(format!("durable        {} with the final fdatasync", show_rate(durable)));
    }
    lines.push(format!("requests       {} per second", three_digits(estimate.ops_per_s.mean)));
    lines.push(format!(
        "response time  mean {}, p50 {}, p99 {}, p99.9 {}, longest {}",
        show_seconds(response.mean),
        show_seconds(response.p50),
        show_seconds(response.p99),
        show_seconds(response.p999),
        show_seconds(response.max)
    ));
    if let Some(latency) = &estimate.latency_s {
        lines.push(format!(
            "latency        mean {}, p50 {}, p99 {}, p99.9 {}, longest {}, from when requests were \
             due",
            show_seconds(latency.mean),
            show_seconds(latency.p50),
            show_seconds(latency.p99),
            show_seconds(latency.p999),
            show_seconds(latency.max)
        ));
    }
    if let Some(hit) = estimate.hit_fraction {
        lines.push(format!("cached         {:.1} % of the requested pages", hit * 100.0));
    }
    if let Some(resident) = points.last().and_then(|point| point.resident_bytes) {
        lines.push(format!("resident       {}", show_bytes(resident as f64)));
    }
    let verified_bytes: Option<u64> = points.iter().map(|point| point.verified_bytes).sum();
    if let Some(bytes) = verified_bytes.filter(|_| !points.is_empty()) {
        lines.push(format!("verified       {} were read and compared", show_bytes(bytes as f64)));
    }
    lines.extend(estimate.warnings.iter().map(doubt));
    answer(&lines.join("\n"));
    Ok(())
}

fn doubt(warning: &Warning) -> String {
    format!("doubt          {}; {}", warning.text, warning.remedy)
}
