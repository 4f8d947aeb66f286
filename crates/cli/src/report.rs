//! `ioscape report`: renders a record again.

use std::fs;
use std::io::IsTerminal;

use anyhow::Context;

use crate::args::{FormatArg, ReportArgs};
use crate::exit::{Exit, usage};
use crate::{answer, journal, say};

/// Columns of the summary.
pub(crate) const WIDTH: usize = 80;

/// Renders a record.
pub(crate) fn report(args: &ReportArgs) -> anyhow::Result<Exit> {
    let record = journal::open(&args.record)?;
    let out = match (args.format, &args.out) {
        (FormatArg::Text, None) => {
            let color = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
            answer(&ioscape_report::text(&record, WIDTH, color));
            return Ok(Exit::Fine);
        }
        (_, Some(out)) => out.clone(),
        (FormatArg::Html, None) => args.record.with_extension("html"),
    };
    if out == args.record {
        return Err(usage(format!("{} is the record: name another --out", out.display())));
    }
    let text = match args.format {
        FormatArg::Html => ioscape_report::html(&record),
        FormatArg::Text => ioscape_report::text(&record, WIDTH, false),
    };
    fs::write(&out, text).with_context(|| format!("cannot write {}", out.display()))?;
    say(&format!("report  {}", out.display()));
    Ok(Exit::Fine)
}
