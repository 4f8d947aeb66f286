//! `ioscape compare`: systems held against a baseline, each known by its record. `live` measures two
//! targets in alternation and compares those visits.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use ioscape_analysis::compare::{self, System, Versus};
use ioscape_analysis::model::{Sample, Training};
use ioscape_analysis::predict::Predictor;
use ioscape_engine::Clock;
use ioscape_model::{
    Comparison, Comparisons, Figure, OverallRatio, Record, SystemComparison, Verdict, Workload,
};
use ioscape_report::{ComparedSystem, ComparisonPage};

use crate::args::CompareArgs;
use crate::exit::{Exit, usage};
use crate::report::WIDTH;
use crate::run::refuse_existing;
use crate::workload_arg::{self, Asked};
use crate::{answer, journal, say};

mod live;
mod price;

/// Points of a predicted line.
const LINE_POINTS: u32 = 64;

/// Compares, prints, and says by its exit code whether anything got worse than was tolerated.
pub(crate) fn compare(args: &CompareArgs, clock: Clock) -> anyhow::Result<Exit> {
    if args.live {
        return live::measure(args, clock);
    }
    if args.records.len() < 2 {
        return Err(usage("two records are needed, the baseline first: name another RECORD"));
    }
    refuse_measuring(args)?;
    if let Some(exit) = crate::suite::against::compare(&args.records, args.common.json)? {
        return Ok(exit);
    }
    let prices = price::read(&args.price, &args.records).map_err(usage)?;
    check_out(args)?;
    if let Some(exit) = live::compare(args, prices.as_deref())? {
        return Ok(exit);
    }
    let asked = if is_unasked(args) {
        workload_arg::ladder()
    } else {
        workload_arg::read_all(&args.workload, &args.keys)?
    };
    let maps = args.records.iter().map(|path| Mapped::open(path)).collect::<Result<Vec<_>, _>>()?;
    let asked = of_maps(&args.records, &maps, asked)?;
    let document = document(args.tolerance, &maps, &asked, prices.as_deref());
    show(args, &page(&maps, &document))
}

/// Whether no workload was named.
fn is_unasked(args: &CompareArgs) -> bool {
    args.workload.is_empty() && args.keys.pairs().is_empty()
}

/// What is for measuring only.
fn refuse_measuring(args: &CompareArgs) -> anyhow::Result<()> {
    let common = &args.common;
    let given = [
        (common.seed.is_some(), "--seed"),
        (common.memory_limit.is_some(), "--memory-limit"),
        (common.dirty_limit.is_some(), "--dirty-limit"),
        (common.pin, "--pin"),
    ];
    match given.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, flag)) => Err(usage(format!("{flag} is for --live: records measure nothing"))),
        None => Ok(()),
    }
}

/// Writes the page, prints the answer, and gives the exit code.
fn show(args: &CompareArgs, page: &ComparisonPage<'_>) -> anyhow::Result<Exit> {
    if let Some(out) = &args.out {
        fs::write(out, ioscape_report::comparison_html(page))
            .with_context(|| format!("cannot write {}", out.display()))?;
        say(&format!("comparison  {}", out.display()));
    }
    if args.common.json {
        answer(&serde_json::to_string_pretty(page.document)?);
    } else if !args.common.quiet {
        let color = crate::is_colourful();
        answer(&ioscape_report::comparison_text(page, WIDTH, color));
    }
    let is_worse = page.document.systems.iter().any(|system| !system.beyond_tolerance.is_empty());
    Ok(if is_worse { Exit::NotWithin } else { Exit::Fine })
}

/// Records side by side on the named workloads, as `ioscape report` shows them.
pub(crate) fn rendered(
    records: &[PathBuf],
    render: &dyn Fn(&ComparisonPage<'_>) -> String,
) -> anyhow::Result<String> {
    let maps = records.iter().map(|path| Mapped::open(path)).collect::<Result<Vec<_>, _>>()?;
    let asked = of_maps(records, &maps, workload_arg::ladder())?;
    let document = document(None, &maps, &asked, None);
    Ok(render(&page(&maps, &document)))
}

/// Workloads that all maps know the keys of.
fn of_maps(records: &[PathBuf], maps: &[Mapped], asked: Vec<Asked>) -> anyhow::Result<Vec<Asked>> {
    let mut known = asked;
    for (path, map) in records.iter().zip(maps) {
        known = workload_arg::of_map(known, path, &map.predictor)?;
    }
    Ok(known)
}

/// The page must not land on a record.
fn check_out(args: &CompareArgs) -> anyhow::Result<()> {
    let Some(out) = &args.out else { return Ok(()) };
    let same = |path: &PathBuf| {
        path == out || matches!((path.canonicalize(), out.canonicalize()), (Ok(a), Ok(b)) if a == b)
    };
    match args.records.iter().find(|path| same(path)) {
        Some(record) => Err(usage(format!("{} is a record: name another --out", record.display()))),
        None => refuse_existing(out),
    }
}

/// A record with its models.
struct Mapped {
    file: String,
    record: Record,
    samples: Vec<Sample>,
    predictor: Predictor,
}

impl Mapped {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let record = journal::open_again(path)?; // live comparisons were looked for in it
        let training = Training::of(&record);
        let samples = training.samples.clone();
        let predictor = Predictor::fit(training)
            .map_err(|error| usage(format!("{}: {error}", path.display())))?;
        Ok(Self { file: path.display().to_string(), record, samples, predictor })
    }

    fn system(&self) -> System<'_> {
        System::of(&self.record, &self.samples, &self.predictor)
    }

    /// Throughput over the record's own range of `unique_bytes`.
    fn line(&self, overlay: &Workload) -> Vec<(f64, f64)> {
        let from = self.record.header.ranges.unique_bytes.min;
        let to = self.samples.iter().map(|s| s.workload.unique_bytes).max().unwrap_or(from);
        let growth = to.max(from) as f64 / from as f64;
        let at = |step: u32| {
            let unique = from as f64 * growth.powf(f64::from(step) / f64::from(LINE_POINTS - 1));
            let work = Workload { unique_bytes: unique as u64, ..overlay.clone() };
            let rate = self.predictor.guess(&work).ln_throughput.exp();
            work.check().is_ok().then_some((unique, rate))
        };
        (0..LINE_POINTS).filter_map(at).collect()
    }
}

fn document(
    tolerance: Option<f64>,
    maps: &[Mapped],
    asked: &[Asked],
    prices: Option<&[f64]>,
) -> Comparisons {
    let works: Vec<Workload> = asked.iter().map(|asked| asked.work.clone()).collect();
    let (baseline, others) = maps.split_first().expect("there are two records at least");
    let mut document = Comparisons {
        baseline: baseline.file.clone(),
        comparisons: vec![],
        systems: vec![],
        prices: vec![],
        verdict: compare::overall([]),
    };
    let mut verdicts = Vec::new();
    for other in others {
        let versus = compare::compare(&baseline.system(), &other.system(), &works);
        let comparisons = comparisons(baseline, other, asked, &versus);
        let mut system = system(baseline, other, &versus, &comparisons, tolerance);
        if let Some(prices) = prices {
            let ratio = prices[document.systems.len() + 1] / prices[0];
            system.price = Some(price::worth(ratio, &system, &comparisons));
        }
        verdicts.extend(comparisons.iter().map(|comparison| comparison.verdict));
        verdicts.extend(sums(&system).map(|(_, sum)| sum.verdict));
        document.comparisons.extend(comparisons);
        document.systems.push(system);
    }
    document.verdict = compare::overall(verdicts);
    if let Some(prices) = prices {
        let files: Vec<&str> = maps.iter().map(|map| map.file.as_str()).collect();
        document.prices = price::performance(&files, prices, &document);
    }
    document
}

fn comparisons(
    baseline: &Mapped,
    other: &Mapped,
    asked: &[Asked],
    versus: &Versus,
) -> Vec<Comparison> {
    let rate = |map: &Mapped, work: &Workload| map.predictor.guess(work).ln_throughput.exp();
    let all = asked.iter().zip(&versus.workloads).map(|(asked, tested)| Comparison {
        record: other.file.clone(),
        name: asked.name.clone(),
        workload: asked.work.clone(),
        baseline_bytes_per_s: rate(baseline, &asked.work),
        throughput_bytes_per_s: rate(other, &asked.work),
        ratio: tested.ratio,
        verdict: tested.verdict,
        pairs: None,
    });
    all.collect()
}

fn system(
    baseline: &Mapped,
    other: &Mapped,
    versus: &Versus,
    comparisons: &[Comparison],
    tolerance: Option<f64>,
) -> SystemComparison {
    let (from, to) = (&baseline.record, &other.record);
    let mut system = SystemComparison {
        record: other.file.clone(),
        verdict: versus.verdict,
        geometric_mean: versus.geometric_mean,
        measured: versus.measured,
        caches: compare::caches(&from.borders, &to.borders),
        regions: compare::regions(
            (&baseline.system(), &from.regions),
            (&other.system(), &to.regions),
        ),
        beyond_tolerance: vec![],
        price: None,
    };
    system.beyond_tolerance = beyond(&system, comparisons, tolerance);
    system
}

/// What is slower by more than was tolerated, beyond doubt.
fn beyond(
    system: &SystemComparison,
    comparisons: &[Comparison],
    tolerance: Option<f64>,
) -> Vec<String> {
    let Some(tolerance) = tolerance else { return vec![] };
    let is_beyond = |ratio: &Figure| ratio.high < 1.0 - tolerance;
    let slower = comparisons.iter().filter(|c| c.verdict == Verdict::Slower);
    let workloads = slower.filter(|c| is_beyond(&c.ratio)).map(|c| c.name.clone());
    let sums = sums(system).filter(|(_, sum)| is_beyond(&sum.ratio));
    workloads.chain(sums.map(|(name, _)| name.to_owned())).collect()
}

fn sums(system: &SystemComparison) -> impl Iterator<Item = (&'static str, OverallRatio)> {
    let mean = system.geometric_mean.map(|sum| ("the geometric mean", sum));
    let measured = system.measured.map(|sum| ("what both measured", sum));
    mean.into_iter().chain(measured)
}

fn page<'a>(maps: &'a [Mapped], document: &'a Comparisons) -> ComparisonPage<'a> {
    let focal = maps[0].record.regions.first().map(|region| region.focal.clone());
    let overlay = focal.unwrap_or_default();
    let system = |map: &'a Mapped| ComparedSystem {
        record: &map.record,
        file: map.file.clone(),
        predicted: map.line(&overlay),
    };
    ComparisonPage {
        systems: maps.iter().map(system).collect(),
        document,
        overlay: overlay.clone(),
    }
}
