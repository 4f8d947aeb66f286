//! The description of a simulated device, as a TOML file holds it. Sizes are bytes, or texts such
//! as `"20MiB"` and `"2.5MB"`.

mod machine;
mod reserve;
mod trouble;

use ioscape_model::units::parse_size;
use ioscape_model::{Range, Ranges};
use serde::{Deserialize, Deserializer, Serialize};

use self::machine::ROOM_MAX_BYTES;
pub use self::machine::{Machine, MachineCache, MachineStorage, Policy};
pub use self::reserve::Reserve;
pub use self::trouble::Trouble;
use crate::error::{Error, Result};

const ROOM_FACTOR: u64 = 4;

/// A storage hierarchy or a machine, its noise and its faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimSpec {
    /// What it is called.
    pub name: String,
    /// What it stands for, in a sentence.
    #[serde(default)]
    pub about: String,
    /// Whether counters tell hits from misses, as they do on a local filesystem.
    #[serde(default = "yes")]
    pub counters: bool,
    /// Sequential reads hit with the probability of random ones raised to this power. At 1 both
    /// hit alike; a cyclic scan of a cache that evicts the least recently used is far above.
    #[serde(default = "one")]
    pub sequential_exponent: f64,
    /// Most data that may be laid out; without it, four times the largest `unique_bytes`.
    #[serde(default, deserialize_with = "size_option", skip_serializing_if = "Option::is_none")]
    pub room_bytes: Option<u64>,
    /// From this request on, every request fails with an I/O error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_after_requests: Option<u64>,
    /// An fdatasync that has nothing left to write, microseconds: the device empties its write
    /// cache. Without it, as long as the storage takes to begin a write.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sync_us: Option<f64>,
    /// The box that is worth exploring.
    pub ranges: SpecRanges,
    /// What the tool is told beforehand. Hints may be wrong, as on real machines.
    #[serde(default)]
    pub hints: SimHints,
    /// How visits depart from the law.
    #[serde(default)]
    pub noise: Noise,
    /// What goes wrong with it.
    #[serde(default, skip_serializing_if = "Trouble::is_none")]
    pub trouble: Trouble,
    /// Makes it faster at first than it is for long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Reserve>,
    /// A mechanism in place of the hierarchy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
    /// The hierarchy, fastest level first; the last one is the storage.
    #[serde(rename = "level", default, skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Level>,
}

/// One level of the hierarchy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    /// What it is.
    pub name: String,
    /// Data that reads find here. The last level has none: it holds everything.
    #[serde(default, deserialize_with = "size_option", skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Data that can be overwritten here without going further down: the dirty limit. Without
    /// it, as for reads; 0 is write-through.
    #[serde(default, deserialize_with = "size_option", skip_serializing_if = "Option::is_none")]
    pub write_bytes: Option<u64>,
    /// Requests that are served at a time.
    #[serde(default = "one")]
    pub parallel: f64,
    /// Most requests per second, all processes together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ops_per_s_max: Option<f64>,
    /// Most bytes per second, all processes together.
    #[serde(default, deserialize_with = "rate_option", skip_serializing_if = "Option::is_none")]
    pub bytes_per_s_max: Option<f64>,
    /// A read somewhere else.
    pub read_random: Cost,
    /// A read that goes on; without it, like one somewhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_sequential: Option<Cost>,
    /// A write somewhere else; without it, like a read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_random: Option<Cost>,
    /// A write that goes on; without it, like one somewhere else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_sequential: Option<Cost>,
}

impl Level {
    /// What a request costs that is served at this level.
    pub fn cost(&self, read: bool, sequential: bool) -> Cost {
        let read_cost = if sequential { self.read_sequential } else { None };
        let read_cost = read_cost.unwrap_or(self.read_random);
        if read {
            return read_cost;
        }
        let write_cost = if sequential { self.write_sequential } else { None };
        write_cost.or(self.write_random).unwrap_or(read_cost)
    }
}

/// What a request costs: a fixed time and its bytes at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// The part that does not depend on the size, microseconds.
    pub fixed_us: f64,
    /// The rate of the rest, bytes per second.
    #[serde(deserialize_with = "rate")]
    pub bytes_per_s: f64,
}

impl Cost {
    /// Seconds for a request of this many bytes.
    pub fn time_s(&self, bytes: f64) -> f64 {
        self.fixed_us * 1e-6 + bytes / self.bytes_per_s
    }
}

/// How a visit departs from the law. All zero: not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Noise {
    /// Coefficient of variation of a visit's mean throughput: two visits differ although
    /// each is steady. Lognormal with mean 1.
    pub between_cv: f64,
    /// Coefficient of variation of windows of 0.1 s within a visit.
    pub within_cv: f64,
    /// Autocorrelation of neighbouring windows of 0.1 s, 0 to below 1.
    pub within_correlation: f64,
    /// Share of the throughput that is missing at a visit's very start; negative: too much.
    pub transient_amplitude: f64,
    /// Time constant with which it comes back, seconds.
    pub transient_s: f64,
    /// Mean time of work between two stalls, seconds; 0: no stalls.
    pub stall_every_s: f64,
    /// Length of a stall, seconds.
    pub stall_s: f64,
    /// Coefficient of variation of the response times of one class at one level.
    pub response_cv: f64,
}

/// What the tool is told beforehand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SimHints {
    /// Page cache that could be had.
    #[serde(deserialize_with = "size_option", skip_serializing_if = "Option::is_none")]
    pub read_cache_bytes: Option<u64>,
    /// Dirty limit.
    #[serde(deserialize_with = "size_option", skip_serializing_if = "Option::is_none")]
    pub write_cache_bytes: Option<u64>,
    /// Whether it claims to live in memory.
    pub in_memory: bool,
}

/// A closed range of sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeRange {
    /// The smallest.
    #[serde(deserialize_with = "size")]
    pub min: u64,
    /// The largest.
    #[serde(deserialize_with = "size")]
    pub max: u64,
}

/// The box that is worth exploring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpecRanges {
    /// Data touched.
    pub unique_bytes: SizeRange,
    /// Mean request size.
    pub size_mean: SizeRange,
    /// Workers.
    pub process_num: Range,
}

impl SimSpec {
    /// Reads a description.
    ///
    /// # Errors
    /// One line: what is wrong and what would do.
    pub fn from_toml(text: &str) -> Result<Self> {
        let spec: Self = toml::from_str(text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start].matches('\n').count() + 1);
            let line = line.map_or_else(String::new, |line| format!(" (line {line})"));
            let what = error.message().trim().replace('\n', "; ");
            Error::Sim(format!(
                "simulated device{line}: {what}; compare with a preset: {}",
                Self::all_names().join(", ")
            ))
        })?;
        spec.check()?;
        Ok(spec)
    }

    /// The description as TOML; it reads back as the same.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("numbers, texts and tables are all TOML has")
    }

    /// The box that is worth exploring.
    pub fn ranges(&self) -> Ranges {
        let range = |sizes: SizeRange| Range { min: sizes.min, max: sizes.max };
        let SpecRanges { unique_bytes, size_mean, process_num } = self.ranges;
        Ranges::of_five(range(unique_bytes), range(size_mean), process_num).with_sweeps()
    }

    /// Most data that may be laid out, bytes.
    pub(super) fn room(&self) -> u64 {
        let usual = self.ranges.unique_bytes.max.saturating_mul(ROOM_FACTOR);
        self.room_bytes.unwrap_or(usual)
    }

    /// Whether this device can be.
    ///
    /// # Errors
    /// One line: what is wrong and what would do.
    pub fn check(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::Sim(format!("simulated device: {what}")));
        match &self.machine {
            Some(machine) => self.check_machine(machine)?,
            None => self.check_levels()?,
        }
        if let Err(error) = self.ranges().check() {
            return wrong(format!("ranges.{error}"));
        }
        if !(self.sequential_exponent >= 0.0 && self.sequential_exponent.is_finite()) {
            return wrong("sequential_exponent must be 0 or more; 1 is usual".to_owned());
        }
        if self.sync_us.is_some_and(|sync_us| !(sync_us >= 0.0 && sync_us.is_finite())) {
            return wrong("sync_us must be 0 or more microseconds".to_owned());
        }
        self.noise.check()?;
        self.reserve.map_or(Ok(()), |reserve| reserve.check())?;
        self.trouble.check()
    }

    fn check_levels(&self) -> Result<()> {
        let wrong = |what: String| Err(Error::Sim(format!("simulated device: {what}")));
        let Some((storage, caches)) = self.levels.split_last() else {
            return wrong(
                "it has no level; add a [[level]] for the storage, or a [machine]".to_owned(),
            );
        };
        if storage.read_bytes.is_some() || storage.write_bytes.is_some() {
            let name = &storage.name;
            return wrong(format!("`{name}` is last and holds everything; leave out its sizes"));
        }
        let mut below = 0;
        for level in caches {
            let Some(size) = level.read_bytes else {
                return wrong(format!("cache `{}` needs read_bytes", level.name));
            };
            if size <= below {
                return wrong(format!("cache `{}` must exceed the level above it", level.name));
            }
            below = size;
        }
        for level in &self.levels {
            level.check()?;
        }
        Ok(())
    }

    fn check_machine(&self, machine: &Machine) -> Result<()> {
        let wrong = |what: &str| Err(Error::Sim(format!("simulated device: {what}")));
        if !self.levels.is_empty() {
            return wrong("it has levels and a [machine]; leave one out");
        }
        if !self.trouble.is_none() || self.error_after_requests.is_some() {
            return wrong("a [machine] has no trouble and no error_after_requests; leave them out");
        }
        if self.reserve.is_some() {
            return wrong("a [machine] has no reserve; leave it out");
        }
        if self.noise.stall_every_s > 0.0 {
            return wrong("a [machine] does not stall; leave stall_every_s out");
        }
        if self.room() > ROOM_MAX_BYTES {
            return wrong("a [machine] holds 64 GiB at most; lower unique_bytes.max or room_bytes");
        }
        machine.check()
    }
}

impl Level {
    fn check(&self) -> Result<()> {
        let wrong =
            |what| Err(Error::Sim(format!("simulated device: level `{}`: {what}", self.name)));
        // Far outside of these, counts of requests overflow.
        if !(1e-3..=1e6).contains(&self.parallel) {
            return wrong("parallel must be above 0, from 0.001 to a million");
        }
        let limits = [self.ops_per_s_max, self.bytes_per_s_max];
        if limits.iter().flatten().any(|limit| limit.is_nan() || *limit <= 0.0) {
            return wrong("a limit must be above 0; leave it out where there is none");
        }
        for (read, sequential) in [(true, true), (true, false), (false, true), (false, false)] {
            let cost = self.cost(read, sequential);
            if !(cost.fixed_us >= 0.0 && cost.fixed_us.is_finite() && cost.bytes_per_s > 0.0) {
                return wrong("a cost needs fixed_us of 0 or more and bytes_per_s above 0");
            }
            if !(1e-18..=1e9).contains(&cost.time_s(1.0)) {
                return wrong("a request must take some time, and an end");
            }
        }
        Ok(())
    }
}

impl Noise {
    fn check(&self) -> Result<()> {
        let wrong = |what: &str| Err(Error::Sim(format!("simulated device: noise: {what}")));
        let spreads = [self.between_cv, self.within_cv, self.response_cv];
        if spreads.iter().any(|cv| !(0.0..=3.0).contains(cv)) {
            return wrong("a coefficient of variation must be from 0 to 3; 0.03 is usual");
        }
        if !(0.0..1.0).contains(&self.within_correlation) {
            return wrong("within_correlation must be from 0 to below 1");
        }
        if !(-10.0..=1.0).contains(&self.transient_amplitude) {
            return wrong("transient_amplitude must be from -10 to 1; 0.3 is usual");
        }
        let times = [self.transient_s, self.stall_every_s, self.stall_s];
        if times.iter().any(|time| !(*time >= 0.0 && time.is_finite())) {
            return wrong("times must be 0 or more seconds");
        }
        // Shorter ones would be drawn by the million in every window.
        if [self.stall_every_s, self.stall_s].iter().any(|time| *time > 0.0 && *time < 1e-4) {
            return wrong("stalls must be 100 microseconds or longer, and so far apart");
        }
        Ok(())
    }
}

fn yes() -> bool {
    true
}

fn one() -> f64 {
    1.0
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Quantity {
    Whole(u64),
    Number(f64),
    Text(String),
}

impl Quantity {
    fn bytes<E: serde::de::Error>(self) -> std::result::Result<u64, E> {
        match self {
            Self::Whole(bytes) => Ok(bytes),
            Self::Number(number) => Err(E::custom(format!("`{number}` is not whole bytes"))),
            Self::Text(text) => parse_size(&text).map_err(E::custom),
        }
    }

    fn rate<E: serde::de::Error>(self) -> std::result::Result<f64, E> {
        match self {
            Self::Number(number) => Ok(number),
            other => other.bytes().map(|bytes| bytes as f64),
        }
    }
}

fn size<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<u64, D::Error> {
    Quantity::deserialize(from)?.bytes()
}

fn size_option<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<u64>, D::Error> {
    size(from).map(Some)
}

fn rate<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<f64, D::Error> {
    Quantity::deserialize(from)?.rate()
}

fn rate_option<'de, D: Deserializer<'de>>(from: D) -> std::result::Result<Option<f64>, D::Error> {
    rate(from).map(Some)
}
