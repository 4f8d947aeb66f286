use ioscape_model::PriceComparison;

use super::*;

fn figure(value: f64) -> Figure {
    Figure { value, low: 0.9 * value, high: 1.1 * value }
}

fn comparison(name: &str, verdict: Verdict) -> Comparison {
    Comparison {
        record: "b.jsonl".to_owned(),
        name: name.to_owned(),
        workload: Workload::default(),
        baseline_bytes_per_s: 1e9,
        throughput_bytes_per_s: 2e9,
        ratio: figure(2.0),
        resolution: 0.1,
        verdict,
        pairs: None,
    }
}

fn system(verdict: Overall, mean: Verdict) -> SystemComparison {
    let geometric_mean =
        OverallRatio { ratio: figure(1.3), resolution: 0.04, verdict: mean, workloads: 12 };
    SystemComparison {
        record: "b.jsonl".to_owned(),
        verdict,
        geometric_mean: Some(geometric_mean),
        measured: None,
        caches: vec![],
        regions: vec![],
        elements: vec![],
        beyond_tolerance: vec![],
        price: None,
    }
}

#[test]
fn one_sentence_says_what_was_found_and_where() {
    use Verdict::{Faster, NoDifferenceShown, Slower};
    let mixed = [comparison("oltp", Faster), comparison("scan", Slower)];
    for (system, comparisons, said) in [
        (
            system(Overall::Faster, Faster),
            &[comparison("oltp", Faster), comparison("scan", NoDifferenceShown)][..],
            "B is faster over all and on oltp (95 % certain that all of this holds). Unclear: scan. Throughput of B over A, predicted \
             for 12 workloads, cache hits included: × 1.30 (95 %: 1.17–1.43) in the geometric mean; single estimates from × 2.00 (oltp) to × 2.00 (scan, unclear).",
        ),
        (
            system(Overall::Mixed, NoDifferenceShown),
            &mixed,
            "B is faster on oltp and slower on scan (95 % certain that all of this holds). Throughput of B over A, predicted \
             for 12 workloads, cache hits included: × 1.30 (95 %: 1.17–1.43) in the geometric mean, which may be chance; single estimates from × 2.00 (oltp) to × 2.00 (scan).",
        ),
        (
            system(Overall::Slower, Slower),
            &[],
            "B is slower over all (95 % certain). Throughput of B over A, predicted \
             for 12 workloads: × 1.30 (95 %: 1.17–1.43) in the geometric mean.",
        ),
    ] {
        assert_eq!(sentence(&system, comparisons, "B"), said);
    }
    let same = system(Overall::NoDifferenceShown, NoDifferenceShown);
    let fine = Comparison { resolution: 0.02, ..comparison("oltp", NoDifferenceShown) };
    let coarse = comparison("scan", NoDifferenceShown);
    let said = sentence(&same, &[fine, coarse], "C");
    assert!(said.starts_with("No difference shown between C and A"), "{said}");
    let smallest = "would have been shown is 4.0 % over all, 2.0 % to 10 % on single workloads.";
    let (found, ratios) = said.split_once(" Throughput of C over A, predicted").unwrap();
    assert!(found.ends_with(smallest), "{said}");
    assert!(ratios.ends_with("from × 2.00 (oltp, unclear) to × 2.00 (scan, unclear)."), "{said}");
    let far = [comparison("oltp", Faster), comparison("depth=64", Verdict::OutOfRange)];
    let said = sentence(&system(Overall::Faster, Faster), &far, "B");
    assert!(
        said.contains("Not compared, out of the range measured on B or on A: depth=64."),
        "{said}"
    );
}

#[test]
fn the_smallest_difference_is_a_share_and_where_it_is_large_a_ratio() {
    assert_eq!([0.0712, 0.264, 4.2, 61.0].map(resolution), ["7.1 %", "26 %", "× 5.2", "× 62"]);
}

#[test]
fn worth_is_said_with_its_exceptions() {
    let workloads = [("oltp", Worth::WorthIt), ("scan", Worth::NotWorthIt)];
    let price = PriceComparison {
        price_ratio: 2.0,
        worth: Worth::NotWorthIt,
        workloads: workloads.into_iter().map(|(name, worth)| (name.to_owned(), worth)).collect(),
    };
    let system =
        SystemComparison { price: Some(price), ..system(Overall::Faster, Verdict::Faster) };
    let said = worth(&system, "B").unwrap();
    assert!(
        said.contains("× 2.00 the price: it is not worth its price. Worth it on oltp."),
        "{said}"
    );
    assert!(!said.contains("scan"), "{said}");
}

#[test]
fn small_figures_keep_two_digits() {
    let shown = [0.0, 0.00834, 0.0521, 0.987, 2.083, 41.27].map(two_digits_at_least);
    assert_eq!(shown, ["0.00", "0.0083", "0.052", "0.99", "2.08", "41.3"]);
}

#[test]
fn systems_have_letters() {
    assert_eq!([0, 1, 25, 26].map(letter), ["A", "B", "Z", "#27"]);
}
