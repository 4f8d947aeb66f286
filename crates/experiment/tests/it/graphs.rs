//! A map of three minutes has three values of every parameter in each region of the page cache,
//! where storage is quick: visits that are left are shortened as far as that takes.

use std::collections::BTreeSet;
use std::sync::Arc;

use ioscape_engine::SimSpec;
use ioscape_experiment::{Bench, Exploration, Settings, Watch};
use ioscape_model::{Layer, Line, Origin, Point, Region, State, Workload};

const BUDGET_S: f64 = 180.0;

/// The points of a map, and the regions of its last revision.
fn map(device: &str, seed: u64) -> (Vec<Point>, Vec<Region>) {
    let origin = Origin { run_id: "graphs".to_owned(), seed, ..Origin::default() };
    let bench = Bench::simulated(device, SimSpec::preset(device).unwrap(), seed);
    let settings = Settings { budget_s: BUDGET_S, ..Settings::default() };
    let (mut points, mut regions): (Vec<Point>, Vec<Region>) = Default::default();
    let mut journal = |line: &Line| {
        match line {
            Line::Point(point) => points.push(point.clone()),
            Line::Region(region) => regions.push(region.clone()),
            _ => {}
        }
        Ok(())
    };
    Exploration::new(bench, origin, settings)
        .unwrap()
        .run(Watch { interrupt: &Arc::default(), journal: &mut journal, on_event: &mut |_| {} })
        .unwrap();
    let last = regions.iter().map(|region| region.revision).max().unwrap();
    regions.retain(|region| region.revision == last && region.layer == Layer::Cache);
    (points, regions)
}

/// A parameter's value, as far as equality goes.
type Key = fn(&Workload) -> u64;

/// Parameters of which fewer than three values were visited in a region.
fn thin(points: &[Point], region: &Region) -> Vec<&'static str> {
    let axes: [(&str, Key); 4] = [
        ("size_mean", |work| work.size_mean),
        ("read_frac", |work| work.read_frac.to_bits()),
        ("seq_frac", |work| work.seq_frac.to_bits()),
        ("process_num", |work| u64::from(work.process_num)),
    ];
    let at = &region.unique_bytes;
    let inside = |point: &&Point| {
        let is_there = (at.from..=at.to).contains(&(point.workload.unique_bytes as f64));
        is_there && Layer::Cache.holds(point) && point.workload.state == State::Warm
    };
    let values = |key: Key| {
        points.iter().filter(inside).map(|point| key(&point.workload)).collect::<BTreeSet<u64>>()
    };
    axes.iter().filter(|(_, key)| values(*key).len() < 3).map(|(name, _)| *name).collect()
}

#[test]
fn every_region_of_a_short_map_has_three_values_of_every_parameter() {
    for (device, seed) in [("consumer-ssd", 1), ("pages-flash", 2)] {
        let (points, regions) = map(device, seed);
        assert!(!regions.is_empty(), "{device}, seed {seed}");
        for region in &regions {
            let missing = thin(&points, region);
            assert!(
                missing.is_empty(),
                "{device}, seed {seed}, {} points, region {}: {missing:?}",
                points.len(),
                region.name
            );
        }
    }
}
