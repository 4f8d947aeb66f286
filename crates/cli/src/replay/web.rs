//! Load for a web server: a site's visitors, by HTTP.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use indicatif::ProgressBar;
use ioscape_analysis::estimate;
use ioscape_engine::replay::{AtStart, Shape, Stage, StageFile, raise_file_limit};
use ioscape_engine::target::Directory;
use ioscape_engine::{Clock, Error, RunId, Stopwatch, host, target};
use ioscape_experiment::bench::clear_leftovers;
use ioscape_model::{
    End, EndReason, Header, Line, Method, Point, Ranges, Replay, Rules, Spacing, Target, TargetKind,
};
use ioscape_trace::site::SiteLoad;
use ioscape_trace::{FileEntry, FileKind};
use ioscape_web::{Facts, Job, Server, lines};

use super::{ReplayArgs, StartArg, show, site};
use crate::exit::{Exit, usage};
use crate::interrupt::Interrupt;
use crate::journal::{self, Journal};
use crate::origin::{drawn_seed, origin};
use crate::out_file;
use crate::trace::source::{self, Source};

/// Sessions that may be open at a time, each with a connection.
const CONNECTIONS_MAX: usize = 20_000;
/// Lines of a list of paths, at most.
const URLS_MAX: usize = 10_000_000;

/// Makes the load, writes the record, shows it.
pub(super) fn replay(args: &ReplayArgs, clock: Clock) -> anyhow::Result<Exit> {
    refuse(args)?;
    let url = args.target.to_string_lossy();
    let server = Server::parse(&url).map_err(usage)?;
    let urls = args.urls.as_deref().map(read_urls).transpose()?;
    let shown = args.source.display();
    let Source::Model(app) = source::open(&args.source)? else {
        return Err(usage(format!(
            "{shown} is a trace, and load for a server is made from a model: `ioscape trace model \
             {shown}` makes one"
        )));
    };
    let Some(found) = app.site else {
        return Err(usage(format!(
            "{shown} is the model of a program and not of a web site: import an access log (`ioscape \
             trace import clf`), or name one of the models specweb96 and surge"
        )));
    };
    let seed = args.common.seed.unwrap_or_else(drawn_seed);
    let load = site::load(found, args, (urls.as_ref().map(Vec::len), seed))?;
    server.answers()?;
    raise_file_limit();
    let interrupt = Interrupt::catch()?;
    let outcome = run(args, (&server, urls), (&load, seed), (clock, &interrupt));
    interrupt.settle(outcome)
}

/// Refuses options that have no meaning where the storage is behind a server.
fn refuse(args: &ReplayArgs) -> anyhow::Result<()> {
    if args.start != StartArg::AsRecorded {
        return Err(usage(
            "--start is about this machine's page cache, and the files are the server's: leave it out, \
             and restart the server or drop its caches before",
        ));
    }
    if args.common.memory_limit.is_some() || args.common.dirty_limit.is_some() {
        return Err(usage(
            "limits of memory and dirty data would be those of the visitors, not of the server: put \
             them around the server",
        ));
    }
    Ok(())
}

/// Paths of a server's own files, the one that is asked for most first.
fn read_urls(path: &Path) -> anyhow::Result<Vec<String>> {
    let wrong = |what: String| usage(format!("--urls {}: {what}", path.display()));
    let file = File::open(path).map_err(|error| wrong(format!("cannot open it: {error}")))?;
    let mut urls = Vec::new();
    for (number, line) in (1_u64..).zip(BufReader::new(file).lines()) {
        let line: String = line.map_err(|error| wrong(format!("cannot read it: {error}")))?;
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let is_plain = line.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        if !line.starts_with('/') || !is_plain || urls.len() == URLS_MAX {
            return Err(wrong(format!(
                "line {number}: a list has a path such as /news/today.html in each line, spaces and the \
                 like as %20, up to {URLS_MAX} lines"
            )));
        }
        urls.push(line.to_owned());
    }
    if urls.is_empty() { Err(wrong("it is empty".to_owned())) } else { Ok(urls) }
}

/// Files of a load as they are found on the server.
struct Site {
    /// By the number of a file.
    paths: Vec<String>,
    /// By the number of a file, bytes; `None` where the server has files of its own.
    sizes: Option<Vec<u64>>,
    files: u64,
    bytes: u64,
    /// Files that were laid out for the server; they are removed at the end.
    stage: Option<Stage>,
    layout_s: f64,
}

impl Site {
    fn new(
        args: &ReplayArgs,
        (load, urls, docroot): (&SiteLoad, Option<Vec<String>>, Option<Arc<Directory>>),
        (run, clock, interrupt): (&RunId, &Clock, &Interrupt),
        journal: &mut Journal,
    ) -> anyhow::Result<Self> {
        let began_s = clock.now_s();
        let stage = match docroot {
            Some(directory) => Some(lay_out(args, &directory, load, (run, interrupt), journal)?),
            None => None,
        };
        let below = stage.as_ref().and_then(|stage| stage.path().file_name());
        let below = below.map_or(String::new(), |name| format!("/{}", name.to_string_lossy()));
        let entries = load.files();
        // Numbers of directories have a path, too, which is never asked for.
        let mut paths = vec!["/".to_owned(); entries.len() + 1];
        for entry in entries.iter().filter(|entry| entry.kind == FileKind::Regular) {
            paths[entry.id as usize] = format!("{below}/f{}/f{}", entry.directory, entry.id);
        }
        let present: Vec<&FileEntry> = load.present().collect();
        if let Some(urls) = &urls {
            for (at, entry) in present.iter().enumerate() {
                paths[entry.id as usize].clone_from(&urls[at.min(urls.len() - 1)]);
            }
        }
        let sizes = std::iter::once(0).chain(entries.iter().map(|entry| entry.first_bytes));
        Ok(Self {
            paths,
            sizes: urls.is_none().then(|| sizes.collect()),
            files: present.len() as u64,
            bytes: present.iter().map(|entry| entry.first_bytes).sum(),
            stage,
            layout_s: clock.now_s() - began_s,
        })
    }

    fn laid_out_bytes(&self) -> u64 {
        self.stage.as_ref().map_or(0, Stage::laid_out_bytes)
    }
}

/// Makes the files below a directory that a server serves.
fn lay_out(
    args: &ReplayArgs,
    directory: &Arc<Directory>,
    load: &SiteLoad,
    (run, interrupt): (&RunId, &Interrupt),
    journal: &mut Journal,
) -> anyhow::Result<Stage> {
    for warning in directory.warnings().into_iter().chain(clear_leftovers(directory, run)?) {
        journal.put(&Line::Warning(warning))?;
    }
    let missing: HashSet<u32> = load.missing().collect();
    let file = |entry: &FileEntry| {
        let is_directory = entry.kind == FileKind::Directory;
        let (bytes, has_data) = (entry.first_bytes, !is_directory);
        let start = AtStart { bytes, has_data, is_cached: true, is_written: false };
        StageFile {
            shape: if is_directory { Shape::Directory } else { Shape::File },
            directory: entry.directory,
            at_start: (!missing.contains(&entry.id)).then_some(start),
        }
    };
    // The stage counts its files from 1.
    let none = StageFile { shape: Shape::File, directory: 0, at_start: None };
    let files: Vec<StageFile> =
        std::iter::once(none).chain(load.files().iter().map(file)).collect();
    let bar = if args.common.quiet { None } else { source::bar("laying out the site") };
    let total: u64 = load.files().iter().map(|entry| entry.first_bytes).sum();
    let stage = Stage::new(directory, (run, 0), &files, &interrupt.flag(), &mut |bytes| {
        if let Some(bar) = &bar {
            bar.set_position((bytes as f64 / total.max(1) as f64 * source::STEPS) as u64);
        }
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let stage = stage?;
    stage.let_others_read()?;
    Ok(stage)
}

fn run(
    args: &ReplayArgs,
    (server, urls): (&Server, Option<Vec<String>>),
    (load, seed): (&SiteLoad, u64),
    (clock, interrupt): (Clock, &Interrupt),
) -> anyhow::Result<Exit> {
    let run = RunId::random()?;
    let origin = origin(&run, Some(seed));
    let usual = || journal::default_record("ioscape-replay", &origin.start_time);
    let out = args.out.clone().unwrap_or_else(usual);
    out_file::check_new(&out, "--out")?;
    let docroot = match &args.docroot {
        Some(docroot) => Some(Arc::new(target::open_directory(docroot)?)),
        None => None,
    };
    let mut journal = Journal::create(&out, "--out")?;
    let target = Target { path: server.to_string(), kind: TargetKind::Server, ..Target::default() };
    let work = ioscape_web::workload(load);
    let header = Header {
        rules: Rules::thorough(),
        ranges: Ranges::spanning([&work].into_iter()),
        ..Header::new(origin, Method::Replay, host::describe(&clock), target)
    };
    journal.put(&Line::Header(header))?;
    let around = (&run, &clock, interrupt);
    let site = Site::new(args, (load, urls, docroot), around, &mut journal)?;
    let settings = args.settings()?;
    let pace = (settings.spacing, settings.speed);
    let (mut points, mut failure) = (Vec::new(), None);
    for round in 0..args.repeats {
        match one(args, (server, load, &site), pace, (round, &clock, interrupt)) {
            Ok((replay, point)) => {
                journal.put(&Line::Point(point.clone()))?;
                journal.put(&Line::Replay(replay))?;
                points.push(point);
            }
            Err(error) if points.is_empty() => return Err(error.into()),
            Err(error) => failure = Some(anyhow::Error::from(error)),
        }
        if interrupt.signal().is_some() {
            failure = Some(Error::Interrupted.into());
        }
        if failure.is_some() {
            break;
        }
    }
    let elapsed_s = clock.now_s();
    for line in estimate::lines(&points, elapsed_s, failure.is_some(), vec![]) {
        journal.put(&line)?;
    }
    let reason = match &failure {
        None => EndReason::Complete,
        Some(_) if interrupt.signal().is_some() => EndReason::Interrupted,
        Some(_) => EndReason::Failed,
    };
    let end = End::after(reason, &points, elapsed_s);
    let laid_out_bytes = site.laid_out_bytes();
    journal.put(&Line::End(End { written_bytes: end.written_bytes + laid_out_bytes, ..end }))?;
    drop(site);
    show(args, journal.path())?;
    match failure {
        None => Ok(Exit::Fine),
        Some(failure) => Err(failure),
    }
}

/// One load.
fn one(
    args: &ReplayArgs,
    (server, load, site): (&Server, &SiteLoad, &Site),
    (spacing, speed): (Spacing, f64),
    (round, clock, interrupt): (u32, &Clock, &Interrupt),
) -> Result<(Replay, Point), ioscape_web::Error> {
    let flag = interrupt.flag();
    let bar = if args.common.quiet { None } else { source::bar("asking the server") };
    let expected = (load.requests_count() as f64).max(1.0);
    let started_s = clock.now_s();
    let job = Job {
        server,
        paths: &site.paths,
        sizes: site.sizes.as_deref(),
        sessions: Box::new(load.sessions()),
        users: load.users(),
        spacing,
        // The load was made at the speed that was asked for.
        speed: 1.0,
        duration_ns: args.duration_s.map(|seconds| (seconds * 1e9) as u64),
        threads: args.threads.unwrap_or(1) as usize,
        connections_max: CONNECTIONS_MAX,
        interrupt: &flag,
        watch: Stopwatch::calibrated(),
        agent: format!("ioscape/{}", env!("CARGO_PKG_VERSION")),
        date_unchanged: None,
    };
    let traffic = ioscape_web::drive(job, &mut |done| step(bar.as_ref(), done as f64 / expected));
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    let facts = Facts {
        round,
        spacing,
        speed,
        planned_s: load.info().elapsed_s,
        started_s,
        files: site.files,
        files_bytes: site.bytes,
        laid_out_bytes: if round == 0 { site.laid_out_bytes() } else { 0 },
        layout_s: if round == 0 { site.layout_s } else { 0.0 },
    };
    Ok(lines(&traffic?, &facts))
}

fn step(bar: Option<&ProgressBar>, share: f64) {
    if let Some(bar) = bar {
        bar.set_position((share.min(1.0) * source::STEPS) as u64);
    }
}
