//! `ioscape trace record`: a program runs as if nobody looked, and a trace of what it does to files
//! is written meanwhile.

mod live;
mod trace_file;

use std::cell::Cell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::rc::Rc;

use anyhow::Context;
use clap::{Args, ValueEnum};
use ioscape_engine::{Clock, host};
use ioscape_model::units::{
    parse_duration_s, parse_size, show_bytes, show_percent, show_seconds, three_digits,
};
use ioscape_recorder::{
    Error, Flow, Means, Options, Progress, Recorded, Subject, User, record as record_subject,
    refusal,
};
use ioscape_trace::Names;
use signal_hook::consts::SIGINT;

use crate::exit::{Exit, usage};
use crate::interrupt::Interrupt;
use crate::origin::now_text;
use crate::output::say;
use live::Live;
use trace_file::TraceFile;

const EXIT_CODES: &str = "\
Exit codes: the command's own; 128+n if signal n ended it; 125 it could not be recorded, 126 it \
cannot be run, 127 there is no such command. Without a command: 0, or 130 after Ctrl-C and 143 after \
SIGTERM, with the trace complete.

Examples:
  ioscape trace record -- tar cf home.tar /home
  ioscape trace record --pid 4711 --for 1m -o busy.parquet";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_long_help = EXIT_CODES)]
pub(crate) struct RecordArgs {
    /// Where the trace goes; a trace that is there is replaced [default: ioscape-trace-TIME.parquet in the current directory, in UTC]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// How to record [default: the first of these that is allowed here]
    #[arg(long, value_enum, value_name = "MEANS")]
    by: Option<By>,
    /// End the recording, but not the program, after this time: 30s, 10m
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration_s)]
    duration_s: Option<f64>,
    /// Run the command as this user
    #[arg(long, value_name = "NAME", conflicts_with_all = ["pid", "cgroup"])]
    user: Option<String>,
    /// End the recording, but not the program, when the trace is about this large
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    max_size: Option<u64>,
    /// Keep paths in the trace, which otherwise has only hashes of them
    #[arg(long)]
    names: bool,
    /// Record a process that runs, with its children, until it ends or Ctrl-C
    #[arg(long, value_name = "PID", conflicts_with = "cgroup")]
    pid: Option<u32>,
    /// Record the processes of a control group until Ctrl-C: its directory below /sys/fs/cgroup
    #[arg(long, value_name = "DIRECTORY")]
    cgroup: Option<PathBuf>,
    /// Say nothing unless something is wrong
    #[arg(short, long)]
    quiet: bool,
    /// The program to start, with its arguments
    #[arg(last = true, value_name = "COMMAND", required_unless_present_any = ["pid", "cgroup"])]
    #[arg(conflicts_with_all = ["pid", "cgroup"])]
    command: Vec<OsString>,
}

/// Ways to record, best first.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum By {
    /// Programs in the kernel: about a microsecond for each call; needs root
    Ebpf,
    /// Stops the program at each call, which takes tens of microseconds; needs no rights, but
    /// records only a command that it starts itself
    Ptrace,
    /// The kernel's totals only, no single calls; needs no rights
    Counters,
}

impl By {
    fn means(self) -> Means {
        match self {
            Self::Ebpf => Means::Ebpf,
            Self::Ptrace => Means::Ptrace,
            Self::Counters => Means::Counters,
        }
    }
}

/// Records, and ends as the command ended.
pub(crate) fn record(args: &RecordArgs, clock: Clock) -> anyhow::Result<Exit> {
    let subject = subject(args)?;
    let user = args.user.as_deref().map(User::named).transpose();
    let user = user.map_err(|error| usage(error.to_string()))?;
    let means = choose(args, &subject)?;
    let interrupt = Interrupt::catch()?;
    let written = Rc::new(Cell::new(0));
    let path = args.out.clone().unwrap_or_else(default_path);
    let names = if args.names { Names::Kept } else { Names::Hashed };
    let mut file = TraceFile::create(&path, names, Rc::clone(&written))?;
    let host = host::describe(&clock);
    let ring_bytes = ring_bytes(&host);
    let host = serde_json::to_value(host).context("cannot describe this machine")?;
    let options = Options { user, host: Some(host), ring_bytes };
    let is_own = matches!(subject, Subject::Command(_));
    let mut live = Live::new(args.quiet || is_own);
    let mut control = Control { args, interrupt: &interrupt, written, is_own, passed: false };
    let mut tick = |progress: &Progress| {
        live.show(progress);
        control.flow(progress)
    };
    let recorded = record_subject(means, &subject, &options, &mut file, &mut tick);
    drop(live);
    let recorded = match recorded {
        Ok(recorded) => recorded,
        Err(error) => {
            file.discard(&path);
            return Ok(not_recorded(&error));
        }
    };
    tell(args, &recorded, &path);
    match recorded.exit_code() {
        Ok(Some(code)) => Ok(Exit::Command(code as u8)),
        Ok(None) => Ok(interrupt.signal_or(Exit::Fine)),
        Err(error) => Ok(not_recorded(&error)),
    }
}

/// Bytes of the ring between the kernel and the recorder: a small share of the memory, for what a limit
/// gives to the recorder the program misses for its files. 8 MiB hold a fifth of a second of `tar x`.
fn ring_bytes(host: &ioscape_model::Host) -> u32 {
    const SHARE: u64 = 32;
    let limit_bytes = host.memory_limit_bytes.unwrap_or(u64::MAX);
    let memory_bytes = limit_bytes.min(host.memory_available_bytes);
    1 << (memory_bytes / SHARE).clamp(2 << 20, 64 << 20).ilog2()
}

fn subject(args: &RecordArgs) -> anyhow::Result<Subject> {
    if let Some(group) = &args.cgroup {
        if !group.join("cgroup.procs").is_file() {
            let shown = group.display();
            return Err(usage(format!(
                "{shown} is no control group: name one below /sys/fs/cgroup"
            )));
        }
        return Ok(Subject::Group(group.clone()));
    }
    if let Some(process) = args.pid {
        if !PathBuf::from(format!("/proc/{process}")).is_dir() {
            return Err(usage(format!("there is no process {process}")));
        }
        return Ok(Subject::Process(process));
    }
    Ok(Subject::Command(args.command.clone()))
}

/// The means asked for, or the best that is allowed; says which, and why not a better one.
fn choose(args: &RecordArgs, subject: &Subject) -> anyhow::Result<Means> {
    if let Some(by) = args.by {
        let means = by.means();
        return match refusal(means, subject) {
            None => Ok(means),
            Some(error) => Err(usage(format!("no recording by {means} here: {error}"))),
        };
    }
    let mut refused = Vec::new();
    for means in [Means::Ebpf, Means::Ptrace] {
        match refusal(means, subject) {
            None => {
                say_means(args, means, &refused);
                return Ok(means);
            }
            Some(error) => refused.push(format!("{means} is refused ({error})")),
        }
    }
    say_means(args, Means::Counters, &refused);
    Ok(Means::Counters)
}

fn say_means(args: &RecordArgs, means: Means, refused: &[String]) {
    let unseen = match means {
        Means::Ebpf => return,
        Means::Ptrace => "mapped pages, io_uring and the page cache are not seen",
        Means::Counters => "no single call is seen, only sums",
    };
    if !args.quiet {
        say(&format!("ioscape: recording by {means}: {}; {unseen}", refused.join(", ")));
    }
}

/// A place whose name nobody has taken.
fn default_path() -> PathBuf {
    let time: String = now_text().chars().filter(|c| !['-', ':'].contains(c)).collect();
    PathBuf::from(format!("ioscape-trace-{time}.parquet"))
}

/// Why there is no trace, and the exit code that says so.
fn not_recorded(error: &Error) -> Exit {
    say(&format!("ioscape: {error}"));
    Exit::Command(match error {
        Error::NotFound(_) => 127,
        Error::NotExecutable { .. } => 126,
        _ => 125,
    })
}

/// Decides how a recording goes on.
struct Control<'a> {
    args: &'a RecordArgs,
    interrupt: &'a Interrupt,
    /// Bytes of the trace so far.
    written: Rc<Cell<u64>>,
    /// There is a command, which gets signals itself.
    is_own: bool,
    passed: bool,
}

impl Control<'_> {
    fn flow(&mut self, progress: &Progress) -> Flow {
        let is_over = self.args.duration_s.is_some_and(|end_s| progress.elapsed_s >= end_s);
        let is_full = self.args.max_size.is_some_and(|bytes| self.written.get() >= bytes);
        if is_over || is_full {
            return Flow::Finish;
        }
        match self.interrupt.signal() {
            None => Flow::GoOn,
            Some(_) if !self.is_own => Flow::Finish,
            // The terminal has given Ctrl-C to the command as well.
            Some(signal) if signal == SIGINT as usize || self.passed => Flow::GoOn,
            Some(signal) => {
                self.passed = true;
                Flow::Pass((signal as u32).cast_signed())
            }
        }
    }
}

/// Says in a line what was recorded, and in others what is doubtful.
fn tell(args: &RecordArgs, recorded: &Recorded, path: &std::path::Path) {
    let info = &recorded.info;
    if let Some(error) = &recorded.cut {
        say(&format!("ioscape: the trace ends early, for it could not be written: {error}"));
    }
    if info.lost > 0 {
        let all = info.lost + recorded.calls;
        let share = show_percent(info.lost as f64 / all as f64);
        say(&format!(
            "ioscape: {} records were lost ({share}): the program was faster than the \
                      recorder",
            info.lost
        ));
    }
    if args.quiet {
        return;
    }
    let counted = info.counted.unwrap_or_default();
    let cost = if info.overhead_s > 0.0 {
        format!("; a call took {} µs longer", three_digits(info.overhead_s * 1e6))
    } else {
        String::new()
    };
    say(&format!(
        "ioscape: {}: {} calls of {} threads in {} by {}, {} read and {} written by the kernel's \
         count, {} unexplained{cost}",
        path.display(),
        recorded.calls,
        recorded.streams,
        show_seconds(info.elapsed_s),
        info.recorder,
        show_bytes(counted.read_bytes as f64),
        show_bytes(counted.written_bytes as f64),
        show_percent(recorded.unexplained_fraction),
    ));
}
