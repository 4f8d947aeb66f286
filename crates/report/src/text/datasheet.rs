//! The data sheet in characters, below the answer.

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
    let mut table = plain_table(page.width);
    table.set_header(["workload", "IOPS", "", "throughput", "p50", "p99", "p99.9"]);
    for row in rows {
        let cells = [row.words, row.ops, row.spread, row.rate, row.p50, row.p99, row.p999];
        table.add_row(cells.map(|cell| clean(&cell)));
    }
    add_table(page, &table);
    if let Some(note) = datasheet::notes(record).first() {
        page.wrapped("  ", note, Style::Dim);
    }
}
