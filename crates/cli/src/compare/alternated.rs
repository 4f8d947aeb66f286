//! Two records that were measured in alternation, compared visit by visit: right after `live` has
//! made them, or again.

use std::path::PathBuf;

use ioscape_analysis::compare::document::{self, NamedWorkload};
use ioscape_model::{Method, Overall, Record, Workload};
use ioscape_report::{ComparedSystem, ComparisonPage};

use super::{demands, doubted, is_unasked, named, show};
use crate::args::CompareArgs;
use crate::exit::{Exit, usage};
use crate::journal;
use crate::workload_arg;

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
    if !document::are_alternated(one, other) {
        return Err(usage(format!(
            "{} and {} were not measured in alternation with each other: name the two records of \
             one live comparison",
            args.records[0].display(),
            args.records[1].display()
        )));
    }
    let asked = if is_unasked(args) {
        document::planned(one)
    } else {
        named(&workload_arg::parse_all(&args.workload, &args.keys)?)
    };
    let paths = [args.records[0].clone(), args.records[1].clone()];
    match told(args, &paths, &asked, prices)? {
        Some(exit) => Ok(Some(exit)),
        None => Err(usage("no workload was measured in two pairs: measure longer")),
    }
}

/// Compares the two records, prints; none where nothing can be compared.
pub(super) fn told(
    args: &CompareArgs,
    paths: &[PathBuf; 2],
    asked: &[NamedWorkload],
    prices: Option<&[f64]>,
) -> anyhow::Result<Option<Exit>> {
    let records = [journal::open_again(&paths[0])?, journal::open_again(&paths[1])?];
    let pair = [0, 1].map(|side: usize| (&records[side], doubted(&paths[side], &records[side])));
    let document = document::between_alternated(pair, asked, &demands(args, prices));
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
