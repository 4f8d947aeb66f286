//! `compare RECORD… --app`: systems ranked for an application.

use std::path::Path;

use ioscape_analysis::application::{self, Candidate, NoAnswer, WhatIf};

use crate::args::CompareArgs;
use crate::exit::{Exit, usage};
use crate::journal;
use crate::output::answer;
use crate::trace::source;

/// Ranks and prints.
pub(crate) fn compare(
    args: &CompareArgs,
    path: &Path,
    prices: Option<&[f64]>,
) -> anyhow::Result<Exit> {
    if args.out.is_some() || !args.keys.pairs().is_empty() {
        return Err(usage("--app goes with --price, --deadline and --json only"));
    }
    let app = source::model(path)?;
    let mut candidates = Vec::with_capacity(args.records.len());
    for (place, file) in args.records.iter().enumerate() {
        let record = journal::open(file)?;
        let system = super::system(&record, file, &WhatIf::default())?;
        let said = application::predict(&system, &app)
            .map_err(|error: NoAnswer| usage(format!("{}: {error}", path.display())))?;
        candidates.push(Candidate {
            record: file.display().to_string(),
            answer: said,
            price: prices.map(|prices| prices[place]),
        });
    }
    let document =
        application::rank_systems(&path.display().to_string(), &candidates, args.deadline);
    if args.common.json {
        answer(&crate::output::json(&document)?)?;
    } else {
        answer(&ioscape_report::application_ranking_text(&document, args.deadline))?;
    }
    Ok(Exit::Fine)
}
