//! A workload, exactly: the five parameters of Chen and Patterson (1994, section 5) and the keys
//! that Linux of today adds. How requests are drawn from it is the engine's business.

use std::fmt::{self, Write as _};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{KIB, MIB, parse_size, show_bytes};

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

/// Whether requests pass the page cache.
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
    #[error("unknown key `{0}`; the keys are {keys}", keys = KEYS.join(", "))]
    UnknownKey(String),
    /// The same key twice.
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

/// All keys, in the order they are shown.
pub const KEYS: [&str; 15] = [
    "unique_bytes",
    "size_mean",
    "size_dist",
    "read_frac",
    "seq_frac",
    "seq_scope",
    "process_num",
    "layout",
    "align",
    "depth",
    "access",
    "fsync_every",
    "rate",
    "arrivals",
    "state",
];

impl Workload {
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

    /// The same from pairs already split.
    ///
    /// # Errors
    /// When a pair cannot be read or the workload cannot be.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, WorkloadError> {
        let mut work = Self::default();
        let mut seen: Vec<&str> = Vec::new();
        for (key, value) in pairs {
            if seen.contains(&key) {
                return Err(WorkloadError::Twice(key.to_owned()));
            }
            seen.push(key);
            work.set(key, value)?;
        }
        if !seen.contains(&"align") {
            work.align = work.default_align();
        }
        work.check()?;
        Ok(work)
    }

    /// Keys with other values than their defaults that no law predicts. The five parameters, `depth`,
    /// `fsync_every` and `access` are never among them.
    pub fn unpredicted_keys(&self) -> impl Iterator<Item = &'static str> {
        let usual = Self::default();
        let differs = [
            (self.size_dist != usual.size_dist, "size_dist"),
            (self.seq_scope != usual.seq_scope, "seq_scope"),
            (self.layout != usual.layout, "layout"),
            (self.align != usual.align, "align"),
            (self.rate > 0.0, "rate"),
            (self.state != usual.state, "state"),
        ];
        differs.into_iter().filter_map(|(differs, key)| differs.then_some(key))
    }

    /// 4 KiB, or the request size where that is fixed and smaller.
    pub fn default_align(&self) -> u64 {
        if self.size_dist == SizeDist::Fixed { self.size_mean.min(4 * KIB) } else { 4 * KIB }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), WorkloadError> {
        match key {
            "unique_bytes" => self.unique_bytes = size("unique_bytes", value)?,
            "size_mean" => self.size_mean = size("size_mean", value)?,
            "read_frac" => self.read_frac = fraction("read_frac", value)?,
            "seq_frac" => self.seq_frac = fraction("seq_frac", value)?,
            "process_num" => self.process_num = count("process_num", value)?,
            "align" => self.align = size("align", value)?,
            "depth" => self.depth = count("depth", value)?,
            "fsync_every" => self.fsync_every = count("fsync_every", value)?,
            "rate" => self.rate = rate(value)?,
            "size_dist" => {
                let laws = [
                    ("normal", SizeDist::Normal),
                    ("fixed", SizeDist::Fixed),
                    ("exponential", SizeDist::Exponential),
                ];
                self.size_dist = word("size_dist", value, &laws)?;
            }
            "seq_scope" => {
                let scopes = [("any", SeqScope::Any), ("direction", SeqScope::Direction)];
                self.seq_scope = word("seq_scope", value, &scopes)?;
            }
            "layout" => {
                let layouts = [("private", Layout::Private), ("shared", Layout::Shared)];
                self.layout = word("layout", value, &layouts)?;
            }
            "arrivals" => {
                let laws = [("fixed", Arrivals::Fixed), ("poisson", Arrivals::Poisson)];
                self.arrivals = word("arrivals", value, &laws)?;
            }
            "access" => {
                let ways = [("buffered", Access::Buffered), ("direct", Access::Direct)];
                self.access = word("access", value, &ways)?;
            }
            "state" => {
                self.state = word("state", value, &[("warm", State::Warm), ("cold", State::Cold)])?;
            }
            _ => return Err(WorkloadError::UnknownKey(key.to_owned())),
        }
        Ok(())
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

    /// The same without these.
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
        let usual =
            Self { size_mean: self.size_mean, size_dist: self.size_dist, ..Self::default() };
        let mut text = format!(
            "unique_bytes={},size_mean={},read_frac={},seq_frac={},process_num={}",
            self.unique_bytes, self.size_mean, self.read_frac, self.seq_frac, self.process_num
        );
        let mut add = |key: &str, value: &dyn fmt::Display, differs: bool| {
            if differs {
                let _ = write!(text, ",{key}={value}"); // a String takes everything
            }
        };
        add("size_dist", &name(&self.size_dist), self.size_dist != SizeDist::Normal);
        add("seq_scope", &name(&self.seq_scope), self.seq_scope != usual.seq_scope);
        add("layout", &name(&self.layout), self.layout != usual.layout);
        add("align", &self.align, self.align != usual.default_align());
        add("depth", &self.depth, self.depth != usual.depth);
        add("access", &name(&self.access), self.access != usual.access);
        add("fsync_every", &self.fsync_every, self.fsync_every != 0);
        add("rate", &self.rate, self.rate != 0.0);
        add("arrivals", &name(&self.arrivals), self.arrivals != usual.arrivals);
        add("state", &name(&self.state), self.state != usual.state);
        text
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.literal())
    }
}

fn name(value: &impl Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        _ => String::new(),
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

fn rate(value: &str) -> Result<f64, WorkloadError> {
    value.parse().map_err(|_| wrong("rate", value, "requests per second".to_owned()))
}

fn check_range(key: &'static str, number: f64) -> Result<(), WorkloadError> {
    if (0.0..=1.0).contains(&number) {
        return Ok(());
    }
    Err(wrong(key, &number.to_string(), "a number from 0 to 1".to_owned()))
}

fn word<T: Copy>(key: &'static str, value: &str, words: &[(&str, T)]) -> Result<T, WorkloadError> {
    if let Some((_, found)) = words.iter().find(|(name, _)| *name == value) {
        return Ok(*found);
    }
    let names: Vec<&str> = words.iter().map(|(name, _)| *name).collect();
    Err(wrong(key, value, format!("one of {}", names.join(", "))))
}

fn wrong(key: &'static str, value: &str, expected: String) -> WorkloadError {
    WorkloadError::Value { key, value: value.to_owned(), expected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_keys_have_the_defaults() {
        assert_eq!(Workload::parse("").unwrap(), Workload::default());
        let work = Workload::parse("unique_bytes=1GiB, read_frac=1").unwrap();
        assert_eq!(work, Workload { unique_bytes: 1 << 30, read_frac: 1.0, ..Workload::default() });
    }

    #[test]
    fn align_follows_a_small_fixed_size() {
        let align = |text: &str| Workload::parse(text).unwrap().align;
        assert_eq!(align("size_mean=512,size_dist=fixed"), 512);
        assert_eq!(align("size_mean=64k,size_dist=fixed"), 4096);
        assert_eq!(align("size_mean=64k"), 4096);
        assert_eq!(align("size_mean=64k,align=512"), 512);
    }

    #[test]
    fn what_cannot_be_is_refused_with_one_line() {
        for (text, part) in [
            ("read_frac=1.5", "from 0 to 1"),
            ("read_frac=nan", "from 0 to 1"),
            ("unique_byts=1M", "unknown key `unique_byts`"),
            ("unique_bytes=1MiB,size_mean=1MiB", "8 mean requests"),
            ("process_num=0", "1 to 4096"),
            ("size_dist=zipf", "one of normal, fixed, exponential"),
            ("read_frac=1,read_frac=0", "given twice"),
            ("read_frac", "not key=value"),
            ("align=3000", "power of two"),
            ("size_mean=2k", "at least align"),
        ] {
            let message = Workload::parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
            assert!(!message.contains('\n'));
        }
    }

    #[test]
    fn a_literal_reads_back_as_the_same_workload() {
        for text in [
            "unique_bytes=1GiB,size_mean=512,size_dist=fixed,state=cold",
            "read_frac=0.25,seq_frac=1,process_num=3,layout=shared,seq_scope=direction",
            "depth=8,access=direct,fsync_every=4,rate=100,arrivals=poisson,align=8k",
        ] {
            let work = Workload::parse(text).unwrap();
            assert_eq!(Workload::parse(&work.literal()).unwrap(), work, "{work}");
        }
    }

    #[test]
    fn json_holds_plain_numbers_and_reads_back() {
        let work = Workload::default();
        let json = serde_json::to_value(&work).unwrap();
        assert_eq!(json["unique_bytes"], 67_108_864);
        assert_eq!(json["state"], "warm");
        assert_eq!(serde_json::from_value::<Workload>(json).unwrap(), work);
    }
}
