//! `ioscape import`: what another program measured becomes a record.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ioscape_import::fio;
use ioscape_model::seal::Chain;
use ioscape_model::{Line, Origin};

use crate::exit::{Exit, usage};
use crate::origin::{command_line, time_text, tool};
use crate::out_file::{self, Existing};
use crate::output::say;
use crate::text_file;

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
    #[arg(long, short, value_name = "RECORD")]
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
    out_file::check_new(&out, "--out")?;
    let mut all = Vec::new();
    for path in &args.files {
        let named = |why: String| usage(format!("{}: {why}", path.display()));
        let text = text_file::read(path, FILE_BYTES_MAX).map_err(named)?;
        all.push(fio::read(&text).map_err(named)?);
    }
    let left_out = || all.iter().flat_map(fio::Results::left_out);
    if all.iter().all(|results| results.workloads().next().is_none()) {
        let why = left_out().next().map_or("there are no jobs", String::as_str);
        return Err(usage(format!("{}: nothing can be taken over: {why}", first.display())));
    }
    let maker = Origin { tool: tool(), command_line: command_line(), ..Origin::default() };
    let lines = ioscape_import::lines(&all, maker, time_text);
    let possible = lines.iter().try_for_each(Line::check);
    possible.map_err(|what| usage(format!("{}: {what}", first.display())))?;
    let (mut text, mut chain) = (Vec::new(), Chain::default());
    for line in &lines {
        let (sealed, next) = chain.seal(line)?;
        text.extend(sealed);
        chain = next;
    }
    out_file::write(&out, &text, Existing::Kept, "--out")?;
    for why in left_out() {
        say(&format!("ioscape: {why}"));
    }
    let points: usize = all.iter().map(|results| results.workloads().count()).sum();
    say(&format!("record  {} ({points} points)", out.display()));
    Ok(Exit::Fine)
}
