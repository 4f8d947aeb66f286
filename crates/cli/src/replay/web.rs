//! Load for a web server: a site's visitors, by HTTP.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use indicatif::ProgressBar;
use ioscape_analysis::estimate;
use ioscape_engine::replay::{AtStart, Shape, Stage, StageFile};
use ioscape_engine::{Clock, Error, RunId, Stopwatch, host, target};
use ioscape_experiment::bench::clear_leftovers;
use ioscape_model::{End, Header, Line, Method, Point, Ranges, Rules, Target, TargetKind};
use ioscape_trace::FileKind;
use ioscape_trace::site::SiteLoad;
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

/// Whether a target is the address of a server.
pub(super) fn is_address(target: &Path) -> bool {
    target.to_str().is_some_and(|text| {
        ["http://", "https://"].iter().any(|scheme| {
            text.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
        })
    })
}

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
    let interrupt = Interrupt::catch()?;
    let outcome = run(args, (&server, urls), (&load, seed), (clock, &interrupt));
    interrupt.settle(outcome)
}

/// What has no meaning where the storage is behind a server.
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
    for line in BufReader::new(file).lines() {
        let line = line.map_err(|error| wrong(format!("cannot read it: {error}")))?;
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        if !line.starts_with('/') || urls.len() == URLS_MAX {
            return Err(wrong(format!(
                "line {}: a list has a path such as /news/today.html in each line, up to {URLS_MAX}",
                urls.len() + 1
            )));
        }
        urls.push(line.to_owned());
    }
    if urls.is_empty() { Err(wrong("it is empty".to_owned())) } else { Ok(urls) }
}

/// Where the files of a load are found on the server.
struct Site {
    /// By the number of a file.
    paths: Vec<String>,
    /// Likewise, bytes; `None` where the server has files of its own.
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
        (load, urls): (&SiteLoad, Option<Vec<String>>),
        (run, clock, interrupt): (&RunId, &Clock, &Interrupt),
        journal: &mut Journal,
    ) -> anyhow::Result<Self> {
        let began_s = clock.now_s();
        let stage = match &args.docroot {
            Some(docroot) => Some(lay_out(args, docroot, load, (run, interrupt), journal)?),
            None => None,
        };
        let below = stage.as_ref().and_then(|stage| stage.path().file_name());
        let below = below.map_or(String::new(), |name| format!("/{}", name.to_string_lossy()));
        let entries = load.files();
        let regular = || entries.iter().filter(|entry| entry.kind == FileKind::Regular);
        // Directories have numbers, too, and nobody asks for them.
        let mut paths = vec!["/".to_owned(); entries.len() + 1];
        for (at, entry) in regular().enumerate() {
            paths[entry.id as usize] = match &urls {
                Some(urls) => urls[at.min(urls.len() - 1)].clone(),
                None => format!("{below}/f{}/f{}", entry.directory, entry.id),
            };
        }
        let sizes = std::iter::once(0).chain(entries.iter().map(|entry| entry.first_bytes));
        Ok(Self {
            paths,
            sizes: urls.is_none().then(|| sizes.collect()),
            files: regular().count() as u64,
            bytes: regular().map(|entry| entry.first_bytes).sum(),
            stage,
            layout_s: clock.now_s() - began_s,
        })
    }
}

/// Makes the files below a directory that a server serves.
fn lay_out(
    args: &ReplayArgs,
    docroot: &Path,
    load: &SiteLoad,
    (run, interrupt): (&RunId, &Interrupt),
    journal: &mut Journal,
) -> anyhow::Result<Stage> {
    let directory = Arc::new(target::open_directory(docroot)?);
    for warning in directory.warnings().into_iter().chain(clear_leftovers(&directory, run)?) {
        journal.put(&Line::Warning(warning))?;
    }
    let missing: std::collections::HashSet<u32> = load.missing().collect();
    let file = |entry: &ioscape_trace::FileEntry| {
        let is_directory = entry.kind == FileKind::Directory;
        let start = AtStart { bytes: entry.first_bytes, has_data: !is_directory, is_cached: true };
        StageFile {
            shape: if is_directory { Shape::Directory } else { Shape::File },
            directory: entry.directory,
            at_start: (!missing.contains(&entry.id)).then_some(start),
        }
    };
    let nobody = StageFile { shape: Shape::File, directory: 0, at_start: None };
    let files: Vec<StageFile> =
        std::iter::once(nobody).chain(load.files().iter().map(file)).collect();
    let bar = if args.common.quiet { None } else { source::bar("laying out the site") };
    let total: u64 = load.files().iter().map(|entry| entry.first_bytes).sum();
    let stage = Stage::new(&directory, (run, 0), &files, &interrupt.flag(), &mut |bytes| {
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
    let mut journal = Journal::create(&out, "--out")?;
    let target = Target { path: server.to_string(), kind: TargetKind::Server, ..Target::default() };
    let header = |ranges| Header {
        rules: Rules::thorough(),
        ranges,
        ..Header::new(origin.clone(), Method::Replay, host::describe(&clock), target.clone())
    };
    let work = ioscape_web::workload(load);
    journal.put(&Line::Header(header(Ranges::spanning([&work].into_iter()))))?;
    let site = Site::new(args, (load, urls), (&run, &clock, interrupt), &mut journal)?;
    let mut points = Vec::new();
    for round in 0..args.repeats {
        let made = one(args, (server, load, &site), (round, &clock, interrupt))?;
        if made.1.ops_per_s > 0.0 || round == 0 {
            journal.put(&Line::Point(made.1.clone()))?;
            journal.put(&Line::Replay(made.0))?;
            points.push(made.1);
        }
        if interrupt.signal().is_some() {
            break;
        }
    }
    let failure = interrupt.signal().is_some().then_some(Error::Interrupted);
    let elapsed_s = clock.now_s();
    for line in estimate::lines(&points, elapsed_s, failure.is_some(), vec![]) {
        journal.put(&line)?;
    }
    let end = End::after(Error::ending(failure.as_ref()), &points, elapsed_s);
    let laid_out_bytes = site.stage.as_ref().map_or(0, Stage::laid_out_bytes);
    journal.put(&Line::End(End { written_bytes: end.written_bytes + laid_out_bytes, ..end }))?;
    drop(site);
    show(args, journal.path())?;
    match failure {
        None => Ok(Exit::Fine),
        Some(failure) => Err(failure.into()),
    }
}

/// One load.
fn one(
    args: &ReplayArgs,
    (server, load, site): (&Server, &SiteLoad, &Site),
    (round, clock, interrupt): (u32, &Clock, &Interrupt),
) -> anyhow::Result<(ioscape_model::Replay, Point)> {
    let settings = args.settings()?;
    let flag = interrupt.flag();
    let bar = if args.common.quiet { None } else { source::bar("asking the server") };
    let expected = (load.requests_count() as f64).max(1.0);
    let started_s = clock.now_s();
    let job = Job {
        server,
        paths: &site.paths,
        sizes: site.sizes.as_deref(),
        sessions: Box::new(load.sessions()),
        users: args.users,
        spacing: settings.spacing,
        speed: settings.speed,
        duration_ns: args.duration_s.map(|seconds| (seconds * 1e9) as u64),
        threads: args.threads as usize,
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
        spacing: settings.spacing,
        speed: settings.speed,
        planned_s: load.info().elapsed_s,
        started_s,
        files: site.files,
        files_bytes: site.bytes,
        laid_out_bytes: site.stage.as_ref().map_or(0, Stage::laid_out_bytes),
        layout_s: site.layout_s,
    };
    Ok(lines(&traffic?, &facts))
}

fn step(bar: Option<&ProgressBar>, share: f64) {
    if let Some(bar) = bar {
        bar.set_position((share.min(1.0) * source::STEPS) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
