//! What models are fitted from.

use ioscape_model::{
    Access, Border, DeviceLayer, Estimate, Hints, Host, Layer, OpenLoop, Point, Ranges, Record,
    Region, ResponseTime, Role, State, Workload, open_loops,
};
use ioscape_stats::least_squares::Prior;
use ioscape_stats::{median, robust_sd};

use crate::estimate;
use crate::finding::Evidence;
use crate::layer::LayerPart;

/// Percentiles that are predicted beside a mean: p50, p99 and p99.9.
pub const TAIL: usize = 3;
/// Half of a 95 % interval over the standard error behind it.
const SIGMAS_OF_95: f64 = 1.96;
/// A cold visit that found a larger share of its pages in the page cache says little of misses.
const COLD_HIT_MAX: f64 = 0.2;
/// No measurement is better than this, whatever its interval says.
const SD_MIN: f64 = 0.01;
/// The page cache gets this share of a memory group's limit; the kernel and the program use the rest.
/// Borders on ext4, xfs and btrfs lay at 0.84 to 0.87 of limits of 256 and 512 MiB.
const SHARE_OF_LIMIT: f64 = 0.86;
/// Standard deviation of a parameter that is fixed.
pub(crate) const FIXED_SD: f64 = 1e-6;

/// What was found about one workload, over all of its visits.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The workload.
    pub workload: Workload,
    /// Natural logarithm of its throughput in bytes per second: the mean over its visits.
    pub ln_throughput: f64,
    /// Standard error of that mean.
    pub sd: f64,
    /// How many visits it rests on.
    pub visits: u32,
    /// Percentiles of the response time over its mean, as logarithms: p50, p99, p99.9. `None` where
    /// whoever measured did not keep them.
    pub ln_tail: Option<[f64; TAIL]>,
    /// Share of the requested pages found resident, where known.
    pub hit_fraction: Option<f64>,
}

/// What a record says about workloads, and what is known about the machine.
#[derive(Clone, Debug)]
pub struct Training {
    /// One per workload of the five parameters.
    pub samples: Vec<Sample>,
    /// Reads that found nothing in the page cache (`state=cold`): what a miss costs where data was never
    /// larger than the cache.
    pub cold: Vec<Sample>,
    /// Those with several requests in flight per process or with fdatasyncs.
    pub extras: Vec<Sample>,
    /// Open loops, at what share of the closed loop's rate, lowest first. Never fitted.
    pub open: Vec<OpenLoop>,
    /// The other layer's: what storage does behind the page cache. Never fitted.
    pub device: Vec<Sample>,
    /// Borders, smallest first.
    pub borders: Vec<Border>,
    /// Which of them are the processor's last-level cache, as places in `borders`: no cache of the
    /// storage's, and none that could be told to be another size.
    pub processor_borders: Vec<usize>,
    /// Regions, smallest first, with their focal vectors.
    pub regions: Vec<Region>,
    /// The machine.
    pub host: Host,
    /// What was known beforehand.
    pub hints: Hints,
    /// The box that was to be explored.
    pub ranges: Ranges,
    /// How much the kernel reads ahead of a stream at most, bytes, where it is known.
    pub read_ahead_bytes: Option<u64>,
    /// How the machine's speed varied during the run, as the standard deviation of a logarithm.
    pub drift_sd: f64,
    /// How many workloads were visited that were not chosen for a graph: space-filling points, corners,
    /// refinement points, cold reads, named workloads, lines of the data sheet.
    pub off_graph_count: usize,
    /// Parameters of the law that stay at what is expected of them before any sample, by name:
    /// none, but when the law itself is judged.
    pub fixed: Vec<String>,
}

impl Training {
    /// What a record holds; validation points are never fitted.
    ///
    /// Of a record that holds visits to both layers: what the layer of its own ranges does.
    pub fn from_record(record: &Record) -> Self {
        let header = &record.header;
        if header.device.is_some() || !header.datasheet.is_empty() {
            let layer = Layer::of_access(header.ranges.access);
            return Self::of_layer(record, layer, (header.ranges, header.hints.clone()));
        }
        let Samples { plain, cold, extras } = Samples::from_points(&record.points);
        Self {
            samples: plain,
            cold,
            extras,
            open: open_loops(&record.points),
            device: Vec::new(),
            borders: record.borders.clone(),
            processor_borders: Evidence::from_record(record).processor_borders(),
            regions: record.regions.clone(),
            host: header.host.clone(),
            hints: header.hints.clone(),
            ranges: header.ranges,
            read_ahead_bytes: record.header.target.read_ahead_bytes,
            drift_sd: drift_sd(&record.points),
            off_graph_count: off_graph_count(&record.points),
            fixed: Vec::new(),
        }
    }

    /// Size of a page cache that no visit has passed, bytes, where cold reads say what lies beyond it.
    pub fn unpassed_bytes(&self) -> Option<f64> {
        let bytes = self.hints.read_cache_bytes.filter(|_| !self.hints.in_memory)?;
        let limit = self.host.memory_limit().map_or(f64::INFINITY, |limit| limit as f64);
        let is_known = self.ranges.access == Access::Buffered && !self.cold.is_empty();
        let touched = self.samples.iter().map(|sample| sample.workload.unique_bytes as f64);
        let touched = touched.fold(0.0, f64::max);
        (is_known && touched < bytes).then(|| bytes.min(SHARE_OF_LIMIT * limit).max(touched))
    }

    /// What the device layer of a record of two holds; `None` where there is no such layer.
    pub fn of_device(record: &Record) -> Option<Self> {
        let DeviceLayer { ranges, room_bytes } = record.header.device?;
        let hints = device_hints(&record.header.hints, room_bytes);
        Some(Self::of_layer(record, Layer::Device, (ranges, hints)))
    }

    fn of_layer(record: &Record, layer: Layer, (ranges, hints): (Ranges, Hints)) -> Self {
        let is_main = layer == Layer::of_access(record.header.ranges.access);
        let borders = if is_main { &*record.borders } else { &[] };
        let measured = (&*record.points, &*record.estimates);
        let part = LayerPart::pick(layer, measured, (borders, &record.regions));
        let Samples { plain, cold, extras } = Samples::from_points(&part.points);
        let evidence = Evidence {
            estimates: &part.estimates,
            points: &part.points,
            borders: &part.borders,
            regions: &part.regions,
            ..Evidence::from_record(record)
        };
        Self {
            samples: plain,
            cold,
            extras,
            open: open_loops(&part.points),
            device: device_samples(layer, &record.points),
            processor_borders: evidence.processor_borders(),
            host: record.header.host.clone(),
            hints,
            ranges,
            read_ahead_bytes: record.header.target.read_ahead_bytes,
            drift_sd: drift_sd(&record.points),
            off_graph_count: off_graph_count(&part.points),
            fixed: Vec::new(),
            borders: part.borders,
            regions: part.regions,
        }
    }

    /// Whether a parameter is fixed, by its own name or by that of its kind.
    pub(crate) fn is_fixed(&self, name: &str) -> bool {
        let kind = parameter_kind(name);
        self.fixed.iter().any(|fixed| fixed == name || fixed == kind)
    }

    /// Parameters that are fixed are known all but exactly.
    pub(crate) fn hold(&self, names: &[impl AsRef<str>], priors: &mut [Prior]) {
        for (name, prior) in names.iter().zip(priors) {
            if self.is_fixed(name.as_ref()) {
                prior.sd = FIXED_SD;
            }
        }
    }

    /// All samples of the layer, those with several requests in flight or fdatasyncs last.
    pub(crate) fn all(&self) -> Vec<&Sample> {
        self.samples.iter().chain(&self.cold).chain(&self.extras).collect()
    }
}

/// What is known beforehand of a device layer: no cache of the machine's answers for it.
pub fn device_hints(hints: &Hints, room_bytes: u64) -> Hints {
    Hints { read_cache_bytes: None, write_cache_bytes: None, room_bytes, ..hints.clone() }
}

/// The name of a parameter without the number of a cache at its end.
pub fn parameter_kind(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches('_')
}

/// What a machine is expected to drift by before anything was seen, standard deviation of a
/// logarithm, and how many canaries that weighs as much as: three canaries of three minutes that
/// happen to agree say little of the next hour.
const DRIFT_EXPECTED: f64 = 0.15;
const DRIFT_WEIGHT: f64 = 4.0;

/// Scatter of the canaries: one small workload, again and again, while the run lasted.
pub fn drift_sd(points: &[Point]) -> f64 {
    let canaries = points.iter().filter(|point| point.role == Role::Canary);
    let alive = canaries.map(Point::throughput).filter(|rate| *rate > 0.0);
    let logarithms: Vec<f64> = alive.map(f64::ln).collect();
    // Robust: the first visit of a run may find the machine asleep.
    let middle = median(logarithms.iter().copied()).unwrap_or(0.0);
    let seen = robust_sd(logarithms.iter().map(|x| x - middle)).unwrap_or(0.0);
    let count = if logarithms.len() < 3 { 0.0 } else { logarithms.len() as f64 };
    let squares = DRIFT_WEIGHT * DRIFT_EXPECTED.powi(2) + count * seen.powi(2);
    (squares / (DRIFT_WEIGHT + count)).sqrt()
}

/// How many workloads were visited that lie on no graph, several visits to one counted once.
pub fn off_graph_count(points: &[Point]) -> usize {
    let chosen =
        |point: &&Point| matches!(point.role, Role::Calibration | Role::Refinement | Role::Named);
    let mut works: Vec<&Workload> = Vec::new();
    for point in points.iter().filter(chosen) {
        if !works.contains(&&point.workload) {
            works.push(&point.workload);
        }
    }
    works.len()
}

/// One sample per workload.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// Those of the five parameters.
    pub plain: Vec<Sample>,
    /// Reads that found nothing in the page cache.
    pub cold: Vec<Sample>,
    /// Those with several requests in flight per process or with fdatasyncs.
    pub extras: Vec<Sample>,
}

impl Samples {
    /// Those of a layer's visits. Cold ones that found much in the cache all the same are left out.
    pub fn from_points(points: &[Point]) -> Self {
        let is_fitted = |point: &&Point| !matches!(point.role, Role::Validation | Role::OpenLoop);
        let fitted: Vec<Point> = points.iter().filter(is_fitted).cloned().collect();
        let (estimates, _) = estimate::pool(&fitted, 0);
        let alive = estimates.iter().filter(|e| e.throughput_bytes_per_s.mean > 1.0);
        let all = alive.map(sample);
        let (extras, rest): (Vec<Sample>, Vec<Sample>) =
            all.partition(|sample| sample.workload.has_extras());
        let (mut cold, plain): (Vec<Sample>, Vec<Sample>) =
            rest.into_iter().partition(|sample| sample.workload.state == State::Cold);
        cold.retain(|sample| sample.hit_fraction.is_none_or(|hit| hit <= COLD_HIT_MAX));
        Self { plain, cold, extras }
    }
}

/// What the device layer's visits say about the storage behind the cache layer; none about itself.
pub fn device_samples(layer: Layer, points: &[Point]) -> Vec<Sample> {
    if layer == Layer::Device {
        return Vec::new();
    }
    let direct: Vec<Point> =
        points.iter().filter(|point| Layer::Device.holds(point)).cloned().collect();
    let Samples { plain, extras, .. } = Samples::from_points(&direct);
    plain.into_iter().chain(extras).collect()
}

fn sample(estimate: &Estimate) -> Sample {
    let throughput = &estimate.throughput_bytes_per_s;
    let half_width = (throughput.high / throughput.mean.max(f64::MIN_POSITIVE)).ln();
    Sample {
        workload: estimate.workload.clone(),
        ln_throughput: throughput.mean.ln(),
        sd: (half_width / SIGMAS_OF_95).max(SD_MIN),
        visits: estimate.visits,
        ln_tail: ln_tail(&estimate.response_time_s),
        hit_fraction: estimate.hit_fraction,
    }
}

/// Percentiles over the mean; a record made from another program's output may lack them.
fn ln_tail(times: &ResponseTime) -> Option<[f64; TAIL]> {
    let tail = [times.p50, times.p99, times.p999].map(|time| (time / times.mean).ln());
    tail.iter().all(|ln| ln.is_finite()).then_some(tail)
}

#[cfg(test)]
mod tests {
    use ioscape_model::Interval;

    use super::*;

    #[test]
    fn few_canaries_that_agree_do_not_say_that_a_machine_never_drifts() {
        let canary = |rate: f64| Point {
            role: Role::Canary,
            ..Point::bare(Workload::default(), "psync", Interval::exact(rate))
        };
        let alike = |count: usize| vec![canary(1e9); count];
        assert!((drift_sd(&alike(2)) - DRIFT_EXPECTED).abs() < 1e-12);
        assert!(drift_sd(&alike(3)) > 0.1);
        assert!(drift_sd(&alike(100)) < 0.035);
        // Half of them 0.2 off to either side: 0.3 by the median.
        let drifting: Vec<Point> =
            (0..100).map(|i| canary(1e9 * if i % 2 == 0 { 1.2214 } else { 0.8187 })).collect();
        assert!((drift_sd(&drifting) - 0.2965).abs() < 0.01);
    }
}
