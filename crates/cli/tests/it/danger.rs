//! Nothing is destroyed: targets that hold something, or are in use, are refused, with a checksum
//! of all that could be lost before and after. Devices are real ones, made here on loop devices;
//! without root those tests say so and pass.

mod devices;
mod places;

use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::workdir::Workdir;

/// A target that must not be touched.
struct Danger {
    what: String,
    /// As it is typed.
    target: String,
    /// What would be lost.
    precious: Vec<PathBuf>,
    /// What the refusal says when the device is asked to be destroyed.
    why: &'static str,
}

/// Types every command that could do harm, with and without consent, and looks afterwards.
#[expect(clippy::print_stderr, reason = "with --nocapture it is a list of what was refused")]
#[track_caller]
fn attack(work: &Workdir, danger: &Danger) {
    let before: Vec<u64> = danger.precious.iter().map(|path| checksum(path)).collect();
    let target = danger.target.as_str();
    let writes = "unique_bytes=8MiB,read_frac=0";
    for arguments in [
        ["measure", target, "-w", writes, "--rounds", "1"].as_slice(),
        &["measure", target, "-w", writes, "--rounds", "1", "--destroy", target],
        &["run", target, "--budget", "5s", "--out", "r.jsonl"],
        &["run", target, "--budget", "5s", "--out", "r.jsonl", "--destroy", target],
    ] {
        let line = work.refusal(arguments);
        assert_eq!(line.trim_end().lines().count(), 1, "{}: {line}", danger.what);
        if arguments.contains(&"--destroy") {
            assert!(line.contains(danger.why), "{}: {line}", danger.what);
        }
        assert!(!work.path("r.jsonl").exists(), "{}", danger.what);
    }
    let after: Vec<u64> = danger.precious.iter().map(|path| checksum(path)).collect();
    assert_eq!(before, after, "{} was touched", danger.what);
    eprintln!("refused: {}", danger.what);
}

/// Of a file's or device's content.
fn checksum(path: &Path) -> u64 {
    let mut file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let zeros = vec![0; 1 << 20];
    let mut chunk = zeros.clone();
    let mut hasher = DefaultHasher::new();
    loop {
        match file.read(&mut chunk).unwrap() {
            0 => return hasher.finish(),
            // Nearly all of an image is zeros, and comparing is ten times as fast as hashing.
            length if chunk[..length] == zeros[..length] => hasher.write_usize(length),
            length => hasher.write(&chunk[..length]),
        }
    }
}
