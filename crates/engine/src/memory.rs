//! Memory: sizes, the dirty limits in bytes, the speed of a copy.

use ioscape_model::Host;

use crate::cgroup::{Group, Version};
use crate::clock::Clock;
use crate::sysfs::read;

/// Dirty data at which the kernel starts to write, and at which it stops writers.
pub(crate) struct DirtyLimits {
    pub limit_bytes: u64,
    pub background_bytes: u64,
}

impl DirtyLimits {
    /// As the kernel computes them now: `vm.dirty_bytes`, or `vm.dirty_ratio` of the memory that
    /// may become dirty (free pages above the reserves, and pages of files).
    pub(crate) fn read() -> Self {
        let vmstat = read("/proc/vmstat").unwrap_or_default();
        let page_bytes = rustix::param::page_size() as u64;
        let bytes = |key| Some(crate::cgroup::keyed(&vmstat, key)? * page_bytes);
        Self {
            limit_bytes: bytes("nr_dirty_threshold").unwrap_or(0),
            background_bytes: bytes("nr_dirty_background_threshold").unwrap_or(0),
        }
    }
}

/// Filesystems whose dirty pages the kernel counts for the control group that made them (version
/// 2; `SB_I_CGROUPWB` in their sources). Block devices do so too.
const COUNTED_BY_GROUP: [&str; 8] =
    ["ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "bcachefs", "block device"];

/// Sets the dirty limits to what holds for files on `filesystem` written from here. Within a group
/// of version 2 the kernel allows as large a share of the memory that the group may use as it
/// allows of the machine's (`domain_dirty_limits` in mm/page-writeback.c).
pub(crate) fn scale_dirty_limits(host: &mut Host, filesystem: &str) {
    let group = Group::current("memory").filter(|group| group.version == Version::Two);
    let Some(room_bytes) = group.and_then(|group| group.memory_to_be_had_bytes()) else { return };
    if !COUNTED_BY_GROUP.contains(&filesystem) {
        return;
    }
    let meminfo = read("/proc/meminfo").unwrap_or_default();
    let share = share_of_dirtyable(room_bytes, &meminfo);
    let scaled = |bytes: u64| (bytes as f64 * share) as u64;
    host.dirty_limit_bytes = scaled(host.dirty_limit_bytes);
    host.dirty_background_bytes = scaled(host.dirty_background_bytes);
}

/// A group's room over the memory of the machine that may become dirty: free pages and pages of
/// files; 1 at most, and where that is not known.
fn share_of_dirtyable(room_bytes: u64, meminfo: &str) -> f64 {
    let parts = ["MemFree", "Active(file)", "Inactive(file)"];
    let dirtyable_bytes: u64 = parts.iter().filter_map(|key| meminfo_bytes(meminfo, key)).sum();
    if dirtyable_bytes == 0 { 1.0 } else { (room_bytes as f64 / dirtyable_bytes as f64).min(1.0) }
}

/// The limit of the machine as a whole, which is what its count of dirty pages is held against.
pub(crate) fn machine_dirty_limit_bytes(host: &Host) -> u64 {
    DirtyLimits::read().limit_bytes.max(host.dirty_limit_bytes)
}

/// `MemTotal:       24684092 kB`.
pub(crate) fn meminfo_bytes(meminfo: &str, key: &str) -> Option<u64> {
    meminfo.lines().find_map(|line| {
        let value = line.strip_prefix(key)?.strip_prefix(':')?;
        Some(value.trim().trim_end_matches(" kB").parse::<u64>().ok()? * 1024)
    })
}

/// Data of the machine that is newer than storage, bytes.
pub(crate) fn dirty_bytes() -> Option<u64> {
    let meminfo = read("/proc/meminfo")?;
    Some(meminfo_bytes(&meminfo, "Dirty")? + meminfo_bytes(&meminfo, "Writeback").unwrap_or(0))
}

/// Memory this process could have now, page cache given up for it: of the machine, or of the
/// control groups it lives in where these allow less.
pub(crate) fn to_be_had_bytes() -> u64 {
    let meminfo = read("/proc/meminfo").unwrap_or_default();
    let machine = meminfo_bytes(&meminfo, "MemAvailable").unwrap_or(0);
    let group = Group::current("memory").and_then(|group| group.memory_to_be_had_bytes());
    group.map_or(machine, |group| group.min(machine))
}

/// Both blocks of a copy together, at most: enough to leave the caches of most processors, little
/// enough to be had quickly everywhere.
const COPY_MAX_BYTES: u64 = 64 << 20;

/// Bytes per second of copying blocks that together are four times the last-level cache, as Chen
/// and Patterson's environment table gives memory speed, but not more than 64 MiB. Virtual
/// machines often report the cache of the whole host: with a last-level cache that is really that
/// large the figure is an upper bound, for part of the copy stays in it. `None` where an eighth
/// of the memory to be had is too little for a copy that means anything. From large pages, where the
/// kernel has some, copies are a fifth to a third faster than from small ones.
pub(crate) fn copy_bytes_per_s(clock: &Clock, llc_bytes: Option<u64>) -> Option<f64> {
    const COPIES: usize = 4;
    let length = copy_length_bytes(llc_bytes, to_be_had_bytes())? as usize;
    // Filled with something: untouched memory would all be one page of zeros. The first copy, which
    // gets its memory from the kernel, is never the quickest.
    let mut source = in_large_pages(length);
    source.resize(length, 1_u8);
    let mut copy = in_large_pages(length);
    copy.resize(length, 0);
    let once = |_| {
        let start_s = clock.now_s();
        copy.copy_from_slice(std::hint::black_box(&source));
        std::hint::black_box(&mut copy);
        clock.now_s() - start_s
    };
    let shortest_s = (0..COPIES).map(once).fold(f64::INFINITY, f64::min);
    Some(length as f64 / shortest_s)
}

/// Room for so many bytes, in large pages where the kernel has some to spare: of small ones it hands over
/// thousands, which takes longer than a copy.
fn in_large_pages(length: usize) -> Vec<u8> {
    const LARGE: usize = 2 << 20;
    let mut block = Vec::<u8>::with_capacity(length);
    let unaligned = block.as_mut_ptr().align_offset(LARGE);
    let whole = length.saturating_sub(unaligned) / LARGE * LARGE;
    if whole > 0 {
        // SAFETY: the range lies inside memory that is this block's own, and the advice changes no data.
        let advised = unsafe {
            let start = block.as_mut_ptr().add(unaligned).cast();
            rustix::mm::madvise(start, whole, rustix::mm::Advice::LinuxHugepage)
        };
        // A kernel without large pages is as good, if slower.
        advised.ok();
    }
    block
}

/// Length of each of the two blocks.
fn copy_length_bytes(llc_bytes: Option<u64>, available_bytes: u64) -> Option<u64> {
    const LENGTH_MIN_BYTES: u64 = 1 << 20;
    let wanted_bytes = llc_bytes.map_or(COPY_MAX_BYTES, |bytes| bytes.saturating_mul(4));
    let length = wanted_bytes.min(COPY_MAX_BYTES).min(available_bytes / 8) / 2;
    (length >= LENGTH_MIN_BYTES).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_in_bytes() {
        let text = "MemTotal:       24684092 kB\nMemFree:           1 kB\n";
        assert_eq!(meminfo_bytes(text, "MemTotal"), Some(24_684_092 * 1024));
        assert_eq!(meminfo_bytes(text, "Mem"), None);
    }

    #[test]
    fn a_group_may_have_as_large_a_share_dirty_as_the_machine() {
        let text = "MemFree: 1000 kB\nActive(file): 500 kB\nInactive(file): 500 kB\nCached: 7 kB\n";
        assert!((share_of_dirtyable(200 * 1024, text) - 0.1).abs() < 1e-12);
        assert!((share_of_dirtyable(9000 * 1024, text) - 1.0).abs() < 1e-12);
        assert!((share_of_dirtyable(1, "") - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_speed_of_memory_is_plausible() {
        let clock = Clock::start();
        let rate = copy_bytes_per_s(&clock, Some(8 << 20));
        eprintln!("copy: {rate:?} bytes/s in {:.3} s", clock.now_s());
        assert!(rate.is_none_or(|rate| (1e6..1e13).contains(&rate)));
    }

    #[test]
    fn a_copy_is_large_but_never_a_danger_to_a_small_memory_group() {
        const MIB: u64 = 1 << 20;
        let plenty = 1024 * MIB;
        assert_eq!(copy_length_bytes(Some(8 * MIB), plenty), Some(16 * MIB));
        assert_eq!(copy_length_bytes(Some(260 * MIB), plenty), Some(32 * MIB));
        assert_eq!(copy_length_bytes(None, plenty), Some(32 * MIB));
        assert_eq!(copy_length_bytes(Some(260 * MIB), 64 * MIB), Some(4 * MIB));
        assert_eq!(copy_length_bytes(Some(8 * MIB), 8 * MIB), None);
    }
}
