//! How answers about applications read on a terminal.

use std::fmt::Write as _;

use ioscape_analysis::application::Answer;
use ioscape_model::Figure;
use ioscape_model::units::{show_percent, show_seconds, three_digits};

/// Parts that are shown.
const PARTS: usize = 5;

/// The answer first, then where the time goes, then what others would have said.
pub(super) fn prediction(said: &Answer, baselines: &[(&'static str, f64)]) -> String {
    let mut text = format!("It would take {}.\n", seconds(said.seconds));
    if let Some(rate) = said.transactions_per_s {
        let _ = writeln!(
            text,
            "{} transactions per second, {} each.",
            three_digits(rate),
            show_seconds(1.0 / rate)
        );
    }
    let total = said.seconds.value.max(f64::MIN_POSITIVE);
    text.push_str("\nWhere the time goes\n");
    for term in said.terms.iter().take(PARTS) {
        let each = if term.count > 0.0 { term.seconds / term.count } else { 0.0 };
        let _ = writeln!(
            text,
            "  {:22} {:>10}  {:>5}   {} × {}",
            term.category,
            show_seconds(term.seconds),
            show_percent(term.seconds / total),
            term.count.round(),
            show_seconds(each)
        );
    }
    let rest: f64 = said.terms.iter().skip(PARTS).map(|term| term.seconds).sum();
    if rest > 0.0 {
        let share = show_percent(rest / total);
        let _ = writeln!(text, "  {:22} {:>10}  {share:>5}", "the rest", show_seconds(rest));
    }
    if !baselines.is_empty() {
        text.push_str("\nWithout the system vector one would say\n");
        for (name, seconds) in baselines {
            let _ = writeln!(text, "  {name:38} {:>10}", show_seconds(*seconds));
        }
    }
    for warning in &said.warnings {
        let _ = write!(text, "\nNote: {warning}.");
    }
    text
}

/// A time with its interval.
pub(super) fn seconds(figure: Figure) -> String {
    format!(
        "{} (90 % interval {} to {})",
        show_seconds(figure.value),
        show_seconds(figure.low),
        show_seconds(figure.high)
    )
}
