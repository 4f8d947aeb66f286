//! Gathers what `ioscape doctor` judges: nothing is changed but for one small test file, made and
//! removed again where the target is a directory.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ioscape_model::checkup::{Facts, Machine};

use super::{device, probe, sample};
use crate::cgroup::{Group, Version};
use crate::clock::Clock;
use crate::error::Result;
use crate::files;
use crate::run_id::RunId;
use crate::sysfs::read;
use crate::target::{self, Directory};

/// Facts about a directory as a target; takes two to three seconds.
///
/// # Errors
/// When the test file cannot be made, or on an interrupt.
pub fn of_directory(
    directory: Directory,
    clock: &Clock,
    interrupt: Arc<AtomicBool>,
) -> Result<Facts> {
    let sysfs = target::describe::whole_device(directory.mount());
    let run = RunId::random()?;
    let neighbours = files::neighbours(&directory, &run)?;
    let mut facts = Facts {
        host: super::describe(clock),
        target: directory.describe(),
        machine: machine(),
        device: sysfs.as_deref().map(device::look),
        sample: sample::take(clock, sysfs.as_deref()),
        probe: None,
        warnings: directory.warnings().into_iter().chain(neighbours).collect(),
    };
    facts.probe = probe::make(&Arc::new(directory), &run, clock, interrupt)?;
    Ok(facts)
}

/// Facts about a block device as a target; it is only read.
pub fn of_device(opened: &target::Device, clock: &Clock) -> Facts {
    let sysfs = opened.number().sysfs().map(crate::sysfs::whole);
    let mut facts = Facts {
        host: super::describe(clock),
        target: opened.describe(),
        machine: machine(),
        device: sysfs.as_deref().map(device::look),
        sample: sample::take(clock, sysfs.as_deref()),
        probe: probe::of_device(opened, clock),
        warnings: opened.warnings(),
    };
    if let Some(device) = &mut facts.device {
        device.contents = opened.contents().iter().map(|found| found.what.to_owned()).collect();
        device.zero_fraction = opened.zero_fraction();
    }
    facts
}

fn machine() -> Machine {
    let meminfo = read("/proc/meminfo").unwrap_or_default();
    let meminfo_bytes = |key| crate::memory::meminfo_bytes(&meminfo, key).unwrap_or(0);
    Machine {
        is_root: rustix::process::geteuid().is_root(),
        numa_nodes: numa_nodes(),
        on_battery: on_battery(),
        laptop_mode: super::sysctl("laptop_mode").is_some_and(|mode| mode != 0),
        swap_used_bytes: meminfo_bytes("SwapTotal").saturating_sub(meminfo_bytes("SwapFree")),
        can_limit_memory: can_limit_memory(),
    }
}

/// `0-1,4` are three nodes.
fn numa_nodes() -> u32 {
    let text = read("/sys/devices/system/node/has_memory").unwrap_or_default();
    let count = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(last.parse::<u32>().ok()? + 1 - first.parse::<u32>().ok()?)
    };
    text.split(',').filter_map(count).sum::<u32>().max(1)
}

/// Mains that say whether they are plugged in.
fn on_battery() -> Option<bool> {
    let supplies = std::fs::read_dir("/sys/class/power_supply").ok()?.flatten();
    let online: Vec<bool> = supplies
        .filter(|supply| read(supply.path().join("type")).is_some_and(|t| t == "Mains"))
        .filter_map(|supply| Some(read(supply.path().join("online"))? == "1"))
        .collect();
    (!online.is_empty()).then(|| !online.contains(&true))
}

/// Whether a group can be made below the one this process is in: that is what it takes.
fn can_limit_memory() -> bool {
    use rustix::fs::Access;
    let may_write = |path: &Path| rustix::fs::access(path, Access::WRITE_OK).is_ok();
    Group::current("memory").is_some_and(|group| match group.version {
        Version::One => may_write(&group.path),
        Version::Two => {
            may_write(&group.path) && may_write(&group.path.join("cgroup.subtree_control"))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_about_a_directory_are_gathered_and_nothing_is_left_behind() {
        let place = tempfile::tempdir().unwrap();
        let directory = target::open_directory(place.path()).unwrap();
        let clock = Clock::start();
        let facts = of_directory(directory, &clock, Arc::default()).unwrap();
        eprintln!("{:.2} s: {facts:#?}", clock.now_s());
        assert!(facts.sample.length_s > 0.5);
        assert!(facts.sample.cpu_busy_fraction.is_some_and(|busy| (0.0..=1.0).contains(&busy)));
        assert!(facts.machine.numa_nodes >= 1);
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0);
    }
}
