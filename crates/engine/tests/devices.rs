//! Block devices as targets under races, on loop devices; without root the tests say so and pass.

#![expect(clippy::unwrap_used, reason = "a helper of tests may fail as loudly as they do")]

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use ioscape_engine::target::{Consent, open_device, open_directory};
use ioscape_engine::{Clock, Error};
use rustix::fs::OFlags;

const LENGTH: u64 = 16 << 20;

/// A loop device over an image, gone when dropped.
struct Loop {
    path: PathBuf,
}

impl Loop {
    fn make(place: &Path, name: &str, mark: &[u8]) -> Option<Self> {
        let image = place.join(name);
        let mut file = File::create(&image).unwrap();
        file.write_all(mark).unwrap();
        file.set_len(LENGTH).unwrap();
        let attempt = |_| {
            let made = run(Command::new("losetup").args(["--find", "--show"]).arg(&image));
            made.map_err(|why| skipped(&why)).ok()
        };
        (0..3).find_map(attempt).map(|path| Self { path: path.into() })
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        run(Command::new("losetup").arg("--detach").arg(&self.path)).ok();
    }
}

/// Straight to stderr, which the test harness does not capture: a test that checked nothing must
/// not look like one that passed.
fn skipped(why: &str) {
    let thread = std::thread::current();
    writeln!(std::io::stderr(), "\nSKIPPED {}: {why}", thread.name().unwrap_or_default()).ok();
}

fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(String::from_utf8_lossy(&output.stderr).trim().to_owned())
}

/// Another name for the device at `path`.
fn make_node(path: &Path, name: &Path) {
    use std::os::unix::fs::MetadataExt;
    let number = fs::metadata(path).unwrap().rdev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    let made =
        run(Command::new("mknod").arg(name).args(["b", &major.to_string(), &minor.to_string()]));
    made.unwrap();
}

/// Ends a thread that goes on until it is told, also where a test fails meanwhile.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_path_that_is_swapped_between_check_and_open_never_gives_the_device_away() {
    let place = tempfile::tempdir().unwrap();
    let Some(blank) = Loop::make(place.path(), "blank", b"") else { return };
    let Some(precious) = Loop::make(place.path(), "precious", b"XFSB") else { return };
    let at = |name: &str| place.path().join(name);
    make_node(&blank.path, &at("blank node"));
    make_node(&precious.path, &at("precious node"));
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
        let clock = Clock::start();
        let mut tries = 0;
        while tries < 100 || ((opened == 0 || refused == 0) && clock.now_s() < 60.0) {
            tries += 1;
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
    let Some(blank) = Loop::make(place.path(), "blank", b"") else { return };
    let device = open_device(&blank.path, Consent::Destroy(&blank.path)).unwrap();
    assert!(device.is_writable() && device.length_bytes() == LENGTH);
    // A filesystem appears on it behind our back: it still cannot be mounted.
    // (Written from an image, because newer mkfs refuse a device that is held.)
    let image = place.path().join("image");
    fs::File::create(&image).unwrap().set_len(LENGTH).unwrap();
    run(Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image)).unwrap();
    let behind = fs::OpenOptions::new().write(true).open(&blank.path).unwrap();
    (&behind).write_all(&fs::read(&image).unwrap()).unwrap();
    behind.sync_all().unwrap();
    drop(behind);
    let point = place.path().join("point");
    fs::create_dir(&point).unwrap();
    let mounted = run(Command::new("mount").arg(&blank.path).arg(&point));
    assert!(mounted.is_err(), "mounted while it was held");
    let second = open_device(&blank.path, Consent::Destroy(&blank.path));
    assert!(matches!(second, Err(Error::Refused(_))), "claimed twice");
    drop(device);
    let left = open_device(&blank.path, Consent::Destroy(&blank.path));
    assert!(matches!(&left, Err(Error::Refused(why)) if why.contains("carries")), "{left:?}");
}

#[test]
fn reading_alone_claims_nothing_and_cannot_write() {
    let place = tempfile::tempdir().unwrap();
    let Some(device) = Loop::make(place.path(), "image", b"XFSB") else { return };
    let one = open_device(&device.path, Consent::ReadOnly).unwrap();
    let two = open_device(&device.path, Consent::ReadOnly).unwrap();
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
