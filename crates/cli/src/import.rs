//! `ioscape import`: what another program measured becomes a record.

mod fio;
mod record;

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, ValueEnum};

use crate::exit::{Exit, usage};
use crate::journal::Journal;
use crate::run::{command_line, refuse_existing, tool};
use crate::say;

/// More than fio writes for a job of many days.
const FILE_BYTES_MAX: u64 = 32 << 20;

/// What can be typed.
#[derive(Debug, Args)]
pub(crate) struct ImportArgs {
    /// What measured it
    #[arg(value_name = "FROM", value_enum)]
    from: ImportFrom,
    /// Its results; several files become one record
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The record [default: beside the first file, .jsonl]
    #[arg(long, value_name = "RECORD")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ImportFrom {
    /// fio 3.0 or later, run with --output-format=json
    Fio,
}

/// Reads results, writes the record.
pub(crate) fn import(args: &ImportArgs) -> anyhow::Result<Exit> {
    let ImportFrom::Fio = args.from;
    let first = args.files.first().ok_or_else(|| usage("name a file with results"))?;
    let out = args.out.clone().unwrap_or_else(|| first.with_extension("jsonl"));
    refuse_existing(&out)?;
    let mut all = Vec::new();
    for path in &args.files {
        let named = |why: String| usage(format!("{}: {why}", path.display()));
        let text = text(path).map_err(named)?;
        all.push(fio::read(&text).map_err(named)?);
    }
    let left_out = || all.iter().flat_map(|results| &results.left_out);
    if all.iter().all(|results| results.measured.is_empty()) {
        let why = left_out().next().map_or("there are no jobs", String::as_str);
        return Err(usage(format!("{}: nothing can be taken over: {why}", first.display())));
    }
    let lines = record::lines(&all, tool(), command_line());
    let mut journal = Journal::create(&out)?;
    for line in &lines {
        journal.write(line).context("cannot write the record")?;
    }
    for why in left_out() {
        say(&format!("ioscape: {why}"));
    }
    let points: usize = all.iter().map(|results| results.measured.len()).sum();
    say(&format!("record  {} ({points} points)", out.display()));
    Ok(Exit::Fine)
}

/// A file's text, of bounded length.
fn text(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| format!("cannot open it: {error}"))?;
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| format!("cannot read it: {error}"))?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err("it is larger than 32 MiB: is it a result of fio?".to_owned());
    }
    Ok(text)
}
