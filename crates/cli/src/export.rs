//! `ioscape export`: a record leaves in formats that others read.

use std::fs;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use ioscape_analysis::estimate;
use ioscape_model::{Record, Workload};
use ioscape_report::export;

use crate::args::WorkloadArgs;
use crate::exit::{Exit, usage};
use crate::journal;
use crate::out_file::{self, Existing, refuse_existing};
use crate::output::{self, say};
use crate::workload_arg::{self, Asked};

/// What can be typed.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The record
    #[arg(value_name = "RECORD")]
    record: PathBuf,
    /// What to write
    #[arg(long, value_enum)]
    format: ExportFormat,
    /// A file that does not exist yet; for several job files, a directory [default: stdout]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Only this workload: key=value pairs joined by commas, @FILE.toml, or a name such as oltp; may be repeated
    #[arg(long, short, value_name = "WORKLOAD")]
    workload: Vec<String>,
    /// What a row of csv and parquet is [default: estimates]
    #[arg(long, value_enum)]
    rows: Option<RowsArg>,
    #[command(flatten)]
    keys: WorkloadArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ExportFormat {
    /// A table
    Csv,
    /// The table with its types, for programs that read columns
    Parquet,
    /// The whole record as one document
    Json,
    /// Job files for fio 3.33 that reproduce the measured workloads, or the one given with -w
    Fio,
    /// Gauges for dashboards
    Openmetrics,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RowsArg {
    /// One workload, all its measurements (visits) pooled, with intervals to draw as error bars
    Estimates,
    /// One visit to a workload
    Visits,
}

/// Writes the record in another format.
pub(crate) fn export(args: &ExportArgs) -> anyhow::Result<Exit> {
    check(args)?;
    let asked = if args.workload.is_empty() && args.keys.pairs().is_empty() {
        vec![]
    } else {
        workload_arg::read_all(&args.workload, &args.keys)?
    };
    let mut record = journal::open(&args.record)?;
    if record.estimates.is_empty() {
        // A run that was killed before its first map: its visits are there to be pooled.
        record.estimates = estimate::pool(&record.points, 0).0;
    }
    if args.format == ExportFormat::Fio {
        return jobs(args, &record, asked);
    }
    if !asked.is_empty() {
        keep(args, &mut record, &asked)?;
    }
    let bytes = match args.format {
        ExportFormat::Csv => table(args, &record).csv().into_bytes(),
        ExportFormat::Parquet => parquet(&table(args, &record))?,
        ExportFormat::Json => export::json(&record).into_bytes(),
        ExportFormat::Openmetrics => export::openmetrics(&record).into_bytes(),
        ExportFormat::Fio => unreachable!("job files were written above"),
    };
    write(args.out.as_deref(), &bytes)?;
    Ok(Exit::Fine)
}

/// What cannot be is said before anything is read.
fn check(args: &ExportArgs) -> anyhow::Result<()> {
    let is_table = matches!(args.format, ExportFormat::Csv | ExportFormat::Parquet);
    if args.rows.is_some() && !is_table {
        return Err(usage("--rows is for csv and parquet: leave it out"));
    }
    if args.format == ExportFormat::Json
        && (!args.workload.is_empty() || !args.keys.pairs().is_empty())
    {
        return Err(usage("json holds the whole record: leave out -w"));
    }
    if args.format == ExportFormat::Parquet {
        if cfg!(not(feature = "parquet")) {
            return Err(usage("this build writes no parquet: build it with `--features parquet`"));
        }
        if args.out.is_none() && std::io::stdout().is_terminal() {
            return Err(usage("parquet is nothing to look at: name a file by --out"));
        }
    }
    // Job files may go into a directory that exists.
    match &args.out {
        Some(out) if !(args.format == ExportFormat::Fio && out.is_dir()) => {
            refuse_existing(out, "--out")
        }
        _ => Ok(()),
    }
}

/// Only the workloads that were asked for; one that was not measured has no figures to export.
fn keep(args: &ExportArgs, record: &mut Record, asked: &[Asked]) -> anyhow::Result<()> {
    let measured = |work: &Workload| record.estimates.iter().any(|e| e.workload == *work);
    if let Some(missing) = asked.iter().find(|asked| !measured(&asked.work)) {
        return Err(usage(format!(
            "{}: `{}` was not measured; `ioscape predict` answers for it",
            args.record.display(),
            missing.name
        )));
    }
    let is_asked = |work: &Workload| asked.iter().any(|asked| asked.work == *work);
    record.estimates.retain(|estimate| is_asked(&estimate.workload));
    record.points.retain(|point| is_asked(&point.workload));
    Ok(())
}

fn table(args: &ExportArgs, record: &Record) -> export::Table {
    match args.rows.unwrap_or(RowsArg::Estimates) {
        RowsArg::Estimates => export::estimates(record),
        RowsArg::Visits => export::visits(record),
    }
}

#[cfg(feature = "parquet")]
fn parquet(table: &export::Table) -> anyhow::Result<Vec<u8>> {
    Ok(table.parquet()?)
}

#[cfg(not(feature = "parquet"))]
fn parquet(_: &export::Table) -> anyhow::Result<Vec<u8>> {
    unreachable!("refused when the options were checked")
}

/// To a file that does not exist yet, or to stdout.
fn write(out: Option<&Path>, bytes: &[u8]) -> anyhow::Result<()> {
    let Some(out) = out else { return output::raw(bytes) };
    out_file::write(out, bytes, Existing::Kept, "--out")?;
    say(&format!("export  {}", out.display()));
    Ok(())
}

/// A job file for one workload, or a directory of them for several.
fn jobs(args: &ExportArgs, record: &Record, asked: Vec<Asked>) -> anyhow::Result<Exit> {
    let measured = || {
        let estimates = record.estimates.iter().enumerate();
        estimates.map(|(index, estimate)| Asked {
            name: format!("workload-{:03}", index + 1),
            work: estimate.workload.clone(),
            says_access: true,
        })
    };
    let all = if asked.is_empty() { measured().collect() } else { asked };
    let job = |asked: &Asked| {
        let estimate = record.estimates.iter().find(|e| e.workload == asked.work);
        export::fio::job(&record.header, &asked.work, estimate)
    };
    let directory = args.out.as_ref().filter(|out| all.len() > 1 || out.is_dir());
    match (all.as_slice(), directory) {
        ([], _) => Err(usage(format!("{}: nothing was measured", args.record.display()))),
        ([one], None) => write(args.out.as_deref(), job(one).as_bytes()).map(|()| Exit::Fine),
        (several, None) => Err(usage(format!(
            "there are {} workloads: name a directory for their job files by --out, or choose one \
             by -w",
            several.len()
        ))),
        (several, Some(directory)) => {
            let named = several.iter().enumerate().map(|(index, asked)| {
                (directory.join(file_name(index, &asked.name)), job(asked).into_bytes())
            });
            write_jobs(directory, &named.collect::<Vec<_>>()).map(|()| Exit::Fine)
        }
    }
}

/// All of them or none.
fn write_jobs(directory: &Path, files: &[(PathBuf, Vec<u8>)]) -> anyhow::Result<()> {
    let names: Vec<&PathBuf> = files.iter().map(|(file, _)| file).collect();
    if let Some(twice) = names.iter().enumerate().find(|(i, f)| names[..*i].contains(f)) {
        return Err(usage(format!("{} would be written twice", twice.1.display())));
    }
    names.iter().try_for_each(|file| refuse_existing(file, "--out"))?;
    let is_new = !directory.exists();
    fs::create_dir_all(directory).map_err(|error| out_file::failed(directory, error, "--out"))?;
    let written = out_file::write_all(files, Existing::Kept, "--out");
    if written.is_err() && is_new {
        fs::remove_dir(directory).ok();
    }
    written?;
    say(&format!("export  {} ({} job files)", directory.display(), files.len()));
    Ok(())
}

/// A workload's name where it is one, its number otherwise.
fn file_name(index: usize, name: &str) -> String {
    let is_name = name.len() <= 64
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if is_name { format!("{name}.fio") } else { format!("workload-{:03}.fio", index + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_files_are_named_after_names_and_never_leave_the_directory() {
        assert_eq!(file_name(0, "oltp"), "oltp.fio");
        assert_eq!(file_name(6, "unique_bytes=1GiB"), "workload-007.fio");
        assert_eq!(file_name(1, "../../etc/passwd"), "workload-002.fio");
    }
}
