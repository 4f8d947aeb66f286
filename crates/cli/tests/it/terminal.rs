//! What reaches a terminal, and what reaches a pipe.

use std::fs::File;
use std::io::Read;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::workdir::Workdir;

const RUN: [&str; 9] =
    ["run", "sim:hdd", "--seed", "3", "--budget", "3m", "--report", "none", "--out"];

/// Everything a command writes to a terminal of 80 columns, stdout and stderr alike.
fn on_a_terminal(work: &Workdir, arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap();
    let theirs = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    tcsetwinsize(&theirs, Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    let mut child = {
        let mut command = work.command(arguments);
        command.env_remove("NO_COLOR").env("TERM", "xterm-256color");
        command.envs(environment.iter().copied()).stdin(Stdio::null());
        command.stdout(theirs.try_clone().unwrap()).stderr(theirs).spawn().unwrap()
    };
    // Reading ends with an error when the last of the other side's handles is closed.
    let mut text = Vec::new();
    let mut chunk = [0; 4096];
    let mut ours = File::from(ours);
    while let Ok(count @ 1..) = ours.read(&mut chunk) {
        text.extend_from_slice(&chunk[..count]);
    }
    assert!(child.wait().unwrap().success());
    String::from_utf8_lossy(&text).into_owned()
}

fn with(name: &str) -> Vec<&str> {
    RUN.into_iter().chain([name]).collect()
}

fn is_control(c: char) -> bool {
    c.is_control() && c != '\n'
}

#[test]
fn a_terminal_sees_what_is_measured_and_how_long_it_takes() {
    let work = Workdir::new();
    let text = on_a_terminal(&work, &with("r.jsonl"), &[]);
    for part in ["left, ", "points: ", "write border", "GB/s", "map 1: ", "\u{1b}[1mRegions"] {
        assert!(text.contains(part), "{part}: {text:?}");
    }
}

#[test]
fn colours_are_left_out_where_they_are_not_wanted() {
    let work = Workdir::new();
    on_a_terminal(&work, &with("r.jsonl"), &[]);
    let report = ["report", "r.jsonl", "--format", "text"];
    assert!(on_a_terminal(&work, &report, &[]).contains('\u{1b}'));
    for environment in [("NO_COLOR", "1"), ("TERM", "dumb")] {
        let text = on_a_terminal(&work, &report, &[environment]);
        assert!(text.contains("Regions") && !text.contains('\u{1b}'), "{environment:?}: {text:?}");
    }
}

#[test]
fn a_terminal_that_cannot_move_its_cursor_is_not_asked_to() {
    let work = Workdir::new();
    let text = on_a_terminal(&work, &with("r.jsonl"), &[("TERM", "dumb")]);
    assert!(text.contains("Regions"), "{text:?}");
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn a_pipe_sees_no_control_character_and_no_long_line() {
    let work = Workdir::new();
    let output = work.output(&with("r.jsonl"));
    assert!(output.status.success());
    let summary = String::from_utf8(output.stdout).unwrap();
    assert!(summary.lines().all(|line| line.chars().count() <= 80), "{summary}");
    let messages = String::from_utf8(output.stderr).unwrap();
    for text in [&summary, &messages] {
        assert!(!text.chars().any(is_control), "{text:?}");
    }
    assert!(messages.contains("forecast") && messages.contains("record  r.jsonl"), "{messages}");
}

#[test]
fn json_is_alone_on_stdout_and_quiet_is_silent() {
    let work = Workdir::new();
    let output = work.output(&[&with("a.jsonl")[..], &["--json"]].concat());
    serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap();
    let output = work.output(&[&with("b.jsonl")[..], &["--quiet"]].concat());
    assert!(output.status.success());
    assert_eq!((output.stdout, output.stderr), (vec![], vec![]));
}

#[test]
fn a_summary_ends_with_commands_that_work() {
    let work = Workdir::new();
    let summary = work.stdout(&with("r.jsonl"));
    let (_, next) = summary.split_once("Where to look next\n").expect("there is such a section");
    let joined = next.replace("\\\n", " ");
    let commands = joined.lines().filter_map(|line| line.trim().strip_prefix("ioscape "));
    let mut names = Vec::new();
    for command in commands.filter(|command| !command.starts_with("validate")) {
        let words: Vec<&str> = command.split_whitespace().collect();
        let output = work.output(&words);
        assert!(output.status.success(), "{command}: {output:?}");
        names.push(words[0].to_owned());
    }
    for name in ["predict", "report"] {
        assert!(names.iter().any(|found| found == name), "{name}: {next}");
    }
}
