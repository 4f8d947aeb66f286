//! One workload.

use ioscape_engine::target::open_directory;
use ioscape_test_support::skipped;

use crate::corpus::measured::Way;
use crate::running::{Running, wait_ms};
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
    let work = Workdir::new();
    let json =
        work.visit(&["target", "--unique-bytes", "8M", "--read-frac", "1", "--out", "m.jsonl"]);
    assert!(json["ops_per_s"]["mean"].as_f64().unwrap() > 1.0);
    let point = &record(&work.path("m.jsonl")).points[0];
    // Counted truth: a file of this size, just written, is all in the page cache.
    assert!(point.hit_fraction.is_none_or(|hit| hit > 0.95), "{:?}", point.hit_fraction);
    let ops = point.classes.read_seq.ops + point.classes.read_rand.ops;
    assert_eq!(point.classes.write_seq.ops + point.classes.write_rand.ops, 0);
    let per_s = ops as f64 / point.spent_s.measuring;
    // Much of a visit may be lost to others on a busy machine.
    let ratio = per_s / point.ops_per_s;
    assert!((0.1..2.0).contains(&ratio), "{per_s} {}", point.ops_per_s);
    assert!(work.left_behind().is_empty());
}

const LARGE_CACHED_READS: &str = "unique_bytes=16MiB,read_frac=1,seq_frac=1,size_mean=128KiB";

/// How often an answer says in what state the cache was.
fn notes(json: &serde_json::Value) -> usize {
    let warnings = json["warnings"].as_array().unwrap();
    warnings.iter().filter(|warning| warning["code"] == "cache_state").count()
}

#[test]
fn the_null_engine_measures_the_harness_alone() {
    let work = Workdir::alone();
    let reads = LARGE_CACHED_READS;
    let json = work.visit(&["target", "--engine", "null", "-w", reads, "--out", "m.jsonl"]);
    assert_eq!(notes(&json), 0, "no cache was read: {json:#}");
    let null = record(&work.path("m.jsonl")).points.remove(0);
    assert_eq!(null.engine, "null");
    // What costs a system call and a copy elsewhere costs nothing here.
    let psync = Way::usual(reads).visit(open_directory(work.target()).unwrap(), || {}).unwrap();
    let ratio = null.ops_per_s / psync.ops_per_s;
    assert!(ratio > 2.0, "{ratio} times the requests of psync");
}

#[test]
fn a_measurement_in_which_no_request_is_done_has_no_figures() {
    let work = Workdir::new();
    let measure = ["measure", "sim:nvme", "-w", "rate=0.0001", "--out", "m.jsonl", "--json"];
    let output = work.output(&measure);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("no request was completed") && said.contains("raise rate"), "{said}");
    assert_eq!(said.trim_end().lines().count(), 1, "{said}");
    assert!(output.stdout.is_empty() && !work.path("m.jsonl").exists());
}

#[test]
fn large_cached_reads_say_in_what_state_the_cache_is() {
    let work = Workdir::new();
    let json = work.visit(&["target", "-w", LARGE_CACHED_READS, "--out", "m.jsonl"]);
    if json["hit_fraction"].is_null() {
        skipped("this kernel does not tell what is cached");
        return;
    }
    assert_eq!(notes(&json), 1, "{json:#}");
    let recorded = record(&work.path("m.jsonl")).warnings;
    assert!(recorded.iter().any(|warning| warning.text.contains("as by fio")), "{recorded:?}");
    assert_eq!(notes(&work.visit(&["sim:nvme", "-w", LARGE_CACHED_READS])), 0);
    assert_eq!(notes(&work.visit(&["target", "-w", LARGE_CACHED_READS, "--size-mean", "4k"])), 0);
}

#[test]
fn precision_that_was_asked_for_and_missed_is_exit_code_1() {
    let work = Workdir::new();
    let output = work.output(&["measure", "sim:hdd", "--precision", "0.01%", "--rounds", "2"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("asked for"));
}

#[test]
fn a_precision_is_measured_until_it_is_reached_or_the_budget_ends() {
    let work = Workdir::new();
    let rounds = |precision: &str, budget: &str| {
        let asked = ["--precision", precision, "--budget", budget, "--seed", "1", "--json"];
        let output = work.output(&[&["measure", "sim:nvme"], &asked[..]].concat());
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), json["visits"].as_u64().unwrap())
    };
    let (reached, few) = rounds("20%", "5m");
    let (narrower, more) = rounds("0.8%", "1h");
    assert_eq!((reached, few), (Some(0), 3));
    assert!(narrower == Some(0) && more > few, "{more} rounds");
    let (missed, cut) = rounds("0.01%", "30s");
    assert!(missed == Some(1) && (3..100).contains(&cut), "{cut} rounds");
    // Three visits of 30 s each, were it not for the budget.
    let reads = ["measure", "sim:nvme", "-w", "unique_bytes=8GiB,read_frac=1,seq_frac=0"];
    let brief = ["--precision", "0.01%", "--budget", "15s", "--seed", "1", "--out", "brief.jsonl"];
    let output = work.output(&[&reads[..], &brief].concat());
    assert_eq!(output.status.code(), Some(1));
    let points = record(&work.path("brief.jsonl")).points;
    let loaded_s = points.iter().map(|point| point.spent_s.settling + point.spent_s.measuring);
    let loaded_s: f64 = loaded_s.sum();
    assert!(points.len() == 3 && (14.0..16.0).contains(&loaded_s), "{loaded_s} s");
    let refused = work.output(&["measure", "sim:nvme", "--budget", "1m"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn the_highest_rate_that_keeps_a_percentile_is_found_or_said_not_to_be() {
    let work = Workdir::new();
    let device = "unique_bytes=8GiB,read_frac=1,seq_frac=0,size_mean=4096,access=direct";
    let poisson = format!("{device},arrivals=poisson");
    let find = |bound: &str| {
        ["measure", "sim:nvme", "-w", &poisson, "--p99-below", bound, "--seed", "1", "--json"]
            .map(str::to_owned)
    };
    let found = find("1ms");
    let json = work.json(&found.each_ref().map(String::as_str));
    assert_eq!(json["verdict"], "found");
    let rate = |end: &str| json["highest_rate_per_s"][end].as_f64().unwrap();
    let closed = json["closed_loop_ops_per_s"].as_f64().unwrap();
    // M/D/1: waits of a millisecond in a hundredth of all cases need a load of 0.7 to 0.9.
    assert!(rate("low") <= rate("value") && rate("value") <= rate("high"));
    assert!(0.55 * closed < rate("value") && rate("value") < closed, "{json}");
    assert!(json["trials"].as_array().unwrap().len() > 3);
    let refused = ["measure", "sim:nvme", "-w", "rate=10", "--p99-below", "1ms"];
    let output = work.output(&refused);
    assert_eq!(output.status.code(), Some(2));
    let output = work.output(&find("10us").each_ref().map(String::as_str));
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("not_reachable"));
}

#[test]
fn what_is_read_is_checked_against_what_was_written() {
    let work = Workdir::new();
    let measure = |workload: &str, out: &str| {
        work.output(&[
            "measure",
            "target",
            "-w",
            workload,
            "--rounds",
            "1",
            "--verify",
            "--precision",
            "0.5",
            "--out",
            out,
            "--quiet",
        ])
    };
    let output = measure("unique_bytes=8MiB,process_num=2", "r.jsonl");
    let text = String::from_utf8(output.stdout).unwrap();
    // On a busy machine even that precision may not be reached, which is exit code 1.
    assert!(output.status.code().is_some_and(|code| code <= 1), "{text}");
    assert!(text.contains("were read and compared"), "{text}");
    let point = &record(&work.path("r.jsonl")).points[0];
    assert!(point.verified_bytes.is_some_and(|bytes| bytes > 0));
    assert_eq!(point.failed, vec![]);
    let refused = measure("unique_bytes=8MiB,size_mean=4k,align=512", "s.jsonl");
    let line = String::from_utf8(refused.stderr).unwrap();
    assert!(line.contains("take align=4KiB"), "{line}");
    assert_eq!(refused.status.code(), Some(2), "{line}");
    let sim = work.refusal(&["measure", "sim:nvme", "--verify"]);
    assert!(sim.contains("leave --verify out"), "{sim}");
}

/// Names of a process's threads.
fn threads(process: u32) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok()).collect()
}

#[test]
fn a_thread_of_the_kernel_submits_where_that_is_asked_for() {
    let work = Workdir::new();
    let reads = "unique_bytes=8MiB,read_frac=1";
    let measure = ["measure", "target", "-w", reads, "--engine", "uring", "--kernel-submission"];
    let mut run = Running::start(&work, &measure);
    let submits = |process| threads(process).iter().any(|name| name.starts_with("iou-sqp-"));
    while !submits(run.process()) {
        if run.has_ended() {
            assert!(run.stderr().contains("io_uring"), "no such thread: {}", run.stderr());
            return skipped(run.stderr());
        }
        wait_ms(2);
    }
}

#[test]
fn flags_of_io_uring_are_refused_where_they_mean_nothing() {
    let work = Workdir::new();
    let buffered = ["measure", "target", "-w", "unique_bytes=8MiB", "--engine", "uring"];
    let line = work.refusal(&[&buffered[..], &["--polled"]].concat());
    assert!(line.contains("polled for with access=direct only"), "{line}");
    for flag in ["--polled", "--kernel-submission"] {
        for engine in ["psync", "null"] {
            let line = work.refusal(&["measure", "target", "--engine", engine, flag]);
            assert!(line.contains("are for --engine uring"), "{flag} {engine}: {line}");
        }
    }
    assert!(work.left_behind().is_empty());
}
