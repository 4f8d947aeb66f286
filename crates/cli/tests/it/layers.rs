//! The data sheet and the device layer, on simulated devices and on a filesystem without one.

use ioscape_model::{Access, Layer, Part, datasheet};
use ioscape_test_support::{Mount, pages_held, skipped};
use serde_json::Value;

use crate::workdir::{Workdir, record};

/// A figure of a line of the data sheet.
fn figure<'a>(json: &'a Value, line: &str, figure: &str) -> &'a Value {
    let lines = json["datasheet"].as_array().unwrap();
    let line = lines.iter().find(|entry| entry["name"] == line);
    &line.unwrap_or_else(|| panic!("no such line in {json:#}"))[figure]
}

#[test]
fn a_quick_run_is_the_data_sheet_in_a_minute_and_each_line_is_a_workload() {
    let work = Workdir::new();
    let run = ["run", "sim:cloud-volume", "--quick", "--out", "r.jsonl", "--seed", "5"];
    let json = work.json(&[&run[..], &["--json", "--quiet"]].concat());
    let lines = json["datasheet"].as_array().unwrap();
    let names: Vec<&str> = lines.iter().map(|line| line["name"].as_str().unwrap()).collect();
    assert_eq!(names, datasheet::names().collect::<Vec<_>>());
    assert!(json["regions"].as_array().unwrap().is_empty(), "{json:#}");
    assert!(json["elapsed_s"].as_f64().unwrap() <= 61.0);
    for line in lines {
        assert!(line["visits"].as_u64().unwrap() >= 2, "{line:#}");
        let times = &line["response_time_s"];
        let all = [&line["ops_per_s"], &line["throughput_bytes_per_s"]];
        let percentiles = ["mean", "p50", "p99", "p999"].map(|name| &times[name]);
        for figure in all.into_iter().chain(percentiles) {
            let [value, low, high] =
                ["value", "low", "high"].map(|end| figure[end].as_f64().unwrap());
            assert!(0.0 < low && low < value && value < high, "{line:#}");
        }
    }
    // The volume is sold by 3000 requests and 125 MB per second.
    let near = |line: &str, name: &str, truth: f64| {
        let value = figure(&json, line, name)["value"].as_f64().unwrap();
        assert!((value / truth - 1.0).abs() < 0.15, "{line}: {value}");
    };
    near("read_4k_32", "ops_per_s", 3000.0);
    near("read_1m_8", "throughput_bytes_per_s", 125e6);
    let text = work.stdout(&["report", "r.jsonl", "--format", "text"]);
    assert!(text.starts_with("Simulated. Behaves like a network volume"), "{text}");
    assert!(text.contains("rand read 4 KiB, QD 32"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let page = std::fs::read_to_string(work.path("r.html")).unwrap();
    assert!(page.contains("The data sheet"));
    let measured = ["measure", "sim:cloud-volume", "-w", "read_4k_32", "--json", "--quiet"];
    let rate = work.json(&measured)["ops_per_s"]["mean"].as_f64().unwrap();
    assert!((rate / 3000.0 - 1.0).abs() < 0.15, "{rate}");
}

#[test]
fn a_map_has_two_layers_and_answers_for_both() {
    let work = Workdir::new();
    let run = ["run", "sim:nvme", "--budget", "6m", "--out", "r.jsonl", "--seed", "3"];
    let json = work.json(&[&run[..], &["--json", "--quiet"]].concat());
    assert_eq!(json["datasheet"].as_array().unwrap().len(), 9);
    assert_eq!(json["format_version"], 1);
    let grade = json["conclusion"]["trust"]["grade"].as_str().unwrap();
    assert!(["A", "B"].contains(&grade), "{:#}", json["conclusion"]);
    let made = record(&work.path("r.jsonl"));
    let device = made.header.device.unwrap();
    let of_device = made.regions.iter().filter(|region| region.layer == Layer::Device);
    assert_eq!(of_device.count(), 1);
    assert!(made.regions.iter().any(|region| region.layer == Layer::Cache));
    assert!(made.models.iter().any(|model| model.layer == Layer::Device));
    let direct = made.points.iter().filter(|point| point.workload.access == Access::Direct);
    // Eight lines of the data sheet, three values of each parameter, and some more.
    assert!(direct.count() >= 24);
    let span = format!("unique_bytes={},read_frac=1,seq_frac=0", device.ranges.unique_bytes.max);
    let asked = [format!("{span},access=direct,depth=8"), "unique_bytes=64MiB".to_owned()];
    let predict = ["predict", "r.jsonl", "--json", "-w", &asked[0], "-w", &asked[1]];
    for said in work.json(&predict)["predictions"].as_array().unwrap() {
        assert_eq!(said["in_range"], true, "{said:#}");
    }
    let trial = ["--workloads", "10", "--seed", "2", "--json", "--quiet", "--report", "none"];
    for (access, out) in [("buffered", "b.jsonl"), ("direct", "d.jsonl")] {
        let validate = ["validate", "r.jsonl", "--access", access, "--out", out];
        let json = work.json(&[&validate[..], &trial].concat());
        let median = json["models"]["blend"]["median"].as_f64().unwrap();
        assert!(median < 0.3, "{access}: {median}");
    }
}

#[test]
fn what_a_short_budget_has_no_room_for_is_said() {
    let work = Workdir::new();
    let run = ["run", "sim:nvme", "--budget", "30s", "--out", "r.jsonl", "--seed", "3"];
    work.stdout(&[&run[..], &["--quiet", "--report", "none"]].concat());
    let end = record(&work.path("r.jsonl")).end.unwrap();
    let parts: Vec<Part> = end.left_out.iter().map(|left_out| left_out.part).collect();
    assert!(parts.contains(&Part::DataSheet) && parts.contains(&Part::DeviceLayer), "{parts:?}");
    let text = work.stdout(&["report", "r.jsonl", "--format", "text"]);
    assert!(text.contains("Left out"), "{text}");
}

#[test]
fn one_layer_is_measured_where_one_is_asked_for() {
    let work = Workdir::new();
    for access in ["buffered", "direct"] {
        let out = format!("{access}.jsonl");
        let run = ["run", "sim:nvme", "--budget", "3m", "--out", &out, "--access", access];
        work.stdout(&[&run[..], &["--quiet", "--report", "none", "--seed", "3"]].concat());
        let record = record(&work.path(&out));
        let is_here = |work: &ioscape_model::Workload| ioscape_model::word(work.access) == access;
        assert!(record.points.iter().all(|point| is_here(&point.workload)));
        assert!(record.header.device.is_none());
    }
    let refusal = work.refusal(&["validate", "buffered.jsonl", "--access", "direct"]);
    assert!(refusal.contains("no points of access=direct"), "{refusal}");
}

#[test]
fn ranges_and_the_span_are_what_was_asked_for() {
    let work = Workdir::new();
    let run = ["run", "sim:nvme", "--budget", "3m", "--out", "r.jsonl", "--span", "1GiB"];
    let ranges = ["--range", "size_mean=8KiB..64KiB", "--range", "process_num=1..2"];
    work.stdout(&[&run[..], &ranges, &["--quiet", "--report", "none"]].concat());
    let record = record(&work.path("r.jsonl"));
    let sheet: Vec<_> = record.header.datasheet.iter().map(|line| &line.workload).collect();
    let own = record.points.iter().filter(|point| !sheet.contains(&&point.workload));
    for work in own.map(|point| &point.workload) {
        assert!((8 << 10..=64 << 10).contains(&work.size_mean) && work.process_num <= 2, "{work}");
        assert!(work.access == Access::Buffered || work.unique_bytes <= 1 << 30, "{work}");
    }
    for (range, said) in [
        ("size_mean=4KiB", "no `..`"),
        ("rate=1..2", "no range"),
        ("depth=4..2", "the smaller one first"),
    ] {
        let refusal = work_refusal(&work, range);
        assert!(refusal.contains(said), "{refusal}");
    }
}

/// Complaints about flags take several lines.
fn work_refusal(work: &Workdir, range: &str) -> String {
    let output = work.output(&["run", "sim:nvme", "--range", range]);
    assert_eq!(output.status.code(), Some(2));
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_filesystem_without_direct_access_has_a_cached_line_and_says_why() {
    let work = Workdir::new();
    let Ok(mount) = Mount::tmpfs(&work.path("memory"), "size=512m").map_err(skipped) else {
        return;
    };
    let run = ["run", "memory", "--quick", "--budget", "6s", "--out", "r.jsonl"];
    let json = work.json(&[&run[..], &["--json", "--quiet"]].concat());
    let lines = json["datasheet"].as_array().unwrap();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["name"], "cached_read_4k");
    let said = json["warnings"].as_array().unwrap().iter();
    let texts: Vec<&str> = said.filter_map(|warning| warning["text"].as_str()).collect();
    assert!(texts.iter().any(|text| text.contains("no device layer")), "{texts:?}");
    let refusal = work.refusal(&["run", "memory", "--span", "64MiB", "--out", "x.jsonl"]);
    assert!(refusal.contains("no device layer here"), "{refusal}");
    drop(mount);
}

#[test]
fn a_directory_has_a_data_sheet_by_direct_requests() {
    let work = Workdir::new();
    let run = ["run", "target", "--quick", "--budget", "16s", "--span", "128MiB"];
    let json = work.json(&[&run[..], &["--out", "r.jsonl", "--json", "--quiet"]].concat());
    let record = record(&work.path("r.jsonl"));
    assert!(work.left_behind().is_empty(), "{:?}", work.left_behind());
    if record.header.datasheet.len() < 9 {
        skipped("this directory has no direct access, or io_uring is not allowed");
        return;
    }
    assert!(figure(&json, "read_4k_1", "ops_per_s")["value"].as_f64().unwrap() > 0.0);
    // How many lines there is time for depends on how fast the disk writes; none goes unmentioned.
    let measured =
        json["datasheet"].as_array().unwrap().iter().filter_map(|line| line["name"].as_str());
    let left_out = json["left_out"].as_array().unwrap().iter();
    let left_out = left_out.filter(|left_out| left_out["part"] == "data_sheet");
    let left_out = left_out.filter_map(|left_out| left_out["text"].as_str());
    let mut told: Vec<&str> = measured.chain(left_out.flat_map(|text| text.split(", "))).collect();
    told.sort_unstable();
    let mut asked: Vec<&str> =
        record.header.datasheet.iter().map(|line| line.name.as_str()).collect();
    asked.sort_unstable();
    assert_eq!(told, asked, "{json:#}");
}

#[test]
fn a_survey_reads_what_is_there_and_changes_nothing() {
    let work = Workdir::new();
    let directory = work.path("target");
    let path = directory.join("somebodys.db");
    let noise = (0..96_u64 << 17).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23));
    let noise: Vec<u8> = noise.flat_map(u64::to_le_bytes).collect();
    std::fs::write(&path, noise).unwrap();
    let file = std::fs::File::open(&path).unwrap();
    file.sync_all().unwrap();
    let state = || {
        let metadata = std::fs::metadata(&path).unwrap();
        let names = std::fs::read_dir(&directory).unwrap().count();
        let held = pages_held(&file, 96 << 8);
        let held = held.map(|held| held.into_iter().filter(|is_held| *is_held).count());
        let times = (metadata.accessed().unwrap(), metadata.modified().unwrap());
        let of_directory = std::fs::metadata(&directory).unwrap().accessed().unwrap();
        ((times, metadata.len(), names, of_directory), held.unwrap_or(0))
    };
    let (before, held_before) = state();
    let survey = ["--read-only", "--budget", "6s", "--report", "none", "--quiet", "--out"];
    let run = |more: &[&str]| work.output(&[&["run", "target"], &survey[..], more].concat());
    let output = run(&["r.jsonl"]);
    let said = String::from_utf8(output.stderr).unwrap();
    if ["live in memory", "no direct access", "through the page cache"]
        .iter()
        .any(|w| said.contains(w))
    {
        skipped("this directory has no direct access");
        return;
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    let (after, held_after) = state();
    assert_eq!(after, before);
    // The kernel may have given a few of the pages to other programs meanwhile.
    assert!(held_after * 4 >= held_before * 3, "{held_after} of {held_before} pages are left");
    let record = record(&work.path("r.jsonl"));
    assert_eq!(record.header.target.path, path.canonicalize().unwrap().display().to_string());
    let works = record.points.iter().map(|point| &point.workload);
    assert!(works.clone().all(|work| work.read_frac >= 1.0 && work.access == Access::Direct));
    assert!(works.count() > 0);
    let end = record.end.unwrap();
    assert_eq!((end.written_bytes, end.forecast.unwrap().written_bytes), (0, 0));
    // What writes, or needs pages in a state, is refused.
    let measure = |work_key: &str| {
        let measure = ["measure", "target", "--read-only", "-w", work_key, "--out", "m.jsonl"];
        work.refusal(&measure)
    };
    assert!(measure("unique_bytes=64MiB,read_frac=0.5").contains("is only read"));
    assert!(measure("unique_bytes=64MiB,read_frac=1").contains("access=direct"));
    assert_eq!(run(&["s.jsonl", "--precondition"]).status.code(), Some(2));
}

#[test]
fn doubts_count_where_that_was_asked_for() {
    let work = Workdir::new();
    let run = ["run", "sim:nvme", "--budget", "20s", "--unique-max", "64MiB", "--seed", "1"];
    let more = ["--quiet", "--report", "none", "--out"];
    let code = |out: &str, asked: &[&str]| {
        let output = work.output(&[&run[..], &more, &[out], asked].concat());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(code("a.jsonl", &[]).0, Some(0));
    let (exit, said) = code("b.jsonl", &["--fail-on", "warning"]);
    assert_eq!(exit, Some(1), "{said}");
    assert!(said.contains("--fail-on warning"), "{said}");
    assert_eq!(code("c.jsonl", &["--fail-on", "serious"]).0, Some(0));
}
