//! The answer in characters, above everything else: what the storage is, the data sheet, how much
//! data is fast, what sets the pace, how far to trust it, what to do.

use ioscape_model::{Conclusion, Record};

use super::paint::Style;
use super::{Page, datasheet, next};
use crate::{facts, hosts};

/// Where the words of a labelled line begin.
const LABEL: usize = 9;

/// The section. `file` is the record, as it can be typed.
pub(super) fn conclusion(page: &mut Page, record: &Record, (said, file): (&Conclusion, &str)) {
    page.wrapped("", &said.storage, Style::Bold);
    let target = &record.header.target;
    page.wrapped("", &format!("{}: {}", target.path, facts::storage(&record.header)), Style::Plain);
    datasheet::datasheet(page, record);
    let trust = &said.trust;
    let grade = format!(
        "grade {:?} (A best, D worst): {}; {}: {}",
        trust.grade,
        trust.meaning,
        if trust.reasons.len() > 1 { "reasons" } else { "reason" },
        trust.reasons.join("; ")
    );
    let answers = [("Reads", &said.reads), ("Writes", &said.writes), ("Limit", &said.limit)];
    for (label, text) in answers {
        labelled(page, label, text);
    }
    for (index, text) in hosts::sentences(record).iter().enumerate() {
        labelled(page, if index == 0 { "Hosts" } else { "" }, text);
    }
    labelled(page, "Trust", &grade);
    labelled(page, "Compare", &format!("ioscape compare {} OTHER.jsonl", next::shell_word(file)));
    for (index, advice) in said.advice.iter().enumerate() {
        let label = if index == 0 { "To do" } else { "" };
        labelled(page, label, &format!("{}: {}", advice.kind.title(), advice.text));
    }
}

fn labelled(page: &mut Page, label: &str, text: &str) {
    page.wrapped(&format!("{label:LABEL$}"), text, Style::Plain);
}
