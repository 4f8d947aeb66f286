//! `ioscape replay`: what a trace says was done, or load made from an application's model, is done on
//! files of our own and measured.

mod load;
mod site;
mod web;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use ioscape_analysis::estimate;
use ioscape_engine::{Clock, Error, RunId, Stopwatch, target};
use ioscape_experiment::bench::clear_leftovers;
use ioscape_experiment::replay::{self, Load, ReplaySite, Settings, Step, Surveyed};
use ioscape_model::units::parse_duration_s;
use ioscape_model::{
    End, Header, Line, Method, Point, Ranges, Record, Rules, Spacing, Start, Warning,
};
use ioscape_trace::regenerate::Scale;

use crate::args::Common;
use crate::bench;
use crate::exit::{Exit, usage};
use crate::interrupt::Interrupt;
use crate::journal::{self, Journal};
use crate::limits;
use crate::origin::{drawn_seed, origin};
use crate::out_file;
use crate::output::{self, answer, say};
use crate::page_file;
use crate::trace::source;

/// Times between calls are divided by this at most; beyond it `max` is meant.
const SPEED_MAX: f64 = 1000.0;
const SCALE_MAX: f64 = 1000.0;
const EXAMPLES: &str = "\
Examples:
  ioscape trace record -o build.parquet -- make -j4
  ioscape replay build.parquet /mnt/new
  ioscape replay build.parquet /mnt/new --speed max --repeats 5 --start cold
  ioscape trace model build.parquet -o build.json
  ioscape replay build.json /mnt/new --scale users=4,data=10 --for 5m
  ioscape trace import clf access.log -o log.trace && ioscape trace model log.trace -o site.json
  ioscape replay site.json /mnt/new --for 5m
  ioscape replay site.json http://127.0.0.1:8080/ --docroot /srv/www --users 200 --for 5m";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// A trace (of `ioscape trace record` or `trace import`), or a model (of `trace model`) to make
    /// load from; some models are included, such as sqlite-wal
    #[arg(value_name = "TRACE")]
    source: PathBuf,
    /// A directory: files are made in a directory of their own below it, and removed afterwards. Or, for
    /// the model of a web site, the address of a server, http://HOST:PORT/: its visitors ask it by HTTP
    #[arg(value_name = "TARGET")]
    target: PathBuf,
    /// Speed: 1 keeps the recorded time between calls, 2x halves it, max leaves it out
    #[arg(long, value_name = "SPEED", default_value = "1", value_parser = parse_speed)]
    speed: Speed,
    /// When a call begins
    #[arg(long, value_enum, value_name = "WHEN", default_value_t = Arrivals::Closed)]
    arrivals: Arrivals,
    /// Data in the page cache at the start
    #[arg(long, value_enum, value_name = "STATE", default_value_t = StartArg::AsRecorded)]
    start: StartArg,
    /// For a model. users=N: N times as many threads, each as busy as before, on the same data.
    /// data=N: N times as many files; between two uses of a page, N times as much other data is
    /// touched. rate=N: N times as many calls per second. read=N: the share of requests that read,
    /// 0 to 1
    #[arg(long, value_name = "users=N,data=N,rate=N,read=N", value_parser = parse_scale)]
    scale: Option<Scale>,
    /// For a model: repeat it from its start for this long [default: run it once]
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_duration_s)]
    duration_s: Option<f64>,
    /// For the model of a web site: N users at a time, each begins a new session when its own is over
    /// [default: sessions begin as in the log]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=20_000))]
    users: Option<u32>,
    /// For the model of a web site: this many files [default: as many as were asked for in the log]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    #[arg(conflicts_with = "urls")]
    files: Option<u64>,
    /// For the model of a web site: as it will be so long after its log, if it grows as it did month by
    /// month, such as 6months
    #[arg(long, value_name = "MONTHS", value_parser = site::parse_months)]
    project: Option<f64>,
    /// For a server: the directory that it serves at its address. The files are made there, in a directory
    /// of their own, and removed afterwards [default: the server has them, as `ioscape serve` does]
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "urls")]
    docroot: Option<PathBuf>,
    /// For a server: ask for its own files; a path in each line, the one asked for most first
    #[arg(long, value_name = "FILE")]
    urls: Option<PathBuf>,
    /// For a server: threads that ask; one is enough for some ten thousand requests per second [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: Option<u32>,
    /// Replay this many times, in a directory each with files laid out anew
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: u32,
    /// The record; by default ioscape-replay-TIME.jsonl in the current directory, in UTC
    #[arg(long, short, value_name = "RECORD")]
    out: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// Treatment of the time between calls.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Speed {
    /// It is divided by this.
    Times(f64),
    /// It is left out.
    Max,
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(times) => write!(f, "{times}"),
            Self::Max => f.write_str("max"),
        }
    }
}

fn parse_speed(text: &str) -> Result<Speed, String> {
    if text == "max" {
        return Ok(Speed::Max);
    }
    let times: f64 = text
        .strip_suffix('x')
        .unwrap_or(text)
        .parse()
        .map_err(|_| "a speed is 1, a number such as 2x or 0.5, or max".to_owned())?;
    if !(1.0 / SPEED_MAX..=SPEED_MAX).contains(&times) {
        return Err(format!("a speed lies between {} and {SPEED_MAX}, or is max", 1.0 / SPEED_MAX));
    }
    Ok(Speed::Times(times))
}

fn parse_scale(text: &str) -> Result<Scale, String> {
    let mut scale = Scale::default();
    for part in text.split(',') {
        let (key, value) = part.split_once('=').ok_or_else(|| {
            format!("`{part}` is no part of a scale: users=2, data=10, rate=0.5, read=0.9")
        })?;
        let value: f64 = value.parse().map_err(|_| format!("{key}={value} is no number"))?;
        let most = if key == "read" { 1.0 } else { SCALE_MAX };
        let least = if key == "read" { 0.0 } else { 1.0 / SCALE_MAX };
        if !(least..=most).contains(&value) {
            return Err(format!("{key}={value} lies outside {least} to {most}"));
        }
        match key {
            "users" => scale.users = value,
            "data" => scale.data = value,
            "rate" => scale.rate = value,
            "read" => scale.read = Some(value),
            _ => return Err(format!("there is no {key} to scale: users, data, rate, read")),
        }
    }
    Ok(scale)
}

/// When a call begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Arrivals {
    /// After the previous call of the same thread has ended, plus the recorded pause
    Closed,
    /// At its recorded time, even if earlier calls have not ended, except those that it depends on
    Open,
}

/// The page cache at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum StartArg {
    /// Data that were cached when it was recorded; data of unknown state count as cached
    AsRecorded,
    /// None
    Cold,
    /// All
    Warm,
}

impl ReplayArgs {
    /// Changes to a model; `None` where none was asked for.
    fn scale(&self) -> Option<Scale> {
        let is_asked = self.scale.is_some() || self.duration_s.is_some();
        is_asked.then(|| Scale { for_s: self.duration_s, ..self.scale.unwrap_or_default() })
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        let start = match self.start {
            StartArg::AsRecorded => Start::AsRecorded,
            StartArg::Cold => Start::Cold,
            StartArg::Warm => Start::Warm,
        };
        let (spacing, speed) = match (self.speed, self.arrivals) {
            (Speed::Times(speed), Arrivals::Closed) => (Spacing::Closed, speed),
            (Speed::Times(speed), Arrivals::Open) => (Spacing::Open, speed),
            (Speed::Max, Arrivals::Closed) => (Spacing::None, 1.0),
            (Speed::Max, Arrivals::Open) => {
                return Err(usage(
                    "--arrivals open needs times, and --speed max leaves them out: leave one out",
                ));
            }
        };
        Ok(Settings { spacing, speed, start })
    }
}

/// True where a target is the address of a server.
fn is_address(target: &Path) -> bool {
    target.to_str().is_some_and(|text| {
        ["http://", "https://"].iter().any(|scheme| {
            text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        })
    })
}

/// Replays, writes the record, shows it.
pub(crate) fn replay(args: &ReplayArgs, clock: Clock) -> anyhow::Result<Exit> {
    if args.common.pin {
        return Err(usage("streams run where the kernel puts them: leave --pin out"));
    }
    if is_address(&args.target) {
        return web::replay(args, clock);
    }
    if args.docroot.is_some() || args.urls.is_some() || args.threads.is_some() {
        return Err(usage(
            "--docroot, --urls and --threads are for a server: name its address as the target, http://HOST:PORT/",
        ));
    }
    let settings = args.settings()?;
    if bench::sim_name(&args.target).is_some() || target::is_block_device(&args.target) {
        return Err(usage(format!(
            "{}: a replay makes files and names, name a directory",
            args.target.display()
        )));
    }
    let seed = args.common.seed.unwrap_or_else(drawn_seed);
    let load = load::open(args, seed)?;
    let interrupt = Interrupt::catch()?;
    let outcome = run(args, &settings, (&*load, seed), (clock, &interrupt));
    interrupt.settle(outcome)
}

fn run(
    args: &ReplayArgs,
    settings: &Settings,
    (load, seed): (&dyn Load, u64),
    (clock, interrupt): (Clock, &Interrupt),
) -> anyhow::Result<Exit> {
    let run = RunId::random()?;
    let origin = origin(&run, Some(seed));
    let usual = || journal::default_record("ioscape-replay", &origin.start_time);
    let out = args.out.clone().unwrap_or_else(usual);
    out_file::check_new(&out, "--out")?;
    let directory = Arc::new(target::open_directory(&args.target)?);
    let mut warnings = directory.warnings();
    warnings.extend(clear_leftovers(&directory, &run)?);
    let flag = interrupt.flag();
    let surveyed = {
        let progress = Progress::new("looking at the trace", load, args.common.quiet);
        replay::survey(load, settings.start, &flag, &mut |step| progress.show(step))?
    };
    let around = (&clock, directory.filesystem());
    let (_limits, host) = limits::enter(&args.common, &run, around)?;
    let work = replay::workload(&surveyed);
    let header = Header {
        rules: Rules::thorough(),
        ranges: Ranges::spanning([work].into_iter()),
        ..Header::new(origin, Method::Replay, host, directory.describe())
    };
    let mut journal = Journal::create(&out, "--out")?;
    journal.put(&Line::Header(header))?;
    for warning in warnings {
        journal.put(&Line::Warning(warning))?;
    }
    let watch = Stopwatch::calibrated();
    let ground = ReplaySite { directory, run: &run, interrupt: &flag, watch };
    let rounds = Rounds { args, settings, load, surveyed: &surveyed, ground: &ground };
    let (points, failure) = rounds.make(&mut journal)?;
    if points.is_empty() {
        return Err(failure.map_or_else(|| anyhow::anyhow!("nothing was replayed"), Into::into));
    }
    let elapsed_s = clock.now_s();
    for line in estimate::lines(&points, elapsed_s, failure.is_some(), vec![]) {
        journal.put(&line)?;
    }
    let ending = Error::ending(failure.as_ref());
    journal.put(&Line::End(end(ending, &points, &surveyed, elapsed_s)))?;
    show(args, journal.path())?;
    match failure {
        None => Ok(Exit::Fine),
        Some(failure) => Err(failure.into()),
    }
}

/// The replays of a record.
struct Rounds<'a> {
    args: &'a ReplayArgs,
    settings: &'a Settings,
    load: &'a dyn Load,
    surveyed: &'a Surveyed,
    ground: &'a ReplaySite<'a>,
}

impl Rounds<'_> {
    fn make(&self, journal: &mut Journal) -> anyhow::Result<(Vec<Point>, Option<Error>)> {
        let Self { args, settings, load, surveyed, ground } = self;
        let mut points = Vec::new();
        for round in 0..args.repeats {
            let progress = Progress::new("replaying", *load, args.common.quiet);
            let mut on_step = |step| progress.show(step);
            let made = replay::replay(*load, surveyed, (settings, round), ground, &mut on_step);
            drop(progress);
            match made {
                Ok(made) => {
                    journal.put(&Line::Point(made.point.clone()))?;
                    journal.put(&Line::Replay(made.replay))?;
                    points.push(made.point);
                }
                Err(error) => return Ok((points, Some(error))),
            }
        }
        Ok((points, None))
    }
}

fn end(
    reason: ioscape_model::EndReason,
    points: &[Point],
    surveyed: &Surveyed,
    elapsed_s: f64,
) -> End {
    let end = End::after(reason, points, elapsed_s);
    let laid_out_bytes = surveyed.laid_out_bytes() * points.len() as u64;
    End { written_bytes: end.written_bytes + laid_out_bytes, ..end }
}

fn show(args: &ReplayArgs, path: &Path) -> anyhow::Result<()> {
    let record = journal::open_again(path)?;
    if args.common.json {
        answer(&output::json(&document(&record, path))?)?;
    } else if !args.common.quiet {
        answer(&page_file::summary(path, &record, output::is_colourful()))?;
    }
    if !args.common.quiet {
        say(&format!("record  {}", path.display()));
    }
    Ok(())
}

/// What `--json` prints.
fn document(record: &Record, path: &Path) -> serde_json::Value {
    let warnings: Vec<&Warning> = record
        .warnings
        .iter()
        .chain(record.points.iter().flat_map(|point| &point.warnings))
        .collect();
    serde_json::json!({
        "record": path.to_string_lossy(),
        "target": record.header.target.path,
        "workload": record.points.first().map(|point| point.workload.literal()),
        "replays": record.replays,
        "estimates": record.estimates,
        "warnings": warnings,
        "elapsed_s": record.end.as_ref().map(|end| end.elapsed_s),
    })
}

/// How far it is, on a terminal.
struct Progress {
    bar: Option<ProgressBar>,
    events: f64,
}

impl Progress {
    fn new(what: &'static str, load: &dyn Load, quiet: bool) -> Self {
        let bar = if quiet { None } else { source::bar(what) };
        Self { bar, events: load.events_count().max(1) as f64 }
    }

    fn show(&self, step: Step) {
        let Some(bar) = &self.bar else { return };
        match step {
            Step::Surveyed(events) | Step::Replayed(events) => {
                bar.set_position((events as f64 / self.events * source::STEPS) as u64);
            }
            // How many there will be is known, but they take a moment only.
            Step::LaidOut(_) => bar.tick(),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_are_read() {
        let scale = parse_scale("users=2,read=0").unwrap();
        assert_eq!(scale, Scale { users: 2.0, read: Some(0.0), ..Scale::default() });
        for text in ["", "users", "users=0", "users=x", "read=1.1", "data=1e9", "files=2"] {
            assert!(parse_scale(text).is_err(), "{text}");
        }
    }

    #[test]
    fn speeds_are_read() {
        for (text, speed) in
            [("1", Speed::Times(1.0)), ("2x", Speed::Times(2.0)), ("0.5", Speed::Times(0.5))]
        {
            assert_eq!(parse_speed(text), Ok(speed), "{text}");
        }
        assert_eq!(parse_speed("max"), Ok(Speed::Max));
        for text in ["", "x", "0", "-1", "1e9", "nan", "fast"] {
            assert!(parse_speed(text).is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_are_told_from_directories() {
        for (text, is) in [
            ("http://127.0.0.1:80/", true),
            ("HTTPS://host", true),
            ("/mnt/http://x", false),
            ("http", false),
            ("./http:/", false),
        ] {
            assert_eq!(is_address(Path::new(text)), is, "{text}");
        }
    }
}
