//! Classic benchmarks in characters: a table for each.

use ioscape_model::Record;

use super::{Page, Paint, Style, WIDTH_MAX, WIDTH_MIN, add_table, plain_table};
use crate::facts;
use crate::suite::{Section, doubts_of_run, extent, sections};

/// Renders the tables, `width` columns wide.
pub fn suite_text(record: &Record, width: usize, color: bool) -> String {
    let width = width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut page = Page { lines: Vec::new(), width, paint: Paint::new(color) };
    let paths: Vec<String> = record
        .suite
        .suite
        .iter()
        .flat_map(|suite| suite.targets.iter().map(|target| target.path.clone()))
        .collect();
    page.wrapped("", &paths.join(", "), Style::Bold);
    page.wrapped("", &facts::storage(&record.header), Style::Plain);
    page.wrapped("", &extent(&record.suite), Style::Dim);
    for section in sections(&record.suite) {
        table(&mut page, &section);
    }
    let doubts = doubts_of_run(record);
    if !doubts.is_empty() {
        page.heading("What to doubt");
        for doubt in doubts {
            page.wrapped("  ! ", &doubt, Style::Plain);
        }
    }
    page.finish()
}

fn table(page: &mut Page, section: &Section) {
    page.heading(&section.name);
    let mut table = plain_table(page.width);
    table.set_header(section.head.clone());
    for row in &section.rows {
        table.add_row(row.clone());
    }
    add_table(page, &table);
    for note in &section.notes {
        page.wrapped("  ", note, Style::Dim);
    }
}
