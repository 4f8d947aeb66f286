//! Graphs of a region's family as findings need them: estimates that differ from the focal vector
//! in one parameter, ratios with intervals, and words for sizes and places.

use std::fmt::Write as _;

pub(crate) use ioscape_model::graph::Axis;
pub(super) use ioscape_model::graph::Effect;
pub(super) use ioscape_model::units::show_size as size;
use ioscape_model::units::three_digits;
use ioscape_model::{Border, Curve, Estimate, Interval, Region, Workload};

/// A point of a graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot<'a> {
    /// The parameter's value.
    pub(crate) value: f64,
    /// What was measured there.
    pub(crate) estimate: &'a Estimate,
}

impl Spot<'_> {
    pub(crate) fn throughput(&self) -> Interval {
        self.estimate.throughput_bytes_per_s
    }
}

/// The graph through `focal` along `axis`, smallest value first. Throughputs that are not above
/// zero say nothing and are left out.
pub(crate) fn graph<'a>(estimates: &'a [Estimate], focal: &Workload, axis: Axis) -> Vec<Spot<'a>> {
    let mut spots: Vec<Spot<'a>> = estimates
        .iter()
        .filter(|estimate| estimate.throughput_bytes_per_s.mean > 0.0)
        .filter(|estimate| axis.is_on_graph(&estimate.workload, focal))
        .map(|estimate| Spot { value: axis.value(&estimate.workload), estimate })
        .collect();
    spots.sort_by(|a, b| a.value.total_cmp(&b.value));
    spots
}

/// The longest curve over `unique_bytes` through workloads that suit; of two as long as each other
/// the one with fewer sequential requests.
fn longest_curve(
    estimates: &[Estimate],
    suits: impl Fn(&Workload) -> bool,
) -> Option<Vec<Spot<'_>>> {
    const POINTS_MIN: usize = 3;
    let through = estimates.iter().map(|estimate| &estimate.workload).filter(|work| suits(work));
    let rank = |curve: &[Spot<'_>]| {
        (curve.len(), curve.first().map_or(0.0, |spot| -spot.estimate.workload.seq_frac))
    };
    through
        .map(|work| graph(estimates, work, Axis::UniqueBytes))
        .filter(|curve| curve.len() >= POINTS_MIN)
        .max_by(|a, b| rank(a).0.cmp(&rank(b).0).then(rank(a).1.total_cmp(&rank(b).1)))
}

/// Reads only.
pub(crate) fn read_curve(estimates: &[Estimate]) -> Option<Vec<Spot<'_>>> {
    longest_curve(estimates, |work| work.read_frac >= 1.0)
}

/// Writes only.
pub(crate) fn write_curve(estimates: &[Estimate]) -> Option<Vec<Spot<'_>>> {
    longest_curve(estimates, |work| work.read_frac <= 0.0)
}

/// The curves on which a border shows.
pub(super) fn border_curves(estimates: &[Estimate], curve: Curve) -> Vec<Vec<Spot<'_>>> {
    let mixed = || longest_curve(estimates, |work| work.read_frac > 0.0 && work.read_frac < 1.0);
    let (reads, writes) = (read_curve(estimates), write_curve(estimates));
    match curve {
        Curve::Read => reads.into_iter().collect(),
        Curve::Write => writes.into_iter().collect(),
        Curve::Mixed if reads.is_none() && writes.is_none() => mixed().into_iter().collect(),
        Curve::Mixed => [reads, writes].into_iter().flatten().collect(),
    }
}

/// How much longer a request takes at the end of a curve than at its start.
pub(super) struct Slowdown<'a> {
    within: Spot<'a>,
    far: Spot<'a>,
    slowest: Spot<'a>,
}

impl<'a> Slowdown<'a> {
    /// As it was measured; none where the curve does not reach from one side of the border to the
    /// other.
    pub(super) fn across(border: &Border, curve: &[Spot<'a>]) -> Option<Self> {
        let within = *curve.first().filter(|spot| spot.value < border.unique_bytes.onset)?;
        let far = *curve.last().filter(|spot| spot.value > border.unique_bytes.capacity)?;
        let beyond = curve.iter().filter(|spot| spot.value > border.unique_bytes.onset);
        let slowest = *beyond.min_by(|a, b| a.throughput().mean.total_cmp(&b.throughput().mean))?;
        Some(Self { within, far, slowest })
    }

    /// Times as long.
    pub(super) fn ratio(&self) -> f64 {
        self.within.throughput().mean / self.far.throughput().mean
    }

    /// `with 904 MiB of data a request takes 57.3 times as long as with 8 MiB`.
    pub(super) fn words(&self) -> String {
        const WORTH_A_WORD: f64 = 1.5;
        let mut text = format!(
            "with {} of data a request takes {} times as long as with {}",
            size(self.far.value),
            three_digits(self.ratio()),
            size(self.within.value),
        );
        let worse = self.far.throughput().over(&self.slowest.throughput());
        if worse.low > WORTH_A_WORD {
            let times = self.within.throughput().mean / self.slowest.throughput().mean;
            let slowest = size(self.slowest.value);
            let _ = write!(text, ", and with {slowest} {} times", three_digits(times));
        }
        text
    }
}

/// `2.91 times (2.60 to 3.20)`.
pub(super) fn times(ratio: &Interval) -> String {
    format!("{} times ({})", three_digits(ratio.mean), range(ratio))
}

/// `2.60 to 3.20`.
pub(super) fn range(ratio: &Interval) -> String {
    if ratio.high.is_finite() {
        format!("{} to {}", three_digits(ratio.low), three_digits(ratio.high))
    } else {
        "interval unknown".to_owned()
    }
}

/// What ties a finding to its region, for those who read figures only.
pub(super) fn place_figures(region: &Region) -> [(&'static str, f64); 2] {
    [("region_from_bytes", region.unique_bytes.from), ("region_to_bytes", region.unique_bytes.to)]
}
