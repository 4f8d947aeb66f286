//! Where the kernel's rules of reading ahead hold.

use ioscape_model::units::MIB;
use ioscape_model::{Access, Border, BorderUniqueBytes, Curve, FoundBy, Layer, State, Workload};

use super::Caches;
use crate::model::Training;
use crate::model::formula;

/// A map up to so much data of a page cache of 200 MiB with a window of 2 MiB.
fn map_to(mib: u64) -> Training {
    let works: Vec<Workload> = [8, mib]
        .map(|mib| Workload { unique_bytes: mib * MIB, read_frac: 1.0, ..Workload::default() })
        .into();
    let mut training = formula::training(&works, &|_| 1e9, (0.0, 1));
    training.hints.read_cache_bytes = Some(200.0 * MIB as f64);
    training.read_ahead_bytes = Some(2 * MIB);
    training
}

fn with_border(mut training: Training, mib: f64) -> Training {
    let capacity = mib * MIB as f64;
    training.borders.push(Border {
        unique_bytes: BorderUniqueBytes {
            onset: capacity,
            capacity,
            low: capacity,
            high: capacity,
        },
        curve: Curve::Read,
        found_by: FoundBy::Timing,
        step: 10.0,
        layer: Layer::default(),
        revision: 0,
    });
    training
}

/// Cold reads, which make a page cache that was not passed one of the law's.
fn with_cold_reads(mut training: Training) -> Training {
    let mut cold = training.samples[0].clone();
    cold.workload.state = State::Cold;
    training.cold.push(cold);
    training
}

/// Pages of the window, if the kernel reads ahead.
fn window_pages(training: &Training) -> Option<f64> {
    Caches::of_samples(training).shape().read_ahead_pages
}

#[test]
fn misses_of_the_page_cache_are_read_ahead_and_those_of_no_other_cache() {
    let passed = || with_border(map_to(400), 180.0);
    assert_eq!(window_pages(&passed()), Some(512.0));
    assert_eq!(window_pages(&map_to(100)), None, "nothing is known beyond it");
    assert_eq!(window_pages(&with_border(map_to(100), 20.0)), None, "a processor's cache");
    let with = |change: &dyn Fn(&mut Training)| {
        let mut training = passed();
        change(&mut training);
        window_pages(&training)
    };
    assert_eq!(with(&|it| it.read_ahead_bytes = None), None, "a simulated device");
    assert_eq!(with(&|it| it.read_ahead_bytes = Some(0)), None, "it is switched off");
    assert_eq!(with(&|it| it.ranges.access = Access::Direct), None);
    assert_eq!(with(&|it| it.hints.in_memory = true), None);
}

#[test]
fn a_page_cache_that_no_visit_passed_is_read_ahead_as_usual_where_the_target_does_not_say() {
    let mut unpassed = with_cold_reads(map_to(100));
    assert_eq!(window_pages(&unpassed), Some(512.0));
    unpassed.read_ahead_bytes = None;
    assert_eq!(window_pages(&unpassed), Some(32.0));
    assert!(Caches::of_samples(&unpassed).is_unpassed);
    assert!(!Caches::of_samples(&with_border(map_to(400), 180.0)).is_unpassed);
}
