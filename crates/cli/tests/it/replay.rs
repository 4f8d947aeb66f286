//! Replays of traces and of load made from models.

use ioscape_model::{EndReason, Method};
use serde_json::Value;

use crate::applications::{RECORDS, log};
use crate::workdir::{Workdir, record};

/// A replay's figures; every call ended as it did, and nothing is left.
fn replayed(work: &Workdir, arguments: &[&str]) -> Value {
    let document = work.json(&[arguments, &["--json"]].concat());
    let replay = document["replays"].as_array().unwrap().last().unwrap().clone();
    for kind in ["different", "only_here", "only_recorded", "shorter"] {
        assert_eq!(replay["errors"][kind], 0, "{replay}");
    }
    assert!(work.left_behind().is_empty(), "{:?}", work.left_behind());
    replay
}

#[test]
fn a_trace_is_replayed_and_becomes_a_record_like_any() {
    let work = log();
    let replay = ["replay", "log.trace", "target", "--speed", "max", "--repeats", "2"];
    let last = replayed(&work, &[&replay[..], &["-o", "r.jsonl"]].concat());
    assert_eq!((&last["calls"], &last["round"]), (&(2 * RECORDS).into(), &1.into()));
    assert_eq!(last["bytes_written"], 2300 * RECORDS);
    assert_eq!(last["counted"]["written_bytes"], 2300 * RECORDS, "by the kernel's count");
    assert_eq!(last["operations"]["DSYNC"]["count"], RECORDS);
    let kept = record(&work.path("r.jsonl"));
    assert_eq!((kept.header.method, kept.points.len()), (Method::Replay, 2));
    assert_eq!(kept.end.unwrap().reason, EndReason::Complete);
    let shown = work.json(&["trace", "show", "log.trace", "--json"]);
    assert_eq!(kept.points[0].workload.literal(), shown["workload"].as_str().unwrap());
    let text = work.stdout(&["report", "r.jsonl", "--format", "text"]);
    work.stdout(&["report", "r.jsonl", "--format", "html", "--out", "page.html"]);
    let page = std::fs::read_to_string(work.path("page.html")).unwrap();
    assert!(
        page.contains("<section id=\"replay\">") && page.contains("every call ended as it did")
    );
    assert!(text.contains("every call ended as it did") && text.contains("dsync"), "{text}");
    assert!(work.refusal(&["validate", "r.jsonl"]).contains("holds replays"));
}

#[test]
fn load_is_made_from_a_model_and_scaled() {
    let work = log();
    work.stdout(&["trace", "model", "log.trace", "-o", "app.json"]);
    let replay = ["replay", "app.json", "target", "--speed", "max", "--seed", "1"];
    let once = replayed(&work, &[&replay[..], &["-o", "1.jsonl"]].concat());
    assert_eq!(
        (&once["source"], &once["operations"]["DSYNC"]["count"]),
        (&"model".into(), &RECORDS.into())
    );
    assert_eq!(once["bytes_written"], 2300 * RECORDS);
    let scale = ["--scale", "users=3", "-o", "2.jsonl"];
    let thrice = replayed(&work, &[&replay[..], &scale].concat());
    assert_eq!(
        (&thrice["streams"], &thrice["bytes_written"]),
        (&3.into(), &(3 * 2300 * RECORDS).into())
    );
}

#[test]
fn a_web_server_s_log_is_replayed() {
    let work = Workdir::new();
    let line = |second: u32, path: &str, status: u32, bytes: u32| {
        format!(
            "203.0.113.7 - - [10/Oct/2000:13:55:{second:02} +0000] \"GET {path} HTTP/1.1\" {status} {bytes} \"-\" \"A\"\n"
        )
    };
    let lines = [line(1, "/", 200, 70_001), line(2, "/a/b.png", 200, 999), line(3, "/x", 404, 9)];
    std::fs::write(work.path("access.log"), lines.concat()).unwrap();
    work.stdout(&["trace", "import", "clf", "access.log", "-o", "web.trace"]);
    let replay =
        replayed(&work, &["replay", "web.trace", "target", "--speed", "100x", "-o", "r.jsonl"]);
    assert_eq!((&replay["bytes_read"], &replay["errors"]["alike"]), (&71_000.into(), &1.into()));
}

#[test]
fn what_cannot_be_replayed_is_refused_in_one_line() {
    let work = log();
    std::fs::write(work.path("x"), "hello").unwrap();
    for (arguments, part) in [
        (&["x", "target"][..], "no application model"),
        (&["missing", "target"], "cannot open missing"),
        (&["log.trace", "sim:nvme"], "name a directory"),
        (&["log.trace", "x"], "is a regular file"),
        (&["log.trace", "target", "--speed", "0"], "a speed lies between"),
        (&["log.trace", "target", "--speed", "max", "--arrivals", "open"], "leave one out"),
        (&["log.trace", "target", "--for", "1s"], "are for models"),
        (&["log.trace", "target", "--scale", "users=2"], "are for models"),
        (&["log.trace", "target", "--scale", "files=2"], "there is no files to scale"),
        (&["log.trace", "target", "-o", "x"], "exists"),
    ] {
        let line = work.refusal(&[&["replay"], arguments].concat());
        assert!(line.contains(part), "{arguments:?}: {line}");
    }
    assert!(work.left_behind().is_empty());
}
