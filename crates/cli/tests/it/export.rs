//! A record leaves in every format; pandas and fio, where they are installed, take it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use ioscape_test_support::skipped;

use crate::workdir::Workdir;

/// A short run of a simulated device, made once for all tests.
static RECORD: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let work = Workdir::new();
    let arguments = ["run", "sim:nvme", "--out", "r.jsonl", "--seed", "1", "--budget", "3m"];
    work.stdout(&[&arguments[..], &["--report", "none", "--quiet"]].concat());
    std::fs::read(work.path("r.jsonl")).unwrap()
});

fn work() -> Workdir {
    let work = Workdir::new();
    std::fs::write(work.path("r.jsonl"), &*RECORD).unwrap();
    work
}

fn export(work: &Workdir, format: &str, more: &[&str]) -> String {
    work.stdout(&[&["export", "r.jsonl", "--format", format], more].concat())
}

#[test]
fn every_format_holds_what_the_record_holds() {
    let work = work();
    let record = crate::workdir::record(&work.path("r.jsonl"));
    let csv = export(&work, "csv", &[]);
    assert_eq!(csv.lines().count(), record.estimates.len() + 1);
    assert!(csv.starts_with("run_id,region,unique_bytes,size_mean_bytes,"));
    let visits = export(&work, "csv", &["--rows", "visits"]);
    assert_eq!(visits.lines().count(), record.points.len() + 1);
    let json: serde_json::Value = serde_json::from_str(&export(&work, "json", &[])).unwrap();
    assert_eq!(json["points"].as_array().unwrap().len(), record.points.len());
    let metrics = export(&work, "openmetrics", &[]);
    assert!(metrics.ends_with("# EOF\n"));
    let name = "ioscape_throughput_bytes_per_second{";
    assert_eq!(metrics.matches(name).count(), record.estimates.len());
    let parquet = work.output(&["export", "r.jsonl", "--format", "parquet"]).stdout;
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    work.stdout(&["export", "r.jsonl", "--format", "parquet", "--out", "r.parquet"]);
    assert_eq!(std::fs::read(work.path("r.parquet")).unwrap(), parquet, "twice the same");
    work.stdout(&["export", "r.jsonl", "--format", "fio", "--out", "jobs"]);
    let files = std::fs::read_dir(work.path("jobs")).unwrap().count();
    assert_eq!(files, record.estimates.len());
}

#[test]
fn one_workload_may_be_chosen() {
    let work = work();
    let record = crate::workdir::record(&work.path("r.jsonl"));
    let literal = record.estimates[3].workload.literal();
    let csv = export(&work, "csv", &["-w", &literal]);
    assert_eq!(csv.lines().count(), 2, "{csv}");
    let job = export(&work, "fio", &["-w", &literal]);
    assert!(job.contains(&format!("; workload    {literal}")) && job.contains("; measured"));
    // A job file needs no measurement.
    let job = export(&work, "fio", &["-w", "oltp", "--process-num", "2"]);
    assert!(job.contains("numjobs=2") && !job.contains("; measured"), "{job}");
}

#[test]
fn what_cannot_be_is_refused_and_nothing_is_overwritten() {
    let work = work();
    std::fs::write(work.path("kept"), "mine").unwrap();
    std::fs::create_dir(work.path("jobs")).unwrap();
    std::fs::write(work.path("jobs/oltp.fio"), "mine").unwrap();
    for (more, part) in [
        (&["--format", "csv", "--out", "kept"][..], "kept exists"),
        (&["--format", "fio", "--out", "kept", "-w", "oltp"], "kept exists"),
        (&["--format", "fio", "--out", "jobs", "-w", "oltp"], "oltp.fio exists"),
        (&["--format", "fio", "--out", "x", "-w", "oltp", "-w", "oltp"], "written twice"),
        (&["--format", "fio"], "name a directory"),
        (&["--format", "csv", "-w", "unique_bytes=77MiB"], "`ioscape predict` answers"),
        (&["--format", "json", "-w", "oltp"], "leave out -w"),
        (&["--format", "json", "--rows", "visits"], "--rows is for csv"),
        (&["--format", "csv", "--out", "no/such/place.csv"], "cannot write"),
    ] {
        let message = work.refusal(&[&["export", "r.jsonl"], more].concat());
        assert!(message.contains(part) && message.lines().count() == 1, "{more:?}: {message}");
    }
    let message = work.refusal(&["export", "kept", "--format", "csv"]);
    assert!(message.contains("kept"), "{message}");
    assert_eq!(std::fs::read_to_string(work.path("kept")).unwrap(), "mine");
    assert_eq!(std::fs::read_to_string(work.path("jobs/oltp.fio")).unwrap(), "mine");
}

#[test]
fn visits_of_a_run_that_was_killed_are_pooled() {
    let work = work();
    let text = String::from_utf8(RECORD.clone()).unwrap();
    let is_visit = |line: &&str| !line.contains("\"kind\":\"estimate\"");
    let early: Vec<&str> = text.lines().take_while(is_visit).take(12).collect();
    std::fs::write(work.path("r.jsonl"), early.join("\n") + "\n").unwrap();
    assert!(export(&work, "csv", &[]).lines().count() > 3);
}

/// A Python that has these modules, if there is one: `target/venv` is what `.ci/run` makes.
pub(crate) fn python(modules: &str) -> Option<PathBuf> {
    let venv = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/venv/bin/python");
    let import = format!("import {modules}");
    let usable = |python: &PathBuf| {
        let output = Command::new(python).args(["-c", &import]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let found = [venv, PathBuf::from("python3")].into_iter().find(usable);
    if found.is_none() {
        skipped(format_args!("no Python with {modules} (.ci/run makes one in target/venv)"));
    }
    found
}

/// Reads both files, holds every column's type against the documentation and both against each
/// other.
const CHECK: &str = r#"
import sys, re, pandas, pyarrow.parquet
formats, name, heading = sys.argv[1:]
sections = re.split(r"\n#+ ", open(formats).read())
def documented(title):
    section = next(s for s in sections if s.startswith(title))
    for row in re.findall(r"^\| (`.*?) \| (\w+) \|", section, re.M):
        for column in row[0].split(", "):
            yield column.strip("`"), row[1]
types = dict([*documented("Both tables"), *documented(heading)])
arrow = {f.name: str(f.type) for f in pyarrow.parquet.read_schema(name + ".parquet")}
said = {"i64": "int64", "f64": "double", "bool": "bool", "string": "string"}
assert list(arrow) == list(types), set(arrow) ^ set(types)
for column, kind in types.items():
    assert arrow[column] == said[kind], (column, arrow[column], kind)
parquet = pandas.read_parquet(name + ".parquet", dtype_backend="numpy_nullable")
pandas_types = {"i64": "Int64", "f64": "Float64", "bool": "boolean", "string": "string"}
csv = pandas.read_csv(name + ".csv", dtype={c: pandas_types[k] for c, k in types.items()},
                      float_precision="round_trip")
assert len(csv) > 20 and list(csv) == list(parquet)
pandas.testing.assert_frame_equal(csv, parquet, check_exact=True)
plain = pandas.read_csv(name + ".csv")
for column, kind in types.items():
    if plain[column].notna().all() and kind != "string":
        assert str(plain[column].dtype) == {"i64": "int64", "f64": "float64", "bool": "bool"}[kind], column
print("rows", len(csv))
"#;

#[test]
fn pandas_reads_csv_and_parquet_with_the_documented_types() {
    let Some(python) = python("pandas, pyarrow") else { return };
    let work = work();
    let formats = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
    for (rows, heading) in [("estimates", "Estimates"), ("visits", "Visits")] {
        for format in ["csv", "parquet"] {
            let out = format!("{rows}.{format}");
            export(&work, format, &["--rows", rows, "--out", &out]);
        }
        let mut check = Command::new(&python);
        check.current_dir(work.path(".")).args(["-c", CHECK]).arg(&formats).args([rows, heading]);
        let output = check.output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{rows}: {stderr}");
    }
}

/// Both of Prometheus' own parsers: what the textfile collector reads, and `OpenMetrics`.
const PARSE_METRICS: &str = r#"
import sys
from prometheus_client import parser
from prometheus_client.openmetrics import parser as openmetrics
def samples(parsed):
    return [(f.type, s.name, s.labels, s.value) for f in parsed for s in f.samples]
text = sys.stdin.read()
plain = samples(parser.text_string_to_metric_families(text))
assert plain == samples(openmetrics.text_string_to_metric_families(text))
assert {kind for kind, *_ in plain} == {"gauge"}
print(len(plain))
"#;

#[test]
fn both_parsers_of_prometheus_read_the_same_series() {
    let Some(python) = python("prometheus_client") else { return };
    let work = work();
    let metrics = export(&work, "openmetrics", &[]);
    let series = metrics.lines().filter(|line| !line.starts_with('#')).count();
    std::fs::write(work.path("metrics"), &metrics).unwrap();
    let mut parse = Command::new(python);
    parse.args(["-c", PARSE_METRICS]).stdin(std::fs::File::open(work.path("metrics")).unwrap());
    let output = parse.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8(output.stdout).unwrap().trim(), series.to_string());
}

fn has_fio() -> bool {
    let version = Command::new("fio").arg("--version").output();
    let has = version.is_ok_and(|output| output.stdout.starts_with(b"fio-3."));
    if !has {
        skipped("fio 3 is not installed");
    }
    has
}

#[test]
fn fio_takes_every_job_file() {
    if !has_fio() {
        return;
    }
    let work = work();
    export(&work, "fio", &["--out", "jobs"]);
    let others = ["-w", "size_dist=exponential,layout=shared,process_num=3,state=cold"];
    let more =
        ["-w", "read_frac=0.37,seq_frac=1,size_dist=fixed", "-w", "backup", "--out", "jobs/others"];
    export(&work, "fio", &[&others[..], &more].concat());
    let files = ["jobs", "jobs/others"].map(|name| std::fs::read_dir(work.path(name)).unwrap());
    let files = files.into_iter().flatten().map(|file| file.unwrap().path());
    let output = Command::new("fio")
        .arg("--parse-only")
        .args(files.filter(|file| file.is_file()))
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{stderr}");
}

#[test]
fn a_workload_that_went_through_fio_comes_back_as_the_same() {
    if !has_fio() {
        return;
    }
    let work = Workdir::new();
    std::fs::write(work.path("r.jsonl"), &*RECORD).unwrap();
    let asked = "unique_bytes=16MiB,size_mean=16KiB,read_frac=1,seq_frac=0.25,process_num=2";
    // Short, and where the test works: the record is of a simulated device.
    let job = export(&work, "fio", &["-w", asked]);
    let job = job.replace("ramp_time=2s", "ramp_time=0").replace("runtime=5s", "runtime=1s");
    std::fs::write(work.path("job.fio"), job).unwrap();
    let mut fio = Command::new("fio");
    fio.current_dir(work.target()).args(["--output-format=json", "../job.fio"]);
    let output = fio.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    std::fs::write(work.path("fio.json"), &output.stdout).unwrap();
    work.stdout(&["import", "fio", "fio.json", "--out", "back.jsonl"]);
    let back = crate::workdir::record(&work.path("back.jsonl"));
    assert_eq!(back.points.len(), 1, "{:?}", back.warnings);
    let expected = ioscape_model::Workload::parse(asked).unwrap();
    assert_eq!(back.points[0].workload, expected);
    assert!(back.points[0].throughput() > 0.0);
}
