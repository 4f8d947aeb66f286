//! `Physical` gives a Gaussian process other coordinates than the five parameters: the seconds that a request is
//! expected to take, the share of them that storage takes, the share of requests that each cache serves. The process also
//! gets the throughput that follows from these seconds, and fits the slope of ln measured over ln expected throughput.

use ioscape_analysis::model::Training;
use ioscape_analysis::model::gaussian::{Gaussian, SmoothOver};
use ioscape_model::Workload;

use crate::classes::Classes;

/// Coordinates from the class times fitted to one layer.
#[derive(Clone, Debug)]
pub(crate) struct Physical {
    classes: Classes,
    /// The last-level cache, bytes; 0 where it is not known.
    processor_cache_bytes: f64,
}

impl Physical {
    /// A process over these coordinates, from the samples that the blend learns from. `None` where they are too few
    /// or nothing fits them.
    pub(crate) fn fit(training: &Training, classes: &Classes) -> Option<Gaussian<Self>> {
        let processors = training.processor_borders.first();
        let found = processors.map(|place| training.borders[*place].unique_bytes.capacity);
        let of_host = training.host.llc_bytes.map(|bytes| bytes as f64);
        let processor_cache_bytes = found.or(of_host).unwrap_or(0.0);
        let samples = classes.levels().samples(training);
        Gaussian::over(Self { classes: classes.clone(), processor_cache_bytes }, &samples)
    }
}

impl SmoothOver for Physical {
    fn coordinates(&self, work: &Workload) -> Vec<f64> {
        let times = self.classes.times(work);
        let mut coordinates = vec![
            times.all_s().ln(),
            times.beyond_s[0] / times.all_s(),
            times.beyond_s[1] / times.all_s(),
            (self.processor_cache_bytes / work.unique_bytes as f64).min(1.0),
            (work.size_mean as f64).ln(),
            work.read_frac,
            work.seq_frac,
            f64::from(work.process_num).ln(),
            f64::from(work.depth).ln(),
            work.syncs_per_write(),
        ];
        // Shares of all requests that each cache lets through, the last of them to storage.
        let of_requests = [work.read_frac, 1.0 - work.read_frac];
        for (shares, of_requests) in self.classes.levels().shares(work).iter().zip(of_requests) {
            let mut held = 0.0;
            for share in &shares[..shares.len() - 1] {
                held += share;
                coordinates.push(of_requests * (1.0 - held));
            }
        }
        coordinates
    }

    fn expected(&self, work: &Workload) -> Option<f64> {
        Some(self.classes.ln_throughput(work))
    }
}
