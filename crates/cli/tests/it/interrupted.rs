//! Ctrl-C, SIGTERM and SIGKILL: what was measured is kept, nothing is left behind.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};

use ioscape_model::EndReason;
use rustix::process::{Pid, Signal, kill_process};

use crate::workdir::{Workdir, record};

/// Longer than any test waits: all of these runs are ended by a signal.
const RUN: [&str; 8] =
    ["run", "target", "--unique-max", "64M", "--budget", "10m", "--out", "r.jsonl"];

/// Starts a run and waits until its record holds this many points.
fn started(work: &Workdir, points: usize) -> Child {
    started_as(work, &RUN, points)
}

fn started_as(work: &Workdir, arguments: &[&str], points: usize) -> Child {
    let command = &mut work.command(arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let clock = ioscape_engine::Clock::start();
    while n_points(work) < points {
        // However slow the machine: a run goes on until its budget is over.
        assert_eq!(child.try_wait().unwrap(), None, "ended with {} points", n_points(work));
        clock.sleep_until(clock.now_ns() + 20_000_000);
    }
    child
}

fn n_points(work: &Workdir) -> usize {
    let text = std::fs::read_to_string(work.path("r.jsonl")).unwrap_or_default();
    text.matches("\"kind\":\"point\"").count()
}

fn signal(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

#[test]
fn ctrl_c_saves_reports_and_cleans_up() {
    for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let work = Workdir::alone();
        let mut child = started(&work, 2);
        signal(&child, sent);
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
    let work = Workdir::alone();
    let mut child = started(&work, 3);
    signal(&child, Signal::KILL);
    assert_eq!(child.wait().unwrap().signal(), Some(9));
    assert!(!work.left_behind().is_empty(), "a killed run cannot clean up");
    let before = record(&work.path("r.jsonl"));
    let resume = ["run", "--resume", "r.jsonl", "--quiet"];
    let mut child = started_as(&work, &resume, before.points.len() + 1);
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let after = record(&work.path("r.jsonl"));
    assert_eq!(after.points[..before.points.len()], before.points[..]);
    assert!(after.points.len() > before.points.len());
    let elapsed_s = after.resumed.last().unwrap().elapsed_before_s;
    assert!(elapsed_s > 0.0 && after.end.unwrap().elapsed_s > elapsed_s, "{elapsed_s}");
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
    let work = Workdir::alone();
    let mut child = started(&work, 1);
    let listed = work.stdout(&["clean", "target", "--dry-run"]);
    assert!(listed.contains("in use by a run"), "{listed}");
    work.stdout(&["clean", "target"]);
    assert!(!work.left_behind().is_empty(), "a live run's files stay");
    signal(&child, Signal::KILL);
    child.wait().unwrap();
    std::fs::write(work.target().join("mine"), "precious").unwrap();
    work.stdout(&["clean", "target"]);
    assert_eq!(work.left_behind(), [work.target().join("mine")]);
}
