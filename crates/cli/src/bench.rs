//! What a measurement stands on: the target opened, the limits in force, the machine described.

use std::path::Path;

use ioscape_engine::dirty_limit::{self, DirtyLimit};
use ioscape_engine::memory_limit::{self, MemoryLimit};
use ioscape_engine::run_id::RunId;
use ioscape_engine::sim::{SimRig, SimSpec};
use ioscape_engine::target::{Consent, Ground};
use ioscape_engine::{Clock, EngineKind, FileRig, Placement, Rig, files, harness, host, target};
use ioscape_model::units::{show_bytes, three_digits};
use ioscape_model::{Code, Header, Host, Ranges, Severity, Target, Warning};

use crate::args::{Common, DeviceArgs};
use crate::exit::usage;
use crate::interrupt::Interrupt;
use crate::text_file;

/// Dirty limits above this share of the memory limit let writers run into reclaim.
const DIRTY_OF_MEMORY_MAX: f64 = 0.6;
/// Below this share of the memory limit writers are safe all the same.
const WRITES_OF_MEMORY: f64 = 0.5;

/// Everything a measurement stands on. Fields are dropped in order: test files go before the
/// group they were written in, limits are restored last.
pub(crate) struct Bench {
    pub(crate) rig: Box<dyn Rig>,
    _memory_limit: Option<MemoryLimit>,
    _dirty_limit: Option<DirtyLimit>,
    pub(crate) host: Host,
    pub(crate) target: Target,
    /// The simulated device's own ranges.
    pub(crate) sim_ranges: Option<Ranges>,
    pub(crate) warnings: Vec<Warning>,
    /// Beyond this, writers would stall in reclaim, bytes.
    pub(crate) writes_max_bytes: Option<f64>,
    /// A block device that nobody agreed to overwrite.
    pub(crate) read_only: bool,
    /// Whether a process may keep several requests in flight.
    pub(crate) can_go_deep: bool,
}

impl Bench {
    /// For what writes whatever it is asked.
    ///
    /// # Errors
    /// On a block device that is only read.
    pub(crate) fn refuse_read_only(&self) -> anyhow::Result<()> {
        if !self.read_only {
            return Ok(());
        }
        let path = &self.target.path;
        Err(usage(format!(
            "{path} is a block device and a map needs writes: `--destroy {path}` lets all that is \
             on it be overwritten, `ioscape measure {path} --read-frac 1` only reads"
        )))
    }
}

/// What is asked for.
pub(crate) struct Request<'a> {
    pub(crate) target: &'a Path,
    pub(crate) run: &'a RunId,
    pub(crate) engine: EngineKind,
    /// Whether data are stamped and checked.
    pub(crate) verify: bool,
    pub(crate) seed: u64,
    pub(crate) common: &'a Common,
    /// What was typed about block devices, where that can be.
    pub(crate) device: Option<&'a DeviceArgs>,
    /// How much of all this is for show.
    pub(crate) earnest: Earnest,
    pub(crate) clock: Clock,
    pub(crate) interrupt: &'a Interrupt,
}

/// Whether anything may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Earnest {
    /// Limits are put in force; at most so many bytes are laid out to learn how fast that is.
    Measure {
        /// Bytes.
        probe_max_bytes: u64,
    },
    /// Nothing is changed: `--dry-run`.
    DryRun,
}

/// Opens the target and puts the limits in force.
pub(crate) fn open(request: &Request<'_>) -> anyhow::Result<Bench> {
    match sim_name(request.target) {
        Some(name) => open_sim(request, name),
        None => open_real(request),
    }
}

/// Opens the target of a record again. Of a simulated device the record's own description counts,
/// whatever became of the file or the preset.
pub(crate) fn reopen(request: &Request<'_>, recorded: &Header) -> anyhow::Result<Bench> {
    match &recorded.target.sim {
        Some(description) => Ok(on_sim(request, SimSpec::from_toml(description)?)),
        None => open_real(request),
    }
}

fn open_sim(request: &Request<'_>, name: &str) -> anyhow::Result<Bench> {
    if request.common.memory_limit.is_some() || request.common.dirty_limit.is_some() {
        return Err(usage("a simulated device has its own caches: leave the limits out"));
    }
    if request.device.is_some_and(DeviceArgs::are_given) {
        return Err(usage(
            "a simulated device has nothing to lose: leave --destroy and --read-only out",
        ));
    }
    if request.verify {
        return Err(usage("a simulated device holds no data to check: leave --verify out"));
    }
    Ok(on_sim(request, sim_spec(name)?))
}

/// What stands behind `sim:`, where a target is a simulated device.
pub(crate) fn sim_name(target: &Path) -> Option<&str> {
    target.to_str()?.strip_prefix("sim:")
}

/// The simulated device of this name, or of a file that ends in `.toml`.
pub(crate) fn sim_spec(name: &str) -> anyhow::Result<SimSpec> {
    let is_file = Path::new(name).extension().is_some_and(|extension| extension == "toml");
    if !is_file {
        return Ok(SimSpec::preset(name)?);
    }
    let text = text_file::read(Path::new(name), text_file::TYPED_BYTES_MAX)
        .map_err(|error| usage(format!("{name}: {error}")))?;
    Ok(SimSpec::from_toml(&text)?)
}

fn on_sim(request: &Request<'_>, spec: SimSpec) -> Bench {
    let target = Target {
        path: request.target.display().to_string(),
        kind: "sim".to_owned(),
        filesystem: "simulated".to_owned(),
        sim: Some(spec.to_toml()),
        ..Target::default()
    };
    let host = Host { cpu_model: "simulated".to_owned(), ..Host::default() };
    let ranges = spec.ranges();
    let rig = SimRig::new(spec, request.seed);
    Bench {
        rig: Box::new(rig),
        _memory_limit: None,
        _dirty_limit: None,
        host,
        target,
        sim_ranges: Some(ranges),
        warnings: vec![],
        writes_max_bytes: None,
        read_only: false,
        can_go_deep: true,
    }
}

/// The directory or device that a target names. A device is only written where that was said.
fn open_ground(request: &Request<'_>) -> anyhow::Result<Ground> {
    let path = request.target;
    let consent = request.device.filter(|device| device.are_given()).map(DeviceArgs::consent);
    if consent.is_none() && !target::is_block_device(path) {
        return Ok(target::open_directory(path)?.into());
    }
    Ok(target::open_device(path, consent.unwrap_or(Consent::ReadOnly))?.into())
}

fn open_real(request: &Request<'_>) -> anyhow::Result<Bench> {
    let ground = open_ground(request)?;
    let target = ground.describe();
    let mut warnings = ground.warnings();
    let limits = request.common;
    let (mut dirty, mut memory) = (None, None);
    if let Earnest::Measure { .. } = request.earnest {
        if let Ground::Directory(directory) = &ground {
            warnings.extend(clear_leftovers(directory, request.run)?);
        }
        dirty = limits.dirty_limit.map(DirtyLimit::set).transpose()?;
        let enter = |bytes| MemoryLimit::enter(bytes, request.run);
        memory = limits.memory_limit.map(enter).transpose()?;
    }
    let mut host = host::describe(&request.clock);
    host.memory_limit_set_bytes = limits.memory_limit;
    host.dirty_limit_set_bytes = limits.dirty_limit;
    let placement = if limits.pin { Placement::Spread } else { Placement::Free };
    host.placement = Some(placement.describe());
    host.harness_s_per_op = harness::cost_s(&request.clock);
    let stall = stall_warning(&host, ground.is_memory());
    let writes_max_bytes =
        stall.as_ref().and(host.memory_limit_bytes).map(|limit| limit as f64 * WRITES_OF_MEMORY);
    warnings.extend(stall);
    warnings.extend(clock_warning(&host));
    let flag = request.interrupt.flag();
    let read_only = ground.device().is_some_and(|device| !device.is_writable());
    let mut rig = FileRig::new(ground, request.run.clone(), &host, request.clock, flag)?
        .with_engine(request.engine)
        .with_placement(placement);
    if request.verify {
        rig = rig.with_verification(request.run)?;
    }
    if let Earnest::Measure { probe_max_bytes } = request.earnest {
        rig.probe_layout(probe_max_bytes)?;
    }
    Ok(Bench {
        rig: Box::new(rig),
        _memory_limit: memory,
        _dirty_limit: dirty,
        host,
        target,
        sim_ranges: None,
        warnings,
        writes_max_bytes,
        read_only,
        can_go_deep: ioscape_engine::uring_is_available(),
    })
}

/// What other runs do here, and what killed ones left: limits are restored, empty groups removed; this run's own files (it is
/// being resumed) too; those of other runs are only pointed out.
pub(crate) fn clear_leftovers(
    directory: &target::Directory,
    run: &RunId,
) -> anyhow::Result<Vec<Warning>> {
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
    let text = format!(
        "{} test files of killed runs lie here and take {}",
        left.len(),
        show_bytes(bytes as f64)
    );
    let remedy = format!("`ioscape clean {}` removes them", directory.path().display());
    warnings.push(Warning::new(Code::Leftover, text, remedy).with_severity(Severity::Note));
    Ok(warnings)
}

/// What the machine's limits and its clock make doubtful.
pub(crate) fn machine_warnings(host: &Host, in_memory: bool) -> Vec<Warning> {
    [stall_warning(host, in_memory), clock_warning(host)].into_iter().flatten().collect()
}

/// Whether a record's workers were kept on processors of their own.
pub(crate) fn is_pinned(host: &Host) -> bool {
    let free = Placement::Free.describe();
    host.placement.as_ref().is_some_and(|placement| *placement != free)
}

fn stall_warning(host: &Host, in_memory: bool) -> Option<Warning> {
    let memory_bytes = host.memory_limit_bytes.filter(|_| !in_memory)? as f64;
    let dirty_bytes = host.dirty_limit_bytes as f64;
    // Under cgroup v2 the kernel scales the dirty limit to the group by itself.
    if host.cgroup_version == Some(2) || dirty_bytes <= memory_bytes * DIRTY_OF_MEMORY_MAX {
        return None;
    }
    let text = format!(
        "writers are slowed down only at {} of dirty data, but the memory limit is {}: beyond it \
         they would stall in reclaim for minutes, so workloads that write and touch more than \
         {} of it are left out",
        show_bytes(dirty_bytes),
        show_bytes(memory_bytes),
        three_digits(WRITES_OF_MEMORY)
    );
    let remedy = format!(
        "as root, `--dirty-limit {}M` sets a limit that suits (machine-wide, restored afterwards)",
        (memory_bytes * 0.4 / 1_048_576.0) as u64
    );
    Some(Warning::new(Code::DirtyLimitAboveMemory, text, remedy))
}

fn clock_warning(host: &Host) -> Option<Warning> {
    /// A clock read through the processor alone costs tens of nanoseconds.
    const CLOCK_READ_MAX_S: f64 = 200e-9;
    if host.clock_read_s <= CLOCK_READ_MAX_S {
        return None;
    }
    let text = format!(
        "reading the clock costs {:.0} ns (clock source {}): short requests look longer than they \
         are",
        host.clock_read_s * 1e9,
        host.clock_source
    );
    Some(Warning::new(
        Code::SlowClock,
        text,
        "use a machine whose clock source is tsc or kvm-clock",
    ))
}
