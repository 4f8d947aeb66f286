//! Records over time, from `add` to the gate's exit code, on simulated drives.

use serde_json::Value;

use crate::workdir::Workdir;

/// Measures one workload on a simulated drive with this seed.
fn measured(work: &Workdir, target: &str, seed: usize) -> String {
    let (record, seed) =
        (format!("{}-{seed}.jsonl", target.replace([':', '.'], "-")), seed.to_string());
    let output = work.output(&[
        "measure",
        target,
        "-w",
        "oltp",
        "--rounds",
        "2",
        "--precision",
        "50%",
        "--seed",
        &seed,
        "--out",
        &record,
        "--quiet",
    ]);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    record
}

fn kept(work: &Workdir, runs: usize) {
    for seed in 0..runs {
        let record = measured(work, "sim:nvme", seed);
        work.stdout(&["history", "add", "kept", &record]);
    }
}

#[test]
fn records_are_kept_once_and_shown_as_text_document_page_and_gauges() {
    let work = Workdir::new();
    kept(&work, 4);
    let again = work.output(&["history", "add", "kept", "sim-nvme-0.jsonl"]);
    assert!(String::from_utf8_lossy(&again.stderr).contains("is kept already"));
    let document = work.json(&["history", "show", "kept", "--json"]);
    assert_eq!(document["runs"].as_array().unwrap().len(), 4);
    assert_eq!(document["lines"][0]["name"], "oltp");
    assert_eq!(document["lines"][0]["changes"], Value::Array(vec![]));
    let text = work.stdout(&["history", "show", "kept"]);
    assert!(text.contains("4 runs of main") && text.contains("no change shown"), "{text}");
    let gauges = work.stdout(&["history", "show", "kept", "--openmetrics"]);
    assert!(
        gauges.contains("ioscape_history_level_bytes_per_second{label=\"main\",line=\"oltp\"}")
    );
    assert!(gauges.ends_with("# EOF\n"));
    for _ in 0..2 {
        work.stdout(&["history", "show", "kept", "--page", "page.html"]);
    }
    let page = std::fs::read_to_string(work.path("page.html")).unwrap();
    assert!(page.contains("main over time") && page.contains("oltp"));
}

#[test]
fn lines_of_the_data_sheet_are_followed_once_each_with_their_tails() {
    let work = Workdir::new();
    work.stdout(&["run", "sim:nvme", "--quick", "--out", "r.jsonl", "--report", "none", "--quiet"]);
    work.stdout(&["history", "add", "kept", "r.jsonl"]);
    let document = work.json(&["history", "show", "kept", "--json"]);
    let lines = document["lines"].as_array().unwrap();
    for name in ioscape_model::datasheet::names() {
        for (name, unit, better) in
            [(name.to_owned(), "bytes/s", "higher"), (format!("{name} p99"), "s", "lower")]
        {
            let named: Vec<&Value> =
                lines.iter().filter(|line| line["name"] == name.as_str()).collect();
            assert_eq!(named.len(), 1, "{name}");
            assert_eq!(named[0]["unit"], unit);
            assert_eq!(named[0]["better"], better);
        }
    }
}

#[test]
fn a_gate_passes_what_is_alike_and_fails_what_is_worse() {
    let work = Workdir::new();
    kept(&work, 5);
    let alike = measured(&work, "sim:nvme", 77);
    let passed = work.output(&["history", "check", "kept", &alike, "--tolerance", "20%"]);
    assert_eq!(passed.status.code(), Some(0), "{passed:?}");
    let worse = measured(&work, "sim:hdd", 1);
    let failed =
        work.output(&["history", "check", "kept", &worse, "--markdown", "comment.md", "--json"]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    let document: Value = serde_json::from_slice(&failed.stdout).unwrap();
    assert_eq!(document["standing"], "worse");
    let comment = std::fs::read_to_string(work.path("comment.md")).unwrap();
    assert!(comment.contains("### ioscape: worse") && comment.contains("```mermaid"), "{comment}");
}

#[test]
fn what_cannot_be_kept_or_found_is_refused_in_one_line() {
    let work = Workdir::new();
    let said = work.refusal(&["history", "show", "nowhere"]);
    assert!(said.contains("there is no history") && said.lines().count() == 1, "{said}");
    kept(&work, 1);
    assert!(work.refusal(&["history", "show", "kept", "--label", "other"]).contains("main"));
    assert!(work.refusal(&["history", "add", "kept", "none.jsonl"]).contains("none.jsonl"));
    let bad = work.output(&["history", "add", "kept", "sim-nvme-0.jsonl", "--label", "../x"]);
    assert_eq!(bad.status.code(), Some(2));
}
