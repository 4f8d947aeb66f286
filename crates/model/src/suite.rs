//! What classic benchmarks give: trials, the scores pooled from them, and how targets differ.
//!
//! A suite's record has one `suite` line behind its header, a `trial` line for each repetition of
//! each benchmark on each target, and at its end `score` and `contrast` lines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Interval, SizeDist, Target, Warning, Workload};

/// What is run: the line behind the header.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Suite {
    /// Names of the benchmarks, in order.
    pub benchmarks: Vec<String>,
    /// Where: the first one is the baseline. The header's `target` is the first as well.
    pub targets: Vec<Target>,
    /// Scored repetitions of each benchmark on each target.
    pub repeats: u32,
    /// Whether the scored repetitions are metered too: times of single requests are taken, which
    /// costs two clock readings each.
    pub metered: bool,
    /// What it is for, besides the scores.
    #[serde(default)]
    pub purpose: Purpose,
    /// What was set by hand.
    pub settings: SuiteSettings,
    /// Version of the integer kernel that rates the processor; ratings of different versions do
    /// not compare. Null in records from before it was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_version: Option<u32>,
}

/// What a suite is for, besides the scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Nothing else.
    #[default]
    Scores,
    /// To say what the benchmarks measure (Chen and Patterson 1994, Fig. 1).
    Critique,
    /// To hold workloads against the applications that they stand for (Fig. 3).
    Representative,
}

/// What may be set by hand. One meaning for all benchmarks; each uses what it knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SuiteSettings {
    /// Times the usual amount: the tree of Andrew, the branches of TPC-B, the articles of NetNews,
    /// the scripts of Sdet, the data of the sort.
    pub scale: f64,
    /// Size of Bonnie's file, bytes; its own where absent.
    pub file_bytes: Option<u64>,
    /// How long one figure of the operating-system suite and a run of TPC-B are measured, seconds.
    pub slice_s: f64,
    /// `IOStone` in whole seconds, as it was published.
    pub faithful: bool,
    /// `IOStone` 1987 seeds its generator, as it was meant.
    pub seeded: bool,
    /// Andrew compiles with this program.
    pub compiler: Option<String>,
    /// Andrew copies each file with a command of its own.
    pub processes: bool,
}

impl Default for SuiteSettings {
    fn default() -> Self {
        Self {
            scale: 1.0,
            file_bytes: None,
            slice_s: 0.2,
            faithful: false,
            seeded: false,
            compiler: None,
            processes: false,
        }
    }
}

/// Which way is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// A rate, a score.
    Higher,
    /// A time.
    Lower,
    /// Neither: a count, a share.
    Neither,
}

/// One figure of one trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrialFigure {
    /// Of which phase or operation.
    pub name: String,
    /// The figure.
    #[serde(serialize_with = "crate::point::finite")]
    pub value: f64,
    /// Its unit: `s`, `bytes/s`, `1/s`, …
    pub unit: String,
    /// Which way is better.
    pub better: Better,
}

/// Where the time of a metered trial went, as the benchmark's own processes saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct IoShare {
    /// The timed part, seconds, all processes added up.
    pub busy_s: f64,
    /// In reads.
    pub read_s: f64,
    /// In writes.
    pub write_s: f64,
    /// Waiting for storage: fsync and its like.
    pub sync_s: f64,
    /// Calls that wait for storage.
    #[serde(default)]
    pub syncs: u64,
    /// In calls about names: open, close, create, remove, stat, list.
    pub name_s: f64,
    /// In I/O at most, where it cannot be seen: time that commands of their own did not spend in
    /// user code. Null where the calls themselves were timed.
    pub at_most_s: Option<f64>,
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes of files touched by reads and writes, each counted once; null where unknown.
    pub unique_bytes: Option<u64>,
    /// Reads and writes that start where the one before in the same file ended.
    #[serde(default)]
    pub sequential: u64,
    /// Standard deviation over mean of the sizes of reads and writes.
    #[serde(default)]
    pub size_variation: f64,
}

impl IoShare {
    /// Share of the time in reads and writes, waiting for storage included.
    pub fn data_fraction(&self) -> f64 {
        let data_s = self.at_most_s.unwrap_or(self.read_s + self.write_s + self.sync_s);
        if self.busy_s > 0.0 { data_s / self.busy_s } else { 0.0 }
    }
}

/// One repetition of one benchmark on one target.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trial {
    /// Which benchmark.
    pub benchmark: String,
    /// Which target, counted from 0.
    pub target: u32,
    /// Which repetition, counted from 0.
    pub repeat: u32,
    /// Whether it counts for the score; a metered one beside them does not.
    pub scored: bool,
    /// When it began, seconds since the run's start.
    pub started_s: f64,
    /// All of it, preparations included, seconds.
    pub elapsed_s: f64,
    /// What it gave.
    pub figures: Vec<TrialFigure>,
    /// Where its time went; null where it was not metered.
    pub io: Option<IoShare>,
    /// What is doubtful about it.
    pub warnings: Vec<Warning>,
}

/// One figure, pooled over the scored trials.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Score {
    /// Which benchmark.
    pub benchmark: String,
    /// Which target, counted from 0.
    pub target: u32,
    /// Which figure.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Which way is better.
    pub better: Better,
    /// How many trials it rests on.
    pub repeats: u32,
    /// Arithmetic mean.
    #[serde(serialize_with = "crate::point::finite")]
    pub mean: f64,
    /// 95 % interval of the mean, by Student's t; null with fewer than two trials.
    pub interval: Option<Interval>,
    /// Standard deviation between trials; null with fewer than two.
    pub standard_deviation: Option<f64>,
    /// The smallest.
    #[serde(serialize_with = "crate::point::finite")]
    pub min: f64,
    /// The one in the middle.
    #[serde(serialize_with = "crate::point::finite")]
    pub median: f64,
    /// The largest.
    #[serde(serialize_with = "crate::point::finite")]
    pub max: f64,
    /// Mean without the lowest and the highest fifth.
    #[serde(serialize_with = "crate::point::finite")]
    pub trimmed_mean: f64,
}

/// One figure on another target over the same on the first, from trials made in turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contrast {
    /// Which benchmark.
    pub benchmark: String,
    /// Which target, counted from 0; never 0.
    pub target: u32,
    /// Which figure.
    pub name: String,
    /// Value there over value on the first target, with its 95 % interval from the pairs.
    pub ratio: Interval,
    /// Pairs it rests on.
    pub pairs: u32,
    /// Difference of the means over the standard deviation of a trial, pooled over both targets;
    /// null where trials do not differ at all.
    pub separation_sd: Option<f64>,
    /// Whether the interval leaves 1 out.
    pub shown: bool,
}

/// A record's suite, where it is one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SuiteLines {
    /// What was run.
    pub suite: Option<Suite>,
    /// All trials.
    pub trials: Vec<Trial>,
    /// Pooled figures.
    pub scores: Vec<Score>,
    /// Differences between targets.
    pub contrasts: Vec<Contrast>,
}

impl IoShare {
    /// Bytes over the time in reads and writes, waiting for storage left out; none where the calls
    /// were not seen or took no time.
    pub fn data_bytes_per_s(&self) -> Option<f64> {
        let calls_s = self.read_s + self.write_s;
        let seen = self.at_most_s.is_none() && calls_s > 0.0;
        seen.then(|| (self.read_bytes + self.written_bytes) as f64 / calls_s)
    }

    /// The benchmark in five parameters (Chen and Patterson 1994, section 5), and after how many
    /// writes it waits for storage: one process, sizes as they were on average. None where the calls were not seen, or where too little was
    /// touched for a workload.
    pub fn workload(&self) -> Option<Workload> {
        /// Sizes that vary by less than this are as good as fixed.
        const FIXED_VARIATION: f64 = 0.5;
        let requests = self.reads + self.writes;
        let unique_bytes = self.unique_bytes.filter(|_| requests > 0)?;
        let size_mean = ((self.read_bytes + self.written_bytes) / requests).max(1);
        let fixed = self.size_variation < FIXED_VARIATION;
        // Offsets and sizes of the original are multiples of nothing in particular.
        let align = 1 << size_mean.ilog2().min(12).min(size_mean.trailing_zeros());
        let fsync_every = self.writes.checked_div(self.syncs).map_or(0, |writes| writes.max(1));
        let workload = Workload {
            unique_bytes,
            size_mean,
            fsync_every: u32::try_from(fsync_every).unwrap_or(0),
            size_dist: if fixed { SizeDist::Fixed } else { SizeDist::Normal },
            read_frac: self.reads as f64 / requests as f64,
            seq_frac: self.sequential as f64 / requests as f64,
            align,
            ..Workload::default()
        };
        workload.check().ok().map(|()| workload)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_of_io_counts_waiting_for_storage_but_not_names() {
        let share = IoShare {
            busy_s: 10.0,
            read_s: 1.0,
            write_s: 2.0,
            sync_s: 3.0,
            name_s: 4.0,
            ..IoShare::default()
        };
        assert!((share.data_fraction() - 0.6).abs() < 1e-12);
        let bounded = IoShare { at_most_s: Some(2.5), ..share };
        assert!((bounded.data_fraction() - 0.25).abs() < 1e-12);
        assert_eq!(IoShare::default().data_fraction().to_bits(), 0);
    }

    #[test]
    fn a_benchmark_is_described_by_five_parameters() {
        let share = IoShare {
            reads: 300,
            writes: 100,
            read_bytes: 300 * 16_384,
            written_bytes: 100 * 16_384,
            unique_bytes: Some(1 << 20),
            sequential: 100,
            ..IoShare::default()
        };
        let work = share.workload().unwrap();
        assert_eq!((work.unique_bytes, work.size_mean, work.align), (1 << 20, 16_384, 4096));
        assert_eq!((work.read_frac, work.seq_frac), (0.75, 0.25));
        assert_eq!(work.size_dist, SizeDist::Fixed);
        let small = IoShare { read_bytes: 300 * 50, written_bytes: 100 * 50, ..share };
        assert_eq!(small.workload().unwrap().align, 2);
        assert_eq!(IoShare { unique_bytes: Some(10), ..share }.workload(), None);
        assert_eq!(IoShare { unique_bytes: None, ..share }.workload(), None);
        assert_eq!(IoShare::default().workload(), None);
    }
}
