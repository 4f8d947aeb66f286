//! Traces and models as they are named on the command line.

use std::fs::File;
use std::io::{IsTerminal, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::Context;
use indicatif::{ProgressBar, ProgressStyle};
use ioscape_model::App;
use ioscape_model::app::APP_BYTES_MAX;
use ioscape_trace::{Store, StoreError, character, demand, site};

use crate::exit::usage;
use crate::library;
use crate::text_file;

/// How a Parquet file begins.
const PARQUET: &[u8] = b"PAR1";
/// Steps of the bar.
pub(crate) const STEPS: f64 = 1000.0;

/// A file that holds what an application does.
pub(crate) enum Source {
    /// Its calls.
    Trace(Box<Store<File>>),
    /// Its description.
    Model(Box<App>),
}

/// Opens a trace or a model, whichever it is.
pub(crate) fn open(path: &Path) -> anyhow::Result<Source> {
    let cannot = || format!("cannot open {}", path.display());
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) => {
            let known = library_model(path)?;
            return known.map(|app| Source::Model(Box::new(app))).ok_or_else(|| {
                usage(format!(
                    "cannot open {}: {error}; name a trace, a model, or one of {}",
                    path.display(),
                    library::names()
                ))
            });
        }
    };
    let mut start = Vec::new();
    (&mut file).take(PARQUET.len() as u64).read_to_end(&mut start).with_context(cannot)?;
    if start == PARQUET {
        file.seek(SeekFrom::Start(0)).with_context(cannot)?;
        let store = Store::open(file).map_err(|error| named(path, error))?;
        return Ok(Source::Trace(Box::new(store)));
    }
    Ok(Source::Model(Box::new(model(path)?)))
}

/// A model that comes with the program, where it has one of this name.
fn library_model(name: &Path) -> anyhow::Result<Option<App>> {
    let Some(text) = library::model(name) else { return Ok(None) };
    App::parse(text).map(Some).with_context(|| format!("the model {} is broken", name.display()))
}

/// Reads a model: a file, or one that comes with the program where there is no file of that name.
pub(crate) fn model(path: &Path) -> anyhow::Result<App> {
    if !path.exists()
        && let Some(app) = library_model(path)?
    {
        return Ok(app);
    }
    let wrong = |what: String| usage(format!("{}: {what}", path.display()));
    // One typed by hand may be wider than one that is written here.
    let text = text_file::read(path, 16 * APP_BYTES_MAX as u64).map_err(wrong)?;
    App::parse(&text).map_err(|error| wrong(error.to_string()))
}

/// The description of a trace or model.
pub(crate) fn describe(path: &Path) -> anyhow::Result<App> {
    match open(path)? {
        Source::Model(app) => Ok(*app),
        Source::Trace(store) => describe_trace(path, &store),
    }
}

/// The description of a trace, with progress on a terminal.
pub(crate) fn describe_trace(path: &Path, store: &Store<File>) -> anyhow::Result<App> {
    let bar = bar("reading");
    let mut see = |share: f64| {
        if let Some(bar) = &bar {
            bar.set_position((share * STEPS) as u64);
        }
    };
    let described = character::characterise(store, &mut |share| see(share / 2.0));
    let demand = demand::measure(store, &mut |share| see(0.5 + share / 2.0));
    let site = site::find(store, &mut see);
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    let all = described.and_then(|app| Ok(App { demand: demand?, site: site?, ..app }));
    all.map_err(|error| named(path, error))
}

/// Shows how far it is, on a terminal.
pub(crate) fn bar(what: &'static str) -> Option<ProgressBar> {
    let moves = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
    (moves && std::io::stderr().is_terminal()).then(|| {
        let style = ProgressStyle::with_template("{bar:20} {msg} {percent} %");
        let bar = ProgressBar::new(STEPS as u64);
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what);
        bar
    })
}

/// A trace that is none is wrong usage; one that cannot be read is not.
pub(crate) fn named(path: &Path, error: StoreError) -> anyhow::Error {
    match error {
        StoreError::Io(error) => {
            anyhow::Error::from(error).context(format!("cannot read {}", path.display()))
        }
        other => usage(format!("{}: {other}", path.display())),
    }
}
