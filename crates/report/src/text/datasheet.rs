//! The data sheet in characters, first in the summary.

use ioscape_model::Record;

use super::paint::Style;
use super::{Page, add_table, clean, plain_table};
use crate::datasheet;

/// The section.
pub(super) fn datasheet(page: &mut Page, record: &Record) {
    let rows = datasheet::rows(record);
    if rows.is_empty() {
        return;
    }
    page.heading("Data sheet");
    let mut table = plain_table(page.width);
    table.set_header(["workload", "per second", "throughput", "mean", "p50", "p99", "p99.9"]);
    for row in rows {
        let cells = [row.name, row.ops, row.rate, row.mean, row.p50, row.p99, row.p999];
        table.add_row(cells.map(|cell| clean(&cell)));
    }
    add_table(page, &table);
    for note in datasheet::notes(record) {
        page.wrapped("  ", &note, Style::Dim);
    }
}
