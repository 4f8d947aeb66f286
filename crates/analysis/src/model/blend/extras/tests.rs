//! What samples of a known extension say.

use ioscape_model::units::{KIB, MIB};
use ioscape_model::{Access, Classes, Hints, Host, Ranges};

use super::super::law::tests::{SHAPE, usual};
use super::*;

/// Requests in flight out of the caches and beyond, reads and writes, as the law has them.
fn samples(law: &Law) -> Vec<Sample> {
    let sample = |index: u32| {
        let workload = Workload {
            unique_bytes: (8 << (index % 8)) * MIB,
            size_mean: (8 << (index % 5)) * KIB,
            read_frac: f64::from(index % 3) / 2.0,
            depth: 2 << (index % 5),
            process_num: 1 + index % 4,
            ..Workload::default()
        };
        Sample {
            ln_throughput: law.ln_throughput(&workload),
            workload,
            sd: 0.03,
            visits: 1,
            classes: Classes::default(),
            hit_fraction: None,
        }
    };
    (0..36).map(sample).collect()
}

fn learnt(law: &Law, extras: Vec<Sample>) -> Option<Extension> {
    learnt_with(law, extras, Access::Buffered)
}

fn learnt_with(law: &Law, extras: Vec<Sample>, access: Access) -> Option<Extension> {
    let training = Training {
        samples: vec![],
        extras,
        borders: vec![],
        processor_borders: vec![],
        regions: vec![],
        host: Host::default(),
        hints: Hints::default(),
        ranges: Ranges { access, ..Ranges::usual(4) },
        drift_sd: 0.0,
        spread_out: 100,
    };
    Extension::learn(law, None, &training)
}

#[test]
fn what_copying_costs_in_flight_is_found_for_reads_and_for_writes() {
    let law = Law::of(SHAPE, &usual());
    for copy_costs in [[1.0, 3.0], [1.5, 1.0]] {
        let truth = law.clone().with_extras(Extras { copy_costs, ..Extras::limitless() });
        let found = learnt(&law, samples(&truth)).unwrap().extras().copy_costs;
        let ratios = [found[0] / copy_costs[0], found[1] / copy_costs[1]];
        assert!(ratios.iter().all(|ratio| (0.85..1.18).contains(ratio)), "{found:?}");
    }
}

#[test]
fn batches_that_cost_little_are_found_with_direct_access() {
    let law = Law::of(SHAPE, &usual());
    let truth = law.clone().with_extras(Extras { copy_costs: [0.3, 0.2], ..Extras::limitless() });
    let found = learnt_with(&law, samples(&truth), Access::Direct).unwrap().extras().copy_costs;
    let ratios = [found[0] / 0.3, found[1] / 0.2];
    assert!(ratios.iter().all(|ratio| (0.8..1.25).contains(ratio)), "{found:?}");
}

#[test]
fn processors_spend_what_is_saved_and_not_what_is_handed_over() {
    let extras = Extras { copy_costs: [0.25, 4.0], ..Extras::limitless() };
    let spent = |reads_s, writes_s| extras.processed_s([reads_s, writes_s], 2.0);
    assert!((spent(1.0, 0.0) - 0.5).abs() < 1e-12);
    assert!((spent(0.0, 1.0) - 1.0).abs() < 1e-12);
    assert!((spent(1.0, 1.0) - 1.5).abs() < 1e-12);
}

#[test]
fn the_most_bytes_of_reads_and_of_writes_are_told_apart() {
    let law = Law::of(SHAPE, &usual());
    let bytes_per_s = [6e7, 2e7];
    let limits = Limits { requests_per_s: 1e15, bytes_per_s };
    let truth = law.clone().with_extras(Extras { limits, ..Extras::limitless() });
    let found = learnt(&law, samples(&truth)).unwrap().extras().limits.bytes_per_s;
    let ratios = [found[0] / bytes_per_s[0], found[1] / bytes_per_s[1]];
    assert!(ratios.iter().all(|ratio| (0.8..1.25).contains(ratio)), "{found:?}");
}

#[test]
fn one_depth_says_nothing_of_others_and_two_samples_do_not_fail() {
    let law = Law::of(SHAPE, &usual());
    let all = samples(&law.clone().with_extras(Extras::limitless()));
    assert!(learnt(&law, all[..1].to_vec()).is_none());
    let extension = learnt(&law, all[..2].to_vec()).unwrap();
    assert_eq!(extension.coverage.depth, Range { min: 1, max: 4 });
    assert!(extension.misfit.is_finite());
}
