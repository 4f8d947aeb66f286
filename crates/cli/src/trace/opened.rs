//! A trace that was opened to be looked at, several times over.

use std::fs::File;
use std::path::{Path, PathBuf};

use ioscape_trace::{Event, FileEntry, Store, TraceInfo};

use super::source::{self, STEPS, Source};
use crate::exit::usage;

/// Events between two looks at the progress.
const EVENTS: u64 = 1 << 16;

/// The file and what is known of it.
pub(crate) struct Opened {
    path: PathBuf,
    store: Box<Store<File>>,
}

impl Opened {
    /// Opens a trace.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        match source::open(path)? {
            Source::Trace(store) => Ok(Self { path: path.to_owned(), store }),
            Source::Model(_) => Err(usage(format!(
                "{}: it is a model and has no events; name the trace that it was made from",
                path.display()
            ))),
        }
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
        let bar = source::bar(what);
        let all = self.events_count().max(1) as f64;
        let mut seen = 0;
        let outcome = self.store.for_each_event(|event| {
            see(event);
            seen += 1;
            if seen % EVENTS == 0
                && let Some(bar) = &bar
            {
                bar.set_position((seen as f64 / all * STEPS) as u64);
            }
            Ok(())
        });
        if let Some(bar) = &bar {
            bar.finish_and_clear();
        }
        outcome.map_err(|error| source::named(&self.path, error))
    }
}
