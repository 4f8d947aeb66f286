//! The law of the drawing over many seeds, and the order of the visits.

use ioscape_model::units::{GIB, KIB, MIB, show_bytes};
use ioscape_model::{Access, Interval, Range};
use proptest::prelude::*;

use super::*;
use crate::plan::formula;

fn space(reach_bytes: u64, room_bytes: u64, processes: u64) -> Space {
    Space {
        ranges: Ranges {
            process_num: Range { min: 1, max: processes },
            ..Ranges::usual(processes as u32)
        },
        extent: Extent::within(reach_bytes as f64, room_bytes as f64, processes),
        mapped: Extent::within(reach_bytes as f64, f64::INFINITY, processes),
        writes_max_bytes: None,
    }
}

#[test]
fn a_target_with_less_room_than_the_map_had_is_tried_in_part_and_that_is_said() {
    assert_eq!(space(512 * MIB, 4 * GIB, 4).shortage(), None);
    let warning = space(512 * MIB, 160 * MIB, 4).shortage().unwrap();
    assert!(warning.text.contains("one process in place of 512 MiB"), "{}", warning.text);
    assert!(warning.text.contains("several processes in place of 512 MiB"), "{}", warning.text);
    let shown =
        format!("touch no more than {} by", show_bytes(warning.figures["one_process_bytes"]));
    assert!(warning.text.contains(&shown), "{}", warning.text);
    let mapped_bytes = warning.figures["several_processes_mapped_bytes"];
    assert!((mapped_bytes - 512.0 * MIB as f64).abs() < 0.5, "{mapped_bytes}");
    let alone = space(512 * MIB, 160 * MIB, 1).shortage().unwrap();
    assert!(!alone.text.contains("several"), "{}", alone.text);
    assert!(!alone.figures.contains_key("several_processes_bytes"), "{:?}", alone.figures);
}

proptest! {
    #[test]
    fn every_workload_is_legal_and_within_the_box(
        seed: u64, reach_mib in 32_u64..4096, room_mib in 64_u64..8192, processes in 1_u64..9,
    ) {
        let space = space(reach_mib * MIB, room_mib * MIB, processes);
        for work in space.draw(seed, 30).unwrap() {
            prop_assert_eq!(work.check(), Ok(()));
            prop_assert!(work.unique_bytes >= 8 * MIB);
            prop_assert!(work.unique_bytes as f64 <= space.extent.largest(work.process_num));
            prop_assert!((4 * KIB..=MIB).contains(&work.size_mean));
            prop_assert!(work.unique_bytes % ALIGN == 0 && work.size_mean % ALIGN == 0);
            prop_assert!((1..=processes).contains(&u64::from(work.process_num)));
            for fraction in [work.read_frac, work.seq_frac] {
                let thousandths = fraction * 1000.0;
                prop_assert!((thousandths - thousandths.round()).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn the_files_of_all_workloads_fit_the_room(
        seed: u64, reach_mib in 32_u64..4096, room_mib in 64_u64..8192, processes in 1_u64..9,
    ) {
        let works = space(reach_mib * MIB, room_mib * MIB, processes).draw(seed, 60).unwrap();
        prop_assert!(files_bytes(works.iter()) <= room_mib * MIB);
    }

    #[test]
    fn the_same_seed_draws_the_same_and_another_one_does_not(seed: u64) {
        let space = space(GIB, 4 * GIB, 4);
        let drawn = space.draw(seed, 20).unwrap();
        prop_assert_eq!(&drawn, &space.draw(seed, 20).unwrap());
        prop_assert_ne!(&drawn, &space.draw(seed ^ 1, 20).unwrap());
        // Asking for more workloads does not change the first ones.
        prop_assert_eq!(&drawn[..], &space.draw(seed, 40).unwrap()[..20]);
    }
}

/// Largest distance between the shares drawn and the even law (Kolmogorov and Smirnov).
fn distance_from_even(mut shares: Vec<f64>) -> f64 {
    shares.sort_by(f64::total_cmp);
    let count = shares.len() as f64;
    let gaps = shares.iter().enumerate().map(|(i, share)| (share - (i as f64 + 0.5) / count).abs());
    gaps.fold(0.0, f64::max) + 0.5 / count
}

#[test]
fn sizes_are_log_uniform_and_the_rest_is_uniform() {
    // Requests of at most 32 KiB fit every share, so that nothing is drawn anew.
    let mut space = space(GIB, 8 * GIB, 4);
    space.ranges.size_mean.max = 32 * KIB;
    let works: Vec<Workload> = (0..40).flat_map(|seed| space.draw(seed, 100).unwrap()).collect();
    let share = |value: u64, min: u64, max: u64| {
        (value as f64 / min as f64).ln() / (max as f64 / min as f64).ln()
    };
    // The 99.9 % point of the distance is 1.95/sqrt(n).
    let allowed = 1.95 / (works.len() as f64).sqrt();
    let of = |figure: &dyn Fn(&Workload) -> f64| works.iter().map(figure).collect::<Vec<f64>>();
    for (name, shares) in [
        ("unique_bytes", of(&|work| share(work.unique_bytes, 8 * MIB, GIB))),
        ("read_frac", of(&|work| work.read_frac)),
        ("seq_frac", of(&|work| work.seq_frac)),
    ] {
        let distance = distance_from_even(shares);
        assert!(distance < allowed, "{name}: {distance:.4} over {allowed:.4}");
    }
    // A coarse grid: the middles between its neighbours bound each size.
    let below = |limit_kib: f64| {
        let count = works.iter().filter(|work| (work.size_mean as f64) < limit_kib * 1024.0);
        count.count() as f64 / works.len() as f64
    };
    for limit_kib in [6.0, 10.0, 14.0, 22.0] {
        let expected = (limit_kib / 4.0_f64).ln() / 8_f64.ln();
        assert!((below(limit_kib) - expected).abs() < allowed, "size_mean below {limit_kib} KiB");
    }
    for process_num in 1..=4 {
        let count = works.iter().filter(|work| work.process_num == process_num).count();
        let quarter = works.len() / 4;
        assert!(count.abs_diff(quarter) < quarter / 8, "{count} workloads of {process_num}");
    }
}

#[test]
fn beyond_where_writers_would_stall_there_are_reads_only() {
    let space = Space { writes_max_bytes: Some(128e6), ..space(GIB, 8 * GIB, 2) };
    let works = space.draw(5, 200).unwrap();
    let beyond = || works.iter().filter(|work| work.unique_bytes as f64 > 128e6);
    assert!(beyond().count() > 40 && beyond().all(|work| work.read_frac >= 1.0));
    assert!(works.iter().any(|work| work.read_frac < 1.0));
}

#[test]
fn an_empty_box_is_said_to_be_empty() {
    assert_eq!(space(4 * MIB, GIB, 1).draw(1, 1), Err(NoWorkload));
    // With all else fixed there are 1001 different values of seq_frac, and no more.
    let mut narrow = space(8 * MIB, GIB, 1);
    narrow.ranges.size_mean = Range { min: 4096, max: 4096 };
    narrow.writes_max_bytes = Some(0.0);
    assert_eq!(narrow.draw(1, 1100), Err(NoWorkload));
}

#[test]
fn every_workload_is_visited_twice_in_rounds_of_different_order() {
    let works = space(GIB, 8 * GIB, 4).draw(9, 25).unwrap();
    let mut plan = ValidationPlan::new(&works, 9);
    let mut points = Vec::new();
    formula::drive(&mut plan, &mut points, &|_| 1e8, (0.02, 3));
    // Canaries in between must not be counted as visits.
    points.insert(7, formula::canary(0));
    assert_eq!(plan.next(&Seen::writing_freely(&points, 0.0, 0.0)), None);
    points.retain(|point| point.role == Role::Validation);
    let (first, second) = points.split_at(25);
    assert!(first.iter().all(|p| p.round == 0) && second.iter().all(|p| p.round == 1));
    let order = |round: &[Point]| round.iter().map(|p| p.workload.literal()).collect::<Vec<_>>();
    let (first, second) = (order(first), order(second));
    assert_ne!(first, second);
    let sorted = |mut order: Vec<String>| {
        order.sort();
        order
    };
    assert_eq!(sorted(first), sorted(second.clone()));
    assert_eq!(sorted(second), sorted(works.iter().map(Workload::literal).collect()));
}

#[test]
fn the_forecast_takes_visits_to_cost_what_they_did() {
    let works = space(GIB, 8 * GIB, 4).draw(2, 10).unwrap();
    let visit = |role| Visit { workload: works[0].clone(), role, round: 0 };
    let mut record = record();
    for index in 0..20 {
        let mut point = formula::point(&visit(Role::Calibration), 1e8);
        point.elapsed_s = if index % 2 == 0 { 2.0 } else { 4.0 };
        point.throughput_bytes_per_s = Interval::exact(1e8);
        record.points.push(point);
        let mut canary = formula::canary(0);
        canary.elapsed_s = 100.0;
        record.points.push(canary);
    }
    record.header.hints.layout_bytes_per_s = Some(files_bytes(works.iter()) as f64 / 7.0);
    let forecast = forecast(&record, &works);
    assert_eq!(forecast.points, 20);
    assert!((forecast.elapsed_s - (7.0 + 20.0 * 3.0)).abs() < 1e-6, "{forecast:?}");
    assert_eq!(forecast.written_bytes, files_bytes(works.iter()));
    // 40 visits, canaries too, wrote 40 MB beyond what was laid out: 1 MB each.
    let laid_out = files_bytes(record.points.iter().map(|point| &point.workload));
    record.end = Some(ioscape_model::End {
        left_out: vec![],
        reason: ioscape_model::EndReason::Complete,
        points: 40,
        elapsed_s: 0.0,
        spent_s: ioscape_model::Spent::default(),
        read_bytes: 0,
        written_bytes: laid_out + 40_000_000,
        device_written_bytes: None,
        forecast: None,
        dropped: vec![],
    });
    let written_bytes = super::forecast(&record, &works).written_bytes;
    assert_eq!(written_bytes, files_bytes(works.iter()) + 20_000_000);
}

#[test]
fn the_box_reaches_as_far_as_the_map_did_and_no_further_than_the_room_now() {
    let mut record = record();
    let point = |mib| {
        let workload = Workload { unique_bytes: mib * MIB, ..Workload::default() };
        formula::point(&Visit { workload, role: Role::Family, round: 0 }, 1e8)
    };
    record.points = vec![point(16), point(300), point(64)];
    record.header.hints.room_bytes = 4 * GIB;
    assert_eq!(
        Space::from_record(&record, Access::Buffered, u64::MAX).ranges().unique_bytes.max,
        300 * MIB
    );
    assert_eq!(Space::from_record(&record, Access::Buffered, u64::MAX).shortage(), None);
    assert!(
        Space::from_record(&record, Access::Buffered, 100 * MIB).ranges().unique_bytes.max
            < 100 * MIB
    );
    assert!(Space::from_record(&record, Access::Buffered, 100 * MIB).shortage().is_some());
}

/// A record with a header and nothing else.
fn record() -> Record {
    let header = ioscape_test_support::header(1, Ranges::usual(2));
    let line = serde_json::to_string(&ioscape_model::Line::Header(header)).unwrap();
    Record::read(format!("{line}\n").as_bytes()).unwrap()
}
