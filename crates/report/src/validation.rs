//! How far predictions were off: what the page and the terminal say about a validation (Chen and
//! Patterson 1994, Figs 12 to 15).

use ioscape_model::units::show_percent as percent;
use ioscape_model::{Dependence, Errors, ModelName, Record, Validation, word};

use crate::figures;

mod graphs;
pub(crate) mod page;

/// What is rendered.
#[derive(Clone, Copy, Debug)]
pub struct ValidationPage<'a> {
    /// The record whose predictions were tried.
    pub record: &'a Record,
    /// The record of the validation.
    pub trial: &'a Record,
    /// The scores.
    pub validation: &'a Validation,
    /// Benchmarks that give one number for all workloads, bytes per second.
    pub single_points: &'a [(String, f64)],
}

/// A row of the table: a model, and in the last one the workloads themselves.
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) median: String,
    pub(crate) median_interval: String,
    pub(crate) p75: String,
    pub(crate) p90: String,
    pub(crate) log_median: String,
    pub(crate) coverage: String,
    pub(crate) width: String,
    pub(crate) outside: String,
    pub(crate) even_sizes: String,
}

/// All models, the one that answers first.
pub(crate) fn models(validation: &Validation) -> Vec<(ModelName, &Errors)> {
    let mut all: Vec<(ModelName, &Errors)> =
        validation.models.iter().map(|(name, errors)| (*name, errors)).collect();
    let is_compared = |name: &ModelName| *name != ModelName::Blend;
    all.sort_by(|(a, x), (b, y)| {
        is_compared(a).cmp(&is_compared(b)).then(x.median.total_cmp(&y.median)).then(a.cmp(b))
    });
    all
}

/// The table of the paper's Fig. 15, wider.
pub(crate) fn rows(validation: &Validation) -> Vec<Row> {
    let unknown = || figures::UNKNOWN.to_owned();
    let scored = validation.scored().count();
    let all = models(validation).into_iter().map(|(name, errors)| Row {
        // A model that had nothing to say about some is not judged by the same workloads.
        name: match errors.workloads as usize {
            answered if answered < scored => format!("{name} ({answered} of {scored})"),
            _ => name.to_string(),
        },
        median: percent(errors.median),
        median_interval: [errors.median_low, errors.median_high]
            .map(|end| percent(end).trim_end_matches(" %").to_owned())
            .join("–"),
        p75: percent(errors.p75),
        p90: percent(errors.p90),
        log_median: percent(errors.log_median),
        coverage: errors.coverage.map_or_else(unknown, percent),
        width: errors.interval_ratio_median.map_or_else(unknown, |ratio| format!("{ratio:.2}")),
        outside: percent(errors.median_outside_bands),
        even_sizes: percent(errors.median_even_sizes),
    });
    let repeatability = Row {
        name: "repeatability".to_owned(),
        median: percent(validation.repeatability.median),
        median_interval: unknown(),
        p75: unknown(),
        p90: percent(validation.repeatability.p90),
        log_median: unknown(),
        coverage: unknown(),
        width: unknown(),
        outside: unknown(),
        even_sizes: unknown(),
    };
    all.chain([repeatability]).collect()
}

/// `100 random workloads, each measured twice, seed 7.`
pub(crate) fn extent(validation: &Validation) -> String {
    let scored = validation.scored().count();
    let drawn = validation.workloads as usize;
    let seed = validation.seed;
    if scored == drawn {
        return format!(
            "{}, each measured twice, seed {seed}.",
            figures::count(drawn, "random workload")
        );
    }
    format!(
        "It was interrupted: {scored} of {} were measured twice, and only these are scored; seed \
         {seed}.",
        figures::count(drawn, "random workload")
    )
}

/// What the figures say, a sentence each.
pub(crate) fn sentences(page: &ValidationPage<'_>) -> Vec<String> {
    let validation = page.validation;
    let mut all = Vec::new();
    let of_model = |name| validation.models.get(&name);
    let (blend, product) = (of_model(ModelName::Blend), of_model(ModelName::Product));
    if let Some(blend) = blend {
        all.push(format!(
            "Half of the predictions are within {} of what was measured, three quarters within {}, \
             nine in ten within {}. Two measurements of one workload are {} apart (median): even a \
             prediction that hits their mean is {} off each of them.",
            percent(blend.median),
            percent(blend.p75),
            percent(blend.p90),
            percent(validation.repeatability.median),
            percent(validation.repeatability.median / 2.0),
        ));
        all.extend(coverage(blend));
        all.push(follows(validation, ModelName::Blend));
    }
    if let (Some(blend), Some(product)) = (blend, product) {
        all.push(format!(
            "Fitted to the same points, the paper's own model (the product of single-parameter \
             curves) is off by {} (median), the blend by {}.",
            percent(product.median),
            percent(blend.median)
        ));
    }
    let alone: Vec<String> = validation
        .single_point_errors
        .iter()
        .map(|(name, error)| format!("{name} {}", percent(*error)))
        .collect();
    if !alone.is_empty() {
        all.push(format!(
            "With the one throughput of a classic benchmark as the prediction for all workloads, \
             half of the errors are above: {} (Chen and Patterson 1994: 50 to 65 %).",
            alone.join(", ")
        ));
    }
    if let Some(blend) = blend {
        all.push(bands(page.record, blend));
        all.push(format!(
            "Sizes were drawn log-evenly. Drawn evenly, as in the paper, large ones would weigh \
             more, and the blend's median would be {}. That figure is uncertain, because few large \
             ones were drawn: it is worth no more than a median over {}.",
            percent(blend.median_even_sizes),
            figures::count(validation.even_sizes_effective_count(), "workload"),
        ));
    }
    all
}

fn coverage(blend: &Errors) -> Option<String> {
    let (coverage, width) = (blend.coverage?, blend.interval_ratio_median?);
    Some(format!(
        "The 90 % intervals hold {} of the measurements; from end to end they span a factor of \
         {width:.2} (median).",
        percent(coverage)
    ))
}

/// The paper's Fig. 13 in a sentence: which parameter the error goes with.
pub(crate) fn follows(validation: &Validation, model: ModelName) -> String {
    let Some(strongest) = validation.strongest_dependence(model) else {
        return "The error depends on no parameter that could be seen.".to_owned();
    };
    let Dependence { parameter, rank_correlation, is_shown } = strongest;
    let more = if rank_correlation > 0.0 { "large" } else { "small" };
    let figure = format!("{parameter} (rank correlation {rank_correlation:+.2})").replace('-', "−");
    if !is_shown {
        return format!(
            "The error depends most on {figure}, but chance alone can bring that about."
        );
    }
    format!("The error depends most on {figure}: it is greatest where {parameter} is {more}.")
}

fn bands(record: &Record, blend: &Errors) -> String {
    if record.borders.is_empty() {
        return "The record has no border, so nothing near one is left out.".to_owned();
    }
    format!(
        "{} near a border: between 0.8 times the size at which throughput begins to fall and \
         twice the size of the cache, both as in the record, from before anything was drawn. \
         Without them the blend's median is {}.",
        match blend.dropped {
            0 => "No workload lies".to_owned(),
            1 => "1 workload lies".to_owned(),
            n => format!("{n} workloads lie"),
        },
        percent(blend.median_outside_bands)
    )
}

/// Facts beside the table of the paper's Fig. 14: what the models were fitted from, what it cost.
pub(crate) fn cost(page: &ValidationPage<'_>) -> String {
    let workloads = page.record.estimates.len();
    format!(
        "All models are fitted from the same record: {} to {} in {}, by the {} method.",
        figures::count(page.record.points.len(), "visit"),
        figures::count(workloads, "workload"),
        ioscape_model::units::show_seconds(page.record.elapsed_s()),
        word(page.record.header.method),
    )
}
