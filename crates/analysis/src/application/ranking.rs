//! Systems ranked for an application: which of them really differ. What the recording says is the same
//! on all of them, and half of the model's error, so that differences are surer than times.

use ioscape_model::{ApplicationRanking, RankedSystem};
use ioscape_stats::NORMAL_90;

use super::{Answer, REPEATABILITY, Term, speed_error_s};

/// A place in the ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranked {
    /// Index of the answer.
    pub place: usize,
    /// True where it is slower than the fastest beyond doubt (90 %).
    pub is_slower: bool,
}

/// The answers, fastest first.
pub fn rank(answers: &[Answer]) -> Vec<Ranked> {
    let mut places: Vec<usize> = (0..answers.len()).collect();
    let seconds = |place: &usize| answers[*place].seconds.value;
    places.sort_by(|a, b| seconds(a).total_cmp(&seconds(b)).then(a.cmp(b)));
    let Some(first) = places.first().copied() else { return Vec::new() };
    let ranked = |place: usize| Ranked {
        place,
        is_slower: place != first && differ(&answers[first], &answers[place]),
    };
    places.into_iter().map(ranked).collect()
}

/// A system that was asked about an application.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// The system's record.
    pub record: String,
    /// How long the application takes there.
    pub answer: Answer,
    /// The system's price.
    pub price: Option<f64>,
}

/// Ranks systems for an application, as `compare --app --json` prints them.
pub fn rank_systems(
    app: &str,
    candidates: &[Candidate],
    deadline_s: Option<f64>,
) -> ApplicationRanking {
    let answers: Vec<Answer> =
        candidates.iter().map(|candidate| candidate.answer.clone()).collect();
    let system = |(rank, ranked): (usize, Ranked)| {
        let Candidate { record, answer, price } = &candidates[ranked.place];
        let verdict = match (rank, ranked.is_slower) {
            (0, _) => "fastest",
            (_, true) => "slower",
            (_, false) => "alike",
        };
        RankedSystem {
            record: record.clone(),
            seconds: answer.seconds,
            verdict: verdict.to_owned(),
            price: *price,
            deadline_risk: deadline_s.map(|deadline_s| answer.risk_beyond(deadline_s)),
        }
    };
    ApplicationRanking {
        app: app.to_owned(),
        systems: rank(&answers).into_iter().enumerate().map(system).collect(),
    }
}

/// True where two systems differ for the application: 90 % interval of the difference of their means.
fn differ(a: &Answer, b: &Answer) -> bool {
    let (one, other) = (a.seconds.value, b.seconds.value);
    let scatter = REPEATABILITY * REPEATABILITY * (one * one + other * other);
    let variance = scatter + systematic(a, b);
    (one - other).abs() > NORMAL_90 * variance.sqrt()
}

fn systematic(a: &Answer, b: &Answer) -> f64 {
    // Each record was taken at a speed of its own.
    let mut variance = speed_error_s(&a.terms).powi(2) + speed_error_s(&b.terms).powi(2);
    let find = |terms: &[Term], category: &str| {
        terms.iter().find(|term| term.category == category).cloned()
    };
    let only_in_b = b.terms.iter().filter(|term| find(&a.terms, &term.category).is_none());
    for term in a.terms.iter().chain(only_in_b) {
        let one = find(&a.terms, &term.category);
        let other = find(&b.terms, &term.category);
        let seconds = |term: &Option<Term>| term.as_ref().map_or(0.0, |term| term.seconds);
        let measured = |term: &Option<Term>| {
            term.as_ref().map_or(0.0, |term| (term.seconds * term.measured_sd).powi(2))
        };
        let (x, y) = (seconds(&one), seconds(&other));
        let apart = term.shared * (x - y).powi(2) + (1.0 - term.shared) * (x * x + y * y);
        variance += measured(&one) + measured(&other) + term.model_sd.powi(2) * apart;
    }
    variance
}
