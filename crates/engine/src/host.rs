//! Describes the machine, for the record's header. Everything is read from the kernel without
//! privilege; what cannot be known is left out. No host name, serial number or user name.

pub mod checkup;
mod device;
mod probe;
mod processor;
mod sample;
pub mod waits;

use std::path::Path;

use ioscape_model::Host;

use crate::cgroup::{self, Group, Version};
use crate::clock::Clock;
use crate::memory;
use crate::sysfs::read;

/// The machine as it is now. Takes up to 0.3 s, for the speed of memory.
pub fn describe(clock: &Clock) -> Host {
    let memory_group = Group::current("memory");
    let dirty = memory::DirtyLimits::read();
    let llc_bytes = processor::llc_bytes();
    let meminfo = read("/proc/meminfo").unwrap_or_default();
    let meminfo_bytes = |key| memory::meminfo_bytes(&meminfo, key).unwrap_or(0);
    let memory_bytes = meminfo_bytes("MemTotal");
    let limit_bytes = memory_group.as_ref().and_then(Group::memory_limit_bytes);
    let centiseconds = |name| sysctl(name).map_or(0.0, |value| value as f64 / 100.0);
    Host {
        cpu_model: processor::model(),
        cpus: processor::allowed().len() as u32,
        llc_bytes,
        memory_bytes,
        memory_available_bytes: memory::to_be_had_bytes(),
        kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default(),
        os: distribution(),
        virtualisation: processor::virtualisation(),
        clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .unwrap_or_default(),
        clock_read_s: clock.read_cost_s(),
        harness_s_per_op: None,
        placement: None,
        governor: processor::governor(),
        memory_copy_bytes_per_s: memory::copy_bytes_per_s(clock, llc_bytes),
        cgroup_version: memory_group.as_ref().map(|group| match group.version {
            Version::One => 1,
            Version::Two => 2,
        }),
        // A limit at or above the memory never takes effect; some virtual machines for containers have one.
        memory_limit_bytes: limit_bytes.filter(|limit| memory_bytes == 0 || *limit < memory_bytes),
        memory_limit_set_bytes: None,
        dirty_limit_set_bytes: None,
        cpu_limit: Group::current("cpu").and_then(|group| group.cpu_limit()),
        io_limits: Group::current("blkio").map(|group| group.io_limits()).unwrap_or_default(),
        dirty_limit_bytes: dirty.limit_bytes,
        dirty_background_bytes: dirty.background_bytes,
        dirty_expire_s: centiseconds("dirty_expire_centisecs"),
        dirty_writeback_s: centiseconds("dirty_writeback_centisecs"),
        lru_gen: read("/sys/kernel/mm/lru_gen/enabled").map(|flags| flags != "0x0000"),
        swap_bytes: meminfo_bytes("SwapTotal"),
        load_average: load_average().unwrap_or(0.0),
    }
}

/// Makes the dirty limits those that hold for files on `filesystem`, or for a `block device`,
/// written from the control group that this process is in now.
pub fn scale_dirty_limits(host: &mut Host, filesystem: &str) {
    memory::scale_dirty_limits(host, filesystem);
}

/// Processors that the calling thread may run on.
pub fn allowed_cpus() -> Vec<usize> {
    processor::allowed()
}

fn distribution() -> String {
    let release = read("/etc/os-release").or_else(|| read("/usr/lib/os-release"));
    let name = release
        .as_deref()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")));
    name.map_or_else(|| "Linux".to_owned(), |name| name.trim_matches('"').to_owned())
}

fn load_average() -> Option<f64> {
    read("/proc/loadavg")?.split(' ').next()?.parse().ok()
}

/// A number below `/proc/sys/vm`.
fn sysctl(name: &str) -> Option<u64> {
    cgroup::number(&Path::new("/proc/sys/vm").join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_is_described_quickly_and_makes_sense() {
        let clock = Clock::start();
        let host = describe(&clock);
        // 0.3 s on a quiet machine.
        eprintln!("described in {:.3} s: {host:#?}", clock.now_s());
        assert!(!host.cpu_model.is_empty() && host.cpus >= 1);
        assert!(host.memory_bytes >= host.memory_available_bytes);
        assert!(host.memory_available_bytes > 0);
        assert!(host.kernel.contains('.'));
        assert!(!host.clock_source.is_empty());
        assert!((1e-10..1e-3).contains(&host.clock_read_s), "{}", host.clock_read_s);
        assert!(host.dirty_limit_bytes > host.dirty_background_bytes);
        assert!(host.dirty_background_bytes > 0);
        assert!(host.memory_copy_bytes_per_s.is_none_or(|rate| (1e6..1e13).contains(&rate)));
    }

    #[test]
    fn nothing_in_it_names_the_machine_or_its_user() {
        // By the fields there are: looking for the name itself trips over machines called `linux`.
        let fields = toml::Table::try_from(describe(&Clock::start())).unwrap();
        assert!(fields.contains_key("kernel"));
        for field in fields.keys() {
            for secret in ["name", "serial", "user", "uuid", "address"] {
                assert!(!field.contains(secret), "{field}");
            }
        }
    }
}
