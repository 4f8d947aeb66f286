//! `ioscape history`: records kept over time, what changed and when, and a new record against the
//! baseline that they are.

mod store;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use ioscape_analysis::history::{self, Demand, Run, readings};
use ioscape_model::units::parse_fraction;
use ioscape_model::{History, Standing};
use ioscape_report::{
    history_check_markdown, history_check_text, history_html, history_mark, history_openmetrics,
    history_text,
};

use crate::exit::{Exit, usage};
use crate::journal;
use crate::out_file::{self, Existing};
use crate::output::{self, answer, raw, say};
use crate::page_file::{Standing as PageStanding, WIDTH, refusal, standing};
use store::{Store, plain_name};

/// Arguments of `ioscape history`.
#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Keep records of `run`, `measure` and `suite`
    Add(AddArgs),
    /// Say what changed and when, and how small a change would have been found
    Show(ShowArgs),
    /// Compare a new record with the runs since the last change: exit code 1 if it is worse
    Check(CheckArgs),
}

#[derive(Debug, Args)]
struct AddArgs {
    /// The history: a directory, made where there is none
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Records to keep; those that are kept already are left as they are
    #[arg(value_name = "RECORD", required = true)]
    records: Vec<PathBuf>,
    #[command(flatten)]
    place: PlaceArgs,
}

/// Where in a history.
#[derive(Debug, Args)]
struct PlaceArgs {
    /// The system: records under one label are compared with each other
    #[arg(long, value_name = "NAME", default_value = "main", value_parser = plain_name)]
    label: String,
    /// Name of the condition that was measured, such as kernel-6.12, if two or more are measured in
    /// turn (A B A B)
    #[arg(long, value_name = "NAME", value_parser = plain_name)]
    block: Option<String>,
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// The history
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The system [default: main, or the only one there is]
    #[arg(long, value_name = "NAME", value_parser = plain_name)]
    label: Option<String>,
    /// Print one JSON document on stdout and nothing else there
    #[arg(long, conflicts_with = "openmetrics")]
    json: bool,
    /// Print gauges for dashboards
    #[arg(long)]
    openmetrics: bool,
    /// Write a page with a graph for each figure that is followed; an earlier page of the same history
    /// is replaced
    #[arg(long, value_name = "FILE")]
    page: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct CheckArgs {
    /// The history
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// The new record, which is not kept by this
    #[arg(value_name = "RECORD")]
    record: PathBuf,
    #[command(flatten)]
    place: PlaceArgs,
    /// Exit with 1 only if something is worse by more than this fraction [default: by anything that
    /// is more than chance]
    #[arg(long, value_name = "FRACTION", value_parser = parse_fraction)]
    tolerance: Option<f64>,
    /// Exit with 1 also if a difference of this fraction could have been missed
    #[arg(long, value_name = "FRACTION", value_parser = parse_fraction)]
    require_resolution: Option<f64>,
    /// Write the answer as Markdown, with a picture, for a comment on a merge request
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Print one JSON document on stdout and nothing else there
    #[arg(long)]
    json: bool,
}

/// Keeps, shows or checks.
pub(crate) fn history(args: &HistoryArgs) -> anyhow::Result<Exit> {
    match &args.task {
        Task::Add(args) => add(args),
        Task::Show(args) => show(args),
        Task::Check(args) => check(args),
    }
}

fn add(args: &AddArgs) -> anyhow::Result<Exit> {
    let PlaceArgs { label, block } = &args.place;
    let mut records = Vec::new();
    for path in &args.records {
        let record = journal::open(path)?;
        if readings(&record).is_empty() {
            return Err(usage(format!(
                "{}: nothing in it can be followed: a map, a `measure` or a suite that came to its \
                 end is needed",
                path.display()
            )));
        }
        records.push((path, record));
    }
    let store = Store::make(&args.directory)?;
    if let Some(kept) = store.any(label)? {
        records.iter().try_for_each(|(path, record)| store::refuse_other(path, record, &kept))?;
    }
    for (path, record) in &records {
        match store.keep(path, record, label, block.as_deref())? {
            Some(place) => say(&format!("kept  {}", place.display())),
            None => say(&format!("ioscape: {} is kept already", path.display())),
        }
    }
    Ok(Exit::Fine)
}

fn show(args: &ShowArgs) -> anyhow::Result<Exit> {
    let store = Store::open(&args.directory)?;
    let label = store.label(args.label.as_deref())?;
    let document = history::history(&label, runs(&store, &label)?);
    if let Some(page) = &args.page {
        write_page(page, &document)?;
    }
    if args.json {
        answer(&crate::output::json(&document)?)?;
    } else if args.openmetrics {
        raw(history_openmetrics(&document).as_bytes())?;
    } else {
        answer(&history_text(&document, WIDTH, output::is_colourful()))?;
    }
    Ok(Exit::Fine)
}

fn write_page(path: &Path, document: &History) -> anyhow::Result<()> {
    let existing = match standing(path, &history_mark(&document.label)) {
        PageStanding::Free => Existing::Kept,
        PageStanding::Ours => Existing::Replaced,
        standing => return Err(refusal(path, standing, "--page")),
    };
    out_file::write(path, history_html(document).as_bytes(), existing, "--page")?;
    say(&format!("page  {}", path.display()));
    Ok(())
}

fn check(args: &CheckArgs) -> anyhow::Result<Exit> {
    let store = Store::open(&args.directory)?;
    let PlaceArgs { label, block } = &args.place;
    let record = journal::open(&args.record)?;
    let new = readings(&record);
    if new.is_empty() {
        let path = args.record.display();
        return Err(usage(format!("{path}: nothing in it can be compared with a history")));
    }
    if let Some(kept) = store.any(label)? {
        store::refuse_other(&args.record, &record, &kept)?;
    }
    let mut runs = runs(&store, label)?;
    runs.retain(|run| run.kept.block == *block && run.kept.run_id != record.header.run_id);
    let demand =
        Demand { tolerance: args.tolerance.unwrap_or(0.0), resolution: args.require_resolution };
    let file = args.record.display().to_string();
    let document = history::check(label, runs, (&file, &new), demand);
    if let Some(path) = &args.markdown {
        let text = history_check_markdown(&document);
        out_file::write(path, text.as_bytes(), Existing::Kept, "--markdown")?;
    }
    if args.json {
        answer(&crate::output::json(&document)?)?;
    } else {
        answer(&history_check_text(&document, WIDTH, output::is_colourful()))?;
    }
    Ok(match document.standing {
        Standing::Worse | Standing::Inconclusive => Exit::NotWithin,
        Standing::Better | Standing::NoDifferenceShown | Standing::NoBaseline => Exit::Fine,
    })
}

fn runs(store: &Store, label: &str) -> anyhow::Result<Vec<Run>> {
    let kept = store.runs(label)?;
    Ok(kept.into_iter().map(|(kept, record)| Run { kept, readings: readings(&record) }).collect())
}
