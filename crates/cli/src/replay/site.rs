//! Load like that of a web site: how it is changed by what was typed.

use ioscape_model::app::{PageKind, Site};
use ioscape_trace::site::{Factor, Growth, Scaled, SiteLoad, growth};
use ioscape_trace::{Event, FileEntry, StreamEntry, TraceInfo};

use ioscape_experiment::replay::Load;
use ioscape_model::Spacing;
use ioscape_model::units::{show_seconds, three_digits};

use super::{ReplayArgs, is_address};
use crate::exit::usage;
use crate::output::say;

/// A log of more than this is not gone through in its own time unless that is asked for, seconds.
const LONG_S: f64 = 24.0 * 3600.0;
const MONTHS_A_YEAR: f64 = 12.0;
const USERS_MAX: f64 = 20_000.0;

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

/// True where something was typed that only a site has.
pub(super) fn is_asked(args: &ReplayArgs) -> bool {
    args.users.is_some() || args.files.is_some() || args.project.is_some()
}

/// Load of a site, with its changes; those of a projection are said. `urls` is how many files a server
/// has of its own.
pub(super) fn load(
    site: Site,
    args: &ReplayArgs,
    (urls, seed): (Option<usize>, u64),
) -> anyhow::Result<SiteLoad> {
    let mut scaled = scaled(&site, args)?;
    let count: u64 = site.files.iter().map(|group| group.files).sum();
    if let Some(urls) = urls {
        let missing = site.files_of(PageKind::Missing);
        scaled.files = urls as f64 / count.saturating_sub(missing).max(1) as f64;
    }
    SiteLoad::new(site, scaled, seed).map_err(|error| usage(error.to_string()))
}

fn scaled(site: &Site, args: &ReplayArgs) -> anyhow::Result<Scaled> {
    let scale = args.scale.unwrap_or_default();
    if scale.read.is_some() {
        return Err(usage("a web site is only read: leave read= out of --scale"));
    }
    let (mut sessions, mut files) = (scale.users, scale.data);
    if let Some(count) = args.files {
        let all: u64 = site.files.iter().map(|group| group.files).sum();
        files *= count as f64 / all.max(1) as f64;
    }
    if let Some(months) = args.project {
        let growth = growth(site, months).map_err(|error| usage(format!("--project: {error}")))?;
        if !args.common.quiet {
            say(&sentence(months, &growth));
        }
        sessions *= growth.sessions.mean;
        files *= growth.files.mean;
    }
    let users = args.users.map(|users| (f64::from(users) * sessions).round().max(1.0));
    if users.is_some_and(|users| users > USERS_MAX) {
        return Err(usage(format!("up to {USERS_MAX} users can be made at a time")));
    }
    let settings = args.settings()?;
    let is_by_http = is_address(&args.target);
    // A trace's events are spread by whoever replays them; visitors that ask a server are made so.
    let speed = if is_by_http { settings.speed } else { 1.0 };
    let is_paced = settings.spacing != Spacing::None;
    if is_by_http && !is_paced && users.is_none() {
        return Err(usage(
            "--speed max leaves out the time between sessions, too: say how many visitors there are at a \
             time, --users 64",
        ));
    }
    if !is_by_http && users.is_some() && args.duration_s.is_some() && !site.has_pauses() {
        return Err(usage(
            "visitors of this site never pause, so that --users have no end on files: leave --for out",
        ));
    }
    let lasts_s = site.elapsed_s / settings.speed / scale.rate;
    if args.duration_s.is_none() && is_paced && lasts_s > LONG_S {
        return Err(usage(format!(
            "the log lasts {}: `--for 5m` takes five minutes as in its busiest time, and `--speed` makes \
             time pass faster",
            show_seconds(site.elapsed_s)
        )));
    }
    Ok(Scaled {
        sessions,
        files,
        rate: scale.rate * speed,
        users: users.map(|users| users as u32),
        for_s: args.duration_s,
    })
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
