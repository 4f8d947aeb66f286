//! Two records that were measured in alternation, compared visit by visit: right after `live` has
//! made them, or again.

use std::path::{Path, PathBuf};

use ioscape_analysis::compare::live::{self, LiveRatio};
use ioscape_model::{
    Comparison, Comparisons, Dropped, Method, NotCompared, Overall, Record, SystemComparison, Want,
    Workload, named,
};
use ioscape_report::{ComparedSystem, ComparisonPage};

use super::{Demands, beyond, doubted, is_unasked, price, show};
use crate::args::CompareArgs;
use crate::exit::{Exit, usage};
use crate::journal;
use crate::workload_arg::{self, Asked};

/// Compares two records that were made in alternation, where that is what they are.
pub(super) fn compare(
    args: &CompareArgs,
    records: &[Record],
    prices: Option<&[f64]>,
) -> anyhow::Result<Option<Exit>> {
    let is_live = |record: &Record| record.header.method == Method::Compare;
    if !records.iter().any(is_live) {
        return Ok(None);
    }
    let [one, other] = records else {
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
        wanted(one)
    } else {
        workload_arg::parse_all(&args.workload, &args.keys)?
    };
    let paths = [args.records[0].clone(), args.records[1].clone()];
    match told(args, &paths, &asked, prices)? {
        Some(exit) => Ok(Some(exit)),
        None => Err(usage("no workload was measured in two pairs: measure longer")),
    }
}

/// What a record was to hold visits to, under the name it goes by; those that have one first.
fn wanted(record: &Record) -> Vec<Asked> {
    let mut all: Vec<Asked> = Vec::new();
    let visited = record.points.iter().map(|point| &point.workload);
    for work in visited.chain(dropped(record).iter().map(|dropped| &dropped.workload)) {
        if all.iter().all(|asked| asked.work != *work) {
            let work = work.clone();
            let name = named::name_of(&work).map_or_else(|| work.literal(), str::to_owned);
            all.push(Asked { name, work, says_access: true });
        }
    }
    let place = |asked: &Asked| named::names().position(|name| name == asked.name);
    all.sort_by_key(|asked| place(asked).unwrap_or(usize::MAX));
    all
}

fn dropped(record: &Record) -> &[Dropped] {
    record.end.as_ref().map_or(&[], |end| &end.dropped)
}

/// What was asked for and has no pairs enough.
fn not_compared(record: &Record, asked: &[Asked], found: &[LiveRatio]) -> Vec<NotCompared> {
    let missing =
        asked.iter().enumerate().filter(|(index, _)| found.iter().all(|live| live.index != *index));
    let not_compared = |(_, asked): (usize, &Asked)| {
        let dropped = dropped(record).iter().find(|dropped| dropped.workload == asked.work);
        NotCompared {
            name: asked.name.clone(),
            workload: asked.work.clone(),
            want_of: dropped.map_or(Want::Time, |dropped| dropped.want_of),
        }
    };
    missing.map(not_compared).collect()
}

/// Compares the two records, prints; none where nothing can be compared.
pub(super) fn told(
    args: &CompareArgs,
    paths: &[PathBuf; 2],
    asked: &[Asked],
    prices: Option<&[f64]>,
) -> anyhow::Result<Option<Exit>> {
    let records = [journal::open_again(&paths[0])?, journal::open_again(&paths[1])?];
    let document = document(Demands::from(args), paths, &records, asked, prices);
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
    demands: Demands,
    paths: &[PathBuf; 2],
    records: &[Record; 2],
    asked: &[Asked],
    prices: Option<&[f64]>,
) -> Comparisons {
    let works: Vec<Workload> = asked.iter().map(|asked| asked.work.clone()).collect();
    let mut found = live::compare(&records[0].points, &records[1].points, &works);
    let dropped = not_compared(&records[0], asked, &found.workloads);
    if let Some(resolution) = demands.resolution {
        found = found.requiring(resolution);
        if found.verdict == Overall::NoDifferenceShown && !dropped.is_empty() {
            found.verdict = Overall::Inconclusive;
        }
    }
    let file = |path: &Path| path.display().to_string();
    let comparison = |live: &LiveRatio| Comparison {
        record: file(&paths[1]),
        name: asked[live.index].name.clone(),
        workload: asked[live.index].work.clone(),
        baseline_bytes_per_s: live.baseline_bytes_per_s,
        throughput_bytes_per_s: live.throughput_bytes_per_s,
        ratio: live.tested.ratio,
        resolution: live.tested.resolution,
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
        elements: vec![],
        beyond_tolerance: vec![],
        price: None,
    };
    system.beyond_tolerance = beyond(&system, &comparisons, demands.tolerance);
    system.price = prices.map(|p| price::worth(p[1] / p[0], &system, &comparisons));
    let mut document = Comparisons {
        baseline: file(&paths[0]),
        comparisons,
        dropped,
        warnings: [0, 1].map(|side: usize| doubted(&file(&paths[side]), &records[side])).into(),
        required_resolution: demands.resolution,
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
