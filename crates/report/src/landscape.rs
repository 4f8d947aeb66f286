//! The landscape: throughput over `unique_bytes`, read-only, write-only and mixed, with borders
//! and regions; and its slope (Chen and Patterson 1994, Fig. 6).

use std::collections::BTreeMap;

use ioscape_model::graph::Slope;
use ioscape_model::units::{MIB, show_bytes, show_iops, show_seconds, three_digits};
use ioscape_model::{Border, Curve, Estimate, FoundBy, Interval, Record, Region, Workload};

use crate::answers::Answers;
use crate::chart::{
    Axis, Band, BandKind, Chart, Drawn, Ink, Mark, Rule, RuleKind, Scale, Series, Unit, stretch,
    throughput_axis, unique_bytes_axis,
};
use crate::figures;
use crate::sample::Samples;

/// Fewer different values of `unique_bytes` make no curve.
const CURVE_VALUES_MIN: usize = 3;

/// Points of what is put together lie so far apart, as a factor, and are no more than these.
const TOGETHER_STEP: f64 = 1.189_207_115; // a quarter of a doubling
const TOGETHER_STEPS: i32 = 80;

/// Estimates that differ in nothing but `unique_bytes`.
pub(crate) struct UniqueCurve<'a> {
    /// What is read and written.
    pub(crate) ink: Ink,
    /// By `unique_bytes`.
    pub(crate) estimates: Vec<&'a Estimate>,
}

/// Reads, writes or both.
fn ink_of(work: &Workload) -> Ink {
    match work.read_frac {
        r if r >= 1.0 => Ink::Read,
        r if r <= 0.0 => Ink::Write,
        _ => Ink::Mixed,
    }
}

/// Those of the layer that borders were looked for in.
fn curves_of<'a>(samples: &'a Samples<'_>, record: &Record) -> Vec<UniqueCurve<'a>> {
    let access = record.header.ranges.access;
    let is_one = record.header.device.is_none();
    fullest(samples.estimates.iter().filter(|e| is_one || e.workload.access == access))
}

/// The fullest curve of each kind among all estimates.
pub(crate) fn curves<'a>(samples: &'a Samples<'_>) -> Vec<UniqueCurve<'a>> {
    fullest(samples.estimates.iter())
}

/// The fullest curve of each kind: read-only, write-only, mixed. Where two are equally full the
/// one that comes first by its parameters is taken, so that the choice is stable.
fn fullest<'a>(estimates: impl Iterator<Item = &'a Estimate>) -> Vec<UniqueCurve<'a>> {
    let mut groups: BTreeMap<String, Vec<&Estimate>> = BTreeMap::new();
    for estimate in estimates {
        let rest = Workload { unique_bytes: 0, ..estimate.workload.clone() };
        groups.entry(rest.literal()).or_default().push(estimate);
    }
    for group in groups.values_mut() {
        group.sort_by_key(|estimate| estimate.workload.unique_bytes);
    }
    let Some(fullest) = groups.values().rev().max_by_key(|group| values(group)) else {
        return Vec::new();
    };
    // Reads, writes and both should be one kind of workload, so that an eye may go from one curve to
    // the next: what is like the fullest of all comes before what is fuller.
    let likeness = |group: &[&Estimate]| {
        let (work, other) = (&group[0].workload, &fullest[0].workload);
        usize::from(work.size_mean == other.size_mean)
            + usize::from(work.process_num == other.process_num)
            + usize::from(work.seq_frac.to_bits() == other.seq_frac.to_bits())
    };
    let of_kind = |ink: Ink| groups.values().filter(move |g| ink_of(&g[0].workload) == ink).rev();
    let best = |ink: Ink| {
        let curves = of_kind(ink).filter(|group| values(group) >= CURVE_VALUES_MIN);
        let best = curves.max_by_key(|group| (likeness(group), values(group)))?;
        Some(UniqueCurve { ink, estimates: best.clone() })
    };
    [Ink::Read, Ink::Write, Ink::Mixed].into_iter().filter_map(best).collect()
}

fn values(group: &[&Estimate]) -> usize {
    group.chunk_by(|a, b| a.workload.unique_bytes == b.workload.unique_bytes).count()
}

impl UniqueCurve<'_> {
    /// `reads only`, `writes only`, `50 % reads`.
    pub(crate) fn name(&self) -> String {
        match self.ink {
            Ink::Read => "reads only".to_owned(),
            Ink::Write => "writes only".to_owned(),
            _ => format!("{} reads", figures::percent(self.estimates[0].workload.read_frac)),
        }
    }

    /// The name, with its order of requests where that is not as in the first of `curves`.
    fn name_among(&self, curves: &[UniqueCurve<'_>]) -> String {
        let order = |curve: &UniqueCurve<'_>| curve.estimates[0].workload.seq_frac;
        match curves.first() {
            Some(first) if order(first).to_bits() != order(self).to_bits() => {
                format!("{}, {} sequential", self.name(), figures::percent(order(self)))
            }
            _ => self.name(),
        }
    }

    /// What is held fixed along it: `16 KiB requests, 50 % sequential, 1 process`.
    fn rest(&self) -> String {
        let work = &self.estimates[0].workload;
        let sequential = match work.seq_frac {
            s if s <= 0.0 => "at random".to_owned(),
            s if s >= 1.0 => "sequential".to_owned(),
            s => format!("{} sequential", figures::percent(s)),
        };
        let processes = match work.process_num {
            1 => "1 process".to_owned(),
            n => format!("{n} processes"),
        };
        format!("{} requests, {sequential}, {processes}", figures::size(work.size_mean as f64))
    }
}

/// The landscape.
pub(crate) fn chart(record: &Record, samples: &Samples<'_>, answers: Answers<'_>) -> Chart {
    let curves = curves_of(samples, record);
    let series = curves.iter().map(|curve| Series {
        name: curve.name_among(&curves),
        ink: curve.ink,
        drawn: Drawn::Ribbon,
        marks: curve.estimates.iter().map(|estimate| mark(estimate)).collect(),
    });
    let together: Vec<Series> =
        curves.iter().filter_map(|curve| put_together(curve, answers)).collect();
    let dashed = if together.is_empty() {
        ""
    } else {
        " Dashed: not measured, but put together from reads that missed the cache and from what \
         storage takes past it, with 90 % intervals."
    };
    Chart {
        id: "landscape".to_owned(),
        title: "Throughput over the amount of data touched".to_owned(),
        caption: caption(record, samples, &curves) + dashed,
        x: unique_bytes_axis(),
        y: throughput_axis(Scale::Log10),
        series: series.chain(together).collect(),
        bands: bands(record),
        rules: record.borders.iter().flat_map(rules).collect(),
    }
}

/// A curve beyond its last measured point, as far as answers are put together.
fn put_together(curve: &UniqueCurve<'_>, answers: Answers<'_>) -> Option<Series> {
    let last = &curve.estimates.last()?.workload;
    let mark = |step: i32| {
        let bytes = last.unique_bytes as f64 * TOGETHER_STEP.powi(step);
        let unique_bytes = bytes as u64 / MIB * MIB;
        let work = Workload { unique_bytes, ..last.clone() };
        let y = answers.put_together(&work)?;
        Some(Mark { x: unique_bytes as f64, y, note: String::new() })
    };
    let marks: Vec<Mark> =
        (1..TOGETHER_STEPS).map(mark).skip_while(Option::is_none).map_while(|mark| mark).collect();
    (!marks.is_empty()).then(|| Series {
        name: format!("{}, put together", curve.name()),
        ink: curve.ink,
        drawn: Drawn::Dashed,
        marks,
    })
}

fn mark(estimate: &Estimate) -> Mark {
    let cached = estimate.hit_fraction.map(|hit| format!("{} cached", figures::percent(hit)));
    let parts = [
        Some(format!("{} IOPS", show_iops(estimate.ops_per_s.mean))),
        Some(format!("p99 {}", show_seconds(estimate.response_time_s.p99))),
        cached,
        Some(figures::count(estimate.visits as usize, "measurement")),
    ];
    let note = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    Mark { x: estimate.workload.unique_bytes as f64, y: estimate.throughput_bytes_per_s, note }
}

fn caption(record: &Record, samples: &Samples<'_>, curves: &[UniqueCurve<'_>]) -> String {
    let Some(first) = curves.first() else {
        return "No curve has three points yet.".to_owned();
    };
    let held = if curves.iter().all(|curve| curve.rest() == first.rest()) {
        format!("Held fixed: {}.", first.rest())
    } else {
        let each: Vec<String> =
            curves.iter().map(|curve| format!("{} – {}", curve.name(), curve.rest())).collect();
        format!("Held fixed: {}.", each.join("; "))
    };
    let borders = if record.borders.is_empty() {
        "No border was found in this range."
    } else {
        "Dotted line: throughput begins to fall. Solid line: the size of the cache, with its 95 % \
         interval."
    };
    let bars = samples.interval_words();
    format!("{held} {borders} Band along a curve: {bars}. Both axes are logarithmic.")
}

/// The measurements that a border was found from.
pub(crate) fn found_from(border: &Border) -> &'static str {
    match border.found_by {
        FoundBy::Counters => "from counts of hits and misses",
        FoundBy::Timing => "from response times",
        FoundBy::Slope => "from the slope of the curve",
    }
}

/// `read border: throughput begins to fall at 227 MiB, the cache holds 244 MiB (238–251)`,
/// and how that is known.
pub(crate) fn border_words(border: &Border) -> String {
    format!(
        "{}: throughput begins to fall at {}, the cache holds {} ({}; far beyond, a \
         request takes {} times as long)",
        border_name(border),
        show_bytes(border.unique_bytes.onset),
        figures::bytes(&capacity(border)),
        found_from(border),
        three_digits(border.step),
    )
}

/// `read border`.
pub(crate) fn border_name(border: &Border) -> &'static str {
    match border.curve {
        Curve::Read => "read border",
        Curve::Write => "write border",
        Curve::Mixed => "border",
    }
}

/// Capacity with its interval.
pub(crate) fn capacity(border: &Border) -> Interval {
    let at = border.unique_bytes;
    Interval { mean: at.capacity, low: at.low, high: at.high }
}

fn rules(border: &Border) -> [Rule; 2] {
    let ink = match border.curve {
        Curve::Read => Ink::Read,
        Curve::Write => Ink::Write,
        Curve::Mixed => Ink::Plain,
    };
    // The label has no room for the interval, which is drawn; its digits still follow from it.
    let capacity = figures::bytes(&capacity(border));
    let size = capacity.split(" (").next().unwrap_or_default();
    let name = format!("{} {size}", border_name(border));
    let onset =
        Rule { at: border.unique_bytes.onset, name: String::new(), kind: RuleKind::Onset, ink };
    [onset, Rule { at: border.unique_bytes.capacity, name, kind: RuleKind::Capacity, ink }]
}

fn bands(record: &Record) -> Vec<Band> {
    let main = record.header.ranges.access;
    let is_drawn = |region: &&Region| record.header.device.is_none() || region.focal.access == main;
    let regions = record.regions.iter().filter(is_drawn).map(|region| Band {
        from: region.unique_bytes.from,
        to: region.unique_bytes.to,
        name: region.name.to_string(),
        kind: BandKind::Region,
    });
    let doubts = record.borders.iter().map(|border| Band {
        from: border.unique_bytes.low,
        to: border.unique_bytes.high,
        name: String::new(),
        kind: BandKind::Doubt,
    });
    regions.chain(doubts).collect()
}

/// Change of throughput per MiB of `unique_bytes`, between neighbours of each curve, with the
/// average of the fullest: the picture behind the paper's rule that a border lies where the slope
/// is below its average (section 8).
pub(crate) fn slope_chart(samples: &Samples<'_>) -> Chart {
    let curves = curves(samples);
    let series: Vec<Series> = curves
        .iter()
        .map(|curve| Series {
            name: curve.name(),
            ink: curve.ink,
            drawn: Drawn::Joined,
            marks: slopes(&curve.estimates),
        })
        .collect();
    let reference = curves.iter().max_by_key(|curve| values(&curve.estimates));
    let average = reference.and_then(|curve| {
        let (first, last) = (curve.estimates.first()?, curve.estimates.last()?);
        Some((curve, Slope::between(first, last)?.mb_per_s_per_mib))
    });
    let caption = match &average {
        None => "No curve has three points yet.".to_owned(),
        Some((curve, value)) => format!(
            "Change of throughput per MiB of data, between neighbouring points. The level line is \
             the average slope of {} from end to end, {:.2} MB/s per MiB; a curve below it is on \
             its way down from one plateau to the next.",
            curve.name(),
            value
        ),
    };
    let rules = average.iter().map(|(curve, value)| Rule {
        at: *value,
        name: "average".to_owned(),
        kind: RuleKind::Level,
        ink: curve.ink,
    });
    Chart {
        id: "slope".to_owned(),
        title: "Where the curves fall".to_owned(),
        caption,
        x: unique_bytes_axis(),
        y: Axis::new("slope", Scale::Linear, Unit::Slope),
        rules: rules.collect(),
        bands: vec![],
        series,
    }
}

fn slopes(estimates: &[&Estimate]) -> Vec<Mark> {
    let mark = |slope: Slope| Mark {
        x: slope.middle_bytes(),
        y: Interval::exact(slope.mb_per_s_per_mib),
        note: stretch(slope.from_bytes, slope.to_bytes),
    };
    estimates.windows(2).filter_map(|pair| Slope::between(pair[0], pair[1])).map(mark).collect()
}
