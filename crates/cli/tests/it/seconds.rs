//! How long applications take on systems where they never ran: from a trace made by hand and vectors
//! made by hand to seconds.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

use ioscape_model::line::Line;
use ioscape_model::{Element, ElementName as E, Figure, Terms};
use serde_json::Value;

use crate::applications::{RECORDS, log};
use crate::maps::{self, NVME};
use crate::workdir::Workdir;

/// A record with a vector whose syncs take so long.
fn record(work: &Workdir, name: &str, sync_s: f64) {
    std::fs::copy(work.path("r.jsonl"), work.path(name)).unwrap();
    let mut file = OpenOptions::new().append(true).open(work.path(name)).unwrap();
    let elements = [(E::Append, 1e-5), (E::AppendUnaligned, 1e-5), (E::SyncGrown, sync_s)];
    for (name, time_s) in elements {
        let element = Element {
            name,
            time_s: Figure { value: time_s, low: time_s, high: time_s },
            terms: Terms { per_call_s: time_s, ..Terms::default() },
            operations: 100,
            warnings: vec![],
        };
        let line = serde_json::to_string(&Line::Element(element)).unwrap();
        writeln!(file, "{line}").unwrap();
    }
}

fn with_records() -> Workdir {
    let work = maps::beside(&NVME);
    let trace = log();
    std::fs::copy(trace.path("log.trace"), work.path("log.trace")).unwrap();
    work.stdout(&["trace", "model", "log.trace", "-o", "app.json"]);
    record(&work, "slow.jsonl", 5e-3);
    record(&work, "fast.jsonl", 1e-3);
    record(&work, "alike.jsonl", 1.02e-3);
    work
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[test]
fn a_log_takes_its_syncs_times_what_they_take() {
    let work = with_records();
    let bytes = std::fs::metadata(work.path("app.json")).unwrap().len();
    assert!(bytes <= 64 << 10, "{bytes}");
    let said = work.json(&["predict", "slow.jsonl", "--app", "app.json", "--json"]);
    let mut names = keys(&said);
    names.sort_unstable();
    assert_eq!(
        names,
        ["app", "format_version", "largest", "seconds", "unclassified_fraction", "warnings"]
    );
    // Two calls for each record, 2 µs of work before each.
    let expected = RECORDS as f64 * (5e-3 + 1e-5 + 2.0 * 2e-6);
    let value = said["seconds"]["value"].as_f64().unwrap();
    assert!((value / expected - 1.0).abs() < 1e-3, "{value} is not {expected}");
    assert_eq!(said["largest"][0]["category"], "sync_grown");
    assert_eq!(said["largest"][0]["count"], RECORDS);
    assert_eq!(said["unclassified_fraction"], 0.0);
    let text = work.stdout(&["predict", "slow.jsonl", "--app", "app.json"]);
    assert!(text.starts_with("It would take 15."), "{text}");
    assert!(text.contains("by the ratio of fsync times"), "{text}");
    let faster = ["predict", "slow.jsonl", "--app", "app.json", "--set", "device=2x", "--json"];
    let halved = work.json(&faster)["seconds"]["value"].as_f64().unwrap();
    assert!((halved / (expected - RECORDS as f64 * 2.5e-3) - 1.0).abs() < 1e-3, "{halved}");
}

#[test]
fn systems_are_ranked_and_the_cheapest_in_time_is_named() {
    let work = with_records();
    let records = ["compare", "slow.jsonl", "fast.jsonl", "alike.jsonl", "--app", "app.json"];
    let ranked = work.json(&[&records[..], &["--json"]].concat());
    let order: Vec<(&str, &str)> = ranked["systems"]
        .as_array()
        .unwrap()
        .iter()
        .map(|system| (system["record"].as_str().unwrap(), system["verdict"].as_str().unwrap()))
        .collect();
    assert_eq!(
        order,
        [("fast.jsonl", "fastest"), ("alike.jsonl", "alike"), ("slow.jsonl", "slower")]
    );
    let asked = ["--price", "A=1,B=3,C=2", "--deadline", "10s"];
    let text = work.stdout(&[&records[..], &asked].concat());
    assert!(text.contains("alike.jsonl is the cheapest"), "{text}");
    assert!(text.starts_with("fast.jsonl is the fastest"), "{text}");
}

#[test]
fn what_cannot_be_answered_is_refused_in_one_line() {
    let work = with_records();
    std::fs::write(
        work.path("hand.json"),
        r#"{"elapsed_s": 9, "five": {"unique_bytes": 1000000,
        "size_mean": 8192, "read_frac": 0.7, "seq_frac": 0.1, "process_num": 1}}"#,
    )
    .unwrap();
    for (arguments, part) in [
        (&["predict", "r.jsonl", "--app", "app.json"][..], "no system vector"),
        (&["compare", "slow.jsonl", "r.jsonl", "--app", "app.json"], "no system vector"),
        (&["predict", "slow.jsonl", "--app", "app.json", "--set", "depth=2"], "unknown key"),
        (&["predict", "slow.jsonl", "--app", "slow.jsonl"], "no application model"),
        (&["predict", "slow.jsonl", "--app", "app.json", "--depth", "2"], "leave out flags"),
    ] {
        let line = work.refusal(arguments);
        assert!(line.contains(part), "{arguments:?}: {line}");
    }
    let by_hand = work.json(&["predict", "slow.jsonl", "--app", "hand.json", "--json"]);
    assert!(by_hand["warnings"][0].as_str().unwrap().contains("five parameters"));
    assert!(Path::new(&work.path("slow.jsonl")).exists());
}

#[test]
fn a_program_is_recorded_counted_and_asked_of_a_system() {
    let work = with_records();
    let file = work.path("made");
    let output = format!("of={}", file.display());
    let command = ["dd", "if=/dev/zero", &output, "bs=4096", "count=256", "conv=fsync"];
    let record = ["trace", "record", "-o", "dd.trace", "--quiet", "--"];
    work.stdout(&[&record[..], &command].concat());
    let shown = work.json(&["trace", "model", "dd.trace"]);
    let counted =
        |word: &str, what: &str| shown["demand"]["categories"][word][what].as_u64().unwrap_or(0);
    assert_eq!((counted("append", "count"), counted("append", "bytes")), (256, 256 * 4096));
    assert_eq!((counted("create", "count"), counted("close_written", "count")), (1, 1));
    let sync = ["count", "pages", "extents"].map(|what| counted("sync_new", what));
    assert_eq!(sync, [1, 256, 1]);
    work.stdout(&["trace", "model", "dd.trace", "-o", "dd.json"]);
    let said = work.json(&["predict", "slow.jsonl", "--app", "dd.json", "--json"]);
    let largest = said["largest"].as_array().unwrap();
    let term = largest.iter().find(|term| term["category"] == "sync_new").unwrap();
    assert_eq!(term["count"], 1);
}
