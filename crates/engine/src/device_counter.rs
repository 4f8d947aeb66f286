//! Bytes that the block devices behind a target have taken and delivered, by their own count: the data,
//! all that a filesystem writes besides, and what other programs move to and from the same devices.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::sysfs::{attribute, whole};
use crate::target::Ground;

/// A sector of `stat` has this size, whatever the device's own are.
const SECTOR_BYTES: u64 = 512;
/// Places of sectors read and written among its numbers, from 0; see `block/stat` in the kernel's
/// documentation.
const READ: usize = 2;
const WRITTEN: usize = 6;
/// One line of at most 17 numbers.
const STAT_BYTES_MAX: usize = 512;
/// Filesystems of btrfs, each with a directory of its devices.
const BTRFS: &str = "/sys/fs/btrfs";

/// The counters of all devices of a target, held open.
#[derive(Debug)]
pub(crate) struct DeviceCounter {
    stats: Vec<File>,
    at_start_bytes: u64,
}

impl DeviceCounter {
    /// Counts from now on. `None` where no device is known or one of them does not count.
    pub(crate) fn open(ground: &Ground) -> Option<Self> {
        let devices = members(ground.sysfs()?, Path::new(BTRFS));
        let counting: Option<Vec<File>> = devices.into_iter().map(stat_of).collect();
        let mut counter = Self { stats: counting?, at_start_bytes: 0 };
        counter.at_start_bytes = counter.written_bytes()?;
        Some(counter)
    }

    /// Bytes that were written since then, by every program, and have arrived.
    pub(crate) fn written_bytes(&self) -> Option<u64> {
        let all: Option<u64> = self.stats.iter().map(|stat| moved_bytes(stat, WRITTEN)).sum();
        Some(all?.saturating_sub(self.at_start_bytes))
    }

    /// Bytes that were ever read, by every program.
    pub(crate) fn read_bytes(&self) -> Option<u64> {
        self.stats.iter().map(|stat| moved_bytes(stat, READ)).sum()
    }
}

/// All devices of the btrfs that has this one; other filesystems have no more than one.
fn members(device: PathBuf, btrfs: &Path) -> Vec<PathBuf> {
    let entries = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    let lists = entries(btrfs.to_owned()).map(|filesystem| filesystem.path().join("devices"));
    let mut all = lists.map(|list| {
        let paths = entries(list).filter_map(|entry| fs::canonicalize(entry.path()).ok());
        paths.collect::<Vec<PathBuf>>()
    });
    all.find(|devices| devices.contains(&device)).unwrap_or_else(|| vec![device])
}

/// A device's `stat`, where it keeps one: counting can be switched off.
fn stat_of(device: PathBuf) -> Option<File> {
    let stat = File::open(device.join("stat")).ok()?;
    let counts = attribute(&whole(device), "queue/iostats").is_none_or(|counts| counts != "0");
    counts.then_some(stat)
}

fn moved_bytes(stat: &File, place: usize) -> Option<u64> {
    let mut buffer = [0; STAT_BYTES_MAX];
    let length = stat.read_at(&mut buffer, 0).ok()?;
    let sectors = sectors(std::str::from_utf8(&buffer[..length]).ok()?, place);
    sectors.map(|count| count * SECTOR_BYTES)
}

fn sectors(stat: &str, place: usize) -> Option<u64> {
    stat.split_whitespace().nth(place)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_read_and_written_are_the_third_and_the_seventh_number() {
        let stat = "  562998     6988 88262306   190846  3617520     4101 346941680  6014177 0 1 2";
        assert_eq!(sectors(stat, READ), Some(88_262_306));
        assert_eq!(sectors(stat, WRITTEN), Some(346_941_680));
        assert_eq!(sectors("1 2 3", WRITTEN), None);
    }

    #[test]
    fn all_devices_of_a_filesystem_that_spans_several_count() {
        let place = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(place.path()).unwrap();
        let device = |name: &str| root.join("block").join(name);
        for (filesystem, name) in [("one", "sda"), ("two", "sdb"), ("two", "sdc")] {
            let list = root.join("btrfs").join(filesystem).join("devices");
            fs::create_dir_all(&list).unwrap();
            fs::create_dir_all(device(name)).unwrap();
            std::os::unix::fs::symlink(device(name), list.join(name)).unwrap();
        }
        let members_of = |name: &str| {
            let mut all = members(device(name), &root.join("btrfs"));
            all.sort();
            all
        };
        assert_eq!(members_of("sdc"), [device("sdb"), device("sdc")]);
        assert_eq!(members_of("sda"), [device("sda")]);
        assert_eq!(members_of("sdd"), [device("sdd")], "no btrfs knows it");
    }

    #[test]
    fn a_device_that_does_not_count_is_not_believed() {
        let place = tempfile::tempdir().unwrap();
        let device = place.path().to_owned();
        assert!(stat_of(device.clone()).is_none());
        fs::write(device.join("stat"), "1 2 3 4 5 6 7 8 9 10 11\n").unwrap();
        let stat = stat_of(device.clone()).unwrap();
        assert_eq!(
            [READ, WRITTEN].map(|place| moved_bytes(&stat, place)),
            [Some(3 * 512), Some(7 * 512)]
        );
        fs::create_dir(device.join("queue")).unwrap();
        fs::write(device.join("queue/iostats"), "0\n").unwrap();
        assert!(stat_of(device).is_none());
    }
}
