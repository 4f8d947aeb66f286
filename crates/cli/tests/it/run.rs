//! The main job, on simulated devices and on a real directory.

use ioscape_model::{Role, Workload, named};

use crate::workdir::{Workdir, record};

#[test]
fn a_simulated_device_is_mapped_from_end_to_end() {
    let work = Workdir::new();
    let json =
        work.json(&["run", "sim:nvme", "--out", "r.jsonl", "--seed", "7", "--json", "--quiet"]);
    assert_eq!(json["record"], "r.jsonl");
    assert_eq!(json["report"], "r.html");
    let record = record(&work.path("r.jsonl"));
    assert_eq!(json["borders"].as_array().unwrap().len(), record.borders.len());
    assert_eq!(json["regions"].as_array().unwrap().len(), record.regions.len());
    assert!(record.borders.len() >= 2, "{:?}", record.borders);
    assert!(
        record.findings.iter().any(|finding| finding.code == ioscape_model::FindingCode::ReadCache)
    );
    assert!(!record.map.unwrap().provisional);
    let end = record.end.unwrap();
    assert!(end.elapsed_s < 606.0, "{}", end.elapsed_s);
    assert!(end.spent_s.measuring > 0.5 * end.spent_s.total());
    let page = std::fs::read_to_string(work.path("r.html")).unwrap();
    assert!(page.len() > 5000 && page.len() < 1 << 20);
}

#[test]
fn the_same_seed_gives_the_same_points() {
    let work = Workdir::new();
    for name in ["a.jsonl", "b.jsonl"] {
        let arguments = ["run", "sim:hdd", "--out", name, "--seed", "3", "--budget", "3m"];
        work.stdout(&[&arguments[..], &["--report", "none", "--quiet"]].concat());
    }
    let [a, b] = ["a.jsonl", "b.jsonl"].map(|name| record(&work.path(name)).points);
    assert_eq!(a, b);
}

#[test]
fn a_directory_is_mapped_and_left_as_it_was() {
    let work = Workdir::alone();
    let json = work.json(&[
        "run",
        "target",
        "--budget",
        "8s",
        "--unique-max",
        "32M",
        "--out",
        "r.jsonl",
        "--json",
    ]);
    let record = record(&work.path("r.jsonl"));
    assert!(record.points.iter().any(|point| point.engine == "psync"));
    // From the least that may be asked for to the most data that was visited, within what was allowed.
    let from = record.regions.first().unwrap().unique_bytes.from;
    let least = record.header.ranges.unique_bytes.min;
    assert_eq!(from as u64, least, "{:#?}", record.regions);
    let visited = record.points.iter().map(|point| point.workload.unique_bytes).max().unwrap();
    assert_eq!(record.regions.last().unwrap().unique_bytes.to as u64, visited);
    assert!((16 << 20..=32 << 20).contains(&visited), "{visited}");
    assert_eq!(json["elapsed_s"].as_f64(), record.end.map(|end| end.elapsed_s));
    assert_eq!(json["reason"], "budget");
    assert!(work.left_behind().is_empty(), "{:?}", work.left_behind());
}

#[test]
fn a_dry_run_prints_the_plan_and_writes_nothing() {
    let work = Workdir::new();
    let text = work.stdout(&["run", "target", "--dry-run"]);
    for plan in ["blend", "paper", "orthogonal", "full grid"] {
        assert!(text.contains(plan), "{plan}: {text}");
    }
    assert!(text.contains("7776"), "{text}");
    assert!(work.left_behind().is_empty());
    assert_eq!(std::fs::read_dir(work.path(".")).unwrap().count(), 1);
}

#[test]
fn a_report_can_be_rendered_again_and_is_the_same() {
    let work = Workdir::new();
    work.stdout(&["run", "sim:hdd", "--out", "r.jsonl", "--budget", "5m", "--quiet"]);
    let first = std::fs::read(work.path("r.html")).unwrap();
    work.stdout(&["report", "r.jsonl", "--out", "again.html"]);
    assert_eq!(first, std::fs::read(work.path("again.html")).unwrap());
    let text = work.stdout(&["report", "r.jsonl", "--format", "text"]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_budget_that_no_visit_fits_is_exit_code_3_and_leaves_nothing() {
    let work = Workdir::new();
    let run = ["run", "sim:nvme", "--budget", "1s", "--out", "r.jsonl", "--quiet"];
    for more in [&[][..], &["--json"]] {
        let output = work.output(&[&run[..], more].concat());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(said.contains("nothing was measured") && said.contains("--budget"), "{said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{said}");
        assert!(output.stdout.is_empty());
    }
    assert_eq!(std::fs::read_dir(work.path(".")).unwrap().count(), 1, "only the target is there");
}

#[test]
fn the_most_data_touched_bounds_a_simulated_device_too() {
    let work = Workdir::new();
    let plan = |most| ["run", "sim:nvme", "--unique-max", most, "--dry-run", "--json"];
    assert_eq!(work.json(&plan("64M"))["ranges"]["unique_bytes"]["max"], 64 << 20);
    assert!(work.refusal(&plan("0")).contains("only 0 B of test data fit"));
}

#[test]
fn a_page_of_another_record_is_not_replaced() {
    let work = Workdir::new();
    for (target, out) in [("sim:hdd", "a.jsonl"), ("sim:nvme", "b.jsonl")] {
        work.stdout(&["run", target, "--out", out, "--budget", "3m", "--quiet"]);
    }
    work.stdout(&["compare", "a.jsonl", "b.jsonl", "--out", "c.html", "--quiet"]);
    let page = std::fs::read(work.path("b.html")).unwrap();
    for (arguments, other) in [
        (&["report", "a.jsonl", "--out", "b.html"][..], "b.html"),
        (&["report", "a.jsonl", "--out", "c.html"], "c.html"),
        (&["report", "a.jsonl", "b.jsonl", "--out", "b.html"], "b.html"),
        (&["run", "--resume", "a.jsonl", "--budget", "4m", "--report", "b.html"], "b.html"),
    ] {
        let line = work.refusal(arguments);
        let said = format!("{other} exists and is the page of another record");
        assert!(line.contains(&said), "{arguments:?}: {line}");
    }
    assert_eq!(std::fs::read(work.path("b.html")).unwrap(), page);
    work.stdout(&["report", "b.jsonl", "--out", "b.html"]);
    work.stdout(&["report", "a.jsonl", "b.jsonl", "--out", "c.html"]);
    work.stdout(&["run", "--resume", "a.jsonl", "--budget", "4m", "--quiet"]);
}

#[test]
fn a_report_replaces_a_page_of_ours_and_nothing_else() {
    let work = Workdir::new();
    work.stdout(&["run", "sim:hdd", "--out", "r.jsonl", "--budget", "5m", "--quiet"]);
    work.stdout(&["report", "r.jsonl"]);
    std::fs::write(work.path("notes.html"), "mine").unwrap();
    std::fs::write(work.path("about.html"), "<title>Notes on ioscape</title>").unwrap();
    let html = ["report", "r.jsonl", "--out"];
    let text = ["report", "r.jsonl", "--format", "text", "--out"];
    for (arguments, file, said) in [
        (&html[..], "notes.html", "is no page of an earlier report"),
        (&html, "about.html", "is no page of an earlier report"),
        (&text, "notes.html", "notes.html exists: name another"),
        (&text, "r.html", "r.html exists: name another"),
    ] {
        let complaint = work.refusal(&[arguments, &[file]].concat());
        assert!(complaint.contains(said), "{complaint}");
    }
    let page = std::fs::read(work.path("r.html")).unwrap();
    std::fs::write(work.path("r.html"), "").unwrap();
    work.stdout(&["report", "r.jsonl"]);
    assert_eq!(std::fs::read(work.path("r.html")).unwrap(), page, "an empty one is written anew");
    // Not a file: nothing to be replaced, and nobody who would answer.
    let piped = work.output(&["report", "r.jsonl", "--out", "/dev/stdout"]);
    assert_eq!(piped.stdout, page);
    assert_eq!(std::fs::read(work.path("notes.html")).unwrap(), b"mine");
}

#[test]
fn a_map_visits_the_workloads_that_it_was_asked_for_and_refuses_those_it_cannot() {
    let work = Workdir::new();
    let literal = "unique_bytes=200MiB,size_mean=40KiB,read_frac=0.7,seq_frac=0.2";
    let run = ["run", "sim:nvme", "--report", "none", "--quiet", "--seed", "7"];
    let asked = ["--out", "r.jsonl", "--budget", "5m", "-w", literal, "-w", "varmail"];
    work.stdout(&[&run[..], &asked].concat());
    let record = record(&work.path("r.jsonl"));
    let wanted = Workload::parse(literal).unwrap();
    assert_eq!(record.header.asked, [wanted.clone(), named::named("varmail").unwrap()]);
    for asked in &record.header.asked {
        let visits = record.points.iter().filter(|point| point.workload == *asked);
        assert!(visits.clone().count() > 0, "{asked}");
        assert!(visits.into_iter().all(|point| point.role == Role::Named));
    }
    // What was visited is answered as it was measured.
    let said = work.json(&["predict", "r.jsonl", "-w", literal, "--json"]);
    let said = said["predictions"][0]["throughput_bytes_per_s"]["value"].as_f64().unwrap();
    let measured = record.estimates.iter().find(|estimate| estimate.workload == wanted).unwrap();
    let ratio = said / measured.throughput_bytes_per_s.mean;
    assert!((0.8..1.25).contains(&ratio), "{ratio}");

    for (arguments, reason) in [
        (["-w", "unique_bytes=500GiB"], "reaches"),
        (["-w", "state=cold"], "state"),
        (["-w", "no-such-name"], "no-such-name"),
    ] {
        let refusal = work.refusal(&[&run[..], &["--out", "x.jsonl"], &arguments].concat());
        assert!(refusal.contains(reason), "{refusal}");
    }
}
