//! An application's demands on a system (`ioscape_model::app::Demand`), from its trace: two passes.
//!
//! The first looks at what must be known beforehand: which files are run, which device holds the
//! data, which of them were in memory, when streams waited in calls that nobody recorded. The second
//! counts operations by category, shares the time among the streams that are at it, and shows the
//! events to page caches of a ladder of sizes.

mod classify;
mod critical;
mod files;
mod look;
mod memory;

use ioscape_model::app::{Demand, Machine, Work};
use parquet::file::reader::ChunkReader;

use crate::{Event, Layer, Store, StoreError, Tables, TraceInfo};
use classify::Classifier;
use critical::Critical;
use look::Look;
use memory::Ladder;

/// Counts what a trace asks of a system; none where its layer shows no calls. `see` is called now and
/// then with the share that is done.
///
/// # Errors
/// When it cannot be read.
pub fn measure<R: ChunkReader + 'static>(
    store: &Store<R>,
    see: &mut dyn FnMut(f64),
) -> Result<Option<Demand>, StoreError> {
    if !matches!(store.info().layer, Layer::Syscall | Layer::Library) {
        return Ok(None);
    }
    let tables = store.tables()?;
    let mut look = Look::new(&tables, store.info());
    store.for_each_watched(&mut |share| see(share / 2.0), |event| {
        look.see(event);
        Ok(())
    })?;
    look.finish(&tables.streams);
    let mut counting = Counting::new(&tables, store.info(), look);
    store.for_each_watched(&mut |share| see(0.5 + share / 2.0), |event| {
        counting.event(event);
        Ok(())
    })?;
    Ok(Some(counting.demand(store.info())))
}

/// The second pass.
struct Counting {
    classifier: Classifier,
    critical: Critical,
    ladder: Ladder,
    warm_frac: Option<f64>,
}

impl Counting {
    fn new(tables: &Tables, info: &TraceInfo, look: Look) -> Self {
        let overhead_ns = info.overhead_s * 1e9;
        Self {
            ladder: Ladder::new(&look),
            warm_frac: look.files.warm_frac(),
            critical: Critical::new(&tables.streams, look.idle, (overhead_ns, machine(info).cpus)),
            classifier: Classifier::new(look.files),
        }
    }

    fn event(&mut self, event: &Event) {
        let operation = self.classifier.classify(event);
        self.critical.event(event, &operation);
        self.ladder.event(event);
    }

    fn demand(mut self, info: &TraceInfo) -> Demand {
        let end_ns = (info.elapsed_s * 1e9) as u64;
        let timed = self.critical.finish(end_ns);
        let mut categories = self.classifier.categories();
        for (name, category) in &mut categories {
            let Some(time) = timed.categories.get(*name) else { continue };
            category.critical_frac = time.critical_frac();
            category.mean_s = time.mean_s();
        }
        let (caches, write_back) = self.ladder.finish();
        Demand {
            elapsed_s: if info.elapsed_s > 0.0 { info.elapsed_s } else { timed.elapsed_s },
            machine: machine(info),
            work: Work { streams: timed.streams, ..timed.work },
            categories: categories.into_iter().map(|(name, c)| (name.to_owned(), c)).collect(),
            caches,
            write_back,
            warm_frac: self.warm_frac,
            sequential_bytes: timed.sequential_bytes,
            overlap: timed.overlap,
        }
    }
}

/// The machine of a recording, as far as its trace says.
fn machine(info: &TraceInfo) -> Machine {
    let host = info.host.as_ref();
    let fact = |key: &str| host.and_then(|host| host.get(key));
    let number = |key: &str| fact(key).and_then(serde_json::Value::as_u64);
    let cpu_model = fact("cpu_model").and_then(serde_json::Value::as_str).unwrap_or_default();
    Machine {
        cpu_model: cpu_model.to_owned(),
        cpus: number("cpus").and_then(|cpus| u32::try_from(cpus).ok()).unwrap_or(0),
        processor_s: fact("processor_s").and_then(serde_json::Value::as_f64),
    }
}

#[cfg(test)]
mod tests;
