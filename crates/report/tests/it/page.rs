//! The page.

use std::path::PathBuf;

use ioscape_model::{Interval, Record, Workload};
use ioscape_report::html;

use crate::fixture;

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
        "read border: throughput starts to fall at 227 MiB, the cache behind it holds 244 MiB \
         (238–251)",
    ] {
        assert!(text.contains(part), "{part}");
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
    assert!(words(&page).contains(
        "unique_bytes = 122 MiB, size_mean = 32 KiB, read_frac = 0.5, seq_frac = 0.5, process_num = 1"
    ));
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

#[test]
fn a_hostile_path_stays_text() {
    let mut record = fixture::full();
    let path = "/tmp/</script><b>bold</b><script>alert(1)</script>";
    record.header.target.path = path.into();
    record.findings[0].text = path.into();
    record.regions[0].name = path.into();
    let page = html(&record);
    let clean = html(&fixture::full());
    let count = |page: &str, tag: &str| page.matches(tag).count();
    for tag in ["<script", "</script", "<b>"] {
        assert_eq!(count(&page, tag), count(&clean, tag), "{tag}");
    }
    let landscape = charts(&page).into_iter().find(|chart| chart["id"] == "landscape").unwrap();
    assert_eq!(landscape["bands"][0]["name"], path, "and the script still sees it whole");
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
        ("measured", fixture::measured(), "One row per visit"),
    ] {
        let text = words(&rendered(name, &record));
        assert!(text.contains(said), "{name}: {said}");
        assert!(!text.contains("NaN") && !text.contains("inf "), "{name}");
    }
}

#[test]
fn five_hundred_workloads_fit_into_a_mebibyte() {
    let mut record = fixture::full();
    let template = record.estimates[0].clone();
    for i in record.estimates.len()..500 {
        let mut estimate = template.clone();
        estimate.workload = Workload { size_mean: 4096 * (i as u64 + 1), ..Workload::default() };
        estimate.throughput_bytes_per_s =
            Interval { mean: 1.234_567_89e9, low: 1.2e9, high: 1.3e9 };
        record.estimates.push(estimate);
    }
    let points = record.points.clone();
    record.points = points.into_iter().cycle().take(500).collect();
    let page = rendered("500", &record);
    assert!(page.len() <= 1 << 20, "{} bytes", page.len());
}

#[test]
fn the_same_record_gives_the_same_page() {
    assert_eq!(html(&fixture::full()), html(&fixture::full()));
}
