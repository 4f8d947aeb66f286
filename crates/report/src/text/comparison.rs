//! A comparison in characters: what it says, which is which, then the tables behind it.

use comfy_table::Cell;

use super::{Page, Paint, Style, WIDTH_MAX, WIDTH_MIN, add_table, clean, plain_table};
use crate::chart::Table;
use crate::comparison::{
    CACHES_NOTE, ComparisonPage, REGIONS_NOTE, caches, confounded, dropped, elements,
    elements_note, intolerable, legend, letter, of_system, prices, regions, sentence, unresolved,
    workloads, workloads_basis, workloads_note, worth,
};
use crate::doubts::Doubt;

/// Renders a comparison, `width` columns wide.
pub fn comparison_text(page: &ComparisonPage<'_>, width: usize, color: bool) -> String {
    let width = width.clamp(WIDTH_MIN, WIDTH_MAX);
    let mut text = Page { lines: Vec::new(), width, paint: Paint::new(color) };
    for place in 1..page.systems.len() {
        verdict(&mut text, page, place);
    }
    text.raw(String::new());
    for (place, (letter, words)) in legend(page).iter().enumerate() {
        let baseline = if place == 0 { " (the baseline)" } else { "" };
        text.wrapped(&format!("{letter}  "), &format!("{words}{baseline}"), Style::Plain);
    }
    for words in (1..page.systems.len()).filter_map(|place| confounded(page, place)) {
        text.wrapped("", &words, Style::Plain);
    }
    for place in 1..page.systems.len() {
        against(&mut text, page, place);
    }
    if let Some(words) = dropped(page) {
        text.wrapped("! ", &words, Style::Warning);
    }
    if !page.document.prices.is_empty() {
        text.heading("For the price");
        table(&mut text, &prices(page));
        for (i, system) in page.document.systems.iter().enumerate() {
            if let Some(words) = worth(system, &letter(i + 1)) {
                text.wrapped("  ", &words, Style::Plain);
            }
        }
    }
    doubted(&mut text, page);
    text.finish()
}

fn verdict(text: &mut Page, page: &ComparisonPage<'_>, place: usize) {
    let (system, letter) = (&page.document.systems[place - 1], letter(place));
    let comparisons = of_system(page, place);
    text.wrapped("", &sentence(system, comparisons, &letter), Style::Bold);
    let failed = [intolerable(system, &letter), unresolved(page, comparisons, &letter)];
    for words in failed.into_iter().flatten() {
        text.wrapped("! ", &words, Style::Warning);
    }
}

fn against(text: &mut Page, page: &ComparisonPage<'_>, place: usize) {
    let (system, letter) = (&page.document.systems[place - 1], letter(place));
    let comparisons = of_system(page, place);
    if !comparisons.is_empty() {
        let basis = workloads_basis(page);
        text.heading(&format!("{letter} against A: workloads ({basis})"));
        table(text, &workloads(system, comparisons, &letter));
        text.wrapped("  ", &workloads_note(page, place), Style::Dim);
    }
    let vector_note = elements_note(system);
    let sides = [
        ("caches", caches(system, &letter), CACHES_NOTE),
        ("regions", regions(system, &letter), REGIONS_NOTE),
        ("system vectors", elements(system, &letter), &vector_note),
    ];
    for (name, side, note) in sides.iter().filter(|(_, side, _)| !side.rows.is_empty()) {
        text.heading(&format!("{letter} against A: {name}"));
        table(text, side);
        text.wrapped("  ", note, Style::Dim);
    }
}

/// What is doubtful about each record; what to do about it stands in its own report.
fn doubted(text: &mut Page, page: &ComparisonPage<'_>) {
    for (place, of) in page.document.warnings.iter().enumerate() {
        if of.warnings.is_empty() {
            continue;
        }
        text.heading(&format!("What to doubt about {}", letter(place)));
        of.warnings.iter().map(Doubt::about).for_each(|doubt| text.doubt(&doubt));
    }
}

fn table(text: &mut Page, table: &Table) {
    let mut shown = plain_table(text.width);
    shown.set_header(table.head.iter().map(Cell::new));
    for row in &table.rows {
        shown.add_row(row.iter().map(|cell| broken(&clean(cell))));
    }
    add_table(text, &shown);
}

/// Long cells are broken where their parts meet.
fn broken(cell: &str) -> String {
    cell.replace(" over ", "\n").replace(",read_frac", ",\nread_frac")
}
