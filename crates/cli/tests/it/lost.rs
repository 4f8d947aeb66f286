//! Nothing is lost: runs that are killed, stopped, robbed of their disk or of their files, and
//! records that were torn or have rotted.
//!
//! `IOSCAPE_KILLS` sets how often runs are killed; what mounts filesystems needs root.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use ioscape_model::{Code, EndReason, Part, Record};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use rustix::process::Signal;

use crate::running::{Running, points, wait_ms};
use crate::workdir::{Workdir, record};
use ioscape_test_support::{Mount, skipped};

fn chance(seed: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(seed)
}

fn kills() -> usize {
    let asked = std::env::var("IOSCAPE_KILLS").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(10).min(1000)
}

/// Kills a run at random instants, going on with it each time, and lets it end.
fn killed_again_and_again(work: &Workdir, begin: &[&str], kills: usize, longest_ms: u64) -> usize {
    let path = work.path("r.jsonl");
    let resume = ["run", "--resume", "r.jsonl", "--report", "none", "--quiet"];
    let mut chance = chance(7);
    let mut before: Option<Record> = None;
    let mut killed = 0;
    for _ in 0..kills {
        let arguments = if before.is_some() { &resume[..] } else { begin };
        let mut run = Running::start(work, arguments);
        if before.is_none() {
            run.wait_until(|| points(&path) >= 1);
        }
        wait_ms(chance.random_range(0..longest_ms));
        let seen = points(&path);
        run.signal(Signal::KILL);
        let status = run.ended();
        let after = record(&path);
        assert!(after.points.len() >= seen, "{} of {seen} points", after.points.len());
        if let Some(before) = &before {
            let kept = before.points.len();
            assert_eq!(after.points[..kept], before.points[..], "what was measured is kept");
            let elapsed_s = |record: &Record| {
                record.resumed.last().map_or(0.0, |resumed| resumed.elapsed_before_s)
            };
            assert!(elapsed_s(&after) >= elapsed_s(before));
        }
        killed += usize::from(status.signal() == Some(9));
        before = Some(after);
        if status.signal().is_none() {
            break;
        }
    }
    killed
}

#[test]
fn a_run_killed_at_random_instants_keeps_every_point_it_wrote() {
    // However quick the machine, a part of such a run takes longer than a kill.
    let mut left = kills();
    for seed in 1..=kills() as u64 {
        let work = Workdir::new();
        let seed = seed.to_string();
        let begin = ["run", "sim:nvme", "--seed", &seed, "--budget", "10m", "--out", "r.jsonl"];
        let begin = [&begin[..], &["--report", "none", "--quiet"]].concat();
        left = left.saturating_sub(killed_again_and_again(&work, &begin, left, 150));
        if record(&work.path("r.jsonl")).end.is_none() {
            work.stdout(&["run", "--resume", "r.jsonl", "--report", "none", "--quiet"]);
        }
        assert!(record(&work.path("r.jsonl")).end.is_some());
        if left == 0 {
            return;
        }
    }
    panic!("{left} kills came too late");
}

/// A run on a directory whose budget outlasts what is done to it, however slow the machine.
const LASTING: [&str; 8] =
    ["run", "target", "--unique-max", "16M", "--budget", "10m", "--out", "r.jsonl"];
const SILENT: [&str; 3] = ["--report", "none", "--quiet"];

/// Waits for another point, or the end, and has the run end as by Ctrl-C.
fn ended_by_hand(mut run: Running, path: &Path) -> (Option<i32>, String) {
    let before = points(path);
    while points(path) <= before && !run.has_ended() {
        wait_ms(10);
    }
    run.signal(Signal::INT);
    (run.ended().code(), run.stderr())
}

#[test]
fn a_run_on_a_directory_killed_at_random_instants_leaves_nothing_in_the_end() {
    let work = Workdir::new();
    let begin = [&LASTING[..], &SILENT].concat();
    let kills = 4.max(kills() / 10);
    assert_eq!(killed_again_and_again(&work, &begin, kills, 600), kills);
    let run = Running::start(&work, &[&["run", "--resume", "r.jsonl"], &SILENT[..]].concat());
    let (code, said) = ended_by_hand(run, &work.path("r.jsonl"));
    assert_eq!(code, Some(130), "{said}");
    assert!(record(&work.path("r.jsonl")).end.is_some());
    assert!(work.left_behind().is_empty(), "{:?}", work.left_behind());
}

/// A record as runs write them.
fn written() -> Vec<u8> {
    let work = Workdir::new();
    let arguments = ["run", "sim:nvme", "--seed", "3", "--budget", "1m", "--out", "r.jsonl"];
    work.stdout(&[&arguments[..], &["--report", "none", "--quiet"]].concat());
    std::fs::read(work.path("r.jsonl")).unwrap()
}

#[test]
fn two_hundred_truncations_and_flipped_bits_are_opened_as_they_were_or_refused() {
    let whole = written();
    let text = |bytes: &[u8]| Record::read(bytes).map(|record| format!("{record:?}"));
    let original = text(&whole).unwrap();
    let mut chance = chance(11);
    let header = whole.iter().position(|&byte| byte == b'\n').unwrap() + 1;
    for _ in 0..200 {
        let length = chance.random_range(0..whole.len());
        let cut = &whole[..length];
        let lines = cut.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        match text(cut) {
            Ok(read) => assert_eq!(read, text(&whole[..lines]).unwrap(), "cut at {length}"),
            Err(_) => assert!(length < header, "cut at {length}"),
        }
    }
    let mut refused = 0;
    for _ in 0..200 {
        let at = chance.random_range(0..whole.len());
        let mut rotten = whole.clone();
        rotten[at] ^= 1 << chance.random_range(0..8);
        match text(&rotten) {
            Err(error) => {
                refused += 1;
                assert!(!error.to_string().contains('\n'), "{error}");
            }
            // A flipped bit in the name of the check takes the check away, and nothing else; one in
            // the last line's end makes it a torn line.
            Ok(read) => assert!(read == original || at == whole.len() - 1, "byte {at}"),
        }
    }
    assert!(refused > 190, "{refused}");
}

#[test]
fn a_rotten_record_is_refused_in_one_line_by_every_command_that_reads_one() {
    let work = Workdir::new();
    let whole = String::from_utf8(written()).unwrap();
    let at = whole.rfind("\"throughput_bytes_per_s\":{\"mean\":").unwrap() + 34;
    let mut rotten = whole.into_bytes();
    rotten[at] = if rotten[at] == b'1' { b'2' } else { b'1' };
    std::fs::write(work.path("r.jsonl"), &rotten).unwrap();
    for arguments in [
        &["report", "r.jsonl", "--format", "text"][..],
        &["predict", "r.jsonl"],
        &["export", "r.jsonl", "--format", "csv"],
        &["compare", "r.jsonl", "r.jsonl"],
        &["run", "--resume", "r.jsonl"],
        &["validate", "r.jsonl"],
    ] {
        let line = work.refusal(arguments);
        assert!(line.contains("is not what was written"), "{arguments:?}: {line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");
    }
    assert_eq!(std::fs::read(work.path("r.jsonl")).unwrap(), rotten, "and is left as it is");
}

#[test]
fn a_record_that_lost_a_line_or_has_one_twice_says_so_whatever_is_asked_of_it() {
    let work = Workdir::new();
    let whole = String::from_utf8(written()).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let lost = [&lines[..7], &lines[8..]].concat().concat();
    let twice = [&lines[..8], &lines[7..]].concat().concat();
    for (text, doubt) in [
        (&lost, "lines are missing or out of order before line 8;"),
        (&twice, "copies of other lines are left out: line 9;"),
    ] {
        std::fs::write(work.path("r.jsonl"), text).unwrap();
        for arguments in [
            &["report", "r.jsonl", "--format", "text"][..],
            &["predict", "r.jsonl"],
            &["export", "r.jsonl", "--format", "csv"],
            &["compare", "r.jsonl", "r.jsonl"],
            &["run", "--resume", "r.jsonl", "--budget", "70s", "--report", "none", "--quiet"],
            &["report", "r.jsonl", "--format", "text"],
        ] {
            let output = work.output(arguments);
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(output.status.success() && said.contains(doubt), "{arguments:?}: {said}");
        }
        let shown = work.stdout(&["report", "r.jsonl", "--format", "text"]);
        assert!(shown.contains("!! altered:"), "{shown}");
    }
    let original = Record::read(whole.as_bytes()).unwrap();
    let read = |text: &str| Record::read(text.as_bytes()).unwrap().points;
    assert_eq!((read(&lost).len() + 1, read(&twice)), (original.points.len(), original.points));
}

#[test]
fn a_run_that_was_stopped_and_lost_its_files_meanwhile_goes_on_or_ends_in_one_line() {
    let work = Workdir::new();
    let mut run = Running::start(&work, &[&LASTING[..], &["--quiet"]].concat());
    run.wait_until(|| points(&work.path("r.jsonl")) >= 1);
    run.signal(Signal::STOP);
    for file in work.left_behind() {
        std::fs::remove_file(file).unwrap();
    }
    wait_ms(1500);
    run.signal(Signal::CONT);
    let (code, said) = ended_by_hand(run, &work.path("r.jsonl"));
    // Files that are open go on without a name; those that are to be opened again are missed.
    let record = record(&work.path("r.jsonl"));
    match (code, record.end.map(|end| end.reason)) {
        (Some(130), Some(EndReason::Interrupted)) => {}
        (Some(3), Some(EndReason::Failed)) => {
            assert!(said.contains("No such file") && said.contains("--resume"), "{said}");
            assert_eq!(said.trim_end().lines().count(), 1, "{said}");
        }
        other => panic!("{other:?}: {said}"),
    }
    assert!(!record.points.is_empty() && work.left_behind().is_empty());
}

#[test]
fn no_more_is_written_than_was_allowed_and_the_forecast_says_how_much() {
    const MOST: u64 = 2_000_000_000;
    let work = Workdir::new();
    let run = ["run", "sim:nvme", "--max-written", "2GB", "--budget", "10m", "--seed", "1"];
    let plan = work.json(&[&run[..], &["--dry-run", "--json"]].concat());
    assert!(plan["plans"][0]["written_bytes"].as_u64().unwrap() > 0, "{plan:#}");
    work.stdout(&[&run[..], &["--out", "r.jsonl", "--report", "none", "--quiet"]].concat());
    let record = record(&work.path("r.jsonl"));
    let end = record.end.unwrap();
    assert_eq!(end.reason, EndReason::Budget, "reading goes on");
    assert!(end.written_bytes <= MOST, "{}", end.written_bytes);
    let forecast_bytes = record.header.forecast.unwrap().written_bytes;
    assert!((1..=MOST).contains(&forecast_bytes), "{forecast_bytes}");
    let said = record.warnings.iter().find(|warning| warning.code == Code::MaxWritten).unwrap();
    assert!(said.text.contains("were left out"), "{}", said.text);
}

#[test]
fn graphs_of_the_device_layer_are_drawn_where_what_may_be_written_runs_out() {
    let work = Workdir::new();
    let run = ["run", "sim:nvme", "--max-written", "12GB", "--budget", "4m", "--seed", "1"];
    work.stdout(&[&run[..], &["--out", "r.jsonl", "--report", "none", "--quiet"]].concat());
    let end = record(&work.path("r.jsonl")).end.unwrap();
    assert!(end.written_bytes <= 12_000_000_000, "{}", end.written_bytes);
    let of_device = end.left_out.iter().find(|left_out| left_out.part == Part::DeviceLayer);
    let missing = of_device.map_or("", |left_out| left_out.text.as_str());
    let is_drawn = |graph: &str| !missing.contains(graph) && !missing.contains("all of it");
    assert!(is_drawn("size_mean") && is_drawn("read_frac"), "{missing}");
}

#[test]
fn a_full_disk_under_the_record_ends_the_run_and_what_was_written_is_gone_on_with() {
    let work = Workdir::new();
    let Ok(disk) = Mount::tmpfs(&work.path("small"), "size=96k").map_err(skipped) else { return };
    let arguments = ["run", "sim:nvme", "--budget", "10m", "--out", "small/r.jsonl", "--quiet"];
    let output = work.output(&[&arguments[..], &["--report", "none"]].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("cannot write the record") && said.contains("--resume"), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    let before = record(&work.path("small/r.jsonl"));
    assert!(before.points.len() > 5, "{}", before.points.len());
    disk.change("size=16m");
    work.stdout(&["run", "--resume", "small/r.jsonl", "--quiet", "--report", "none"]);
    let after = record(&work.path("small/r.jsonl"));
    assert_eq!(after.points[..before.points.len()], before.points[..]);
    assert!(after.end.is_some());
}

#[test]
fn a_disk_that_fills_up_under_the_target_ends_the_run_and_leaves_nothing() {
    let work = Workdir::new();
    let Ok(_disk) = Mount::tmpfs(&work.target(), "size=64m").map_err(skipped) else { return };
    let arguments = ["run", "target", "--budget", "10m", "--out", "r.jsonl"];
    let mut run = Running::start(&work, &[&arguments[..], &SILENT].concat());
    run.wait_until(|| points(&work.path("r.jsonl")) >= 1);
    let hog = work.target().join("hog");
    let mut filled = std::fs::File::create(&hog).unwrap();
    let full = std::io::copy(&mut std::io::repeat(1).take(64 << 20), &mut filled);
    assert!(full.is_err(), "the disk is full");
    let (code, said) = ended_by_hand(run, &work.path("r.jsonl"));
    assert!(matches!(code, Some(130 | 3)), "{code:?}: {said}");
    assert!(said.trim_end().lines().count() <= 1, "{said}");
    let record = record(&work.path("r.jsonl"));
    assert!(!record.points.is_empty() && record.end.is_some());
    assert_eq!(work.left_behind(), [hog]);
}
