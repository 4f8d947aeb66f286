//! Events out of a model: load that has its operations in their order of classes, its sizes, its
//! sequences, its places by stack distance, its syncs and its times, for as long as asked.
//!
//! Counts are drawn without putting back (`bags`), so that they come out as the model has them; places
//! are in `places`, what streams do in `walk`. What a model does not hold cannot come back: which
//! pages were mapped, what stands in which directory, which calls failed.

mod bags;
mod calls;
mod crossings;
mod files;
mod ground;
mod mapped;
mod places;
mod stack;
mod timing;
mod walk;

use ioscape_model::app::App;

use crate::event::{Event, FileEntry, StreamEntry, TraceInfo};
use ground::GeneratedFiles;
use walk::Walk;

/// The stack of pages takes some 30 bytes for each: no more of them than a machine has memory for.
const PAGES_MAX: u64 = 1 << 26;

/// Changes to a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// Streams, each as busy as before, on the same data.
    pub users: f64,
    /// Data: stack distances and files grow by this, operations stay.
    pub data: f64,
    /// Times between calls are divided by this.
    pub rate: f64,
    /// Share of requests that read; as it was where `None`.
    pub read: Option<f64>,
    /// How long, seconds: the model is gone through again and again; once where `None`.
    pub for_s: Option<f64>,
}

impl Default for Scale {
    fn default() -> Self {
        Self { users: 1.0, data: 1.0, rate: 1.0, read: None, for_s: None }
    }
}

/// A model that no load can be made from.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It says too little.
    #[error("the model tells of no request: it needs `requests`, or `operations` and `sizes`")]
    Empty,
    /// It has too many pages.
    #[error("the model has {0} pages, and load is made of up to {PAGES_MAX}: scale it, data=0.1")]
    Large(u64),
}

/// Load that is made as it is asked for: the same each time.
#[derive(Clone, Debug)]
pub struct Regenerated {
    app: Box<App>,
    scale: Scale,
    seed: u64,
    ground: GeneratedFiles,
    info: TraceInfo,
}

impl Regenerated {
    /// From a model, with chance from a seed.
    ///
    /// # Errors
    /// When the model says too little, or has more data than fit.
    pub fn new(app: App, scale: Scale, seed: u64) -> Result<Self, Error> {
        let requests: u64 = app.stretches().iter().map(|stretch| timing::requests(stretch)).sum();
        if requests == 0 {
            return Err(Error::Empty);
        }
        let pages = ground::pages(&app, scale.data);
        if pages > PAGES_MAX {
            return Err(Error::Large(pages));
        }
        let ground = GeneratedFiles::new(&app, &scale);
        let elapsed_s = scale.for_s.unwrap_or(app.whole.elapsed_s / scale.rate);
        let info = TraceInfo {
            recorder: "model".to_owned(),
            clock: "made".to_owned(),
            elapsed_s,
            page_bytes: places::PAGE_BYTES,
            ..TraceInfo::default()
        };
        Ok(Self { app: Box::new(app), scale, seed, ground, info })
    }

    /// The table that `file` of an event points into.
    #[must_use]
    pub fn files(&self) -> &[FileEntry] {
        self.ground.entries()
    }

    /// The table that `stream` of an event points into.
    #[must_use]
    pub fn streams(&self) -> &[StreamEntry] {
        self.ground.streams()
    }

    /// Facts about the load as a whole.
    #[must_use]
    pub fn info(&self) -> &TraceInfo {
        &self.info
    }

    /// How many events there will be, about.
    #[must_use]
    pub fn events_count(&self) -> u64 {
        let once = self.app.whole.calls.max(self.app.whole.requests) as f64 * self.scale.users;
        let passes = self.info.elapsed_s * self.scale.rate / self.app.whole.elapsed_s.max(1e-9);
        (once * passes.max(1.0)) as u64
    }

    /// The events.
    pub fn events(&self) -> impl Iterator<Item = Event> + '_ {
        Walk::new(&self.app, &self.scale, &self.ground, self.seed)
    }
}

#[cfg(test)]
mod tests;
