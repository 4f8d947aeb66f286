//! A predictor that was stored and read back is the one that was fitted.

use ioscape_model::{Layer, Region, RegionKind, RegionUniqueBytes, Workload};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde_json::Value;

use super::{TRUTH, random, training};
use crate::model::{Sample, Training};
use crate::predict::{Caches, Predictor};

const MIB: u64 = 1 << 20;

/// A record with two regions, each with its family, on a system that the law only nearly knows:
/// request sizes have this much of a wave of their own.
fn explored(seed: u64, wave: f64) -> Training {
    let mut training = training(seed, 60, 0.03);
    let sample = training.samples[0].clone();
    for (kind, from, to) in [(RegionKind::Cache, 8, 256), (RegionKind::Storage, 256, 1024)] {
        let focal = Workload { unique_bytes: u64::midpoint(from, to) * MIB, ..Workload::default() };
        let mut family = vec![focal.clone()];
        family
            .extend([4, 8, 64, 256].map(|kib| Workload { size_mean: kib << 10, ..focal.clone() }));
        family.extend([0.0, 0.2, 1.0].map(|read_frac| Workload { read_frac, ..focal.clone() }));
        family.extend([0.0, 0.7, 1.0].map(|seq_frac| Workload { seq_frac, ..focal.clone() }));
        family.extend([2, 3, 4].map(|process_num| Workload { process_num, ..focal.clone() }));
        training.samples.extend(family.into_iter().map(|workload| Sample {
            ln_throughput: TRUTH.ln_throughput(&workload),
            workload,
            ..sample.clone()
        }));
        let (from, to) = ((from * MIB) as f64, (to * MIB) as f64);
        let unique_bytes = RegionUniqueBytes { from, to, focal: focal.unique_bytes as f64 };
        training.regions.push(Region {
            name: kind.into(),
            unique_bytes,
            focal,
            layer: Layer::default(),
            revision: 0,
        });
    }
    for sample in &mut training.samples {
        sample.ln_throughput += wave * (2.0 * (sample.workload.size_mean as f64).ln()).sin();
    }
    training
}

/// Workloads that any record answers for, and some that none does.
fn asked(seed: u64) -> Vec<Workload> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(!seed);
    let mut works: Vec<Workload> = (0..30).map(|_| random(&mut rng)).collect();
    works.push(Workload { process_num: 16, size_mean: 3 << 19, ..works[0].clone() });
    works.push(Workload { depth: 8, fsync_every: 4, ..works[1].clone() });
    works
}

/// Whether the law was corrected.
#[track_caller]
fn check(predictor: &Predictor, seed: u64) -> bool {
    let json = serde_json::to_string(predictor).unwrap();
    let stored: Predictor = serde_json::from_str(&json).unwrap();
    for work in asked(seed) {
        assert_eq!(stored.predict("", &work), predictor.predict("", &work), "{work}");
    }
    assert_eq!(stored.sentences(), predictor.sentences());
    assert_eq!(stored.model_lines(1)[..2], predictor.model_lines(1)[..2]);
    assert_eq!(format!("{:?}", stored.blend), format!("{:?}", predictor.blend), "all of it");
    serde_json::from_str::<Value>(&json).unwrap()["blend"]["correction"].is_object()
}

#[test]
fn a_predictor_that_was_stored_says_the_same_to_the_last_bit() {
    let predictor = Predictor::fit(explored(1, 0.25)).unwrap();
    assert!(check(&predictor, 1), "a wave that no law of time knows is learnt");
    let found = predictor.caches();
    let wanted = Caches { read_bytes: found.read_bytes.map(|bytes| 2.0 * bytes), ..found };
    assert!(check(&predictor.with_caches(&wanted).unwrap(), 1), "with a cache that is supposed");
    check(&Predictor::fit(explored(2, 0.1)).unwrap(), 2);
}

#[test]
fn a_stored_predictor_that_lacks_a_figure_is_refused() {
    let whole = serde_json::to_value(Predictor::fit(explored(1, 0.25)).unwrap()).unwrap();
    let mut torn = whole.clone();
    torn["blend"]["correction"]["residuals"].as_array_mut().unwrap().pop();
    let error = serde_json::from_value::<Predictor>(torn).unwrap_err().to_string();
    assert!(error.contains("a sample lacks"), "{error}");
    let mut unknown = whole;
    unknown["blend"]["inflated"] = Value::Null;
    assert!(serde_json::from_value::<Predictor>(unknown).is_err());
}
