//! Ctrl-C, SIGTERM and SIGKILL: what was measured is kept, nothing is left behind.

use std::os::unix::process::ExitStatusExt;

use ioscape_model::{Code, EndReason};
use rustix::process::Signal;

use crate::running::{Running, points};
use crate::workdir::{Workdir, record};

/// Longer than any test waits: all of these runs are ended by a signal.
const RUN: [&str; 8] =
    ["run", "target", "--unique-max", "64M", "--budget", "10m", "--out", "r.jsonl"];

/// Starts a run and waits until its record holds this many points.
fn started(work: &Workdir, arguments: &[&str], count: usize) -> Running {
    let mut run = Running::start(work, arguments);
    run.wait_until(|| points(&work.path("r.jsonl")) >= count);
    run
}

#[test]
fn ctrl_c_saves_reports_and_cleans_up() {
    for (sent, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let work = Workdir::new();
        let mut run = started(&work, &RUN, 2);
        run.signal(sent);
        assert_eq!(run.ended().code(), Some(code));
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
    let mut run = started(&work, &RUN, 3);
    run.signal(Signal::KILL);
    assert_eq!(run.ended().signal(), Some(9));
    assert!(!work.left_behind().is_empty(), "a killed run cannot clean up");
    let before = record(&work.path("r.jsonl"));
    let resume = ["run", "--resume", "r.jsonl", "--quiet"];
    let mut run = started(&work, &resume, before.points.len() + 1);
    run.signal(Signal::INT);
    assert_eq!(run.ended().code(), Some(130));
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
    let summary = work.stdout(&["run", "--resume", "r.jsonl", "--budget", "4m"]);
    assert!(summary.contains("of a budget of 4 min"), "{summary}");
    let end = record(&work.path("r.jsonl")).end.unwrap();
    assert!(end.elapsed_s > 120.0 && end.elapsed_s < 250.0, "{}", end.elapsed_s);
}

#[test]
fn runs_in_one_directory_name_each_other_and_the_doctor_names_both() {
    let work = Workdir::new();
    let mut run = started(&work, &RUN, 1);
    let others = Workdir::new();
    let target = work.target();
    let target = target.to_str().unwrap();
    let measure = ["measure", target, "--rounds", "100", "-w", "unique_bytes=8M,rate=500", "--out"];
    let mut measured =
        Running::start(&others, &[&measure[..], &["m.jsonl", "--precision", "90%"]].concat());
    let records = [work.path("r.jsonl"), others.path("m.jsonl")];
    measured.wait_until(|| points(&records[1]) >= 1);
    let ids = records.each_ref().map(|path| record(path).header.run_id);
    let names = |path: &std::path::Path, id: &str| {
        record(path).points.iter().flat_map(|point| &point.warnings).any(|warning| {
            warning.code == ioscape_model::Code::Neighbours && warning.text.contains(id)
        })
    };
    measured.wait_until(|| names(&records[0], &ids[1]) && names(&records[1], &ids[0]));
    let doctor = work.output(&["doctor", "target", "--json"]);
    let doctor = String::from_utf8(doctor.stdout).unwrap();
    assert!(ids.iter().all(|id| doctor.contains(id)), "{ids:?}: {doctor}");
    for one in [&mut run, &mut measured] {
        one.signal(Signal::INT);
        one.ended();
    }
    assert!(work.left_behind().is_empty(), "{:?}", work.left_behind());
}

#[test]
fn a_record_that_is_being_written_is_read_but_gone_on_with_by_nobody_else() {
    let work = Workdir::new();
    let mut run = started(&work, &RUN, 1);
    let held = format!("r.jsonl is being written by process {} (ioscape): wait", run.process());
    for arguments in [
        &["run", "--resume", "r.jsonl", "--quiet"][..],
        &["run", "--resume", "r.jsonl", "--budget", "20m", "--report", "other.html"],
        &["suite", "--resume", "r.jsonl"],
    ] {
        let line = work.refusal(arguments);
        assert!(line.contains(&held) && line.trim_end().lines().count() == 1, "{line}");
    }
    assert!(!work.left_behind().is_empty(), "its files are left alone");
    work.stdout(&["report", "r.jsonl", "--format", "text"]);
    run.signal(Signal::INT);
    assert_eq!(run.ended().code(), Some(130));
    let record = record(&work.path("r.jsonl"));
    assert!(record.resumed.is_empty() && record.warnings.iter().all(|w| w.code != Code::Altered));
    assert_eq!(record.revision_max, record.map.unwrap().revision);
}

#[test]
fn nothing_is_changed_in_a_record_that_somebody_holds_and_it_is_gone_on_with_afterwards() {
    let work = Workdir::new();
    let path = work.path("r.jsonl");
    work.stdout(&["run", "sim:hdd", "--budget", "1m", "--out", "r.jsonl", "--quiet"]);
    let whole = std::fs::read(&path).unwrap();
    let end = whole[..whole.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    let torn = &whole[..end + 20];
    std::fs::write(&path, torn).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    file.lock().unwrap();
    let resume = ["run", "--resume", "r.jsonl", "-o", "./r.jsonl", "--budget", "90s", "--quiet"];
    let line = work.refusal(&resume);
    let held = format!("r.jsonl is being written by process {} (", std::process::id());
    assert!(line.contains(&held), "{line}");
    assert_eq!(std::fs::read(&path).unwrap(), torn);
    let line = work.refusal(&["run", "--resume", "r.jsonl", "--out", "other.jsonl"]);
    assert!(line.contains("cannot write other.jsonl"), "{line}");
    file.unlock().unwrap();
    work.stdout(&resume);
    let after = std::fs::read(&path).unwrap();
    assert_eq!(after[..end], whole[..end], "what was torn is cut off, and nothing else");
    assert!(record(&path).warnings.iter().all(|warning| warning.code != Code::Altered));
}

#[test]
fn clean_removes_what_a_killed_run_left() {
    let work = Workdir::new();
    let mut run = started(&work, &RUN, 1);
    let listed = work.stdout(&["clean", "target", "--dry-run"]);
    assert!(listed.contains("in use by a run"), "{listed}");
    work.stdout(&["clean", "target"]);
    assert!(!work.left_behind().is_empty(), "a live run's files stay");
    run.signal(Signal::KILL);
    run.ended();
    std::fs::write(work.target().join("mine"), "precious").unwrap();
    work.stdout(&["clean", "target"]);
    assert_eq!(work.left_behind(), [work.target().join("mine")]);
}
