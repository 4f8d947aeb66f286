//! The block device behind a target, from sysfs: what it is made of and what it is up to.

use std::fs;
use std::path::{Path, PathBuf};

use ioscape_model::checkup::Device;

use crate::sysfs::{attribute, whole};

/// The whole device whose directory in sysfs this is.
pub(super) fn look(sysfs: &Path) -> Device {
    let text = |name: &str| attribute(sysfs, name);
    let number = |name: &str| text(name)?.parse::<u64>().ok();
    let all = stack(sysfs);
    let temperatures = all.iter().find_map(|device| temperature(device));
    Device {
        name: name(sysfs),
        number: text("dev").unwrap_or_default(),
        zoned: text("queue/zoned").filter(|zoned| zoned != "none"),
        layers: all.iter().filter_map(|device| layer(device)).collect(),
        loop_direct: number("loop/dio").map(|direct| direct != 0),
        raid_sync: all
            .iter()
            .find_map(|device| attribute(device, "md/sync_action"))
            .filter(|action| action != "idle"),
        temperature_celsius: temperatures.map(|(now, _)| now),
        temperature_limit_celsius: temperatures.and_then(|(_, limit)| limit),
        contents: vec![],
        zero_fraction: None,
    }
}

fn name(sysfs: &Path) -> String {
    sysfs.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The device and all below it, the upper ones first.
fn stack(sysfs: &Path) -> Vec<PathBuf> {
    let mut all = vec![sysfs.to_path_buf()];
    let mut next = 0;
    // Bounded, in case a kernel ever shows a ring.
    while next < all.len() && all.len() < 64 {
        let below = fs::read_dir(all[next].join("slaves")).into_iter().flatten().flatten();
        for entry in below {
            if let Ok(path) = fs::canonicalize(entry.path()) {
                let path = whole(path);
                if !all.contains(&path) {
                    all.push(path);
                }
            }
        }
        next += 1;
    }
    all
}

/// What a device is that is not a disk.
fn layer(sysfs: &Path) -> Option<String> {
    let name = name(sysfs);
    if sysfs.join("dm").exists() {
        // The identifier begins with who made it: LVM-, CRYPT-LUKS2-, mpath-.
        let uuid = attribute(sysfs, "dm/uuid").unwrap_or_default();
        let maker = uuid.split('-').next().unwrap_or_default().to_lowercase();
        return Some(format!("dm {}", if maker.is_empty() { "mapper" } else { &maker }));
    }
    if let Some(level) = attribute(sysfs, "md/level") {
        return Some(format!("md {level}"));
    }
    let kinds = ["loop", "zram", "nbd", "rbd", "drbd", "ram", "bcache", "pmem"];
    let is_kind = |kind: &&str| {
        name.strip_prefix(kind).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    kinds.into_iter().find(is_kind).map(str::to_owned)
}

/// Degrees now, and those from which the device slows itself down; drivers such as `nvme` and
/// `drivetemp` tell.
fn temperature(sysfs: &Path) -> Option<(f64, Option<f64>)> {
    let device = fs::canonicalize(sysfs.join("device")).ok()?;
    let children = |path: &Path| -> Vec<PathBuf> {
        fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect()
    };
    let monitors = children(&device).into_iter().chain(children(&device.join("hwmon")));
    let of = |monitor: PathBuf| {
        let degrees = |name: &str| Some(attribute(&monitor, name)?.parse::<f64>().ok()? / 1000.0);
        Some((degrees("temp1_input")?, degrees("temp1_max").filter(|limit| *limit > 0.0)))
    };
    monitors.filter(|path| name(path).starts_with("hwmon")).find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_told_from_disks_by_what_sysfs_shows() {
        let place = tempfile::tempdir().unwrap();
        let make = |device: &str, file: &str, text: &str| {
            let path = place.path().join(device).join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
            place.path().join(device)
        };
        assert_eq!(layer(&make("dm-0", "dm/uuid", "CRYPT-LUKS2-0a1b-x\n")).unwrap(), "dm crypt");
        assert_eq!(layer(&make("dm-1", "dm/name", "x")).unwrap(), "dm mapper");
        assert_eq!(layer(&make("md0", "md/level", "raid5\n")).unwrap(), "md raid5");
        assert_eq!(layer(&make("zram0", "size", "0")).unwrap(), "zram");
        for disk in ["sda", "nvme0n1", "vda", "xvda", "mmcblk0"] {
            assert_eq!(layer(&make(disk, "size", "0")), None, "{disk}");
        }
    }

    #[test]
    fn a_temperature_is_found_where_nvme_puts_it() {
        let place = tempfile::tempdir().unwrap();
        let monitor = place.path().join("device/hwmon1");
        fs::create_dir_all(&monitor).unwrap();
        fs::write(monitor.join("temp1_input"), "41850\n").unwrap();
        fs::write(monitor.join("temp1_max"), "84850\n").unwrap();
        assert_eq!(temperature(place.path()), Some((41.85, Some(84.85))));
    }

    #[test]
    fn a_stack_of_devices_is_walked_to_its_end() {
        let place = tempfile::tempdir().unwrap();
        for device in ["dm-0", "md0", "sda"] {
            fs::create_dir_all(place.path().join(device).join("slaves")).unwrap();
        }
        let link = |upper: &str, lower: &str| {
            let to = place.path().join(lower);
            std::os::unix::fs::symlink(to, place.path().join(upper).join("slaves").join(lower))
        };
        link("dm-0", "md0").unwrap();
        link("md0", "sda").unwrap();
        let names: Vec<String> =
            stack(&place.path().join("dm-0")).iter().map(|d| name(d)).collect();
        assert_eq!(names, ["dm-0", "md0", "sda"]);
    }
}
