//! The page and the text of a comparison.

use ioscape_model::{
    CacheComparison, Code, Comparison, Comparisons, Curve, Figure, Interval, NotCompared, Overall,
    RecordWarnings, SystemComparison, Verdict, Want, Warning, Workload, named,
};
use ioscape_report::{ComparedSystem, ComparisonPage, comparison_html, comparison_text};

use crate::fixture;

fn document() -> Comparisons {
    let ratio = Figure { value: 1.02, low: 0.95, high: 1.09 };
    let capacity = Interval { mean: 256e6, low: 250e6, high: 262e6 };
    let doubt = Warning::new(Code::Drift, "the canary moved by 12 %", "repeat the run");
    let doubts = |record: &str, warnings| RecordWarnings { record: record.to_owned(), warnings };
    Comparisons {
        baseline: "a.jsonl".to_owned(),
        comparisons: vec![Comparison {
            record: "b.jsonl".to_owned(),
            name: "oltp".to_owned(),
            workload: named::named("oltp").unwrap(),
            baseline_bytes_per_s: 1e9,
            throughput_bytes_per_s: 1.02e9,
            ratio,
            resolution: 0.071,
            verdict: Verdict::NoDifferenceShown,
            pairs: None,
        }],
        dropped: vec![NotCompared {
            name: "scan".to_owned(),
            workload: named::named("scan").unwrap(),
            want_of: Want::Time,
        }],
        warnings: vec![doubts("a.jsonl", vec![]), doubts("b.jsonl", vec![doubt])],
        required_resolution: None,
        systems: vec![SystemComparison {
            record: "b.jsonl".to_owned(),
            verdict: Overall::NoDifferenceShown,
            geometric_mean: None,
            measured: None,
            caches: vec![CacheComparison {
                curve: Curve::Read,
                baseline_capacity_bytes: Some(capacity),
                capacity_bytes: Some(capacity),
                ratio: Some(ratio),
            }],
            regions: vec![],
            elements: vec![],
            beyond_tolerance: vec![],
            price: None,
        }],
        prices: vec![],
        verdict: Overall::NoDifferenceShown,
    }
}

pub(crate) fn with_page<T>(render: impl Fn(&ComparisonPage<'_>) -> T) -> T {
    let (record, document) = (fixture::full(), document());
    let systems = ["a.jsonl", "b.jsonl"].map(|file| ComparedSystem {
        record: &record,
        file: file.to_owned(),
        predicted: vec![(1e7, 2e9), (1e9, 1e8)],
    });
    render(&ComparisonPage {
        systems: systems.into(),
        document: &document,
        overlay: Workload::default(),
    })
}

#[test]
fn the_page_has_one_heading_of_the_first_order_and_each_table_a_caption_of_its_own() {
    let page = with_page(comparison_html);
    assert_eq!(page.matches("<h1").count(), 1);
    assert!(page.contains("<h1>A and B compared</h1>"));
    let caches = page.split("<h3>Caches</h3>").nth(1).unwrap();
    let caption = caches.split("<p class=\"aside\">").nth(1).unwrap();
    assert!(caption.starts_with("Size of the cache that ends at each border"), "{caption:.80}");
    let regions = "Throughput at each region";
    assert!(!page.contains(regions), "there is no table of regions to be explained");
}

#[test]
fn what_was_dropped_and_what_is_doubtful_stands_on_the_page_and_in_the_text() {
    let page = with_page(comparison_html);
    let text = with_page(|page| comparison_text(page, 80, false));
    for said in [
        "Not compared for want of time: scan.",
        "What to doubt about B",
        "the canary moved by 12 %",
        "would have been shown is 7.1 %",
    ] {
        assert!(page.contains(said), "{said}");
        assert!(text.contains(said), "{said} in {text}");
    }
    assert!(!page.contains("What to doubt about A") && !text.contains("What to doubt about A"));
    assert!(text.contains("Size of the cache that ends at each border"), "{text}");
}
