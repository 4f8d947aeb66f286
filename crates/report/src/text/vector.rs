//! The system vector in characters: all of it where it is all there is, else what decides the run
//! times of most programs.

use ioscape_model::{Method, Record};

use super::paint::Style;
use super::{Page, add_table, clean, plain_table};
use crate::vector::{self, VectorRow};

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
    if record.header.method != Method::Vector {
        let rows = groups.into_iter().flat_map(|group| group.rows);
        let rows: Vec<VectorRow> = rows.filter(|row| SHORT.contains(&row.name)).collect();
        if rows.is_empty() {
            return;
        }
        page.heading("System vector");
        table(page, &rows);
        if rows.iter().any(|row| row.is_doubted) {
            let text = "* doubtful: the page of `ioscape report` says why";
            page.wrapped("  ", text, Style::Dim);
        }
        return;
    }
    for group in groups {
        if !group.rows.is_empty() {
            page.heading(group.title);
            table(page, &group.rows);
        }
    }
    page.raw(String::new());
    for note in vector::notes(record) {
        page.wrapped("  ", &note, Style::Dim);
    }
}

fn table(page: &mut Page, rows: &[VectorRow]) {
    let mut table = plain_table(page.width);
    table.set_header(["operation", "time (95 %)", "per call", "per MiB", "per page", "per piece"]);
    for row in rows {
        let name = format!("{}{}", row.name, if row.is_doubted { " *" } else { "" });
        let cells = [&name, &row.time, &row.per_call, &row.per_mib, &row.per_page, &row.per_extent];
        table.add_row(cells.map(|cell| clean(cell)));
    }
    add_table(page, &table);
}
