//! Records that hold a system vector and no map, compared.

use ioscape_analysis::compare;
use ioscape_model::{Comparisons, Method, Record, SystemComparison, Verdict, Workload};
use ioscape_report::{ComparedSystem, ComparisonPage};

use super::{Demands, beyond, doubted, is_unasked, show};
use crate::args::CompareArgs;
use crate::exit::{Exit, usage};

/// Compares system vectors, where one of the records holds nothing else.
pub(super) fn compare(args: &CompareArgs, records: &[Record]) -> anyhow::Result<Option<Exit>> {
    let files: Vec<String> = args.records.iter().map(|path| path.display().to_string()).collect();
    let is_vector = |record: &Record| record.header.method == Method::Vector;
    let Some(only) = records.iter().position(is_vector) else { return Ok(None) };
    if let Some(without) = records.iter().position(|record| record.elements.is_empty()) {
        return Err(usage(format!(
            "{} holds no system vector, and {} nothing else: `ioscape vector TARGET` measures one, \
             and so does `ioscape run` from a budget of 3 minutes on",
            files[without], files[only]
        )));
    }
    if !is_unasked(args) || !args.price.is_empty() {
        return Err(usage(format!(
            "{} holds a system vector and no map: workloads and prices need records of `ioscape run`",
            files[only]
        )));
    }
    let document = document(Demands::from(args), records, &files);
    let system = |(record, file): (_, &String)| ComparedSystem {
        record,
        file: file.clone(),
        predicted: vec![],
    };
    let systems = records.iter().zip(&files).map(system).collect();
    let page = ComparisonPage { systems, document: &document, overlay: Workload::default() };
    show(args, &page).map(Some)
}

fn document(demands: Demands, records: &[Record], files: &[String]) -> Comparisons {
    let against = |(record, file): (&Record, &String)| {
        let elements = compare::elements(&records[0].elements, &record.elements);
        let verdicts: Vec<Verdict> = elements.iter().map(|element| element.verdict).collect();
        let mut system = SystemComparison {
            record: file.clone(),
            verdict: compare::overall(&verdicts, &[]),
            geometric_mean: None,
            measured: None,
            caches: vec![],
            regions: vec![],
            elements,
            beyond_tolerance: vec![],
            price: None,
        };
        system.beyond_tolerance = beyond(&system, &[], demands.tolerance);
        system
    };
    let systems: Vec<SystemComparison> = records.iter().zip(files).skip(1).map(against).collect();
    let verdicts = systems.iter().flat_map(|system| &system.elements);
    let verdicts: Vec<Verdict> = verdicts.map(|element| element.verdict).collect();
    Comparisons {
        baseline: files[0].clone(),
        comparisons: vec![],
        dropped: vec![],
        warnings: files.iter().zip(records).map(|(file, record)| doubted(file, record)).collect(),
        required_resolution: demands.resolution,
        systems,
        prices: vec![],
        verdict: compare::overall(&verdicts, &[]),
    }
}
