//! A formula in place of a record, for tests.

use ioscape_model::units::{GIB, KIB, MIB};
use ioscape_model::{Hints, Host, Layer, Ranges, Region, RegionKind, RegionUniqueBytes, Workload};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Sample, Training};

/// Workloads with what a law says of them, and noise of this standard deviation on top.
pub(super) fn training(
    works: &[Workload],
    law: &dyn Fn(&Workload) -> f64,
    (noise, seed): (f64, u64),
) -> Training {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut sample = |work: &Workload| {
        let normal: f64 = StandardNormal.sample(&mut rng);
        Sample {
            workload: work.clone(),
            ln_throughput: law(work).ln() + noise * normal,
            sd: noise.max(0.01),
            visits: 1,
            ln_tail: None,
            hit_fraction: None,
        }
    };
    Training {
        samples: works.iter().map(&mut sample).collect(),
        cold: Vec::new(),
        extras: Vec::new(),
        open: Vec::new(),
        device: Vec::new(),
        borders: Vec::new(),
        processor_borders: Vec::new(),
        regions: Vec::new(),
        host: Host::default(),
        hints: Hints::default(),
        ranges: Ranges::usual(2),
        read_ahead_bytes: None,
        drift_sd: 0.0,
        off_graph_count: 100,
        fixed: Vec::new(),
    }
}

/// A region around its focal vector, bytes.
pub(crate) fn region(focal: &Workload, from: u64, to: u64) -> Region {
    let at = focal.unique_bytes as f64;
    Region {
        name: RegionKind::Cache.into(),
        unique_bytes: RegionUniqueBytes { from: from as f64, to: to as f64, focal: at },
        focal: focal.clone(),
        layer: Layer::default(),
        revision: 0,
    }
}

/// Workloads anywhere in the usual box.
pub(super) fn anywhere(count: usize, seed: u64) -> Vec<Workload> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut work = || {
        let mut between = |from: u64, to: u64| {
            (from as f64 * (to as f64 / from as f64).powf(rng.random::<f64>())) as u64
        };
        Workload {
            unique_bytes: between(8 * MIB, GIB),
            size_mean: between(4 * KIB, MIB),
            read_frac: rng.random(),
            seq_frac: rng.random(),
            process_num: rng.random_range(1..=4),
            ..Workload::default()
        }
    };
    std::iter::repeat_with(&mut work).take(count).collect()
}
