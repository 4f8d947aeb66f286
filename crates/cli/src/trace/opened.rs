//! A trace that was opened to be looked at, several times over.

use std::cell::Cell;
use std::fs::File;
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;
use ioscape_trace::store::Events;
use ioscape_trace::{Event, FileEntry, Store, TraceInfo, character};

use ioscape_model::App;

use super::source::{self, STEPS, Source};
use crate::exit::usage;

/// Events between two looks at the progress.
const EVENTS: u64 = 1 << 16;

/// Events of a trace, one after another.
pub(crate) type Reader<'a> = Events<'a, File>;

/// How far a pass over events is, on a terminal.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    all: f64,
    seen: Cell<u64>,
}

impl Progress {
    /// Of so many events.
    pub(crate) fn new(what: &'static str, events: u64) -> Self {
        Self { bar: source::bar(what), all: events.max(1) as f64, seen: Cell::new(0) }
    }

    /// One more was seen.
    pub(crate) fn step(&self) {
        let seen = self.seen.get() + 1;
        self.seen.set(seen);
        if seen.is_multiple_of(EVENTS)
            && let Some(bar) = &self.bar
        {
            bar.set_position((seen as f64 / self.all * STEPS) as u64);
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

/// The file and what is known of it.
pub(crate) struct Opened {
    path: PathBuf,
    store: Box<Store<File>>,
}

impl Opened {
    /// Opens a trace.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        match source::open(path)? {
            Source::Trace(store) => Ok(Self::of_store(path, store)),
            Source::Model(_) => Err(usage(format!(
                "{}: it is a model and has no events; name the trace that it was made from",
                path.display()
            ))),
        }
    }

    /// A trace that is open.
    pub(crate) fn of_store(path: &Path, store: Box<Store<File>>) -> Self {
        Self { path: path.to_owned(), store }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its description.
    pub(crate) fn describe(&self) -> anyhow::Result<App> {
        source::describe_trace(&self.path, &self.store)
    }

    /// When phases after the first begin, ns.
    pub(crate) fn phase_starts_ns(&self) -> anyhow::Result<Vec<u64>> {
        let bar = source::bar("looking for phases");
        let mut see = |share: f64| {
            if let Some(bar) = &bar {
                bar.set_position((share * STEPS) as u64);
            }
        };
        let found = character::phase_starts_ns(&self.store, &mut see);
        if let Some(bar) = &bar {
            bar.finish_and_clear();
        }
        found.map_err(|error| source::named(&self.path, error))
    }

    /// Its events one after another.
    pub(crate) fn events(&self) -> Reader<'_> {
        self.store.events()
    }

    /// What is known of the whole.
    pub(crate) fn info(&self) -> &TraceInfo {
        self.store.info()
    }

    /// The table of files.
    pub(crate) fn files(&self) -> anyhow::Result<Vec<FileEntry>> {
        let tables = self.store.tables();
        Ok(tables.map_err(|error| source::named(&self.path, error))?.files)
    }

    /// How many events it holds.
    pub(crate) fn events_count(&self) -> u64 {
        self.store.events_count()
    }

    /// Shows each event, and on a terminal how far it is.
    pub(crate) fn for_each(
        &self,
        what: &'static str,
        mut see: impl FnMut(&Event),
    ) -> anyhow::Result<()> {
        let progress = Progress::new(what, self.events_count());
        let outcome = self.store.for_each_event(|event| {
            see(event);
            progress.step();
            Ok(())
        });
        outcome.map_err(|error| source::named(&self.path, error))
    }
}
