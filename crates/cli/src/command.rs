//! The commands. What can be typed after each is in `args`, or beside what it does.

use clap::{Parser, Subcommand};

use crate::args::{
    CleanArgs, CompareArgs, CompletionsArgs, ManArgs, MeasureArgs, PredictArgs, ReportArgs,
    RunArgs, ValidateArgs,
};
use crate::doctor::DoctorArgs;
use crate::export::ExportArgs;
use crate::history::HistoryArgs;
use crate::import::ImportArgs;
use crate::replay::ReplayArgs;
use crate::serve::ServeArgs;
use crate::suite::SuiteArgs;
use crate::trace::TraceArgs;
use crate::vector::VectorArgs;

const EXIT_CODES: &str = "\
Exit codes: 0 fine; 1 the answer does not meet what was asked for (--tolerance, --precision, \
--require-resolution, --fail-on), no request rate that was tried keeps p99 within --p99-below, `history check` found \
something worse, or `doctor` something serious; 2 wrong usage or a refused target; 3 the measurement failed, or the answer could not be \
written; 130 after Ctrl-C and 143 after SIGTERM, with everything saved and cleaned up. \
`trace record -- COMMAND` ends with the exit code of the command.

NO_COLOR in the environment leaves colours out. Progress is shown on terminals only.";

/// Measures the storage behind a path: where its caches end, how fast each kind of workload is.
///
/// Sizes: KiB MiB GiB are binary, kB MB GB decimal, bare k m g binary as in fio.
/// Durations: 90s, 10m, 1h30m.
#[derive(Debug, Parser)]
#[command(name = "ioscape", version = env!("CARGO_PKG_VERSION"), propagate_version = true)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// For runs started by mpirun or the like: path of the MPI library; `off` runs each process by
    /// itself, without MPI [default: the library that fits the launcher]
    #[arg(long, value_name = "LIBRARY", global = true, hide_short_help = true)]
    pub(crate) mpi: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The main job: explore TARGET, write the record and the report
    #[command(mut_arg("read_only", only_its_reads))]
    Run(RunArgs),
    /// Measure one workload: IOPS, throughput and percentiles with intervals
    Measure(MeasureArgs),
    /// Predict the throughput and response time of workloads that were not measured
    Predict(PredictArgs),
    /// Measure random workloads on a record's target and compare them with the record's predictions
    Validate(ValidateArgs),
    /// Compare systems with a baseline: which is faster, by how much, and what may be chance
    #[command(mut_args(only_live))]
    Compare(CompareArgs),
    /// Render a record again
    Report(ReportArgs),
    /// Write a record in a format that others read: csv, parquet, json, fio, openmetrics
    Export(ExportArgs),
    /// Keep records over time: what changed and when, and a baseline for new ones
    History(HistoryArgs),
    /// Turn what another program measured into a record
    Import(ImportArgs),
    /// Run classic benchmarks: IOStone, Bonnie, Andrew, TPC-B, …
    // They run where the kernel puts them: --pin is refused.
    #[command(mut_arg("pin", |arg| arg.hide(true)))]
    Suite(SuiteArgs),
    /// Record what a program does to files, import traces, and say what they hold
    Trace(TraceArgs),
    /// Repeat the calls of a trace on test files, or generate load that resembles a model, and measure it
    // Streams run where the kernel puts them: --pin is refused.
    #[command(mut_arg("pin", |arg| arg.hide(true)))]
    Replay(ReplayArgs),
    /// Answer the requests of a web site's visitors after given response times: the servers behind a proxy
    /// that is measured
    Serve(ServeArgs),
    /// Measure how long each kind of operation takes: syncs, opening, creating and deleting files,
    /// cache misses, copies, starting processes
    // There are no processes to spread: --pin is refused.
    #[command(mut_arg("pin", |arg| arg.hide(true)))]
    Vector(VectorArgs),
    /// Say what would make a measurement misleading; writes at most a test file of 8 MiB
    Doctor(DoctorArgs),
    /// Remove leftovers of killed runs from a directory
    Clean(CleanArgs),
    /// Print a manual page, or write all of them into a directory
    Man(ManArgs),
    /// Print completions for a shell
    Completions(CompletionsArgs),
}

/// What is asked of a comparison that measures.
const LIVE: &str = "With --live";

/// Puts what a comparison of records refuses under a heading of its own.
fn only_live(arg: clap::Arg) -> clap::Arg {
    const NAMES: [&str; 6] = ["budget", "record", "seed", "memory_limit", "dirty_limit", "pin"];
    if NAMES.contains(&arg.get_id().as_str()) { arg.help_heading(LIVE) } else { arg }
}

/// `run --read-only` measures the reads of the data sheet and nothing else.
fn only_its_reads(arg: clap::Arg) -> clap::Arg {
    arg.help(
        "Write nothing; measure only the data sheet's reads, with direct I/O, in a minute. TARGET may be \
         a block device, a file, or a directory, whose largest file is read",
    )
    .conflicts_with_all([
        "method", "access", "precision", "workload", "range", "unique_max", "max_written", "sustain",
        "precondition",
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use ioscape_model::workload::KEYS;

    #[test]
    fn the_declaration_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_of_suite_leaves_out_what_it_refuses() {
        let mut all = Cli::command();
        let mut offers = |command: &str, flag: &str| {
            let command = all.find_subcommand_mut(command).unwrap();
            command.render_long_help().to_string().contains(flag)
        };
        assert!(offers("run", "--pin") && !offers("suite", "--pin"));
    }

    #[test]
    fn help_says_what_flags_belong_to() {
        let all = Cli::command();
        let under = |command: &str, heading: &str| -> Vec<String> {
            let arguments = all.find_subcommand(command).unwrap().get_arguments();
            let of_it = arguments.filter(|arg| arg.get_help_heading() == Some(heading));
            let mut names: Vec<String> = of_it.map(|arg| arg.get_id().to_string()).collect();
            names.sort();
            names
        };
        let live = ["budget", "dirty_limit", "memory_limit", "pin", "record", "seed"];
        assert_eq!(under("compare", LIVE), live);
        let mut keys = KEYS.map(|key| key.name.to_owned());
        keys.sort();
        for command in ["measure", "predict", "compare", "export"] {
            assert_eq!(under(command, "Workload keys"), keys, "{command}");
        }
    }
}
