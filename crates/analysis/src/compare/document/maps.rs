//! Records that hold maps, compared on the workloads that were asked for.

use ioscape_model::{
    Comparison, Comparisons, Record, RecordWarnings, SystemComparison, Verdict, Workload,
};

use super::{Against, Demands, Evidence, NamedWorkload, document, unknown};
use crate::compare::{System, Versus, caches, compare, elements, overall, regions};
use crate::model::{Sample, Training};
use crate::predict::{FitError, Predictor};

/// Points of a predicted line.
const LINE_POINTS: u32 = 64;

/// A record with its models.
#[derive(Debug)]
pub struct Mapped {
    /// What was measured.
    pub record: Record,
    /// What answers for it.
    pub predictor: Predictor,
    /// The samples of the record's own layer and of the device's.
    samples: Vec<Sample>,
}

impl Mapped {
    /// Fits a record's models.
    ///
    /// # Errors
    /// Where it holds too little for any.
    pub fn new(record: Record) -> Result<Self, FitError> {
        let mut samples = Training::from_record(&record).samples;
        samples.extend(Training::of_device(&record).into_iter().flat_map(|layer| layer.samples));
        let predictor = Predictor::of_record(&record)?;
        Ok(Self { record, predictor, samples })
    }

    fn system(&self) -> System<'_> {
        System::new(&self.record, &self.samples, &self.predictor)
    }

    /// Predicted throughput of a workload, bytes per second.
    fn rate(&self, work: &Workload) -> f64 {
        self.predictor.guess(work).ln_throughput.exp()
    }

    /// Predicted throughput, bytes per second, over the record's own range of `unique_bytes`.
    pub fn line(&self, overlay: &Workload) -> Vec<(f64, f64)> {
        let from = self.record.header.ranges.unique_bytes.min;
        let access = self.predictor.access();
        let here = self.samples.iter().filter(|sample| sample.workload.access == access);
        let to = here.map(|sample| sample.workload.unique_bytes).max().unwrap_or(from);
        let growth = to.max(from) as f64 / from as f64;
        let at = |step: u32| {
            let unique = from as f64 * growth.powf(f64::from(step) / f64::from(LINE_POINTS - 1));
            let work = Workload { unique_bytes: unique as u64, ..overlay.clone() };
            let rate = self.rate(&work);
            work.check().is_ok().then_some((unique, rate))
        };
        (0..LINE_POINTS).filter_map(at).collect()
    }
}

/// Compares maps with the first of them. The records' files and doubts come in the same order.
pub fn between_maps(
    maps: &[Mapped],
    records: Vec<RecordWarnings>,
    asked: &[NamedWorkload],
    demands: &Demands<'_>,
) -> Comparisons {
    let works: Vec<Workload> = asked.iter().map(|asked| asked.workload.clone()).collect();
    let others = maps.iter().zip(&records).skip(1);
    let against = others.map(|(other, file)| {
        let baseline = &maps[0];
        let mut versus = compare(&baseline.system(), &other.system(), &works);
        if let Some(resolution) = demands.resolution {
            versus = versus.requiring(resolution);
        }
        Against {
            system: system(baseline, other, &versus, file),
            comparisons: comparisons(baseline, other, asked, &versus, file),
        }
    });
    let against: Vec<Against> = against.collect();
    let workloads = against.iter().flat_map(|one| &one.comparisons);
    let workloads: Vec<Verdict> = workloads.map(|comparison| comparison.verdict).collect();
    let sums = against.iter().flat_map(Against::sums);
    let sums: Vec<Verdict> = sums.map(|(_, sum)| sum.verdict).collect();
    let verdict = overall(&workloads, &sums);
    document(Evidence { against, dropped: vec![], verdict }, records, demands)
}

fn comparisons(
    baseline: &Mapped,
    other: &Mapped,
    asked: &[NamedWorkload],
    versus: &Versus,
    file: &RecordWarnings,
) -> Vec<Comparison> {
    let all = asked.iter().zip(&versus.workloads).map(|(asked, tested)| Comparison {
        record: file.record.clone(),
        name: asked.name.clone(),
        workload: asked.workload.clone(),
        baseline_bytes_per_s: baseline.rate(&asked.workload),
        throughput_bytes_per_s: other.rate(&asked.workload),
        ratio: tested.ratio,
        resolution: tested.resolution,
        verdict: tested.verdict,
        pairs: None,
    });
    all.collect()
}

fn system(
    baseline: &Mapped,
    other: &Mapped,
    versus: &Versus,
    file: &RecordWarnings,
) -> SystemComparison {
    let (from, to) = (&baseline.record, &other.record);
    SystemComparison {
        verdict: versus.verdict,
        geometric_mean: versus.geometric_mean,
        measured: versus.measured,
        caches: caches(&from.borders, &to.borders),
        regions: regions((&baseline.system(), &from.regions), (&other.system(), &to.regions)),
        elements: elements(&from.elements, &to.elements),
        ..unknown(file)
    }
}
