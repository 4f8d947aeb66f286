//! The control groups this process lives in, under version 1 or 2: where they are, and the
//! limits that hold, its own and those of all groups above it that can be seen from here.

use std::fs;
use std::path::{Path, PathBuf};

use crate::mounts::{self, Mount};

/// Version of the control-group interface that a controller is used through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// One tree per controller.
    One,
    /// One tree for all.
    Two,
}

/// A group that this process is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub version: Version,
    /// Its directory.
    pub path: PathBuf,
    /// The highest group that can be seen.
    pub top: PathBuf,
}

impl Group {
    /// The group in force for a controller (`memory`, `cpu`, `blkio`; `blkio` is `io` in
    /// version 2); `None` where neither version has it.
    pub(crate) fn current(controller: &str) -> Option<Self> {
        let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
        find(controller, &membership, &mounts::all())
    }

    /// This group and all above it, innermost first.
    pub(crate) fn upwards(&self) -> impl Iterator<Item = &Path> {
        self.path.ancestors().take_while(|path| path.starts_with(&self.top))
    }

    /// The smallest number that `name` holds, here or above; `max` and the like are none.
    fn smallest(&self, name: &str) -> Option<u64> {
        self.upwards().filter_map(|path| number(&path.join(name))).min()
    }

    /// Memory limit in force, bytes.
    pub(crate) fn memory_limit_bytes(&self) -> Option<u64> {
        match self.version {
            // Version 1 says "none" with the largest multiple of the page size.
            Version::One => self.smallest("memory.limit_in_bytes").filter(|limit| *limit < 1 << 60),
            Version::Two => [self.smallest("memory.max"), self.smallest("memory.high")]
                .into_iter()
                .flatten()
                .min(),
        }
    }

    /// Memory that may still be taken here, page cache given up for it: the least over all groups
    /// that have a limit.
    pub(crate) fn memory_to_be_had_bytes(&self) -> Option<u64> {
        let (limit, usage, cache, shared) = match self.version {
            Version::One => {
                ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache", "total_shmem")
            }
            Version::Two => ("memory.max", "memory.current", "file", "shmem"),
        };
        let of_group = |path: &Path| {
            let limit = number(&path.join(limit)).filter(|limit| *limit < 1 << 60)?;
            let usage = number(&path.join(usage))?;
            let statistics = fs::read_to_string(path.join("memory.stat")).ok()?;
            let statistic = |key| keyed(&statistics, key).unwrap_or(0);
            let kept = usage.saturating_sub(statistic(cache).saturating_sub(statistic(shared)));
            Some(limit.saturating_sub(kept))
        };
        self.upwards().filter_map(of_group).min()
    }

    /// Processors' worth of time that may be used.
    pub(crate) fn cpu_limit(&self) -> Option<f64> {
        let of_group = |path: &Path| {
            let (quota, period) = match self.version {
                Version::One => (
                    number(&path.join("cpu.cfs_quota_us"))?,
                    number(&path.join("cpu.cfs_period_us"))?,
                ),
                Version::Two => {
                    let text = fs::read_to_string(path.join("cpu.max")).ok()?;
                    let (quota, period) = text.trim().split_once(' ')?;
                    (quota.parse().ok()?, period.parse().ok()?)
                }
            };
            (period > 0).then(|| quota as f64 / period as f64)
        };
        self.upwards().filter_map(of_group).min_by(f64::total_cmp)
    }

    /// Seconds for which a quota, here or above, has held its processes back since it was made, all
    /// processors together.
    pub(crate) fn held_back_s(&self) -> Option<f64> {
        let of_group = |path: &Path| {
            let statistics = fs::read_to_string(path.join("cpu.stat")).ok()?;
            match self.version {
                Version::One => Some(keyed(&statistics, "throttled_time")? as f64 * 1e-9),
                Version::Two => Some(keyed(&statistics, "throttled_usec")? as f64 * 1e-6),
            }
        };
        self.upwards().filter_map(of_group).max_by(f64::total_cmp)
    }

    /// How often its processes ran into the memory limit, here or above.
    pub(crate) fn limit_events(&self) -> Option<u64> {
        let of_group = |path: &Path| match self.version {
            Version::One => number(&path.join("memory.failcnt")),
            Version::Two => {
                let events = fs::read_to_string(path.join("memory.events")).ok()?;
                Some(keyed(&events, "max").unwrap_or(0) + keyed(&events, "high").unwrap_or(0))
            }
        };
        self.upwards().filter_map(of_group).max()
    }

    /// I/O throttles, as the kernel prints them.
    pub(crate) fn io_limits(&self) -> Vec<String> {
        const ONE: &[&str] = &[
            "blkio.throttle.read_bps_device",
            "blkio.throttle.write_bps_device",
            "blkio.throttle.read_iops_device",
            "blkio.throttle.write_iops_device",
        ];
        let names = match self.version {
            Version::One => ONE,
            Version::Two => &["io.max"],
        };
        let mut limits = Vec::new();
        for path in self.upwards() {
            for name in names {
                let text = fs::read_to_string(path.join(name)).unwrap_or_default();
                limits.extend(text.lines().map(|line| format!("{name} {line}")));
            }
        }
        limits
    }
}

/// `membership` is /proc/self/cgroup: `4:memory:/user`, and `0::/user` for version 2.
fn find(controller: &str, membership: &str, mounts: &[Mount]) -> Option<Group> {
    let path_of = |wanted: &str| {
        membership.lines().find_map(|line| {
            let (_, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            controllers.split(',').any(|name| name == wanted).then_some(path)
        })
    };
    let group = |version, mount: &Mount, path: &str| {
        // In a container the mount may show only the part of the tree that is ours.
        let below = path.strip_prefix(mount.root.trim_end_matches('/')).unwrap_or("");
        let top = PathBuf::from(&mount.mount_point);
        let path = top.join(below.trim_start_matches('/'));
        let path = if path.is_dir() { path } else { top.clone() };
        Group { version, path, top }
    };
    if let Some(path) = path_of(controller) {
        let mount = mounts.iter().find(|mount| {
            mount.filesystem == "cgroup"
                && mount.super_options.split(',').any(|option| option == controller)
        })?;
        return Some(group(Version::One, mount, path));
    }
    let mount = mounts.iter().find(|mount| mount.filesystem == "cgroup2")?;
    let controllers = fs::read_to_string(Path::new(&mount.mount_point).join("cgroup.controllers"));
    let name = if controller == "blkio" { "io" } else { controller };
    if !controllers.ok()?.split_whitespace().any(|offered| offered == name) {
        return None;
    }
    Some(group(Version::Two, mount, path_of("")?))
}

/// The number a file holds; `None` for `max`, `-1`, or no such file.
pub(crate) fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// The number behind `key` in lines of `key number`.
pub(crate) fn keyed(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree of version 2 in a plain directory: the limits are files like any others.
    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, Vec<Mount>) {
        let place = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mount = Mount {
            root: "/".to_owned(),
            mount_point: place.path().to_str().unwrap().to_owned(),
            filesystem: "cgroup2".to_owned(),
            ..Mount::default()
        };
        (place, vec![mount])
    }

    #[test]
    fn the_smallest_limit_on_the_way_up_holds() {
        let (_place, mounts) = tree(&[
            ("cgroup.controllers", "cpu io memory\n"),
            ("a/memory.max", "1000000\n"),
            ("a/memory.current", "300000\n"),
            ("a/memory.stat", "anon 50000\nfile 250000\nshmem 1000\n"),
            ("a/cpu.max", "150000 100000\n"),
            ("a/cpu.stat", "nr_throttled 8\nthrottled_usec 2500000\n"),
            ("a/b/cpu.stat", "nr_throttled 0\nthrottled_usec 0\n"),
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.high", "2000000\n"),
            ("a/b/cpu.max", "max 100000\n"),
            ("a/b/io.max", "8:0 rbps=1048576 wbps=max riops=max wiops=max\n"),
        ]);
        let group = find("memory", "0::/a/b\n", &mounts).unwrap();
        assert_eq!(group.version, Version::Two);
        assert_eq!(group.memory_limit_bytes(), Some(1_000_000));
        assert_eq!(group.memory_to_be_had_bytes(), Some(1_000_000 - (300_000 - 249_000)));
        assert_eq!(group.cpu_limit(), Some(1.5));
        assert_eq!(group.held_back_s(), Some(2.5));
        let io = find("blkio", "0::/a/b\n", &mounts).unwrap().io_limits();
        assert_eq!(io, ["io.max 8:0 rbps=1048576 wbps=max riops=max wiops=max"]);
    }

    #[test]
    fn a_container_that_sees_only_its_part_of_the_tree_finds_its_group() {
        let (place, mut mounts) = tree(&[
            ("cgroup.controllers", "memory\n"),
            ("memory.max", "5000\n"),
            ("inner/memory.max", "max\n"),
        ]);
        mounts[0].root = "/docker/0a1b".to_owned();
        let group = find("memory", "0::/docker/0a1b/inner\n", &mounts).unwrap();
        assert_eq!(group.path, place.path().join("inner"));
        assert_eq!(group.memory_limit_bytes(), Some(5000));
    }

    #[test]
    fn version_one_wins_where_it_has_the_controller() {
        let (place, mut mounts) =
            tree(&[("x/memory.limit_in_bytes", "9223372036854771712\n"), ("memory.x", "")]);
        mounts[0].filesystem = "cgroup".to_owned();
        mounts[0].super_options = "rw,memory".to_owned();
        let group = find("memory", "4:memory:/x\n0::/\n", &mounts).unwrap();
        assert_eq!((group.version, group.path.clone()), (Version::One, place.path().join("x")));
        assert_eq!(group.memory_limit_bytes(), None, "the largest number means none");
        assert_eq!(find("cpu", "4:memory:/x\n0::/\n", &mounts), None);
    }
}
