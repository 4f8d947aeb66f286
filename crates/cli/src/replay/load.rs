//! What is replayed, as it is named on the command line.

use std::fs::File;
use std::io;
use std::path::Path;

use ioscape_experiment::replay::Load;
use ioscape_trace::{Event, FileEntry, Layer, Store, StreamEntry, Tables, TraceInfo};

use crate::exit::usage;
use crate::trace::source::{self, Source};

/// Opens a trace.
pub(super) fn open(path: &Path) -> anyhow::Result<Box<dyn Load>> {
    let shown = path.display();
    match source::open(path)? {
        Source::Trace(store) => {
            let layer = store.info().layer;
            if matches!(layer, Layer::KeyValue | Layer::Http) {
                return Err(usage(format!(
                    "{shown} holds requests for objects, and a replay makes calls on files"
                )));
            }
            if store.info().recorder == "counters" {
                return Err(usage(format!(
                    "{shown} holds sums and no calls: record with eBPF or ptrace"
                )));
            }
            let tables = store.tables().map_err(|error| source::named(path, error))?;
            Ok(Box::new(TraceLoad { store, tables }))
        }
        Source::Model(_) => Err(usage(format!("{shown} is a model: name a trace"))),
    }
}

/// A trace in its file.
struct TraceLoad {
    store: Box<Store<File>>,
    tables: Tables,
}

impl Load for TraceLoad {
    fn source(&self) -> &'static str {
        "trace"
    }

    fn files(&self) -> &[FileEntry] {
        &self.tables.files
    }

    fn streams(&self) -> &[StreamEntry] {
        &self.tables.streams
    }

    fn info(&self) -> &TraceInfo {
        self.store.info()
    }

    fn events_count(&self) -> u64 {
        self.store.events_count()
    }

    fn events(&self) -> Box<dyn Iterator<Item = io::Result<Event>> + '_> {
        let mut events = self.store.events();
        Box::new(std::iter::from_fn(move || events.read().map_err(io::Error::from).transpose()))
    }
}
