//! Doubt about a number, as data: stored in the record, shown by every renderer.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::{show_bytes, show_iops, show_percent, show_rate, show_seconds};
use crate::word;

/// How much a warning takes away from the number beside it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Worth knowing; the number stands.
    Note,
    /// The number may mean something else than it seems to.
    Warning,
    /// The number should not be used.
    Serious,
}

/// What a warning is about. Renderers and scripts match on it; the text is for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Code {
    /// The map's range ends below the cache that the machine could have.
    BorderNotReached,
    /// Still drifting when the time for this point was over.
    NotSteady,
    /// The interval is wider than the precision asked for.
    NotPrecise,
    /// Two visits to one workload disagree far beyond their intervals, or one ran at two speeds.
    Bistable,
    /// The target lives in memory: nothing here says anything about a disk.
    MemoryFilesystem,
    /// Dirty limits far above the memory limit: write-heavy points can stall in reclaim.
    DirtyLimitAboveMemory,
    /// A write-heavy point took far longer than planned.
    WriteStall,
    /// The machine's time was taken by others while this was measured.
    StolenTime,
    /// The canaries say that the machine changed during the run.
    Drift,
    /// Device counters mean nothing on this filesystem; borders are found by timing. As a note: the kernel counts no
    /// pages of a file, and is asked for each of them.
    NoCounters,
    /// The clock is slow or not the processor's own.
    SlowClock,
    /// Dirty data could not be written back before the point started.
    DirtyAtStart,
    /// Too few requests for the quantile.
    FewRequests,
    /// Hardly any workload was visited twice before the run ended.
    Incomplete,
    /// The machine swapped since the previous point.
    Swapping,
    /// Something left over from an earlier run was found or removed.
    Leftover,
    /// The filesystem compresses or copies on write.
    CopyOnWrite,
    /// Direct I/O is not to be had, or goes through the page cache all the same.
    DirectNotDirect,
    /// The harness takes so large a part of a request's time that it is part of the result.
    HarnessCost,
    /// Fewer requests were made than the schedule of an open loop asked for.
    BehindSchedule,
    /// The kernel would not hold the buffers: each request pays for looking them up.
    NotRegistered,
    /// io_uring is denied: a thread for each request in flight takes its place.
    ThreadPerRequest,
    /// A workload outside the box that was measured was asked for.
    OutOfRange,
    /// Measured by another program: what it did not say is not known here either.
    Imported,
    /// Too few repetitions to tell how much they scatter.
    TooFewRepeats,
    /// A benchmark's own rule gives no score here.
    NoScore,
    /// Part of a benchmark could not be done as it is defined.
    NotFaithful,
    /// What should have come from storage came from a cache, or the other way round.
    CacheState,
    /// Others use the machine or the device.
    Neighbours,
    /// A control group holds this process back, or the kernel the device.
    Throttled,
    /// The machine saves power, or is hot, and does not run at its speed.
    PowerSaving,
    /// Memory is near to some processors and far from others.
    ManyNodes,
    /// The filesystem is nearly full, or a quota ends before it does.
    NearlyFull,
    /// How it is mounted changes what is measured.
    MountOptions,
    /// Something below the operating system keeps a cache of its own.
    CachesBelow,
    /// Data was called durable sooner than it can have been.
    FlushSuspect,
    /// More is read than was asked for.
    ReadAhead,
    /// The rate depends on where on the medium the data lie.
    Placement,
    /// An array is being rebuilt or checked.
    Rebuilding,
    /// Blocks were read that nobody ever wrote.
    NeverWritten,
    /// The target is only read.
    ReadOnly,
    /// Requests failed: errors of the device, time-outs, transfers that were cut short.
    RequestErrors,
    /// What was read is not what was written.
    DataMismatch,
    /// Somebody else changed, cut, replaced or removed a test file while it was measured.
    FileChanged,
    /// Time passed in which this process, or the whole machine, stood still.
    ClockJump,
    /// A run ended because no more was to be written, or more was written than that.
    MaxWritten,
    /// Requests in flight that did not add anything: they were served one at a time.
    DepthIgnored,
    /// Lines of the record are missing, out of order or copies of others.
    Altered,
    /// Calls of a replay ended otherwise than when they were recorded, or had to be added to.
    ReplayUnlike,
    /// The ranks of a run do not have the same to work with, or one fell behind.
    Ranks,
}

impl Code {
    /// As people read it: `not steady`.
    pub fn title(self) -> String {
        word(self).replace('_', " ")
    }

    /// Whether it is about a run as a whole and known only at its end.
    pub fn is_closing(self) -> bool {
        matches!(self, Self::BorderNotReached | Self::Drift | Self::Incomplete | Self::MaxWritten)
    }
}

/// A sentence with figures in it: `{name}` stands for the figure of that name.
///
/// The end of a name says the figure's unit, and so how it is written: `…_bytes`, `…_bytes_per_s`, `…_per_s`,
/// `…_s` and `…_share` (of one, written in percent). Others are plain numbers. `{name:.2}` asks for two decimals.
///
/// ```
/// use ioscape_model::Words;
///
/// let words = Words::new("{left_bytes} were dirty, {busy_share} of the time").figure("left_bytes", 4096.0);
/// assert_eq!(words.figure("busy_share", 0.25).to_string(), "4.00 KiB were dirty, 25 % of the time");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Words {
    sentence: String,
    figures: Vec<(String, f64)>,
    names: Vec<(String, String)>,
}

impl Words {
    /// The sentence, still without its figures.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self { sentence: sentence.into(), ..Self::default() }
    }

    /// Sets a figure.
    #[must_use]
    pub fn figure(mut self, name: &str, value: f64) -> Self {
        self.figures.push((name.to_owned(), value));
        self
    }

    /// Sets what is not a figure: a path, an option, a reason.
    #[must_use]
    pub fn name(mut self, name: &str, text: impl fmt::Display) -> Self {
        self.names.push((name.to_owned(), text.to_string()));
        self
    }

    /// A figure or a name as it is written; `None` where there is none.
    fn shown(&self, placeholder: &str) -> Option<String> {
        let (name, decimals) = match placeholder.split_once(":.") {
            Some((name, decimals)) => (name, decimals.parse().ok()),
            None => (placeholder, None),
        };
        let number = self.figures.iter().find(|(figure, _)| figure == name);
        let word = self.names.iter().find(|(word, _)| word == name);
        word.map(|(_, text)| text.clone())
            .or_else(|| number.map(|(_, figure)| show_figure(name, *figure, decimals)))
    }
}

/// Braces without a figure or a name of theirs stay: they are not ours.
impl fmt::Display for Words {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.sentence.as_str();
        while let Some((before, after)) = rest.split_once('{') {
            out.write_str(before)?;
            let inside =
                after.split_once('}').and_then(|(name, left)| Some((self.shown(name)?, left)));
            if let Some((shown, left)) = inside {
                out.write_str(&shown)?;
                rest = left;
            } else {
                out.write_str("{")?;
                rest = after;
            }
        }
        out.write_str(rest)
    }
}

impl From<&str> for Words {
    fn from(sentence: &str) -> Self {
        Self::new(sentence)
    }
}

impl From<String> for Words {
    fn from(sentence: String) -> Self {
        Self::new(sentence)
    }
}

/// A figure in the unit that its name ends with.
fn show_figure(name: &str, value: f64, decimals: Option<usize>) -> String {
    let has = |unit: &str| name == unit || name.ends_with(&format!("_{unit}"));
    match decimals {
        Some(decimals) if has("share") => format!("{:.decimals$} %", value * 100.0),
        Some(decimals) => format!("{value:.decimals$}"),
        None if has("bytes_per_s") => show_rate(value),
        None if has("per_s") => show_iops(value),
        None if has("bytes") => show_bytes(value),
        None if has("s") => show_seconds(value),
        None if has("share") => show_percent(value),
        None => value.to_string(),
    }
}

/// One doubt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Warning {
    /// What it is about.
    pub code: Code,
    /// How much it matters.
    pub severity: Severity,
    /// What was seen, with its figures.
    pub text: String,
    /// What to do about it.
    pub remedy: String,
    /// The figures in both, by name with their unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
}

impl Warning {
    /// A warning that leaves the number standing, but in doubt.
    pub fn new(code: Code, text: impl Into<Words>, remedy: impl Into<Words>) -> Self {
        let (text, remedy) = (text.into(), remedy.into());
        let (words, to_do) = (text.to_string(), remedy.to_string());
        // JSON holds no others: the record could not be read again.
        let finite = |(_, figure): &(String, f64)| figure.is_finite();
        let mut figures = BTreeMap::new();
        for (name, figure) in text.figures.into_iter().chain(remedy.figures).filter(finite) {
            figures.insert(name, figure);
        }
        Self { code, severity: Severity::Warning, text: words, remedy: to_do, figures }
    }

    /// Sets the severity.
    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Its title and the first clause of what was seen.
    pub fn in_short(&self) -> String {
        let clause = self.text.split([';', ':']).next().unwrap_or_default();
        format!("{}: {}", self.code.title(), clause.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_name_says_how_its_figure_is_written() {
        let words = Words::new(
            "{a_bytes} {b_bytes_per_s} {c_per_s} {d_s} {e_share} {e_share:.2} {pages} {n:.1} {who}",
        )
        .figure("a_bytes", 1024.0)
        .figure("b_bytes_per_s", 2e6)
        .figure("c_per_s", 217.0)
        .figure("d_s", 3.2)
        .figure("e_share", 0.5)
        .figure("pages", 7.0)
        .figure("n", 2.0)
        .name("who", "{pages}");
        assert_eq!(words.to_string(), "1.00 KiB 2.00 MB/s 217 3.20 s 50 % 50.00 % 7 2.0 {pages}");
    }

    #[test]
    fn a_warning_carries_the_figures_of_its_text_and_of_its_remedy() {
        let text = Words::new("the machine swapped {pages} pages").figure("pages", 12.0);
        let remedy = Words::new("take {limit_bytes}").figure("limit_bytes", 4096.0);
        let warning = Warning::new(Code::Swapping, text, remedy);
        assert_eq!(warning.text, "the machine swapped 12 pages");
        assert_eq!(warning.remedy, "take 4.00 KiB");
        let names: Vec<_> = warning.figures.keys().map(String::as_str).collect();
        assert_eq!(names, ["limit_bytes", "pages"]);
        let stored = serde_json::to_string(&warning).unwrap();
        assert_eq!(serde_json::from_str::<Warning>(&stored).unwrap(), warning);
    }

    #[test]
    fn a_figure_that_json_cannot_hold_is_written_but_not_stored() {
        let text = Words::new("up to {most_bytes:.0}, {count}");
        let text = text.figure("most_bytes", f64::INFINITY).figure("count", 2.0);
        let warning = Warning::new(Code::Swapping, text, "");
        assert_eq!(warning.text, "up to inf, 2");
        let stored = serde_json::to_string(&warning).unwrap();
        assert_eq!(serde_json::from_str::<Warning>(&stored).unwrap(), warning);
        assert_eq!(warning.figures.len(), 1);
    }

    #[test]
    fn warnings_of_earlier_records_have_no_figures() {
        let stored = r#"{"code":"swapping","severity":"note","text":"{pages} pages","remedy":""}"#;
        let warning: Warning = serde_json::from_str(stored).unwrap();
        assert!(warning.figures.is_empty());
        assert_eq!(warning.text, "{pages} pages");
    }
}
