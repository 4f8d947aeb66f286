//! One workload.

use crate::workdir::{Workdir, record};

#[test]
fn an_estimate_has_the_fields_that_scripts_read() {
    let work = Workdir::new();
    let json = work.json(&[
        "measure",
        "sim:nvme",
        "-w",
        "unique_bytes=16MiB,read_frac=1",
        "--json",
        "--quiet",
    ]);
    for key in ["throughput_bytes_per_s", "ops_per_s"] {
        let figure = &json[key];
        let [low, mean, high] = ["low", "mean", "high"].map(|end| figure[end].as_f64().unwrap());
        assert!(low <= mean && mean <= high, "{figure}");
    }
    assert_eq!(json["visits"], 3);
    assert_eq!(json["workload"]["unique_bytes"], 16 << 20);
    assert!(json["response_time_s"]["p99"].as_f64().unwrap() > 0.0);
    assert!(json["steady"].is_boolean() && json["warnings"].is_array());
}

#[test]
fn a_real_file_is_measured_and_removed() {
    let work = Workdir::alone();
    let json = work.json(&[
        "measure",
        "target",
        "--unique-bytes",
        "8M",
        "--read-frac",
        "1",
        "--rounds",
        "1",
        "--json",
        "--out",
        "m.jsonl",
    ]);
    assert!(json["ops_per_s"]["mean"].as_f64().unwrap() > 100.0);
    let point = &record(&work.path("m.jsonl")).points[0];
    // Counted truth: a file of this size, just written, is all in the page cache.
    assert!(point.hit_fraction.is_none_or(|hit| hit > 0.95), "{:?}", point.hit_fraction);
    let ops = point.classes.read_seq.ops + point.classes.read_rand.ops;
    assert_eq!(point.classes.write_seq.ops + point.classes.write_rand.ops, 0);
    let per_s = ops as f64 / point.spent_s.measuring;
    assert!((per_s / point.ops_per_s - 1.0).abs() < 0.5, "{per_s} {}", point.ops_per_s);
    assert!(work.left_behind().is_empty());
}

#[test]
fn the_null_engine_measures_the_harness_alone() {
    let work = Workdir::alone();
    let arguments = ["measure", "target", "--engine", "null", "--rounds", "1", "--out", "m.jsonl"];
    work.stdout(&arguments);
    let point = &record(&work.path("m.jsonl")).points[0];
    assert_eq!(point.engine, "null");
    // Far more than any storage serves, however busy the machine is.
    assert!(point.ops_per_s > 10_000.0, "{}", point.ops_per_s);
}

#[test]
fn precision_that_was_asked_for_and_missed_is_exit_code_1() {
    let work = Workdir::new();
    let output = work.output(&["measure", "sim:hdd", "--precision", "0.01%", "--rounds", "2"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("asked for"));
}
