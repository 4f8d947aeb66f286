//! Processors: model, last-level cache, governor, and whether they are virtual.

use std::path::PathBuf;

use crate::sysfs::read;

const SYSTEM: &str = "/sys/devices/system/cpu";

/// Processors this process may run on.
pub(super) fn allowed() -> Vec<usize> {
    let Ok(set) = rustix::thread::sched_getaffinity(None) else { return vec![0] };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu)).collect()
}

/// As the processor names itself. ARM gives two numbers in place of a name.
pub(super) fn model() -> String {
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let field = |wanted: &str| {
        cpuinfo.lines().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            (key.trim() == wanted).then(|| value.trim().to_owned())
        })
    };
    let name = ["model name", "cpu model", "Model", "uarch", "cpu"].into_iter().find_map(field);
    let numbers = || {
        let (implementer, part) = (field("CPU implementer")?, field("CPU part")?);
        Some(format!("{} implementer {implementer} part {part}", std::env::consts::ARCH))
    };
    name.or_else(numbers).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

/// Size of the last-level cache that the first allowed processor uses.
pub(super) fn llc_bytes() -> Option<u64> {
    let cpu = *allowed().first()?;
    let cache = PathBuf::from(format!("{SYSTEM}/cpu{cpu}/cache"));
    (0..8)
        .filter_map(|index| {
            let index = cache.join(format!("index{index}"));
            let kind = read(index.join("type"))?;
            let level: u32 = read(index.join("level"))?.parse().ok()?;
            (kind != "Instruction").then_some((level, kib(&read(index.join("size"))?)?))
        })
        .max()
        .map(|(_, kib)| kib * 1024)
}

/// `266240K`.
fn kib(text: &str) -> Option<u64> {
    text.strip_suffix('K')?.parse().ok()
}

/// Frequency governors of the allowed processors.
pub(super) fn governor() -> Option<String> {
    let mut governors: Vec<String> = allowed()
        .into_iter()
        .filter_map(|cpu| read(format!("{SYSTEM}/cpu{cpu}/cpufreq/scaling_governor")))
        .collect();
    governors.sort();
    governors.dedup();
    (!governors.is_empty()).then(|| governors.join(", "))
}

/// Container and hypervisor, where they show themselves.
pub(super) fn virtualisation() -> Option<String> {
    match (container(), hypervisor()) {
        (Some(container), Some(hypervisor)) => Some(format!("{container} on {hypervisor}")),
        (container, hypervisor) => container.or(hypervisor),
    }
}

fn container() -> Option<String> {
    if let Some(name) = read("/run/systemd/container") {
        return Some(name);
    }
    let marks = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    if let Some((_, name)) = marks.iter().find(|(path, _)| PathBuf::from(path).exists()) {
        return Some((*name).to_owned());
    }
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let names = ["kubepods", "docker", "lxc", "containerd"];
    names.into_iter().find(|name| groups.contains(name)).map(str::to_owned)
}

fn hypervisor() -> Option<String> {
    if read("/proc/sys/kernel/osrelease").is_some_and(|kernel| kernel.contains("microsoft")) {
        return Some("WSL".to_owned());
    }
    if let Some(name) = read("/sys/hypervisor/type") {
        return Some(name);
    }
    let makers = [
        ("QEMU", "QEMU"),
        ("KVM", "KVM"),
        ("Amazon EC2", "Amazon EC2"),
        ("Google", "Google Compute Engine"),
        ("Microsoft Corporation", "Hyper-V"),
        ("VMware", "VMware"),
        ("innotek", "VirtualBox"),
        ("Xen", "Xen"),
        ("Parallels", "Parallels"),
        ("OpenStack", "OpenStack"),
        ("DigitalOcean", "DigitalOcean"),
        ("Alibaba", "Alibaba Cloud"),
    ];
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags"));
    let flagged = flags.is_some_and(|line| line.split(' ').any(|flag| flag == "hypervisor"));
    // The makers of some hypervisors make real machines too: on x86 the flag decides.
    if !flagged && cfg!(target_arch = "x86_64") {
        return None;
    }
    let maker = [read("/sys/class/dmi/id/sys_vendor"), read("/sys/class/dmi/id/product_name")]
        .into_iter()
        .flatten()
        .find_map(|text| makers.iter().find(|(mark, _)| text.contains(mark)));
    maker
        .map(|(_, name)| (*name).to_owned())
        .or_else(|| read("/proc/device-tree/hypervisor/compatible"))
        .or_else(|| flagged.then(|| "an unnamed hypervisor".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_sizes_are_read_in_kib() {
        assert_eq!(kib("266240K"), Some(266_240));
        assert_eq!(kib("max"), None);
    }

    #[test]
    fn this_process_may_run_somewhere() {
        assert!(!allowed().is_empty());
        assert!(!model().is_empty());
    }
}
