//! The vector is found where it can be computed by hand, and on the paper's own machine.

use ioscape_engine::SimSpec;
use ioscape_model::Range;
use ioscape_model::units::{GIB, KIB, MIB};

use super::*;
use crate::plan::formula::drive;

fn explore(
    ranges: Ranges,
    law: &dyn Fn(&Workload) -> f64,
    noise: (f64, u64),
) -> (Workload, Landscape, usize) {
    let mut plan = Global75Plan::new(ranges);
    let mut points = Vec::new();
    drive(&mut plan, &mut points, law, noise);
    let map = plan.landscape(&points);
    (map.regions[0].focal.clone(), map, points.len())
}

fn rounds(map: &Landscape) -> usize {
    map.log.iter().filter(|line| line.starts_with("round ")).count()
}

fn wide() -> Ranges {
    Ranges {
        unique_bytes: Range { min: 8 * MIB, max: GIB },
        size_mean: Range { min: 4 * KIB, max: MIB },
        process_num: Range { min: 1, max: 8 },
        ..Ranges::usual(1)
    }
}

/// A product of one curve per parameter; each curve's 75 % point follows from its formula.
fn separable(work: &Workload) -> f64 {
    let unique = 1.0 / (1.0 + (work.unique_bytes as f64 / (150 * MIB) as f64).powi(2));
    let size = work.size_mean as f64 / (work.size_mean as f64 + 24.0 * KIB as f64);
    let processes = f64::from(work.process_num).min(4.0);
    1e9 * unique * size * (0.4 + 0.6 * work.read_frac) * (0.9 + 0.1 * work.seq_frac) * processes
}

#[test]
fn the_analytic_vector_of_a_separable_device_is_found() {
    // 1 + (U/150)² = (1 + (8/150)²)/0.75;  s/(s + 24) = 0.75·1024/1048;  0.4 + 0.6 r = 0.75.
    let unique = 150.0 * ((1.0 + (8.0_f64 / 150.0).powi(2)) / 0.75 - 1.0).sqrt() * MIB as f64;
    let level = 0.75 * 1024.0 / 1048.0;
    let size = 24.0 * level / (1.0 - level) * KIB as f64;
    for seed in 0..10 {
        let noise = if seed == 0 { 0.0 } else { 0.01 };
        let (focal, map, _) = explore(wide(), &separable, (noise, seed));
        let context = format!("{focal} {:?}", map.log);
        let tolerance = if seed == 0 { 0.02 } else { 0.12 };
        assert!((focal.unique_bytes as f64 / unique - 1.0).abs() < tolerance, "{context}");
        assert!((focal.size_mean as f64 / size - 1.0).abs() < tolerance, "{context}");
        assert!((focal.read_frac - 0.5833).abs() < 0.05, "{context}");
        assert!(focal.seq_frac.abs() < 1e-12 && focal.process_num == 4, "{context}");
        assert!(rounds(&map) <= 10, "{context}");
        // The graph of the data touched leaves the good range there: the effective file cache.
        let cache = map.borders[0].unique_bytes;
        assert!((cache.capacity / unique - 1.0).abs() < tolerance, "{cache:?} {context}");
        assert!(cache.low <= cache.capacity && cache.capacity <= cache.high, "{cache:?}");
    }
}

#[test]
fn the_vector_of_the_sparcstation_is_the_published_one() {
    let spec = SimSpec::preset("sparcstation-1plus").unwrap();
    let law = |work: &Workload| spec.expected_throughput(work);
    for seed in 0..8 {
        let noise = if seed == 0 { 0.0 } else { 0.01 };
        let (focal, map, _) = explore(spec.ranges(), &law, (noise, seed));
        let context = format!("seed {seed}: {focal} {:?}", map.log);
        let unique_mib = focal.unique_bytes as f64 / MIB as f64;
        assert!((unique_mib / 21.0 - 1.0).abs() < 0.1, "{context}");
        // 10 KB was published; a step of the size graph is a factor of 1.85.
        let size_kib = focal.size_mean as f64 / KIB as f64;
        assert!(size_kib > 10.0 / 1.85 && size_kib < 10.0 * 1.85, "{context}");
        assert!(focal.read_frac < 0.12 && focal.seq_frac < 0.12, "{context}");
        assert_eq!(focal.process_num, 1, "{context}");
        assert!(rounds(&map) <= 10, "{context}");
        assert!(map.log.iter().any(|line| line.starts_with("size_mean from")), "{context}");
    }
}

#[test]
fn every_preset_ends_within_ten_rounds() {
    for name in SimSpec::names() {
        let spec = SimSpec::preset(name).unwrap();
        let law = |work: &Workload| spec.expected_throughput(work);
        let (focal, map, count) = explore(spec.ranges(), &law, (0.03, 1));
        assert!(rounds(&map) <= 10 && count <= 12 * 70, "{name}: {count} {:?}", map.log);
        assert_eq!(map.regions.len(), 1);
        focal.check().unwrap();
    }
}

#[test]
fn where_reads_are_far_faster_the_vector_is_extreme() {
    // Why its authors gave the method up.
    let law = |work: &Workload| 1e9 / (work.read_frac + 100.0 * (1.0 - work.read_frac));
    let (focal, ..) = explore(wide(), &law, (0.0, 1));
    assert!(focal.read_frac > 0.95, "{focal}");
}
