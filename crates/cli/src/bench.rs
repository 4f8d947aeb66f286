//! Targets as they are typed, opened for a measurement.

use std::path::Path;

use ioscape_engine::sim::SimSpec;
use ioscape_engine::{Clock, EngineKind, RunId, target};
use ioscape_experiment::bench::{self, Restraint};
use ioscape_model::Header;

pub(crate) use ioscape_experiment::bench::{Bench, RunMode};

use crate::args::{Common, DeviceArgs};
use crate::company::{Company, Told};
use crate::exit::usage;
use crate::interrupt::Interrupt;
use crate::text_file;

/// Why ranks cannot measure what is simulated.
const ONE_MACHINE: &str = "a simulated device is one machine: start this once, without a launcher";

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
    /// Whether anything may be changed.
    pub(crate) mode: RunMode,
    pub(crate) clock: Clock,
    pub(crate) interrupt: &'a Interrupt,
    /// The ranks to measure with, where the command may have several.
    pub(crate) company: &'a Company,
}

/// Opens the target and puts the limits in force.
pub(crate) fn open(request: &Request<'_>) -> anyhow::Result<Bench> {
    let Some(name) = sim_name(request.target) else { return open_real(request) };
    if request.company.is_any() {
        return Err(usage(ONE_MACHINE));
    }
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

/// Opens the target of a record again. Of a simulated device the record's own description counts,
/// whatever became of the file or the preset.
pub(crate) fn reopen(request: &Request<'_>, recorded: &Header) -> anyhow::Result<Bench> {
    match &recorded.target.sim {
        Some(_) if request.company.is_any() => Err(usage(ONE_MACHINE)),
        Some(description) => Ok(on_sim(request, SimSpec::from_toml(description)?)),
        None => open_real(request),
    }
}

fn on_sim(request: &Request<'_>, spec: SimSpec) -> Bench {
    Bench::simulated(&request.target.display().to_string(), spec, request.seed)
}

fn open_real(request: &Request<'_>) -> anyhow::Result<Bench> {
    let Common { memory_limit, dirty_limit, pin, .. } = *request.common;
    refuse_for_ranks(request)?;
    let restraint =
        Restraint { memory_limit_bytes: memory_limit, dirty_limit_bytes: dirty_limit, pin };
    let bench = Bench::open(bench::Request {
        target: request.target,
        run: request.run,
        engine: request.engine,
        verify: request.verify,
        restraint,
        consent: request.device.filter(|device| device.are_given()).map(DeviceArgs::consent),
        mode: request.mode,
        clock: request.clock,
        interrupt: request.interrupt.flag(),
        part: request.company.part(),
    })?;
    let Request { run, engine, mode, interrupt, .. } = *request;
    request.company.joined(bench, &Told { run, engine, restraint, mode, interrupt })
}

/// Refuses a target or an option that several ranks cannot have together.
fn refuse_for_ranks(request: &Request<'_>) -> anyhow::Result<()> {
    if !request.company.is_any() {
        return Ok(());
    }
    if request.device.is_some_and(|device| device.read_only) {
        return Err(usage("--read-only is for one rank: start this once, without a launcher"));
    }
    if target::is_block_device(request.target) {
        let path = request.target.display();
        return Err(usage(format!(
            "{path} is a block device, which ranks of a launcher would overwrite for each other: \
             name a directory on it, or start this once, without a launcher"
        )));
    }
    if request.verify {
        return Err(usage("--verify keeps account of one rank's writes: leave it out"));
    }
    Ok(())
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
