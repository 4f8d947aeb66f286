//! The section on replays.

use ioscape_model::Record;

use super::paint::Style;
use super::{Page, add_table, clean, plain_table};
use crate::replays;

/// The section.
pub(super) fn replays(page: &mut Page, record: &Record) {
    if record.replays.is_empty() {
        return;
    }
    page.heading("Replay");
    for line in replays::sentences(record) {
        page.wrapped("  ", &line, Style::Plain);
    }
    let mut table = plain_table(page.width);
    table.set_header(replays::HEADINGS);
    for row in replays::rows(record) {
        table.add_row(row.map(|cell| clean(&cell)));
    }
    add_table(page, &table);
    for example in replays::examples(record) {
        page.wrapped("  ", example, Style::Dim);
    }
}
