//! The page and the table of a validation.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ioscape_model::{
    Errors, Figure, Method, ModelName, Record, Repeatability, Validation, ValidationPoint, Workload,
};
use ioscape_report::{ValidationPage, validation_html, validation_text};

use crate::fixture;

const MODELS: [(ModelName, f64); 4] = [
    (ModelName::Blend, 0.06),
    (ModelName::Product, 0.45),
    (ModelName::Gaussian, 0.21),
    (ModelName::Orthogonal, 0.30),
];

/// Sixty workloads; each model is off by its figure, up and down in turn, twice as much for
/// every third workload.
fn validation() -> Validation {
    let point = |i: u64| {
        let measured = 40e6 * 1.09_f64.powi(i as i32);
        let figure = |(name, off): (ModelName, f64)| {
            let off = off * if i.is_multiple_of(3) { 2.0 } else { 1.0 };
            let value =
                if i.is_multiple_of(2) { measured / (1.0 + off) } else { measured * (1.0 + off) };
            let width = if name == ModelName::Blend { 1.2 } else { 1.0 };
            (name, Figure { value, low: value / width, high: value * width })
        };
        ValidationPoint {
            workload: Workload {
                unique_bytes: (8 << 20) + (i * 37 % 60) * (16 << 20),
                size_mean: 4096 * (1 + i * 11 % 60),
                read_frac: (i * 7 % 60) as f64 / 60.0,
                seq_frac: (i * 13 % 60) as f64 / 60.0,
                process_num: 1 + (i % 4) as u32,
                ..Workload::default()
            },
            measured_bytes_per_s: vec![measured * 1.02, measured / 1.02],
            predicted_bytes_per_s: MODELS.map(figure).into(),
            in_border_band: i < 7,
        }
    };
    let errors = |(name, off): (ModelName, f64)| {
        let of_blend = |value: f64| (name == ModelName::Blend).then_some(value);
        let errors = Errors {
            workloads: 60,
            median: off,
            median_low: off * 0.9,
            median_high: off * 1.2,
            median_even_sizes: off,
            p75: off * 2.0,
            p90: off * 2.0,
            log_median: off * 0.95,
            coverage: of_blend(0.9),
            interval_ratio_median: of_blend(1.44),
            median_outside_bands: off,
            dropped: 7,
        };
        (name, errors)
    };
    let rho = |value: f64| {
        BTreeMap::from([("unique_bytes".to_owned(), -value), ("read_frac".to_owned(), 0.1)])
    };
    Validation {
        record: "ioscape-20261120T101500Z.jsonl".to_owned(),
        seed: 7,
        workloads: 60,
        models: MODELS.map(errors).into(),
        rank_correlation: [(ModelName::Blend, rho(0.5))].into(),
        repeatability: Repeatability { median: 0.04, p90: 0.09 },
        single_point_errors: [("andrew".to_owned(), 0.61), ("bonnie-1990".to_owned(), 0.85)].into(),
        points: (0..60).map(point).collect(),
    }
}

fn trial() -> Record {
    let mut trial = fixture::measured();
    trial.header.method = Method::Validate;
    trial
}

/// Leaves the page where it can be looked at: `target/tmp/report-validation.html`.
fn rendered(validation: &Validation) -> (String, String) {
    let (record, trial) = (fixture::full(), trial());
    let single_points = [("andrew".to_owned(), 120e6), ("bonnie block write".to_owned(), 900e6)];
    let page = ValidationPage {
        record: &record,
        trial: &trial,
        validation,
        single_points: &single_points,
    };
    let html = validation_html(&page);
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("report-validation.html");
    std::fs::write(path, &html).unwrap();
    (html, validation_text(&page, 80, false))
}

/// However the lines are broken.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn charts(html: &str) -> Vec<serde_json::Value> {
    let open = "<script type=\"application/json\" id=\"charts\">";
    let from = html.find(open).unwrap() + open.len();
    let to = from + html[from..].find("</script>").unwrap();
    serde_json::from_str(&html[from..to]).unwrap()
}

#[test]
fn all_models_are_scattered_with_the_blend_in_front() {
    let charts = charts(&rendered(&validation()).0);
    let ids: Vec<&str> = charts.iter().map(|chart| chart["id"].as_str().unwrap()).collect();
    assert_eq!(
        ids,
        [
            "predicted",
            "distribution",
            "error-unique_bytes",
            "error-size_mean",
            "error-read_frac",
            "error-seq_frac",
            "error-process_num",
        ]
    );
    let series = charts[0]["series"].as_array().unwrap();
    let names: Vec<&str> = series.iter().map(|s| s["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["product", "orthogonal", "gaussian", "blend"]);
    for (series, has_intervals) in series.iter().zip([false, false, false, true]) {
        let marks = series["marks"].as_array().unwrap();
        assert_eq!(marks.len(), 60);
        assert!(marks.iter().all(|mark| (mark[2] != mark[3]) == has_intervals), "{series}");
    }
    let rules = charts[0]["rules"].as_array().unwrap();
    let kinds: Vec<&str> = rules.iter().map(|rule| rule["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["level", "level", "diagonal"]);
}

#[test]
fn errors_over_each_parameter_are_those_of_blend_and_product_at_one_scale() {
    let charts = charts(&rendered(&validation()).0);
    for chart in &charts[2..] {
        assert_eq!(chart["series"].as_array().unwrap().len(), 2, "{}", chart["id"]);
        assert_eq!(chart["y"]["reach"], charts[2]["y"]["reach"], "{}", chart["id"]);
    }
}

#[test]
fn the_table_has_every_model_and_repeatability_in_its_own_row() {
    let (html, text) = rendered(&validation());
    for name in ["blend", "product", "gaussian", "orthogonal", "repeatability"] {
        assert!(html.contains(&format!("<th scope=\"row\">{name}</th>")), "{name}");
        assert!(text.lines().any(|line| line.trim_start().starts_with(name)), "{name}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    for part in [
        "60 random workloads, each measured twice, seed 7.",
        "greatest where unique_bytes is small",
        "7 workloads lie near a border",
        "andrew 61 %, bonnie-1990 85 % (Chen and Patterson",
    ] {
        assert!(words(&text).contains(part), "{part}: {text}");
    }
}

#[test]
fn an_error_that_chance_can_bring_about_is_not_laid_on_a_parameter() {
    let mut validation = validation();
    let of_blend = validation.rank_correlation.get_mut(&ModelName::Blend).unwrap();
    of_blend.insert("unique_bytes".to_owned(), -0.2);
    let (_, text) = rendered(&validation);
    assert!(words(&text).contains("chance alone"), "{text}");
    assert!(!text.contains("greatest where"), "{text}");
}

#[test]
fn half_a_validation_says_so_and_an_empty_one_too() {
    let mut validation = validation();
    for point in &mut validation.points[50..] {
        point.measured_bytes_per_s.pop();
    }
    let (html, text) = rendered(&validation);
    assert!(text.contains("It was interrupted: 50 of 60 random workloads"), "{text}");
    assert_eq!(charts(&html)[0]["series"][0]["marks"].as_array().unwrap().len(), 50);
    let empty = Validation { points: vec![], models: BTreeMap::new(), ..validation };
    let (html, text) = rendered(&empty);
    assert!(text.contains("nothing can be said") && html.contains("nothing can be said"));
}

#[test]
fn a_model_that_did_not_answer_for_all_workloads_says_for_how_many() {
    let mut validation = validation();
    validation.models.get_mut(&ModelName::Orthogonal).unwrap().workloads = 41;
    let (html, _) = rendered(&validation);
    assert!(html.contains("<th scope=\"row\">orthogonal (41 of 60)</th>"));
    assert!(html.contains("<th scope=\"row\">product</th>"));
}
