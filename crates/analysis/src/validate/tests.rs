//! Scores of numbers made by hand.

use ioscape_model::units::MIB;
use ioscape_model::{BorderUniqueBytes, Curve, Layer};

use super::*;
use crate::visit;

fn work(unique_mib: u64) -> Workload {
    Workload { unique_bytes: unique_mib * MIB, ..Workload::default() }
}

fn visit(unique_mib: u64, role: Role, throughput: f64) -> Point {
    Point { role, ..visit::visit(work(unique_mib), throughput) }
}

fn border(onset_mib: f64, capacity_mib: f64) -> Border {
    let mib = MIB as f64;
    Border {
        unique_bytes: BorderUniqueBytes {
            onset: onset_mib * mib,
            capacity: capacity_mib * mib,
            low: capacity_mib * mib,
            high: capacity_mib * mib,
        },
        curve: Curve::Read,
        found_by: ioscape_model::FoundBy::Timing,
        step: 10.0,
        layer: Layer::default(),
        revision: 0,
    }
}

fn trial() -> Trial {
    Trial { record: "r.jsonl".to_owned(), seed: 7, workloads: 5 }
}

/// Five workloads of 16, 32, … MiB, visited twice at 100 MB/s apart by a factor, predicted by
/// `blend` with an interval of ±10 % and by `product` without.
fn five(apart: f64, blend: [f64; 5], product: [f64; 5]) -> Validation {
    let sizes = [16, 32, 64, 128, 256];
    let root = f64::sqrt(apart);
    let of_round = |factor: f64| sizes.map(|mib| visit(mib, Role::Validation, 100e6 * factor));
    let visits = [of_round(root), of_round(1.0 / root)].concat();
    let points = points(&visits, &[border(50.0, 70.0)], |work| {
        let index = sizes.iter().position(|mib| mib * MIB == work.unique_bytes).unwrap();
        let value = blend[index] * 1e6;
        let with = Figure { value, low: value / 1.1, high: value * 1.1 };
        let value = product[index] * 1e6;
        let without = Figure { value, low: value, high: value };
        BTreeMap::from([(ModelName::Blend, with), (ModelName::Product, without)])
    });
    validation(trial(), points)
}

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
}

#[test]
fn errors_are_medians_and_quantiles_against_the_geometric_mean() {
    let validation =
        five(1.21, [101.0, 98.0, 105.0, 80.0, 150.0], [200.0, 50.0, 100.0, 300.0, 25.0]);
    let blend = &validation.models[&ModelName::Blend];
    // Sorted: 1, 2, 5, 20, 50 %.
    near(blend.median, 0.05);
    near(blend.p75, 0.20);
    near(blend.p90, 0.38);
    near(blend.log_median, 1.05_f64.ln());
    assert_eq!(blend.workloads, 5);
    // 80 and 150 are out of their ±10 %.
    assert_eq!(blend.coverage, Some(0.6));
    near(blend.interval_ratio_median.unwrap(), 1.21);
    assert!(blend.median_low <= 0.05 && blend.median_high >= 0.20, "{blend:?}");
    // Sorted: 0, 50, 75, 100, 200 %; |ln|: 0, ln 2, ln 2, ln 3, ln 4.
    let product = &validation.models[&ModelName::Product];
    near(product.median, 0.75);
    near(product.log_median, 2_f64.ln());
    assert_eq!((product.coverage, product.interval_ratio_median), (None, None));
    near(validation.repeatability.median, 0.21);
    near(validation.repeatability.p90, 0.21);
}

#[test]
fn the_band_around_a_border_is_left_out_of_one_figure_only() {
    // From 0.8 × 50 to 2 × 70 MiB: the workloads of 64 and 128 MiB.
    let validation = five(1.0, [101.0, 102.0, 300.0, 400.0, 104.0], [100.0; 5]);
    let blend = &validation.models[&ModelName::Blend];
    near(blend.median, 0.04);
    near(blend.median_outside_bands, 0.02);
    assert_eq!(blend.dropped, 2);
    let inside: Vec<bool> = validation.points.iter().map(|point| point.in_border_band).collect();
    assert_eq!(inside, [false, false, true, true, false]);
}

#[test]
fn the_parameter_that_errors_follow_is_seen() {
    let validation = five(1.0, [101.0, 102.0, 104.0, 108.0, 116.0], [100.0; 5]);
    let of_blend = &validation.rank_correlation[&ModelName::Blend];
    near(of_blend["unique_bytes"], 1.0);
    assert_eq!(of_blend.len(), 1, "the other parameters did not vary: {of_blend:?}");
    assert!(validation.rank_correlation[&ModelName::Product].is_empty(), "nor did its error");
}

#[test]
fn large_workloads_weigh_more_where_sizes_are_drawn_evenly() {
    let validation = five(1.0, [110.0, 110.0, 110.0, 110.0, 101.0], [100.0; 5]);
    let blend = &validation.models[&ModelName::Blend];
    near(blend.median, 0.10);
    near(blend.median_even_sizes, 0.01);
}

#[test]
fn what_was_visited_once_is_kept_but_not_scored() {
    let visits = [
        visit(16, Role::Validation, 100e6),
        visit(8, Role::Canary, 1e6),
        visit(32, Role::Validation, 100e6),
        visit(16, Role::Validation, 100e6),
    ];
    let points = points(&visits, &[], |_| {
        let figure = Figure { value: 200e6, low: 200e6, high: 200e6 };
        BTreeMap::from([(ModelName::Product, figure)])
    });
    let validation = validation(trial(), points);
    assert_eq!(validation.points.len(), 2, "canaries are no workloads");
    assert_eq!(validation.models[&ModelName::Product].workloads, 1);
    assert_eq!((validation.seed, validation.workloads), (7, 5));
    near(validation.models[&ModelName::Product].median, 1.0);
}

#[test]
fn a_visit_without_a_completed_request_gives_a_number_still() {
    let visits = [visit(16, Role::Validation, 0.0), visit(16, Role::Validation, 100e6)];
    let figure = Figure { value: 100e6, low: 100e6, high: 100e6 };
    let points = points(&visits, &[], |_| BTreeMap::from([(ModelName::Blend, figure)]));
    let validation = validation(trial(), points);
    assert!(validation.models[&ModelName::Blend].median.is_finite());
    assert!(validation.repeatability.median.is_finite());
    near(validation.models[&ModelName::Blend].median, 1e4 - 1.0);
}

#[test]
fn nothing_measured_is_no_error_of_ours() {
    let validation = validation(trial(), Vec::new());
    assert!(validation.models.is_empty() && validation.points.is_empty());
    near(validation.repeatability.median, 0.0);
}
