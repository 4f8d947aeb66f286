//! A history, and a new record against it, in characters.

use ioscape_model::{History, HistoryCheck, Standing};

use super::{Page, Paint, Style, WIDTH_MAX, WIDTH_MIN, add_table, clean, plain_table};
use crate::chart::Table;
use crate::history::{
    BLOCKS_NOTE, LINES_NOTE, blocks, check_sentence, check_table, extent, lines, sentences,
};

/// Renders a history, `width` columns wide.
pub fn history_text(history: &History, width: usize, color: bool) -> String {
    let mut page = page(width, color);
    page.wrapped("", &extent(history), Style::Bold);
    for sentence in sentences(history) {
        page.wrapped("  ", &sentence, Style::Plain);
    }
    if !history.lines.is_empty() {
        page.heading("Lines");
        table(&mut page, &lines(history));
        page.wrapped("  ", LINES_NOTE, Style::Dim);
    }
    if !history.blocks.is_empty() {
        page.heading("Blocks");
        table(&mut page, &blocks(history));
        page.wrapped("  ", BLOCKS_NOTE, Style::Dim);
    }
    page.finish()
}

/// Renders what a new record says against its baseline.
pub fn history_check_text(check: &HistoryCheck, width: usize, color: bool) -> String {
    let mut page = page(width, color);
    let style = match check.standing {
        Standing::Worse => Style::Serious,
        Standing::Inconclusive => Style::Warning,
        _ => Style::Bold,
    };
    page.wrapped("", &check_sentence(check), style);
    table(&mut page, &check_table(check));
    page.finish()
}

fn page(width: usize, color: bool) -> Page {
    Page { lines: vec![], width: width.clamp(WIDTH_MIN, WIDTH_MAX), paint: Paint::new(color) }
}

fn table(page: &mut Page, cells: &Table) {
    let mut table = plain_table(page.width);
    table.set_header(cells.head.clone());
    for row in &cells.rows {
        table.add_row(row.iter().map(|cell| clean(cell)).collect::<Vec<_>>());
    }
    add_table(page, &table);
}
