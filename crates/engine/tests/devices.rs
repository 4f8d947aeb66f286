//! Block devices as targets under races, on loop devices; without root the tests say so and pass.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail as loudly as they do")]

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use ioscape_engine::Error;
use ioscape_engine::target::{Consent, open_device, open_directory};
use ioscape_test_support::{LoopDevice, run, skipped};
use rustix::fs::OFlags;

const LENGTH: u64 = 16 << 20;

/// A loop device over a new image that begins with a mark; none, said loudly, where there can be none.
fn make(place: &Path, name: &str, mark: &[u8]) -> Option<LoopDevice> {
    let image = place.join(name);
    let mut file = File::create(&image).unwrap();
    file.write_all(mark).unwrap();
    file.set_len(LENGTH).unwrap();
    LoopDevice::over(&image, &[]).map_err(skipped).ok()
}

/// Another name for the device at `path`.
fn make_node(path: &str, name: &Path) {
    use std::os::unix::fs::MetadataExt;
    let number = fs::metadata(path).unwrap().rdev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let name = name.to_str().unwrap();
    run("mknod", &[name, "b", &major.to_string(), &minor.to_string()]).unwrap();
}

/// Ends a thread that goes on until it is told, also where a test fails meanwhile.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How often a path is opened while it is swapped. Where each device is met once in twenty times at
/// least, one of them is never met once in 10⁸ times.
const TRIES: usize = 400;

#[test]
fn a_path_that_is_swapped_between_check_and_open_never_gives_the_device_away() {
    let place = tempfile::tempdir().unwrap();
    let Some(blank) = make(place.path(), "blank", b"") else { return };
    let Some(precious) = make(place.path(), "precious", b"XFSB") else { return };
    let at = |name: &str| place.path().join(name);
    make_node(blank.path(), &at("blank node"));
    make_node(precious.path(), &at("precious node"));
    fs::hard_link(at("blank node"), at("target")).unwrap();
    let is_over = AtomicBool::new(false);
    let target = fs::canonicalize(at("target")).unwrap();
    let (mut opened, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut turn = 0;
            while !is_over.load(Ordering::Relaxed) {
                turn += 1;
                let next = ["precious node", "blank node"][turn % 2];
                fs::hard_link(at(next), at("next")).unwrap();
                fs::rename(at("next"), at("target")).unwrap();
                // A rename between two names of one inode does nothing and leaves both.
                fs::remove_file(at("next")).ok();
            }
        });
        let _over = Over(&is_over);
        for _ in 0..TRIES {
            match open_device(&target, Consent::Destroy(&target)) {
                Ok(device) => {
                    assert_eq!(device.contents(), [], "the precious one was opened");
                    let file = device.open_again(OFlags::empty()).unwrap();
                    let mut head = [1; 4];
                    std::os::unix::fs::FileExt::read_exact_at(&file, &mut head, 0).unwrap();
                    assert_eq!(head, [0; 4], "another descriptor is of another device");
                    opened += 1;
                }
                Err(Error::Refused(_)) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
    });
    eprintln!("{opened} opened, {refused} refused");
    assert!(opened > 0 && refused > 0, "{opened} opened, {refused} refused: no race");
}

#[test]
fn a_device_that_is_about_to_be_written_cannot_be_mounted_or_claimed_meanwhile() {
    let place = tempfile::tempdir().unwrap();
    let Some(blank) = make(place.path(), "blank", b"") else { return };
    let device = open_device(blank.path(), Consent::Destroy(Path::new(blank.path()))).unwrap();
    assert!(device.is_writable() && device.length_bytes() == LENGTH);
    // A filesystem appears on it behind our back: it still cannot be mounted.
    // (Written from an image, because newer mkfs refuse a device that is held.)
    let image = place.path().join("image");
    fs::File::create(&image).unwrap().set_len(LENGTH).unwrap();
    run("mkfs.ext4", &["-q", "-F", image.to_str().unwrap()]).unwrap();
    let behind = fs::OpenOptions::new().write(true).open(blank.path()).unwrap();
    (&behind).write_all(&fs::read(&image).unwrap()).unwrap();
    behind.sync_all().unwrap();
    drop(behind);
    let point = place.path().join("point");
    fs::create_dir(&point).unwrap();
    let mounted = run("mount", &[blank.path(), point.to_str().unwrap()]);
    assert!(mounted.is_err(), "mounted while it was held");
    let second = open_device(blank.path(), Consent::Destroy(Path::new(blank.path())));
    assert!(matches!(second, Err(Error::Refused(_))), "claimed twice");
    drop(device);
    let left = open_device(blank.path(), Consent::Destroy(Path::new(blank.path())));
    assert!(matches!(&left, Err(Error::Refused(why)) if why.contains("carries")), "{left:?}");
}

#[test]
fn reading_alone_claims_nothing_and_cannot_write() {
    let place = tempfile::tempdir().unwrap();
    let Some(device) = make(place.path(), "image", b"XFSB") else { return };
    let one = open_device(device.path(), Consent::ReadOnly).unwrap();
    let two = open_device(device.path(), Consent::ReadOnly).unwrap();
    assert_eq!(one.contents()[0].what, "an XFS filesystem");
    assert!(!one.is_writable() && !two.is_writable());
    let file = one.open_again(OFlags::empty()).unwrap();
    let written = std::os::unix::fs::FileExt::write_at(&file, b"x", 0);
    assert!(written.is_err(), "a descriptor for reading was written to");
    let target = one.describe();
    assert_eq!((target.kind, target.size_bytes), (ioscape_model::TargetKind::BlockDevice, LENGTH));
    assert!(target.device.is_some_and(|name| name.starts_with("loop")));
}

#[test]
fn a_directory_that_is_swapped_for_a_link_leads_nowhere_else() {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    fs::create_dir(at("mine")).unwrap();
    std::os::unix::fs::symlink("/proc", at("link")).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                fs::rename(at("mine"), at("target")).ok();
                fs::rename(at("target"), at("mine")).ok();
                fs::rename(at("link"), at("target")).ok();
                fs::rename(at("target"), at("link")).ok();
            }
        });
        for _ in 0..3000 {
            if let Ok(directory) = open_directory(at("target")) {
                assert_ne!(directory.filesystem(), "proc");
                let found = rustix::fs::fstat(&directory).unwrap();
                let mine = ["mine", "target"].iter().find_map(|name| {
                    let metadata = fs::symlink_metadata(at(name)).ok()?;
                    metadata.is_dir().then_some(metadata)
                });
                if let Some(mine) = mine {
                    use std::os::unix::fs::MetadataExt;
                    assert_eq!(found.st_ino, mine.ino());
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
}
