//! What can be typed after a command. Every option is declared once; its comment is the help.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ioscape_engine::target::Consent;
use ioscape_model::units::{parse_duration_s, parse_fraction, parse_size};
use ioscape_model::workload::KEYS;
use ioscape_model::{Access, Method, Range, Severity};

/// What every command that measures takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct Common {
    /// Print one JSON document on stdout and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    /// Show no progress and no summary
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// Random seed, saved in the record [default: drawn]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Limit memory, page cache included, by a control group of its own
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) memory_limit: Option<u64>,
    /// Limit dirty data (`vm.dirty_bytes`) of the whole machine during the run; needs root, restored afterwards
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) dirty_limit: Option<u64>,
    /// Pin each process to a CPU of its own, spread over NUMA nodes and cores [default: the kernel decides]
    #[arg(long)]
    pub(crate) pin: bool,
}

/// Options that say what the run may do to a block device, or to files that are there.
#[derive(Clone, Debug, Args)]
pub(crate) struct DeviceArgs {
    /// Write nothing; read with direct I/O. TARGET may be a block device, a file, or a directory, whose
    /// largest file is read
    #[arg(long)]
    pub(crate) read_only: bool,
    /// Allow overwriting the block device TARGET; repeat its path to confirm. Still refused: a
    /// device in use, and a device on which known data, such as a filesystem, are found
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
    /// A directory, a block device with --destroy or --read-only, a file with --read-only, or sim:NAME for a simulated device [default: the current directory]
    #[arg(value_name = "TARGET")]
    pub(crate) target: Option<PathBuf>,
    /// How long the run may take, everything included [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_s)]
    pub(crate) budget: Option<f64>,
    /// How the workloads to measure are chosen
    #[arg(long, value_enum, default_value_t = MethodArg::Blend)]
    pub(crate) method: MethodArg,
    /// Only the data sheet, in a minute: IOPS, MB/s and latency of nine standard workloads (4 KiB and 1 MiB requests, a mixture, commits, cached reads)
    #[arg(long, conflicts_with_all = ["access", "precision", "workload", "range", "unique_max"])]
    pub(crate) quick: bool,
    /// Use only the page cache (buffered) or only `O_DIRECT` (direct) [default: both]
    #[arg(long, value_enum)]
    pub(crate) access: Option<AccessArg>,
    /// How much data direct I/O touches [default: as much as can be written in 15 % of the budget (10 % with
    /// --quick) or 20 s, whichever is shorter, but at most half of the free space and half of
    /// `--max-written`]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) span: Option<u64>,
    /// Vary a parameter only from MIN to MAX, as in `size_mean=4KiB..64KiB`; may be repeated; keys:
    /// `unique_bytes`, `size_mean`, `process_num`, depth
    #[arg(long, value_name = "KEY=MIN..MAX", value_parser = parse_range)]
    pub(crate) range: Vec<(RangeKey, Range)>,
    /// Exit with 1 if a warning is this severe or worse
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub(crate) fail_on: Option<SeverityArg>,
    /// Stop early, once half of the predictions (for workloads that were not measured) have a 90 %
    /// interval of at most ± this fraction
    #[arg(long, value_name = "FRACTION", value_parser = parse_fraction)]
    pub(crate) precision: Option<f64>,
    /// Print the plan, its time and the bytes it would write; measure nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Measure this workload too: key=value pairs, @FILE.toml, or a name such as oltp; may be repeated
    #[arg(long, short, value_name = "WORKLOAD")]
    pub(crate) workload: Vec<String>,
    /// The most data that a workload touches; for direct I/O --span takes precedence
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) unique_max: Option<u64>,
    /// Write at most this much to the device, filesystem overhead included; once it is reached, workloads that write are left out and reads go on [default: 16 GiB]
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_written: Option<u64>,
    /// Write for this long first, to see whether writes stay fast; at most half of the budget
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_s)]
    pub(crate) sustain: Option<f64>,
    /// Overwrite all test data twice first, so that flash is in the state of a used device; takes at most half of the budget and of --max-written
    #[arg(long)]
    pub(crate) precondition: bool,
    /// Continue an interrupted run; results go into the same record, so --out can name no other
    #[arg(long, value_name = "RECORD", conflicts_with_all = [
        "method", "access", "seed", "dry_run", "workload", "unique_max", "max_written", "precision",
        "sustain", "precondition", "memory_limit", "dirty_limit", "quick", "span", "range",
        "read_only",
    ])]
    pub(crate) resume: Option<PathBuf>,
    /// The record to write [default: ioscape-TIME.jsonl in the current directory, UTC]
    #[arg(long, short, value_name = "RECORD")]
    pub(crate) out: Option<PathBuf>,
    /// The report, or `none` [default: beside the record, .html]
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) device: DeviceArgs,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// From which severity on a doubt makes a run fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SeverityArg {
    /// A measured figure may mean something else than it seems to
    Warning,
    /// A measured figure should not be used
    Serious,
}

impl From<SeverityArg> for Severity {
    fn from(severity: SeverityArg) -> Self {
        match severity {
            SeverityArg::Warning => Self::Warning,
            SeverityArg::Serious => Self::Serious,
        }
    }
}

/// Which parameter a range is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RangeKey {
    UniqueBytes,
    SizeMean,
    ProcessNum,
    Depth,
}

/// `size_mean=4KiB..64KiB`.
fn parse_range(text: &str) -> Result<(RangeKey, Range), String> {
    let example = "write for example size_mean=4KiB..64KiB";
    let (key, ends) =
        text.split_once('=').ok_or_else(|| format!("it is not KEY=MIN..MAX: {example}"))?;
    let key = match key.trim() {
        "unique_bytes" => RangeKey::UniqueBytes,
        "size_mean" => RangeKey::SizeMean,
        "process_num" => RangeKey::ProcessNum,
        "depth" => RangeKey::Depth,
        other => {
            return Err(format!(
                "`{other}` has no range; the keys are unique_bytes, size_mean, process_num, depth"
            ));
        }
    };
    let (min, max) = ends.split_once("..").ok_or_else(|| format!("it has no `..`: {example}"))?;
    let value = |text: &str| match key {
        RangeKey::UniqueBytes | RangeKey::SizeMean => parse_size(text.trim()),
        RangeKey::ProcessNum | RangeKey::Depth => {
            text.trim().parse().map_err(|_| format!("`{text}` is no count"))
        }
    };
    let range = Range { min: value(min)?, max: value(max)? };
    if range.min == 0 || range.min > range.max {
        return Err(format!("its ends are 1 or more, the smaller one first: {example}"));
    }
    Ok((key, range))
}

/// Whether a map's requests go through the page cache.
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
    /// Find the amounts of data at which caches end, vary each parameter in each range between them,
    /// then measure combinations of parameters
    Blend,
    /// Chen and Patterson's plan: 20 amounts of data touched, up to 10 values of every other parameter
    Paper,
    /// Chen and Patterson's first attempt: vary one parameter at a time; the others stay at values
    /// that give 75 % of the best throughput
    Global75,
    /// A grid of 162 workloads (Chen and Patterson 1994, Fig. 14)
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
    /// Half-width of the 95 % interval to reach, as a fraction of the throughput (with --p99-below: of the rate)
    #[arg(long, value_name = "FRACTION", value_parser = parse_fraction)]
    pub(crate) precision: Option<f64>,
    /// Find the highest request rate that keeps p99 latency below this; requests are issued on a
    /// schedule (open loop), and latency counts from the time each was due
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_s)]
    pub(crate) p99_below: Option<f64>,
    /// How often to measure, each time prepared anew [default: 3; with --precision as often as it takes, at most 100 times]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) rounds: Option<u32>,
    /// With --precision: the longest time to spend on reaching it, for three visits at least; laying out files comes on top [default: 5m]
    #[arg(long, value_name = "DURATION", requires = "precision", conflicts_with_all = ["rounds", "p99_below"], value_parser = parse_duration_s)]
    pub(crate) budget: Option<f64>,
    /// Write a record of the measurement
    #[arg(long, short, value_name = "RECORD")]
    pub(crate) out: Option<PathBuf>,
    /// Verify data: stamp each block written, check each block read, count mismatches as errors
    #[arg(long)]
    pub(crate) verify: bool,
    /// What makes the requests
    #[arg(long, value_enum, default_value_t = EngineArg::Auto)]
    pub(crate) engine: EngineArg,
    /// Use io_uring IOPOLL: poll for completions (needs access=direct and a device with poll queues)
    #[arg(long)]
    pub(crate) polled: bool,
    /// Use io_uring SQPOLL: a kernel thread submits requests (no system calls, costs one CPU)
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
    /// psync for one request in flight, uring for more, threads where that is denied
    Auto,
    /// pread and pwrite
    Psync,
    /// io_uring, whatever the depth
    Uring,
    /// pread and pwrite by a thread for each request in flight
    Threads,
    /// No I/O: measures the overhead of ioscape itself
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
    /// A record of `ioscape run`; with --app also one of `ioscape vector`
    #[arg(value_name = "RECORD")]
    pub(crate) record: PathBuf,
    /// key=value pairs joined by commas, @FILE.toml, or a name such as oltp; may be repeated
    /// [default: all named workloads]
    #[arg(long, short, value_name = "WORKLOAD")]
    pub(crate) workload: Vec<String>,
    /// Predict how long an application takes: a model made by `ioscape trace model`, or the name
    /// of an included one, such as sqlite-wal
    #[arg(long, value_name = "APP.json", conflicts_with_all = ["workload", "p99_max"])]
    pub(crate) app: Option<PathBuf>,
    /// Assume other cache sizes, in bytes or as a multiple of those found:
    /// `read_cache=512MiB,write_cache=2x`. With --app: `memory=1GiB`, and `device=2x` for a device
    /// twice as fast
    #[arg(long, value_name = "CACHE=SIZE", value_delimiter = ',')]
    pub(crate) set: Vec<String>,
    /// Predict the highest request rate that keeps p99 latency below this, as in 1ms
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_s)]
    pub(crate) p99_max: Option<f64>,
    /// Print one JSON document on stdout and nothing else there
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the JSON document to a file as well
    #[arg(long, short, value_name = "FILE")]
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
    /// Random seed, saved in the record [default: drawn]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// A record of `ioscape suite`, for comparison: how far off one would be by taking each
    /// benchmark's one throughput as the prediction for all workloads
    #[arg(long, value_name = "RECORD")]
    pub(crate) suite: Option<PathBuf>,
    /// Draw workloads that go through the page cache, or workloads that go past it [default:
    /// through the page cache, where the record has both]
    #[arg(long, value_enum)]
    pub(crate) access: Option<AccessArg>,
    /// Exit with 1 if the median error is above this
    #[arg(long, value_name = "FRACTION", value_parser = parse_fraction)]
    pub(crate) tolerance: Option<f64>,
    /// The record of the validation; by default ioscape-validate-TIME.jsonl in the current
    /// directory, in UTC
    #[arg(long, short, value_name = "RECORD")]
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
    /// Measure two targets in alternation (A, B, A, B, …) instead of comparing records
    #[arg(long)]
    pub(crate) live: bool,
    /// How long it may take, everything included [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_s, requires = "live")]
    pub(crate) budget: Option<f64>,
    /// The records that it leaves, PREFIX-A.jsonl and PREFIX-B.jsonl; by default ioscape-compare-TIME in the current directory, in UTC
    #[arg(long, value_name = "PREFIX", requires = "live")]
    pub(crate) record: Option<PathBuf>,
    /// key=value pairs joined by commas, @FILE.toml, or a name such as oltp; may be repeated
    /// [default: all named workloads]
    #[arg(long, short, value_name = "WORKLOAD")]
    pub(crate) workload: Vec<String>,
    /// Rank the systems for an application: a model made by `ioscape trace model`, or the name of
    /// an included one, such as sqlite-wal
    #[arg(long, value_name = "APP.json", conflicts_with_all = ["workload", "live", "tolerance", "require_resolution"])]
    pub(crate) app: Option<PathBuf>,
    /// With --app: say for each system how likely a run is to take longer than this
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_s, requires = "app")]
    pub(crate) deadline: Option<f64>,
    /// Exit with 1 if a system is slower than the baseline by more than this, and by more than chance
    #[arg(long, value_name = "FRACTION", value_parser = parse_fraction)]
    pub(crate) tolerance: Option<f64>,
    /// Exit with 1 if a difference as large as this could have been missed on some workload (its
    /// verdict is `inconclusive` then)
    #[arg(long, value_name = "FRACTION", value_parser = parse_fraction)]
    pub(crate) require_resolution: Option<f64>,
    /// Show throughput for the price. Give the price of each system in any currency: A=100,B=150, or
    /// files in place of letters
    #[arg(long, value_name = "RECORD=PRICE", value_delimiter = ',')]
    pub(crate) price: Vec<String>,
    /// Write a page with the figures, HTML
    #[arg(long, short, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(flatten)]
    pub(crate) keys: WorkloadArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// A record, alone or with the record of its validation; or several records, to see them side
    /// by side
    #[arg(value_name = "RECORD", required = true)]
    pub(crate) records: Vec<PathBuf>,
    /// A page to look at, or a summary for the terminal
    #[arg(long, value_enum, default_value_t = FormatArg::Html)]
    pub(crate) format: FormatArg,
    /// The page [default: beside the record, .html; text goes to stdout]
    #[arg(long, short, value_name = "FILE")]
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
    /// The command whose page to print [default: ioscape itself]
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Option<String>,
    /// Write all pages here, ioscape.1, ioscape-run.1 and so on
    #[arg(long, short, value_name = "DIR", conflicts_with = "command")]
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
        Self::default()
    }

    /// The keys that were given.
    pub(crate) fn pairs(&self) -> Vec<(&'static str, &str)> {
        self.given.iter().map(|(key, value)| (*key, value.as_str())).collect()
    }
}
