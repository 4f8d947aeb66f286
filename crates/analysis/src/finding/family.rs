//! Graphs of a region's family as findings need them: estimates that differ from the focal vector
//! in one parameter, ratios with intervals, and words for sizes and places.

pub(super) use ioscape_model::units::show_size as size;
use ioscape_model::units::three_digits;
use ioscape_model::{Estimate, Interval, Region, Workload};

/// A parameter that a graph runs along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    UniqueBytes,
    SizeMean,
    ReadFrac,
    SeqFrac,
    ProcessNum,
}

impl Axis {
    pub(super) fn of(self, work: &Workload) -> f64 {
        match self {
            Self::UniqueBytes => work.unique_bytes as f64,
            Self::SizeMean => work.size_mean as f64,
            Self::ReadFrac => work.read_frac,
            Self::SeqFrac => work.seq_frac,
            Self::ProcessNum => f64::from(work.process_num),
        }
    }

    /// Whether two workloads agree in everything else. `align` follows small request sizes.
    pub(super) fn is_the_only_difference(self, work: &Workload, focal: &Workload) -> bool {
        let mut same = work.clone();
        match self {
            Self::UniqueBytes => same.unique_bytes = focal.unique_bytes,
            Self::SizeMean => {
                same.size_mean = focal.size_mean;
                same.align = focal.align;
            }
            Self::ReadFrac => same.read_frac = focal.read_frac,
            Self::SeqFrac => same.seq_frac = focal.seq_frac,
            Self::ProcessNum => same.process_num = focal.process_num,
        }
        same == *focal
    }
}

/// A point of a graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot<'a> {
    /// The parameter's value.
    pub(super) value: f64,
    /// What was measured there.
    pub(super) estimate: &'a Estimate,
}

impl Spot<'_> {
    pub(super) fn throughput(&self) -> Interval {
        self.estimate.throughput_bytes_per_s
    }
}

/// The graph through `focal` along `axis`, smallest value first. Throughputs that are not above
/// zero say nothing and are left out.
pub(super) fn graph<'a>(estimates: &'a [Estimate], focal: &Workload, axis: Axis) -> Vec<Spot<'a>> {
    let mut spots: Vec<Spot<'a>> = estimates
        .iter()
        .filter(|estimate| estimate.throughput_bytes_per_s.mean > 0.0)
        .filter(|estimate| axis.is_the_only_difference(&estimate.workload, focal))
        .map(|estimate| Spot { value: axis.of(&estimate.workload), estimate })
        .collect();
    spots.sort_by(|a, b| a.value.total_cmp(&b.value));
    spots
}

/// `above` over `below`. The half-widths of two independent intervals add in squares, on the
/// scale of logarithms; an interval that reaches zero makes the ratio's one boundless.
pub(super) fn ratio(above: &Interval, below: &Interval) -> Interval {
    let mean = above.mean / below.mean;
    let half_width = ln_half_width(above).hypot(ln_half_width(below));
    Interval { mean, low: mean * (-half_width).exp(), high: mean * half_width.exp() }
}

fn ln_half_width(interval: &Interval) -> f64 {
    if interval.low > 0.0 && interval.high.is_finite() {
        (interval.high / interval.mean).ln().max((interval.mean / interval.low).ln())
    } else {
        f64::INFINITY
    }
}

/// What a ratio lets us say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Gain,
    Loss,
    NotShown,
}

/// An effect is shown where the interval leaves out 1 and the ratio is not a trifle.
pub(super) fn effect(ratio: &Interval) -> Effect {
    const TRIFLE: f64 = 1.03;
    match ratio {
        _ if ratio.low > 1.0 && ratio.mean > TRIFLE => Effect::Gain,
        _ if ratio.high < 1.0 && ratio.mean < 1.0 / TRIFLE => Effect::Loss,
        _ => Effect::NotShown,
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

/// `the cache region (8 MiB to 249 MiB)`, `the whole range (8 MiB to 1 GiB)`.
pub(super) fn place(region: &Region) -> String {
    let extent = region.unique_bytes;
    let noun = if region.name.contains("range") { "" } else { " region" };
    format!("the {}{noun} ({} to {})", region.name, size(extent.from), size(extent.to))
}

/// What ties a finding to its region, for those who read figures only.
pub(super) fn place_figures(region: &Region) -> [(&'static str, f64); 2] {
    [("region_from_bytes", region.unique_bytes.from), ("region_to_bytes", region.unique_bytes.to)]
}
