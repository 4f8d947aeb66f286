//! The graphs of a validation: Figs 12 and 13 of Chen and Patterson (1994), and the distribution
//! of the errors.

use ioscape_model::units::show_percent as percent;
use ioscape_model::{Interval, ModelName, Validation, ValidationPoint, Workload};

use super::{ValidationPage, models};
use crate::chart::{
    Axis, Chart, Drawn, Ink, Mark, Rule, RuleKind, Scale, Series, Unit, throughput_axis,
};
use crate::figures;

/// Bins of a graph of errors over a parameter, where it takes enough values.
const BINS: usize = 6;
/// Errors below this are shown as this: a logarithmic axis has no zero.
const ERROR_MIN: f64 = 0.001;

/// Predicted over measured, all models, the one that answers in front.
pub(crate) fn scatter(page: &ValidationPage<'_>) -> Chart {
    let mut series: Vec<Series> =
        models(page.validation).iter().map(|(name, _)| predicted(page.validation, *name)).collect();
    series.reverse();
    let level = |(name, bytes_per_s): &(String, f64)| Rule {
        at: *bytes_per_s,
        name: name.clone(),
        kind: RuleKind::Level,
        ink: Ink::Plain,
    };
    let diagonal = Rule {
        at: 1.0,
        name: "predicted = measured".to_owned(),
        kind: RuleKind::Diagonal,
        ink: Ink::Plain,
    };
    let single = match page.single_points {
        [] => String::new(),
        several => {
            let names: Vec<&str> = several.iter().map(|(name, _)| name.as_str()).collect();
            format!(
                " Level lines: what {} would predict, one figure for every workload.",
                names.join(", ")
            )
        }
    };
    Chart {
        id: "predicted".to_owned(),
        title: "Predicted over measured throughput".to_owned(),
        caption: format!(
            "Each mark is a random workload; on the line, the prediction is right. Measured: the \
             geometric mean of two visits. Bars: the 90 % intervals of the blend.{single} Both \
             axes are logarithmic."
        ),
        x: Axis { label: "measured".to_owned(), ..throughput_axis(Scale::Log10) },
        y: Axis { label: "predicted".to_owned(), ..throughput_axis(Scale::Log10) },
        series,
        bands: vec![],
        rules: page.single_points.iter().map(level).chain([diagonal]).collect(),
    }
}

fn predicted(validation: &Validation, model: ModelName) -> Series {
    let mark = |point: &ValidationPoint| {
        let figure = point.predicted_bytes_per_s.get(&model)?;
        let work = &point.workload;
        let off = figure.value / point.mean_bytes_per_s() - 1.0;
        let note = format!(
            "{:+.1} % off, {}, {} requests, {} reads, {} sequential, {}",
            off * 100.0,
            figures::size(work.unique_bytes as f64),
            figures::size(work.size_mean as f64),
            percent(work.read_frac),
            percent(work.seq_frac),
            figures::count(work.process_num as usize, "proc"),
        );
        let y = Interval::from(*figure);
        Some(Mark { x: point.mean_bytes_per_s(), y, note: note.replace('-', "−") })
    };
    let mut marks: Vec<Mark> = validation.scored().filter_map(mark).collect();
    marks.sort_by(|a, b| a.x.total_cmp(&b.x));
    Series { name: model.to_string(), ink: Ink::Model(model), drawn: Drawn::Dots, marks }
}

/// Which share of the workloads has errors up to a figure.
pub(crate) fn distribution(validation: &Validation) -> Chart {
    let series = models(validation).into_iter().map(|(name, _)| Series {
        name: name.to_string(),
        ink: Ink::Model(name),
        drawn: Drawn::Line,
        marks: shares(validation.scored().filter_map(|point| point.error(name))),
    });
    let repeated = Series {
        name: "measured twice".to_owned(),
        ink: Ink::Plain,
        drawn: Drawn::Line,
        marks: shares(validation.scored().filter_map(ValidationPoint::visits_apart)),
    };
    Chart {
        id: "distribution".to_owned(),
        title: "How many predictions are how far off".to_owned(),
        caption: "Share of the workloads with an error up to the figure below; further left is \
                  better. “Measured twice” is how far the second visit was from the first."
            .to_owned(),
        x: error_axis(Scale::Log10),
        y: Axis {
            reach: Some(1.0),
            ..Axis::new("share of workloads", Scale::Linear, Unit::Fraction)
        },
        series: series.chain([repeated]).collect(),
        bands: vec![],
        rules: vec![],
    }
}

fn shares(errors: impl Iterator<Item = f64>) -> Vec<Mark> {
    let mut errors: Vec<f64> = errors.map(|error| error.max(ERROR_MIN)).collect();
    errors.sort_by(f64::total_cmp);
    let count = errors.len() as f64;
    let mark = |(index, error): (usize, &f64)| Mark {
        x: *error,
        y: Interval::exact((index + 1) as f64 / count),
        note: String::new(),
    };
    errors.iter().enumerate().map(mark).collect()
}

fn error_axis(scale: Scale) -> Axis {
    Axis::new("error", scale, Unit::Percent)
}

/// A parameter, how its axis is divided and written, and how it is read from a workload.
type Parameter = (&'static str, Scale, Unit, fn(&Workload) -> f64);

const PARAMETERS: [Parameter; 5] = [
    ("unique_bytes", Scale::Log2, Unit::Bytes, |work| work.unique_bytes as f64),
    ("size_mean", Scale::Log2, Unit::Bytes, |work| work.size_mean as f64),
    ("read_frac", Scale::Linear, Unit::Fraction, |work| work.read_frac),
    ("seq_frac", Scale::Linear, Unit::Fraction, |work| work.seq_frac),
    ("process_num", Scale::Log2, Unit::Count, |work| f64::from(work.process_num)),
];

/// Median errors over each parameter, blend and product. All reach as high, so that they can be
/// held against each other.
pub(crate) fn over_parameters(validation: &Validation) -> Vec<Chart> {
    let mut charts: Vec<Chart> =
        PARAMETERS.iter().map(|parameter| over(validation, parameter)).collect();
    let marks = charts.iter().flat_map(|chart| &chart.series).flat_map(|series| &series.marks);
    let highest = marks.map(|mark| mark.y.mean).fold(0.0, f64::max);
    for chart in &mut charts {
        chart.y.reach = Some(highest);
    }
    charts
}

fn over(validation: &Validation, parameter: &Parameter) -> Chart {
    let (key, scale, unit, read) = *parameter;
    let correlation = validation
        .rank_correlation
        .get(&ModelName::Blend)
        .and_then(|of_blend| of_blend.get(key))
        .map_or_else(String::new, |rho| format!("Rank correlation of the blend’s: {rho:+.2}."));
    let series = [ModelName::Product, ModelName::Blend].map(|model| Series {
        name: model.to_string(),
        ink: Ink::Model(model),
        drawn: Drawn::Joined,
        marks: bins(validation, model, scale, read),
    });
    Chart {
        id: format!("error-{key}"),
        title: key.to_owned(),
        caption: correlation.replace('-', "−"),
        x: Axis::new(key, scale, unit),
        y: Axis { label: "median error".to_owned(), ..error_axis(Scale::Linear) },
        series: series.into_iter().filter(|series| !series.marks.is_empty()).collect(),
        bands: vec![],
        rules: vec![],
    }
}

/// Medians of as many workloads each; workloads with the same value stay together.
fn bins(
    validation: &Validation,
    model: ModelName,
    scale: Scale,
    read: fn(&Workload) -> f64,
) -> Vec<Mark> {
    let with_error = |point: &ValidationPoint| Some((read(&point.workload), point.error(model)?));
    let mut all: Vec<(f64, f64)> = validation.scored().filter_map(with_error).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let size = all.len().div_ceil(BINS);
    let mut bins: Vec<Vec<(f64, f64)>> = Vec::new();
    for same in all.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        match bins.last_mut() {
            Some(bin) if bin.len() < size && same.len() < size => bin.extend(same),
            _ => bins.push(same.to_vec()),
        }
    }
    bins.iter().map(|bin| bin_mark(bin, scale)).collect()
}

fn bin_mark(bin: &[(f64, f64)], scale: Scale) -> Mark {
    let count = bin.len() as f64;
    let position = bin.iter().map(|(value, _)| scale.position(*value)).sum::<f64>() / count;
    let mut errors: Vec<f64> = bin.iter().map(|(_, error)| *error).collect();
    errors.sort_by(f64::total_cmp);
    let middle = errors.len() / 2;
    let median = if errors.len() % 2 == 1 {
        errors[middle]
    } else {
        f64::midpoint(errors[middle - 1], errors[middle])
    };
    Mark {
        x: scale.value(position),
        y: Interval::exact(median),
        note: figures::count(bin.len(), "workload"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ioscape_model::Figure;

    use super::*;

    fn point(process_num: u32, unique_bytes: u64, predicted: f64) -> ValidationPoint {
        let figure = Figure { value: predicted, low: predicted, high: predicted };
        ValidationPoint {
            workload: Workload { process_num, unique_bytes, ..Workload::default() },
            measured_bytes_per_s: vec![100.0, 100.0],
            predicted_bytes_per_s: BTreeMap::from([(ModelName::Blend, figure)]),
            in_border_band: false,
        }
    }

    fn validation(points: &[ValidationPoint]) -> Validation {
        serde_json::from_value(serde_json::json!({
            "seed": 1, "models": {}, "repeatability": { "median": 0.0, "p90": 0.0 },
            "points": points,
        }))
        .unwrap()
    }

    #[test]
    fn bins_hold_as_many_workloads_each_and_never_part_equal_values() {
        let points = (0..60).map(|i| point(1 + i % 4, 1 << (i + 1), 110.0 + f64::from(i)));
        let validation = validation(&points.collect::<Vec<_>>());
        let marks =
            bins(&validation, ModelName::Blend, Scale::Log2, |work| work.unique_bytes as f64);
        assert_eq!(marks.len(), BINS);
        assert!(marks.iter().all(|mark| mark.note == "10 workloads"));
        // Errors of 10 to 19 %: the middle is 14.5 %, at the mean of the logarithms.
        assert!((marks[0].y.mean - 0.145).abs() < 1e-9, "{:?}", marks[0]);
        assert!((marks[0].x.log2() - 5.5).abs() < 1e-9, "{:?}", marks[0]);
        let marks =
            bins(&validation, ModelName::Blend, Scale::Linear, |work| f64::from(work.process_num));
        let values: Vec<f64> = marks.iter().map(|mark| mark.x).collect();
        assert_eq!(values, [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn the_distribution_ends_with_all_workloads() {
        let validation = validation(&[point(1, 8, 150.0), point(1, 16, 100.0)]);
        let marks = shares(validation.scored().filter_map(|point| point.error(ModelName::Blend)));
        let of = |mark: &Mark| (mark.x, mark.y.mean);
        assert!((of(&marks[0]).0 - ERROR_MIN).abs() < 1e-12, "an exact one is still drawn");
        assert!((of(&marks[1]).0 - 0.5).abs() < 1e-9 && (of(&marks[1]).1 - 1.0).abs() < 1e-12);
    }
}
