//! All points of the grid, each possible, each once, in an order that the seed decides.

use std::collections::BTreeSet;

use ioscape_engine::SimSpec;
use ioscape_model::units::{GIB, KIB, MIB};
use ioscape_model::{Hints, Limits};

use super::*;
use crate::plan::extent;
use crate::plan::formula::{canary, drive};

fn visited(ranges: Ranges, seed: u64) -> Vec<Workload> {
    let mut points = Vec::new();
    drive(&mut OrthogonalPlan::new(ranges, seed), &mut points, &|_| 1e8, (0.0, 0));
    points.into_iter().map(|point| point.workload).collect()
}

fn values<T: Ord>(works: &[Workload], of: impl Fn(&Workload) -> T) -> Vec<T> {
    works.iter().map(of).collect::<BTreeSet<T>>().into_iter().collect()
}

#[test]
fn one_hundred_and_sixty_two_points_are_measured_on_any_machine() {
    for cpus in [1, 2, 8, 64] {
        for unique_max in [64 * MIB, 700 * MIB + 12 * KIB, GIB, 64 * GIB] {
            let mut ranges = Ranges::usual(cpus);
            ranges.unique_bytes.max = unique_max;
            let works = visited(ranges, 1); // which checks each of them
            assert_eq!(works.len(), 162, "{cpus} {unique_max}");
            assert_eq!(values(&works, ToString::to_string).len(), 162);
            let uniques = values(&works, |work| work.unique_bytes);
            assert_eq!(uniques.len(), 3);
            assert_eq!(uniques[2], unique_max);
            assert!(uniques[0] <= unique_max / LEAST_UNIQUE_PART, "{uniques:?}");
            let even = u64::midpoint(uniques[0], uniques[2]);
            assert!(even - uniques[1] < UNIQUE_STEP, "{uniques:?}");
            assert_eq!(values(&works, |work| work.size_mean).len(), 3);
            assert_eq!(values(&works, |work| work.process_num), [1, (2 * cpus).max(4)]);
        }
    }
}

#[test]
fn the_smallest_data_are_raised_before_the_largest_requests_are_made_smaller() {
    let works = visited(Ranges::usual(2), 1);
    // Four processes that hold eight requests of 1 MiB each.
    assert_eq!(values(&works, |work| work.unique_bytes)[0], 32 * MIB);
    assert_eq!(values(&works, |work| work.size_mean), [4 * KIB, 514 * KIB, MIB]);
    let mut small = Ranges::usual(2);
    small.unique_bytes.max = 64 * MIB;
    let works = visited(small, 1);
    assert_eq!(values(&works, |work| work.unique_bytes)[0], 8 * MIB);
    assert_eq!(values(&works, |work| work.size_mean)[2], 256 * KIB);
}

#[test]
fn every_preset_has_its_grid() {
    for name in SimSpec::names() {
        let ranges = SimSpec::preset(name).unwrap().ranges();
        let levels = if ranges.process_num.min == ranges.process_num.max { 1 } else { 2 };
        assert_eq!(visited(ranges, 3).len(), 81 * levels, "{name}");
    }
}

#[test]
fn the_files_of_the_whole_grid_fit_the_room() {
    let hints = Hints { room_bytes: GIB, ..Hints::default() };
    let limits = Limits::default();
    let ranges = extent::ranges(4, &hints, &limits, 600.0);
    let works = visited(extent::ranges_for_all(ranges, &hints, &limits), 1);
    // File k serves every workload of more than k processes.
    let file = |k: u32| {
        let served = works.iter().filter(|work| work.process_num > k);
        served.map(|work| work.unique_bytes / u64::from(work.process_num)).max().unwrap_or(0)
    };
    assert!((0..8).map(file).sum::<u64>() <= GIB);
}

#[test]
fn the_order_is_the_seeds_and_an_interrupted_run_goes_on_with_it() {
    let (first, second) = (visited(Ranges::usual(2), 1), visited(Ranges::usual(2), 2));
    assert_ne!(first, second);
    assert_eq!(values(&first, ToString::to_string), values(&second, ToString::to_string));

    let mut points = Vec::new();
    drive(&mut OrthogonalPlan::new(Ranges::usual(2), 1), &mut points, &|_| 1e8, (0.0, 0));
    points.truncate(100);
    points.insert(50, canary(0));
    let again = OrthogonalPlan::new(Ranges::usual(2), 1);
    assert_eq!(again.landscape(&points).log, ["100 of the grid's 162 points"]);
    drive(&mut again.clone(), &mut points, &|_| 1e8, (0.0, 0));
    let rest: Vec<Workload> = points.into_iter().skip(101).map(|point| point.workload).collect();
    assert_eq!(rest, first[100..]);
}
