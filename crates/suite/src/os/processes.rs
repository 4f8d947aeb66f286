//! getpid, cswitch, select and its relatives.

use ioscape_engine::error::{Error, Result};
use ioscape_engine::primitives::{self, PingPong, Pinning, Pipes, Usage};
use ioscape_model::TrialFigure;

use super::timing::Timer;
use crate::benchmark::{count, seconds};
use crate::site::Site;

/// All of them.
pub(super) fn figures(timer: &Timer, site: &Site) -> Result<Vec<TrialFigure>> {
    let mut figures = Vec::new();
    let timed = timer.time(&site.meter, || {
        std::hint::black_box(primitives::getpid());
        Ok(())
    })?;
    figures.push(seconds("getpid", timed.per_call_s));
    figures.push(count("getpid calls", timed.calls as f64, "calls"));
    figures.extend(switches(timer, site)?);
    figures.extend(selects(timer, site)?);
    Ok(figures)
}

/// The one on one processor is the one of 1990: machines had one.
fn switches(timer: &Timer, site: &Site) -> Result<Vec<TrialFigure>> {
    let mut figures = Vec::new();
    for (name, pinning) in [
        ("cswitch", Pinning::Same),
        ("cswitch, two processors", Pinning::Apart),
        ("cswitch, anywhere", Pinning::Free),
    ] {
        let before = both();
        let mut pair = match PingPong::start(pinning) {
            Err(Error::Refused(_)) => continue, // there is one processor
            started => started?,
        };
        let timed = timer.time(&site.meter, || pair.round_trip())?;
        drop(pair);
        figures.push(seconds(name, timed.per_call_s));
        if pinning == Pinning::Same {
            let switches = both() - before;
            let per_trip = switches as f64 / timed.calls as f64;
            figures.push(count("switches per round trip", per_trip, "switches"));
        }
    }
    Ok(figures)
}

/// Switches of this process and of the children that are gone.
fn both() -> u64 {
    Usage::of_self().switches() + Usage::of_children().switches()
}

fn selects(timer: &Timer, site: &Site) -> Result<Vec<TrialFigure>> {
    type Look = fn(&mut Pipes) -> i32;
    let mut figures = Vec::new();
    let looks: [(&str, Look); 3] =
        [("select", Pipes::select), ("poll", Pipes::poll), ("epoll", Pipes::epoll)];
    for (name, look) in looks {
        for (number, full) in [(1, false), (10, false), (10, true)] {
            let mut pipes = Pipes::new(number, full)?;
            let timed = timer.time(&site.meter, || {
                std::hint::black_box(look(&mut pipes));
                Ok(())
            })?;
            let state = if full { "full" } else { "empty" };
            figures.push(seconds(&format!("{name} {number} {state}"), timed.per_call_s));
        }
    }
    Ok(figures)
}
