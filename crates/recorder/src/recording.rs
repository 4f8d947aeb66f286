//! What recordings have in common, by whichever means: who is recorded, sums meanwhile, the end.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use ioscape_trace::TraceInfo;
use ioscape_trace::event::Counted;

use crate::convert::Converter;
use crate::error::Error;
use crate::spawn::{Released, User, exit_code};
use crate::{proc, time};

/// How to record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// Programs in the kernel: every call for about a microsecond. Needs root, or `CAP_BPF` and
    /// `CAP_PERFMON`.
    Ebpf,
    /// The program is stopped at every call that concerns files. Needs no rights.
    Ptrace,
    /// The kernel's sums alone: no single call is seen.
    Counters,
}

impl fmt::Display for Means {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ebpf => "ebpf",
            Self::Ptrace => "ptrace",
            Self::Counters => "counters",
        })
    }
}

/// Who is recorded, with all that they start.
#[derive(Clone, Debug)]
pub enum Subject {
    /// A program to be started, with its arguments.
    Command(Vec<OsString>),
    /// A process that runs.
    Process(u32),
    /// The processes of a control group: its directory.
    Group(PathBuf),
}

/// What else to know.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Bytes of the ring between the kernel and the recorder: a power of two; 0 for 64 MiB.
    pub ring_bytes: u32,
    /// Whom the command runs as.
    pub user: Option<User>,
    /// The machine, for the trace.
    pub host: Option<serde_json::Value>,
}

/// Sums so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Since the begin.
    pub elapsed_s: f64,
    /// Calls and requests that concern files.
    pub calls: u64,
    /// Calls that read.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Calls that write.
    pub writes: u64,
    /// Their bytes.
    pub written_bytes: u64,
    /// Syncs.
    pub syncs: u64,
    /// Records that were lost.
    pub lost: u64,
    /// Processes that live.
    pub processes: usize,
}

/// How a recording goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// As it is.
    GoOn,
    /// It ends; the program does not.
    Finish,
    /// The program gets this signal.
    Pass(i32),
}

/// A finished recording.
#[derive(Debug)]
pub struct Recorded {
    /// What is known of the whole; the sink has got it.
    pub info: TraceInfo,
    /// Calls and requests.
    pub calls: u64,
    /// Streams that were seen.
    pub streams: u32,
    /// Share of bytes and page insertions that no event explains.
    pub unexplained_fraction: f64,
    /// Why the trace ends before the recording: it could not be written any more.
    pub cut: Option<std::io::Error>,
    program: Program,
}

/// The command of a recording, if it has one.
#[derive(Debug)]
pub(crate) enum Program {
    /// It was not started here.
    Foreign,
    /// It has ended, as `wait` tells it.
    Ended(i32),
    /// It goes on.
    Runs(Released),
}

impl Recorded {
    /// The command's exit code, as a shell sees it; waits for a command that goes on. `None` where
    /// there was none.
    ///
    /// # Errors
    /// When it could not be started, or waited for.
    pub fn exit_code(&self) -> Result<Option<i32>, Error> {
        match &self.program {
            Program::Foreign => Ok(None),
            Program::Ended(status) => Ok(Some(exit_code(*status))),
            Program::Runs(released) => loop {
                if let Some(status) = released.ended()? {
                    return Ok(Some(exit_code(status)));
                }
                time::wait_ms(20);
            },
        }
    }
}

/// What a tracer knows at the end of a recording, beside the events.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) means: Means,
    pub(crate) start_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) overhead_s: f64,
    pub(crate) lost: u64,
    pub(crate) limits: Vec<String>,
    pub(crate) cut: Option<std::io::Error>,
    pub(crate) program: Program,
}

/// Sums so far, of a converter.
pub(crate) fn progress(converter: &Converter, start_ns: u64, lost: u64) -> Progress {
    let totals = &converter.totals;
    Progress {
        elapsed_s: (time::now_ns() - start_ns) as f64 * 1e-9,
        calls: totals.calls,
        reads: totals.reads,
        read_bytes: totals.read,
        writes: totals.writes,
        written_bytes: totals.written,
        syncs: totals.syncs,
        lost,
        processes: converter.living(),
    }
}

/// Ends a recording: tables, sums, and what is known of the whole go to the sink.
pub(crate) fn conclude(mut converter: Converter, options: &Options, ending: Ending) -> Recorded {
    let Ending { means, start_ns, end_ns, overhead_s, lost, mut limits, mut cut, program } = ending;
    if matches!(program, Program::Foreign) && converter.living() > 0 {
        limits.push(part_of_a_service(end_ns.saturating_sub(start_ns) as f64 * 1e-9));
    }
    let told = converter.tell_tables(end_ns);
    cut = cut.or(told.err());
    let (inserted, unexplained) = converter.pages();
    let counted = converter.totals.counted;
    let counts = Counted {
        read_bytes: counted.read,
        written_bytes: counted.written,
        storage_read_bytes: counted.storage_read,
        storage_written_bytes: counted.storage_written,
        pages_inserted: inserted,
        pages_unexplained: unexplained,
        bytes_unexplained: converter.totals.bytes_unexplained(),
    };
    let page_bytes = time::page_bytes();
    let devices = converter.devices().into_iter();
    let info = TraceInfo {
        recorder: means.to_string(),
        clock: "CLOCK_MONOTONIC".to_owned(),
        elapsed_s: end_ns.saturating_sub(start_ns) as f64 * 1e-9,
        cpu_s: (converter.totals.cpu_ns > 0).then_some(converter.totals.cpu_ns as f64 * 1e-9),
        overhead_s,
        lost,
        page_bytes,
        counted: Some(counts),
        read_ahead_kb: devices
            .filter_map(|device| Some((device, proc::read_ahead_kb(device)?)))
            .collect(),
        exit_code: match &program {
            Program::Ended(status) => Some(exit_code(*status)),
            _ => None,
        },
        host: options.host.clone(),
        limits,
        ..TraceInfo::default()
    };
    let (calls, streams) = (converter.totals.calls, converter.streams());
    cut = cut.or(converter.finish(&info).err());
    Recorded {
        calls,
        streams,
        unexplained_fraction: unexplained_fraction(&counts, page_bytes),
        info,
        cut,
        program,
    }
}

/// Warns that data which running processes reuse after more than `seconds` look as if they were used once.
fn part_of_a_service(seconds: f64) -> String {
    format!(
        "{seconds:.1} s of processes that ran before and ran on: data that they use again after a \
         longer time looks as if it were used once, so they may need more memory than this says; \
         record for longer and compare"
    )
}

/// Bytes and page insertions that no event explains, over all of them.
fn unexplained_fraction(counts: &Counted, page_bytes: u64) -> f64 {
    let all = counts.read_bytes + counts.written_bytes + counts.pages_inserted * page_bytes;
    let unexplained = counts.bytes_unexplained + counts.pages_unexplained * page_bytes;
    if all == 0 { 0.0 } else { unexplained as f64 / all as f64 }
}
