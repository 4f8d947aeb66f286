//! A workload as a job file for fio 3.33. What fio cannot do the same way is said in comments of
//! the file.

mod sizes;

use std::fmt::Write as _;

use ioscape_model::named::WARM_UP;
use ioscape_model::units::{show_bytes, show_rate};
use ioscape_model::{
    Access, Arrivals, Estimate, Header, Layout, SeqScope, SizeDist, State, Target, TargetKind,
    Workload,
};

pub use sizes::{SizeShare, size_table};

/// How long fio measures, seconds: as long as a visit with room to spare.
const RUNTIME_S: u32 = 5;
/// fio lets a workload run in for whole seconds.
const RAMP_MIN_S: f64 = 2.0;
const PAGE_BYTES: u64 = 4096;
/// What the engine does to warm the cache (`file_rig/prepare.rs`): so much of a share is streamed
/// in, in such pieces.
const STREAMED_SHARE: f64 = 0.25;
const STREAM_BYTES: u64 = 256 << 10;

/// The job file of a workload, on the target and under the rules of a record. With an estimate it
/// says what was measured.
pub fn job(header: &Header, work: &Workload, estimate: Option<&Estimate>) -> String {
    let mut job = Job::default();
    about(&mut job, header, work, estimate);
    job.section("global");
    place(&mut job, &header.target, work);
    engine(&mut job, work);
    let is_warm = work.access == Access::Buffered && work.state == State::Warm;
    if is_warm {
        warm_up(&mut job, header, work);
    }
    job.section("ioscape");
    if is_warm {
        job.line("stonewall");
    }
    job.option("size", work.share_bytes());
    if work.layout == Layout::Shared {
        job.option("offset_increment", work.share_bytes());
    }
    requests(&mut job, work);
    waits(&mut job, work);
    course(&mut job, header, is_warm);
    job.finish()
}

/// A job file as it grows. Comments stand on lines of their own before everything else.
#[derive(Default)]
struct Job {
    comments: String,
    lines: String,
}

impl Job {
    /// A comment may not hold a line break that came out of the record.
    fn comment(&mut self, text: &str) {
        let line = text.replace(char::is_control, " ");
        let _ = writeln!(self.comments, "; {}", line.trim_end()); // a String takes everything
    }

    fn differs(&mut self, text: &str) {
        self.comment(&format!("differs     {text}"));
    }

    fn line(&mut self, text: &str) {
        self.lines.push_str(text);
        self.lines.push('\n');
    }

    fn section(&mut self, name: &str) {
        self.line("");
        self.line(&format!("[{name}]"));
    }

    fn option(&mut self, name: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.lines, "{name}={value}");
    }

    fn finish(self) -> String {
        self.comments + &self.lines
    }
}

fn about(job: &mut Job, header: &Header, work: &Workload, estimate: Option<&Estimate>) {
    let tool = &header.tool;
    job.comment(&format!(
        "From a record of {} {}, run {} of {}.",
        tool.name, tool.version, header.run_id, header.start_time
    ));
    job.comment("Run it with: fio --output-format=json THIS-FILE");
    job.comment("The figures of the job called `ioscape` count.");
    job.comment(&format!("workload    {}", work.literal()));
    if let Some(estimate) = estimate {
        let rate = &estimate.throughput_bytes_per_s;
        job.comment(&format!(
            "measured    {} ({} to {}, 95 %, visits: {}), reads and writes together, absorbed",
            show_rate(rate.mean),
            show_rate(rate.low),
            show_rate(rate.high),
            estimate.visits
        ));
    }
    let host = &header.host;
    if let Some(limit) = host.memory_limit_set_bytes.or(host.memory_limit_bytes) {
        job.comment(&format!(
            "conditions  a memory limit of {}, page cache included: run fio under the same",
            show_bytes(limit as f64)
        ));
    }
    if let Some(limit) = host.dirty_limit_set_bytes {
        job.comment(&format!(
            "conditions  vm.dirty_bytes was set to {}: set it for fio, too",
            show_bytes(limit as f64)
        ));
    }
}

/// Where the files are. Each process has its share.
fn place(job: &mut Job, target: &Target, work: &Workload) {
    match directory(target) {
        Some(path) => job.option("directory", path),
        None if target.kind == TargetKind::Directory => {
            job.differs("the path of the target cannot be written in a job file: run fio there");
            job.option("directory", ".");
        }
        None => {
            job.differs("the record is not of a directory: files are made where fio is run");
            job.option("directory", ".");
        }
    }
    job.option("numjobs", work.process_num);
    match work.layout {
        Layout::Private => job.option("filename_format", "ioscape-fio.$jobnum"),
        Layout::Shared => job.option("filename", "ioscape-fio.shared"),
    }
    job.comment("files       fio makes ioscape-fio.* there and leaves them");
    if work.read_frac < 1.0 {
        job.comment(
            "data        the same random bytes again and again: set scramble_buffers=1 where",
        );
        job.comment("            storage looks for duplicates");
    }
}

/// The path as a job file takes it: everything from `;` or `#` on would be a comment, `$` begins a
/// variable, and a colon separates directories.
fn directory(target: &Target) -> Option<String> {
    let path = &target.path;
    let is_plain = |c: char| !c.is_control() && !";#$\\\"'".contains(c);
    let is_kept = path.trim() == path && !path.is_empty() && path.len() < 2000;
    (target.kind == TargetKind::Directory && is_kept && path.chars().all(is_plain))
        .then(|| path.replace(':', "\\:"))
}

/// Directions, places and sizes.
fn requests(job: &mut Job, work: &Workload) {
    let is_mixed = work.read_frac > 0.0 && work.read_frac < 1.0;
    let sequential = work.seq_frac >= 1.0;
    job.option(
        "rw",
        match (is_mixed, work.read_frac > 0.0, sequential) {
            (true, _, true) => "rw",
            (true, _, false) => "randrw",
            (false, true, true) => "read",
            (false, true, false) => "randread",
            (false, false, true) => "write",
            (false, false, false) => "randwrite",
        },
    );
    if is_mixed {
        let percent = percent(work.read_frac);
        if !is_whole(work.read_frac) {
            job.differs(&format!("fio takes whole percent: {percent} % of the requests read"));
        }
        job.option("rwmixread", percent);
    }
    if work.seq_frac > 0.0 && !sequential {
        let random = 100 - percent(work.seq_frac);
        if !is_whole(work.seq_frac) {
            job.differs(&format!("fio takes whole percent: {random} % of the places are random"));
        }
        job.option("percentage_random", random);
    }
    if is_mixed && work.seq_frac > 0.0 && work.seq_scope == SeqScope::Any {
        job.differs(
            "a sequential request of fio follows the previous one of its own direction, here \
             the previous one of any (seq_scope=any): not the same workload",
        );
    }
    sizes(job, work);
    job.option("norandommap", 1);
    job.option("random_generator", "tausworthe64");
}

fn sizes(job: &mut Job, work: &Workload) {
    if work.size_dist == SizeDist::Fixed {
        job.option("bs", work.size_mean);
    } else {
        let table = size_table(work);
        let parts = table.iter().map(|part| format!("{}/{}", part.size_bytes, part.percent));
        job.option("bssplit", parts.collect::<Vec<_>>().join(":"));
        // Otherwise fio rounds every size down to a multiple of the smallest.
        job.option("bs_unaligned", 1);
    }
    job.option("blockalign", work.align);
}

/// What makes the requests.
fn engine(job: &mut Job, work: &Workload) {
    if work.depth > 1 {
        job.option("ioengine", "io_uring");
    } else {
        job.option("ioengine", "psync");
    }
    job.option("thread", 1);
    job.option("overwrite", 1);
    job.option("fallocate", "none");
    job.option("group_reporting", 1);
}

/// The page cache, filled in the pieces that our own visits find: the beginning of each share is
/// streamed in, the rest comes in single pages. Copies to and from large folios are quicker.
fn warm_up(job: &mut Job, header: &Header, work: &Workload) {
    let share = work.share_bytes();
    let cache = header.hints.read_cache_bytes.map_or(u64::MAX, |bytes| bytes as u64);
    let fits = share.min(cache / u64::from(work.process_num.max(1)) / PAGE_BYTES * PAGE_BYTES);
    let streamed = (fits as f64 * STREAMED_SHARE) as u64 / PAGE_BYTES * PAGE_BYTES;
    let parts = [("pages", streamed, fits - streamed, "random"), ("stream", 0, streamed, "0")];
    let mut is_first = true;
    for (name, offset, size, hint) in parts {
        if size < PAGE_BYTES {
            continue;
        }
        job.section(&format!("{WARM_UP}-{name}"));
        if !is_first {
            job.line("stonewall");
        }
        is_first = false;
        job.option("rw", "read");
        job.option("bs", STREAM_BYTES.min(1 << size.trailing_zeros()));
        job.option("offset", offset);
        job.option("size", size);
        if work.layout == Layout::Shared {
            job.option("offset_increment", share);
        }
        job.option("invalidate", 1);
        job.option("fadvise_hint", hint);
    }
}

/// What requests wait for.
fn waits(job: &mut Job, work: &Workload) {
    if work.depth > 1 {
        job.option("iodepth", work.depth);
    }
    job.option("direct", u8::from(work.access == Access::Direct));
    if work.fsync_every > 0 {
        job.option("fdatasync", work.fsync_every);
        // axboe/fio#1777: after the last write of an interval, until the next write.
        if work.read_frac > 0.0 && work.read_frac < 1.0 {
            job.differs("fio 3.33 calls fdatasync after reads, too: not the same workload");
        }
        // axboe/fio#1754: again and again until the first one is done.
        if work.depth > 1 && work.read_frac < 1.0 {
            job.differs(
                "fio 3.33 with io_uring calls fdatasync more often than this, and before the \
                 write is done: not the same workload",
            );
        }
    }
    if work.rate > 0.0 {
        let each = work.rate / f64::from(work.process_num);
        let rate = |share: f64| (each * share).round().max(1.0) as u64;
        let (reads, writes) = (rate(work.read_frac), rate(1.0 - work.read_frac));
        job.option("rate_iops", format!("{reads},{writes}"));
        if work.arrivals == Arrivals::Poisson {
            job.option("rate_process", "poisson");
        }
        job.differs("fio holds back requests to keep the rate; late ones do not count as waiting");
    }
}

/// What happens before and how long it takes.
fn course(job: &mut Job, header: &Header, is_warm: bool) {
    // Where a request takes a microsecond, what fio does for each would be a tenth of the figures.
    job.option("disable_slat", 1);
    job.option("disable_lat", 1);
    job.option("scramble_buffers", 0);
    job.option("invalidate", u8::from(!is_warm));
    job.option("fadvise_hint", 0);
    job.option("time_based", 1);
    job.option("ramp_time", format!("{:.0}s", header.rules.ramp_max_s.max(RAMP_MIN_S).ceil()));
    job.option("runtime", format!("{RUNTIME_S}s"));
    job.option("randseed", header.seed);
}

fn percent(fraction: f64) -> u32 {
    (fraction * 100.0).round() as u32
}

fn is_whole(fraction: f64) -> bool {
    (fraction * 100.0 - f64::from(percent(fraction))).abs() < 1e-9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_that_a_job_file_cannot_hold_is_not_written() {
        let at =
            |kind, path: &str| directory(&Target { kind, path: path.into(), ..Target::default() });
        assert_eq!(at(TargetKind::Directory, "/mnt/my data"), Some("/mnt/my data".into()));
        assert_eq!(at(TargetKind::Directory, "/mnt/a:b"), Some("/mnt/a\\:b".into()));
        for path in ["/mnt/a;b", "/mnt/a#b", "/mnt/${HOME}", "/mnt/a\nrw=write", "/mnt/a ", ""] {
            assert_eq!(at(TargetKind::Directory, path), None, "{path:?}");
        }
        assert_eq!(at(TargetKind::Sim, "sim:nvme"), None);
    }
}
