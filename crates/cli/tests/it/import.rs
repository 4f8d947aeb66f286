//! Results of fio become a record that the other commands take.

use serde_json::{Value, json};

use crate::workdir::{Workdir, record};

/// What fio 3.33 wrote for six jobs, one of them held to a rate and one with hot spots.
const RESULTS: &str = include_str!("import/fio-3.33.json");

fn imported() -> Workdir {
    let work = Workdir::new();
    std::fs::write(work.path("fio.json"), RESULTS).unwrap();
    work.stdout(&["import", "fio", "fio.json", "--out", "r.jsonl"]);
    work
}

#[test]
fn jobs_become_points_and_those_that_cannot_are_named() {
    let work = imported();
    let record = record(&work.path("r.jsonl"));
    let literals: Vec<String> =
        record.points.iter().map(|point| point.workload.literal()).collect();
    let fixed = "size_mean=16384,read_frac";
    assert_eq!(
        literals,
        [
            format!("unique_bytes=16777216,{fixed}=1,seq_frac=0,process_num=1,size_dist=fixed"),
            format!("unique_bytes=33554432,{fixed}=0.7,seq_frac=0,process_num=2,size_dist=fixed"),
            format!("unique_bytes=33554432,{fixed}=0.7,seq_frac=0,process_num=2,size_dist=fixed"),
            format!("unique_bytes=16777216,{fixed}=0,seq_frac=1,process_num=1"),
        ]
    );
    // Two processes listed one by one and two as a group are two visits to one workload.
    assert_eq!(record.points[2].round, 1);
    assert_eq!(record.estimates.len(), 3);
    assert_eq!(record.header.start_time, "2026-11-20T17:00:00Z", "when fio ran, not now");
    let doubts: Vec<&str> = record.warnings.iter().map(|w| w.text.as_str()).collect();
    assert!(doubts.iter().any(|text| text.contains("`held-to-a-rate` is left out")), "{doubts:?}");
    assert!(doubts.iter().any(|text| text.contains("`zipf` is left out")), "{doubts:?}");
    let doubt = &record.points[3].warnings[0];
    assert!(doubt.text.contains("law of their own"), "{doubt:?}");
    assert!(doubt.figures["size_variation"] > 0.0, "{doubt:?}");
    let document: Value = serde_json::from_str(RESULTS).unwrap();
    let rate = document["jobs"][0]["read"]["bw_bytes"].as_f64().unwrap();
    assert!((record.points[0].throughput() / rate - 1.0).abs() < 1e-3);
    let times = &document["jobs"][0]["read"];
    let point = &record.points[0].response_time_s;
    let p99 = times["clat_ns"]["percentile"]["99.000000"].as_f64().unwrap();
    assert!((point.p99 * 1e9 / p99 - 1.0).abs() < 1e-9);
    assert!((point.mean * 1e9 / times["lat_ns"]["mean"].as_f64().unwrap() - 1.0).abs() < 1e-9);
}

#[test]
fn the_same_results_give_the_same_record() {
    let lines = |work: &Workdir| std::fs::read_to_string(work.path("r.jsonl")).unwrap();
    assert_eq!(lines(&imported()), lines(&imported()));
}

#[test]
fn reports_and_exports_take_it_and_predictions_say_what_is_missing() {
    let work = imported();
    work.stdout(&["report", "r.jsonl"]);
    let page = std::fs::read_to_string(work.path("r.html")).unwrap();
    assert!(page.contains("held-to-a-rate") && page.contains("measured by fio-3.33"));
    let text = work.stdout(&["report", "r.jsonl", "--format", "text"]);
    assert!(text.contains("MB/s") || text.contains("GB/s"), "{text}");
    assert_eq!(work.stdout(&["export", "r.jsonl", "--format", "csv"]).lines().count(), 4);
    assert!(work.stdout(&["export", "r.jsonl", "--format", "openmetrics"]).ends_with("# EOF\n"));
    for command in [&["predict", "r.jsonl"][..], &["compare", "r.jsonl", "r.jsonl"]] {
        let message = work.refusal(command);
        assert!(message.contains("3 workloads, too few"), "{message}");
    }
}

/// What fio would write for a workload under a law of time per request.
fn document(index: usize, slower: f64) -> Value {
    let at = |step: usize, of: usize| (index / step % of) as f64 / (of - 1) as f64;
    let size = 4096_u64 << (2 * (index % 4));
    let (reads, random) = (at(4, 3), at(12, 3));
    let processes = 1 + (index % 2) as u64;
    let mean_ns = slower * (2000.0 + size as f64 / 4.0) * (1.0 + 0.5 * (1.0 - reads));
    let ops = (4e9 / mean_ns) as u64 * processes;
    let part = |share: f64| {
        let ops = (ops as f64 * share).round();
        json!({
            "io_bytes": ops as u64 * size, "total_ios": ops as u64, "runtime": 4000,
            "lat_ns": { "min": mean_ns / 2.0, "max": mean_ns * 9.0, "mean": mean_ns, "N": ops as u64 },
            "clat_ns": {
                "min": mean_ns / 2.0, "max": mean_ns * 9.0, "mean": mean_ns, "N": ops as u64,
                "percentile": { "50.000000": mean_ns, "99.000000": mean_ns * 3.0 },
            },
            "bw_mean": ops * size as f64 / 4096.0, "bw_dev": ops * size as f64 / 409_600.0,
            "bw_samples": 8,
        })
    };
    json!({
        "fio version": "fio-3.33", "timestamp": 1_795_190_000 + index,
        "global options": { "ioengine": "psync", "pre_read": "1", "directory": "/mnt" },
        "jobs": [{
            "jobname": "one", "groupid": 0, "error": 0,
            "job options": {
                "rw": "randrw", "rwmixread": format!("{:.0}", reads * 100.0),
                "percentage_random": format!("{:.0}", random * 100.0), "bs": size.to_string(),
                "size": (32_u64 << 20).to_string(), "numjobs": processes.to_string(),
            },
            "read": part(reads), "write": part(1.0 - reads), "trim": { "total_ios": 0 },
        }],
    })
}

#[test]
fn enough_results_answer_for_workloads_and_can_be_compared() {
    let work = Workdir::new();
    for (record, slower) in [("one.jsonl", 1.0), ("slow.jsonl", 2.0)] {
        let names: Vec<String> = (0..36).map(|index| format!("{record}.{index}.json")).collect();
        for (index, name) in names.iter().enumerate() {
            std::fs::write(work.path(name), document(index, slower).to_string()).unwrap();
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        work.stdout(&[&["import", "fio"], &names[..], &["--out", record]].concat());
    }
    let asked = "unique_bytes=32MiB,size_mean=32KiB,read_frac=1,seq_frac=0";
    let answer = work.json(&["predict", "one.jsonl", "--json", "-w", asked]);
    let rate = answer["predictions"][0]["throughput_bytes_per_s"]["value"].as_f64().unwrap();
    let law = 32_768.0 / ((2000.0 + 8192.0) * 1e-9);
    assert!((rate / law - 1.0).abs() < 0.15, "{rate:e} where the law says {law:e}");
    let output = work.output(&["compare", "one.jsonl", "slow.jsonl", "--json", "-w", asked]);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let ratio = answer["comparisons"][0]["ratio"]["value"].as_f64().unwrap();
    assert!((ratio * 2.0 - 1.0).abs() < 0.1, "{answer:#}");
}

#[test]
fn what_is_no_result_is_refused_and_nothing_is_overwritten() {
    let work = imported();
    let before = std::fs::read(work.path("r.jsonl")).unwrap();
    std::fs::write(work.path("empty.json"), "").unwrap();
    std::fs::write(work.path("binary.json"), [0xff, 0xfe, 0x00]).unwrap();
    let large = std::fs::File::create(work.path("large.json")).unwrap();
    large.set_len(33 << 20).unwrap();
    let mut rated: Value = serde_json::from_str(RESULTS).unwrap();
    rated["jobs"].as_array_mut().unwrap().retain(|job| job["jobname"] == "held-to-a-rate");
    std::fs::write(work.path("rated.json"), rated.to_string()).unwrap();
    for (arguments, part) in [
        (&["fio.json", "--out", "r.jsonl"][..], "r.jsonl exists"),
        (&["none.json", "--out", "x"], "none.json: cannot open it"),
        (&["empty.json", "--out", "x"], "empty.json: it holds no JSON of fio"),
        (&["binary.json", "--out", "x"], "binary.json: cannot read it"),
        (&["large.json", "--out", "x"], "larger than 32 MiB"),
        (&["rated.json", "--out", "x"], "nothing can be taken over: job `held-to-a-rate`"),
        (&["fio.json", "empty.json", "--out", "x"], "empty.json"),
        (&["fio.json", "--out", "no/such/place"], "cannot write"),
    ] {
        let message = work.refusal(&[&["import", "fio"], arguments].concat());
        assert!(message.contains(part) && message.lines().count() == 1, "{message}");
    }
    assert_eq!(std::fs::read(work.path("r.jsonl")).unwrap(), before);
    assert!(!work.path("x").exists());
}
