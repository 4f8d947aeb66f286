//! Systems compared with a baseline, from records of simulated devices.

use std::sync::LazyLock;

use ioscape_engine::sim::SimSpec;

use crate::workdir::Workdir;

/// What the runs wrote: name and text. They are made once, for all tests.
static RECORDS: LazyLock<Vec<(&str, Vec<u8>)>> = LazyLock::new(|| {
    let work = Workdir::new();
    let slow = SimSpec::preset("nvme").unwrap().at_speed(1.0 / 1.5);
    std::fs::write(work.path("slow.toml"), slow.to_toml()).unwrap();
    let runs = [
        ("sim:nvme", "one.jsonl", "1"),
        ("sim:nvme", "again.jsonl", "2"),
        ("sim:slow.toml", "slow.jsonl", "3"),
    ];
    let record = |(target, name, seed): (&str, &'static str, &str)| {
        let arguments = ["run", target, "--out", name, "--seed", seed, "--budget", "4m"];
        work.stdout(&[&arguments[..], &["--report", "none", "--quiet"]].concat());
        (name, std::fs::read(work.path(name)).unwrap())
    };
    runs.into_iter().map(record).collect()
});

/// A directory with all of the records.
fn records() -> Workdir {
    let work = Workdir::new();
    for (name, text) in RECORDS.iter() {
        std::fs::write(work.path(name), text).unwrap();
    }
    work
}

#[test]
fn a_slower_system_is_found_and_the_same_one_is_not() {
    let work = records();
    let same = work.json(&["compare", "one.jsonl", "again.jsonl", "--json"]);
    assert_eq!(same["baseline"], "one.jsonl");
    assert_eq!(same["verdict"], "no_difference_shown", "{same:#}");
    assert_eq!(same["comparisons"].as_array().unwrap().len(), 12);
    for comparison in same["comparisons"].as_array().unwrap() {
        assert_eq!(comparison["record"], "again.jsonl");
        let [low, value, high] =
            ["low", "value", "high"].map(|end| comparison["ratio"][end].as_f64().unwrap());
        assert!(low <= value && value <= high, "{comparison}");
        assert!(comparison["verdict"].is_string() && comparison["workload"].is_object());
    }
    let itself = work.json(&["compare", "one.jsonl", "one.jsonl", "--json"]);
    assert_eq!(itself["verdict"], "no_difference_shown");
    assert_eq!(itself["systems"][0]["geometric_mean"]["ratio"]["value"], 1.0);

    let slow = work.json(&["compare", "one.jsonl", "slow.jsonl", "again.jsonl", "--json"]);
    assert_eq!(slow["verdict"], "slower", "{slow:#}");
    assert_eq!(slow["systems"][0]["verdict"], "slower");
    assert_eq!(slow["systems"][1]["verdict"], "no_difference_shown");
    let ratio = slow["systems"][0]["geometric_mean"]["ratio"]["value"].as_f64().unwrap();
    assert!((ratio * 1.5 - 1.0).abs() < 0.1, "{ratio}");
    for cache in slow["systems"][0]["caches"].as_array().unwrap() {
        let ratio = cache["ratio"]["value"].as_f64().unwrap_or(1.0);
        assert!((ratio - 1.0).abs() < 0.15, "the caches are the same: {cache}");
    }
}

#[test]
fn what_no_record_measured_is_not_answered() {
    let work = records();
    let far = ["compare", "one.jsonl", "again.jsonl", "--json", "-w", "unique_bytes=64TiB"];
    let output = work.output(&far);
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["verdict"], "out_of_range", "{json:#}");
    assert_eq!(json["systems"][0]["verdict"], "out_of_range");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("none of the workloads") && said.lines().count() == 1, "{said}");
    let apart = ["compare", "one.jsonl", "slow.jsonl", "-w", "unique_bytes=64TiB"];
    assert_eq!(work.output(&apart).status.code(), Some(3), "whatever was measured elsewhere");
    let both = work.json(&[&far[..], &["-w", "oltp"]].concat());
    assert_eq!(both["verdict"], "no_difference_shown", "one of the two is answered");
}

#[test]
fn a_comparison_says_from_where_on_it_would_have_seen_a_difference_and_can_be_held_to_it() {
    let work = records();
    let compare = ["compare", "one.jsonl", "again.jsonl"];
    let json = work.json(&[&compare[..], &["--json"]].concat());
    assert!(json["required_resolution"].is_null());
    for comparison in json["comparisons"].as_array().unwrap() {
        let ratio = |end: &str| comparison["ratio"][end].as_f64().unwrap();
        let half_width = (ratio("high") / ratio("low")).sqrt() - 1.0;
        let resolution = comparison["resolution"].as_f64().unwrap();
        assert!((resolution / half_width - 1.0).abs() < 1e-6, "{comparison}");
    }
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(&work.stdout(&compare));
    assert!(text.contains("The smallest difference that would have been shown is"), "{text}");
    for (resolution, code, verdict) in
        [("90%", 0, "no_difference_shown"), ("0.1%", 1, "inconclusive")]
    {
        let required = [&compare[..], &["--json", "--require-resolution", resolution]].concat();
        let output = work.output(&required);
        assert_eq!(output.status.code(), Some(code), "{resolution}");
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(json["verdict"], verdict);
        assert_eq!(json["comparisons"][0]["verdict"], verdict);
    }
    let output = work.output(&[&compare[..], &["--require-resolution", "0.1%"]].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    for said in ["Inconclusive: ", "too wide to have shown a difference of 0.1 % on compile ("] {
        assert!(words(&text).contains(said), "{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn what_is_doubtful_about_each_record_stands_beside_the_comparison() {
    let work = records();
    work.stdout(&[
        "run",
        "sim:nvme",
        "--out",
        "short.jsonl",
        "--seed",
        "4",
        "--budget",
        "1m",
        "--report",
        "none",
        "--quiet",
    ]);
    let compare = ["compare", "one.jsonl", "short.jsonl"];
    let json = work.json(&[&compare[..], &["--json"]].concat());
    let all = json["warnings"].as_array().unwrap();
    assert_eq!(all.len(), 2);
    assert_eq!(all[1]["record"], "short.jsonl");
    let codes: Vec<&str> = all[1]["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w["code"].as_str().unwrap())
        .collect();
    assert!(codes.contains(&"incomplete"), "{codes:?}");
    let text = work.stdout(&compare);
    let doubts = text.split("What to doubt about B").nth(1).unwrap();
    assert!(doubts.contains("incomplete: "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn what_is_worse_than_tolerated_is_exit_code_1_and_a_page_and_a_text_say_so() {
    let work = records();
    let arguments = ["compare", "one.jsonl", "slow.jsonl", "--tolerance", "5%"];
    let output = work.output(&[&arguments[..], &["--out", "page.html"]].concat());
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("B is slower") && text.contains("than the tolerance allows"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let page = std::fs::read_to_string(work.path("page.html")).unwrap();
    assert!(page.contains("B is slower") && page.contains("\"overlay\""));
    assert!(!page.contains("http-equiv=\"refresh\"") && !page.contains("src=\"http"));
    let fine = work.output(&["compare", "one.jsonl", "again.jsonl", "--tolerance", "5%"]);
    assert_eq!(fine.status.code(), Some(0));
    let faster = work.output(&["compare", "slow.jsonl", "one.jsonl", "--tolerance", "5%"]);
    assert_eq!(faster.status.code(), Some(0));
}

#[test]
fn a_price_is_worth_it_or_not() {
    let work = records();
    let worth = |prices: &str| {
        let json = work.json(&["compare", "slow.jsonl", "one.jsonl", "--json", "--price", prices]);
        let per_unit = json["prices"][1]["mb_per_s_per_unit"].as_f64().unwrap();
        (json["systems"][0]["price"]["worth"].as_str().unwrap().to_owned(), per_unit)
    };
    let (cheap, more) = worth("A=100,B=120");
    let (dear, less) = worth("slow=100,one.jsonl=300");
    assert_eq!((cheap.as_str(), dear.as_str()), ("worth_it", "not_worth_it"));
    assert!((more / less / 2.5 - 1.0).abs() < 1e-9);
    assert_eq!(worth("1=100,2=150").0, "cannot_be_said");
}

#[test]
fn given_workloads_replace_the_named_ones() {
    let work = records();
    let arguments = ["compare", "one.jsonl", "slow.jsonl", "--json", "-w", "oltp"];
    let more = ["-w", "unique_bytes=64MiB,read_frac=1"];
    let json = work.json(&[&arguments[..], &more].concat());
    let names: Vec<&str> = json["comparisons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| c["name"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), 2);
    assert_eq!(names[0], "oltp");
}

#[test]
fn what_cannot_be_compared_is_refused_in_one_line() {
    let work = records();
    work.stdout(&["measure", "sim:nvme", "-w", "oltp", "--out", "few.jsonl", "--quiet"]);
    let paper = ["--method", "paper", "--out", "paper.jsonl", "--report", "none", "--quiet"];
    work.stdout(&[&["run", "sim:nvme"][..], &paper].concat());
    for (arguments, part) in [
        (&["one.jsonl"][..], "two records are needed"),
        (&["one.jsonl", "missing.jsonl"], "cannot open missing.jsonl"),
        (&["one.jsonl", "few.jsonl"], "few.jsonl: "),
        (&["one.jsonl", "one.jsonl", "--price", "A=0,B=2"], "above zero"),
        (&["one.jsonl", "one.jsonl", "--price", "A=1,D=2"], "names no record"),
        (&["one.jsonl", "paper.jsonl"], "different methods"),
        (&["one.jsonl", "one.jsonl", "-w", "oltpp"], "no workload is called"),
        (&["one.jsonl", "one.jsonl", "--out", "one.jsonl"], "is a record"),
    ] {
        let line = work.refusal(&[&["compare"], arguments].concat());
        assert!(line.contains(part) && line.trim_end().lines().count() == 1, "{line}");
    }
}
