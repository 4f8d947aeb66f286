//! Ctrl-C, SIGTERM and SIGKILL: what was measured is kept, nothing is left behind.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};

use ioscape_model::EndReason;

use crate::workdir::{Workdir, record};

const RUN: [&str; 8] =
    ["run", "target", "--unique-max", "64M", "--budget", "25s", "--out", "r.jsonl"];

/// Starts a run and waits until its record holds this many points.
fn started(work: &Workdir, points: usize) -> Child {
    let mut child = work.command(&RUN).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    if !has_points(work, points) {
        child.kill().unwrap();
        child.wait().unwrap();
        panic!("no {points} points after a minute");
    }
    child
}

fn has_points(work: &Workdir, points: usize) -> bool {
    let clock = ioscape_engine::Clock::start();
    while clock.now_s() < 60.0 {
        let text = std::fs::read_to_string(work.path("r.jsonl")).unwrap_or_default();
        if text.matches("\"kind\":\"point\"").count() >= points {
            return true;
        }
        clock.sleep_until(clock.now_ns() + 20_000_000);
    }
    false
}

fn signal(child: &Child, name: &str) {
    let status = std::process::Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(status.unwrap().success());
}

#[test]
fn ctrl_c_saves_reports_and_cleans_up() {
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let work = Workdir::new();
        let mut child = started(&work, 2);
        signal(&child, name);
        assert_eq!(child.wait().unwrap().code(), Some(code));
        let record = record(&work.path("r.jsonl"));
        assert_eq!(record.end.unwrap().reason, EndReason::Interrupted);
        assert!(record.map.unwrap().provisional);
        assert!(work.path("r.html").exists());
        assert!(work.left_behind().is_empty(), "{:?}", work.left_behind());
    }
}

#[test]
fn a_killed_run_is_gone_on_with_and_nothing_is_left() {
    let work = Workdir::new();
    let mut child = started(&work, 3);
    signal(&child, "-KILL");
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert!(!work.left_behind().is_empty(), "a killed run cannot clean up");
    let before = record(&work.path("r.jsonl"));
    work.stdout(&["run", "--resume", "r.jsonl", "--quiet"]);
    let after = record(&work.path("r.jsonl"));
    assert_eq!(after.points[..before.points.len()], before.points[..]);
    assert!(after.points.len() > before.points.len());
    assert!(after.end.unwrap().elapsed_s < 25.0 + 5.0);
    assert!(work.left_behind().is_empty(), "{:?}", work.left_behind());
}

#[test]
fn a_run_that_has_ended_is_not_gone_on_with_unless_the_budget_grows() {
    let work = Workdir::new();
    let budget = |budget| ["run", "sim:hdd", "--budget", budget, "--out", "r.jsonl", "--quiet"];
    work.stdout(&budget("2m"));
    let line = work.refusal(&["run", "--resume", "r.jsonl"]);
    assert!(line.contains("longer --budget"), "{line}");
    work.stdout(&["run", "--resume", "r.jsonl", "--budget", "4m", "--quiet"]);
    let end = record(&work.path("r.jsonl")).end.unwrap();
    assert!(end.elapsed_s > 120.0 && end.elapsed_s < 250.0, "{}", end.elapsed_s);
}

#[test]
fn clean_removes_what_a_killed_run_left() {
    let work = Workdir::new();
    let mut child = started(&work, 1);
    let listed = work.stdout(&["clean", "target", "--dry-run"]);
    assert!(listed.contains("in use by a run"), "{listed}");
    work.stdout(&["clean", "target"]);
    assert!(!work.left_behind().is_empty(), "a live run's files stay");
    signal(&child, "-KILL");
    child.wait().unwrap();
    std::fs::write(work.target().join("mine"), "precious").unwrap();
    work.stdout(&["clean", "target"]);
    assert_eq!(work.left_behind(), [work.target().join("mine")]);
}
