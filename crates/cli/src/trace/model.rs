//! `ioscape trace model`: a description small enough to hand on, that names nobody.

use std::path::PathBuf;

use clap::Args;
use ioscape_model::App;
use ioscape_trace::character;

use super::caches;
use crate::exit::Exit;
use crate::out_file::{self, Existing};
use crate::output::{raw, say};

/// What can be typed.
#[derive(Debug, Args)]
pub(crate) struct ModelArgs {
    /// Traces or models; several become one, as if they ran at the same time
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,
    /// A file that does not exist yet [default: stdout]
    #[arg(long, short, value_name = "APP.json")]
    out: Option<PathBuf>,
}

/// Describes, mixes, writes.
pub(crate) fn model(args: &ModelArgs) -> anyhow::Result<Exit> {
    if let Some(out) = &args.out {
        out_file::check_new(out, "--out")?;
    }
    let mut mixed: Option<App> = None;
    for path in &args.traces {
        let app = caches::describe(path)?;
        mixed = Some(match mixed {
            Some(before) => character::mix(&before, &app),
            None => app,
        });
    }
    let app = mixed.unwrap_or_default();
    let text = character::model_text(app);
    match &args.out {
        Some(out) => {
            out_file::write(out, text.as_bytes(), Existing::Kept, "--out")?;
            say(&format!("model  {} ({} bytes)", out.display(), text.len()));
        }
        None => raw(text.as_bytes())?,
    }
    Ok(Exit::Fine)
}
