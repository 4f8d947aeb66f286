//! Files, directories and names that are no place to measure, and files that are in the way.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;

use super::{Danger, attack, checksum};
use crate::workdir::Workdir;
use ioscape_test_support::{Mount, run, skipped};

/// The user that owns nothing.
const NOBODY: u32 = 65_534;

fn typed(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

#[test]
fn what_is_no_directory_is_left_alone() {
    let work = Workdir::new();
    let file = work.path("thesis.txt");
    fs::write(&file, "years of work").unwrap();
    let link = work.path("link");
    symlink(&file, &link).unwrap();
    symlink(work.path("gone"), work.path("dangling")).unwrap();
    run("mkfifo", &[&typed(&work.path("pipe"))]).unwrap();
    let _socket = UnixListener::bind(work.path("socket")).unwrap();
    let on_file = |what: &str, path: &Path, why| Danger {
        what: what.to_owned(),
        target: typed(path),
        precious: vec![file.clone()],
        why,
    };
    let none = |what: &str, target: &str, why| Danger {
        what: what.to_owned(),
        target: target.to_owned(),
        precious: vec![],
        why,
    };
    for danger in [
        on_file("a user's file", &file, "a regular file"),
        on_file("a link to a user's file", &link, "another name of"),
        none("a link to nothing", &typed(&work.path("dangling")), "cannot be opened"),
        none("a pipe", &typed(&work.path("pipe")), "a pipe"),
        none("a socket", &typed(&work.path("socket")), "a socket"),
        none("a name of nothing", &typed(&work.path("nothing")), "cannot be opened"),
        none("/dev/null", "/dev/null", "a character device"),
        none("/dev/zero", "/dev/zero", "a character device"),
        none("/dev/urandom", "/dev/urandom", "a character device"),
        none("/dev/full", "/dev/full", "a character device"),
    ] {
        attack(&work, &danger);
    }
}

#[test]
fn what_the_kernel_makes_up_is_left_alone() {
    let work = Workdir::new();
    let places =
        ["/proc", "/proc/self/fd", "/proc/sys/vm", "/sys", "/sys/block", "/sys/fs/cgroup", "/dev"];
    for place in places {
        if !Path::new(place).exists() {
            continue;
        }
        let target = place.to_owned();
        let why = if place.contains("self") { "another name of" } else { "a directory" };
        attack(&work, &Danger { what: target.clone(), target, precious: vec![], why });
        let line = work.refusal(&["measure", place]);
        assert!(line.contains("makes up") || line.contains("belongs to the system"), "{line}");
        let ours = |entry: fs::DirEntry| entry.file_name().to_string_lossy().contains("ioscape");
        assert!(!fs::read_dir(place).unwrap().flatten().any(ours), "{place}");
    }
}

#[test]
fn files_in_the_way_of_what_is_written_are_kept() {
    let work = Workdir::new();
    let diary = work.path("diary");
    fs::write(&diary, "dear diary").unwrap();
    symlink(&diary, work.path("link")).unwrap();
    fs::write(work.path("page.html"), "my homepage").unwrap();
    fs::write(work.path("notes.html"), "my notes").unwrap();
    let before =
        [checksum(&diary), checksum(&work.path("page.html")), checksum(&work.path("notes.html"))];
    for arguments in [
        ["run", "sim:nvme", "--budget", "5s", "--out", "diary"].as_slice(),
        &["run", "sim:nvme", "--budget", "5s", "--out", "link"],
        &["measure", "sim:nvme", "--out", "diary"],
        &["measure", "sim:nvme", "--out", "link"],
        &["run", "sim:nvme", "--budget", "5s", "--out", "new.jsonl", "--report", "page.html"],
        &["run", "sim:nvme", "--budget", "5s", "--out", "notes.jsonl"],
    ] {
        let line = work.refusal(arguments);
        assert_eq!(line.trim_end().lines().count(), 1, "{arguments:?}: {line}");
    }
    let after =
        [checksum(&diary), checksum(&work.path("page.html")), checksum(&work.path("notes.html"))];
    assert_eq!(before, after);
    assert!(work.path("link").is_symlink());
}

#[test]
fn clean_removes_only_what_a_run_made() {
    let work = Workdir::new();
    let precious = work.path("precious");
    fs::write(&precious, "mine").unwrap();
    fs::set_permissions(&precious, fs::Permissions::from_mode(0o600)).unwrap();
    let target = work.target();
    let named = |number: u32| target.join(format!(".ioscape-0123456789ab-{number}"));
    symlink(&precious, named(0)).unwrap();
    fs::hard_link(&precious, named(1)).unwrap();
    fs::write(named(2), "readable by others").unwrap();
    fs::set_permissions(named(2), fs::Permissions::from_mode(0o644)).unwrap();
    fs::write(target.join(".ioscape-thesis"), "another name").unwrap();
    let before = checksum(&precious);
    work.stdout(&["clean", "target"]);
    assert_eq!(work.left_behind().len(), 4, "{:?}", work.left_behind());
    assert_eq!(checksum(&precious), before);
}

#[test]
fn a_directory_that_is_read_only_is_left_alone() {
    let work = Workdir::new();
    let Ok(mounted) = Mount::tmpfs(&work.path("mounted"), "size=64m").map_err(skipped) else {
        return;
    };
    fs::write(mounted.point().join("kept"), "kept").unwrap();
    mounted.change("ro");
    for arguments in [["measure", "mounted"].as_slice(), &["run", "mounted", "--out", "r.jsonl"]] {
        let line = work.refusal(arguments);
        assert!(line.contains("read-only"), "{line}");
    }
    assert_eq!(fs::read_dir(mounted.point()).unwrap().count(), 1);
}

#[test]
fn a_directory_that_is_full_is_left_alone() {
    let work = Workdir::new();
    let Ok(mounted) = Mount::tmpfs(&work.path("mounted"), "size=16m").map_err(skipped) else {
        return;
    };
    let full = mounted.point().join("full");
    fs::write(&full, vec![7; 15 << 20]).unwrap();
    let before = checksum(&full);
    for arguments in [["measure", "mounted"].as_slice(), &["run", "mounted", "--out", "r.jsonl"]] {
        let line = work.refusal(arguments);
        assert!(line.contains("free") || line.contains("fit"), "{line}");
    }
    assert_eq!(checksum(&full), before);
    assert_eq!(fs::read_dir(mounted.point()).unwrap().count(), 1);
}

#[test]
fn a_directory_that_must_not_change_is_left_alone() {
    let work = Workdir::new();
    if let Err(why) = run("chattr", &["+i", &typed(&work.target())]) {
        skipped(why);
        return;
    }
    let line = work.refusal(&["measure", "target"]);
    run("chattr", &["-i", &typed(&work.target())]).unwrap();
    assert!(line.contains("cannot be written"), "{line}");
}

#[test]
fn a_directory_of_somebody_else_is_left_alone() {
    if !rustix::process::geteuid().is_root() {
        skipped("only root can become somebody else");
        return;
    }
    // Where nobody gets at it: the build's own directory may be closed.
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let binary = place.path().join("ioscape");
    // By another process: a program cannot be run while a child of this one still has it open for writing.
    run("cp", &[env!("CARGO_BIN_EXE_ioscape"), binary.to_str().unwrap()]).unwrap();
    let theirs = place.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("kept"), "kept").unwrap();
    let closed = place.path().join("closed");
    fs::create_dir(&closed).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    for (target, part) in
        [(&theirs, "cannot be written"), (&closed, "denied"), (&"/dev/loop0".into(), "denied")]
    {
        if !target.exists() {
            continue;
        }
        let output = std::process::Command::new(&binary)
            .args(["measure", &typed(target), "--rounds", "1"])
            .current_dir(place.path())
            .uid(NOBODY)
            .gid(NOBODY)
            .output()
            .unwrap();
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        assert!(line.contains(part) || line.contains("cannot be opened"), "{line}");
    }
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 1);
}
