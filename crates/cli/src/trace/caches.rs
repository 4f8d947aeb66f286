//! `ioscape trace caches`: the miss-ratio curve of a trace, and the page cache at sizes of memory.

mod document;
mod work;

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use ioscape_model::units::{parse_duration_s, parse_size, show_percent};
use ioscape_model::{App, CacheAnswer};
use ioscape_trace::TraceInfo;
use ioscape_trace::caches::Start;
use ioscape_trace::caches::page_cache::Policy;

use super::opened::Opened;
use super::source::{self, Source};
use super::together::Together;
use crate::exit::{Exit, usage};
use crate::output::answer;
use work::Ask;

/// Share of mapped touches above which the answer says what it does not see.
const MAPPED_MAX: f64 = 0.1;

/// What can be typed.
#[derive(Debug, Args)]
pub(crate) struct CachesArgs {
    /// The trace, as `trace record` and `trace import` make it; several share one cache, as if their
    /// programs were started at the same time. Or one model: results only for the sizes stored in it.
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Memory sizes to simulate: page cache for the data of files [default: several, around the size
    /// beyond which more memory hardly helps]
    #[arg(long, value_name = "SIZE,…", value_parser = parse_size, value_delimiter = ',')]
    memory: Vec<u64>,
    /// Which page makes room for another.
    #[arg(long, value_enum, default_value_t = TypedPolicy::PageCache)]
    policy: TypedPolicy,
    /// What is in memory at the start.
    #[arg(long, value_enum, default_value_t = TypedStart::Cold)]
    start: TypedStart,
    /// How often the simulated kernel counts the pages of its lists (active, inactive), which
    /// steers what it evicts; Linux does so about every 2 s [default: 2s, or a 200th of the
    /// trace's length if that is shorter]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration_s)]
    counters: Option<f64>,
    /// Answer as JSON.
    #[arg(long)]
    json: bool,
}

/// Policies as they are typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TypedPolicy {
    /// The page touched longest ago; no read-ahead.
    Lru,
    /// The page that came first; no read-ahead.
    Fifo,
    /// As Linux does with an active and an inactive list of pages, refaults and read-ahead.
    PageCache,
    /// Linux's multi-generational LRU (MGLRU), simulated from its description; not checked against
    /// a kernel that runs it.
    Mglru,
}

impl TypedPolicy {
    const fn meant(self) -> Policy {
        match self {
            Self::Lru => Policy::Lru,
            Self::Fifo => Policy::Fifo,
            Self::PageCache => Policy::PageCache,
            Self::Mglru => Policy::Mglru,
        }
    }
}

/// Starts as they are typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TypedStart {
    /// Each file starts with as many pages cached as when the recorded program first opened it.
    AsRecorded,
    /// No data of files; names, programs and libraries count as cached.
    Cold,
}

impl TypedStart {
    const fn meant(self) -> Start {
        match self {
            Self::AsRecorded => Start::AsRecorded,
            Self::Cold => Start::Cold,
        }
    }
}

/// Answers from a trace, from several, or from a model.
pub(crate) fn caches(args: &CachesArgs) -> anyhow::Result<Exit> {
    let document = match &args.traces[..] {
        [path] => match source::open(path)? {
            Source::Trace(store) => {
                from_traces(args, &Together::of_opened(vec![Opened::of_store(path, store)])?)?
            }
            Source::Model(app) => from_model(args, &app)?,
        },
        several => from_traces(args, &Together::open(several)?)?,
    };
    if args.json {
        answer(&crate::output::json(&document)?)?;
    } else {
        answer(&ioscape_report::caches_text(&document))?;
    }
    Ok(Exit::Fine)
}

/// The description of a trace or model, with what caches make of a trace where that can be known.
pub(super) fn describe(path: &Path) -> anyhow::Result<App> {
    let trace = match source::open(path)? {
        Source::Model(app) => return Ok(*app),
        Source::Trace(store) => Opened::of_store(path, store),
    };
    let mut app = trace.describe()?;
    let starts = app.phases.iter().skip(1).map(|phase| (phase.from_s * 1e9).round() as u64);
    let starts: Vec<u64> = starts.collect();
    app.caches = Some(work::for_model(trace, &starts)?);
    Ok(app)
}

fn from_traces(args: &CachesArgs, traces: &Together) -> anyhow::Result<CacheAnswer> {
    let policy = args.policy.meant();
    if policy.is_kernels() && !work::passes_the_cache(traces.info().layer) {
        return Err(usage(format!(
            "{}: its requests did not go through a page cache, or already did: try --policy lru",
            args.traces[0].display()
        )));
    }
    let cuts_ns = traces.only().map_or(Ok(Vec::new()), Opened::phase_starts_ns)?;
    let looked = work::look(traces, &cuts_ns)?;
    let ask = Ask {
        policy,
        start: args.start.meant(),
        memory: args.memory.clone(),
        counters_s: args.counters,
    };
    let simulated = work::simulate(traces, &looked, &ask)?;
    let warnings = warnings(traces.info(), looked.mapped_fraction, args);
    let mut document = document::of_traces(traces, &looked, &simulated);
    if args.memory.is_empty() {
        let asked = document.pages_touched_by_reads;
        document.simulated_gain_90_bytes = document::gain_bytes(&work::known(&simulated), asked);
    }
    Ok(CacheAnswer { warnings, ..document })
}

/// Answers from a model: straight lines between the sizes that were simulated for it.
fn from_model(args: &CachesArgs, app: &App) -> anyhow::Result<CacheAnswer> {
    let path = args.traces[0].display();
    let Some(caches) = &app.caches else {
        return Err(usage(format!(
            "{path}: this model says nothing of caches; `ioscape trace model` of a trace makes one \
             that does"
        )));
    };
    let is_kept = matches!(args.policy, TypedPolicy::PageCache | TypedPolicy::Lru)
        && args.start == TypedStart::Cold
        && args.counters.is_none();
    if !is_kept {
        return Err(usage(format!(
            "{path}: a model holds the page cache and LRU from a cold start: for anything else name \
             the trace"
        )));
    }
    Ok(document::of_model(caches, args.policy.meant(), &args.memory))
}

fn warnings(info: &TraceInfo, mapped: f64, args: &CachesArgs) -> Vec<String> {
    let mut warnings = info.limits.clone();
    if info.lost > 0 {
        warnings.push(format!("{} events were lost: what they touched is missing", info.lost));
    }
    if mapped > MAPPED_MAX {
        warnings.push(format!(
            "{} of the pages were touched through mappings, of which only the first touch is seen: \
             they may stay in memory for longer than said",
            show_percent(mapped)
        ));
    }
    if args.policy == TypedPolicy::Mglru {
        warnings.push(
            "mglru is simulated by its description and was not compared with a kernel that runs it"
                .to_owned(),
        );
    }
    if args.start == TypedStart::AsRecorded {
        warnings.push(
            "how much of each file was in memory at the start is known, not which pages: taken for \
             its first"
                .to_owned(),
        );
    }
    warnings
}
