//! `ioscape measure`: one workload, visited a few times, to a stated precision.

use ioscape_analysis::estimate;
use ioscape_engine::{Clock, EngineKind, Error, RunId};
use ioscape_experiment::measure::{Event, Subject, measure as visit};
use ioscape_model::line::FORMAT_VERSION;
use ioscape_model::units::{show_bytes, show_rate, show_seconds, three_digits};
use ioscape_model::{
    Estimate, Header, Line, Map, Method, Point, Range, Ranges, Role, Rules, Warning, Workload,
};

use crate::args::{EngineArg, MeasureArgs};
use crate::bench::{self, Bench, Request};
use crate::exit::{Exit, usage};
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::run::{command_line, drawn_seed, now_text, tool};
use crate::{answer, say, signal_or, workload_arg};

/// Measures one workload and prints its estimate.
pub(crate) fn measure(args: &MeasureArgs, clock: Clock) -> anyhow::Result<Exit> {
    let work = workload_arg::read(args.workload.as_deref(), &args.keys)?;
    let interrupt = Interrupt::catch()?;
    let run = RunId::random()?;
    let seed = args.common.seed.unwrap_or_else(drawn_seed);
    let engine = match args.engine {
        EngineArg::Psync => EngineKind::Psync,
        EngineArg::Null => EngineKind::Null,
    };
    let request = Request {
        target: &args.target,
        run: &run,
        engine,
        seed,
        common: &args.common,
        clock,
        interrupt: &interrupt,
    };
    let mut journal = args.out.as_deref().map(Journal::create).transpose()?;
    let mut bench = bench::open(&request)?;
    let header = header(args, &bench, &run, seed, &work);
    write(&mut journal, &Line::Header(header.clone()))?;
    let (points, failure) = visits(args, &mut bench, &header, &work, &mut journal)?;
    let warnings = bench.warnings.clone();
    drop(bench); // test files and limits go before anything is said
    if let Some(error) = failure.filter(|error| !matches!(error, Error::Interrupted)) {
        return Err(error.into());
    }
    let (estimates, repeatability) = estimate::pool(&points, 1);
    let Some(mut estimate) = estimates.into_iter().next() else {
        return Ok(signal_or(&interrupt, Exit::Failed));
    };
    estimate.warnings.extend(warnings);
    write(&mut journal, &Line::Estimate(estimate.clone()))?;
    let elapsed_s = clock.now_s();
    let provisional = interrupt.signal().is_some();
    let map = Map { revision: 1, provisional, repeatability, elapsed_s, log: vec![] };
    write(&mut journal, &Line::Map(map))?;
    print(args, &estimate, &points)?;
    Ok(signal_or(&interrupt, verdict(args, &estimate)))
}

fn visits(
    args: &MeasureArgs,
    bench: &mut Bench,
    header: &Header,
    work: &Workload,
    journal: &mut Option<Journal>,
) -> anyhow::Result<(Vec<Point>, Option<Error>)> {
    let mut points = Vec::new();
    for round in 0..args.rounds {
        if !args.common.quiet {
            say(&format!("round {} of {}: {work}", round + 1, args.rounds));
        }
        let subject = Subject {
            work,
            role: Role::Measure,
            round,
            seed: header.seed.wrapping_add(u64::from(round)),
        };
        let started_s = bench.rig.now_s();
        match visit(&subject, &header.rules, &mut *bench.rig, &mut |_: Event| {}) {
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
        },
        budget_s: 0.0,
        forecast: None,
    }
}

fn write(journal: &mut Option<Journal>, line: &Line) -> anyhow::Result<()> {
    if let Some(journal) = journal {
        journal.write(line).map_err(|error| usage(format!("cannot write the record: {error}")))?;
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
    if let Some(hit) = estimate.hit_fraction {
        lines.push(format!("cached         {:.1} % of the requested pages", hit * 100.0));
    }
    if let Some(resident) = points.last().and_then(|point| point.resident_bytes) {
        lines.push(format!("resident       {}", show_bytes(resident as f64)));
    }
    lines.extend(estimate.warnings.iter().map(doubt));
    answer(&lines.join("\n"));
    Ok(())
}

fn doubt(warning: &Warning) -> String {
    format!("doubt          {}; {}", warning.text, warning.remedy)
}
