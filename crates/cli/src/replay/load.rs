//! Traces and models to be replayed, as they are named on the command line.

use std::fs::File;
use std::io;

use ioscape_experiment::replay::Load;
use ioscape_trace::regenerate::Regenerated;
use ioscape_trace::{Event, FileEntry, Layer, Store, StreamEntry, Tables, TraceInfo};

use super::ReplayArgs;
use super::site::{self, SiteFiles};
use crate::exit::usage;
use crate::trace::source::{self, Source};

/// Opens a trace, or makes load of a model with chance from a seed.
pub(super) fn open(args: &ReplayArgs, seed: u64) -> anyhow::Result<Box<dyn Load>> {
    let (path, scale) = (args.source.as_path(), args.scale());
    let shown = path.display();
    match source::open(path)? {
        Source::Trace(_) if scale.is_some() || site::is_asked(args) => Err(usage(format!(
            "{shown} is a trace, which comes as it was: --scale, --for, --users, --files and --project are \
             for models, \
             `ioscape trace model {shown}` makes one"
        ))),
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
        Source::Model(mut app) if app.site.is_some() => {
            let load = site::load(app.site.take().unwrap_or_default(), args, (None, seed))?;
            Ok(Box::new(SiteFiles::new(load)))
        }
        Source::Model(_) if site::is_asked(args) => Err(usage(format!(
            "{shown} is the model of a program: --users, --files and --project are for web sites, \
             --scale users=2,data=2 for programs"
        ))),
        Source::Model(app) => {
            let load = Regenerated::new(*app, scale.unwrap_or_default(), seed);
            Ok(Box::new(ModelLoad(load.map_err(|error| usage(format!("{shown}: {error}")))?)))
        }
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

/// Load that is made of a model.
struct ModelLoad(Regenerated);

impl Load for ModelLoad {
    fn source(&self) -> &'static str {
        "model"
    }

    fn files(&self) -> &[FileEntry] {
        self.0.files()
    }

    fn streams(&self) -> &[StreamEntry] {
        self.0.streams()
    }

    fn info(&self) -> &TraceInfo {
        self.0.info()
    }

    fn events_count(&self) -> u64 {
        self.0.events_count()
    }

    fn events(&self) -> Box<dyn Iterator<Item = io::Result<Event>> + '_> {
        Box::new(self.0.events().map(Ok))
    }
}
