//! A region's family of graphs: throughput over each parameter with the others at the focal
//! vector (Chen and Patterson 1994, section 6), and what each parameter brings.

use ioscape_model::graph::{Axis as Parameter, GOOD_FRACTION, Good, good_stretches, is_good};
use ioscape_model::units::{show_iops, show_rate, show_seconds};
use ioscape_model::{Estimate, Range, Ranges, Region, Workload};

use crate::answers::Answers;
use crate::chart::{
    Axis, Band, BandKind, Chart, Drawn, Ink, Mark, Rule, RuleKind, Scale, Series, Table, Unit,
    throughput_axis,
};
use crate::figures;
use crate::sample::Samples;

/// Points of a computed curve: to each doubling, and from 0 to 1.
const OCTAVE_STEPS: f64 = 3.0;
const FRACTION_STEPS: u32 = 20;

/// In the order of the paper's figures.
const PARAMETERS: [Parameter; 4] =
    [Parameter::SizeMean, Parameter::ReadFrac, Parameter::ProcessNum, Parameter::SeqFrac];
/// What a map sweeps besides, where it could.
const EXTRAS: [Parameter; 2] = [Parameter::Depth, Parameter::FsyncEvery];

/// Where a curve is computed, over all that was to be measured.
fn steps(parameter: Parameter, ranges: &Ranges) -> Vec<f64> {
    let (data, size) = (ranges.unique_bytes, ranges.size_mean);
    match parameter {
        Parameter::UniqueBytes => octave_steps(data.min as f64, data.max as f64),
        Parameter::SizeMean => octave_steps(size.min as f64, size.max as f64),
        Parameter::ReadFrac | Parameter::SeqFrac => {
            (0..=FRACTION_STEPS).map(|i| f64::from(i) / f64::from(FRACTION_STEPS)).collect()
        }
        Parameter::ProcessNum => count_steps(ranges.process_num),
        Parameter::Depth => count_steps(ranges.depth),
        Parameter::FsyncEvery => {
            let writes = Range { min: 1, max: ranges.fsync_every.max.max(1) };
            let syncs = count_steps(writes).into_iter().rev().map(f64::recip);
            std::iter::once(0.0).chain(syncs).collect()
        }
    }
}

fn axis(parameter: Parameter) -> Axis {
    let (scale, unit) = match parameter {
        Parameter::UniqueBytes | Parameter::SizeMean => (Scale::Log2, Unit::Bytes),
        Parameter::ReadFrac | Parameter::SeqFrac | Parameter::FsyncEvery => {
            (Scale::Linear, Unit::Fraction)
        }
        Parameter::ProcessNum | Parameter::Depth => (Scale::Log2, Unit::Count),
    };
    let label = match parameter {
        Parameter::ReadFrac => "share of reads (0: writes only)",
        Parameter::SeqFrac => "share of sequential requests",
        Parameter::Depth => "queue depth (requests in flight)",
        _ => parameter.words(),
    };
    Axis::new(label, scale, unit)
}

/// From end to end, [`OCTAVE_STEPS`] to each doubling.
fn octave_steps(from: f64, to: f64) -> Vec<f64> {
    let count = ((to / from).log2() * OCTAVE_STEPS).ceil().max(1.0) as u32;
    (0..=count).map(|i| from * (to / from).powf(f64::from(i) / f64::from(count))).collect()
}

fn count_steps(range: Range) -> Vec<f64> {
    let steps = octave_steps(range.min as f64, range.max as f64);
    let mut all: Vec<f64> = steps.into_iter().map(f64::round).collect();
    all.dedup();
    all
}

/// One graph.
pub(crate) struct Graph<'a> {
    pub(crate) parameter: Parameter,
    /// By the parameter.
    pub(crate) estimates: Vec<&'a Estimate>,
}

/// A region with what was measured in it.
pub(crate) struct Family<'a> {
    pub(crate) region: &'a Region,
    pub(crate) graphs: Vec<Graph<'a>>,
}

impl<'a> Family<'a> {
    /// Picks a region's family out of the estimates.
    pub(crate) fn new(region: &'a Region, samples: &'a Samples<'_>) -> Self {
        let graph = |parameter: Parameter| {
            let mut estimates: Vec<&Estimate> = samples
                .estimates
                .iter()
                .filter(|estimate| parameter.is_on_graph(&estimate.workload, &region.focal))
                .collect();
            estimates.sort_by(|a, b| {
                parameter.value(&a.workload).total_cmp(&parameter.value(&b.workload))
            });
            Graph { parameter, estimates }
        };
        let mut graphs: Vec<Graph<'_>> = PARAMETERS.into_iter().map(graph).collect();
        let extras = EXTRAS.into_iter().map(graph);
        graphs.extend(extras.filter(|graph| graph.estimates.len() > 1));
        Self { region, graphs }
    }

    /// The graph of a parameter.
    pub(crate) fn graph(&self, parameter: Parameter) -> Option<&Graph<'a>> {
        self.graphs.iter().find(|graph| graph.parameter == parameter)
    }

    /// The focal vector itself, where it was measured.
    pub(crate) fn focal(&self) -> Option<&'a Estimate> {
        let mut all = self.graphs.iter().flat_map(|graph| &graph.estimates);
        all.find(|estimate| estimate.workload == self.region.focal).copied()
    }

    /// The graphs, with what the models say over all of `ranges`.
    pub(crate) fn charts(
        &self,
        region_index: usize,
        answers: Answers<'_>,
        ranges: &Ranges,
    ) -> Vec<Chart> {
        let mut charts: Vec<Chart> = self
            .graphs
            .iter()
            .map(|graph| {
                let mut chart = graph.chart(&self.region.focal, answers, ranges);
                let key = graph.parameter.name().replace(' ', "-");
                chart.id = format!("region-{}-{key}", region_index + 1);
                chart
            })
            .collect();
        let tops: Vec<f64> = charts.iter().map(top).collect();
        let common = common_top(&tops);
        for (chart, top) in charts.iter_mut().zip(tops) {
            chart.y.reach = (common > 0.0).then_some(common);
            if top > common {
                chart.caption.push_str(" This graph has a vertical axis of its own.");
            }
        }
        charts
    }

    /// What one step away from the focal vector brings.
    pub(crate) fn steps(&self) -> Table {
        let focal = self.focal();
        let mut rows = Vec::new();
        if let Some(focal) = focal {
            rows.push(step_row("the middle of the region", focal, None));
        }
        for graph in &self.graphs {
            let ends = [graph.estimates.first(), graph.estimates.last()];
            for (estimate, end) in ends.into_iter().flatten().zip(["smallest", "largest"]) {
                let here = graph.parameter.value(&estimate.workload);
                if estimate.workload != self.region.focal {
                    rows.push(step_row(&words(graph.parameter, here, end), estimate, focal));
                }
            }
        }
        let head =
            ["", "throughput", "against the middle", "requests", "mean response", "p99", "cached"];
        Table { head: head.map(str::to_owned).to_vec(), rows }
    }
}

/// The highest end of an interval.
fn top(chart: &Chart) -> f64 {
    let marks = chart.series.iter().flat_map(|series| &series.marks);
    marks.map(|mark| mark.y.mean.max(mark.y.high)).filter(|top| top.is_finite()).fold(0.0, f64::max)
}

/// Where the vertical axis of all graphs of a family ends: at their highest, or at the second where one
/// (at most) towers above the others, which would lie flat on the ground (32 processes on 16 processors:
/// × 30).
fn common_top(tops: &[f64]) -> f64 {
    const TOWERING: f64 = 4.0;
    let mut tops = tops.to_vec();
    tops.sort_by(|one, other| other.total_cmp(one));
    match tops[..] {
        [first, second, ..] if second > 0.0 && first > TOWERING * second => second,
        [first, ..] => first,
        [] => 0.0,
    }
}

fn words(parameter: Parameter, value: f64, end: &str) -> String {
    match parameter {
        Parameter::UniqueBytes => format!("{end} data, {}", figures::size(value)),
        Parameter::SizeMean => format!("{end} requests, {}", figures::size(value)),
        Parameter::ReadFrac if value >= 1.0 => "reads only".to_owned(),
        Parameter::ReadFrac if value <= 0.0 => "writes only".to_owned(),
        Parameter::ReadFrac => format!("{} reads", figures::percent(value)),
        Parameter::SeqFrac if value >= 1.0 => "all sequential".to_owned(),
        Parameter::SeqFrac if value <= 0.0 => "all at random".to_owned(),
        Parameter::SeqFrac => format!("{} sequential", figures::percent(value)),
        Parameter::Depth => format!("{value:.0} requests in flight"),
        Parameter::FsyncEvery if value >= 1.0 => "an fdatasync after every write".to_owned(),
        Parameter::FsyncEvery if value <= 0.0 => "no fdatasync".to_owned(),
        Parameter::FsyncEvery => format!("an fdatasync after {:.0} writes", value.recip()),
        Parameter::ProcessNum if value <= 1.0 => "1 process".to_owned(),
        Parameter::ProcessNum => format!("{value:.0} processes"),
    }
}

fn step_row(name: &str, estimate: &Estimate, focal: Option<&Estimate>) -> Vec<String> {
    let mean = estimate.throughput_bytes_per_s.mean;
    let ratio = focal.map(|focal| mean / focal.throughput_bytes_per_s.mean);
    vec![
        name.to_owned(),
        figures::rate(&estimate.throughput_bytes_per_s),
        ratio.filter(|r| r.is_finite()).map_or_else(String::new, |r| format!("× {r:.2}")),
        figures::per_second(&estimate.ops_per_s),
        show_seconds(estimate.response_time_s.mean),
        show_seconds(estimate.response_time_s.p99),
        figures::percent_or_unknown(estimate.hit_fraction),
    ]
}

/// A graph in one line of text.
pub(crate) struct Spark {
    pub(crate) key: &'static str,
    /// The parameter's smallest value.
    pub(crate) from: String,
    pub(crate) bars: String,
    /// Its largest.
    pub(crate) to: String,
    /// Throughput where it is least.
    pub(crate) lowest: String,
    /// Where it is most.
    pub(crate) highest: String,
}

/// A share of the highest as one character.
fn bar(share: f64) -> char {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    BARS[((share * 8.0).ceil() as usize).clamp(1, 8) - 1]
}

impl Graph<'_> {
    /// Values of the parameter between which the graph, as it is drawn, is good.
    fn good_stretches(&self) -> Vec<(f64, f64)> {
        let scale = axis(self.parameter).scale;
        let drawn = |estimate: &&Estimate| {
            let position = scale.position(self.parameter.value(&estimate.workload));
            (position, estimate.throughput_bytes_per_s.mean)
        };
        let points: Vec<(f64, f64)> = self.estimates.iter().map(drawn).collect();
        let stretches = good_stretches(&points).into_iter();
        stretches.map(|(from, to)| (scale.value(from), scale.value(to))).collect()
    }

    fn highest(&self) -> f64 {
        self.estimates.iter().map(|e| e.throughput_bytes_per_s.mean).fold(0.0, f64::max)
    }

    /// The measured values around the best that reach [`GOOD_FRACTION`] of it: `all tried`, `only 8`,
    /// `16 KiB to 256 KiB`. Both ends were measured: nothing is said about what lies beyond.
    pub(crate) fn good_words(&self) -> Option<String> {
        if self.estimates.len() < 2 {
            return None;
        }
        let count = self.estimates.len();
        let means: Vec<f64> =
            self.estimates.iter().map(|e| e.throughput_bytes_per_s.mean).collect();
        let Good { from: first, best, to: last } = Good::around_best(&means)?;
        let show = |i: usize| {
            let value = self.parameter.value(&self.estimates[i].workload);
            match self.parameter {
                Parameter::SizeMean => figures::size(value),
                Parameter::ProcessNum => format!("{value:.0}"),
                _ => format!("{value}"),
            }
        };
        let end = if last + 1 == count { ", the largest tried" } else { "" };
        Some(match last - first + 1 {
            all if all == count => "all tried".to_owned(),
            1 => format!("only {}{end}", show(best)),
            _ => format!("{} to {}{end}", show(first), show(last)),
        })
    }

    /// Its heights as characters, one for each value, and the stretches they cover:
    /// `4 KiB ▁▂▅▇█ 1 MiB`, `0.30 to 12.0 GB/s`. Heights are in proportion to the highest, from
    /// zero, so that a flat curve looks flat.
    pub(crate) fn spark(&self) -> Option<Spark> {
        let means: Vec<f64> = self
            .estimates
            .chunk_by(|a, b| a.workload == b.workload)
            .map(|group| group[0].throughput_bytes_per_s.mean)
            .collect();
        let lowest = means.iter().copied().reduce(f64::min)?;
        let highest = means.iter().copied().reduce(f64::max)?;
        if means.len() < 2 || !(lowest > 0.0 && highest.is_finite()) {
            return None;
        }
        let show = |estimate: &&Estimate| {
            let value = self.parameter.value(&estimate.workload);
            match self.parameter {
                Parameter::SizeMean => figures::size(value),
                _ => format!("{}", (value * 100.0).round() / 100.0),
            }
        };
        Some(Spark {
            key: self.parameter.words(),
            from: self.estimates.first().map(show)?,
            bars: means.iter().map(|mean| bar(*mean / highest)).collect(),
            to: self.estimates.last().map(show)?,
            lowest: show_rate(lowest),
            highest: show_rate(highest),
        })
    }

    fn chart(&self, focal: &Workload, answers: Answers<'_>, ranges: &Ranges) -> Chart {
        let bands = self.good_stretches().into_iter().map(|(from, to)| Band {
            from,
            to,
            name: String::new(),
            kind: BandKind::Good,
        });
        let curve = self.curve(focal, answers, ranges);
        let drawn = if curve.is_some() { Drawn::Dots } else { Drawn::Joined };
        let measured = Series {
            name: "measured".to_owned(),
            ink: Ink::Mixed,
            drawn,
            marks: self.estimates.iter().map(|estimate| self.mark(estimate, answers)).collect(),
        };
        Chart {
            id: String::new(),
            title: format!("over {}", self.parameter.words()),
            caption: self.caption(),
            x: axis(self.parameter),
            y: throughput_axis(Scale::Linear),
            series: curve.into_iter().chain([measured]).collect(),
            bands: bands.collect(),
            rules: vec![Rule {
                at: self.parameter.value(focal),
                name: "focal".to_owned(),
                kind: RuleKind::Focal,
                ink: Ink::Mixed,
            }],
        }
    }

    fn mark(&self, estimate: &Estimate, answers: Answers<'_>) -> Mark {
        let ops = Some(format!("{} IOPS", show_iops(estimate.ops_per_s.mean)));
        let p99 = Some(format!("p99 {}", show_seconds(estimate.response_time_s.p99)));
        let cached = estimate.hit_fraction.map(|hit| format!("{} cached", figures::percent(hit)));
        let model = answers.throughput(&estimate.workload);
        let model = model.map(|interval| format!("model {}", figures::rate(&interval)));
        Mark {
            x: self.parameter.value(&estimate.workload),
            y: estimate.throughput_bytes_per_s,
            note: [ops, p99, cached, model].into_iter().flatten().collect::<Vec<_>>().join(", "),
        }
    }

    /// What the models say between the measured points; none where nothing was measured, for a
    /// graph of the model alone would look like one of the storage.
    fn curve(&self, focal: &Workload, answers: Answers<'_>, ranges: &Ranges) -> Option<Series> {
        self.estimates.first()?;
        let mark = |value: f64| {
            let y = answers.throughput(&self.parameter.moved(focal, value))?;
            Some(Mark { x: value, y, note: String::new() })
        };
        let marks: Vec<Mark> = steps(self.parameter, ranges).into_iter().filter_map(mark).collect();
        (!marks.is_empty()).then(|| Series {
            name: "model".to_owned(),
            ink: Ink::Plain,
            drawn: Drawn::Curve,
            marks,
        })
    }

    fn caption(&self) -> String {
        let Some(good) = self.good_words() else {
            return "Too few points for a graph.".to_owned();
        };
        let highest = show_rate(self.highest());
        let lowest =
            self.estimates.iter().map(|e| e.throughput_bytes_per_s.mean).fold(f64::MAX, f64::min);
        let range = if is_good(lowest, self.highest()) {
            "everywhere".to_owned()
        } else {
            format!("at {good}")
        };
        format!("Highest {highest}; {} of it {range}.", figures::percent(GOOD_FRACTION))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ioscape_model::Interval;

    pub(crate) fn estimate(work: Workload, rate: f64) -> Estimate {
        Estimate::bare(work, 3, Interval::exact(rate))
    }

    #[test]
    fn a_graph_that_towers_above_the_others_does_not_flatten_them() {
        let close = |one: f64, other: f64| assert!((one - other).abs() < 1e-9, "{one} {other}");
        close(common_top(&[5.0, 147.0, 6.0, 4.0]), 6.0);
        close(common_top(&[5.0, 20.0, 6.0, 4.0]), 20.0);
        close(common_top(&[7.0]), 7.0);
        close(common_top(&[7.0, 0.0]), 7.0);
        close(common_top(&[]), 0.0);
    }

    fn check_good(rates: &[f64], words: &str, stretches: &[(f64, f64)]) {
        let estimates: Vec<Estimate> = rates
            .iter()
            .enumerate()
            .map(|(i, rate)| {
                estimate(Workload { size_mean: 4096 << i, ..Workload::default() }, *rate)
            })
            .collect();
        let graph = Graph { parameter: Parameter::SizeMean, estimates: estimates.iter().collect() };
        assert_eq!(graph.good_words().as_deref(), Some(words), "{rates:?}");
        assert_eq!(graph.good_stretches(), stretches, "{rates:?}");
    }

    #[test]
    fn the_good_range_is_where_three_quarters_of_the_maximum_are_reached() {
        check_good(
            &[50.0, 100.0, 100.0],
            "8 KiB to 16 KiB, the largest tried",
            &[(4096.0 * 2f64.sqrt(), 16384.0)],
        );
        check_good(&[100.0, 100.0, 50.0], "4 KiB to 8 KiB", &[(4096.0, 8192.0 * 2f64.sqrt())]);
        check_good(&[90.0, 100.0, 80.0], "all tried", &[(4096.0, 16384.0)]);
        // Two hills: both are shaded, the words speak of the higher one.
        let shaded = [(4096.0, 4096.0 * 2f64.sqrt()), (8192.0 * 2f64.sqrt(), 16384.0)];
        check_good(&[100.0, 50.0, 100.0], "only 16 KiB, the largest tried", &shaded);
    }

    #[test]
    fn a_graph_fits_into_a_line() {
        let at = |size_mean, rate| estimate(Workload { size_mean, ..Workload::default() }, rate);
        let estimates = [at(4096, 1e8), at(16384, 4e8), at(65536, 8e8)];
        let graph = Graph { parameter: Parameter::SizeMean, estimates: estimates.iter().collect() };
        let spark = graph.spark().unwrap();
        assert_eq!((spark.from.as_str(), spark.bars.as_str()), ("4 KiB", "▁▄█"));
        assert_eq!((spark.to.as_str(), spark.lowest.as_str()), ("64 KiB", "100 MB/s"));
        let alone = Graph { parameter: Parameter::SizeMean, estimates: vec![&estimates[0]] };
        assert!(alone.spark().is_none());
    }

    #[test]
    fn a_graph_holds_the_focal_vector_in_all_but_one_parameter() {
        let focal = Workload::default();
        let on = |work: &Workload, p: Parameter| p.is_on_graph(work, &focal);
        assert!(on(&focal, Parameter::SizeMean));
        let larger = Workload { size_mean: 1 << 20, ..focal.clone() };
        assert!(on(&larger, Parameter::SizeMean));
        assert!(!on(&larger, Parameter::ReadFrac));
        let small = Workload { size_mean: 512, align: 512, ..focal.clone() };
        assert!(on(&small, Parameter::SizeMean) && !on(&small, Parameter::ReadFrac));
        let elsewhere = Workload { unique_bytes: 1 << 30, ..focal.clone() };
        assert!(!on(&elsewhere, Parameter::SizeMean));
        let deeper = Workload { depth: 4, ..focal.clone() };
        assert!(!on(&deeper, Parameter::SizeMean));
        assert!(on(&deeper, Parameter::Depth) && !on(&deeper, Parameter::FsyncEvery));
        let synced = Workload { fsync_every: 4, ..focal.clone() };
        assert!(on(&synced, Parameter::FsyncEvery) && !on(&synced, Parameter::Depth));
        assert!((Parameter::FsyncEvery.value(&synced) - 0.25).abs() < 1e-12);
        let steps = steps(Parameter::FsyncEvery, &Ranges::usual(1).with_sweeps());
        let back = |step: &f64| Parameter::FsyncEvery.moved(&focal, *step).fsync_every;
        assert_eq!((back(&steps[0]), back(&steps[1]), steps.last().map(back)), (0, 64, Some(1)));
    }
}
