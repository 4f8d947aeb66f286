//! `ioscape trace import`: traces that others recorded become traces of ours.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use ioscape_trace::import::{Columns, Error, Format, Input, Preset, Summary, import as read_all};
use ioscape_trace::{Names, StoreError, StoreWriter, TraceInfo};

use crate::exit::{Exit, usage};
use crate::interrupt::Interrupt;
use crate::out_file;
use crate::output::say;

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct ImportArgs {
    /// What wrote the files
    #[arg(value_name = "FORMAT", value_enum, hide_possible_values = true)]
    from: Recorder,
    /// The files, plain, gz or zst; several are merged by time; - is standard input
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// The trace to write, Parquet [default: beside the first file, .trace]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Columns of csv, counted from 1, and their units, as in t=5us,off=3B,len=4B,op=2: the time is
    /// in column 5, in microseconds
    #[arg(long, value_name = "COLUMNS")]
    map: Option<String>,
    /// Keep the names of files in the trace; without it only hashes, which cannot be traced back
    #[arg(long)]
    names: bool,
    /// No progress
    #[arg(short, long)]
    quiet: bool,
}

const AFTER: &str = "\
Formats: strace (best -f -ttt -T -y), perf-syscalls and perf-block (perf script), blktrace (binary, \
all processors' files at once), blkparse, fio-iolog (2 and 3), darshan (darshan-parser), dxt \
(darshan-dxt-parser), vscsi, oracle-general, clf (access logs of web servers, Common and Combined Log \
Format), csv with --map, and csv whose columns are known: msr, \
systor, alibaba, tencent, fiu, spc.

--map: t (when), dur (how long), op (read or write), off (offset), len (length), vol (volume; vol=2+3 takes two columns), stream (a \
number for who asked), each with its column. Units of time: ns, ft (100 ns), us, ms, s. Units of \
off and len: B, sec (a sector, 512 B), K, P (a page, 4096 B), M. Also sep= (what \
separates columns: comma, tab, blank, or a punctuation mark itself), skip= (how many lines at the \
top to leave out), layer= (where requests were recorded: block, file or syscall).";

/// One word for each format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Recorder {
    Strace,
    PerfSyscalls,
    PerfBlock,
    Blktrace,
    Blkparse,
    FioIolog,
    Darshan,
    Dxt,
    Vscsi,
    OracleGeneral,
    Clf,
    Csv,
    Msr,
    Systor,
    Alibaba,
    Tencent,
    Fiu,
    Spc,
}

/// Reads the files, writes the trace.
pub(crate) fn import(args: &ImportArgs) -> anyhow::Result<Exit> {
    let format = format(args.from, args.map.as_deref())?;
    let first = args.files.first().ok_or_else(|| usage("name a file to import"))?;
    let out = match &args.out {
        Some(out) => out.clone(),
        None if first.as_os_str() == "-" => {
            return Err(usage("name the trace with -o: standard input has no name"));
        }
        None => first.with_extension("trace"),
    };
    out_file::check_new(&out, "--out")?;
    let interrupt = Interrupt::catch()?;
    let progress = Progress::new(&args.files, args.quiet);
    let inputs = args.files.iter().map(|path| input(path, &progress, &interrupt));
    let inputs = inputs.collect::<anyhow::Result<Vec<_>>>()?;
    let trace = Unfinished::create(&out)?;
    let names = if args.names { Names::Kept } else { Names::Hashed };
    let outcome = write(&format, inputs, &trace, names);
    progress.clear();
    if let Some(signal) = interrupt.signal() {
        return Ok(Exit::Signal(signal));
    }
    let summary = outcome?;
    trace.keep();
    report(&summary, &out);
    Ok(Exit::Fine)
}

fn write(
    format: &Format,
    inputs: Vec<Input<'_>>,
    trace: &Unfinished,
    names: Names,
) -> anyhow::Result<Summary> {
    let unwritten = |error: StoreError| out_file::failed(&trace.path, error.into(), "--out");
    let file = BufWriter::new(trace.file.try_clone()?);
    let store = StoreWriter::new(file, names, &TraceInfo::default()).map_err(unwritten)?;
    let mut store = store.with_full_groups();
    read_all(format, inputs, &mut store).map_err(|error| match error {
        Error::Write(error) => out_file::failed(&trace.path, error, "--out"),
        Error::OtherFormat { .. } | Error::Empty(_) => usage(error.to_string()),
        other => anyhow::Error::from(other),
    })
}

/// The format that was typed.
fn format(from: Recorder, map: Option<&str>) -> anyhow::Result<Format> {
    if map.is_some() && from != Recorder::Csv {
        return Err(usage("--map says which columns csv has; other formats need none"));
    }
    Ok(match from {
        Recorder::Strace => Format::Strace,
        Recorder::PerfSyscalls => Format::PerfSyscalls,
        Recorder::PerfBlock => Format::PerfBlock,
        Recorder::Blktrace => Format::Blktrace,
        Recorder::Blkparse => Format::Blkparse,
        Recorder::FioIolog => Format::Iolog,
        Recorder::Darshan => Format::Darshan,
        Recorder::Dxt => Format::Dxt,
        Recorder::Vscsi => Format::Vscsi,
        Recorder::OracleGeneral => Format::Oracle,
        Recorder::Clf => Format::Clf,
        Recorder::Csv => {
            let map =
                map.ok_or_else(|| usage("csv needs its columns: --map t=5us,off=3B,len=4B,op=2"))?;
            Format::Csv(Columns::parse(map).map_err(|error| usage(error.to_string()))?)
        }
        Recorder::Msr => Format::Preset(Preset::Msr),
        Recorder::Systor => Format::Preset(Preset::Systor),
        Recorder::Alibaba => Format::Preset(Preset::Alibaba),
        Recorder::Tencent => Format::Preset(Preset::Tencent),
        Recorder::Fiu => Format::Preset(Preset::Fiu),
        Recorder::Spc => Format::Preset(Preset::Spc),
    })
}

fn input(
    path: &Path,
    progress: &Progress,
    interrupt: &Interrupt,
) -> anyhow::Result<Input<'static>> {
    let bytes: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        let wrong = |error: io::Error| usage(format!("cannot read {}: {error}", path.display()));
        let file = File::open(path).map_err(wrong)?;
        if file.metadata().map_err(wrong)?.is_dir() {
            return Err(usage(format!("{} is a directory: name files", path.display())));
        }
        Box::new(file)
    };
    let (bar, stop) = (progress.bar.clone(), interrupt.flag());
    let name = path.display().to_string();
    Ok(Input { name, bytes: Box::new(Watched { bytes, bar, stop }) })
}

/// A file that shows how far it was read, and ends when the program is asked to stop.
struct Watched {
    bytes: Box<dyn Read>,
    bar: Option<ProgressBar>,
    stop: Arc<AtomicBool>,
}

impl Read for Watched {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("stopped"));
        }
        let count = match self.bytes.read(into) {
            // A signal: the loops around readers would try again and again.
            Err(error) if error.kind() == ErrorKind::Interrupted => return self.read(into),
            read => read?,
        };
        if let Some(bar) = &self.bar {
            bar.inc(count as u64);
        }
        Ok(count)
    }
}

/// Bytes read of those in the files, on terminals.
struct Progress {
    bar: Option<ProgressBar>,
}

impl Progress {
    fn new(files: &[PathBuf], quiet: bool) -> Self {
        let moves = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
        let is_shown = !quiet && moves && io::stderr().is_terminal();
        let bar = is_shown.then(|| {
            let sizes = files.iter().filter_map(|path| fs::metadata(path).ok());
            let bar = ProgressBar::new(sizes.map(|file| file.len()).sum());
            let style = "{bar:20} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left";
            let style = ProgressStyle::with_template(style);
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar
        });
        Self { bar }
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A trace that goes away unless it is kept.
struct Unfinished {
    path: PathBuf,
    file: File,
    is_kept: std::cell::Cell<bool>,
}

impl Unfinished {
    fn create(path: &Path) -> anyhow::Result<Self> {
        let file =
            File::create_new(path).map_err(|error| out_file::failed(path, error, "--out"))?;
        Ok(Self { path: path.to_owned(), file, is_kept: false.into() })
    }

    fn keep(&self) {
        self.is_kept.set(true);
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_kept.get() {
            fs::remove_file(&self.path).ok();
        }
    }
}

fn report(summary: &Summary, out: &Path) {
    let Summary { events, lines, malformed, .. } = summary;
    if *malformed > 0 {
        say(&format!(
            "ioscape: {malformed} of {lines} lines could not be read, the first of them:"
        ));
        for bad in &summary.first_malformed {
            say(&format!("  {}:{}: {}", bad.file, bad.line, bad.text));
        }
    }
    let elapsed_s = summary.info.elapsed_s;
    say(&format!("trace  {} ({events} events in {elapsed_s:.1} s)", out.display()));
}
