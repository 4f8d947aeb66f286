//! `ioscape compare`: systems compared with a baseline, each known by its record. `live` measures two
//! targets in alternation, and `alternated` compares those visits.

use std::path::{Path, PathBuf};

use ioscape_analysis::compare::{self, System, Versus};
use ioscape_analysis::model::{Sample, Training};
use ioscape_analysis::predict::Predictor;
use ioscape_engine::Clock;
use ioscape_model::{
    Comparison, Comparisons, Figure, Overall, OverallRatio, Record, RecordWarnings,
    SystemComparison, Verdict, Workload,
};
use ioscape_report::{ComparedSystem, ComparisonPage, bearing_doubts};

use crate::args::CompareArgs;
use crate::exit::{Exit, usage};
use crate::journal;
use crate::out_file::{self, Existing};
use crate::output::{self, answer, say};
use crate::page_file::WIDTH;
use crate::workload_arg::{self, Asked};

mod alternated;
mod live;
mod price;
mod vectors;

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
    if let Some(app) = &args.app {
        let prices = price::read(&args.price, &args.records).map_err(usage)?;
        return crate::application::compare(args, app, prices.as_deref());
    }
    let records = args.records.iter().map(|path| journal::open(path));
    let records: Vec<Record> = records.collect::<Result<_, _>>()?;
    if let Some(exit) = crate::suite::against::compare((&args.records, &records), args.common.json)?
    {
        return Ok(exit);
    }
    let prices = price::read(&args.price, &args.records).map_err(usage)?;
    check_out(args)?;
    if let Some(exit) = alternated::compare(args, &records, prices.as_deref())? {
        return Ok(exit);
    }
    if let Some(exit) = vectors::compare(args, &records)? {
        return Ok(exit);
    }
    let asked = if is_unasked(args) {
        workload_arg::ladder()
    } else {
        workload_arg::read_all(&args.workload, &args.keys)?
    };
    let maps = records.into_iter().zip(&args.records);
    let maps =
        maps.map(|(record, path)| Mapped::new(path, record)).collect::<Result<Vec<_>, _>>()?;
    let asked = of_maps(&args.records, &maps, asked)?;
    let document = document(Demands::from(args), &maps, &asked, prices.as_deref());
    show(args, &page(&maps, &document))
}

/// What an answer has to keep to.
#[derive(Clone, Copy, Default)]
struct Demands {
    tolerance: Option<f64>,
    resolution: Option<f64>,
}

impl From<&CompareArgs> for Demands {
    fn from(args: &CompareArgs) -> Self {
        Self { tolerance: args.tolerance, resolution: args.require_resolution }
    }
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
        let html = ioscape_report::comparison_html(page);
        out_file::write(out, html.as_bytes(), Existing::Kept, "--out")?;
        say(&format!("comparison  {}", out.display()));
    }
    if args.common.json {
        answer(&crate::output::json(page.document)?)?;
    } else if !args.common.quiet {
        let color = output::is_colourful();
        answer(&ioscape_report::comparison_text(page, WIDTH, color))?;
    }
    Ok(exit_of(page.document))
}

fn exit_of(document: &Comparisons) -> Exit {
    let is_worse = document.systems.iter().any(|system| !system.beyond_tolerance.is_empty());
    let is_coarse = document.comparisons.iter().any(|c| c.verdict == Verdict::Inconclusive);
    let is_missing = document.required_resolution.is_some() && !document.dropped.is_empty();
    if is_worse || is_coarse || is_missing {
        return Exit::NotWithin;
    }
    let are_vectors_alone = document.comparisons.is_empty()
        && document.systems.iter().any(|system| !system.elements.is_empty());
    if !are_vectors_alone && document.comparisons.iter().all(|c| c.verdict == Verdict::OutOfRange) {
        say("ioscape: none of the workloads asked for lies in what all records measured: \
             `ioscape predict RECORD -w …` says why; name others by -w");
        return Exit::Failed;
    }
    Exit::Fine
}

/// Records side by side on the named workloads, as `ioscape report` shows them.
pub(crate) fn rendered(
    records: &[PathBuf],
    render: &dyn Fn(&ComparisonPage<'_>) -> String,
) -> anyhow::Result<String> {
    let open = |path: &PathBuf| Mapped::new(path, journal::open_again(path)?);
    let maps = records.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let asked = of_maps(records, &maps, workload_arg::ladder())?;
    let document = document(Demands::default(), &maps, &asked, None);
    Ok(render(&page(&maps, &document)))
}

/// Workloads that all maps know the keys of.
///
/// # Errors
/// One line, where a map does not know one, and where maps were made by different methods: their
/// points lie in other places, so that their models miss other workloads, and one system would pass
/// for two.
fn of_maps(records: &[PathBuf], maps: &[Mapped], asked: Vec<Asked>) -> anyhow::Result<Vec<Asked>> {
    let mut methods = records.iter().zip(maps.iter().map(|map| map.record.header.method));
    if let Some((first, method)) = methods.find(|(_, method)| method.is_map())
        && let Some((other, _)) = methods.find(|(_, other)| other.is_map() && *other != method)
    {
        return Err(usage(format!(
            "{} and {} were made by different methods, whose models miss different workloads: one \
             system would look like two; make both with the same --method",
            first.display(),
            other.display()
        )));
    }
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
        None => out_file::check_new(out, "--out"),
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
    fn new(path: &Path, record: Record) -> anyhow::Result<Self> {
        let mut samples = Training::from_record(&record).samples;
        samples.extend(Training::of_device(&record).into_iter().flat_map(|layer| layer.samples));
        let predictor = Predictor::of_record(&record)
            .map_err(|error| usage(format!("{}: {error}", path.display())))?;
        Ok(Self { file: path.display().to_string(), record, samples, predictor })
    }

    fn system(&self) -> System<'_> {
        System::new(&self.record, &self.samples, &self.predictor)
    }

    /// Throughput over the record's own range of `unique_bytes`.
    fn line(&self, overlay: &Workload) -> Vec<(f64, f64)> {
        let from = self.record.header.ranges.unique_bytes.min;
        let access = self.predictor.access();
        let here = self.samples.iter().filter(|sample| sample.workload.access == access);
        let to = here.map(|sample| sample.workload.unique_bytes).max().unwrap_or(from);
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
    demands: Demands,
    maps: &[Mapped],
    asked: &[Asked],
    prices: Option<&[f64]>,
) -> Comparisons {
    let works: Vec<Workload> = asked.iter().map(|asked| asked.work.clone()).collect();
    let (baseline, others) = maps.split_first().expect("there are two records at least");
    let mut document = Comparisons {
        baseline: baseline.file.clone(),
        comparisons: vec![],
        dropped: vec![],
        warnings: maps.iter().map(|map| doubted(&map.file, &map.record)).collect(),
        required_resolution: demands.resolution,
        systems: vec![],
        prices: vec![],
        verdict: Overall::OutOfRange,
    };
    let (mut of_workloads, mut of_sums) = (Vec::new(), Vec::new());
    for other in others {
        let mut versus = compare::compare(&baseline.system(), &other.system(), &works);
        if let Some(resolution) = demands.resolution {
            versus = versus.requiring(resolution);
        }
        let comparisons = comparisons(baseline, other, asked, &versus);
        let mut system = system(baseline, other, &versus);
        system.beyond_tolerance = beyond(&system, &comparisons, demands.tolerance);
        if let Some(prices) = prices {
            let ratio = prices[document.systems.len() + 1] / prices[0];
            system.price = Some(price::worth(ratio, &system, &comparisons));
        }
        of_workloads.extend(comparisons.iter().map(|comparison| comparison.verdict));
        of_sums.extend(sums(&system).map(|(_, sum)| sum.verdict));
        document.comparisons.extend(comparisons);
        document.systems.push(system);
    }
    document.verdict = compare::overall(&of_workloads, &of_sums);
    if let Some(prices) = prices {
        let files: Vec<&str> = maps.iter().map(|map| map.file.as_str()).collect();
        document.prices = price::performance(&files, prices, &document);
    }
    document
}

fn doubted(file: &str, record: &Record) -> RecordWarnings {
    RecordWarnings { record: file.to_owned(), warnings: bearing_doubts(record) }
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
        resolution: tested.resolution,
        verdict: tested.verdict,
        pairs: None,
    });
    all.collect()
}

fn system(baseline: &Mapped, other: &Mapped, versus: &Versus) -> SystemComparison {
    let (from, to) = (&baseline.record, &other.record);
    SystemComparison {
        record: other.file.clone(),
        verdict: versus.verdict,
        geometric_mean: versus.geometric_mean,
        measured: versus.measured,
        caches: compare::caches(&from.borders, &to.borders),
        regions: compare::regions(
            (&baseline.system(), &from.regions),
            (&other.system(), &to.regions),
        ),
        elements: compare::elements(&from.elements, &to.elements),
        beyond_tolerance: vec![],
        price: None,
    }
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
    let elements = system.elements.iter().filter(|e| e.verdict == Verdict::Slower);
    let elements = elements.filter(|e| is_beyond(&e.ratio)).map(|e| e.name.word().to_owned());
    workloads.chain(sums.map(|(name, _)| name.to_owned())).chain(elements).collect()
}

fn sums(system: &SystemComparison) -> impl Iterator<Item = (&'static str, OverallRatio)> {
    let mean = system.geometric_mean.map(|sum| ("the geometric mean", sum));
    let measured = system.measured.map(|sum| ("the median of what both measured", sum));
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
