//! An application, described: what `ioscape trace model` writes and `trace show` prints. It says how
//! much is read and written, in which sizes, order and concurrency, and when it must be durable; it
//! holds no name, path, address, key or content. Every field may be left out, so that a model can be
//! typed by hand: `five` and `elapsed_s` are enough to be asked of a map.

mod caches;
mod demand;
mod site;

use std::collections::BTreeMap;

pub use demand::{CacheRung, Category, Demand, DirtyRung, Machine, Misses, OverlapRung, Work};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use caches::{CacheMisses, CachePart, Caches, PAGE_BYTES, PageCacheUse, PartMisses};
pub use site::{Counted, FileGroup, Month, PageKind, Profile, Site};

/// Models of this version are written; older ones are read.
pub const APP_VERSION: u32 = 1;
/// No model is larger, as JSON.
pub const APP_BYTES_MAX: usize = 64 << 10;

/// Phases stand for the whole where they have this share of its requests.
const PHASES_SHARE: f64 = 0.99;

/// An application as a whole and phase by phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct App {
    /// Version of this format.
    pub app_version: u32,
    /// Who saw it: `ebpf`, `ptrace`, the format it was imported from, `hand`, `mix`.
    pub recorder: String,
    /// Where it was seen: `syscall`, `block`, …
    pub layer: String,
    /// The whole time.
    #[serde(flatten)]
    pub whole: Behaviour,
    /// Events that were lost.
    pub lost: u64,
    /// Bytes and page insertions of files that no recorded event explains, over all of them.
    pub unexplained_fraction: f64,
    /// Stretches of time with one behaviour each, in order; empty where there is only one.
    pub phases: Vec<Phase>,
    /// Misses of caches of every size; null where nobody worked them out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub caches: Option<Caches>,
    /// Counts of all that it asks of a system, for its run time there; null where nobody counted.
    pub demand: Option<Demand>,
    /// The web site that an access log is of; null where it is no log of a web server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub site: Option<Site>,
    /// What is doubtful or not known.
    pub warnings: Vec<Doubt>,
}

/// A stretch of time with one behaviour.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Phase {
    /// When it began, seconds since the start.
    pub from_s: f64,
    /// How it behaved.
    #[serde(flatten)]
    pub behaviour: Behaviour,
}

/// How a program behaved for some time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Behaviour {
    /// How long, seconds.
    pub elapsed_s: f64,
    /// Processor time of all streams, seconds; null where nobody measured it.
    pub cpu_s: Option<f64>,
    /// The five parameters of Chen and Patterson.
    pub five: Five,
    /// These and what else a workload says, as `-w` takes it.
    pub workload: String,
    /// Bytes read from regular files by calls.
    pub bytes_read: u64,
    /// Bytes written to regular files by calls.
    pub bytes_written: u64,
    /// Events of every kind.
    pub calls: u64,
    /// Reads and writes that moved bytes of files.
    pub requests: u64,
    /// Calls that failed.
    pub failed: u64,
    /// Calls by operation.
    pub operations: BTreeMap<String, u64>,
    /// Sizes of requests.
    pub sizes: Sizes,
    /// Data touched.
    pub unique: Unique,
    /// Where requests lie.
    pub sequence: Sequence,
    /// How many at a time.
    pub concurrency: Concurrency,
    /// Whether requests wait for those before them.
    pub arrivals: Loop,
    /// When requests come.
    pub arriving: Arriving,
    /// Time between calls.
    pub think: Think,
    /// Operations on names and attributes.
    pub metadata: Metadata,
    /// What must be durable, and when.
    pub syncs: Syncs,
    /// What follows what.
    pub order: Order,
    /// Files by class, those with most bytes first.
    pub files: Vec<FileClass>,
    /// Threads or clients, those with most bytes first.
    pub streams: Vec<StreamShare>,
}

/// The five parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Five {
    /// Distinct data touched, mapped pages included, bytes.
    pub unique_bytes: u64,
    /// Mean request, bytes.
    pub size_mean: f64,
    /// Share of requests that read.
    pub read_frac: f64,
    /// Share of requests that start where the one before of their handle ended.
    pub seq_frac: f64,
    /// Streams that are at it at a time.
    pub process_num: u32,
}

/// Sizes of requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Sizes {
    /// Standard deviation over mean; the paper supposes 1.
    pub variation: f64,
    /// Of reads.
    pub read: SizeLaw,
    /// Of writes.
    pub write: SizeLaw,
}

/// Sizes in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SizeLaw {
    /// Mean, bytes.
    pub mean_bytes: f64,
    /// The sizes that are asked for most.
    pub top: Vec<SizeCount>,
    /// Requests by size: each bucket from its `bytes` to the next, eight to a doubling.
    pub histogram: Vec<SizeCount>,
}

/// Requests of a size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SizeCount {
    /// Bytes.
    pub bytes: u64,
    /// Requests.
    pub count: u64,
}

/// Data touched, in whole pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Unique {
    /// Read by calls, bytes.
    pub read_bytes: u64,
    /// Written by calls, bytes.
    pub written_bytes: u64,
    /// Both, bytes.
    pub both_bytes: u64,
    /// Touched through mappings, bytes.
    pub mapped_bytes: u64,
    /// Program text and libraries touched; not among the five parameters, bytes.
    pub program_bytes: u64,
}

/// Where requests lie, seen from the one before of the same handle.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Sequence {
    /// Where it ended, and in the same direction (fio's way of counting).
    pub same_direction_frac: f64,
    /// Up to 128 KiB further on.
    pub forward_frac: f64,
    /// Before it.
    pub backward_frac: f64,
    /// At the distance that the one before had, and not zero.
    pub strided_frac: f64,
    /// Requests that follow each other without a gap, mean.
    pub run_requests_mean: f64,
    /// Bytes that follow each other without a gap, mean.
    pub run_bytes_mean: f64,
}

/// How many at a time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Concurrency {
    /// Calls in progress while any is.
    pub busy: f64,
    /// Streams that are active while any is, short work between calls included.
    pub active: f64,
    /// Streams that made requests.
    pub streams: u64,
    /// Requests in flight per stream.
    pub depth: u32,
    /// Share of requests that bypass the page cache (`O_DIRECT`).
    pub direct_frac: f64,
    /// Share of requests that were submitted and not waited for in the call.
    pub async_frac: f64,
}

/// Whether requests wait for those before them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Loop {
    /// They come when they come.
    Open,
    /// A stream's next one waits for the one before.
    #[default]
    Closed,
}

/// When requests come.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Arriving {
    /// How much later the next request starts when one takes a second longer: 1 in a closed loop, 0
    /// in an open one; null where durations did not differ.
    pub slope: Option<f64>,
    /// Requests per second.
    pub rate_per_s: f64,
    /// Standard deviation over mean of the time from start to start, per stream.
    pub variation: f64,
}

/// Time between calls of a stream, waiting for others left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Think {
    /// Mean, seconds.
    pub mean_s: f64,
    /// Of it on a processor, seconds; null where nobody measured it.
    pub processor_mean_s: Option<f64>,
    /// Half of the times are shorter, seconds.
    pub p50_s: f64,
    /// One in ten is longer, seconds.
    pub p90_s: f64,
    /// Time in calls that wait for no storage (futex, poll, sleep), all streams together, seconds.
    pub waiting_s: f64,
}

/// Operations on names and attributes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Metadata {
    /// Of all kinds, per second.
    pub per_s: f64,
    /// Of all kinds, per million bytes read and written; null where there were none.
    pub per_mb: Option<f64>,
    /// Share in the directory of the one before of the same stream.
    pub same_directory_frac: f64,
    /// Directories above the file, mean.
    pub depth_mean: f64,
    /// Entries that a call of `READDIR` gave, mean.
    pub entries_mean: f64,
}

/// What must be durable, and when.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Syncs {
    /// `fsync` and `fdatasync`.
    pub count: u64,
    /// For each write.
    pub per_write: f64,
    /// Writes between two of a file, as most are; 0 where there are none.
    pub every: u32,
    /// Writes that were durable when they returned (`O_SYNC`, `O_DSYNC`).
    pub sync_writes: u64,
    /// By the kind of file: `new`, `grown`, `overwritten`, `directory`, `clean` (nothing to write).
    pub by_kind: BTreeMap<String, SyncKind>,
}

/// Syncs of one kind of file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SyncKind {
    /// How many.
    pub count: u64,
    /// Pages written since the sync before, mean.
    pub pages_mean: f64,
    /// Pieces that these lie in, mean.
    pub extents_mean: f64,
    /// How long they took, mean, seconds; null where the trace has no durations.
    pub mean_s: Option<f64>,
}

/// What follows what within a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Order {
    /// From a class of calls (`read`, `write`, `sync`, `open`, `close`, `look`, `change`, `map`,
    /// `other`) to the next: how often.
    pub transitions: BTreeMap<String, BTreeMap<String, u64>>,
    /// A sequence of calls that comes again and again.
    pub transaction: Option<Transaction>,
}

/// A sequence of calls that comes again and again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Transaction {
    /// Calls in it.
    pub calls: u64,
    /// Share of calls that are like the one so many calls before.
    pub likeness: f64,
    /// Its calls in order, like ones in a row told as one.
    pub steps: Vec<String>,
}

/// Files of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct FileClass {
    /// The class of their extension, from a fixed list; `other` where it is not on it.
    pub class: String,
    /// Files that were read or written.
    pub files: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
}

/// What a stream did.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct StreamShare {
    /// Its requests.
    pub requests: u64,
    /// Bytes it read.
    pub bytes_read: u64,
    /// Bytes it wrote.
    pub bytes_written: u64,
    /// Its syncs.
    pub syncs: u64,
    /// Its time in calls, seconds.
    pub busy_s: f64,
}

/// A doubt about a description.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Doubt {
    /// What it is about.
    pub code: DoubtCode,
    /// What was seen, with its figures, and what to do.
    pub text: String,
}

/// What a doubt is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DoubtCode {
    /// It was seen for too short a time.
    Short,
    /// It made hardly any requests.
    FewRequests,
    /// Events were lost.
    Lost,
    /// Bytes or page insertions that no event explains.
    Unexplained,
    /// Much goes through mappings, of which repeated touches are not seen.
    Mapped,
    /// Times are missing or coarse.
    Clock,
    /// Its layer does not show what is asked.
    Layer,
    /// It cannot be told whether requests wait for each other.
    Arrivals,
    /// Lines of an imported trace could not be read.
    Malformed,
    /// Counted beyond what memory may hold.
    Bounded,
    /// Put together from several.
    Mixed,
    /// Something that the recorder could not see.
    Limit,
}

/// A model that cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
    /// Not JSON of this form.
    #[error("it is no application model: {0}; `ioscape trace model` makes them")]
    Form(String),
    /// Made by a later version.
    #[error(
        "it is a model of version {0}, and this build reads up to {APP_VERSION}: update ioscape"
    )]
    Newer(u32),
    /// A number that cannot be.
    #[error("{0}")]
    Value(String),
}

impl App {
    /// Reads a model.
    ///
    /// # Errors
    /// When it is none, or a number in it cannot be.
    pub fn parse(text: &str) -> Result<Self, AppError> {
        let form = |error: serde_json::Error| AppError::Form(error.to_string());
        let value: serde_json::Value = serde_json::from_str(text).map_err(form)?;
        if ["five", "phases", "site"].iter().all(|key| value.get(key).is_none()) {
            return Err(AppError::Form("it has neither `five` nor `phases` nor `site`".to_owned()));
        }
        let app: Self = serde_json::from_value(value).map_err(form)?;
        if app.app_version > APP_VERSION {
            return Err(AppError::Newer(app.app_version));
        }
        app.whole.check("")?;
        if let Some(site) = &app.site {
            site.check().map_err(|wrong| AppError::Value(format!("site: {wrong}")))?;
        }
        for (at, phase) in app.phases.iter().enumerate() {
            phase.behaviour.check(&format!("phases[{at}]: "))?;
        }
        Ok(app)
    }

    /// The stretches of time to be asked about: the phases; the whole where there are none, or where they
    /// lack more than a hundredth of its requests, as in a model that would have been too large with all.
    pub fn stretches(&self) -> Vec<&Behaviour> {
        let requests: f64 = self.phases.iter().map(|phase| phase.behaviour.requests as f64).sum();
        let is_partial = requests > 0.0 && requests < PHASES_SHARE * self.whole.requests as f64;
        if self.phases.is_empty() || is_partial {
            return vec![&self.whole];
        }
        self.phases.iter().map(|phase| &phase.behaviour).collect()
    }
}

impl Behaviour {
    fn check(&self, place: &str) -> Result<(), AppError> {
        let wrong = |what: &str, value: f64, expected: &str| {
            Err(AppError::Value(format!("{place}{what} is {value}; it must be {expected}")))
        };
        let five = &self.five;
        for (name, value) in [("read_frac", five.read_frac), ("seq_frac", five.seq_frac)] {
            if !(0.0..=1.0).contains(&value) {
                return wrong(name, value, "a number from 0 to 1");
            }
        }
        let sizes = [("size_mean", five.size_mean), ("elapsed_s", self.elapsed_s)];
        for (name, value) in sizes {
            if !value.is_finite() || value < 0.0 {
                return wrong(name, value, "a number from 0 up");
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_may_be_typed_by_hand() {
        let text = r#"{"elapsed_s": 60, "five": {"unique_bytes": 1000000, "size_mean": 8192,
            "read_frac": 0.7, "seq_frac": 0.1, "process_num": 4}}"#;
        let app = App::parse(text).unwrap();
        assert_eq!((app.whole.five.process_num, app.whole.elapsed_s), (4, 60.0));
        assert_eq!(app.stretches().len(), 1);
    }

    #[test]
    fn a_model_reads_back_as_it_was() {
        let mut app = App { app_version: 1, lost: 3, ..App::default() };
        app.whole.operations.insert("READ".to_owned(), 7);
        app.phases.push(Phase { from_s: 1.5, ..Phase::default() });
        let text = serde_json::to_string(&app).unwrap();
        assert_eq!(App::parse(&text).unwrap(), app);
    }

    #[test]
    fn what_cannot_be_is_refused_with_one_line() {
        for (text, part) in [
            ("{}", "neither `five` nor `phases` nor `site`"),
            (r#"{"site": {"profiles": [{"lengths": [[3, 2, 1]]}]}}"#, "site: profiles[0]"),
            (r#"{"site": {"starts": [18446744073709551615, 1]}}"#, "site: all counts"),
            ("[1", "no application model"),
            (r#"{"app_version": 9, "five": {}}"#, "version 9"),
            (r#"{"five": {"read_frac": 1.5}}"#, "read_frac is 1.5"),
            (r#"{"phases": [{"five": {"size_mean": -1}}]}"#, "phases[0]: size_mean is -1"),
        ] {
            let message = App::parse(text).unwrap_err().to_string();
            assert!(message.contains(part) && !message.contains('\n'), "{text}: {message}");
        }
    }
}
