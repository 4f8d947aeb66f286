//! The target as the record's header holds it: filesystem, mount, and the block device behind.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use ioscape_model::{Target, TargetKind};

use super::{Directory, open_directory};
use crate::error::Result;
use crate::mounts::Mount;
use crate::sysfs::{Number, attribute, whole};

/// Describes the directory at `path`.
///
/// # Errors
/// When it would be refused as a target.
pub fn describe(path: impl AsRef<Path>) -> Result<Target> {
    open_directory(path).map(|directory| directory.describe())
}

pub(super) fn of_directory(directory: &Directory) -> Target {
    let mount = directory.mount();
    let size_bytes = rustix::fs::fstatvfs(directory.as_fd())
        .map_or(0, |space| space.f_blocks.saturating_mul(space.f_frsize));
    let mut target = Target {
        path: directory.path().display().to_string(),
        kind: TargetKind::Directory,
        filesystem: mount.filesystem.clone(),
        mount_options: merge_options(&mount.mount_options, &mount.super_options),
        source: public_source(&mount.filesystem, &mount.source),
        size_bytes,
        free_bytes: directory.free_bytes().unwrap_or(0),
        ..Target::default()
    };
    if let Some(device) = whole_device(mount) {
        describe_device(&device, &mut target);
    }
    target
}

/// A block device that is the target itself.
pub(super) fn of_device(path: &Path, number: Number, length_bytes: u64) -> Target {
    let mut target = Target {
        path: path.display().to_string(),
        kind: TargetKind::BlockDevice,
        filesystem: "none".to_owned(),
        source: path.display().to_string(),
        size_bytes: length_bytes,
        free_bytes: length_bytes,
        ..Target::default()
    };
    if let Some(device) = number.sysfs().map(whole) {
        describe_device(&device, &mut target);
    }
    target
}

/// Options whose values name machines, people or their directories: a record says that they were
/// set, not to what.
const NAMING: [&str; 15] = [
    "addr",
    "mountaddr",
    "clientaddr",
    "srcaddr",
    "username",
    "user",
    "domain",
    "password",
    "pass",
    "credentials",
    "prefixpath",
    "lowerdir",
    "upperdir",
    "workdir",
    "subvol",
];

/// Both lists in one, each option once, without names.
fn merge_options(of_mount: &str, of_filesystem: &str) -> String {
    let mut options: Vec<&str> = of_mount.split(',').map(without_name).collect();
    for option in of_filesystem.split(',').map(without_name) {
        if !options.contains(&option) {
            options.push(option);
        }
    }
    options.join(",")
}

fn without_name(option: &str) -> &str {
    match option.split_once('=') {
        Some((key, _)) if NAMING.contains(&key) => key,
        _ => option,
    }
}

/// What stands for the source of a mount: of another machine's, such as `server:/export`,
/// `user@server:` or `//server/share`, no more than that it is one; of a file or a directory its
/// name alone. A dataset of ZFS is no machine, whatever its name.
fn public_source(filesystem: &str, source: &str) -> String {
    if source.starts_with("/dev/") || filesystem == "zfs" {
        return source.to_owned();
    }
    let names_a_machine = source.starts_with("//") || source.contains([':', '@']);
    if names_a_machine { "another machine".to_owned() } else { file_name(source) }
}

/// The name of a path alone: the directories above it may be a person's.
fn file_name(path: &str) -> String {
    let name = Path::new(path).file_name();
    name.map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

/// The directory in sysfs of the device behind a mount; of the whole one for a partition.
pub(crate) fn whole_device(mount: &Mount) -> Option<PathBuf> {
    device(mount).map(whole)
}

/// The directory in sysfs of the device or partition behind a mount.
pub(crate) fn device(mount: &Mount) -> Option<PathBuf> {
    let by_number = |number: &str| fs::canonicalize(format!("/sys/dev/block/{number}")).ok();
    // btrfs and others give their filesystem a number of its own: then its source tells more.
    by_number(&mount.device_number).or_else(|| {
        let metadata = fs::metadata(&mount.source).ok()?;
        let number = metadata.rdev();
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        metadata
            .file_type()
            .is_block_device()
            .then(|| by_number(&format!("{major}:{minor}")))
            .flatten()
    })
}

fn describe_device(device: &Path, target: &mut Target) {
    let text = |name: &str| attribute(device, name);
    let number = |name: &str| text(name)?.parse::<u64>().ok();
    target.device = device.file_name().map(|name| name.to_string_lossy().into_owned());
    target.device_model = model(device);
    target.rotational = number("queue/rotational").map(|value| value != 0);
    target.scheduler = text("queue/scheduler").map(|list| chosen(&list));
    target.queue_depth = number("device/queue_depth").or_else(|| number("queue/nr_requests"));
    target.sector_bytes = number("queue/logical_block_size");
    target.read_ahead_bytes = number("queue/read_ahead_kb").map(|kib| kib * 1024);
    target.write_cache = text("queue/write_cache");
    target.loop_backing = text("loop/backing_file").as_deref().map(file_name);
}

/// The model as the device names itself. Device mapper and RAID have none: theirs is that of the
/// devices below.
fn model(device: &Path) -> Option<String> {
    if let Some(model) = attribute(device, "device/model") {
        return Some(model);
    }
    let mut models: Vec<String> = fs::read_dir(device.join("slaves"))
        .into_iter()
        .flatten()
        .filter_map(|entry| model(&whole(fs::canonicalize(entry.ok()?.path()).ok()?)))
        .collect();
    models.sort();
    models.dedup();
    (!models.is_empty()).then(|| models.join(" + "))
}

/// `none [mq-deadline] kyber` means the one in brackets.
fn chosen(list: &str) -> String {
    let inside = list.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(list, |(name, _)| name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_mount_and_filesystem_are_listed_once() {
        assert_eq!(merge_options("rw,noatime", "rw,discard"), "rw,noatime,discard");
        let named = merge_options("rw,addr=10.0.0.7", "rw,username=alice,vers=3.1");
        assert_eq!(named, "rw,addr,username,vers=3.1");
    }

    #[test]
    fn neither_machines_nor_people_are_named_by_a_source() {
        for named in
            ["nas:/export", "//nas/share", "alice@nas:", "alice@nas:data", "nas:volume", "nas:"]
        {
            assert_eq!(public_source("nfs4", named), "another machine", "{named}");
        }
        for plain in ["/dev/sda1", "/dev/sda:/dev/sdb", "tmpfs", "overlay"] {
            assert_eq!(public_source("ext4", plain), plain);
        }
        assert_eq!(public_source("zfs", "pool/data@monday"), "pool/data@monday");
        assert_eq!(public_source("fuse.encfs", "/home/alice/.enc"), ".enc");
    }

    #[test]
    fn the_scheduler_in_use_is_the_one_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber"), "mq-deadline");
        assert_eq!(chosen("none"), "none");
    }
}
