//! The default plan, decided by hand.

use std::collections::BTreeSet;

use ioscape_model::units::{GIB, MIB};

use super::*;
use crate::plan::formula;

/// A plan that found a last region from 256 MiB to 1 GiB.
fn plan(cpus: u32, room_bytes: u64, writes_max_bytes: Option<f64>) -> BlendPlan {
    let mut ranges = Ranges::usual(cpus);
    ranges.unique_bytes.max = GIB;
    let settings = Settings {
        ranges,
        hints: Hints { room_bytes, ..Hints::default() },
        host: Host::default(),
        read_ahead_bytes: None,
        seed: 1,
        writes_max_bytes,
        most_bytes: GIB as f64,
        asked: vec![],
        seeks_borders: true,
        is_short: false,
    };
    let mut plan = BlendPlan::new(settings);
    let (from_bytes, to_bytes) = ((256 * MIB) as f64, GIB as f64);
    plan.families =
        Some(vec![Family { focal: plan.focal((512 * MIB) as f64), from_bytes, to_bytes }]);
    plan
}

#[test]
fn a_map_visits_what_it_was_asked_for_early_and_again_later() {
    let mut plan = plan(2, 64 * GIB, None);
    let asked = Workload { unique_bytes: 300 * MIB, depth: 4, ..Workload::default() };
    plan.settings.asked = vec![asked.clone()];
    let places = |round: u32| {
        let visits = plan.round(round, &[]).into_iter().enumerate();
        let named = visits.filter(|(_, visit)| visit.role == Role::Named);
        named.map(|(place, visit)| (place, visit.workload)).collect::<Vec<_>>()
    };
    let first = places(0);
    assert!(matches!(&first[..], [(place, work)] if *work == asked && *place < 20), "{first:?}");
    // Later rounds take turns, so that three of them visit it once more.
    assert_eq!((1..=3).flat_map(places).count(), 1);
}

#[test]
fn processes_are_as_many_as_processors_and_twice_as_many_before_numbers_between() {
    let nums = |cpus: u32| plan(cpus, 64 * GIB, None).process_nums();
    assert_eq!(nums(1), [2, 4]);
    assert_eq!(nums(2), [2, 4]);
    assert_eq!(nums(4), [4, 8, 2]);
    assert_eq!(nums(16), [16, 32, 8, 4, 2]);
    assert_eq!(nums(24), [16, 48, 32, 8, 4, 2]);
    let mut one = plan(2, 64 * GIB, None);
    one.settings.ranges.process_num = ioscape_model::Range { min: 1, max: 1 };
    assert!(one.process_nums().is_empty());
}

/// Which ends of reads, sequence, size and processes.
fn ends(work: &Workload) -> [bool; 4] {
    [work.read_frac > 0.5, work.seq_frac > 0.5, work.size_mean > MIB / 8, work.process_num > 1]
}

#[test]
fn of_the_ends_of_any_three_parameters_every_combination_is_a_corner_once() {
    for cpus in [2, 16, 128] {
        let corners = plan(cpus, 1 << 40, None).corners();
        assert_eq!(corners.len(), 8);
        for without in 0..4 {
            let three = |work: &Workload| {
                let mut three = ends(work).to_vec();
                three.remove(without);
                three
            };
            assert_eq!(corners.iter().map(three).collect::<BTreeSet<_>>().len(), 8);
        }
        assert!(ends(&corners[0]).iter().all(|is_high| *is_high), "a scan goes first");
        assert!(corners.iter().all(|work| work.unique_bytes > 700 * MIB));
    }
}

#[test]
fn corners_may_be_run_where_there_is_little_room_and_where_little_may_be_written() {
    for (cpus, room_bytes) in [(1, 2 * GIB), (4, 2 * GIB), (64, 4 * GIB), (128, 2 * GIB)] {
        for writes_max_bytes in [None, Some((300 * MIB + 12_345) as f64)] {
            let plan = plan(cpus, room_bytes, writes_max_bytes);
            let corners = plan.corners();
            assert_eq!(corners.len(), 8, "{cpus} processors, {room_bytes} bytes");
            assert_eq!(corners.iter().filter(|work| work.read_frac < 0.5).count(), 4);
            let from = 256 * MIB;
            assert!(corners.iter().all(|work| work.unique_bytes > from), "{corners:?}");
            assert!(corners.iter().all(|work| plan.allowed(work) == *work));
        }
    }
}

#[test]
fn where_nothing_more_may_be_written_the_graphs_are_those_of_reads() {
    let mut plan = plan(2, 64 * GIB, None);
    // Everything that was written so far: files for any number of processes.
    let laid_out = [1, 4].map(|process_num| {
        let workload = Workload { unique_bytes: GIB, process_num, ..Workload::default() };
        formula::point(&Visit { workload, role: Role::Calibration, round: 0 }, 1e9)
    });
    let mut points = laid_out.to_vec();
    for _ in 0..8 {
        let seen = Seen { reads_only: true, ..Seen::writing_freely(&points, 100.0, 180.0) };
        let visit = plan.next(&seen).unwrap();
        assert!(visit.workload.read_frac >= 1.0, "{visit:?}");
        points.push(formula::point(&visit, 1e9));
    }
    let values = |key: fn(&Workload) -> f64| {
        let of_region = points[2..].iter().map(|point| key(&point.workload).to_bits());
        of_region.collect::<BTreeSet<u64>>().len()
    };
    assert!(values(|work| work.size_mean as f64) >= 3);
    assert!(values(|work| work.seq_frac) >= 3);
    assert!(values(|work| f64::from(work.process_num)) >= 3);
}

#[test]
fn where_writes_run_short_graphs_go_before_points_between_them() {
    let mut plan = plan(2, 64 * GIB, None);
    let mut points = Vec::new();
    let needed = plan.families.iter().flatten().map(|f| plan.family(f).0.len()).sum::<usize>();
    for _ in 0..needed {
        let seen = Seen { spares_writes: true, ..Seen::writing_freely(&points, 100.0, 180.0) };
        let visit = plan.next(&seen).unwrap();
        assert_eq!(visit.role, Role::Family);
        points.push(formula::point(&visit, 1e9));
    }
    assert!(plan.has_families(&Seen::writing_freely(&points, 100.0, 180.0)));
}

#[test]
fn a_region_is_named_by_who_answers_there() {
    let names = |last: RegionKind, hit: f64, absorbed: f64| {
        let region = |kind: RegionKind, from: u64, to: u64| {
            let unique_bytes = RegionUniqueBytes {
                from: from as f64,
                to: to as f64,
                focal: (from + to) as f64 / 2.0,
            };
            Region {
                name: kind.into(),
                unique_bytes,
                focal: Workload::default(),
                layer: ioscape_model::Layer::Cache,
                revision: 1,
            }
        };
        let mut regions =
            [region(RegionKind::Cache, 8 * MIB, 420 * MIB), region(last, 420 * MIB, GIB)];
        let points = [0.0, 1.0].map(|read_frac| {
            let workload = Workload { read_frac, unique_bytes: 800 * MIB, ..Workload::default() };
            let point = formula::point(&Visit { workload, role: Role::Family, round: 0 }, 1e9);
            Point {
                hit_fraction: Some(hit),
                write_absorbed_fraction: (read_frac < 1.0).then_some(absorbed),
                ..point
            }
        });
        name_by_hits(&mut regions, &points);
        regions.map(|region| region.name.to_string())
    };
    let storage = RegionKind::Storage;
    assert_eq!(names(storage, 0.3, 0.3), ["cache", "storage"]);
    assert_eq!(names(storage, 1.0, 0.5), ["cache", "write-back"]);
    for kind in [storage, RegionKind::WriteBack] {
        let why = "memory takes both: a processor's cache ends";
        assert_eq!(names(kind, 1.0, 1.0), ["cache 1", "cache 2"], "{why}");
    }
}
