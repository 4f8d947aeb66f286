//! Simpler laws that the blend is judged beside, fitted to the same samples.

use ioscape_analysis::model::gaussian::Gaussian;
use ioscape_analysis::model::product::Product;
use ioscape_analysis::model::{Model, Training};
use ioscape_model::{Access, Region, Workload};

use crate::classes::Classes;
use crate::physical::Physical;

/// All of them, for one layer of a map.
pub(crate) struct Competitors {
    access: Access,
    classes: Classes,
    physical: Option<Gaussian<Physical>>,
    product: Option<Product>,
    /// Regions in which the product model has curves.
    regions: Vec<Region>,
}

impl Competitors {
    pub(crate) fn fit(training: &Training) -> Self {
        let classes = Classes::fit(training);
        let is_measured = |work: &Workload| training.samples.iter().any(|s| s.workload == *work);
        let regions = training.regions.iter().filter(|region| is_measured(&region.focal));
        Self {
            access: training.ranges.access,
            physical: Physical::fit(training, &classes),
            classes,
            product: Product::fit(training),
            regions: regions.cloned().collect(),
        }
    }

    /// True if these laws were fitted to the layer that a workload belongs to.
    pub(crate) fn are_of(&self, work: &Workload) -> bool {
        self.access == work.access
    }

    /// The logarithm of the throughput by each law that answers.
    pub(crate) fn answers(&self, work: &Workload) -> Vec<(&'static str, f64)> {
        let mut said = vec![("classes", self.classes.ln_throughput(work))];
        said.extend(
            self.physical.as_ref().map(|it| ("gaussian-physical", it.guess(work).ln_throughput)),
        );
        said.extend(self.product_with_classes(work).map(|ln| ("product-classes", ln)));
        said
    }

    /// The product of curves at the focal vector's data, times what the class times say of the way from there: they
    /// take the place of the curve over `unique_bytes`, and of one over the depth, which the product lacks.
    fn product_with_classes(&self, work: &Workload) -> Option<f64> {
        let bytes = work.unique_bytes as f64;
        let is_inside = |region: &&Region| {
            let extent = &region.unique_bytes;
            (extent.from..=extent.to).contains(&bytes)
        };
        let distance = |region: &Region| (region.focal.unique_bytes as f64 / bytes).ln().abs();
        let nearest = || self.regions.iter().min_by(|a, b| distance(a).total_cmp(&distance(b)));
        let focal = &self.regions.iter().find(is_inside).or_else(nearest)?.focal;
        let there = Workload { unique_bytes: focal.unique_bytes, ..work.without_extras() };
        let way = self.classes.ln_throughput(work) - self.classes.ln_throughput(&there);
        Some(self.product.as_ref()?.predict(&there)?.ln_throughput + way)
    }
}
