//! Two targets measured in alternation: directories, simulated devices, and one of each.

use ioscape_model::{EndReason, Method};
use rustix::process::Signal;

use crate::running::{Running, points};
use crate::workdir::{Workdir, record};

const QUICK: [&str; 5] = ["compare", "--live", "--json", "--quiet", "--record"];

fn live(work: &Workdir, arguments: &[&str]) -> serde_json::Value {
    work.json(&[&QUICK, arguments].concat())
}

#[test]
fn two_simulated_devices_are_told_apart_and_one_is_not_told_from_itself() {
    let work = Workdir::new();
    let seed = ["--seed", "5", "--budget", "4m", "-w", "compile", "-w", "oltp"];
    let same = live(&work, &[&["same", "sim:nvme", "sim:nvme"], &seed[..]].concat());
    assert_eq!(same["verdict"], "no_difference_shown", "{same:#}");
    assert_eq!(same["comparisons"].as_array().unwrap().len(), 2);
    for comparison in same["comparisons"].as_array().unwrap() {
        let [low, value, high] =
            ["low", "value", "high"].map(|end| comparison["ratio"][end].as_f64().unwrap());
        assert!(low <= value && value <= high, "{comparison}");
        assert!(comparison["pairs"].as_u64().unwrap() >= 5, "{comparison}");
        assert_eq!(comparison["record"], "same-B.jsonl");
    }
    let arguments = ["compare", "--live", "sim:nvme", "sim:hdd", "--tolerance", "5%"];
    let more = ["--record", "apart", "--out", "apart.html"];
    let output = work.output(&[&arguments[..], &more, &seed].concat());
    assert_eq!(output.status.code(), Some(1), "slower than was tolerated");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("B is slower") && text.contains("Measured in alternation"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let page = std::fs::read_to_string(work.path("apart.html")).unwrap();
    assert!(page.contains("measured in alternation") && !page.contains("\"overlay\""));

    let [a, b] = ["apart-A.jsonl", "apart-B.jsonl"].map(|name| record(&work.path(name)));
    assert_eq!((a.header.method, a.header.target.path.as_str()), (Method::Compare, "sim:nvme"));
    assert_eq!(b.header.target.path, "sim:hdd");
    assert_eq!(a.points.len(), b.points.len());
    assert_eq!((a.estimates.len(), a.end.unwrap().reason), (2, EndReason::Budget));
    let again = work.json(&["compare", "same-A.jsonl", "same-B.jsonl", "--json"]);
    assert_eq!(again, same, "the records hold all that was compared");
}

#[test]
fn a_budget_for_a_few_workloads_compares_these_and_lists_the_others() {
    let work = Workdir::new();
    let arguments = ["compare", "--live", "sim:nvme", "sim:hdd", "--budget", "2m", "--seed", "7"];
    let output = work.output(&[&arguments[..], &["--record", "few"]].concat());
    assert_eq!(output.status.code(), Some(0));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("there is time for about 4 of them"), "{said}");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("Not compared for want of time: "), "{text}");
    let again = work.json(&["compare", "few-A.jsonl", "few-B.jsonl", "--json"]);
    let dropped = again["dropped"].as_array().unwrap();
    assert_eq!(again["comparisons"].as_array().unwrap().len() + dropped.len(), 12, "{again:#}");
    assert!(dropped.iter().all(|dropped| dropped["want_of"] == "time"), "{again:#}");
    for side in ["few-A.jsonl", "few-B.jsonl"] {
        let listed = record(&work.path(side)).end.unwrap().dropped;
        assert_eq!(listed.len(), dropped.len());
        for (one, other) in listed.iter().zip(dropped) {
            assert_eq!(serde_json::to_value(&one.workload).unwrap(), other["workload"]);
        }
    }
    let told = work.stdout(&["report", "few-A.jsonl", "--format", "text"]);
    assert!(!told.is_empty());
    let required =
        ["compare", "few-A.jsonl", "few-B.jsonl", "--require-resolution", "90%", "--quiet"];
    assert_eq!(work.output(&required).status.code(), Some(1), "not all of them were resolved");
}

/// Compares two targets until there are two pairs, however long those take, and ends it by hand. Requests come seldom:
/// processors are left to other tests.
fn paired(work: &Workdir, name: &str, targets: [&str; 2]) {
    let load = ["--budget", "10m", "-w", "unique_bytes=8MiB,read_frac=1,rate=500"];
    let mut run = Running::start(work, &[&QUICK[..], &[name], &targets, &load].concat());
    let visits = |side: &str| points(&work.path(&format!("{name}-{side}.jsonl")));
    run.wait_until(|| visits("A") >= 2 && visits("B") >= 2);
    run.signal(Signal::INT);
    assert_eq!(run.ended().code(), Some(130), "{}", run.stderr());
    let json: serde_json::Value = serde_json::from_str(&run.stdout()).unwrap();
    assert!(json["comparisons"][0]["pairs"].as_u64().unwrap() >= 2, "{json:#}");
}

#[test]
fn a_directory_is_held_against_another_and_against_a_simulated_device() {
    let work = Workdir::new();
    std::fs::create_dir(work.path("second")).unwrap();
    paired(&work, "pair", ["target", "second"]);
    paired(&work, "mixed", ["target", "sim:nvme"]);
    assert!(work.left_behind().is_empty(), "{:?}", work.left_behind());
    assert_eq!(std::fs::read_dir(work.path("second")).unwrap().count(), 0);
    let [a, b] = ["A", "B"].map(|side| record(&work.path(&format!("pair-{side}.jsonl"))));
    assert_ne!(a.header.target.path, b.header.target.path);
    assert_eq!(a.header.host.memory_limit_bytes, b.header.host.memory_limit_bytes);
}

#[test]
fn what_cannot_be_measured_in_alternation_is_refused_in_one_line() {
    let work = Workdir::new();
    let quick = ["--budget", "1m", "--quiet", "--seed", "1"];
    for prefix in ["one", "two"] {
        let more = ["compare", "--live", "sim:nvme", "sim:nvme", "-w", "oltp", "--record", prefix];
        work.stdout(&[&more[..], &quick].concat());
    }
    for (arguments, part) in [
        (&["--live", "sim:nvme"][..], "name two"),
        (&["--live", "sim:nvme", "sim:hdd", "sim:hp-730"], "name two"),
        (&["--live", "sim:nvme", "missing"], "missing"),
        (&["--live", "sim:nvme", "sim:nvme", "--record", "one"], "one-A.jsonl exists"),
        (&["--live", "sim:nvme", "sim:nvme", "-w", "unique_bytes=64TiB"], "no room"),
        (&["--live", "sim:nvme", "sim:nvme", "-w", "oltpp"], "no workload is called"),
        (&["--live", "sim:nvme", "sim:nvme", "--memory-limit", "1G"], "own caches"),
        (&["--live", "sim:nvme", "sim:nvme", "--out", "one-A.jsonl"], "exists"),
        (&["one-A.jsonl", "two-B.jsonl"], "not measured in alternation with each other"),
        (&["one-A.jsonl", "one-A.jsonl", "one-B.jsonl"], "name only those"),
        (&["one-A.jsonl", "one-B.jsonl", "--seed", "3"], "--seed is for --live"),
    ] {
        let line = work.refusal(&[&["compare"], arguments].concat());
        assert!(
            line.contains(part) && line.trim_end().lines().count() == 1,
            "{arguments:?}: {line}"
        );
    }
    let line = work.refusal(&["run", "--resume", "one-A.jsonl"]);
    assert!(line.contains("live comparison"), "{line}");
    let short =
        ["compare", "--live", "sim:nvme", "sim:nvme", "--budget", "8s", "--record", "short"];
    let line = work.refusal(&short);
    assert!(line.contains("raise --budget, to 1") && line.lines().count() == 1, "{line}");
    assert!(!work.path("short-A.jsonl").exists(), "nothing was begun");
}
