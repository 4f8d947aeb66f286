//! What workloads that were not measured would get.

use serde_json::Value;

use crate::maps::{self, HDD, NVME};
use crate::workdir::Workdir;

fn predictions(work: &Workdir, arguments: &[&str]) -> Vec<Value> {
    let json = work.json(&[&["predict", "r.jsonl", "--json"], arguments].concat());
    assert_eq!(json["model"], "blend");
    json["predictions"].as_array().unwrap().clone()
}

/// Value, low and high of a figure; all three must be numbers above zero and in order.
fn figure(prediction: &Value, key: &str) -> [f64; 3] {
    let ends = ["value", "low", "high"].map(|end| prediction[key][end].as_f64().unwrap());
    let [value, low, high] = ends;
    assert!(0.0 < low && low <= value && value <= high && high.is_finite(), "{prediction}");
    ends
}

fn throughput(prediction: &Value) -> f64 {
    figure(prediction, "throughput_bytes_per_s")[0]
}

fn width(prediction: &Value) -> f64 {
    let [_, low, high] = figure(prediction, "throughput_bytes_per_s");
    high / low
}

#[test]
fn answers_come_in_the_order_asked_and_are_whole() {
    let work = maps::beside(&NVME);
    let mix = "[zebra]\nunique_bytes = \"300MiB\"\n[ant]\nread_frac = 1\nsize_mean = 65536\n";
    std::fs::write(work.path("mix.toml"), mix).unwrap();
    let typed = "unique_bytes=6GiB,read_frac=0.9";
    let asked = ["-w", "oltp", "-w", "@mix.toml", "-w", typed, "-w", "compile"];
    let stdout =
        work.stdout(&[&["predict", "r.jsonl", "--json", "--out", "p.json"], &asked[..]].concat());
    let answers = predictions(&work, &asked);
    let names: Vec<&str> = answers.iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["oltp", "zebra", "ant", typed, "compile"]);
    assert_eq!(answers[1]["workload"]["unique_bytes"], 300 << 20);
    for prediction in &answers {
        let [value, ..] = figure(prediction, "throughput_bytes_per_s");
        let [response, ..] = figure(prediction, "response_time_s");
        // Closed loop: each process has one request under way.
        let processes = prediction["workload"]["process_num"].as_f64().unwrap();
        let size = prediction["workload"]["size_mean"].as_f64().unwrap();
        assert!((response * value / size / processes - 1.0).abs() < 0.05, "{prediction}");
        assert!(prediction["product_throughput_bytes_per_s"].as_f64().unwrap() > 0.0);
        assert!(!prediction["region"].as_str().unwrap().is_empty());
        assert_eq!(prediction["in_range"], true, "{prediction}");
        assert!(prediction["warnings"].is_array());
    }
    assert_eq!(std::fs::read_to_string(work.path("p.json")).unwrap().trim(), stdout.trim());
    let line = work.refusal(&["predict", "r.jsonl", "--out", "p.json"]);
    assert!(line.contains("p.json exists"), "{line}");
}

#[test]
fn without_a_workload_all_names_are_answered() {
    let work = maps::beside(&HDD);
    let names: Vec<String> = predictions(&work, &[])
        .iter()
        .map(|prediction| prediction["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ioscape_model::named::names().collect::<Vec<_>>());
}

#[test]
fn flags_go_before_keys_in_every_workload_and_alone_are_one() {
    let work = maps::beside(&HDD);
    let both = predictions(&work, &["-w", "mail", "-w", "desktop", "--process-num", "2"]);
    assert!(both.iter().all(|p| p["workload"]["process_num"] == 2));
    assert_ne!(both[0]["workload"]["unique_bytes"], both[1]["workload"]["unique_bytes"]);
    let alone = predictions(&work, &["--unique-bytes", "32MiB"]);
    assert_eq!(alone.len(), 1);
    assert_eq!(alone[0]["workload"]["unique_bytes"], 32 << 20);
}

#[test]
fn out_of_range_is_an_answer_with_a_wider_interval() {
    let work = maps::beside(&HDD);
    let inside = "unique_bytes=1GiB,read_frac=1,seq_frac=0";
    let answers = predictions(
        &work,
        &[
            "-w",
            inside,
            "-w",
            "unique_bytes=200GiB,read_frac=1,seq_frac=0",
            "-w",
            &format!("{inside},process_num=256"),
            "-w",
            &format!("{inside},state=cold"),
        ],
    );
    assert_eq!(answers[0]["in_range"], true);
    for outside in &answers[1..] {
        assert_eq!(outside["in_range"], false, "{outside}");
        assert!(!outside["warnings"].as_array().unwrap().is_empty());
        assert!(width(outside) > 1.5 * width(&answers[0]), "{outside}");
    }
}

#[test]
fn a_larger_cache_makes_what_did_not_fit_faster_and_changes_nothing_else() {
    let work = maps::beside(&HDD);
    // The device has 512 MiB of page cache.
    let small = "unique_bytes=64MiB,read_frac=1,seq_frac=0";
    let large = "unique_bytes=900MiB,read_frac=1,seq_frac=0";
    let asked = ["-w", small, "-w", large];
    let found = predictions(&work, &asked);
    let with = |set: &str| predictions(&work, &[&asked[..], &["--set", set]].concat());
    for (set, least, most) in
        [("read_cache=2x", 5.0, 1e4), ("read_cache=1GiB", 5.0, 1e4), ("read_cache=0.5x", 0.1, 0.95)]
    {
        let changed = with(set);
        let ratio = |index: usize| throughput(&changed[index]) / throughput(&found[index]);
        assert!((ratio(0) - 1.0).abs() < 0.05, "{set}: {}", ratio(0));
        assert!((least..most).contains(&ratio(1)), "{set}: {}", ratio(1));
    }
    let text = work.stdout(&["predict", "r.jsonl", "-w", large, "--set", "read_cache=1GiB"]);
    assert!(text.contains("What if: read_cache of 1.00 GiB instead of 5"), "{text}");
}

#[test]
fn people_get_a_table_of_eighty_columns_and_each_doubt_once() {
    let work = maps::beside(&HDD);
    let text = work.stdout(&[
        "predict",
        "r.jsonl",
        "-w",
        "mail",
        "-w",
        "unique_bytes=100GiB",
        "-w",
        "unique_bytes=200GiB",
    ]);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert_eq!(text.matches("out of range").count(), 2, "{text}");
    let doubts = text.split("What to doubt").nth(1).unwrap();
    assert_eq!(doubts.matches("unique_bytes").count(), 1, "{text}");
    for bad in ["NaN", "null", "inf "] {
        assert!(!text.contains(bad), "{text}");
    }
}

#[test]
fn what_is_doubtful_about_the_map_stands_beside_what_rests_on_it() {
    let work = Workdir::new();
    let short = ["run", "sim:hdd", "--seed", "3", "--budget", "1m", "--out", "r.jsonl"];
    work.stdout(&[&short[..], &["--report", "none", "--quiet"]].concat());
    let json = work.json(&["predict", "r.jsonl", "--json", "-w", "oltp"]);
    let all = json["warnings"].as_array().unwrap();
    let codes: Vec<&str> = all.iter().map(|w| w["code"].as_str().unwrap()).collect();
    for code in ["border_not_reached", "incomplete"] {
        assert!(codes.contains(&code), "{codes:?}");
    }
    let text = work.stdout(&["predict", "r.jsonl", "-w", "oltp"]);
    let doubts = text.split("What to doubt").nth(1).unwrap();
    assert!(doubts.contains("in the map: border not reached: "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn an_open_loop_has_latencies_that_grow_with_its_rate() {
    let work = maps::beside(&NVME);
    let closed = "unique_bytes=6GiB,size_mean=8KiB,read_frac=1,seq_frac=0";
    let most = throughput(&predictions(&work, &["-w", closed])[0]) / 8192.0;
    let at = |share: f64| format!("{closed},rate={:.0},arrivals=poisson", share * most);
    let rates = [0.2, 0.6, 0.9].map(at);
    let asked: Vec<&str> = rates.iter().flat_map(|rate| ["-w", rate.as_str()]).collect();
    let answers = predictions(&work, &asked);
    let p99 = |answer: &Value| answer["response_time_s"]["p99"]["value"].as_f64().unwrap();
    for (answer, share) in answers.iter().zip([0.2, 0.6, 0.9]) {
        let [rate, ..] = figure(answer, "throughput_bytes_per_s").map(|bytes| bytes / 8192.0);
        assert!((rate / (share * most) - 1.0).abs() < 0.01, "{answer}");
        assert_eq!(answer["in_range"], true, "{answer}");
    }
    assert!(p99(&answers[0]) < p99(&answers[1]) && p99(&answers[1]) < p99(&answers[2]));
    let too_much = predictions(&work, &["-w", &at(3.0)]);
    assert_eq!(too_much[0]["in_range"], false, "{}", too_much[0]);
    let refused = work.refusal(&["predict", "r.jsonl", "-w", &rates[0], "--p99-max", "1ms"]);
    assert!(refused.contains("leave rate out"), "{refused}");
    let refused = work.refusal(&["compare", "r.jsonl", "r.jsonl", "-w", &rates[0]]);
    assert!(refused.contains("ioscape predict"), "{refused}");
}

#[test]
fn what_cannot_be_predicted_is_refused_in_one_line() {
    let work = maps::beside(&HDD);
    work.stdout(&["measure", "sim:hdd", "--out", "m.jsonl", "--rounds", "1"]);
    std::fs::write(work.path("text"), "hello\n").unwrap();
    std::fs::write(work.path("bad.toml"), "[one]\nread_frac = 2\n").unwrap();
    for (arguments, part) in [
        (["m.jsonl"].as_slice(), "longer --budget"),
        (&["missing.jsonl"], "missing.jsonl"),
        (&["text"], "text: "),
        (&["r.jsonl", "-w", "nonsense"], "no workload is called `nonsense`"),
        (&["r.jsonl", "-w", "read_frac=2"], "from 0 to 1"),
        (&["r.jsonl", "-w", "@bad.toml"], "bad.toml: [one]: read_frac=2"),
        (&["r.jsonl", "--set", "read_cache=0"], "above zero"),
        (&["r.jsonl", "--set", "read_cash=1GiB"], "unknown key `read_cash`"),
        (&["r.jsonl", "--set", "read_cache=1GiB,read_cache=2x"], "given twice"),
    ] {
        let line = work.refusal(&[&["predict"], arguments].concat());
        assert!(line.contains(part), "{arguments:?}: {line}");
        assert_eq!(line.trim_end().lines().count(), 1, "{line}");
    }
}
