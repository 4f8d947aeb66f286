//! What a measurement stands on: the target opened, the limits in force, the machine described.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ioscape_engine::dirty_limit::{self, DirtyLimit};
use ioscape_engine::error::Result;
use ioscape_engine::file_rig::Part;
use ioscape_engine::memory_limit::{self, MemoryLimit};
use ioscape_engine::run_id::RunId;
use ioscape_engine::sim::{SimRig, SimSpec};
use ioscape_engine::target::{self, Consent, Directory, Ground};
use ioscape_engine::{Clock, EngineKind, Error, FileRig, Placement, Rig, files, harness, host};
use ioscape_model::{Code, Host, Hosts, Ranges, Severity, Target, TargetKind, Warning, Words};
use serde::{Deserialize, Serialize};

/// Dirty limits above this share of the memory limit let writers run into reclaim.
const DIRTY_OF_MEMORY_MAX: f64 = 0.6;
/// Below this share of the memory limit writers are safe all the same.
const WRITES_OF_MEMORY: f64 = 0.5;

/// Everything a measurement stands on. Fields are dropped in order: test files go before the
/// group they were written in, limits are restored last.
pub struct Bench {
    /// Where workloads run.
    pub rig: Box<dyn Rig>,
    _memory_limit: Option<MemoryLimit>,
    _dirty_limit: Option<DirtyLimit>,
    /// The machine.
    pub host: Host,
    /// What is measured.
    pub target: Target,
    /// The simulated device's own ranges.
    pub sim_ranges: Option<Ranges>,
    /// What is doubtful before anything was measured.
    pub warnings: Vec<Warning>,
    /// Beyond this, writers would stall in reclaim, bytes.
    pub writes_max_bytes: Option<f64>,
    /// A block device that nobody agreed to overwrite.
    pub read_only: bool,
    /// Where the ranks are, where there are several.
    pub hosts: Option<Hosts>,
}

/// What this process keeps to while it measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restraint {
    /// Memory of a control group of its own, page cache included, bytes.
    pub memory_limit_bytes: Option<u64>,
    /// The machine's dirty data, bytes; restored afterwards.
    pub dirty_limit_bytes: Option<u64>,
    /// Whether each process is kept on a processor of its own.
    pub pin: bool,
}

/// How a directory or a block device is opened.
pub struct Request<'a> {
    /// Its path.
    pub target: &'a Path,
    /// The run that its test files and group are named after.
    pub run: &'a RunId,
    /// The engine that makes the requests.
    pub engine: EngineKind,
    /// Whether data are stamped and checked.
    pub verify: bool,
    /// Limits to put in force.
    pub restraint: Restraint,
    /// What was said about overwriting a block device, where anything was.
    pub consent: Option<Consent<'a>>,
    /// Whether the run measures, or only says what it would cost.
    pub mode: RunMode,
    /// Time.
    pub clock: Clock,
    /// Raised when the run is to stop.
    pub interrupt: Arc<AtomicBool>,
    /// The processes of each workload that run here.
    pub part: Part,
}

/// Whether the run measures, or only says what it would cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunMode {
    /// Limits are put in force; at most so many bytes are laid out to learn how fast that is.
    Measure {
        /// Bytes.
        probe_max_bytes: u64,
    },
    /// Nothing is changed: `--dry-run`.
    DryRun,
}

impl Bench {
    /// Opens a directory or a block device, and puts the limits in force.
    ///
    /// # Errors
    /// When the target is refused, or the system refuses what is needed.
    pub fn open(request: Request<'_>) -> Result<Self> {
        let ground = open_ground(&request)?;
        let target = ground.describe();
        let mut warnings = ground.warnings();
        let limits = request.restraint;
        let (mut dirty, mut memory) = (None, None);
        if let RunMode::Measure { .. } = request.mode {
            // Rank 0 does so for all, before there are files of the others.
            let is_first = request.part.rank == 0;
            if let Ground::Directory(directory) = &ground
                && is_first
            {
                warnings.extend(clear_leftovers(directory, request.run)?);
            }
            let dirty_limit_bytes = limits.dirty_limit_bytes.filter(|_| is_first);
            dirty = dirty_limit_bytes.map(DirtyLimit::set).transpose()?;
            let enter = |bytes| MemoryLimit::enter(bytes, &request.run.of_rank(request.part.rank));
            memory = limits.memory_limit_bytes.map(enter).transpose()?;
        }
        let mut host = host::describe(&request.clock);
        host.memory_limit_set_bytes = limits.memory_limit_bytes;
        host.dirty_limit_set_bytes = limits.dirty_limit_bytes;
        host::scale_dirty_limits(&mut host, written_as(&ground, &target));
        let placement = if limits.pin { Placement::Spread } else { Placement::Free };
        host.placement = Some(placement.describe());
        host.harness_s_per_op = harness::cost_s(&request.clock);
        let stall = stall_warning(&host, ground.is_memory());
        let writes_max_bytes = stall
            .as_ref()
            .and(host.memory_limit_bytes)
            .map(|limit| limit as f64 * WRITES_OF_MEMORY);
        warnings.extend(stall);
        warnings.extend(clock_warning(&host));
        let read_only = ground.is_read_only();
        let run = request.run.clone();
        let mut rig = FileRig::new(ground, run, &host, request.clock, request.interrupt)?
            .with_engine(request.engine)
            .with_placement(placement)
            .with_part(request.part);
        if request.verify {
            rig = rig.with_verification(request.run)?;
        }
        if let RunMode::Measure { probe_max_bytes } = request.mode {
            rig.probe_layout(probe_max_bytes)?;
        }
        Ok(Self {
            rig: Box::new(rig),
            _memory_limit: memory,
            _dirty_limit: dirty,
            host,
            target,
            sim_ranges: None,
            warnings,
            writes_max_bytes,
            read_only,
            hosts: None,
        })
    }

    /// A simulated device under this name: `sim:hdd`. The seed is that of its noise.
    pub fn simulated(name: &str, spec: SimSpec, seed: u64) -> Self {
        let target = Target {
            path: name.to_owned(),
            kind: TargetKind::Sim,
            filesystem: "simulated".to_owned(),
            sim: Some(spec.to_toml()),
            ..Target::default()
        };
        Self {
            sim_ranges: Some(spec.ranges()),
            rig: Box::new(SimRig::new(spec, seed)),
            _memory_limit: None,
            _dirty_limit: None,
            host: Host { cpu_model: "simulated".to_owned(), ..Host::default() },
            target,
            warnings: vec![],
            writes_max_bytes: None,
            read_only: false,
            hosts: None,
        }
    }

    /// Checks that workloads may write here.
    ///
    /// # Errors
    /// Where it is only read, and that was not asked for.
    pub fn refuse_read_only(&self) -> Result<()> {
        if !self.read_only {
            return Ok(());
        }
        let path = &self.target.path;
        Err(Error::Refused(format!(
            "{path} is a block device and a map needs writes: `--destroy {path}` lets all that is \
             on it be overwritten, `ioscape run --read-only {path}` measures its reads"
        )))
    }
}

/// The filesystem whose pages are made dirty here; a device's own are like one's.
fn written_as<'a>(ground: &Ground, target: &'a Target) -> &'a str {
    if ground.device().is_some() { "block device" } else { &target.filesystem }
}

/// The directory, device or file that a target names. A device is only written where that was said.
fn open_ground(request: &Request<'_>) -> Result<Ground> {
    let path = request.target;
    if request.consent == Some(Consent::ReadOnly) && !target::is_block_device(path) {
        return Ok(target::open_existing(path)?.into());
    }
    if request.consent.is_none() && !target::is_block_device(path) {
        return Ok(target::open_directory(path)?.into());
    }
    Ok(target::open_device(path, request.consent.unwrap_or(Consent::ReadOnly))?.into())
}

/// Cleans up after killed runs, and gives what is doubtful about other runs here: limits are restored,
/// empty groups removed; files of this run (it is being resumed) too; those of other runs are only
/// pointed out.
///
/// # Errors
/// When the directory cannot be read, or a file not be removed.
pub fn clear_leftovers(directory: &Directory, run: &RunId) -> Result<Vec<Warning>> {
    let mut warnings = Vec::new();
    if let Err(error) = dirty_limit::restore_leftover() {
        let text = format!("what a killed run set as dirty limits may be in force still: {error}");
        let remedy = "look at vm.dirty_bytes and vm.dirty_ratio";
        warnings.push(Warning::new(Code::Leftover, text, remedy));
    }
    memory_limit::remove_leftover_groups();
    files::remove_leftovers(directory, Some(run))?;
    warnings.extend(files::neighbours(directory, run)?);
    let left: Vec<_> = files::leftovers(directory)?.into_iter().filter(|l| !l.live).collect();
    if left.is_empty() {
        return Ok(warnings);
    }
    let bytes: u64 = left.iter().map(|leftover| leftover.bytes).sum();
    let text = Words::new("{files} test files of killed runs lie here and take {taken_bytes}")
        .figure("files", left.len() as f64)
        .figure("taken_bytes", bytes as f64);
    let remedy = Words::new("`ioscape clean {directory}` removes them")
        .name("directory", directory.path().display());
    warnings.push(Warning::new(Code::Leftover, text, remedy).with_severity(Severity::Note));
    Ok(warnings)
}

/// What the machine's limits and its clock make doubtful.
pub fn machine_warnings(host: &Host, in_memory: bool) -> Vec<Warning> {
    [stall_warning(host, in_memory), clock_warning(host)].into_iter().flatten().collect()
}

/// Whether a record's workers were kept on processors of their own.
pub fn is_pinned(host: &Host) -> bool {
    let free = Placement::Free.describe();
    host.placement.as_ref().is_some_and(|placement| *placement != free)
}

fn stall_warning(host: &Host, in_memory: bool) -> Option<Warning> {
    let memory_bytes = host.memory_limit_bytes.filter(|_| !in_memory)? as f64;
    let dirty_bytes = host.dirty_limit_bytes as f64;
    // Where the kernel scales the limit to the group (version 2, most filesystems) it is small.
    if dirty_bytes <= memory_bytes * DIRTY_OF_MEMORY_MAX {
        return None;
    }
    let text = Words::new(
        "writers are slowed down only at {dirty_limit_bytes} of dirty data, but the memory limit is \
         {memory_limit_bytes}: beyond it they would stall in reclaim for minutes, so workloads that \
         write and touch more than {writes_of_memory:.2} of it are left out",
    )
    .figure("dirty_limit_bytes", dirty_bytes)
    .figure("memory_limit_bytes", memory_bytes)
    .figure("writes_of_memory", WRITES_OF_MEMORY);
    let fitting_bytes = memory_bytes * 0.4;
    let remedy = Words::new(
        "as root, `--dirty-limit {limit}` sets a limit that suits (machine-wide, restored \
         afterwards)",
    )
    .figure("fitting_limit_bytes", fitting_bytes)
    .name("limit", format!("{}M", (fitting_bytes / 1_048_576.0) as u64));
    Some(Warning::new(Code::DirtyLimitAboveMemory, text, remedy))
}

fn clock_warning(host: &Host) -> Option<Warning> {
    /// A clock read through the processor alone costs tens of nanoseconds.
    const CLOCK_READ_MAX_S: f64 = 200e-9;
    const QUICK_SOURCES: [&str; 3] = ["tsc", "kvm-clock", "arch_sys_counter"];
    if host.clock_read_s <= CLOCK_READ_MAX_S {
        return None;
    }
    let text = Words::new(
        "reading the clock costs {nanoseconds} ns (clock source {source}): short requests look \
         longer than they are",
    )
    .figure("clock_read_s", host.clock_read_s)
    .name("nanoseconds", format!("{:.0}", host.clock_read_s * 1e9))
    .name("source", &host.clock_source);
    let is_quick_source = QUICK_SOURCES.contains(&host.clock_source.as_str());
    let remedy = if is_quick_source {
        "the source is a quick one, so the processor itself is slow here: emulated, or without a \
         vDSO; use a machine that is not"
    } else {
        "use a machine whose clock source is tsc or kvm-clock"
    };
    Some(Warning::new(Code::SlowClock, text, remedy))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_dirty_limit_above_the_memory_limit_is_doubted_whatever_version_of_groups_there_is() {
        let host = |version, dirty_limit_bytes| Host {
            cgroup_version: Some(version),
            memory_limit_bytes: Some(64 * MIB),
            dirty_limit_bytes,
            ..Host::default()
        };
        for version in [1, 2] {
            let warning = stall_warning(&host(version, 366 * MIB), false).unwrap();
            let figures = warning.figures.iter().map(|(name, value)| (name.as_str(), *value));
            let wanted = [
                ("dirty_limit_bytes", 366.0 * MIB as f64),
                ("fitting_limit_bytes", 64.0 * MIB as f64 * 0.4),
                ("memory_limit_bytes", 64.0 * MIB as f64),
                ("writes_of_memory", WRITES_OF_MEMORY),
            ];
            assert_eq!(figures.collect::<Vec<_>>(), wanted);
            assert!(warning.text.contains("only at 366 MiB of dirty data"), "{}", warning.text);
            assert!(warning.text.contains("more than 0.50 of it"), "{}", warning.text);
            assert!(warning.remedy.contains("`--dirty-limit 25M` sets"), "{}", warning.remedy);
            assert!(stall_warning(&host(version, 366 * MIB), true).is_none(), "in memory");
            assert!(stall_warning(&host(version, 12 * MIB), false).is_none());
        }
    }

    #[test]
    fn nobody_is_sent_to_the_clock_source_that_is_there() {
        let remedy = |source: &str| {
            let (clock_source, clock_read_s) = (source.to_owned(), 216e-9);
            let host = Host { clock_source, clock_read_s, ..Host::default() };
            let warning = clock_warning(&host).unwrap();
            assert_eq!(warning.figures.get("clock_read_s"), Some(&216e-9));
            let shown = format!("costs 216 ns (clock source {source})");
            assert!(warning.text.contains(&shown), "{}", warning.text);
            warning.remedy
        };
        assert!(remedy("hpet").contains("tsc"));
        assert!(!remedy("tsc").contains("whose clock source is tsc"));
    }
}
