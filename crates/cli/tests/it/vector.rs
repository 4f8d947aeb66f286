//! The system vector.

use std::collections::BTreeSet;

use ioscape_model::{ElementName, EndReason, Method, Part};
use rustix::process::Signal;

use crate::running::Running;
use crate::workdir::{Workdir, record};

const BRIEF: [&str; 4] = ["vector", "target", "--budget", "10s"];

#[test]
fn a_vector_is_a_record_in_which_each_element_is_measured_or_has_a_reason() {
    let work = Workdir::new();
    let json = work.json(&[&BRIEF[..], &["--json", "--out", "v.jsonl"]].concat());
    let record = record(&work.path("v.jsonl"));
    assert_eq!(record.header.method, Method::Vector);
    let end = record.end.as_ref().unwrap();
    assert_eq!(end.reason, EndReason::Complete);
    let measured: BTreeSet<ElementName> =
        record.elements.iter().map(|element| element.name).collect();
    let dropped = json["dropped"].as_array().unwrap();
    assert_eq!(measured.len() + dropped.len(), ElementName::ALL.len());
    assert!(dropped.iter().all(|one| !one["why"].as_str().unwrap().is_empty()), "{dropped:?}");
    let is_said = end.left_out.iter().any(|left| left.part == Part::SystemVector);
    assert_eq!(is_said, !dropped.is_empty());
    // What every directory has, and what decides run times, first of all.
    for name in [ElementName::SyncOverwritten, ElementName::Create, ElementName::StatCached] {
        assert!(measured.contains(&name), "{name}");
    }
    for element in &record.elements {
        let (name, time_s, terms) = (element.name, element.time_s, element.terms);
        assert!(time_s.low <= time_s.value && time_s.value <= time_s.high, "{name}: {time_s:?}");
        let terms = [terms.per_call_s, terms.per_byte_s, terms.per_page_s, terms.per_extent_s];
        assert!(terms.iter().all(|term| *term >= 0.0), "{name}: {terms:?}");
        assert!(terms.iter().any(|term| *term > 0.0), "{name}: {terms:?}");
        assert!(element.operations > 0);
    }
    assert!(work.left_behind().is_empty(), "{:?}", work.left_behind());
    let text = work.stdout(&["report", "v.jsonl", "--format", "text"]);
    assert!(text.contains("sync_overwritten") && text.contains("Names"), "{text}");
    assert!(!text.contains("Nothing has been measured"), "{text}");
    work.stdout(&["report", "v.jsonl"]);
    let page = std::fs::read_to_string(work.path("v.html")).unwrap();
    assert!(page.contains("The system vector") && page.contains("sync_overwritten"));
    let document = work.stdout(&["export", "v.jsonl", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["elements"].as_array().unwrap().len(), record.elements.len());
    // Held against itself no operation differs, and workloads are refused: there is no map.
    let versus = work.json(&["compare", "v.jsonl", "v.jsonl", "--json", "--tolerance", "1%"]);
    let elements = versus["systems"][0]["elements"].as_array().unwrap();
    assert_eq!(elements.len(), record.elements.len());
    let verdicts = elements.iter().map(|element| element["verdict"].as_str().unwrap());
    let mut differing = verdicts.filter(|verdict| ["faster", "slower"].contains(verdict));
    assert_eq!(differing.next(), None);
    let text = work.stdout(&["compare", "v.jsonl", "v.jsonl", "--out", "versus.html"]);
    assert!(text.contains("faster on 0, slower on 0"), "{text}");
    let page = std::fs::read_to_string(work.path("versus.html")).unwrap();
    assert!(page.contains("faster on 0, slower on 0") && !page.contains("Workload by workload"));
    let complaint = work.refusal(&["compare", "v.jsonl", "v.jsonl", "-w", "scan"]);
    assert!(complaint.contains("no map"), "{complaint}");
}

#[test]
fn what_has_no_files_is_refused_in_a_line() {
    let work = Workdir::new();
    let complaint = work.refusal(&["vector", "sim:hdd"]);
    assert!(complaint.contains("name a directory"), "{complaint}");
    let complaint = work.refusal(&["vector", "target", "--budget", "1s"]);
    assert!(complaint.contains("--budget"), "{complaint}");
    let complaint = work.refusal(&["vector", "target", "--pin"]);
    assert!(complaint.contains("leave --pin out"), "{complaint}");
    assert!(work.left_behind().is_empty());
}

#[test]
fn an_interrupted_vector_leaves_nothing() {
    let work = Workdir::new();
    let mut run =
        Running::start(&work, &["vector", "target", "--budget", "10m", "--out", "v.jsonl"]);
    run.wait_until(|| !work.left_behind().is_empty());
    run.signal(Signal::INT);
    assert_eq!(run.ended().code(), Some(130));
    assert!(work.left_behind().is_empty(), "{:?}", work.left_behind());
    assert!(!work.path("v.jsonl").exists(), "nothing measured is in it");
}
