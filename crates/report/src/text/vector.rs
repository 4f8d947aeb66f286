//! The system vector in characters: all of it where it is all there is, else what decides the run
//! times of most programs.

use ioscape_model::{Method, Record};

use super::paint::Style;
use super::{Page, add_table, clean, plain_table};
use crate::vector;

/// What the summary of a map shows of it.
const SHORT: [&str; 8] = [
    "read_random_miss",
    "sync_overwritten",
    "sync_grown",
    "create",
    "open_cached",
    "stat_cached",
    "unlink",
    "exec",
];

/// The section.
pub(super) fn vector(page: &mut Page, record: &Record) {
    let groups = vector::groups(record);
    if groups.is_empty() {
        return;
    }
    let is_all = record.header.method == Method::Vector;
    if !is_all {
        page.heading("System vector");
    }
    for group in groups {
        let rows = group.rows.into_iter().filter(|row| is_all || SHORT.contains(&row.name));
        let mut table = plain_table(page.width);
        table.set_header([
            "operation",
            "time (95 %)",
            "per call",
            "per MiB",
            "per page",
            "per piece",
        ]);
        for row in rows {
            let name = format!("{}{}", row.name, if row.is_doubted { " *" } else { "" });
            let cells = [name, row.time, row.per_call, row.per_mib, row.per_page, row.per_extent];
            table.add_row(cells.map(|cell| clean(&cell)));
        }
        if table.row_count() == 0 {
            continue;
        }
        if is_all {
            page.heading(group.title);
        }
        add_table(page, &table);
    }
    if is_all {
        page.raw(String::new());
        for note in vector::notes(record) {
            page.wrapped("  ", &note, Style::Dim);
        }
    }
}
