//! `ioscape measure --p99-below`: the highest rate of an open loop that keeps a bound.

use ioscape_analysis::estimate;
use ioscape_engine::Error;
use ioscape_experiment::highest_rate::{self, Answer, Ending, RateSearch, Trial};
use ioscape_experiment::measure::{Subject, end, measure as visit};
use ioscape_model::units::{show_seconds, three_digits};
use ioscape_model::{Line, Point, Role, Rules, Workload};

use super::{Opened, ROUNDS_USUAL, write};
use crate::args::MeasureArgs;
use crate::exit::{Exit, usage};
use crate::output::answer;
use crate::progress::{Progress, Until};

/// How close the rate that is kept and the one that is not come, unless another was asked for.
const PRECISION: f64 = 0.05;
/// Visits are told apart by their seeds: one after the other.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// What was found, and what it rests on.
struct Found {
    closed: Point,
    answer: Answer,
}

/// Looks for the rate and says what it is.
pub(super) fn find(
    args: &MeasureArgs,
    work: &Workload,
    p99_max_s: f64,
    mut opened: Opened,
) -> anyhow::Result<Exit> {
    let precision = args.precision.unwrap_or(PRECISION);
    let question = RateSearch { p99_max_s, precision, rounds: args.rounds.unwrap_or(ROUNDS_USUAL) };
    let mut points = Vec::new();
    let outcome = look(args, work, &question, &mut opened, &mut points);
    let failure = outcome.as_ref().err();
    let elapsed_s = opened.bench.rig.now_s();
    let end = end(Error::ending(failure), &points, &*opened.bench.rig);
    let warnings = opened.bench.warnings.clone();
    drop(opened.bench); // test files and limits go before anything is said
    for line in estimate::lines(&points, elapsed_s, failure.is_some(), vec![]) {
        write(&mut opened.journal, &line)?;
    }
    write(&mut opened.journal, &Line::End(end))?;
    let found = outcome?;
    if args.common.json {
        let document = document(work, &question, &found, &warnings);
        answer(&crate::output::json(&document)?)?;
    } else {
        answer(&page(work, &question, &found))?;
    }
    Ok(match found.answer.ending {
        Ending::NotReachable => Exit::NotWithin,
        Ending::Found | Ending::NotSaturated => Exit::Fine,
    })
}

/// A rate cannot be looked for and given.
pub(super) fn check(work: &Workload) -> anyhow::Result<()> {
    if work.rate == 0.0 {
        return Ok(());
    }
    Err(usage("--p99-below looks for the rate: leave rate out of the workload"))
}

/// One visit in a closed loop, then rates until the answer is known.
fn look(
    args: &MeasureArgs,
    work: &Workload,
    question: &RateSearch,
    opened: &mut Opened,
    points: &mut Vec<Point>,
) -> Result<Found, Error> {
    let until = Until::Visits { count: usize::MAX, forecast_s: 0.0 };
    let mut progress = Progress::new(until, args.common.quiet);
    let Opened { bench, journal, header } = opened;
    let mut visit = |work: &Workload, round: u32, rules: &Rules| {
        progress.visit(Role::Measure, work, points.len(), bench.rig.now_s());
        let seed = header.seed.wrapping_add((points.len() as u64).wrapping_mul(SEED_STEP));
        let subject = Subject { work, role: Role::Measure, round, seed };
        let started_s = bench.rig.now_s();
        let mut on_event = |event| progress.measuring(&event);
        let mut point = visit(&subject, rules, &mut *bench.rig, &mut on_event)?;
        point.started_s = started_s;
        write(journal, &Line::Point(point.clone())).map_err(|e| Error::Refused(e.to_string()))?;
        points.push(point.clone());
        Ok::<Point, Error>(point)
    };
    let closed = visit(work, 0, &header.rules)?;
    let answer = highest_rate::search(question, closed.ops_per_s, &mut |rate, round| {
        let at_rate = Workload { rate, ..work.clone() };
        let point = visit(&at_rate, round, &highest_rate::rules(rate))?;
        Ok::<_, Error>(highest_rate::RateResult::from_point(&point))
    })?;
    Ok(Found { closed, answer })
}

/// The answer in a sentence.
fn sentence(question: &RateSearch, found: &Found) -> String {
    let bound = show_seconds(question.p99_max_s);
    let Answer { ending, rate_per_s, low_per_s, high_per_s, trials } = &found.answer;
    let shown = |rate: &Option<f64>| rate.map_or_else(|| "none".to_owned(), three_digits);
    match ending {
        Ending::Found => format!(
            "{} requests per second with p99 at {bound} or less (at {} every visit met it, at {} \
             none)",
            shown(rate_per_s),
            shown(low_per_s),
            shown(high_per_s)
        ),
        Ending::NotReachable => format!(
            "not reachable: even at {} requests per second p99 is {}, above {bound}; one request \
             alone takes too long here",
            shown(&trials.first().map(|trial| trial.rate_per_s)),
            trials.first().map_or_else(String::new, |trial| show_seconds(p99_s(trial)))
        ),
        Ending::NotSaturated => format!(
            "at least {} requests per second: the highest rate tried kept p99 at {bound} or less \
             and nothing fell behind, so the storage was never saturated",
            shown(rate_per_s)
        ),
    }
}

/// Median over the visits, of an even number the upper one: what was not kept is not shown as kept.
fn p99_s(trial: &Trial) -> f64 {
    let mut all: Vec<f64> = trial.visits.iter().map(|visit| visit.p99_s).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(0.0)
}

fn page(work: &Workload, question: &RateSearch, found: &Found) -> String {
    let closed = &found.closed;
    let mut lines = vec![
        format!("workload       {work}"),
        format!("highest rate   {}", sentence(question, found)),
        format!(
            "closed loop    {} requests per second, p99 {}: the most that {} in flight gives",
            three_digits(closed.ops_per_s),
            show_seconds(closed.response_time_s.p99),
            work.process_num * work.depth
        ),
        "tried          requests/s       p99  done/s  kept".to_owned(),
    ];
    for trial in &found.answer.trials {
        let done = trial.visits.iter().map(|visit| visit.ops_per_s).fold(f64::MAX, f64::min);
        lines.push(format!(
            "               {:>10} {:>9} {:>7}  {} of {}",
            three_digits(trial.rate_per_s),
            show_seconds(p99_s(trial)),
            three_digits(done),
            trial.kept,
            trial.visits.len()
        ));
    }
    lines.join("\n")
}

fn document(
    work: &Workload,
    question: &RateSearch,
    found: &Found,
    warnings: &[ioscape_model::Warning],
) -> serde_json::Value {
    let Answer { ending, rate_per_s, low_per_s, high_per_s, trials } = &found.answer;
    let trial = |trial: &Trial| {
        let visit = |visit: &highest_rate::RateResult| serde_json::json!({ "p99_s": visit.p99_s, "ops_per_s": visit.ops_per_s });
        serde_json::json!({
            "rate_per_s": trial.rate_per_s,
            "kept": trial.kept,
            "visits": trial.visits.iter().map(visit).collect::<Vec<_>>(),
        })
    };
    serde_json::json!({
        "workload": work,
        "p99_max_s": question.p99_max_s,
        "verdict": match ending {
            Ending::Found => "found",
            Ending::NotReachable => "not_reachable",
            Ending::NotSaturated => "not_saturated",
        },
        "text": sentence(question, found),
        "highest_rate_per_s": { "value": rate_per_s, "low": low_per_s, "high": high_per_s },
        "closed_loop_ops_per_s": found.closed.ops_per_s,
        "trials": trials.iter().map(trial).collect::<Vec<_>>(),
        "warnings": warnings,
    })
}
