//! `ioscape compare`: systems compared with a baseline, each known by its record. `live` measures two
//! targets in alternation, and `alternated` compares those visits.

use std::path::{Path, PathBuf};

use ioscape_analysis::compare::document::{self, Demands, Mapped, NamedWorkload};
use ioscape_engine::Clock;
use ioscape_model::{Comparisons, Record, RecordWarnings, Verdict};
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
    let maps = maps.map(|(record, path)| mapped(path, record)).collect::<Result<Vec<_>, _>>()?;
    let asked = of_maps(&args.records, &maps, asked)?;
    let document = between(&demands(args, prices.as_deref()), &args.records, &maps, &asked);
    show(args, &page(&args.records, &maps, &document))
}

/// What an answer has to keep to.
fn demands<'a>(args: &CompareArgs, prices: Option<&'a [f64]>) -> Demands<'a> {
    Demands { tolerance: args.tolerance, resolution: args.require_resolution, prices }
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
    let open = |path: &PathBuf| mapped(path, journal::open_again(path)?);
    let maps = records.iter().map(open).collect::<Result<Vec<_>, _>>()?;
    let asked = of_maps(records, &maps, workload_arg::ladder())?;
    let document = between(&Demands::default(), records, &maps, &asked);
    Ok(render(&page(records, &maps, &document)))
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

/// Fits a record's models.
fn mapped(path: &Path, record: Record) -> anyhow::Result<Mapped> {
    Mapped::new(record).map_err(|error| usage(format!("{}: {error}", path.display())))
}

fn between(
    demands: &Demands<'_>,
    records: &[PathBuf],
    maps: &[Mapped],
    asked: &[Asked],
) -> Comparisons {
    let doubts = records.iter().zip(maps).map(|(path, map)| doubted(path, &map.record)).collect();
    document::between_maps(maps, doubts, &named(asked), demands)
}

/// A record's file, and what is doubtful about it.
fn doubted(path: &Path, record: &Record) -> RecordWarnings {
    RecordWarnings { record: path.display().to_string(), warnings: bearing_doubts(record) }
}

/// The workloads under the names that were asked for.
fn named(asked: &[Asked]) -> Vec<NamedWorkload> {
    let named =
        |asked: &Asked| NamedWorkload { name: asked.name.clone(), workload: asked.work.clone() };
    asked.iter().map(named).collect()
}

fn page<'a>(
    records: &[PathBuf],
    maps: &'a [Mapped],
    document: &'a Comparisons,
) -> ComparisonPage<'a> {
    let focal = maps[0].record.regions.first().map(|region| region.focal.clone());
    let overlay = focal.unwrap_or_default();
    let system = |(path, map): (&PathBuf, &'a Mapped)| ComparedSystem {
        record: &map.record,
        file: path.display().to_string(),
        predicted: map.line(&overlay),
    };
    ComparisonPage {
        systems: records.iter().zip(maps).map(system).collect(),
        document,
        overlay: overlay.clone(),
    }
}
