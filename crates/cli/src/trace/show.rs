//! `ioscape trace show`: what a trace or a model holds.

use std::path::PathBuf;

use clap::Args;

use super::{caches, source};
use crate::exit::Exit;
use crate::out_file::{self, Existing};
use crate::output::{answer, is_colourful, say};
use crate::page_file::WIDTH;

/// The flag that names the page.
const REPORT: &str = "--report";

/// What can be typed.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A trace, or a model
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Write everything to a new file as one HTML page, with the misses of caches of every size
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print one JSON document on stdout and nothing else there
    #[arg(long)]
    json: bool,
}

/// Describes and prints.
pub(crate) fn show(args: &ShowArgs) -> anyhow::Result<Exit> {
    let app = match &args.report {
        Some(report) => {
            out_file::check_new(report, REPORT)?;
            let app = caches::describe(&args.trace)?;
            let page = ioscape_report::application_html(&app);
            out_file::write(report, page.as_bytes(), Existing::Kept, REPORT)?;
            say(&format!("page  {}", report.display()));
            app
        }
        None => source::describe(&args.trace)?,
    };
    if args.json {
        answer(&serde_json::to_string_pretty(&app)?)?;
    } else {
        answer(&ioscape_report::application_text(&app, WIDTH, is_colourful()))?;
    }
    Ok(Exit::Fine)
}
