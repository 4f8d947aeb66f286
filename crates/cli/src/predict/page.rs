//! Predictions for people: a table of 80 columns, what it rests on, what to doubt.

use ioscape_model::units::{show_bytes, show_rate};
use ioscape_model::{Figure, Prediction, Predictions, Record, Severity, Warning};
use ioscape_report::doubt_title;

use super::Changed;
use crate::report::WIDTH;

/// Columns of the name; longer ones get lines of their own.
const NAME_COLUMNS: usize = 16;
/// Columns of a figure with its interval.
const FIGURE_COLUMNS: usize = 23;
/// An interval whose ends differ by less than this factor has a third digit to show.
const THREE_DIGITS_BELOW: f64 = 1.1;

/// The answer for people, 80 columns wide.
pub(super) fn page(
    record: &Record,
    changed: &[Changed],
    document: &Predictions,
    sentences: &[String],
) -> String {
    let mut lines = Vec::new();
    let visits = record.points.len();
    lines.extend(wrapped(
        "",
        &format!("{}: predicted from {visits} visits", record.header.target.path),
    ));
    for Changed { cache, from_bytes, to_bytes } in changed {
        let found = from_bytes.map_or_else(|| "none found".to_owned(), show_bytes);
        let what =
            format!("What if: {} of {} instead of {found}", cache.key(), show_bytes(*to_bytes));
        lines.extend(wrapped("", &what));
    }
    lines.push(String::new());
    let product = if changed.is_empty() { "product" } else { "" };
    lines.push(row("workload", "throughput", "response time", product));
    for prediction in &document.predictions {
        lines.extend(rows(prediction, changed.is_empty()));
    }
    lines.extend(wrapped(
        "",
        "In brackets: 90 % intervals for one new measurement of a few seconds.",
    ));
    if changed.is_empty() {
        lines.extend(wrapped(
            "",
            "Product: single-parameter curves multiplied (Chen and Patterson 1994), for comparison.",
        ));
    }
    if !sentences.is_empty() {
        lines.extend([String::new(), format!("What the {} model rests on", document.model)]);
        lines.extend(sentences.iter().flat_map(|sentence| wrapped("  - ", sentence)));
    }
    let warnings = each_once(&document.predictions);
    if !warnings.is_empty() || !document.warnings.is_empty() {
        lines.extend([String::new(), "What to doubt".to_owned()]);
        lines.extend(document.warnings.iter().flat_map(of_map));
        let text = |warning: &Warning| format!("{}; {}", warning.text, warning.remedy);
        lines.extend(warnings.iter().flat_map(|warning| wrapped("  ! ", &text(warning))));
    }
    lines.join("\n")
}

/// A doubt about the map that all predictions rest on.
fn of_map(warning: &Warning) -> Vec<String> {
    let lead = match warning.severity {
        Severity::Note => "  - ",
        Severity::Warning => "  ! ",
        Severity::Serious => " !! ",
    };
    let Warning { text, remedy, .. } = warning;
    wrapped(lead, &format!("the map, {}: {text}; {remedy}", doubt_title(warning.code)))
}

fn each_once(predictions: &[Prediction]) -> Vec<&Warning> {
    let mut each: Vec<&Warning> = Vec::new();
    for warning in predictions.iter().flat_map(|prediction| &prediction.warnings) {
        if !each.iter().any(|known| known.text == warning.text) {
            each.push(warning);
        }
    }
    each
}

/// A product of curves knows nothing of caches: it has no say in what-if.
fn rows(prediction: &Prediction, with_product: bool) -> Vec<String> {
    let product = if with_product {
        show_rate(prediction.product_throughput_bytes_per_s)
    } else {
        String::new()
    };
    let name = clean(&prediction.name);
    let figures = |name: &str| {
        row(
            name,
            &with_interval(&prediction.throughput_bytes_per_s, 1.0, &RATES),
            &with_interval(&prediction.response_time_s, 1e9, &TIMES),
            &product,
        )
    };
    let mut lines = Vec::new();
    if name.chars().count() <= NAME_COLUMNS {
        lines.push(figures(&name));
    } else {
        lines.extend(
            wrapped("", &name.replace(',', ", ")).iter().map(|line| line.replace(", ", ",")),
        );
        lines.push(figures(""));
    }
    if !prediction.in_range {
        lines.push("  out of range".to_owned());
    }
    lines
}

fn row(name: &str, throughput: &str, response: &str, product: &str) -> String {
    let line = format!(
        "{name:<NAME_COLUMNS$}  {throughput:<FIGURE_COLUMNS$}  {response:<FIGURE_COLUMNS$}  \
         {product}"
    );
    line.trim_end().to_owned()
}

const RATES: [&str; 5] = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
const TIMES: [&str; 4] = ["ns", "µs", "ms", "s"];

/// `1.9 GB/s (1.4–2.4)`: the ends have the figure's unit, and all three as many digits as the
/// interval leaves.
fn with_interval(figure: &Figure, scale: f64, units: &[&str]) -> String {
    let Figure { value, low, high } = *figure;
    let mut factor = scale;
    let mut unit = 0;
    while value * factor >= 999.5 && unit + 1 < units.len() {
        factor /= 1000.0;
        unit += 1;
    }
    let digits = if high < low * THREE_DIGITS_BELOW { 3 } else { 2 };
    let show = |value: f64| significant(value * factor, digits);
    format!("{} {} ({}–{})", show(value), units[unit], show(low), show(high))
}

/// A number rounded to this many digits, without an exponent.
fn significant(value: f64, digits: u8) -> String {
    if value.is_nan() || value <= 0.0 {
        return "0".to_owned();
    }
    // Rounding first: 0.9996 has its first digit before the point.
    let rounded: f64 = format!("{value:.*e}", usize::from(digits) - 1).parse().unwrap_or(value);
    let decimals = i32::from(digits) - 1 - rounded.log10().floor() as i32;
    format!("{rounded:.*}", usize::try_from(decimals).unwrap_or(0))
}

/// Lines of at most 80 columns; those after the first stand under its text.
fn wrapped(lead: &str, text: &str) -> Vec<String> {
    let indent = lead.chars().count();
    let mut lines = vec![lead.to_owned()];
    let mut used = indent;
    for word in words(&clean(text)) {
        let length = word.chars().count();
        if used > indent && used + 1 + length > WIDTH {
            lines.push(" ".repeat(indent));
            used = indent;
        }
        let line = lines.last_mut().expect("there is always a line");
        if used > indent {
            line.push(' ');
            used += 1;
        }
        line.push_str(&word);
        used += length;
    }
    lines
}

/// Words, a number and its unit being one.
fn words(text: &str) -> Vec<String> {
    const UNITS: [&str; 14] = [
        "%", "B", "KiB", "MiB", "GiB", "TiB", "ns", "µs", "ms", "s", "kB/s", "MB/s", "GB/s", "min",
    ];
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let unit = word.trim_end_matches([')', ',', ';', ':', '.']);
        match words.last_mut() {
            Some(last) if UNITS.contains(&unit) && last.ends_with(|c: char| c.is_ascii_digit()) => {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Names and paths cannot move the cursor.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_as_many_digits_as_their_intervals_leave() {
        let figure = |value, low, high| Figure { value, low, high };
        for (figure, shown) in [
            (figure(1.9123e9, 1.4e9, 2.431e9), "1.9 GB/s (1.4–2.4)"),
            (figure(1.9123e9, 1.87e9, 1.951e9), "1.91 GB/s (1.87–1.95)"),
            (figure(10.04e6, 0.312e6, 322.0e6), "10 MB/s (0.31–320)"),
            (figure(999.6e6, 900e6, 1.1e9), "1.0 GB/s (0.90–1.1)"),
            (figure(412.0, 300.0, 500.0), "410 B/s (300–500)"),
        ] {
            assert_eq!(with_interval(&figure, 1.0, &RATES), shown);
        }
        let response = figure(92.1e-6, 80e-6, 110e-6);
        assert_eq!(with_interval(&response, 1e9, &TIMES), "92 µs (80–110)");
    }

    #[test]
    fn text_is_wrapped_under_its_own_beginning() {
        let lines = wrapped("  - ", &"12 % (of 3 GB/s) ".repeat(20));
        assert!(!lines.iter().any(|line| line.trim().starts_with(['%', 'G'])), "{lines:?}");
        let lines = wrapped("  - ", &"word ".repeat(40));
        assert!(lines.len() > 1 && lines.iter().all(|line| line.chars().count() <= WIDTH));
        assert!(lines[1].starts_with("    word"));
    }
}
