//! Records that hold a system vector and no map, compared.

use ioscape_analysis::compare::document;
use ioscape_model::{Method, Record, Workload};
use ioscape_report::{ComparedSystem, ComparisonPage};

use super::{demands, doubted, is_unasked, show};
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
    let doubts = args.records.iter().zip(records).map(|(path, record)| doubted(path, record));
    let document = document::between_vectors(records, doubts.collect(), &demands(args, None));
    let system = |(record, file): (_, &String)| ComparedSystem {
        record,
        file: file.clone(),
        predicted: vec![],
    };
    let systems = records.iter().zip(&files).map(system).collect();
    let page = ComparisonPage { systems, document: &document, overlay: Workload::default() };
    show(args, &page).map(Some)
}
