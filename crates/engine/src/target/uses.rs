//! Who uses a block device: what the kernel says in mountinfo, swaps and sysfs, and which
//! programs hold it open as far as this user may see them.

use std::fs;
use std::path::Path;

use crate::clock::Clock;
use crate::mounts;
use crate::sysfs::{Number, attribute};

/// What uses a device, as sentences are made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Where it is mounted, or a partition of it.
    pub mounted_at: Vec<String>,
    /// Kernel names of its partitions.
    pub partitions: Vec<String>,
    /// Kernel names of devices that are made of it.
    pub holders: Vec<String>,
    /// Whether it is swapped to.
    pub is_swap: bool,
    /// Programs that hold it open, with their numbers.
    pub open_in: Vec<String>,
}

impl Uses {
    /// All of them in one sentence; `None` where nobody uses it.
    pub fn sentence(&self) -> Option<String> {
        let mut parts = Vec::new();
        if !self.mounted_at.is_empty() {
            parts.push(format!("mounted at {}", self.mounted_at.join(" and ")));
        }
        if self.is_swap {
            parts.push("swapped to".to_owned());
        }
        if !self.holders.is_empty() {
            parts.push(format!("part of {}", self.holders.join(" and ")));
        }
        if !self.partitions.is_empty() {
            parts.push(format!("divided into {}", self.partitions.join(", ")));
        }
        if !self.open_in.is_empty() {
            parts.push(format!("held open by {}", self.open_in.join(" and ")));
        }
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Uses of a device once programs that only look at a new one have had time to close it.
pub(super) fn settled(number: Number) -> Uses {
    const ATTEMPTS: usize = 20;
    const PAUSE_NS: u64 = 50_000_000;
    let clock = Clock::start();
    let mut uses = find_uses(number);
    for _ in 1..ATTEMPTS {
        if uses.open_in.is_empty() {
            break;
        }
        clock.sleep_until(clock.now_ns() + PAUSE_NS);
        uses = find_uses(number);
    }
    uses
}

/// Who uses the device of this number.
pub(crate) fn find_uses(number: Number) -> Uses {
    let sysfs = number.sysfs();
    let partitions = sysfs.as_deref().map(partitions).unwrap_or_default();
    let mut numbers = vec![number];
    numbers.extend(partitions.iter().map(|(_, number)| *number));
    let mut holders = Vec::new();
    for number in &numbers {
        holders
            .extend(number.sysfs().map(|sysfs| names(&sysfs.join("holders"))).unwrap_or_default());
    }
    holders.extend(loops_over(&numbers));
    Uses {
        mounted_at: mounted_at(&numbers),
        partitions: partitions.into_iter().map(|(name, _)| name).collect(),
        holders,
        is_swap: is_swap(&numbers),
        open_in: open_in(&numbers),
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Directories below a disk's in sysfs that say they are partitions.
fn partitions(sysfs: &Path) -> Vec<(String, Number)> {
    let of_name = |name: String| {
        let directory = sysfs.join(&name);
        attribute(&directory, "partition")?;
        let number = attribute(&directory, "dev")?;
        let (major, minor) = number.split_once(':')?;
        let raw = rustix::fs::makedev(major.parse().ok()?, minor.parse().ok()?);
        Some((name, Number::from_raw(raw)))
    };
    names(sysfs).into_iter().filter_map(of_name).collect()
}

fn mounted_at(numbers: &[Number]) -> Vec<String> {
    let is_ours = |mount: &mounts::Mount| {
        numbers.iter().any(|number| number.to_string() == mount.device_number)
            // Filesystems of several devices have a number of their own.
            || Number::of_path(Path::new(&mount.source)).is_some_and(|n| numbers.contains(&n))
    };
    let mut points: Vec<String> =
        mounts::all().into_iter().filter(is_ours).map(|mount| mount.mount_point).collect();
    points.dedup();
    points
}

fn is_swap(numbers: &[Number]) -> bool {
    let table = mounts::table("/proc/swaps").unwrap_or_default();
    table.lines().skip(1).any(|line| {
        let path = line.split_whitespace().next().unwrap_or_default();
        Number::of_path(Path::new(path)).is_some_and(|number| numbers.contains(&number))
    })
}

/// Loop devices take their backing without claiming it.
fn loops_over(numbers: &[Number]) -> Vec<String> {
    let is_over = |name: &String| {
        let backing = attribute(&Path::new("/sys/block").join(name), "loop/backing_file");
        backing
            .and_then(|path| Number::of_path(Path::new(&path)))
            .is_some_and(|number| numbers.contains(&number))
    };
    let loops = names(Path::new("/sys/block")).into_iter().filter(|name| name.starts_with("loop"));
    loops.filter(is_over).collect()
}

/// Programs other than this one that hold it open, such as a virtual machine whose disk it is:
/// those need not claim it. Only root sees all of them.
fn open_in(numbers: &[Number]) -> Vec<String> {
    let own = std::process::id().to_string();
    let is_process = |name: &String| name.bytes().all(|byte| byte.is_ascii_digit()) && *name != own;
    let holds = |process: &String| {
        names(&Path::new("/proc").join(process).join("fd")).iter().any(|fd| {
            let link = Path::new("/proc").join(process).join("fd").join(fd);
            // The link's text first: looking behind one into a dead network share would hang.
            fs::read_link(&link).is_ok_and(|to| to.starts_with("/dev"))
                && Number::of_path(&link).is_some_and(|number| numbers.contains(&number))
        })
    };
    let processes = names(Path::new("/proc")).into_iter().filter(is_process);
    processes
        .filter(holds)
        .map(|process| {
            let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
            format!("{} ({process})", name.trim())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_uses_a_device_is_said_in_one_sentence() {
        assert_eq!(Uses::default().sentence(), None);
        let uses = Uses {
            mounted_at: vec!["/".to_owned(), "/home".to_owned()],
            partitions: vec!["sda1".to_owned()],
            holders: vec!["dm-0".to_owned()],
            is_swap: true,
            open_in: vec!["qemu (17)".to_owned()],
        };
        assert_eq!(
            uses.sentence().unwrap(),
            "mounted at / and /home, swapped to, part of dm-0, divided into sda1, held open by \
             qemu (17)"
        );
    }

    #[test]
    fn the_device_under_the_root_directory_is_in_use() {
        let root = mounts::all().into_iter().find(|mount| mount.mount_point == "/");
        let device = root.and_then(|mount| Number::of_path(Path::new(&mount.source)));
        let Some(number) = device else {
            ioscape_test_support::skipped(
                "the root directory lies on no block device seen from here",
            );
            return;
        };
        assert!(find_uses(number).mounted_at.contains(&"/".to_owned()));
    }
}
