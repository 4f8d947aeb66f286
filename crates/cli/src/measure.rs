//! `ioscape measure`: one workload, visited a few times, to a stated precision.

mod highest_rate;

use ioscape_analysis::estimate;
use ioscape_engine::{Clock, EngineKind, Error, RunId, UringOptions};
use ioscape_experiment::measure::{Subject, end, measure as visit};
use ioscape_model::units::show_seconds;
use ioscape_model::{
    Access, Code, Estimate, Header, Limits, Line, Method, Origin, Point, Range, Ranges, Role,
    Rules, Severity, State, Warning, Workload,
};

use crate::args::{EngineArg, MeasureArgs};
use crate::bench::{self, Bench, Request, RunMode};
use crate::company::Company;
use crate::exit::{Exit, usage};
use crate::interrupt::Interrupt;
use crate::journal::Journal;
use crate::origin::origin;
use crate::output::{answer, say};
use crate::progress::{Progress, Until};
use crate::{out_file, workload_arg};

/// What counts as most requests.
const CACHED: f64 = 0.5;
/// Rounds without a precision that is to be reached, and the fewest with one: two say too little of
/// how rounds differ to stop after them.
const ROUNDS_USUAL: u32 = 3;
/// More rounds than this narrow an interval by little.
const ROUNDS_MAX: u32 = 100;
/// A precision is given up after so long, seconds.
const BUDGET_USUAL_S: f64 = 300.0;
/// From this size on, the pieces that the cache is in matter.
const LARGE_BYTES: u64 = 16 << 10;

/// Measures one workload and prints its estimate.
pub(crate) fn measure(args: &MeasureArgs, clock: Clock, company: &Company) -> anyhow::Result<Exit> {
    let work = workload_arg::read(args.workload.as_deref(), &args.keys)?;
    if args.p99_below.is_some() {
        highest_rate::check(&work)?;
    }
    let interrupt = Interrupt::catch()?;
    let outcome = measure_workload(args, &work, clock, (&interrupt, company));
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
    (interrupt, company): (&Interrupt, &Company),
) -> anyhow::Result<Opened> {
    let run = RunId::random()?;
    let origin = origin(&run, args.common.seed);
    let engine = engine(args)?;
    let request = Request {
        target: &args.target,
        run: &run,
        engine,
        verify: args.verify,
        seed: origin.seed,
        common: &args.common,
        device: Some(&args.device),
        mode: RunMode::Measure { probe_max_bytes: 0 },
        clock,
        interrupt,
        company,
    };
    if let Some(out) = &args.out {
        out_file::check_new(out, "--out")?;
    }
    let bench = bench::open(&request)?;
    let mut journal = args.out.as_deref().map(|out| Journal::create(out, "--out")).transpose()?;
    let header = header(args, &bench, origin, work);
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
    (interrupt, company): (&Interrupt, &Company),
) -> anyhow::Result<Exit> {
    let opened = open(args, work, clock, (interrupt, company))?;
    if let Some(p99_max_s) = args.p99_below {
        return highest_rate::find(args, work, p99_max_s, opened);
    }
    let Opened { mut bench, mut journal, header } = opened;
    let visits = Visits { args, header: &header, work };
    let (points, failure) = visits.make(&mut bench, &mut journal)?;
    let mut warnings = bench.warnings.clone();
    let elapsed_s = bench.rig.now_s();
    let is_file = !bench.target.is_simulated()
        && !bench.rig.hints().in_memory
        && args.engine != EngineArg::Null;
    let end = end(Error::ending(failure.as_ref()), &points, &*bench.rig);
    drop(bench); // test files and limits go before anything is said
    let (estimates, _) = estimate::pool(&points, 1);
    if let Some(note) = estimates.first().filter(|_| is_file).and_then(state_of_cache) {
        write(&mut journal, &Line::Warning(note.clone()))?;
        warnings.push(note);
    }
    for line in estimate::lines(&points, elapsed_s, failure.is_some(), vec![]) {
        write(&mut journal, &line)?;
    }
    write(&mut journal, &Line::End(end))?;
    if let Some(mut estimate) = estimates.into_iter().next() {
        // A visit may have said the same.
        warnings.retain(|warning| !estimate.warnings.contains(warning));
        estimate.warnings.extend(warnings);
        answer(&if args.common.json {
            crate::output::json(&estimate)?
        } else {
            ioscape_report::estimate_text(&estimate, &points)
        })?;
        if failure.is_none() {
            return Ok(verdict(args, &estimate));
        }
    }
    Err(failure.map_or_else(|| anyhow::anyhow!("nothing was measured"), Into::into))
}

/// A note on the state of the page cache, where large requests are served from it: other tools
/// mostly fill it otherwise, and measure something else.
fn state_of_cache(estimate: &Estimate) -> Option<Warning> {
    let work = &estimate.workload;
    let is_cached = estimate.hit_fraction.is_some_and(|hit| hit >= CACHED);
    let is_warm = work.access == Access::Buffered && work.state == State::Warm;
    if !is_cached || !is_warm || work.read_frac < CACHED || work.size_mean < LARGE_BYTES {
        return None;
    }
    let text = "the page cache was filled as one in use is, a quarter in large pieces and the rest \
                in single pages: reads of a file that was read or written in one go before, as by \
                fio, are up to twice as fast at 16 KiB and three times at 64 KiB and more";
    let remedy = "compare with other tools by access=direct, or prepare their cache alike";
    Some(Warning::new(Code::CacheState, text, remedy).with_severity(Severity::Note))
}

/// What was asked for: to ask for something of io_uring is to ask for io_uring.
fn engine(args: &MeasureArgs) -> anyhow::Result<EngineKind> {
    let options = UringOptions { polled: args.polled, kernel_submission: args.kernel_submission };
    let is_usual = options == UringOptions::default();
    match args.engine {
        EngineArg::Auto if is_usual => Ok(EngineKind::Auto),
        EngineArg::Auto | EngineArg::Uring => Ok(EngineKind::Uring(options)),
        EngineArg::Psync if is_usual => Ok(EngineKind::Psync),
        EngineArg::Threads if is_usual => Ok(EngineKind::Threads),
        EngineArg::Null if is_usual => Ok(EngineKind::Null),
        _ => Err(usage("--polled and --kernel-submission are for --engine uring")),
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
        let rounds = args.rounds.unwrap_or(ROUNDS_USUAL);
        let is_open = args.rounds.is_none() && args.precision.is_some();
        let until = if is_open {
            Until::Seconds(args.budget.unwrap_or(BUDGET_USUAL_S))
        } else {
            let forecast_s = f64::from(rounds) * usual_visit_s(&header.rules);
            Until::Visits { count: rounds as usize, forecast_s }
        };
        let mut progress = Progress::new(until, args.common.quiet);
        let mut points = Vec::new();
        for round in 0..if is_open { ROUNDS_MAX } else { rounds } {
            if round >= rounds && self.is_enough(&points, bench.rig.now_s()) {
                break;
            }
            progress.visit(Role::Measure, work, points.len(), bench.rig.now_s());
            let seed = header.seed.wrapping_add(u64::from(round));
            let subject = Subject { work, role: Role::Measure, round, seed };
            let started_s = bench.rig.now_s();
            let mut on_event = |event| progress.measuring(&event);
            match visit(&subject, &header.rules, &mut *bench.rig, &mut on_event) {
                Ok(point) if points.is_empty() && point.throughput() <= 0.0 => {
                    return Err(nothing_done(&point));
                }
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

    /// True if no further round is due: the interval is as narrow as was asked for, or a round as
    /// long as the longest so far would end after the budget.
    fn is_enough(&self, points: &[Point], elapsed_s: f64) -> bool {
        let (estimates, _) = estimate::pool(points, 1);
        let half_width =
            |estimate: &Estimate| estimate.throughput_bytes_per_s.relative_half_width();
        let asked = self.args.precision.unwrap_or(f64::INFINITY);
        let is_reached = estimates.first().is_none_or(|estimate| half_width(estimate) <= asked);
        let longest_s = points.iter().map(|point| point.elapsed_s).fold(0.0, f64::max);
        is_reached || elapsed_s + longest_s > self.args.budget.unwrap_or(BUDGET_USUAL_S)
    }
}

/// What a visit takes where the storage is neither quiet nor restless, seconds.
fn usual_visit_s(rules: &Rules) -> f64 {
    rules.ramp_s + 2.0 * f64::from(rules.windows_min) * rules.window_s
}

/// No request was completed: there is no figure, not even zero.
fn nothing_done(point: &Point) -> anyhow::Error {
    let remedy = match point.workload.rate {
        rate if rate > 0.0 => {
            format!(
                "raise rate: at {rate} per second one is due every {}",
                show_seconds(1.0 / rate)
            )
        }
        _ => "lower size_mean or process_num, and look at the kernel's log (dmesg)".to_owned(),
    };
    let measured = show_seconds(point.spent_s.measuring);
    anyhow::anyhow!("no request was completed in {measured} of measuring; {remedy}")
}

/// The rules of each visit. At least three are made, so each may run in and measure for a third of the budget that was
/// asked for, but never for less than the fewest windows. Layout and sync come on top.
fn rules(args: &MeasureArgs, work: &Workload) -> Rules {
    let rules = args.precision.map_or_else(Rules::thorough, Rules::to_precision);
    let Some(budget_s) = args.budget else { return rules };
    let least_s = f64::from(rules.windows_min) * rules.window_s;
    let ramp_s = if work.read_frac < 1.0 { rules.ramp_max_s } else { rules.ramp_s };
    let share_s = budget_s / f64::from(ROUNDS_USUAL) - ramp_s;
    Rules { measure_max_s: rules.measure_max_s.min(share_s.max(least_s)), ..rules }
}

fn header(args: &MeasureArgs, bench: &Bench, origin: Origin, work: &Workload) -> Header {
    let one = |value: u32| Range { min: u64::from(value), max: u64::from(value) };
    Header {
        rules: rules(args, work),
        ranges: Ranges {
            depth: one(work.depth),
            fsync_every: one(work.fsync_every),
            ..Ranges::spanning([work].into_iter())
        },
        limits: Limits { precision: args.precision, ..Limits::default() },
        hints: bench.rig.hints(),
        hosts: bench.hosts.clone(),
        ..Header::new(origin, Method::Measure, bench.host.clone(), bench.target.clone())
    }
}

fn write(journal: &mut Option<Journal>, line: &Line) -> anyhow::Result<()> {
    if let Some(journal) = journal {
        journal.put(line)?;
    }
    Ok(())
}

/// Precision counts only where it was asked for.
fn verdict(args: &MeasureArgs, estimate: &Estimate) -> Exit {
    let reached = estimate.throughput_bytes_per_s.relative_half_width();
    match args.precision {
        Some(asked) if reached > asked => {
            let remedy = match args.rounds {
                Some(_) => "raise --rounds, or leave it out",
                None if estimate.visits >= ROUNDS_MAX => {
                    "ask for less, or measure on a quieter machine"
                }
                None => "give a longer --budget, or measure on a quieter machine",
            };
            say(&format!(
                "ioscape: the interval is ±{:.1} %, not the {:.1} % asked for: {remedy}",
                reached * 100.0,
                asked * 100.0
            ));
            Exit::NotWithin
        }
        _ => Exit::Fine,
    }
}
