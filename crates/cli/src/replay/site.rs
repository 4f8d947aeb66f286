//! Load like that of a web site: how it is changed by what was typed.

use ioscape_model::app::Site;
use ioscape_trace::site::{Factor, Growth, Scaled, SiteLoad, growth};
use ioscape_trace::{Event, FileEntry, StreamEntry, TraceInfo};

use ioscape_experiment::replay::Load;
use ioscape_model::Spacing;
use ioscape_model::units::{show_seconds, three_digits};

use super::ReplayArgs;
use crate::exit::usage;
use crate::output::say;

/// A log of more than this is not gone through in its own time unless that is asked for, seconds.
const LONG_S: f64 = 24.0 * 3600.0;
const MONTHS_A_YEAR: f64 = 12.0;

/// Reads `6months` or `1year`.
pub(super) fn parse_months(text: &str) -> Result<f64, String> {
    let wrong = || format!("`{text}` is no time ahead: 6months, 1year");
    let cut = text.find(|c: char| c.is_ascii_alphabetic() || c == ' ').ok_or_else(wrong)?;
    let count: f64 = text[..cut].parse().map_err(|_| wrong())?;
    let months = match text[cut..].trim() {
        "month" | "months" => count,
        "year" | "years" => count * MONTHS_A_YEAR,
        _ => return Err(wrong()),
    };
    if (0.0..=120.0).contains(&months) { Ok(months) } else { Err(wrong()) }
}

/// Whether anything was typed that only a site has.
pub(super) fn is_asked(args: &ReplayArgs) -> bool {
    args.users.is_some() || args.files.is_some() || args.project.is_some()
}

/// Load of a site, with its changes; those of a projection are said.
pub(super) fn load(
    site: Site,
    args: &ReplayArgs,
    (urls, seed): (Option<usize>, u64),
) -> anyhow::Result<SiteLoad> {
    let scaled = scaled(&site, args, urls)?;
    SiteLoad::new(site, scaled, seed).map_err(|error| usage(error.to_string()))
}

fn scaled(site: &Site, args: &ReplayArgs, urls: Option<usize>) -> anyhow::Result<Scaled> {
    let scale = args.scale.unwrap_or_default();
    if scale.read.is_some() {
        return Err(usage("a web site is only read: leave read= out of --scale"));
    }
    let mut scaled = Scaled {
        sessions: scale.users,
        files: scale.data,
        rate: scale.rate,
        users: args.users,
        for_s: args.duration_s,
    };
    if let Some(months) = args.project {
        let growth = growth(site, months).map_err(|error| usage(format!("--project: {error}")))?;
        if !args.common.quiet {
            say(&sentence(months, &growth));
        }
        scaled.sessions *= growth.sessions.mean;
        scaled.files *= growth.files.mean;
    }
    let count: u64 = site.files.iter().map(|group| group.files).sum();
    if let Some(files) = args.files.map(|files| files as f64).or(urls.map(|urls| urls as f64)) {
        scaled.files = files / count.max(1) as f64;
    }
    let is_paced = args.settings()?.spacing != Spacing::None;
    let speed = args.settings()?.speed * scaled.rate;
    if scaled.for_s.is_none() && is_paced && site.elapsed_s / speed > LONG_S {
        return Err(usage(format!(
            "the log lasts {}: `--for 5m` takes its busiest five minutes, and `--speed` makes time \
             pass faster",
            show_seconds(site.elapsed_s)
        )));
    }
    Ok(scaled)
}

fn sentence(months: f64, growth: &Growth) -> String {
    let shown = |factor: &Factor| {
        let digits = |value: f64| three_digits(value);
        format!("{} ({} to {})", digits(factor.mean), digits(factor.low), digits(factor.high))
    };
    format!(
        "in {} months, after {} months of the log: sessions times {}, files times {}; 90 % intervals \
         of a single month",
        three_digits(months),
        growth.months,
        shown(&growth.sessions),
        shown(&growth.files)
    )
}

/// Such a load as calls of a server on files.
pub(super) struct SiteFiles {
    load: SiteLoad,
    streams: Vec<StreamEntry>,
}

impl SiteFiles {
    pub(super) fn new(load: SiteLoad) -> Self {
        let streams = load.streams();
        Self { load, streams }
    }
}

impl Load for SiteFiles {
    fn source(&self) -> &'static str {
        "site"
    }

    fn files(&self) -> &[FileEntry] {
        self.load.files()
    }

    fn streams(&self) -> &[StreamEntry] {
        &self.streams
    }

    fn info(&self) -> &TraceInfo {
        self.load.info()
    }

    fn events_count(&self) -> u64 {
        // Open, stat, one or two reads, close.
        self.load.requests_count().saturating_mul(5)
    }

    fn events(&self) -> Box<dyn Iterator<Item = std::io::Result<Event>> + '_> {
        Box::new(self.load.events().map(Ok))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_ahead_are_read() {
        for (text, months) in [("6months", 6), ("1 month", 1), ("2years", 24), ("0.5year", 6)] {
            assert_eq!(
                parse_months(text).map(|months| months.round() as u32),
                Ok(months),
                "{text}"
            );
        }
        for text in ["", "6", "months", "-1months", "6weeks", "nanmonths", "1e9years"] {
            assert!(parse_months(text).is_err(), "{text}");
        }
    }
}
