//! Layer and clock of each format, and what therefore cannot be known from it.

use super::csv::columns::Meaning;
use super::{Columns, Format, Preset};
use crate::event::Layer;

const BELOW_CACHE: &str = "Block requests: what the page cache missed or wrote back. What the program read \
                           from the cache, its syncs, files and names are not in it.";
const NO_DURATIONS: &str = "The format has no durations.";
const NO_STREAMS: &str = "The format does not say who asked: processes and think time are unknown.";
const NO_CPU: &str =
    "Processor time was not measured: think time is the time between calls, waiting included.";

/// Where a format's events were seen.
pub(crate) fn layer(format: &Format) -> Layer {
    match format {
        Format::Strace | Format::PerfSyscalls => Layer::Syscall,
        Format::PerfBlock
        | Format::Blktrace
        | Format::Blkparse
        | Format::Vscsi
        | Format::Preset(_) => Layer::Block,
        Format::Iolog | Format::Clf => Layer::File,
        Format::Darshan | Format::Dxt => Layer::Library,
        Format::Oracle => Layer::KeyValue,
        Format::Csv(columns) => columns.layer,
    }
}

/// Who recorded it.
pub(crate) fn recorder(format: &Format) -> &'static str {
    match format {
        Format::Strace => "strace",
        Format::PerfBlock | Format::PerfSyscalls => "perf script",
        Format::Blktrace => "blktrace",
        Format::Blkparse => "blkparse",
        Format::Iolog => "fio iolog",
        Format::Darshan => "darshan-parser",
        Format::Dxt => "darshan-dxt-parser",
        Format::Vscsi => "vscsi",
        Format::Oracle => "oracleGeneral",
        Format::Clf => crate::site::ACCESS_LOG,
        Format::Csv(_) => "csv",
        Format::Preset(preset) => match preset {
            Preset::Msr => "MSR Cambridge",
            Preset::Systor => "SYSTOR '17",
            Preset::Alibaba => "Alibaba block traces",
            Preset::Tencent => "Tencent CBS",
            Preset::Fiu => "FIU",
            Preset::Spc => "SPC",
        },
    }
}

/// Its clock, in words.
pub(crate) fn clock(format: &Format) -> String {
    let words = match format {
        Format::Strace => "wall clock, 1 µs; it may have been set meanwhile",
        Format::PerfBlock | Format::PerfSyscalls => "perf's clock, 1 µs or 1 ns",
        Format::Blktrace | Format::Blkparse => "monotonic, 1 ns",
        Format::Iolog => "from the job's start, 1 µs",
        Format::Darshan => "spread evenly between the first and the last call of each kind",
        Format::Dxt => "from the job's start, 0.1 ms",
        Format::Vscsi => "1 µs",
        Format::Oracle => "1 s",
        Format::Clf => "wall clock, 1 s: requests of one second are put 1 ms apart",
        Format::Csv(columns) => return csv_clock(columns),
        Format::Preset(preset) => return csv_clock(&preset.columns()),
    };
    words.to_owned()
}

fn csv_clock(columns: &Columns) -> String {
    let unit_ns = columns.fields.iter().find_map(|(_, meaning)| match meaning {
        Meaning::Start(unit_ns) => Some(*unit_ns),
        _ => None,
    });
    match unit_ns {
        None => "none: lines are 1 ns apart".to_owned(),
        Some(1_000_000_000) => "seconds, with decimals where the file has them".to_owned(),
        Some(unit_ns) => format!("{unit_ns} ns"),
    }
}

/// Sentences on what the format does not hold, whatever is in a file of it.
pub(crate) fn known(format: &Format) -> Vec<String> {
    let mut limits: Vec<&str> = Vec::new();
    if layer(format) == Layer::Block {
        limits.push(BELOW_CACHE);
    }
    match format {
        Format::Strace => limits.extend([
            "Strace adds 20 to 35 µs to each call: durations and pauses are longer than they were.",
            "Pages of mapped files and requests of io_uring are not in it.",
            "Whether a file was there before it was opened for writing is a guess.",
            NO_CPU,
        ]),
        Format::PerfSyscalls => limits.extend([
            "Perf does not write paths: a file is another one each time it is opened.",
            "Pages of mapped files and requests of io_uring are not in it.",
            NO_CPU,
        ]),
        Format::PerfBlock | Format::Blktrace | Format::Blkparse => {
            limits.push("Streams are who was running: write-back is done by the kernel's threads.");
        }
        Format::Iolog => limits.extend([
            NO_DURATIONS,
            "Times are when requests were made; whether through the page cache is not in the log.",
        ]),
        Format::Darshan => limits.push(
            "Counters only: numbers of calls, bytes, and the share of consecutive calls are right; \
             sizes, places and times of single calls are spread evenly.",
        ),
        Format::Dxt => limits.push(
            "Darshan stops tracing a rank when its memory for traces is full; opens and syncs are \
             not in it.",
        ),
        Format::Vscsi => limits.push(NO_STREAMS),
        Format::Oracle => limits.extend([
            NO_DURATIONS,
            NO_STREAMS,
            "Whether objects were fetched or stored is not in the format: all count as fetched.",
            "Objects whose numbers take more than 32 bits are told apart by 32 bits of a hash.",
        ]),
        Format::Clf => limits.extend([
            NO_DURATIONS,
            "A log tells of requests: each became the open, stat, read and close of a server.",
            "A user is a host with an agent: several behind one address count as one.",
        ]),
        Format::Csv(columns) => limits.extend(missing(columns)),
        Format::Preset(preset) => limits.extend(missing(&preset.columns())),
    }
    limits.into_iter().map(str::to_owned).collect()
}

/// Whether a column is of a kind.
type Wanted = fn(&Meaning) -> bool;

/// Columns that would answer more.
fn missing(columns: &Columns) -> Vec<&'static str> {
    let absent: [(Wanted, &str); 4] = [
        (
            |meaning| matches!(meaning, Meaning::Start(_)),
            "There is no clock: only the order of the requests is known.",
        ),
        (
            |meaning| matches!(meaning, Meaning::Op),
            "There is no column of operations: all count as reads.",
        ),
        (|meaning| matches!(meaning, Meaning::Duration(_)), NO_DURATIONS),
        (|meaning| matches!(meaning, Meaning::Stream), NO_STREAMS),
    ];
    let is_absent = |wanted: Wanted| !columns.has(wanted);
    absent.iter().filter(|(wanted, _)| is_absent(*wanted)).map(|(_, limit)| *limit).collect()
}
