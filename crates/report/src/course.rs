//! How the run went: where its time was spent, whether the machine held still, the visits in
//! order.

use std::collections::BTreeMap;

use ioscape_model::line::REPEATED_MIN;
use ioscape_model::units::{show_bytes, show_seconds};
use ioscape_model::{
    Dropped, EndReason, Interval, LeftOut, Method, Point, Record, Role, Spent, Want, named, word,
};

use crate::chart::{
    Axis, Chart, Drawn, Ink, Mark, Rule, RuleKind, Scale, Series, Unit, throughput_axis,
};
use crate::figures;

/// A part of the run's time.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) seconds: f64,
    pub(crate) fraction: f64,
}

impl Part {
    /// `4 min 10 s`-like, three digits.
    pub(crate) fn duration(&self) -> String {
        show_seconds(self.seconds)
    }

    /// `42 %`.
    pub(crate) fn share(&self) -> String {
        figures::percent(self.fraction)
    }

    /// Share in percent, for a width.
    pub(crate) fn width(&self) -> String {
        format!("{:.3}", self.fraction * 100.0)
    }
}

/// Where the time went, in the order a visit goes through; parts without time are left out.
pub(crate) fn parts(record: &Record) -> Vec<Part> {
    let of_points = || record.points.iter().fold(Spent::default(), |sum, p| sum.plus(&p.spent_s));
    let spent = record.end.as_ref().map_or_else(of_points, |end| end.spent_s);
    let total = record.elapsed_s().max(spent.total());
    let named = [
        ("measuring", spent.measuring),
        ("settling", spent.settling),
        ("warm-up", spent.warm_up),
        ("layout", spent.layout),
        ("waiting for write-back", spent.quiesce),
        ("final sync", spent.sync),
        ("everything else", total - spent.total()),
    ];
    let part =
        |(name, seconds): (&'static str, f64)| Part { name, seconds, fraction: seconds / total };
    // A sum of many small floats leaves a remainder that is no time.
    named.into_iter().filter(|(_, seconds)| *seconds > total * 1e-6).map(part).collect()
}

/// What there is to say about the run, a sentence each.
pub(crate) fn sentences(record: &Record) -> Vec<String> {
    let mut all = Vec::new();
    if !record.points.is_empty() {
        all.push(extent(record));
    }
    if let Some(end) = &record.end {
        // Of a vector, what was left out says more than why it ended.
        if record.header.method != Method::Vector {
            all.push(ending(end.reason).to_owned());
        }
        let counted = end.device_written_bytes.map_or_else(String::new, |bytes| {
            format!(
                " The device counted {}, with what its filesystem and other programs wrote.",
                show_bytes(bytes as f64)
            )
        });
        all.extend(dropped_words(&end.dropped));
        all.extend(left_out_words(&end.left_out));
        all.push(format!(
            "The workloads read {}; {} were written, layout included.{counted}",
            show_bytes(end.read_bytes as f64),
            show_bytes(end.written_bytes as f64)
        ));
    }
    if let Some(text) = repeatability_words(record) {
        all.push(text);
    }
    let forecast = record.end.as_ref().and_then(|end| end.forecast).or(record.header.forecast);
    if let Some(forecast) = forecast {
        all.push(format!(
            "The forecast had been {}, {} and {} written.",
            figures::count(forecast.points as usize, "visit"),
            show_seconds(forecast.elapsed_s),
            show_bytes(forecast.written_bytes as f64)
        ));
    }
    if let Some(map) = &record.map {
        all.extend(map.log.iter().map(|line| format!("The plan noted: {line}")));
    }
    all
}

/// `212 visits to 84 workloads in 10 min, of a budget of 10 min.`
fn extent(record: &Record) -> String {
    let mut workloads: Vec<String> = record.points.iter().map(|p| p.workload.literal()).collect();
    workloads.sort_unstable();
    workloads.dedup();
    let budget = match record.budget_s() {
        seconds if seconds > 0.0 => format!(", of a budget of {}", show_seconds(seconds)),
        _ => String::new(),
    };
    format!(
        "{} to {} in {}{budget}.",
        figures::count(record.points.len(), "visit"),
        figures::count(workloads.len(), "workload"),
        show_seconds(record.elapsed_s()),
    )
}

fn ending(reason: EndReason) -> &'static str {
    match reason {
        EndReason::Complete => "It ended because nothing was left that was worth measuring.",
        EndReason::Budget => "It ended when the budget was used up.",
        EndReason::Precision => "It ended when the precision asked for was reached.",
        EndReason::Interrupted => "It was interrupted; what had been measured until then is here.",
        EndReason::Written => {
            "It ended because more would have been written than --max-written allows."
        }
        EndReason::Failed => "It ended because the measurement could not go on.",
    }
}

/// What was asked for and not measured.
fn dropped_words(dropped: &[Dropped]) -> Option<String> {
    let name = |dropped: &Dropped| {
        let name = named::name_of(&dropped.workload).map(str::to_owned);
        let why = match dropped.want_of {
            Want::Time => "time",
            Want::Room => "room",
        };
        format!("{} (want of {why})", name.unwrap_or_else(|| dropped.workload.literal()))
    };
    let names: Vec<String> = dropped.iter().map(name).collect();
    (!names.is_empty()).then(|| format!("Workloads that were dropped: {}.", names.join(", ")))
}

/// What of the map there was no time or room for.
pub(crate) fn left_out_words(left_out: &[LeftOut]) -> Option<String> {
    let part = |left_out: &LeftOut| {
        format!("{}: {}", word(left_out.part).replace('_', " "), left_out.text)
    };
    let parts: Vec<String> = left_out.iter().map(part).collect();
    (!parts.is_empty()).then(|| format!("Left out – {}.", parts.join("; ")))
}

/// How far visits to one workload differ.
pub(crate) fn repeatability_words(record: &Record) -> Option<String> {
    let spread = record.map.as_ref()?.repeatability?;
    let behind = match record.estimates.iter().filter(|estimate| estimate.visits > 1).count() {
        few @ 1..REPEATED_MIN => format!(" from {}", figures::count(few, "repeated workload")),
        _ => String::new(),
    };
    Some(format!(
        "Visits to the same workload differ by {} (coefficient of variation, pooled{behind}).",
        figures::percent(spread)
    ))
}

/// Every visit, as it happened.
pub(crate) fn order_chart(record: &Record) -> Chart {
    let kinds = [
        ("read border", Ink::Read),
        ("write border", Ink::Write),
        ("graphs", Ink::Mixed),
        ("space-filling", Ink::Fill),
        ("canary", Ink::Canary),
        ("other", Ink::Plain),
    ];
    let series = kinds.into_iter().map(|(name, ink)| Series {
        name: name.to_owned(),
        ink,
        drawn: Drawn::Dots,
        marks: record.points.iter().filter(|p| ink_of(p.role) == ink).map(visit_mark).collect(),
    });
    Chart {
        id: "order".to_owned(),
        title: "The visits in order".to_owned(),
        caption: "Each mark is one visit, at the time it began. Neighbours in time should not be \
                  neighbours in kind: that is what keeps a slow change of the machine from looking \
                  like an effect of a parameter."
            .to_owned(),
        x: time_axis(),
        y: throughput_axis(Scale::Log10),
        series: series.filter(|series| !series.marks.is_empty()).collect(),
        bands: vec![],
        rules: vec![],
    }
}

fn ink_of(role: Role) -> Ink {
    match role {
        Role::ReadBorder => Ink::Read,
        Role::WriteBorder => Ink::Write,
        Role::Sweep | Role::Family | Role::Extra | Role::OpenLoop | Role::Named => Ink::Mixed,
        Role::Calibration | Role::Refinement => Ink::Fill,
        Role::Canary => Ink::Canary,
        _ => Ink::Plain,
    }
}

fn visit_mark(point: &Point) -> Mark {
    let steady = if point.steady { "" } else { ", not steady" };
    Mark {
        x: point.started_s,
        y: point.throughput_bytes_per_s,
        note: format!("{}{steady}", figures::workload(&point.workload)),
    }
}

/// Visits to the same workload against their own mean: flat where the machine held still.
pub(crate) fn stability_chart(record: &Record) -> Chart {
    let mut groups: BTreeMap<String, Vec<&Point>> = BTreeMap::new();
    for point in &record.points {
        groups.entry(point.workload.literal()).or_default().push(point);
    }
    let mut canaries = Vec::new();
    let mut others = Vec::new();
    for visits in groups.values().filter(|visits| visits.len() > 1) {
        let mean = visits.iter().map(|p| p.throughput()).sum::<f64>() / visits.len() as f64;
        for point in visits {
            let deviation = point.throughput() / mean - 1.0;
            let note = figures::workload(&point.workload);
            let mark = Mark { x: point.started_s, y: Interval::exact(deviation), note };
            let marks = if point.role == Role::Canary { &mut canaries } else { &mut others };
            if deviation.is_finite() {
                marks.push(mark);
            }
        }
    }
    let series =
        [("other workloads visited again", Ink::Plain, others), ("canary", Ink::Canary, canaries)];
    let series = series.into_iter().filter(|(_, _, marks)| !marks.is_empty()).map(
        |(name, ink, mut marks)| {
            marks.sort_by(|a, b| a.x.total_cmp(&b.x));
            let drawn = if ink == Ink::Canary { Drawn::Joined } else { Drawn::Dots };
            Series { name: name.to_owned(), ink, drawn, marks }
        },
    );
    Chart {
        id: "stability".to_owned(),
        title: "Did the machine hold still?".to_owned(),
        caption: "Each visit against the mean of all visits to the same workload. The canary is \
                  one small workload that is visited again and again: a trend or a step in it means \
                  that the machine changed while it was measured."
            .to_owned(),
        x: time_axis(),
        y: Axis::new("deviation", Scale::Linear, Unit::Deviation),
        series: series.collect(),
        bands: vec![],
        rules: vec![Rule { at: 0.0, name: String::new(), kind: RuleKind::Level, ink: Ink::Plain }],
    }
}

fn time_axis() -> Axis {
    Axis::new("since the start", Scale::Linear, Unit::Seconds)
}
