//! Devices that are faster at first than for long, of both kinds and drawn by seed: the fall is found
//! where the simulated law puts it, with both its levels. None is found on devices that stay.

use ioscape_analysis::finding::first_and_sustained;
use ioscape_engine::sim::{Reserve, SimRig, SimSpec};
use ioscape_engine::{Error, Rig};
use ioscape_experiment::sustain::{SustainRequest, sustain};
use ioscape_model::units::{GIB, MIB};
use ioscape_model::{Finding, Workload};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

const SEEDS: u64 = 20;

/// A device with noise, as fast as chance has it.
fn drawn(rng: &mut Xoshiro256PlusPlus) -> SimSpec {
    let mut spec = SimSpec::preset("nvme").unwrap();
    spec.noise.between_cv = 0.005;
    spec.noise.within_cv = rng.random_range(0.02..0.1);
    spec.noise.within_correlation = rng.random_range(0.0..0.7);
    spec.noise.transient_amplitude = rng.random_range(-0.1..0.1);
    spec.levels.last_mut().unwrap().bytes_per_s_max = Some(rng.random_range(0.2e9..2.5e9));
    spec
}

fn look(spec: &SimSpec, length_s: f64, seed: u64) -> (Finding, Workload) {
    let mut rig = SimRig::new(spec.clone(), seed);
    let request = SustainRequest { length_s, span_bytes: GIB, enough_bytes: None, seed };
    let sustained = sustain(&request, &mut rig, &mut |_| {}).unwrap();
    (first_and_sustained(&sustained, 1).unwrap(), sustained.workload)
}

/// How far a figure is from the truth.
#[track_caller]
fn check(found: &Finding, figure: &str, truth: f64, allowed: f64) {
    let seen = found.figures[figure];
    assert!((seen / truth - 1.0).abs() <= allowed, "{figure}: {seen}, not {truth}: {}", found.text);
}

#[test]
fn a_fast_part_of_a_drive_is_found_when_it_is_full() {
    for seed in 0..SEEDS {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut spec = drawn(&mut rng);
        let reserve_bytes = rng.random_range(4 * GIB..12 * GIB);
        spec.reserve = Some(Reserve {
            write_bytes: Some(reserve_bytes),
            load_s: None,
            spent_speed: rng.random_range(0.1..0.7),
            rest_s: 60.0,
        });
        let (found, work) = look(&spec, 180.0, seed);
        check(&found, "first_bytes_per_s", spec.expected_throughput(&work), 0.05);
        check(&found, "sustained_bytes_per_s", spec.spent(&work).expected_throughput(&work), 0.05);
        check(&found, "onset_bytes", reserve_bytes as f64, 0.10);
    }
}

#[test]
fn burst_credit_is_found_when_it_ends() {
    for seed in 0..SEEDS {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1000 + seed);
        let mut spec = drawn(&mut rng);
        let load_s = rng.random_range(20.0..90.0);
        spec.reserve = Some(Reserve {
            write_bytes: None,
            load_s: Some(load_s),
            spent_speed: rng.random_range(0.1..0.7),
            rest_s: 600.0,
        });
        let (found, work) = look(&spec, 180.0, seed);
        check(&found, "first_bytes_per_s", spec.expected_throughput(&work), 0.05);
        check(&found, "sustained_bytes_per_s", spec.spent(&work).expected_throughput(&work), 0.05);
        check(&found, "onset_s", load_s, 0.10);
    }
}

#[test]
fn devices_that_stay_as_they_are_have_no_fall() {
    for seed in 0..SEEDS {
        let spec = drawn(&mut Xoshiro256PlusPlus::seed_from_u64(2000 + seed));
        let (found, work) = look(&spec, 180.0, seed);
        assert!(!found.figures.contains_key("onset_s"), "{seed}: {}", found.text);
        check(&found, "first_bytes_per_s", spec.expected_throughput(&work), 0.05);
    }
}

#[test]
fn no_more_than_half_of_what_may_be_written_is() {
    let spec = SimSpec::preset("nvme").unwrap();
    let most_bytes = 8 * GIB;
    let mut rig = SimRig::new(spec.clone(), 1);
    rig.limit_written(most_bytes);
    let request = SustainRequest { length_s: 60.0, span_bytes: GIB, enough_bytes: None, seed: 1 };
    let sustained = sustain(&request, &mut rig, &mut |_| {}).unwrap();
    assert!(sustained.is_cut_short);
    let cut_short = sustained.warnings.last().unwrap();
    let bytes: u64 = sustained.pieces.iter().map(|piece| piece.bytes).sum();
    assert_eq!(cut_short.figures["written_bytes"] as u64, bytes);
    assert_eq!(cut_short.figures["asked_s"] as u64, 60);
    assert!(cut_short.text.contains(" of the 60.0 s asked for: half"), "{}", cut_short.text);
    assert!(rig.written_bytes() <= most_bytes / 2, "{}", rig.written_bytes());
    assert!(rig.written_bytes() > most_bytes / 3, "{}", rig.written_bytes());
    let mut rig = SimRig::new(spec.clone(), 1);
    let twice = SustainRequest { enough_bytes: Some(2 * GIB), ..request };
    let sustained = sustain(&twice, &mut rig, &mut |_| {}).unwrap();
    let bytes: u64 = sustained.pieces.iter().map(|piece| piece.bytes).sum();
    assert!(!sustained.is_cut_short && (2 * GIB..3 * GIB).contains(&bytes), "{bytes}");
    let mut rig = SimRig::new(spec, 1);
    rig.limit_written(16 * MIB);
    assert!(matches!(sustain(&request, &mut rig, &mut |_| {}), Err(Error::MaxWritten)));
}
