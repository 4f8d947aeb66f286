//! `compare RECORD… --app`: systems ranked for an application.

use std::fmt::Write as _;
use std::path::Path;

use ioscape_analysis::application::{self, Answer, NoAnswer, WhatIf};
use ioscape_model::units::{show_percent, show_seconds, three_digits};
use ioscape_model::{ApplicationRanking, RankedSystem};

use super::text;
use crate::args::CompareArgs;
use crate::exit::{Exit, usage};
use crate::journal;
use crate::output::answer;
use crate::trace::source;

/// Ranks and prints.
pub(crate) fn compare(
    args: &CompareArgs,
    path: &Path,
    prices: Option<&[f64]>,
) -> anyhow::Result<Exit> {
    if args.out.is_some() || !args.keys.pairs().is_empty() {
        return Err(usage("--app goes with --price, --deadline and --json only"));
    }
    let app = source::model(path)?;
    let mut answers = Vec::with_capacity(args.records.len());
    for file in &args.records {
        let record = journal::open(file)?;
        let system = super::system(&record, file, &WhatIf::default())?;
        let said = application::predict(&system, &app)
            .map_err(|error: NoAnswer| usage(format!("{}: {error}", path.display())))?;
        answers.push(said);
    }
    let document = document(args, (path, &answers), prices);
    if args.common.json {
        answer(&crate::output::json(&document)?)?;
    } else {
        answer(&shown(&document, args.deadline))?;
    }
    Ok(Exit::Fine)
}

fn document(
    args: &CompareArgs,
    (path, answers): (&Path, &[Answer]),
    prices: Option<&[f64]>,
) -> ApplicationRanking {
    let ranked = application::rank(answers);
    let system = |(rank, ranked): (usize, &application::Ranked)| {
        let said = &answers[ranked.place];
        let verdict = match (rank, ranked.is_slower) {
            (0, _) => "fastest",
            (_, true) => "slower",
            (_, false) => "alike",
        };
        RankedSystem {
            record: args.records[ranked.place].display().to_string(),
            seconds: said.seconds,
            verdict: verdict.to_owned(),
            price: prices.map(|prices| prices[ranked.place]),
            deadline_risk: args.deadline.map(|deadline_s| said.risk_beyond(deadline_s)),
        }
    };
    ApplicationRanking {
        app: path.display().to_string(),
        systems: ranked.iter().enumerate().map(system).collect(),
    }
}

/// Risk of missing a deadline above which a system does not meet it.
const RISK_MAX: f64 = 0.05;

fn shown(document: &ApplicationRanking, deadline_s: Option<f64>) -> String {
    let mut text = String::new();
    let Some(first) = document.systems.first() else { return text };
    let alike: Vec<&str> = document
        .systems
        .iter()
        .filter(|system| system.verdict == "alike")
        .map(|system| system.record.as_str())
        .collect();
    let _ = write!(text, "{} is the fastest: {}", first.record, text::seconds(first.seconds));
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
    let priced = document.systems.iter().filter(|system| system.price.is_some());
    let meets = priced.filter(|system| system.deadline_risk.is_some_and(|risk| risk <= RISK_MAX));
    let by_price = |a: &&RankedSystem, b: &&RankedSystem| {
        a.price.unwrap_or(f64::MAX).total_cmp(&b.price.unwrap_or(f64::MAX))
    };
    if document.systems.iter().all(|system| system.price.is_none()) {
        return None;
    }
    Some(match meets.min_by(by_price) {
        Some(system) => format!(
            "{} is the cheapest that takes no longer than {deadline} with 95 % certainty.",
            system.record
        ),
        None => format!("None takes no longer than {deadline} with 95 % certainty."),
    })
}
