//! The blend as plain data, for programs that predict without fitting.

use ioscape_model::portable::{PortableDoubt, PortableLaw};

use super::Blend;
use crate::model::Training;

impl Blend {
    /// The law, and what is known of how far off it is. The samples are those of the fit.
    ///
    /// # Panics
    /// Where they are not, and for a blend whose caches were set: what was learnt about a sample
    /// holds under the law that it was learnt under.
    pub fn portable(&self, training: &Training) -> (PortableLaw, PortableDoubt) {
        let law = PortableLaw {
            read_caches: self.shape.read_caches,
            write_caches: self.shape.write_caches,
            parameters: self.fit.parameters.clone(),
        };
        let process = self.residual.as_ref().filter(|_| self.is_corrected);
        let doubt = match process {
            Some(residual) => {
                PortableDoubt::Process(Box::new(residual.portable(&self.law, &training.samples)))
            }
            None => PortableDoubt::Law { misfit: self.misfit, covariance: self.lower_covariance() },
        };
        (law, doubt)
    }

    /// Noise between visits, for each kind of time; none where none could be learnt.
    pub fn noise_sd(&self) -> Option<[f64; 3]> {
        self.residual.as_ref().map(super::residual::Residual::noise_sd)
    }

    fn lower_covariance(&self) -> Vec<f64> {
        let covariance = &self.fit.covariance;
        let row = |row: usize| (0..=row).map(move |column| covariance[(row, column)]);
        (0..covariance.nrows()).flat_map(row).collect()
    }
}
