//! `ioscape compare --live`: two targets measured in alternation, each into a record of its own, and
//! those two records compared visit by visit. The records can be compared again later.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use ioscape_analysis::compare::live::{self, LiveRatio};
use ioscape_engine::{Clock, EngineKind, RunId};
use ioscape_experiment::alternate::{self, Alternation, Outcome, Side, Time, alternate};
use ioscape_model::line::FORMAT_VERSION;
use ioscape_model::units::{show_bytes, show_seconds};
use ioscape_model::{
    Comparison, Comparisons, End, EndReason, Header, Limits, Line, Method, Overall, Point, Range,
    Ranges, Record, Role, Rules, Spent, SystemComparison, Workload, named,
};
use ioscape_report::{ComparedSystem, ComparisonPage};

use super::{beyond, check_out, is_unasked, price, show};
use crate::args::{Common, CompareArgs};
use crate::bench::{self, Bench, Earnest, Request};
use crate::exit::{Exit, usage};
use crate::interrupt::Interrupt;
use crate::journal::{self, Journal};
use crate::progress::{Progress, Until};
use crate::run::{command_line, drawn_seed, now_text, refuse_existing, tool};
use crate::workload_arg::{self, Asked};
use crate::{say, signal_or};

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
        refuse_existing(path)?;
    }
    check_out(args)?;
    let mut asked = if is_unasked(args) {
        workload_arg::ladder()
    } else {
        workload_arg::parse_all(&args.workload, &args.keys)?
    };
    let targets = [one, other].map(|target| target.to_string_lossy().into_owned());
    let session = Session {
        args,
        seed: args.common.seed.unwrap_or_else(drawn_seed),
        budget_s: args.budget.unwrap_or(BUDGET_S),
        runs: runs()?,
    };
    let mut benches = open(&session, &targets, clock, interrupt)?;
    keep_what_fits(&mut asked, &benches, is_unasked(args))?;
    let works: Vec<Workload> = asked.iter().map(|asked| asked.work.clone()).collect();
    session.announce(&benches, &works);
    let mut journals = begin(&session, &benches, &works, &paths)?;
    let outcome = session.alternate(&mut benches, &works, &mut journals, interrupt)?;
    end(&outcome, &benches, &mut journals)?;
    let [one, other] = benches;
    drop(other); // the limits are the first one's; test files go before anything is said
    drop(one);
    let exit = told(args, &paths, &asked, prices.as_deref())?;
    if !args.common.quiet {
        say(&format!("records  {} and {}", paths[0].display(), paths[1].display()));
    }
    if let Some(failure) = &outcome.failure {
        say(&format!("ioscape: it ended early: {failure}; what was measured in pairs is compared"));
        return Ok(Exit::Failed);
    }
    match (outcome.reason, exit) {
        (EndReason::Interrupted, exit) => Ok(signal_or(interrupt, exit.unwrap_or(Exit::Fine))),
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
}

fn is_sim(target: &str) -> bool {
    target.starts_with("sim:")
}

/// Opens both targets. Limits are of this process, not of a target: they are put in force once.
fn open(
    session: &Session<'_>,
    targets: &[String; 2],
    clock: Clock,
    interrupt: &Interrupt,
) -> anyhow::Result<[Bench; 2]> {
    let full = &session.args.common;
    let none = Common { memory_limit: None, dirty_limit: None, ..full.clone() };
    let of_second = is_sim(&targets[0]) && !is_sim(&targets[1]);
    let request = |side: usize| Request {
        target: &targets[side],
        run: &session.runs[side],
        engine: EngineKind::Auto,
        // Two simulated devices must not have the same luck.
        seed: session.seed.wrapping_add(side as u64),
        common: if (side == 1) == of_second { full } else { &none },
        device: None,
        earnest: Earnest::Measure { probe_max_bytes: 0 },
        clock,
        interrupt,
        verify: false,
    };
    let mut benches = [bench::open(&request(0))?, bench::open(&request(1))?];
    for bench in benches.iter_mut().filter(|bench| bench.sim_ranges.is_none()) {
        bench.host.memory_limit_set_bytes = full.memory_limit;
        bench.host.dirty_limit_set_bytes = full.dirty_limit;
    }
    Ok(benches)
}

/// Most bytes that may be laid out on each side: where both are on one filesystem, each has half.
fn room_bytes(benches: &[Bench; 2]) -> [u64; 2] {
    let filesystem = |bench: &Bench| {
        let is_real = bench.sim_ranges.is_none();
        is_real.then(|| std::fs::metadata(&bench.target.path).ok()).flatten().map(|of| of.dev())
    };
    let [one, other] = [filesystem(&benches[0]), filesystem(&benches[1])];
    let parts = if one.is_some() && one == other { 2 } else { 1 };
    [0, 1].map(|side: usize| benches[side].rig.hints().room_bytes / parts)
}

/// Bytes that these workloads need laid out: the files of each process, as large as any asks for.
fn needed_bytes(works: &[&Workload]) -> u64 {
    let processes = works.iter().map(|work| work.process_num).max().unwrap_or(0);
    let of = |process: u32| {
        let users = works.iter().filter(|work| work.process_num > process);
        users.map(|work| work.share_bytes()).max().unwrap_or(0)
    };
    (0..processes).map(of).sum()
}

/// Workloads that do not fit are refused where they were named, and left out where all were meant.
fn keep_what_fits(
    asked: &mut Vec<Asked>,
    benches: &[Bench; 2],
    all_meant: bool,
) -> anyhow::Result<()> {
    let room = room_bytes(benches);
    let fits = |works: &[&Workload]| needed_bytes(works) <= room[0].min(room[1]);
    let stalls = |work: &Workload| {
        let most = benches.iter().filter_map(|bench| bench.writes_max_bytes);
        work.read_frac < 1.0 && most.into_iter().any(|most| work.unique_bytes as f64 > most)
    };
    let mut kept: Vec<Asked> = Vec::new();
    let mut left_out: Vec<String> = Vec::new();
    for one in asked.drain(..) {
        let mut works: Vec<&Workload> = kept.iter().map(|kept| &kept.work).collect();
        works.push(&one.work);
        if fits(&works) && !(all_meant && stalls(&one.work)) {
            kept.push(one);
        } else {
            left_out.push(one.name);
        }
    }
    let room = show_bytes(room[0].min(room[1]) as f64);
    let why = format!("{} (room for {room} of test data on each side)", left_out.join(", "));
    if kept.is_empty() || (!all_meant && !left_out.is_empty()) {
        return Err(usage(format!("there is no room for {why}: name smaller workloads by -w")));
    }
    if !left_out.is_empty() {
        say(&format!("left out: {why}"));
    }
    *asked = kept;
    Ok(())
}

impl Session<'_> {
    fn announce(&self, benches: &[Bench; 2], works: &[Workload]) {
        if self.args.common.quiet {
            return;
        }
        for (letter, bench) in LETTERS.iter().zip(benches) {
            say(&format!("{letter}  {} ({})", bench.target.path, bench.target.filesystem));
        }
        say(&format!(
            "{} workloads in alternation for {}, seed {}, {} laid out on each side",
            works.len(),
            show_seconds(self.budget_s),
            self.seed,
            show_bytes(needed_bytes(&works.iter().collect::<Vec<_>>()) as f64)
        ));
    }

    fn header(&self, side: usize, bench: &Bench, works: &[Workload]) -> Header {
        let range = |of: fn(&Workload) -> u64| Range {
            min: works.iter().map(of).min().unwrap_or(0),
            max: works.iter().map(of).max().unwrap_or(0),
        };
        Header {
            format_version: FORMAT_VERSION,
            tool: tool(),
            run_id: self.runs[side].as_str().to_owned(),
            command_line: command_line(),
            seed: self.seed,
            start_time: now_text(),
            host: bench.host.clone(),
            target: bench.target.clone(),
            method: Method::Compare,
            rules: Rules::brief(),
            ranges: Ranges::of_five(
                range(|work| work.unique_bytes),
                range(|work| work.size_mean),
                range(|work| u64::from(work.process_num)),
            ),
            budget_s: self.budget_s,
            limits: Limits::default(),
            hints: bench.rig.hints(),
            forecast: None,
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
            time: if bench.sim_ranges.is_some() { Time::Simulated } else { Time::Real },
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
        let mut journal = Journal::create(&paths[side])?;
        let header = Line::Header(session.header(side, &benches[side], works));
        journal.write(&header).context("cannot write the record")?;
        for warning in &benches[side].warnings {
            journal.write(&Line::Warning(warning.clone())).context("cannot write the record")?;
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
) -> anyhow::Result<()> {
    for (bench, side) in benches.iter().zip(journals) {
        let failed = "cannot write the record";
        let elapsed_s = bench.rig.now_s();
        for line in crate::measure::pooled(&side.points, elapsed_s, outcome.failure.is_some()) {
            side.journal.write(&line).context(failed)?;
        }
        let read = |point: &Point| point.classes.read_seq.bytes + point.classes.read_rand.bytes;
        let end = End {
            reason: outcome.reason,
            points: side.points.len() as u64,
            elapsed_s,
            spent_s: side.points.iter().fold(Spent::default(), |sum, p| sum.plus(&p.spent_s)),
            read_bytes: side.points.iter().map(read).sum(),
            written_bytes: bench.rig.written_bytes(),
            forecast: None,
        };
        side.journal.write(&Line::End(end)).context(failed)?;
    }
    Ok(())
}

/// Compares two records that were made in alternation, where that is what they are.
pub(super) fn compare(args: &CompareArgs, prices: Option<&[f64]>) -> anyhow::Result<Option<Exit>> {
    let records = args.records.iter().map(|path| journal::open(path));
    let records: Vec<Record> = records.collect::<Result<_, _>>()?;
    let is_live = |record: &Record| record.header.method == Method::Compare;
    if !records.iter().any(is_live) {
        return Ok(None);
    }
    let [one, other] = &records[..] else {
        return Err(usage("two records of one live comparison belong together: name only those"));
    };
    let name = |record: &Record| {
        let id = record.header.run_id.clone();
        is_live(record).then(|| id[..id.len().saturating_sub(1)].to_owned())
    };
    if name(one).is_none() || name(one) != name(other) {
        return Err(usage(format!(
            "{} and {} were not measured in alternation with each other: name the two records of \
             one live comparison",
            args.records[0].display(),
            args.records[1].display()
        )));
    }
    let asked = if is_unasked(args) {
        visited(one)
    } else {
        workload_arg::parse_all(&args.workload, &args.keys)?
    };
    let paths = [args.records[0].clone(), args.records[1].clone()];
    match told(args, &paths, &asked, prices)? {
        Some(exit) => Ok(Some(exit)),
        None => Err(usage("no workload was measured in two pairs: measure longer")),
    }
}

/// What a record holds visits to, under the name it goes by; those that have one first.
fn visited(record: &Record) -> Vec<Asked> {
    let mut all: Vec<Asked> = Vec::new();
    for point in &record.points {
        if all.iter().all(|asked| asked.work != point.workload) {
            let work = point.workload.clone();
            let is_it = |name: &&str| named::named(name).is_some_and(|named| named == work);
            let name = named::names().chain(named::neighbours()).find(is_it);
            let name = name.map_or_else(|| work.literal(), str::to_owned);
            all.push(Asked { name, work, says_access: true });
        }
    }
    let place = |asked: &Asked| named::names().position(|name| name == asked.name);
    all.sort_by_key(|asked| place(asked).unwrap_or(usize::MAX));
    all
}

/// Compares the two records, prints; none where nothing can be compared.
fn told(
    args: &CompareArgs,
    paths: &[PathBuf; 2],
    asked: &[Asked],
    prices: Option<&[f64]>,
) -> anyhow::Result<Option<Exit>> {
    let records = [journal::open_again(&paths[0])?, journal::open_again(&paths[1])?];
    let document = document(args.tolerance, paths, &records, asked, prices);
    if document.verdict == Overall::OutOfRange {
        return Ok(None);
    }
    let system = |side: usize| ComparedSystem {
        record: &records[side],
        file: paths[side].display().to_string(),
        predicted: vec![],
    };
    let page = ComparisonPage {
        systems: vec![system(0), system(1)],
        document: &document,
        overlay: Workload::default(),
    };
    show(args, &page).map(Some)
}

fn document(
    tolerance: Option<f64>,
    paths: &[PathBuf; 2],
    records: &[Record; 2],
    asked: &[Asked],
    prices: Option<&[f64]>,
) -> Comparisons {
    let works: Vec<Workload> = asked.iter().map(|asked| asked.work.clone()).collect();
    let found = live::compare(&records[0].points, &records[1].points, &works);
    let file = |path: &Path| path.display().to_string();
    let comparison = |live: &LiveRatio| Comparison {
        record: file(&paths[1]),
        name: asked[live.index].name.clone(),
        workload: asked[live.index].work.clone(),
        baseline_bytes_per_s: live.baseline_bytes_per_s,
        throughput_bytes_per_s: live.throughput_bytes_per_s,
        ratio: live.tested.ratio,
        verdict: live.tested.verdict,
        pairs: Some(live.pairs as u64),
    };
    let comparisons: Vec<Comparison> = found.workloads.iter().map(comparison).collect();
    let mut system = SystemComparison {
        record: file(&paths[1]),
        verdict: found.verdict,
        geometric_mean: found.geometric_mean,
        measured: None,
        caches: vec![],
        regions: vec![],
        beyond_tolerance: vec![],
        price: None,
    };
    system.beyond_tolerance = beyond(&system, &comparisons, tolerance);
    system.price = prices.map(|p| price::worth(p[1] / p[0], &system, &comparisons));
    let mut document = Comparisons {
        baseline: file(&paths[0]),
        comparisons,
        systems: vec![system],
        prices: vec![],
        verdict: found.verdict,
    };
    if let Some(prices) = prices {
        let files = [file(&paths[0]), file(&paths[1])];
        document.prices =
            price::performance(&files.each_ref().map(String::as_str), prices, &document);
    }
    document
}
