//! `ioscape trace show`: what a trace or a model holds.

use std::path::PathBuf;

use clap::Args;

use super::source;
use crate::exit::Exit;
use crate::output::{answer, is_colourful};
use crate::page_file::WIDTH;

/// What can be typed.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A trace, or a model
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Print one JSON document on stdout and nothing else there
    #[arg(long)]
    json: bool,
}

/// Describes and prints.
pub(crate) fn show(args: &ShowArgs) -> anyhow::Result<Exit> {
    let app = source::describe(&args.trace)?;
    if args.json {
        answer(&serde_json::to_string_pretty(&app)?)?;
    } else {
        answer(&ioscape_report::application_text(&app, WIDTH, is_colourful()))?;
    }
    Ok(Exit::Fine)
}
