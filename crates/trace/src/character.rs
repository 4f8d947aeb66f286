//! What a trace says: the five parameters, then sizes, order, concurrency, durability, names and
//! phases, as an application model (`ioscape_model::app`). One pass says all of the whole; a second
//! one says it of each phase, where there are several.
//!
//! Definitions stand in `docs/method.md`; each has a file here.

mod arrivals;
pub(crate) mod dirty;
mod doubts;
mod flights;
mod histogram;
mod literal;
mod mix;
pub(crate) mod pages;
mod phases;
mod seen;
mod tally;
mod transaction;
mod union;

use std::collections::HashMap;
use std::io;

use ioscape_model::app::{APP_VERSION, App, Phase};
use parquet::file::reader::ChunkReader;
use serde::Serialize;

use crate::{Event, FileEntry, Layer, Sink, Store, StoreError, StreamEntry, TraceInfo};
use doubts::DoubtContext;
use phases::Windows;
use seen::Memory;
use tally::Tally;

pub(crate) use seen::Class;

pub use literal::workload;
pub use mix::{mix, model_text};

/// Characterises what is poured into it. Entries of files should come before the events that name
/// them, as [`Store::pour`] has it; a file that is not known counts as a regular one.
#[derive(Debug)]
pub struct Character {
    memory: Memory,
    whole: Tally,
    windows: Windows,
    /// When phases begin, and what is counted of each; empty in a first pass.
    phases: Vec<(u64, Tally)>,
    newest_ns: u64,
    stream_cpu_ns: HashMap<u32, u64>,
    info: TraceInfo,
}

impl Character {
    /// For events of a layer.
    #[must_use]
    pub fn new(layer: Layer) -> Self {
        Self {
            memory: Memory::new(layer),
            whole: Tally::default(),
            windows: Windows::default(),
            phases: Vec::new(),
            newest_ns: 0,
            stream_cpu_ns: HashMap::new(),
            info: TraceInfo::default(),
        }
    }

    /// For a second pass: counts each phase apart.
    fn of_phases(layer: Layer, cuts_ns: &[u64]) -> Self {
        let starts = std::iter::once(0).chain(cuts_ns.iter().copied());
        Self { phases: starts.map(|from| (from, Tally::default())).collect(), ..Self::new(layer) }
    }

    /// The description, after `finish`.
    #[must_use]
    pub fn app(&self) -> App {
        let info = &self.info;
        let seen_s = self.newest_ns as f64 / 1e9;
        let elapsed_s = if info.elapsed_s > 0.0 { info.elapsed_s } else { seen_s };
        let mut whole = self.whole.behaviour(elapsed_s, &self.memory);
        whole.cpu_s = info.cpu_s.or_else(|| self.cpu_s());
        let mut app = App {
            app_version: APP_VERSION,
            recorder: info.recorder.clone(),
            layer: word(info.layer),
            whole,
            lost: info.lost,
            unexplained_fraction: unexplained(info),
            phases: self.phases(elapsed_s),
            caches: None,
            demand: None,
            site: None,
            warnings: Vec::new(),
        };
        let ground = DoubtContext {
            info,
            has_durations: self.whole.has_durations(),
            arrivals_are_guessed: self.whole.arrivals_are_guessed(),
            is_bounded: self.memory.dirty.is_bounded,
        };
        app.warnings = doubts::doubts(&app, &ground);
        app
    }

    fn cpu_s(&self) -> Option<f64> {
        let total: u64 = self.stream_cpu_ns.values().sum();
        (total > 0).then_some(total as f64 / 1e9)
    }

    fn phases(&self, elapsed_s: f64) -> Vec<Phase> {
        let ends = self.phases.iter().skip(1).map(|(from, _)| *from as f64 / 1e9);
        let ends = ends.chain(std::iter::once(elapsed_s));
        let phase = |((from_ns, tally), end_s): (&(u64, Tally), f64)| {
            let from_s = *from_ns as f64 / 1e9;
            Phase { from_s, behaviour: tally.behaviour((end_s - from_s).max(0.0), &self.memory) }
        };
        self.phases.iter().zip(ends).map(phase).collect()
    }
}

impl Sink for Character {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        let seen = self.memory.see(event);
        self.newest_ns = self.newest_ns.max(event.start_ns + event.duration_ns.unwrap_or(0));
        self.whole.add(&seen);
        if self.phases.is_empty() {
            self.windows.add(&seen);
        } else {
            let at = self.phases.partition_point(|(from, _)| *from <= event.start_ns);
            self.phases[at.saturating_sub(1)].1.add(&seen);
        }
        Ok(())
    }

    fn file(&mut self, file: FileEntry) -> io::Result<()> {
        self.memory.file(file);
        Ok(())
    }

    fn stream(&mut self, stream: StreamEntry) -> io::Result<()> {
        self.stream_cpu_ns.insert(stream.id, stream.cpu_ns.unwrap_or(0));
        Ok(())
    }

    fn finish(&mut self, info: &TraceInfo) -> io::Result<()> {
        self.info = info.clone();
        Ok(())
    }
}

/// Describes a trace, phases included: `see` is called now and then with the share that is done.
///
/// # Errors
/// When it cannot be read.
pub fn characterise<R: ChunkReader + 'static>(
    store: &Store<R>,
    see: &mut dyn FnMut(f64),
) -> Result<App, StoreError> {
    let layer = store.info().layer;
    let mut first = Character::new(layer);
    store.pour_watched(&mut first, &mut |share| see(share / 2.0))?;
    let cuts_ns = first.windows.cuts_ns();
    if cuts_ns.is_empty() {
        return Ok(first.app());
    }
    drop(first);
    let mut second = Character::of_phases(layer, &cuts_ns);
    store.pour_watched(&mut second, &mut |share| see(0.5 + share / 2.0))?;
    Ok(second.app())
}

/// When phases after the first begin, ns; `see` is called now and then with the share that is done.
///
/// # Errors
/// When it cannot be read.
pub fn phase_starts_ns<R: ChunkReader + 'static>(
    store: &Store<R>,
    see: &mut dyn FnMut(f64),
) -> Result<Vec<u64>, StoreError> {
    let mut first = Character::new(store.info().layer);
    store.pour_watched(&mut first, see)?;
    Ok(first.windows.cuts_ns())
}

/// Bytes and page insertions of files that no event explains, over all of them.
fn unexplained(info: &TraceInfo) -> f64 {
    let Some(counted) = info.counted else { return 0.0 };
    let page_bytes = info.page_bytes.max(1) as f64;
    let pages = |pages: u64| pages as f64 * page_bytes;
    let all = counted.read_bytes.saturating_add(counted.written_bytes) as f64
        + pages(counted.pages_inserted);
    let lacking = counted.bytes_unexplained as f64 + pages(counted.pages_unexplained);
    if all > 0.0 { (lacking / all).min(1.0) } else { 0.0 }
}

/// The word of a value that serialises as one.
fn word(value: impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests;
