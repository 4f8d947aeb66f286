//! The layers of a map apart: the visits, estimates, borders and regions of each.

use ioscape_model::{Border, Estimate, Layer, Point, Region};

/// What of a map with two layers belongs to one of them.
#[derive(Clone, Debug, Default)]
pub struct LayerPart {
    /// Its visits.
    pub points: Vec<Point>,
    /// Its pooled workloads.
    pub estimates: Vec<Estimate>,
    /// Its borders.
    pub borders: Vec<Border>,
    /// Its regions.
    pub regions: Vec<Region>,
}

impl LayerPart {
    /// Picks it out. Borders are those of the page cache, and are looked for in one layer only.
    pub fn pick(
        layer: Layer,
        (points, estimates): (&[Point], &[Estimate]),
        (borders, regions): (&[Border], &[Region]),
    ) -> Self {
        let is_here = |access| Layer::of_access(access) == layer;
        let kept = |estimate: &&Estimate| is_here(estimate.workload.access);
        let region = |region: &&Region| is_here(region.focal.access);
        Self {
            points: points.iter().filter(|point| layer.holds(point)).cloned().collect(),
            estimates: estimates.iter().filter(kept).cloned().collect(),
            borders: borders.to_vec(),
            regions: regions.iter().filter(region).cloned().collect(),
        }
    }
}
