//! Traces of others: what tracers, simulators and published collections wrote becomes a trace of
//! ours. Every format is read from front to back in memory that does not grow with the file; only
//! the tables of files and streams do.

mod blkparse;
mod blktrace;
mod clf;
mod csv;
mod darshan;
mod dxt;
mod input;
mod iolog;
mod ledger;
mod limits;
mod lines;
mod oracle;
mod pairing;
mod paths;
mod perf;
mod records;
mod scan;
mod source;
mod strace;
mod syscalls;
mod vscsi;

use std::io;

use crate::event::{Event, Sink, TraceInfo};
use ledger::{Ledger, Tally};
use lines::Lines;
use pairing::Pairing;
use source::{Merge, Order, Source};

pub use csv::{Columns, MapError, Preset};
pub use input::Input;
pub use ledger::Malformed;

/// Files are of another format where more than one line in so many cannot be read.
const MALFORMED_SHARE: u64 = 20;
/// Lines after which a file of another format is given up before its end.
const LINES_MIN: u64 = 100_000;
const PAGE_BYTES: u64 = 4096;

/// A format that traces come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text of strace.
    Strace,
    /// Block requests in text of `perf script`.
    PerfBlock,
    /// System calls in text of `perf script`.
    PerfSyscalls,
    /// Binary files of blktrace, one for each processor.
    Blktrace,
    /// Text of blkparse.
    Blkparse,
    /// fio's logs of I/O, versions 2 and 3.
    Iolog,
    /// Text of `darshan-parser`.
    Darshan,
    /// Text of `darshan-dxt-parser`.
    Dxt,
    /// Records of `VMware`'s vscsi.
    Vscsi,
    /// Records of libCacheSim's oracleGeneral.
    Oracle,
    /// Access logs of web servers, Common and Combined Log Format.
    Clf,
    /// Columns.
    Csv(Columns),
    /// Columns of a trace that is known.
    Preset(Preset),
}

/// How an import went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Events that were given to the sink.
    pub events: u64,
    /// Lines or records that were read.
    pub lines: u64,
    /// Of these, lines that could not be read.
    pub malformed: u64,
    /// The first three of them.
    pub first_malformed: Vec<Malformed>,
    /// Lines that are of the format, but no I/O.
    pub passed_over: u64,
    /// Given to the sink at the end.
    pub info: TraceInfo,
}

/// Why there is no trace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or unpacked.
    #[error("cannot read {file}: {source}")]
    Read {
        /// Its name.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// The sink did not take an event.
    #[error("cannot write the trace: {0}")]
    Write(#[source] io::Error),
    /// Too many lines are none of the format.
    #[error(
        "{malformed} of {lines} lines are not of this format, the first is {}:{}: {}",
        .first.file, .first.line, .first.text
    )]
    OtherFormat {
        /// Lines that could not be read.
        malformed: u64,
        /// All lines so far.
        lines: u64,
        /// The first that could not be read.
        first: Malformed,
    },
    /// There is nothing in the files.
    #[error("there is no I/O in {0}")]
    Empty(String),
}

/// Reads files of one format, as one trace, and gives it to a sink. Files are merged by their
/// times.
///
/// # Errors
/// When a file cannot be read, when more than 5 % of the lines are of another format, when there
/// is no event, or when the sink takes no more.
pub fn import(
    format: &Format,
    inputs: Vec<Input<'_>>,
    sink: &mut dyn Sink,
) -> Result<Summary, Error> {
    let shown = inputs.first().map(|input| input.name.clone()).unwrap_or_default();
    let mut sources: Vec<Box<dyn Source + '_>> = Vec::new();
    for (number, input) in inputs.into_iter().enumerate() {
        sources.push(Box::new(Named::new(format, input, number as u64)?));
    }
    let mut ledger = Ledger::default();
    let mut stage = Stage { sink, order: Order::default(), origin_ns: None, end_ns: 0, events: 0 };
    let mut failed = None;
    let mut merged = Merge::new(sources);
    let mut pairing = Pairing::default();
    let mut give = |stage: &mut Stage<'_>, event| {
        if failed.is_none() {
            failed = stage.take(event).err();
        }
        failed.is_none()
    };
    loop {
        let item = merged.next(&mut ledger).map_err(|error| unread(error, &shown))?;
        let Some(item) = item else { break };
        let mut goes_on = true;
        pairing.push(item, &mut ledger, &mut |event| goes_on &= give(&mut stage, event));
        if !goes_on || is_hopeless(&ledger.tally) {
            break;
        }
    }
    pairing.finish(&mut ledger, &mut |event| {
        give(&mut stage, event);
    });
    if let Some(error) = failed {
        return Err(Error::Write(error));
    }
    judge(&ledger.tally)?;
    if stage.is_empty() {
        return Err(Error::Empty(shown));
    }
    stage.finish(format, ledger).map_err(Error::Write)
}

/// A file's reader, which says the file's name with what went wrong.
struct Named<'a> {
    name: String,
    source: Box<dyn Source + 'a>,
}

/// The file whose reading failed, around the reason.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
struct InFile {
    name: String,
    source: io::Error,
}

impl<'a> Named<'a> {
    fn new(format: &Format, input: Input<'a>, number: u64) -> Result<Self, Error> {
        let Input { name, bytes } = input;
        let bytes =
            input::unpacked(bytes).map_err(|source| Error::Read { file: name.clone(), source })?;
        let lines = Lines::new(bytes);
        let file = name.clone();
        let source: Box<dyn Source + 'a> = match format {
            Format::Strace => Box::new(strace::Strace::new(file, lines)),
            Format::PerfBlock => Box::new(perf::Perf::new(file, lines, perf::Wanted::Block)),
            Format::PerfSyscalls => Box::new(perf::Perf::new(file, lines, perf::Wanted::Calls)),
            Format::Blktrace => Box::new(blktrace::Blktrace::new(file, lines)),
            Format::Blkparse => Box::new(blkparse::Blkparse::new(file, lines)),
            Format::Iolog => Box::new(iolog::Iolog::new(file, lines, number)),
            Format::Darshan => Box::new(darshan::Darshan::new(file, lines)),
            Format::Dxt => Box::new(dxt::Dxt::new(file, lines)),
            Format::Vscsi => Box::new(vscsi::Vscsi::new(file, lines)),
            Format::Oracle => Box::new(oracle::Oracle::new(file, lines)),
            Format::Clf => Box::new(clf::Clf::new(file, lines)),
            Format::Csv(columns) => Box::new(csv::Csv::new(file, lines, columns.clone())),
            Format::Preset(preset) => Box::new(csv::Csv::new(file, lines, preset.columns())),
        };
        Ok(Self { name, source })
    }
}

impl Source for Named<'_> {
    fn next(&mut self, ledger: &mut Ledger) -> io::Result<Option<source::Item>> {
        self.source.next(ledger).map_err(|source| {
            io::Error::new(source.kind(), InFile { name: self.name.clone(), source })
        })
    }
}

fn unread(error: io::Error, shown: &str) -> Error {
    match error.downcast::<InFile>() {
        Ok(InFile { name, source }) => Error::Read { file: name, source },
        Err(source) => Error::Read { file: shown.to_owned(), source },
    }
}

/// Whether so many lines are of another format that the rest need not be read.
fn is_hopeless(tally: &Tally) -> bool {
    tally.lines >= LINES_MIN && tally.malformed > tally.lines / 2
}

fn judge(tally: &Tally) -> Result<(), Error> {
    let Tally { lines, malformed, .. } = *tally;
    match tally.first.first() {
        Some(first) if malformed > lines / MALFORMED_SHARE => {
            Err(Error::OtherFormat { malformed, lines, first: first.clone() })
        }
        _ => Ok(()),
    }
}

/// On its way to the sink: put in order, with times from the first event.
struct Stage<'s> {
    sink: &'s mut dyn Sink,
    order: Order,
    /// The first event's start, by the format's clock.
    origin_ns: Option<u64>,
    end_ns: u64,
    events: u64,
}

impl Stage<'_> {
    fn take(&mut self, event: Event) -> io::Result<()> {
        match self.order.push(event) {
            Some(earliest) => self.give(earliest),
            None => Ok(()),
        }
    }

    fn give(&mut self, event: Event) -> io::Result<()> {
        let origin_ns = *self.origin_ns.get_or_insert(event.start_ns);
        let end_ns = event.start_ns.saturating_add(event.duration_ns.unwrap_or(0));
        self.end_ns = self.end_ns.max(end_ns);
        self.events += 1;
        let start_ns = event.start_ns.saturating_sub(origin_ns);
        self.sink.event(&Event { start_ns, ..event })
    }

    fn is_empty(&self) -> bool {
        self.events == 0 && self.order.is_empty()
    }

    fn finish(mut self, format: &Format, mut ledger: Ledger) -> io::Result<Summary> {
        while let Some(event) = self.order.pop() {
            self.give(event)?;
        }
        let origin_ns = self.origin_ns.unwrap_or(0);
        ledger.hand_over(self.sink, origin_ns, self.end_ns)?;
        let mut limits = limits::known(format);
        limits.append(&mut ledger.limits);
        let Tally { lines, malformed, first, passed_over } = ledger.tally;
        let info = TraceInfo {
            layer: limits::layer(format),
            recorder: limits::recorder(format).to_owned(),
            clock: limits::clock(format),
            elapsed_s: (self.end_ns - origin_ns) as f64 / 1e9,
            started_unix_s: matches!(format, Format::Clf).then_some(origin_ns as f64 / 1e9),
            malformed,
            page_bytes: PAGE_BYTES,
            limits,
            ..TraceInfo::default()
        };
        self.sink.finish(&info)?;
        let events = self.events;
        Ok(Summary { events, lines, malformed, first_malformed: first, passed_over, info })
    }
}
