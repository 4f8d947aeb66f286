//! How long applications take, for people: on one system with where the time goes, and on several
//! ranked.

use std::fmt::Write as _;

use ioscape_model::units::{show_percent, show_seconds, three_digits};
use ioscape_model::{ApplicationRanking, Figure, RankedSystem};

/// Parts that are shown.
const PARTS: usize = 5;

/// A part of an application's run time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimePart<'a> {
    /// The category's word.
    pub category: &'a str,
    /// Operations.
    pub count: f64,
    /// Their time on the critical path.
    pub seconds: f64,
}

/// How long an application takes on a system.
#[derive(Clone, Debug, PartialEq)]
pub struct ApplicationPrediction<'a> {
    /// Run time, with its 90 % interval for one run.
    pub seconds: Figure,
    /// Where the application has transactions.
    pub transactions_per_s: Option<f64>,
    /// All parts of the time, the largest first.
    pub parts: Vec<TimePart<'a>>,
    /// Answers that need no system vector, each with its seconds.
    pub baselines: &'a [(&'static str, f64)],
    /// Doubts, one sentence each.
    pub warnings: &'a [String],
}

/// The answer first, then where the time goes, then what others would have said.
pub fn application_time_text(said: &ApplicationPrediction<'_>) -> String {
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
    for part in said.parts.iter().take(PARTS) {
        let each = if part.count > 0.0 { part.seconds / part.count } else { 0.0 };
        let _ = writeln!(
            text,
            "  {:22} {:>10}  {:>5}   {} × {}",
            part.category,
            show_seconds(part.seconds),
            show_percent(part.seconds / total),
            part.count.round(),
            show_seconds(each)
        );
    }
    let rest: f64 = said.parts.iter().skip(PARTS).map(|part| part.seconds).sum();
    if rest > 0.0 {
        let share = show_percent(rest / total);
        let _ = writeln!(text, "  {:22} {:>10}  {share:>5}", "the rest", show_seconds(rest));
    }
    if !said.baselines.is_empty() {
        text.push_str("\nWithout the system vector one would say\n");
        for (name, seconds) in said.baselines {
            let _ = writeln!(text, "  {name:38} {:>10}", show_seconds(*seconds));
        }
    }
    for warning in said.warnings {
        let _ = write!(text, "\nNote: {warning}.");
    }
    text
}

/// A time with its interval.
fn seconds(figure: Figure) -> String {
    format!(
        "{} (90 % interval {} to {})",
        show_seconds(figure.value),
        show_seconds(figure.low),
        show_seconds(figure.high)
    )
}

/// Systems ranked for an application, with what a deadline leaves of them.
pub fn application_ranking_text(document: &ApplicationRanking, deadline_s: Option<f64>) -> String {
    let mut text = String::new();
    let Some(first) = document.systems.first() else { return text };
    let alike: Vec<&str> = document
        .systems
        .iter()
        .filter(|system| system.verdict == "alike")
        .map(|system| system.record.as_str())
        .collect();
    let _ = write!(text, "{} is the fastest: {}", first.record, seconds(first.seconds));
    if alike.is_empty() {
        text.push_str(".\n");
    } else {
        let _ = writeln!(text, "; not to be told from it: {}.", alike.join(", "));
    }
    if let Some(cheapest) = cheapest(document, deadline_s) {
        let _ = writeln!(text, "{cheapest}");
    }
    text.push('\n');
    let wide = document.systems.iter().map(|system| system.record.chars().count()).max();
    let wide = wide.unwrap_or(0).min(40);
    for system in &document.systems {
        let Figures { value, low, high } = Figures::from(system);
        let _ = write!(
            text,
            "{:wide$}  {value:>9}  {low:>9} to {high:>9}  {:8}",
            system.record, system.verdict
        );
        if let Some(price) = system.price {
            let per_price = 1.0 / (system.seconds.value * price);
            let _ = write!(text, "  price {price}, {} runs/s per price", three_digits(per_price));
        }
        if let (Some(risk), Some(deadline_s)) = (system.deadline_risk, deadline_s) {
            let _ = write!(text, "  over {}: {}", show_seconds(deadline_s), show_percent(risk));
        }
        text.push('\n');
    }
    text
}

struct Figures {
    value: String,
    low: String,
    high: String,
}

impl From<&RankedSystem> for Figures {
    fn from(system: &RankedSystem) -> Self {
        let [value, low, high] =
            [system.seconds.value, system.seconds.low, system.seconds.high].map(show_seconds);
        Self { value, low, high }
    }
}

/// The cheapest system that keeps the deadline, where prices and a deadline are given.
fn cheapest(document: &ApplicationRanking, deadline_s: Option<f64>) -> Option<String> {
    let deadline = show_seconds(deadline_s?);
    if !document.has_prices() {
        return None;
    }
    Some(match document.cheapest_in_time() {
        Some(system) => format!(
            "{} is the cheapest that takes no longer than {deadline} with 95 % certainty.",
            system.record
        ),
        None => format!("None takes no longer than {deadline} with 95 % certainty."),
    })
}
