//! Regions between given borders, and borders of two curves as one list.

#![expect(clippy::float_cmp, reason = "edges are handed on, not computed")]

use ioscape_analysis::border::merge;
use ioscape_analysis::region::{Stretch, regions_from, transition_band_bytes};
use ioscape_model::{Border, BorderUniqueBytes, Curve};
use proptest::prelude::*;

fn border(curve: Curve, capacity: f64, step: f64) -> Border {
    let onset = capacity * (1.0 + 0.1 / (step - 1.0));
    let unique_bytes =
        BorderUniqueBytes { onset, capacity, low: capacity / 1.02, high: capacity * 1.02 };
    Border {
        unique_bytes,
        curve,
        found_by: ioscape_model::FoundBy::Timing,
        step,
        layer: ioscape_model::Layer::default(),
        revision: 0,
    }
}

/// `(name, from, to)` of each region between 8 and 1024.
fn stretches(borders: &[Border]) -> Vec<(String, f64, f64)> {
    let named = |s: Stretch| (s.name.to_string(), s.unique_bytes.from, s.unique_bytes.to);
    regions_from(borders, 8.0, 1024.0).into_iter().map(named).collect()
}

fn check(borders: &[(Curve, f64, f64)], expected: &[(&str, f64, f64)]) {
    let borders: Vec<Border> = borders.iter().map(|(c, at, step)| border(*c, *at, *step)).collect();
    let expected: Vec<_> =
        expected.iter().map(|(n, from, to)| ((*n).to_owned(), *from, *to)).collect();
    assert_eq!(stretches(&borders), expected);
}

#[test]
fn regions_run_from_capacity_to_capacity_and_are_named_for_what_they_seem() {
    use Curve::{Mixed, Read, Write};
    check(&[], &[("whole range", 8.0, 1024.0)]);
    check(&[(Mixed, 64.0, 9.0)], &[("cache", 8.0, 64.0), ("storage", 64.0, 1024.0)]);
    check(&[(Read, 64.0, 9.0)], &[("cache", 8.0, 64.0), ("storage", 64.0, 1024.0)]);
    check(
        &[(Write, 30.0, 9.0), (Read, 250.0, 30.0)],
        &[("cache", 8.0, 30.0), ("write-back", 30.0, 250.0), ("storage", 250.0, 1024.0)],
    );
    check(
        &[(Read, 30.0, 9.0), (Write, 250.0, 30.0)],
        &[("cache", 8.0, 30.0), ("write cache", 30.0, 250.0), ("storage", 250.0, 1024.0)],
    );
    check(
        &[(Read, 30.0, 9.0), (Read, 250.0, 30.0)],
        &[("cache 1", 8.0, 30.0), ("cache 2", 30.0, 250.0), ("storage", 250.0, 1024.0)],
    );
}

#[test]
fn a_region_too_narrow_to_measure_is_none() {
    use Curve::{Read, Write};
    // Of two borders a factor 1.2 apart the larger step divides.
    check(
        &[(Write, 100.0, 3.0), (Read, 120.0, 30.0)],
        &[("cache", 8.0, 120.0), ("storage", 120.0, 1024.0)],
    );
    // At the ends of the range there is nothing to tell apart.
    check(&[(Read, 9.0, 30.0)], &[("whole range", 8.0, 1024.0)]);
    check(&[(Read, 900.0, 30.0)], &[("whole range", 8.0, 1024.0)]);
    check(&[(Read, 4000.0, 30.0)], &[("whole range", 8.0, 1024.0)]);
}

#[test]
fn the_focal_value_is_the_geometric_mean_or_the_edge_of_a_band() {
    let focal = |borders: &[Border]| -> Vec<f64> {
        regions_from(borders, 8.0, 1024.0).iter().map(|s| s.unique_bytes.focal).collect()
    };
    let wide = border(Curve::Mixed, 128.0, 41.0);
    assert_eq!(focal(std::slice::from_ref(&wide)), [32.0, (128.0_f64 * 1024.0).sqrt()]);
    // From 600 to 1024 the mean, 784, is still -- by a factor 1.25 -- clear of the band.
    let high = border(Curve::Mixed, 600.0, 41.0);
    assert_eq!(focal(&[high])[1], (600.0_f64 * 1024.0).sqrt());
    // From 700 it would be 847, within the band that ends at 875: it moves there.
    let higher = border(Curve::Mixed, 700.0, 41.0);
    assert_eq!(focal(&[higher])[1], 875.0);
}

#[test]
fn borders_of_both_curves_that_agree_become_one() {
    let read = [border(Curve::Read, 250.0, 40.0)];
    let mut near = border(Curve::Write, 220.0, 10.0);
    near.unique_bytes.high *= 1.2;
    let merged = merge(&read, &[border(Curve::Write, 50.0, 10.0), near.clone()]);
    assert_eq!(merged.iter().map(|b| b.curve).collect::<Vec<_>>(), [Curve::Write, Curve::Mixed]);
    let at = merged[1].unique_bytes;
    assert_eq!((at.capacity, at.onset), (250.0, near.unique_bytes.onset));
    assert_eq!(merged[1].step, 20.0);
    // A factor of 1.3 is a difference.
    assert_eq!(merge(&read, &[border(Curve::Write, 190.0, 10.0)]).len(), 2);
    assert_eq!(merge(&[], &[]), []);
}

fn any_border() -> impl Strategy<Value = Border> {
    let curve = prop_oneof![Just(Curve::Read), Just(Curve::Write), Just(Curve::Mixed)];
    (curve, 4.0..2000.0, 1.5..100.0).prop_map(|(curve, at, step)| border(curve, at, step))
}

proptest! {
    #[test]
    fn regions_cover_the_range_without_gaps(
        borders in proptest::collection::vec(any_border(), 0..6)
    ) {
        let stretches = regions_from(&borders, 8.0, 1024.0);
        prop_assert_eq!(stretches[0].unique_bytes.from, 8.0);
        prop_assert_eq!(stretches[stretches.len() - 1].unique_bytes.to, 1024.0);
        for pair in stretches.windows(2) {
            prop_assert_eq!(pair[0].unique_bytes.to, pair[1].unique_bytes.from);
            prop_assert_ne!(&pair[0].name, &pair[1].name);
        }
        for stretch in &stretches {
            let at = stretch.unique_bytes;
            prop_assert!(at.to / at.from >= 1.25);
            prop_assert!(at.from <= at.focal && at.focal <= at.to);
        }
    }

    #[test]
    fn a_focal_value_lies_in_no_band_where_the_region_has_room(
        borders in proptest::collection::vec(any_border(), 0..4)
    ) {
        for stretch in regions_from(&borders, 8.0, 1024.0) {
            let at = stretch.unique_bytes;
            let is_free = |bytes: f64| borders.iter().map(transition_band_bytes)
                .all(|(low, high)| bytes <= low || bytes >= high);
            let has_room = (0..=1000)
                .map(|i| at.from * (at.to / at.from).powf(f64::from(i) / 1000.0))
                .any(is_free);
            prop_assert!(is_free(at.focal) || !has_room);
        }
    }
}
