//! fio's JSON output: which jobs ran together, what they were asked, what they measured. Nothing
//! is guessed: a job that cannot be told exactly is left out with the reason, and what is doubtful
//! about one that is kept is noted with it.

mod figures;
mod options;
mod size;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use ioscape_model::{Layout, Words, Workload, named};
use serde_json::Value;

use figures::{Direction, Figures};
use options::{Job, Options};

/// A document with more jobs than that is none that fio writes for people.
const JOBS_MAX: usize = 4096;
/// Little's law holds for every closed loop; clocks and rounding take no more than this.
const IN_FLIGHT_SLACK: f64 = 1.3;
/// Reads among the requests, and mean sizes, may differ that much from what was asked for.
const MIX_SLACK: f64 = 0.05;
const SIZE_SLACK: f64 = 0.03;
/// Samples that vary more than this show no steady state.
const STEADY_VARIATION: f64 = 0.2;
const STEADY_SAMPLES_MIN: u32 = 4;

/// What a document holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// `fio-3.33`.
    pub(crate) version: String,
    /// Seconds since 1970, when the document was written.
    pub(crate) timestamp_s: Option<i64>,
    /// The device, where fio names one only.
    pub(crate) device: Option<String>,
    /// One per group of jobs that ran together.
    pub(crate) measured: Vec<Measured>,
    /// Why others are left out, in sentences.
    pub(crate) left_out: Vec<String>,
    /// What is strange about the document.
    pub(crate) notes: Vec<String>,
}

/// A workload that ran, and what it gave.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Measured {
    /// The job's name.
    pub(crate) name: String,
    pub(crate) work: Workload,
    /// `fio psync`.
    pub(crate) engine: String,
    pub(crate) figures: Figures,
    pub(crate) classes: ioscape_model::Classes,
    pub(crate) steady: bool,
    pub(crate) ramp_s: f64,
    /// `directory=` or `filename=`.
    pub(crate) place: Option<String>,
    pub(crate) seed: u64,
    pub(crate) cpu_s_per_op: Option<f64>,
    /// What should be known before the figures are used.
    pub(crate) notes: Vec<Words>,
}

impl Results {
    /// The workloads that ran.
    pub fn workloads(&self) -> impl Iterator<Item = &Workload> {
        self.measured.iter().map(|measured| &measured.work)
    }

    /// Why jobs are left out, in sentences.
    pub fn left_out(&self) -> &[String] {
        &self.left_out
    }
}

/// Reads a document.
///
/// # Errors
/// One line that says what was expected and not found.
pub fn read(text: &str) -> Result<Results, String> {
    let (document, notes) = document(text)?;
    let version = document["fio version"].as_str().unwrap_or_default().to_owned();
    if !is_supported(&version) {
        return Err(match version.as_str() {
            "" => "there is no `fio version`: run fio with --output-format=json".to_owned(),
            _ => format!("{version} counts in other units: results of fio 3.0 or later are read"),
        });
    }
    if document.get("client_stats").is_some() {
        return Err("results of several hosts (client_stats): name those of one".to_owned());
    }
    let jobs = document["jobs"].as_array().ok_or("there is no list of `jobs`")?;
    if jobs.is_empty() || jobs.len() > JOBS_MAX {
        return Err(format!("there are {} jobs; 1 to {JOBS_MAX} can be read", jobs.len()));
    }
    let global = strings(&document["global options"]);
    let mut results = Results {
        version,
        timestamp_s: document["timestamp"].as_i64(),
        device: device(&document),
        measured: vec![],
        left_out: vec![],
        notes,
    };
    for (name, group) in groups(jobs) {
        match measured(&name, &group, &global) {
            Ok(measured) => results.measured.push(measured),
            Err(why) => results.left_out.push(format!("job `{name}` is left out: {why}")),
        }
    }
    Ok(results)
}

/// The JSON among the lines that fio may print before and after it.
fn document(text: &str) -> Result<(Value, Vec<String>), String> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with('{') {
            break;
        }
        start += line.len();
    }
    let mut notes = Vec::new();
    if text[..start].lines().any(|line| !line.trim().is_empty()) {
        let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        notes.push(format!("fio said before its results: {}", plain(first)));
    }
    let mut values = serde_json::Deserializer::from_str(&text[start..]).into_iter::<Value>();
    let document = match values.next() {
        Some(Ok(document)) if document.is_object() => document,
        Some(Err(error)) => return Err(format!("it is no JSON of fio: {error}")),
        _ => return Err("it holds no JSON of fio: run it with --output-format=json".to_owned()),
    };
    let rest = &text[start + values.byte_offset()..];
    if rest.lines().any(|line| line.starts_with('{')) {
        return Err("it holds several documents: leave out --status-interval".to_owned());
    }
    Ok((document, notes))
}

fn is_supported(version: &str) -> bool {
    let number = version.strip_prefix("fio-").and_then(|rest| rest.split('.').next());
    number.and_then(|major| major.parse::<u32>().ok()).is_some_and(|major| major >= 3)
}

/// Text from elsewhere, on one line and of a length that can be read.
fn plain(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}

fn device(document: &Value) -> Option<String> {
    match document["disk_util"].as_array().map(Vec::as_slice) {
        Some([only]) => only["name"].as_str().map(plain),
        _ => None,
    }
}

fn strings(options: &Value) -> Options {
    let pairs = options.as_object().into_iter().flatten();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    pairs.map(|(name, value)| (plain(name), text(value))).collect()
}

/// Jobs with one group number ran at the same time; in the order of their first ones.
fn groups(jobs: &[Value]) -> Vec<(String, Vec<&Value>)> {
    let mut places: BTreeMap<(i64, usize), usize> = BTreeMap::new();
    let mut groups: Vec<(String, Vec<&Value>)> = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        // One without a number is taken for itself.
        let number = job["groupid"].as_i64().map_or((-1, index), |number| (number, 0));
        let place = *places.entry(number).or_insert_with(|| {
            groups.push((plain(job["jobname"].as_str().unwrap_or("without a name")), vec![]));
            groups.len() - 1
        });
        groups[place].1.push(job);
    }
    groups
}

/// The jobs of a group as one workload.
fn measured(name: &str, group: &[&Value], global: &Options) -> Result<Measured, String> {
    if name.starts_with(named::WARM_UP) {
        return Err("it fills the page cache and measures nothing".to_owned());
    }
    for job in group {
        match job["error"].as_i64() {
            Some(0) => {}
            Some(error) => return Err(format!("it ended with error {error}")),
            None => return Err("whether it ended well is not said".to_owned()),
        }
    }
    let options: Vec<Options> = group.iter().map(|job| together(global, job)).collect();
    if options.iter().any(Options::is_empty) {
        return Err("its options are not in the document (`job options`)".to_owned());
    }
    let jobs: Vec<Job> = options.iter().map(options::understand).collect::<Result<_, String>>()?;
    let processes = processes(group, &jobs)?;
    let mut notes = jobs[0].notes.clone();
    let mut work = one_workload(&jobs, processes, &mut notes)?;
    let parts = Parts::from_group(group)?;
    let figures = Figures::from_parts(&parts.all)?;
    check(&work, &figures, &parts)?;
    settle_size(&mut work, &jobs[0], &figures, &mut notes)?;
    work.check().map_err(|error| error.to_string())?;
    notes.extend(figures.notes.iter().cloned());
    if work.access == ioscape_model::Access::Buffered
        && figures.bytes < work.unique_bytes.saturating_mul(2)
    {
        notes.push(
            "it went over its data less than twice: what a cache would keep was not seen".into(),
        );
    }
    let first = &options[0];
    let seconds = |name: &str| first.get(name).and_then(|text| seconds(text));
    let place = first.get("directory").or_else(|| first.get("filename"));
    Ok(Measured {
        name: name.to_owned(),
        classes: parts.classes(&work),
        steady: is_steady(&figures),
        engine: format!("fio {}", jobs[0].engine),
        ramp_s: seconds("ramp_time").unwrap_or(0.0),
        place: place.map(|text| plain(text)),
        seed: first.get("randseed").and_then(|text| text.parse().ok()).unwrap_or(0),
        cpu_s_per_op: cpu_s(group).map(|cpu_s| cpu_s / figures.ops as f64),
        work,
        figures,
        notes,
    })
}

fn together(global: &Options, job: &Value) -> Options {
    let mut all = global.clone();
    all.extend(strings(&job["job options"]));
    all
}

/// How many processes the jobs of a group were. fio lists each process, or with `group_reporting`
/// all of a group as one, and does not say which.
fn processes(group: &[&Value], jobs: &[Job]) -> Result<u32, String> {
    let mut listed: BTreeMap<&str, (u32, u32)> = BTreeMap::new();
    for (job, understood) in group.iter().zip(jobs) {
        let name = job["jobname"].as_str().unwrap_or_default();
        listed.entry(name).or_insert((0, understood.processes)).0 += 1;
    }
    let mut processes = 0_u32;
    for (name, (listed, asked)) in listed {
        if listed != 1 && listed != asked {
            let name = plain(name);
            return Err(format!("`{name}` is listed {listed} times, where numjobs says {asked}"));
        }
        processes = processes.saturating_add(asked);
    }
    Ok(processes)
}

/// All jobs of a group have to be one workload, run by several processes.
fn one_workload(jobs: &[Job], processes: u32, notes: &mut Vec<Words>) -> Result<Workload, String> {
    let first = &jobs[0];
    if jobs.iter().any(|job| job.work != first.work || job.engine != first.engine) {
        return Err("it ran together with other jobs that did something else".to_owned());
    }
    let mut work = first.work.clone();
    work.process_num = processes;
    let share = work.unique_bytes;
    let is_one_file = first.file.is_some() && jobs.iter().all(|job| job.file == first.file);
    if is_one_file && processes > 1 && work.layout == Layout::Private {
        if work.seq_frac > 0.0 {
            return Err("its processes follow each other through the same data".to_owned());
        }
        notes.push("its processes shared the same data, not a part each".into());
        work.layout = Layout::Shared;
        return Ok(work);
    }
    if first.file.is_none() || !is_one_file {
        work.layout = Layout::Private;
    }
    work.unique_bytes =
        share.checked_mul(u64::from(processes)).ok_or("its data is larger than there can be")?;
    Ok(work)
}

/// The figures of all jobs of a group.
struct Parts {
    reads: Vec<Direction>,
    writes: Vec<Direction>,
    /// Both, or what fio reports as one (`unified_rw_reporting`).
    all: Vec<Direction>,
    are_told_apart: bool,
}

impl Parts {
    fn from_group(group: &[&Value]) -> Result<Self, String> {
        let mut parts = Self { reads: vec![], writes: vec![], all: vec![], are_told_apart: true };
        for job in group {
            if job["trim"]["total_ios"].as_u64().unwrap_or(0) > 0 {
                return Err("it trimmed".to_owned());
            }
            if job["read"].is_object() && job["write"].is_object() {
                parts.reads.push(Direction::parse(&job["read"])?);
                parts.writes.push(Direction::parse(&job["write"])?);
            } else if job["mixed"].is_object() {
                parts.all.push(Direction::parse(&job["mixed"])?);
                parts.are_told_apart = false;
            } else {
                return Err("it has neither `read` and `write` nor `mixed` figures".to_owned());
            }
        }
        if !parts.all.is_empty() && !parts.reads.is_empty() {
            return Err("some of its processes tell reads from writes and some do not".to_owned());
        }
        if parts.are_told_apart {
            parts.all = parts.reads.iter().chain(&parts.writes).cloned().collect();
        }
        Ok(parts)
    }

    /// Where all requests are of one kind, fio's directions are classes. Otherwise it does not
    /// tell sequential from random ones.
    fn classes(&self, work: &Workload) -> ioscape_model::Classes {
        let mut classes = ioscape_model::Classes::default();
        let reads = Direction::sum(&self.reads).class();
        let writes = Direction::sum(&self.writes).class();
        if self.are_told_apart && work.seq_frac >= 1.0 {
            (classes.read_seq, classes.write_seq) = (reads, writes);
        } else if self.are_told_apart && work.seq_frac <= 0.0 {
            (classes.read_rand, classes.write_rand) = (reads, writes);
        }
        classes
    }
}

/// What was measured has to be what was asked for.
fn check(work: &Workload, figures: &Figures, parts: &Parts) -> Result<(), String> {
    if parts.are_told_apart {
        let reads: u64 = parts.reads.iter().map(|part| part.ops).fold(0, u64::saturating_add);
        let found = reads as f64 / figures.ops as f64;
        if (found - work.read_frac).abs() > MIX_SLACK {
            return Err(format!(
                "{:.0} % of its requests were reads, where its options say {:.0} %",
                found * 100.0,
                work.read_frac * 100.0
            ));
        }
    }
    let most = f64::from(work.process_num) * f64::from(work.depth);
    match figures.in_flight {
        Some(in_flight) if in_flight > IN_FLIGHT_SLACK * most => Err(format!(
            "{in_flight:.1} requests were under way, where its options say {most}: several jobs \
             were reported as one (group_reporting)"
        )),
        _ => Ok(()),
    }
}

/// The mean size is the one that was measured; a fixed one has to be as asked.
fn settle_size(
    work: &mut Workload,
    job: &Job,
    figures: &Figures,
    notes: &mut Vec<Words>,
) -> Result<(), String> {
    let found = figures.bytes as f64 / figures.ops as f64;
    let asked = job.size_mean_bytes;
    if (found / asked - 1.0).abs() <= SIZE_SLACK {
        return Ok(());
    }
    if work.size_dist == ioscape_model::SizeDist::Fixed {
        return Err(format!("its requests had {found:.0} bytes, where its options say {asked:.0}"));
    }
    let sentence =
        "its mean size was {mean_bytes:.0} bytes, where {mean_asked_bytes:.0} were asked for";
    let note = Words::new(sentence).figure("mean_bytes", found).figure("mean_asked_bytes", asked);
    notes.push(note);
    work.size_mean = (found / work.align as f64).round().max(1.0) as u64 * work.align;
    Ok(())
}

/// fio does not say; its samples of the throughput do.
fn is_steady(figures: &Figures) -> bool {
    figures.windows >= STEADY_SAMPLES_MIN
        && figures.variation.is_some_and(|variation| variation <= STEADY_VARIATION)
}

/// Processor time of all processes of a group.
fn cpu_s(group: &[&Value]) -> Option<f64> {
    let one = |job: &&Value| {
        let percent = job["usr_cpu"].as_f64()? + job["sys_cpu"].as_f64()?;
        let cpu_s = percent / 100.0 * job["job_runtime"].as_f64()? * 1e-3;
        (cpu_s.is_finite() && cpu_s >= 0.0).then_some(cpu_s)
    };
    group.iter().map(one).sum()
}

/// `2`, `2s`, `500ms`, `1m`; `None` for what is more than that.
fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let factor = match &text[digits..] {
        "" | "s" => 1.0,
        "us" => 1e-6,
        "ms" => 1e-3,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return None,
    };
    Some(number * factor)
}
