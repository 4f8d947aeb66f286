//! The log that a site's model would make, without a server: how far the model is from its log, nothing
//! else in between.
//!
//! `site_log SITE.json [SEED]` prints a line for each request: milliseconds, number of the session, file.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;

use ioscape_model::App;
use ioscape_trace::site::{Scaled, SiteLoad};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: site_log SITE.json [SEED]")?;
    let seed = arguments.next().map_or(Ok(1), |seed| seed.parse())?;
    let site = App::parse(&std::fs::read_to_string(path)?)?.site.ok_or("it is no web site")?;
    let load = SiteLoad::new(site, Scaled::default(), seed)?;
    let mut requests = Vec::new();
    for session in load.sessions() {
        let mut at_ns = session.start_ns;
        for ask in session.asks {
            at_ns += ask.gap_ns;
            requests.push((at_ns, session.number, ask.file));
        }
    }
    requests.sort_unstable();
    for (at_ns, session, file) in requests {
        println!("{:.3} {session} {file}", at_ns as f64 / 1e6);
    }
    Ok(())
}
