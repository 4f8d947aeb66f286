//! What cannot be written is said with exit code 3, leaves nothing torn, and can be tried again. What
//! could never be written is refused before anything is measured.

use std::fs::File;
use std::io::Read;
use std::process::Command;

use crate::workdir::Workdir;
use ioscape_test_support::{Mount, skipped};

/// A run of a simulated device, `r.jsonl`, and beside it a disk on which next to nothing fits.
fn beside_a_small_disk() -> Option<(Workdir, Mount)> {
    let work = Workdir::new();
    let disk = Mount::tmpfs(&work.path("small"), "size=64k").map_err(skipped).ok()?;
    let run = ["run", "sim:nvme", "--seed", "1", "--budget", "3m", "--out", "r.jsonl", "--quiet"];
    work.stdout(&[&run[..], &["--report", "none"]].concat());
    Some((work, disk))
}

fn names(work: &Workdir) -> Vec<String> {
    let entries = std::fs::read_dir(work.path("small")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Fails with exit code 3 and one line, leaves nothing, and succeeds with room.
#[track_caller]
fn fails_cleanly(work: &Workdir, disk: &Mount, arguments: &[&str]) {
    let before = names(work);
    let output = work.output(arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{arguments:?}: {said}");
    assert!(said.contains("No space left") && said.contains("free some room"), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{arguments:?}: {said}");
    assert_eq!(names(work), before, "{arguments:?}");
    disk.change("size=32m");
    let output = work.output(arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {said}");
    for name in names(work).iter().filter(|name| !before.contains(name)) {
        let path = work.path("small").join(name);
        std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path)).unwrap();
    }
    disk.change("size=64k");
}

#[test]
fn a_file_that_a_full_disk_cuts_short_is_not_there_and_can_be_tried_again() {
    let Some((work, disk)) = beside_a_small_disk() else { return };
    let hog = File::create(work.path("small/hog")).unwrap();
    std::io::copy(&mut std::io::repeat(1).take(40 << 10), &mut &hog).unwrap();
    for arguments in [
        &["export", "r.jsonl", "--format", "json", "--out", "small/r.json"][..],
        &["export", "r.jsonl", "--format", "fio", "--out", "small/jobs"],
        &["report", "r.jsonl", "--out", "small/r.html"],
        &["compare", "r.jsonl", "r.jsonl", "--out", "small/c.html", "--quiet"],
        &["man", "--out", "small"],
    ] {
        fails_cleanly(&work, &disk, arguments);
    }
}

#[test]
fn a_record_that_a_full_disk_does_not_let_begin_is_not_there_and_can_be_tried_again() {
    let Some((work, disk)) = beside_a_small_disk() else { return };
    let hog = File::create(work.path("small/hog")).unwrap();
    std::io::copy(&mut std::io::repeat(1), &mut &hog).unwrap_err();
    let sim = ["sim:nvme", "--seed", "1", "--quiet", "--out", "small/new.jsonl"];
    for arguments in [
        [&["run"], &sim[..], &["--budget", "1m", "--report", "none"]].concat(),
        [&["measure"], &sim[..], &["--rounds", "1"]].concat(),
    ] {
        fails_cleanly(&work, &disk, &arguments);
    }
}

#[test]
fn a_page_that_does_not_fit_costs_neither_record_nor_summary() {
    let Some((work, _disk)) = beside_a_small_disk() else { return };
    let run = ["run", "sim:nvme", "--budget", "1m", "--out", "s.jsonl", "--report"];
    let output = work.output(&[&run[..], &["small/s.html"]].concat());
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("cannot write small/s.html"), "{said}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("Regions"));
    assert!(crate::workdir::record(&work.path("s.jsonl")).end.is_some());
    assert!(names(&work).is_empty(), "{:?}", names(&work));
}

#[test]
fn beyond_the_limit_on_file_sizes_a_measurement_ends_in_one_line_and_cleans_up() {
    let work = Workdir::new();
    let mut limited = Command::new("sh");
    limited.current_dir(work.path(".")).args(["-c", "ulimit -f 1000; exec \"$0\" \"$@\""]);
    limited.arg(env!("CARGO_BIN_EXE_ioscape")).args(["measure", "target", "--quiet"]);
    let output = limited.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{:?}: {said}", output.status);
    assert!(said.contains("ulimit -f"), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    assert!(work.left_behind().is_empty(), "{:?}", work.left_behind());
}

#[test]
fn what_could_never_be_written_is_refused_before_anything_is_measured() {
    let work = Workdir::new();
    let run = |more: &'static [&'static str]| {
        [&["run", "sim:nvme", "--budget", "1m", "--quiet"], more].concat()
    };
    for (arguments, part) in [
        (run(&["--out", "no/such/r.jsonl"]), "choose another --out in a directory that exists"),
        (run(&["--out", "r.jsonl", "--report", "no/r.html"]), "choose another --report"),
        (run(&["--out", "r.jsonl", "--report", "target"]), "choose another --report"),
        (vec!["measure", "sim:nvme", "--out", "no/m.jsonl"], "choose another --out"),
        (vec!["suite", "andrew", "target", "--out", "no/s.jsonl"], "choose another --out"),
        (
            vec!["compare", "--live", "sim:nvme", "sim:hdd", "--record", "no/c"],
            "choose another --record",
        ),
    ] {
        let line = work.refusal(&arguments);
        assert!(line.contains(part), "{arguments:?}: {line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");
    }
    assert_eq!(std::fs::read_dir(work.path(".")).unwrap().count(), 1, "only the target is there");
}

#[test]
fn what_is_refused_leaves_no_record() {
    let work = Workdir::new();
    let suite = ["suite", "andrew", "target", "--cc", "no-such-compiler", "--out", "s.jsonl"];
    for _ in 0..2 {
        let line = work.refusal(&suite);
        assert!(line.contains("no-such-compiler"), "{line}");
    }
    assert!(!work.path("s.jsonl").exists());
}
