//! What a job was asked to do: fio's options as a workload. An option that is not understood is
//! named; one that makes a workload of a kind that we have no words for refuses the job.

use std::collections::BTreeMap;

use ioscape_model::{Access, Layout, SeqScope, SizeDist, State, Words, Workload};

use super::size::{Sizes, bytes};

/// The options of a job over those of all jobs, as typed.
pub(super) type Options = BTreeMap<String, String>;

/// Options that say nothing about the workload: names, logs, clocks, how files are made, and
/// those whose effect is seen in the figures.
const SILENT: &str = "
    allow_mounted_write allrandrepeat bs_unaligned bwavgtime clat_percentiles clocksource
    cpumask cpus_allowed cpus_allowed_policy create_fsync create_on_open create_serialize
    description directory disable_bw_measurement disable_clat disable_lat disable_slat
    exitall fadvise_hint fallocate fixedbufs force_async group_reporting gtod_cpu gtod_reduce
    hipri iomem iomem_align iopsavgtime ioprio lat_percentiles log_avg_msec log_hist_msec
    log_max_value log_offset log_unix_epoch mem mem_align name new_group nice nonvectored
    norandommap numa_cpu_nodes numa_mem_policy overwrite per_job_logs percentile_list prio
    prioclass ramp_time random_generator randrepeat randseed refill_buffers registerfiles
    runtime scramble_buffers significant_figures slat_percentiles softrandommap sqthread_poll
    sqthread_poll_cpu stonewall thread time_based timeout unified_rw_reporting unlink
    unlink_each_loop wait_for wait_for_previous write_bw_log write_hist_log write_iops_log
    write_lat_log zero_buffers
";

/// Options that are read below.
const READ: &str = "
    blockalign bs bsrange bssplit buffered direct fdatasync filename filename_format filesize
    fsync invalidate io_size iodepth ioengine kb_base loops nrfiles numjobs offset
    offset_increment percentage_random pre_read random_distribution rw rwmixread rwmixwrite
    size
";

/// Options that make a workload of another kind, unless they are off.
const FOREIGN: &[(&str, &str)] = &[
    ("rate", "it is held to a rate"),
    ("rate_iops", "it is held to a rate"),
    ("rate_min", "it is held to a rate"),
    ("rate_iops_min", "it is held to a rate"),
    ("latency_target", "it looks for a depth by itself"),
    ("thinktime", "it pauses between requests"),
    ("flow", "its jobs wait for each other"),
    ("verify", "it verifies what it reads"),
    ("zonemode", "it works in zones"),
    ("zonesize", "it works in zones"),
    ("read_iolog", "it replays a log"),
    ("sync", "every write waits for storage (sync)"),
    ("end_fsync", "its time includes a final fsync"),
    ("fsync_on_close", "its time includes a final fsync"),
    ("sync_file_range", "it calls sync_file_range"),
    ("startdelay", "its processes do not run together"),
    ("write_barrier", "it orders its writes"),
    ("continue_on_error", "requests that failed may be in the figures"),
    ("create_only", "it makes files and nothing else"),
];

/// What answers one request at a time, whatever `iodepth` says.
const SYNCHRONOUS: &[&str] = &["sync", "psync", "vsync", "pvsync", "pvsync2"];
const ASYNCHRONOUS: &[&str] = &["libaio", "io_uring", "posixaio"];

/// A job's workload, if one process ran it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Job {
    /// For one process: its `unique_bytes` are the process's share.
    pub(super) work: Workload,
    /// Mean of the sizes that were asked for, bytes.
    pub(super) size_mean_bytes: f64,
    /// How many processes the job's `numjobs` are.
    pub(super) processes: u32,
    /// The one file of all processes, where there is one.
    pub(super) file: Option<String>,
    /// What makes the requests.
    pub(super) engine: String,
    /// What should be known before the figures are used.
    pub(super) notes: Vec<Words>,
}

/// Reads the options of one job.
pub(super) fn understand(options: &Options) -> Result<Job, String> {
    let given = Given { options, kb_base: kb_base(options)? };
    for (name, why) in FOREIGN {
        if options.get(*name).is_some_and(|value| !is_off(value)) {
            return Err(format!("{name}={}: {why}", options[*name]));
        }
    }
    let mut notes = given.strangers();
    let (read_frac, seq_frac) = given.directions()?;
    let sizes = given.sizes(read_frac)?;
    let (engine, depth) = given.engine(&mut notes)?;
    let access = given.access()?;
    let is_mixed = read_frac > 0.0 && read_frac < 1.0;
    let law = sizes.law()?;
    if !sizes.is_fixed() {
        let note = Words::new(
            "its sizes have a law of their own (coefficient of variation {size_variation:.2}), taken \
             for {law}",
        )
        .figure("size_variation", sizes.variation())
        .name("law", if law == SizeDist::Fixed { "fixed" } else { "the nearest of ours" });
        notes.push(note);
    }
    let align = given.align(&sizes)?;
    let mean = (sizes.mean_bytes() / align as f64).round().max(1.0) as u64 * align;
    let mut job = Job {
        work: Workload {
            unique_bytes: given.share_bytes()?,
            size_mean: mean,
            size_dist: law,
            read_frac,
            seq_frac,
            align,
            depth,
            access,
            fsync_every: given.syncs(read_frac, (&engine, depth), &mut notes)?,
            ..Workload::default()
        },
        size_mean_bytes: sizes.mean_bytes(),
        processes: given.count("numjobs")?.unwrap_or(1).max(1),
        file: given.file(),
        engine,
        notes,
    };
    if is_mixed && seq_frac > 0.0 {
        job.work.seq_scope = SeqScope::Direction;
    }
    if let Some(increment) = given.size("offset_increment")?
        && increment >= job.work.unique_bytes
        && job.file.is_some()
    {
        job.work.layout = Layout::Shared;
    }
    job.work.state = given.state(access, &mut job.notes);
    if let Some(files) = given.count("nrfiles")?.filter(|files| *files > 1) {
        let note = Words::new("each process went round {files} files");
        job.notes.push(note.figure("files", f64::from(files)));
    }
    Ok(job)
}

fn kb_base(options: &Options) -> Result<u64, String> {
    match options.get("kb_base").map(String::as_str) {
        None | Some("1024") => Ok(1024),
        Some("1000") => Ok(1000),
        Some(other) => Err(format!("kb_base={other} is neither 1000 nor 1024")),
    }
}

fn is_off(value: &str) -> bool {
    matches!(value, "0" | "none" | "")
}

struct Given<'a> {
    options: &'a Options,
    kb_base: u64,
}

impl Given<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(|value| value.trim())
    }

    fn size(&self, name: &str) -> Result<Option<u64>, String> {
        let read = |text| bytes(text, self.kb_base).map_err(|why| format!("{name}: {why}"));
        self.text(name).map(read).transpose()
    }

    fn count(&self, name: &str) -> Result<Option<u32>, String> {
        let read = |text: &str| text.parse().map_err(|_| format!("{name}={text} is no number"));
        self.text(name).map(read).transpose()
    }

    /// Whether a switch is on; `None` where it was not given.
    fn switch(&self, name: &str) -> Result<Option<bool>, String> {
        let read = |text: &str| match text {
            "1" => Ok(true),
            "0" => Ok(false),
            other => Err(format!("{name}={other} is neither 0 nor 1")),
        };
        self.text(name).map(read).transpose()
    }

    /// Options that nobody here has heard of.
    fn strangers(&self) -> Vec<Words> {
        let known = |name: &str| {
            SILENT.split_whitespace().any(|silent| silent == name)
                || READ.split_whitespace().any(|read| read == name)
                || FOREIGN.iter().any(|(foreign, _)| *foreign == name)
        };
        let strange: Vec<&str> =
            self.options.keys().map(String::as_str).filter(|name| !known(name)).collect();
        if strange.is_empty() {
            return vec![];
        }
        vec![format!("not understood, and not in the workload: {}", strange.join(", ")).into()]
    }

    /// `read_frac` and `seq_frac`.
    fn directions(&self) -> Result<(f64, f64), String> {
        let rw = self.text("rw").unwrap_or("read");
        let (is_random, read_frac) = match rw {
            "read" => (false, 1.0),
            "write" => (false, 0.0),
            "randread" => (true, 1.0),
            "randwrite" => (true, 0.0),
            "rw" | "readwrite" => (false, self.mix()?),
            "randrw" => (true, self.mix()?),
            other => return Err(format!("rw={other} is no pattern of reads and writes of ours")),
        };
        if let Some(law) = self.text("random_distribution")
            && is_random
            && law != "random"
        {
            return Err(format!("random_distribution={law}: its offsets are not uniform"));
        }
        if !is_random {
            return Ok((read_frac, 1.0));
        }
        let Some(text) = self.text("percentage_random") else { return Ok((read_frac, 0.0)) };
        let random = per_direction("percentage_random", text, read_frac)?;
        let random = percent("percentage_random", &random)?;
        Ok((read_frac, f64::from(100 - random) / 100.0))
    }

    fn mix(&self) -> Result<f64, String> {
        let reads = match (self.text("rwmixread"), self.text("rwmixwrite")) {
            (None, None) => 50,
            (Some(reads), None) => percent("rwmixread", reads)?,
            (None, Some(writes)) => 100 - percent("rwmixwrite", writes)?,
            // fio takes the one that was given last, and that is not in the document.
            (Some(reads), Some(writes)) => {
                let reads = percent("rwmixread", reads)?;
                if reads + percent("rwmixwrite", writes)? != 100 {
                    return Err("rwmixread and rwmixwrite contradict each other".to_owned());
                }
                reads
            }
        };
        Ok(f64::from(reads) / 100.0)
    }

    fn sizes(&self, read_frac: f64) -> Result<Sizes, String> {
        let used = |name: &str, text: &str| per_direction(name, text, read_frac);
        match (self.text("bssplit"), self.text("bsrange"), self.text("bs")) {
            (Some(_), Some(_), _) => Err("both bssplit and bsrange are given".to_owned()),
            (Some(split), None, _) => Sizes::split(&used("bssplit", split)?, self.kb_base),
            (None, Some(range), _) => Sizes::range(&used("bsrange", range)?, self.kb_base),
            (None, None, Some(size)) => Ok(Sizes::fixed(bytes(&used("bs", size)?, self.kb_base)?)),
            (None, None, None) => Ok(Sizes::fixed(4096)), // fio's own default
        }
    }

    fn align(&self, sizes: &Sizes) -> Result<u64, String> {
        let natural = sizes.align_bytes();
        let Some(text) = self.text("blockalign") else { return Ok(natural) };
        let first = text.split(',').next().unwrap_or_default();
        let given = bytes(first, self.kb_base)?;
        Ok(natural.min(1 << given.trailing_zeros().min(12)))
    }

    /// Data of one process.
    fn share_bytes(&self) -> Result<u64, String> {
        let size = match self.text("size") {
            Some(_) => self.size("size")?,
            None => self.size("filesize")?,
        };
        let size = size.ok_or("it has no size=, so how much data it touched is not known")?;
        match self.size("io_size")? {
            Some(touched) if touched < size => {
                Err("io_size is below size, so how much data it touched is not known".to_owned())
            }
            _ => Ok(size),
        }
    }

    fn file(&self) -> Option<String> {
        let format = self.text("filename_format").filter(|format| !format.contains("$jobnum"));
        self.text("filename").or(format).map(str::to_owned)
    }

    fn engine(&self, notes: &mut Vec<Words>) -> Result<(String, u32), String> {
        let engine = self.text("ioengine").unwrap_or("psync");
        let depth = self.count("iodepth")?.unwrap_or(1).max(1);
        if SYNCHRONOUS.contains(&engine) {
            if depth > 1 {
                let note = Words::new("iodepth={iodepth} means nothing to {engine}: taken as 1");
                notes.push(note.figure("iodepth", f64::from(depth)).name("engine", engine));
            }
            return Ok((engine.to_owned(), 1));
        }
        if !ASYNCHRONOUS.contains(&engine) {
            return Err(format!("ioengine={engine} does not read and write files as we do"));
        }
        Ok((engine.to_owned(), depth))
    }

    fn access(&self) -> Result<Access, String> {
        let direct = match (self.switch("direct")?, self.switch("buffered")?) {
            (Some(direct), Some(buffered)) if direct == buffered => {
                return Err("direct and buffered contradict each other".to_owned());
            }
            (Some(direct), _) => direct,
            (None, buffered) => buffered == Some(false),
        };
        Ok(if direct { Access::Direct } else { Access::Buffered })
    }

    fn syncs(
        &self,
        read_frac: f64,
        (engine, depth): (&str, u32),
        notes: &mut Vec<Words>,
    ) -> Result<u32, String> {
        let (full, data) = (self.count("fsync")?.unwrap_or(0), self.count("fdatasync")?);
        match (full, data.unwrap_or(0)) {
            (0, 0) => Ok(0),
            // Only what writes has anything to sync, and fio knows.
            _ if read_frac >= 1.0 => Ok(0),
            // Of 1475 writes and 10 853 reads with fdatasync=1, fio 3.33 called it after 12 321.
            // axboe/fio#1777 is about that.
            _ if read_frac > 0.0 => Err(
                "it reads, too, and fio may have called fsync or fdatasync after reads as well \
                     (3.33 does)"
                    .to_owned(),
            ),
            // 22 447 times after 58 689 writes with fdatasync=16 and iodepth=8: axboe/fio#1754.
            _ if engine == "io_uring" && depth > 1 => Err(
                "fio may have called fsync or fdatasync more often than asked with io_uring and \
                 several in flight (3.33 does)"
                    .to_owned(),
            ),
            (0, data) => Ok(data),
            (full, 0) => {
                notes.push("it calls fsync, here taken as fdatasync".into());
                Ok(full)
            }
            _ => Err("both fsync and fdatasync are given".to_owned()),
        }
    }

    fn state(&self, access: Access, notes: &mut Vec<Words>) -> State {
        if access == Access::Direct || self.text("pre_read") == Some("1") {
            return State::Warm;
        }
        if self.text("invalidate") == Some("0") {
            notes.push("what the page cache held at the start is not known (invalidate=0)".into());
            return State::Warm;
        }
        State::Cold
    }
}

fn percent(name: &str, text: &str) -> Result<u32, String> {
    let number = text.trim_end_matches('%').parse().ok().filter(|number| *number <= 100);
    number.ok_or_else(|| format!("{name}={text} is no percentage"))
}

/// The value for the directions that are used, of `READ,WRITE,TRIM`.
fn per_direction(name: &str, text: &str, read_frac: f64) -> Result<String, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).collect();
    let (reads, writes) = match parts[..] {
        [both] => (both, both),
        [reads, writes] | [reads, writes, _] => (reads, writes),
        _ => return Err(format!("{name}={text} cannot be read")),
    };
    let used = match read_frac {
        1.0 => reads,
        0.0 => writes,
        _ if reads == writes => reads,
        _ => return Err(format!("{name}={text}: reads and writes differ")),
    };
    match used {
        "" => Err(format!("{name}={text} leaves out what is used")),
        used => Ok(used.to_owned()),
    }
}
