//! A validation in characters: the table of errors, and what it says.

use super::{Page, Paint, Style, WIDTH_MAX, WIDTH_MIN, add_table, plain_table};
use crate::doubts;
use crate::facts;
use crate::figures::UNKNOWN;
use crate::sample::Samples;
use crate::validation::{ValidationPage, cost, extent, rows, sentences};

/// Renders the errors of the models, `width` columns wide.
pub fn validation_text(page: &ValidationPage<'_>, width: usize, color: bool) -> String {
    let width = width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut text = Page { lines: Vec::new(), width, paint: Paint::new(color) };
    let target = &page.trial.header;
    text.wrapped("", &target.target.path, Style::Bold);
    text.wrapped("", &facts::storage(target), Style::Plain);
    text.wrapped("", &extent(page.validation), Style::Dim);
    if page.validation.models.is_empty() {
        text.wrapped("", "No workload was measured twice: nothing can be said.", Style::Warning);
        return text.finish();
    }
    text.heading("Errors of the predictions");
    table(&mut text, page);
    text.wrapped("  ", &cost(page), Style::Dim);
    text.heading("What it says");
    for sentence in sentences(page) {
        text.wrapped("  - ", &sentence, Style::Plain);
    }
    let doubts = doubts::doubts(page.trial, &Samples::from_record(page.trial));
    if !doubts.is_empty() {
        text.heading("What to doubt");
        for doubt in doubts {
            text.wrapped("  ! ", &format!("{}: {}", doubt.title, doubt.text), Style::Plain);
        }
    }
    text.finish()
}

fn table(text: &mut Page, page: &ValidationPage<'_>) {
    let dropped = page.validation.models.values().map(|errors| errors.dropped).max().unwrap_or(0);
    let mut table = plain_table(text.width);
    table.set_header([
        "model".to_owned(),
        "median\n(90 %)".to_owned(),
        "p75".to_owned(),
        "p90".to_owned(),
        "|ln|\nmedian".to_owned(),
        "interval\nholds".to_owned(),
        "high/\nlow".to_owned(),
        format!("outside\nbands ({dropped})"),
    ]);
    for row in rows(page.validation) {
        let median = match row.median_interval.as_str() {
            UNKNOWN => row.median,
            interval => format!("{}\n({interval})", row.median),
        };
        table.add_row([
            row.name,
            median,
            row.p75,
            row.p90,
            row.log_median,
            row.coverage,
            row.width,
            row.outside,
        ]);
    }
    add_table(text, &table);
}
