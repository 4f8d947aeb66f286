//! The page.

use std::path::PathBuf;

use ioscape_model::{
    Code, Dropped, Figure, PredictedTime, Prediction, Record, RegionName, Want, Workload,
};
use ioscape_report::{Answers, ReportPage, bearing_doubts};

use crate::browser::five_hundred;
use crate::fixture;

fn html(record: &Record) -> String {
    let conclusion = fixture::conclusion();
    let conclusion = record.map.as_ref().map(|_| &conclusion);
    ioscape_report::html(&ReportPage { conclusion, ..ReportPage::from_record(record) })
}

/// A model of a kind: a fixed cost per request and one per byte.
fn predicted(work: &Workload) -> Prediction {
    let seconds = 4e-6 + work.size_mean as f64 / 4e9;
    let around = |value: f64| Figure { value, low: value / 1.25, high: value * 1.25 };
    let rate = f64::from(work.process_num) * work.size_mean as f64 / seconds;
    Prediction {
        name: String::new(),
        workload: work.clone(),
        region: String::new(),
        put_together: false,
        in_range: true,
        throughput_bytes_per_s: around(rate),
        response_time_s: PredictedTime { mean: around(seconds), ..PredictedTime::default() },
        highest_rate_per_s: None,
        product_throughput_bytes_per_s: rate,
        warnings: vec![],
    }
}

fn html_with_model(record: &Record) -> String {
    let conclusion = fixture::conclusion();
    let (conclusion, answers) = (Some(&conclusion), Answers::new(&predicted));
    let page = ReportPage { conclusion, answers, ..ReportPage::from_record(record) };
    ioscape_report::html(&page)
}

/// Leaves the page where it can be looked at: `target/tmp/report-NAME.html`.
fn rendered(name: &str, record: &Record) -> String {
    let page = html(record);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}.html"));
    std::fs::write(path, &page).unwrap();
    page
}

/// The charts as the page's script reads them.
fn charts(page: &str) -> Vec<serde_json::Value> {
    let open = "<script type=\"application/json\" id=\"charts\">";
    let from = page.find(open).unwrap() + open.len();
    let to = from + page[from..].find("</script>").unwrap();
    serde_json::from_str(&page[from..to]).unwrap()
}

/// What a reader sees: the markup without its tags, its style, its scripts.
fn words(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some(open) = rest.find('<') {
        text.push_str(&rest[..open]);
        let unseen = ["style", "script"].into_iter().find(|tag| rest[open + 1..].starts_with(tag));
        let end = unseen.map_or(">".to_owned(), |tag| format!("</{tag}>"));
        let close = open + rest[open..].find(&end).unwrap() + end.len();
        rest = &rest[close..];
        text.push(' ');
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_first_screen_says_what_this_storage_is() {
    let text = words(&rendered("full", &fixture::full()));
    for part in [
        "/mnt/data ext4 on Samsung SSD 990 PRO 2TB (nvme0n1), under a memory limit of 256 MiB",
        "Limits memory 256 MiB, dirty data 64.0 MiB",
        "Reads are served from memory up to 244 MiB (238–251)",
        // The gravest doubt comes first, with its remedy; doubts about figures are gathered.
        "What to doubt drift serious",
        "repeat the run; until then do not compare figures below 10 % apart",
        "workloads, for example: throughput was still drifting by 7 % per second after 3.00 s",
        "read border: throughput begins to fall at 227 MiB, the cache holds 244 MiB (238–251)",
        // The answer, with its grade, what decides that, and what to do.
        "Behaves like flash (SSD): a random 4 KiB read takes 85.8 µs (11.7k IOPS).",
        "Memory or disk: which is the limit? Memory up to 244 MiB, the disk beyond.",
        "C (A best, D worst): only differences of a factor of two are real. Reasons: drift: something changed; \
         repeated measurements differ by 3.1 %",
        "More memory: a 4 KiB read takes 1.39 µs from memory.",
    ] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn a_gathered_doubt_has_the_figures_of_its_example_and_how_many_there_are() {
    let doubts = bearing_doubts(&fixture::full());
    let gathered = doubts.iter().find(|doubt| doubt.code == Code::NotSteady).unwrap();
    assert!(gathered.text.starts_with("9 of 115 workloads, for example: "), "{}", gathered.text);
    let figures = [("drift_share", 0.07), ("elapsed_s", 3.0), ("of_workloads", 115.0)];
    for (name, value) in figures.into_iter().chain([("workloads", 9.0)]) {
        assert_eq!(gathered.figures.get(name), Some(&value), "{name}");
    }
}

#[test]
fn every_region_has_its_family_with_the_focal_vector_stated() {
    let record = fixture::full();
    let page = html(&record);
    let charts = charts(&page);
    for region in 1..=3 {
        for (key, values) in
            [("size_mean", 9), ("read_frac", 5), ("seq_frac", 5), ("process_num", 4)]
        {
            let id = format!("region-{region}-{key}");
            let chart = charts.iter().find(|chart| chart["id"] == id.as_str()).unwrap();
            assert_eq!(chart["series"][0]["marks"].as_array().unwrap().len(), values, "{id}");
            assert!(!chart["bands"].as_array().unwrap().is_empty(), "{id} is shaded");
        }
    }
    assert!(
        words(&page).contains(
            "122 MiB of data, requests of 32 KiB, 50 % reads, 50 % sequential, 1 process"
        )
    );
}

#[test]
fn workloads_that_were_dropped_are_listed() {
    let mut record = fixture::measured();
    record.end = fixture::full().end;
    let workload = ioscape_model::named::named("oltp").unwrap();
    record.end.as_mut().unwrap().dropped = vec![Dropped { workload, want_of: Want::Time }];
    let text = words(&html(&record));
    assert!(text.contains("Workloads that were dropped: oltp (want of time)."), "{text}");
}

#[test]
fn what_holds_in_one_region_is_said_there() {
    let page = html(&fixture::full());
    let sentence = "<li>Good request sizes are 256 KiB to 1 MiB.</li>";
    assert_eq!(page.matches(sentence).count(), 1);
    assert!(page.find(sentence) > page.find("id=\"region-3\""));
}

#[test]
fn the_landscape_has_three_curves_with_intervals_two_borders_and_three_regions() {
    let charts = charts(&html(&fixture::full()));
    let landscape = charts.iter().find(|chart| chart["id"] == "landscape").unwrap();
    let names: Vec<&str> = landscape["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["reads only", "writes only", "50 % reads"]);
    for mark in landscape["series"][0]["marks"].as_array().unwrap() {
        let [mean, low, high] = [1, 2, 3].map(|i| mark[i].as_f64().unwrap());
        assert!(low < mean && mean < high, "{mark}");
    }
    let kinds = |list: &str, kind: &str| {
        landscape[list].as_array().unwrap().iter().filter(|x| x["kind"] == kind).count()
    };
    assert_eq!((kinds("rules", "onset"), kinds("rules", "capacity")), (2, 2));
    assert_eq!((kinds("bands", "region"), kinds("bands", "doubt")), (3, 2));
}

#[test]
fn every_drawn_figure_also_stands_in_a_table_and_can_be_measured_again() {
    let record = fixture::full();
    let page = html(&record);
    for estimate in &record.estimates {
        let command =
            format!("ioscape measure /mnt/data -w {}</code>", estimate.workload.literal());
        assert!(page.contains(&command), "{command}");
    }
    for chart in charts(&page) {
        let id = chart["id"].as_str().unwrap();
        let marks: usize = chart["series"]
            .as_array()
            .unwrap()
            .iter()
            .map(|series| series["marks"].as_array().unwrap().len())
            .sum();
        let from = page.find(&format!("data-chart=\"{id}\"")).unwrap();
        let figure = &page[from..from + page[from..].find("</figure>").unwrap()];
        assert_eq!(figure.matches("<tr><td>").count(), marks, "{id}");
        assert!(figure.contains("<figcaption>"), "{id}");
    }
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    let page = html(&fixture::full());
    assert!(page.contains("default-src 'none'"), "the browser is told so too");
    for (at, _) in page.match_indices("http") {
        let address: String = page[at..]
            .chars()
            .take_while(|c| !c.is_whitespace() && !"\"'`),<".contains(*c))
            .collect();
        // Names of XML vocabularies, and licences that say where they come from.
        let known = ["http-equiv=", "http://www.w3.org/", "http://www.apache.org/licenses"];
        assert!(known.iter().any(|name| address.starts_with(name)), "{address}");
    }
    for loading in [" src=", "@import", "url(", "<iframe", "<link rel=\"stylesheet\""] {
        let ours = page.replace(include_str!("../../assets/plot.min.js"), "");
        assert!(!ours.contains(loading), "{loading}");
    }
}

/// Every string of a record that can be reached through JSON, replaced.
fn poisoned(value: &mut serde_json::Value, poison: &str) {
    // What the format spells, and what a number or a comparison hangs on, has to stay.
    const FIXED: [&str; 9] =
        ["kind", "method", "role", "curve", "reason", "code", "severity", "state", "access"];
    match value {
        serde_json::Value::Object(object) => {
            for (key, inner) in object.iter_mut() {
                let is_free = !FIXED.contains(&key.as_str()) && key != "workload" && key != "focal";
                match inner {
                    serde_json::Value::String(text) if is_free => poison.clone_into(text),
                    _ if is_free => poisoned(inner, poison),
                    _ => {}
                }
            }
        }
        serde_json::Value::Array(all) => all.iter_mut().for_each(|inner| match inner {
            serde_json::Value::String(text) => poison.clone_into(text),
            inner => poisoned(inner, poison),
        }),
        _ => {}
    }
}

#[test]
fn whatever_a_record_says_stays_text() {
    let full = fixture::full();
    let poison = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'><b>&amp;";
    let mut header = serde_json::to_value(&full.header).unwrap();
    poisoned(&mut header, poison);
    let mut record = Record { header: serde_json::from_value(header).unwrap(), ..full.clone() };
    for finding in &mut record.findings {
        finding.text = poison.into();
        finding.clause = finding.clause.take().map(|_| poison.into());
    }
    record.warnings.iter_mut().for_each(|w| (w.text, w.remedy) = (poison.into(), poison.into()));
    record.map.as_mut().unwrap().log = vec![poison.into()];
    let (page, clean) = (html_with_model(&record), html_with_model(&full));
    let count = |page: &str, tag: &str| page.matches(tag).count();
    for tag in ["<script", "</script", "<b>", "<img", "alert(1)</"] {
        assert_eq!(count(&page, tag), count(&clean, tag), "{tag}");
    }
    assert!(count(&page, "&#60;img src=x onerror=alert(2)&#62;") > 20, "and it is all there");
    assert!(poison.parse::<RegionName>().is_err(), "and no region of a record has such a name");
}

#[test]
fn a_finding_of_an_old_record_is_shown_with_its_whole_sentence() {
    let mut record = fixture::full();
    for finding in &mut record.findings {
        (finding.region, finding.clause) = (None, None);
    }
    let page = html(&record);
    let whole = "<li>In the storage region (244 MiB to 1 GiB), good request sizes are";
    assert_eq!(page.matches(whole).count(), 1);
    assert!(!page.contains("<li>Good request sizes are"));
}

#[test]
fn records_with_less_in_them_still_make_a_page() {
    let full = fixture::full();
    let mut provisional = full.clone();
    provisional.end = None;
    provisional.map.as_mut().unwrap().provisional = true;
    let mut unknown = full.clone();
    unknown.estimates.iter_mut().for_each(|estimate| estimate.hit_fraction = None);
    let no_regions = Record { regions: vec![], borders: vec![], findings: vec![], ..full.clone() };
    let points_only =
        Record { estimates: vec![], regions: vec![], borders: vec![], map: None, ..full };
    for (name, record, said) in [
        ("empty", fixture::empty(), "Nothing has been measured yet"),
        ("provisional", provisional, "The map is provisional"),
        ("unknown", unknown, "The regions"),
        ("no-regions", no_regions, "No finding yet."),
        ("points-only", points_only, "No map was closed"),
        ("measured", fixture::measured(), "One row per measurement"),
    ] {
        let text = words(&rendered(name, &record));
        assert!(text.contains(said), "{name}: {said}");
        assert!(!text.contains("NaN") && !text.contains("inf "), "{name}");
    }
}

#[test]
fn five_hundred_workloads_fit_into_a_mebibyte() {
    let page = html_with_model(&five_hundred());
    std::fs::write(PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("report-500-model.html"), &page)
        .unwrap();
    assert!(page.len() <= 1 << 20, "{} bytes", page.len());
}

/// One line for each heading, paragraph, list item and row of a table; long tables, which are
/// folded away, are left out.
fn text_lines(page: &str) -> String {
    let parts: Vec<&str> = page.split("</details>").collect();
    let seen = parts.iter().map(|part| part.split("<details").next().unwrap_or_default());
    let mut broken: String = seen.collect();
    for tag in ["h1", "h2", "h3", "p", "li", "tr", "dt", "summary", "figcaption", "footer", "pre"] {
        for open in [format!("<{tag}>"), format!("<{tag} ")] {
            broken = broken.replace(&open, &format!("\u{1}{open}"));
        }
    }
    for cell in ["<th", "<td", "<dd"] {
        broken = broken.replace(cell, &format!(" | {cell}"));
    }
    let text = words(&broken);
    let lines = text.split('\u{1}').map(|line| line.trim().trim_start_matches("| "));
    let kept: Vec<&str> = lines.filter(|line| !line.is_empty()).collect();
    kept.join("\n") + "\n"
}

#[test]
fn a_page_names_its_runs_in_an_element_that_no_record_can_break() {
    let mut record = fixture::full();
    let mark = ioscape_report::page_mark([&record]);
    assert!(html_with_model(&record).contains(&mark));
    assert!(mark.contains(&record.header.run_id), "{mark}");
    record.header.run_id = "\"><script>alert(1)</script>".to_owned();
    let mark = ioscape_report::page_mark([&record]);
    assert!(!mark.contains("script>") && mark.matches('"').count() == 4, "{mark}");
}

/// `page.txt` is what the page of the fixture says; after a change that is meant, copy
/// `target/tmp/page.txt` over it.
#[test]
fn the_page_of_a_whole_run_says_what_it_ever_said() {
    let found = text_lines(&html_with_model(&fixture::full()));
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("page.txt");
    std::fs::write(path, &found).unwrap();
    let expected = include_str!("page.txt");
    let differs = found.lines().zip(expected.lines()).find(|(a, b)| a != b);
    assert_eq!(differs, None, "the first line that differs, found and expected");
    assert_eq!(found.len(), expected.len());
}

#[test]
fn a_model_draws_its_curve_and_its_band_over_the_whole_range() {
    let page = html_with_model(&fixture::full());
    let charts = charts(&page);
    let chart = |id: &str| charts.iter().find(|chart| chart["id"] == id).unwrap();
    let series = |id: &str| chart(id)["series"].as_array().unwrap().clone();
    for key in ["size_mean", "read_frac", "seq_frac", "process_num"] {
        let all = series(&format!("region-2-{key}"));
        let drawn: Vec<&str> = all.iter().map(|s| s["drawn"].as_str().unwrap()).collect();
        assert_eq!(drawn, ["curve", "dots"], "{key}");
        for mark in all[0]["marks"].as_array().unwrap() {
            let [mean, low, high] = [1, 2, 3].map(|i| mark[i].as_f64().unwrap());
            assert!(low < mean && mean < high, "{key}: {mark}");
        }
        let note = all[1]["marks"][0][4].as_str().unwrap();
        assert!(note.contains("model "), "{key}: {note}");
    }
    let sizes = series("region-3-size_mean")[0]["marks"].as_array().unwrap().clone();
    let ends = [&sizes[0], sizes.last().unwrap()].map(|mark| mark[0].as_u64().unwrap());
    assert_eq!(ends, [4096, 1_049_000], "four digits");
    assert_eq!(series("costs-1").len(), 4, "a curve for each class of requests");
    // Without a model there is no curve, and nobody claims that there is one.
    let plain = html(&fixture::full());
    assert!(words(&page).contains("Grey: the model’s prediction"));
    assert!(!words(&plain).contains("Grey: the model’s prediction"));
    assert!(!plain.contains("\"drawn\":\"curve\"") && !plain.contains("What a request costs"));
}

#[test]
fn response_times_of_all_regions_share_their_axes() {
    let charts = charts(&html(&fixture::full()));
    let of = |kind: &str| {
        let id = format!("responses-{kind}");
        charts.iter().find(|chart| chart["id"] == id.as_str()).unwrap().clone()
    };
    for kind in ["reads", "writes", "focal"] {
        let chart = of(kind);
        let series = chart["series"].as_array().unwrap();
        assert_eq!(series.len(), 3, "{kind}: one line for each region");
        assert!(series.iter().all(|s| s["marks"].as_array().unwrap().len() == 5), "{kind}");
        assert_eq!(chart["y"]["reach"], of("reads")["y"]["reach"]);
        assert_eq!(chart["y"]["foot"], of("reads")["y"]["foot"]);
    }
}

#[test]
fn the_same_record_gives_the_same_page() {
    assert_eq!(html(&fixture::full()), html(&fixture::full()));
}
