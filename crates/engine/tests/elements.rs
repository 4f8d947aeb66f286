//! Elements of the system vector on real filesystems, made here on loop devices. Needs root and the
//! mkfs programs; without them the tests say so and pass.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail as loudly as they do")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use ioscape_engine::RunId;
use ioscape_engine::elements::{Elements, Limits, Pace, Sample};
use ioscape_engine::target::open_directory;
use ioscape_model::ElementName::{self, CopyRange, ReadHit, ReadRandomMiss, StatMissed};
use ioscape_test_support::{Mount, skipped};

/// One round of everything, with so many seconds to make each of its files; samples, and what was refused.
fn round(point: &Path, prepare_s: f64) -> (Vec<Sample>, Vec<ElementName>) {
    let pace = Pace { cheap_s: 0.001, costly_s: 0.02, ramp_s: 0.0, prepare_s };
    let limits = Limits { pace, written_max_bytes: u64::MAX, seed: 3 };
    let directory = Arc::new(open_directory(point).unwrap());
    let run = RunId::random().unwrap();
    let interrupt = Arc::new(AtomicBool::new(false));
    let mut elements = Elements::open(directory, &run, limits, interrupt).unwrap();
    let parts = 0..elements.parts();
    let samples = parts.flat_map(|part| elements.visit(part).unwrap()).collect();
    let refused = elements.refusals().iter().map(|refusal| refusal.name).collect();
    (samples, refused)
}

fn check(filesystem: &str, options: &str, refused: &[ElementName]) {
    let place = tempfile::tempdir().unwrap();
    let point = place.path().join("mounted here");
    let mount = match filesystem {
        "tmpfs" => Mount::tmpfs(&point, options),
        _ => Mount::of_image(&point, filesystem, options),
    };
    let mount = match mount {
        Ok(mount) => mount,
        Err(why) => return skipped(format_args!("no {filesystem} here: {why}")),
    };
    // A file or name of a filesystem that writes at once takes milliseconds: fewer do.
    let prepare_s = if options == "sync" { 0.2 } else { 60.0 };
    let (samples, found) = round(mount.point(), prepare_s);
    let measured = |name: ElementName| samples.iter().any(|sample| sample.name == name);
    for name in refused {
        assert!(found.contains(name) && !measured(*name), "{filesystem}: {name}");
    }
    for name in [ReadHit, CopyRange, ElementName::SyncGrown, ElementName::Unlink] {
        assert!(measured(name), "{filesystem}: {name}");
    }
    let left: Vec<_> = std::fs::read_dir(mount.point()).unwrap().flatten().collect();
    let left = left.iter().filter(|entry| entry.file_name() != "lost+found").count();
    assert_eq!(left, 0, "{filesystem}");
}

#[test]
fn ext4_has_all_but_what_the_machine_forbids() {
    check("ext4", "noatime", &[]);
}

#[test]
fn a_filesystem_that_writes_at_once_is_measured_all_the_same() {
    check("ext4", "sync", &[]);
}

#[test]
fn in_memory_nothing_can_be_missed() {
    check("tmpfs", "size=512M", &[ReadRandomMiss, StatMissed, ElementName::WriteBack]);
}

#[test]
fn what_a_filesystem_cannot_do_is_no_error() {
    // Direct access may be had there or not: no part fails either way.
    check("btrfs", "compress=zstd:1", &[]);
}
