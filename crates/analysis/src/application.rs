//! How long an application takes on a system where it never ran: what it asks for, counted where it
//! was recorded (`ioscape_model::app::Demand`), times what each thing takes there (the system vector
//! of its record). The hybrid method of Seltzer et al. 1999, section 4, with the page cache
//! simulated for the system's own memory; the formula stands in `docs/method.md`.

mod price;
mod ranking;
mod system;
#[cfg(test)]
mod tests;

use ioscape_model::app::{App, Behaviour, Demand};
use ioscape_model::{ApplicationTime, Figure, LargestTerm, Workload};
use ioscape_stats::NORMAL_90;

use crate::predict::Predictor;

pub use ranking::{Candidate, Ranked, rank, rank_systems};
pub use system::{MostRead, NoAnswer, System, WhatIf};

/// Terms of an answer that are named.
const LARGEST: usize = 5;
/// Two runs of one program on one system differ by this, as a standard deviation of a logarithm: from
/// repeated runs of programs of several kinds (Seltzer et al. report 1 to 10 %).
const REPEATABILITY: f64 = 0.05;
/// A share of calls without a category above this is worth a warning.
const UNCLASSIFIED_MAX: f64 = 0.05;

/// A part of the time: a category with what it takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// The category's word.
    pub category: String,
    /// Operations.
    pub count: f64,
    /// On the critical path, seconds.
    pub seconds: f64,
    /// Relative standard error of what the system's vector says of it.
    pub measured_sd: f64,
    /// Relative standard error of the model itself, the same category being priced everywhere.
    pub model_sd: f64,
    /// Share of the model's error that is the same on every system: 1 where the recording alone says
    /// it.
    pub shared: f64,
    /// A processor's time: all such parts are longer or shorter together.
    pub is_processors: bool,
}

/// An answer with its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Run time, seconds, with its 90 % interval for one run.
    pub seconds: Figure,
    /// Its parts, largest first.
    pub terms: Vec<Term>,
    /// Share of the calls that no element prices.
    pub unclassified_frac: f64,
    /// Transactions per second, where the application has transactions.
    pub transactions_per_s: Option<f64>,
    /// Doubts, one sentence each.
    pub warnings: Vec<String>,
}

impl Answer {
    /// As `predict --app --json` prints it.
    pub fn document(&self, app: &str) -> ApplicationTime {
        let largest = self.terms.iter().take(LARGEST).map(|term| LargestTerm {
            category: term.category.clone(),
            count: term.count.round() as u64,
            seconds: term.seconds,
        });
        ApplicationTime {
            app: app.to_owned(),
            seconds: self.seconds,
            largest: largest.collect(),
            unclassified_fraction: self.unclassified_frac,
            warnings: self.warnings.clone(),
        }
    }
}

/// Predicts an application on a system.
///
/// # Errors
/// Where the model says nothing of what the application asks for.
pub fn predict(system: &System, app: &App) -> Result<Answer, NoAnswer> {
    let demand = app.demand.as_ref().ok_or(NoAnswer::NoDemand)?;
    let mut warnings = Vec::new();
    let mut terms = price::terms(system, demand, &mut warnings);
    terms.extend(bound(system, demand, &terms));
    terms.retain(|term| term.seconds > 0.0);
    terms.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let unclassified_frac = price::unclassified(system, demand);
    if unclassified_frac > UNCLASSIFIED_MAX {
        warnings.push(format!(
            "{:.0} % of the calls have no element in this record: they count with the time they \
             took where they were recorded",
            100.0 * unclassified_frac
        ));
    }
    if app.lost > 0 {
        warnings.push(format!("{} events of the recording were lost", app.lost));
    }
    let value: f64 = terms.iter().map(|term| term.seconds).sum();
    let seconds = interval(value, &terms);
    Ok(Answer {
        seconds,
        transactions_per_s: transactions(app).filter(|_| value > 0.0).map(|count| count / value),
        terms,
        unclassified_frac,
        warnings,
    })
}

/// The busiest resource sets the least time: the device, with what must be written back before the
/// end or with all that is read from it; processors, with the work of all streams and their calls that
/// wait for no device. What is lacking is a part of its own.
fn bound(system: &System, demand: &Demand, terms: &[Term]) -> Option<Term> {
    let path_s: f64 = terms.iter().map(|term| term.seconds).sum();
    let device = price::device_bound(system, demand, terms);
    let processors_s = price::processor_s(system, demand, terms) / system.cpus;
    let lacking = |category: &str, least_s: f64, count: f64, model_sd: f64| Term {
        category: category.to_owned(),
        count,
        seconds: least_s - path_s,
        measured_sd: 0.0,
        model_sd,
        shared: 0.0,
        is_processors: category == "processors",
    };
    let reads = price::device_reads(system, demand)
        .map(|(least_s, requests)| lacking("device_reads", least_s, requests, price::MISS_SD));
    let terms = [
        lacking("write_back", device.seconds, device.pages, price::WRITE_BACK_SD),
        lacking("processors", processors_s, 1.0, price::WORK_SD),
    ];
    let most = terms.into_iter().chain(reads).max_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
    (most.seconds > 0.0).then_some(most)
}

/// A processor's speed from one minute to the next, as a standard deviation of a logarithm: four records
/// of one shared virtual machine within a quarter of an hour had its own loop at 4.7 to 7.3 ms (0.18).
const SPEED_SD: f64 = 0.15;

/// The error that all processor-bound parts share, seconds.
fn speed_error_s(terms: &[Term]) -> f64 {
    SPEED_SD * terms.iter().filter(|term| term.is_processors).map(|term| term.seconds).sum::<f64>()
}

/// Errors of parts are independent of each other, but for the processor's speed; runs scatter on top of
/// that.
fn interval(value: f64, terms: &[Term]) -> Figure {
    let square =
        |term: &Term| term.seconds.powi(2) * (term.measured_sd.powi(2) + term.model_sd.powi(2));
    let absolute_sd = terms.iter().map(square).sum::<f64>().sqrt().hypot(speed_error_s(terms));
    let relative = if value > 0.0 { absolute_sd / value } else { 0.0 };
    let half = NORMAL_90 * relative.hypot(REPEATABILITY);
    Figure { value, low: value * (-half).exp(), high: value * half.exp() }
}

/// Transactions that the application made: sequences of calls that come again and again.
fn transactions(app: &App) -> Option<f64> {
    let transaction = app.whole.order.transaction.as_ref()?;
    let calls = transaction.calls as f64;
    (calls > 0.0 && transaction.likeness >= LIKENESS_MIN).then(|| app.whole.calls as f64 / calls)
}

/// Below this share of like calls a sequence is no transaction.
const LIKENESS_MIN: f64 = 0.8;

impl Answer {
    /// Probability that one run takes longer than this.
    pub fn risk_beyond(&self, seconds: f64) -> f64 {
        let Figure { value, low, high } = self.seconds;
        let sd = (high / low).ln() / (2.0 * NORMAL_90);
        if sd <= 0.0 || seconds <= 0.0 || !sd.is_finite() {
            return f64::from(u8::from(value > seconds));
        }
        1.0 - normal((seconds / value).ln() / sd)
    }
}

/// Share of a normal distribution below a value, to some 1e-7 (Abramowitz and Stegun 1964, 26.2.17).
fn normal(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let series = [1.330_274_429, -1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530];
    let sum = series.iter().fold(0.0, |sum, factor| (sum + factor) * t);
    let above = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum;
    if z >= 0.0 { 1.0 - above } else { above }
}

/// How many times as long syncs take on the system as where the application was recorded.
pub fn sync_ratio(system: &System, demand: &Demand) -> Option<f64> {
    use ioscape_model::ElementName as E;
    let kinds = [E::SyncGrown, E::SyncOverwritten, E::SyncNew, E::WriteDsync];
    let most = kinds.into_iter().filter_map(|name| {
        let category = demand.categories.get(name.word())?;
        Some((category.count, category.mean_s?, system.element(name)?.time_s.value))
    });
    let (_, there_s, here_s) = most.max_by_key(|(count, ..)| *count)?;
    (there_s > 0.0).then(|| here_s / there_s)
}

/// Predicts by the five parameters alone: bytes over the throughput of the map's law, and the time
/// between requests as it was recorded, one stretch after the other.
pub fn by_five<'a>(
    predictor: &Predictor,
    stretches: impl Iterator<Item = (&'a Workload, &'a Behaviour)>,
) -> Answer {
    let mut terms = Vec::new();
    for (work, stretch) in stretches {
        let bytes = (stretch.bytes_read + stretch.bytes_written) as f64;
        let streams = f64::from(stretch.five.process_num.max(1));
        let term = |category: &str, count: f64, seconds: f64, model_sd: f64| Term {
            category: category.to_owned(),
            count,
            seconds,
            measured_sd: 0.0,
            model_sd,
            shared: 0.0,
            is_processors: false,
        };
        if bytes > 0.0 && work.check().is_ok() {
            let rate = predictor.guess(work).ln_throughput.exp();
            terms.push(term("requests", stretch.requests as f64, bytes / rate, FIVE_SD));
        }
        let think_s = stretch.think.mean_s * stretch.calls as f64 / streams;
        terms.push(term(price::WORK, stretch.calls as f64, think_s, FIVE_SD));
    }
    terms.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let value = terms.iter().map(|term| term.seconds).sum();
    let warning = "the model says nothing of single operations: by five parameters alone, without \
                   names, syncs and programs; `ioscape trace model` makes it anew from a trace";
    Answer {
        seconds: interval(value, &terms),
        terms,
        unclassified_frac: 1.0,
        transactions_per_s: None,
        warnings: vec![warning.to_owned()],
    }
}

/// Five parameters miss the time of applications by a factor of two and more (the pilot of this
/// method: sorting and databases on six systems).
const FIVE_SD: f64 = 0.7;
