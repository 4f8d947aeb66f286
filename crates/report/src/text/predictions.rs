//! Predictions for people: a table, what it rests on, what to doubt.

use ioscape_model::units::{show_bytes, show_rate, show_seconds, three_digits};
use ioscape_model::{Figure, PredictedTime, Prediction, Predictions, Record, Warning};

use super::{Page, Paint, Style, WIDTH_MAX, WIDTH_MIN, clean};
use crate::doubts::Doubt;
use crate::figures;

/// Columns of the name; longer ones get lines of their own.
const NAME_COLUMNS: usize = 16;
/// Columns of a figure with its interval.
const FIGURE_COLUMNS: usize = 23;

/// A cache of another size than the record shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WhatIf {
    /// Its key: `read_cache`.
    pub cache: &'static str,
    /// As the record shows it, bytes.
    pub from_bytes: Option<f64>,
    /// As it is supposed to be, bytes.
    pub to_bytes: f64,
}

/// What predictions rest on.
#[derive(Clone, Copy, Debug)]
pub struct PredictionBasis<'a> {
    /// The record that they are made from.
    pub record: &'a Record,
    /// Caches that are supposed to have other sizes.
    pub changed: &'a [WhatIf],
    /// The model in sentences.
    pub sentences: &'a [String],
}

/// The answer for people, `width` columns wide.
pub fn predictions_text(
    document: &Predictions,
    ground: &PredictionBasis<'_>,
    width: usize,
) -> String {
    let PredictionBasis { record, changed, sentences } = *ground;
    let width = width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut page = Page { lines: Vec::new(), width, paint: Paint::new(false) };
    let mut plain = |lead: &str, text: &str| page.wrapped(lead, text, Style::Plain);
    let visits = record.points.len();
    plain("", &format!("{}: predicted from {visits} visits", record.header.target.path));
    for WhatIf { cache, from_bytes, to_bytes } in changed {
        let found = from_bytes.map_or_else(|| "none found".to_owned(), show_bytes);
        plain("", &format!("What if: {cache} of {} instead of {found}", show_bytes(*to_bytes)));
    }
    let with_product = changed.is_empty();
    let product = if with_product { "product" } else { "" };
    page.raw(String::new());
    page.raw(row("workload", "throughput", "response time", product));
    for prediction in &document.predictions {
        rows(&mut page, prediction, with_product);
    }
    let mut plain = |lead: &str, text: &str| page.wrapped(lead, text, Style::Plain);
    plain("", "In brackets: 90 % intervals for one new measurement of a few seconds.");
    if with_product {
        plain(
            "",
            "Product: single-parameter curves multiplied (Chen and Patterson 1994), for comparison.",
        );
    }
    if !sentences.is_empty() {
        page.heading(&format!("What the {} model rests on", document.model));
        for sentence in sentences {
            page.wrapped("  - ", sentence, Style::Plain);
        }
    }
    doubted(&mut page, document);
    let text = page.finish();
    text.trim_end().to_owned()
}

fn doubted(page: &mut Page, document: &Predictions) {
    let mut each: Vec<&Warning> = Vec::new();
    for warning in document.predictions.iter().flat_map(|prediction| &prediction.warnings) {
        // Their figures may differ where their words do not.
        let is_said =
            |known: &&Warning| known.text == warning.text && known.remedy == warning.remedy;
        if !each.iter().any(is_said) {
            each.push(warning);
        }
    }
    if each.is_empty() && document.warnings.is_empty() {
        return;
    }
    page.heading("What to doubt");
    for warning in &document.warnings {
        let doubt = Doubt::about(warning);
        let Warning { text, remedy, .. } = warning;
        page.doubt(&Doubt {
            title: format!("in the map: {}", doubt.title),
            text: format!("{text}; {remedy}"),
            ..doubt
        });
    }
    for Warning { text, remedy, .. } in each {
        page.wrapped("  ! ", &format!("{text}; {remedy}"), Style::Plain);
    }
}

/// A product of curves knows nothing of caches: it has no say in what-if.
fn rows(page: &mut Page, prediction: &Prediction, with_product: bool) {
    let product = if with_product {
        show_rate(prediction.product_throughput_bytes_per_s)
    } else {
        String::new()
    };
    let name = clean(&prediction.name);
    let figures = |name: &str| {
        let throughput = figures::rate(&prediction.throughput_bytes_per_s.into());
        let response = figures::seconds(&prediction.response_time_s.mean.into());
        row(name, &throughput, &response, &product)
    };
    if name.chars().count() <= NAME_COLUMNS {
        page.raw(figures(&name));
    } else {
        let width = page.width;
        for line in super::wrap(&name.replace(',', ", "), width) {
            page.raw(line.replace(", ", ","));
        }
        page.raw(figures(""));
    }
    if let Some(percentiles) = percentiles(prediction) {
        page.raw(percentiles);
    }
    if prediction.put_together {
        page.raw("  put together: more data than the map touched with a warm cache".to_owned());
    }
    if !prediction.in_range {
        page.raw("  out of range".to_owned());
    }
}

/// Requests per second and percentiles of their response time, where they are known.
fn percentiles(prediction: &Prediction) -> Option<String> {
    let PredictedTime { p50, p99, p999, .. } = prediction.response_time_s;
    let (lead, time) = if prediction.workload.rate > 0.0 {
        let rate = prediction.highest_rate_per_s.as_ref();
        let most = |rate: &Figure| {
            let [low, high] = [rate.low, rate.high].map(three_digits);
            format!(" at most ({low} to {high})")
        };
        (rate.map(most).unwrap_or_default(), "latency")
    } else {
        (String::new(), "response time")
    };
    let ops = prediction.throughput_bytes_per_s.value / prediction.workload.size_mean as f64;
    let p99_s = figures::seconds(&p99?.into());
    let [p50_s, p999_s] = [p50?, p999?].map(|figure| show_seconds(figure.value));
    let ops = three_digits(ops);
    Some(format!("  {ops} IOPS{lead}; {time} p50 {p50_s}, p99 {p99_s}, p99.9 {p999_s}"))
}

fn row(name: &str, throughput: &str, response: &str, product: &str) -> String {
    let line = format!(
        "{name:<NAME_COLUMNS$}  {throughput:<FIGURE_COLUMNS$}  {response:<FIGURE_COLUMNS$}  \
         {product}"
    );
    line.trim_end().to_owned()
}
