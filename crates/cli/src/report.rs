//! `ioscape report`: renders a record again.

use std::fs;
use std::path::{Path, PathBuf};

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
            let color = crate::is_colourful();
            answer(&ioscape_report::text(&record, &args.record.to_string_lossy(), WIDTH, color));
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
        FormatArg::Text => {
            ioscape_report::text(&record, &args.record.to_string_lossy(), WIDTH, false)
        }
    };
    fs::write(&out, text).with_context(|| format!("cannot write {}", out.display()))?;
    say(&format!("report  {}", out.display()));
    Ok(Exit::Fine)
}

/// What becomes of a report that exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Earlier {
    /// It may be anybody's: another one is refused.
    Kept,
    /// It is of the record that is gone on with.
    Replaced,
}

/// Where the report of a record goes; none where `none` was asked for.
pub(crate) fn path(asked: Option<&Path>, record: &Path) -> Option<PathBuf> {
    match asked {
        Some(file) if file.as_os_str() == "none" => None,
        Some(file) => Some(file.to_owned()),
        None => Some(record.with_extension("html")),
    }
}

/// Before ten minutes are spent: the report must not land on the record, on a file that is not
/// ours to replace, or nowhere.
pub(crate) fn check(asked: Option<&Path>, record: &Path, earlier: Earlier) -> anyhow::Result<()> {
    let Some(report) = path(asked, record) else { return Ok(()) };
    if report == record {
        return Err(usage(format!(
            "{} is the record: name another file by --report, or end --out in .jsonl",
            report.display()
        )));
    }
    if earlier == Earlier::Kept && report.exists() {
        return Err(usage(format!("{} exists: choose another --report", report.display())));
    }
    let parent = report.parent().filter(|parent| !parent.as_os_str().is_empty());
    if parent.is_some_and(|parent| !parent.is_dir()) {
        return Err(usage(format!("{}: there is no such directory", report.display())));
    }
    Ok(())
}
