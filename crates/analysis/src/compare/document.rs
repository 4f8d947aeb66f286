//! The document that `ioscape compare` prints: systems held against a baseline, what is slower than
//! was tolerated, and what each system gives for its price.
//!
//! Three kinds of evidence fill it: maps that predict the workloads asked for (`maps`), visits made
//! in alternation (`alternated`), and system vectors (`vectors`).

use ioscape_model::{
    Comparison, Comparisons, Figure, NotCompared, Overall, OverallRatio, RecordWarnings,
    SystemComparison, Verdict, Workload,
};

mod alternated;
mod maps;
mod price;
mod vectors;

pub use alternated::{are_alternated, between_alternated, planned};
pub use maps::{Mapped, between_maps};
pub use vectors::between_vectors;

/// A workload and the name that its comparison goes by.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedWorkload {
    /// A named workload's name; what was typed, or the literal, otherwise.
    pub name: String,
    /// The workload.
    pub workload: Workload,
}

/// Demands that a comparison is held to, and the prices of the systems.
#[derive(Clone, Copy, Debug, Default)]
pub struct Demands<'a> {
    /// The loss that is tolerated, as a fraction of the baseline's throughput.
    pub tolerance: Option<f64>,
    /// The smallest difference that has to be shown, as a fraction.
    pub resolution: Option<f64>,
    /// Prices of all records, the baseline's first.
    pub prices: Option<&'a [f64]>,
}

/// A system against the baseline, with the workloads that both were compared on.
#[derive(Clone, Debug)]
struct Against {
    system: SystemComparison,
    comparisons: Vec<Comparison>,
}

impl Against {
    /// Names of workloads, means and elements that are slower by more than `tolerance` with their whole
    /// interval.
    fn beyond(&self, tolerance: f64) -> Vec<String> {
        let is_beyond = |ratio: &Figure| ratio.high < 1.0 - tolerance;
        let slower = self.comparisons.iter().filter(|c| c.verdict == Verdict::Slower);
        let workloads = slower.filter(|c| is_beyond(&c.ratio)).map(|c| c.name.clone());
        let sums = self.sums().filter(|(_, sum)| is_beyond(&sum.ratio));
        let elements = self.system.elements.iter().filter(|e| e.verdict == Verdict::Slower);
        let elements = elements.filter(|e| is_beyond(&e.ratio)).map(|e| e.name.word().to_owned());
        workloads.chain(sums.map(|(name, _)| name.to_owned())).chain(elements).collect()
    }

    /// Its ratios over many workloads, each with its name.
    fn sums(&self) -> impl Iterator<Item = (&'static str, OverallRatio)> {
        let mean = self.system.geometric_mean.map(|sum| ("the geometric mean", sum));
        let measured = self.system.measured;
        let measured = measured.map(|sum| ("the median of what both measured", sum));
        mean.into_iter().chain(measured)
    }
}

/// A system of which nothing is known but its record.
fn unknown(record: &RecordWarnings) -> SystemComparison {
    SystemComparison {
        record: record.record.clone(),
        verdict: Overall::OutOfRange,
        geometric_mean: None,
        measured: None,
        caches: vec![],
        regions: vec![],
        elements: vec![],
        beyond_tolerance: vec![],
        price: None,
    }
}

/// Comparisons by one kind of evidence: maps, alternated visits or system vectors.
struct Evidence {
    /// The systems, in the order of their records.
    against: Vec<Against>,
    dropped: Vec<NotCompared>,
    verdict: Overall,
}

/// Holds what was found to the demands. The records come with their doubts, the baseline first.
fn document(
    evidence: Evidence,
    records: Vec<RecordWarnings>,
    demands: &Demands<'_>,
) -> Comparisons {
    let Evidence { mut against, dropped, verdict } = evidence;
    for (place, one) in against.iter_mut().enumerate() {
        one.system.beyond_tolerance =
            demands.tolerance.map(|tolerance| one.beyond(tolerance)).unwrap_or_default();
        one.system.price = demands.prices.map(|prices| {
            price::worth(prices[place + 1] / prices[0], &one.system, &one.comparisons)
        });
    }
    let baseline = records.first().map(|of| of.record.clone()).unwrap_or_default();
    let prices = demands.prices.map(|prices| price::performance(&baseline, &against, prices));
    let (systems, comparisons): (Vec<_>, Vec<_>) =
        against.into_iter().map(|one| (one.system, one.comparisons)).unzip();
    Comparisons {
        baseline,
        comparisons: comparisons.into_iter().flatten().collect(),
        dropped,
        warnings: records,
        required_resolution: demands.resolution,
        systems,
        prices: prices.unwrap_or_default(),
        verdict,
    }
}

#[cfg(test)]
mod tests;
