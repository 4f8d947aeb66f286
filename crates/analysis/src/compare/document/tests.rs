use ioscape_model::{
    Comparison, Figure, NotCompared, Overall, OverallRatio, RecordWarnings, SystemComparison,
    Verdict, Want, Workload, Worth,
};

use super::{Against, Demands, Evidence, document, unknown};

fn figure(value: f64, half: f64) -> Figure {
    Figure { value, low: value * (1.0 - half), high: value * (1.0 + half) }
}

fn on(name: &str, rates: [f64; 2], half: f64, verdict: Verdict) -> Comparison {
    let [baseline_bytes_per_s, throughput_bytes_per_s] = rates;
    Comparison {
        record: "b.jsonl".to_owned(),
        name: name.to_owned(),
        workload: Workload::default(),
        baseline_bytes_per_s,
        throughput_bytes_per_s,
        ratio: figure(throughput_bytes_per_s / baseline_bytes_per_s, half),
        resolution: half,
        verdict,
        pairs: None,
    }
}

fn file(name: &str) -> RecordWarnings {
    RecordWarnings { record: name.to_owned(), warnings: vec![] }
}

fn system(name: &str, mean: f64) -> SystemComparison {
    let ratio = figure(mean, 0.01);
    let verdict = if mean < 1.0 { Verdict::Slower } else { Verdict::Faster };
    let sum = OverallRatio { ratio, resolution: 0.01, verdict, workloads: 2 };
    SystemComparison { geometric_mean: Some(sum), ..unknown(&file(name)) }
}

/// A third of the speed on `mail`, as fast on `scan`; the other twice as fast, and not in range on
/// `scan`.
fn two() -> Evidence {
    let slower = Against {
        system: system("b.jsonl", 0.6),
        comparisons: vec![
            on("mail", [3e6, 1e6], 0.1, Verdict::Slower),
            on("scan", [4e6, 4e6], 0.1, Verdict::NoDifferenceShown),
            on("oltp", [2e6, 1.9e6], 0.01, Verdict::Slower),
        ],
    };
    let faster = Against {
        system: system("c.jsonl", 2.0),
        comparisons: vec![
            on("mail", [3e6, 6e6], 0.1, Verdict::Faster),
            on("scan", [4e6, 8e6], 0.1, Verdict::OutOfRange),
            on("oltp", [2e6, 4e6], 0.1, Verdict::Faster),
        ],
    };
    let dropped = vec![NotCompared {
        name: "backup".to_owned(),
        workload: Workload::default(),
        want_of: Want::Time,
    }];
    Evidence { against: vec![slower, faster], dropped, verdict: Overall::Mixed }
}

fn files() -> Vec<RecordWarnings> {
    ["a.jsonl", "b.jsonl", "c.jsonl"].map(file).into()
}

#[test]
fn only_what_is_slower_by_more_than_the_tolerance_is_named() {
    let demands = Demands { tolerance: Some(0.1), ..Demands::default() };
    let said = document(two(), files(), &demands);
    assert_eq!(said.baseline, "a.jsonl");
    assert_eq!(said.systems[0].beyond_tolerance, ["mail", "the geometric mean"]);
    assert!(said.systems[1].beyond_tolerance.is_empty());
    let names: Vec<&str> = said.comparisons.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["mail", "scan", "oltp", "mail", "scan", "oltp"]);
    assert_eq!((said.dropped.len(), said.warnings.len()), (1, 3));
    let untold = document(two(), files(), &Demands::default());
    assert!(untold.systems.iter().all(|system| system.beyond_tolerance.is_empty()));
    assert!(untold.prices.is_empty() && untold.systems[0].price.is_none());
}

#[test]
fn money_is_spread_over_the_workloads_that_all_have_in_range() {
    let demands = Demands { prices: Some(&[100.0, 50.0, 300.0]), ..Demands::default() };
    let said = document(two(), files(), &demands);
    let [a, b, c] = &said.prices[..] else { panic!("{:?}", said.prices) };
    assert_eq!([&a.record, &b.record, &c.record], ["a.jsonl", "b.jsonl", "c.jsonl"]);
    for (found, mail, oltp) in [(a, 0.03, 0.02), (b, 0.02, 0.038), (c, 0.02, 4.0 / 300.0)] {
        assert_eq!(found.workloads.len(), 2, "scan is out of range on one of them");
        assert!((found.workloads["mail"] - mail).abs() < 1e-12, "{found:?}");
        assert!((found.workloads["oltp"] - oltp).abs() < 1e-12, "{found:?}");
        let mean = found.mb_per_s_per_unit.unwrap();
        assert!((mean - (mail * oltp).sqrt()).abs() < 1e-12, "{found:?}");
    }
    let judged = said.systems.iter().map(|system| system.price.as_ref().unwrap().worth);
    assert_eq!(judged.collect::<Vec<_>>(), [Worth::WorthIt, Worth::NotWorthIt]);
    let of_workloads = &said.systems[0].price.as_ref().unwrap().workloads;
    assert_eq!(of_workloads["mail"], Worth::NotWorthIt);
    assert_eq!(of_workloads["scan"], Worth::WorthIt);
    assert_eq!(said.systems[1].price.as_ref().unwrap().workloads.len(), 2);
}
