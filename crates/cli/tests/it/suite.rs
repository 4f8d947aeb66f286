//! Classic benchmarks.

use std::process::{Command, Stdio};

use ioscape_model::{Code, EndReason, Method, Trial};
use ioscape_suite::iostone::first::{FILE_BYTES, Operation, operations};
use ioscape_suite::{Name, critique};
use ioscape_test_support::skipped;
use rustix::process::Signal;

use crate::running::Running;
use crate::workdir::{Workdir, record};

const BRIEF: [&str; 6] = ["--repeats", "2", "--slice", "2ms", "--scale", "0.02"];

#[test]
fn a_suite_is_a_record_with_scores_and_leaves_nothing_behind() {
    let work = Workdir::new();
    let mut arguments = vec!["suite", "iostone-1987,andrew,tpcb,netnews,sort", "target"];
    arguments.extend(BRIEF);
    arguments.extend(["--json", "--out", "s.jsonl", "--report", "s.html"]);
    let json = work.json(&arguments);
    let scores = json["scores"].as_array().unwrap();
    for benchmark in ["iostone-1987", "andrew", "tpcb", "netnews", "sort"] {
        let score = scores.iter().find(|score| score["benchmark"] == benchmark).unwrap();
        assert_eq!(score["repeats"], 2);
        let [low, mean, high] =
            [&score["interval"]["low"], &score["mean"], &score["interval"]["high"]]
                .map(|figure| figure.as_f64().unwrap());
        assert!(low <= mean && mean <= high, "{score}");
    }
    assert_eq!(json["critique"].as_array().unwrap().len(), 5);
    let record = record(&work.path("s.jsonl"));
    assert_eq!(record.header.method, Method::Suite);
    // Two scored and one metered trial each.
    assert_eq!(record.suite.trials.len(), 15);
    assert_eq!(record.end.unwrap().reason, EndReason::Complete);
    assert!(work.left_behind().is_empty(), "{:?}", work.left_behind());
    let page = std::fs::read_to_string(work.path("s.html")).unwrap();
    assert!(page.contains("<h2>tpcb</h2>"));
    let document = work.stdout(&["export", "s.jsonl", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["trials"].as_array().unwrap().len(), 15);
    assert_eq!(document["scores"].as_array().unwrap().len(), scores.len());
    let complaint = work.refusal(&["suite", "sort", "target", "--pin"]);
    assert!(complaint.contains("leave --pin out"), "{complaint}");
    let text = work.stdout(&["report", "s.jsonl", "--format", "text"]);
    assert!(text.contains("iostone-1987") && text.contains("of the time in I/O"));
}

#[test]
fn the_critique_meters_every_trial_of_the_criticised_and_says_what_they_measure() {
    let work = Workdir::new();
    let mut arguments = vec!["suite", "critique", "target", "--size", "1MiB", "--out", "s.jsonl"];
    arguments.extend(BRIEF);
    let output = work.output(&arguments);
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("cannot be run") {
        return skipped(said);
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("What they measure (Chen and Patterson 1994"), "{text}");
    let record = record(&work.path("s.jsonl"));
    let criticised = Name::CRITICISED.map(Name::as_str);
    assert_eq!(record.suite.suite.as_ref().unwrap().benchmarks, criticised);
    assert_eq!(record.suite.trials.len(), 2 * criticised.len());
    assert!(record.suite.trials.iter().all(|trial| trial.scored && trial.io.is_some()));
    let judged = critique::judge(&record.suite);
    for one in judged {
        let name = one.benchmark.as_str();
        assert!(text.lines().any(|line| line.trim_start().starts_with(name)), "{name}: {text}");
    }
}

#[test]
fn applications_are_held_against_workloads_with_their_parameters() {
    let work = Workdir::new();
    let arguments = ["suite", "representative", "target", "--repeats", "1", "--out", "s.jsonl"];
    let brief = ["--slice", "2ms", "--scale", "0.02", "--json"];
    let json = work.json(&[&arguments[..], &brief].concat());
    let pairs = json["representative"].as_array().unwrap();
    let names: Vec<&str> = pairs.iter().map(|pair| pair["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["sort", "tpcb"]);
    let record = record(&work.path("s.jsonl"));
    assert_eq!(record.points.len(), 2, "one visit for each trial");
    for (pair, point) in pairs.iter().zip(&record.points) {
        assert_eq!(pair["workload"], serde_json::to_value(&point.workload).unwrap());
        let figure = &pair["throughput_bytes_per_s"];
        let [application, model, ratio] =
            [&figure["application"], &figure["model"], &figure["ratio"]["value"]]
                .map(|figure| figure.as_f64().unwrap());
        assert!((model / point.throughput() - 1.0).abs() < 1e-6, "{pair}");
        assert!((ratio * application / model - 1.0).abs() < 1e-6, "{pair}");
    }
    assert!(work.left_behind().is_empty(), "{:?}", work.left_behind());
}

#[test]
fn a_faithful_score_counts_whole_seconds_and_there_is_none_below_one() {
    let work = Workdir::new();
    let arguments = ["suite", "iostone-1987,iostone-1990", "target", "--repeats", "1"];
    let trials = |more: &[&str], out: &str| {
        work.stdout(&[&arguments[..], more, &["--out", out, "--quiet"]].concat());
        record(&work.path(out)).suite.trials
    };
    let figure = |trial: &Trial, name: &str| {
        let found = trial.figures.iter().find(|figure| figure.name == name);
        found.map(|figure| figure.value)
    };
    for trial in trials(&["--faithful"], "faithful.jsonl") {
        let whole_s = figure(&trial, "elapsed").unwrap().floor();
        let says_none = trial.warnings.iter().any(|warning| warning.code == Code::NoScore);
        assert_eq!(says_none, whole_s < 1.0, "{trial:?}");
        let score = figure(&trial, "score");
        assert_eq!(score.is_none(), says_none, "{trial:?}");
        assert!(score.is_none_or(|score| score.fract() == 0.0), "{trial:?}");
    }
    for trial in trials(&[], "fine.jsonl") {
        assert!(figure(&trial, "score").is_some_and(|score| score.fract() > 0.0), "{trial:?}");
    }
}

/// The operations on one file, from the moment when it is opened to read and write.
fn operations_in(trace: &str) -> Vec<Vec<Operation>> {
    let mut files: Vec<Vec<Operation>> = Vec::new();
    let (mut descriptor, mut offset) = (None, 0);
    for line in trace.lines() {
        // `1234  lseek(5, 2344448, SEEK_SET)      = 2344448`
        let Some((call, rest)) = line.split_once('(') else { continue };
        let call = call.split_whitespace().last().unwrap_or_default();
        let result = rest.rsplit_once("= ").map_or("", |(_, result)| result.trim());
        if call == "openat" {
            if rest.contains("iostone_temp_file") && rest.contains("O_RDWR") {
                (descriptor, offset) = (Some(result.to_owned()), 0);
                files.push(Vec::new());
            }
            continue;
        }
        let end = rest.find([',', ')']).unwrap_or(rest.len());
        if descriptor.as_deref() != Some(&rest[..end]) {
            continue;
        }
        match call {
            "lseek" => offset = result.parse().unwrap(),
            "read" | "write" => {
                let length: usize = result.parse().unwrap();
                let read = call == "read";
                files.last_mut().unwrap().push(Operation { read, offset, length });
                offset += length as u64;
            }
            _ => descriptor = None,
        }
    }
    files
}

#[test]
fn iostone_of_1987_makes_its_4608_operations_in_order_as_strace_sees_them() {
    let work = Workdir::new();
    let mut traced = Command::new("strace");
    traced
        .current_dir(work.target().parent().unwrap())
        .args(["-f", "-o", "trace", "-e", "trace=openat,lseek,read,write,close"])
        .arg(env!("CARGO_BIN_EXE_ioscape"))
        .args(["suite", "iostone-1987", "target", "--repeats", "1", "--out", "s.jsonl", "--quiet"])
        .stderr(Stdio::null());
    if !traced.status().is_ok_and(|status| status.success()) {
        return skipped("strace is missing or not allowed here");
    }
    let trace = std::fs::read_to_string(work.path("trace")).unwrap();
    let files = operations_in(&trace);
    assert_eq!(files.len(), 2, "one scored trial and one metered");
    for found in files {
        let (filling, timed) = found.split_at((FILE_BYTES / 4096) as usize);
        assert!(filling.iter().all(|fill| !fill.read && fill.length == 4096));
        assert_eq!(timed, operations(false));
        assert_eq!(timed.len(), 4608);
        assert_eq!(timed.iter().map(|operation| operation.length).sum::<usize>(), 12 << 20);
    }
}

#[test]
fn an_interrupted_suite_is_gone_on_with() {
    let work = Workdir::new();
    let arguments =
        ["suite", "iostone-1987,iostone-1990", "target", "--repeats", "60", "--out", "s.jsonl"];
    let mut run = Running::start(&work, &arguments);
    let trials = || {
        let text = std::fs::read_to_string(work.path("s.jsonl")).unwrap_or_default();
        text.matches("\"kind\":\"trial\"").count()
    };
    run.wait_until(|| trials() >= 3);
    run.signal(Signal::INT);
    let code = run.ended().code();
    assert!(work.left_behind().is_empty(), "{:?}", work.left_behind());
    let before = record(&work.path("s.jsonl"));
    if code != Some(130) {
        // All 122 trials were made before the signal came.
        assert_eq!(before.suite.trials.len(), 122);
        return;
    }
    assert_eq!(before.end.as_ref().unwrap().reason, EndReason::Interrupted);
    assert!(!before.suite.scores.is_empty(), "what is there is scored");
    work.stdout(&["suite", "--resume", "s.jsonl", "--quiet"]);
    let after = record(&work.path("s.jsonl"));
    assert_eq!(after.suite.trials.len(), 122);
    let kept = before.suite.trials.len();
    assert_eq!(after.suite.trials[..kept], before.suite.trials[..]);
    assert_eq!(after.suite.scores.iter().map(|score| score.repeats).max(), Some(60));
    let line = work.refusal(&["suite", "--resume", "s.jsonl"]);
    assert!(line.contains("nothing is left to do"), "{line}");
}

#[test]
fn two_targets_are_taken_in_turn_and_compared() {
    let work = Workdir::new();
    std::fs::create_dir(work.path("other")).unwrap();
    let mut arguments = vec!["suite", "iostone-1990", "target", "other"];
    arguments.extend(BRIEF);
    arguments.extend(["--json", "--out", "s.jsonl"]);
    let json = work.json(&arguments);
    let contrasts = json["contrasts"].as_array().unwrap();
    let score = contrasts.iter().find(|contrast| contrast["name"] == "score").unwrap();
    assert_eq!((score["target"].as_u64(), score["pairs"].as_u64()), (Some(1), Some(2)));
    assert!(score["ratio"]["mean"].as_f64().unwrap() > 0.0);
    assert_eq!(std::fs::read_dir(work.path("other")).unwrap().count(), 0);

    arguments.truncate(arguments.len() - 2);
    std::fs::write(work.path("mine.html"), "mine").unwrap();
    let report = |page| [&arguments[..], &["--out", "t.jsonl", "--report", page]].concat();
    let line = work.refusal(&report("mine.html"));
    assert!(line.contains("mine.html exists"), "{line}");
    assert_eq!(std::fs::read_to_string(work.path("mine.html")).unwrap(), "mine");
    work.json(&report("none"));
    assert!(!work.path("none").exists());
}

#[test]
fn the_operating_system_is_held_against_the_processor_then_and_between_records() {
    let work = Workdir::new();
    let suite = |out| {
        let arguments = ["suite", "os", "target", "--out", out];
        work.stdout(&[&arguments[..], &BRIEF].concat())
    };
    let text = suite("a.jsonl");
    assert!(text.contains("Beside the MicroVAX II measured in 1990"), "{text}");
    suite("b.jsonl");
    let text = work.stdout(&["compare", "a.jsonl", "b.jsonl"]);
    assert!(
        text.contains("the processor is × ") && text.contains("geometric mean of 6 kinds"),
        "{text}"
    );
    // Ratings by another version of the kernel are another unit.
    let other = std::fs::read_to_string(work.path("b.jsonl")).unwrap();
    let unsealed = other.replace("\"kernel_version\":1", "\"kernel_version\":2");
    assert_ne!(other, unsealed);
    std::fs::write(work.path("c.jsonl"), without_seals(&unsealed)).unwrap();
    let line = work.refusal(&["compare", "a.jsonl", "c.jsonl"]);
    assert!(line.contains("by version 2 of the integer kernel"), "{line}");
}

/// A record's lines without the seals that changing one of them broke.
fn without_seals(record: &str) -> String {
    let unsealed = |line: &str| {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        for seal in ["check", "after"] {
            value.as_object_mut().unwrap().remove(seal);
        }
        value.to_string()
    };
    record.lines().map(unsealed).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn the_tables_of_1990_come_out_as_printed_but_for_their_slips() {
    let work = Workdir::new();
    let text = work.stdout(&["suite", "table-1990"]);
    assert!(text.contains("139 of 143 relative speeds, and 9 of 15 more"), "{text}");
    let json = work.json(&["suite", "table-1990", "--json"]);
    assert_eq!(json["machines"].as_array().unwrap().len(), 10);
    assert!(work.stdout(&["suite", "list"]).contains("netnews"));
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let work = Workdir::new();
    for (arguments, part) in [
        (["suite", "iostone", "target"], "no benchmark is called `iostone`: try one of"),
        (["suite", "andrew", "nowhere"], "nowhere"),
        (["suite", "andrew", "sim:nvme"], "need a real directory"),
    ] {
        let line = work.refusal(&arguments);
        assert!(line.contains(part), "{line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");
    }
    let twice = work.refusal(&["suite", "andrew", "target", "target"]);
    assert!(twice.contains("named twice"), "{twice}");
    let no_compiler = work.refusal(&["suite", "andrew", "target", "--cc", "no-such-compiler"]);
    assert!(no_compiler.contains("no-such-compiler cannot be run"), "{no_compiler}");
    assert!(work.left_behind().is_empty());
}
