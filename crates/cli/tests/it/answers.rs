//! Answers arrive or are an error, and hold nothing that a terminal would obey.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::process::Output;

use rustix::process::Signal;

use crate::running::{Running, points};
use crate::workdir::{Workdir, record};

/// A run of a simulated device, `r.jsonl`.
fn with_record() -> Workdir {
    let work = Workdir::new();
    let run = ["run", "sim:nvme", "--seed", "1", "--budget", "3m", "--out", "r.jsonl", "--quiet"];
    work.stdout(&[&run[..], &["--report", "none"]].concat());
    work
}

const ANSWERING: [&[&str]; 16] = [
    &["export", "r.jsonl", "--format", "csv"],
    &["export", "r.jsonl", "--format", "fio", "-w", "oltp"],
    &["predict", "r.jsonl"],
    &["predict", "r.jsonl", "--json"],
    &["compare", "r.jsonl", "r.jsonl"],
    &["report", "r.jsonl", "--format", "text"],
    &["measure", "sim:nvme", "--rounds", "1", "--quiet"],
    &["run", "sim:nvme", "--budget", "1m", "--out", "s.jsonl", "--json", "--quiet"],
    &["run", "sim:nvme", "--dry-run"],
    &["suite", "list"],
    &["doctor", "sim:nvme"],
    &["clean", "target"],
    &["man"],
    &["completions", "bash"],
    &["--help"],
    &["--version"],
];

#[test]
fn an_answer_that_is_lost_is_exit_code_3_and_one_line() {
    let work = with_record();
    for arguments in ANSWERING {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = work.command(arguments).stdout(full).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{arguments:?}: {said}");
        assert!(said.contains("cannot write the answer"), "{arguments:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{arguments:?}: {said}");
    }
    assert!(record(&work.path("s.jsonl")).end.is_some(), "what was measured is there");
}

#[test]
fn a_reader_that_has_gone_away_is_no_error() {
    let work = with_record();
    for arguments in ANSWERING {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = work.command(arguments).stdout(writer).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn messages_that_nobody_can_read_end_nothing() {
    let work = with_record();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let status = work.command(&["report", "r.jsonl", "--out", "page.html"]).stderr(full).status();
    assert_eq!(status.unwrap().code(), Some(0));
}

#[track_caller]
fn obeyed_by_no_terminal(output: &Output, code: i32) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text:?}");
    text
}

#[test]
fn control_characters_of_a_path_reach_no_terminal() {
    const NAME: &str = "a\u{1b}[2J\u{9b}31m\nb";
    let work = Workdir::new();
    for arguments in [["measure", NAME], ["report", NAME], ["doctor", NAME], ["clean", NAME]] {
        let said = obeyed_by_no_terminal(&work.output(&arguments), 2);
        assert!(said.contains("a\\u001b[2J\\u009b31m\\u000ab"), "{said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    }
    obeyed_by_no_terminal(&work.output(&["run", "--budget", NAME]), 2);
    std::fs::create_dir(work.path(NAME)).unwrap();
    let left = work.path(NAME).join(".ioscape-0123456789ab-0");
    File::create(&left).unwrap().set_permissions(private()).unwrap();
    let listed = obeyed_by_no_terminal(&work.output(&["clean", NAME, "--dry-run"]), 0);
    assert_eq!(listed.lines().count(), 1, "{listed}");
    let doctor = work.output(&["doctor", NAME, "--json"]);
    let text = obeyed_by_no_terminal(&doctor, doctor.status.code().unwrap());
    let answer: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(answer["facts"]["target"]["path"].as_str().unwrap().ends_with(NAME), "{answer:#}");
}

fn private() -> std::fs::Permissions {
    std::os::unix::fs::PermissionsExt::from_mode(0o600)
}

#[test]
fn a_directory_whose_name_is_no_text_is_measured_mapped_and_cleaned() {
    let work = Workdir::new();
    let name = OsStr::from_bytes(b"no\xfftext");
    let inside = |file: &str| std::path::Path::new(name).join(file);
    std::fs::create_dir(work.path(".").join(name)).unwrap();
    let typed = |command: &str, rest: &[&str], files: &[(&str, &str)]| {
        let mut typed = work.command(&[command]);
        typed.arg(name).args(rest);
        for (flag, file) in files {
            typed.arg(flag).arg(inside(file));
        }
        typed
    };
    let done = |command: &str, rest: &[&str], files: &[(&str, &str)]| {
        let output = typed(command, rest, files).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(matches!(output.status.code(), Some(0 | 1)), "{command} {rest:?}: {said}");
        output.stdout
    };
    let brief = ["--rounds", "1", "--unique-bytes", "8M", "--read-frac", "1"];
    let brief = [&brief[..], &["--precision", "50%", "--quiet"]].concat();
    done("measure", &brief, &[("--out", "m.jsonl")]);
    let path = work.path(".").join(inside("r.jsonl"));
    let run = ["--unique-max", "16M", "--quiet"];
    for (count, command) in [
        (1, typed("run", &run, &[("--out", "r.jsonl"), ("--report", "r.html")])),
        (2, typed("run", &["--report", "none", "--quiet"], &[("--resume", "r.jsonl")])),
    ] {
        let mut run = Running::spawn(&work, command);
        run.wait_until(|| points(&path) >= count);
        run.signal(Signal::INT);
        assert_eq!(run.ended().code(), Some(130), "{}", run.stderr());
    }
    assert_eq!(record(&path).resumed.len(), 1);
    let doctor: serde_json::Value =
        serde_json::from_slice(&done("doctor", &["--json"], &[])).unwrap();
    assert!(doctor["facts"]["target"]["path"].as_str().unwrap().ends_with("no\u{fffd}text"));
    done("clean", &[], &[]);
    let mut report = work.command(&["report"]);
    let output = report.arg(inside("r.jsonl")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
