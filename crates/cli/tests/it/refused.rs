//! Bad input: one clear line, exit code 2, nothing lost.

use crate::workdir::Workdir;

#[test]
fn a_workload_that_cannot_be_is_named_in_one_line() {
    let work = Workdir::new();
    for (workload, part) in [
        ("read_frac=2", "read_frac=2: a number from 0 to 1"),
        ("unique_bytes=1MiB,size_mean=1MiB", "8 mean requests"),
        ("depth=0", "depth=0: 1 to 4096"),
        ("nonsense", "no workload is called `nonsense`"),
        ("", "-w is empty"),
        (" ", "-w is empty"),
        ("@missing.toml", "missing.toml"),
    ] {
        let line = work.refusal(&["measure", "target", "-w", workload]);
        assert!(line.contains(part), "{workload}: {line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");
    }
    let psync = ["measure", "target", "--engine", "psync", "-w", "depth=8"];
    assert!(work.refusal(&psync).contains("one request in flight"));
    assert!(work.left_behind().is_empty());
}

#[test]
fn an_existing_record_is_never_overwritten() {
    let work = Workdir::new();
    std::fs::write(work.path("r.jsonl"), "precious").unwrap();
    for arguments in
        [["run", "sim:nvme", "--out", "r.jsonl"], ["measure", "sim:nvme", "--out", "r.jsonl"]]
    {
        let line = work.refusal(&arguments);
        assert!(line.contains("exists"), "{line}");
    }
    assert_eq!(std::fs::read_to_string(work.path("r.jsonl")).unwrap(), "precious");
}

#[test]
fn what_exists_is_named_with_the_flag_that_names_another() {
    let work = Workdir::new();
    let run = ["run", "sim:nvme", "--budget", "3m", "--out", "r.jsonl", "--report", "none"];
    work.stdout(&[&run[..], &["--quiet"]].concat());
    std::fs::write(work.path("page.html"), "mine").unwrap();
    let line = work.refusal(&["compare", "r.jsonl", "r.jsonl", "--out", "page.html"]);
    assert!(line.contains("choose another --out") && !line.contains("resume"), "{line}");
    assert!(work.refusal(&run).contains("`ioscape run --resume`"));
}

#[test]
fn what_is_not_a_directory_is_refused() {
    let work = Workdir::new();
    std::fs::write(work.path("file"), "mine").unwrap();
    for (target, part) in [
        ("file", "is a regular file"),
        ("nowhere", "nowhere"),
        ("/proc", "proc"),
        ("/dev/null", "character device"),
        ("sim:abacus", "try one of"),
    ] {
        let line = work.refusal(&["run", target, "--out", "r.jsonl"]);
        assert!(line.contains(part), "{target}: {line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{target}: {line}");
        assert!(!work.path("r.jsonl").exists(), "{target}");
    }
    assert_eq!(std::fs::read_to_string(work.path("file")).unwrap(), "mine");
}

#[test]
fn a_file_that_is_no_record_is_refused() {
    let work = Workdir::new();
    std::fs::write(work.path("r.jsonl"), "{\"kind\":\"point\"}\n").unwrap();
    for arguments in [["report", "r.jsonl"].as_slice(), &["run", "--resume", "r.jsonl"]] {
        let line = work.refusal(arguments);
        assert!(line.contains("r.jsonl"), "{line}");
    }
}

#[test]
fn wrong_flags_are_a_usage_error() {
    let work = Workdir::new();
    for arguments in [
        ["run", "--budget", "30"].as_slice(),
        &["run", "--memory-limit", "lots"],
        &["suite", "bonnie", "--size", "0"],
        &["measure"],
        &["dance"],
    ] {
        assert_eq!(work.output(arguments).status.code(), Some(2), "{arguments:?}");
    }
}
