//! `ioscape serve`: an origin server for a web site's model. A proxy that is measured obtains its pages
//! from it (Seltzer et al. 1999, section 4.2).

use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use clap::Args;
use ioscape_engine::Stopwatch;
use ioscape_engine::replay::raise_file_limit;
use ioscape_model::units::show_bytes;
use ioscape_trace::FileEntry;
use ioscape_trace::site::{Scaled, SiteLoad};
use ioscape_web::{Origin, ResponseTimes, Served};

use crate::exit::{Exit, usage};
use crate::interrupt::Interrupt;
use crate::origin::drawn_seed;
use crate::output::say;
use crate::trace::source;

const EXAMPLES: &str = "\
Examples:
  ioscape serve site.json 127.0.0.1:8081 --response-time p50=5ms,p99=80ms
  ioscape replay site.json http://127.0.0.1:3128/ --users 200 --for 5m   # a proxy in front of it";

/// What can be typed.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// The model of a web site (of `trace model`, or specweb96 or surge)
    #[arg(value_name = "SITE.json")]
    source: PathBuf,
    /// Address that it listens at, HOST:PORT; port 0 takes a free one
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// Time that each answer is kept back: 5ms, or quantiles, p50=5ms,p90=20ms,p99=80ms
    #[arg(long, value_name = "TIME", default_value = "none", value_parser = ResponseTimes::parse)]
    response_time: ResponseTimes,
    /// This many files, as `replay` was told [default: as many as were asked for in the log]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    files: Option<u64>,
    /// Threads that answer
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=64))]
    threads: u32,
    /// Random seed [default: drawn]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Say nothing
    #[arg(short, long)]
    quiet: bool,
}

/// Serves until it is told to stop.
pub(crate) fn serve(args: &ServeArgs) -> anyhow::Result<Exit> {
    let shown = args.source.display();
    let site = source::model(&args.source)?.site.ok_or_else(|| {
        usage(format!(
            "{shown} is no model of a web site: import an access log (`ioscape trace import clf`), \
             make a model of it (`ioscape trace model`), or name specweb96 or surge"
        ))
    })?;
    let count: u64 = site.files.iter().map(|group| group.files).sum();
    let files = args.files.map_or(1.0, |files| files as f64 / count.max(1) as f64);
    let load = SiteLoad::new(site, Scaled { files, ..Scaled::default() }, 0)
        .map_err(|error| usage(format!("{shown}: {error}")))?;
    raise_file_limit();
    let interrupt = Interrupt::catch()?;
    let flag = interrupt.flag();
    let mut on_listen = |address: SocketAddr| {
        if !args.quiet {
            say(&format!(
                "serving {} files at http://{address}/ until Ctrl-C",
                load.present().count()
            ));
        }
    };
    let origin = Origin {
        listen: address(&args.address)?,
        paths: paths(&load),
        response_times: args.response_time.clone(),
        seed: args.seed.unwrap_or_else(drawn_seed),
        interrupt: &flag,
        on_listen: &mut on_listen,
        watch: Stopwatch::calibrated(),
        threads: args.threads as usize,
    };
    let served = ioscape_web::serve(origin)?;
    if !args.quiet {
        say(&sentence(&served));
    }
    Ok(interrupt.signal_or(Exit::Fine))
}

fn address(text: &str) -> anyhow::Result<SocketAddr> {
    let wrong = |what: String| {
        usage(format!("`{text}` is no address to listen at ({what}): write 127.0.0.1:8081"))
    };
    let mut found = text.to_socket_addrs().map_err(|error| wrong(error.to_string()))?;
    found.next().ok_or_else(|| wrong("it has none".to_owned()))
}

/// Paths below any prefix, with the bytes of each file.
fn paths(load: &SiteLoad) -> HashMap<String, u64> {
    let name = |entry: &FileEntry| format!("f{}/f{}", entry.directory, entry.id);
    load.present().map(|entry| (name(entry), entry.first_bytes)).collect()
}

fn sentence(served: &Served) -> String {
    let statuses: Vec<String> = served
        .by_status
        .iter()
        .map(|(status, count)| format!("{count} of status {status}"))
        .collect();
    format!(
        "{} requests over {} connections, {} sent: {}",
        served.requests,
        served.connections,
        show_bytes(served.bytes as f64),
        if statuses.is_empty() { "none".to_owned() } else { statuses.join(", ") }
    )
}
