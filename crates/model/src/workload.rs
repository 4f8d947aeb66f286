//! A workload, exactly: the five parameters of Chen and Patterson (1994, section 5) and the keys
//! that Linux of today adds. How requests are drawn from it is the engine's business.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{KIB, MIB, parse_size, show_bytes};
use crate::word;

/// A share (the data of one process) holds at least this many mean requests.
pub const SHARE_REQUESTS_MIN: u64 = 8;
const PROCESS_NUM_MAX: u32 = 4096;
pub(crate) const DEPTH_MAX: u32 = 4096;
pub(crate) const SIZE_MEAN_MAX: u64 = 1 << 30;

/// The law of request sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SizeDist {
    /// Normal with coefficient of variation 1, redrawn above zero, rescaled to the mean.
    Normal,
    /// All the same.
    Fixed,
    /// Exponential: the positive law whose coefficient of variation is 1.
    Exponential,
}

/// What a sequential request follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SeqScope {
    /// The process's previous request, whatever its direction: the paper's letter.
    Any,
    /// The process's previous request of the same direction, as in fio.
    Direction,
}

/// Where the processes' shares lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Layout {
    /// A file each.
    Private,
    /// Disjoint ranges of one file.
    Shared,
}

/// Whether requests go through the page cache or bypass it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Access {
    /// Through the page cache.
    #[default]
    Buffered,
    /// Around it.
    Direct,
}

/// When the requests of an open loop begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// At equal distances.
    #[default]
    Fixed,
    /// At random, independent of each other: a Poisson process.
    Poisson,
}

/// What the page cache holds at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// What fits is read in beforehand.
    Warm,
    /// Nothing.
    Cold,
}

/// The parameters of a workload. Serialised as plain numbers; missing keys have the defaults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Workload {
    /// Data touched, all processes together, bytes.
    pub unique_bytes: u64,
    /// Mean request size, bytes.
    pub size_mean: u64,
    /// The law of request sizes.
    pub size_dist: SizeDist,
    /// Probability that a request is a read.
    pub read_frac: f64,
    /// Probability that a request starts where the previous one ended.
    pub seq_frac: f64,
    /// Which previous one.
    pub seq_scope: SeqScope,
    /// Workers.
    pub process_num: u32,
    /// Where their shares lie.
    pub layout: Layout,
    /// Offsets and sizes are multiples of it, bytes.
    pub align: u64,
    /// Requests in flight per process.
    pub depth: u32,
    /// Through the page cache or around it.
    pub access: Access,
    /// Writes between two fdatasyncs; 0 is never.
    pub fsync_every: u32,
    /// Requests per second, open loop; 0 is a closed loop.
    pub rate: f64,
    /// When the requests of an open loop begin.
    pub arrivals: Arrivals,
    /// What is cached at the start.
    pub state: State,
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            unique_bytes: 64 * MIB,
            size_mean: 16 * KIB,
            size_dist: SizeDist::Normal,
            read_frac: 0.5,
            seq_frac: 0.5,
            seq_scope: SeqScope::Any,
            process_num: 1,
            layout: Layout::Private,
            align: 4 * KIB,
            depth: 1,
            access: Access::Buffered,
            fsync_every: 0,
            rate: 0.0,
            arrivals: Arrivals::Fixed,
            state: State::Warm,
        }
    }
}

/// A workload that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// Not `key=value`.
    #[error("`{0}` is not key=value; write for example unique_bytes=64MiB,read_frac=0.7")]
    NotAPair(String),
    /// No such key.
    #[error("unknown key `{0}`; the keys are {keys}", keys = KEYS.map(|key| key.name).join(", "))]
    UnknownKey(String),
    /// A key that stands twice.
    #[error("`{0}` is given twice; leave one out")]
    Twice(String),
    /// A value that cannot be read or is out of range.
    #[error("{key}={value}: {expected}")]
    Value {
        /// The key.
        key: &'static str,
        /// What was given.
        value: String,
        /// What would work.
        expected: String,
    },
    /// The share of a process is too small for its requests.
    #[error(
        "a share is {share} (unique_bytes / process_num) and must hold 8 mean requests of {size}; \
         raise unique_bytes or lower size_mean or process_num"
    )]
    ShareTooSmall {
        /// Share of a process.
        share: String,
        /// Mean request size.
        size: String,
    },
}

/// A key of a workload: how it is typed, shown and read.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// As it stands before the `=`.
    pub name: &'static str,
    /// The flag of that name.
    pub flag: &'static str,
    /// What kind of value it takes: `SIZE`.
    pub value: &'static str,
    /// What it is, in a line.
    pub help: &'static str,
    /// Who knows what it changes.
    kind: Kind,
    set: fn(&mut Workload, &'static str, &str) -> Result<(), WorkloadError>,
    show: fn(&Workload) -> String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// One of the five parameters of Chen and Patterson: always shown.
    Parameter,
    /// A map knows it, or it says nothing without one that it does not.
    Mapped,
    /// No map varies it.
    Measured,
}

/// All keys, in the order they are shown.
pub static KEYS: [Key; 15] = [
    Key {
        name: "unique_bytes",
        flag: "unique-bytes",
        value: "SIZE",
        help: "Data touched, all processes together",
        kind: Kind::Parameter,
        set: |work, key, value| size(key, value).map(|bytes| work.unique_bytes = bytes),
        show: |work| work.unique_bytes.to_string(),
    },
    Key {
        name: "size_mean",
        flag: "size-mean",
        value: "SIZE",
        help: "Mean request size",
        kind: Kind::Parameter,
        set: |work, key, value| size(key, value).map(|bytes| work.size_mean = bytes),
        show: |work| work.size_mean.to_string(),
    },
    Key {
        name: "size_dist",
        flag: "size-dist",
        value: "LAW",
        help: "Distribution of request sizes: normal, fixed, exponential",
        kind: Kind::Measured,
        set: |work, key, value| {
            let laws = [SizeDist::Normal, SizeDist::Fixed, SizeDist::Exponential];
            one_of(key, value, &laws).map(|law| work.size_dist = law)
        },
        show: |work| word(work.size_dist),
    },
    Key {
        name: "read_frac",
        flag: "read-frac",
        value: "FRACTION",
        help: "Probability that a request is a read",
        kind: Kind::Parameter,
        set: |work, key, value| fraction(key, value).map(|share| work.read_frac = share),
        show: |work| work.read_frac.to_string(),
    },
    Key {
        name: "seq_frac",
        flag: "seq-frac",
        value: "FRACTION",
        help: "Probability that a request starts where the previous one ended",
        kind: Kind::Parameter,
        set: |work, key, value| fraction(key, value).map(|share| work.seq_frac = share),
        show: |work| work.seq_frac.to_string(),
    },
    Key {
        name: "seq_scope",
        flag: "seq-scope",
        value: "SCOPE",
        help: "What a sequential request continues: the last request of any kind (any), or the last one of \
               its own kind, read or write (direction)",
        kind: Kind::Measured,
        set: |work, key, value| {
            let scopes = [SeqScope::Any, SeqScope::Direction];
            one_of(key, value, &scopes).map(|scope| work.seq_scope = scope)
        },
        show: |work| word(work.seq_scope),
    },
    Key {
        name: "process_num",
        flag: "process-num",
        value: "N",
        help: "Processes that make requests at the same time",
        kind: Kind::Parameter,
        set: |work, key, value| count(key, value).map(|count| work.process_num = count),
        show: |work| work.process_num.to_string(),
    },
    Key {
        name: "layout",
        flag: "layout",
        value: "LAYOUT",
        help: "Where each process has its part of the data: in a file of its own (private), or in one file \
               for all (shared)",
        kind: Kind::Measured,
        set: |work, key, value| {
            let layouts = [Layout::Private, Layout::Shared];
            one_of(key, value, &layouts).map(|layout| work.layout = layout)
        },
        show: |work| word(work.layout),
    },
    Key {
        name: "align",
        flag: "align",
        value: "SIZE",
        help: "Offsets and sizes are multiples of it",
        kind: Kind::Measured,
        set: |work, key, value| size(key, value).map(|bytes| work.align = bytes),
        show: |work| work.align.to_string(),
    },
    Key {
        name: "depth",
        flag: "depth",
        value: "N",
        help: "Requests in flight per process",
        kind: Kind::Mapped,
        set: |work, key, value| count(key, value).map(|count| work.depth = count),
        show: |work| work.depth.to_string(),
    },
    Key {
        name: "access",
        flag: "access",
        value: "ACCESS",
        help: "Through the page cache or past it: buffered, direct",
        kind: Kind::Mapped,
        set: |work, key, value| {
            let ways = [Access::Buffered, Access::Direct];
            one_of(key, value, &ways).map(|access| work.access = access)
        },
        show: |work| word(work.access),
    },
    Key {
        name: "fsync_every",
        flag: "fsync-every",
        value: "N",
        help: "Writes between two fdatasyncs; 0 is never",
        kind: Kind::Mapped,
        set: |work, key, value| count(key, value).map(|count| work.fsync_every = count),
        show: |work| work.fsync_every.to_string(),
    },
    Key {
        name: "rate",
        flag: "rate",
        value: "RATE",
        help: "Requests per second of all processes together, issued even if earlier ones are not done (open \
               loop); 0: each process keeps `depth` requests in flight and makes the next when one is done (closed loop)",
        kind: Kind::Measured,
        set: |work, key, value| rate(key, value).map(|rate| work.rate = rate),
        show: |work| work.rate.to_string(),
    },
    Key {
        name: "arrivals",
        flag: "arrivals",
        value: "ARRIVALS",
        help: "When the requests of an open loop begin: fixed (at equal distances), poisson",
        kind: Kind::Mapped,
        set: |work, key, value| {
            let laws = [Arrivals::Fixed, Arrivals::Poisson];
            one_of(key, value, &laws).map(|law| work.arrivals = law)
        },
        show: |work| word(work.arrivals),
    },
    Key {
        name: "state",
        flag: "state",
        value: "STATE",
        help: "What the page cache holds: as much of the data as fits (warm), or none of it during the whole measurement (cold)",
        kind: Kind::Measured,
        set: |work, key, value| {
            one_of(key, value, &[State::Warm, State::Cold]).map(|state| work.state = state)
        },
        show: |work| word(work.state),
    },
];

impl Workload {
    /// Requests in flight, all processes together.
    pub fn in_flight(&self) -> f64 {
        f64::from(self.process_num) * f64::from(self.depth)
    }

    /// This workload with each request sent when one before it is done, whatever its rate.
    #[must_use]
    pub fn closed_loop(&self) -> Self {
        Self { rate: 0.0, arrivals: Arrivals::default(), ..self.clone() }
    }

    /// Fdatasyncs for each write.
    pub fn syncs_per_write(&self) -> f64 {
        if self.fsync_every > 0 { f64::from(self.fsync_every).recip() } else { 0.0 }
    }

    /// Reads `key=value` pairs joined by commas; missing keys have the defaults.
    ///
    /// # Errors
    /// When a pair cannot be read or the workload cannot be.
    pub fn parse(text: &str) -> Result<Self, WorkloadError> {
        let pairs = text.split(',').map(str::trim).filter(|pair| !pair.is_empty());
        let mut split = Vec::new();
        for pair in pairs {
            let Some((key, value)) = pair.split_once('=') else {
                return Err(WorkloadError::NotAPair(pair.to_owned()));
            };
            split.push((key.trim(), value.trim()));
        }
        Self::from_pairs(split)
    }

    /// Reads pairs already split; missing keys have the defaults.
    ///
    /// # Errors
    /// When a pair cannot be read or the workload cannot be.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, WorkloadError> {
        Self::default().with_pairs(pairs)
    }

    /// This workload with other values of some keys; `align` follows where it is not among them.
    ///
    /// # Errors
    /// When a pair cannot be read or the workload cannot be.
    pub fn with_pairs<'a>(
        mut self,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, WorkloadError> {
        let mut seen: Vec<&str> = Vec::new();
        for (name, value) in pairs {
            if seen.contains(&name) {
                return Err(WorkloadError::Twice(name.to_owned()));
            }
            seen.push(name);
            let unknown = || WorkloadError::UnknownKey(name.to_owned());
            let key = KEYS.iter().find(|key| key.name == name).ok_or_else(unknown)?;
            (key.set)(&mut self, key.name, value)?;
        }
        if !seen.contains(&"align") {
            self.align = self.default_align();
        }
        self.check()?;
        Ok(self)
    }

    /// Keys with other values than their defaults that no law predicts.
    pub fn unpredicted_keys(&self) -> impl Iterator<Item = &'static str> {
        let measured = KEYS.iter().filter(|key| key.kind == Kind::Measured);
        let usual = Self::default();
        measured.filter(move |key| (key.show)(self) != (key.show)(&usual)).map(|key| key.name)
    }

    /// 4 KiB, or the request size where that is fixed and smaller.
    pub fn default_align(&self) -> u64 {
        if self.size_dist == SizeDist::Fixed { self.size_mean.min(4 * KIB) } else { 4 * KIB }
    }

    /// Whether this workload can be.
    ///
    /// # Errors
    /// What is wrong with it and what would work.
    pub fn check(&self) -> Result<(), WorkloadError> {
        check_range("read_frac", self.read_frac)?;
        check_range("seq_frac", self.seq_frac)?;
        let wrong = |key, value: String, expected: &str| {
            Err(WorkloadError::Value { key, value, expected: expected.to_owned() })
        };
        if self.align == 0 || !self.align.is_power_of_two() || self.align > MIB {
            return wrong("align", self.align.to_string(), "a power of two up to 1 MiB");
        }
        if self.size_mean == 0 || self.size_mean > SIZE_MEAN_MAX {
            return wrong("size_mean", self.size_mean.to_string(), "1 byte to 1 GiB");
        }
        if self.size_mean < self.align {
            return wrong("size_mean", self.size_mean.to_string(), "at least align; lower align");
        }
        if self.size_dist == SizeDist::Fixed && !self.size_mean.is_multiple_of(self.align) {
            return wrong("size_mean", self.size_mean.to_string(), "a multiple of align");
        }
        if self.process_num == 0 || self.process_num > PROCESS_NUM_MAX {
            return wrong("process_num", self.process_num.to_string(), "1 to 4096");
        }
        if self.depth == 0 || self.depth > DEPTH_MAX {
            return wrong("depth", self.depth.to_string(), "1 to 4096");
        }
        if !self.rate.is_finite() || self.rate < 0.0 {
            return wrong("rate", self.rate.to_string(), "0 (closed loop) or requests per second");
        }
        if self.share_bytes() < SHARE_REQUESTS_MIN * self.size_mean {
            return Err(WorkloadError::ShareTooSmall {
                share: show_bytes(self.share_bytes() as f64),
                size: show_bytes(self.size_mean as f64),
            });
        }
        Ok(())
    }

    /// Whether it has several requests in flight per process, or fdatasyncs: what the graphs of a
    /// map do not have.
    pub fn has_extras(&self) -> bool {
        self.depth > 1 || self.fsync_every > 0
    }

    /// This workload one request at a time and without fdatasyncs.
    #[must_use]
    pub fn without_extras(&self) -> Self {
        Self { depth: 1, fsync_every: 0, ..self.clone() }
    }

    /// Data of one process, bytes: a multiple of `align`.
    pub fn share_bytes(&self) -> u64 {
        self.unique_bytes / u64::from(self.process_num.max(1)) / self.align.max(1)
            * self.align.max(1)
    }

    /// The five parameters and every other key that is not at its default, as they are typed.
    pub fn literal(&self) -> String {
        let five = KEYS.iter().filter(|key| key.kind == Kind::Parameter);
        let five = five.map(|key| (key.name, (key.show)(self)));
        let pairs = five.chain(self.unusual_pairs());
        pairs.map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
    }

    /// Keys besides the five parameters that are not at their default, with their values as they
    /// are typed: `("access", "direct")`.
    pub fn unusual_pairs(&self) -> impl Iterator<Item = (&'static str, String)> {
        let usual = Self { align: self.default_align(), ..Self::default() };
        let others = KEYS.iter().filter(|key| key.kind != Kind::Parameter);
        let unusual = others.filter(move |key| (key.show)(self) != (key.show)(&usual));
        unusual.map(|key| (key.name, (key.show)(self)))
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.literal())
    }
}

fn size(key: &'static str, value: &str) -> Result<u64, WorkloadError> {
    parse_size(value).map_err(|expected| wrong(key, value, expected))
}

fn count(key: &'static str, value: &str) -> Result<u32, WorkloadError> {
    value.parse().map_err(|_| wrong(key, value, "a whole number".to_owned()))
}

fn fraction(key: &'static str, value: &str) -> Result<f64, WorkloadError> {
    let number: f64 =
        value.parse().map_err(|_| wrong(key, value, "a number from 0 to 1".to_owned()))?;
    check_range(key, number)?;
    Ok(number)
}

fn rate(key: &'static str, value: &str) -> Result<f64, WorkloadError> {
    value.parse().map_err(|_| wrong(key, value, "requests per second".to_owned()))
}

fn check_range(key: &'static str, number: f64) -> Result<(), WorkloadError> {
    if (0.0..=1.0).contains(&number) {
        return Ok(());
    }
    Err(wrong(key, &number.to_string(), "a number from 0 to 1".to_owned()))
}

fn one_of<T: Copy + Serialize>(
    key: &'static str,
    value: &str,
    all: &[T],
) -> Result<T, WorkloadError> {
    let words: Vec<String> = all.iter().map(word).collect();
    let found = words.iter().position(|word| word == value).map(|at| all[at]);
    found.ok_or_else(|| wrong(key, value, format!("one of {}", words.join(", "))))
}

fn wrong(key: &'static str, value: &str, expected: String) -> WorkloadError {
    WorkloadError::Value { key, value: value.to_owned(), expected }
}

#[cfg(test)]
mod tests;
