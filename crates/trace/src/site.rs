//! Web sites: files and visitors found in an access log, and load made after them (Seltzer et al.
//! 1999, section 4.2; which parts a model needs after Barford & Crovella 1998, SURGE).
//!
//! [`find`] makes a [`Site`] of a trace that was imported from a log. [`SiteLoad`] makes sessions after
//! it: each asks for as many files as sessions of the log do, pages and embedded objects in their turns,
//! with the log's times between requests, each file as often as the log's. Not kept: which file follows
//! which, beyond page and object, and whether files are asked for in bursts.

mod calls;
mod deck;
mod files;
mod finder;
mod groups;
mod growth;
mod months;
mod sessions;

use ioscape_model::app::Site;
use parquet::file::reader::ChunkReader;

use std::collections::HashSet;

use crate::{Event, FileEntry, FileKind, Store, StoreError, StreamEntry, TraceInfo};
use calls::Calls;
use files::Files;
use finder::Finder;

pub use growth::{Factor, Growth, GrowthError, growth};
pub use sessions::Sessions;

/// The recorder of traces that were imported from access logs.
pub(crate) const ACCESS_LOG: &str = "access log";
/// More files than this are not laid out.
const FILES_MAX: f64 = 1e7;
/// More sessions than this are not made.
const SESSIONS_MAX: f64 = 1e9;

/// One visitor from the first request to the last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// Number among the sessions of a load, from 0.
    pub number: u64,
    /// When it begins, since the load began; where a fixed number of users take turns, since the user's
    /// turn came.
    pub start_ns: u64,
    /// Its requests, in order.
    pub asks: Vec<Ask>,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Time since the request before, 0 for the first.
    pub gap_ns: u64,
    /// The file's id in the table of files.
    pub file: u32,
    /// The answer that is expected.
    pub answer: Answer,
}

/// Answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The file is sent.
    Whole,
    /// The visitor has it already: "304 Not Modified".
    Unchanged,
    /// There is no such file: "404 Not Found".
    Missing,
}

/// Changes to a site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaled {
    /// Sessions, times this.
    pub sessions: f64,
    /// Files, times this; each kind of file keeps its share of requests.
    pub files: f64,
    /// Times between requests, and between sessions, are divided by this.
    pub rate: f64,
    /// So many users take turns, whoever comes: each begins a session as soon as the one before is over.
    pub users: Option<u32>,
    /// Length of the load, seconds: as in the busiest stretches of the log; once through the log where `None`.
    pub for_s: Option<f64>,
}

impl Default for Scaled {
    fn default() -> Self {
        Self { sessions: 1.0, files: 1.0, rate: 1.0, users: None, for_s: None }
    }
}

/// A site that no load can be made from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SiteError {
    /// It says too little.
    #[error("the site has no {0}: `ioscape trace model` makes one of an imported access log")]
    Empty(&'static str),
    /// It has too many files.
    #[error("the site would have {0} files, and up to {FILES_MAX} are made: scale it, data=0.1")]
    Large(f64),
    /// It has too many sessions.
    #[error(
        "the site would have {0:.0} sessions, and up to {SESSIONS_MAX} are made: scale it, users=0.1"
    )]
    Many(f64),
}

/// The site in a trace; `None` where it was not imported from an access log. `see` is called now and then
/// with the share that is done.
///
/// # Errors
/// When it cannot be read.
pub fn find<R: ChunkReader + 'static>(
    store: &Store<R>,
    see: &mut dyn FnMut(f64),
) -> Result<Option<Site>, StoreError> {
    if store.info().recorder != ACCESS_LOG {
        return Ok(None);
    }
    let mut finder = Finder::new(store.info());
    store.pour_watched(&mut finder, see)?;
    Ok(Some(finder.site()))
}

/// Load like that of a site: the same each time it is asked for.
#[derive(Clone, Debug)]
pub struct SiteLoad {
    site: Site,
    scaled: Scaled,
    seed: u64,
    files: Files,
    info: TraceInfo,
}

impl SiteLoad {
    /// From a site, with chance from a seed.
    ///
    /// # Errors
    /// When the site says too little, or has more files than can be made.
    pub fn new(site: Site, scaled: Scaled, seed: u64) -> Result<Self, SiteError> {
        let files = site.files.iter().map(|group| group.files as f64).sum::<f64>() * scaled.files;
        if files > FILES_MAX {
            return Err(SiteError::Large(files));
        }
        let has_requests = site.files.iter().any(|group| group.files > 0 && group.requests > 0);
        let has_sessions = site.profiles.iter().any(|profile| {
            profile.lengths.iter().any(|length| length.count > 0 && length.from > 0)
        });
        if !has_requests || files < 0.5 {
            return Err(SiteError::Empty("files that are asked for"));
        }
        if !has_sessions || site.elapsed_s <= 0.0 {
            return Err(SiteError::Empty("sessions"));
        }
        let begin: f64 =
            site.starts.iter().map(|starts| *starts as f64).sum::<f64>() * scaled.sessions;
        if begin < 1.0 && scaled.users.is_none() {
            return Err(SiteError::Empty("beginnings of sessions (`starts`)"));
        }
        if begin > SESSIONS_MAX {
            return Err(SiteError::Many(begin));
        }
        let files = Files::new(&site, &scaled);
        if files.blocks.iter().flatten().all(|block| block.requests == 0) {
            return Err(SiteError::Empty("files that are asked for"));
        }
        let info = TraceInfo {
            recorder: "model".to_owned(),
            clock: "made".to_owned(),
            elapsed_s: scaled.for_s.unwrap_or(site.elapsed_s / scaled.rate),
            page_bytes: 4096,
            ..TraceInfo::default()
        };
        Ok(Self { site, scaled, seed, files, info })
    }

    /// The table that `file` of an event or request points into: directories, then files.
    #[must_use]
    pub fn files(&self) -> &[FileEntry] {
        &self.files.entries
    }

    /// True where any visitor pauses between requests.
    #[must_use]
    pub fn has_pauses(&self) -> bool {
        self.site.has_pauses()
    }

    /// Files that are there, those first that are asked for most.
    pub fn present(&self) -> impl Iterator<Item = &FileEntry> {
        let missing: HashSet<u32> = self.missing().collect();
        self.files()
            .iter()
            .filter(move |entry| entry.kind == FileKind::Regular && !missing.contains(&entry.id))
    }

    /// Ids of files that are asked for and not there.
    pub fn missing(&self) -> impl Iterator<Item = u32> + '_ {
        self.files.missing()
    }

    /// The table that `stream` of an event points into: a stream for each session that there is at a
    /// time, at most. Goes through all of the load.
    #[must_use]
    pub fn streams(&self) -> Vec<StreamEntry> {
        let mut calls = self.calls();
        let places = self.scaled.users.unwrap_or_else(|| {
            (&mut calls).for_each(drop);
            calls.places()
        });
        let stream = |id| StreamEntry { id, process: id, ..StreamEntry::default() };
        (1..=places).map(stream).collect()
    }

    /// Users who take turns, where so many do.
    #[must_use]
    pub fn users(&self) -> Option<u32> {
        self.scaled.users
    }

    /// Facts about the load as a whole.
    #[must_use]
    pub fn info(&self) -> &TraceInfo {
        &self.info
    }

    /// Requests that there will be, about; where users take turns, those of the site in that time.
    #[must_use]
    pub fn requests_count(&self) -> u64 {
        let Scaled { sessions, users, for_s, rate, .. } = self.scaled;
        let site = &self.site;
        let seconds = for_s.map_or(site.elapsed_s, |for_s| for_s * rate);
        let rate_factor = match users {
            Some(users) if for_s.is_some() => f64::from(users) / site.sessions_mean.max(1e-9),
            _ => sessions,
        };
        (site.requests as f64 / site.elapsed_s * seconds * rate_factor) as u64
    }

    /// Its sessions, by when they begin.
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions::new(&self.site, &self.scaled, &self.files, self.seed)
    }

    /// Calls of a server that answers them from files.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        self.calls()
    }

    fn calls(&self) -> Calls<'_> {
        let Scaled { users, for_s, .. } = self.scaled;
        Calls::new(self.sessions(), &self.files.entries, (users, for_s))
    }
}

#[cfg(test)]
mod tests;
