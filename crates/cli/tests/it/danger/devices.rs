//! Block devices: what carries something, what is in use, what was typed wrong; and what a device
//! that nobody needs is good for.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use super::{Danger, attack, checksum};
use crate::workdir::Workdir;
use ioscape_test_support::{LoopDevice, Mount, run, skipped};

const MIB: u64 = 1 << 20;
/// Enough for a workload.
const LENGTH: u64 = 16 * MIB;

/// A loop device over an image of its own, gone when dropped.
struct Loop {
    image: PathBuf,
    device: LoopDevice,
}

impl Loop {
    /// Over an image of zeros that `fill` has written something to.
    fn make(work: &Workdir, length: u64, fill: impl FnOnce(&Path)) -> Option<Self> {
        Self::with(work, &[], length, fill)
    }

    fn with(work: &Workdir, flags: &[&str], length: u64, fill: impl FnOnce(&Path)) -> Option<Self> {
        let image = work.path(&format!("image-{}", fs::read_dir(work.path(".")).unwrap().count()));
        File::create(&image).unwrap().set_len(length).unwrap();
        fill(&image);
        let device = LoopDevice::over(&image, flags).map_err(skipped).ok()?;
        Some(Self { image, device })
    }

    fn path(&self) -> &str {
        self.device.path()
    }

    fn danger(&self, what: impl Into<String>, why: &'static str) -> Danger {
        let target = self.path().to_owned();
        let precious = vec![target.clone().into(), self.image.clone()];
        Danger { what: what.into(), target, precious, why }
    }
}

fn write_at(image: &Path, at: u64, bytes: &[u8]) {
    OpenOptions::new().write(true).open(image).unwrap().write_all_at(bytes, at).unwrap();
}

/// Marks of what cannot be made here for want of its tools: name, where, bytes.
fn by_hand() -> Vec<(&'static str, u64, Vec<u8>)> {
    let mut table = vec![0; 512];
    table[446 + 4] = 0x83;
    table[446 + 8..446 + 12].copy_from_slice(&2048_u32.to_le_bytes());
    table[446 + 12..446 + 16].copy_from_slice(&8192_u32.to_le_bytes());
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    let md = 0xa92b_4efc_u32.to_le_bytes().to_vec();
    vec![
        ("a partition table (MBR)", 0, table),
        ("a partition table (GPT)", 512, b"EFI PART".to_vec()),
        ("what is left of a partition table (GPT)", LENGTH - 512, b"EFI PART".to_vec()),
        ("a physical volume of LVM", 512, b"LABELONE\x01\0\0\0\0\0\0\0".to_vec()),
        ("a RAID member of version 1.2", 4096, md.clone()),
        ("a RAID member of version 1.1", 0, md.clone()),
        ("a RAID member of version 1.0", LENGTH - 8192, md.clone()),
        ("a RAID member of version 0.90", LENGTH - 65_536, md),
        ("a RAID member of a mainboard", LENGTH - 1024, b"Intel Raid ISM Cfg Sig. 1.3".to_vec()),
        ("a RAID member of a controller", LENGTH - 512, 0xde11_de11_u32.to_be_bytes().to_vec()),
        ("an encrypted volume", 0, b"LUKS\xba\xbe\0\x02".to_vec()),
        ("an encrypted volume without its first header", 16_384, b"SKUL\xba\xbe\0\x02".to_vec()),
        ("a ZFS member", 128 * 1024 + 4096, 0x00ba_b10c_u64.to_le_bytes().to_vec()),
        ("a DRBD device", LENGTH - 4096 + 60, 0x8374_026b_u32.to_be_bytes().to_vec()),
        ("a FAT filesystem", 82, b"FAT32   ".to_vec()),
        ("an NTFS filesystem", 3, b"NTFS    ".to_vec()),
        ("an exFAT filesystem", 3, b"EXFAT   ".to_vec()),
        ("a CD", 32_769, b"CD001".to_vec()),
        ("an F2FS filesystem", 1024, 0xf2f5_2010_u32.to_le_bytes().to_vec()),
        ("a Ceph object store", 0, b"bluestore block device\n".to_vec()),
        ("an Oracle ASM disk", 32, b"ORCLDISK".to_vec()),
        ("a suspended system", 4086, b"S1SUSPEND\0".to_vec()),
    ]
}

#[test]
fn a_device_that_carries_something_is_left_alone() {
    let work = Workdir::new();
    for (what, at, bytes) in by_hand() {
        let Some(device) = Loop::make(&work, LENGTH, |image| write_at(image, at, &bytes)) else {
            return;
        };
        attack(&work, &device.danger(what, "carries"));
    }
}

#[test]
fn a_device_with_a_real_filesystem_is_left_alone() {
    let work = Workdir::new();
    for (program, arguments, length) in [
        ("mkfs.ext4", ["-q", "-F"].as_slice(), LENGTH),
        ("mkfs.ext2", &["-q", "-F"], LENGTH),
        ("mkfs.xfs", &["-q"], 320 * MIB),
        ("mkfs.btrfs", &["-q"], 160 * MIB),
        ("mkfs.minix", &[], LENGTH),
        ("mkswap", &[], LENGTH),
    ] {
        let mut made = Ok(String::new());
        let device = Loop::make(&work, length, |image| {
            made = run(program, &[arguments, &[image.to_str().unwrap()]].concat());
        });
        let Some(device) = device else { return };
        match made {
            Ok(_) => attack(&work, &device.danger(format!("what {program} made"), "carries")),
            Err(why) => skipped(why),
        }
    }
}

/// A filesystem on the device, mounted until dropped.
fn mounted(work: &Workdir, device: &str, options: &str) -> Result<Mount, String> {
    Mount::make(&work.path("mount point"), &["-o", options, device])
}

#[test]
fn a_device_that_is_mounted_is_left_alone() {
    let work = Workdir::new();
    for (program, length, options) in [
        ("mkfs.ext4", LENGTH, "noatime"),
        ("mkfs.ext4", LENGTH, "ro"),
        ("mkfs.xfs", 320 * MIB, "noatime"),
        ("mkfs.btrfs", 160 * MIB, "noatime"),
    ] {
        let make = |image: &Path| drop(run(program, &["-q", image.to_str().unwrap()]));
        let Some(device) = Loop::make(&work, length, make) else { return };
        let mounted = match mounted(&work, device.path(), options) {
            Ok(mounted) => mounted,
            Err(why) => {
                skipped(why);
                continue;
            }
        };
        // The filesystem itself may write to the device at any time: what lies in it counts.
        let kept = mounted.point().join("kept");
        let precious = if options == "ro" {
            vec![device.path().into()]
        } else {
            fs::write(&kept, vec![7; MIB as usize]).unwrap();
            vec![kept]
        };
        let what = format!("{program}, mounted with {options}");
        attack(&work, &Danger { precious, ..device.danger(what, "mounted at") });
    }
}

#[test]
fn a_device_that_is_in_use_otherwise_is_left_alone() {
    let work = Workdir::new();
    let Some(blank) = Loop::make(&work, LENGTH, |_| ()) else { return };

    let exclusive = i32::try_from(rustix::fs::OFlags::EXCL.bits()).unwrap();
    let claim = OpenOptions::new().read(true).custom_flags(exclusive).open(blank.path()).unwrap();
    attack(&work, &blank.danger("one that a program has claimed", "in use"));
    drop(claim);

    let held = File::open(blank.path()).unwrap();
    attack(&work, &blank.danger("one that a program holds open", "held open by"));
    drop(held);

    if let Ok(upper) = run("losetup", &["--find", "--show", blank.path()]) {
        attack(&work, &blank.danger("one that another loop device lies on", "part of loop"));
        run("losetup", &["--detach", &upper]).unwrap();
    }

    let sectors = LENGTH / 512;
    let name = format!("ioscape-test-{}", std::process::id());
    let table = format!("0 {sectors} linear {} 0", blank.path());
    match run("dmsetup", &["create", &name, "--table", &table]) {
        Ok(_) => {
            attack(&work, &blank.danger("one that the device mapper uses", "part of dm-"));
            run("dmsetup", &["remove", "--retry", &name]).unwrap();
        }
        Err(why) => skipped(why),
    }
}

/// A device that is swapped to, until this is dropped.
struct Swap(String);

impl Swap {
    fn on(device: &str) -> Result<Self, String> {
        run("swapon", &["--priority", "0", device])?;
        Ok(Self(device.to_owned()))
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        run("swapoff", &[&self.0]).ok();
    }
}

#[test]
fn swap_space_in_use_is_left_alone() {
    // The kernel may swap there at any time, for other tests too: it is given a small part, and what
    // lies beyond counts.
    const SWAP_KIB: usize = 64;
    let work = Workdir::new();
    let size = SWAP_KIB.to_string();
    let make = |image: &Path| drop(run("mkswap", &[image.to_str().unwrap(), &size]));
    let Some(device) = Loop::make(&work, LENGTH, make) else { return };
    let _swap = match Swap::on(device.path()) {
        Ok(swap) => swap,
        Err(why) => return skipped(why),
    };
    let beyond = || fs::read(&device.image).unwrap().split_off(SWAP_KIB * 1024);
    let before = beyond();
    let danger = device.danger("swap space in use", "swapped to");
    attack(&work, &Danger { precious: vec![], ..danger });
    assert!(before == beyond(), "swap space in use was touched");
}

#[test]
fn a_disk_with_partitions_is_left_alone_and_so_are_they() {
    let work = Workdir::new();
    let table = by_hand().remove(0).2;
    let make = |image: &Path| write_at(image, 0, &table);
    let Some(disk) = Loop::with(&work, &["--partscan"], LENGTH, make) else { return };
    let partition = format!("{}p1", disk.path());
    if !Path::new(&partition).exists() {
        // A kernel that does not read such tables can be told.
        run("addpart", &[disk.path(), "1", "2048", "8192"]).ok();
    }
    if !Path::new(&partition).exists() {
        skipped("this kernel shows no partitions of loop devices");
        return;
    }
    attack(&work, &disk.danger("a disk with a partition", "divided into"));
    // 4 MiB of it are not enough for a filesystem of some kinds, but for this one.
    run("mkfs.ext4", &["-q", "-F", &partition]).unwrap();
    // The disk has pages of its own in the cache, which stay while anybody has it open.
    run("blockdev", &["--flushbufs", disk.path()]).unwrap();
    let whole = disk.danger("a disk with a filesystem in a partition", "divided into");
    attack(&work, &whole);
    let mounted = mounted(&work, &partition, "ro").unwrap();
    attack(&work, &disk.danger("a disk with a partition that is mounted", "mounted at"));
    drop(mounted);
}

#[test]
fn a_device_that_cannot_be_written_or_holds_nothing_is_refused() {
    let work = Workdir::new();
    let Some(device) = Loop::with(&work, &["--read-only"], LENGTH, |_| ()) else { return };
    attack(&work, &device.danger("one that is set read-only", "read-only"));
    let Some(tiny) = Loop::make(&work, MIB, |_| ()) else { return };
    attack(&work, &tiny.danger("one of a mebibyte", "none to measure on"));
    // One that others may fill at any time is only ever read.
    let is_empty = |name: &String| {
        fs::read_to_string(format!("/sys/block/{name}/size")).is_ok_and(|size| size.trim() == "0")
    };
    let all = fs::read_dir("/sys/block").unwrap().flatten();
    let mut names = all.map(|entry| entry.file_name().into_string().unwrap());
    if let Some(name) = names.find(|name| is_empty(name) && !name.starts_with("loop")) {
        let line = work.refusal(&["measure", &format!("/dev/{name}"), "--read-frac", "1"]);
        assert!(line.contains("no medium") || line.contains("cannot be opened"), "{line}");
    }
}

#[test]
fn a_path_that_is_not_repeated_exactly_is_no_consent() {
    let work = Workdir::new();
    let Some(blank) = Loop::make(&work, LENGTH, |_| ()) else { return };
    let Some(other) = Loop::make(&work, LENGTH, |_| ()) else { return };
    let path = blank.path();
    let link = work.path("link");
    symlink(path, &link).unwrap();
    let link = link.to_str().unwrap();
    let name = path.strip_prefix("/dev/").unwrap();
    let dotted = format!("/dev/./{name}");
    let around = format!("/dev/../dev/{name}");
    let (doubled, longer) = (format!("/dev//{name}"), format!("{path}0"));
    let before = [checksum(&blank.image), checksum(&other.image)];
    for (target, typed, part) in [
        (path, other.path(), "typed twice"),
        (path, link, "typed twice"),
        (path, name, "typed twice"),
        (path, &path[..path.len() - 1], "typed twice"),
        (path, longer.as_str(), "typed twice"),
        (path, "yes", "typed twice"),
        (path, "", "--destroy"),
        (path, &dotted, "typed twice"),
        (link, path, "typed twice"),
        (link, link, "another name of"),
        (&dotted, &dotted, "another name of"),
        (&around, &around, "another name of"),
        (&doubled, &doubled, "another name of"),
    ] {
        let work_load = "unique_bytes=8MiB,read_frac=0";
        let line = work.refusal(&["measure", target, "-w", work_load, "--destroy", typed]);
        assert!(line.contains(part), "{target} {typed}: {line}");
    }
    let output = work.output(&["measure", path, "--destroy", path, "--read-only"]);
    assert_eq!(output.status.code(), Some(2), "both at once mean nothing");
    let output = work.output(&["measure", path, "--destroy"]);
    assert_eq!(output.status.code(), Some(2), "the path has to be there");
    assert_eq!(before, [checksum(&blank.image), checksum(&other.image)]);
}

#[test]
fn a_device_is_measured_by_reading_and_nothing_on_it_changes() {
    let work = Workdir::new();
    let make = |image: &Path| {
        run("mkfs.ext4", &["-q", "-F", image.to_str().unwrap()]).unwrap();
    };
    let Some(device) = Loop::make(&work, LENGTH, make) else { return };
    let before = checksum(Path::new(device.path()));
    let reads = "unique_bytes=8MiB,read_frac=1,process_num=2";
    for flags in [[].as_slice(), &["--read-only"]] {
        let estimate = work.visit(&[&[device.path(), "-w", reads], flags].concat());
        assert!(estimate["throughput_bytes_per_s"]["mean"].as_f64().unwrap() > 0.0, "{estimate}");
        assert!(estimate["warnings"].to_string().contains("read_only"), "{estimate}");
    }
    assert_eq!(checksum(Path::new(device.path())), before);
    assert_eq!(checksum(&device.image), before);
}

#[test]
fn a_device_that_nobody_needs_is_overwritten_when_its_path_is_typed_twice() {
    let work = Workdir::new();
    let Some(device) = Loop::make(&work, LENGTH, |_| ()) else { return };
    let before = checksum(&device.image);
    let mixed = "unique_bytes=8MiB,read_frac=0.5,access=direct";
    for _again in 0..2 {
        // The second time on what the first one left.
        let estimate = work.visit(&[device.path(), "--destroy", device.path(), "-w", mixed]);
        assert!(estimate["throughput_bytes_per_s"]["mean"].as_f64().unwrap() > 0.0, "{estimate}");
    }
    assert_ne!(checksum(Path::new(device.path())), before, "it was written");
}
