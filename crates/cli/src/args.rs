//! What can be typed. Every option is declared once; its comment is the help.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use ioscape_engine::target::Consent;
use ioscape_model::units::{parse_duration_s, parse_fraction, parse_size};
use ioscape_model::workload::KEYS;
use ioscape_model::{Access, Method};

const EXIT_CODES: &str = "\
Exit codes: 0 fine; 1 the answer is \"worse\", not within the tolerance or precision asked for, \
or (`doctor`) a serious doubt; 2 wrong usage or a refused target; 3 it could not be measured, or \
the answer not be written; \
130 after Ctrl-C and 143 after SIGTERM, with everything saved and cleaned up.

NO_COLOR in the environment leaves colours out. Progress is shown on terminals only.";

/// Maps the storage behind a path: where its regions lie, what each workload gets there.
///
/// Sizes: KiB MiB GiB are binary, kB MB GB decimal, bare k m g binary as in fio.
/// Durations: 90s, 10m, 1h30m.
#[derive(Debug, Parser)]
#[command(name = "ioscape", version = env!("CARGO_PKG_VERSION"), propagate_version = true)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The main job: explore TARGET, write the record and the report
    // A map needs writes: --read-only is refused, with what to do in its place.
    #[command(mut_arg("read_only", |arg| arg.hide(true)))]
    Run(RunArgs),
    /// Measure one workload, to a stated precision
    Measure(MeasureArgs),
    /// Say what workloads that were not measured would get
    Predict(PredictArgs),
    /// Measure random workloads on a record's target and compare with what it predicts
    Validate(ValidateArgs),
    /// Hold systems against a baseline: ratios with intervals, per region and per workload
    #[command(mut_args(only_live))]
    Compare(CompareArgs),
    /// Render a record again
    Report(ReportArgs),
    /// Write a record in a format that others read: csv, parquet, json, fio, openmetrics
    Export(crate::export::ExportArgs),
    /// Turn what another program measured into a record
    Import(crate::import::ImportArgs),
    /// Run classic benchmarks: IOStone, Bonnie, Andrew, TPC-B, …
    // They run where the kernel puts them: --pin is refused.
    #[command(mut_arg("pin", |arg| arg.hide(true)))]
    Suite(crate::suite::SuiteArgs),
    /// Say what would make a measurement misleading, and measure nothing
    Doctor(crate::doctor::DoctorArgs),
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

/// What every command that measures takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// Print one JSON document on stdout and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress and no summary; `measure` still answers
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Where all chance comes from; recorded [default: drawn]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Bound this process's memory, page cache included, by a control group of its own
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory_limit: Option<u64>,
    /// Bound the machine's dirty data (`vm.dirty_bytes`) for the time of the run (root; machine-wide; restored afterwards)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) dirty_limit: Option<u64>,
    /// Keep each process on a processor of its own, spread over memory nodes and cores [default: the kernel decides]
    #[arg(long)]
    pub(crate) pin: bool,
}

/// What may be done to a block device.
#[derive(Clone, Debug, Args)]
pub(crate) struct DeviceArgs {
    /// Only read the block device TARGET, which is what happens anyway unless --destroy is given
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Overwrite the block device TARGET: its path once more. One that is in use, or carries anything that is recognised, is refused all the same
    #[arg(long, value_name = "DEVICE", conflicts_with = "read_only")]
    pub(crate) destroy: Option<PathBuf>,
}

impl DeviceArgs {
    /// Whether anything was said about devices.
    pub(crate) fn are_given(&self) -> bool {
        self.read_only || self.destroy.is_some()
    }

    /// What was agreed to.
    pub(crate) fn consent(&self) -> Consent<'_> {
        self.destroy.as_deref().map_or(Consent::ReadOnly, Consent::Destroy)
    }
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// A directory, a block device with --destroy, or sim:NAME for a simulated device [default: the current directory]
    #[arg(value_name = "TARGET")]
    pub(crate) target: Option<PathBuf>,
    /// How long the run may take, everything included [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_s)]
    pub(crate) budget: Option<f64>,
    /// How the points are chosen
    #[arg(long, value_enum, default_value_t = MethodArg::Blend)]
    pub(crate) method: MethodArg,
    /// Through the page cache or past it: what lies below it has a map of its own
    #[arg(long, value_enum, default_value_t = AccessArg::Buffered)]
    pub(crate) access: AccessArg,
    /// End before the budget when predictions are this precise: half-width of the typical 90 % interval, without what another hour adds to it
    #[arg(long, value_name = "FRACTION", value_parser = parse_fraction)]
    pub(crate) precision: Option<f64>,
    /// Print the plan and what it would cost, and measure nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// A workload that the map visits beside its own: key=value pairs, @FILE.toml, or a name (repeatable)
    #[arg(long, short, value_name = "WORKLOAD")]
    pub(crate) workload: Vec<String>,
    /// Most data a workload may touch
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) unique_max: Option<u64>,
    /// Most bytes that reach the device, what the filesystem adds included: the run ends before that, for the sake of the device's life
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_written: Option<u64>,
    /// Go on with a run that was interrupted
    #[arg(long, value_name = "RECORD", conflicts_with_all = [
        "out", "method", "access", "seed", "dry_run", "workload", "unique_max", "max_written", "precision",
        "memory_limit", "dirty_limit",
    ])]
    pub(crate) resume: Option<PathBuf>,
    /// The record; by default ioscape-TIME.jsonl in the current directory, in UTC
    #[arg(long, value_name = "RECORD")]
    pub(crate) out: Option<PathBuf>,
    /// The report, or `none` [default: beside the record, .html]
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Whether a map's requests pass the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AccessArg {
    /// Through the page cache
    Buffered,
    /// Past it, straight to storage
    Direct,
}

impl From<AccessArg> for Access {
    fn from(access: AccessArg) -> Self {
        match access {
            AccessArg::Buffered => Self::Buffered,
            AccessArg::Direct => Self::Direct,
        }
    }
}

/// How the points are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodArg {
    /// Border search, families of graphs, space-filling points
    Blend,
    /// Chen and Patterson's plan: 20 points on data touched, 10 on each other graph
    Paper,
    /// Their first attempt: all parameters at once at their 75 % point
    Global75,
    /// The grid of Chen and Patterson's Fig. 14: 162 points
    Orthogonal,
}

impl From<MethodArg> for Method {
    fn from(method: MethodArg) -> Self {
        match method {
            MethodArg::Blend => Self::Blend,
            MethodArg::Paper => Self::Paper,
            MethodArg::Global75 => Self::Global75,
            MethodArg::Orthogonal => Self::Orthogonal,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    /// A directory, a block device, or sim:NAME for a simulated device
    #[arg(value_name = "TARGET")]
    pub(crate) target: PathBuf,
    /// key=value pairs joined by commas, @FILE.toml, or a name such as oltp
    #[arg(long, short, value_name = "WORKLOAD")]
    pub(crate) workload: Option<String>,
    /// Half-width of the 95 % interval to reach
    #[arg(long, value_name = "FRACTION", value_parser = parse_fraction)]
    pub(crate) precision: Option<f64>,
    /// Look for the highest rate of an open loop at which 99 of 100 requests are done within this time of when they were due
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_s)]
    pub(crate) p99_below: Option<f64>,
    /// Visits, each prepared anew
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: u32,
    /// Write a record of it
    #[arg(long, value_name = "RECORD")]
    pub(crate) out: Option<PathBuf>,
    /// Stamp every block that is written, and check every one that is read: a mismatch is an error that is counted
    #[arg(long)]
    pub(crate) verify: bool,
    /// What makes the requests
    #[arg(long, value_enum, default_value_t = EngineArg::Auto)]
    pub(crate) engine: EngineArg,
    /// io_uring polls for completions instead of waiting for interrupts (access=direct, on devices with queues for it)
    #[arg(long)]
    pub(crate) polled: bool,
    /// A thread of the kernel fetches io_uring's requests: no system calls, but a processor for it
    #[arg(long)]
    pub(crate) kernel_submission: bool,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) keys: WorkloadArgs,
}

/// What makes the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineArg {
    /// psync for one request in flight, uring for more
    Auto,
    /// pread and pwrite
    Psync,
    /// io_uring, whatever the depth
    Uring,
    /// No I/O: what the harness itself costs
    Null,
}

/// The keys of a workload, as flags; each overrides what -w says.
#[derive(Debug, Default)]
pub(crate) struct WorkloadArgs {
    given: Vec<(&'static str, String)>,
}

impl clap::Args for WorkloadArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(KEYS.iter().map(|key| {
            let arg = clap::Arg::new(key.name).long(key.flag).value_name(key.value);
            arg.help(key.help).help_heading("Workload keys")
        }))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for WorkloadArgs {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        let given = |name| Some((name, matches.get_one::<String>(name)?.clone()));
        Ok(Self { given: KEYS.iter().filter_map(|key| given(key.name)).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

#[derive(Debug, Args)]
pub(crate) struct PredictArgs {
    /// The record of a run
    #[arg(value_name = "RECORD")]
    pub(crate) record: PathBuf,
    /// key=value pairs joined by commas, @FILE.toml, or a name such as oltp; may be repeated [default: all names]
    #[arg(long, short, value_name = "WORKLOAD")]
    pub(crate) workload: Vec<String>,
    /// What if: caches of other sizes than were found, or of a multiple, as in `read_cache=512MiB,write_cache=2x`
    #[arg(long, value_name = "CACHE=SIZE", value_delimiter = ',')]
    pub(crate) set: Vec<String>,
    /// Print one JSON document on stdout and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the JSON document to a file as well
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) keys: WorkloadArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ValidateArgs {
    /// The record of a run; its target is opened again, under the limits that the run had set
    #[arg(value_name = "RECORD")]
    pub(crate) record: PathBuf,
    /// Random workloads, each measured twice
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) workloads: u32,
    /// Where all chance comes from; recorded [default: drawn]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Draw beside it what each benchmark of this suite's record predicts for every workload
    #[arg(long, value_name = "RECORD")]
    pub(crate) suite: Option<PathBuf>,
    /// Exit with 1 if the median error is above this
    #[arg(long, value_name = "FRACTION", value_parser = parse_fraction)]
    pub(crate) tolerance: Option<f64>,
    /// The record of the validation; by default ioscape-validate-TIME.jsonl in the current
    /// directory, in UTC
    #[arg(long, value_name = "RECORD")]
    pub(crate) out: Option<PathBuf>,
    /// The report, or `none` [default: beside the record of the validation, .html]
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Print one JSON document on stdout and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress and no summary
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// The records of two runs or more; the first is the baseline, A, and the others are B, C, …; with --live two targets, each a directory, a block device that is only read, or sim:NAME
    #[arg(value_name = "RECORD", required = true)]
    pub(crate) records: Vec<PathBuf>,
    /// Measure two targets in alternation instead of comparing what was recorded
    #[arg(long)]
    pub(crate) live: bool,
    /// How long it may take, everything included [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_s, requires = "live")]
    pub(crate) budget: Option<f64>,
    /// The records that it leaves, PREFIX-A.jsonl and PREFIX-B.jsonl; by default ioscape-compare-TIME in the current directory, in UTC
    #[arg(long, value_name = "PREFIX", requires = "live")]
    pub(crate) record: Option<PathBuf>,
    /// key=value pairs joined by commas, @FILE.toml, or a name such as oltp; may be repeated [default: all names]
    #[arg(long, short, value_name = "WORKLOAD")]
    pub(crate) workload: Vec<String>,
    /// Exit with 1 if a system is slower than the baseline by more than this, beyond doubt
    #[arg(long, value_name = "FRACTION", value_parser = parse_fraction)]
    pub(crate) tolerance: Option<f64>,
    /// Exit with 1 if a difference as small as this could not have been shown on some workload, where none was: the verdict is then `inconclusive`
    #[arg(long, value_name = "FRACTION", value_parser = parse_fraction)]
    pub(crate) require_resolution: Option<f64>,
    /// What the systems cost, in any currency: A=100,B=150, or files in place of letters
    #[arg(long, value_name = "RECORD=PRICE", value_delimiter = ',')]
    pub(crate) price: Vec<String>,
    /// Write a page with the figures, HTML
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) keys: WorkloadArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// The record, with a validation of it where there is one; or several, to be seen side by side
    #[arg(value_name = "RECORD", required = true)]
    pub(crate) records: Vec<PathBuf>,
    /// A page to look at, or a summary for the terminal
    #[arg(long, value_enum, default_value_t = FormatArg::Html)]
    pub(crate) format: FormatArg,
    /// The page [default: beside the record, .html; text goes to stdout]
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FormatArg {
    /// One self-contained page
    Html,
    /// 80 columns
    Text,
}

#[derive(Debug, Args)]
pub(crate) struct CleanArgs {
    /// Where killed runs may have left files
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Of this command [default: of ioscape itself]
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// Write all pages here, ioscape.1, ioscape-run.1 and so on
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL", value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

impl WorkloadArgs {
    /// No flags.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        use clap::Parser;
        match Cli::parse_from(["ioscape", "measure", "."]).command {
            Command::Measure(args) => args.keys,
            _ => unreachable!("measure was typed"),
        }
    }

    /// The keys that were given.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, &str)> {
        self.given.iter().map(|(key, value)| (*key, value.as_str())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_declaration_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_of_run_and_suite_leaves_out_what_they_refuse() {
        let mut all = Cli::command();
        let mut offers = |command: &str, flag: &str| {
            let command = all.find_subcommand_mut(command).unwrap();
            command.render_long_help().to_string().contains(flag)
        };
        assert!(offers("measure", "--read-only") && !offers("run", "--read-only"));
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
