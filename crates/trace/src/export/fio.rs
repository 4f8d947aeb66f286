//! A model as a job file for fio, with a grade: what the job keeps of the application and what it
//! loses.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use ioscape_model::SizeDist;
use ioscape_model::app::{App, Behaviour, Loop, SizeLaw};
use serde::Serialize;

use crate::character::workload;

/// Sizes beyond this share of the requests are left out of a table.
const RARE: f64 = 0.005;
/// Think time below this share of the time from request to request is the tool's own.
const THINK_SHARE_MIN: f64 = 0.1;
/// Measured by `ci/try-fio-jobs`. Of eleven jobs: a log, dd, sort, `SQLite` in two journal modes, skewed reads
/// and writes, tar both ways, cp, grep, gzip.
const ORDER: JobError = JobError { quantity: "miss_ratio", median: 0.22, most: 0.47 };
/// Over those of the eleven jobs that both read and write.
const DIRECTIONS: JobError = JobError { quantity: "seq_frac", median: 0.17, most: 0.50 };
/// Run time of the job against the program's, over the five programs that open, look up or remove thousands
/// of files: `SQLite` that deletes its journal, tar both ways, cp, grep.
const NAMES: JobError = JobError { quantity: "seconds", median: 0.17, most: 0.69 };
/// Syncs per second, over the two jobs of `SQLite`. It syncs files that grow and files that it overwrites.
const SYNCS: JobError = JobError { quantity: "sync_rate", median: 0.17, most: 0.18 };
/// Closer to 0 or 1 than this, a share is 0 or 1.
const NEARLY: f64 = 0.005;

/// How far jobs were off that lost something: of programs that were recorded, made a job of and run by
/// fio 3.33 on ext4 (`ci/try-fio-jobs`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct JobError {
    /// Quantity that is off: `miss_ratio` (of LRU caches, mean difference over a hundred sizes),
    /// `seq_frac` (difference), `seconds`, `sync_rate` (relative).
    pub quantity: &'static str,
    /// Of half of the jobs it was less.
    pub median: f64,
    /// Of no job it was more.
    pub most: f64,
}

/// Something about an application that a job does not do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Loss {
    /// In words.
    pub what: String,
    /// How much that mattered where it was tried; null where it is only known to be missing.
    pub expected_error: Option<JobError>,
}

/// A job file and what it is worth.
#[derive(Clone, Debug, PartialEq)]
pub struct FioJob {
    /// The file.
    pub text: String,
    /// What it keeps.
    pub keeps: Vec<String>,
    /// What it loses.
    pub loses: Vec<Loss>,
}

/// A job for each stretch of a model, one after the other.
#[must_use]
pub fn fio_job(app: &App) -> FioJob {
    let stretches = app.stretches();
    let mut text = String::new();
    let keeps = keeps(&stretches);
    let loses = loses(app, &stretches);
    let _ = writeln!(text, "# Made by `ioscape trace export --format fio`, for fio 3.33 or later.");
    let lost: Vec<String> = loses.iter().map(Loss::in_words).collect();
    for (title, all) in [("It keeps", &keeps), ("It loses", &lost)] {
        let _ = writeln!(text, "#\n# {title}:");
        for line in all {
            let _ = writeln!(text, "# - {line}");
        }
    }
    let _ = write!(
        text,
        "\n[global]\ndirectory=${{DIRECTORY}}\ngroup_reporting=1\nfallocate=none\n\
         norandommap=1\nrandom_generator=tausworthe64\ninvalidate=0\n"
    );
    for (at, behaviour) in stretches.iter().enumerate() {
        section(&mut text, at, behaviour);
    }
    FioJob { text, keeps, loses }
}

fn section(text: &mut String, at: usize, behaviour: &Behaviour) {
    let work = workload(behaviour);
    let processes = u64::from(work.process_num);
    let bytes = behaviour.bytes_read + behaviour.bytes_written;
    let read = snapped(work.read_frac);
    let random = 1.0 - snapped(work.seq_frac);
    let direction = match (read, random) {
        (r, q) if r >= 1.0 && q <= 0.0 => "read",
        (r, q) if r <= 0.0 && q <= 0.0 => "write",
        (_, q) if q <= 0.0 => "rw",
        (r, _) if r >= 1.0 => "randread",
        (r, _) if r <= 0.0 => "randwrite",
        _ => "randrw",
    };
    let _ = writeln!(text, "\n[phase-{}]", at + 1);
    let mut line = |key: &str, value: String| {
        let _ = writeln!(text, "{key}={value}");
    };
    if at > 0 {
        line("stonewall", "1".to_owned());
    }
    line("rw", direction.to_owned());
    if read > 0.0 && read < 1.0 {
        line("rwmixread", format!("{:.0}", read * 100.0));
    }
    if random > 0.0 && random < 1.0 {
        line("percentage_random", format!("{:.0}", random * 100.0));
    }
    let sizes = &behaviour.sizes;
    let reads = table(&sizes.read, work.size_mean);
    let writes = table(&sizes.write, work.size_mean);
    match work.size_dist {
        SizeDist::Fixed => line("bs", work.size_mean.to_string()),
        _ => line("bssplit", format!("{reads},{writes}")),
    }
    line("blockalign", work.align.to_string());
    line("bs_unaligned", u8::from(work.align < 512).to_string());
    line("numjobs", processes.to_string());
    if grows(behaviour) {
        // fio would overwrite a file that a run before left; syncs of overwritten data take two thirds of the
        // time of those of grown files (a log of 2,300-byte records on ext4).
        line("create_on_open", "1".to_owned());
        line("unlink", "1".to_owned());
    } else {
        line("overwrite", "1".to_owned());
    }
    line("size", (work.unique_bytes / processes).to_string());
    if bytes > 0 {
        line("io_size", (bytes / processes).max(1).to_string());
    }
    engine(&mut line, behaviour);
    durability(&mut line, behaviour);
    pace(&mut line, behaviour, processes);
}

fn engine(line: &mut impl FnMut(&str, String), behaviour: &Behaviour) {
    let concurrency = &behaviour.concurrency;
    if concurrency.async_frac > 0.5 {
        line("ioengine", "io_uring".to_owned());
        line("iodepth", concurrency.depth.max(1).to_string());
    } else {
        line("ioengine", "psync".to_owned());
    }
    line("direct", u8::from(concurrency.direct_frac > 0.5).to_string());
}

/// Whether its files mostly grow: a sync of a file that grew costs more than of one overwritten.
fn grows(behaviour: &Behaviour) -> bool {
    let kinds = &behaviour.syncs.by_kind;
    let count = |kind: &str| kinds.get(kind).map_or(0, |kind| kind.count);
    behaviour.five.read_frac < NEARLY && count("new") + count("grown") > count("overwritten")
}

fn durability(line: &mut impl FnMut(&str, String), behaviour: &Behaviour) {
    let syncs = &behaviour.syncs;
    if syncs.sync_writes * 2 > behaviour.sizes.write.histogram.iter().map(|s| s.count).sum() {
        line("sync", "dsync".to_owned());
    } else if syncs.every > 0 {
        let count = |op: &str| behaviour.operations.get(op).copied().unwrap_or(0);
        let key = if count("SYNC") > count("DSYNC") { "fsync" } else { "fdatasync" };
        line(key, syncs.every.to_string());
    }
}

fn pace(line: &mut impl FnMut(&str, String), behaviour: &Behaviour, processes: u64) {
    if behaviour.arrivals == Loop::Open {
        let rate = behaviour.arriving.rate_per_s / processes as f64;
        line("rate_iops", format!("{:.0}", rate.max(1.0)));
        if behaviour.arriving.variation > 0.5 {
            line("rate_process", "poisson".to_owned());
        }
        return;
    }
    if let Some(think_us) = think_us(behaviour) {
        // Without thinktime_spin: fio 3.33 sleeps for ever if spinning takes a moment longer than asked for.
        line("thinktime", think_us.to_string());
    }
}

/// Time between two requests of a stream that is not spent in calls, where it matters.
fn think_us(behaviour: &Behaviour) -> Option<u64> {
    let streams = behaviour.concurrency.streams.max(1) as f64;
    let busy_s: f64 = behaviour.streams.iter().map(|stream| stream.busy_s).sum();
    let between_s = (behaviour.elapsed_s * streams - busy_s) / behaviour.requests.max(1) as f64;
    let share = between_s * behaviour.requests as f64 / (behaviour.elapsed_s * streams);
    let think_us = (between_s * 1e6).round();
    (share > THINK_SHARE_MIN && think_us >= 1.0).then_some(think_us as u64)
}

/// A table of sizes with whole percentages that add up to a hundred.
fn table(law: &SizeLaw, size_mean: u64) -> String {
    let total: u64 = law.histogram.iter().map(|size| size.count).sum();
    if total == 0 {
        return format!("{size_mean}/100");
    }
    let top: u64 = law.top.iter().map(|size| size.count).sum();
    let is_told = top as f64 >= 0.98 * total as f64;
    let sizes = if is_told { &law.top } else { &law.histogram };
    let mut shares: BTreeMap<u64, u64> = BTreeMap::new();
    let mut kept: Vec<_> =
        sizes.iter().filter(|size| size.count as f64 >= RARE * total as f64).collect();
    kept.sort_by_key(|size| std::cmp::Reverse(size.count));
    let whole: u64 = kept.iter().map(|size| size.count).sum();
    for size in &kept {
        let percent = (100.0 * size.count as f64 / whole as f64).floor() as u64;
        shares.insert(size.bytes.max(1), percent);
    }
    let given: u64 = shares.values().sum();
    for size in kept.iter().cycle().take((100 - given.min(100)) as usize) {
        *shares.entry(size.bytes.max(1)).or_default() += 1;
    }
    let given = shares.iter().filter(|(_, percent)| **percent > 0);
    given.map(|(bytes, percent)| format!("{bytes}/{percent}")).collect::<Vec<_>>().join(":")
}

fn snapped(share: f64) -> f64 {
    match share {
        low if low < NEARLY => 0.0,
        high if high > 1.0 - NEARLY => 1.0,
        between => between,
    }
}

fn keeps(stretches: &[&Behaviour]) -> Vec<String> {
    let mut all = vec![
        "sizes of reads and writes, in whole percentages".to_owned(),
        "the mix of reads and writes, and how many of them follow each other".to_owned(),
        "the data touched, spread evenly over its processes".to_owned(),
    ];
    if stretches.iter().any(|one| one.syncs.count > 0) {
        all.push("how many writes come between two syncs".to_owned());
    }
    if stretches.iter().any(|one| one.arrivals == Loop::Open) {
        all.push("the rate of requests, as an open loop".to_owned());
    } else if stretches.iter().any(|one| think_us(one).is_some()) {
        all.push("mean time between requests".to_owned());
    }
    if stretches.len() > 1 {
        all.push(format!("its {} phases, one after the other", stretches.len()));
    }
    all
}

impl Loss {
    /// For the head of a job file.
    fn in_words(&self) -> String {
        let Some(JobError { quantity, median, most }) = self.expected_error else {
            return self.what.clone();
        };
        format!("{} [{quantity} off by {median:.2} in the median, {most:.2} at most]", self.what)
    }
}

fn loses(app: &App, stretches: &[&Behaviour]) -> Vec<Loss> {
    let whole = &app.whole;
    let any = |is: fn(&&&Behaviour) -> bool| stretches.iter().any(|one| is(&one));
    let names: u64 = ["OPEN", "CREATE", "STAT", "UNLINK", "RENAME", "READDIR", "MKDIR"]
        .iter()
        .filter_map(|op| whole.operations.get(*op))
        .sum();
    let mixed = |one: &&&Behaviour| one.five.read_frac > 0.01 && one.five.read_frac < 0.99;
    let loss = |is_lost: bool, what: &str, expected_error: Option<JobError>| {
        is_lost.then(|| Loss { what: what.to_owned(), expected_error })
    };
    let told = [
        loss(
            true,
            "the order of places: which data are touched again, and when (a cache sees another miss \
             ratio unless all of it fits or none)",
            Some(ORDER),
        ),
        loss(
            any(mixed),
            "sequence across directions: fio lets a read follow the last read and a write the last \
             write",
            Some(DIRECTIONS),
        ),
        loss(
            names > 0,
            &format!("{names} calls on names (open, stat, unlink, …)"),
            (names > whole.requests / 4).then_some(NAMES),
        ),
        loss(
            whole.order.transaction.is_some(),
            "the order of calls within a transaction",
            (whole.syncs.count > 0).then_some(SYNCS),
        ),
        loss(whole.unique.mapped_bytes > 0, "what goes through mappings", None),
        loss(any(|one| one.syncs.by_kind.contains_key("directory")), "syncs of directories", None),
        loss(
            any(|one| one.syncs.by_kind.contains_key("grown") && !grows(one)),
            "growth: fio overwrites files that it laid out",
            Some(SYNCS),
        ),
        loss(
            any(|one| think_us(one).is_some()),
            "work on the processor between requests: fio sleeps for so long",
            None,
        ),
        loss(
            any(|one| one.think.p90_s > 4.0 * one.think.mean_s),
            "how times between requests scatter",
            None,
        ),
    ];
    told.into_iter().flatten().collect()
}
