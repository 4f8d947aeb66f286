//! `ioscape trace export`: traces and models for other tools.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use ioscape_trace::export::{self as formats, Loss};
use ioscape_trace::{Store, StoreError};
use serde::Serialize;

use super::source::{self, Source};
use crate::exit::{Exit, usage};
use crate::out_file::{self, Existing};
use crate::output::{self, answer, say};

/// What can be typed.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// A trace; with --format fio, a trace or a model
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// What to write
    #[arg(long, value_enum)]
    format: TraceFormat,
    /// A file that does not exist yet [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print one JSON document on stdout: what was written, what it keeps and loses; needs --out
    #[arg(long, requires = "out")]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
enum TraceFormat {
    /// A job file for fio, which says what it keeps of the application and what it loses
    Fio,
    /// Calls that fio replays, in its log format of version 2
    Iolog,
    /// Accesses to pages, in libCacheSim's format (oracleGeneral)
    Oracle,
    /// A table of the events
    Csv,
}

/// What `--json` prints.
#[derive(Debug, Serialize)]
struct Exported {
    format: TraceFormat,
    out: PathBuf,
    /// Lines, requests or jobs.
    entries: u64,
    keeps: Vec<String>,
    loses: Vec<Loss>,
}

/// Writes the trace in another form.
pub(crate) fn export(args: &ExportArgs) -> anyhow::Result<Exit> {
    if let Some(out) = &args.out {
        out_file::check_new(out, "--out")?;
    }
    let (entries, keeps, loses) = match (args.format, source::open(&args.trace)?) {
        (TraceFormat::Fio, source) => job(args, source)?,
        (_, Source::Model(_)) => {
            return Err(usage(format!(
                "{} is a model and holds no calls: only fio can be made of it",
                args.trace.display()
            )));
        }
        (format, Source::Trace(store)) => (events(args, format, &store)?, Vec::new(), Vec::new()),
    };
    let Some(out) = &args.out else { return Ok(Exit::Fine) };
    if args.json {
        let out = out.clone();
        let exported = Exported { format: args.format, out, entries, keeps, loses };
        answer(&crate::output::json(&exported)?)?;
    } else {
        say(&format!("export  {} ({entries} entries)", out.display()));
    }
    Ok(Exit::Fine)
}

fn job(args: &ExportArgs, source: Source) -> anyhow::Result<(u64, Vec<String>, Vec<Loss>)> {
    let app = match source {
        Source::Model(app) => *app,
        Source::Trace(store) => source::describe_trace(&args.trace, &store)?,
    };
    let job = formats::fio_job(&app);
    match &args.out {
        Some(out) => out_file::write(out, job.text.as_bytes(), Existing::Kept, "--out")?,
        None => output::raw(job.text.as_bytes())?,
    }
    Ok((app.stretches().len() as u64, job.keeps, job.loses))
}

/// What grows with the trace is written as it is read.
fn events(args: &ExportArgs, format: TraceFormat, store: &Store<File>) -> anyhow::Result<u64> {
    let Some(out) = &args.out else {
        if format == TraceFormat::Oracle {
            return Err(usage("oracle is written in two goes: name a file by --out"));
        }
        let mut stdout = BufWriter::new(io::stdout().lock());
        let written = match format {
            TraceFormat::Csv => formats::csv(store, &mut stdout),
            _ => formats::iolog(store, &mut stdout),
        };
        return match written {
            Err(StoreError::Io(error)) => output::arrived(Err(error)).map(|()| 0),
            Err(error) => Err(source::named(&args.trace, error)),
            Ok(count) => output::arrived(stdout.flush()).map(|()| count),
        };
    };
    let written = write(out, format, store);
    if written.is_err() {
        fs::remove_file(out).ok();
    }
    match written {
        Err(StoreError::Io(error)) => Err(out_file::failed(out, error, "--out")),
        Err(error) => Err(source::named(&args.trace, error)),
        Ok(count) => Ok(count),
    }
}

fn write(out: &Path, format: TraceFormat, store: &Store<File>) -> Result<u64, StoreError> {
    let file = OpenOptions::new().write(true).create_new(true).open(out)?;
    let mut file = BufWriter::new(file);
    let count = match format {
        TraceFormat::Csv => formats::csv(store, &mut file)?,
        TraceFormat::Iolog => formats::iolog(store, &mut file)?,
        TraceFormat::Oracle | TraceFormat::Fio => formats::oracle(store, &mut file)?.requests,
    };
    file.flush()?;
    Ok(count)
}
