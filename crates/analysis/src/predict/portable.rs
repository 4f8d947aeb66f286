//! A predictor as plain data, for programs that predict without the record.

use ioscape_model::portable::{PortablePredictor, PortableRange, PortableRegion};
use ioscape_model::{Range, Region};

use super::Predictor;
use crate::model::product::Product;

#[cfg(test)]
mod tests;

impl Predictor {
    /// All that [`Self::predict`] answers from.
    ///
    /// # Panics
    /// Where caches were set: what samples taught holds for the caches they were measured with.
    pub fn portable(&self) -> PortablePredictor {
        let (law, doubt) = self.blend.portable(&self.training);
        let range = |(key, Range { min, max }): (&str, Range)| PortableRange {
            key: key.to_owned(),
            min,
            max,
        };
        let region = |region: &Region| PortableRegion {
            name: region.name.clone(),
            to: region.unique_bytes.to,
        };
        PortablePredictor {
            law,
            doubt,
            noise: self.blend.noise_sd(),
            calibration: self.calibration.portable(),
            measured: self.visited().map(range).to_vec(),
            regions: self.training.regions.iter().map(region).collect(),
            // The one that answers lies behind the models' common interface; fitted again it is
            // the same.
            product: Product::fit(&self.training).map(|product| product.portable()),
        }
    }
}
