//! The product of single-parameter curves (Chen and Patterson 1994, section 9): the shape of a
//! curve is taken to be the same wherever the other parameters are.
//!
//! T(w) = T(focal) · Π f(w's value) / f(focal's value), over the curves of the region that the
//! workload's `unique_bytes` falls in.

use ioscape_model::{ModelName, Region, Workload};
use ioscape_stats::monotone::MonotoneCubic;
use serde::{Deserialize, Serialize};

use super::{Guess, Model, Sample, Training};
use crate::axis::Axis;

/// The model.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Product {
    /// Smallest region first.
    families: Vec<RegionCurves>,
}

/// The curves of a region.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RegionCurves {
    region: Region,
    at_focal: Guess,
    curves: Vec<Curve>,
}

/// One parameter alone.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Curve {
    axis: Axis,
    /// Natural logarithm of the throughput over the axis's coordinate.
    ln_throughput: MonotoneCubic,
    /// Its standard deviation.
    sd: MonotoneCubic,
}

impl Product {
    /// From the samples that lie on the curves of a region's family. `None` where no region's
    /// focal vector was measured.
    pub fn fit(training: &Training) -> Option<Self> {
        let family = |region: &Region| RegionCurves::from_samples(region, &training.samples);
        let families: Vec<RegionCurves> = training.regions.iter().filter_map(family).collect();
        (!families.is_empty()).then_some(Self { families })
    }

    /// Of the region the workload falls in, or the one with the nearest focal point.
    fn family(&self, work: &Workload) -> Option<&RegionCurves> {
        let bytes = work.unique_bytes as f64;
        let holds = |family: &&RegionCurves| {
            let extent = &family.region.unique_bytes;
            (extent.from..=extent.to).contains(&bytes)
        };
        let distance = |family: &RegionCurves| {
            let focal = &family.region.focal;
            (Axis::UniqueBytes.coordinate(focal) - Axis::UniqueBytes.coordinate(work)).abs()
        };
        let nearest = || self.families.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        self.families.iter().find(holds).or_else(nearest)
    }
}

impl Model for Product {
    fn name(&self) -> ModelName {
        ModelName::Product
    }

    fn predict(&self, work: &Workload) -> Option<Guess> {
        let family = self.family(work)?;
        let Guess { mut ln_throughput, sd } = family.at_focal;
        let mut variance = sd * sd;
        for curve in &family.curves {
            let here = curve.axis.coordinate(work);
            let focal = curve.axis.coordinate(&family.region.focal);
            if here.total_cmp(&focal).is_ne() {
                ln_throughput += curve.ln_throughput.at(here) - curve.ln_throughput.at(focal);
                variance += curve.sd.at(here).powi(2) + curve.sd.at(focal).powi(2);
            }
        }
        Some(Guess { ln_throughput, sd: variance.sqrt() })
    }
}

impl RegionCurves {
    fn from_samples(region: &Region, samples: &[Sample]) -> Option<Self> {
        let focal = samples.iter().find(|sample| sample.workload == region.focal)?;
        let at_focal = Guess { ln_throughput: focal.ln_throughput, sd: focal.sd };
        let curves = Axis::ALL.into_iter().filter_map(|axis| {
            let on_curve = if axis == Axis::UniqueBytes {
                unique_bytes_curve(&region.focal, samples)
            } else {
                let alike = |s: &&Sample| axis.alone_differs(&s.workload, &region.focal);
                samples.iter().filter(alike).collect()
            };
            Curve::through(axis, &on_curve)
        });
        Some(Self { region: region.clone(), at_focal, curves: curves.collect() })
    }
}

impl Curve {
    /// A parameter that was not varied has no curve: its factor is 1.
    fn through(axis: Axis, samples: &[&Sample]) -> Option<Self> {
        if samples.len() < 2 {
            return None;
        }
        let over = |height: fn(&Sample) -> f64| {
            let point = |sample: &&Sample| (axis.coordinate(&sample.workload), height(sample));
            MonotoneCubic::through(&samples.iter().map(point).collect::<Vec<_>>())
        };
        let ln_throughput = over(|sample| sample.ln_throughput)?;
        Some(Self { axis, ln_throughput, sd: over(|sample| sample.sd)? })
    }
}

/// Throughput over `unique_bytes`, across all regions. The paper's sweep is taken before the focal
/// size is known, so another size will do where it gives more points: of the curves with at least
/// half as many points as the longest, the one with the nearest size.
fn unique_bytes_curve<'a>(focal: &Workload, samples: &'a [Sample]) -> Vec<&'a Sample> {
    let with_size = |size_mean: u64| Workload { size_mean, ..focal.clone() };
    let mut curves: Vec<(u64, Vec<&Sample>)> = Vec::new();
    for sample in samples {
        let size_mean = sample.workload.size_mean;
        if Axis::UniqueBytes.alone_differs(&sample.workload, &with_size(size_mean)) {
            match curves.iter_mut().find(|(size, _)| *size == size_mean) {
                Some((_, curve)) => curve.push(sample),
                None => curves.push((size_mean, vec![sample])),
            }
        }
    }
    let longest = curves.iter().map(|(_, curve)| curve.len()).max().unwrap_or(0);
    curves.retain(|(_, curve)| curve.len() * 2 >= longest);
    let distance = |size: u64| (size as f64 / focal.size_mean as f64).ln().abs();
    let nearest = curves.into_iter().min_by(|a, b| distance(a.0).total_cmp(&distance(b.0)));
    nearest.map(|(_, curve)| curve).unwrap_or_default()
}

#[cfg(test)]
mod tests;
