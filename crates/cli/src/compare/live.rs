//! `ioscape compare --live`: two targets measured in alternation, each into a record of its own.
//! Those two records are then compared (`alternated`), and can be again later.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use ioscape_analysis::estimate;
use ioscape_engine::{Clock, EngineKind, RunId};
use ioscape_experiment::alternate::{
    self, Alternation, Outcome, PAIRS_ENOUGH, Side, Time, alternate, laid_out_bytes,
};
use ioscape_experiment::measure::end as end_of;
use ioscape_model::units::{show_bytes, show_seconds};
use ioscape_model::{
    Dropped, End, EndReason, Header, Line, Method, Point, Ranges, Role, Rules, Want, Workload,
};

use super::{alternated, check_out, is_unasked, named, price};
use crate::args::{Common, CompareArgs};
use crate::bench::{self, Bench, Request, RunMode};
use crate::company::Company;
use crate::exit::{Exit, usage};
use crate::interrupt::Interrupt;
use crate::journal::{self, Journal};
use crate::origin::{drawn_seed, now_text, origin};
use crate::out_file;
use crate::output::say;
use crate::progress::{Progress, Until};
use crate::workload_arg::{self, Asked};

/// `--budget`, where none is given.
const BUDGET_S: f64 = 600.0;
const LETTERS: [&str; 2] = ["A", "B"];

/// Measures, compares, prints.
pub(super) fn measure(args: &CompareArgs, clock: Clock) -> anyhow::Result<Exit> {
    let interrupt = Interrupt::catch()?;
    let outcome = measure_both(args, clock, &interrupt);
    interrupt.settle(outcome)
}

fn measure_both(args: &CompareArgs, clock: Clock, interrupt: &Interrupt) -> anyhow::Result<Exit> {
    let [one, other] = &args.records[..] else {
        return Err(usage("--live measures two targets: name two, the baseline first"));
    };
    let prices = price::read(&args.price, &args.records).map_err(usage)?;
    let paths = records(args);
    for path in &paths {
        out_file::check_new(path, "--record")?;
    }
    check_out(args)?;
    let asked = if is_unasked(args) {
        workload_arg::ladder()
    } else {
        workload_arg::parse_all(&args.workload, &args.keys)?
    };
    let session = Session {
        args,
        seed: args.common.seed.unwrap_or_else(drawn_seed),
        budget_s: args.budget.unwrap_or(BUDGET_S),
        runs: runs()?,
        needed_bytes: laid_out_bytes(asked.iter().map(|asked| &asked.work)),
    };
    let targets = [one.as_path(), other.as_path()];
    let mut benches = open(&session, targets, clock, interrupt)?;
    let (works, no_room) = keep_what_fits(&asked, &benches, is_unasked(args))?;
    session.announce(&benches, &works)?;
    let mut journals = begin(&session, &benches, &works, &paths)?;
    let outcome = session.alternate(&mut benches, &works, &mut journals, interrupt)?;
    let no_time = outcome.dropped.iter().map(|work| works[*work].clone());
    let no_time = no_time.map(|workload| Dropped { workload, want_of: Want::Time });
    end(
        &outcome,
        &benches,
        &mut journals,
        &no_room.into_iter().chain(no_time).collect::<Vec<_>>(),
    )?;
    let [one, other] = benches;
    drop(other); // the limits are the first one's; test files go before anything is said
    drop(one);
    if journals.iter().any(|side| side.points.is_empty()) {
        return Err(nothing(&outcome, session.budget_s));
    }
    drop(journals);
    let exit = alternated::told(args, &paths, &named(&asked), prices.as_deref())?;
    if !args.common.quiet {
        say(&format!("records  {} and {}", paths[0].display(), paths[1].display()));
    }
    if let Some(failure) = &outcome.failure {
        say(&format!("ioscape: it ended early: {failure}; what was measured in pairs is compared"));
        return Ok(Exit::Failed);
    }
    match (outcome.reason, exit) {
        (EndReason::Interrupted, exit) => Ok(interrupt.signal_or(exit.unwrap_or(Exit::Fine))),
        (_, Some(exit)) => Ok(exit),
        (_, None) => {
            let budget = show_seconds(session.budget_s);
            say(&format!(
                "ioscape: in {budget} no workload was measured in two pairs, and fewer say \
                 nothing: raise --budget, or name fewer workloads by -w"
            ));
            Ok(Exit::Failed)
        }
    }
}

/// Why there is nothing to compare. Records without a point go away by themselves.
fn nothing(outcome: &Outcome, budget_s: f64) -> anyhow::Error {
    let why = match (outcome.reason, &outcome.failure) {
        (EndReason::Interrupted, _) => return ioscape_engine::Error::Interrupted.into(),
        (_, Some(failure)) => failure.clone(),
        (_, None) => {
            format!("{} are too short for a visit; raise --budget", show_seconds(budget_s))
        }
    };
    anyhow::anyhow!("nothing was measured: {why}")
}

/// `PREFIX-A.jsonl` and `PREFIX-B.jsonl`.
fn records(args: &CompareArgs) -> [PathBuf; 2] {
    let usual = || journal::stamped("ioscape-compare", &now_text()).into();
    let prefix = args.record.clone().unwrap_or_else(usual);
    LETTERS.map(|letter| {
        let mut name = prefix.clone().into_os_string();
        name.push(format!("-{letter}.jsonl"));
        name.into()
    })
}

/// Two names that differ in their last digit, `a` and `b`: that is how their records know each
/// other.
fn runs() -> anyhow::Result<[RunId; 2]> {
    let both = RunId::random()?;
    let side = |digit: char| RunId::parse(&format!("{both}{digit}"));
    let runs = side('a').zip(side('b'));
    runs.map(<[RunId; 2]>::from).context("a run's name has room for another digit")
}

/// What holds for both sides.
struct Session<'a> {
    args: &'a CompareArgs,
    seed: u64,
    budget_s: f64,
    runs: [RunId; 2],
    /// Most bytes that the workloads need laid out.
    needed_bytes: u64,
}

/// Opens both targets. Limits are of this process, not of a target: they are put in force once.
fn open(
    session: &Session<'_>,
    targets: [&Path; 2],
    clock: Clock,
    interrupt: &Interrupt,
) -> anyhow::Result<[Bench; 2]> {
    let full = &session.args.common;
    let none = Common { memory_limit: None, dirty_limit: None, ..full.clone() };
    let is_sim = targets.map(|target| bench::sim_name(target).is_some());
    let of_second = is_sim[0] && !is_sim[1];
    let alone = Company::default();
    let request = |side: usize| Request {
        target: targets[side],
        run: &session.runs[side],
        engine: EngineKind::Auto,
        // Two simulated devices must not have the same luck.
        seed: session.seed.wrapping_add(side as u64),
        common: if (side == 1) == of_second { full } else { &none },
        device: None,
        // How fast data is laid out says for how many workloads there is time.
        mode: RunMode::Measure { probe_max_bytes: session.needed_bytes },
        clock,
        interrupt,
        verify: false,
        company: &alone,
    };
    let mut benches = [bench::open(&request(0))?, bench::open(&request(1))?];
    for bench in benches.iter_mut().filter(|bench| !bench.target.is_simulated()) {
        bench.host.memory_limit_set_bytes = full.memory_limit;
        bench.host.dirty_limit_set_bytes = full.dirty_limit;
    }
    Ok(benches)
}

/// Most bytes that may be laid out on each side: where both are on one filesystem, each has half.
fn room_bytes(benches: &[Bench; 2]) -> [u64; 2] {
    let filesystem = |bench: &Bench| {
        let is_real = !bench.target.is_simulated();
        is_real.then(|| std::fs::metadata(&bench.target.path).ok()).flatten().map(|of| of.dev())
    };
    let [one, other] = [filesystem(&benches[0]), filesystem(&benches[1])];
    let parts = if one.is_some() && one == other { 2 } else { 1 };
    [0, 1].map(|side: usize| benches[side].rig.hints().room_bytes / parts)
}

/// The workloads that fit, and those that do not: they are refused where they were named, and left out
/// where all were meant.
fn keep_what_fits(
    asked: &[Asked],
    benches: &[Bench; 2],
    all_meant: bool,
) -> anyhow::Result<(Vec<Workload>, Vec<Dropped>)> {
    let room = room_bytes(benches);
    let room = room[0].min(room[1]);
    let stalls = |work: &Workload| {
        let most = benches.iter().filter_map(|bench| bench.writes_max_bytes);
        work.read_frac < 1.0 && most.into_iter().any(|most| work.unique_bytes as f64 > most)
    };
    let mut kept: Vec<Workload> = Vec::new();
    let mut left_out: Vec<&Asked> = Vec::new();
    for one in asked {
        let fits = laid_out_bytes(kept.iter().chain([&one.work])) <= room;
        if fits && !(all_meant && stalls(&one.work)) {
            kept.push(one.work.clone());
        } else {
            left_out.push(one);
        }
    }
    let names: Vec<&str> = left_out.iter().map(|asked| asked.name.as_str()).collect();
    let room = show_bytes(room as f64);
    let why = format!("{} (room for {room} of test data on each side)", names.join(", "));
    if kept.is_empty() || (!all_meant && !left_out.is_empty()) {
        return Err(usage(format!("there is no room for {why}: name smaller workloads by -w")));
    }
    if !left_out.is_empty() {
        say(&format!("left out: {why}"));
    }
    let dropped = left_out.into_iter().map(|asked| asked.work.clone());
    let dropped = dropped.map(|workload| Dropped { workload, want_of: Want::Room });
    Ok((kept, dropped.collect()))
}

impl Session<'_> {
    /// Says what there is time for; refuses a budget that shows nothing.
    fn announce(&self, benches: &[Bench; 2], works: &[Workload]) -> anyhow::Result<()> {
        let hints = benches.each_ref().map(|bench| bench.rig.hints());
        let [one, other] = &hints;
        let rules = Rules::brief();
        let forecast = alternate::forecast(works, &rules, [one, other], self.budget_s);
        let budget = show_seconds(self.budget_s);
        let all = match works.len() {
            1 => format!("the workload takes about {}", show_seconds(forecast.all_s)),
            count => format!("all {count} workloads take about {}", show_seconds(forecast.all_s)),
        };
        if forecast.least_s > self.budget_s {
            return Err(usage(format!(
                "two pairs of visits to any workload take longer than {budget}, and fewer say \
                 nothing: raise --budget, to {} at least; {all}",
                show_seconds(forecast.least_s)
            )));
        }
        if self.args.common.quiet {
            return Ok(());
        }
        for (letter, bench) in LETTERS.iter().zip(benches) {
            say(&format!("{letter}  {} ({})", bench.target.path, bench.target.filesystem));
        }
        say(&format!(
            "{} workloads in alternation for {budget}, seed {}, {} laid out on each side",
            works.len(),
            self.seed,
            show_bytes(laid_out_bytes(works.iter()) as f64)
        ));
        if forecast.workloads < works.len() {
            say(&format!(
                "there is time for about {} of them, {PAIRS_ENOUGH} pairs of visits each, the \
                 cheapest first: {all}",
                forecast.workloads.max(1)
            ));
        }
        Ok(())
    }

    fn header(&self, side: usize, bench: &Bench, works: &[Workload]) -> Header {
        let origin = origin(&self.runs[side], Some(self.seed));
        Header {
            ranges: Ranges::spanning(works.iter()),
            budget_s: self.budget_s,
            hints: bench.rig.hints(),
            ..Header::new(origin, Method::Compare, bench.host.clone(), bench.target.clone())
        }
    }

    fn alternate(
        &self,
        benches: &mut [Bench; 2],
        works: &[Workload],
        journals: &mut [Recording; 2],
        interrupt: &Interrupt,
    ) -> anyhow::Result<Outcome> {
        let mut progress = Progress::new(Until::Seconds(self.budget_s), self.args.common.quiet);
        let sides = benches.each_mut().map(|bench| Side {
            time: if bench.target.is_simulated() { Time::Simulated } else { Time::Real },
            rig: &mut *bench.rig,
        });
        let outcome = alternate(Alternation {
            sides,
            works,
            rules: Rules::brief(),
            budget_s: self.budget_s,
            seed: self.seed,
            interrupt: &interrupt.flag(),
            journal: &mut |side, point: &Point| journals[side].point(point),
            on_event: &mut |event| match event {
                alternate::Event::Visit { work, points, elapsed_s, .. } => {
                    progress.visit(Role::Measure, work, points, elapsed_s);
                }
                alternate::Event::Measuring(event) => progress.measuring(&event),
            },
        });
        Ok(outcome?)
    }
}

/// A record in the making.
struct Recording {
    journal: Journal,
    points: Vec<Point>,
}

impl Recording {
    fn point(&mut self, point: &Point) -> std::io::Result<()> {
        self.points.push(point.clone());
        self.journal.write(&Line::Point(point.clone()))
    }
}

fn begin(
    session: &Session<'_>,
    benches: &[Bench; 2],
    works: &[Workload],
    paths: &[PathBuf; 2],
) -> anyhow::Result<[Recording; 2]> {
    let side = |side: usize| -> anyhow::Result<Recording> {
        let mut journal = Journal::create(&paths[side], "--record")?;
        let header = Line::Header(session.header(side, &benches[side], works));
        journal.put(&header)?;
        for warning in &benches[side].warnings {
            journal.put(&Line::Warning(warning.clone()))?;
        }
        Ok(Recording { journal, points: vec![] })
    };
    Ok([side(0)?, side(1)?])
}

/// Closes both records, each with its estimates.
fn end(
    outcome: &Outcome,
    benches: &[Bench; 2],
    journals: &mut [Recording; 2],
    dropped: &[Dropped],
) -> anyhow::Result<()> {
    for (bench, side) in benches.iter().zip(journals) {
        let provisional = outcome.failure.is_some();
        for line in estimate::lines(&side.points, bench.rig.now_s(), provisional, vec![]) {
            side.journal.put(&line)?;
        }
        let dropped = dropped.to_vec();
        let end = End { dropped, ..end_of(outcome.reason, &side.points, &*bench.rig) };
        side.journal.put(&Line::End(end))?;
    }
    Ok(())
}
