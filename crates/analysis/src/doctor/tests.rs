//! Every hazard alone in an otherwise blameless machine: found, and nothing else with it.

use std::collections::BTreeMap;

use ioscape_model::checkup::{Device, Facts, Probe, Sample};
use ioscape_model::units::{GIB, MIB};
use ioscape_model::{Code, Severity, Warning};

use super::judge;
use ioscape_test_support::blameless;

#[test]
fn a_blameless_machine_gets_no_doubt_but_honest_unknowns() {
    let checkup = judge(&blameless());
    assert_eq!(checkup.doubts, vec![]);
    assert!(checkup.unknown.iter().any(|unknown| unknown.text.contains("flush")));
    assert!(!checkup.unknown.iter().any(|unknown| unknown.text.contains("host")));
    assert!(checkup.privileges.iter().all(|privilege| !privilege.granted));
}

/// One thing wrong gives one doubt, of this kind. Returns the doubt's figures.
#[track_caller]
fn check(
    spoil: impl FnOnce(&mut Facts),
    code: Code,
    severity: Severity,
    part: &str,
) -> BTreeMap<String, f64> {
    let mut facts = blameless();
    spoil(&mut facts);
    let doubts = judge(&facts).doubts;
    let [doubt] = doubts.as_slice() else { panic!("one doubt about {part}, not {doubts:?}") };
    assert_eq!((doubt.code, doubt.severity), (code, severity), "{}", doubt.text);
    assert!(doubt.text.contains(part), "{}", doubt.text);
    assert!(!doubt.remedy.is_empty());
    doubt.figures.clone()
}

fn named<const N: usize>(figures: [(&str, f64); N]) -> BTreeMap<String, f64> {
    figures.map(|(name, figure)| (name.to_owned(), figure)).into()
}

fn probe(facts: &mut Facts) -> &mut Probe {
    facts.probe.as_mut().unwrap()
}

fn device(facts: &mut Facts) -> &mut Device {
    facts.device.as_mut().unwrap()
}

#[test]
fn what_others_take_of_the_machine_is_graded() {
    use Severity::{Note, Serious, Warning};
    let sample = |facts: &mut Facts, spoil: fn(&mut Sample)| spoil(&mut facts.sample);
    let stolen = |f: &mut Facts| sample(f, |s| s.cpu_stolen_fraction = Some(0.05));
    let found = check(stolen, Code::StolenTime, Warning, "gave 5.0 % of");
    assert_eq!(found, named([("stolen_share", 0.05)]));
    check(|f| sample(f, |s| s.cpu_stolen_fraction = Some(0.3)), Code::StolenTime, Serious, "30");
    check(|f| sample(f, |s| s.cpu_busy_fraction = Some(0.3)), Code::Neighbours, Warning, "30");
    check(|f| sample(f, |s| s.cpu_busy_fraction = Some(0.9)), Code::Neighbours, Serious, "90");
    let read = |s: &mut Sample| s.device_read_bytes_per_s = Some(1e6);
    let busy = |share: f64| move |f: &mut Facts| f.sample.device_busy_fraction = Some(share);
    let reading = |share: f64| {
        move |f: &mut Facts| {
            busy(share)(f);
            read(&mut f.sample);
        }
    };
    check(reading(0.1), Code::Neighbours, Warning, "nvme");
    check(reading(0.6), Code::Neighbours, Serious, "60");
    check(busy(0.99), Code::Neighbours, Warning, "deleted files");
    let discarding = |f: &mut Facts| {
        reading(0.99)(f);
        f.sample.device_discard_bytes_per_s = Some(4e9);
    };
    let found = check(discarding, Code::Neighbours, Warning, "4.00 GB/s");
    assert_eq!(found, named([("busy_share", 0.99), ("discard_bytes_per_s", 4e9)]));
    check(|f| sample(f, |s| s.memory_pressure = Some(0.05)), Code::Swapping, Warning, "memory");
    check(|f| sample(f, |s| s.swapped_pages = Some(9)), Code::Swapping, Warning, "9 pages");
    check(|f| sample(f, |s| s.dirty_bytes = Some(GIB)), Code::DirtyAtStart, Warning, "1.00 GiB");
    check(|f| f.machine.swap_used_bytes = GIB, Code::Swapping, Note, "swap");
}

#[test]
fn limits_of_control_groups_are_named() {
    use Severity::{Note, Serious};
    check(|f| f.host.cpu_limit = Some(1.5), Code::Throttled, Note, "1.50 processors");
    let throttled = |f: &mut Facts| {
        f.host.cpu_limit = Some(1.5);
        f.sample.cpu_throttled_fraction = Some(0.2);
    };
    let part = "allows 1.50 processors and held this process back in 20 % of its periods";
    let found = check(throttled, Code::Throttled, Serious, part);
    assert_eq!(found, named([("processors", 1.5), ("throttled_share", 0.2)]));
    let limit = |text: &str| {
        let text = text.to_owned();
        move |f: &mut Facts| f.host.io_limits = vec![text]
    };
    check(limit("io.max 259:0 rbps=1048576"), Code::Throttled, Serious, "rbps=1048576");
    let mut facts = blameless();
    limit("io.max 8:0 rbps=1048576")(&mut facts);
    assert_eq!(judge(&facts).doubts, vec![], "another device's limit is none of ours");
    check(|f| f.host.memory_limit_bytes = Some(GIB), Code::Throttled, Note, "1.00 GiB");
}

#[test]
fn a_machine_that_does_not_run_at_its_speed_is_pointed_out() {
    use Severity::{Note, Warning};
    check(|f| f.machine.on_battery = Some(true), Code::PowerSaving, Warning, "battery");
    check(|f| f.machine.laptop_mode = true, Code::PowerSaving, Warning, "laptop_mode");
    check(|f| f.host.governor = Some("powersave".into()), Code::PowerSaving, Note, "powersave");
    check(|f| device(f).temperature_celsius = Some(82.0), Code::PowerSaving, Warning, "82 °C");
    let found = check(|f| f.machine.numa_nodes = 2, Code::ManyNodes, Note, "2 nodes");
    assert_eq!(found, named([("numa_nodes", 2.0)]));
}

#[test]
fn room_and_mount_options_are_looked_at() {
    use Severity::{Note, Warning};
    let options = |text: &'static str| move |f: &mut Facts| f.target.mount_options = text.into();
    check(options("rw,nobarrier"), Code::FlushSuspect, Warning, "nobarrier");
    check(options("rw,barrier=0"), Code::FlushSuspect, Warning, "barrier=0");
    check(options("rw,sync"), Code::MountOptions, Warning, "`sync`");
    check(options("rw,data=journal"), Code::MountOptions, Warning, "twice");
    check(options("rw,strictatime"), Code::MountOptions, Note, "access times");
    check(options("rw,discard"), Code::MountOptions, Note, "deleting");
    check(options("rw,usrquota"), Code::NearlyFull, Note, "quota");
    check(|f| f.target.size_bytes = 9000 * GIB, Code::NearlyFull, Warning, "91 %");
    let small = |f: &mut Facts| {
        f.target.free_bytes = 10 * GIB;
        f.target.size_bytes = 11 * GIB;
    };
    let found = check(small, Code::BorderNotReached, Note, "by direct I/O");
    let limit_bytes = (5 * GIB / 4) as f64;
    assert_eq!(found.get("memory_limit_bytes"), Some(&limit_bytes));
    assert_eq!(found.get("room_bytes"), Some(&((5 * GIB) as f64)));
    let without_direct = |f: &mut Facts| {
        small(f);
        f.probe = None;
    };
    check(without_direct, Code::BorderNotReached, Warning, "5.00 GiB");
}

#[test]
fn no_room_at_all_is_serious() {
    let mut facts = blameless();
    facts.target.free_bytes = 100 * MIB;
    let doubts = judge(&facts).doubts;
    assert_eq!((doubts[0].code, doubts[0].severity), (Code::NearlyFull, Severity::Serious));
}

#[test]
fn what_the_test_file_said_is_believed() {
    use Severity::{Note, Warning};
    let found = check(|f| probe(f).flush_s = Some(9e-6), Code::FlushSuspect, Warning, "9.00 µs");
    assert_eq!(found, named([("flush_s", 9e-6)]));
    check(|f| probe(f).direct_is_direct = Some(false), Code::DirectNotDirect, Warning, "ext4");
    check(|f| probe(f).direct_align_bytes = Some(0), Code::DirectNotDirect, Note, "no direct");
    check(|f| probe(f).compresses = Some(true), Code::CopyOnWrite, Warning, "compresses");
    check(|f| probe(f).extents = Some(40), Code::Placement, Warning, "40 pieces");
    check(|f| probe(f).read_ahead_bytes = Some(4 * MIB), Code::ReadAhead, Note, "4.00 MiB");
    check(|f| probe(f).direct_read_s = Some(5e-6), Code::CachesBelow, Warning, "5.00 µs");
}

#[test]
fn what_lies_between_is_named() {
    use Severity::{Note, Serious, Warning};
    let turns = |f: &mut Facts| f.target.rotational = Some(true);
    check(turns, Code::CachesBelow, Warning, "it does not spin");
    let disk = |f: &mut Facts| {
        f.target.rotational = Some(true);
        probe(f).direct_read_s = Some(8e-3);
    };
    check(disk, Code::Placement, Note, "outer edge");
    check(|f| device(f).zoned = Some("host-managed".into()), Code::Placement, Warning, "zones");
    check(|f| device(f).raid_sync = Some("resync".into()), Code::Rebuilding, Serious, "resync");
    check(|f| device(f).layers = vec!["dm crypt".into()], Code::Placement, Note, "dm crypt");
    check(|f| device(f).layers = vec!["zram".into()], Code::MemoryFilesystem, Serious, "zram");
    let over_a_file = |f: &mut Facts| {
        f.target.loop_backing = Some("/image".into());
        device(f).layers = vec!["loop".into()];
        device(f).loop_direct = Some(false);
    };
    check(over_a_file, Code::CachesBelow, Warning, "/image");
    let past_the_cache = |f: &mut Facts| {
        over_a_file(f);
        device(f).loop_direct = Some(true);
    };
    let mut facts = blameless();
    past_the_cache(&mut facts);
    assert_eq!(judge(&facts).doubts, vec![]);
}

#[test]
fn memory_taken_for_a_disk_is_serious_before_a_measurement() {
    let tmpfs = |f: &mut Facts| {
        f.warnings = vec![Warning::new(Code::MemoryFilesystem, "on tmpfs", "name a disk")];
    };
    check(tmpfs, Code::MemoryFilesystem, Severity::Serious, "tmpfs");
}

#[test]
fn the_gravest_doubt_comes_first() {
    let mut facts = blameless();
    facts.machine.numa_nodes = 2;
    facts.machine.laptop_mode = true;
    facts.sample.cpu_stolen_fraction = Some(0.5);
    let severities: Vec<Severity> = judge(&facts).doubts.iter().map(|d| d.severity).collect();
    assert_eq!(severities, [Severity::Serious, Severity::Warning, Severity::Note]);
}

#[test]
fn what_is_unknown_depends_on_where_one_is() {
    let has = |spoil: fn(&mut Facts), part: &str| {
        let mut facts = blameless();
        spoil(&mut facts);
        judge(&facts).unknown.iter().any(|unknown| unknown.text.contains(part))
    };
    assert!(has(|f| f.host.virtualisation = Some("KVM".into()), "KVM"));
    assert!(has(|f| f.host.virtualisation = Some("Amazon EC2".into()), "bursts"));
    assert!(has(|f| f.target.filesystem = "nfs4".into(), "other side"));
    assert!(has(|f| f.sample.io_pressure = None, "pressure"));
    assert!(has(|f| probe(f).read_ahead_bytes = None, "page cache"));
    assert!(!has(|_| {}, "pressure"));
}
