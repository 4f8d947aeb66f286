//! Predictions compared with measurements, on simulated devices and on a real directory.

use std::collections::BTreeSet;

use ioscape_engine::target::open_directory;
use ioscape_engine::{Clock, host};
use ioscape_model::{EndReason, Method, Role};
use rustix::process::Signal;
use serde_json::Value;

use crate::maps::{self, HDD};
use crate::running::Running;
use crate::workdir::{Workdir, record};

fn error_of(json: &Value, model: &str, figure: &str) -> f64 {
    json["models"][model][figure].as_f64().unwrap()
}

#[test]
fn a_simulated_device_is_validated_from_end_to_end() {
    let work = maps::beside(&HDD);
    let before = std::fs::read(work.path("r.jsonl")).unwrap();
    let json = work.json(&[
        "validate",
        "r.jsonl",
        "--workloads",
        "20",
        "--seed",
        "5",
        "--out",
        "v.jsonl",
        "--json",
        "--quiet",
    ]);
    assert_eq!(
        (&json["seed"], &json["workloads"], &json["record"]),
        (&5.into(), &20.into(), &"r.jsonl".into())
    );
    for point in json["points"].as_array().unwrap() {
        assert_eq!(point["measured_bytes_per_s"].as_array().unwrap().len(), 2);
        let blend = &point["predicted_bytes_per_s"]["blend"];
        let [low, value, high] = ["low", "value", "high"].map(|end| blend[end].as_f64().unwrap());
        assert!(0.0 < low && low < value && value < high, "{blend}");
    }
    assert_eq!(json["points"].as_array().unwrap().len(), 20);
    let [median, p75, p90] =
        ["median", "p75", "p90"].map(|figure| error_of(&json, "blend", figure));
    assert!(0.0 < median && median <= p75 && p75 <= p90, "{median} {p75} {p90}");
    assert!(json["models"]["blend"]["coverage"].as_f64().unwrap() > 0.5);
    assert!(json["repeatability"]["median"].as_f64().unwrap() > 0.0);

    let trial = record(&work.path("v.jsonl"));
    assert_eq!((trial.header.method, trial.header.seed), (Method::Validate, 5));
    assert!(trial.header.forecast.unwrap().elapsed_s > 0.0);
    let visits: Vec<_> = trial.points.iter().filter(|p| p.role == Role::Validation).collect();
    let rounds: Vec<u32> = visits.iter().map(|visit| visit.round).collect();
    assert_eq!(rounds, [vec![0; 20], vec![1; 20]].concat(), "interleaved rounds");
    let seeds: BTreeSet<u64> = visits.iter().map(|visit| visit.seed).collect();
    assert_eq!(seeds.len(), 40, "requests of its own for every visit");
    assert_eq!(trial.estimates.len(), 20);
    assert_eq!(trial.end.unwrap().reason, EndReason::Complete);
    assert!(!trial.map.unwrap().provisional);

    let page = std::fs::read_to_string(work.path("v.html")).unwrap();
    assert!(page.contains("id=\"charts\"") && page.trim_end().ends_with("</html>"));
    assert_eq!(before, std::fs::read(work.path("r.jsonl")).unwrap(), "the record is only read");
}

#[test]
fn the_same_seed_gives_the_same_validation_and_the_terminal_says_it() {
    let work = Workdir::new();
    let device = "sim:sparcstation-1plus";
    let run = ["run", device, "--out", "r.jsonl", "--report", "none", "--seed", "3", "--quiet"];
    work.stdout(&run);
    let validate = |out: &str, seed: &str| {
        work.stdout(&[
            "validate",
            "r.jsonl",
            "--workloads",
            "12",
            "--seed",
            seed,
            "--out",
            out,
            "--report",
            "none",
        ])
    };
    let (one, other) = (validate("a.jsonl", "7"), validate("b.jsonl", "7"));
    assert_eq!(one, other);
    let points = |name: &str| record(&work.path(name)).points;
    assert_eq!(points("a.jsonl"), points("b.jsonl"));
    assert_ne!(one, validate("c.jsonl", "8"));
    for part in ["12 random workloads, each measured twice, seed 7", "blend", "repeatability"] {
        assert!(one.contains(part), "{part}: {one}");
    }
    assert!(one.lines().all(|line| line.chars().count() <= 80), "{one}");
    assert!(!work.path("a.html").exists());
}

#[test]
fn a_tolerance_that_is_missed_is_exit_code_1() {
    let work = maps::beside(&HDD);
    let run = |tolerance: &str, out: &str| {
        work.output(&[
            "validate",
            "r.jsonl",
            "--workloads",
            "10",
            "--seed",
            "1",
            "--tolerance",
            tolerance,
            "--out",
            out,
            "--report",
            "none",
            "--quiet",
        ])
    };
    let missed = run("0.001%", "a.jsonl");
    assert_eq!(missed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missed.stderr).contains("not within 0.0 %"));
    assert_eq!(run("99%", "b.jsonl").status.code(), Some(0));
}

#[test]
fn what_a_benchmark_alone_would_predict_is_drawn_beside_it() {
    let work = maps::beside(&HDD);
    let brief = ["--repeats", "1", "--slice", "2ms", "--scale", "0.02", "--quiet"];
    let suite = ["suite", "iostone-1990,tpcb", "target", "--out", "s.jsonl"];
    work.stdout(&[&suite[..], &brief].concat());
    let validated = |out: &str, more: &[&str]| {
        let validate = ["validate", "r.jsonl", "--workloads", "4", "--seed", "1", "--out", out];
        let text = work.stdout(&[&validate[..], more].concat());
        let page = work.path(out).with_extension("html");
        (text, std::fs::read_to_string(page).unwrap())
    };
    let (text, page) = validated("v.jsonl", &["--suite", "s.jsonl"]);
    let (without, page_without) = validated("w.jsonl", &[]);
    for name in ["iostone-1990", "tpcb"] {
        let said = text.split("half of the errors are above").nth(1).unwrap_or_default();
        let said = said.split("(Chen").next().unwrap_or_default();
        assert!(said.contains(name) && !without.contains(name), "{text}");
        assert!(page.contains(name) && !page_without.contains(name), "{name}");
    }
    let none = ["validate", "r.jsonl", "--workloads", "2", "--out", "x.jsonl", "--suite"];
    let line = work.refusal(&[&none[..], &["r.jsonl", "--report", "none", "-q"]].concat());
    assert!(line.contains("r.jsonl holds no benchmark that predicts"), "{line}");
}

#[test]
fn what_is_no_map_or_exists_already_is_refused() {
    let work = maps::beside(&HDD);
    work.stdout(&["measure", "sim:hdd", "--rounds", "1", "--out", "m.jsonl"]);
    let validate =
        ["validate", "r.jsonl", "--workloads", "2", "--out", "v.jsonl", "--report", "none", "-q"];
    work.stdout(&validate);
    std::fs::write(work.path("mine.html"), "precious").unwrap();
    for (arguments, part) in [
        (validate.as_slice(), "v.jsonl exists"),
        (&["validate", "r.jsonl", "--out", "mine.jsonl"], "mine.html exists"),
        (&["validate", "m.jsonl"], "holds a single measurement"),
        (&["validate", "v.jsonl"], "holds a validation"),
        (&["run", "--resume", "v.jsonl"], "holds a validation"),
        (&["validate", "missing.jsonl"], "missing.jsonl"),
    ] {
        let line = work.refusal(arguments);
        assert!(line.contains(part), "{arguments:?}: {line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");
    }
    assert_eq!(std::fs::read_to_string(work.path("mine.html")).unwrap(), "precious");
    assert!(!work.path("mine.jsonl").exists());
}

/// The record of a simulated map that claims to have been made in the real directory, with room
/// for small files only, so that validating it takes seconds; `change` makes it another system's.
fn claimed(work: &Workdir, name: &str, change: impl Fn(&mut Value)) {
    let map = std::str::from_utf8(&HDD).unwrap();
    let (header, rest) = map.split_once('\n').unwrap();
    let mut claimed: Value = serde_json::from_str(header).unwrap();
    let target = open_directory(work.target()).unwrap().describe();
    claimed["host"] = serde_json::to_value(host::describe(&Clock::start())).unwrap();
    claimed["target"] = serde_json::to_value(target).unwrap();
    claimed["hints"]["room_bytes"] = (48 << 20).into();
    claimed.as_object_mut().unwrap().remove("check");
    change(&mut claimed);
    std::fs::write(work.path(name), format!("{claimed}\n{rest}")).unwrap();
}

/// What is said, and what of the header makes it another system's.
type Change<'a> = (&'a str, &'a dyn Fn(&mut Value));

#[test]
fn another_system_than_the_record_s_is_refused() {
    let work = Workdir::new();
    let other = work.path("other");
    std::fs::create_dir(&other).unwrap();
    std::os::unix::fs::symlink(&other, work.path("moved")).unwrap();
    let moved = work.path("moved").to_str().unwrap().to_owned();
    let changes: [Change<'_>; 5] = [
        ("its target was", &|header| header["target"]["path"] = moved.clone().into()),
        ("was minixfs and is", &|header| header["target"]["filesystem"] = "minixfs".into()),
        ("the memory limit was", &|header| header["host"]["memory_limit_bytes"] = 77.into()),
        ("the dirty limit was", &|header| header["host"]["dirty_limit_bytes"] = 4096.into()),
        ("/nowhere", &|header| header["target"]["path"] = "/nowhere".into()),
    ];
    for (part, change) in changes {
        claimed(&work, "claimed.jsonl", change);
        let line = work.refusal(&["validate", "claimed.jsonl", "--out", "v.jsonl"]);
        assert!(line.contains(part), "{part}: {line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");
        assert!(!work.path("v.jsonl").exists(), "{part}");
        assert!(work.left_behind().is_empty(), "{part}");
    }
}

#[test]
fn an_interrupted_validation_scores_what_was_measured_twice() {
    let work = Workdir::new();
    claimed(&work, "claimed.jsonl", |_| {});
    // With this seed both workloads have one process, which leaves a processor to other tests.
    let validate = ["validate", "claimed.jsonl", "--workloads", "2", "--seed", "5"];
    let mut run = Running::start(&work, &[&validate[..], &["--out", "v.jsonl"]].concat());
    let text = || std::fs::read_to_string(work.path("v.jsonl")).unwrap_or_default();
    run.wait_until(|| text().contains("\"round\":1,\"role\":\"validation\""));
    run.signal(Signal::INT);
    let status = run.ended();
    let said = run.stdout();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(
        said.contains("It was interrupted") && said.contains("of 2 random workloads"),
        "{said}"
    );
    assert!(said.contains("blend"), "{said}");
    let trial = record(&work.path("v.jsonl"));
    assert_eq!(trial.end.unwrap().reason, EndReason::Interrupted);
    assert!(trial.points.iter().all(|point| point.workload.process_num == 1));
    assert!(work.path("v.html").exists());
    assert!(work.left_behind().is_empty(), "{:?}", work.left_behind());
}
